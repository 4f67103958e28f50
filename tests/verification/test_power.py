"""The power that a verdict states: data tilted by it are refuted in about 99 of 100 runs, by a third of it seldom.

All numbers are tilted, or one of them alone: where their errors are unequal, that is another share.

The draws that the evidence announces are judged by runs of so many: eight of ten decide, of half as many fewer.
"""

import re
from itertools import product

import numpy as np
import pytest

from meanfield.verification.judges import Contest, computed, contest, identity
from meanfield.verification.series import OFF, LadderRow, against_conditions, ladder_slope
from meanfield.verification.verdicts import (
    PROMISED,
    Bands,
    Deviation,
    Shares,
    Verdict,
    judge_identity,
    power_in_words,
    times_more,
)
from sims.cnn_finite_channels import _Ends

RUNS = 400
SIZES = np.array([8.0, 16.0, 32.0, 64.0])


def _share(draw, shift, verdict=Verdict.REFUTED):
    """Of runs tilted so far that reach a verdict."""
    random = np.random.default_rng(5)
    return np.mean([draw(random, shift).verdict is verdict for _ in range(RUNS)])


def _median_power(draw, name="power", of="together"):
    """Of runs in which the claim is true: every run states its own, by its own errors."""
    random = np.random.default_rng(6)
    return float(np.median([getattr(getattr(draw(random, 0.0), name), of) for _ in range(RUNS)]))


def _mean(draws, allowance=0.0):
    """Two means of normal draws, of which the rival moves the first by 2."""

    def run(random, share):
        y = random.normal([2.0 * share, 0.0], 1.0, (draws, 2))
        sides = {"claimed": [0.0, 0.0], "rival": [2.0, 0.0], "allowance": allowance}
        return contest(y.mean(axis=0), y.std(axis=0, ddof=1) / np.sqrt(draws), **sides).weigh(4, draws)

    return run


def _at_most(draws):
    """A mean that is claimed to be 0 at most; the rival says 1."""

    def run(random, share):
        y = random.normal(size=draws) + share
        stderr = y.std(ddof=1) / np.sqrt(draws)
        sides = Deviation(max(y.mean(), 0.0), stderr), Deviation(y.mean() - 1.0, stderr)
        return Contest(*sides, apart=1.0).weigh(4, draws)

    return run


def _ladder(draws):
    """Slopes of two numbers along a ladder, of which both are claimed to be flat."""

    def run(random, share):
        logs = OFF * share * np.log(SIZES)[:, None] + 0.1 * random.normal(size=(2, len(SIZES), draws))
        rows = [LadderRow("y", "width", ladder_slope(SIZES, np.exp(log))) for log in logs]
        return Contest(*against_conditions(rows), apart=OFF, gaussian=True).weigh(2, draws)

    return run


# Spreads of three means, of which the rival moves the first two by 2 and the third by no more than rounding.
UNEQUAL = np.array([0.2, 2.0, 20.0])


def _unequal(tilted, draws=400, allowance=0.0):
    """These means, of which some are ``tilted`` along the rival's way."""

    def run(random, share):
        y = random.normal(2.0 * share * np.array(tilted), UNEQUAL, (draws, 3))
        sides = {"claimed": np.zeros(3), "rival": [2.0, 2.0, 1e-15], "allowance": allowance}
        return contest(y.mean(axis=0), y.std(axis=0, ddof=1) / np.sqrt(draws), **sides).weigh(6, draws)

    return run


def _unequal_ladder(tilted, draws=100):
    """Slopes of two numbers along a ladder, all claimed to be flat; the second scatters ten times as much."""

    def run(random, share):
        tilt = OFF * share * np.log(SIZES)[:, None]
        logs = [
            on * tilt + spread * random.normal(size=(len(SIZES), draws))
            for on, spread in zip(tilted, (0.1, 1.0), strict=True)
        ]
        rows = [LadderRow("y", "width", ladder_slope(SIZES, np.exp(log))) for log in logs]
        return Contest(*against_conditions(rows), apart=OFF, gaussian=True).weigh(2, draws)

    return run


