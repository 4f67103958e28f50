"""A law of one's own: how a quantity of any net goes with its depth, or any other size, judged against a rival.

The net is a family with fields (--net ResidualMLP --set block_depth=2 scaling=0.75 width=300), whose field --along is
the size, or FILE.py:make, a function of the size that returns any net. The law is an exponent, or FILE.py:law, a
function of the size. Nets are drawn at every size and predicted where theory serves. The report says the exponent with
its error, whether it is one exponent at all, what theory says it tends to, and how far finite width moves it.

The step is that of gradient descent on random labels; with --optimizer the first one of that optimizer, and with --data
the first one of training on these data, of which every draw takes a mini-batch.

Without a net it asks whether eta* of a residual GELU net of K blocks, branches of two layers times K^-0.75, rises as
K^(1/2), as it does without a stem, or not at all, as it does in the end above one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from importlib import import_module
from math import isnan
from pathlib import Path
from textwrap import shorten
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import xarray as xr

from meanfield.common import require_choice
from meanfield.nets import (
    LOSS_NAMES,
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
from meanfield.transfer import LAW_QUANTITIES, LawQuestion
from meanfield.verification import Finding, Verdict, drawn_series, law_findings, span
from sims.common.command import Option, Preset, counted
from sims.common.images import require_installed
from sims.common.report import SAYS, Report
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import LINE, Column, ColumnGroup, Table, slope, value
from sims.common.training_data import training_data

# What the command line says of nets and laws: a family with fields, a number, or a function in a file of one's own.

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


LISTED = "a law of your own: any net, any size, judged against a rival"

# What is asked for.

QUANTITY = "learning_rate_scale"
# Samples of a mini-batch where data are given.
BATCH = 64
OPTIONS = (
    Option("net", "family, such as MLP or Transformer, or FILE.py:make, a function of the size that returns a net"),
    Option("set", "fields of the family, such as width=512 heads=4 activation=gelu", metavar="NAME=VALUE", many="+"),
    Option("along", "field of the family that is the size (depth by default)", metavar="FIELD"),
    Option("sizes", "three sizes or more", number, metavar="SIZE", many="+"),
    Option("quantity", "whose law it is", default=QUANTITY, choices=list(LAW_QUANTITIES)),
    Option("claim", "exponent that is claimed, or FILE.py:law, a function of the size", metavar="POWER", group="law"),
    Option("rival", "what would be true if the claim were false (default: 0.1 off)", metavar="POWER", group="law"),
    Option(
        "optimizer",
        "whose first step from rest it is, such as adamw, lion, muon or muon-adamw",
        default="sgd",
        metavar="NAME",
        group="step",
    ),
    Option("epsilon", "of optimizers that divide by the size of gradients", float, 0.0, metavar="E", group="step"),
    Option(
        "data",
        "digits, mnist, text (Transformers), or a .npz or .nc file with inputs and labels (default: random labels); a "
        "draw takes longer there, so begin with --draws 64",
        group="step",
    ),
    Option(
        "batch_size",
        f"samples of a mini-batch of the data (default: {BATCH})",
        int,
        metavar="B",
        check=counted("samples of a mini-batch"),
        group="step",
    ),
    Option(
        "loss", "loss of the outputs (default: cross_entropy on data, else squared)", choices=LOSS_NAMES, group="step"
    ),
    Option("theory", "predict even where that takes longer than 15 minutes", flag=True, group="step"),
    Option("no_theory", "draw alone", flag=True, group="step"),
)
PRESETS = {
    "smoke": Preset("4 s", sizes=[4, 8, 16], draws=64),
    "default": Preset("10 s", sizes=[4, 8, 16, 32, 64], draws=512),
    "paper": Preset("10 min", sizes=[4, 8, 16, 32, 64, 128, 256], draws=8192),
}
# The question that is asked without a net: its fields, the exponent without a stem, and that above one.
NET, CLAIM, RIVAL = "ResidualMLP", "0.5", "0"
FIELDS = ("block_depth=2", "scaling=0.75", "activation=gelu", "width=300", "stem=1", "input_width=64")
ASKED = ("depth", QUANTITY, "sgd", None)

# What is measured.


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The question: every net, and the claimed values at every size."""
    claim, rival = options.claim, options.rival
    if options.net is None:
        along = options.along or "depth"
        changed = {word.partition("=")[0] for word in options.set or ()}
        left = [word for word in FIELDS if word.partition("=")[0] not in {*changed, along}]
        make = net_of_size(NET, [*left, *(options.set or ())], along)
        if not changed and (along, options.quantity, options.optimizer, options.data) == ASKED:
            rival = RIVAL if claim is rival is None else rival
            claim = claim or CLAIM
    else:
        if is_in_file(options.net) and (options.set or options.along):
            raise ValueError(f"--net {options.net} makes its nets itself; leave out --set and --along")
        make = net_of_size(options.net, options.set or (), options.along or "depth")
    if options.theory and options.no_theory:
        raise ValueError("--theory and --no-theory ask for opposite things; leave one of them out")
    asked: dict[str, Any] = {
        "quantity": options.quantity,
        "claim": law("--claim", claim),
        "rival": law("--rival", rival),
        "optimizer": options.optimizer,
        "epsilon": options.epsilon,
        "loss": options.loss,
        "theory": True if options.theory else False if options.no_theory else None,
    }
    if options.data is not None:
        require_installed(options.data)
        if options.loss == "squared":
            raise ValueError("labels of data are classes, and loss 'squared' takes values; leave --loss out")
        asked["data"] = lambda size: training_data(options.data, make(size), seed=options.seed)
    batch_size = BATCH if options.batch_size is None and options.data is not None else options.batch_size
    question = LawQuestion.of(make, options.sizes, batch_size=batch_size, **asked)
    for run in question.runs(options.draws, options.seed):
        run.require_memory(options.workers.here)
    return {"question": question}


