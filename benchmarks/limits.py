"""What one core of this machine can do of one thing, measured: the limits that work is held against.

A `Demand` is how much of a limit some work cannot do without: the numbers that it must draw, the bytes that it must
move, the operations of its matrix products. Its time at the measured rate is a time that no program of the same parts
goes below, and where work demands several things, one after another, their times add. Time is the processor's, on one
core: other programs that run at the same time lengthen it far less than they lengthen the day.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from time import process_time

import numpy as np
from numba import njit

from meanfield.common.seeds import stream
from meanfield.simulation.kernels.gram_process import CHI_SQUARES, NORMALS
from meanfield.simulation.kernels.normals import _next, fill_normal
from meanfield.simulation.weights.matrices import NormalSource

# Seconds of the processor in this process.
clock = process_time

# A probe shorter than this is repeated: clocks and calls would be measured with it.
LEAST_SECONDS = 4e-3

# Side of the square matrices whose product is the rate of matrix products.
PRODUCT = 1024
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
    """How much of a limit one piece of work needs."""

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


def random_numbers(count: float) -> Demand:
    """So many normals, by the fastest way that the library has to make them."""
    return Demand(_random_numbers(), count)


def random_numbers_by_numpy(count: float) -> Demand:
    """So many normals, by the same generator as NumPy makes them."""
    return Demand(_random_numbers_by_numpy(), count)


def gram_variates(layers: float, width: int) -> Demand:
    """The variates of so many layers of the Gram process at this width, as NumPy makes them with one call for many."""
    return Demand(_gram_variates(width), layers)


def random_words(count: float) -> Demand:
    """So many words of 64 bits of the generator, compiled and not stored."""
    return Demand(_random_words(), count)


def products(operations: float, precision: str = "float64") -> Demand:
    """So many operations, two for every multiplication, of a large matrix product."""
    return Demand(_products(precision), operations)


def memory(moved: float, held: float) -> Demand:
    """So many bytes read or written, half of them each, by copies between arrays that together hold so many bytes."""
    return Demand(_copies(max(1, round(held / 16))), moved)


def reading(moved: float, held: float) -> Demand:
    """So many bytes read and none written, by sums of squares of an array that holds so many bytes."""
    return Demand(_sums(max(1, round(held / 8))), moved)


def chained(count: float) -> Demand:
    """So many multiplications and additions, each waiting for the one before."""
    return Demand(Limit("chained multiply-adds", lambda: _chain(SCALARS), SCALARS), count)


def logarithms(count: float) -> Demand:
    """So many logarithms of one number after another."""
    return Demand(_logarithms(), count)


def log_sums(count: float) -> Demand:
    """So many log(exp a + exp b) over rows of numbers."""
    return Demand(_log_sums(), count)


@lru_cache(maxsize=1)
def _random_numbers() -> Limit:
    generator, block = stream(0, "limit", 0), np.empty(NormalSource.BLOCK)
    return Limit("random numbers", lambda: fill_normal(generator, block, 1.0), block.size)


@lru_cache(maxsize=1)
def _random_numbers_by_numpy() -> Limit:
    generator, block = stream(0, "limit", 0), np.empty(NormalSource.BLOCK)
    return Limit("random numbers by NumPy", lambda: generator.standard_normal(out=block), block.size)


@lru_cache(maxsize=2)
def _gram_variates(width: int) -> Limit:
    generator, layers = stream(0, "limit", 2), 4096
    halves = np.full((layers, CHI_SQUARES), width / 4)

    def make() -> None:
        generator.binomial(width, 0.5, size=layers)
        generator.standard_gamma(halves)
        generator.standard_normal((layers, NORMALS))

    return Limit("variates of the Gram process", make, layers)


@lru_cache(maxsize=1)
def _random_words() -> Limit:
    state = stream(0, "limit", 1).bit_generator.state["state"]["state"]
    return Limit("random words", lambda: _words(state, SCALARS), SCALARS)


@lru_cache(maxsize=2)
def _products(precision: str) -> Limit:
    square = np.random.default_rng(0).normal(size=(PRODUCT, PRODUCT)).astype(precision)
    out = np.empty_like(square)
    name = "matrix products" if precision == "float64" else f"matrix products, {precision}"
    return Limit(name, lambda: np.matmul(square, square, out=out), 2.0 * PRODUCT**3)


@lru_cache(maxsize=2)
def _copies(size: int) -> Limit:
    source, target = np.ones(size), np.ones(size)
    return Limit("memory copied", lambda: np.copyto(target, source), 16.0 * size)


@lru_cache(maxsize=2)
def _sums(size: int) -> Limit:
    values = np.ones(size)
    return Limit("memory read", lambda: np.dot(values, values), 8.0 * size)


@lru_cache(maxsize=1)
def _logarithms() -> Limit:
    values = np.random.default_rng(0).random(SCALARS // 8) + 0.5
    return Limit("logarithms", lambda: _sum_of_logs(values), values.size)


@lru_cache(maxsize=1)
def _log_sums() -> Limit:
    first, second = np.random.default_rng(0).normal(size=(2, ROW))
    out = np.empty(ROW)
    return Limit("log-sums", lambda: np.logaddexp(first, second, out=out), ROW)


@njit(cache=True, nogil=True)
def _words(state, count):  # type: ignore[no-untyped-def]
    a, b, c, counter = state
    seen = np.uint64(0)
    for _ in range(count):
        word, a, b, c, counter = _next(a, b, c, counter)
        seen ^= word
    return seen


@njit(cache=True, nogil=True)
def _chain(count):  # type: ignore[no-untyped-def]
    value = 1.0
    for step in range(count):
        value = value * 0.5 + step
    return value


@njit(cache=True, nogil=True)
def _sum_of_logs(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += np.log(value)
    return total