@pytest.mark.parametrize("allowance", [0.0, 0.3])
def test_of_unequal_numbers_the_power_is_that_of_all_and_that_of_the_least_sure(allowance):
    """The surest one alone is seen as soon as all of them are, the least sure one alone much later."""

    def refuted(tilted, share):
        return _share(_unequal(tilted, allowance=allowance), share)

    together, alone = (_median_power(_unequal((1, 1, 0), allowance=allowance), of=of) for of in ("together", "alone"))
    assert alone > 2 * together
    for tilted, power in (((1, 1, 0), together), ((1, 0, 0), together), ((0, 1, 0), alone)):
        assert 0.98 <= refuted(tilted, power) <= 1.0
        assert refuted(tilted, power / 3) < 0.01
    assert refuted((0, 1, 0), together) < 0.01


def test_a_row_of_a_ladder_that_scatters_more_hides_a_tilt_of_its_own():
    """A slope's allowance is drawn as well, and one run states its power by its own: nine of ten others reach it."""
    together, alone = (_median_power(_unequal_ladder((1, 1)), of=of) for of in ("together", "alone"))
    assert alone > 5 * together
    for tilted, power in (((1, 1), together), ((0, 1), alone)):
        assert _share(_unequal_ladder(tilted), power) > 0.9
        assert _share(_unequal_ladder(tilted), power / 3) < 0.05


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        (Shares(0.3, 0.3), "a deviation of 30 % of the gap between claim and rival is refuted"),
        (Shares(0.301, 0.299), "a deviation of 30 % of the gap between claim and rival is refuted"),
        (
            Shares(0.0019, 0.8),
            "a deviation of 0.19 % of the gap between claim and rival is refuted if all numbers share it; the least "
            "certain one alone needs 80 %",
        ),
        (
            Shares(0.5, 3.0),
            "a deviation of 50 % of the gap between claim and rival is refuted if all numbers share it; the least "
            "certain one alone needs 300 %",
        ),
        (Shares(2.0, 2.0), "a deviation of 200 % of the gap between claim and rival is refuted"),
        (
            Shares(0.7, None),
            "a deviation of 70 % of the gap between claim and rival is refuted if all numbers share it, and none of "
            "one number alone",
        ),
    ],
)
def test_two_shares_are_stated_where_they_differ(shares, words):
    assert power_in_words(shares) == words


@pytest.mark.parametrize(
    "draw",
    [_mean(8), _mean(16, allowance=0.3), _mean(400), _at_most(16), _at_most(400), _ladder(12), _ladder(100)],
    ids=["few", "allowed", "many", "bound, few", "bound, many", "ladder, few", "ladder, many"],
)
def test_the_stated_power_is_where_tilted_draws_are_refuted(draw):
    power = _median_power(draw)
    assert _share(draw, power) > 0.95
    assert _share(draw, power / 3) < 0.1
    assert _share(draw, 0.0) == 0.0


def test_where_claim_and_rival_meet_the_power_is_a_deviation():
    """A loss is claimed to be lower, and the rival says that it is higher: no way lies between them."""

    def run(random, difference):
        y = random.normal(size=32) + difference
        sides = (Deviation(max(sign * y.mean(), 0.0), y.std(ddof=1) / np.sqrt(32)) for sign in (1, -1))
        return Contest(*sides, unit="nats").weigh(1, 32)

    words = run(np.random.default_rng(0), 0.0).power
    several = Contest(Deviation([0.0, 0.0], [0.1, 1.0]), Deviation(9.0, 1.0), unit="nats").weigh(2, 1000).power
    sure = Bands.of(2, 1000).sure
    assert several.startswith(
        f"a deviation of {0.1 * sure:.2g} nats is refuted if all numbers share it; the least certain one alone needs "
        f"{sure:.2g} nats"
    )
    assert words.startswith("a deviation of ")
    assert words.endswith(" nats is refuted")
    stated = float(words.split()[3])
    assert _share(run, 1.2 * stated) > 0.97
    assert _share(run, stated / 3) < 0.05


