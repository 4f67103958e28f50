"""Training of nets of blocks: updates against the rule written out, and nets that leave the floats."""

import dataclasses

import numpy as np
import pytest

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers import OPTIMIZERS
from meanfield.optimizers.linear_algebra import dense
from meanfield.simulation.measures.blocks import TrainedStreams, copied, root_mean_square, weight_roles
from meanfield.simulation.training.gradients import gradients

NET = BlockNet(width=12, depth=2, variances=(0.1, 0.1, 0.5))
FULL = dataclasses.replace(NET, samples=9, outputs=3, activation="relu", biases=True, bias_variance=0.1)

# Of input, hidden and output weights.
MIDDLES = ("W0", "W2.1", "readout")


def rates(rate, **more):
    """By role; SOAP needs an epsilon, for slots that no squared gradient has come in yet."""
    more = {"soap_epsilon": 1e-3} | more
    roles = ("input", "hidden", "output", "input_bias", "hidden_bias")
    return {role: {"learning_rate": rate, **more} for role in roles}


def begun(net, seed, optimizer, table, momentum):
    """Two draws before their first step."""
    measure = TrainedStreams(optimizer=optimizer, hyperparameters=table, momentum=momentum, steps=1)
    return measure.begun(net, seed, range(2))


def test_a_step_is_the_gradient_and_the_decay():
    training = begun(NET, 0, "sgd", rates(0.3, weight_decay=0.2), False)
    before = copied(training.weights)
    slopes = gradients(training.look(), training.slope())
    training.step()
    for name, old in before.items():
        np.testing.assert_allclose(training.weights[name], old - 0.3 * (dense(slopes[name].slope) + 0.2 * old))


@pytest.mark.parametrize("net", [NET, FULL], ids=["as the paper's", "full rank"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_small_steps_of_every_optimizer_lower_the_loss(optimizer, net):
    training = begun(net, 1, optimizer, rates(1e-3), True)
    losses = []
    for _ in range(6):
        losses.append(training.losses())
        training.step()
    assert np.all(np.diff(losses, axis=0) < 0)


@pytest.mark.parametrize("net", [NET, FULL], ids=["as the paper's", "full rank"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_draws_side_by_side_are_those_one_by_one(optimizer, net):
    measure = TrainedStreams(optimizer=optimizer, hyperparameters=rates(1e-2), momentum=True, steps=3)
    both, alone = measure.draw(net, 0, range(2)), measure.draw(net, 0, range(1, 2))
    for name, values in alone.items():
        np.testing.assert_array_equal(both[name][1:], values)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "sophia", "muon", "muon_kimi-adamw"])
def test_single_precision_trains_the_same_nets_rounded(optimizer):
    """Not so near by Shampoo, whose inverse roots magnify what rounding leaves of small singular values."""
    table = rates(1e-2)
    double, single = (
        TrainedStreams(optimizer=optimizer, hyperparameters=table, momentum=True, steps=3, precision=precision)
        for precision in ("float64", "float32")
    )
    assert {values.dtype for values in single.begun(FULL, 0, range(2)).weights.values()} == {np.dtype("float32")}
    exact, rounded = (measure.draw(FULL, 0, range(2)) for measure in (double, single))
    for name, values in exact.items():
        np.testing.assert_allclose(rounded[name], values, rtol=1e-3)
        assert np.any(rounded[name] != values)
    with pytest.raises(ValueError, match="precision"):
        dataclasses.replace(single, precision="half").settled(FULL)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "shampoo", "soap"])
def test_nets_that_leave_the_floats_are_nan_from_there_on(optimizer):
    def trained(rate):
        measure = TrainedStreams(optimizer=optimizer, hyperparameters=rates(rate), momentum=True, steps=4)
        return measure.draw(NET, 0, range(2))

    drawn = trained(1e90)
    assert np.isfinite(drawn["feature_norm"][:, 0]).all()
    assert not np.isfinite(drawn["feature_norm"][:, -1]).any()
    kept = trained(1e-2)
    assert all(np.isfinite(values[:, (1, -1)]).all() for values in kept.values())
    for name in ("own_change", "stable_rank"):  # of the first and the last step alone
        assert np.isnan(kept[name][:, (0, 2, 3)]).all()


