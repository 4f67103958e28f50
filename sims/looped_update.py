"""How far one update of a loop's weights moves its stream: |dh_L|^2 / N against loops, residual scaling and width.

There are three updates at learning rate 1: isotropic signs independent of the weights, as theorem 2 of Wang et al. 2026
has them; the aligned sign of the true gradient, as sign-based optimizers make it; and the plain gradient. The scaling
(eta eps L)^2 of the theorem is read off as slopes in L for alpha = 1, 3/2 and 1/2 (eta enters squared, exactly, as
changes are to first order), beside the infinite-width recursion for isotropic updates; and in N, of which the theorem
says nothing.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import PowerLaw
from meanfield.execution import Run
from meanfield.nets import TiedLoop
from meanfield.simulation import UPDATES, StreamUpdates
from meanfield.theory import log_own_energies, log_update_energies
from meanfield.verification import (
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    Series,
    checks,
    contest,
    exponents_of,
    limit_law,
    shown_laws,
    slope_contest,
    span,
)
from sims.common.command import Option, Preset, ladder_of
from sims.common.datasets import ENDS, Axes, Variable, attributes, over, seeded_run
from sims.common.loops import LOOP_OPTIONS, finite_width
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Table, against, drawn, fitted, number

NAME = "looped_update"
LISTED = "how far one update of a loop's weights moves its stream"

# What is asked for.

OPTIONS = (
    Option(
        "loops",
        "numbers of loops to draw, two or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(2, "a slope", why="numbers of loops"),
        group="loop",
    ),
    *LOOP_OPTIONS,
)
PRESETS = {
    "smoke": Preset("3 s", loops=[4, 8, 16], width=128, draws=128),
    "default": Preset("10 s", loops=[8, 16, 32, 64], width=256, draws=256),
    "paper": Preset("80 s", loops=[8, 16, 32, 64], width=1024, draws=256),
}

# What is measured.

ISOTROPIC, *OF_GRADIENTS = UPDATES
ALPHAS = (0.5, 1.0, 1.5)
# Loops at which the recursion's slope in L is taken for its limit.
FAR = (512, 1024)
WIDTH_FACTORS = (0.25, 0.5, 1, 2)

VARIABLES = (
    Variable("update_energy", "change of the stream under one update", "|dh_L|^2 / N at learning rate 1"),
    Variable("by_width", "change of the stream under one update at alpha = 1", "|dh_L|^2 / N, by width"),
    Variable("log_update_energy_mean_field", "ln |dh_L|^2 / N of isotropic updates, by the recursion"),
    Variable("log_own_energy_mean_field", "ln |dh_L|^2 / N of isotropic updates, if no step carried what others moved"),
    Variable("log_update_energy_far", "ln |dh_L|^2 / N of isotropic updates, by the recursion, far up"),
    Variable("update", "update of the loop's weights"),
    Variable("alpha", "exponent of the residual scaling, eps = L^-alpha"),
    Variable("far_loops", "loops L to which the recursion is followed"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of loops, and the longest loop."""
    return {"loops": options.loops, "loop": _loop(options, options.loops[-1], 1.0, options.width)}


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


# What is claimed, and what decides it. Functions of ``at`` read the dataset at one alpha.

# What an exponent over a few doublings of the width may still lack of its limit.
NEAR = 0.1

JUDGES = Judges("Wang et al. 2026")


def printed_exponent(at: xr.Dataset) -> float:
    """Exponent in L of (eta eps L)^2 (eq. 3), from which eta ~ L^(alpha - 1) follows (eq. 4)."""
    return 2 * (1 - float(at["alpha"]))


def drawn_slope(at: xr.Dataset, update: str = ISOTROPIC) -> PowerLaw:
    """Slope in L of what was drawn."""
    return Series.of(at, "update_energy").sel(update=update).law("loops")


def theory_slope(at: xr.Dataset) -> float:
    """Slope in L of the recursion for isotropic updates, its points weighted as the drawn ones."""
    return (
        Series.of(at, "update_energy")
        .sel(update=ISOTROPIC)
        .slope_of("loops", at["log_update_energy_mean_field"].values)
    )


