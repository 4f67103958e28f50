"""The largest curvature of a loss on a batch at initialisation, by Lanczos iterations on the passes' own products.

J the derivative of the outputs with respect to all weights, H that of the loss's slope with respect to the outputs:
J^T H J is the Gauss-Newton matrix of the loss, the Hessian less what the outputs' own curvature adds. Its eigenvalues
but 0 are those of J J^T H, which acts on changes of the outputs: H takes a change to errors, the backward pass takes
errors to gradients of the weights, and the tangent takes a step along these to the change of the outputs that it makes.

Under an optimizer that divides every gradient by a number p of its own the matrix is p^(-1/2) J^T H J p^(-1/2), and the
step goes along gradients over p. Steps on a parabola are stable below

    rate < limit / lambda_max        limit 2 (1 + beta) under momentum beta, 2 (1 + beta_1) / (1 - beta_1) under AdamW

(Cohen et al. 2021, appendix B; Cohen et al. 2022, section 2). AdamW's p = sqrt(v) + epsilon is taken at
initialisation: v is the mean over mini-batches of the squared gradient, to which its running mean would tend there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from numpy.random import Generator
from scipy.linalg import eigh_tridiagonal

from meanfield.common.estimates import DrawStatistic, Estimate, Means, quantiles, summarise
from meanfield.common.seeds import stream
from meanfield.common.validation import (
    Array,
    fingerprint,
    inputs_described,
    not_negative,
    require_array,
    require_choice,
    require_count,
)
from meanfield.nets.inputs import require_allowed, require_classes
from meanfield.nets.layered import INPUT_LAYOUT
from meanfield.nets.maps import Weight
from meanfield.nets.net import Chain, Net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import IN_USE, Hybrid
from meanfield.optimizers.elementwise import SGD, AdamW
from meanfield.optimizers.first_steps import FirstStep
from meanfield.optimizers.linear_algebra import dense
from meanfield.quantities.registry import SHARES, measured_dataset
from meanfield.simulation.arrays import BACKENDS, NUMPY, PRECISIONS, Arrays, arrays_of
from meanfield.simulation.cost import passes_bytes, step_operations, weight_bytes
from meanfield.simulation.draws import repeated_inputs
from meanfield.simulation.maps.base import Use, WeightedOperation
from meanfield.simulation.measures.base import DEVICE_SPEED, Cost, Measure, Pieces
from meanfield.simulation.passes import Forward, backward, forward, gradient_changes, tangent
from meanfield.simulation.step_moves import ROUNDING as ROUNDING_ERRORS
from meanfield.simulation.step_moves import StepMoves
from meanfield.simulation.training.data import Data, checked_data, drawn_weights, given_data
from meanfield.simulation.training.gradients import loss_gradients
from meanfield.simulation.training.losses import LOSSES, Loss
from meanfield.simulation.weights import Dense, given_weights, grouped

# An eigenvalue is known once its residual is below this share of it. Its error is then far smaller: of 576 nets that
# were to be trained, a residual of 1e-5 left 3e-10 of the eigenvalue, one of 1e-4 left 3e-8.
TOLERANCE = {"float64": 1e-6, "float32": 1e-4}
# Products with J J^T H at most, and how many usually do.
MOST_PRODUCTS, USUAL_PRODUCTS = 300, 30
# Vectors whose curvature is below this share of the largest are rounding.
ROUNDING = 1e-13
# Optimizers of which the limit is known, by name.
WITH_STABLE_RATE = ("sgd", "sgd_momentum", "adamw")


@dataclass(frozen=True, kw_only=True)
class Sharpness(Measure):
    """Largest eigenvalue of the Gauss-Newton matrix J^T H J of a loss on a given batch, and 2 over it, draw by draw.

    Args:
        inputs: the batch, (samples, channels, *grid).
        loss: "cross_entropy" or "squared", whose second derivatives H do not depend on the targets.
        optimizer: one of `WITH_STABLE_RATE`, `SGD` or `AdamW`, which says what gradients are divided by, and the limit.
        targets, batch_size, epsilon: of AdamW, whose second moments are those of gradients of batches of so many
            samples (default: of all) that follow each other; the last samples, fewer than a batch, are left out of all.
        precision: of weights and passes, "float64" or "float32", of which draw i is the same net, rounded; draws that
            single precision loses are made in double. AdamW's second moments need double.
        backend: where the passes run, "numpy" or "cupy"; on either, draw i is the same net.

    Source: docs/theory.md section 21.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    remedy: ClassVar[str] = "width, channels, grid, depth, samples or workers"

    inputs: Any
    loss: str
    optimizer: str | Optimizer | Hybrid = "sgd"
    targets: Any = None
    batch_size: int | None = None
    epsilon: float = 0.0
    precision: str = "float64"
    backend: str = "numpy"

    def settled(self, net: Net) -> Self:
        require_choice("loss", self.loss, LOSSES)
        require_choice("precision", self.precision, PRECISIONS)
        require_choice("backend", self.backend, BACKENDS)
        require_classes(self.loss, net.output_shape[1])
        shape = (len(self.inputs), net.first_channels, *net.grid)
        batch = require_array("inputs", self.inputs, shape, INPUT_LAYOUT)
        require_allowed(net, batch)
        settled = replace(self, inputs=batch, epsilon=not_negative("epsilon", self.epsilon))
        if not settled.divides:
            given = {"batch_size": self.batch_size, "epsilon": self.epsilon}
            if unused := " and ".join(f"{name} {value!r}" for name, value in given.items() if value):
                raise ValueError(
                    f"{unused} is that of AdamW's second moments, and optimizer is {self.optimizer!r}; leave it out"
                )
            return replace(settled, targets=None)
        if self.targets is None:
            raise ValueError("second moments are those of gradients, which need targets; give them")
        if self.precision != "float64":
            raise ValueError(
                f"precision is {self.precision!r}, and second moments lie too far apart for it; take 'float64'"
            )
        checked_data(net, batch, self.targets, LOSSES[self.loss])
        size = len(batch) if self.batch_size is None else self.batch_size
        require_count("batch_size", size, maximum=len(batch), why="samples of a batch, of those there are")
        whole = len(batch) // size * size
        return replace(settled, inputs=batch[:whole], targets=np.asarray(self.targets)[:whole], batch_size=size)

    @property
    def method(self) -> SGD | AdamW:
        """The optimizer, or ValueError where none of its limit is known."""
        known = isinstance(self.optimizer, str) and self.optimizer in WITH_STABLE_RATE
        method = IN_USE[str(self.optimizer)] if known else self.optimizer
        if not isinstance(method, SGD | AdamW):
            raise ValueError(
                f"optimizer is {self.optimizer!r}, of which no limit of stable rates is known; give one of "
                f"{', '.join(map(repr, WITH_STABLE_RATE))}, or SGD or AdamW of meanfield.optimizers"
            )
        return method

    @property
    def divides(self) -> bool:
        """Whether gradients are divided by the roots of their second moments."""
        return isinstance(self.method, AdamW)

    @property
    def limit(self) -> float:
        """lambda_max times the largest stable rate."""
        method = self.method
        if isinstance(method, AdamW):
            return stable_limit(method.beta1, averages=True)
        return stable_limit(method.momentum, averages=False)

    def cost(self, net: Net) -> Cost:
        samples = len(self.inputs)
        # Of double precision, in which all weights are drawn, and passes made where single precision loses them.
        held = weight_bytes(net) + passes_bytes(net, samples, 1, "float64")
        if self.divides:  # moments, gradients, and gradients over moments
            held += 3 * weight_bytes(net)
        operations = USUAL_PRODUCTS * step_operations(net, samples)
        return Cost(operations if self.backend == "numpy" else operations / DEVICE_SPEED, 2 * held, 1)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """sharpness and its residual, the bound on its error, each (draws,)."""
        sharpness, residual = np.array([self._curvature(net, seed, draw) for draw in draws]).T
        return {"sharpness": sharpness, "residual": residual}

    def _curvature(self, net: Net, seed: int, draw: int) -> tuple[float, float]:
        """The largest curvature of one draw, in double precision where single precision loses it."""
        for precision in dict.fromkeys((self.precision, "float64")):
            arrays, start = arrays_of(self.backend, precision), stream(seed, "curvature", draw)
            weights = drawn_weights(net, seed, range(draw, draw + 1), arrays)
            largest, residual = self._largest(net, weights, start, arrays)
            if 0 < largest < np.inf:
                break
        return _finite(largest), residual

    def of_weights(self, net: Net, weights: Mapping[str, Array], start: Generator) -> tuple[float, float]:
        """lambda_max of one net of weights (1, out, in taps), and the bound on its error, in double precision.

        ``start`` draws the first vector.

        Raises:
            OverflowError: it leaves the range of floats.
        """
        arrays = arrays_of(self.backend, "float64")
        largest, residual = self._largest(
            net, {name: arrays.moved(matrix) for name, matrix in weights.items()}, start, arrays
        )
        return _finite(largest), residual

    def _largest(self, net: Net, weights: Mapping[str, Array], start: Generator, arrays: Arrays) -> tuple[float, float]:
        """The same by passes in the precision of the arrays; nan where it leaves their range."""
        with np.errstate(all="ignore"):  # what is lost is not finite in the end
            batch = repeated_inputs(Chain.of(net, inputs=len(self.inputs)), self.inputs, 1)
            state = _passed(net, weights, arrays.moved(batch), arrays)
            if not self.divides:
                return _lanczos(state, LOSSES[self.loss], start, partial(_moved_by_gradients, state))
            over = self._over_moments(net, weights, arrays)
            return _lanczos(state, LOSSES[self.loss], start, partial(_moved_over, state, over))

    def _over_moments(self, net: Net, weights: Mapping[str, Array], arrays: Arrays) -> dict[str, Any]:
        """1 / p of all weights by name, (1, out, in taps); without epsilon 0 where there is no gradient."""
        loss, xp, size = LOSSES[self.loss], arrays.xp, self.batch_size
        assert size is not None  # as of every settled measure
        data, squares = given_data(net, self.inputs, self.targets, loss, arrays), dict[str, Any]()
        starts = range(0, data.samples, size)
        for first in starts:
            batch: Data = data.part(slice(first, first + size))
            state = _passed(net, weights, batch.inputs, arrays)
            for name, gradient in loss_gradients(state, loss, batch.targets).items():
                squares[name] = squares.get(name, 0.0) + dense(gradient.slope) ** 2
        roots = {name: xp.sqrt(total / len(starts)) for name, total in squares.items()}
        if self.epsilon:
            return {name: 1 / (root + self.epsilon) for name, root in roots.items()}
        # Elements below so many rounding errors of the largest are 0, and no step moves their weights.
        least = ROUNDING_ERRORS * np.finfo(arrays.precision).eps * max(float(root.max()) for root in roots.values())
        return {name: xp.where(root > least, 1 / root, 0.0) for name, root in roots.items()}

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        sharpness = values["sharpness"]
        warn_unless_known(sharpness, values["residual"], self.precision)
        rates = self.rate_at(sharpness)
        with np.errstate(invalid="ignore"):  # infinite rates, of nets without curvature, have no error
            estimates: dict[str, Estimate | Means | DrawStatistic] = {
                "sharpness": summarise(sharpness[:, None]),
                "stable_rate": summarise(rates[:, None]),
                "stable_rate_quantile": quantiles(rates, np.array(SHARES)),
            }
        how = {name: getattr(self, name) for name in ("loss", "precision", "backend")}
        return self.labelled(measured_dataset(net, estimates, how | self.described | dict(attrs)))

    def labelled(self, dataset: xr.Dataset) -> xr.Dataset:
        """With the symbol of this limit, and the scaling where it is known."""
        for name in ("sharpness", "stable_rate", "stable_rate_quantile"):
            if name in dataset:
                said = dataset[name].attrs
                said["symbol"] = said["symbol"].replace("2 / lambda_max", f"{self.limit:.3g} / lambda_max")
                if self.divides:
                    said["scaling"] = "not known in units of second moments"
        return dataset

    @property
    def described(self) -> dict[str, Any]:
        """What the curvature is that of, as attributes."""
        name = self.optimizer if isinstance(self.optimizer, str) else repr(self.optimizer)
        described = {"optimizer": name, **inputs_described(self.inputs)}
        if not self.divides:
            return described
        return described | {
            "batch_size": self.batch_size,
            "epsilon": self.epsilon,
            "targets": fingerprint(self.targets),
        }

    def rate_at(self, sharpness: Any) -> Any:
        """The limit over lambda, infinite where there is no curvature."""
        with np.errstate(divide="ignore"):
            return self.limit / np.asarray(sharpness, dtype=float)


