"""Verdicts: each of the three can come out, and each for the right reason.

Where the constants of verdicts lie: each is held to what it is said to mean, so that no other value passes.
"""

import re

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from scipy.stats import chi2, norm, t

import meanfield as mf
from meanfield.common.estimates import critical_z
from meanfield.simulation.measures import overlap_energy
from meanfield.simulation.measures.energies import draw_energies
from meanfield.theory.finite_width import finite_width_allowance, log_energy_noise
from meanfield.verification.claims import of_rival
from meanfield.verification.judges import Contest, Judges, contest
from meanfield.verification.series import effective_draws
from meanfield.verification.verdicts import Bands, Deviation, Verdict, draws_to_converge, judge, shares_refuted
from tests.statistics import consistent
from tests.theory.exact.printed_recursions import overlap_energies

BANDS = Bands(doubt=3.0, alarm=5.0)


def _deviation(difference, stderr=1.0, allowance=0.0):
    return Deviation(*(np.atleast_1d(np.array(v, dtype=float)) for v in (difference, stderr, allowance)))


@pytest.mark.parametrize(
    ("claim", "rival", "verdict"),
    [
        (0.5, 9.0, Verdict.CONFIRMED),
        (9.0, 0.5, Verdict.REFUTED),
        (9.0, 9.0, Verdict.REFUTED),
        (0.5, 0.5, Verdict.INCONCLUSIVE),
        (4.0, 9.0, Verdict.INCONCLUSIVE),
    ],
)
def test_three_verdicts(claim, rival, verdict):
    assert judge(_deviation(claim), _deviation(rival), BANDS) is verdict


@pytest.mark.parametrize(
    ("claim", "rival", "exchanged"),
    [
        (0.5, 90.0, Verdict.REFUTED),
        (90.0, 0.5, Verdict.CONFIRMED),
        (90.0, 90.0, Verdict.REFUTED),
        (0.5, 0.5, Verdict.INCONCLUSIVE),
    ],
)
def test_what_a_source_claims_of_the_rival_is_judged_itself(claim, rival, exchanged):
    """Where both sides are far off, no claim becomes true because the other one fails."""
    judges = Judges(draws="draws")

    @judges.decide(claim="This holds", rival="that holds", measured="distances")
    def judge_sides(dataset):
        return Contest(_deviation(claim), _deviation(rival), apart=1.0)

    dataset = xr.Dataset(attrs={"draws": 10_000})
    finding = of_rival(judge_sides)(dataset)
    assert (finding.claim, finding.verdict) == ("that holds", exchanged)
    assert of_rival(of_rival(judge_sides))(dataset).verdict is judge_sides(dataset).verdict


def test_skewed_draws_count_for_less():
    """Equal draws all count; draws whose spread is twice their mean count for a fifth, and widen the band."""
    columns = {"x": ("layer", [1.0, 1.0]), "x_stderr": ("layer", [0.0, 2.0 / np.sqrt(400)])}
    measured = xr.Dataset(columns, attrs={"draws": 400})
    assert effective_draws(measured, "x") == pytest.approx(80)
    assert Bands.of(10, 80).alarm > Bands.of(10, 400).alarm


def test_a_larger_budget_of_false_alarms_has_a_narrower_band_of_alarm():
    """And the same band of doubt: in a thousandth of runs the worst of ten Gaussian numbers is beyond it."""
    rare, seldom = (Bands.of(10, 1e6, gaussian=True, budget=budget) for budget in (1e-6, 1e-3))
    assert rare.doubt == seldom.doubt
    assert seldom.alarm == pytest.approx(norm.isf(1e-3 / 20), rel=1e-4)
    assert rare.alarm == pytest.approx(norm.isf(1e-6 / 20), rel=1e-4)
    judges = Judges(budget=1e-3)

    @judges.decide(claim="it is 0", rival="it is 1", measured="it")
    def judge_it(dataset):
        return Contest(Deviation(4.0, 1.0), Deviation(0.0, 1.0), draws=1e6, gaussian=True)

    assert judge_it(xr.Dataset(attrs={"draws": 1})).verdict is Verdict.REFUTED
    assert Contest(Deviation(4.0, 1.0), Deviation(0.0, 1.0), gaussian=True).weigh(1, 1e6).verdict is not Verdict.REFUTED


