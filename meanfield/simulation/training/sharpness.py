"""The largest curvature of a loss on a batch at initialisation, by Lanczos iterations on the passes' own products.

J the derivative of the outputs with respect to all weights, H that of the loss's slope with respect to the outputs:
J^T H J is the Gauss-Newton matrix of the loss, the Hessian less what the outputs' own curvature adds. Its eigenvalues
but 0 are those of J J^T H, which acts on changes of the outputs: H takes a change to errors, the backward pass takes
errors to gradients of the weights, and the tangent takes a step along these to the change of the outputs that it makes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from numpy.random import Generator
from scipy.linalg import eigh_tridiagonal

from meanfield.common.estimates import DrawStatistic, Estimate, Means, quantiles, summarise
from meanfield.common.seeds import stream
from meanfield.common.validation import Array, inputs_described, require_array, require_choice
from meanfield.nets.inputs import require_allowed, require_classes
from meanfield.nets.layered import INPUT_LAYOUT
from meanfield.nets.net import Chain, Net
from meanfield.quantities.registry import SHARES, measured_dataset
from meanfield.simulation.arrays import BACKENDS, NUMPY, PRECISIONS, Arrays, arrays_of
from meanfield.simulation.cost import passes_bytes, step_operations, weight_bytes
from meanfield.simulation.draws import repeated_inputs
from meanfield.simulation.measures.base import DEVICE_SPEED, Cost, Measure, Pieces
from meanfield.simulation.passes import Forward, forward, gradient_changes
from meanfield.simulation.training.data import drawn_weights
from meanfield.simulation.training.losses import LOSSES, Loss
from meanfield.simulation.weights import given_weights

# An eigenvalue is known once its residual is below this share of it. Its error is then far smaller: of 576 nets that
# were to be trained, a residual of 1e-5 left 3e-10 of the eigenvalue, one of 1e-4 left 3e-8.
TOLERANCE = {"float64": 1e-6, "float32": 1e-4}
# Products with J J^T H at most, and how many usually do.
MOST_PRODUCTS, USUAL_PRODUCTS = 300, 30
# Vectors whose curvature is below this share of the largest are rounding.
ROUNDING = 1e-13


@dataclass(frozen=True, kw_only=True)
class Sharpness(Measure):
    """Largest eigenvalue of the Gauss-Newton matrix J^T H J of a loss on a given batch, and 2 over it, draw by draw.

    Args:
        inputs: the batch, (samples, channels, *grid).
        loss: "cross_entropy" or "squared", whose second derivatives H do not depend on the targets.
        precision: of weights and passes, "float64" or "float32", of which draw i is the same net, rounded; draws that
            single precision loses are made in double.
        backend: where the passes run, "numpy" or "cupy"; on either, draw i is the same net.

    Source: docs/theory.md section 21.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    remedy: ClassVar[str] = "width, channels, grid, depth, samples or workers"

    inputs: Any
    loss: str
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
        return replace(self, inputs=batch)

    def cost(self, net: Net) -> Cost:
        samples = len(self.inputs)
        # Of double precision, in which all weights are drawn, and passes made where single precision loses them.
        held = weight_bytes(net) + passes_bytes(net, samples, 1, "float64")
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
            largest, residual = _largest(net, weights, self.inputs, self.loss, start, arrays)
            if 0 < largest < np.inf:
                break
        return _finite(largest), residual

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        sharpness = values["sharpness"]
        warn_unless_known(sharpness, values["residual"], self.precision)
        rates = rate_at(sharpness)
        with np.errstate(invalid="ignore"):  # infinite rates, of nets without curvature, have no error
            estimates: dict[str, Estimate | Means | DrawStatistic] = {
                "sharpness": summarise(sharpness[:, None]),
                "stable_rate": summarise(rates[:, None]),
                "stable_rate_quantile": quantiles(rates, np.array(SHARES)),
            }
        return measured_dataset(
            net,
            estimates,
            {name: getattr(self, name) for name in ("loss", "precision", "backend")}
            | inputs_described(self.inputs)
            | dict(attrs),
        )


def rate_at(sharpness: Any) -> Any:
    """2 / lambda, infinite where there is no curvature."""
    with np.errstate(divide="ignore"):
        return 2 / np.asarray(sharpness, dtype=float)


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


def largest_curvature(
    net: Net, weights: Mapping[str, Array], batch: Array, loss: str, start: Generator, arrays: Arrays = NUMPY
) -> tuple[float, float]:
    """lambda_max of one net of weights (1, out, in taps), and the bound on its error; ``start`` draws a first vector.

    Raises:
        OverflowError: it leaves the range of floats.
    """
    own = {name: arrays.moved(matrix) for name, matrix in weights.items()}
    largest, residual = _largest(net, own, batch, loss, start, arrays)
    return _finite(largest), residual


def _finite(largest: float) -> float:
    if not np.isfinite(largest):
        raise OverflowError("the curvature of a net leaves the range of floats; take a smaller width, depth or inputs")
    return largest


def _largest(
    net: Net, weights: Mapping[str, Array], batch: Array, loss: str, start: Generator, arrays: Arrays
) -> tuple[float, float]:
    """The same by passes in the precision of the arrays; nan where it leaves their range."""
    # The readout as one more unit, so that the tangent reaches the outputs and moves the readout's weights, too.
    whole = Chain.of(net, units=net.all_units, readout_unit=None, inputs=len(batch))
    with np.errstate(all="ignore"):  # what is lost is not finite in the end
        inputs = arrays.moved(repeated_inputs(whole, batch, 1))
        state = forward(whole, given_weights(whole, weights, arrays), inputs, arrays)
        return _lanczos(state, LOSSES[loss], start)


def _lanczos(state: Forward, loss: Loss, start: Generator) -> tuple[float, float]:
    """Largest eigenvalue of J J^T H, which is symmetric in the product <u, v> = u . H v, and its residual.

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
        *_, moved = gradient_changes(state, arrays.moved(images[-1].reshape(output.shape)))
        vector = arrays.fetched(moved).ravel()
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
