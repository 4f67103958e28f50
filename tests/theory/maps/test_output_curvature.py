"""The largest curvature at infinite width against draws at growing width, and against closed forms."""

from functools import cache

import numpy as np
import pytest

import meanfield as mf
from meanfield.simulation.training.sharpness import Sharpness
from meanfield.theory import tangent_kernels
from meanfield.theory.tangent_kernels import mean_field_curvatures, value_kernels
from tests.statistics import consistent

DRAWS = 300
WIDTHS = (64, 128)
# What extrapolation to infinite width leaves, in units of 1 / width^2, as a share.
REST = 4.0


def conv_net(width, outputs):
    shared = {"grid": (3,), "kernel": (2,), "input_channels": 2, "head": "fan_in"}
    return mf.ConvNet(depth=2, channels=width, outputs=outputs, **shared)


def residual(width, outputs):
    shared = {"input_width": 3, "stem": 1, "scaling": "multiplier_sqrt", "activation": "gelu"}
    return mf.ResidualMLP(depth=2, width=width, outputs=outputs, **shared)


def transformer(width, outputs):
    """Of many heads, over which attention averages."""
    shared = {"tokens": 3, "ffn": 1, "norm": "post", "head": "fan_in"}
    return mf.Transformer(depth=1, width=width, heads=width // 4, outputs=outputs, **shared)


NETS = {"conv_net": conv_net, "residual": residual, "transformer": transformer}


def inputs_of(net, samples=4):
    return np.random.default_rng(1).normal(size=(samples, net.first_channels, *net.grid))


@cache
def shares(name, loss, outputs):
    """Drawn over predicted lambda_max of every draw, at both widths."""
    ratios = []
    for width in WIDTHS:
        net = NETS[name](width, outputs)
        inputs = inputs_of(net)
        drawn = Sharpness(inputs=inputs, loss=loss).settled(net).draw(net, 0, range(DRAWS))["sharpness"]
        ratios.append(drawn / mean_field_curvatures(net, inputs, loss).mean())
    return ratios


def tends_to(ratios, limit, own_error=0.0, power=1.0):
    """Whether the mean extrapolates to this limit, a deviation going as width^-power.

    The band is 6 standard errors of 4 to 5 %.
    """
    narrow, wide = ratios
    factor = 2**power
    share = (factor * wide.mean() - narrow.mean()) / (factor - 1)
    error = np.sqrt((factor**2 * wide.var() + narrow.var()) / DRAWS) / (factor - 1)
    return consistent(share - limit, np.hypot(error, own_error), DRAWS, REST / WIDTHS[0] ** (2 * power))


@pytest.mark.parametrize("name", NETS)
def test_draws_of_one_output_tend_to_the_mean_field(name):
    ratios = shares(name, "squared", 1)
    assert tends_to(ratios, 1.0)
    assert not tends_to(ratios, 0.6)


def test_draws_under_cross_entropy_tend_to_the_mean_field():
    """Softmaxes are random at any width: the rival p = 1 / M has about half the curvature at ten classes."""
    net = conv_net(WIDTHS[-1], 10)
    ratios, inputs = shares("conv_net", "cross_entropy", 10), inputs_of(net)
    curvatures = mean_field_curvatures(net, inputs, "cross_entropy")
    own_error = curvatures.std() / np.sqrt(len(curvatures)) / curvatures.mean()
    assert tends_to(ratios, 1.0, own_error)
    uniform = mean_field_curvatures(net, inputs, "squared")[0] / curvatures.mean()
    assert uniform < 0.6
    assert not tends_to(ratios, uniform, own_error)


def test_several_outputs_split_the_largest_eigenvalue():
    """Of M-fold degeneracy at infinite width, so that draws lie above it by a share that falls as 1 / sqrt(width)."""
    ratios = shares("conv_net", "squared", 3)
    assert tends_to(ratios, 1.0, power=0.5)
    assert ratios[1].mean() > 1.0 + 5 * ratios[1].std() / np.sqrt(DRAWS)


def test_closed_forms_for_one_sample():
    """t(x, x) = q n (L + 1) at constant width under a He head; small outputs under cross-entropy make p = 1 / M."""
    width, depth, outputs = 50, 4, 3
    net = mf.MLP(depth=depth, width=width, outputs=outputs)
    inputs = np.full((1, width), np.sqrt(0.5))  # |relu(x)|^2 = q n gives z^(1) variance 1
    largest = mean_field_curvatures(net, inputs, "squared")
    np.testing.assert_allclose(largest, width * 0.5 * (depth + 1) / outputs)
    quiet = mf.MLP(depth=depth, width=10**6, outputs=outputs, head="mup", input_width=width)
    uniform, drawn = (mean_field_curvatures(quiet, inputs, loss) for loss in ("squared", "cross_entropy"))
    np.testing.assert_allclose(drawn, uniform[0], rtol=0.01)


def test_the_largest_eigenvalue_is_that_of_the_whole_matrix():
    net = conv_net(8, 3)
    inputs = inputs_of(net)
    *_, top = value_kernels(net.replace(inputs=len(inputs)), inputs)
    kernel = top.kernel.reshape(4, 4)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    hessian = np.zeros((4, 3, 4, 3))
    for sample, share in enumerate(shares):
        hessian[sample, :, sample] = np.diag(share) - np.outer(share, share)
    whole = np.kron(kernel, np.eye(3)) @ hessian.reshape(12, 12)
    largest = tangent_kernels._largest(tangent_kernels._modes(kernel), shares)
    np.testing.assert_allclose(largest, np.linalg.eigvals(whole).real.max(), rtol=1e-6)


def test_drawn_and_predicted_datasets_compare():
    net = conv_net(64, 1)
    data = (inputs_of(net), np.zeros((4, 1)))
    drawn = mf.stable_rate(net, data, loss="squared", draws=50)
    predicted = mf.stable_rate(net, data, loss="squared", level="mean_field")
    compared = mf.compare(drawn, predicted)
    assert abs(compared.sharpness_ratio - 1) < 0.3
    np.testing.assert_allclose(predicted.stable_rate, 2 / predicted.sharpness)
    other = mf.stable_rate(net, (data[0] + 1, data[1]), loss="squared", level="mean_field")
    with pytest.raises(ValueError, match="given_inputs"):
        mf.compare(drawn, other)
