"""Verdicts on depth laws: each comes out on numbers made for it, and the computed ones on what theory says."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t

import meanfield as mf
from meanfield.theory.exact import finite_width_excess, output_share
from meanfield.verification import published
from meanfield.verification.published import COMMON_SWEEP, MeasuredSlope
from meanfield.verification.series import spline_slopes
from meanfield.verification.verdicts import Verdict, judge_computed
from sims import mlp_depth
from sims.learning_rate_scale import claims
from sims.learning_rate_scale.__main__ import depth_grid

SHARES = (0.25, 1.0)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [(-1.45, Verdict.CONFIRMED), (-1.95, Verdict.REFUTED), (-1.7, Verdict.INCONCLUSIVE), (-3.0, Verdict.INCONCLUSIVE)],
)
def test_computed_numbers(values, verdict):
    assert judge_computed(values, -1.5, -2.0, 0.1) is verdict
    assert judge_computed([values, -1.5, -2.0], -1.5, -2.0, 0.1) is Verdict.INCONCLUSIVE


def test_a_tolerance_must_tell_claim_from_rival():
    with pytest.raises(ValueError, match="half their distance"):
        judge_computed(-1.5, -1.5, -2.0, 0.25)


def _excess(law):
    widths = np.array([1024, 4096])
    at_share = law(widths[:, None], np.array(SHARES) * widths[:, None])
    at_layer = law(widths[:, None], np.array([[8.0]]))
    coords = {"width": widths, "depth_over_width": list(SHARES), "fixed_layer": [8]}
    dims = ("width", "depth_over_width"), ("width", "fixed_layer")
    return xr.Dataset({"excess_at_share": (dims[0], at_share), "excess_at_layer": (dims[1], at_layer)}, coords)


@pytest.mark.parametrize(
    ("law", "verdict"),
    [
        (lambda n, layer: 5 / n + 0 * layer, Verdict.CONFIRMED),
        (lambda n, layer: np.expm1(3 * layer / n), Verdict.REFUTED),
        (lambda n, layer: layer**0.5 / n, Verdict.INCONCLUSIVE),
    ],
)
def test_uniform_correction_of_made_up_laws(law, verdict):
    assert mlp_depth.judge_uniform_correction(_excess(law)).verdict is verdict


def test_the_exact_correction_is_not_uniform():
    finding = mlp_depth.judge_uniform_correction(
        finite_width_excess(mf.MLP(depth=1, width=1), (1024, 4096), SHARES, (8,))
    )
    assert finding.verdict is Verdict.REFUTED
    assert "it is 27.8 at l = n; at fixed l = 8 it does go as n^(-1.00" in finding.evidence


def test_the_output_term_is_neither_lower_order_nor_negligible():
    share = output_share(mf.MLP(depth=1, width=10**6), ("he", "mup"), (1, 10**6), (100, 1000))
    assert mlp_depth.judge_output_term_growth(share).verdict is Verdict.REFUTED
    assert mlp_depth.judge_negligible_output_term(share).verdict is Verdict.REFUTED
    papers = share.assign(
        scale_slope=0 * share["scale_slope"] - 1.5, log_output_over_label=-np.log(share["share_depth"])
    ).transpose("head", "outputs", "share_depth")
    papers["log_output_over_label"] = papers["log_output_over_label"].broadcast_like(share["scale_slope"])
    assert mlp_depth.judge_output_term_growth(papers).verdict is Verdict.CONFIRMED
    assert mlp_depth.judge_negligible_output_term(papers).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("slope", "stderr", "verdict"),
    [(-1.39, 0.01, Verdict.CONFIRMED), (-1.5, 0.01, Verdict.REFUTED), (-1.45, 0.1, Verdict.INCONCLUSIVE)],
)
def test_measured_slopes(slope, stderr, verdict):
    measured = MeasuredSlope("made up", tuple(range(3, 31)), slope, stderr, 20)
    assert claims.judge_measured_slope(measured, 3).verdict is verdict


def test_measured_slopes_may_leave_claim_and_rival_by_what_one_paper_in_a_hundred_would():
    """The budget of three slopes, of which each is compared twice, on two sides."""
    law, band = claims.finite_depth_slope(COMMON_SWEEP), t.isf(0.01 / 2 / 6, 8)
    for share, refuted in ((0.99, False), (1.01, True)):
        slope = MeasuredSlope("made up", COMMON_SWEEP, law + share * band * 0.01, 0.01, 8)
        assert (claims.judge_measured_slope(slope, 3).verdict is Verdict.REFUTED) == refuted


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("share", "confirmed"), [(0.9, True), (1.1, False)])
def test_computed_exponents_are_confirmed_within_a_tenth(share, side, confirmed, smoke_run):
    dataset = smoke_run("mlp_depth")
    off = side * 0.1 * share
    scales = -1.5 + off + 0 * dataset["scale_slope"]
    outputs = (off - 1) * np.log(dataset["share_depth"]) + 0 * dataset["log_output_over_label"]
    excess = (dataset["width"] / dataset["width"][0]) ** (off - 1) + 0 * dataset["excess_at_share"]
    made = dataset.assign(scale_slope=scales, log_output_over_label=outputs, excess_at_share=excess)
    for judge in (
        mlp_depth.judge_negligible_output_term,
        mlp_depth.judge_output_term_growth,
        mlp_depth.judge_uniform_correction,
    ):
        assert (judge(made).verdict is Verdict.CONFIRMED) == confirmed


@pytest.mark.parametrize(("judge", "granted"), [(claims.judge_asymptote, 0.05), (claims.judge_power_law_in_use, 0.03)])
def test_scales_near_the_power_are_confirmed_within_what_is_granted_alone(judge, granted):
    depth = np.array(depth_grid(1000))
    for share, verdict in ((0.9, Verdict.CONFIRMED), (1.1, Verdict.INCONCLUSIVE)):
        law = depth ** (granted * share - 1.5)
        scales = xr.Dataset({"label_learning_rate_scale": (("family", "depth"), law[None])})
        scales = scales.assign_coords(family=["mlp"], depth=depth)
        assert judge(scales.assign_attrs(architectures='[{"activation": "relu"}]')).verdict is verdict


@pytest.mark.parametrize("deepest", [12, 1000])
def test_local_slopes_on_the_grid_are_those_of_the_closed_law(deepest):
    """d ln / d ln L of ((L + 1)(L^2 + L + 1))^(-1/2), also where depths are far apart; of two, the secant."""
    depth = np.array(depth_grid(deepest))
    law = ((depth + 1.0) * (depth**2 + depth + 1.0)) ** -0.5
    exact = -depth / 2 * (1 / (depth + 1) + (2 * depth + 1) / (depth**2 + depth + 1))
    missed = spline_slopes(depth, np.stack([law, 3 * law])) - exact
    assert np.all(np.abs(missed[:, 2:]) < 2e-4)
    assert np.all(np.abs(missed[:, :2]) < 1e-2)
    assert spline_slopes([1, 2], law[:2])[0] == pytest.approx(np.log2(law[1] / law[0]))


def test_finite_depth_slope_is_that_of_the_closed_law():
    depth = np.arange(3, 31)
    law = np.log(24 / ((depth + 1) * (depth**2 + depth + 1))) / 2
    assert claims.finite_depth_slope(depth) == pytest.approx(np.polyfit(np.log(depth), law, 1)[0], rel=1e-9)


def test_published_numbers_agree_with_what_the_papers_say_of_them():
    """Nine slopes of mean -1.38; table 6 fits to -1.578; table 5 scales its rates by ((D + 1) / 13)^(-3/2)."""
    slopes = {measured.source: measured for measured in published.measured_slopes()}
    assert round(slopes["Zhang et al. 2026, table 1, all nine"].slope, 2) == -1.38
    assert slopes["Zhang et al. 2026, table 6, audio"].slope == pytest.approx(-1.578, abs=0.001)
    scaled = {7: 6.231e-3, 9: 4.274e-3, 11: 3.163e-3, 21: 1.199e-3}
    for depth, rate in scaled.items():
        assert published.VIT_RATES[13] * (depth / 13) ** -1.5 == pytest.approx(rate, rel=1e-3)
