"""Nets trained under many rates: the steps of JAX and optax, runs that know nothing of each other, and refusals."""

import json
from functools import cache

import numpy as np
import pytest

import meanfield as mf
from meanfield.execution.run import Run, simulate_all
from meanfield.execution.workers import Workers
from meanfield.optimizers import SGD, AdamW, Hybrid, Muon
from meanfield.simulation.training.data import Batches, drawn_weights
from tests import derivable

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
jnp = jax.numpy

NETS = {
    "cnn": mf.ConvNet(depth=2, channels=4, grid=(4, 4), kernel=(3, 3), input_channels=1, outputs=10, head="fan_in"),
    "mlp": mf.MLP(depth=2, width=(6, 5), outputs=4),
    "transformer": mf.Transformer(depth=1, width=8, heads=2, tokens=3, ffn=1, outputs=4),
}
SAMPLES, BATCH, STEPS = 20, 6, 20
THEIRS = {"sgd": optax.sgd, "adamw": lambda rate: optax.adam(rate, b1=0.9, b2=0.95, eps=1e-8)}
RATES = {"sgd": (0.05, 0.3), "adamw": (0.01, 0.03)}


def data_of(net, loss="cross_entropy"):
    rng = np.random.default_rng(0)
    _, outputs, *grid = net.output_shape
    inputs = rng.normal(size=(SAMPLES, net.first_channels, *net.grid))
    values = rng.normal(size=(SAMPLES, outputs, *grid))
    return inputs, values if loss == "squared" else rng.integers(outputs, size=(SAMPLES, *grid))


def by_optax(net, data, optimizer, rate, seed, loss):
    """Losses before every step and after the last one, on all data, in double precision; a rate may be a schedule."""
    with jax.enable_x64(True):
        start = drawn_weights(net, seed, range(1))
        weights = {name: jnp.asarray(start[name][0].reshape(net.weights[name].shape)) for name in net.weights}

        method, both = THEIRS[optimizer](rate), compiled(net, loss)
        state, batches, losses = method.init(weights), Batches(SAMPLES, BATCH, [seed]), []
        for step in range(STEPS):
            (chosen,) = batches.at(step)
            before, slopes = both(weights, *(values[chosen] for values in data))
            updates, state = method.update(slopes, state, weights)
            weights = optax.apply_updates(weights, updates)
            losses.append(float(before))
        return np.array(losses), float(both(weights, *data)[0])


@cache
def compiled(net, loss):
    """The loss and its gradient, from weights, inputs and targets."""

    def value(given, x, y):
        _, output = derivable.values_and_output(net, given, x)
        if loss == "squared":
            return jnp.mean((output - y) ** 2) / 2
        return optax.softmax_cross_entropy_with_integer_labels(output, y, axis=1).mean()

    return jax.jit(jax.value_and_grad(value))


@pytest.mark.parametrize("optimizer", THEIRS)
@pytest.mark.parametrize(
    ("name", "loss"), [("cnn", "cross_entropy"), ("mlp", "squared"), ("transformer", "cross_entropy")]
)
def test_twenty_steps_are_those_of_jax_and_optax(name, loss, optimizer):
    """Both precisions; another seed's or another rate's losses are far away."""
    net = NETS[name]
    data, options = data_of(net, loss), {"batch_size": BATCH, "loss": loss, "optimizer": optimizer}
    wide = mf.train(net, data, rates=RATES[optimizer], seeds=[4, 7], steps=STEPS, **options)
    narrow = mf.train(net, data, rates=RATES[optimizer], seeds=[4, 7], steps=STEPS, precision="float32", **options)
    at = {"rate": RATES[optimizer][1], "seed": 7}
    losses, final = by_optax(net, data, optimizer, at["rate"], 7, loss)
    for trained, tolerance in ((wide, 1e-8), (narrow, 1e-4)):
        own = trained.sel(at)
        np.testing.assert_allclose(own.loss, losses, rtol=tolerance)
        np.testing.assert_allclose(own.final_loss, final, rtol=tolerance)
    for others in ({"rate": RATES[optimizer][0], "seed": 7}, {"rate": at["rate"], "seed": 4}):
        assert abs(wide.sel(others).final_loss - final) > 1e-3 * final


