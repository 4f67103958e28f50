"""What is not finite decides nothing, and what is no band, no share or no deviation is refused in one line."""

import re

import numpy as np
import pytest
import xarray as xr

from meanfield.verification.judges import Contest, computed, identity
from meanfield.verification.series import effective_draws, largest_share
from meanfield.verification.verdicts import (
    NOT_FINITE,
    Bands,
    Deviation,
    Verdict,
    judge,
    judge_computed,
    judge_identity,
)
from sims import coordinate_check
from sims import residual_depth as residual_slopes
from sims.cnn_padding import claims as padding
from sims.identities import aggregators, layer_norm

BANDS = Bands(3.0, 5.0)
NEAR, FAR = Deviation(0.0, 1.0), Deviation(10.0, 1.0)
STRANGE = [np.nan, np.inf]


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("place", ["difference", "stderr", "allowance"])
@pytest.mark.parametrize("points", [1, 2])
@pytest.mark.parametrize("side", ["claim", "rival"])
def test_a_number_that_is_not_finite_decides_nothing(strange, place, points, side):
    """Of either side, alone or beside one that would decide; with finite numbers in its place the run decides."""
    verdicts = []
    for value in (strange, 0.0 if place == "allowance" else 1.0):
        numbers = {"difference": 10.0 if side == "rival" else 0.0, "stderr": 1.0, "allowance": 0.0}
        made = Deviation(**(numbers | {place: [value, numbers[place]][:points]}))
        sides = {"claim": NEAR, "rival": FAR} | {side: made}
        verdicts.append(judge(sides["claim"], sides["rival"], BANDS))
        ruling = Contest(sides["claim"], sides["rival"], apart=10.0).weigh(1, 1e6)
        assert ruling.verdict is verdicts[-1]
    assert verdicts[0] is Verdict.INCONCLUSIVE
    near_rival = (side, place, points) == ("rival", "difference", 1)
    assert verdicts[1] is (Verdict.INCONCLUSIVE if near_rival else Verdict.CONFIRMED)


def test_a_far_point_of_unknown_error_refutes_nothing():
    assert judge(Deviation([0, 50], [1, np.nan]), FAR, BANDS) is Verdict.INCONCLUSIVE
    assert judge(Deviation([0, 50], [1, 1]), FAR, BANDS) is Verdict.REFUTED
    assert np.isnan(Deviation([0, 50], [1, np.nan]).worst)


def test_the_evidence_says_how_many_numbers_are_not_finite():
    ruling = Contest(Deviation([0.0, np.nan], 1.0), FAR, apart=10.0, shown="slopes", note="; a note").weigh(2, 1000)
    assert ruling.evidence == ruling.evidence_of_rival == "slopes; 1 of 5 numbers are not finite; a note"
    assert ruling.power == ruling.power_of_rival == NOT_FINITE


@pytest.mark.parametrize("share", [np.nan, np.inf])
def test_a_share_that_is_not_known_decides_nothing(share):
    assert judge(NEAR, FAR, BANDS, share) is Verdict.INCONCLUSIVE
    assert Contest(NEAR, FAR, largest_share=share).weigh(1, 1000).verdict is Verdict.INCONCLUSIVE
    assert judge(NEAR, FAR, BANDS, 0.1) is Verdict.CONFIRMED


@pytest.mark.parametrize("strange", STRANGE)
def test_effective_draws_that_are_not_known_decide_nothing(strange):
    assert Contest(NEAR, FAR, effective=strange).weigh(1, 1000).verdict is Verdict.INCONCLUSIVE
    assert Contest(NEAR, FAR, effective=1000.0).weigh(1, 1000).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_a_spread_that_is_not_known_leaves_the_draws_unknown(order):
    """Whichever is named first; a mean that was not drawn has none, and one that is the same in all draws has 0."""
    columns = {"x": [1.0, 1.0], "x_stderr": [0.1, np.nan], "x_largest_share": [0.1, np.nan]}
    columns |= {"y": [1.0, np.nan], "y_stderr": [0.1, np.nan], "y_largest_share": [0.1, np.nan]}
    columns |= {"z": [-1.0, 0.0], "z_stderr": [0.1, 0.0], "z_largest_share": [0.1, 0.01]}
    measured = xr.Dataset({name: ("layer", values) for name, values in columns.items()}, attrs={"draws": 100})
    assert np.isnan(effective_draws(measured, *order))
    assert np.isnan(largest_share(measured, *order))
    for name in "yz":
        assert effective_draws(measured, name) == pytest.approx(50)
        assert largest_share(measured, name) == 0.1


