"""Layers that no family lists, in mean field: as the families where these list them, and as draws elsewhere.

Means at width n are off by shares of order depth / n, which halve from 64 to 128 channels and cancel in 2 m(2n) - m(n).
"""

from functools import cache

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.listed import listed_layers
from meanfield.nets.maps import Bias, Gate, Linear, Normalisation, Pointwise, Pooling, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.theory.mean_field.layers import mean_field_profiles
from tests.statistics import consistent

WIDTHS, DRAWS = (64, 128), 500
# What is left of second order in depth / n behind the extrapolation.
ALLOWANCE = 0.05
FAMILIES = (
    mf.MLP(depth=3, width=(5, 6, 7), activation="gelu", weight_variance=1.7, inputs=2, head="mup"),
    mf.MLP(depth=2, width=4, input_width=9, activation="erf"),
    mf.ConvNet(depth=3, channels=4, grid=(5,), padding="zero", readout="convolution"),
    mf.ConvNet(depth=2, channels=4, grid=(3, 2), kernel=(3, 2)),
    mf.ResidualMLP(depth=3, width=7, block_depth=3, head="fan_in"),
    mf.ResidualConvNet(
        depth=3, channels=4, grid=(4,), block_depth=2, stem=1, tail=2, scaling=0.3, activation="tanh", inputs=2
    ).replace(readout="convolution"),
)


@pytest.mark.parametrize("net", FAMILIES, ids=lambda net: type(net).__name__)
def test_the_units_of_a_family_have_its_mean_field(net):
    listed, why = listed_layers(mf.Chain.of(net))
    assert not why
    assert listed.describe()["family"] == "Chain"
    overlap, label = mean_field_profiles(net)
    again = mean_field_profiles(listed)
    np.testing.assert_allclose(again[0], overlap, rtol=1e-13)
    if not net.is_pooled:
        np.testing.assert_allclose(again[1], label, rtol=1e-13)


def _linear(name, above, below, variance, kernel=()):
    shape = (above, below, *kernel)
    return Linear((Weight(name, shape, variance / np.prod(shape[1:])),), "zero" if kernel else "circular")


def _readout(width, *maps, kernel=()):
    return Unit((*maps, _linear("readout", 10, width, 1.5, kernel)))


def mixed(width, activations=("relu", "tanh", "erf"), variances=(1.5, 2.0, 3.0)):
    """Another activation and variance at every layer, the second of more channels."""
    widths = (width, width, width + 16, width)
    units = [
        Unit((Pointwise(name), _linear(f"W{place}", widths[place + 1], widths[place], variance)))
        for place, (name, variance) in enumerate(zip(activations, variances, strict=True))
    ]
    return Chain(units=tuple(units), readout_unit=_readout(width, Pointwise("gelu")), input_channels=width, inputs=2)


def blocks(width, multipliers=(0.7, 0.4, 0.3)):
    """Blocks of one, two and one layers, each of a factor and variances of its own, on a stem."""
    units = [Unit((Pointwise("relu"), _linear("stem", width, width, 2.0)))]
    for place, (depth, factor) in enumerate(zip((1, 2, 1), multipliers, strict=True), start=1):
        layers = ((Pointwise("relu"), _linear(f"W{place}{j}", width, width, 1.6 + 0.4 * j)) for j in range(depth))
        units.append(Unit(sum(layers, ()), place, factor))
    top = _readout(width, Pointwise("relu"))
    return Chain(units=tuple(units), readout_unit=top, input_channels=width, input_law="normalised")


def normalised(width, epsilon=0.3, factor=0.6, kernel=(3,)):
    """Layers on a grid that normalise what they read, and multiply what they make, behind a bare matrix."""
    units = [Unit((_linear("stem", width, width, 1.3, kernel),))]
    for place, (kind, name) in enumerate((("rms", "relu"), ("layer", "tanh"))):
        norm = () if epsilon is None else (Normalisation(kind, epsilon),)
        units.append(Unit((*norm, Pointwise(name), _linear(f"W{place}", width, width, 2.0, kernel)), None, factor))
    top = _readout(width, Normalisation("rms"), Pointwise("relu"), kernel=kernel)
    return Chain(units=tuple(units), readout_unit=top, input_channels=width, grid=(4,))


