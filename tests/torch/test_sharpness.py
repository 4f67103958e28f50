"""The largest curvature of models: that of the library for the same nets."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

from torch import nn  # noqa: E402

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


OPTIMIZERS = {
    "momentum": partial(torch.optim.SGD, lr=1e-3, momentum=0.9),
    "adamw": partial(torch.optim.AdamW, betas=(0.8, 0.99), eps=1e-3, weight_decay=0.0),
    "amsgrad": partial(torch.optim.Adam, betas=(0.9, 0.9), eps=1e-3, amsgrad=True),
    "rmsprop": partial(torch.optim.RMSprop, alpha=0.9, eps=1e-3),
}


def quadratic(scales):
    """A linear model of one number a sample, whose loss is a parabola with known curvature along every weight."""
    model = nn.Linear(len(scales), 1, bias=False)
    nn.init.ones_(model.weight)
    rows = torch.diag(torch.tensor(scales)) * len(scales) ** 0.5
    return model, [(rows, torch.zeros(len(scales), 1))]


def half_square(outputs, targets):
    return ((outputs - targets) ** 2).mean() / 2


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_stay_below_the_stable_rate_and_leave_above(name, steps):
    """On a parabola, with second moments held as they are, steps fall below the stable rate and grow above it.

    The curvature along weight i is s_i^2, so that lambda_max over the optimizer's divisors is known, too.
    """
    scales = [1.0, 0.5, 2.0]
    model, batches = quadratic(scales)
    optimizer = OPTIMIZERS[name](model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        half_square(model(batches[0][0]), batches[0][1]).backward()
        optimizer.step()
    measured = mft.stable_rate(model, half_square, batches, optimizer=optimizer, reinit=None, draws=2, seed=3)
    rate = float(measured.stable_rate)
    assert [grows(model, optimizer, batches[0], share * rate) for share in (0.97, 1.03)] == [False, True]


def grows(model, optimizer, batch, rate):
    """Whether steps of a rate leave the minimum, by an optimizer whose second moments stay as behind its next step."""
    model, optimizer = deepcopy((model, optimizer))
    group = optimizer.param_groups[0]
    half_square(model(batch[0]), batch[1]).backward()
    group["lr"] = 0.0
    optimizer.step()
    state = optimizer.state[model.weight]
    moments = next((state[key] for key in ("max_exp_avg_sq", "exp_avg_sq", "square_avg") if key in state), None)
    bias = 1.0
    if "betas" in group:
        bias = 1 - group["betas"][1] ** float(state["step"])
    divisor = 1.0 if moments is None else (moments / bias).sqrt() + group["eps"]
    keeps = group["betas"][0] if "betas" in group else group.get("momentum", 0.0)
    gains = 1 - keeps if "betas" in group else 1.0
    weight, momentum, sizes = model.weight.detach().double(), 0.0, []
    curvature = (batch[0].double() ** 2).mean(dim=0)
    for _ in range(400):
        momentum = keeps * momentum + gains * curvature * weight
        weight = weight - rate * momentum / divisor
        sizes.append(float(weight.abs().max()))
    return max(sizes[-20:]) > max(sizes[:20])


def test_groups_of_their_own_rates_are_in_the_units_of_the_first():
    rows, targets = quadratic([1.0, 0.5])[1][0]
    pair = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 1, bias=False))
    nn.init.ones_(pair[0].weight)
    nn.init.ones_(pair[1].weight)

    def groups(own):
        return torch.optim.SGD([{"params": own[0].parameters()}, {"params": own[1].parameters(), "lr": 0.4}], lr=0.1)

    how = {"reinit": None, "draws": 2}
    of_first = rows.double()  # the outputs are b (rows w), with w and b of ones
    of_second = of_first.sum(dim=1, keepdim=True) * 2.0  # its rate is 4 times the first, and the root of that is 2
    jacobian = torch.cat([of_first, of_second], dim=1)
    largest = float(torch.linalg.eigvalsh(jacobian.T @ jacobian / 2).max())
    batches = [(rows, targets)]
    measured = mft.stable_rate(pair, half_square, batches, optimizer=groups, **how)
    assert float(measured.sharpness) == pytest.approx(largest, rel=1e-9)
    assert float(measured.stable_rate) == pytest.approx(2 / largest, rel=1e-9)
    assert float(mft.stable_rate(pair, half_square, batches, **how).sharpness) < 0.9 * largest


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        (torch.optim.Adagrad, "no limit of stable rates is known of Adagrad; take 'sgd'"),
        ("lion", "no limit of stable rates is known of lion; take 'sgd'"),
        (partial(torch.optim.SGD, momentum=0.9, nesterov=True), "no limit is taken of nesterov"),
        (lambda own: two_momenta(own), "groups of SGD differ in momentum"),
    ],
)
def test_optimizers_without_a_known_limit_are_refused(optimizer, said):
    model, batches = quadratic([1.0, 0.5])
    with pytest.raises(ValueError, match=said):
        mft.stable_rate(nn.Sequential(model, nn.Linear(1, 1)), half_square, batches, optimizer=optimizer, draws=2)


def two_momenta(own):
    return torch.optim.SGD([{"params": own[0].parameters()}, {"params": own[1].parameters(), "momentum": 0.5}], lr=0.1)


def test_a_live_state_is_not_met_by_weights_drawn_anew():
    model, batches = quadratic([1.0, 0.5])
    with pytest.raises(ValueError, match="give reinit=None beside it"):
        mft.stable_rate(model, half_square, batches, optimizer=torch.optim.Adam(model.parameters()), draws=2)


def test_what_has_no_curvature_is_refused():
    batches = [models.images()]
    with pytest.raises(ValueError, match="the loss has no curvature in draw 0"):
        mft.stable_rate(models.ResNet, lambda outputs, targets: outputs.mean(), batches, draws=2)
    with pytest.raises(TypeError, match=r"a curvature is that of one tensor of them: give forward, which takes it"):
        mft.stable_rate(lambda: Both(6, 3), lambda outputs, targets: outputs[0].mean(), batches, draws=2)


def test_one_of_several_outputs_is_taken_by_forward():
    images, labels = models.images()

    def plain():
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3))

    class Mapping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = plain()

        def forward(self, pixels, labels):
            logits = self.inner(pixels)
            return {"loss": cross_entropy(logits, labels), "logits": logits}

    of_mapping = {"forward": lambda model, inputs: model(**inputs)["logits"], "draws": 2}
    batches = [({"pixels": images, "labels": labels}, labels)]
    found = mft.stable_rate(Mapping, cross_entropy, batches, **of_mapping)
    expected = mft.stable_rate(plain, cross_entropy, [(images, labels)], draws=2)
    assert float(found.stable_rate) == pytest.approx(float(expected.stable_rate), rel=1e-9)


class Both(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x.flatten(2)[..., :6]), x


@pytest.mark.filterwarnings("ignore:second moments are those of one gradient")
@pytest.mark.parametrize("family", ["mlp", "residual", "pre-norm"])
def test_adamw_s_second_moments_from_rest_are_those_of_a_net_of_the_family(family):
    """Where they are those of one gradient; descent has another rate."""
    net, make = FAMILIES[family]
    data = data_of(net, np.random.default_rng(0))
    adamw = partial(torch.optim.AdamW, lr=1e-3, betas=(0.9, 0.95), eps=1e-6)
    expected = mf.stable_rate(spec_of(family), data, optimizer="adamw", epsilon=1e-6, draws=3)
    measured = mft.stable_rate(
        twins.factory(net, make), LOSSES["cross_entropy"], batches_of(net, data), optimizer=adamw, draws=3
    )
    for name in ("sharpness", "stable_rate"):
        np.testing.assert_allclose(measured[name], expected[name], rtol=1e-5, err_msg=name)
    descent = mf.stable_rate(spec_of(family), data, draws=3)
    assert abs(float(descent["stable_rate"] / expected["stable_rate"]) - 1) > 0.1
