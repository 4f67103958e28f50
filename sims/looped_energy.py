"""Residual energy of weight-tied loops against the number of loops, beside deep stacks with a matrix for every step.

Draws H_L = |h_L|^2 / N for three residual scalings (none, 1/sqrt(L), 1/L) over numbers of loops L, in the layout of
figure 1 of Wang et al. 2026, and holds them against the infinite-width covariance recursion, which is followed to
thousands of loops; then the correlations of the increments (figure 2), and the size of the cross term against the
width, the loops and eps L.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, Array, PowerLaw, require_count
from meanfield.execution import Run
from meanfield.nets import TiedLoop
from meanfield.simulation import ResidualEnergies
from meanfield.theory import has_closed_energy, log_increment_gain
from meanfield.verification import (
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    Series,
    Verdict,
    checks,
    computed,
    contest,
    joined,
    shown_laws,
    slope_contest,
    span,
)
from sims.common.command import Option, Preset, ladder_of
from sims.common.datasets import Axes, Variable, attributes, over, seeded_run
from sims.common.loops import HEATMAPS, INCREMENTS, LOOP_OPTIONS, finite_width
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, against, drawn, number, table

NAME = "looped_energy"
LISTED = "whether weight-tied loops keep their energy as they get longer"

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
MODELS = ("looped", "deep")
SCALINGS = ("none", "sqrt", "linear")
# Steps of the nets whose increments are correlated.
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


# How near a computed exponent, or a factor between doublings, must be to be called the same.
NEAR = 0.05
# A correlation coefficient below this is none.
UNCORRELATED = 0.05
# Scalings eps = L^(-alpha) of stacks on either side of their threshold, and steps to which their law is followed.
STACK_ALPHAS = (0.25, 0.4, 0.45, 0.5, 0.55, 0.75)
STACK_STEPS = (1024, 2048, 4096)
# Of the numbers of loops, those that a growth is taken over.
DEEPER_HALF = slice(-3, None)
# Models and scalings under which energies stay bounded.
BOUNDED = (("looped", "linear"), ("deep", "sqrt"), ("deep", "linear"))

JUDGES = Judges(
    "Wang et al. 2026", largest_share=lambda dataset: float(dataset["largest_share"].sel(scaling="linear").max())
)


@JUDGES.decide(
    claim="Energies follow the infinite-width covariance recursion",
    rival="that of stacks, every step with its own weights",
    measured="ln H_L, wherever energies are bounded",
)
def judge_mean_field(dataset: xr.Dataset) -> Contest:
    parts = []
    for model, scaling in BOUNDED:
        at, stack = (dataset.sel(model=kind, scaling=scaling) for kind in (model, "deep"))
        energy, stderr = at["log_energy"].values, at["log_energy_stderr"].values
        expected = {"claimed": at["log_energy_mean_field"].values, "rival": stack["log_energy_mean_field"].values}
        parts.append(contest(energy, stderr, **expected, allowance=finite_width(dataset.attrs["width"])))
    return joined(parts)


@JUDGES.decide(
    claim="Tied loops stay bounded under eps = 1/L",
    source="theorem 1",
    rival="they stay so under eps = L^(-1/2) too",
    measured="the growth of ln H over the deeper half of the loops, less that of the mean field, which converges",
)
def judge_tied_bounded(dataset: xr.Dataset) -> Contest:
    return _bounded(dataset, "looped", "linear", "sqrt")


@JUDGES.decide(
    claim="Energies of tied loops converge as loops are added at alpha >= 1, and at no smaller alpha",
    brief="Energies of tied loops converge with more loops at alpha >= 1, and only there",
    source="theorem 1",
    rival="they grow as a power of L, however small, at some alpha >= 1, or converge below",
    measured="by what factor the growth of ln H over a doubling of the loops changes with the next doubling, in the "
    "mean field: 1 for a power law",
)
def judge_threshold(dataset: xr.Dataset) -> Ruling:
    energy = dataset["log_energy_by_alpha"].transpose("alpha", "far_loops").values
    return threshold_ruling(dataset["alpha"].values, energy, 1.0, int(dataset["far_loops"][-1]))


def threshold_ruling(alpha: Array, log_energy: Array, threshold: float, loops: int) -> Ruling:
    """Whether energies converge from this alpha on and not below, by the last three doublings: ln H (alpha, loops)."""
    growth = np.diff(log_energy[:, -3:], axis=1)
    factors = growth[:, 1] / growth[:, 0]
    inside = np.where(alpha >= threshold, 1 - factors, factors - 1).min()
    verdict = Verdict.CONFIRMED if inside > NEAR else Verdict.REFUTED if inside < -NEAR else Verdict.INCONCLUSIVE
    words = ", ".join(f"{factor:.3f} (alpha = {a:g})" for a, factor in zip(alpha, factors, strict=True))
    power = f"exact: a factor {NEAR:g} or more on the wrong side of 1 is refuted"
    return Ruling(verdict, f"factors {words} at {loops} loops", power=power)


@JUDGES.decide(
    claim="C_L = H_L - H_0 goes as (eps L)^2 at alpha >= 1, where H = O(1)",
    source="theorem 1",
    rival="as eps^2 L, as for independent steps",
    measured="its slope in L over the last doubling of the loops, less 2 (1 - alpha), mean field",
)
def judge_expansion(dataset: xr.Dataset) -> Ruling:
    at = dataset.sel(alpha=dataset["alpha"] >= 1).isel(far_loops=[-2, -1])
    correlation = np.log(np.expm1(at["log_energy_by_alpha"].transpose("alpha", "far_loops").values))
    beyond = np.diff(correlation, axis=1)[:, 0] / np.log(2.0) - 2 * (1 - at["alpha"].values)
    words = ", ".join(f"{gap:+.4f} (alpha = {a:g})" for a, gap in zip(at["alpha"].values, beyond, strict=True))
    return computed(beyond, 0.0, -1.0, NEAR, f"slopes beyond 2 (1 - alpha): {words}")


@JUDGES.decide(
    claim="Independent stacks stay bounded under eps = L^(-1/2)",
    source="appendix B",
    rival="they stay so unscaled too",
    measured="the growth of ln H over the deeper half of the steps, less that of the mean field, which converges",
)
def judge_independent_bounded(dataset: xr.Dataset) -> Contest:
    return _bounded(dataset, "deep", "sqrt", "none")


@JUDGES.decide(
    claim="Independent stacks grow as (1 + c eps^2)^L",
    source="appendix B",
    rival="they grow as tied loops do",
    measured="ln H_L, c = sigma_W^2 / 2 for ReLU; not of unscaled stacks, as rare draws make their mean",
)
def judge_independent_growth(dataset: xr.Dataset) -> Contest:
    scaled = dataset.sel(scaling=["sqrt", "linear"])
    drawn, stderr = (scaled[f"log_energy{end}"].sel(model="deep").values.ravel() for end in ("", "_stderr"))
    own, tied = (scaled["log_energy_mean_field"].sel(model=model).values.ravel() for model in ("deep", "looped"))
    return contest(drawn, stderr, claimed=own, rival=tied, allowance=finite_width(dataset.attrs["width"]))


@JUDGES.decide(
    claim="Energies of independent stacks converge as steps are added at alpha >= 1/2, and at no smaller alpha",
    brief="Energies of independent stacks converge with depth at alpha >= 1/2, and only there",
    source="appendix B",
    rival="they grow as a power of L, however small, at some alpha >= 1/2, or converge below",
    measured="by what factor the growth of ln H over a doubling of the steps changes with the next one, by the law (1 "
    "+ c eps^2)^L that is judged on draws",
)
def judge_independent_threshold(dataset: xr.Dataset) -> Ruling:
    shared = {name: dataset.attrs[name] for name in ("width", "activation", "weight_variance")}
    stacks = [[TiedLoop(depth=steps, alpha=a, tied=False, **shared) for steps in STACK_STEPS] for a in STACK_ALPHAS]
    if not has_closed_energy(stacks[0][0]):
        evidence = f"the law of {shared['activation']} has no closed form"
        return Ruling(Verdict.INCONCLUSIVE, evidence, power="none: nothing is computed")
    energy = np.array([[net.depth * np.logaddexp(0.0, log_increment_gain(net)) for net in nets] for nets in stacks])
    return threshold_ruling(np.array(STACK_ALPHAS), energy, 0.5, STACK_STEPS[-1])


def _bounded(dataset: xr.Dataset, model: str, scaling: str, looser: str) -> Contest:
    """ln H grows by no more than in the mean field, which converges as 1/L; rival: the same of the looser scaling."""
    own, other = (dataset.sel(model=model, scaling=name) for name in (scaling, looser))
    (growth, stderr), (unbounded, error) = _growth(own), _growth(other)
    theory = _rise(own["log_energy_mean_field"])
    granted = finite_width(dataset.attrs["width"])
    words = f"ln H grows by {growth:.3f} +- {stderr:.3f}, mean field {theory:.3f}, under the looser scaling by"
    claim, rival = Deviation(growth - theory, stderr, granted), Deviation(unbounded - theory, error, granted)
    return Contest(claim, rival, shown=f"{words} {unbounded:.3g}", apart=unbounded - theory)


@JUDGES.decide(
    claim="Tied loops under eps = L^(-1/2), outside the condition H = O(1), grow as eps^2 L^2 = L too",
    brief="Tied loops under eps = L^(-1/2) grow as eps^2 L^2 = L (outside the premise H = O(1))",
    source="the formula of theorem 1",
    rival="they grow exponentially in sqrt(L), as in the mean field",
    measured="the slope in L of C_L over the deeper half of the loops",
)
def judge_printed_growth(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(model="looped", scaling="sqrt").isel(loops=DEEPER_HALF)
    correlation = Series.of(at, "correlation_term")
    far = correlation.slope_of("loops", at["log_correlation_term_mean_field"].values)
    words = f"slope {{laws}} over {span(at['loops'])}, mean field {far:.3f}"
    slack = finite_width(dataset.attrs["width"])
    return slope_contest(correlation.law("loops"), claimed=1.0, rival=far, allowance=slack, shown=words)


@JUDGES.decide(
    claim="Increments of any two steps are correlated in loops, and uncorrelated in deep stacks",
    brief="Increments of any two steps correlate in loops, and do not in deep stacks",
    source="figure 2",
    rival="they do not correlate in loops either",
    measured="correlation coefficients of every two different steps; {least} or less counts as none",
)
def judge_correlations(dataset: xr.Dataset) -> Contest:
    apart = ~np.eye(dataset.sizes["increment"], dtype=bool)
    (looped, error), (deep, stderr) = (_correlations(dataset.sel(model=m), apart) for m in ("looped", "deep"))
    least = int(np.argmin(looped - error))
    lacking = Deviation(np.maximum(UNCORRELATED - looped, 0.0), error)
    claim = Deviation.joined([Deviation(deep, stderr, UNCORRELATED), lacking])
    words = f"least in loops {looped[least]:.3f} +- {error[least]:.3f}, largest in stacks {np.abs(deep).max():.3f}"
    made = Contest(claim, Deviation(looped, error, UNCORRELATED), unit="in a correlation coefficient")
    return made.saying(words, least=f"{UNCORRELATED:g}")


def _correlations(at: xr.Dataset, steps: Array) -> tuple[Array, Array]:
    mean, stderr = (at[f"increment_correlation{end}"].values[steps] for end in ("", "_stderr"))
    return mean, stderr


@JUDGES.decide(
    claim="The cross term B_L does not grow with the width at a fixed eps L",
    source="appendix C.2",
    rival="it grows as N^(1/2)",
    measured="the slope in N of its standard deviation; a bound allows for one that falls",
)
def judge_cross_in_width(dataset: xr.Dataset) -> Contest:
    return _at_most(dataset, "cross_width", 0.0, 0.5)


@JUDGES.decide(
    claim="The cross term B_L does not grow as loops are added at a fixed eps L",
    source="appendix C.2",
    rival="it grows as L^(1/2)",
    measured="the slope in L of its standard deviation; a bound allows for one that falls",
)
def judge_cross_in_loops(dataset: xr.Dataset) -> Contest:
    return _at_most(dataset, "cross_loops", 0.0, 0.5)


@JUDGES.decide(
    claim="The cross term B_L falls with eps L in proportion, or faster",
    source="appendix C.2",
    rival="as (eps L)^(1/2)",
    measured="the slope in eps L of its standard deviation, down from eps L = 1",
)
def judge_cross_in_eps(dataset: xr.Dataset) -> Contest:
    return _at_most(dataset, "cross_eps_loops", 1.0, 0.5)


@JUDGES.decide(
    claim="The cross term B_L vanishes with the width, as N^(-1/2)",
    rival="it is eps L times a constant",
    measured="the slope in N of its standard deviation",
)
def judge_cross_term(dataset: xr.Dataset) -> Contest:
    law = _cross_law(dataset, "cross_width")
    return slope_contest(law, claimed=-0.5, rival=0.0, shown="exponent {laws}")


def _at_most(dataset: xr.Dataset, along: str, bound: float, rival: float) -> Contest:
    """The exponent of the cross term is not beyond a bound, on the side of the rival."""
    law = _cross_law(dataset, along)
    side = np.sign(rival - bound)
    beyond = max(side * (law.exponent - bound), 0.0)
    sides = Deviation(beyond, law.stderr), Deviation(law.exponent - rival, law.stderr)
    words = f"exponent {shown_laws(law)} over {span(dataset[along])}"
    return Contest(*sides, shown=words, apart=abs(rival - bound))


def _cross_law(dataset: xr.Dataset, along: str) -> PowerLaw:
    return Series.of(dataset, f"{along}_spread").law(along)


def _growth(at: xr.Dataset) -> tuple[float, float]:
    """The rise of the drawn ln H, and its standard error."""
    first, *_, last = at["log_energy_stderr"].values[DEEPER_HALF]
    return _rise(at["log_energy"]), float(np.hypot(first, last))


def _rise(log_energy: xr.DataArray) -> float:
    """ln H at the most loops less ln H at the first of the deeper half."""
    first, *_, last = log_energy.values[DEEPER_HALF]
    return float(last - first)


CLAIMS = (
    Claim(
        id="L1a",
        kind=Kind.AS_STATED,
        source="Wang et al. 2026, theorem 1",
        statement="energies of tied loops are bounded if and only if alpha >= 1, where H_L = H_0 + O(eps L) + "
        "Theta(eps^2 L^2) (the middle part, the cross term B_L, is 0 at infinite width)",
        brief="energies of tied loops are bounded if and only if alpha >= 1",
        printed='"to keep residual energy bounded as L -> infinity, one needs eps L = O(1), i.e. alpha >= 1" (theorem '
        "1)",
        hypotheses="H_l = O(1), W'W = sigma_W^2 I, features that overlap on average by a positive constant",
        checks=checks(NAME, judge_tied_bounded, judge_threshold, judge_expansion),
    ),
    Claim(
        id="L1b",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, figure 2, sections 1 and 4; theorem 1 has the formula under the condition H = O(1)",
        statement="below alpha = 1 energies of tied loops grow as eps^2 L^2 = L^(2 - 2 alpha)",
        printed='"driving the quadratic Theta(eps^2 L^2) variance accumulation in weight-tied architectures" '
        "(figure 2)",
        hypotheses="those of L1a without H_l = O(1)",
        checks=checks(NAME, judge_printed_growth),
        replaced_by="exp(2 tau) up to powers, tau = sigma_W sqrt(q) L^(1 - alpha): growth feeds on itself",
        premise="the formula takes H = O(1), which fails below alpha = 1; theorem 1 states that condition, sections 1 "
        "and 4 leave it out",
    ),
    Claim(
        id="L2",
        kind=Kind.AS_STATED,
        source="Wang et al. 2026, appendix B",
        statement="H_L = (1 + c eps^2)^L H_0 with independent weights, bounded if and only if alpha >= 1/2",
        brief="deep stacks have H_L = (1 + c eps^2)^L H_0, bounded if and only if alpha >= 1/2",
        printed='"E[H_L] ~= (1 + c eps^2)^L H_0 ... Hence bounded energy for large L requires alpha >= 1/2" '
        "(appendix B)",
        hypotheses="weights independent over steps",
        checks=checks(NAME, judge_independent_growth, judge_independent_bounded, judge_independent_threshold),
    ),
    Claim(
        id="L3",
        kind=Kind.AS_STATED,
        source="Wang et al. 2026, figure 2, appendix C.1",
        statement="increments of any two steps are correlated in loops, and uncorrelated in deep stacks",
        brief="increments of any two steps are correlated in loops, not in deep stacks",
        printed='"(a) Deep (Non-shared): Correlations are concentrated near the diagonal. (b) Looped (Shared): '
        'Correlations remain positive over off-diagonal pairs" (figure 2)',
        hypotheses="those of L1a",
        checks=checks(NAME, judge_correlations, judge_mean_field),
    ),
    Claim(
        id="L4",
        kind=Kind.AS_STATED,
        source="Wang et al. 2026, appendix C.2",
        statement="the cross term B_L is at most of order eps L, whatever the width (judged: its standard deviation "
        "over nets; with the width it even vanishes, as N^(-1/2))",
        brief="the cross term B_L is at most of order eps L, whatever the width",
        printed='"as long as H_l = O(1). Hence |B_L| = O(eps L)" (appendix C.2)',
        hypotheses="H_l = O(1): eps L = 1 for 16 loops over widths, for 4 to 64 loops at width 128, and eps L from 1/8 "
        "to 1 for 16 loops",
        checks=checks(NAME, judge_cross_in_width, judge_cross_in_loops, judge_cross_in_eps, judge_cross_term),
    ),
)


WORDS = {
    "ln H": "logarithm of |h_L|^2 / N, 0 at the start.",
    "none": "eps = 1; sqrt: eps = L^(-1/2); linear: eps = 1/L.",
    "spread of B": "standard deviation over draws of the cross term B_L = 2 <h_0, h_L - h_0> / N, the part of "
    "H_L - H_0 that is linear in the change of the stream.",
}
TITLES = {"looped": "Looped: one matrix for all steps", "deep": "Deep: a matrix for every step"}
EPS = {"none": "eps = 1", "sqrt": "eps = L^(-1/2)", "linear": "eps = 1/L"}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    last = dataset["log_energy"].sel(model="looped").isel(loops=-1)
    grown, bounded = (float(last.sel(scaling=name)) for name in ("sqrt", "linear"))
    at_end = f"after {int(last['loops'])} steps ln(H_L / H_0) = {grown:.3g}; under 1/L it is {bounded:.3g}"
    return answer([judge_printed_growth(dataset)], at_end)


def _energy_column(scaling: str) -> Column:
    header = [f"ln H, {EPS[scaling]}", "mean field", "s.e."]
    return Column(header, lambda at: against(at.sel(scaling=scaling), "log_energy"))


def _energy_tables(dataset: xr.Dataset) -> list[Grid]:
    columns = [*map(_energy_column, EPS)]
    tables = {model: Table("energy table", title, ["loops"], "loops", columns) for model, title in TITLES.items()}
    return [made(dataset.sel(model=model)) for model, made in tables.items()]


def _far_column(model: str, scaling: str) -> Column:
    at_net = {"model": model, "scaling": scaling}
    return Column(f"{model}, {scaling}", lambda at: number(float(at["log_energy_far"].sel(at_net))))


FAR_TABLE = Table(
    "far table",
    "ln H of the mean field, far up",
    ["far_loops"],
    "loops",
    [_far_column(*net) for net in product(TITLES, EPS)],
)


def _far_table(dataset: xr.Dataset) -> Grid:
    """At every other number of loops."""
    return FAR_TABLE(dataset.isel(far_loops=slice(None, None, 2)))


def _correlation_table(dataset: xr.Dataset) -> Grid:
    count, lines = dataset.sizes["increment"], []
    for model, distance in product(TITLES, (1, count // 2, count - 1)):
        at = dataset.sel(model=model)
        both = (at[f"increment_correlation{end}"].values for end in ("", "_mean_field"))
        lines.append([model, str(distance), *(number(np.diagonal(matrix, distance).mean()) for matrix in both)])
    title = f"Correlation of increments at a distance, mean over {count} steps (looped: 1/L, deep: L^(-1/2))"
    return table(["model", "distance", "drawn", "mean field"], lines, title)


def _cross_table(along: str, key: str, where: str, *times: Column) -> Table:
    """The spread of B along one of its sizes; ``times`` another column, in units that make it constant."""
    spread = Column("spread of B", f"{along}_spread")
    return Table("cross tables", f"Cross term B_L of one draw, looped: {where}", [along], key, [spread, *times])


def _in_powers(header: str, along: str, power: float) -> Column:
    return Column(header, lambda at: drawn(at, f"{along}_spread", float(at[along]) ** power))


CROSS_TABLES = [
    _cross_table(
        "cross_width", "width N", "{fixed_loops} loops, eps = 1/L", _in_powers("times sqrt(N)", "cross_width", 0.5)
    ),
    _cross_table("cross_loops", "loops L", "width {fixed_width}, eps = 1/L"),
    _cross_table(
        "cross_eps_loops",
        "eps L",
        "{fixed_loops} loops, width {fixed_width}",
        _in_powers("over eps L", "cross_eps_loops", -1.0),
    ),
]

REPORT = Report(
    question="Does the energy of weight-tied loops under eps = L^(-1/2) grow as L (Wang et al. 2026)?",
    answer=_answer,
    heading="h <- h + eps W phi(h), width {width}, phi {activation}, sigma_W^2 {weight_variance}\n"
    "{draws} draws for each net, seed {seed}",
    parts=[_energy_tables, _far_table, _correlation_table, *CROSS_TABLES],
    findings=JUDGES.findings,
    words=WORDS,
)


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


if __name__ == "__main__":
    run_as_command(NAME)
