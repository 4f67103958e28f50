"""What has no first step is refused before any work, and what an epsilon leaves of a step is said."""

import warnings

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import BatchNormalisation, Bias, Linear, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.optimizers import SGD, SOAP, SSO, AdamW, Lion, Muon, Shampoo, Sophia
from meanfield.simulation.measures.energies import Energies
from tests.draws import given_draw

NET = mf.MLP(depth=2, width=4, outputs=3, inputs=2)
WEIGHTS, INPUTS, ERROR = given_draw(NET, 0)
DATA = np.random.default_rng(0).normal(size=(10, 4)), np.arange(10) % 3


def one_step(**options):
    return mf.one_step(NET, WEIGHTS, INPUTS, ERROR, **options)


def simulated(net=NET, **options):
    return mf.simulate(net, draws=2, seed=0, measure=Energies(**options))


def scales(data=DATA, net=NET, **options):
    return mf.step_scales(net, data, **{"draws": 2} | options)


@pytest.fixture
def no_work(monkeypatch):
    """A pass through a net fails the test."""

    def started(*_):
        raise AssertionError("work has begun")

    for module in ("one_step", "measures.energies", "measures.step_scales"):
        monkeypatch.setattr(f"meanfield.simulation.{module}.forward", started)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("entrance", [one_step, simulated, scales])
def test_work_that_begins_is_seen(entrance):
    with pytest.raises(AssertionError, match="work has begun"):
        entrance(optimizer="adamw")


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("entrance", [one_step, simulated, scales])
@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"optimizer": None}, TypeError, "optimizer is None; give a name, one of 'sgd'"),
        ({"optimizer": 42}, TypeError, "optimizer is 42; give a name"),
        ({"optimizer": ["adamw"]}, TypeError, r"optimizer is \['adamw'\]; give a name"),
        ({"optimizer": AdamW}, TypeError, r"or one of meanfield.optimizers, such as AdamW\(\)"),
        ({"optimizer": "adam"}, ValueError, "optimizer is 'adam'; choose one of 'sgd', 'adamw'"),
        ({"optimizer": "muon-lion"}, ValueError, "optimizer is 'muon-lion'; choose one of"),
        ({"optimizer": Sophia(sampled=True)}, ValueError, "draws labels for its curvature; give one that sums it"),
        ({"epsilon": -1.0}, ValueError, "epsilon is -1; it must be positive: leave it at 0 for none"),
        ({"epsilon": np.nan}, ValueError, "epsilon is nan; it must be a number, at least 0"),
        ({"epsilon": "small"}, TypeError, "epsilon is 'small'; it must be a number, at least 0"),
    ],
)
def test_what_makes_no_first_step(entrance, options, kind, message):
    with pytest.raises(kind, match=message):
        entrance(**options)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("entrance", [one_step, simulated, scales])
@pytest.mark.parametrize("optimizer", ["sgd", "lion", "muon", "muon_kimi", "sso", SGD(), Lion(), Muon()])
def test_an_epsilon_that_the_optimizer_has_not(entrance, optimizer):
    message = (
        "epsilon is 0.01, and .* divides no weight of this net by the size of its gradient, so that it has none: "
        "leave epsilon out, or take an optimizer that has one, such as 'adamw', 'sophia', 'shampoo', 'soap'"
    )
    with pytest.raises(ValueError, match=message):
        entrance(optimizer=optimizer, epsilon=0.01)


@pytest.mark.filterwarnings("ignore:epsilon .* leaves")
@pytest.mark.parametrize("optimizer", ["adamw", "sophia", "shampoo", "soap", "muon-adamw", "shampoo-adamw"])
def test_an_epsilon_that_an_optimizer_takes_moves_its_step(optimizer):
    """By a third and more, as it is far above the gradients; the other optimizers are those of the test above."""
    softened, sharp = (one_step(optimizer=optimizer, epsilon=epsilon, outputs=True)[-1] for epsilon in (1e3, 0.0))
    assert np.abs(softened).max() < 0.7 * np.abs(sharp).max()


def test_an_epsilon_is_that_of_any_weight():
    """Muon leaves biases to AdamW; of a loop all weights are hidden, and a hybrid steps none of them by AdamW."""
    units = NET.units
    biased = Chain(
        units=(Unit((*units[0].branch, Bias(Weight("bias", (4,), 0.0)))), *units[1:]),
        readout_unit=NET.readout_unit,
        input_channels=4,
        inputs=2,
    )
    assert simulated(biased, optimizer="muon", epsilon=1e-3).attrs["kept_share"] < 1
    with pytest.raises(ValueError, match=r"epsilon is 0\.001, and muon-adamw divides no weight of this net"):
        simulated(mf.TiedLoop(depth=2, width=4), optimizer="muon-adamw", epsilon=1e-3)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "sophia", "sso"])
