"""Zhang et al. 2026, 2025 on finite channels, and on the stencils and grids of convolutional nets.

How the label term's correction goes with channels and depth; what a layer does to overlaps; slope and prefactor of the
label term's eta*(L) by stencil. Claims that rest on runs of other studies too stand in `sims.claims.across`.
"""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common import Array, PowerLaw
from meanfield.verification import (
    PAPERS_EXPONENT,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Series,
    checks,
    contest,
    effective_draws,
    largest_share,
    of_rival,
)
from sims.common.pairs import added_variance_judge, conditional_mean_judge, effective_overlap_draws

# The study whose runs these judges read.
NAME = "cnn_finite_channels"
CORRECTION = "finite_channel_correction"
SCALE = "label_learning_rate_scale"
# Corrections per C that a function of L/C leaves open: of one layer (3/C for ReLU, see `finite_width`), as sites differ
# in the first layers; and of the Gram matrix of S sites seen through k taps, (S + 1) / (C k).
ONE_LAYER = 3.0
# Slopes that the paper fitted to trained nets by stencil size (appendix E.3, figure 7).
PRINTED = {3: -1.74, 4: -1.44, 5: -1.46}

# Of a run, over which the false-alarm budget is split.
FINDINGS = 8
OF_CORRECTIONS = Judges(
    "Zhang et al. 2026",
    findings=FINDINGS,
    effective=lambda dataset: effective_draws(dataset, "label_term"),
    largest_share=lambda dataset: largest_share(dataset, CORRECTION),
)
OF_OVERLAPS = Judges("Zhang et al. 2026", findings=FINDINGS, effective=effective_overlap_draws)
OF_STENCILS = Judges("Zhang et al. 2026", draws="draws_slope", findings=FINDINGS)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every claim on corrections, on what a layer does to an overlap, and on stencils."""
    return [finding for judges in (OF_CORRECTIONS, OF_OVERLAPS, OF_STENCILS) for finding in judges.findings(dataset)]


@OF_CORRECTIONS.decide(
    claim="Corrections are O(1/C) uniformly in depth: at fixed C they do not grow with L",
    rival="they grow as L",
    source="section 3.3, eq. 27",
    measured="means over channels, least against greatest L/C",
)
def judge_uniform_in_depth(dataset: xr.Dataset) -> Contest:
    return _ends(dataset, "depth_over_channels", "channels").contest(0.0, 1.0, "L")


@OF_CORRECTIONS.decide(
    claim="Corrections are a function of L/C: at fixed L/C they do not change with C",
    rival="corrections fall as 1/C, uniformly in depth (Zhang et al. 2026, section 3.3; Zhang et al. 2025, theorem 2)",
    measured="means over L/C in proportion to it, fewest against most channels",
)
def judge_function_of_ratio(dataset: xr.Dataset) -> Contest:
    return _ends(dataset, "channels", "depth_over_channels").contest(0.0, -1.0, "C")


@OF_CORRECTIONS.decide(
    claim="Sites do not count as channels do: the correction is that of one site with C units, but for terms of 1/C",
    rival="that of C x sites units, the paper's effective width",
    measured="means over channels at each L/C",
)
def judge_one_site_law(dataset: xr.Dataset) -> Contest:
    means = dataset.mean("channels")
    drawn, one_site, effective = (means[f"{CORRECTION}{end}"].values for end in ("", "_one_site", "_effective_width"))
    stderr = ((dataset[f"{CORRECTION}_stderr"] ** 2).sum("channels") ** 0.5).values / dataset.sizes["channels"]
    open_terms = ONE_LAYER + gram_term(float(dataset.attrs["sites"]), float(dataset.attrs["taps"]))
    slack = open_terms * float((1 / dataset["channels"]).mean()) * (1 + one_site)
    return contest(drawn, stderr, claimed=one_site, rival=effective, allowance=slack)


def gram_term(sites: float, taps: float) -> float:
    """C times the relative excess of the mean squared Gram matrix of white inputs (see `finite_width`)."""
    return (sites + 1) / taps


class _Ends:
    """Mean corrections at two ends of an axis, a ``factor`` apart."""

    def __init__(self, low: xr.Dataset, high: xr.Dataset, factor: float) -> None:
        self.factor = factor
        self.drawn, self.stderr, self.one_site = (
            np.array([float(end[CORRECTION + name]) for end in (low, high)]) for name in ("", "_stderr", "_one_site")
        )

    def contest(self, claimed: float, rival: float, letter: str) -> Contest:
        """Two power laws between the ends; what one site's exact law lacks of a function of L/C is granted to both."""
        slack = min(self._lack(claimed), self._lack(rival))
        sides = (self._deviation(exponent, slack) for exponent in (claimed, rival))
        apart, back = (self.drawn[0] * (self.factor**steeper - 1) for steeper in (rival - claimed, claimed - rival))
        return Contest(*sides, shown=self._shown(letter), apart=apart, back=back)

    def _deviation(self, exponent: float, slack: float) -> Deviation:
        """High over factor^exponent, less low: linear in the draws, so that no correction need be positive."""
        scale = np.array([-1.0, self.factor**-exponent])
        return Deviation(scale @ self.drawn, np.hypot(*(scale * self.stderr)), slack)

    def _lack(self, exponent: float) -> float:
        """How far the exact correction of one site is from the power law between the same ends."""
        return float(abs(self.factor**-exponent * self.one_site[1] - self.one_site[0]))

    def _shown(self, letter: str) -> str:
        """Drawn ends, and the exponent between them where it exists."""
        low, high = self.drawn
        both = low > 0 and high > 0
        exponent = f", as {letter}^{np.log(high / low) / np.log(self.factor):+.2f}" if both else ""
        (a, b), (da, db) = self.drawn, self.stderr
        return f"from {a:.3g} +- {da:.2g} to {b:.3g} +- {db:.2g}{exponent}"


