"""How eta* of one step of descent, of signs (AdamW, Lion) and of polar factors (Muon) goes with depth and with width.

Plain nets and residual nets of every scaling are drawn under the first step from rest of each optimizer, and held
against the mean field of the same step, against descent, and against what papers print. Then the width: which power of
it each optimizer leaves in eta*. Last, what labels, loss, outputs and head change in it: under descent they do, under
signs and polar factors of one sample they do not.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS
from meanfield.execution import Run
from meanfield.nets import MLP, Batch
from meanfield.simulation import Energies
from sims.common.blocks import BLOCKS_OPTION, RELU_OVER_LINEAR
from sims.common.command import Option, Preset, chosen_of, counted, ladder_of
from sims.common.datasets import Axes, Variable, attributes, labels_in_mean_field, over, seeded_run, taken
from sims.common.results import Results
from sims.common.study import Study
from sims.optimizer_depth.claims import (
    CLAIMS,
    LABEL_SCALE,
    MORE,
    MORE_OF_DESCENT,
    NAME,
    OF_PLAIN,
    OF_SETTING,
    OF_WIDTH,
    SCALE,
    SHIFT,
)
from sims.optimizer_depth.families import (
    DESCENT,
    FAMILIES,
    FEW,
    OPTIMIZERS,
    PLAIN,
    SETTINGS,
    SHALLOW,
    plain,
    residual,
)
from sims.optimizer_depth.report import REPORT

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