def test_inputs_of_zero_move_nothing(optimizer):
    nothing = (
        "nothing moves in any of the 2 draws, and no rate moves it by 1: all inputs are 0, and so are the gradients"
    )
    with pytest.raises(ValueError, match=nothing):
        scales((0 * DATA[0], DATA[1]), optimizer=optimizer)
    biased = mf.BlockNet(
        depth=2, width=4, input_width=4, outputs=3, activation="linear", biases=True, bias_variance=1.0
    )
    assert np.isfinite(scales((0 * DATA[0], DATA[1]), biased, optimizer=optimizer)["output_learning_rate_scale"])


def test_nets_that_die_move_nothing():
    dead = "nothing moves in any of the 2 draws, .*: the gradients are 0, as units have died, or too small for floats"
    for net, data in ((mf.MLP(depth=60, width=1, input_width=4, outputs=3), DATA), (NET, (1e-200 * DATA[0], DATA[1]))):
        with pytest.raises(ValueError, match=dead):
            scales(data, net)


def test_a_scale_is_infinite_where_some_nets_move():
    net = mf.MLP(depth=4, width=2, input_width=4, outputs=3)
    low, _, high = scales(net=net, draws=32, batch_size=2)["learning_rate_scale_quantile"].values
    assert low < high == np.inf


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: AdamW(2.0), "beta1 of AdamW is 2.0; it must be below 1, or no past is ever forgotten: 0 for none"),
        (lambda: Shampoo(0.9, 1.0), "beta2 of Shampoo is 1.0; it must be below 1"),
        (lambda: SOAP(0.9, 0.9, 1.0), "beta3 of SOAP is 1.0; it must be below 1"),
        (lambda: SGD(-0.1), "momentum of SGD is -0.1; it must be positive: leave it at 0 for none"),
        (lambda: Lion(np.nan), "beta1 of Lion is nan; it must be a number, at least 0"),
        (lambda: Muon(0.95, 0), r"newton_schulz_steps of Muon is 0; it must be at least 1 \(iterations; None takes"),
        (lambda: SSO(tolerance=0.0), "tolerance of SSO is 0; it must be positive"),
        (lambda: Sophia(rho=-1.0), "rho of Sophia is -1; it must be positive"),
    ],
)
def test_settings_that_no_optimizer_steps_by(made, message):
    """Running means that never take a gradient in would say that nothing moves."""
    with pytest.raises(ValueError, match=message):
        made()


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("data", "options", "kind", "message"),
    [
        (DATA, {"batch_size": 11}, ValueError, "batch_size is 11; it must be at most 10"),
        (DATA, {"batch_size": 0}, ValueError, "batch_size is 0; it must be at least 1"),
        (DATA, {"loss": "hinge"}, ValueError, "loss is 'hinge'; choose one of"),
        (DATA, {"loss": "squared"}, ValueError, r"targets have shape \(10,\); the squared loss takes"),
        (DATA, {"precision": "float16"}, ValueError, "precision is 'float16'"),
        (DATA[0], {}, TypeError, "data is of type ndarray; give a pair"),
        ((DATA[0][:, :3], DATA[1]), {}, ValueError, r"inputs have shape \(10, 3\); this net takes \(samples, 4\)"),
        ((DATA[0], DATA[1][:5]), {}, ValueError, "there are 10 inputs and 5 targets"),
        ((DATA[0], DATA[1] + 1), {}, ValueError, "a label is 3; this net has 3 outputs, for the classes 0 .. 2"),
        ((DATA[0], DATA[1] - 1), {}, ValueError, "give whole numbers from 0"),
        ((DATA[0], np.full((10, 3), np.nan)), {"loss": "squared"}, ValueError, "targets hold NaN or infinite values"),
        ((DATA[0] * np.inf, DATA[1]), {}, ValueError, "inputs hold NaN or infinite values"),
    ],
)
def test_data_of_which_no_step_is_made(data, options, kind, message):
    with pytest.raises(kind, match=message):
        scales(data, **options)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    "beyond",
    [{"weights": "lazy"}, {"backend": "cupy"}, {"precision": "float32"}, {"by_site": True}, {"controls": True}],
)
@pytest.mark.parametrize("asked", [{"optimizer": "adamw"}, {"scales": True}])
def test_options_of_gradient_descent_alone(beyond, asked):
    (name, value), (own, given) = *beyond.items(), *asked.items()
    with pytest.raises(ValueError, match=f"{own} {given!r} moves the readout .* not with {name} {value!r}"):
        simulated(**asked | beyond)


