"""From a dataset to a picture file: drawn in a style, with a caption that says how to make it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.style import chosen_style, styled
from meanfield.files import write_whole

Draw = Callable[[xr.Dataset], Figure]

# Dates and versions that formats would add; without them equal datasets give equal files.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
# Characters of a caption line per inch of the figure, and what it looks like.
DENSITY = 19
CAPTION: dict[str, Any] = {"fontsize": 6.5, "color": "#555555", "va": "top"}


def save(draw: Draw, dataset: xr.Dataset, path: Path, style: str = "light") -> None:
    """Write the figure of a dataset, its caption below, whole; the path's ending says which format.

    Raises:
        ValueError: a style that does not exist.
    """
    with chosen_style(style), styled():
        figure = draw(dataset)
        words = fill(caption(dataset), int(DENSITY * figure.get_figwidth()))
        figure.text(0.01, -0.02, words, **CAPTION)
        metadata = METADATA[path.suffix[1:]]
        write_whole(path, lambda whole: figure.savefig(whole, metadata=metadata, bbox_inches="tight"))


def caption(dataset: xr.Dataset) -> str:
    """The command that made the numbers, its seed and draws where it draws, and the version of the code."""
    attrs = dataset.attrs
    drawn = [f"{name} {attrs[name]}" for name in ("draws", "seed") if name in attrs]
    versions = json.loads(attrs["provenance"])["versions"] if "provenance" in attrs else {}
    version = [f"meanfield {versions['meanfield']}"] if versions else []
    return "; ".join([attrs.get("command", "made by hand"), *drawn, *version])