def bare(width):
    """Linear blocks whose factors are far from those of the fan-in rule, as parameterisations have them."""
    factors = (0.5, 2.0, 0.3)
    return mf.BlockNet(
        width=width, depth=2, block_depth=2, input_width=64, samples=1, activation="linear", biases=False
    ).replace(multipliers=factors)


NETS = {"bare": bare, "mixed": mixed, "blocks": blocks, "normalised": normalised}
# What the mean field must tell apart: activations in another order, factors that are exchanged, sizes left as they are.
RIVALS = {
    "bare": lambda width: bare(width).replace(block_depth=1),
    "mixed": lambda width: mixed(width, ("relu", "erf", "tanh")),
    "blocks": lambda width: blocks(width, (0.7, 0.7, 0.3)),
    "normalised": lambda width: normalised(width, epsilon=None),
}


@cache
def _drawn(name, width):
    return mf.simulate(NETS[name](width), draws=DRAWS, seed=3)


def _agrees(name, make, quantity):
    ratios, errors = [], []
    for width in WIDTHS:
        drawn, predicted = _drawn(name, width), mf.predict(make(width), level="mean_field")
        ratios.append((drawn[quantity] / predicted[quantity]).values)
        errors.append((drawn[f"{quantity}_stderr"] / predicted[quantity]).values)
    extrapolated, error = 2 * ratios[1] - ratios[0], np.hypot(2 * errors[1], errors[0])
    return consistent(extrapolated - 1, error, DRAWS, ALLOWANCE)


@pytest.mark.parametrize("quantity", ["label_term", "overlap_energy"])
@pytest.mark.parametrize("name", NETS)
def test_layers_that_differ_are_drawn_as_predicted(name, quantity):
    assert _agrees(name, NETS[name], quantity)


@pytest.mark.parametrize("name", NETS)
def test_another_net_of_the_same_layers_is_told_apart(name):
    assert not all(_agrees(name, RIVALS[name], quantity) for quantity in ("label_term", "overlap_energy"))


def test_given_inputs_and_sites_are_served_too():
    chain = normalised(16)
    inputs = np.random.default_rng(0).normal(size=chain.input_shape)
    predicted = mf.predict(chain, level="mean_field", inputs=inputs, by_site=True)
    np.testing.assert_allclose(predicted.label_term_by_site.mean("site"), predicted.label_term, rtol=1e-12)
    pooled = Chain.of(chain, readout_unit=_readout(16, Pointwise("relu"), Pooling()))
    predicted = mf.predict(pooled, level="mean_field")
    assert "label_term" not in predicted
    assert "label_term: pooled or correlated labels are predicted where all layers" in predicted.attrs["left_out"]
    with pytest.raises(ValueError, match=r"batch and loss are predicted at level 'mean_field' of plain nets"):
        mf.predict(chain, level="mean_field", batch=mf.Batch(label_mean=1.0))


def _with(unit=None, place=1, **changes):
    chain = mixed(8)
    units = list(chain.units)
    if unit is not None:
        units[place] = unit
    return Chain.of(chain, units=tuple(units), **changes)


