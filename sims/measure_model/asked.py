"""What the command line says of a model: its sizes, its factory and loss by their names in Python, and its data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.common import require_choice, require_count, require_positive, stream
from meanfield.optimizers import FROM_REST
from meanfield.transfer import step_that_names
from sims.common.images import TEXT, read_array, text_windows

# A size of the model: keywords of its factory and their numbers.
ModelSize = Mapping[str, int | float]
BatchList = list[tuple[Any, Any]]
SampleArray = NDArray[Any]

# Samples of a batch, and characters of a window of text, where a number is not asked for.
BATCH, LENGTH = 64, 64
FILES = (".npz", ".nc")
# What a size without keywords is called.
WHOLE_MODEL = "the model"


def sizes_of(given: Sequence[str]) -> list[ModelSize]:
    """All combinations of the sizes that are given as NAME=NUMBER,NUMBER,..; one size without a keyword where none are.

    Raises:
        ValueError: what does not read so, a name or a number given twice, or a number that is not positive.
    """
    axes: dict[str, list[int | float]] = {}
    for word in given:
        name, equals, listed = word.partition("=")
        if not (equals and name.isidentifier()):
            raise ValueError(f"--sizes {word} is no NAME=NUMBER,NUMBER,..; give sizes such as depth=4,8,16")
        if name in axes:
            raise ValueError(f"--sizes gives {name} twice; give all its numbers at once, as {name}=4,8,16")
        axes[name] = [_number(f"--sizes {word}", text) for text in listed.split(",")]
        if len(set(axes[name])) < len(axes[name]):
            raise ValueError(f"--sizes {word} repeats a number; give each once")
    return [dict(zip(axes, numbers, strict=True)) for numbers in product(*axes.values())]


def _number(what: str, text: str) -> int | float:
    """A whole number as an int, any other as a float."""
    try:
        number = int(text)
    except ValueError:
        try:
            return require_positive(f"a number of {what}", float(text), why="it is a size")
        except ValueError:
            raise ValueError(f"{what} has {text!r}; give positive numbers, as in depth=4,8,16") from None
    return require_count(f"a number of {what}", number)


def label_of(size: ModelSize) -> str:
    """As reports and datasets call a size."""
    return ",".join(f"{name}={number}" for name, number in size.items()) or WHOLE_MODEL


def tuned_at(given: str | None, sizes: Sequence[ModelSize]) -> tuple[float, str] | None:
    """A tuned rate and the label of its size, given as RATE@depth=4; None where none is given.

    Raises:
        ValueError: what does not read so, a rate that is not positive, a size that is not one of those measured,
            or is the only one.
    """
    if given is None:
        return None
    text, at, where = given.partition("@")
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not (at and 0 < rate < float("inf")):
        raise ValueError(f"--carry is {given!r}; give the tuned learning rate and its size, such as 0.003@depth=4")
    if len(sizes) == 1:
        raise ValueError(f"--carry {given} is carried to other sizes, and there is one: give --sizes such as depth=4,8")
    wanted = set(where.split(","))
    fitting = [label for label in map(label_of, sizes) if wanted <= set(label.split(","))]
    if len(fitting) != 1:
        why = f"fits {len(fitting)} of the sizes" if fitting else "is none of the sizes"
        raise ValueError(f"--carry {given}: {where} {why} that are measured, {', '.join(map(label_of, sizes))}")
    return rate, fitting[0]


def groups_of(given: Sequence[str]) -> dict[str, list[str]]:
    """Patterns of names of parameters by label, given as NAME=PATTERN,PATTERN,..; those of one label add up."""
    groups: dict[str, list[str]] = {}
    for word in given:
        name, equals, patterns = word.partition("=")
        if not (name and equals and all(patterns.split(","))):
            raise ValueError(f"--groups {word} is no NAME=PATTERN,..; give groups such as gains=*.ln_?.weight")
        groups.setdefault(name, []).extend(patterns.split(","))
    return groups


def imported(option: str, text: str) -> Any:
    """What stands under a name in a module, package.module:name, as Python finds it, in the current folder too.

    Raises:
        ValueError: what does not read so, a module that cannot be imported, a name that it does not have.
    """
    module, _, name = text.partition(":")
    if module.endswith(".py"):
        as_module = ".".join(Path(module).with_suffix("").parts)
        raise ValueError(f"{option} is {text!r}; give the module as Python imports it, {as_module}:{name or 'name'}")
    if not (name and all(part.isidentifier() for part in [*module.split("."), *name.split(".")])):
        raise ValueError(f"{option} is {text!r}; give package.module:name, as Python imports it")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # last, so that no file of the folder stands in for a module of another name
    try:
        thing = import_module(module)
    except Exception as error:  # whatever a user's module raises
        raise ValueError(f"{option} {text}: importing {module} raises {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(thing, part):
            own = [each for each, value in vars(thing).items() if callable(value) and not each.startswith("_")]
            raise ValueError(f"{option} {text}: {module} has no {name!r}; it has {', '.join(own) or 'nothing to call'}")
        thing = getattr(thing, part)
    return thing


def imported_factory(text: str, size: ModelSize) -> Callable[..., Any]:
    """The function that makes the model, which takes the keywords of a size."""
    factory = imported("the factory", text)
    if not callable(factory):
        raise ValueError(f"the factory {text} is {factory!r}; give a function that makes the model, or its class")
    takes = signature(factory).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in takes.values()):
        return factory
    for name in size:
        if name not in takes:
            raise ValueError(f"{text} takes no {name!r}, which --sizes gives; it takes {', '.join(takes) or 'nothing'}")
    needed = [
        name
        for name, parameter in takes.items()
        if parameter.default is Parameter.empty and parameter.kind.value in (0, 1, 3)
    ]
    if missing := [name for name in needed if name not in size]:
        raise ValueError(f"{text} needs {', '.join(missing)}; give --sizes {missing[0]}=NUMBER, or a default")
    return factory


def imported_optimizer(text: str) -> Any:
    """A name of the library's, or what stands in a module: a class of optimizers, or a function that makes one.

    Of names it is the step that names rates: of Muon with AdamW the one in noise.
    """
    if ":" in text:
        return imported("--optimizer", text)
    if text not in FROM_REST:
        require_choice("--optimizer", text, [*FROM_REST, "package.module:name"])
    return step_that_names(text)


def batches_of(data: str, batch_size: int | None, length: int | None, draws: int, seed: int) -> BatchList:
    """At most so many batches as there are draws: of a file, of text, or of a loader as it gives them.

    Raises:
        ValueError: a file without inputs and targets, fewer samples than a batch takes, what is no loader; sizes that
            the source has no use for.
    """
    if length is not None and data != TEXT:
        raise ValueError(f"--length is of windows of text, and the data are {data}; leave it out")
    size = require_count("--batch-size", BATCH if batch_size is None else batch_size)
    if data == TEXT:
        return _cut(
            _text(require_count("--length", LENGTH if length is None else length), size * draws, seed), size, draws
        )
    if data.endswith(FILES):
        if not Path(data).is_file():
            raise ValueError(f"--data {data} is not there; give a file with inputs and labels or targets")
        arrays = _samples(data)
        if len(arrays[0]) < size:
            raise ValueError(f"{data} holds {len(arrays[0])} samples, and a batch takes {size}: give --batch-size")
        order = stream(seed, "training samples", 0).permutation(len(arrays[0]))[: size * draws]
        return _cut((arrays[0][order], arrays[1][order]), size, draws)
    if ":" not in data:
        raise ValueError(f"--data is {data!r}; give FILE.npz, FILE.nc, {TEXT}, or package.module:loader")
    if batch_size is not None:
        raise ValueError(f"the loader {data} has batches of its own size; leave --batch-size out")
    loader = imported("--data", data)
    try:
        return list(islice(_made(loader), draws))
    except Exception as error:  # whatever a user's loader raises
        said = "" if isinstance(error, NoLoader) else f"its batches raise {type(error).__name__}: "
        raise ValueError(f"--data {data}: {said}{error}") from error


def _cut(samples: tuple[SampleArray, SampleArray], size: int, most: int) -> BatchList:
    starts = range(0, len(samples[0]) - size + 1, size)[:most]
    return [(samples[0][start : start + size], samples[1][start : start + size]) for start in starts]


def _text(length: int, samples: int, seed: int) -> tuple[SampleArray, SampleArray]:
    """Windows of characters as numbers, and of each the characters that follow its characters."""
    windows, following = text_windows(length, samples, seed)
    return windows, np.column_stack([windows[:, 1:], following])


def _samples(file: str) -> tuple[SampleArray, SampleArray]:
    """Inputs and targets of a file: whole numbers as they are, for embeddings and classes, and all others as floats."""
    inputs = read_array(f"{file}::inputs")
    try:
        targets = read_array(f"{file}::labels")
    except ValueError:  # the file is readable, as it has inputs; where it has no targets either, this is said
        targets = read_array(f"{file}::targets")
    for name, values in (("inputs", inputs), ("targets", targets)):
        if values.dtype.kind not in "biuf" or values.size == 0 or not np.isfinite(values).all():
            raise ValueError(
                f"{name} in {file} are {values.size} values of type {values.dtype}; give finite real numbers"
            )
        if values.ndim == 0:
            raise ValueError(f"{name} in {file} are one number; give an array with a sample in each row")
    if inputs.shape[:1] != targets.shape[:1]:
        raise ValueError(f"{file} has {len(inputs)} inputs and targets of shape {targets.shape}; give one for each")
    return _typed(inputs), _typed(targets)


def _typed(values: SampleArray) -> SampleArray:
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)


class NoLoader(ValueError):
    """What is given for a loader is none."""


def _made(loader: Any) -> Iterable[Any]:
    """What a module has under this name, or what that makes where it is a function."""
    made = loader() if callable(loader) and not isinstance(loader, Iterable) else loader
    if not isinstance(made, Iterable):
        raise NoLoader(f"it gives {type(made).__name__}; give a loader of pairs (inputs, targets)")
    return made
