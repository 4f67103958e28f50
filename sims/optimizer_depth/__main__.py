"""How eta* of one step of descent, of signs (AdamW, Lion) and of polar factors (Muon) goes with depth and with width.

Plain nets and residual nets of every scaling are drawn under the first step from rest of each optimizer, and held
against the mean field of the same step, against descent, and against what papers print. Then the width: which power of
it each optimizer leaves in eta*. Last, what labels, loss, outputs and head change in it: under descent they do, under
signs and polar factors of one sample they do not.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS
from meanfield.execution import Run
from meanfield.nets import MLP, Batch
from meanfield.simulation import Energies
from meanfield.verification import ADAM_SLOPES, Finding
from sims.common.blocks import BLOCKS_OPTION, RELU_OVER_LINEAR
from sims.common.command import Option, Preset, chosen_of, counted, ladder_of
from sims.common.datasets import Axes, Variable, attributes, labels_in_mean_field, over, seeded_run, taken
from sims.common.report import ETA, Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import (
    MISSING,
    Column,
    ColumnGroup,
    Grid,
    Table,
    drawn,
    exponents,
    fitted,
    fraction,
    from_log,
    heavy_tail_notes,
    signed,
    slope,
    table,
)
from sims.optimizer_depth.claims import (
    CLAIMS,
    COHERENT,
    DESCENT,
    FAMILIES,
    FEW,
    IN_WORDS,
    LABEL_SCALE,
    MORE,
    MORE_OF_DESCENT,
    NAME,
    OF_PLAIN,
    OF_SETTING,
    OF_WIDTH,
    OPTIMIZERS,
    PLAIN,
    SCALE,
    SETTINGS,
    SETTINGS_IN_WORDS,
    SHALLOW,
    SHIFT,
    drawn_law,
    drawn_scales,
    findings,
    judge_coherent,
    limit_of,
    others,
    plain,
    printed_by,
    residual,
    theory_slope,
    width_exponent,
    width_law,
)

LISTED = "which depth law one step of each optimizer has, net by net"

# What is asked for.

OPTIONS = (
    Option(
        "optimizers",
        f"whose first step is made beside that of {DESCENT}, which verdicts compare with",
        default=["adamw", "muon"],
        metavar="NAME",
        many="+",
        check=chosen_of(OPTIMIZERS),
    ),
    Option(
        "families",
        "nets whose depth changes: plain, or residual by scaling, k2 for branches of two layers (default: all)",
        default=list(FAMILIES),
        metavar="NAME",
        many="+",
        check=chosen_of(FAMILIES),
    ),
    Option(
        "depths",
        "layers of plain nets, two or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(2, "a slope", maximum=MOST_LAYERS, why="layers of plain nets"),
    ),
    BLOCKS_OPTION,
    Option("width", "channels of nets whose depth changes", int, metavar="N", check=counted("channels", minimum=8)),
    Option(
        "widths",
        f"channels of plain nets of {SHALLOW} layers whose width changes, three or more",
        int,
        metavar="N",
        many="+",
        check=ladder_of(3, "the limit of a slope", why="channels of plain nets"),
    ),
    Option("outputs", "outputs of nets whose depth or width changes", int, 10, metavar="M"),
)
PRESETS = {
    "smoke": Preset("10 s", depths=[3, 5, 8], blocks=[2, 4, 8], width=64, widths=[32, 64, 128], draws=48),
    "default": Preset(
        "60 s",
        depths=[3, 5, 8, 12, 19, 30],
        blocks=[2, 4, 8, 16, 32],
        width=192,
        widths=[64, 128, 256, 512, 1024],
        draws=32,
    ),
    "paper": Preset(
        "2 h",
        depths=[3, 5, 8, 12, 19, 30],
        blocks=[2, 4, 8, 16, 32, 64],
        width=1024,
        widths=[64, 128, 256, 512, 1024, 2048],
        draws=128,
    ),
}

# What is measured.

SCALES = (LABEL_SCALE, SCALE)
VARIABLES = (
    *(
        Variable(f"{prefix}{name}", f"{words}, of {of}")
        for prefix, of in ((OF_PLAIN, "plain nets by depth"), (OF_WIDTH, f"plain nets of {SHALLOW} layers by width"))
        for name, words in ((LABEL_SCALE, "eta* of the label term"), (SCALE, "eta*"))
    ),
    Variable(f"{OF_SETTING}{SCALE}", f"eta* of plain nets of {SHALLOW} layers by labels, loss, outputs and head"),
    *(
        Variable(f"log_{prefix}{LABEL_SCALE}_mean_field", f"logarithm of the label term's eta*, mean field, of {of}")
        for prefix, of in ((OF_PLAIN, "plain nets by depth"), (OF_WIDTH, "plain nets by width"))
    ),
    Variable(SHIFT, "what finite width does to the slope of the label term's eta* in depth, of descent, in theory"),
    Variable("family", "family of nets: plain, or residual by scaling of the branches"),
    Variable(OF_WIDTH + SHIFT, "the same of the slope in the width"),
    Variable("drawn_family", "family of nets that were drawn"),
    Variable("setting", "what differs from the base: labels, loss, outputs or head"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The optimizers, and the nets by family, of all depths; those of all widths, and of all settings."""
    optimizers = [DESCENT, *(name for name in options.optimizers if name != DESCENT)]
    if len(optimizers) < 2:
        raise ValueError(f"--optimizers {DESCENT} leaves nothing to compare it with; give another, such as adamw")
    size = {"width": options.width, "outputs": options.outputs}
    nets: dict[str, list[Any]] = {}
    for family in options.families:
        if family == PLAIN:
            nets[family] = [plain(depth, **size) for depth in options.depths]
        else:
            nets[family] = [residual(family, blocks, **size) for blocks in options.blocks]
    wide = [plain(SHALLOW, width, options.outputs) for width in options.widths]
    return {"optimizers": optimizers, "nets": nets, "wide": wide}