@pytest.mark.parametrize(("draws", "allowance"), [(100, 0.0), (400, 0.3)])
def test_a_claim_and_a_rival_that_are_exchanged_have_a_power_of_their_own(draws, allowance):
    """A share of the way from the rival to the claim, the claim is confirmed, so that the rival is refuted."""
    power = _median_power(_mean(draws, allowance), "power_of_rival")
    towards_claim = _mean(draws, allowance)
    assert 0.3 < power <= 1
    assert _share(towards_claim, 1 - power, Verdict.CONFIRMED) > 0.95
    assert _share(towards_claim, 1 - power / 3, Verdict.CONFIRMED) < 0.05


@pytest.mark.parametrize("tilted", [(1, 1), (0, 1)])
def test_one_number_alone_does_not_confirm_a_claim_so_that_its_rival_stands(tilted):
    """Two means half way and more from a rival of 2 to a claim of 0."""

    def run(random, share):
        y = random.normal(2.0 - 2.0 * share * np.array(tilted), 1.0, (400, 2))
        sides = {"claimed": [0.0, 0.0], "rival": [2.0, 2.0]}
        return contest(y.mean(axis=0), y.std(axis=0, ddof=1) / 20, **sides).weigh(4, 400)

    power = run(np.random.default_rng(6), 1.0).power_of_rival
    assert power.alone is None
    confirmed = _share(run, power.together, Verdict.CONFIRMED)
    assert confirmed > 0.95 if tilted == (1, 1) else confirmed == 0.0


def test_two_laws_between_two_ends_have_a_way_back_in_numbers_of_their_own():
    """Corrections from 1 at the low end to 4^exponent at the high one, on the way from the rival's exponent."""

    def run(random, share):
        ends = _Ends.__new__(_Ends)
        ends.factor, ends.stderr, ends.one_site = 4.0, np.array([0.01, 0.01]), np.array([1.0, 0.25])
        ends.drawn = np.array([1.0, 1.0 - share * 0.75]) + 0.01 * random.normal(size=2)
        return ends.contest(claimed=-1.0, rival=0.0, letter="L").weigh(2, 1000)

    power = _median_power(run, "power_of_rival")
    assert _share(run, power, Verdict.CONFIRMED) > 0.95
    assert _share(run, power / 3, Verdict.CONFIRMED) < 0.05


def test_draws_that_are_too_few_to_refute_the_rival_say_so():
    ruling = _mean(3)(np.random.default_rng(0), 0.0)
    assert ruling.power.together > 1
    assert ruling.power_of_rival == "fewer than 99 of 100 such runs would refute even what the rival says"
    alike = contest([1.0], [0.1], claimed=1.0, rival=1.0).weigh(2, 1000)
    assert alike.power == "none: nothing that is measured differs between claim and rival"
    heavy = Contest(Deviation(0.0, 1.0), Deviation(9.0, 1.0), largest_share=0.5, apart=9.0).weigh(2, 1000)
    assert heavy.power == "none: a mean has not converged"


def test_errors_of_few_draws_ask_for_more_than_the_band_and_known_ones_do_not():
    assert Bands(3.0, 5.0).sure == pytest.approx(5.0 + 2.326, abs=1e-3)
    assert Bands.of(4, 1e6).sure == pytest.approx(Bands.of(4, 1e6).alarm + 2.326, abs=0.01)
    few = Bands.of(4, 16)
    assert few.sure > 1.3 * few.alarm
    # Of a hundred numbers that are off by so much, errors estimated with them, 99 leave the band, whatever its width.
    random = np.random.default_rng(5)
    for bands in (Bands.of(1, 8), Bands.of(4, 16), Bands.of(10, 200)):
        scatter = np.sqrt(random.chisquare(bands.freedom, 40_000) / bands.freedom)
        beyond = bands.sure + random.normal(size=40_000) > bands.alarm * scatter
        assert np.mean(beyond) == pytest.approx(0.99, abs=0.002)


