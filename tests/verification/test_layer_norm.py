"""LayerNorm's Jacobian: the formula, the eigenvalues behind its norm, and negative controls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.verification.verdicts import Verdict
from sims.identities import layer_norm as claims
from sims.identities.layer_norm import (
    LayerNormExample,
    jacobian,
    norm_ratio,
    numerical_jacobian,
    spread,
)


@st.composite
def examples(draw, smallest=2):
    size = draw(st.integers(smallest, 8))
    lists = st.lists(st.floats(-5, 5), min_size=size, max_size=size)
    gain = np.array(draw(lists))
    gain[draw(st.integers(0, size - 1))] = 1.0
    return LayerNormExample(np.array(draw(lists)), gain, draw(st.sampled_from((1e-3, 0.1, 10.0))))


@given(examples())
def test_formula(example):
    """The third derivative of LN is of order gamma / s^3, which bounds what central differences leave."""
    scale = np.abs(example.gain).max() / spread(example.values, example.epsilon)
    np.testing.assert_allclose(jacobian(example), numerical_jacobian(example), atol=claims.TOLERANCE * scale)


@given(examples())
def test_eigenvalues_of_the_bracket(example):
    ones = LayerNormExample(example.values, np.ones(len(example.values)), example.epsilon)
    s = spread(example.values, example.epsilon)
    expected = np.sort([0.0, example.epsilon / s**2, *[1.0] * (len(example.values) - 2)])
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(jacobian(ones) * s)), expected, atol=1e-9)


@given(examples())
def test_one_is_enough_where_the_bound_has_two(example):
    assert norm_ratio(example) <= 1 + claims.TOLERANCE


@given(examples(smallest=3))
def test_and_no_less_than_one(example):
    """With equal gains the norm is gamma / s, so that no smaller constant serves."""
    assert norm_ratio(LayerNormExample(example.values, np.ones(len(example.values)), example.epsilon)) == pytest.approx(
        1.0
    )


def test_findings():
    formula, bound = claims.findings()
    assert formula.verdict is Verdict.CONFIRMED
    assert bound.verdict is Verdict.CONFIRMED
    assert "found 1.0000" in bound.evidence


def test_another_map_refutes_both(monkeypatch):
    """Negative control: a map whose slopes are three times as large."""
    plain = claims.layer_norm
    monkeypatch.setattr(claims, "layer_norm", lambda values, gain, epsilon: 3 * plain(values, gain, epsilon))
    assert claims.judge_jacobian().verdict is not Verdict.CONFIRMED
    assert claims.judge_bound().verdict is Verdict.REFUTED
