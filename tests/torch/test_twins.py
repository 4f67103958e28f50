"""Every family twice, by its spec and as a module with the same weights: the same energies and scales to rounding."""

import numpy as np
import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402
from tests.torch import twins  # noqa: E402

OPTIMIZERS = ["sgd", "adamw", "lion", "muon", "muon-adamw", "muon_kimi", "sso", "shampoo"]
NAMES = ("update_energy", "relative_update_energy", "output_update_energy", "learning_rate_scale")
NAMES += ("relative_learning_rate_scale", "last_learning_rate_scale", "output_learning_rate_scale")

mlp = mf.MLP(depth=3, width=8, input_width=5, outputs=3)
residual = mf.ResidualMLP(depth=2, width=8, stem=1, block_depth=2, input_width=5, outputs=3)
conv = mf.ConvNet(depth=2, channels=6, grid=(4, 5), kernel=(3, 3), input_channels=2, outputs=3)
zero = conv.replace(padding="zero")
residual_conv = mf.ResidualConvNet(
    depth=2, channels=6, grid=(4, 4), kernel=(3, 3), stem=1, padding="zero", input_channels=2, outputs=3
)
pre = mf.Transformer(depth=2, width=8, heads=2, tokens=4, outputs=3)
post = pre.replace(norm="post", causal=True)
tokens = pre.replace(vocabulary=7, readout="every", causal=True, outputs=7)

FAMILIES = {
    "mlp": (mlp, twins.mlp),
    "residual": (residual, twins.residual_mlp),
    "conv": (conv, twins.conv_net),
    "zero padding": (zero, twins.conv_net),
    "residual conv": (residual_conv, twins.residual_conv_net),
    "pre-norm": (pre, twins.Transformer),
    "post-norm": (post, twins.Transformer),
    "tokens": (tokens, twins.Transformer),
    "mlp, batch norm": (mlp, lambda net: twins.mlp(net, norm=True)),
    "residual conv, batch norm": (residual_conv, lambda net: twins.residual_conv_net(net, norm=True)),
}


def data_of(net, rng, samples=6):
    inputs = rng.normal(size=(samples, *net.input_shape[1:]))
    if net.input_law == "tokens":
        ids = rng.integers(net.vocabulary, size=(samples, net.tokens))
        inputs = np.eye(net.vocabulary)[ids].swapaxes(1, 2)
    sites = (samples, net.tokens) if getattr(net, "readout", "") == "every" else samples
    return inputs, rng.integers(0, net.outputs, sites)


def batches_of(net, data):
    inputs = data[0].argmax(1) if net.input_law == "tokens" else data[0]
    return [(torch.as_tensor(inputs), torch.as_tensor(data[1]))]


def spec_of(name):
    net = FAMILIES[name][0]
    return mf.with_batch_normalisation(net) if "batch norm" in name else net


# What reads the inputs of these is a part of a block by their spec; the first module of any other model is no block's.
WITHOUT_INPUT_ROLE = ("pre-norm", "post-norm")
CASES = [(family, optimizer) for family in FAMILIES for optimizer in OPTIMIZERS]
CASES = [case for case in CASES if not (case[0] in WITHOUT_INPUT_ROLE and case[1] == "muon-adamw")]


@pytest.mark.parametrize(("family", "optimizer"), CASES)
def test_a_module_moves_as_the_net_of_its_family_does(family, optimizer):
    net, make = FAMILIES[family]
    data = data_of(net, np.random.default_rng(0))
    expected = mf.step_scales(spec_of(family), data, optimizer=optimizer, draws=3)
    measured = mft.step_scales(
        twins.factory(net, make),
        torch.nn.functional.cross_entropy,
        batches_of(net, data),
        optimizer=optimizer,
        modules=["layers.?", "embedding"] if net.input_law == "tokens" else "layers.?",
        draws=3,
    )
    for name in NAMES:
        np.testing.assert_allclose(measured[name], expected[name], rtol=1e-7, err_msg=name)
        errors = [float((scales[f"{name}_stderr"] / scales[name]).max()) for scales in (measured, expected)]
        assert errors[0] == pytest.approx(errors[1], rel=1e-6, abs=1e-14), name  # 0 up to rounding where draws agree
    for name in ("update_energy", "learning_rate_scale", "last_learning_rate_scale"):
        np.testing.assert_allclose(measured[f"{name}_quantile"], expected[f"{name}_quantile"], rtol=1e-7)


@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != "muon-adamw"])
def test_a_module_that_is_called_again_and_again_moves_as_a_tied_loop(optimizer):
    net, rng = mf.TiedLoop(depth=4, width=8), np.random.default_rng(0)
    data = rng.normal(size=(5, 8)), rng.normal(size=(5, 8))
    expected = mf.step_scales(net, data, loss="squared", optimizer=optimizer, draws=3)
    measured = mft.step_scales(
        twins.factory(net, twins.Loop),
        lambda outputs, targets: torch.nn.functional.mse_loss(outputs, targets) / 2,
        batches_of(net, data),
        optimizer=optimizer,
        modules=twins.Dense,
        draws=3,
    )
    assert measured.module.values.tolist() == ["step", "step#2", "step#3", "step#4"]
    for name in ("update_energy", "relative_update_energy", "output_update_energy"):
        np.testing.assert_allclose(measured[name], expected[name], rtol=1e-7, err_msg=name)


def test_the_squared_loss_of_pytorch_is_twice_that_of_the_library():
    net, rng = mf.MLP(depth=2, width=6, input_width=4, outputs=2), np.random.default_rng(0)
    data = rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    expected = mf.step_scales(net, data, loss="squared", draws=3)
    measured = mft.step_scales(
        twins.factory(net, twins.mlp), torch.nn.functional.mse_loss, batches_of(net, data), optimizer="sgd", draws=3
    )
    scale = "output_learning_rate_scale"
    assert float(measured[scale]) == pytest.approx(float(expected[scale]) / 2, rel=1e-10)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
def test_outputs_move_as_one_step_of_given_weights_says(optimizer):
    net, rng = mf.ResidualMLP(depth=2, width=6, stem=1, input_width=4, outputs=3, inputs=5), np.random.default_rng(0)
    weights = [rng.normal(size=shape) for shape in net.weight_shapes]
    inputs, targets = rng.normal(size=(5, 4)), rng.integers(0, 3, 5)
    how = {"targets": targets, "loss": "cross_entropy", "optimizer": optimizer, "outputs": True}
    *layers, outputs = mf.one_step(net, weights, inputs, **how)
    model = twins.residual_mlp(net).double()
    twins.loaded(model, weights)
    measured = mft.step_scales(
        model,
        torch.nn.functional.cross_entropy,
        [(torch.as_tensor(inputs), torch.as_tensor(targets))],
        optimizer=optimizer,
        modules="layers.?",
        reinit=None,
        draws=2,
    )
    np.testing.assert_allclose(measured.update_energy, [np.square(layer).mean() for layer in layers], rtol=1e-10)
    np.testing.assert_allclose(measured.output_update_energy, np.square(outputs).mean(), rtol=1e-10)
    assert float(measured.output_update_energy_stderr) == 0