def measure(
    options: argparse.Namespace,
    results: Results,
    optimizers: list[str],
    nets: dict[str, list[Any]],
    wide: list[MLP],
) -> xr.Dataset:
    """Scales drawn (NAME) and predicted (log_NAME_mean_field): residual over blocks, plain_ over depth, width_ over
    width; setting_learning_rate_scale by what labels, loss, outputs and head are.
    """
    families = [family for family in nets if family != PLAIN]
    groups: dict[str, tuple[Axes, list[Any]]] = {
        "": ({"family": families, "blocks": options.blocks}, [net for family in families for net in nets[family]]),
        OF_PLAIN: ({"depth": options.depths}, nets.get(PLAIN, [])),
        OF_WIDTH: ({"width": options.widths}, wide),
    }
    groups = {prefix: group for prefix, group in groups.items() if group[1]}
    runs = {prefix: _runs(options, optimizers, group) for prefix, (_, group) in groups.items()}
    of_settings = _runs_of_settings(options, optimizers)
    drawn = iter(results.draw([*(run for some in runs.values() for run in some), *of_settings]))
    parts = []
    for prefix, (axes, group) in groups.items():
        rows = [
            _renamed(prefix, taken(measured, *SCALES) | _log_theory(net, optimizer))
            for (optimizer, net), measured in zip(product(optimizers, group), drawn, strict=False)
        ]
        parts.append(over({"optimizer": optimizers, **axes}, rows))
    rows = [_renamed(OF_SETTING, taken(measured, SCALE)) for measured in drawn]
    parts.append(over({"optimizer": optimizers, "setting": list(SETTINGS)}, rows))
    shifts = [{SHIFT: finite_width_shift(nets[family], "depth")} for family in nets]
    parts.append(over({"drawn_family": list(nets)}, shifts))
    of_width = xr.Dataset({OF_WIDTH + SHIFT: finite_width_shift(wide, "width")})
    parts.append(of_width)
    return xr.merge(parts).assign_attrs(attributes(options, "width", "outputs") | {"setting_width": options.widths[-2]})


def _runs(options: argparse.Namespace, optimizers: Sequence[str], nets: Iterable[Any]) -> list[Run]:
    """The first step of every optimizer on every net, the net running first."""
    return [
        seeded_run(
            options,
            net,
            Energies(optimizer=optimizer),
            f"{optimizer} on {net.describe()}",
            options.draws if net.has_skips else _more(options, optimizer),
        )
        for optimizer, net in product(optimizers, nets)
    ]


def _more(options: argparse.Namespace, optimizer: str) -> int:
    """Draws of plain nets."""
    return int(options.draws) * (MORE_OF_DESCENT if optimizer == DESCENT else MORE)


def _runs_of_settings(options: argparse.Namespace, optimizers: Sequence[str]) -> list[Run]:
    runs = []
    for optimizer, (setting, (fields, how)) in product(optimizers, SETTINGS.items()):
        net = MLP(**{"depth": SHALLOW, "width": options.widths[-2], "outputs": FEW} | dict(fields))
        batch = Batch(label_mean=how.get("label_mean", 0.0))
        energies = Energies(optimizer=optimizer, batch=batch, loss=how.get("loss", "squared"))
        runs.append(seeded_run(options, net, energies, f"{optimizer} with other {setting}", _more(options, optimizer)))
    return runs


def _renamed(prefix: str, row: dict[str, Any]) -> dict[str, Any]:
    """With the prefix before the name of every scale, behind the one of logarithms."""
    return {
        f"log_{prefix}{name.removeprefix('log_')}" if name.startswith("log_") else prefix + name: value
        for name, value in row.items()
    }