def stable_limit(beta: float, *, averages: bool) -> float:
    """lambda_max times the largest stable rate on a parabola, with momentum beta of gradients summed or averaged."""
    return 2 * (1 + beta) / (1 - beta if averages else 1)


def warn_unless_known(values: Array, residuals: Array, precision: str = "float64") -> None:
    """Warn where Lanczos iterations have ended before their tolerance."""
    tolerance = TOLERANCE[precision]
    loose = residuals > tolerance * values
    if loose.any():
        worst = float((residuals / values)[loose].max())
        warnings.warn(
            f"the largest curvature of {int(loose.sum())} of {len(values)} nets is known to a share of {worst:.2g} "
            f"after {MOST_PRODUCTS} products, not to {tolerance:g}: the largest eigenvalues lie close together",
            RuntimeWarning,
            stacklevel=3,
        )


def _finite(largest: float) -> float:
    if not np.isfinite(largest):
        raise OverflowError("the curvature of a net leaves the range of floats; take a smaller width, depth or inputs")
    return largest


def _passed(net: Net, weights: Mapping[str, Array], inputs: Any, arrays: Arrays) -> Forward:
    """The pass of one net on inputs (1, channels, samples, sites); its readout is one more unit, and moves, too."""
    whole = Chain.of(net, units=net.all_units, readout_unit=None, inputs=inputs.shape[2])
    return forward(whole, given_weights(whole, weights, arrays), inputs, arrays)