@pytest.mark.parametrize(("claimed", "rival", "tolerance"), [(-1.5, -1.0, 0.05), (0.0, 1.0, 0.1)])
def test_computed_numbers_are_refuted_from_the_stated_share_on(claimed, rival, tolerance):
    words = computed(claimed, claimed, rival, tolerance, "numbers").power
    stated = float(words.split()[4]) / 100
    assert words == f"exact: a deviation of {100 * stated:.2g} % of the gap between claim and rival is refuted"

    def at(share):
        return computed(claimed + share * (rival - claimed), claimed, rival, tolerance, "numbers").verdict

    assert at(stated + 1e-9) is Verdict.REFUTED
    assert at(stated - 0.01) is Verdict.INCONCLUSIVE
    assert at(0.0) is Verdict.CONFIRMED


def test_an_identity_is_refuted_by_any_deviation_beyond_rounding():
    ruling = identity([1.0, 1.0], 1.0, 2.0, 1e-9, "numbers")
    assert (ruling.verdict, ruling.power) == (Verdict.CONFIRMED, "exact: any deviation above 1e-09 is refuted")
    assert identity([1.0, 1 + 2e-9], 1.0, 2.0, 1e-9, "numbers").verdict is Verdict.REFUTED
    assert identity([1.0, 1 + 0.5e-9], 1.0, 2.0, 1e-9, "numbers").verdict is Verdict.CONFIRMED
    assert judge_identity([1.0, np.nan], 1.0, 2.0, 1e-9) is Verdict.INCONCLUSIVE
    with pytest.raises(ValueError, match="does not tell the claim 1 from its rival 1"):
        judge_identity(1.0, 1.0, 1.0, 1e-9)


# Runs that announce a number, each judged by a run of so many draws. A share of 8 in 10 of them varies by 0.033.
RUNS_OF_DRAWS = 150
NEEDED = re.compile(r"; about ([\d,]+) needed \([\d,]+ made\), with which 8 of 10 runs or more (refute|decide if)")


def _normal(random, draws):
    """Mean and standard error of Gaussian draws of spread 1, whose own spread is estimated."""
    return random.normal() / np.sqrt(draws), np.sqrt(random.chisquare(draws - 1) / (draws - 1) / draws)


def _skewed(random, draws):
    """The same of log-normal draws, less their true mean."""
    values = np.exp(0.8 * random.normal(size=draws) - 0.32)
    return values.mean() - 1.0, values.std(ddof=1) / np.sqrt(draws)


def _against(claimed, rival, draw=_normal, points=1, gaussian=True):
    """Numbers that are 0, held against a claim and a rival so many spreads of a draw away."""

    def run(random, draws):
        means, errors = zip(*(draw(random, draws) for _ in range(points)), strict=True)
        return contest(means, errors, claimed=claimed, rival=rival, gaussian=gaussian).weigh(2 * points, draws)

    return run