def _log_theory(net: Any, optimizer: str) -> dict[str, float]:
    """log of the label term's scale under this step, in the mean field."""
    predicted = labels_in_mean_field(net, optimizer=optimizer)
    return {f"log_{LABEL_SCALE}_mean_field": float(predicted[f"log_{LABEL_SCALE}"])}


def finite_width_shift(nets: Sequence[Any], size: str) -> float:
    """Slope in the size of the exact scale of descent less that of the mean field, without its sign.

    Of linear residual nets, where the exact scale is known, times what ReLU makes of it.
    """
    skips = nets[0].has_skips
    known = [replace(net, activation="linear") for net in nets] if skips else nets
    name = f"log_{LABEL_SCALE}"
    logs = [[mf.predict(net, level="exact")[name] - labels_in_mean_field(net)[name]] for net in known]
    slope = np.polyfit(np.log([getattr(net, size) for net in nets]), np.array(logs, float).ravel(), 1)[0]
    return float(abs(slope)) * (RELU_OVER_LINEAR if skips else 1.0)


# What is printed.

WORDS = {
    "k": "layers of a branch: z <- z + a branch(z) in every block.",
    "descent": "the first step moves a weight by its gradient (sgd).",
    "signs": "the first step moves a weight by the signs of its gradient (adamw, lion).",
    "polar factors": "the first step moves a weight by the polar factor of its gradient (muon, shampoo, soap).",
}


def _answer(dataset: xr.Dataset, verdicts: Sequence[Finding]) -> str:
    """On the exponents of residual nets; of plain ones alone where no others were drawn."""
    families = [str(family) for family in dataset["drawn_family"].values]
    asked = [family for family in COHERENT if family in families and family != "init"] or families[:1]
    judged = [judge_coherent(dataset, family) for family in asked if family in COHERENT] or verdicts[:1]
    said = [f"{_law(dataset, asked[0], name)} under {name}" for name in [DESCENT, *others(dataset)]]
    return answer(judged, f"{IN_WORDS[asked[0]]}: eta* has slopes {', '.join(said)}")


def _law(dataset: xr.Dataset, family: str, optimizer: str) -> str:
    law = drawn_law(dataset, family, optimizer)
    return slope(law.exponent, law.stderr)


def _names(dataset: xr.Dataset) -> list[str]:
    return [str(name) for name in dataset["optimizer"].values]


def _brief(dataset: xr.Dataset) -> Grid:
    """A row for every family: under each optimizer the drawn slope, and theory's."""
    names = _names(dataset)
    lines = []
    for family in map(str, dataset["drawn_family"].values):
        cells = []
        for name in names:
            cells += [_law(dataset, family, name), f"{theory_slope(dataset, family, name):+.3f}"]
        lines.append([IN_WORDS[family], *cells])
    header = [["family"], *([name, "theory"] for name in names)]
    return table(header, lines, _slope_title(dataset))


def _slope_title(dataset: xr.Dataset) -> str:
    sizes = [
        f"{letter} = {dataset[dim].values[0]} .. {dataset[dim].values[-1]}"
        for letter, dim in (("L", "depth"), ("K", "blocks"))
        if dim in dataset.coords
    ]
    return f"Slopes in depth of the label term's eta*, {', '.join(sizes)}; theory: mean field"


def _slopes(dataset: xr.Dataset) -> Grid:
    """A row for every family and optimizer: drawn, predicted, the limit, and what papers print or trained."""
    header = ["family", "optimizer", "drawn", "theory", "off (s.e.)", "limit", "printed", "tuned (Adam)"]
    lines = []
    for family in map(str, dataset["drawn_family"].values):
        for name in _names(dataset):
            law, expected = drawn_law(dataset, family, name), theory_slope(dataset, family, name)
            off = signed((law.exponent - expected) / law.stderr)
            published = [exponents(printed_by(family, name)), _trained(family, name)]
            lines.append(
                [IN_WORDS[family], name, fitted(law), f"{expected:.3f}", off, _limit(family, name), *published]
            )
    return table(
        header, lines, _slope_title(dataset) + "; tuned: of trained nets (Zhang et al. 2026, table 3), not judged"
    )


def _limit(family: str, optimizer: str) -> str:
    return fraction(limit_of(family, optimizer))


def _trained(family: str, optimizer: str) -> str:
    """Slopes of rates that Zhang et al. 2026 tuned for Adam, of nets of these kinds."""
    if optimizer != "adamw" or family not in (PLAIN, "init"):
        return MISSING
    return f"{ADAM_SLOPES['CNN' if family == PLAIN else 'ResNet']:.3f}"


