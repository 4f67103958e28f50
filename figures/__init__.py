"""Figures from saved datasets: one module per simulation, same stem, ``draw(dataset) -> Figure``."""

import sys
from pathlib import Path

from meanfield.signals import end_when_interrupted

# While Python looks for the module of `python -m figures.NAME`, its first argument is "-m": what loads is a command.
if sys.argv[:1] == ["-m"]:
    end_when_interrupted()

# Modules of this folder that draw nothing themselves, and figures of models that their users have.
_NOT_FIGURES = ("render", "style", "measure_model", "model_coordinates")


def figure_names() -> list[str]:
    """Every figure that `--make` can make; each has the name of the simulation whose dataset it draws."""
    stems = (path.stem for path in sorted(Path(__file__).parent.glob("*.py")))
    return [stem for stem in stems if not stem.startswith("_") and stem not in _NOT_FIGURES]
