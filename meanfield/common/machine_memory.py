"""Refusing work that needs more memory than the machine has."""

import os

NUMBER_BYTES = 8


# Processes, this one included, that do independent work on the memory of this machine.
_sharing = 1


def share_machine(processes: int) -> None:
    """From now on grant this process no more than its share of the machine's memory."""
    global _sharing
    _sharing = processes


def require_bytes(
    needed: float, what: str, remedy: str, present: int | None = None, owner: str = "the machine"
) -> None:
    """Raise MemoryError, saying how much is needed and what to lower, if ``owner`` has less memory in all."""
    if present is None:
        present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _sharing
        owner = owner if _sharing == 1 else f"{owner}, for each of {_sharing} simulations,"
    if needed > present:
        raise MemoryError(f"{what} needs about {_gib(needed)}, {owner} has {_gib(present)}; lower {remedy}")


def _gib(count: float) -> str:
    return f"{count / 2**30:.3g} GiB"
