"""What a registry says of every quantity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One variable of a dataset: its public name, the papers' letter, its dims, meaning, scaling and source.

    ``unpredicted`` says why `predict` gives it at no level, and where its theory is; empty if it does.
    """

    name: str
    symbol: str
    dims: tuple[str, ...]
    definition: str
    scaling: str
    source: str
    unpredicted: str = ""

    @property
    def long_name(self) -> str:
        return self.name.replace("_", " ")
