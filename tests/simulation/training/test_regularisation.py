"""Batch normalisation and dropout in training: the steps of JAX, masks, company, and what is refused."""

from functools import cache
from math import prod

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import BatchNormalisation, Dropout, Pointwise
from meanfield.nets.net import Chain, Unit
from meanfield.simulation.maps.weightless import Masks
from meanfield.simulation.training.data import Batches, drawn_weights
from tests import derivable

jax = derivable.jax
jnp = jax.numpy

IMAGE = {"grid": (4, 4), "kernel": (3, 3), "input_channels": 1, "outputs": 4, "head": "fan_in"}
CNN = mf.ConvNet(depth=2, channels=4, padding="zero", **IMAGE)
RESIDUAL = mf.ResidualConvNet(depth=2, channels=4, stem=1, scaling="multiplier_sqrt", **IMAGE)
MLP = mf.MLP(depth=2, width=(6, 5), outputs=4)
STAGED = mf.StagedResidualConvNet(depth=2, stages=2, channels=4, stem=1, padding="zero", **IMAGE)
TRANSFORMER = mf.Transformer(depth=1, width=8, heads=2, tokens=3, ffn=1, outputs=4)
NETS = {
    "normalised": mf.with_batch_normalisation(CNN),
    "normalised branches": mf.with_batch_normalisation(RESIDUAL),
    "normalised shortcuts": mf.with_batch_normalisation(STAGED),
    "dropped": mf.with_dropout(CNN, 0.3),
    "both": mf.with_dropout(mf.with_batch_normalisation(MLP), 0.3),
    "transformer": mf.with_dropout(TRANSFORMER, 0.2),
}
SAMPLES, BATCH, STEPS, SEEDS, RATES = 20, 6, 20, (4, 7), (0.05, 0.3)


def data_of(net):
    rng = np.random.default_rng(0)
    return rng.normal(size=(SAMPLES, net.first_channels, *net.grid)), rng.integers(4, size=SAMPLES)


def mask_shapes(net):
    """(C, B, S) of the values that are dropped, in the order of the pass."""
    return [
        (part.rate, (channels, BATCH, prod(grid)))
        for *_, part, (channels, grid) in net.map_shapes
        if isinstance(part, Dropout)
    ]


@cache
def compiled(name, drops):
    """The loss and its gradient, from weights, masks, inputs and labels."""

    def value(weights, masks, x, y):
        given = weights | {"masks": list(masks)} if drops else weights
        _, output = derivable.values_and_output(NETS[name], given, x)
        return -jnp.take_along_axis(jax.nn.log_softmax(output), y[:, None], axis=1).mean()

    return jax.jit(jax.value_and_grad(value))


def by_hand(name, rate, seed):
    """Losses of gradient descent in JAX before every step, and after the last one: without dropout, batch by batch."""
    net, (inputs, labels) = NETS[name], data_of(NETS[name])
    shapes, batches, losses = mask_shapes(net), Batches(SAMPLES, BATCH, [seed]), []
    with jax.enable_x64(True):
        start = drawn_weights(net, seed, range(1))
        weights = {key: jnp.asarray(start[key][0].reshape(net.weights[key].shape)) for key in net.weights}
        for step in range(STEPS):
            (chosen,), masks = batches.at(step), Masks([seed], step)
            kept = [masks.drawn(share, (1, *shape))[0] for share, shape in shapes]
            loss, slopes = compiled(name, True)(weights, kept, inputs[chosen], labels[chosen])
            weights = {key: values - rate * slopes[key] for key, values in weights.items()}
            losses.append(float(loss))
        # Steps 18 and 19 lie in the seventh epoch, of three steps each; one more begins at step 21.
        parts = [batches.at(step)[0] for step in (21, 22, 23)] if net.couples_samples else [slice(None)]
        final = [float(compiled(name, False)(weights, [], inputs[part], labels[part])[0]) for part in parts]
    return np.array(losses), np.mean(final)


@pytest.mark.parametrize("name", NETS)
def test_twenty_steps_are_those_of_jax(name):
    """In both precisions; other masks, and the net without its new maps, are far away."""
    net, data = NETS[name], data_of(NETS[name])
    how = {"rates": RATES, "seeds": SEEDS, "steps": STEPS, "batch_size": BATCH}
    losses, final = by_hand(name, RATES[1], SEEDS[1])
    for precision, tolerance in (("float64", 1e-8), ("float32", 2e-4)):
        own = mf.train(net, data, precision=precision, **how).sel(rate=RATES[1], seed=SEEDS[1])
        np.testing.assert_allclose(own.loss, losses, rtol=tolerance)
        np.testing.assert_allclose(own.final_loss, final, rtol=tolerance)
    plains = {"normalised branches": RESIDUAL, "normalised shortcuts": STAGED, "both": MLP, "transformer": TRANSFORMER}
    plain = plains.get(name, CNN)
    without = mf.train(plain, data, **how).sel(rate=RATES[1], seed=SEEDS[1])
    assert np.abs(without.loss - losses).max() > 0.01
    assert abs(without.final_loss - final) > 0.001


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", ["normalised", "normalised shortcuts", "dropped", "both"])
def test_a_run_is_the_same_to_the_bit_whatever_is_trained_beside_it(name, precision):
    net, data = NETS[name], data_of(NETS[name])
    how = {"epochs": 2, "batch_size": BATCH, "precision": precision}
    many = mf.train(net, data, rates=[0.3, 0.01, 0.02, 0.05, 1e4], seeds=[1, 0], **how)
    alone = mf.train(net, data, rates=0.05, seeds=[0], **how)
    for variable in ("loss", "final_loss"):
        np.testing.assert_array_equal(many[variable].sel(rate=[0.05], seed=[0]), alone[variable])


