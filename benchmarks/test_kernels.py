"""The compiled kernels of the simulation: random numbers, lazily revealed matrices, stencils."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.limits import BLOCK, memory, products, random_numbers, random_words
from benchmarks.race import Race, Sizes
from meanfield.common.seeds import stream, streams_of_draws
from meanfield.nets.lattice import neighbours, reversed_neighbours
from meanfield.simulation.kernels.gaussians import NormalSource, fill, reveal
from meanfield.simulation.kernels.stencils import convolve, gather, gather_transpose, sum_over_shifts, weight_gradient

GENERATOR = stream(0, "benchmark", 0)
STATES = NormalSource(streams_of_draws(0, "benchmark", range(16))).states
DRAWS = len(STATES)

# What a query to a lazily revealed matrix meets: known columns of its own and of the other side, and new ones.
QUERIES = {"forward": (0, 0, 1), "backward": (0, 1, 2), "tangent": (1, 2, 2)}


FILLS: dict[str, tuple[str, Callable[[np.ndarray], object]]] = {
    "normals": ("meanfield", lambda out: fill(STATES[0], out, 1.0)),
    "normals, as NumPy makes them": ("NumPy", lambda out: GENERATOR.standard_normal(out=out)),
    "words, as NumPy hands them out": ("NumPy", lambda out: GENERATOR.bit_generator.random_raw(out.size)),
}


@pytest.mark.parametrize("what", FILLS)
def test_normals(race: Race, what: str) -> None:
    by, made = FILLS[what]
    out = np.empty(BLOCK)
    size = f"{out.size:,} at once"
    named = {"group": "Kernels of the simulation", "what": what, "size": size, "by": by}
    race(lambda: made(out), [random_words(out.size)], amount=out.size, unit="numbers", **named)


@pytest.mark.parametrize("query", QUERIES)
def test_reveal(race: Race, sizes: Sizes, query: str) -> None:
    known, other, new = QUERIES[query]
    size = sizes("width", 1024, 256)
    rng = np.random.default_rng(0)

    def vectors(count: int) -> np.ndarray:
        return rng.normal(size=(DRAWS, count, size))

    basis, images, theirs = vectors(known + new), vectors(known + new), np.empty((DRAWS, other, size))
    for own in (basis, theirs):
        for d in range(DRAWS):
            own[d] = np.linalg.qr(rng.normal(size=(size, own.shape[1])))[0].T
    seen = (known, other, theirs, vectors(other))
    answers, queries = np.empty((DRAWS, new, size)), vectors(new)
    # Read: queries, known rows of either side with their images. Written: directions, images, answers.
    moved = 8.0 * DRAWS * size * (new + 2 * (known + other) + 3 * new)
    race(
        lambda: reveal(queries, basis, images, *seen, STATES, size**-0.5, answers),
        [random_numbers(DRAWS * new * size), memory(moved, moved)],
        group="Kernels of the simulation",
        what=f"lazily revealed matrix, {query} query",
        size=f"n = {size}, {new} column{'s'[: new - 1]}, {DRAWS} draws",
        amount=moved,
        unit="B",
    )


def _moves(name: str, channels: int, grid: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[Any, float]:
    """One of the loops over stencils, and the bytes that it reads and writes."""
    rng, sites = np.random.default_rng(0), int(np.prod(grid))
    table = neighbours(grid, kernel, "circular")
    values, back = rng.normal(size=(1, channels, 1, sites)), reversed_neighbours(grid, kernel, "circular")
    if name == "sum over shifts of a Gram matrix":
        gram = rng.normal(size=(1, sites, sites))
        return lambda: sum_over_shifts(gram, table, 1), 2.0 * gram.nbytes
    patches = gather(values, table)
    if name == "gather patches":
        return lambda: gather(values, table), float(values.nbytes + patches.nbytes)
    return lambda: gather_transpose(patches, back, 1), float(values.nbytes + patches.nbytes)


@pytest.mark.parametrize("name", ["gather patches", "transposed gather", "sum over shifts of a Gram matrix"])
def test_patches(race: Race, sizes: Sizes, name: str) -> None:
    side = sizes("side", 32, 8)
    channels, grid, kernel = sizes("channels", 128, 8), (side, side), (3, 3)
    work, moved = _moves(name, channels, grid, kernel)
    size = f"{side} x {side} sites, 3 x 3 taps" + (f", {channels} channels" if "gather" in name else "")
    named = {"group": "Kernels of the simulation", "what": name, "size": size}
    race(work, [memory(moved, moved)], amount=moved, unit="B", **named)


# What a convolution without patches does, of values (S, R, n, D) and weights (n k, n, D).
CONVOLUTIONS: dict[str, Callable[..., object]] = {
    "rectified and convolved": lambda w, x, u, table: convolve(w, x, table, rectified=True),
    "convolved back and gated": lambda w, x, u, table: convolve(w, u, table, gate=x),
    "gradient of the weights": lambda w, x, u, table: weight_gradient(u, x, table, rectified=True),
}


@pytest.mark.parametrize("what", CONVOLUTIONS)
@pytest.mark.parametrize(("channels", "draws", "samples"), [(32, 1, 32), (8, 8, 16)])
def test_convolution(race: Race, what: str, channels: int, draws: int, samples: int) -> None:
    rng, table = np.random.default_rng(0), neighbours((14, 14), (3, 3), "circular")
    taps, sites = table.shape
    weights = rng.normal(size=(channels * taps, channels, draws)).astype("float32")
    values, errors = rng.normal(size=(2, sites, samples, channels, draws)).astype("float32")
    operations = 2.0 * draws * taps * channels**2 * samples * sites
    beside = f", {draws} nets side by side" if draws > 1 else ""
    race(
        lambda: CONVOLUTIONS[what](weights, values, errors, table),
        [products(operations, "float32")],
        group="Kernels of the simulation",
        what=f"{what}, float32",
        size=f"{channels} channels, 14 x 14 sites, 3 x 3 taps, {samples} samples{beside}",
        amount=operations,
        unit="FLOP",
    )