SQUARE = _linear("other", 24, 8, 1.0)


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        (_with(Unit((SQUARE, Bias(Weight("b", (24,), 1.0))))), "unit 2 is made of Linear, Bias, not of"),
        (_with(Unit((SQUARE,), after=(Normalisation("rms"),))), "unit 2 has Normalisation behind its join"),
        (
            _with(Unit((_linear("u", 16, 8, 1.0), Gate("silu"), _linear("v", 24, 8, 1.0)))),
            "unit 2 is made of Linear, G",
        ),
        (
            _with(Unit((_linear("u", 8, 8, 1.0), _linear("v", 24, 8, 1.0)))),
            "unit 2 holds several layers without a skip",
        ),
        (_with(Unit((Linear((Weight("g", (24, 4), 1.0, 2),)),))), "unit 2 has weights side by side, or in groups"),
        (_with(Unit((Normalisation("rms"), _linear("n", 8, 8, 1.0))), 0), "its inputs are normalised by a map"),
        (_with(Unit((_linear("s", 8, 24, 1.0),), 0), 2), "unit 3 skips from value 0, over several units"),
        (_with(Unit((_linear("s", 8, 8, 1.0),), 0), 0), r"is read by several activations \(erf, gelu, linear, tanh\)"),
        (_with(readout_unit=None), "it has no readout"),
        (_with(readout_unit=Unit((Gate("silu"), _linear("r", 2, 4, 1.0)))), "its readout is made of Gate, Linear"),
        (_with(input_law="tokens"), "inputs are tokens"),
        (
            Chain(units=(Unit((SQUARE, Bias(Weight("b", (24,), 1.0)))),) * 1, input_channels=8),
            "unit 1 is made of Linear, Bias, .*; it has no readout",
        ),
    ],
)
def test_refusals_name_the_unit_and_the_reason(chain, reason):
    with pytest.raises(ValueError, match=rf"there is none for lists of units that are no family's: .*here .*{reason}"):
        mf.predict(chain, level="mean_field")


def _deep(depth, **changes):
    """Blocks of two factors by turns."""
    units = (
        Unit((Pointwise("relu"), _linear(f"W{place}", 32, 32, 2.0)), place, 0.5 if place % 2 else 0.2)
        for place in range(depth)
    )
    chain = Chain(units=tuple(units), readout_unit=_readout(32, Pointwise("relu")), input_channels=32)
    return Chain.of(chain, **changes)


def test_a_rate_is_carried_by_the_mean_field_and_by_no_law():
    nets = _deep(3), _deep(6)
    carried = mf.explain_transfer(0.1, *nets)
    scales = [float(mf.predict(net, level="mean_field")["label_learning_rate_scale"]) for net in nets]
    assert carried.rule == "finite_depth"
    assert carried.rate == pytest.approx(0.1 * scales[1] / scales[0], rel=1e-12)
    assert set(carried.refusals) == {"power_law", "whole_update", "exact", "typical"}
    assert "a list of units says what it is at one depth alone" in carried.refusals["power_law"]
    assert any("nothing but the blocks learns" in premise for premise in carried.premises)
    with pytest.raises(ValueError, match="PathSum counts layers"):
        mf.explain_transfer(0.1, *nets, rule="path_sum")


@pytest.mark.parametrize(
    ("end", "error", "words"),
    [
        (
            _deep(6, readout_unit=_readout(32, Pointwise("tanh"))),
            TypeError,
            "where its stream is read by several activ",
        ),
        (
            _deep(6, readout_unit=Unit((Pointwise("relu"), _linear("r", 5, 32, 1.5)))),
            ValueError,
            "the nets differ in outputs, and",
        ),
        (
            _deep(6, readout_unit=Unit((Pointwise("relu"), _linear("r", 10, 32, 3.0)))),
            ValueError,
            "the nets differ in head, and the out",
        ),
        (_deep(6, inputs=2), ValueError, "batches of 1 and 2 samples"),
        (_deep(6, readout_unit=None), TypeError, "or lists of layers, where it has no readout"),
        (mf.MLP(depth=3, width=8), ValueError, "of two families, Chain and MLP"),
        (3, TypeError, "a net is 'int'"),
    ],
)
def test_pairs_that_no_rule_joins_are_refused(end, error, words):
    with pytest.raises(error, match=words):
        mf.explain_transfer(0.1, _deep(3), end)
