"""The largest curvature of models: that of the library for the same nets."""

import numpy as np
import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402
from tests.torch import models, twins  # noqa: E402
from tests.torch.test_twins import FAMILIES, batches_of, data_of, spec_of  # noqa: E402

cross_entropy = torch.nn.functional.cross_entropy
LOSSES = {
    "cross_entropy": cross_entropy,
    "squared": lambda outputs, targets: torch.nn.functional.mse_loss(outputs, targets) / 2,
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("family", ["mlp", "residual", "zero padding", "pre-norm", "mlp, batch norm"])
def test_a_model_is_as_sharp_as_the_net_of_its_family(family, loss):
    net, make = FAMILIES[family]
    data = data_of(net, np.random.default_rng(0))
    if loss == "squared":
        data = data[0], np.random.default_rng(1).normal(size=(len(data[0]), net.outputs))
    expected = mf.stable_rate(spec_of(family), data, loss=loss, draws=3)
    measured = mft.stable_rate(twins.factory(net, make), LOSSES[loss], batches_of(net, data), draws=3)
    for name in ("sharpness", "sharpness_stderr", "stable_rate", "stable_rate_quantile"):
        np.testing.assert_allclose(measured[name], expected[name], rtol=1e-6, err_msg=name)


def test_what_has_no_curvature_is_refused():
    batches = [models.images()]
    with pytest.raises(ValueError, match="the loss has no curvature in draw 0"):
        mft.stable_rate(models.ResNet, lambda outputs, targets: outputs.mean(), batches, draws=2)
    with pytest.raises(TypeError, match="a curvature is that of one tensor"):
        mft.stable_rate(lambda: Both(6, 3), lambda outputs, targets: outputs[0].mean(), batches, draws=2)


class Both(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x.flatten(2)[..., :6]), x
