"""One gradient step of a net with given weights, in the layouts of deep-learning programs; and batch by batch.

Batches come out of a finite population of samples. At first order a batch moves z(x) by the mean over its samples b
of what each would do alone, Delta z_a = mean xi_a(b). Over batches of B samples, drawn independently out of P, then
(Zhang et al. 2026, eq. 25)

    E[Delta z_a Delta z_b] = E xi_a E xi_b + f Cov(xi_a, xi_b) / B,   f = 1,

and f = (P - B) / (P - 1) if they are drawn without replacement, as the batches of one epoch are. Here every batch
makes a gradient step of its own, so that the two sides are computed independently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.common.seeds import stream
from meanfield.common.validation import Array, not_negative, require_array, require_choice, require_flag, takes
from meanfield.nets.inputs import require_allowed, require_classes
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.net import Net
from meanfield.nets.recognised import require_net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.simulation.arrays import (
    BACKENDS,
    JUMP,
    LEAST,
    PRECISIONS,
    Arrays,
    arrays_of,
    overflow_silent,
    require_finite_layers,
    require_followed,
    require_range,
)
from meanfield.simulation.draws import repeated_inputs
from meanfield.simulation.passes import Forward, forward
from meanfield.simulation.step_moves import Kept, require_step, step_changes, warn_unless_kept, whole_net
from meanfield.simulation.training.data import laid_out_targets
from meanfield.simulation.training.losses import LOSSES
from meanfield.simulation.weights import checked_weights, given_weights


def one_step(
    net: Net,
    weights: Sequence[ArrayLike],
    inputs: ArrayLike,
    output_error: ArrayLike | None = None,
    *,
    targets: ArrayLike | None = None,
    loss: str = "squared",
    optimizer: str | Optimizer | Hybrid = "sgd",
    epsilon: float = 0.0,
    weight_decay: float = 0.0,
    outputs: bool = False,
    backend: str = "numpy",
    precision: str = "float64",
) -> list[Array]:
    """Change of every depth unit's value under the first step of an optimizer at rate 1, to first order in the rate.

    The loss is the mean over samples of |z_out - y|^2 / (2 M), M the output coordinates of a sample, or another one of
    given targets. The step is Delta W = -A(G) for every weight, G = dL/dW, of tied ones the sum over their uses, and A
    the direction that the optimizer makes of it from rest: A = G for gradient descent, sign(G) for "adamw" and "lion",
    sqrt(max(1, n_out / n_in)) times the polar factor of G for "muon". Delta z^(l) = sum over weights of dz^(l)/dW
    Delta W. In plain nets z^(l) are the pre-activations, in residual ones and loops the stream.

    Args:
        net: the net or loop.
        weights: in the order of `net.weights`, of shapes `net.weight_shapes`. Layered nets have
            W^(1) .. W^(L) and the readout, (channels out, channels in, *kernel), a pooled readout (outputs, channels);
            a tied loop has W alone, once.
        inputs: (samples, channels, *grid); for a loop h_0, of any number of samples.
        output_error: z_out - y, of shape `net.output_shape`: (samples, outputs, *grid), without the grid
            under a pooled readout. For a loop, which has no readout, dL/dh_L of any loss, of the shape of its inputs.
        targets: instead of an error, what the ``loss`` holds the outputs against, as `meanfield.train` takes it:
            classes, or values.
        loss: of the targets, "squared" or "cross_entropy".
        optimizer: "sgd", "adamw", "lion", "sophia", "muon", "muon_kimi", "shampoo", "soap" or "sso", or two of them as
            "muon-adamw", of which the first steps hidden matrices; without momentum and with exact polar factors.
            "sgd_momentum" makes the first step of "sgd". Or one of `meanfield.optimizers`, whose momentum acts as at
            its first step: `Muon(0.95, 5)` takes Newton and Schulz's iterations. Biases and gains are left to "adamw"
            by optimizers of matrices.
        epsilon: of optimizers that divide by the size of gradients, such as AdamW: G / (|G| + epsilon). One that leaves
            less than half of AdamW's signs gives a `meanfield.PremiseWarning` with its share; one that moves no weight,
            as under descent, is refused.
        weight_decay: lambda of A + lambda W; the changes are those of both steps, which add up.
        outputs: whether the change of the outputs, of shape `net.output_shape`, stands behind the others; the readout's
            own weights move, too. A net without a readout, as a loop, has its last value for an output.
        backend, precision: where and how precisely the passes run, as in `simulate`.

    Returns:
        Delta z^(1) .. Delta z^(L), each (samples, channels, *grid). Dimensionless; under gradient descent and O(1)
        errors the mean square grows as n l^3 / M^2 times the outputs at one site, under signs as n^2 l^3, under polar
        factors as l^3.

    Raises:
        TypeError, ValueError: what is no net, an array of the wrong shape or with values that are not finite real
            numbers, an error and targets or neither, an unknown name, an optimizer without a first step from here,
            an epsilon that it has not.
        ModuleNotFoundError, OSError: a backend without its library or its device.
        OverflowError: changes outside the range of floats.

    Source: Zhang et al. 2026, eq. 7; Wang et al. 2026, Theorem 2; Zheng et al. 2026, appendix C, for the optimizers.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> net, rng = mf.MLP(depth=2, width=4, outputs=3), np.random.default_rng(0)
        >>> weights = [rng.standard_normal(shape) for shape in net.weight_shapes]
        >>> inputs, error = rng.standard_normal(net.input_shape), rng.standard_normal(net.output_shape)
        >>> [change.shape for change in mf.one_step(net, weights, inputs, error)]
        [(1, 4), (1, 4)]
        >>> signs = mf.one_step(net, weights, inputs, targets=[2], loss="cross_entropy", optimizer="adamw")
        >>> len(signs), signs[0].shape
        (2, (1, 4))
    """
    require_net(net, units=True)
    require_flag("outputs", outputs)
    step, arrays = FirstStep(optimizer, not_negative("epsilon", epsilon)), _arrays(backend, precision)
    decay = not_negative("weight_decay", weight_decay)
    require_step(net, step)
    whole = outputs or not step.is_descent or decay > 0
    with overflow_silent():
        state = _checked_forward(net, weights, inputs, arrays, whole)
        slope = _slope(net, state, output_error, targets, loss)
        kept = Kept(step, 1)
        changes = step_changes(state, slope, step, net.role_of, loss, decay, kept=kept)
        grids = [*net.value_grids[1:], net.output_grid][: len(net.units) + outputs]
        images = [-_to_images(arrays.fetched(change), grid) for change, grid in zip(changes, grids, strict=False)]
    _require_range("a change", images, precision)
    warn_unless_kept(float(kept.shares[0]), step.epsilon, step.name)
    if precision == "float32" and not (sizes := _sizes(images)).all():
        # Zeros may be products of small numbers that have vanished: what they are in double precision tells.
        how = {"targets": targets, "loss": loss, "optimizer": optimizer, "epsilon": epsilon}
        in_double = one_step(net, weights, inputs, output_error, outputs=outputs, weight_decay=decay, **how)  # type: ignore[arg-type]
        require_range({"a change": np.where(sizes, sizes, _sizes(in_double))})
    return images


def _slope(net: Net, state: Forward, error: ArrayLike | None, targets: ArrayLike | None, loss: str) -> Array:
    """dL/dz_out (1, outputs, B, sites), of a given error or of targets."""
    if (error is None) == (targets is None):
        given = "both" if targets is not None else "neither"
        raise ValueError(f"{given} of output_error and targets are given; give one: the error z_out - y, or the y")
    arrays, output = state.arrays, state.output
    if targets is not None:
        require_choice("loss", loss, LOSSES)
        require_classes(loss, net.output_shape[1])
        return LOSSES[loss].slope(output, laid_out_targets(net, targets, output.shape[2], LOSSES[loss], arrays), arrays)
    if loss != "squared":
        raise ValueError(f"loss is {loss!r}; an output_error is that of the squared loss: give targets instead of it")
    samples, shape = output.shape[2], net.output_shape[1:]
    given_error = require_array("output_error", error, (samples, *shape), "(samples, outputs, *output grid)")
    _require_followed(arrays, "output_error", given_error)
    averaged = 1 if net.readout_unit is None else prod(shape) * samples
    return arrays.moved(_to_columns(given_error) / averaged)


def pre_activations(
    net: Net,
    weights: Sequence[ArrayLike],
    inputs: ArrayLike,
    *,
    backend: str = "numpy",
    precision: str = "float64",
) -> list[Array]:
    """z^(1) .. z^(L), each (samples, channels, *grid), and the outputs, of shape `net.output_shape`.

    For a loop, the stream h_1 .. h_L alone. Same arguments and errors as `one_step`.

    Source: Zhang et al. 2026, eqs. 2, 3; Wang et al. 2026, eq. 1.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> net, rng = mf.MLP(depth=2, width=4, outputs=3), np.random.default_rng(0)
        >>> weights = [rng.standard_normal(shape) for shape in net.weight_shapes]
        >>> [values.shape for values in mf.pre_activations(net, weights, rng.standard_normal(net.input_shape))]
        [(1, 4), (1, 4), (1, 3)]
    """
    require_net(net, units=True)
    arrays = _arrays(backend, precision)
    with overflow_silent():
        state = _checked_forward(net, weights, inputs, arrays)
    grids = zip(state.values[1:], net.value_grids[1:], strict=True)
    images = [_to_images(arrays.fetched(value), grid) for value, grid in grids]
    if net.readout_unit is not None:
        images.append(_to_images(arrays.fetched(state.output), net.output_shape[2:]))
    _require_range("a pre-activation", images, precision)
    return images


def _arrays(backend: str, precision: str) -> Arrays:
    require_choice("backend", backend, BACKENDS)
    require_choice("precision", precision, PRECISIONS)
    return arrays_of(backend, precision)


def _samples(net: Net, inputs: ArrayLike) -> int:
    """Samples of the net; a loop's spec names none, so that the inputs decide."""
    return net.inputs if net.readout_unit is not None else max(1, len(np.atleast_1d(inputs)))