def their_shares(steps, warm, final):
    """By optax, in double precision. It begins at a rate that is given: here at the first of W + 1 steps from 0."""
    with jax.enable_x64(True):
        schedule = optax.warmup_cosine_decay_schedule(1 / (warm + 1), 1.0, warm, steps, final)
        return np.asarray(jax.vmap(schedule)(jnp.arange(steps)))


@pytest.mark.parametrize(("warmup", "final"), [(0.1, 0.0), (0.25, 0.1), (0.0, 0.5), (0.07, 1.0)])
@pytest.mark.parametrize("steps", [1, 7, 100])
def test_warmup_and_cosine_are_those_of_optax(steps, warmup, final):
    shares = mf.WarmupCosine(warmup, final).shares(steps)
    np.testing.assert_allclose(shares, their_shares(steps, round(warmup * steps), final), rtol=1e-12)
    assert shares.max() == 1
    assert shares.min() > 0


@pytest.mark.parametrize("optimizer", THEIRS)
def test_twenty_steps_under_a_schedule_are_those_of_jax_and_optax(optimizer):
    net, data = NETS["transformer"], data_of(NETS["transformer"])
    how = {"rates": RATES[optimizer], "seeds": [4, 7], "steps": STEPS, "batch_size": BATCH, "optimizer": optimizer}
    steady = mf.train(net, data, **how)
    for schedule, warm, final in (("warmup_cosine", 2, 0.0), (mf.WarmupCosine(0.3, 0.2), 6, 0.2)):
        trained = mf.train(net, data, schedule=schedule, **how)
        for rate in RATES[optimizer]:
            by_step = (rate * their_shares(STEPS, warm, final)).__getitem__
            losses, last = by_optax(net, data, optimizer, by_step, 7, "cross_entropy")
            own, other = (each.sel(rate=rate, seed=7) for each in (trained, steady))
            np.testing.assert_allclose([*own.loss, own.final_loss], [*losses, last], rtol=1e-8)
            assert abs(other.final_loss - own.final_loss) > 1e-3 * own.final_loss


def test_a_schedule_of_whole_shares_changes_no_bit():
    net, data = NETS["cnn"], data_of(NETS["cnn"])
    for optimizer in ("adamw", "muon", "sso"):
        how = {"rates": [0.03, 0.1], "steps": 4, "batch_size": BATCH, "optimizer": optimizer, "weight_decay": 0.1}
        named, whole = mf.train(net, data, **how), mf.train(net, data, schedule=mf.WarmupCosine(0.0, 1.0), **how)
        np.testing.assert_array_equal(named.loss, whole.loss)
        np.testing.assert_array_equal(named.final_loss, whole.final_loss)
        assert named.attrs["schedule"] == "Constant()"


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", NETS)
def test_a_run_is_the_same_to_the_bit_whatever_is_trained_beside_it(name, precision):
    net, data = NETS[name], data_of(NETS[name])
    how = {"epochs": 2, "batch_size": BATCH, "precision": precision}
    many = mf.train(net, data, rates=[0.3, 0.01, 0.02, 0.05, 1e4], seeds=[1, 0], **how)
    alone = mf.train(net, data, rates=0.05, seeds=[0], **how)
    for variable in ("loss", "final_loss"):
        np.testing.assert_array_equal(many[variable].sel(rate=[0.05], seed=[0]), alone[variable])
    assert not (many.final_loss.isel(rate=0) == many.final_loss.isel(rate=1)).any()


def test_repeated_rates_and_seeds_have_the_numbers_of_the_first(monkeypatch):
    """Every copy, and none is trained twice."""
    net, data = NETS["mlp"], data_of(NETS["mlp"])
    how = {"epochs": 2, "batch_size": BATCH}
    taken = []
    own = SGD.step
    monkeypatch.setattr(SGD, "step", lambda *given: taken.append(given[3].learning_rate.size) or own(*given))
    once = mf.train(net, data, rates=[0.1, 0.02], seeds=[4, 7], **how)
    steps, taken[:] = list(taken), []
    copied = mf.train(net, data, rates=[0.1, 0.02, 0.1], seeds=[4, 7, 7, 4], **how)
    assert taken == steps
    assert copied["rate"].values.tolist() == [0.1, 0.02, 0.1]
    assert copied["seed"].values.tolist() == [4, 7, 7, 4]
    for name in ("loss", "final_loss"):
        np.testing.assert_array_equal(copied[name], once[name].values[[0, 1, 0]][:, [0, 1, 1, 0]])
        assert np.isfinite(copied[name]).all()


