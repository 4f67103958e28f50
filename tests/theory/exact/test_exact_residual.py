"""Exact expectations of linear residual nets: against draws, quadrature over all weights, identities and limits."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.exact import OVERLAP
from meanfield.theory.laws import residual_exponent
from meanfield.theory.moments import parse_moment
from meanfield.theory.recursions import Recursion
from tests.draws import given_draw
from tests.statistics import consistent

DRAWS = 2048
TERMS = ("overlap_energy", "label_term", "output_term", "update_energy")
SCALINGS = ("init", "multiplier_sqrt", "multiplier_linear", "none")
# (stem, tail) for k = 1, 2, 3 and the four scalings: all of them with and without, on half of the 48 combinations.
ENDS = [(0, 0), (1, 1), (0, 2), (2, 0)]
NETS = [
    {"block_depth": k, "scaling": scaling, "stem": ENDS[place % 4][0], "tail": ENDS[place % 4][1]}
    for k in (1, 2, 3)
    for index, scaling in enumerate(SCALINGS)
    for place in (index + k, index + k + 1)
]


def _net(**options):
    return mf.ResidualMLP(**({"depth": 2, "width": 20, "outputs": 3, "activation": "linear"} | options))


def _agree(measured, predicted, names=TERMS):
    """Whether the terms agree; what does not fluctuate, as F_1 over a given input, to rounding."""
    return all(
        consistent(
            measured[name].values - predicted[name].values,
            np.maximum(measured[f"{name}_stderr"].values, 1e-12 * predicted[name].values),
            DRAWS,
        )
        for name in names
    )


@pytest.mark.parametrize("options", NETS, ids=lambda options: " ".join(map(str, options.values())))
def test_every_term_against_draws_without_allowance(options):
    net = _net(**options)
    assert _agree(mf.simulate(net, draws=DRAWS, seed=21), mf.predict(net, level="exact"))


def test_a_thin_input_and_another_head():
    net = _net(stem=1, input_width=3, head="mup", outputs=30)
    assert _agree(mf.simulate(net, draws=DRAWS, seed=22), mf.predict(net, level="exact"))


@pytest.mark.parametrize(
    ("drawn", "supposed"),
    [
        ({"block_depth": 2}, {"block_depth": 1}),
        ({"scaling": "init", "stem": 1}, {"scaling": "multiplier_sqrt", "stem": 1}),
        ({"scaling": "multiplier_sqrt", "stem": 1}, {"scaling": "init", "stem": 1}),
        ({"scaling": "multiplier_linear"}, {"scaling": "multiplier_sqrt"}),
        ({"stem": 1}, {"tail": 1}),
    ],
)
def test_another_net_is_seen(drawn, supposed):
    """Negative controls: block depth, scaling, or the place of a plain layer mistaken."""
    measured = mf.simulate(_net(**drawn), draws=DRAWS, seed=23)
    assert _agree(measured, mf.predict(_net(**drawn), level="exact"))
    assert not _agree(measured, mf.predict(_net(**supposed), level="exact"))


class _Miscalibrated(mf.ResidualMLP):
    """Weights of the branches with a variance 1 % too large."""

    @property
    def weight_variances(self):
        before, inside = self.stem, self.blocks * self.block_depth
        variances = super().weight_variances
        return [s * (1.01 if before <= place < before + inside else 1.0) for place, s in enumerate(variances)]


def test_one_percent_is_seen(monkeypatch):
    """In the variance of the branches, or in one coefficient: what the kernel of a block owes to the kernel below."""
    options = {"depth": 6, "width": 512, "block_depth": 3, "outputs": 512, "activation": "linear"}
    right, wrong = mf.ResidualMLP(**options), _Miscalibrated(**options)
    measured = mf.simulate(right, draws=DRAWS, seed=24)
    assert _agree(measured, mf.predict(right, level="exact"), ["label_term"])
    assert not _agree(measured, mf.predict(wrong, level="exact"), ["label_term"])
    whole = Recursion.matrix

    def spoiled(self, *values):
        row = whole(self, *values)
        row[0, 0] *= 1.01 if self.block_depth and self.moments[0] == parse_moment(OVERLAP) else 1.0
        return row

    monkeypatch.setattr(Recursion, "matrix", spoiled)
    assert not _agree(measured, mf.predict(right, level="exact"), ["label_term"])


# n = 1: every weight is a number, all of them average by quadrature ------------------------------------------


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(("block_depth", "stem", "tail"), [(1, 0, 0), (1, 1, 1), (2, 0, 0), (2, 1, 1), (3, 0, 0)])
def test_width_one_averaged_over_all_weights(scaling, block_depth, stem, tail):
    net = _net(width=1, block_depth=block_depth, scaling=scaling, stem=stem, tail=tail)
    predicted = mf.predict(net, level="exact")
    overlap, label, output = _scalar_terms(net)
    np.testing.assert_allclose(predicted.overlap_energy, overlap, rtol=1e-11)
    np.testing.assert_allclose(predicted.label_term, label, rtol=1e-11)
    np.testing.assert_allclose(predicted.output_term, output, rtol=1e-11)


def _scalar_terms(net):
    """E F_l, E B_l, E A_l of a net of width one: z is linear in each weight, of which A has at most six powers."""
    points, chance = np.polynomial.hermite_e.hermegauss(4)
    *variances, head = net.weight_variances
    which = np.indices((4,) * len(variances)).reshape(len(variances), -1)
    chances = (chance / chance.sum())[which].prod(axis=0)
    weights = np.sqrt(variances)[:, None] * points[which]
    hidden = _scalar_states(net, weights)
    kernel = sum(
        np.square(
            _scalar_states(net, _replaced(weights, place, 1.0)) - _scalar_states(net, _replaced(weights, place, 0.0))
        )
        for place in range(len(weights))
    )
    gain = np.square([_scalar_states(net, weights, start=unit)[-1] for unit in range(len(hidden))])
    outputs = net.outputs
    mean_gram, squared_gram = head * outputs, head**2 * outputs * (outputs + 2)
    return (
        kernel**2 @ chances,
        (gain * kernel**2) @ chances * mean_gram / outputs**2,
        (gain**2 * kernel**2 * hidden**2) @ chances * squared_gram / outputs**2,
    )


def _replaced(weights, place, value):
    copy = weights.copy()
    copy[place] = value
    return copy


def _scalar_states(net, weights, start=None):
    """z at the end of every depth unit; from z = 1 at the end of unit ``start``, or from the input 1."""
    alpha = {"multiplier_sqrt": 0.5, "multiplier_linear": 1.0}.get(net.scaling, net.scaling)
    factor = 1.0 if isinstance(alpha, str) else net.depth**-alpha
    sizes = [0] * net.stem + [net.block_depth] * net.depth + [0] * net.tail
    state, states, used = np.ones(weights.shape[1]), [], 0
    for unit, size in enumerate(sizes):
        branch = weights[used : used + max(size, 1)].prod(axis=0)
        used += max(size, 1)
        if start is None or unit > start:
            state = state * (1 + factor * branch if size else branch)
        states.append(state)
    return np.array(states)


# Identities and limits ---------------------------------------------------------------------------------------


def test_scaling_weights_or_branches_differs_by_the_square_of_the_number_of_blocks():
    """k = 1 without plain layers: the same function of z, its parameters K^(1/2) times as steep, draw by draw."""
    blocks = 5
    nets = {scaling: _net(depth=blocks, scaling=scaling) for scaling in ("init", "multiplier_sqrt")}
    weights, inputs, error = given_draw(nets["multiplier_sqrt"], 3)
    smaller = [*(weight / np.sqrt(blocks) for weight in weights[:-1]), weights[-1]]
    steps = (
        mf.one_step(nets["init"], smaller, inputs, error),
        mf.one_step(nets["multiplier_sqrt"], weights, inputs, error),
    )
    np.testing.assert_allclose(steps[0], blocks * np.array(steps[1]), rtol=1e-12)
    exact = {scaling: mf.predict(net, level="exact") for scaling, net in nets.items()}
    for name in TERMS:
        np.testing.assert_allclose(exact["init"][name], blocks**2 * exact["multiplier_sqrt"][name], rtol=1e-12)


@pytest.mark.parametrize("scaling", [*SCALINGS, -0.2, 0.3])
@pytest.mark.parametrize("block_depth", [1, 2, 3])
@pytest.mark.parametrize("ends", [(0, 0), (2, 1)])
def test_the_distance_from_the_mean_field_is_one_over_width(scaling, block_depth, ends):
    distances = []
    for width in (10**4, 10**5):
        net = _net(depth=6, width=width, block_depth=block_depth, scaling=scaling, stem=ends[0], tail=ends[1])
        finite, limit = (mf.predict(net, level=level) for level in ("exact", "mean_field"))
        distances.append([(finite[name] / limit[name]).values[-1] - 1 for name in ("overlap_energy", "label_term")])
    np.testing.assert_allclose(distances[0], 10 * np.array(distances[1]), rtol=0.01)
    assert np.all(np.array(distances[0]) > 1e-5)


@pytest.mark.parametrize(
    ("scaling", "slopes"), [("init", [-1, 0, 1]), ("multiplier_sqrt", [0, 0, 0]), ("multiplier_linear", [1, 1, 1])]
)
def test_learning_rate_scales_by_block_depth_and_scaling(scaling, slopes):
    """Slopes of eta* in K for k = 1, 2, 3 (docs/theory.md section 8): none is the -3/2 of MLPs. A stem's own share
    keeps eta* from rising, a tail's, which is in one of K units alone, from rising faster than K^(1/2)."""
    for block_depth, slope in zip((1, 2, 3), slopes, strict=True):
        for stem, tail, largest in ((0, 0, slope), (1, 0, 0), (1, 1, 0), (0, 1, 0.5)):
            expected = min(slope, largest)
            assert residual_exponent(scaling, block_depth, stem, tail) == expected
            options = {"block_depth": block_depth, "scaling": scaling, "stem": stem, "tail": tail}
            nets = [_net(depth=blocks, width=10**4, **options) for blocks in (10**3, 10**4)]
            predicted = [mf.predict(net, level="exact") for net in nets]
            for name in ("log_learning_rate_scale", "log_label_learning_rate_scale"):
                assert float(predicted[1][name] - predicted[0][name]) / np.log(10) == pytest.approx(expected, abs=0.003)


def test_a_hundred_thousand_blocks_stay_finite_in_logs():
    """Without scaling |z|^4 grows by E (I + W)'(I + W) squared, of which F takes its rate, and l^2 beside."""
    blocks, n = 10**5, 64
    predicted = mf.predict(_net(depth=blocks, width=n, scaling="none"), level="exact")
    assert all(np.all(np.isfinite(predicted[name])) for name in predicted if name.startswith("log_"))
    s = 1 / n
    rate = np.log(1 + 4 * s + 2 * s * n + s**2 * n * (n + 2))
    growth = predicted.log_overlap_energy.diff("layer")
    np.testing.assert_allclose(growth[[blocks // 2, -1]], rate + 2 / np.array([blocks / 2, blocks]), atol=1e-8)


def test_pairs_of_directions_are_refused():
    with pytest.raises(ValueError, match="plain nets; this is a ResidualMLP"):
        mf.predict(_net(), level="exact", pairs=[((1, 1), (1, 2))])
    with pytest.raises(ValueError, match="choose one of 'mean_field'"):
        mf.predict(_net(activation="relu"), level="exact")
