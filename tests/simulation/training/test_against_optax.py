"""Ten steps of training against JAX and optax, which share no code with the library."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.optimizers import SGD, AdamW, Lion, Muon
from meanfield.simulation.arrays import NUMPY, on_numpy
from meanfield.simulation.training.data import Batches, drawn_weights, given_data
from meanfield.simulation.training.losses import CrossEntropy, Squared
from meanfield.simulation.training.training import Training
from tests.derivable import values_and_output
from tests.draws import given_inputs

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
jnp = jax.numpy

# As Wang et al. 2026, section 3, have them: Llama's blocks on embedded characters, the next one predicted everywhere.
LANGUAGE = {"depth": 2, "width": 8, "heads": 2, "tokens": 4, "vocabulary": 5, "outputs": 5, "readout": "every"} | {
    "normalisation": "rms",
    "causal": True,
    "rotary": True,
    "activation": "swiglu",
    "ffn": 1.5,
    "head": "fan_in",
}
NETS = {
    "mlp": mf.MLP(depth=3, width=(6, 7, 5), outputs=4, inputs=3, activation="tanh"),
    "conv_net": mf.ConvNet(depth=3, channels=4, grid=(5,), kernel=(3,), padding="zero", outputs=3, inputs=3),
    "tied_loop": mf.TiedLoop(depth=5, width=6, alpha=0.5, activation="tanh"),
    "language model": mf.Transformer(**LANGUAGE),
    "looped language model": mf.Transformer(**LANGUAGE, tied=True, scaling="rezero"),
}
SCHEDULES = {"constant": None, "warmup and cosine": mf.WarmupCosine(0.2, 0.1).shares(10)}
RATES = {"sgd": 0.2, "adamw": 0.01, "lion": 0.005, "muon": 0.02}
OURS = {"sgd": SGD(0.9), "adamw": AdamW(0.9, 0.99), "lion": Lion(0.9, 0.99), "muon": Muon(0.95, 5)}
DECAY, EPSILON, STEPS, SAMPLES, BATCH = 0.1, 1e-6, 10, 12, 3


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def theirs(name, rate):
    """The same optimizer by optax: Muon of Zheng et al. 2026 is SGD's Nesterov momentum, orthogonalised."""
    if name == "sgd":
        return optax.chain(optax.add_decayed_weights(0.0), optax.sgd(rate, momentum=0.9))
    if name == "adamw":
        return optax.adamw(rate, b1=0.9, b2=0.99, eps=EPSILON, weight_decay=DECAY)
    if name == "lion":
        return optax.lion(rate, b1=0.9, b2=0.99, weight_decay=DECAY)
    as_matrix = optax.contrib.MuonDimensionNumbers(0, 1)
    orthogonal = optax.contrib.scale_by_muon(
        beta=0.0, eps=0.0, nesterov=False, weight_dimension_numbers=lambda tree: jax.tree.map(lambda _: as_matrix, tree)
    )
    decayed = optax.add_decayed_weights(DECAY)
    return optax.chain(optax.trace(0.95, nesterov=True), orthogonal, decayed, optax.scale_by_learning_rate(rate))


def jax_output(net, weights, x):
    """The net in JAX, written from the specs: x (B, C, sites) -> (B, outputs, sites)."""
    if isinstance(net, mf.Transformer):
        return values_and_output(net, weights, x)[1]
    sigma = {"tanh": jnp.tanh, "relu": jax.nn.relu}[net.activation]
    if isinstance(net, mf.TiedLoop):
        for _ in range(net.depth):
            x = x + net.depth**-net.alpha * jnp.einsum("ij,bjs->bis", weights["W"], sigma(x))
        return x
    for layer in range(1, net.depth + 1):
        whole = weights[f"W{layer}"]
        kernel = whole.reshape(len(whole), x.shape[1], -1)
        x = jax.lax.conv_general_dilated(sigma(x), kernel, (1,), "SAME")
    features = sigma(x).mean(axis=2, keepdims=True)
    return jnp.einsum("ij,bjs->bis", weights["readout"], features)


def jax_loss(net, kind, weights, x, y):
    output = jax_output(net, weights, x)
    if kind == "cross_entropy":
        logits = jnp.moveaxis(output, 1, 2)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y.reshape(logits.shape[:2])).mean()
    return jnp.mean((output - y) ** 2) / 2


def problem(name, kind):
    net = NETS[name]
    rng = np.random.default_rng(0)
    inputs = given_inputs(net, rng, SAMPLES)
    channels = net.output_shape[1]
    if kind == "cross_entropy":
        return net, CrossEntropy(), inputs, rng.integers(channels, size=(SAMPLES, *net.output_shape[2:]))
    return net, Squared(), inputs, rng.normal(size=(SAMPLES, channels, 1))


