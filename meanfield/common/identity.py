"""What tells values, specs and code apart: a text that is equal where they are, in every process and on every
machine.

Data count by their values, and objects by their class and their fields. Code of one's own counts by its bytecode and
by all that this refers to, and not by its docstrings; code of installed packages by its name and their version.
"""

import builtins
import dis
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from itertools import chain
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from meanfield.common.validation import fingerprint

# Parts of a value, by name, that count with its class and fields; most have none.
PartsOf = Callable[[Any], Mapping[str, Any]]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), PurePath, range)
_WRAPPED = {
    property: ("fget",),
    cached_property: ("func",),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    partial: ("func", "args", "keywords"),
    MethodType: ("__func__", "__self__"),
}
# Folders of packages that were installed.
INSTALLED = {"site-packages", "dist-packages"}
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class Identity:
    """Texts of values; a value that is met again is not gone through twice.

    Attributes:
        known: packages whose code is told apart otherwise, so that their functions and classes go by name.
        parts_of: more parts of a value, by name.
    """

    def __init__(self, known: Iterable[str] = (), parts_of: PartsOf = lambda value: {}) -> None:
        self._known, self._parts_of = frozenset(known), parts_of
        self._texts: dict[int, tuple[Any, str]] = {}  # with the values, so that ids stay their own
        self._open: list[int] = []

    def __call__(self, value: Any) -> str:
        """The text of any value: that of data spelled out, a digest of all else."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, _PLAIN):
            return repr(float(value) if isinstance(value, float) else value)
        if id(value) in self._texts:
            return self._texts[id(value)][1]
        if id(value) in self._open:
            return f"as {self._open.index(id(value))} around it"
        self._open.append(id(value))
        try:
            text = sha256("\n".join(map(str, self._parts(value))).encode()).hexdigest()
        finally:
            self._open.pop()
        self._texts[id(value)] = value, text
        return text

    def _parts(self, value: Any) -> Iterable[str]:
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return "array", fingerprint(value)
        if isinstance(value, Mapping):
            # In an order of their own: what holds itself reads otherwise from where else it is gone through first.
            return "mapping", *(f"{self(key)}: {self(value[key])}" for key in sorted(value, key=self))
        if isinstance(value, set | frozenset):
            return "set", *sorted(map(self, value))
        if isinstance(value, tuple | list | np.ndarray):
            return "sequence", *map(self, value)
        if type(value) in _WRAPPED:
            return type(value).__name__, *(self(getattr(value, name)) for name in _WRAPPED[type(value)])
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, type | FunctionType | BuiltinFunctionType | ModuleType | np.ufunc):
            return self._named(value)
        return self._object(value)

    def _named(self, value: Any) -> Iterable[str]:
        """A function, a class or a module."""
        name, package = _name(value), _package(value)
        if not self._is_own(value):
            # A function of a known package may hold one of one's own.
            told = [getattr(value, "__code__", None), *(_cells(value) if package in self._known else ())]
            return getattr(value, "__module__", None) or package, name, _version(package), *map(self, told)
        if isinstance(value, type):
            return "class", name, *(self(attribute) for of in value.__mro__ for attribute in self._attributes(of))
        return ("function", *self._function(value)) if isinstance(value, FunctionType) else ("name", name)

    def _is_own(self, value: Any) -> bool:
        """Whether it is code of one's own: not installed, or a class that extends one of a known package."""
        package = _package(value)
        if package == "builtins":  # so says what was made where no module has a name, too
            return isinstance(value, type | FunctionType) and vars(builtins).get(_name(value)) is not value
        extends = isinstance(value, type) and any(_package(base) in self._known for base in value.__mro__)
        return package not in self._known and (extends or not _is_installed(package))

    def _attributes(self, kind: type) -> Iterable[Any]:
        """What a class of one's own holds, but what Python notes about it; the names of others."""
        if not self._is_own(kind):
            return [f"{kind.__module__}.{kind.__qualname__}"]
        return sorted((name, value) for name, value in vars(kind).items() if not _is_note(name, value))

    def _function(self, function: FunctionType) -> Iterable[str]:
        """Bytecode, defaults, and what the names in it stand for."""
        code, names = function.__code__, set(_names(function.__code__))
        stands_for = {}
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            own = isinstance(value, ModuleType) and self._is_own(value)
            stands_for[name] = {each: vars(value)[each] for each in _attributes_read(code, value)} if own else value
        yield from map(self, (code, function.__defaults__, function.__kwdefaults__, stands_for, _cells(function)))

    def _code(self, code: CodeType) -> Iterable[str]:
        """Its steps, each with what it takes: constants by their values, jumps by their length.

        Docstrings are no steps, so that the text is the same under `python -OO`, which drops them. Assertions, which it
        drops, too, are.
        """
        for step in _steps(code):
            yield step.opname
            is_constant, is_jump = step.opcode in dis.hasconst, step.opcode in _JUMPS
            yield self(code.co_consts[step.arg or 0] if is_constant else step.arg if is_jump else step.argval)
        yield from map(self, (code.co_varnames, code.co_freevars))

    def _object(self, value: Any) -> Iterable[str]:
        if hasattr(value, "py_func"):  # a compiled function
            return "compiled", self(value.py_func), self(value.targetoptions)
        if isinstance(getattr(value, "_defn", None), FunctionType):  # one of Numba's that writes code
            return "intrinsic", self(value._defn)
        parts = dict(self._parts_of(value))
        if is_dataclass(value):
            parts |= {field.name: getattr(value, field.name) for field in fields(value)}
        elif self._is_own(type(value)):
            parts |= getattr(value, "__dict__", {})
        elif not parts:
            parts = {"pickled": _pickled(value)}
        return "object", self(type(value)), self(parts)


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", getattr(value, "__name__", "")))


