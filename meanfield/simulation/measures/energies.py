"""The update energy of every layer and its parts, by site if asked for: what `meanfield.simulate` measures on a net.

A draw says the label term, output term and overlap energy of every layer. The cross term between label and output
column is odd in the labels, so averaging a draw over the sign of y leaves S_l = A_l + B_l exactly; both parts come
from the same three passes. A dataset says means of all draws with errors, and how single draws scatter about them.

Draws on a device are made in groups of fixed size and place, whichever draws were asked for. A device's library
chooses its algorithm for matrix products by their number, so that a draw in other company would differ in rounding;
and one stream of random numbers for many draws costs far less than one for each. So every group is made whole, and
draws that are not wanted are cut off: a draw's numbers depend on its group alone.

Source: docs/theory.md section 2; Zhang et al. 2026, Lemma 2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any, Self, cast

import numpy as np
import xarray as xr

from meanfield.common.estimates import (
    DrawStatistic,
    Estimate,
    Means,
    inverse_root,
    log_moments,
    summarise,
    summarise_each,
)
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.common.validation import Array, inputs_described, not_negative, require_choice, require_flag
from meanfield.nets.inputs import (
    PLAIN_BATCH,
    Batch,
    checked_inputs,
    require_batch,
    require_classes,
    require_normalisable,
)
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.registry import measured_dataset
from meanfield.quantities.step_scales import energy_quantiles, relative, scale_estimates
from meanfield.simulation.arrays import (
    BACKENDS,
    JUMP,
    NUMPY,
    PRECISIONS,
    Arrays,
    arrays_of,
    overflow_silent,
    require_energies,
    require_followed,
    require_range,
    require_reach,
)
from meanfield.simulation.cost import BATCH_BYTES_HELD, chosen_weights, draw_bytes, draw_cost, step_bytes
from meanfield.simulation.draws import draw_inputs, error_at_output, output_gradients, repeated_inputs
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.kernels.gram_process import draw_gram_energies, require_gram_process
from meanfield.simulation.maps.base import operation_of
from meanfield.simulation.measures.base import DEVICE_SPEED, Cost, Measure, Pieces, draws_per_group
from meanfield.simulation.measures.overlap_energy import (
    CONTROLS,
    LABELS,
    LEFT_OUT,
    ColumnEnergies,
    OverlapMethod,
    adjusted_terms,
    controls_refusal,
    forward_controls,
    measured,
    overlap_method,
    overlap_per_label_term,
)
from meanfield.simulation.measures.step_scales import KEPT, kept_of_draws, whole_step
from meanfield.simulation.passes import Forward, forward, through_readout
from meanfield.simulation.step_moves import is_curved, require_step, whole_net
from meanfield.simulation.weights import ENERGY_KINDS, Weights, draw_device_weights, draw_weights

# Largest pre-activation of every layer, by which draws in single precision tell whether its range has sufficed.
LARGEST = "largest_pre_activation"


@dataclass(frozen=True, kw_only=True)
class Energies(Measure):
    """Label term, output term, overlap energy and update energy of every layer, and the learning-rate scale they set.

    Every draw takes new weights, labels (y ~ N(0, 1) unless ``batch`` or ``loss`` say otherwise) and (unless given)
    inputs, and computes the exact one-step change of every pre-activation at learning rate 1 by one forward, backward
    and tangent pass.

    Args:
        inputs: a fixed batch (samples, channels, *grid) instead of the net's input law.
        weights: "dense" Gaussian matrices; "lazy" ones that are revealed only where they are used; "gram", no matrices
            but the lengths and angles that energies depend on, whatever the width (MLPs of "relu" or "linear" with one
            input); or "auto", the cheapest. All have one law and different numbers; the dataset says which was taken.
        batch: how the samples of a batch depend on each other: correlated inputs, labels with a mean or of a teacher.
        loss: "squared", |z_out - y|^2 / (2 M), or "cross_entropy", with the outputs of a site as logits and a class
            drawn uniformly for every sample and site; both are means over the samples. Under cross-entropy the label
            term is that of y - 1/C, the output term that of the softmax less 1/C, and S = A + B holds still.
        by_site: whether to measure label term, output term and update energy at every site, too.
        controls: whether to measure energies with exactly known means, too, and to give ``adjusted_`` means of the
            terms, which have less error (docs/theory.md section 6): of plain ReLU and linear nets on circular grids
            with a convolutional readout, under plain labels and squared loss.
        backend: "numpy", or "cupy", a CUDA device through CuPy: the same passes on many draws at once. A device has
            streams of its own for weights: the same law, other numbers than "numpy" has.
        precision: of weights and passes, "float64" or "float32", which halves the memory; energies are summed in
            double precision. On "numpy" draw i is the same net, rounded. docs/precision.md has the bias.
        optimizer, epsilon: whose first step from rest is made, as for `meanfield.one_step`. Under any but gradient
            descent label_term is the update energy of a step on the labels' error alone, output_term on the outputs'
            alone, and update_energy on the whole error: directions are not linear in the error, so they do not add up.
            The attribute ``kept_share`` says what an epsilon leaves of AdamW's signs, in the mean over draws.
        scales: whether to measure relative and output changes, too; other optimizers than gradient descent always do.
            They take dense weights, "numpy" and "float64", and leave the overlap energy out.

    Gives over ``layer`` = 1 .. L label_term, output_term, overlap_energy, update_energy and, without a layer,
    mean_update_energy and learning_rate_scale, each with NAME_stderr, NAME_largest_share and, per layer,
    NAME_covariance, and quantiles over draws. With ``scales`` over ``layer`` also relative_update_energy, and
    output_update_energy, relative_, last_ and output_learning_rate_scale. With ``by_site``, over ``layer`` and
    ``site`` (row by row), NAME_by_site without covariance. The overlap energy, which no label moves, comes with plain
    labels and squared loss only.

    Raises:
        TypeError, ValueError: unknown names, inputs of another shape, "gram" for nets without a Gram process.

    Source: Zhang et al. 2026, eqs. 7-9, 18-20.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.MLP(depth=4, width=64)
        >>> measured = mf.simulate(net, draws=8, seed=0, measure=mf.Energies(precision="float32"))
        >>> measured["update_energy"].dims
        ('layer',)
    """

    inputs: Any = None
    weights: str = "auto"
    batch: Batch = PLAIN_BATCH
    loss: str = "squared"
    by_site: bool = False
    controls: bool = False
    backend: str = "numpy"
    precision: str = "float64"
    optimizer: str | Optimizer | Hybrid = "sgd"
    epsilon: float = 0.0
    scales: bool = False

    @property
    def step(self) -> FirstStep:
        """The step of all weights."""
        return FirstStep(self.optimizer, self.epsilon)

    @property
    def of_whole_net(self) -> bool:
        """Whether the readout moves with the layers, so that the outputs' change is known."""
        return self.scales or not self.step.is_descent

    def overlap_method(self, net: Net) -> OverlapMethod:
        """That of the net beside white labels; none beside others, which neither move nor tell the overlap energy."""
        if self.weights == "gram":
            return LABELS
        if self.of_whole_net:
            return LEFT_OUT
        return overlap_method(net) if self.batch.has_plain_labels and self.loss == "squared" else LEFT_OUT

    def settled(self, net: Net) -> Self:
        require_choice("weights", self.weights, ("auto", *ENERGY_KINDS))
        require_choice("backend", self.backend, BACKENDS)
        require_choice("precision", self.precision, PRECISIONS)
        require_batch(self.batch, self.loss, self.inputs is not None, net.input_law)
        require_classes(self.loss, net.output_shape[1])
        if self.weights == "gram":
            require_gram_process(net)
            if beyond := self._beyond_gram():
                asked = ", ".join(f"{name} {value!r}" for name, value in beyond.items())
                raise ValueError(f"weights 'gram' serve plain labels, squared loss and NumPy in float64, not {asked}")
        if self.precision == "float64":
            require_reach(net)
        else:
            for place, variance in enumerate(net.weight_variances, start=1):
                require_followed(f"weight matrix {place}", sqrt(variance), JUMP)
        require_normalisable(net)
        self._require_grids(net)
        require_flag("scales", self.scales)
        not_negative("epsilon", self.epsilon)
        require_step(net, self.step)
        if self.of_whole_net:
            self._require_plain_road()
        inputs, by_site = checked_inputs(net, self.inputs), require_flag("by_site", self.by_site)
        if require_flag("controls", self.controls):
            self._require_known_means(net, inputs)
        weights = "dense" if self.of_whole_net else chosen_weights(net, self.weights, gram=not self._beyond_gram())
        return replace(self, inputs=inputs, by_site=by_site, weights=weights)

    def _require_plain_road(self) -> None:
        """Raise ValueError for options that only the layers of gradient descent have."""
        plain: dict[str, tuple[Any, ...]] = {"weights": ("auto", "dense"), "backend": ("numpy",)}
        plain |= {"precision": ("float64",), "by_site": (False,), "controls": (False,)}
        beyond = [
            f"{name} {self.options[name]!r}" for name, allowed in plain.items() if self.options[name] not in allowed
        ]
        if beyond:
            what = "scales True" if self.step.is_descent else f"optimizer {self.step.name!r}"
            raise ValueError(
                f"{what} moves the readout with the layers, by dense weights on 'numpy' in float64, and measures means "
                f"over sites; not with {' and '.join(beyond)}: leave that out"
            )

    def _require_grids(self, net: Net) -> None:
        """Raise ValueError for what sites alone can say that are the same in all values."""
        if net.has_one_grid:
            return
        grids = ", ".join(map(str, dict.fromkeys(net.value_grids)))
        if self.by_site:
            raise ValueError(f"by_site takes the same sites in all layers; this net has grids {grids}: leave it out")
        if self.batch.labels == "teacher" and not net.is_pooled:
            raise ValueError(
                f"labels 'teacher' are a map of the input at the same site; inputs and outputs of this net are on "
                f"different grids ({grids}): take readout='pooled', or independent labels"
            )

    def _require_known_means(self, net: Net, inputs: Array | None) -> None:
        """Raise ValueError unless the means of the controls are known."""
        plain = self.batch.has_plain_labels and self.loss == "squared" and self.batch == PLAIN_BATCH
        if why := controls_refusal(net, inputs) or (
            "" if plain else "they are known of plain batches under squared loss"
        ):
            raise ValueError(f"controls have known means in some nets alone: {why}; leave the option out")

    def _beyond_gram(self) -> dict[str, Any]:
        """What is asked for that the Gram process does not serve."""
        plain = {"backend": "numpy", "precision": "float64", "batch": PLAIN_BATCH, "loss": "squared", "controls": False}
        asked = {name: self.options[name] for name in plain}
        return {name: value for name, value in asked.items() if value != plain[name]}

    def cost(self, net: Net) -> Cost:
        cost = draw_cost(net, self.weights, self.precision)
        if self.of_whole_net:
            columns = 2 if self.step.is_descent else STEP_COLUMNS
            curved = is_curved(net, self.step, net.role_of) * net.output_shape[1]
            held = step_bytes(net, net.inputs, columns, curved, self.precision)
            operations = cost.operations * (1 if self.step.is_descent else PRODUCTS_OF_STEP)
            return Cost(operations, held, max(1, min(cost.together, BATCH_BYTES_HELD // held)))
        if self.backend == "numpy":
            return cost
        return Cost(cost.operations / DEVICE_SPEED, cost.bytes, draws_per_group(cost.bytes))

    def multiple(self, net: Net) -> int:
        return 1 if self.backend == "numpy" else self.together(net)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """The numbers of these draws alone on the host, of whole groups on a device.

        Raises OverflowError where the precision does not reach.
        """
        if self.of_whole_net:
            return draw_whole_steps(net, seed, draws, self)
        arrays = arrays_of(self.backend, self.precision)
        with overflow_silent():
            if arrays.normals is None:
                numbers = draw_energies(net, seed, draws, arrays, **self.options)
            else:
                energies = partial(draw_energies, net, seed, arrays=arrays, **self.options)
                together = draws_per_group(draw_bytes(net, self.weights, self.precision))
                numbers = in_whole_groups(energies, draws, together)
        if self.precision == "float32":
            changes = {name: np.sqrt(numbers[name]) for name in ("label_term", "output_term")}
            require_range({"a pre-activation": numbers.pop(LARGEST)[:, 1:], **changes})
        # All gates that can be shut may be shut at once.
        activations = {part for unit in net.units for part in unit.maps if part.activates}
        require_energies(numbers, may_vanish=any(operation_of(part).may_shut(part) for part in activations))
        return numbers

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        own = {
            "weights": self.weights,
            "backend": self.backend,
            "precision": self.precision,
            "overlap_method": self.overlap_method(net).name,
            "batch": json.dumps(self.batch.describe()),
            "loss": self.loss,
        } | ({"optimizer": self.step.name, "epsilon": self.epsilon} if self.of_whole_net else {})
        own |= kept_of_draws(values, self.step)
        terms = {name: value for name, value in values.items() if name not in (*CONTROLS, KEPT)}
        adjusted = adjusted_terms(values, cast(Sequential, net), self.inputs) if self.controls else {}
        estimates = energy_estimates(terms, adjusted)
        return measured_dataset(net, estimates, own | inputs_described(self.inputs) | dict(attrs))

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"optimizer": repr(self.optimizer)}


# Labels' error, outputs' error, and both.
STEP_COLUMNS = 3
# Products of a weight with a column in a step that is not of descent, over those of descent, which go up once, and back
# and along in two columns: in a third one along, and in all three to make the gradient and to multiply by it.
PRODUCTS_OF_STEP = 12 / 5


def draw_energies(
    net: Net, seed: int, draws: range, arrays: Arrays = NUMPY, weights: str = "dense", **options: Any
) -> dict[str, Array]:
    """label_term, output_term and, beside white labels, overlap_energy of every draw, (D, L); output_error (D, 1).

    ``options`` are fields of `Energies`. With ``by_site`` the first two at every site too, as NAME_by_site
    (D, L, S); with ``controls`` those of `meanfield.simulation.measures.overlap_energy`. In single precision also
    largest_pre_activation (D, N + 1).
    """
    asked = Energies(weights=weights, **options)
    if asked.weights == "gram":
        return _gram_energies(cast(Sequential, net), seed, draws, asked)
    state, gradient = drawn_passes(net, seed, draws, asked, arrays)
    numbers = {"output_error": error_at_output(gradient, asked.loss, arrays)[:, None]}
    if arrays.precision == "float32":
        numbers[LARGEST] = arrays.xp.stack([arrays.xp.abs(z).max(axis=(1, 2, 3)) for z in state.read()], axis=1)
    if asked.controls:
        numbers |= forward_controls(state)
    (top, _), method = through_readout(state, gradient), asked.overlap_method(net)
    columns, overlap = measured(
        method,
        state,
        top,
        probes=lambda: NormalSource(streams_of_draws(seed, "probe", draws)),
        by_site=asked.by_site,
        controls=asked.controls,
    )
    numbers |= column_terms(columns) if overlap is None else column_terms(columns) | {"overlap_energy": overlap}
    return {name: arrays.fetched(values) for name, values in numbers.items()}


def draw_whole_steps(net: Net, seed: int, draws: range, asked: Energies) -> dict[str, Array]:
    """label_term, output_term, update_energy and relative_update_energy (D, L), output_update_energy, output_error.

    Under gradient descent label and output column add up, once draws are averaged over the sign of the labels. Raises
    OverflowError where floats do not reach.
    """
    with overflow_silent():
        state, gradient = drawn_passes(whole_net(net), seed, draws, asked)
        whole_error = () if asked.step.is_descent else ((-1.0, 1.0),)
        energies, moved, c, kept = whole_step(
            state, gradient, asked.step, net.role_of, len(net.units), asked.loss, sums=whole_error
        )
        if asked.step.is_descent:
            update, output = energies.sum(axis=2), moved.sum(axis=1)
        else:
            update, output = energies[:, :, 2], moved[:, 2]
        numbers = {
            "label_term": energies[:, :, 0],
            "output_term": energies[:, :, 1],
            "update_energy": update,
            "relative_update_energy": relative(update, c),
            "output_update_energy": output[:, None],
        } | kept
        error = error_at_output(gradient, asked.loss)[:, None]
    require_energies(numbers, may_vanish=True)
    return numbers | {"output_error": error}


def column_terms(columns: ColumnEnergies) -> dict[str, Array]:
    """label_term and output_term from the first two columns, and the controls as they are."""
    names = {"label_term": 0, "output_term": 1}
    energies = {at: values for at, values in columns.items() if at not in CONTROLS}
    controls = {name: values for name, values in columns.items() if name in CONTROLS}
    return controls | {
        f"{name}{at}": values[:, :, place] for at, values in energies.items() for name, place in names.items()
    }


def _gram_energies(net: Sequential, seed: int, draws: range, asked: Energies) -> dict[str, Array]:
    """The same by the Gram process of a net of one site, the overlap energy by the reduction from the label term."""
    numbers = draw_gram_energies(net, seed, draws, asked.inputs)
    layers_above = np.arange(net.depth)[::-1]
    per_label_term = overlap_per_label_term(net) / net.variance_factor**layers_above
    numbers["overlap_energy"] = numbers["label_term"] * per_label_term
    if asked.by_site:
        numbers |= {f"{name}_by_site": numbers[name][:, :, None] for name in ("label_term", "output_term")}
    return numbers


def drawn_passes(net: Net, seed: int, draws: range, asked: Energies, arrays: Arrays = NUMPY) -> tuple[Forward, Array]:
    """The forward pass of every draw, and the gradients at its outputs under the columns labels and outputs."""
    streams = streams_by_purpose(seed, draws)
    matrices = weights_of_draws(net, seed, draws, asked.weights, arrays)
    if asked.inputs is None:
        values = draw_inputs(net, streams, asked.batch.input_correlation)
    else:
        values = repeated_inputs(net, asked.inputs, len(draws))
    state = forward(net, matrices, arrays.moved(values), arrays)
    return state, output_gradients(streams, values, state.output, asked.batch, asked.loss, arrays)


def weights_of_draws(net: Net, seed: int, draws: range, kind: str, arrays: Arrays) -> Weights:
    """The weights of every draw: on the host from a stream for each draw, on a device from one for the group."""
    if arrays.normals is None:
        return draw_weights(net, streams_of_draws(seed, "weights", draws), kind, arrays.precision)
    normals = arrays.normals(seed, "weights", draws, arrays.precision)
    return draw_device_weights(net, normals, kind, arrays, len(draws))


def in_whole_groups(measure: Callable[[range], dict[str, Array]], draws: range, size: int) -> dict[str, Array]:
    """What ``measure`` gives for these draws, by name, from all groups that hold one of them."""
    first = draws.start // size * size
    groups = [measure(range(start, start + size)) for start in range(first, draws.stop, size)]
    wanted = slice(draws.start - first, draws.stop - first)
    return {name: np.concatenate([group[name] for group in groups])[wanted] for name in groups[0]}


def energy_estimates(
    values: dict[str, Array], adjusted: dict[str, Array] | None = None
) -> dict[str, Estimate | Means | DrawStatistic]:
    """Means and errors of the measured terms and of what follows from them draw by draw.

    ``adjusted`` holds terms by the same names, of the same mean (`adjusted_terms`), or nothing.
    """
    profiles = {name: value for name, value in values.items() if value.ndim > 2}
    of_scales = ("relative_update_energy", "output_update_energy") if "output_update_energy" in values else ()
    by_layer = {name: value for name, value in values.items() if name not in (*profiles, *of_scales)}
    by_layer.setdefault("update_energy", values["label_term"] + values["output_term"])
    if profiles:
        profiles["update_energy_by_site"] = profiles["label_term_by_site"] + profiles["output_term_by_site"]
    of_sites = {name: summarise_each(value) for name, value in profiles.items()}
    estimates = _layer_estimates(by_layer) | of_sites | energy_quantiles(by_layer["update_energy"])
    spread, skewness = log_moments(by_layer["update_energy"])
    estimates |= {"update_energy_log_spread": spread, "update_energy_log_skewness": skewness}
    if of_scales:
        estimates |= scale_estimates(values)
    if adjusted:
        adjusted = adjusted | {"update_energy": adjusted["label_term"] + adjusted["output_term"]}
        estimates |= {f"adjusted_{name}": estimate for name, estimate in _layer_estimates(adjusted).items()}
    return estimates


def _layer_estimates(values: dict[str, Array]) -> dict[str, Estimate]:
    means = {name: values[name].mean(axis=1, keepdims=True) for name in ("update_energy", "label_term")}
    per_draw = {**values, "mean_update_energy": means["update_energy"]}
    estimates = {name: summarise(value) for name, value in per_draw.items()}
    estimates["learning_rate_scale"] = inverse_root(estimates["mean_update_energy"])
    estimates["label_learning_rate_scale"] = inverse_root(summarise(means["label_term"]))
    return estimates
