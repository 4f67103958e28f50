"""Zhang et al. 2026 on padding, remark B and lemma 3, and the laws that zero padding follows instead."""

from dataclasses import replace

import numpy as np
import xarray as xr

from meanfield.common import Array, PowerLaw, fit_power_law, log_slope
from meanfield.verification import (
    Claim,
    Contest,
    Deviation,
    Judges,
    Kind,
    Ruling,
    Series,
    Verdict,
    checks,
    computed,
    contest,
    deeper_half,
    only_above,
    shown_laws,
    slope_contest,
    span,
)

# The study whose runs these judges read.
NAME = "cnn_padding"
LABEL_SCALE = "label_learning_rate_scale"
# How near an exponent over one doubling of the grid must be to a limit to be called by its name.
NEAR = 0.15
# Boundary fractions below this are small.
SMALL_FRACTION = 0.5
# Rounding that sums over a set leave in an identity.
ROUNDING = 1e-9

JUDGES = Judges("Zhang et al. 2026")


def _line(dataset: xr.Dataset, place: int) -> str:
    """The grid of one dimension at this place, by rising length."""
    return lines_of(dataset)[place]


def lines_of(dataset: xr.Dataset) -> list[str]:
    """The grids of one dimension, by rising length."""
    return [name for name in map(str, dataset["grid"].values) if name.isdigit()]


def ratio_slope(at: xr.Dataset) -> PowerLaw:
    """Drawn slope of ln(eta* zero / circular) in ln L, of one grid; errors of independent nets."""
    return _scale_slope(at, at[LABEL_SCALE].values)


def theory_ratio_slope(at: xr.Dataset) -> float:
    """The same slope of the mean field, its points weighted as the drawn ones."""
    return _scale_slope(at, at[f"{LABEL_SCALE}_mean_field"].values).exponent


def _scale_slope(at: xr.Dataset, scale: Array) -> PowerLaw:
    """Weighted slope over depths; rows of ``scale`` are zero and circular padding."""
    errors = np.hypot(*Series.of(at, LABEL_SCALE).relative_error.values)
    ratio = scale[0] / scale[1]
    return fit_power_law(at["depth"].values, ratio, errors * ratio)


def layer_decay(at: xr.Dataset) -> tuple[float, float]:
    """Drawn slope of ln(B_l zero / circular) per layer over the deeper half of one grid's deepest nets, its error."""
    deep = deeper_half(at.sizes["layer"])
    layers = np.exp(at["layer"].values[deep])  # slopes of logarithms are taken in ln x: here x = e^l
    zero, circular = (
        log_slope(layers, net["label_term"].values[deep], net["label_term_covariance"].values[deep, deep])
        for net in (at.sel(padding=padding) for padding in ("zero", "circular"))
    )
    return zero.exponent - circular.exponent, float(np.hypot(zero.stderr, circular.stderr))


def theory_layer_decay(at: xr.Dataset) -> float:
    """The same slope in the mean field."""
    deep = deeper_half(at.sizes["layer"])
    zero, circular = (at["label_term_mean_field"].sel(padding=padding).values for padding in ("zero", "circular"))
    return float(np.polyfit(at["layer"].values[deep], np.log(zero / circular)[deep], 1)[0])


def size_exponent(dataset: xr.Dataset, family: str, name: str) -> float:
    """Exponent in N + 1 of one of the depths, over the last two grids of a family that have it.

    Signals vanish one site outside the grid on either side: N + 1 is the length that lambda knows.
    """
    at = dataset[name].sel(family=family).dropna("sites")
    if at.sizes["sites"] < 2:
        return float("nan")
    depths, sites = at.values[-2:], at["sites"].values[-2:]
    return float(np.diff(np.log(depths))[0] / np.diff(np.log(sites + 1))[0])


def correction_exponent(dataset: xr.Dataset, family: str = "1D ReLU") -> float:
    """Exponent in the layer of 1 - (F zero / circular) on the family's largest grid, from layer 4 to a quarter lost."""
    at = dataset.sel(family=family)
    row = int(np.flatnonzero(np.isfinite(at["far_ratio"].values[:, 0]))[-1])
    layer, lost = at["far_layer"].values[row], 1 - at["far_ratio"].values[row]
    in_fit = (layer >= 4) & (lost <= 0.25)
    return float(np.polyfit(np.log(layer[in_fit]), np.log(lost[in_fit]), 1)[0]) if in_fit.sum() > 1 else float("nan")