@pytest.mark.parametrize("values", [[], [np.nan], [1.0, np.nan], [np.inf]])
def test_nothing_computed_confirms_nothing(values):
    for made in (judge_computed, judge_identity):
        assert made(values, 1.0, 2.0, 0.1) is Verdict.INCONCLUSIVE
        assert made([1.0, 1.0], 1.0, 2.0, 0.1) is Verdict.CONFIRMED
    for ruled in (computed, identity):
        assert ruled(values, 1.0, 2.0, 0.1, "numbers").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Bands(5, 3), ValueError, "doubt of Bands is 5 and alarm 3; doubt is at most alarm"),
        (lambda: Bands("a", "b"), TypeError, "doubt of Bands is 'a'; it must be a positive number"),
        (lambda: Bands(3.0, None), TypeError, "alarm of Bands is None; it must be a positive number"),
        (lambda: Bands(np.nan, 5.0), ValueError, "doubt of Bands is nan; it must be a positive number"),
        (lambda: Bands(0.0, 5.0), ValueError, "doubt of Bands is 0; it must be positive"),
        (lambda: Bands(-3.0, 5.0), ValueError, "doubt of Bands is -3; it must be positive"),
        (lambda: Bands(3.0, np.inf), ValueError, "alarm of Bands is inf; it must be a positive number"),
        (lambda: Bands(3.0, 5.0, 0), ValueError, "freedom of Bands is 0; it must be positive"),
        (lambda: Bands(3.0, 5.0, np.nan), ValueError, "freedom of Bands is nan"),
        (lambda: Bands.of(1, np.nan), ValueError, "doubt of Bands is nan"),
        (
            lambda: Deviation(0.0, -1.0),
            ValueError,
            "standard errors are spreads of draws, at least 0; the least given is -1",
        ),
        (
            lambda: Deviation(0.0, [1.0, np.nan], [0.0, -0.5]),
            ValueError,
            "allowances, at least 0; the least given is -0.5",
        ),
        (lambda: Deviation([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError, "difference (2,), stderr (3,), allowance (1,)"),
        (lambda: Deviation([], []), ValueError, "a Deviation needs a point at least"),
        (
            lambda: Deviation("a", 1.0),
            TypeError,
            "difference of a Deviation holds values of type <U1; give real numbers",
        ),
        (lambda: Deviation(None, 1.0), TypeError, "difference of a Deviation holds None; give real numbers"),
        (lambda: Deviation(1.0, object), TypeError, "stderr of a Deviation holds <class 'object'>; give real numbers"),
        (lambda: Deviation(1.0, 1.0j), TypeError, "stderr of a Deviation holds values of type complex128"),
        (lambda: judge(1.0, FAR, BANDS), TypeError, "judge is given 1.0 where it takes a Deviation"),
        (lambda: judge(NEAR, None, BANDS), TypeError, "judge is given None where it takes a Deviation"),
        (lambda: judge(NEAR, FAR, (3.0, 5.0)), TypeError, "judge is given (3.0, 5.0) where it takes a Bands"),
        (lambda: judge(NEAR, FAR, BANDS, 0.1, 0), TypeError, "judge is given 0 where it takes a Bands"),
        (lambda: judge(NEAR, FAR, BANDS, "0.1"), TypeError, "judge is given '0.1' where it takes a Real"),
        (lambda: judge(NEAR, FAR, BANDS, -0.1), ValueError, "largest_share is -0.1; it is the part of a mean"),
        (lambda: judge_computed("a", 1.0, 2.0, 0.1), TypeError, "values holds values of type <U1"),
        (lambda: judge_computed(1.0, 1.0, 2.0, -0.1), ValueError, "tolerance -0.1 does not tell the claim 1 from"),
        (lambda: judge_computed(1.0, 1.0, 2.0, np.nan), ValueError, "tolerance nan does not tell the claim 1 from"),
    ],
)
def test_what_says_nothing_is_refused_in_one_line(make, error, message):
    with pytest.raises(error, match=re.escape(message)) as raised:
        make()
    assert "\n" not in str(raised.value)


