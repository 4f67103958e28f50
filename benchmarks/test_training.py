"""Steps of optimizers on nets of blocks, the factorisations that they are made of, and the curvature of a loss."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks.counting import counted
from benchmarks.limits import memory, products, reading
from benchmarks.nets import described
from benchmarks.race import Race, Sizes
from meanfield.common.seeds import stream
from meanfield.nets.layered import ConvNet
from meanfield.optimizers import FIRST_STEPS, linear_algebra
from meanfield.optimizers.linear_algebra import Factored, newton_schulz, polar_factor
from meanfield.simulation.maps.weighted import own_update_operations
from meanfield.simulation.measures.blocks import TrainedStreams, copied, tabled
from meanfield.simulation.training import sharpness
from meanfield.simulation.training.sharpness import Sharpness
from sims.common.blocks import block_net, hyperparameters

STEPS, FACTORS, CURVATURE = "Steps of training", "Factorisations of an optimizer", "Curvature of a loss"

# Newton-Schulz iterations of Muon, and the products of small squares in each.
ITERATIONS, SQUARES = 5, 3


@pytest.mark.parametrize("optimizer", FIRST_STEPS)
def test_first_step(race: Race, sizes: Sizes, optimizer: str) -> None:
    width, depth = sizes("training_width", 512, 16), 4
    given = hyperparameters(optimizer, "many", width, depth)
    measure = TrainedStreams(optimizer=optimizer, hyperparameters=given, momentum=False, steps=1)
    start = measure.begun(block_net(given, width, depth), 0, range(1))
    weights = sum(matrix.size for matrix in start.weights.values())

    def step() -> None:
        tabled(start.net, copied(start.weights), start.data, optimizer, given, momentum=False).step()

    # Every weight is copied and moved, which reads and writes it twice, and read on the way forward and back.
    race(
        step,
        [memory(4.0 * 8 * weights, 2.0 * 8 * weights), reading(2.0 * 8 * weights, 8.0 * weights)],
        group=STEPS,
        what=f"first step, {optimizer}",
        size=f"n = {width}, L = {depth}, k = 2, {start.net.inputs} samples",
        amount=weights,
        unit="weights",
    )


def _dense_polar(matrix: np.ndarray) -> np.ndarray:
    u, _, v = np.linalg.svd(matrix)
    return np.asarray(u @ v)


POLARS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "polar factor": ("meanfield", polar_factor),
    "Newton-Schulz": ("meanfield", lambda factored: newton_schulz(factored, ITERATIONS)),
    "polar factor of the whole matrix": ("NumPy", lambda factored: _dense_polar(factored.dense())),
}


@pytest.mark.parametrize("what", POLARS)
def test_polar_factor(race: Race, sizes: Sizes, what: str) -> None:
    by, factorise = POLARS[what]
    size, rank = sizes("width", 1024, 32), sizes("rank", 64, 4)
    rng = np.random.default_rng(0)
    gradient = Factored(*rng.normal(size=(2, size, rank)))
    # Both sides orthogonalised with their bases formed, and the small factors multiplied back.
    operations = 2 * 4.0 * size * rank**2 + 2 * 2.0 * size * rank**2
    if what == "Newton-Schulz":
        operations += ITERATIONS * SQUARES * 2.0 * rank**3 - 2.0 * size * rank**2
    race(
        lambda: factorise(gradient),
        [products(operations)],
        group=FACTORS,
        what=what,
        size=f"{size} x {size}, rank {rank}",
        amount=1,
        unit="matrices",
        by=by,
    )


NORMS: dict[str, tuple[str, Callable[[np.ndarray], object]]] = {
    "spectral norm": ("meanfield", linear_algebra.spectral_norm),
    "spectral norm by all singular values": ("NumPy", lambda matrix: np.linalg.norm(matrix, 2)),
}


def _visits(matrix: np.ndarray) -> int:
    """How often the library's spectral norm multiplies the matrix, or its transpose, by a vector."""
    operator, calls = linear_algebra.LinearOperator, 0

    def counted(shape: Any, matvec: Callable[[np.ndarray], np.ndarray], dtype: type) -> Any:
        def product(x: np.ndarray) -> np.ndarray:
            nonlocal calls
            calls += 1
            return matvec(x)

        return operator(shape, matvec=product, dtype=dtype)

    with patch.object(linear_algebra, "LinearOperator", counted):
        linear_algebra.spectral_norm(matrix)
    return 2 * calls


@pytest.mark.parametrize("what", NORMS)
def test_spectral_norm(race: Race, sizes: Sizes, what: str) -> None:
    by, norm = NORMS[what]
    size = sizes("width", 1024, 256)
    matrix = np.random.default_rng(0).normal(size=(size, size))
    visits = _visits(matrix)
    moved = 8.0 * size**2 * visits
    named = {"group": FACTORS, "what": what, "size": f"{size} x {size}, {visits} products with a vector"}
    race(lambda: norm(matrix), [reading(moved, 8.0 * size**2)], amount=1, unit="matrices", by=by, **named)


def test_largest_curvature(race: Race, sizes: Sizes) -> None:
    """One net's, on a batch: every product with J J^T H goes back and along, and moves all weights."""
    depth, channels, samples = sizes("depth", 6, 2), sizes("curvature_channels", 32, 8), sizes("samples", 128, 8)
    net = ConvNet(depth=depth, channels=channels, grid=(7, 7), kernel=(3, 3), head="fan_in", inputs=samples)
    measure = Sharpness(inputs=stream(0, "benchmark data", 0).standard_normal(net.input_shape), loss="cross_entropy")
    made: list[int] = []
    changes = sharpness.gradient_changes

    def draw() -> None:
        measure.draw(net, 0, range(1))

    with patch.object(sharpness, "gradient_changes", lambda *given: made.append(1) or changes(*given)):
        operations = counted(draw).operations
    operations += len(made) * depth * min(own_update_operations(net.places, channels, net.taps, channels))
    race(
        draw,
        [products(operations)],
        group=CURVATURE,
        what=f"largest eigenvalue, {len(made)} products",
        size=f"{described(net)}, {samples} samples",
        amount=1,
        unit="draws",
    )