@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_inputs_outside_a_precision_are_refused(scale):
    net, (inputs, targets) = NETS["mlp"], data_of(NETS["mlp"])
    with pytest.raises(ValueError, match="float32 holds"):
        mf.train(net, (scale * inputs, targets), rates=0.1, steps=1, precision="float32")
    assert np.isfinite(mf.train(net, (1e-60 * inputs, targets), rates=0.1, steps=1).final_loss).all()


def test_workers_and_interrupted_runs_change_nothing(tmp_path):
    net, data = NETS["mlp"], data_of(NETS["mlp"])
    how = {"rates": np.geomspace(0.01, 1, 9), "seeds": 2, "epochs": 1, "batch_size": BATCH}
    alone = mf.train(net, data, **how)
    kept = mf.train(net, data, resume_in=tmp_path, **how)
    assert list(tmp_path.glob("*.npz"))
    again = mf.train(net, data, resume_in=tmp_path, workers=Workers(2), **how)
    for other in (kept, again):
        np.testing.assert_array_equal(alone.loss, other.loss)
    assert alone.seed.values.tolist() == [0, 1]
    assert alone.step.values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("optimizer", ["sgd", "muon", "sso"])
def test_runs_that_diverge_are_infinite_and_end(optimizer, monkeypatch):
    """Of a linear net, whose loss is a polynomial of the weights; other runs go on."""
    net = mf.MLP(depth=2, width=5, activation="linear", outputs=2)
    data = data_of(net, "squared")
    how = {"loss": "squared", "steps": 30, "optimizer": optimizer}
    trained = mf.train(net, data, rates=[1e60, 0.01], **how)
    (diverged, other), (end, other_end) = trained.loss.values[:, 0], trained.final_loss.values[:, 0]
    first = int(np.isinf(diverged).argmax())
    assert 0 < first < 30
    assert np.isfinite(diverged[:first]).all()
    assert np.isinf(diverged[first:]).all()
    assert end == np.inf
    assert np.isfinite([*other, other_end]).all()

    taken = []
    own = SGD.step
    monkeypatch.setattr(SGD, "step", lambda *given: taken.append(1) or own(*given))
    mf.train(net, data, rates=1e60, **how | {"optimizer": "sgd"})
    assert len(taken) < 30 * len(net.weights)


def test_values_that_vanish_under_a_normalisation_end_their_run_alone():
    """As those of a post-norm net whose weights have become huge; a net that is drawn is refused instead."""
    net = mf.Transformer(depth=1, width=8, heads=2, tokens=3, ffn=1, outputs=2, norm="post")
    data = data_of(net, "squared")
    trained = mf.train(net, data, loss="squared", rates=[1e30, 0.01], steps=12, precision="float32")
    assert np.isinf(trained.final_loss.values.ravel()).tolist() == [True, False]
    still = [np.zeros(shape) for shape in net.weight_shapes]
    with pytest.raises(ValueError, match="divides by"):
        mf.one_step(net.replace(inputs=2), still, 0 * data[0][:2], data[1][:2])


def test_given_weights_take_the_place_of_drawn_ones():
    net, data = NETS["cnn"], data_of(NETS["cnn"])
    own = drawn_weights(net, 5, range(1))
    weights = [own[name][0].reshape(net.weights[name].shape) for name in net.weights]
    how = {"rates": [0.1], "epochs": 1, "batch_size": BATCH}
    drawn, given = mf.train(net, data, seeds=[5], **how), mf.train(net, data, weights=weights, seeds=[5, 6], **how)
    np.testing.assert_array_equal(drawn.loss, given.loss.sel(seed=[5]))
    assert (given.loss.sel(seed=6) != given.loss.sel(seed=5)).all()  # other batches
    whole = mf.train(net, data, weights=weights, rates=0.1, steps=2, seeds=2)
    np.testing.assert_allclose(*whole.loss.values[0], rtol=1e-12)  # one batch, in any order


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_a_linear_layer_goes_down_a_parabola(rate):
    """Outputs w v x at x = 1, v = 1 and w = 0, where v has no gradient: one step takes the error 3 to 3 (1 - rate)."""
    net = mf.MLP(depth=1, width=1, activation="linear", outputs=1)
    trained = mf.train(
        net, ([[1.0]], [[3.0]]), loss="squared", rates=rate, steps=1, weights=[np.ones((1, 1)), np.zeros((1, 1))]
    )
    np.testing.assert_allclose(trained.loss.values.ravel(), 9 / 2)
    np.testing.assert_allclose(trained.final_loss.values.ravel(), (3 * (1 - rate)) ** 2 / 2)