def _checked_forward(
    net: Net, weights: Sequence[ArrayLike], inputs: ArrayLike, arrays: Arrays, whole: bool = False
) -> Forward:
    """The forward pass of a single draw, of given weights; of the ``whole`` net, with the readout as a unit."""
    given = checked_weights(net, weights)
    for index, array in enumerate(given.values()):
        _require_followed(arrays, f"weights[{index}]", array, JUMP)
    flat = {name: arrays.moved(array) for name, array in given.items()}
    matrices = given_weights(net, flat, arrays)
    shape = (_samples(net, inputs), *net.input_shape[1:])
    batch = require_array("inputs", inputs, shape, INPUT_LAYOUT)
    _require_followed(arrays, "inputs", batch)
    require_allowed(net, batch)
    moved = arrays.moved(repeated_inputs(net, batch, 1))
    return forward(whole_net(net) if whole else net, matrices, moved, arrays)


def _require_followed(arrays: Arrays, what: str, given: Array, least: float = LEAST) -> None:
    if arrays.precision == "float32":
        require_followed(what, float(np.abs(given).max()), least)


def _require_range(what: str, images: list[Array], precision: str) -> None:
    """Raise OverflowError unless the precision holds these arrays of every layer."""
    if precision == "float32":
        require_range({what: _sizes(images)})
    require_finite_layers(what, images)