@JUDGES.decide(
    claim="Zero-padded draws follow the zero-padded mean field",
    rival="the circular one",
    measured="drawn label terms of the deepest zero-padded net on every grid, at every layer",
)
def judge_mean_field(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(padding="zero")
    energy, stderr, granted = (
        at[name].values.ravel() for name in ("label_term", "label_term_stderr", "finite_width_allowance")
    )
    zero, circular = (
        dataset["label_term_mean_field"].sel(padding=padding).values.ravel() for padding in ("zero", "circular")
    )
    claim, rival = (
        Deviation(energy - theory, stderr, only_above(energy, theory, granted)) for theory in (zero, circular)
    )
    words = f"granted above theory alone: {granted.max():.0%} at most; {_one_site(dataset)}"
    made = Contest(claim, rival, shown=words, apart=circular - zero, granted=granted * zero)
    return made.carried_by(at, "label_term").shared_in(at, "label_term")


def _one_site(dataset: xr.Dataset) -> str:
    """What finite width is known to do, beside what is granted."""
    return f"one site with as many units has an excess of {float(dataset['one_site_excess'].values.max()):.1%}"


@JUDGES.decide(
    claim="Padding leaves the exponent of eta* of B over depths {depths}, on every line of which less than half is "
    "boundary",
    rival="it changes as in the mean field",
    source="remark B",
    measured="slopes of ln(eta* zero / circular)",
    brief="Padding keeps eta*'s exponent over depths {depths} where less than half is boundary",
)
def judge_exponent(dataset: xr.Dataset) -> Contest:
    lines = [dataset.sel(grid=name) for name in lines_of(dataset)]
    judged = [at for at in lines if float(at["boundary_fraction"]) < SMALL_FRACTION]
    laws, theory = [ratio_slope(at) for at in judged], [theory_ratio_slope(at) for at in judged]
    depths = dataset["depth"].values
    # Finite width may move each scale by half of its allowance, in opposite directions at worst.
    granted = [0.5 * float(np.log1p(at["finite_width_allowance"].values.max())) for at in judged]
    slack = np.array(granted) / np.log(depths[-1] / depths[0])
    made = slope_contest(*laws, claimed=0.0, rival=theory, allowance=slack)
    others = [at for at in lines if float(at["boundary_fraction"]) >= SMALL_FRACTION]
    words = f"slopes {_slopes_in_words(judged)}" + (f"; not judged: {_slopes_in_words(others)}" if others else "")
    return replace(
        made.shared_in(xr.concat(judged, "grid"), LABEL_SCALE).saying(words, depths=span(depths)),
        note=f"; allowances up to {slack.max():.3f}; {_one_site(dataset)}",
    )


def _slopes_in_words(lines: list[xr.Dataset]) -> str:
    return ", ".join(
        f"{shown_laws(ratio_slope(at))} on {at['grid'].item()} sites (boundary {float(at['boundary_fraction']):.2g}, "
        f"mean field {theory_ratio_slope(at):.3f})"
        for at in lines
    )


@JUDGES.decide(
    claim="The correction by zero padding is the boundary fraction times one constant for all depths",
    rival="times l^(1/2), as signals diffuse inwards",
    source="remark B",
    measured="the power of the layer that the computed correction grows with",
    brief="The correction by zero padding is boundary share times one constant at all depths",
)
def judge_uniform_correction(dataset: xr.Dataset) -> Ruling:
    exponent = correction_exponent(dataset)
    largest = dataset["far_boundary_fraction"].sel(family="1D ReLU").dropna("sites")["sites"].values[-1]
    evidence = f"1 - F zero/circular grows as l^{exponent:.3f} on {largest} sites, computed"
    return _computed(exponent, 0.0, 0.5, evidence)


def _computed(exponent: float, claimed: float, rival: float, evidence: str) -> Ruling:
    """The verdict on a computed exponent; where there is none, what would bring one, which no draws do."""
    made = computed(exponent, claimed, rival, NEAR, evidence)
    open_yet = f"; within {NEAR} of neither: longer lines (--far-lines) decide, draws do not"
    return replace(made, evidence=evidence + open_yet * (made.verdict is Verdict.INCONCLUSIVE))


@JUDGES.decide(
    brief="Zero padding on {grid} sites: label terms decay as lambda^l, ln lambda = {law:.4f}",
    claim="On {grid} sites label terms decay as lambda^l, ln lambda = {law:.4f}",
    rival="no decay: a constant factor",
    measured="the slope in l of ln(B_l zero / circular)",
    cases=[{"grid": ""}],
)
def judge_decay(dataset: xr.Dataset, grid: str) -> Contest:
    """Without a ``grid`` on the shortest line."""
    name = grid or _line(dataset, 0)
    at = dataset.sel(grid=name)
    slope, stderr = layer_decay(at)
    law, theory = float(np.log(at["transport_eigenvalue"])), theory_layer_decay(at)
    deep = np.log1p(at["finite_width_allowance"].values.max(axis=0))[deeper_half(at.sizes["layer"])]
    slack = (deep[-1] - deep[0]) / (len(deep) - 1)
    made = contest(slope, stderr, claimed=law, rival=0.0, allowance=slack).shared_in(at, "label_term")
    drawn = f"drawn {slope:.4f} +- {stderr:.4f} per layer, mean field {theory:.4f}, allowance {slack:.4f}"
    drawn += f"; {_one_site(at)}"
    return made.saying(drawn, grid=name, law=law)


@JUDGES.decide(
    claim="The cubic growth turns into decay at a depth of order (N + 1)^2 (docs/theory.md section 7)",
    brief="Cubic growth turns into decay at a depth of order (N + 1)^2 on N sites (computed)",
    rival="N + 1",
    measured="the power of N + 1 that this depth goes as, computed on the two longest lines of N sites",
)
def judge_turning(dataset: xr.Dataset) -> Ruling:
    exponent, drift = (size_exponent(dataset, family, "turning_depth") for family in ("1D ReLU", "1D ReLU, 2 taps"))
    evidence = f"exponent {exponent:.3f}; two taps, which drift, have {drift:.3f}; computed"
    return _computed(exponent, 2.0, 1.0, evidence)


@JUDGES.decide(
    brief="{family}: padding halves the overlap energy at a depth of order (N + 1)^2",
    claim="{family}: half of the overlap energy is lost at a depth of order (N + 1)^2 (docs/theory.md section 7)",
    rival="N + 1",
    measured="the power of N + 1 that this depth goes as, computed on the two longest lines of N sites",
    cases=[{"family": "1D linear"}, {"family": "1D ReLU"}],
)
def judge_half(dataset: xr.Dataset, family: str) -> Ruling:
    exponent = size_exponent(dataset, family, "half_depth")
    evidence = f"exponent {exponent:.3f} between the two largest lines, computed"
    return _computed(exponent, 2.0, 1.0, evidence)


@JUDGES.decide(
    brief="Sums over k taps miss at most k x boundary x sup|f|, and nothing on a torus",
    claim="Sums over stencils miss at most k bdry sup|f|, and nothing on a torus",
    rival="bdry sup|f|, without the factor k",
    source="lemma 3",
    measured="all sets tried, each with the worst function there is",
)
def judge_missing_terms(dataset: xr.Dataset) -> Ruling:
    bound, largest = dataset["missing_bound"].values, dataset["missing_largest"].values
    wound = dataset["missing_circular"].values  # NaN for sets that no torus has: only rectangles can be wound up
    torus = float(np.nanmax(wound)) if np.isfinite(wound).any() else np.nan
    holds = bool(np.all(largest <= bound + ROUNDING)) and torus <= ROUNDING
    without = largest * dataset["set_taps"].values / bound
    broken = bool(np.any(without > 1 + ROUNDING))
    known = np.isfinite([*largest.ravel(), *bound.ravel(), torus]).all()
    verdict = Verdict.CONFIRMED if holds and broken else Verdict.INCONCLUSIVE if holds or not known else Verdict.REFUTED
    evidence = f"at most {(largest / bound).max():.3f} of the bound is reached; {without.max():.3g} times the rival's"
    open_yet = "; no set breaks the rival's bound: sets with more taps decide, draws do not"
    evidence += f"; on a torus {torus:.0e}{open_yet * (verdict is Verdict.INCONCLUSIVE)}"
    return Ruling(verdict, evidence, power=f"exact: any sum beyond the bound by {ROUNDING:g} is refuted")


CLAIMS = (
    Claim(
        id="A7a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, remark B",
        statement="zero padding corrects eta* by the boundary fraction times a constant, whatever the depth (judged: "
        "the overlap energy)",
        brief="zero padding corrects eta* by the boundary fraction times a constant",
        printed='"an additive error term of order O(bdry(Lambda_h, K_h)). This produces only lower-order '
        'multiplicative corrections to eta*" (remark B)',
        hypotheses="a small boundary fraction; the remark has it for one layer, and proposition 3.3, whose constants "
        "do not depend on L, for all",
        checks=checks(NAME, judge_uniform_correction),
        replaced_by="a correction of the boundary fraction times l^0.6 (computed, 64 sites), as the boundary layer "
        "grows inwards; at a depth of the order of N^2 growth turns into the decay lambda^(2 l) of overlap energies",
        premise="the error of one layer is taken for that of all; what leaves the grid is lost at every layer",
    ),
    Claim(
        id="A7b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, remark B, section E.2",
        statement="zero padding leaves the exponent of eta*",
        printed='"only lower-order multiplicative corrections to eta* and does not change the depth exponent" (remark '
        "B)",
        hypotheses="a small boundary fraction: lines of which less than half is boundary",
        checks=checks(NAME, judge_exponent),
        undecided="more channels: the change that the mean field has, 0.06 to 0.33, is about as large as what so few "
        "channels may move the exponent by, 0.18, and no number of draws tells the two apart",
    ),
    Claim(
        id="A8",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 3, eq. 24",
        statement="sums over stencils miss at most k bdry sup|f| under zero padding, and nothing on a torus",
        brief="sums over stencils miss k bdry sup|f| at most under zero padding, 0 on a torus",
        printed='"... <= k bdry(Lambda, K) |f|_inf. In particular, under circular padding the left-hand side is 0" '
        "(lemma 3, eq. 24)",
        hypotheses="none: any finite grid and set of offsets",
        checks=checks(NAME, judge_missing_terms),
        identity=True,
    ),
)
