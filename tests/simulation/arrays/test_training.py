"""Nets train, step and bend on a device as on the host: every family under every optimizer, to rounding."""

import json

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.execution import chunks
from meanfield.execution.run import Run
from meanfield.execution.training import training_run
from meanfield.optimizers import Sophia
from meanfield.simulation.measures import base
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.training import training
from meanfield.simulation.training.trained import STEPS_BETWEEN_LOOKS
from tests.draws import given_draw, given_inputs

VECTORS, IMAGES = {"input_width": 8, "outputs": 3}, {"grid": (4, 4), "input_channels": 2, "outputs": 3}
NETS = {
    "mlp": mf.MLP(depth=3, width=16, activation="gelu", **VECTORS),
    "mlp, gradients in factors": mf.MLP(depth=2, width=48, **VECTORS),
    "residual": mf.ResidualMLP(depth=2, width=12, block_depth=2, stem=1, **VECTORS),
    "batch normalisation": mf.with_batch_normalisation(mf.ResidualMLP(depth=2, width=12, stem=1, **VECTORS)),
    "dropout": mf.with_dropout(mf.MLP(depth=2, width=12, **VECTORS), rate=0.2),
    "dense": mf.DenseNet(depth=2, width=8, growth=4, outputs=3),
    "conv": mf.ConvNet(depth=2, channels=6, kernel=(3, 3), padding="zero", **IMAGES),
    "residual conv": mf.ResidualConvNet(depth=2, channels=6, kernel=(3, 3), stem=1, **IMAGES),
    "stages": mf.StagedResidualConvNet(
        depth=2, stages=(1, 1), channels=(4, 6), kernel=(2, 2), stride=(2, 2), stem=1, **IMAGES
    ),
    "transformer": mf.Transformer(depth=2, width=12, heads=2, tokens=4, outputs=3, rotary=True, activation="swiglu"),
    "post-norm, tied": mf.Transformer(depth=1, width=12, tokens=4, outputs=3, norm="post", tied=True, causal=True),
    "language model": mf.Transformer(
        depth=1, width=12, tokens=4, causal=True, vocabulary=5, readout="every", scaling="rezero", outputs=5
    ),
    "loop": mf.TiedLoop(depth=3, width=8),
    "untied loop": mf.TiedLoop(depth=3, width=8, tied=False),
}
OPTIMIZERS = ("sgd", "adamw", "lion", "sophia", "muon", "muon_kimi", "shampoo", "soap", "sso", "muon-adamw")
SAMPLED = Sophia(sampled=True)
# These step by singular vectors of gradients and weights, down to those that rounding turns.
TURNED = {"soap": 1e-4, "sso": 1e-4}
HOW = {"steps": 4, "batch_size": 8, "weight_decay": 0.1}
# The last diverges.
RATES, SEEDS = [1e-3, 0.02, 1e4], 3


def data_of(net, samples=24):
    rng = np.random.default_rng(3)
    return given_inputs(net, rng, samples), rng.integers(net.output_shape[1], size=(samples, *net.output_shape[2:]))


def assert_same(there, here, rtol):
    """Means and quantiles; errors and covariances of what is the same in all draws are rounding alone."""
    for name in here.data_vars:
        if not name.endswith(("_stderr", "_covariance", "_largest_share")):
            scale = np.abs(here[name].values[np.isfinite(here[name].values)]).max(initial=1e-300)
            np.testing.assert_allclose(there[name], here[name], rtol=rtol, atol=rtol * scale, err_msg=name)


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_nets_train_to_the_same_losses(cupy, net):
    data = data_of(net)
    for optimizer in (*OPTIMIZERS, SAMPLED):
        if net.couples_samples and optimizer == "sophia":
            continue
        how = {"rates": RATES, "seeds": SEEDS, "optimizer": optimizer, **HOW}
        here, there = (mf.train(net, data, backend=backend, **how) for backend in ("numpy", cupy))
        assert_same(there, here, TURNED.get(optimizer, 1e-9))
        assert there.attrs["backend"] == cupy


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_first_steps_move_them_as_far(cupy, net):
    data = data_of(net)
    for optimizer in OPTIMIZERS:
        if net.couples_samples and optimizer == "sophia":
            continue
        how = {"draws": 3, "batch_size": 8, "optimizer": optimizer}
        if optimizer in ("adamw", "sophia", "shampoo", "soap"):
            how["epsilon"] = 1e-6
        here, there = (mf.step_scales(net, data, backend=backend, **how) for backend in ("numpy", cupy))
        assert_same(there, here, 1e-9)
        assert there.attrs.get("kept_share", 1) == pytest.approx(here.attrs.get("kept_share", 1), rel=1e-9)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["mlp", "conv", "transformer"])