def _ends(dataset: xr.Dataset, along: str, over: str) -> _Ends:
    """Ends of an axis of independent points averaged over another, over L/C in proportion to it."""
    weight: Any = 1 / dataset[over] if over == "depth_over_channels" else xr.ones_like(dataset[over])
    corrections = dataset[[name for name in dataset.data_vars if str(name).startswith(CORRECTION)]] * weight
    stderr = np.sqrt((corrections[f"{CORRECTION}_stderr"] ** 2).sum(over)) / dataset.sizes[over]
    means = corrections.mean(over).assign({f"{CORRECTION}_stderr": stderr})
    axis = dataset[along]
    return _Ends(means.isel({along: 0}), means.isel({along: -1}), float(axis[-1] / axis[0]))


judge_conditional_mean, judge_added_variance = conditional_mean_judge(OF_OVERLAPS), added_variance_judge(OF_OVERLAPS)


def drawn_slope(at: xr.Dataset) -> PowerLaw:
    """Slope over the depths of one stencil's drawn scales."""
    return Series.of(at, SCALE).law("depth")


def mean_field_slope(at: xr.Dataset) -> float:
    """The same slope of the mean field, its points weighted as the drawn ones."""
    return Series.of(at, SCALE).slope_of("depth", np.log(at[f"{SCALE}_mean_field"].values))


def finite_width_slack(at: xr.Dataset) -> float:
    """What finite width does to the slope of one site with as many units, exactly."""
    return abs(Series.of(at, SCALE).slope_of("depth", at["log_one_site_shift"].values))


def prefactor(at: xr.Dataset) -> tuple[float, float]:
    """Mean over depths of log(drawn / mean field), weighted by its errors, and its standard error."""
    relative = Series.of(at, SCALE).relative_error.values
    weight = relative**-2 / np.sum(relative**-2)
    return float(weight @ np.log((at[SCALE] / at[f"{SCALE}_mean_field"]).values)), float(np.sum(relative**-2) ** -0.5)


@OF_STENCILS.decide(
    claim="eta* of the label term falls as the mean field says, on every grid and stencil",
    rival="eta* of the label term falls as L^(-3/2) on every grid and stencil",
    measured="slopes in L of every stencil, and their mean",
)
def judge_slopes(dataset: xr.Dataset) -> Contest:
    slope, stderr, expected, slack = (np.append(column, column.mean()) for column in _slopes(dataset))
    stderr[-1] /= np.sqrt(stderr.size - 1)
    words = f"mean slope {slope[-1]:.3f}, mean field {expected[-1]:.3f}"
    return contest(slope, stderr, claimed=expected, rival=PAPERS_EXPONENT, allowance=slack, shown=words)


