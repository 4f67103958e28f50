"""What the command line says of nets and laws: a family with fields, a number, or a function in a file of one's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from meanfield.common import require_choice
from meanfield.nets import (
    MLP,
    BlockNet,
    ConvNet,
    DenseNet,
    ResidualConvNet,
    ResidualMLP,
    StagedConvNet,
    StagedResidualConvNet,
    TiedLoop,
    Transformer,
)

LAYERED = (MLP, ConvNet, ResidualMLP, ResidualConvNet, DenseNet, StagedConvNet, StagedResidualConvNet)
FAMILIES: dict[str, Any] = {family.__name__: family for family in (*LAYERED, Transformer, TiedLoop, BlockNet)}
# What values of a field are, in words.
KINDS = {
    NoneType: "none",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    tuple: "numbers as in 8x8",
    str: "a word",
}


def is_in_file(text: str) -> bool:
    """Whether this names something in a file, FILE.py:NAME."""
    return text.rpartition(":")[0].endswith(".py")


def net_of_size(net: str, given: Sequence[str], along: str) -> Callable[[Any], Any]:
    """The function of a size that makes the net: of a family, whose field ``along`` is the size, or of a file.

    Raises:
        TypeError, ValueError, FileNotFoundError: an unknown family or field, values that do not read as the field's,
            a field that is missing, or what `from_file` refuses.
    """
    if is_in_file(net):
        return from_file(net, "--net")
    require_choice("--net", net, [*FAMILIES, "FILE.py:make"] if net not in FAMILIES else FAMILIES)
    family = FAMILIES[net]
    kinds = field_kinds(family)
    _require_field(net, "--along", along, kinds)
    values = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"--set {word} is no NAME=VALUE; give fields of {net} such as width=512")
        _require_field(net, "--set", name, kinds)
        values[name] = _read(name, value, kinds[name])
    if along in values:
        raise ValueError(
            f"{along} is both set and the size that --sizes gives; leave it out of --set, or change --along"
        )
    required = [field.name for field in fields(family) if field.default is field.default_factory is MISSING]
    if missing := [name for name in required if name not in (*values, along)]:
        raise ValueError(
            f"{net} needs {', '.join(missing)}; give --set {' '.join(f'{name}=VALUE' for name in missing)}"
        )
    return partial(_made, family, values, along)


def _made(family: Any, values: Mapping[str, Any], along: str, size: Any) -> Any:
    return family(**values, **{along: size})


def field_kinds(family: Any) -> dict[str, tuple[Any, ...]]:
    """What every field of a family may hold, by its annotation."""
    hints = get_type_hints(family)
    return {field.name: tuple(_kinds(hints[field.name])) for field in fields(family)}


def _kinds(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is tuple:
        yield tuple
    elif parts := get_args(hint):
        for part in parts:
            yield from _kinds(part)
    else:
        yield hint


def _require_field(net: str, option: str, name: str, kinds: Mapping[str, Any]) -> None:
    if name not in kinds:
        raise ValueError(f"{option} names {name!r}, which {net} does not have; its fields are {', '.join(kinds)}")


def _read(name: str, text: str, kinds: Sequence[Any]) -> Any:
    """The value of a field, by the first of its kinds that the text reads as."""
    for kind in (kind for kind in KINDS if kind in kinds):
        try:
            return _as(kind, text)
        except ValueError:
            continue
    allowed = ", or ".join(KINDS[kind] for kind in KINDS if kind in kinds)
    raise ValueError(f"--set {name}={text} does not read as {allowed}, which {name} takes")


def _as(kind: Any, text: str) -> Any:
    """The value that a text has as this kind; ValueError where it has none."""
    if kind is tuple:
        return tuple(map(number, text.replace(",", "x").split("x"))) if text else ()
    if kind in (bool, NoneType):
        words: dict[str, Any] = {"none": None} if kind is NoneType else {"true": True, "false": False}
        if text.lower() not in words:
            raise ValueError(text)
        return words[text.lower()]
    return kind(text)


def number(text: str) -> int | float:
    """A whole number as an int, any other as a float."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def law(option: str, text: str | None) -> Any:
    """A claimed law: none, a number, or a function of the size in a file."""
    if text is None:
        return None
    if is_in_file(text):
        return from_file(text, option)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} is {text!r}; give an exponent such as -0.5, or FILE.py:law") from None


def from_file(text: str, option: str) -> Callable[[Any], Any]:
    """The function of this name in a file, FILE.py:NAME, loaded as the module that the file's name says.

    So the processes that draw find the classes of its nets: they import the module by that name, from the same folder.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file that raises, without that name, or whose own name is that of another module.
        TypeError: what is no function.
    """
    file, _, name = text.rpartition(":")
    path = Path(file).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{option} {text} names no file; give FILE.py:NAME of one that is there")
    folder, known = str(path.parent), sys.modules.get(path.stem)
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that no file of the folder stands in for a module of another name
    try:
        module = known or import_module(path.stem)
    except (Exception, SystemExit) as error:  # whatever a user's file raises, sys.exit too
        raise ValueError(f"{option} {text}: the file raises {type(error).__name__}: {error}") from error
    if Path(getattr(module, "__file__", None) or "").resolve() != path:
        raise ValueError(f"{option} {text}: another module is called {path.stem!r}; give the file another name")
    if not hasattr(module, name):
        own = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        raise ValueError(f"{option} {text}: {path.name} has no {name!r}; it has {', '.join(own) or 'no functions'}")
    function = getattr(module, name)
    if not callable(function):
        raise TypeError(f"{option} {text} is {function!r}; give a function of the size")
    return function
