"""Appendix B.2.5, exactly: conditions of order j follow from the initial and the first-order ones."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from meanfield.theory.laws import branch_products

norms = st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=50)


@st.composite
def branches(draw, least=1):
    layers = draw(st.integers(least, 5))
    return draw(norms), [draw(norms) for _ in range(layers)], [draw(norms) for _ in range(layers)]


def satisfying(depth, weights):
    """Multiplier and update norms that meet the initial and the first-order conditions exactly."""
    multiplier = Fraction(1, depth) / math.prod(weights)
    updates = [Fraction(1, depth) * weight / (multiplier * math.prod(weights)) for weight in weights]
    return multiplier, weights, updates


@given(branches())
def test_products_of_any_order_follow_from_those_of_order_one(branch):
    products = branch_products(*branch)
    assert len(products) == 2 ** len(branch[1])
    for chosen, product in products.items():
        assert product == _implied_product(products, chosen)


@given(st.integers(1, 1000), st.lists(norms, min_size=1, max_size=5))
def test_initial_and_first_order_conditions_imply_all(depth, weights):
    products = branch_products(*satisfying(depth, weights))
    assert set(products.values()) == {Fraction(1, depth)}


@given(st.integers(1, 1000), st.lists(norms, min_size=2, max_size=5), norms)
def test_without_the_initial_condition_they_do_not(depth, weights, excess):
    """First order alone: products of order j are off by excess^(1 - j), which order one does not see."""
    assume(excess != 1)
    multiplier = excess * Fraction(1, depth) / math.prod(weights)
    products = branch_products(multiplier, weights, [weight / excess for weight in weights])
    for chosen, product in products.items():
        assert product * depth == excess ** (1 - len(chosen))


@given(branches(least=2))
def test_first_and_highest_order_conditions_imply_the_initial_one(branch):
    """The other direction of B.2.5 (section 3.3.3 for two layers): initial^(k-1) is prod of first over highest."""
    products = branch_products(*branch)
    layers = tuple(range(len(branch[1])))
    first = math.prod(products[(layer,)] for layer in layers)
    assert products[()] ** (len(layers) - 1) == first / products[layers]


@given(st.integers(1, 1000), st.lists(norms, min_size=2, max_size=5), st.data())
def test_constants_compound(depth, weights, data):
    """Conditions that hold within a factor c give those of order j within c^(2j - 1), and that is attained."""
    factor = Fraction(3, 2)
    multiplier, weights, updates = satisfying(depth, weights)
    off = [data.draw(st.sampled_from([1 / factor, Fraction(1), factor])) for _ in updates]
    low = data.draw(st.sampled_from([1 / factor, Fraction(1), factor]))
    products = branch_products(multiplier * low, weights, [u * o / low for u, o in zip(updates, off, strict=True)])
    for chosen, product in products.items():
        order = max(len(chosen), 1)
        bound = factor ** (2 * order - 1)
        assert 1 / bound <= product * depth <= bound
    worst = branch_products(multiplier / factor, weights, [update * factor**2 for update in updates])
    assert worst[(0, 1)] * depth == factor**3


@given(st.integers(1, 1000), norms, norms)
def test_inner_biases_join_as_a_layer_does(depth, bias, weight):
    """B.3: alpha |W_2| |b_1| and its first-order changes of 1/L give alpha |Delta W_2| |Delta b_1| = 1/L."""
    products = branch_products(*satisfying(depth, [bias, weight]))
    assert products[(0, 1)] == Fraction(1, depth)


def test_the_four_groups_of_a_branch_of_two_layers():
    products = branch_products(0.5, [2.0, 3.0], [5.0, 7.0])
    assert products == {(): 3.0, (0,): 7.5, (1,): 7.0, (0, 1): 17.5}


def test_unequal_numbers_are_refused():
    with pytest.raises(ValueError, match="2 weight norms and 1 update norms"):
        branch_products(1.0, [1.0, 1.0], [1.0])


def _implied_product(products, chosen):
    """The product of ``chosen`` layers from those of lower order alone: prod_i P_(i) / P_()^(j - 1).

    An identity, whatever the norms (Zheng et al. 2026, appendix B.2.5). So where P_() = 1/L and every P_(i) = 1/L, all
    are 1/L; where they hold within a factor c, a product of order j holds within c^(2j - 1).
    """
    first_order = math.prod(products[(layer,)] for layer in chosen)
    return first_order / products[()] ** (len(chosen) - 1)