@OF_STENCILS.decide(
    claim="The exponent does not depend on stencil, grid or dimension",
    rival="slopes for 3, 4, 5 taps as far apart as those that the paper fitted, -1.74, -1.44, -1.46 (appendix E.3)",
    source="proposition 3.3",
    measured="slopes less their mean, granted as much as the mean field's differ",
)
def judge_one_exponent(dataset: xr.Dataset) -> Contest:
    slope, stderr, expected, _ = _slopes(dataset)
    drawn = {count: _mean_slope(dataset["taps"].values == count, slope, stderr) for count in PRINTED}
    (first, error), *by_stencil = drawn.values()
    printed = np.array(list(PRINTED.values()))
    apart, errors = (np.array(column) for column in zip(*by_stencil, strict=True))
    claim = Deviation(slope - slope.mean(), stderr, np.abs(expected - expected.mean()))
    rival = Deviation(apart - first - (printed[1:] - printed[0]), np.hypot(errors, error))
    as_printed = np.array([PRINTED.get(int(count), np.nan) for count in dataset["taps"].values])
    way = np.nan_to_num(as_printed - np.nanmean(as_printed))
    return Contest(claim, rival, shown=f"slopes {slope.min():.3f} .. {slope.max():.3f}", apart=way)


@OF_STENCILS.decide(
    claim="Prefactors are the mean field's: as 1/taps, and more sites more",
    rival="eta* of the label term has one prefactor, whatever the kernel and the grid",
    measured="log ratios to the first stencil's, granted half the Gram terms of both",
)
def judge_prefactors(dataset: xr.Dataset) -> Contest:
    ratio, stderr, expected, slack = _prefactor_ratios(dataset)
    return contest(ratio, stderr, claimed=expected, rival=0.0, allowance=slack)


def _prefactor_ratios(dataset: xr.Dataset) -> tuple[Array, Array, Array, Array]:
    """Log ratios to the first stencil's: drawn, their errors, the mean field's, and half the Gram terms."""
    stencils = [dataset.isel(stencil=place) for place in range(dataset.sizes["stencil"])]
    excess, error = np.array([prefactor(at) for at in stencils]).T
    expected = np.array([float(np.log(at[f"{SCALE}_mean_field"]).mean()) for at in stencils])
    gram = np.array([gram_term(float(at["sites"]), float(at["taps"])) for at in stencils])
    slack = 0.5 * (gram[1:] + gram[0]) / float(dataset.attrs["slope_channels"])
    apart = expected[1:] - expected[0]
    return excess[1:] - excess[0] + apart, np.hypot(error[1:], error[0]), apart, slack


def _slopes(dataset: xr.Dataset) -> tuple[Array, Array, Array, Array]:
    """Of every stencil: drawn slope, its error, the mean field's, and what finite width may do to it."""
    stencils = [dataset.isel(stencil=place) for place in range(dataset.sizes["stencil"])]
    rows = [(*tuple(drawn_slope(at))[:2], mean_field_slope(at), finite_width_slack(at)) for at in stencils]
    slope, stderr, expected, slack = np.array(rows).T
    return slope, stderr, expected, slack


def _mean_slope(in_fit: NDArray[np.bool_], slope: Array, stderr: Array) -> tuple[float, float]:
    """Of some stencils: the mean of their slopes, and its error."""
    return float(slope[in_fit].mean()), float(np.sqrt(np.square(stderr[in_fit]).sum()) / in_fit.sum())


CLAIMS = (
    Claim(
        id="A23b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2025, theorem 1, appendix B (Zhang et al. 2026, appendix E.3, let kernels move kappa)",
        statement="kappa in eta* = kappa L^(-3/2) depends on neither kernel size nor resolution (judged: the label "
        "term)",
        printed='"is independent of channel widths, kernel sizes, and spatial resolutions" (Zhang et al. 2025, '
        "appendix B)",
        hypotheses="ReLU, circular padding, He's fan-in rule, sides of the grid longer than the kernel's; checked on "
        "stencils of 2 to 9 taps on small grids, with a convolutional readout",
        checks=checks(NAME, of_rival(judge_prefactors)),
        replaced_by="kappa ~ 1/taps, and larger on more sites",
        premise="fan-in cancels the taps in overlaps of values; the change by a layer's weights is a sum over taps",
    ),
)