# The change of the outputs (1, M, B, T) when weights step along what errors there make of them.
OutputChange = Callable[[Any], Any]


def _moved_by_gradients(state: Forward, errors: Any) -> Any:
    *_, moved = gradient_changes(state, errors)
    return moved


def _moved_over(state: Forward, over: Mapping[str, Any], errors: Any) -> Any:
    """Along gradients times ``over`` of their weights."""
    *_, moved = tangent(state, _MovesOver(state, errors, over), len(state.net.units), 1)
    return moved


class _MovesOver(StepMoves):
    """Weights moved by +1 times the gradient of one error column, element by element ``over`` p."""

    def __init__(self, state: Forward, errors: Any, over: Mapping[str, Any]) -> None:
        below = backward(state, errors, len(state.net.units))
        super().__init__(state, below, FirstStep(), 1, state.net.role_of)
        self._over = over

    def _moved_weight(self, own: WeightedOperation, weight: Weight, uses: list[Use]) -> list[Any]:
        whole = dense(self._gradient(own, uses, [use.by_column[:, :, 0] for use in uses])) * self._over[weight.name]
        change: Any = grouped(weight, lambda _, rows: Dense(whole[:, rows]), self._state.arrays.xp.concatenate)
        return [own.moved_by(use, change) for use in uses]