def test_gaussian_numbers_all_count_and_skewed_ones_for_half():
    """And fewer of them are needed: seven standard errors by 24 draws are more than Gaussian ones show by chance."""
    assert Bands.of(10, 80, gaussian=True) == Bands.of(10, 160)
    side = Deviation(7.0, 1.0), Deviation(0.0, 1.0)
    gaussian, skewed = (Contest(*side, gaussian=given).weigh(1, 24) for given in (True, False))
    assert (gaussian.verdict, skewed.verdict) == (Verdict.REFUTED, Verdict.INCONCLUSIVE)
    assert "needed (24 made)" in skewed.evidence


def test_a_true_expectation_of_skewed_draws_is_not_refuted(monkeypatch):
    """256 draws of a heavy-tailed output term, many times: plain t-bands would refute the exact expectation."""
    net = mf.MLP(depth=4, width=32, head="mup")
    exact = mf.predict(net, level="exact").output_term.values
    monkeypatch.setattr(overlap_energy, "DENSE_UNITS", 0)  # the output term needs no tangent kernel
    batches = [range(start, start + 256) for start in range(0, 160 * 256, 256)]
    draws = np.stack([draw_energies(net, 7, batch)["output_term"] for batch in batches])
    mean, stderr = draws.mean(axis=1), draws.std(axis=1, ddof=1) / 16
    worst = np.abs((mean - exact) / stderr).max(axis=1)
    effective = (256 / (1 + (16 * stderr / mean) ** 2)).min(axis=1)
    alarm = np.array([Bands.of(8, count).alarm for count in effective])
    assert np.all(worst < alarm)
    assert np.any(worst > critical_z(8, 256))


def test_a_mean_that_one_draw_makes_decides_nothing():
    assert judge(_deviation(9.0), _deviation(0.5), BANDS, largest_share=0.6) is Verdict.INCONCLUSIVE


def test_a_rival_of_one_point_is_held_to_one_comparison():
    """The one of a hundred that is nearest to the rival: by 16 draws 8 standard errors decide, a hundred ask 11."""
    claim = _deviation(np.zeros(100))
    nearest, any_point = _deviation(9.0), _deviation(np.full(100, 9.0))
    made = [Contest(claim, rival, gaussian=True).weigh(100, 16) for rival in (nearest, any_point)]
    assert [finding.verdict for finding in made] == [Verdict.CONFIRMED, Verdict.INCONCLUSIVE]
    assert made[0].evidence.endswith(f", band {critical_z(100, 16):.3g} ({critical_z(1, 16):.3g} for the rival)")
    exchanged = f"worst 9.0 s.e., rival 0.0, band {critical_z(1, 16):.3g} ({critical_z(100, 16):.3g} for the rival)"
    assert made[0].evidence_of_rival == exchanged


def test_the_nearest_of_many_points_deceives_no_more_often_than_one():
    """One point of 40 is where the rival says, the rest is a power away; a false CONFIRMED excludes the rival there.

    Of 20,000 runs of eight draws 5 in 100 may, at that budget; twice as many would be seen. The point that is farthest,
    on the other hand, always excludes it.
    """
    draws = np.random.default_rng(3).normal(size=(20_000, 40, 8)) + np.where(np.arange(40) == 7, 0.0, 3.0)[:, None]
    distance = np.abs(draws.mean(axis=2) / (draws.std(axis=2, ddof=1) / np.sqrt(8)))
    band = critical_z(1, 8, 0.05)
    nearest, farthest = (np.mean(pick(distance, axis=1) > band) for pick in (np.min, np.max))
    assert nearest < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 20_000)
    assert farthest > 0.99


def _weighed(draws, claim=0.2, rival=3.0, **options):
    """A claim and a rival so many spreads of a draw away, by so many draws."""
    sides = (_deviation(distance, stderr=1 / np.sqrt(draws)) for distance in (claim, rival))
    return Contest(*sides, **options).weigh(comparisons=10, draws=draws)


def test_carrying_draws_count_for_the_band_and_made_ones_for_what_is_needed():
    all_carry, few_carry = _weighed(100, 0.0, 0.6), _weighed(100, 0.0, 0.6, effective=25)
    needed = [
        int(re.findall(r"about ([\d,]+)", finding.evidence)[0].replace(",", "")) for finding in (all_carry, few_carry)
    ]
    assert needed[1] > needed[0]


