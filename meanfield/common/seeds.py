"""Random streams keyed by their purpose and draw, never by the order in which they are used."""

from zlib import crc32

from numpy import uint64
from numpy.random import SFC64, Generator, SeedSequence

from meanfield.common.validation import require_count


def stream(seed: int, purpose: str, draw: int) -> Generator:
    """The generator of one draw and one purpose, which depends on nothing else that is drawn."""
    return Generator(SFC64(SeedSequence(seed, spawn_key=(crc32(purpose.encode()), draw))))


def stream_key(seed: int, purpose: str, first: int) -> int:
    """64 bits to seed a generator other than NumPy's, keyed as `stream` is; purposes differ from those of `stream`."""
    sequence = SeedSequence(seed, spawn_key=(crc32(purpose.encode()), first))
    return int(sequence.generate_state(1, uint64)[0])


def derived_seed(seed: int, label: str) -> int:
    """A seed for one point of a sweep, so that points of different labels draw independently; ``seed`` is checked."""
    words = SeedSequence(checked_seed(seed), spawn_key=(crc32(label.encode()),)).generate_state(2)
    return int(words[0]) << 31 | int(words[1]) >> 1


def checked_seed(seed: int) -> int:
    """``seed`` as a non-negative int, or TypeError / ValueError."""
    return require_count("seed", seed, minimum=0, why="a seed is a non-negative whole number")