def test_momentum_and_other_settings_reach_the_optimizer():
    net, data = NETS["mlp"], data_of(NETS["mlp"])
    how = {"rates": 0.05, "steps": 8, "batch_size": BATCH}
    finals = [
        float(mf.train(net, data, **how, **options).final_loss.squeeze())
        for options in (
            {},
            {"optimizer": SGD(0.9)},
            {"weight_decay": 0.5},
            {"optimizer": AdamW(0.9, 0.99)},
            {"optimizer": AdamW(0.9, 0.99), "epsilon": 0.1},
        )
    ]
    assert len(set(finals)) == len(finals)
    assert finals[0] == float(mf.train(net, data, optimizer=SGD(0.0), **how).final_loss.squeeze())


def test_descent_with_momentum_has_a_name_and_descends_at_its_first_step():
    """Hyperparameter tables do not know it: they are the paper's."""
    net, data = NETS["mlp"], data_of(NETS["mlp"])
    how = {"rates": 0.05, "steps": 8, "batch_size": BATCH}
    named, own = (mf.train(net, data, optimizer=optimizer, **how) for optimizer in ("sgd_momentum", SGD(0.9)))
    np.testing.assert_array_equal(named.loss, own.loss)
    assert named.attrs == own.attrs
    weights = [np.ones(shape) for shape in net.weight_shapes]
    moved, descended = (
        mf.one_step(net, weights, data[0][:1], targets=data[1][:1], loss="cross_entropy", optimizer=optimizer)
        for optimizer in ("sgd_momentum", "sgd")
    )
    for each, of_descent in zip(moved, descended, strict=True):
        np.testing.assert_array_equal(each, of_descent)
    of_momentum, of_descent = (mf.step_scales(net, data, draws=4, optimizer=name) for name in ("sgd_momentum", "sgd"))
    np.testing.assert_array_equal(of_momentum.output_learning_rate_scale, of_descent.output_learning_rate_scale)
    with pytest.raises(ValueError, match="sgd_momentum"):
        mf.hyperparameter_table("sgd_momentum", 2)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon-adamw"])
def test_factors_of_all_roles_are_those_of_the_settings(optimizer):
    """Of two, so that nothing is rounded; those of roles that the net lacks change nothing."""
    net, data = NETS["mlp"], data_of(NETS["mlp"])
    how = {"steps": 5, "batch_size": BATCH, "seeds": 2, "optimizer": optimizer}
    doubled = {"learning_rate": 2.0, "weight_decay": 0.5, "epsilon": 4.0}
    roles = {*map(net.role_of, net.weights)} | {"hidden_bias"}
    by_role = mf.train(
        net, data, rates=0.05, weight_decay=0.2, epsilon=1e-3, role_factors=dict.fromkeys(roles, doubled), **how
    )
    whole = mf.train(net, data, rates=0.1, weight_decay=0.1, epsilon=4e-3, **how)
    np.testing.assert_array_equal(by_role.loss, whole.loss)
    np.testing.assert_array_equal(by_role.final_loss, whole.final_loss)
    unscaled = mf.train(
        net, data, rates=0.1, weight_decay=0.1, epsilon=4e-3, **how, role_factors={r: {} for r in roles}
    )
    np.testing.assert_array_equal(unscaled.loss, whole.loss)


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_a_factor_is_that_of_its_role_alone(factor):
    """The parabola above, where the output weight alone has a gradient."""
    net = mf.MLP(depth=1, width=1, activation="linear", outputs=1)
    given = {"loss": "squared", "rates": 0.8, "steps": 1, "weights": [np.ones((1, 1)), np.zeros((1, 1))]}
    factors = {"input": {"learning_rate": 8.0}, "output": {"learning_rate": factor}}
    trained = mf.train(net, ([[1.0]], [[3.0]]), role_factors=factors, **given)
    np.testing.assert_allclose(trained.final_loss.values.ravel(), (3 * (1 - 0.8 * factor)) ** 2 / 2)
    assert json.loads(trained.attrs["role_factors"]) == factors