@pytest.mark.usefixtures("no_work")
def test_curvatures_of_nets_whose_samples_depend_on_each_other():
    units, readout = (Unit((Linear((Weight("W", (3, 3), 1.0),)),)),), Unit((BatchNormalisation(0.1),))
    net = Chain(units=units, readout_unit=readout, input_channels=3, inputs=4)
    for entrance in (simulated, lambda **options: scales((DATA[0][:, :3], DATA[1]), **options)):
        with pytest.raises(ValueError, match="adds up curvatures sample by sample, and under batch normalisation"):
            entrance(net=net, optimizer="sophia")


def test_weights_of_zero_keep_no_norm():
    with pytest.raises(ValueError, match="sso has no first step from rest at weight 'W2': its weights are 0"):
        mf.one_step(NET, [WEIGHTS[0], 0 * WEIGHTS[1], WEIGHTS[2]], INPUTS, ERROR, optimizer="sso")


@pytest.mark.parametrize("optimizer", ["shampoo", "soap"])
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_squares_beyond_floats_are_no_steps_of_zero(optimizer, size):
    with pytest.raises(OverflowError, match=f"in size, and {optimizer} takes squares, which floats do not hold"):
        mf.one_step(NET, WEIGHTS, INPUTS, size * ERROR, optimizer=optimizer)
    changes = mf.one_step(NET, WEIGHTS, INPUTS, size * ERROR, optimizer="muon", outputs=True)
    np.testing.assert_allclose(changes[-1], one_step(optimizer="muon", outputs=True)[-1])


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_an_error_and_targets_are_one_of_both(loss):
    for given in ({}, {"output_error": ERROR, "targets": [0, 1]}):
        with pytest.raises(ValueError, match="of output_error and targets are given; give one"):
            mf.one_step(NET, WEIGHTS, INPUTS, loss=loss, **given)
    with pytest.raises(ValueError, match="an output_error is that of the squared loss"):
        one_step(loss="cross_entropy")


def test_a_single_output_has_no_classes():
    net = mf.MLP(depth=2, width=4, outputs=1, inputs=10)
    weights, _, _ = given_draw(net, 0)
    for entrance in (
        lambda **options: mf.one_step(net, weights, DATA[0], targets=0 * DATA[1], **options),
        lambda **options: scales((DATA[0], 0 * DATA[1]), net, **options),
        lambda **options: simulated(net, **options),
    ):
        with pytest.raises(ValueError, match="the net has one output, whose cross-entropy is 0 whatever the net does"):
            entrance(loss="cross_entropy", optimizer="adamw")


def shares_of(size):
    """An epsilon of that size, and the mean of |G| / (|G| + epsilon) over all weights of the net."""
    slopes = []
    for number, weight in enumerate(WEIGHTS):
        for place in np.ndindex(weight.shape):
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in WEIGHTS]
                moved[number][place] += sign * 1e-6
                ends.append((mf.pre_activations(NET, moved, INPUTS)[-1] * ERROR).sum() / ERROR.size)
            slopes.append(abs(ends[0] - ends[1]) / 2e-6)
    slopes = np.array(slopes)
    moving = slopes[slopes > 1e-9]
    return (moving / (moving + size)).mean()


def test_an_epsilon_that_eats_the_step_says_its_share():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_step(optimizer="adamw", epsilon=1e-8)
        one_step(optimizer="adamw", epsilon=0.0)
    share = shares_of(0.3)
    assert share < 0.5
    with pytest.warns(mf.PremiseWarning, match=rf"epsilon 0.3 leaves {share:.2g} of the first step of adamw"):
        one_step(optimizer="adamw", epsilon=0.3)


@pytest.mark.parametrize("measured", [simulated, scales])
def test_datasets_say_what_an_epsilon_leaves(measured):
    assert "kept_share" not in measured(optimizer="adamw").attrs
    assert "kept_share" not in measured(optimizer="soap", epsilon=0.1).attrs
    assert 0.99 < measured(optimizer="adamw", epsilon=1e-9).attrs["kept_share"] < 1
    with pytest.warns(mf.PremiseWarning, match=r"epsilon 10 leaves 0.0\d+ of the first step of adamw"):
        little = measured(optimizer="adamw", epsilon=10.0).attrs["kept_share"]
    assert 0 < little < 0.1


def test_a_share_is_of_all_draws_whichever_are_made_together():
    energies = Energies(optimizer="adamw", epsilon=0.1).settled(NET)
    together = energies.draw(NET, 0, range(4))["kept_share"]
    alone = [energies.draw(NET, 0, range(draw, draw + 1))["kept_share"] for draw in range(4)]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-12)
    assert np.unique(together).size == 4
