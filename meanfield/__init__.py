"""How the learning rate of a deep network must shrink with depth, computed exactly.

The public names, in the order of the theory (`__init__.pyi`): what a net is, what one gradient step does to it, what
theory expects, and how the two compare. Names load on first use.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from meanfield.version import __version__

# A line ``from .home import NAME as NAME`` of the stub names a value of a module, or a module of a package. So each
# name stands once, for people, for type checkers and for Python.
_LINES = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
_HOMES = {
    alias.name: f"{__name__}.{line.module}"
    for line in _LINES
    if isinstance(line, ast.ImportFrom)
    for alias in line.names
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no name {name!r}; it has {', '.join(_HOMES)}")
    home = import_module(_HOMES[name])
    return getattr(home, name) if hasattr(home, name) else import_module(f"{_HOMES[name]}.{name}")


def __dir__() -> list[str]:
    return list(_HOMES)