def test_bands_of_few_draws_are_no_evidence_for_anything():
    decided = _weighed(3, 0.0, 1e8)
    assert decided.verdict is Verdict.CONFIRMED
    assert "few draws, yet enough (a band of " in decided.evidence
    within = Contest(_deviation(0.0), _deviation(1.0, allowance=2.0)).weigh(comparisons=1, draws=1000)
    assert within.evidence.endswith("; the rival lies within the allowance, where no draws decide")
    beyond = Contest(_deviation(2.0), _deviation(0.0, allowance=2.0)).weigh(comparisons=1, draws=1000)
    assert re.search(r"; about [\d,]+ needed \(1,000 made\), with which .* refute what is claimed$", beyond.evidence)
    assert beyond.needed > 1000
    heavy = _weighed(4, largest_share=0.5)
    assert re.search(r"; not converged, one draw makes 50% of a mean; about [\d,]+ needed \(4 made\), ", heavy.evidence)


@pytest.mark.parametrize(("variance", "draws"), [(4.0, 100), (6.0, 200), (8.0, 400)])
def test_the_largest_draw_says_how_many_converge(variance, draws):
    """Of log-normal draws: at the number named no draw makes more than a quarter in half of the runs, within a factor
    of 3; a quarter as many would not do."""
    normals = np.random.default_rng(3).normal(size=(400, draws))
    named = np.median([draws_to_converge(share, draws) for share in _shares(normals, variance) if share > 0.25])
    many = np.random.default_rng(4).normal(size=(400, round(3 * named)))
    assert np.median(_shares(many, variance)) < 0.25
    assert np.median(_shares(many[:, : round(named / 12)], variance)) > 0.25


def _shares(normals, variance):
    values = np.exp(np.sqrt(variance) * normals)
    return values.max(axis=1) / values.sum(axis=1)


def test_what_was_seen_comes_first():
    assert _weighed(1000, shown="slope 2").evidence.startswith("slope 2; worst 6.3 s.e., rival ")


def test_evidence_speaks_of_an_allowance_where_there_is_one():
    granted, rounding = (
        Contest(*(_deviation(far, allowance=allowance) for far in (0.0, 99.0))) for allowance in (0.5, 1e-9)
    )
    assert " s.e. beyond the allowance, rival" in granted.weigh(comparisons=1, draws=1000).evidence
    assert "allowance" not in rounding.weigh(comparisons=1, draws=1000).evidence


def test_one_layer_outside_is_enough_and_the_allowance_counts():
    assert _deviation([0.1, 6.0]).worst == 6.0
    assert _deviation([0.1, 6.0], allowance=[0.0, 4.0]).worst == pytest.approx(2.0)


def test_public_deviations_take_numbers_of_one_shape_and_no_negative_errors():
    assert mf.Deviation(0.1, [0.05, 0.1]).excess.tolist() == [2.0, 1.0]
    assert mf.judge(mf.Deviation(0.1, 0.1), mf.Deviation(9.0, 0.1), mf.Bands.of(1, 100)) is Verdict.CONFIRMED
    with pytest.raises(ValueError, match="standard errors are spreads of draws"):
        mf.Deviation(0.1, -0.05)


def _panel(**options):
    """Judges of a run of 1000 draws: one of a single case, one of two."""
    judges = Judges("Doe et al. 2026", **options)

    @judges.decide(claim="It is {what}", rival="it is 3", source="eq. 1", measured="x")
    def judge_single(dataset):
        made = contest(dataset["x"].values, 0.1, claimed=1.0, rival=3.0, allowance=0.1)
        return made.saying("shown", what="one")

    @judges.decide(claim="It is not {other:g}", rival="it is", measured="x", cases=[{"other": 2.0}, {"other": 4.0}])
    def judge_pair(dataset, other):
        return contest(dataset["x"].values, 0.1, claimed=1.0, rival=other)

    return judges, judge_single, judge_pair, xr.Dataset({"x": ("i", [1.0, 1.1])}, attrs={"draws": 1000})


def test_a_judge_says_its_sentences_and_shares_the_budget_of_its_run():
    judges, single, pair, dataset = _panel()
    findings = judges.findings(dataset)
    assert [finding.claim for finding in findings] == [
        "It is one (Doe et al. 2026, eq. 1)",
        "It is not 2",
        "It is not 4",
    ]
    assert [finding.verdict for finding in findings] == [Verdict.CONFIRMED] * 3
    assert (findings[0], findings[2]) == (single(dataset), pair(dataset, other=4.0))
    band = Bands.of(len(judges) * 2, 1000).alarm
    assert len(judges) == 3
    assert findings[0].evidence == f"shown; worst 0.0 s.e. beyond the allowance, rival 19.0, band {band:.3g}"
    assert findings[0].rival == "it is 3"