def test_a_table_s_numbers_are_the_base_model_s_times_its_factors():
    """Training by factors at base values is training of every role by the values that the table gives."""
    net = mf.BlockNet(depth=4, width=8, input_width=6, outputs=4, activation="relu")
    sizes = {"width": 8, "depth": 4, "base_width": 4, "base_depth": 2, "block_depth": 2}
    tabled = mf.transfer_hyperparameters("adamw", **sizes, base_values={"learning_rate": 0.02, "weight_decay": 0.5})
    ones = mf.transfer_hyperparameters("adamw", **sizes, base_values={"learning_rate": 1.0, "weight_decay": 1.0})
    how = {"steps": 4, "batch_size": BATCH, "optimizer": "adamw"}
    by_factors = mf.train(net, data_of(NETS["mlp"]), rates=0.02, weight_decay=0.5, role_factors=ones, **how)
    by_values = mf.train(net, data_of(NETS["mlp"]), rates=1.0, weight_decay=1.0, role_factors=tabled, **how)
    np.testing.assert_allclose(by_factors.loss, by_values.loss, rtol=1e-12)
    plain = mf.train(net, data_of(NETS["mlp"]), rates=0.02, weight_decay=0.5, **how)
    assert abs(plain.loss - by_factors.loss).max() > 1e-3


def test_nets_learn():
    """Under every name some rate of a ladder takes more off the loss than next to none."""
    for optimizer in ("sgd", "sgd_momentum", "lion", "sophia", "shampoo", "soap", "muon_kimi", "sso"):
        how = {"rates": [1e-6, 0.003, 0.03], "epochs": 4, "batch_size": 10}
        trained = mf.train(NET, (INPUTS, LABELS), optimizer=optimizer, **how)
        still, *others = trained.final_loss.isel(seed=0).values
        assert min(others) < still - 0.02, optimizer


