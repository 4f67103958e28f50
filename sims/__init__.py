"""Simulations, one folder each: `python -m sims.NAME --help`."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

NAMES = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__main__.py"))


def simulation(name: str) -> ModuleType:
    """The module behind `python -m sims.NAME`."""
    return import_module(f"sims.{name}.__main__")
