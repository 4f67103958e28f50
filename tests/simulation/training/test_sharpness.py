"""The largest curvature of a loss: against JAX's own matrices, and against what gradient descent does."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import Linear, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.optimizers import SGD, AdamW
from meanfield.simulation.arrays import NUMPY
from meanfield.simulation.training import sharpness
from meanfield.simulation.training.data import drawn_weights
from meanfield.simulation.training.losses import CrossEntropy, Logistic, Squared
from meanfield.transfer import StableRate
from tests import derivable
from tests.simulation.training.nets import NETS as CHAINS

jax = derivable.jax
jnp = jax.numpy

SAMPLES = 5
NETS = {
    **{name: CHAINS[name] for name in ("transformer", "convolutional", "loop", "staged")},
    "mlp": mf.MLP(depth=2, width=(6, 5), outputs=3),
    "conv_net": mf.ConvNet(depth=2, channels=4, grid=(3, 3), kernel=(2, 2), padding="zero", outputs=3),
    "residual": mf.ResidualConvNet(depth=2, channels=3, grid=(3,), kernel=(3,), outputs=2, readout="convolution"),
    "tied transformer": mf.Transformer(depth=1, width=4, heads=2, tokens=3, ffn=1, tied=True, outputs=3),
    "tied_loop": mf.TiedLoop(depth=3, width=5, alpha=0.5, activation="gelu"),
    "batch normalisation": mf.with_batch_normalisation(mf.MLP(depth=2, width=(6, 5), outputs=3)),
}


def batch_of(net, loss="squared", samples=SAMPLES):
    rng = np.random.default_rng(2)
    _, outputs, *grid = net.output_shape
    inputs = rng.normal(size=(samples, net.first_channels, *net.grid))
    values = rng.normal(size=(samples, outputs, *grid))
    return inputs, values if loss == "squared" else rng.integers(outputs, size=(samples, *grid))


def shaped(net, seed):
    """Weights of draw 0, in the layout of JAX."""
    drawn = drawn_weights(net, seed, range(1))
    return [drawn[name][0].reshape(weight.shape) for name, weight in net.weights.items()]


@cache
def jacobian(name, seed, samples=SAMPLES):
    """The outputs of a net on its first samples, and their derivatives with respect to all weights."""
    net = NETS[name]
    weights = dict(zip(net.weights, shaped(net, seed), strict=True))

    def output(given, x):
        return derivable.values_and_output(net, given, x)[1]

    with jax.enable_x64(True):
        x = jnp.asarray(batch_of(net)[0][:samples])
        value, rows = jax.jit(lambda given: (output(given, x), jax.jacrev(output)(given, x)))(weights)
        parts = [np.asarray(part).reshape(value.size, -1) for part in rows.values()]
        return np.asarray(value), np.concatenate(parts, axis=1)


def loss_of(output, targets, loss):
    if loss == "squared":
        return jnp.mean((output.reshape(targets.shape) - targets) ** 2) / 2
    logs = jax.nn.log_softmax(output, axis=1).reshape(len(targets), output.shape[1], -1)
    return -jnp.take_along_axis(logs, targets.reshape(len(targets), 1, -1), axis=1).mean()


def dense_curvature(name, seed, targets, loss, divisors=1.0):
    """The largest eigenvalue of p^(-1/2) J^T H J p^(-1/2), written out by JAX."""
    output, slopes = jacobian(name, seed, len(targets))
    with jax.enable_x64(True):
        hessian = jax.jit(jax.hessian(partial(loss_of, targets=targets, loss=loss)))(output)
    slopes = slopes / np.sqrt(divisors)
    return np.linalg.eigvalsh(slopes.T @ np.asarray(hessian).reshape(output.size, output.size) @ slopes)[-1]


def divisors_of(name, seed, data, loss, batch_size, epsilon):
    """p: roots of the mean over mini-batches of squared gradients, by JAX; without epsilon infinite where 0."""
    net, (inputs, targets) = NETS[name], data
    weights = dict(zip(net.weights, shaped(net, seed), strict=True))
    squares = 0.0
    with jax.enable_x64(True):

        def value(given, x, y):
            return loss_of(derivable.values_and_output(net, given, x)[1], y, loss)

        slope, firsts = jax.jit(jax.grad(value)), range(0, len(inputs), batch_size)
        for first in firsts:
            batch = slice(first, first + batch_size)
            by_weight = slope(weights, jnp.asarray(inputs[batch]), jnp.asarray(targets[batch]))
            squares = squares + np.concatenate([np.asarray(part).ravel() for part in by_weight.values()]) ** 2
    roots = np.sqrt(squares / len(firsts))
    return np.where(epsilon or roots > 1e-14 * roots.max(), roots + epsilon, np.inf)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("name", NETS)
def test_the_largest_curvature_is_that_of_jax(name, loss):
    net = NETS[name]
    data = batch_of(net, loss)
    weights = shaped(net, 3)
    expected = dense_curvature(name, 3, data[1], loss)
    given = mf.stable_rate(net, data, loss=loss, weights=weights)
    np.testing.assert_allclose(given.sharpness, expected, rtol=1e-6)
    np.testing.assert_allclose(given.stable_rate, 2 / expected, rtol=1e-6)
    other = mf.stable_rate(net, data, loss=loss, weights=shaped(net, 4))
    assert abs(other.sharpness - expected) > 1e-3 * expected


@pytest.mark.parametrize(("batch_size", "epsilon"), [(2, 0.0), (2, 1e-3)])
@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("name", NETS)
def test_in_units_of_second_moments_it_is_that_of_jax(name, loss, batch_size, epsilon):
    """Of AdamW: what is left over of a batch counts for nothing, and momentum for the limit alone."""
    net = NETS[name]
    data, weights = batch_of(net, loss), shaped(net, 3)
    whole = SAMPLES // batch_size * batch_size
    divisors = divisors_of(name, 3, [part[:whole] for part in data], loss, batch_size, epsilon)
    expected = dense_curvature(name, 3, data[1][:whole], loss, divisors)
    how = {"loss": loss, "weights": weights, "batch_size": batch_size, "epsilon": epsilon}
    given = mf.stable_rate(net, data, optimizer="adamw", **how)
    np.testing.assert_allclose(given.sharpness, expected, rtol=1e-6)
    np.testing.assert_allclose(given.stable_rate, 38 / expected, rtol=1e-6)
    slower = mf.stable_rate(net, data, optimizer=AdamW(beta1=0.5), **how)
    np.testing.assert_allclose(slower.stable_rate, 6 / expected, rtol=1e-6)
    other = mf.stable_rate(net, data, optimizer="adamw", **how | {"epsilon": epsilon + 0.1})
    assert abs(other.sharpness - expected) > 1e-3 * expected


def test_second_moments_of_one_gradient_are_warned_of():
    """And where there is none, an epsilon is what divides."""
    net = NETS["mlp"]
    inputs, targets = batch_of(net)
    with pytest.warns(mf.PremiseWarning, match="those of one gradient, .*; give a batch_size that makes several"):
        mf.stable_rate(net, (inputs, targets), loss="squared", optimizer="adamw", draws=2)
    weights = shaped(net, 3)
    outputs, _ = jacobian("mlp", 3)
    exact = np.asarray(outputs).reshape(targets.shape)
    how = {"loss": "squared", "optimizer": "adamw", "weights": weights, "batch_size": 1}
    at_target = mf.stable_rate(net, (inputs, exact), epsilon=0.5, **how)
    descent = mf.stable_rate(net, (inputs, exact), loss="squared", weights=weights)
    np.testing.assert_allclose(at_target.stable_rate, 0.5 * 19 * descent.stable_rate, rtol=1e-6)
    assert at_target.stable_rate.attrs["symbol"] == "38 / lambda_max"


def test_single_precision_has_no_second_moments():
    measure = sharpness.Sharpness(inputs=INPUTS, targets=LABELS, loss="cross_entropy", optimizer="adamw")
    assert measure.settled(NET).batch_size == SAMPLES
    with pytest.raises(ValueError, match="second moments lie too far apart for it; take 'float64'"):
        replace(measure, precision="float32").settled(NET)


def test_momentum_moves_the_limit():
    """2 (1 + beta) / lambda_max, just below which descent with momentum is stable on a parabola, and just above not."""
    net = one_layer()
    data = batch_of(net)
    plain, fast = (mf.stable_rate(net, data, loss="squared", optimizer=SGD(beta), draws=2) for beta in (0.0, 0.6))
    np.testing.assert_allclose(fast.stable_rate, 1.6 * plain.stable_rate, rtol=1e-9)
    rate = float(fast.stable_rate)
    trained = mf.train(net, data, loss="squared", optimizer=SGD(0.6), rates=[0.98 * rate, 1.02 * rate], steps=800)
    below, above = trained.final_loss.values[:, 0]
    assert below < float(trained.loss[0, 0, 0]) < 1e2 * float(trained.loss[0, 0, 0]) < above


@pytest.mark.parametrize("loss", [Squared(), CrossEntropy(), Logistic()], ids=lambda law: type(law).__name__)
def test_curvature_times_a_change_is_the_sum_over_columns(loss):
    rng = np.random.default_rng(0)
    shape = (2, 1, 4, 1) if isinstance(loss, Logistic) else (2, 3, 4, 2)
    output, change = rng.normal(size=(2, *shape))
    targets = np.ones((1, 1, 4, 1))
    columns = loss.curvature(output, targets, NUMPY).reshape(*shape[:2], -1, *shape[2:])
    expected = np.einsum("dmcbt,dkcbs,dkbs->dmbt", columns, columns, change)
    np.testing.assert_allclose(loss.curvature_times(output, change, NUMPY), expected, atol=1e-12)


def one_layer():
    """Outputs W x: gradient descent on the squared loss is linear."""
    return Chain(units=(Unit((Linear((Weight("W", (2, 6), 1 / 6),)),)),), input_channels=6)


def test_gradient_descent_diverges_just_above_the_stable_rate_and_not_just_below():
    """Where the loss is a parabola: 2 % of the rate apart, with nothing else changed."""
    net = one_layer()
    data = batch_of(net)
    known = mf.stable_rate(net, data, loss="squared", draws=2)
    covariance = data[0].T @ data[0] / SAMPLES
    np.testing.assert_allclose(known.sharpness, np.linalg.eigvalsh(covariance)[-1] / 2, rtol=1e-6)
    np.testing.assert_allclose(known.sharpness_stderr, 0, atol=1e-6)
    rate = float(known.stable_rate)
    trained = mf.train(net, data, loss="squared", rates=[0.99 * rate, 1.01 * rate], steps=400)
    below, above = trained.final_loss.values[:, 0]
    start = float(trained.loss[0, 0, 0])
    assert below < start < 1e3 * start < above
    assert (np.diff(trained.loss.values[0, 0]) <= 1e-12).all()


def test_draws_are_the_nets_that_training_starts_from():
    net = NETS["mlp"]
    data = batch_of(net, "cross_entropy")
    drawn = mf.stable_rate(net, data, draws=4, seed=6)
    own = sharpness.Sharpness(inputs=data[0], loss="cross_entropy").settled(net)
    values = own.draw(net, 6, range(4))["sharpness"]
    first = mf.stable_rate(net, data, weights=shaped(net, 6))
    np.testing.assert_allclose(values[0], first.sharpness, rtol=1e-9)
    np.testing.assert_array_equal(own.draw(net, 6, range(2, 4))["sharpness"], values[2:])
    np.testing.assert_allclose(drawn.sharpness, values.mean())
    np.testing.assert_allclose(drawn.sharpness_stderr, values.std(ddof=1) / 2)
    np.testing.assert_allclose(drawn.stable_rate, (2 / values).mean())
    assert drawn.stable_rate_quantile.values.tolist() == sorted(drawn.stable_rate_quantile.values)


@pytest.mark.parametrize("name", ["mlp", "conv_net", "transformer", "batch normalisation"])
def test_single_precision_gives_the_same_nets_to_rounding(name):
    net = NETS[name]
    double, single = (
        sharpness.Sharpness(inputs=batch_of(net)[0], loss="cross_entropy", precision=precision).settled(net)
        for precision in ("float64", "float32")
    )
    expected, found = (measure.draw(net, 6, range(4))["sharpness"] for measure in (double, single))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert single.dataset(net, single.draw(net, 6, range(2)), {}).attrs["precision"] == "float32"
    assert (found != expected).all()


def test_what_single_precision_does_not_hold_is_found_in_double():
    """Weights that make and unmake 10^40 and more in twelve layers."""
    for variance in (1e4, 1e-4):
        net = mf.MLP(depth=12, width=8, outputs=2, weight_variance=variance)
        double, single = (
            sharpness.Sharpness(inputs=batch_of(net)[0], loss="squared", precision=precision).settled(net)
            for precision in ("float64", "float32")
        )
        found = single.draw(net, 0, range(2))["sharpness"]
        np.testing.assert_array_equal(found, double.draw(net, 0, range(2))["sharpness"])
        assert not (1e-38 < found[0] < 1e38)


def test_another_precision_is_refused():
    measure = sharpness.Sharpness(inputs=INPUTS, loss="squared", precision="float16")
    with pytest.raises(ValueError, match="precision is 'float16'"):
        measure.settled(NET)


def test_a_curvature_beyond_floats_is_an_error():
    net = mf.MLP(depth=60, width=8, outputs=2, weight_variance=1e6)
    for precision in ("float64", "float32"):
        measure = sharpness.Sharpness(inputs=batch_of(net)[0], loss="squared", precision=precision).settled(net)
        with pytest.raises(OverflowError, match="curvature of a net"):
            measure.draw(net, 0, range(1))


def test_copies_of_a_batch_change_nothing():
    """A mean over samples; and eigenvalues that come twice are found."""
    net = NETS["conv_net"]
    inputs, targets = batch_of(net)
    weights = shaped(net, 0)
    twice = (np.concatenate([inputs, inputs]), np.concatenate([targets, targets]))
    once, both = (
        mf.stable_rate(net, data, loss="squared", weights=weights).sharpness for data in ((inputs, targets), twice)
    )
    np.testing.assert_allclose(both, once, rtol=1e-6)


def test_too_few_products_are_said(monkeypatch):
    net = NETS["mlp"]
    monkeypatch.setattr(sharpness, "MOST_PRODUCTS", 2)
    with pytest.warns(RuntimeWarning, match="after 2 products"):
        mf.stable_rate(net, batch_of(net), loss="squared", weights=shaped(net, 0))


def test_a_net_that_nothing_moves_has_no_curvature():
    net = mf.MLP(depth=1, width=3, outputs=2)
    still = [np.zeros(shape) for shape in net.weight_shapes]
    with pytest.warns(mf.PremiseWarning, match="the net has no curvature on these data, .*: units have died or"):
        flat = mf.stable_rate(net, batch_of(net), loss="squared", weights=still)
    assert float(flat.sharpness) == 0
    assert float(flat.stable_rate) == np.inf


NET = NETS["mlp"]
INPUTS, LABELS = batch_of(NET, "cross_entropy")
REFUSED = {
    "no net": ({"net": 3}, TypeError, "net is"),
    "no pair": ({"data": INPUTS}, TypeError, "pair"),
    "another loss": ({"loss": "logistic"}, ValueError, "'squared'"),
    "another level": ({"level": "exact"}, ValueError, "'mean_field'"),
    "a label out of range": ({"data": (INPUTS, LABELS + 3)}, ValueError, "outputs"),
    "other inputs": ({"data": (INPUTS[:, :2], LABELS)}, ValueError, "this net takes"),
    "one draw": ({"draws": 1}, ValueError, "draws is 1"),
    "weights at a level": ({"level": "mean_field", "weights": shaped(NET, 0)}, ValueError, "leave one"),
    "other weights": ({"weights": shaped(NET, 0)[1:]}, ValueError, "weights has 2 arrays"),
    "one class": ({"net": mf.MLP(depth=1, width=6, outputs=1), "data": (INPUTS, 0 * LABELS)}, ValueError, "one output"),
    "no limit": ({"optimizer": "lion"}, ValueError, "'lion', of which no limit of stable rates is known; give one of"),
    "no optimizer": ({"optimizer": None}, ValueError, "optimizer is None"),
    "moments of descent": ({"batch_size": 2}, ValueError, "^batch_size 2 is that of AdamW's .* 'sgd'; leave it out"),
    "epsilon of descent": ({"epsilon": 1e-8}, ValueError, "^epsilon 1e-08 is that of AdamW's"),
    "no epsilon": ({"epsilon": None}, TypeError, "epsilon is None"),
    "too large a batch": ({"optimizer": "adamw", "batch_size": 9}, ValueError, "batch_size is 9"),
    "moments at a level": ({"optimizer": "adamw", "level": "mean_field"}, ValueError, "level 'mean_field' has not"),
    "a negative epsilon": ({"optimizer": "adamw", "epsilon": -1.0}, ValueError, "epsilon is -1; it must be positive"),
    "too much memory": ({"net": mf.MLP(depth=99, width=60_000, input_width=6, outputs=3)}, MemoryError, "GiB"),
    "tied weights": ({"net": mf.TiedLoop(depth=2, width=6), "level": "mean_field"}, ValueError, "several places"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    changes, error, words = REFUSED[case]
    given = {"net": NET, "data": (INPUTS, LABELS)} | changes
    with pytest.raises(error, match=words):
        mf.stable_rate(given.pop("net"), given.pop("data"), **given)


LIMIT = {"level": "mean_field"}


@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_nets_without_curvature_are_stable_at_every_rate(loss):
    """Inputs of 0, drawn and by the mean field, with a warning that says why; a softmax of 0 and 1 has none, either."""
    net = NETS["mlp"]
    inputs, targets = batch_of(net, loss)
    for scale in [0.0, 1e25][: 1 + (loss == "cross_entropy")]:
        pair = scale * inputs, targets
        softmax = "outputs are so large that their softmax is 0 or 1, " if scale else ""
        why = f"no curvature on these data, so that every rate is stable: {softmax}units have died or inputs are 0"
        for who, how in {"half or more of the drawn nets have": {"draws": 2}, "the net has": LIMIT}.items():
            with pytest.warns(mf.PremiseWarning, match=f"^{who} {why}"):
                made = mf.stable_rate(net, pair, loss=loss, **how)
            assert (float(made["sharpness"]), float(made["stable_rate"])) == (0.0, np.inf)
    assert np.isfinite(mf.stable_rate(net, (inputs, targets), loss=loss, **LIMIT)["stable_rate"])


def test_nets_that_have_died_are_told_of_in_the_words_of_starting_rates():
    """All of them, or a few; where a rate is carried between such nets, in a refusal."""
    deep, narrow = (mf.MLP(depth=depth, width=width, input_width=6, outputs=3) for depth, width in ((9, 3), (4, 3)))
    data = np.ones((4, 6)) + np.eye(4, 6), np.arange(4) % 3
    with pytest.raises(ValueError, match="half or more of the drawn nets do not move") as refused:
        mf.starting_rate(deep, data, draws=16)
    for net, who in ((deep, "half or more"), (narrow, "some")):
        with pytest.warns(mf.PremiseWarning, match=f"^{who} of the drawn nets have no curvature") as said:
            made = mf.stable_rate(net, data)
        assert np.isinf(made["stable_rate"])
        assert str(said[0].message).endswith(str(refused.value).partition(": ")[2])
        carried = StableRate(data)
        with pytest.raises(ValueError, match=f"no rate for the net of {net.depth} units: {who} of the drawn nets have"):
            mf.explain_transfer(0.1, net.replace(depth=1, width=64), net, rule=carried)


@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_a_mean_field_curvature_beyond_floats_is_refused(loss):
    inputs, targets = batch_of(NETS["mlp"], loss)
    with pytest.raises(OverflowError, match="leave the range of floats"):
        mf.stable_rate(NETS["mlp"], (1e200 * inputs, targets), loss=loss, level="mean_field")