def test_one_step_of_given_weights(cupy, name, optimizer):
    net = NETS[name]
    given = given_draw(net, 5)
    how = {"optimizer": optimizer, "weight_decay": 0.1, "outputs": True}
    pairs = zip(mf.one_step(net, *given, **how), mf.one_step(net, *given, backend=cupy, **how), strict=True)
    for here, there in pairs:
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-9 * np.abs(here).max())


@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_curvatures_are_the_same(cupy, net, loss):
    inputs, targets = data_of(net, 6)
    if loss == "squared":
        targets = np.random.default_rng(0).normal(size=(6, *net.output_shape[1:]))
    how = {"loss": loss, "draws": 2}
    here, there = (mf.stable_rate(net, (inputs, targets), backend=backend, **how) for backend in ("numpy", cupy))
    assert_same(there, here, 1e-9)
    weights = given_draw(net, 2)[0]
    own = [
        mf.stable_rate(net, (inputs, targets), loss=loss, weights=weights, backend=backend)
        for backend in ("numpy", cupy)
    ]
    assert_same(own[1], own[0], 1e-9)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "shampoo"])
@pytest.mark.parametrize("name", ["mlp", "residual conv", "transformer"])
def test_single_precision_rounds(cupy, name, optimizer):
    data, how = data_of(NETS[name]), {"rates": RATES[:2], "seeds": 2, "optimizer": optimizer, **HOW}
    double = mf.train(NETS[name], data, backend=cupy, **how)
    single = mf.train(NETS[name], data, backend=cupy, precision="float32", **how)
    assert_same(single, double, 1e-3)
    assert (single["loss"] != double["loss"]).any()
    scales = [
        mf.step_scales(NETS[name], data, draws=3, optimizer=optimizer, backend=cupy, precision=precision)
        for precision in ("float64", "float32")
    ]
    assert_same(scales[1], scales[0], 1e-3)


def test_a_search_ends_at_the_same_rate(cupy):
    data = data_of(NETS["mlp"])
    how = {"steps": 6, "batch_size": 8, "seeds": 2}
    here, there = (mf.tuned_rate(NETS["mlp"], data, backend=backend, **how) for backend in ("numpy", cupy))
    np.testing.assert_array_equal(there["rate"], here["rate"])
    assert_same(there, here, 1e-7)


def test_another_seed_is_seen(cupy):
    """Negative control of all of the above: the nets of another seed are others, beyond any rounding."""
    data = data_of(NETS["mlp"])
    here = mf.train(NETS["mlp"], data, rates=0.02, seeds=[0], **HOW)["loss"].values
    there = mf.train(NETS["mlp"], data, rates=0.02, seeds=[1], backend=cupy, **HOW)["loss"].values
    assert np.abs(there / here - 1).min() > 1e-3


def test_no_run_depends_on_those_beside_it(cupy, monkeypatch):
    """Groups of eight, filled up with copies: alone, in company, and in other chunks a run has the same bits."""
    net, data = NETS["residual conv"], data_of(NETS["residual conv"])
    how = {"backend": cupy, "optimizer": "muon-adamw", **HOW}
    whole = mf.train(net, data, rates=RATES, seeds=5, **how)
    xr.testing.assert_identical(
        mf.train(net, data, rates=RATES[:1], seeds=[3], **how)["loss"], whole["loss"].sel(rate=RATES[:1], seed=[3])
    )
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 1e2)
    planned = training_run(net, data, rates=RATES, seeds=5, **how).chunks()
    assert [chunk.start for chunk in planned] == [0, 8]
    xr.testing.assert_identical(mf.train(net, data, rates=RATES, seeds=5, **how)["loss"], whole["loss"])


