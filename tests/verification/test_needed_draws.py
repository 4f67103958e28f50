"""The draws that the evidence announces are judged by runs of so many: eight of ten decide, of half as many fewer."""

import re
from itertools import product

import numpy as np
import pytest

from meanfield.verification.judges import Contest, contest
from meanfield.verification.verdicts import PROMISED, Deviation, Verdict, times_more

# Runs that announce a number, each judged by a run of so many draws. A share of 8 in 10 of them varies by 0.033.
RUNS = 150
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
    while len(decided) < RUNS:
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


def test_a_mean_that_has_not_converged_announces_what_converges():
    heavy = Contest(Deviation(0.0, 1.0), Deviation(9.0, 1.0), largest_share=0.5, apart=9.0).weigh(2, 1000)
    assert heavy.evidence.endswith(" needed (1,000 made), with which half of all runs converge")
