"""Simulations: `python -m sims.NAME --help`. A study is a module of its own, or a folder where it is long."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from meanfield.signals import end_when_interrupted

# While Python looks for the module of `python -m sims.NAME`, its first argument is "-m": what loads here is a command.
if sys.argv[:1] == ["-m"]:
    end_when_interrupted()

_FOLDER = Path(__file__).parent
_HOMES = {path.stem: path for path in _FOLDER.glob("*.py") if not path.stem.startswith("_")}
_HOMES |= {path.parent.name: path for path in _FOLDER.glob("*/__main__.py")}
NAMES = sorted(_HOMES)


def simulation(name: str) -> Any:
    """The command behind `python -m sims.NAME`: a `Study`, or a `Service` to others.

    It is ``STUDY``, or ``COMMAND``, of the module `sims.NAME`, or of `sims.NAME.__main__` where that is a folder.
    """
    home = import_module(f"sims.{name}.__main__" if _HOMES[name].name == "__main__.py" else f"sims.{name}")
    return home.STUDY if hasattr(home, "STUDY") else home.COMMAND


def listed(name: str) -> str:
    """What a command asks, in a line: ``LISTED = "..."`` of its module, which is read, as it loads too much."""
    words = re.search(r'^LISTED = "(.*)"$', _HOMES[name].read_text(encoding="utf-8"), re.MULTILINE)
    return words[1] if words else ""
