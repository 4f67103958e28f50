"""What the machine has, and the refusal of work that does not fit."""

from __future__ import annotations

import os

NUMBER_BYTES = 8


def require_bytes(
    needed: float, what: str, remedy: str, present: int | None = None, owner: str = "the machine"
) -> None:
    """Raise MemoryError, saying how much is needed and what to lower, if its owner has less memory in all."""
    if present is None:
        present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > present:
        raise MemoryError(f"{what} needs about {_gib(needed)}, {owner} has {_gib(present)}; lower {remedy}")


def _gib(count: float) -> str:
    return f"{count / 2**30:.3g} GiB"
