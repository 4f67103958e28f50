"""Residual energy of weight-tied loops against the number of loops, beside deep stacks with a matrix for every step.

Draws H_L = |h_L|^2 / N for three residual scalings (none, 1/sqrt(L), 1/L) over numbers of loops L, in the layout of
figure 1 of Wang et al. 2026, and holds them against the infinite-width covariance recursion, which is followed to
thousands of loops; then the correlations of the increments (figure 2), and the size of the cross term against the
width, the loops and eps L.
"""

import argparse
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, Array, require_count
from meanfield.execution import Run
from meanfield.nets import TiedLoop
from meanfield.simulation import ResidualEnergies
from sims.common.command import Option, Preset, ladder_of
from sims.common.datasets import Axes, Variable, attributes, over, seeded_run
from sims.common.loops import LOOP_OPTIONS
from sims.common.results import Results
from sims.common.study import Study
from sims.looped_energy.claims import CLAIMS, NAME
from sims.looped_energy.report import REPORT

# What is asked for.

OPTIONS = (
    Option(
        "loops",
        "numbers of loops to draw, three or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(3, "a growth law", maximum=MOST_LAYERS, why="numbers of loops"),
        group="loop",
    ),
    Option("far", "loops to which theory is followed, by doubling", int, metavar="L", group="loop"),
    *LOOP_OPTIONS,
)
PRESETS = {
    "smoke": Preset("3 s", loops=[1, 2, 4, 8, 16], width=256, draws=128, far=128),
    "default": Preset("6 s", loops=[1, 2, 4, 8, 16, 32, 64], width=512, draws=256, far=4096),
    "paper": Preset("40 s", loops=[1, 2, 4, 8, 16, 32, 64], width=2048, draws=1024, far=4096),
}

# What is measured.

SHARED = ("width", "activation", "weight_variance")
INCREMENTS = ("increment", "increment_other")
MODELS = ("looped", "deep")
SCALINGS = ("none", "sqrt", "linear")
# The scaling of each model under which increments are correlated, and the steps.
HEATMAPS = {"looped": "linear", "deep": "sqrt"}
HEATMAP_LOOPS = 24
# Scalings eps = L^(-alpha) on either side of the threshold, followed by theory alone.
ALPHAS = (0.75, 0.9, 1.0, 1.25, 1.5)
# Widths, numbers of loops and values of eps L over which the cross term is followed, each at one value of the others.
CROSS_WIDTHS, CROSS_DEPTHS, CROSS_EPS_LOOPS = (64, 128, 256, 512), (4, 8, 16, 32, 64), (0.125, 0.25, 0.5, 1.0)
CROSS_WIDTH, CROSS_LOOPS = 128, 16

