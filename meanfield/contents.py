"""Tables of contents: the names of a package, loaded on first use, as the stub beside its ``__init__`` lists them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def contents(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, in the order of its stub (``__init__.pyi``).

    A stub line ``from .home import NAME as NAME`` names a value of a module, or a module of a package. So each name
    stands once, for people, for type checkers and for Python; asking for help loads none of them.
    """
    lines = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
    imports = [line for line in lines if isinstance(line, ast.ImportFrom)]
    homes = {alias.name: f"{package}.{line.module}" for line in imports for alias in line.names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no name {name!r}; it has {', '.join(homes)}")
        home = import_module(homes[name])
        return getattr(home, name) if hasattr(home, name) else import_module(f"{homes[name]}.{name}")

    return load, lambda: list(homes), list(homes)
