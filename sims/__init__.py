"""Simulations, one folder each: `python -m sims.NAME --help`."""

from importlib import import_module
from pathlib import Path
from typing import Any

NAMES = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__main__.py"))


def simulation(name: str) -> Any:
    """The `Command` behind `python -m sims.NAME`: an `Experiment`, but for those that serve or gather others."""
    return import_module(f"sims.{name}.__main__").COMMAND
