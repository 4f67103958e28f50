"""How far the stream of a loop moves under each update, by alpha, loops and width, drawn; the recursion beside."""

import argparse
from itertools import product
from typing import Any

import xarray as xr

from meanfield.execution import Run
from meanfield.nets import TiedLoop
from meanfield.simulation import UPDATES, StreamUpdates
from meanfield.theory import log_own_energies, log_update_energies
from sims.common.command import ladder
from sims.common.datasets import ENDS, Axes, attributes, over, seeded_run
from sims.common.results import Results

ALPHAS = (0.5, 1.0, 1.5)
# Loops at which the recursion's slope in L is taken for its limit.
FAR = (512, 1024)
WIDTH_FACTORS = (0.25, 0.5, 1, 2)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of loops, and the longest loop."""
    loops = ladder("--loops", options.loops, 2, "a slope", why="numbers of loops")
    return {"loops": loops, "loop": _loop(options, loops[-1], 1.0, options.width)}


def _loop(options: argparse.Namespace, depth: int, alpha: float, width: int) -> TiedLoop:
    return TiedLoop(depth=depth, alpha=alpha, width=width, **attributes(options, "activation", "weight_variance"))


def measure(options: argparse.Namespace, results: Results, loops: list[int], loop: TiedLoop) -> xr.Dataset:
    """|dh_L|^2 / N by update, alpha and loops, and by update and width at alpha = 1."""

    def run(update: str, alpha: float, depth: int, width: int) -> Run:
        label = f"{update}, alpha {alpha}, {depth} loops, width {width}"
        return seeded_run(options, _loop(options, depth, alpha, width), StreamUpdates(update=update), label)

    widths = [max(1, round(options.width * factor)) for factor in WIDTH_FACTORS]
    axes: Axes = {"update": list(UPDATES), "alpha": ALPHAS, "loops": loops}
    across: Axes = {"update": list(UPDATES), "width": widths}
    runs = [run(update, alpha, depth, options.width) for update, alpha, depth in product(*axes.values())]
    wide = [run(update, 1.0, loops[0], width) for update, width in product(*across.values())]
    measured = results.draw([*runs, *wide])
    in_theory: Axes = {"alpha": ALPHAS, "loops": loops}
    nets = [_loop(options, depth, alpha, options.width) for alpha, depth in product(*in_theory.values())]
    far: Axes = {"alpha": ALPHAS, "far_loops": FAR}
    parts = [
        over(axes, [_moved(drawn, "update_energy", ENDS) for drawn in measured[: len(runs)]]),
        over(in_theory, [_theory(net) for net in nets]),
        over(far, [{"log_update_energy_far": _recursion(options, *at)} for at in product(*far.values())]),
        over(across, [_moved(drawn, "by_width", ENDS[:2]) for drawn in measured[len(runs) :]]),
    ]
    own = attributes(options, "activation", "weight_variance")
    return xr.merge(parts).assign_attrs(own, ladder_width=options.width, width_loops=loops[0])


def _recursion(options: argparse.Namespace, alpha: float, depth: int) -> float:
    return float(log_update_energies(_loop(options, depth, alpha, options.width))[-1])


def _moved(drawn: xr.Dataset, name: str, ends: tuple[str, ...]) -> dict[str, float]:
    """The last step's change under a name, with its error and largest share where these are asked for."""
    return {name + end: float(drawn[f"stream_update_energy{end}"][-1]) for end in ends}


def _theory(loop: TiedLoop) -> dict[str, float]:
    return {
        "log_update_energy_mean_field": log_update_energies(loop)[-1],
        "log_own_energy_mean_field": log_own_energies(loop)[-1],
    }