def test_no_draw_of_a_step_depends_on_those_beside_it(cupy):
    net, (inputs, targets) = NETS["conv"], data_of(NETS["conv"])
    measure = StepScales(inputs=inputs, targets=targets, optimizer="adamw", batch_size=8, backend=cupy).settled(net)
    together, alone = measure.draw(net, 0, range(5)), measure.draw(net, 0, range(3, 4))
    for name, values in together.items():
        np.testing.assert_array_equal(alone[name], values[3:4])


def test_all_passes_hold_a_whole_group(cupy, monkeypatch):
    """What keeps the test above from passing for want of a device: nets are filled up before they train."""
    sizes = []
    look = training.Training.__post_init__
    monkeypatch.setattr(training.Training, "__post_init__", lambda own: (look(own), sizes.append(own.nets))[0])
    for backend in ("numpy", cupy):
        mf.train(NETS["mlp"], data_of(NETS["mlp"]), rates=RATES, seeds=4, backend=backend, **HOW)
    assert sizes == [12, 8, 8]


@pytest.mark.parametrize("steps", [STEPS_BETWEEN_LOOKS - 1, STEPS_BETWEEN_LOOKS, STEPS_BETWEEN_LOOKS + 1])
def test_losses_that_are_fetched_by_the_dozen_stand_at_their_steps(cupy, steps):
    data, how = data_of(NETS["mlp"]), {"rates": [0.02, 1e4], "seeds": 2, "steps": steps, "batch_size": 8}
    here, there = (mf.train(NETS["mlp"], data, backend=backend, **how) for backend in ("numpy", cupy))
    assert_same(there, here, 1e-9)
    assert np.isinf(there["loss"].sel(rate=1e4)).any()


def test_a_group_of_runs_keeps_a_device_at_work_and_no_longer():
    assert base.runs_per_group(1 << 20, 1e6) == base.MOST_RUNS_PER_GROUP
    assert base.runs_per_group(1 << 20, 1e10) == 10
    assert base.runs_per_group(1 << 20, 1e15) == base.runs_per_group(1 << 40, 1e6) == 1


def _stable_rate_of_own_weights(net, data, **options):
    return mf.stable_rate(net, data, weights=given_draw(net, 0)[0], **options)


CALLS = {
    "train": lambda net, data, **options: mf.train(net, data, rates=0.1, steps=2, **options),
    "tuned_rate": lambda net, data, **options: mf.tuned_rate(net, data, steps=2, seeds=2, **options),
    "stable_rate": lambda net, data, **options: mf.stable_rate(net, data, draws=2, **options),
    "stable_rate of own weights": _stable_rate_of_own_weights,
    "step_scales": lambda net, data, **options: mf.step_scales(net, data, draws=2, **options),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_other_names_are_refused(call):
    with pytest.raises(ValueError, match="backend is 'torch'; choose one of 'numpy', 'cupy'"):
        call(NETS["mlp"], data_of(NETS["mlp"]), backend="torch")


def test_a_record_names_the_device(cupy):
    told = [
        set(json.loads(CALLS["train"](NETS["mlp"], data_of(NETS["mlp"]), backend=backend).attrs["provenance"]))
        for backend in ("numpy", cupy)
    ]
    assert told[1] - told[0] == {"device", "cupy"}


def test_a_device_too_small_says_how_much_is_needed(cupy, request):
    if "device" in request.node.callspec.id:
        pytest.skip("devices differ in size")
    net = mf.MLP(depth=64, width=4096, **VECTORS)
    with pytest.raises(MemoryError, match=r"drawing 1 networks at once .* the device has 8 GiB; lower"):
        Run(net, training_run(net, data_of(net), rates=0.1, steps=2, backend=cupy).measure, 1, 0).require_memory(1)


def test_steps_in_double_precision_of_nets_in_single(cupy):
    """SSO's directions are in double precision, and move stencils without patches, too."""
    data = data_of(NETS["conv"])
    how = {"draws": 3, "optimizer": "sso"}
    double = mf.step_scales(NETS["conv"], data, **how)
    for backend in ("numpy", cupy):
        assert_same(mf.step_scales(NETS["conv"], data, precision="float32", backend=backend, **how), double, 1e-3)