NET = NETS["mlp"]
INPUTS, LABELS = data_of(NET)
REFUSED = {
    "no net": ({"net": "mlp"}, TypeError, "net is"),
    "no pair": ({"data": INPUTS}, TypeError, "pair"),
    "labels out of range": ({"data": (INPUTS, LABELS + 1)}, ValueError, "a label is 4; this net has 4 outputs"),
    "labels that are no classes": ({"data": (INPUTS, LABELS + 0.5)}, ValueError, "whole numbers"),
    "other inputs": ({"data": (INPUTS[:, :3], LABELS)}, ValueError, r"this net takes \(samples, 6\)"),
    "inputs that are not finite": ({"data": (INPUTS + np.nan, LABELS)}, ValueError, "NaN"),
    "no samples": ({"data": (INPUTS[:0], LABELS[:0])}, ValueError, "one sample or more"),
    "fewer labels": ({"data": (INPUTS, LABELS[1:])}, ValueError, "20 inputs and 19 targets"),
    "values as labels": ({"loss": "squared", "data": (INPUTS, LABELS[:, None])}, ValueError, r"\(samples, 4\)"),
    "a large batch": ({"batch_size": 21}, ValueError, "batch_size is 21"),
    "a rate of 0": ({"rates": [0.1, 0]}, ValueError, "a rate is 0"),
    "an infinite rate": ({"rates": np.inf}, ValueError, "a rate is inf"),
    "no rate": ({"rates": []}, ValueError, "rates is empty"),
    "no seed": ({"seeds": []}, ValueError, "seeds is empty"),
    "a seed below 0": ({"seeds": [-1]}, ValueError, "seeds is -1"),
    "two lengths": ({"epochs": 1}, ValueError, "give one of them"),
    "no length": ({"steps": None}, ValueError, "give one of them"),
    "another optimizer": ({"optimizer": "adam"}, ValueError, "'adamw'"),
    "an optimizer of another library": ({"optimizer": optax.sgd(0.1)}, TypeError, "meanfield.optimizers"),
    "another schedule": ({"schedule": "cosine"}, ValueError, "'warmup_cosine'"),
    "a schedule of another library": ({"schedule": optax.constant_schedule(1.0)}, TypeError, "WarmupCosine"),
    "another loss": ({"loss": "hinge"}, ValueError, "'cross_entropy'"),
    "another precision": ({"precision": "float16"}, ValueError, "'float32'"),
    "other weights": ({"weights": [np.ones((6, 6))]}, ValueError, "weights has 1 arrays"),
    "factors of no role": ({"role_factors": 2.0}, TypeError, "role -> setting -> factor"),
    "a factor of no setting": ({"role_factors": {"input": 2.0}}, TypeError, "role -> setting -> factor"),
    "a role without factors": ({"role_factors": {"input": {}}}, ValueError, "lacks 'hidden', a role of this net"),
    "a factor on what is the net's": (
        {"role_factors": {role: {"initial_variance": 1.0} for role in ("input", "hidden", "output")}},
        ValueError,
        "a factor of 'input' is 'initial_variance'; choose one of 'learning_rate'",
    ),
    "a factor below 0": (
        {"role_factors": {role: {"epsilon": -1.0} for role in ("input", "hidden", "output")}},
        ValueError,
        "factor of 'input' on epsilon is -1",
    ),
    "a decay below 0": ({"weight_decay": -1}, ValueError, "weight_decay"),
    "too much memory": ({"net": mf.MLP(depth=400, width=60_000, input_width=6, outputs=4)}, MemoryError, "GiB"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_come_before_any_work(case, monkeypatch):
    changes, error, words = REFUSED[case]
    monkeypatch.setattr("meanfield.execution.chunks.compute_chunk", None)
    given = {"net": NET, "data": (INPUTS, LABELS), "rates": 0.1, "steps": 2, "seeds": [0]} | changes
    with pytest.raises(error, match=words):
        mf.train(given.pop("net"), given.pop("data"), **given)


def test_one_run_needs_no_second():
    """Means over draws do: their measures still ask for two."""
    assert mf.train(NET, (INPUTS, LABELS), rates=0.1, steps=1).sizes == {"rate": 1, "seed": 1, "step": 1}
    with pytest.raises(ValueError, match="draws is 1"):
        simulate_all([Run(NET, mf.Energies(), 1, 0)])


@pytest.mark.parametrize("name", ["muon-adamw", "muon", "adamw"])
def test_the_first_step_is_that_of_one_step(name):
    """Of a rate so small that the change of the loss is its slope times the change of the outputs."""
    net = mf.ResidualMLP(depth=2, width=6, stem=1, outputs=3, inputs=8, input_width=4, activation="tanh")
    rng, rate = np.random.default_rng(0), 1e-6
    data = rng.normal(size=(8, 4)), rng.normal(size=(8, 3))
    weights = [rng.normal(size=shape) for shape in net.weight_shapes]
    how = {"optimizer": name, "loss": "squared", "epsilon": 1e-12}
    exact = Muon(0.95, None, shape_factor=True)  # five of Newton and Schulz's iterations are no polar factor
    how["optimizer"] = {"muon-adamw": Hybrid(exact, AdamW()), "muon": exact, "adamw": "adamw"}[name]
    trained = mf.train(net, data, rates=rate, weights=weights, steps=1, **how)
    *_, change = mf.one_step(net, weights, *data[:1], targets=data[1], optimizer=name, outputs=True)
    error = mf.pre_activations(net, weights, data[0])[-1] - data[1]
    gain = float(trained.final_loss.squeeze() - trained.loss.squeeze()) / rate
    assert gain == pytest.approx((error * change).sum() / error.size, rel=1e-4)


def test_a_hybrid_steps_hidden_matrices_by_its_first_part_alone():
    net = mf.MLP(depth=3, width=6, input_width=4, outputs=3)
    rng = np.random.default_rng(0)
    data, how = (rng.normal(size=(8, 4)), rng.integers(0, 3, 8)), {"rates": 0.01, "steps": 2, "seeds": 2}
    losses = {name: mf.train(net, data, optimizer=name, **how).final_loss for name in ("muon-adamw", "muon", "adamw")}
    assert len({float(loss[0, 0]) for loss in losses.values()}) == 3
    thin = net.replace(depth=1)  # no hidden matrix
    alike = [mf.train(thin, data, optimizer=name, **how).final_loss for name in ("muon-adamw", "adamw")]
    np.testing.assert_array_equal(*alike)
    with pytest.raises(ValueError, match="choose one of"):
        mf.train(net, data, optimizer="adamw-muon", **how)