@pytest.mark.parametrize("role", ["input", "hidden", "output", "hidden_bias"])
def test_what_one_role_changes_alone_is_all_where_no_other_moves(role):
    given = {name: {"learning_rate": 0.3 * (name == role)} for name in rates(0)}
    drawn = TrainedStreams(optimizer="sgd", hyperparameters=given, momentum=True, steps=3).draw(FULL, 0, range(2))
    place = weight_roles(FULL).index(role)
    whole = drawn["output_update_norm"] if role == "output" else drawn["feature_update_norm"][:, :, -1]
    own = drawn["own_change"][:, (1, -1)]
    np.testing.assert_array_equal(own[:, :, place], whole[:, (1, -1)])
    assert np.all(whole[:, 1:] > 0)
    assert not np.delete(own, place, axis=2).any()


def test_stable_ranks_are_those_of_the_directions():
    """|A|_F^2 / |A|_2^2 by all singular values, of a dense and of a factored direction."""
    for optimizer in ("adamw", "sgd"):
        measure = TrainedStreams(optimizer=optimizer, hyperparameters=rates(0.1), momentum=True, steps=1)
        drawn = measure.draw(NET, 0, range(2))["stable_rank"]
        directions = measure.begun(NET, 0, range(2)).step()
        values = [[np.linalg.svd(dense(part), compute_uv=False) for part in directions[name]] for name in MIDDLES]
        expected = [[np.sum(sizes**2) / sizes[0] ** 2 for sizes in draws] for draws in values]
        np.testing.assert_allclose(drawn[:, 1], np.transpose(expected), rtol=1e-6)
        assert np.isnan(drawn[:, 0]).all()


def test_stable_ranks_are_those_of_the_middle_weights():
    """Of gradients of several samples, whose ranks differ from weight to weight."""
    measure = TrainedStreams(optimizer="sgd", hyperparameters=rates(0.1), momentum=True, steps=1)
    drawn, directions = measure.draw(FULL, 0, range(2))["stable_rank"][:, 1], measure.begun(FULL, 0, range(2)).step()
    for role in ("input", "hidden", "output"):
        place, own = weight_roles(FULL).index(role), [name for name in FULL.weights if FULL.role_of(name) == role]
        values = [np.linalg.svd(dense(part), compute_uv=False) for part in directions[own[len(own) // 2]]]
        np.testing.assert_allclose(drawn[:, place], [np.sum(v**2) / v[0] ** 2 for v in values], rtol=1e-6)


def test_sizes_in_single_precision_are_summed_in_double():
    """Squares of these would leave the range."""
    np.testing.assert_allclose(root_mean_square(np.full((1, 3), 1e25, np.float32)), 1e25, rtol=1e-6)


def test_every_draw_has_drawn_labels_of_its_own():
    sampled = {"momentum": True, "steps": 1, "sampled_curvature": True}
    measure = TrainedStreams(optimizer="sophia", hyperparameters=rates(0.1), **sampled)
    assert len(set(measure.begun(FULL, 0, range(2)).seeds)) == 2


@pytest.mark.parametrize(
    ("width", "depth", "together"), [(16, 2, 16), (64, 8, 15), (64, 64, 4), (128, 32, 4), (256, 64, 1), (512, 2, 1)]
)
def test_nets_train_side_by_side_as_caches_allow(width, depth, together):
    """Deep nets too, if the same layer of all of them stays in the cache; chunks hold whole groups."""
    measure = TrainedStreams(optimizer="sgd", hyperparameters=rates(0.1), momentum=False, steps=1)
    net = BlockNet(width=width, depth=depth, variances=(0.1, 0.1, 0.5))
    assert measure.together(net) == measure.multiple(net) == together


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_net_trains_alike_whoever_is_beside_it(optimizer):
    measure = TrainedStreams(optimizer=optimizer, hyperparameters=rates(0.05), momentum=True, steps=4)
    whole = measure.draw(FULL, 3, range(3))
    for draw in range(3):
        alone = measure.draw(FULL, 3, range(draw, draw + 1))
        for name, values in alone.items():
            np.testing.assert_allclose(whole[name][draw], values[0], rtol=1e-9, atol=1e-12, err_msg=name)
