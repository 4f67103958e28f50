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
_MODULES = {path.stem: "" for path in _FOLDER.glob("*.py") if not path.stem.startswith("_")}
_FOLDERS = [path.parent for path in _FOLDER.glob("*/__main__.py")]
_HOMES = _MODULES | {path.name: ".study" if (path / "study.py").exists() else ".__main__" for path in _FOLDERS}
NAMES = sorted(_HOMES)


def simulation(name: str) -> Any:
    """The command behind `python -m sims.NAME`: a `Study`, or a `Service` to others.

    A study is ``STUDY`` of the module `sims.NAME`, or of `sims.NAME.study`; a service is ``COMMAND`` of
    `sims.NAME.__main__`.
    """
    home = import_module(f"sims.{name}{_HOMES[name]}")
    return home.COMMAND if _HOMES[name] == ".__main__" else home.STUDY


def listed(name: str) -> str:
    """What a command asks, in a line: ``LISTED = "..."`` of its module, which is read, as it loads too much."""
    path = _FOLDER.joinpath(*f"{name}{_HOMES[name]}".split(".")).with_suffix(".py")
    words = re.search(r'^LISTED = "(.*)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
    return words[1] if words else ""
