"""Zhang et al. 2026 on stencils and grids: slope and prefactor of the label term's eta*(L) of convolutional nets."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common.estimates import PowerLaw
from meanfield.common.validation import Array, takes
from meanfield.verification.claims import Claim, Kind, checks, of_rival
from meanfield.verification.judges import Contest, Judges, contest
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.series import drawn_law, theory_slope
from meanfield.verification.verdicts import Deviation
from meanfield.verification.zhang_2026.plain_nets.channel_corrections import gram_term
from meanfield.verification.zhang_2026.plain_nets.overlap_conservation import CHANNEL_FINDINGS

SCALE = "label_learning_rate_scale"
# Slopes that the paper fitted to trained nets by stencil size (appendix E.3, figure 7).
PRINTED = {3: -1.74, 4: -1.44, 5: -1.46}

# Judges of `sims.cnn_finite_channels`.
JUDGES = Judges("Zhang et al. 2026", draws="draws_slope", findings=CHANNEL_FINDINGS)
findings = JUDGES.findings


@takes(xr.Dataset)
def drawn_slope(at: xr.Dataset) -> PowerLaw:
    """Slope over the depths of one stencil's drawn scales."""
    return drawn_law(at, "depth", SCALE)


@takes(xr.Dataset)
def mean_field_slope(at: xr.Dataset) -> float:
    """The same slope of the mean field, its points weighted as the drawn ones."""
    return theory_slope(at, "depth", SCALE, np.log(at[f"{SCALE}_mean_field"].values))


def finite_width_slack(at: xr.Dataset) -> float:
    """What finite width does to the slope of one site with as many units, exactly."""
    return abs(theory_slope(at, "depth", SCALE, at["log_one_site_shift"].values))


def prefactor(at: xr.Dataset) -> tuple[float, float]:
    """Mean over depths of log(drawn / mean field), weighted by its errors, and its standard error."""
    relative = (at[f"{SCALE}_stderr"] / at[SCALE]).values
    weight = relative**-2 / np.sum(relative**-2)
    return float(weight @ np.log((at[SCALE] / at[f"{SCALE}_mean_field"]).values)), float(np.sum(relative**-2) ** -0.5)


@JUDGES.decide
def judge_slopes(dataset: xr.Dataset) -> Contest:
    """eta* of the label term falls as the mean field says, on every grid and stencil; rival: eta* of the label term
    falls as L^(-3/2) on every grid and stencil; measured: slopes in L of every stencil, and their mean."""
    slope, stderr, expected, slack = (np.append(column, column.mean()) for column in _slopes(dataset))
    stderr[-1] /= np.sqrt(stderr.size - 1)
    words = f"mean slope {slope[-1]:.3f}, mean field {expected[-1]:.3f}"
    return contest(slope, stderr, claimed=expected, rival=PAPERS_EXPONENT, allowance=slack, shown=words)


@JUDGES.decide
def judge_one_exponent(dataset: xr.Dataset) -> Contest:
    """The exponent does not depend on stencil, grid or dimension; rival: slopes for 3, 4, 5 taps as far apart as
    those that the paper fitted, -1.74, -1.44, -1.46 (appendix E.3); source: proposition 3.3; measured: slopes less
    their mean, granted as much as the mean field's differ."""
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


@JUDGES.decide
def judge_prefactors(dataset: xr.Dataset) -> Contest:
    """Prefactors are the mean field's: as 1/taps, and more sites more; rival: eta* of the label term has one prefactor,
    whatever the kernel and the grid; measured: log ratios to the first stencil's, granted half the Gram terms of
    both."""
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
        checks=checks("cnn_finite_channels", of_rival(judge_prefactors)),
        replaced_by="kappa ~ 1/taps, and larger on more sites",
        premise="fan-in cancels the taps in overlaps of values; the change by a layer's weights is a sum over taps",
    ),
)
