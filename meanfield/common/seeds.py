"""Random streams keyed by their purpose and draw, never by the order in which they are used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from zlib import crc32

import numpy as np
from numpy import uint32, uint64
from numpy.random import SFC64, Generator, SeedSequence
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from meanfield.common.validation import require_count, require_instance

# NumPy's SeedSequence: words of its pool, first hash constants of what goes in and of what comes out, what each use
# multiplies them by, and the weights of two words that are mixed.
POOL, SHIFT = 4, uint32(16)
HASH_IN, HASH_OUT = (0x43B0D7E5, 0x931E8875), (0x8B51F9DD, 0x58F38DED)
OLD, NEW = uint32(0xCA01F9DD), uint32(0x4973F715)
# Words of 64 bits that begin SFC64.
FIRST_WORDS = 3
# Draws for which the words of their streams are found as fast one by one.
FEW_DRAWS = 3


@dataclass(frozen=True)
class Streams:
    """The random streams of several draws for one purpose, as the words that each begins with, (D, 3).

    Normals of all draws come in one call from `meanfield.simulation.kernels.gaussians`, all else from their generators.
    """

    words: NDArray[uint64]

    def __len__(self) -> int:
        return len(self.words)

    def generators(self) -> list[Generator]:
        """`stream` of each draw, anew."""
        return [Generator(SFC64(_Words(row))) for row in self.words]  # type: ignore[arg-type]  # any ISeedSequence


def stream(seed: int, purpose: str, draw: int) -> Generator:
    """The generator of one draw and one purpose, which depends on nothing else that is drawn."""
    return Generator(SFC64(_sequence(seed, purpose, draw)))


def streams_of_draws(seed: int, purpose: str, draws: Sequence[int]) -> Streams:
    """`stream` of each of these draws: the same words, 25 of them in a tenth of the time.

    The number of the draw goes into the pool last, so that all draws share what was mixed before it.
    """
    if len(draws) < FEW_DRAWS or max(draws) > np.iinfo(uint32).max:  # a larger number is two words
        alone = [_sequence(seed, purpose, draw).generate_state(FIRST_WORDS, uint64) for draw in draws]
        return Streams(np.reshape(alone, (len(draws), FIRST_WORDS)).astype(uint64))
    shared = _sequence(seed, purpose)
    used = POOL * (max(-(-int(seed).bit_length() // 32), POOL) + 1)  # by the words of seed and purpose, four each
    numbers = _hashed(np.array(draws, dtype=uint32)[:, None], _chain(*HASH_IN, used, POOL))
    pools = _folded(OLD * np.array(shared.pool) - NEW * numbers)
    halves = 2 * FIRST_WORDS
    words = _hashed(pools.take(np.arange(halves) % POOL, axis=1), _chain(*HASH_OUT, 0, halves))
    return Streams(words.astype("<u4").view("<u8").astype(uint64))


def _sequence(seed: int, purpose: str, *draw: int) -> SeedSequence:
    require_instance("purpose", purpose, str, "a word, which keys the stream")
    return SeedSequence(seed, spawn_key=(crc32(purpose.encode()), *draw))


def streams_by_purpose(seed: int, draws: Sequence[int]) -> Callable[[str], Streams]:
    """`streams_of_draws` of these draws for any purpose."""
    return partial(streams_of_draws, seed, draws=draws)


@cache
def _chain(first: int, factor: int, used: int, count: int) -> NDArray[uint32]:
    """So many hash constants and the next, after those that were used."""
    powers = (first * pow(factor, used + place, 1 << 32) % (1 << 32) for place in range(count + 1))
    return np.array(list(powers), dtype=uint32)


def _hashed(words: NDArray[uint32], chain: NDArray[uint32]) -> NDArray[uint32]:
    """Each column by a hash constant of its own."""
    return _folded((words ^ chain[:-1]) * chain[1:])


def _folded(words: NDArray[uint32]) -> NDArray[uint32]:
    return words ^ (words >> SHIFT)


class _Words(ISeedSequence):
    """Words that a bit generator begins with, made beforehand."""

    def __init__(self, words: NDArray[uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = uint32) -> NDArray[uint64]:
        return self._words


def stream_key(seed: int, purpose: str, first: int) -> int:
    """64 bits to seed a generator other than NumPy's, keyed as `stream` is; purposes differ from those of `stream`."""
    return int(_sequence(seed, purpose, first).generate_state(1, uint64)[0])


def derived_seed(seed: int, label: str) -> int:
    """A seed for one point of a sweep, so that points of different labels draw independently; ``seed`` is checked."""
    require_instance("label", label, str, "words, which key the seed")
    words = SeedSequence(checked_seed(seed), spawn_key=(crc32(label.encode()),)).generate_state(2)
    return int(words[0]) << 31 | int(words[1]) >> 1


def checked_seed(seed: int) -> int:
    """``seed`` as a non-negative int, or TypeError / ValueError."""
    return require_count("seed", seed, minimum=0, why="a seed is a non-negative whole number")