def measure(options: argparse.Namespace, results: Results, question: LawQuestion) -> xr.Dataset:
    """The dataset of `meanfield.depth_law`, by the workers of the command."""
    law = question.answered(results.draw, options.draws, options.seed)
    return law.assign_attrs(data=options.data or "")


# What is printed.

LEVELS = {"exact": "exact", "mean_field": "mean field"}
LABEL_SCALE = "label_learning_rate_scale"
# What the verdict on whether there is a power law says of it.
SERVES = {
    Verdict.CONFIRMED: "one power serves",
    Verdict.REFUTED: "no one power",
    Verdict.INCONCLUSIVE: "this run cannot tell whether one power serves",
}
# Chances below this are called so rare that the points follow no power law.
RARE = 0.01
# Characters of a line of the answer, which goes on below where it is long: one reason has room, and not one a size.
MOST = 6 * LINE


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    """On the claim, or else on whether it is a power law; below, what the numbers say, in a line each."""
    attrs = dataset.attrs
    sizes = span(drawn_series(dataset).value["size"])
    exponent = f"exponent {attrs['exponent']:.3f} +- {attrs['exponent_stderr']:.3f} over {attrs['along']} {sizes}"
    left_out = f" ({attrs['overflowed']} left out, as floats end or nets do not move)" if attrs["overflowed"] else ""
    lines = [f"{SAYS[findings[0].verdict]}: {exponent}{left_out}."]
    if "power" in attrs:
        refuted = ", REFUTED too" * (attrs["verdict"] == attrs["verdict_of_rival"] == Verdict.REFUTED)
        lines.append(f"Rival: {attrs['rival']}{refuted}{_power('; ', '. ', attrs['power'])}.")
    lines += [_slopes(dataset, findings[-1].verdict), _theory(dataset), _finite_width(dataset)]
    return "\n  ".join(shorten(line, MOST, placeholder=" ... (--full)") for line in lines)


def _power(before: str, before_none: str, words: str) -> str:
    """What such draws refute, behind its start; where nothing, a sentence of its own that says why."""
    none, _, why = words.partition("none: ")
    return f"{before}{words}" if none or not why else f"{before_none}No power: {why}"


def _slopes(dataset: xr.Dataset, verdict: Verdict) -> str:
    """How they change, and what the verdict on that says of a power law."""
    attrs, local = dataset.attrs, dataset["local_slope"].dropna("size").values
    drift = slope(attrs["drift"], attrs["drift_stderr"])
    return (
        f"Slopes: {local[0]:+.2f} .. {local[-1]:+.2f}, changing by {drift} for a factor e; {SERVES[verdict]}, p = "
        f"{attrs['p_value']:.2g}."
    )


def _theory(dataset: xr.Dataset) -> str:
    """What it says at these sizes and beyond them, and of what."""
    attrs = dataset.attrs
    limit = "" if isnan(attrs["limit_exponent"]) else f"{attrs['limit_exponent']:+g} in the end"
    of_labels = "of the label term " if attrs["optimizer"] == "sgd" else ""
    known = dataset.get(f"{LABEL_SCALE}_mean_field")
    if not attrs["theory"] and attrs["quantity"] != LABEL_SCALE and known is not None and np.isfinite(known).all():
        drawn = drawn_series(dataset, LABEL_SCALE)
        logs = np.log(known.sel(size=drawn.value["size"]).values)
        said = f"Theory: of the label term alone, exponent {drawn.slope_of('size', logs):+.3f} in mean field"
        return f"{said}, {limit}." if limit else f"{said}."
    if not attrs["theory"]:
        none = f"none at these sizes, {attrs['theory_missing']}"
        return f"Theory: exponent {of_labels}{limit}; {none}." if limit else f"Theory: {none}."
    said = f"Theory ({LEVELS[attrs['theory']]}): exponent {attrs['theory_exponent']:+.3f} at these sizes"
    return f"{said}; {of_labels}{limit}." if limit else f"{said}."


