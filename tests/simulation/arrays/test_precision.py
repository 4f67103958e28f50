"""Single precision on the host: the same draws rounded, without a bias that counts, and refused where it ends."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import streams_of_draws
from meanfield.nets.maps import Weight
from meanfield.simulation import arrays
from meanfield.simulation import weights as matrices
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.weights import Lazy, Slabs
from tests.draws import draw_energies_on

# docs/precision.md: the mean relative difference of an update energy, float32 over float64, and its largest spread.
BIAS, SPREAD = 1e-6, 1e-5


def _relative_differences(net, draws, weights):
    here, there = (draw_energies_on(net, 0, range(draws), weights, precision=p) for p in ("float64", "float32"))
    assert set(here) == set(there)
    return np.concatenate([there[name] / here[name] - 1 for name in here], axis=1)


@pytest.mark.parametrize(
    ("net", "weights"),
    [
        (mf.MLP(depth=16, width=256), "lazy"),
        (mf.MLP(depth=16, width=64), "dense"),
        (mf.ConvNet(depth=6, channels=24, grid=(4, 4), kernel=(3, 3), readout="convolution"), "dense"),
    ],
)
def test_the_bias_is_a_millionth_and_a_draw_moves_by_little_more(net, weights):
    """Paired draws; the mean of 64 is known to a small part of the bound, which the standard error shows."""
    differences = _relative_differences(net, 64, weights)
    error = differences.std(axis=0) / 8
    assert (np.abs(differences.mean(axis=0)) + 5 * error < BIAS).all()
    assert 1e-8 < np.abs(differences).max() < SPREAD


def test_answers_rounded_to_half_precision_exceed_the_bound(monkeypatch):
    """Negative control: answers of eleven bits move draws a thousand times as far."""
    reveal = matrices.reveal

    def coarse(*arguments):
        reveal(*arguments)
        arguments[-1][:] = arguments[-1].astype(np.float16)

    net = mf.MLP(depth=16, width=256)
    exact = draw_energies_on(net, 0, range(8), "lazy")["label_term"]
    monkeypatch.setattr(matrices, "reveal", coarse)
    rounded = draw_energies_on(net, 0, range(8), "lazy", precision="float32")["label_term"]
    assert np.abs(rounded / exact - 1).max() > 10 * SPREAD


def test_single_precision_holds_half_the_memory():
    net = mf.MLP(depth=2, width=40)
    matrix = Lazy(
        Weight("W", (40, 40), 1.0),
        NormalSource(streams_of_draws(0, "weights", [0]), "float32"),
        Slabs("float32"),
    )
    answers = matrix.times(np.ones((1, 40, 2), np.float32))
    held = (answers, matrix._right.basis, matrix._right.images)
    assert {array.dtype.name for array in held} == {"float32"}
    assert (draw_energies_on(net, 0, range(2), precision="float32")["label_term"].dtype) == np.float64


def test_dependent_columns_are_found_in_single_precision():
    """Copies, multiples and zeros add no direction, so that a basis never outgrows its space."""
    matrix = Lazy(
        Weight("W", (6, 5), 0.3),
        NormalSource(streams_of_draws(0, "weights", [0]), "float32"),
        Slabs("float32"),
    )
    columns = np.random.default_rng(0).normal(size=(1, 5, 8)).astype(np.float32)
    answers = matrix.times(np.concatenate([columns, -3 * columns, 0 * columns], axis=2))
    directions = matrix._right.basis[0]
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), [1] * 5 + [0] * 19, atol=1e-6)
    np.testing.assert_allclose(directions[:5] @ directions[:5].T, np.eye(5), atol=1e-6)
    np.testing.assert_allclose(answers[..., 8:16], -3 * answers[..., :8], atol=1e-5)


GROWING = mf.MLP(depth=40, width=8, weight_variance=30.0)
FADING = mf.MLP(depth=40, width=8, weight_variance=0.02)


@pytest.mark.parametrize("net", [GROWING, FADING], ids=["growing", "fading"])
@pytest.mark.parametrize("backend", ["numpy", "cupy"])
def test_numbers_beyond_single_precision_are_refused(cupy, net, backend):
    with pytest.raises(OverflowError, match=r"outside the range of float32 .*; take precision 'float64'"):
        mf.simulate(net, draws=4, seed=0, precision="float32", backend=backend)
    assert np.isfinite(draw_energies_on(net, 0, range(4), backend=backend)["label_term"]).all()


def test_numbers_that_would_fade_unseen_are_refused_for_what_they_pass():
    """Changes of a net that fades are exact zeros in single precision; its pre-activations show why."""
    net = mf.MLP(depth=80, width=64, weight_variance=0.02)
    with pytest.raises(OverflowError, match="a pre-activation has size"):
        mf.simulate(net, draws=2, seed=0, precision="float32")


def test_dead_nets_are_zero_and_no_error():
    """A net of one unit a layer that is off is zero in any precision."""
    net = mf.MLP(depth=3, width=1)
    single, double = (mf.simulate(net, draws=64, seed=0, precision=p) for p in ("float32", "float64"))
    np.testing.assert_allclose(single.update_energy, double.update_energy, rtol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e-31])
def test_one_bad_size_is_named(value):
    sizes = np.ones((3, 4))
    arrays.require_range({"label_term": sizes})
    sizes[1, 2] = value
    with pytest.raises(OverflowError, match=f"label_term has size {value:.2g} at layer 3 in some draw"):
        arrays.require_range({"label_term": sizes})


def test_one_step_in_single_precision_says_where_it_ends():
    net = mf.MLP(depth=2, width=3)
    weights = [np.full(shape, 1e30) for shape in net.weight_shapes]
    given = weights, np.ones(net.input_shape), np.ones(net.output_shape)
    assert np.isfinite(mf.one_step(net, *given)[-1]).all()
    with pytest.raises(OverflowError, match="take precision 'float64'"):
        mf.one_step(net, *given, precision="float32")


FAINT = {"weight_variance": 1e-60}


@pytest.mark.parametrize("backend", ["numpy", "cupy"])
@pytest.mark.parametrize("net", [mf.MLP(depth=3, width=8, **FAINT), mf.ConvNet(depth=3, channels=8, **FAINT)])
def test_what_would_be_lost_in_one_step_is_refused(cupy, net, backend):
    """Nothing near the smallest number is ever seen: the first layer is zero, and eta* was infinite."""
    with pytest.raises(OverflowError, match=r"weight matrix 1 has size .*; float32 would lose in one step what passes"):
        mf.simulate(net, draws=2, seed=0, precision="float32", backend=backend)


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("factor", [1e-50, 1e35])
def test_given_arrays_that_single_precision_loses_are_refused(which, factor):
    net = mf.MLP(depth=2, width=3)
    given = [np.ones(shape) for shape in net.weight_shapes], np.ones(net.input_shape), np.ones(net.output_shape)
    scaled = [[factor * part for part in array] if place == which else array for place, array in enumerate(given)]
    name = (r"weights\[0\]", "inputs", "output_error")[which]
    with pytest.raises(OverflowError, match=f"{name} has size .*; float32 would lose .*; take precision 'float64'"):
        mf.one_step(net, *scaled, precision="float32")
    assert np.isfinite(mf.one_step(net, *scaled)[-1]).all()
    if which < 2:
        with pytest.raises(OverflowError, match=f"{name} has size"):
            mf.pre_activations(net, *scaled[:2], precision="float32")


@pytest.mark.parametrize("factor", [1e-22, 1e-25, 1e-28])
@pytest.mark.parametrize("net", [mf.MLP(depth=2, width=3), mf.ConvNet(depth=2, channels=3, grid=(3,))])
def test_changes_that_vanish_in_single_precision_are_refused(net, factor):
    """They go as the square of the inputs, which passed as zeros."""
    given = [np.ones(shape) for shape in net.weight_shapes], factor * np.ones(net.input_shape)
    error = np.ones(net.output_shape)
    assert all(change.all() for change in mf.one_step(net, *given, error))
    with pytest.raises(OverflowError, match=r"a change has size .*e-\d\d at layer 1 .*; take precision 'float64'"):
        mf.one_step(net, *given, error, precision="float32")
    assert all(value.all() for value in mf.pre_activations(net, *given, precision="float32"))


def test_zeros_are_no_loss():
    net = mf.MLP(depth=2, width=3)
    zeros = [np.zeros(shape) for shape in net.weight_shapes]
    for change in mf.one_step(net, zeros, np.zeros((1, 3)), np.zeros((1, 10)), precision="float32"):
        assert not change.any()


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_one_step_and_pre_activations_beyond_floats_are_refused(precision):
    """1e10 a layer: within what can be followed in one step, and out of range after 34 layers, or in a change."""
    net = mf.MLP(depth=34, width=3)
    weights = [1e10 * np.ones(shape) for shape in net.weight_shapes]
    words = "outside the range of float32" if precision == "float32" else "leaves the range of floats; give smaller"
    with pytest.raises(OverflowError, match=f"a pre-activation .*{words}"):
        mf.pre_activations(net, weights, np.ones((1, 3)), precision=precision)
    with pytest.raises(OverflowError, match=f"a change .*{words}"):
        mf.one_step(net, weights, np.ones((1, 3)), np.ones((1, 10)), precision=precision)


@pytest.mark.parametrize(("variance", "depth"), [(4.0, 2000), (1.0, 2000), (4.0, 145), (1.0, 217)])
def test_nets_that_no_float_can_follow_are_refused_before_any_draw(variance, depth):
    with pytest.raises(OverflowError, match=r"draw nets of depth (144|216) or less, or take predict, which has logar"):
        mf.simulate(mf.MLP(depth=depth, width=8, weight_variance=variance), draws=2, seed=0)


@pytest.mark.parametrize(("variance", "depth"), [(4.0, 144), (1.0, 216), (2.0, 300)])
def test_the_deepest_nets_that_floats_can_follow_are_drawn(variance, depth):
    net = mf.MLP(depth=depth, width=256, weight_variance=variance)
    drawn = mf.simulate(net, draws=4, seed=0)
    for name in ("label_term", "output_term", "learning_rate_scale"):
        assert (np.isfinite(drawn[name]) & (drawn[name] > 0) & np.isfinite(drawn[f"{name}_stderr"])).all()


@pytest.mark.parametrize(("activation", "variance"), [("tanh", 4.0), ("gelu", 1.0)])
def test_smooth_nets_that_leave_the_floats_are_refused_when_drawn(activation, variance):
    net = mf.MLP(depth=2000, width=32, activation=activation, weight_variance=variance)
    with pytest.raises(
        OverflowError, match=r"label_term is .* beyond what floats can hold and square; lower the depth"
    ):
        mf.simulate(net, draws=2, seed=0)


def test_where_no_draw_moves_the_scale_is_infinite_without_a_warning():
    """Nets of one unit a layer, all of them off somewhere; their energies are 0 exactly."""
    drawn = mf.simulate(mf.MLP(depth=50, width=1), draws=4, seed=0)
    assert not drawn.update_energy.any()
    assert np.isinf(drawn.learning_rate_scale)
    assert np.isnan(drawn.learning_rate_scale_stderr)
