"""What draws need, what the machine has, and the refusal of work that does not fit."""

from __future__ import annotations

import os

NUMBER_BYTES = 8


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
