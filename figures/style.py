"""One look for all figures: colour-blind-safe colours, quiet axes, fixed sizes; used as a context."""

from __future__ import annotations

from contextlib import AbstractContextManager

import matplotlib

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


def styled() -> AbstractContextManager[None]:
    """The context in which figures are drawn."""
    return matplotlib.rc_context(_STYLE)  # type: ignore[arg-type]
