"""Random numbers of a device: one stream for a whole group of draws, which are always made together."""

from typing import Any

from meanfield.common.seeds import stream_key


class GroupNormals:
    """Standard normals of a group's draws, of one purpose and in one precision, by CuPy's `RandomState`.

    Its Philox generator takes a key of 64 bits, where those of CuPy's newer `Generator` are seeded with 32: among as
    many groups as long runs have, some would share their numbers.
    """

    def __init__(self, xp: Any, seed: int, purpose: str, draws: range, precision: str) -> None:
        key = stream_key(seed, f"{purpose} of {len(draws)} draws on a device", draws.start)
        self._generator = xp.random.RandomState(key, method=xp.cuda.curand.CURAND_RNG_PSEUDO_PHILOX4_32_10)
        self._precision = precision

    def standard_normal(self, shape: tuple[int, ...]) -> Any:
        """The next numbers, in an array of this shape."""
        return self._generator.standard_normal(shape, dtype=self._precision)
