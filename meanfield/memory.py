"""What draws need, what the machine has, and the refusal of work that does not fit."""

from __future__ import annotations

import os
from typing import Any

NUMBER_BYTES = 8


class Drawable:
    """What every architecture that `simulate` takes says of its draws beforehand."""

    def memory(self, *, weights: str = "auto", draws: int = 1) -> int:
        """Bytes that `simulate` will need at its peak in each process, beyond those of the program itself.

        A prediction from the sizes alone, of weights, pre-activations, errors and one layer's working arrays: for MLPs
        of width n and depth L it is 8 n^2 L with dense weights, O(n L) with lazy ones. It is within 20 % of what a
        process is seen to take where that is 10 MiB or more. Draws are carried in batches of a size chosen from it, so
        that it grows with ``draws`` up to one batch.

        Args:
            weights: "dense", "lazy" or "auto", as `simulate` takes it.
            draws: how many will be drawn, at least 1.

        Raises:
            TypeError, ValueError: an unknown kind of weights, a number of draws that is no count.

        Source: THEORY section 7 for lazy weights.
        """
        # Specs know nothing of how they are drawn, but for this word on their own behalf.
        from meanfield.simulation.footprint import peak_bytes

        spec: Any = self
        return peak_bytes(spec, weights, draws)


class _Machine:
    """How many processes, this one with them, do independent work on the memory of this machine."""

    sharing = 1


def share_machine(processes: int) -> None:
    """From now on grant what this process asks for no more than its share of the machine's memory."""
    _Machine.sharing = processes


def require_bytes(
    needed: float, what: str, remedy: str, present: int | None = None, owner: str = "the machine"
) -> None:
    """Raise MemoryError, saying how much is needed and what to lower, if its owner has less memory in all."""
    if present is None:
        present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _Machine.sharing
        owner = owner if _Machine.sharing == 1 else f"{owner}, for each of {_Machine.sharing} simulations,"
    if needed > present:
        raise MemoryError(f"{what} needs about {_gib(needed)}, {owner} has {_gib(present)}; lower {remedy}")


def _gib(count: float) -> str:
    return f"{count / 2**30:.3g} GiB"
