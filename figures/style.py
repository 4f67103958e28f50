"""One look for all figures: colour-blind-safe colours, quiet axes, fixed sizes; used as a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator, ScalarFormatter

from meanfield.validation import require_choice

# Okabe and Ito's palette, in the order: measured, mean field, papers' law, further series.
MEASURED = "#000000"
MEAN_FIELD = "#0072B2"
LAW = "#D55E00"
FURTHER = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9")

_STYLE = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.markersize": 4.0,
    "errorbar.capsize": 2.0,
    "svg.hashsalt": "meanfield",
}


# What a style changes of it: for screens, and for two-column pages.
STYLES: dict[str, dict[str, Any]] = {
    "light": {},
    "print": {"font.family": "serif", "axes.grid": False, "savefig.dpi": 300, "lines.linewidth": 1.0},
}

_chosen = ContextVar("style", default="light")


def styled() -> AbstractContextManager[None]:
    """The context in which figures are drawn."""
    return matplotlib.rc_context(_STYLE | STYLES[_chosen.get()])  # type: ignore[arg-type]


@contextmanager
def chosen_style(name: str) -> Iterator[None]:
    """Within, `styled` means this style; ValueError naming the choices if there is none of that name."""
    require_choice("style", name, STYLES)
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def layer_ticks(axes: Axes, last: int) -> None:
    """Whole layer numbers on a logarithmic axis from 1 to ``last``."""
    axes.set_xticks([int(tick) for tick in np.unique(np.geomspace(1, last, 6).round())])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
