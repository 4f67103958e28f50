"""Where the constants of verdicts lie: each is held to what it is said to mean, so that no other value passes."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2, t

from meanfield.verification.judges import Contest
from meanfield.verification.verdicts import Bands, Deviation, Verdict, judge, shares_refuted

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
