"""From a dataset to a picture file: drawn in a style, with a caption that says how to make it again."""

import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import xarray as xr
from matplotlib import rc_context
from matplotlib.figure import Figure

from figures.style import chosen_style, styled
from meanfield.common import write_whole

Draw = Callable[[xr.Dataset], Figure]

# Dates and versions that formats would add; without them equal datasets give equal files.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None},
}
# Where an SVG names its parts, and where it uses them.
NAMES = re.compile(rb'(\bid="|href="#|url\(#)')
# Characters of a caption line per inch of the figure, and what it looks like.
DENSITY = 19
LINE = 0.13  # inches
CAPTION: dict[str, Any] = {"fontsize": 6.5, "color": "#555555", "va": "top"}


def save(draw: Draw, dataset: xr.Dataset, path: Path, style: str = "light") -> None:
    """Write the figure of a dataset, its caption below, whole; the path's ending says which format.

    Raises:
        ValueError: a style that does not exist.
    """
    picture = rendered(draw, dataset, path.suffix[1:], style)
    write_whole(path, lambda unfinished: unfinished.write_bytes(picture))


def rendered(draw: Draw, dataset: xr.Dataset, kind: str = "png", style: str = "light") -> bytes:
    """The file that `save` writes, of a kind of `METADATA`."""
    return pictures(draw, dataset, [kind], style)[kind]


def pictures(draw: Draw, dataset: xr.Dataset, kinds: Sequence[str], style: str = "light") -> dict[str, bytes]:
    """The files of several kinds, from a figure that is drawn and laid out once."""
    with chosen_style(style), styled():
        figure = draw(dataset)
        # No file is laid out anew, which would draw everything twice, and over the caption.
        with rc_context({"figure.constrained_layout.use": False}):
            _add_caption(figure, caption(dataset))
            return {kind: _file(figure, kind) for kind in kinds}


def _file(figure: Figure, kind: str) -> bytes:
    with io.BytesIO() as file:
        figure.savefig(file, format=kind, metadata=METADATA[kind])
        return _with_own_names(file.getvalue()) if kind == "svg" else file.getvalue()


def _with_own_names(svg: bytes) -> bytes:
    """Names of its parts that no other picture has, so that several stand in one page: those of others begin alike."""
    own = f"m{hashlib.sha256(svg).hexdigest()[:10]}-".encode()
    return NAMES.sub(rb"\g<1>" + own, svg)


def _add_caption(figure: Figure, words: str) -> None:
    """On a strip that is added below, once the layout stands: everything keeps its size and moves up by the strip."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    # None, not "none": a mere placeholder would make savefig draw everything twice.
    figure.set_layout_engine(None)
    lines = fill(words, int(DENSITY * figure.get_figwidth()))
    strip = LINE * (lines.count("\n") + 1.5)
    height = figure.get_figheight() + strip
    share = strip / height
    figure.set_figheight(height)
    for axes in figure.axes:
        left, bottom, width, tall = axes.get_position().bounds
        axes.set_position((left, share + bottom * (1 - share), width, tall * (1 - share)))
    for text in figure.texts:
        text.set_y(share + text.get_position()[1] * (1 - share))
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0.0, share, 1.0, 1.0 - share))
    figure.text(0.01, share - 0.3 * LINE / height, lines, **CAPTION)


def caption(dataset: xr.Dataset) -> str:
    """The command that made the numbers, its seed and draws where it draws, and the version of the code."""
    attrs = dataset.attrs
    drawn = [f"{name} {attrs[name]}" for name in ("draws", "seed") if name in attrs]
    versions = json.loads(attrs["provenance"])["versions"] if "provenance" in attrs else {}
    version = [f"meanfield {versions['meanfield']}"] if versions else []
    return "; ".join([attrs.get("command", "made by hand"), *drawn, *version])