def _finite_width(dataset: xr.Dataset) -> str:
    attrs = dataset.attrs
    if isnan(attrs["finite_width"]):
        return f"Finite width: not known, {attrs['finite_width_missing']}."
    error = f" +- {attrs['finite_width_stderr']:.3f}" if attrs["finite_width_stderr"] else ""
    return f"Finite width: exponent moved by {attrs['finite_width']:+.3f}{error} ({attrs['finite_width_of']})."


def _heading(dataset: xr.Dataset) -> str:
    """Which nets, and what was drawn of them under whose step."""
    attrs = dataset.attrs
    words = [attrs["quantity_in_words"], f"{attrs['draws']} draws of each size", f"seed {attrs['seed']}"]
    words.append(f"loss {attrs['loss']}")
    if attrs["optimizer"] != "sgd":
        words.append(f"first step of {attrs['optimizer']}")
    if attrs["epsilon"]:
        words.append(f"epsilon {attrs['epsilon']:g}")
    if attrs["data"]:
        words.append(f"medians over draws on mini-batches of {attrs['batch_size']} of {attrs['data']}")
    return "\n".join(["{net}", ", ".join(words)])


def _columns(dataset: xr.Dataset) -> Sequence[ColumnGroup]:
    attrs, names = dataset.attrs, [dataset.attrs["quantity"]]
    if not attrs["theory"] and f"{LABEL_SCALE}_mean_field" in dataset:
        names.append(LABEL_SCALE)
    columns: list[ColumnGroup] = []
    for name in names:
        words = attrs["quantity_in_words"] if name == attrs["quantity"] else "of the label term"
        columns.append(Column(words, name))
        levels = [level for level in LEVELS if f"{name}_{level}" in dataset]
        columns += [Column(LEVELS[level], f"{name}_{level}") for level in levels]
    columns.append(Column("local slope", lambda at: slope(value(at, "local_slope"), value(at, "local_slope_stderr"))))
    if "local_slope_theory" in dataset:
        columns.append(Column("in theory", "local_slope_theory"))
    return columns


def _fit(dataset: xr.Dataset) -> str:
    """What has no room in the answer: the fit in full, and why there is no theory, or no limit."""
    attrs, freedom = dataset.attrs, len(drawn_series(dataset).value) - 2
    scatter = "the points follow no power law" if attrs["p_value"] < RARE else "the points may lie on a power law"
    lines = [
        f"Fit: exponent {slope(attrs['exponent'], attrs['exponent_stderr'])}, chi-square {attrs['chi_square']:.3g} "
        f"with {freedom} degree{'s' * (freedom > 1)} of freedom, p = {attrs['p_value']:.2g}: {scatter}. The drift "
        f"of the local slope is 0 with p = {attrs['drift_p_value']:.2g}."
    ]
    if "power" in attrs:
        lines.append(f"{_power('Power: ', '', attrs['power'])}.")
    if attrs["theory_missing"]:
        lines.append(f"No theory of {attrs['quantity_in_words']}: {attrs['theory_missing']}.")
    if attrs["limit_missing"]:
        lines.append(f"No limit of the exponent: {attrs['limit_missing']}.")
    return "\n".join(lines)


TITLE = "Drawn by {along}; local slopes are from the size before"
SIZE_TABLE = Table("table of sizes", TITLE, ["size"], "size", _columns)

REPORT = Report(
    question="Does the quantity go with the size as claimed, and is it a power of the size at all?",
    answer=_answer,
    heading=_heading,
    parts=[SIZE_TABLE, _fit],
    findings=law_findings,
    heavy=tuple(LAW_QUANTITIES),
    words={
        "local slope": "d ln y / d ln x between two sizes x.",
        "Slopes": "the local slopes of the first two sizes and of the last two.",
        "chi-square": "sum over sizes of the squared distance from the fit, in standard errors; p: how often a power "
        "law scatters as much.",
    },
)


STUDY = Study(
    name="depth_law",
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="10 s",
    planned=planned,
    measure=measure,
    report=REPORT,
)


if __name__ == "__main__":
    run_as_command("depth_law")