VARIABLES = (
    Variable("log_energy", "ln H_L, logarithm of the residual energy", "ln(|h_L|^2 / N), 0 at the start"),
    Variable("largest_share", "share of the largest draw in the mean of H_L"),
    Variable("log_energy_far", "ln H_L in the mean field, far up"),
    Variable("log_energy_by_alpha", "ln H_L of loops in the mean field, far up, by alpha"),
    Variable(
        "increment_correlation",
        "correlation coefficient of two increments of the stream",
        source="Wang et al. 2026, figure 2",
    ),
    *(
        Variable(f"{along}_spread", f"standard deviation over draws of the cross term B_L, by {words}")
        for along, words in (("cross_width", "width"), ("cross_loops", "loops"), ("cross_eps_loops", "eps L"))
    ),
    Variable("model", "looped, one matrix for all steps; deep, a matrix for every step"),
    Variable("far_loops", "loops L to which the mean field is followed"),
    Variable("alpha", "exponent of the residual scaling, eps = L^-alpha"),
    Variable("cross_width", "width N at which the cross term is measured"),
    Variable("cross_loops", "loops L at which the cross term is measured"),
    Variable("cross_eps_loops", "eps L at which the cross term is measured"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of loops, how far theory goes, and the longest loop."""
    loops = options.loops
    why = "theory goes at least as far as the draws, and over two doublings"
    require_count("--far", options.far, minimum=max(loops[-1], 4), maximum=MOST_LAYERS, why=why)
    return {"loops": loops, "far": options.far, "loop": _loop(options, loops[-1])}


def _loop(
    options: argparse.Namespace, depth: int, model: str = "looped", alpha: Any = "linear", **more: Any
) -> TiedLoop:
    """One loop, or one deep stack, with the options' other numbers."""
    return TiedLoop(depth=depth, alpha=alpha, tied=model == "looped", **(attributes(options, *SHARED) | more))


def measure(options: argparse.Namespace, results: Results, loops: list[int], far: int, loop: TiedLoop) -> xr.Dataset:
    """Everything that is drawn, in one go on one set of workers, with theory beside (NAME_mean_field)."""

    def run(net: TiedLoop, label: str, **more: Any) -> Run:
        return seeded_run(options, net, ResidualEnergies(**more), label)

    axes: Axes = {"model": MODELS, "scaling": SCALINGS, "loops": loops}
    runs = [
        run(_loop(options, depth, model, scaling), f"{model}, {scaling}, {depth} loops")
        for model, scaling, depth in product(*axes.values())
    ]
    pairs = [
        run(_loop(options, HEATMAP_LOOPS, *at), f"{at[0]} correlations", correlations=True) for at in HEATMAPS.items()
    ]
    crossed: dict[str, dict[Any, Run]] = {
        "cross_width": {
            width: run(_loop(options, CROSS_LOOPS, width=width), f"width {width}") for width in CROSS_WIDTHS
        },
        "cross_loops": {depth: _crossing(run, options, depth, 1.0) for depth in CROSS_DEPTHS},
        "cross_eps_loops": {size: _crossing(run, options, CROSS_LOOPS, size) for size in CROSS_EPS_LOOPS},
    }
    every = [*runs, *pairs, *(made for row in crossed.values() for made in row.values())]
    measured = dict(zip(map(id, every), results.draw(every), strict=True))
    nets: Axes = {"model": MODELS, "scaling": SCALINGS, "far_loops": [2**power for power in range(far.bit_length())]}
    tied: Axes = {"alpha": ALPHAS, "far_loops": nets["far_loops"]}
    parts = [
        over(axes, [_energies(run.net, measured[id(run)]) for run in runs]),
        over(nets, [{"log_energy_far": _far(options, *at)} for at in product(*nets.values())]),
        over(tied, [{"log_energy_by_alpha": _far(options, "looped", *at)} for at in product(*tied.values())]),
        over({"model": MODELS}, [_heatmap(run.net, measured[id(run)]) for run in pairs], *INCREMENTS),
        *(
            over({along: list(row)}, [_cross_term(along, measured[id(made)], options.draws) for made in row.values()])
            for along, row in crossed.items()
        ),
    ]
    attrs = attributes(options, *SHARED) | {"fixed_loops": CROSS_LOOPS, "fixed_width": CROSS_WIDTH}
    return xr.merge(parts).assign_attrs(attrs)


def _energies(loop: TiedLoop, measured: xr.Dataset) -> dict[str, Any]:
    """ln H_L and C_L of one loop: drawn, with errors, and the mean field's logarithms."""
    drawn, theory = measured.isel(step=-1), mf.predict(loop, level="mean_field").isel(step=-1)
    return {
        "log_energy": float(drawn["log_residual_energy"]),
        "log_energy_stderr": float(drawn["log_residual_energy_stderr"]),
        "log_energy_mean_field": float(theory["log_residual_energy"]),
        "correlation_term": float(drawn["correlation_term"]),
        "correlation_term_stderr": float(drawn["correlation_term_stderr"]),
        "log_correlation_term_mean_field": float(theory["log_correlation_term"]),
        "largest_share": float(drawn["residual_energy_largest_share"]),
    }


def _far(options: argparse.Namespace, model: str, alpha: Any, depth: int) -> float:
    """ln H_L of the mean field."""
    return float(mf.predict(_loop(options, depth, model, alpha), level="mean_field")["log_residual_energy"][-1])


def _heatmap(loop: TiedLoop, measured: xr.Dataset) -> dict[str, Array]:
    """Correlation of increments, <r_s, r_t> / (|r_s| |r_t|) in mean: drawn, its error, and the mean field's."""
    name = "increment_correlation"
    drawn, stderr = (measured[f"{name}{end}"].values for end in ("", "_stderr"))
    theory = mf.predict(loop, level="mean_field", correlations=True)[name].values
    return {name: drawn / _norms(drawn), f"{name}_stderr": stderr / _norms(drawn)} | {
        f"{name}_mean_field": theory / _norms(theory)
    }


def _norms(products: Array) -> Array:
    """|r_s| |r_t| from all <r_s, r_t>."""
    return np.sqrt(np.outer(np.diagonal(products), np.diagonal(products)))


def _crossing(run: Callable[[TiedLoop, str], Run], options: argparse.Namespace, loops: int, eps_loops: float) -> Run:
    """The run of a loop of the width `CROSS_WIDTH` under eps = ``eps_loops`` / L."""
    alpha = 1 - float(np.log(eps_loops) / np.log(loops))
    return run(_loop(options, loops, alpha=alpha, width=CROSS_WIDTH), f"cross term, {loops} loops, eps L = {eps_loops}")


def _cross_term(along: str, measured: xr.Dataset, draws: int) -> dict[str, float]:
    """Standard deviation of one draw of B_L, with its error for a Gaussian."""
    name, spread = f"{along}_spread", float(measured["cross_term_stderr"][-1]) * float(np.sqrt(draws))
    return {name: spread, f"{name}_stderr": spread / float(np.sqrt(2 * (draws - 1)))}


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="35 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)
