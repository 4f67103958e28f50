"""The update energy of every layer and its parts, by site if asked for: what `meanfield.simulate` measures on a net."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any, Self, cast

from meanfield.common.arrays import Array, inputs_described
from meanfield.common.validation import require_choice, require_flag
from meanfield.nets.families.layered import Sequential
from meanfield.nets.inputs.batches import PLAIN, require_batch, require_classes
from meanfield.nets.inputs.given import checked_inputs
from meanfield.nets.net import Net
from meanfield.nets.regularisation import require_normalisable
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.arrays.arrays import BACKENDS, PRECISIONS
from meanfield.simulation.arrays.float_range import JUMP, require_followed, require_reach
from meanfield.simulation.arrays.groups import (
    DEVICE_SPEED,
    draw_energies_on,
    draws_per_group,
    require_device_memory,
)
from meanfield.simulation.arrays.resolve import device_described
from meanfield.simulation.cost import chosen_weights, draw_cost
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.measures.estimates.controls import CONTROLS, adjusted_terms, controls_refusal
from meanfield.simulation.measures.estimates.energy_estimates import energy_estimates
from meanfield.simulation.measures.update_energy import Conditions
from meanfield.simulation.weights.gram_process import require_gram_process
from meanfield.simulation.weights.matrices import ENERGY_KINDS

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Energies(Conditions, Measure):
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

    Gives over ``layer`` = 1 .. L label_term, output_term, overlap_energy, update_energy and, without a layer,
    mean_update_energy and learning_rate_scale, each with NAME_stderr, NAME_largest_share and, per layer,
    NAME_covariance, and quantiles over draws; with ``by_site``, over ``layer`` and ``site`` (row by row), NAME_by_site
    without covariance. The overlap energy, which no label moves, comes with plain labels and squared loss only.

    Raises:
        TypeError, ValueError: unknown names, inputs of another shape, "gram" for nets without a Gram process.

    Source: Zhang et al. 2026, eqs. 7-9, 18-20.
    """

    weights: str = "auto"
    backend: str = "numpy"
    precision: str = "float64"

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
        inputs, by_site = checked_inputs(net, self.inputs), require_flag("by_site", self.by_site)
        if require_flag("controls", self.controls):
            self._require_known_means(net, inputs)
        weights = chosen_weights(net, self.weights, gram=not self._beyond_gram())
        return replace(self, inputs=inputs, by_site=by_site, weights=weights)

    def _require_known_means(self, net: Net, inputs: Array | None) -> None:
        """Raise ValueError unless the means of the controls are known."""
        plain = self.batch.has_plain_labels and self.loss == "squared" and self.batch == PLAIN
        if why := controls_refusal(net, inputs) or (
            "" if plain else "they are known of plain batches under squared loss"
        ):
            raise ValueError(f"controls have known means in some nets alone: {why}; leave the option out")

    def _beyond_gram(self) -> dict[str, Any]:
        """What is asked for that the Gram process does not serve."""
        plain = {"backend": "numpy", "precision": "float64", "batch": PLAIN, "loss": "squared", "controls": False}
        asked = {name: self.options[name] for name in plain}
        return {name: value for name, value in asked.items() if value != plain[name]}

    def cost(self, net: Net) -> Cost:
        cost = draw_cost(net, self.weights, self.precision)
        if self.backend == "numpy":
            return cost
        together = draws_per_group(net, self.weights, self.precision)
        return Cost(cost.operations / DEVICE_SPEED, cost.bytes, together)

    def multiple(self, net: Net) -> int:
        return 1 if self.backend == "numpy" else self.together(net)

    def require_memory(self, net: Net, draws: int, workers: int) -> None:
        """As every measure, and as `arrays_of` does where this cannot be on a device."""
        if self.backend == "numpy":
            super().require_memory(net, draws, workers)
        elif workers:  # not those of a scheduler, whose machines are theirs
            require_device_memory(net, workers, self.weights, self.precision)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        return draw_energies_on(net, seed, draws, **self.options)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        own = {
            "weights": self.weights,
            "backend": self.backend,
            "precision": self.precision,
            "overlap_method": self.overlap_method(net).name,
            "batch": json.dumps(self.batch.describe()),
            "loss": self.loss,
        }
        terms = {name: value for name, value in values.items() if name not in CONTROLS}
        estimates = energy_estimates(terms, self._adjusted(net, values))
        return measured_dataset(net, estimates, own | inputs_described(self.inputs) | dict(attrs))

    def _adjusted(self, net: Net, values: Pieces) -> Pieces:
        """The terms less what their controls tell of them, where there are controls."""
        return adjusted_terms(values, cast(Sequential, net), self.inputs) if self.controls else {}

    def machine(self) -> dict[str, str]:
        return device_described(self.backend)
