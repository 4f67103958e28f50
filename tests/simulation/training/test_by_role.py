"""Training by an optimizer for every role: against JAX and optax, against each optimizer alone, and refusals."""

import numpy as np
import pytest

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers import HYBRIDS, OPTIMIZERS, SGD, AdamW, Muon, optimizer_of_role
from meanfield.simulation.measures.blocks import copied, tabled
from meanfield.simulation.training.data import drawn_batch, drawn_weights, own_loss
from meanfield.simulation.training.training import Training

MULTIPLIERS = (0.9, 0.5, 0.7)
SIZES = {"width": 6, "depth": 2, "input_width": 4, "samples": 5, "outputs": 3, "activation": "relu"}
NET = BlockNet(**SIZES, biases=True, bias_variance=0.1, multipliers=MULTIPLIERS, variances=(0.3, 0.2, 0.4))
ROLES = ("input", "hidden", "output", "input_bias", "hidden_bias")
# Every role has a rate, a decay and an epsilon of its own; those of other optimizers must not count.
GIVEN = {
    role: {"learning_rate": 0.01 * place, "weight_decay": 0.1 / place, "adamw_epsilon": 1e-3 * place, "soap_epsilon": 9}
    for place, role in enumerate(ROLES, start=1)
}
STEPS = 4


def drawn():
    return drawn_weights(NET, 0, range(2)), drawn_batch(NET, 0, range(2))


@pytest.mark.parametrize(
    ("name", "of_roles"),
    [
        ("muon", ("muon", "muon", "muon", "adamw", "adamw")),
        ("muon-adamw", ("adamw", "muon", "adamw", "adamw", "adamw")),
        ("lion-shampoo", ("shampoo", "lion", "shampoo", "adamw", "adamw")),
    ],
)
def test_names_say_who_steps_each_role(name, of_roles):
    """Hidden biases go with all other weights, and to AdamW where these have an optimizer of matrices."""
    expected = dict(zip(ROLES, of_roles, strict=True))
    assert {role: optimizer_of_role(name, role) for role in ROLES} == expected


@pytest.mark.parametrize("name", ["muon-adam", "muon-", "-muon", "muon-adamw-sgd", "adam"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=rf"'{name}'; choose one of 'sgd', .* or two of them"):
        optimizer_of_role(name, "hidden")


@pytest.mark.parametrize("hybrid", [*HYBRIDS, "sophia-lion", "sso-sgd"])
def test_every_role_steps_as_under_its_own_optimizer(hybrid):
    """At the first step, where no other weight has moved."""
    weights, data = drawn()
    trained = {}
    for name in (hybrid, *hybrid.split("-"), "adamw"):
        training = tabled(NET, copied(weights), data, name, GIVEN, True)
        training.step()
        trained[name] = training.weights
    for weight, values in trained[hybrid].items():
        own = optimizer_of_role(hybrid, NET.role_of(weight))
        np.testing.assert_array_equal(values, trained[own][weight], err_msg=weight)


def test_a_hybrid_steps_as_optax_steps_it():
    """Muon-Kimi on hidden matrices and AdamW on everything else, with decay and epsilon of each role."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    jnp = jax.numpy

    def kimi(rate, decay):
        as_matrix = optax.contrib.MuonDimensionNumbers(0, 1)
        numbers = {"weight_dimension_numbers": lambda tree: jax.tree.map(lambda _: as_matrix, tree)}
        orthogonal = optax.contrib.scale_by_muon(beta=0.0, eps=0.0, nesterov=False, **numbers)
        sized = optax.stateless_with_tree_map(lambda step, weight: 0.2 * max(weight.shape) ** 0.5 * step)
        momentum, decayed = optax.trace(0.95, nesterov=True), optax.add_decayed_weights(decay)
        return optax.chain(momentum, orthogonal, sized, decayed, optax.scale_by_learning_rate(rate))

    def of_role(role):
        rate, decay, epsilon = (GIVEN[role][name] for name in ("learning_rate", "weight_decay", "adamw_epsilon"))
        if role == "hidden":
            return kimi(rate, decay)
        return optax.adamw(rate, b1=0.9, b2=0.95, eps=epsilon, weight_decay=decay)

    def loss(weights, x, y):
        def layer(name, values):
            return jax.nn.relu(weights[f"W{name}"] @ values + weights[f"b{name}"])

        stream = MULTIPLIERS[0] * layer("0", x)
        for block in range(1, NET.depth + 1):
            stream = stream + MULTIPLIERS[1] * layer(f"{block}.2", layer(f"{block}.1", stream))
        logits = MULTIPLIERS[2] * weights["readout"] @ stream
        return optax.softmax_cross_entropy_with_integer_labels(logits.T, y).mean()

    start, data = drawn()
    training = tabled(NET, copied(start), data, "muon_kimi-adamw", GIVEN, True)
    for _ in range(STEPS):
        training.step()
    with jax.enable_x64(True):
        labels = {name: NET.role_of(name) for name in start}
        rule = optax.multi_transform({role: of_role(role) for role in ROLES}, labels)

        @jax.jit
        def stepped(weights, state, x, y):
            updates, state = rule.update(jax.grad(loss)(weights, x, y), state, weights)
            return optax.apply_updates(weights, updates), state

        for net in range(2):
            weights = {name: jnp.asarray(values[net]) for name, values in start.items()}
            x, y = jnp.asarray(data.inputs[net, :, :, 0]), jnp.asarray(data.targets[net, 0, :, 0])
            state = rule.init(weights)
            for _ in range(STEPS):
                weights, state = stepped(weights, state, x, y)
            for name, values in weights.items():
                np.testing.assert_allclose(training.weights[name][net], values, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ({"input": SGD(), "hidden": Muon(), "output": SGD()}, "none for 'input_bias', the role of b0"),
        (dict.fromkeys(ROLES, Muon()), "which steps matrices alone"),
    ],
)
def test_roles_without_an_optimizer_that_serves_them_are_refused(optimizer, message):
    weights, data = drawn()
    with pytest.raises(ValueError, match=message):
        Training(NET, weights, data, own_loss(NET), optimizer, GIVEN.__getitem__)


def test_one_optimizer_for_all_is_one_for_every_role():
    weights, data = drawn()
    ended = []
    for optimizer in (Muon(), {role: AdamW() if role.endswith("_bias") else Muon() for role in ROLES}):
        training = Training(NET, copied(weights), data, own_loss(NET), optimizer, lambda name: GIVEN[NET.role_of(name)])
        training.step()
        ended.append(training.weights)
    for name in weights:
        np.testing.assert_array_equal(ended[0][name], ended[1][name])


def test_hybrids_of_the_paper_are_of_optimizers_that_there_are():
    assert all(set(name.split("-")) <= set(OPTIMIZERS) for name in HYBRIDS)