def _sizes(images: list[Array]) -> Array:
    """The largest element of every layer, of one draw: (1, layers)."""
    return np.array([[np.abs(values).max() for values in images]])


def _to_columns(images: Array) -> Array:
    """(B, C, *grid) -> (1, C, B, S)."""
    return images.reshape(*images.shape[:2], -1).swapaxes(0, 1)[None]


def _to_images(columns: Array, grid: tuple[int, ...]) -> Array:
    """(1, C, B, S) -> (B, C, *grid)."""
    samples_first = columns[0].swapaxes(0, 1)
    return samples_first.reshape(*samples_first.shape[:2], *grid)


Samples = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True)
class Population:
    """One net of given weights, P samples with their errors z_out - y, and an observed input that is not trained on."""

    net: Sequential
    weights: list[Array]
    inputs: Array
    errors: Array
    observed: Array

    def change(self, batch: Samples) -> Array:
        """Delta z^(L) at the observed input under one step of rate 1 on these samples: (width,)."""
        samples, count = list(batch), len(batch)
        inputs = np.concatenate([self.inputs[samples], self.observed[None]])
        errors = np.concatenate([self.errors[samples], np.zeros((1, self.net.outputs))])
        # The observed input is a sample without error; the mean over samples counts it.
        *_, top = one_step(self.net.replace(inputs=count + 1), self.weights, inputs, errors)
        return np.asarray(top[-1] * (count + 1) / count)

    def second_moment(self, batches: Sequence[Samples]) -> Array:
        """Mean of Delta z_a Delta z_b over batches: (width, width)."""
        changes = np.stack([self.change(batch) for batch in batches])
        return changes.T @ changes / len(changes)

    def identity(self, samples: int, *, replacement: bool = True) -> tuple[Array, Array]:
        """E xi_a E xi_b, and f Cov(xi_a, xi_b) / B for batches of B ``samples``: both (width, width)."""
        alone = np.stack([self.change([sample]) for sample in range(len(self.inputs))])
        mean, count = alone.mean(axis=0), len(alone)
        spread = (alone - mean).T @ (alone - mean) / count
        factor = 1.0 if replacement else (count - samples) / (count - 1)
        return np.outer(mean, mean), factor * spread / samples


@takes(Sequential)
def drawn_population(net: Sequential, samples: int, seed: int) -> Population:
    """Weights, inputs and labels y ~ N(0, 1) by the laws of `simulate`, before normalisation of the inputs."""
    generator = stream(seed, "population", samples)
    shapes = zip(net.weight_shapes, net.weight_variances, strict=True)
    weights = [np.sqrt(variance) * generator.standard_normal(shape) for shape, variance in shapes]
    inputs = generator.standard_normal((samples + 1, *net.input_shape[1:]))
    labels = generator.standard_normal((samples, net.outputs))
    outputs = pre_activations(net.replace(inputs=samples), weights, inputs[:-1])[-1]
    return Population(net, weights, inputs[:-1], outputs - labels, inputs[-1])


def all_batches(population: int, samples: int, *, replacement: bool = True) -> list[tuple[int, ...]]:
    """Every batch of so many samples: P^B with replacement, in every order, or P over B without."""
    if replacement:
        return list(product(range(population), repeat=samples))
    return list(combinations(range(population), samples))


def random_batches(population: int, samples: int, count: int, seed: int) -> NDArray[np.int64]:
    """Batches drawn with replacement: (count, samples)."""
    return stream(seed, "batches", samples).integers(population, size=(count, samples))