def _package(value: Any) -> str:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(module or ("numpy" if isinstance(value, np.ufunc) else "builtins")).partition(".")[0]


@lru_cache
def _is_installed(package: str) -> bool:
    """Whether it came with Python or was installed, not written by who calls this."""
    if package in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and not INSTALLED.isdisjoint(PurePath(file).parts)


def _version(package: str) -> str:
    return str(getattr(sys.modules.get(package), "__version__", ""))


def _is_note(name: str, value: Any) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name == "_abc_impl" or (dunder and not isinstance(value, FunctionType | classmethod | staticmethod))


def _names(code: CodeType) -> Iterable[str]:
    """The global names that a code reads, and those within it."""
    own = (step.argval for step in dis.get_instructions(code) if step.opname in _LOADS)
    return chain(own, *(_names(const) for const in code.co_consts if isinstance(const, CodeType)))


def _steps(code: CodeType) -> Iterable[dis.Instruction]:
    """All but those that do nothing, as stands where a docstring was dropped, and that give a class its docstring."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "NOP"]
    stored = {place for place, step in enumerate(steps) if (step.opname, step.argval) == ("STORE_NAME", "__doc__")}
    return [step for place, step in enumerate(steps) if not stored & {place, place + 1}]


def _attributes_read(code: CodeType, module: ModuleType) -> set[str]:
    """The names of a module that a code may read: those that it takes of anything."""
    inner = (_attributes_read(const, module) for const in code.co_consts if isinstance(const, CodeType))
    return set(vars(module)).intersection(code.co_names).union(*inner)


def _cells(value: Any) -> list[Any]:
    """What a function holds of the functions around it, without names that these have not given yet."""
    contents = []
    for cell in getattr(value, "__closure__", None) or ():
        with suppress(ValueError):
            contents.append(cell.cell_contents)
    return contents


def _pickled(value: Any) -> str:
    """A digest of an object of another library, or its words where it cannot be pickled."""
    try:
        return sha256(pickle.dumps(value, protocol=4)).hexdigest()
    except Exception:  # whatever a library raises there
        return repr(value)
