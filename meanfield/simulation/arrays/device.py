"""What a device's library lacks: the loops of `kernels.patches`, and one stream of numbers for a group of draws."""

from typing import Any

import numpy as np

from meanfield.common.seeds import stream_key
from meanfield.nets.lattice import OUTSIDE, Table


class Stencils:
    """Values moved between sites by whole-array operations of one namespace, which keeps the tables it is asked for.

    The zero outside the grid is one more site behind the last, which the table's -1 reaches from the end.
    """

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._tables: dict[int, tuple[Table, Any]] = {}

    def gather(self, values: Any, table: Table) -> Any:
        """patches: (D, n, R, S) -> (D, n k, R S), row (i, Delta) being channel i shifted by Delta."""
        draws, channels, rows, sites = values.shape
        shifted = self._xp.take(self._bordered(values, table, 3), self._own(table), axis=3)
        return self._xp.moveaxis(shifted, 3, 2).reshape(draws, channels * len(table), rows * sites)

    def gather_transpose(self, patches: Any, reversed_table: Table, rows: int) -> Any:
        """patches^T: (D, n k, R S) -> (D, n, R, S), every site collecting what it gave to its neighbours."""
        taps, sites = reversed_table.shape
        draws = len(patches)
        by_tap = self._bordered(patches.reshape(draws, -1, taps, rows, sites), reversed_table, 4)
        givers = self._own(reversed_table)
        collected = self._xp.take(by_tap[:, :, 0], givers[0], axis=3)
        for tap in range(1, taps):
            collected += self._xp.take(by_tap[:, :, tap], givers[tap], axis=3)
        return collected

    def sum_over_shifts(self, gram: Any, table: Table, samples: int) -> Any:
        """X^T X from sigma^T sigma: sum_Delta A(p + Delta, p' + Delta) for (D, B S, B S) site pairs."""
        taps, sites = table.shape
        pairs = gram.reshape(len(gram), samples, sites, samples, sites)
        bordered = self._bordered(self._bordered(pairs, table, 2), table, 4)
        reached = self._own(table)
        total = self._xp.zeros_like(pairs)
        for tap in range(taps):
            total += self._xp.take(self._xp.take(bordered, reached[tap], axis=2), reached[tap], axis=4)
        return total.reshape(gram.shape)

    def _bordered(self, values: Any, table: Table, axis: int) -> Any:
        """With a site of zeros behind the last along an axis, if the table reaches outside."""
        if not np.any(table == OUTSIDE):
            return values
        shape = (*values.shape[:axis], 1, *values.shape[axis + 1 :])
        return self._xp.concatenate([values, self._xp.zeros(shape, dtype=values.dtype)], axis=axis)

    def _own(self, table: Table) -> Any:
        """The table in this namespace; the entry holds NumPy's too, so that its identity stays taken."""
        if id(table) not in self._tables:
            self._tables[id(table)] = (table, self._xp.asarray(table))
        return self._tables[id(table)][1]


class GroupNormals:
    """Standard normals of a group's draws, of one purpose and in one precision, by CuPy's `RandomState`.

    Its Philox generator takes a key of 64 bits, where those of CuPy's newer `Generator` are seeded with 32: among as
    many groups as long runs have, some would share their numbers.
    """

    def __init__(self, xp: Any, seed: int, purpose: str, draws: range, precision: str) -> None:
        key = stream_key(seed, f"{purpose} of {len(draws)} draws on a device", draws.start)
        self._generator = xp.random.RandomState(key, method=xp.cuda.curand.CURAND_RNG_PSEUDO_PHILOX4_32_10)
        self._precision = precision

    def drawn(self, shape: tuple[int, ...], deviation: float) -> Any:
        """The next numbers times ``deviation``, in an array of this shape that is written once."""
        return self._generator.normal(0.0, deviation, shape, dtype=self._precision)