def _lanczos(state: Forward, loss: Loss, start: Generator, change_of: OutputChange) -> tuple[float, float]:
    """Largest eigenvalue of J J^T H, or J p^(-1) J^T H, symmetric in the product <u, v> = u . H v, and its residual.

    Every vector is made orthogonal to all before it, twice, so that none of them comes back by rounding.
    """
    arrays, output = state.arrays, state.arrays.fetched(state.output)

    def curved(change: Array) -> Array:
        return np.asarray(loss.curvature_times(output, change.reshape(output.shape), NUMPY)).ravel()

    vector: Array = start.standard_normal(output.size)
    image = curved(vector)
    basis: list[Array] = []
    images: list[Array] = []
    diagonal, off_diagonal = [], []
    largest = residual = 0.0
    for _ in range(min(MOST_PRODUCTS, vector.size)):
        size = sqrt(max(float(vector @ image), 0.0))
        if basis:
            off_diagonal.append(size)
        if size <= ROUNDING * max(largest, np.finfo(float).tiny):
            return largest, 0.0
        basis.append(vector / size)
        images.append(image / size)
        vector = arrays.fetched(change_of(arrays.moved(images[-1].reshape(output.shape)))).ravel()
        diagonal.append(images[-1] @ vector)
        if not np.isfinite(diagonal[-1]):
            return float("nan"), float("nan")
        for _ in range(2):
            vector = vector - np.stack(basis, axis=1) @ (np.stack(images) @ vector)
        image = curved(vector)
        values, vectors = eigh_tridiagonal(diagonal, off_diagonal)
        largest = float(values[-1])
        residual = sqrt(max(float(vector @ image), 0.0)) * abs(float(vectors[-1, -1]))
        if residual <= TOLERANCE[arrays.precision] * largest:
            break
    return largest, residual