def _shares(run, draws, what):
    """Of runs with the draws that such runs announce to do ``what``, how many decide; and of runs with half of them."""
    random, decided = np.random.default_rng(1), []
    while len(decided) < RUNS_OF_DRAWS:
        first = run(random, draws)
        if first.verdict is Verdict.INCONCLUSIVE and (named := NEEDED.search(first.evidence)) and named[2] == what:
            needed = int(named[1].replace(",", ""))
            decided.append([run(random, many).verdict is not Verdict.INCONCLUSIVE for many in (needed, needed // 2)])
    return np.mean(decided, axis=0)


@pytest.mark.parametrize(
    ("run", "draws", "what"),
    [
        (_against(0.0, 0.5), 40, "decide if"),
        (_against(0.0, 0.9), 16, "decide if"),
        (_against(0.9, 0.0), 16, "refute"),
        (_against(0.5, -0.6), 40, "refute"),
        (_against(0.0, 0.3, points=6), 100, "decide if"),
        (_against(0.0, 0.4, _skewed, gaussian=False), 64, "decide if"),
    ],
    ids=["a true claim", "few draws", "a false claim", "neither", "six numbers", "skewed draws"],
)
def test_with_the_announced_draws_as_many_runs_decide_as_are_promised(run, draws, what):
    announced, half = _shares(run, draws, what)
    assert announced >= PROMISED
    assert half < PROMISED - 0.05


def test_where_neither_holds_the_evidence_says_what_does():
    """A slope that lies 0.25 from one law and 0.2 from the other: no draws confirm either, and more refute both."""
    ruling = contest([-1.3], [0.05], claimed=-1.55, rival=-1.5).weigh(2, 100)
    assert ruling.verdict is Verdict.INCONCLUSIVE
    lies = "neither holds: what is measured lies +0.25 +- 0.05 from what is claimed and +0.2 +- 0.05 from the rival"
    assert f"; {lies}, so that no draws confirm either; about " in ruling.evidence
    assert ruling.evidence.endswith(" runs or more refute what is claimed")
    lies = "neither holds: what is measured lies +0.25 +- 0.05 from the rival and +0.2 +- 0.05 from what is claimed"
    assert lies in ruling.evidence_of_rival
    assert ruling.evidence_of_rival.endswith(" runs or more refute the rival")
    either = contest([-1.3], [0.05], claimed=-1.55, rival=-1.3).weigh(2, 100)
    assert "neither" not in either.evidence
    assert "too few draws" in either.evidence


def test_no_evidence_says_that_no_draws_decide_and_how_many_do():
    """Claim and rival on either side of what is measured, granted much or nothing."""
    said = []
    for claimed, rival, allowance, draws in product((-0.3, 0.0, 0.25), (-0.2, 0.1, 0.3), (0.0, 0.5), (20, 100, 1000)):
        ruling = contest([0.0], [0.05], claimed=claimed, rival=rival, allowance=allowance).weigh(2, draws)
        said += [ruling.evidence, ruling.evidence_of_rival]
    words = "no draws decide", "8 of 10"
    never, some = ({place for place, evidence in enumerate(said) if told in evidence} for told in words)
    assert never
    assert some
    assert not never & some


def test_of_several_numbers_the_one_that_is_farthest_from_the_claim_is_told():
    ruling = contest([0.0, 0.24], [0.05, 0.06], claimed=[0.0, 0.0], rival=[0.5, 0.5]).weigh(2, 100)
    assert "lies +0.24 +- 0.06 from what is claimed and -0.26 +- 0.06 from the rival" in ruling.evidence


def test_of_few_standard_errors_no_number_is_announced():
    """A rival one standard error off may lie anywhere; at five it is known, and the nearer the more draws it takes."""
    near = contest([0.0], [1.0], claimed=0.0, rival=1.0).weigh(2, 1000)
    assert near.evidence.endswith(
        "; too few draws; so few draws do not tell how many would decide if what is claimed holds"
    )
    needs = [times_more(Deviation(off, 1.0), 2, 1000) for off in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert needs[0] == np.inf
    assert needs == sorted(needs, reverse=True)
    assert 1 < needs[-1] < 4
    many = times_more(Deviation(np.full(40, 3.0), 1.0), 40, 1000), times_more(Deviation(3.0, 1.0), 40, 1000)
    assert many[0] > many[1]  # the worst of forty numbers that are not off is as far off by luck


def test_an_error_that_draws_do_not_reduce_asks_for_more_of_them_or_for_none():
    """With t times the draws an error s of which a share r is fixed is s (r + (1 - r) / t)^(1/2)."""
    needs = [times_more(Deviation(3.5, 1.0), 2, 1000, fixed=fixed) for fixed in (0.0, 0.02, 0.05, 0.9)]
    assert 1 < needs[0] < needs[1] < needs[2] < needs[3] == np.inf
    sides = [Deviation([off], [1.0]) for off in (0.0, 3.5)]
    said = [Contest(*sides, fixed=fixed, apart=3.5).weigh(2, 1000) for fixed in (0.0, 0.05, 0.9)]
    assert [ruling.verdict for ruling in said] == [Verdict.INCONCLUSIVE] * 3
    assert 1000 < said[0].needed < said[1].needed
    assert said[2].needed is None
    assert said[2].evidence.endswith("; no draws decide: 90 % of the error's square does not fall with their number")


def test_a_mean_that_has_not_converged_announces_what_converges():
    heavy = Contest(Deviation(0.0, 1.0), Deviation(9.0, 1.0), largest_share=0.5, apart=9.0).weigh(2, 1000)
    assert heavy.evidence.endswith(" needed (1,000 made), with which half of all runs converge")