def _local_slopes(dataset: xr.Dataset) -> Sequence[Grid]:
    """From each size to the next, of every family and optimizer: drawn, and in theory."""
    grids = []
    for along, letter in (("depth", "L"), ("blocks", "K")):
        families = [
            family for family in map(str, dataset["drawn_family"].values) if (family == PLAIN) is (along == "depth")
        ]
        if not families:
            continue
        sizes = dataset[along].values
        lines = []
        for family in families:
            for name in _names(dataset):
                series, _ = drawn_scales(dataset, family, name)
                local = series.local_slopes(along)
                lines.append([IN_WORDS[family], name, *map(slope, local.slope, local.stderr)])
        between = [f"{letter} = {low} .. {high}" for low, high in pairwise(sizes)]
        grids.append(table([["family", "optimizer"], *between], lines, "Local slopes of the label term's eta*, drawn"))
    return grids


def _scale_columns(prefix: str) -> Callable[[xr.Dataset], Sequence[ColumnGroup]]:
    """By optimizer: eta* of the label term, drawn and in the mean field, and eta* of the whole update."""

    def columns(dataset: xr.Dataset) -> list[ColumnGroup]:
        return [_of_optimizer(prefix, name) for name in _names(dataset)]

    return columns


def _of_optimizer(prefix: str, name: str) -> list[Column]:
    theory = f"log_{prefix}{LABEL_SCALE}_mean_field"
    return [
        Column(name, lambda at: drawn(at.sel(optimizer=name), f"{prefix}{LABEL_SCALE}")),
        Column("theory", lambda at: from_log(float(at[theory].sel(optimizer=name)))),
        Column("whole update", lambda at: drawn(at.sel(optimizer=name), f"{prefix}{SCALE}")),
    ]


BLOCK_TABLE = Table(
    "scales of residual nets",
    "Residual nets: eta* of the label term, drawn and mean field; eta* of the whole update",
    ["family", "blocks"],
    ["family", "K"],
    _scale_columns(""),
    shown={"family": IN_WORDS},
)
DEPTH_TABLE = Table("scales of plain nets", "Plain nets: the same", ["depth"], "L", _scale_columns(OF_PLAIN))
WIDTH_TABLE = Table(
    "scales by width", f"Plain nets of {SHALLOW} layers: the same", ["width"], "n", _scale_columns(OF_WIDTH)
)


def _scales(dataset: xr.Dataset) -> list[Grid]:
    """Of the nets that were drawn."""
    tables = {"blocks": BLOCK_TABLE, "depth": DEPTH_TABLE, "width": WIDTH_TABLE}
    return [made(dataset) for dim, made in tables.items() if dim in dataset.coords]


def _widths(dataset: xr.Dataset) -> Grid:
    """The power of the width by optimizer: in the limit as drawn, and in theory."""
    lines = [
        [name, OPTIMIZERS[name], fitted(width_law(dataset, name)), f"{width_exponent(dataset, name):.3f}"]
        for name in _names(dataset)
    ]
    title = f"Power of the width in eta*, plain nets of {SHALLOW} layers"
    return table(["optimizer", "takes of the gradient", "drawn", "theory"], lines, title)


def _settings(dataset: xr.Dataset) -> Grid:
    """eta* by what labels, loss, outputs and head are, under every optimizer."""
    names = _names(dataset)
    lines = []
    for setting in map(str, dataset["setting"].values):
        at = dataset.sel(setting=setting)
        cells = [drawn(at.sel(optimizer=name), f"{OF_SETTING}{SCALE}") for name in names]
        lines.append([SETTINGS_IN_WORDS[setting], *cells])
    width = dataset.attrs["setting_width"]
    title = f"eta* of the whole update, plain nets of {SHALLOW} layers, width {width}; below the base what differs"
    return table(["net", *names], lines, title)


def _notes(dataset: xr.Dataset) -> str:
    names = [f"{prefix}{LABEL_SCALE}" for prefix in ("", OF_PLAIN, OF_WIDTH)]
    return heavy_tail_notes(dataset, names)


def _heading(dataset: xr.Dataset) -> str:
    attrs = dataset.attrs
    return (
        f"First step from rest; ReLU, one sample, width {attrs['width']}, {attrs['outputs']} outputs; {attrs['draws']} "
        f"draws of each net, seed {attrs['seed']}\n{ETA}"
    )


REPORT = Report(
    question="Has eta* of one step of AdamW or Muon another depth law than that of one step of descent?",
    answer=_answer,
    heading=_heading,
    brief=_brief,
    parts=[_slopes, _widths, _settings, _local_slopes, _scales, _notes],
    findings=findings,
    steps=[
        ("--optimizers lion muon_kimi", "other optimizers, beside descent"),
        ("--families init multiplier_sqrt --blocks 4 8 16 32 64", "some nets, deeper"),
    ],
    words=WORDS,
)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="30 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)


if __name__ == "__main__":
    run_as_command("optimizer_depth")
