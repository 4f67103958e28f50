"""The limits that work is compared with: how fast one core of this machine does one kind of thing, measured.

A `Demand` is the amount of a limit that some work cannot avoid: the numbers that it must draw, the bytes that it must
move, the operations of its matrix products. No program of the same parts takes less than its time at the measured
rate; where work demands several things, one after another, their times add. Time is the processor's, on one core,
which other programs that run at the same time lengthen little.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from time import process_time

import numpy as np

from meanfield.common.compiled import compiled
from meanfield.common.seeds import stream, streams_of_draws
from meanfield.simulation.kernels.gaussians import NormalSource, _next, fill
from meanfield.simulation.kernels.gram_process import CHI_SQUARES, NORMALS

# Seconds of the processor in this process.
clock = process_time

# A probe shorter than this is repeated: clocks and calls would be measured with it.
LEAST_SECONDS = 4e-3

# Side of the square matrices whose product is the rate of matrix products.
PRODUCT = 1024
# Random numbers made at once, which stay in the second cache.
BLOCK = 1 << 15
# Numbers of a probe of scalar arithmetic, and of a row of logarithmic sums.
SCALARS = 1 << 20
ROW = 4096


@dataclass(frozen=True)
class Limit:
    """One call of ``probe`` does ``amount`` of what is limited."""

    name: str
    probe: Callable[[], object]
    amount: float


@dataclass(frozen=True)
class Demand:
    """The amount of a limit that some work needs."""

    limit: Limit
    amount: float

    def seconds(self) -> float:
        """The time that it takes at the rate of this moment."""
        return seconds(self.limit.probe, LEAST_SECONDS) * self.amount / self.limit.amount


def seconds(work: Callable[[], object], least: float = 0.0) -> float:
    """The time of one call, from one or, where it is short, from as many as fill the least time."""
    start = clock()
    work()
    once = clock() - start
    if once >= least:
        return once
    calls = ceil(least / max(once, 1e-7))
    start = clock()
    for _ in range(calls):
        work()
    return (clock() - start) / calls


def demanded(limit: Callable[..., Limit]) -> Callable[..., Demand]:
    """Turn ``limit(*about)``, made once, into ``demand(amount, *about)``: so much of this limit."""
    made = lru_cache(maxsize=2)(limit)
    return lambda amount, *about: Demand(made(*about), amount)


@demanded
def random_numbers() -> Limit:
    """Normals, by the fastest way that the library has to make them."""
    (state,), block = NormalSource(streams_of_draws(0, "limit", [0])).states, np.empty(BLOCK)
    return Limit("random numbers", lambda: fill(state, block, 1.0), block.size)


@demanded
def random_numbers_by_numpy() -> Limit:
    """Normals, by the same generator as NumPy makes them."""
    generator, block = stream(0, "limit", 0), np.empty(BLOCK)
    return Limit("random numbers by NumPy", lambda: generator.standard_normal(out=block), block.size)


@demanded
def gram_variates(width: int) -> Limit:
    """The variates of layers of the Gram process at this width, as NumPy makes them with one call for many."""
    generator, layers = stream(0, "limit", 2), 4096
    halves = np.full((layers, CHI_SQUARES), width / 4)

    def make() -> None:
        generator.binomial(width, 0.5, size=layers)
        generator.standard_gamma(halves)
        generator.standard_normal((layers, NORMALS))

    return Limit("variates of the Gram process", make, layers)


@demanded
def random_words() -> Limit:
    """Words of 64 bits of the generator, compiled and not stored."""
    state = stream(0, "limit", 1).bit_generator.state["state"]["state"]
    return Limit("random words", lambda: _words(state, SCALARS), SCALARS)


@demanded
def products(precision: str = "float64") -> Limit:
    """Operations, two for every multiplication, of a large matrix product."""
    square = np.random.default_rng(0).normal(size=(PRODUCT, PRODUCT)).astype(precision)
    out = np.empty_like(square)
    name = "matrix products" if precision == "float64" else f"matrix products, {precision}"
    return Limit(name, lambda: np.matmul(square, square, out=out), 2.0 * PRODUCT**3)


@demanded
def memory(held: float) -> Limit:
    """Bytes read or written, half of them each, by copies between arrays that together hold this many bytes."""
    source, target = (np.ones(max(1, round(held / 16))) for _ in range(2))
    return Limit("memory copied", lambda: np.copyto(target, source), 16.0 * source.size)


@demanded
def reading(held: float) -> Limit:
    """Bytes read and none written, by sums of squares of an array that holds this many bytes."""
    values = np.ones(max(1, round(held / 8)))
    return Limit("memory read", lambda: np.dot(values, values), 8.0 * values.size)


@demanded
def chained() -> Limit:
    """Multiplications and additions, each waiting for the one before."""
    return Limit("chained multiply-adds", lambda: _chain(SCALARS), SCALARS)


@demanded
def logarithms() -> Limit:
    """Logarithms of one number after another."""
    values = np.random.default_rng(0).random(SCALARS // 8) + 0.5
    return Limit("logarithms", lambda: _sum_of_logs(values), values.size)


@demanded
def log_sums() -> Limit:
    """Sums log(exp a + exp b) over rows of numbers."""
    first, second = np.random.default_rng(0).normal(size=(2, ROW))
    out = np.empty(ROW)
    return Limit("log-sums", lambda: np.logaddexp(first, second, out=out), ROW)


@compiled()
def _words(state, count):  # type: ignore[no-untyped-def]
    a, b, c, counter = state
    seen = np.uint64(0)
    for _ in range(count):
        word, a, b, c, counter = _next(a, b, c, counter)
        seen ^= word
    return seen


@compiled()
def _chain(count):  # type: ignore[no-untyped-def]
    value = 1.0
    for step in range(count):
        value = value * 0.5 + step
    return value


@compiled()
def _sum_of_logs(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += np.log(value)
    return total