LAYERS = np.array([[4.0, 4.0], [2.0, 6.0]])


@pytest.mark.parametrize(
    ("off", "verdict"), [(0.0, Verdict.CONFIRMED), (0.5, Verdict.REFUTED), (np.nan, Verdict.INCONCLUSIVE)]
)
def test_a_slope_of_theory_that_is_not_known_confirms_nothing(off, verdict):
    slopes = -1.5 * LAYERS / 8
    slopes[0, 1] += off
    columns = {"backbone_layers": (("backbone", "of"), LAYERS)}
    columns["backbone_slope"] = (("activation", "backbone", "of"), slopes[None])
    dataset = xr.Dataset(columns, {"activation": ["relu"]})
    assert residual_slopes.judge_effective_depth(dataset).verdict is verdict


@pytest.mark.parametrize("where", ["missing_largest", "missing_bound", "missing_circular"])
def test_a_sum_that_is_not_known_breaks_no_bound(where):
    columns = {
        "missing_largest": [2.0, 4.0],
        "missing_bound": [2.0, 5.0],
        "set_taps": [3, 3],
        "missing_circular": [0, 0],
    }
    dataset = xr.Dataset({name: ("set", np.array(values, float)) for name, values in columns.items()})
    assert padding.judge_missing_terms(dataset).verdict is Verdict.CONFIRMED
    lost = dataset.assign({where: dataset[where] * np.nan})
    assert padding.judge_missing_terms(lost).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("place", [0, -1])
def test_an_example_that_is_not_finite_breaks_no_identity(monkeypatch, place):
    """Whichever of them it is: no largest value hides it."""
    ratios = [0.5, 0.5, 0.5]
    monkeypatch.setattr(layer_norm, "examples", lambda seed: ratios)
    monkeypatch.setattr(layer_norm, "norm_ratio", lambda ratio: ratio)
    assert layer_norm.judge_bound().verdict is Verdict.CONFIRMED
    ratios[place] = np.nan
    assert layer_norm.judge_bound().verdict is Verdict.INCONCLUSIVE
    ratios[place] = 2.5
    assert layer_norm.judge_bound().verdict is Verdict.REFUTED


@pytest.mark.parametrize("place", [0, 1])
def test_a_violation_that_is_not_finite_stays_the_worst(monkeypatch, place):
    found = [0.0, 0.0, 0.0]
    found[place] = np.nan
    monkeypatch.setattr(aggregators, "examples", lambda seed: found)
    monkeypatch.setattr(aggregators, "violations", lambda aggregator, example: {"merge": example})
    assert np.isnan(aggregators.worst_violations({"mean": np.mean})["mean"]["merge"])


@pytest.mark.parametrize("lost", ["width", "depth"])
def test_draws_that_leave_no_slope_leave_the_standard_undecided(monkeypatch, lost):
    """Along the first ladder or along the last."""
    slopes = iter([(np.nan, np.nan, 1.0) if name == lost else (2.0, 0.01, 0.0) for name in coordinate_check.DIRECTIONS])
    monkeypatch.setattr(coordinate_check, "ladder_values", lambda *of, **labels: None)
    monkeypatch.setattr(coordinate_check, "_middle_slope", lambda *of: next(slopes))
    dataset = xr.Dataset(coords={name: [1, 2] for name in coordinate_check.DIRECTIONS})
    assert coordinate_check.judge_standard(dataset, optimizer="sgd").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("flag", [True, np.True_, [0.5, True], np.array([True]), np.array([0.5, True], object)])
@pytest.mark.parametrize("place", ["difference", "stderr", "allowance"])
def test_a_flag_is_no_number(flag, place):
    with pytest.raises(TypeError, match=f"{place} of a Deviation holds True or False; give real numbers"):
        Deviation(**({"difference": 0.0, "stderr": 1.0} | {place: flag}))
    with pytest.raises(TypeError, match="values holds True or False"):
        judge_computed(flag, claimed=1.0, rival=0.0, tolerance=0.1)
    with pytest.raises(TypeError, match="judge is given True where it takes a Real"):
        judge(NEAR, FAR, BANDS, True)