def test_masks_keep_their_share_and_differ_between_seeds_steps_and_maps():
    """4 x 10^5 values: a share of 0.7 is known to 0.0007 in one standard error; no two masks agree by chance."""
    masks = Masks([3, 3, 5], 8)
    first, second = (masks.drawn(0.3, (3, 100, 40, 100)) for _ in range(2))
    later = Masks([3], 9).drawn(0.3, (1, 100, 40, 100))
    assert abs(first[0].mean() - 0.7) < 5 * 0.0007
    np.testing.assert_array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[2], Masks([5], 8).drawn(0.3, (1, 100, 40, 100))[0])
    for other in (first[2], second[0], later[0]):  # two independent masks agree at a share 0.7^2 + 0.3^2 of the places
        assert abs((first[0] == other).mean() - 0.58) < 5 * 0.0008


def test_nets_keep_their_weights_and_take_their_new_maps_where_they_are_said():
    normalised = mf.with_batch_normalisation(MLP)
    assert normalised.weights == MLP.weights
    kinds = [[type(part).__name__ for part in unit.maps] for unit in mf.with_dropout(normalised, 0.5).all_units]
    inner = ["Pointwise", "Dropout", "Linear", "BatchNormalisation"]
    assert kinds == [["Pointwise", "Linear", "BatchNormalisation"], inner, ["Pointwise", "Dropout", "Linear"]]
    post = mf.Transformer(depth=1, width=8, tokens=3, norm="post", outputs=2)
    assert [len(unit.after) for unit in mf.with_dropout(post, 0.5).units] == [1, 1]


def test_outside_training_nothing_is_dropped():
    """And the largest curvature is that of the net without, too."""
    dropped, data = NETS["dropped"], data_of(CNN)
    with_masks, without = (mf.stable_rate(net, data, draws=2, seed=0) for net in (dropped, CNN))
    np.testing.assert_allclose(with_masks.stable_rate, without.stable_rate, rtol=1e-9)


@pytest.mark.parametrize("name", ["normalised", "both"])
def test_the_scale_of_weights_below_a_normalisation_drops_out(name):
    """Of the batch's variance far above epsilon; so the gradient is orthogonal to the weights."""
    net = NETS[name]
    net = Chain.of(net, inputs=SAMPLES)
    drawn = drawn_weights(net, 1, range(1))
    weights = [drawn[key][0].reshape(weight.shape) for key, weight in net.weights.items()]
    inputs, _ = data_of(net)
    *_, before = mf.pre_activations(net, weights, inputs)
    *_, after = mf.pre_activations(net, [1e3 * weights[0], *weights[1:]], inputs)
    np.testing.assert_allclose(after, before, atol=1e-3)
    assert np.abs(before).max() > 0.1


BATCH_OF = {"loss": "cross_entropy", "rates": 0.1, "steps": 2}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.with_dropout(MLP, 0), "rate is 0"),
        (lambda: mf.with_dropout(MLP, 1), "leaves nothing"),
        (lambda: mf.with_batch_normalisation(MLP, epsilon=0), "epsilon is 0"),
        (lambda: mf.train(NETS["both"], data_of(MLP), batch_size=2, **BATCH_OF), "signs at most"),
        (lambda: mf.train(NETS["both"], data_of(MLP), optimizer="sophia", **BATCH_OF), "depend on each other"),
        (lambda: mf.predict(NETS["both"], level="mean_field"), "unit 1, BatchNormalisation: it divides"),
        (lambda: mf.predict(NETS["dropped"], level="exact"), "unit 2, Dropout: its masks"),
        (lambda: mf.stable_rate(NETS["normalised"], data_of(CNN), level="mean_field"), "own deviation over the batch"),
        (lambda: mf.stable_rate(NETS["dropped"], data_of(CNN), level="mean_field"), "masks"),
        (lambda: Chain(units=(Unit((Pointwise("relu"), BatchNormalisation(-1.0))),)), "epsilon is -1"),
    ],
)
def test_what_is_not_served_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