def far_slope(at: xr.Dataset) -> float:
    """Slope in L of the recursion for isotropic updates between the two numbers of loops that are far up."""
    return float(np.diff(at["log_update_energy_far"].values)[0] / np.diff(np.log(at["far_loops"].values))[0])


def width_slope(dataset: xr.Dataset, update: str) -> PowerLaw:
    """Slope in N at alpha = 1."""
    return Series.of(dataset, "by_width").sel(update=update).law("width")


@JUDGES.decide(
    claim="Isotropic updates at alpha >= 1 move the stream as the recursion says",
    rival="no step carries what others moved",
    measured="drawn |dh_L|^2 / N at every number of loops, for every alpha of at least 1",
)
def judge_recursion(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(update=ISOTROPIC, alpha=dataset["alpha"] >= 1)
    theory, own = (np.exp(at[f"log_{name}_energy_mean_field"].values).ravel() for name in ("update", "own"))
    energy, stderr = at["update_energy"].values.ravel(), at["update_energy_stderr"].values.ravel()
    granted = finite_width(dataset.attrs["ladder_width"]) * theory
    return contest(energy, stderr, claimed=theory, rival=own, allowance=granted)


@JUDGES.decide(
    claim="Isotropic updates scale as (eta eps L)^2 at alpha >= 1, so eta ~ L^(alpha-1)",
    source="theorem 2, eq. 3, 4",
    rival="as eta^2 eps^2 L, steps adding up as independent ones",
    measured="slopes in L, less what the recursion's slope over these loops lacks of that over {far} loops",
)
def judge_theorem(dataset: xr.Dataset) -> Contest:
    nets = _stable(dataset)
    laws = list(map(drawn_slope, nets))
    printed = np.array(list(map(printed_exponent, nets)))
    lacking = np.array([theory_slope(at) - far_slope(at) for at in nets])
    slope, stderr = exponents_of(*laws)
    words = ", ".join(
        f"{shown_laws(law)} at alpha = {float(at['alpha']):g}, of which {gap:+.3f} is of finite loops"
        for law, at, gap in zip(laws, nets, lacking, strict=True)
    )
    far = {"far": span(dataset["far_loops"])}
    return contest(slope - lacking, stderr, claimed=printed, rival=printed - 1, shown=f"slopes {words}", words=far)


@JUDGES.decide(
    claim="Signs of the true gradient move the stream as (eta eps L)^2 in L at alpha >= 1 too",
    source="theorem 2, eq. 3, beyond its first premise",
    rival="as eta^2 eps^2 L",
    measured="limits of slopes in L where finite loops correct by c / L, as steps of a differential equation and "
    "powers of (eps L)^2 do; granted what the same fit leaves of the recursion of isotropic updates",
)
def judge_aligned(dataset: xr.Dataset) -> Contest:
    nets = [at.sel(update="aligned") for at in _stable(dataset)]
    laws = [limit_law(at, "loops", "update_energy") for at in nets]
    printed = np.array(list(map(printed_exponent, nets)))
    left = [abs(_recursion_limit(at) - far_slope(at)) for at in nets]
    words = ", ".join(
        f"{shown_laws(law)} at alpha = {float(at['alpha']):g}" for law, at in zip(laws, nets, strict=True)
    )
    return slope_contest(*laws, claimed=printed, rival=printed - 1, allowance=left, shown=f"limits of slopes {words}")


def _stable(dataset: xr.Dataset) -> list[xr.Dataset]:
    """At each alpha under which streams stay bounded."""
    return [dataset.sel(alpha=alpha) for alpha in dataset["alpha"].values if alpha >= 1]


def _recursion_limit(at: xr.Dataset) -> float:
    """What the fit of `judge_aligned` makes of the recursion, its points weighted as the drawn ones."""
    theory = np.exp(at["log_update_energy_mean_field"])
    stderr = theory * at["update_energy_stderr"] / at["update_energy"]
    return limit_law(at.assign(theory=theory, theory_stderr=stderr), "loops", "theory").exponent


@JUDGES.decide(
    claim="Isotropic updates scale as (eta eps L)^2 = eta^2 L at alpha = 1/2, outside the premise eps L = O(1), too",
    brief="At alpha = 1/2, outside the premise eps L = O(1), isotropic updates scale as eta^2 L",
    source="the formula of theorem 2",
    rival="exponentially in sqrt(L), as the recursion says",
    measured="the slope in L of drawn |dh_L|^2 / N",
)
def judge_below_threshold(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(alpha=0.5)
    law, theory = drawn_slope(at), theory_slope(at)
    words = f"slope {shown_laws(law, digits=2)}, recursion {theory:.2f}"
    slack = finite_width(dataset.attrs["ladder_width"]) * theory
    return slope_contest(law, claimed=printed_exponent(at), rival=theory, allowance=slack, shown=words)


@JUDGES.decide(
    claim="Signs of the true gradient have |Delta W| = Theta(eta), and move the stream alike at every width",
    brief="Signs of the true gradient have |Delta W| = Theta(eta), alike at every width",
    source="theorem 2, premise 1",
    rival="their norm is eta sqrt(N), and they move it as N",
    measured="the slope in N of drawn |dh_L|^2 / N",
)
def judge_width(dataset: xr.Dataset) -> Contest:
    law, isotropic = width_slope(dataset, "aligned"), width_slope(dataset, ISOTROPIC)
    words = f"slope in N {{laws}}, of isotropic signs {isotropic.exponent:.3f}"
    return slope_contest(law, claimed=0.0, rival=1.0, allowance=NEAR, shown=words)

    return slope_contest(law, claimed=0.0, rival=1.0, allowance=NEAR, shown=words)


CLAIMS = (
    Claim(
        id="L5a",
        kind=Kind.AS_STATED,
        source="Wang et al. 2026, theorem 2",
        statement="|dh_L|^2 / N = Theta((eta eps L)^2) under one isotropic update where eps L = O(1), so that "
        "eta ~ L^(alpha - 1) (the list of contributions prints L^(1 - alpha))",
        brief="an isotropic update moves the stream as (eta eps L)^2, so eta ~ L^(alpha - 1)",
        printed='"E |Delta h_L|^2 / N = Theta((eta eps L)^2) (up to L-independent constants)" (theorem 2)',
        hypotheses="signs with |dW| = Theta(eta), |phi(h_l)|^2 / N = Theta(1), eps L = O(1)",
        checks=checks(NAME, judge_theorem),
    ),
    Claim(
        id="L5b",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, section 1, which has eta ~ L^(alpha - 1) without a condition; theorem 2 has it where "
        "eps L = O(1)",
        statement="below alpha = 1 too, |dh_L|^2 / N goes as (eta eps L)^2",
        printed='"Then (1/N) E[|Delta h_L|^2] = Theta((eta eps L)^2) (up to L-independent constants)" (theorem 2)',
        hypotheses="those of L5a without eps L = O(1)",
        checks=checks(NAME, judge_below_threshold),
        replaced_by="|dh_L|^2 grows exponentially with the stream, as eta^2 L^(1 - alpha) |h_L|^2",
        premise="eps L = O(1) and H = O(1), which the theorem asks for and section 1 leaves out, fail below alpha = 1",
    ),
    Claim(
        id="L5c",
        kind=Kind.PREMISE,
        source="Wang et al. 2026, theorem 2, premise 1",
        statement="sign updates have |dW| = Theta(eta) uniformly in the width: held against the signs of the gradient "
        "of one sample (judged: by how far they move the stream)",
        brief="sign updates have |dW| = Theta(eta) at any width, as one sample's gradient shows",
        printed='"Assume: 1. sign-normalized update scale Delta W_ij = (eta / sqrt(N)) S_ij and |Delta W| = '
        'Theta(eta)" (theorem 2)',
        hypotheses="it is one: theorem 2 assumes it, and appendix D.1 takes updates for isotropic; that it holds at "
        "any width is our reading of Theta(eta)",
        checks=checks(NAME, judge_width),
        replaced_by="they have |dW| = eta sqrt(N) and move the stream by eta^2 N, which asks for eta ~ N^(-1/2); at a "
        "fixed width the theorem's law in L stays (L5d)",
        premise="the gradient of a sample is a sum of few outer products, so that its signs are far from isotropic",
    ),
    Claim(
        id="L5d",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, theorem 2 without its premise on |dW|",
        statement="in L, signs of the true gradient too give (eta eps L)^2 where eps L = O(1), so that "
        "eta ~ L^(alpha - 1) at a fixed width",
        brief="signs of the true gradient too move the stream as (eta eps L)^2",
        printed='"(1/N) E[|Delta h_L|^2] = Theta((eta eps L)^2) ... So depth-invariant one-step output change '
        'requires eta eps L = Theta(1) <=> eta ~ L^(alpha - 1)" (theorem 2)',
        hypotheses="those of L5a without |dW| = Theta(eta)",
        checks=checks(NAME, judge_aligned),
    ),
)

# What is printed.

WORDS = {
    "isotropic": "an update of random signs, independent of the weights.",
    "aligned": "the signs of the true gradient.",
    "gradient": "the gradient itself.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    nets = [dataset.sel(alpha=alpha) for alpha in dataset["alpha"].values]
    slopes = ", ".join(f"{drawn_slope(at).exponent:.2f} (alpha = {float(at['alpha']):g})" for at in nets)
    return answer([judge_theorem(dataset), judge_below_threshold(dataset)], f"slopes in L {slopes}")


def _beside_recursion(at: xr.Dataset) -> list[str]:
    theory = at.assign(update_energy_mean_field=np.exp(at["log_update_energy_mean_field"]))
    return against(theory.sel(update=ISOTROPIC), "update_energy")


def _energy_column(update: str) -> Column:
    return Column(update, lambda at: drawn(at.sel(update=update), "update_energy"))


def _slope_column(update: str) -> Column:
    return Column(update, lambda at: fitted(drawn_slope(at, update)))


ENERGY_TABLE = Table(
    "energy table",
    "|dh_L|^2 / N by update, alpha and loops",
    ["alpha", "loops"],
    ["alpha", "loops"],
    [Column([ISOTROPIC, "mean field", "s.e."], _beside_recursion), *map(_energy_column, OF_GRADIENTS)],
)
SLOPE_TABLE = Table(
    "slope table",
    "Slopes of |dh_L|^2 in L (the eta of a fixed change has minus half the slope)",
    ["alpha"],
    "alpha",
    [
        [_slope_column(ISOTROPIC), Column("mean field", lambda at: number(theory_slope(at)))],
        *map(_slope_column, OF_GRADIENTS),
        Column("(eps L)^2", lambda at: f"{printed_exponent(at):+g}"),
    ],
)


def _width_columns(dataset: xr.Dataset) -> list[Column]:
    """The change at every width, and its slope."""

    def at_width(width: int) -> Column:
        return Column(f"N = {width}", lambda at: drawn(at.sel(width=width), "by_width"))

    slope = Column("slope in N", lambda at: fitted(width_slope(dataset, str(at["update"].values))))
    return [*map(at_width, dataset["width"].values), slope]


WIDTH_TABLE = Table("width table", "By width, alpha = 1, {width_loops} loops", ["update"], "update", _width_columns)

STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="45 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Does one update move a loop's stream by (eta eps L)^2, so that eta ~ L^(alpha - 1)?",
        answer=_answer,
        heading="h <- h + eps W phi(h), one W, eps = L^-alpha, width {ladder_width}, "
        "{activation}, sigma_W^2 {weight_variance}\n"
        "{draws} draws, seed {seed}; |dh_L|^2 / N at learning rate 1, to first order: quadratic in it",
        parts=[ENERGY_TABLE, SLOPE_TABLE, WIDTH_TABLE],
        findings=JUDGES.findings,
        heavy=["update_energy"],
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
