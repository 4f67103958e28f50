"""What stands beside measured numbers in every report: predictions by level, and warnings of heavy tails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.nets import Sequential

HEAVY_SHARE = 0.1


def predictions(net: Sequential, levels: Iterable[str], inputs: Any = None) -> list[xr.Dataset]:
    """One dataset per level, its variables renamed NAME_level."""
    import meanfield as mf

    found = [mf.predict(net, level=level, inputs=inputs) for level in levels]
    return [one.rename({name: f"{name}_{one.attrs['level']}" for name in one.data_vars}) for one in found]


def heavy_tail_notes(dataset: xr.Dataset, names: Iterable[str]) -> list[str]:
    """A line for every measured mean of which a single draw makes a large share."""
    shares = {name: float(dataset[f"{name}_largest_share"].max()) for name in names if name in dataset}
    return [
        f"Heavy tail: one draw makes {share:.0%} of a mean {name.replace('_', ' ')}; its error is a lower bound."
        for name, share in shares.items()
        if share > HEAVY_SHARE
    ]
