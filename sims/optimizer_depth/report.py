"""What is printed: slopes by family and optimizer, drawn, predicted, published; scales; width; what drops out."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import xarray as xr

from meanfield.verification import ADAM_SLOPES, Finding
from sims.common.report import ETA, Report, answer
from sims.common.tables import (
    MISSING,
    Column,
    Grid,
    Group,
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
    COHERENT,
    LABEL_SCALE,
    OF_PLAIN,
    OF_SETTING,
    OF_WIDTH,
    SCALE,
    drawn_law,
    drawn_scales,
    findings,
    judge_coherent,
    limit_of,
    others,
    printed_by,
    theory_slope,
    width_exponent,
    width_law,
)
from sims.optimizer_depth.families import DESCENT, IN_WORDS, OPTIMIZERS, PLAIN, SETTINGS_IN_WORDS, SHALLOW

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


def _scale_columns(prefix: str) -> Callable[[xr.Dataset], Sequence[Group]]:
    """By optimizer: eta* of the label term, drawn and in the mean field, and eta* of the whole update."""

    def columns(dataset: xr.Dataset) -> list[Group]:
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