PROBLEMS = [("mlp", "squared"), ("conv_net", "cross_entropy"), ("tied_loop", "cross_entropy")]
RUNS = [(name, kind, optimizer) for name, kind in PROBLEMS for optimizer in OURS]
RUNS += [(name, "cross_entropy", "adamw") for name in ("language model", "looped language model")]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "kind", "optimizer"), RUNS)
def test_ten_steps_are_those_of_optax(name, optimizer, kind, schedule):
    """Two nets of two rates side by side, minibatches, several epochs; weight decay follows the rate."""
    net, loss, inputs, targets = problem(name, kind)
    rates = np.array([RATES[optimizer], RATES[optimizer] / 2])
    settings = {"learning_rate": rates, "epsilon": EPSILON, "weight_decay": 0.0 if optimizer == "sgd" else DECAY}
    start = drawn_weights(net, 0, range(2))
    batches = Batches(SAMPLES, BATCH, [3, 4])
    training = Training(
        net,
        {weight: values.copy() for weight, values in start.items()},
        given_data(net, inputs, targets, loss),
        loss,
        OURS[optimizer],
        lambda weight: settings,
        batches=batches,
        shares=SCHEDULES[schedule],
    )
    seen = []
    for _ in range(STEPS):
        seen.append(training.losses())
        training.step()
    flat = inputs.reshape(*inputs.shape[:2], -1)
    shares = jnp.ones(STEPS) if SCHEDULES[schedule] is None else jnp.asarray(SCHEDULES[schedule])
    step_of = jax.jit(lambda rate, *given: their_step(net, kind, optimizer, lambda step: rate * shares[step], *given))
    for which, rate in enumerate(rates):
        weights = {weight: jnp.asarray(values[which]) for weight, values in start.items()}
        state = theirs(optimizer, shares.__getitem__).init(weights)
        for step in range(STEPS):
            chosen = batches.at(step)[which]
            value, weights, state = step_of(rate, weights, state, flat[chosen], targets[chosen])
            np.testing.assert_allclose(seen[step][which], value, rtol=1e-9)
        for weight, values in weights.items():
            np.testing.assert_allclose(training.weights[weight][which], values, atol=1e-9, err_msg=weight)


def their_step(net, kind, optimizer, rate, weights, state, x, y):
    value, slopes = jax.value_and_grad(lambda w: jax_loss(net, kind, w, x, y))(weights)
    updates, state = theirs(optimizer, rate).update(slopes, state, weights)
    return value, optax.apply_updates(weights, updates), state


def test_minibatches_are_epochs_without_replacement():
    batches = Batches(10, 3, [0, 0, 5])
    epoch = np.concatenate([batches.at(step) for step in range(3)], axis=1)
    assert all(len(set(row)) == 9 for row in epoch.tolist())
    np.testing.assert_array_equal(epoch[0], epoch[1])
    assert (epoch[0] != epoch[2]).any()
    again = Batches(10, 3, [5])
    np.testing.assert_array_equal(again.at(1)[0], epoch[2, 3:6])


def test_data_that_do_not_fit_the_net_are_refused():
    net, loss, inputs, targets = problem("mlp", "squared")
    with pytest.raises(ValueError, match=r"this net takes \(samples, 6\)"):
        given_data(net, inputs[:, :4], targets, loss)
    with pytest.raises(ValueError, match="12 inputs and 11 targets"):
        given_data(net, inputs, targets[1:], loss)
    with pytest.raises(ValueError, match="batch_size is 13"):
        Batches(12, 13, [0])


def test_single_precision_follows_double():
    net, loss, inputs, targets = problem("conv_net", "cross_entropy")
    by_precision = []
    for arrays in (NUMPY, on_numpy("float32")):
        data = given_data(net, inputs, targets, loss, arrays)
        weights = drawn_weights(net, 0, range(2), arrays)
        training = Training(
            net, weights, data, loss, AdamW(), lambda _: {"learning_rate": 0.01, "epsilon": 1e-4}, arrays=arrays
        )
        for _ in range(3):
            training.step()
        assert all(str(values.dtype) == arrays.precision for values in training.weights.values())
        by_precision.append(training.losses())
    np.testing.assert_allclose(by_precision[1], by_precision[0], rtol=1e-5)


def test_nets_that_leave_the_floats_leave_their_neighbours_alone():
    net, loss, inputs, targets = problem("mlp", "squared")
    data = given_data(net, inputs, targets, loss)

    def trained(rates, draws):
        weights = drawn_weights(net, 0, draws)
        training = Training(net, weights, data, loss, Muon(), lambda _: {"learning_rate": np.array(rates)})
        for _ in range(4):
            training.step()
        return training

    with np.errstate(all="ignore"):
        both = trained([1e200, 0.1], range(2))
    alone = trained([0.1], range(1, 2))
    assert both.gone.tolist() == [True, False]
    assert both.losses()[0] == np.inf
    assert both.losses()[1] == alone.losses()[0]


def test_batches_of_another_size_than_the_spec_are_taken():
    net, loss, inputs, targets = problem("mlp", "squared")
    values = []
    for spec in (net, replace(net, inputs=SAMPLES)):
        data = given_data(spec, inputs, targets, loss)
        training = Training(spec, drawn_weights(spec, 0, range(1)), data, loss, SGD(), lambda _: {"learning_rate": 0.1})
        training.step()
        values.append(training.losses())
    np.testing.assert_array_equal(*values)