def test_more_judges_widen_the_band_and_skewed_draws_too():
    _, single, _, dataset = _panel()
    wider, skewed = _panel(findings=300)[1](dataset), _panel(effective=lambda dataset: 20.0)[1](dataset)
    bands = [float(finding.evidence.rpartition("band ")[2]) for finding in (single(dataset), wider, skewed)]
    assert bands == sorted(set(bands))
    lone = _panel(largest_share=lambda dataset: 0.5)[1](dataset)
    assert lone.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("left_out", ["claim", "rival", "measured"])
def test_a_judge_without_a_rival_or_a_word_of_what_is_measured_is_no_judge(left_out):
    sentences = {"claim": "It is so", "rival": "it is not", "measured": "x"}
    del sentences[left_out]
    with pytest.raises(TypeError, match=left_out):
        Judges().decide(**sentences)


def test_no_error_and_no_difference_is_no_deviation():
    assert _deviation(0.0, stderr=0.0).worst == 0.0
    assert _deviation(0.1, stderr=0.0).worst == np.inf


def test_allowance_covers_the_exact_finite_width_excess_of_one_site():
    """exp(3 l/n) against the exact recursion of F for ReLU (docs/theory.md section 3) to l/n = 1/2, not much above."""
    n, depth = 64, 32
    exact = overlap_energies(n, depth)
    layers = np.arange(1, depth + 1)
    ratio = exact / (n * layers * (2 * layers**2 + 1) / 12)
    allowance = finite_width_allowance(mf.MLP(depth=depth, width=n))
    assert np.all(ratio - 1 <= allowance)
    assert ratio[-1] - 1 > 0.7 * allowance[-1], "an allowance far beyond the known excess would hide failures"


@pytest.mark.parametrize(("activation", "least"), [("gelu", 3.0), ("tanh", 1.0)])
def test_smooth_nets_are_granted_no_less_than_relu(activation, least):
    """gelu amplifies fluctuations of a layer's energy: ReLU's allowance is too small for it, tanh damps them."""
    options = {"depth": 5, "width": 64}
    relu, smooth = (finite_width_allowance(mf.MLP(activation=name, **options)) for name in ("relu", activation))
    assert np.all(smooth >= relu)
    assert smooth[-1] >= least * relu[-1]
    faint = np.linspace(0, 1, 6)[None, None] * np.array([1.0, 0.0])[:, None, None]  # a whole sample is dark
    net = mf.ConvNet(depth=3, channels=8, grid=(6,), input_channels=1, inputs=2, activation=activation)
    assert np.all(np.isfinite(finite_width_allowance(net, faint)))


def test_gates_that_follow_fluctuating_energies_are_granted_for():
    """Deep gelu nets stand at several mean fields; negative control: what ReLU is granted is far too little."""
    options, draws = {"depth": 12, "width": 256}, 512
    gelu, relu = (mf.MLP(activation=name, **options) for name in ("gelu", "relu"))
    measured, predicted = mf.simulate(gelu, draws=draws, seed=5), mf.predict(gelu, level="mean_field").label_term.values
    ratio, stderr = measured.label_term.values / predicted - 1, measured.label_term_stderr.values / predicted
    assert consistent(ratio, stderr, draws, finite_width_allowance(gelu))
    assert not consistent(ratio, stderr, draws, finite_width_allowance(relu))


def test_responses_of_energies_are_derivatives_of_the_mean_field():
    """One noisy layer, and its response by hand: c_2 moved a little moves B_1 = F_1 g_1 g_2 by g_2 alone."""
    net = mf.MLP(depth=2, width=(100, 10**9), activation="gelu")
    sigma, step = net.sigma, 1e-5
    square = sigma.product(np.ones(1), np.ones(1), np.ones(1))
    noise = float((sigma.square_product(np.ones(1), np.ones(1), np.ones(1)) / square**2 - 1)[0]) / 100
    energy = square / sigma.gain
    gates = [sigma.gate_product(c, c, c) for c in (energy, energy * np.exp(step))]
    response = float(np.log(gates[1] / gates[0])[0]) / step
    assert log_energy_noise(net)[0] == pytest.approx(response**2 * noise, rel=0.01)


def test_allowance_of_given_images_leaves_layer_one_none():
    net = mf.ConvNet(depth=3, channels=8, grid=(6,), input_channels=1)
    image = np.linspace(-1, 1, 6).reshape(net.input_shape)
    allowance = finite_width_allowance(net, image)
    assert allowance[0] == 0.0
    assert np.all(np.diff(allowance) > 0)


