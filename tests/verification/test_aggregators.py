"""Properties of aggregators over random energies and groupings, and negative controls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.verification.verdicts import Verdict
from sims.identities import aggregators as claims
from sims.identities.aggregators import AGGREGATORS, TOLERANCE, AggregatorExample, merged, violations


@st.composite
def examples(draw):
    layers = draw(st.integers(1, 6))
    energies = np.array(draw(st.lists(st.floats(1e-3, 1e3), min_size=layers, max_size=layers)))
    order = np.array(draw(st.permutations(range(layers))))
    groups = np.array(draw(st.lists(st.integers(0, 3), min_size=layers, max_size=layers)))
    return AggregatorExample(energies, order, groups, draw(st.floats(1e-3, 1e3)))


@given(examples())
def test_the_arithmetic_mean_has_all_four(example):
    assert max(violations(AGGREGATORS["arithmetic"], example).values()) < TOLERANCE


@given(examples())
def test_means_are_ordered_and_merging_keeps_the_total(example):
    harmonic, geometric, arithmetic = (
        AGGREGATORS[n](example.energies) for n in ("harmonic", "geometric", "arithmetic")
    )
    assert harmonic <= geometric * (1 + TOLERANCE)
    assert geometric <= arithmetic * (1 + TOLERANCE)
    assert merged(example.energies, example.groups).sum() == pytest.approx(example.energies.sum())


@given(examples(), st.sampled_from(sorted(AGGREGATORS)))
def test_merging_all_layers_forces_the_mean(example, name):
    """With M(c, .., c) = c, the violation on a single group is the distance from the arithmetic mean."""
    aggregator, all_in_one = AGGREGATORS[name], np.zeros(len(example.energies), dtype=np.int64)
    single = AggregatorExample(example.energies, example.order, all_in_one, example.factor)
    if violations(aggregator, single)["normalisation"] < TOLERANCE:
        distance = abs(example.energies.mean() / aggregator(example.energies) - 1)
        assert violations(aggregator, single)["merge"] == pytest.approx(distance, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (lambda energies: float(energies[0]), "permutation"),
        (lambda energies: float(np.mean(energies) ** 2), "scale"),
        (AGGREGATORS["median"], "merge"),
        (AGGREGATORS["sum"], "normalisation"),
    ],
)
def test_the_search_finds_what_is_broken(broken, kind):
    """Negative controls: one aggregator for each property."""
    assert claims.worst_violations({"broken": broken})["broken"][kind] > 0.1


def test_geometric_mean_hides_an_outlier():
    """Zhang et al. 2026, A4: S = (e, 1/e, 1, 1) keeps G = 1 while the arithmetic mean diverges."""
    energies = np.array([1e-8, 1e8, 1.0, 1.0])
    assert AGGREGATORS["geometric"](energies) == pytest.approx(1.0)
    assert AGGREGATORS["arithmetic"](energies) > 1e7


def test_findings():
    uniqueness, others, sensitivity = claims.findings()
    assert uniqueness.verdict is Verdict.CONFIRMED
    assert "sum breaks normalisation alone" in uniqueness.evidence
    assert others.verdict is Verdict.CONFIRMED
    assert "geometric merge; harmonic merge" in others.evidence
    assert sensitivity.verdict is Verdict.REFUTED


def test_an_aggregator_that_equals_the_mean_undoes_uniqueness(monkeypatch):
    """Negative control: were there a second consistent aggregator, the search could not tell it from the mean."""
    monkeypatch.setitem(AGGREGATORS, "twin", lambda energies: float(energies.sum() / len(energies)))
    undone = claims.judge_uniqueness()
    assert undone.verdict is Verdict.INCONCLUSIVE
    assert "does not tell the claim" in undone.evidence


@given(st.integers(2, 10), st.floats(0.01, 10))
def test_slope_of_the_harmonic_mean_is_the_printed_formula(layers, small):
    """The formula of appendix A5, H^2 / (L S_i^2), is right, and below L always; its limit is not infinite."""
    mean = AGGREGATORS["harmonic"](np.array([small, *[1.0] * (layers - 1)]))
    assert claims.harmonic_slope(layers, small) == pytest.approx(mean**2 / (layers * small**2), rel=1e-5)
    assert claims.harmonic_slope(layers, small) < layers
