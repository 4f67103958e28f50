"""What is read off a stream of tokens: against differences of forward passes, exact identities and laws of one unit."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import streams_of_draws
from meanfield.simulation import passes
from meanfield.simulation.measures.energies import Energies, drawn_passes
from meanfield.simulation.measures.propagation import _directions, token_correlation
from tests.statistics import consistent

HOW = {"draws": 4, "seed": 3}
NET = mf.Transformer(depth=2, width=16, heads=2, tokens=3, inputs=2)
CONVOLUTIONAL = mf.ConvNet(depth=3, channels=8, grid=(5,))
DENSE = mf.TangentPropagation(starts=(0, 2), weights="dense")


def _state(net, draws=2):
    return drawn_passes(net, HOW["seed"], range(draws), Energies(weights="dense"))[0]


@pytest.mark.parametrize("net", [NET, NET.replace(norm="post", causal=True), CONVOLUTIONAL])
@pytest.mark.parametrize("start", [0, 1])
def test_propagation_is_that_of_small_changes(net, start):
    """Values are moved by 1e-6 times the direction; ReLU and attention bend by 1e-6 of that at most."""
    state, small = _state(net), 1e-6
    drawn = _directions(state.values[start], streams_of_draws(HOW["seed"], f"directions at {start}", range(2)))
    measured = replace(DENSE, starts=(start,)).settled(net).draw(net, HOW["seed"], range(2))["tangent_propagation"]
    for kind, direction in enumerate(np.split(drawn, 2, axis=2)):
        values = [state.values[start] + side * small * direction for side in (1, -1)]
        for layer, unit in enumerate(net.units[start:], start=start):
            values = [
                passes.through(unit, [*[None] * layer, side], [state.setting] * (layer + 1))[0] for side in values
            ]
            difference = (values[0] - values[1]) / (2 * small)
            lengths = np.square(difference).mean(axis=(1, 2, 3)) / np.square(direction).mean(axis=(1, 2, 3))
            np.testing.assert_allclose(measured[:, kind, 0, layer], lengths, rtol=1e-4)


def test_directions_are_shared_by_tokens_or_sum_to_zero_over_them():
    state = _state(NET)
    shared, difference = np.split(_directions(state.values[1], streams_of_draws(0, "any", range(2))), 2, axis=2)
    np.testing.assert_array_equal(shared, shared[..., :1].repeat(3, axis=3))
    np.testing.assert_allclose(difference.sum(axis=3), 0.0, atol=1e-13)
    for kind in (shared, difference):
        np.testing.assert_allclose(np.square(kind).mean(axis=(1, 2, 3)), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("norm", "expected"), [("pre", True), ("post", False)])
def test_a_pre_norm_unit_passes_its_own_stream_on_unchanged(norm, expected):
    """A branch sees directions of tokens alone: stretching them moves it nowhere. A norm behind the join undoes it."""
    state = _state(NET.replace(norm=norm))
    moved = passes.tangent_through(state, 2, state.values[1])
    assert np.allclose(moved, state.values[1], rtol=0, atol=1e-12) == expected


def test_a_start_does_not_change_another():
    both = mf.simulate(NET, measure=DENSE, **HOW)
    alone = mf.simulate(NET, measure=replace(DENSE, starts=(2,)), **HOW)
    for name in ("tangent_propagation", "tangent_propagation_spread", "tangent_propagation_remainder"):
        np.testing.assert_allclose(both[name].sel(start=2), alone[name].sel(start=2), rtol=1e-12)
    rho = both.tangent_propagation.sel(start=2)
    assert rho.sel(layer=1).isnull().all()
    np.testing.assert_array_equal(rho.sel(layer=2), 1.0)
    assert (both.tangent_propagation_spread.sel(start=2, layer=4) > 0).all()
    half = (both.tangent_propagation[0] - both.tangent_propagation[1]) / 2
    np.testing.assert_allclose(both.tangent_propagation_remainder, half, rtol=1e-12)


# One unit of attention on white tokens, uniform at leading order: what all tokens share comes through the branch with
# its full variance, so that rho = 1 + 1, and what sums to zero over tokens does not, so that rho = 1.
ONE_UNIT = mf.Transformer(depth=1, width=256, heads=1, tokens=4, attention_scale="inverse", outputs=1)
DRAWS = 400


@pytest.mark.parametrize(("scale", "expected"), [("inverse", True), ("inverse_sqrt", False)])
def test_uniform_attention_carries_what_tokens_share_and_nothing_else(scale, expected):
    """To 2/n: rho is 1.0085 and 1.0042 for differences at n = 128 and 256, from logits of size n^(-1/2).

    The control has logits of size 1, whose softmax moves with the tokens: rho of differences is then near 1.58. At the
    suite's level a deviation of 0.1 from either law would be seen.
    """
    net = ONE_UNIT.replace(attention_scale=scale)
    found = mf.simulate(net, draws=DRAWS, seed=5, measure=mf.TangentPropagation()).sel(layer=1, start=0)
    difference = found.tangent_propagation.values - [2.0, 1.0]
    assert consistent(difference, found.tangent_propagation_stderr.values, DRAWS, allowance=2 / net.width) == expected
    assert found.tangent_propagation_stderr.max() < 0.02


def test_spread_is_the_deviation_of_draws():
    draws = mf.TangentPropagation(weights="dense").settled(NET).draw(NET, 3, range(50))["tangent_propagation"]
    found = mf.simulate(NET, draws=50, seed=3, measure=mf.TangentPropagation(weights="dense"))
    np.testing.assert_allclose(found.tangent_propagation_spread, draws.std(axis=0, ddof=1), rtol=1e-9)


def test_correlation_is_the_mean_cosine_of_pairs():
    values = np.random.default_rng(0).normal(size=(2, 5, 3, 4))
    found = []
    for draw in values:
        tokens = [[sample[:, t] / np.linalg.norm(sample[:, t]) for t in range(4)] for sample in draw.swapaxes(0, 1)]
        found.append(np.mean([of[s] @ of[t] for of in tokens for s in range(4) for t in range(4) if s != t]))
    np.testing.assert_allclose(token_correlation(values), found, rtol=1e-12)
    np.testing.assert_allclose(token_correlation(values[..., :1].repeat(4, axis=3)), 1.0, rtol=1e-12)


def test_statistics_come_with_the_energies_of_the_same_draws():
    measures = [mf.Energies(weights="dense"), mf.TokenStatistics(weights="dense")]
    found = mf.simulate(NET.replace(norm="post"), measure=measures, **HOW)  # refused, if the two had other energies
    np.testing.assert_allclose(found.stream_variance, 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.relative_update_energy, found.update_energy, rtol=1e-12)
    pre = mf.simulate(NET, measure=measures, **HOW)
    assert (pre.relative_update_energy < 0.8 * pre.update_energy).all()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_they_are_compared_with_the_mean_field(norm):
    """Of 100 draws at width 128: variance and correlation of tokens within 5 standard errors of the law, and 3 L/n.

    The control is the other placement of norms, whose tokens are correlated otherwise: 18 standard errors off at the
    top.
    """
    nets = {kind: mf.Transformer(depth=2, width=128, heads=8, tokens=4, norm=kind) for kind in ("pre", "post")}
    measured = mf.simulate(nets[norm], draws=100, seed=8, measure=mf.TokenStatistics())
    found = mf.compare(measured, mf.predict(nets[norm], level="mean_field"))
    for name in ("stream_variance", "token_correlation"):
        off = abs(found[f"{name}_ratio"] - 1) - 12 / 128
        assert (off < 5 * found[f"{name}_ratio_stderr"]).all()
    other = mf.predict(nets["post" if norm == "pre" else "pre"], level="mean_field")
    off = abs(measured.token_correlation - other.token_correlation) / measured.token_correlation_stderr
    assert off.max() > 8


def test_given_inputs_are_what_both_measure():
    """Tokens that are all alike stay alike, and differences between them vanish nowhere."""
    tokens = np.random.default_rng(1).normal(size=(2, 16, 1)).repeat(3, axis=2)
    found = mf.simulate(NET, measure=[mf.TokenStatistics(inputs=tokens), mf.TangentPropagation(inputs=tokens)], **HOW)
    np.testing.assert_allclose(found.token_correlation, 1.0, rtol=1e-12)
    assert (found.tangent_propagation > 0.1).all()


@pytest.mark.parametrize(
    ("net", "measure", "error", "message"),
    [
        (NET.replace(tokens=1), mf.TokenStatistics(), ValueError, "a single token or site, .* give 2 or more"),
        (NET.replace(tokens=1), mf.TangentPropagation(), ValueError, "no directions that sum to zero over tokens"),
        (mf.MLP(depth=2, width=4), mf.TangentPropagation(), ValueError, "this MLP has a single token"),
        (NET, mf.TangentPropagation(starts=()), ValueError, r"starts are \(\); give one layer or more"),
        (NET, mf.TangentPropagation(starts=(1, 1)), ValueError, r"starts are \(1, 1\); give one layer .* once"),
        (NET, mf.TangentPropagation(starts=(4,)), ValueError, "starts is 4; it must be at most 3"),
        (NET, mf.TangentPropagation(starts=(0.5,)), TypeError, "starts is 0.5; it must be a whole number"),
        (NET, mf.TokenStatistics(weights="gram"), ValueError, "weights is 'gram'; choose one of"),
        (NET, mf.TokenStatistics(inputs=np.ones((2, 16, 4))), ValueError, r"inputs has shape \(2, 16, 4\)"),
    ],
)
def test_what_they_do_not_serve_is_refused(net, measure, error, message):
    with pytest.raises(error, match=message):
        mf.simulate(net, measure=measure, **HOW)


def test_units_that_skip_over_others_are_refused():
    first, second, *_ = NET.units
    chain = mf.Chain(
        units=(first, replace(second, skip=0)), readout_unit=NET.readout_unit, input_channels=16, grid=(3,), inputs=2
    )
    with pytest.raises(ValueError, match=r"unit 2 skips from value 0; .* it may skip from value 1"):
        mf.simulate(chain, measure=mf.TangentPropagation(), **HOW)
    assert mf.simulate(chain, measure=mf.TokenStatistics(), **HOW).stream_variance.shape == (2,)