@pytest.mark.parametrize(("activation", "taps", "excess"), [("linear", 3, 65 / 96), ("relu", 1, 0.2608)])
def test_allowance_knows_that_uncorrelated_sites_fluctuate(activation, taps, excess):
    """White input, 32 channels, 64 sites: the Gram matrix of layer 1 alone exceeds its mean square by this much."""
    net = mf.ConvNet(depth=1, channels=32, grid=(64,), kernel=(taps,), activation=activation)
    assert finite_width_allowance(net)[0] == pytest.approx(excess, rel=0.01)


def test_compare_gives_scores_and_ratios():
    net = mf.MLP(depth=2, width=8)
    measured, predicted = mf.simulate(net, draws=64, seed=0), mf.predict(net, level="mean_field")
    result = mf.compare(measured, predicted)
    expected = (measured.label_term - predicted.label_term) / measured.label_term_stderr
    np.testing.assert_allclose(result.label_term_zscore, expected)
    np.testing.assert_allclose(result.overlap_energy_ratio, measured.overlap_energy / predicted.overlap_energy)
    assert result.label_learning_rate_scale_zscore.dims == ()


def test_compare_needs_something_in_common():
    predicted = mf.predict(mf.MLP(depth=2, width=8), level="mean_field")
    with pytest.raises(ValueError, match="nothing to compare"):
        mf.compare(predicted, predicted)


NEAR, FAR = Deviation(0.5, 1.0), Deviation(90.0, 1.0)


def test_a_true_claim_is_doubted_once_in_a_hundred_runs():
    """The worst of five means of twelve draws; 200,000 runs tell a hundredth from 9 and from 11 in a thousand."""
    worst = np.abs(np.random.default_rng(0).standard_t(11, (200_000, 5))).max(axis=1)
    assert np.mean(worst > Bands.of(5, 12, gaussian=True).doubt) == pytest.approx(0.01, abs=0.001)


@pytest.mark.parametrize(("share", "verdict"), [(0.24, Verdict.CONFIRMED), (0.26, Verdict.INCONCLUSIVE)])
def test_a_mean_has_converged_where_no_draw_makes_more_than_a_quarter(share, verdict):
    assert judge(NEAR, FAR, Bands(3.0, 5.0), share) is verdict
    ruling = Contest(NEAR, FAR, largest_share=share, apart=90.0).weigh(1, 1000)
    assert ruling.verdict is verdict
    assert (ruling.power == "none: a mean has not converged") == (verdict is Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(("draws", "words"), [(8, ", band 15.8"), (7, "; few draws, yet enough (a band of 20)")])
def test_a_band_of_seven_draws_means_little(draws, words):
    """It is 20.05 standard errors wide, of an eighth draw 15.8."""
    assert Contest(NEAR, FAR, gaussian=True).weigh(1, draws).evidence.endswith(words)


def test_a_thousandth_is_what_rounding_may_leave():
    """Of a standard error in an allowance, and of the way to the rival in a number that it does not move."""
    assert Deviation(0.0, 1.0, 0.002).grants
    assert not Deviation(0.0, 1.0, 0.0005).grants
    claim, bands = Deviation([0.0, 0.0], 0.01), Bands(3.0, 5.0)
    assert shares_refuted(claim, [1.0, 0.002], bands).alone == pytest.approx(500 * 0.01 * bands.sure)
    assert shares_refuted(claim, [1.0, 0.0005], bands).alone == pytest.approx(0.01 * bands.sure)


@pytest.mark.parametrize("freedom", [1, 2, 7, 15])
@pytest.mark.parametrize("alarm", [5.0, 100.0, 290.0, 900.0, 1e5])
def test_what_leaves_a_band_of_any_width_is_known_to_three_in_ten_thousand(freedom, alarm):
    """Against the integral over the number's own scatter of the chance that its error is small enough."""
    points, weights = np.polynomial.hermite_e.hermegauss(64)

    def beyond(off):
        return weights @ chi2.cdf(freedom * np.maximum((off + points) / alarm, 0.0) ** 2, freedom) / weights.sum()

    exact = brentq(lambda off: beyond(off) - 0.99, 0.0, 20 * alarm)
    assert Bands(3.0, alarm, freedom).sure == pytest.approx(exact, rel=3e-4)


@pytest.mark.parametrize(("comparisons", "draws"), [(1, 8), (40, 1000)])
def test_a_true_claim_is_refuted_once_in_a_million_runs(comparisons, draws):
    """By what its comparisons, each with a chance of either side, add up to at most."""
    alarm = Bands.of(comparisons, draws, gaussian=True).alarm
    assert 2 * comparisons * t.sf(alarm, draws - 1) == pytest.approx(1e-6)
