"""The mean field of nets in stages: against nets of one stage, against loops, and against draws at three widths."""

from functools import cache

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.scalings import SCALINGS
from meanfield.theory.mean_field.stages import Stages, staged_terms
from meanfield.theory.tangent_kernels import value_kernels
from meanfield.theory.two_points import GridStep
from tests import naive
from tests.draws import SINGLE, terms_alone
from tests.statistics import consistent, excess

LATTICES = {
    "1d": {"grid": (6,), "kernel": (3,)},
    "2d zero": {"grid": (3, 4), "kernel": (2, 3), "padding": "zero"},
    "1d zero, tanh": {"grid": (5,), "kernel": (3,), "padding": "zero", "activation": "tanh"},
    "two samples, gelu": {"grid": (4,), "kernel": (2,), "inputs": 2, "activation": "gelu"},
    "linear": {"grid": (5,), "kernel": (2,), "activation": "linear", "head": "mup"},
}


def _assert_same(staged, plain, inputs=None):
    """All that level "mean_field" gives of a net of one stage is that of the net without stages."""
    ours, theirs = (mf.predict(net, level="mean_field", inputs=inputs) for net in (staged, plain))
    assert set(ours.data_vars) <= set(theirs.data_vars)
    for name, values in ours.data_vars.items():
        np.testing.assert_allclose(values, theirs[name], rtol=1e-11, atol=1e-11 * name.startswith("log_"), err_msg=name)
    return set(ours.data_vars)


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
@pytest.mark.parametrize("readout", ["pooled", "convolution"])
@pytest.mark.parametrize("lattice", LATTICES.values(), ids=LATTICES)
def test_plain_nets_of_one_stage(lattice, readout):
    given = {"depth": 4, "channels": 32, "readout": readout, **lattice}
    known = _assert_same(mf.StagedConvNet(stages=1, **given), mf.ConvNet(**given))
    assert ("output_term" in known) == (readout == "convolution" and lattice.get("activation") not in ("tanh", "gelu"))
    assert ("label_term" in known) == (readout == "convolution" or lattice.get("activation") not in ("tanh", "gelu"))


@pytest.mark.parametrize("block_depth", [1, 2])
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("lattice", LATTICES.values(), ids=LATTICES)
def test_residual_nets_of_one_stage(lattice, scaling, block_depth):
    given = {"depth": 3, "channels": 32, "readout": "convolution", "scaling": scaling, "block_depth": block_depth}
    for stem in (0, 2):
        shape = {**given, **lattice, "stem": stem}
        known = _assert_same(mf.StagedResidualConvNet(stages=1, **shape), mf.ResidualConvNet(**shape))
        assert {"overlap_energy", "label_term"} <= known


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_given_images():
    images = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    shape = {"depth": 3, "channels": 16, "grid": (4, 5), "kernel": (3, 2), "input_channels": 3, "inputs": 2}
    _assert_same(mf.StagedConvNet(stages=1, **shape), mf.ConvNet(**shape), images)
    shape |= {"stem": 1, "readout": "convolution", "padding": "zero"}
    _assert_same(mf.StagedResidualConvNet(stages=1, **shape), mf.ResidualConvNet(**shape), images)


@pytest.mark.parametrize(
    ("grid", "kernel", "padding", "stride"),
    [
        ((8,), (3,), "circular", (2,)),
        ((5, 4), (2, 3), "zero", (2, 3)),
        ((6,), (1,), "zero", (4,)),
        ((4,), (3,), "zero", ()),
    ],
)
def test_steps_between_grids_are_sums_over_the_stencil(grid, kernel, padding, stride):
    """Of two samples, each by itself, in loops over taps and sites."""
    step, rng = GridStep(2, grid, kernel, padding, stride), np.random.default_rng(0)
    below, above, taps = np.prod(grid), np.prod(naive.coarser(grid, stride)), np.prod(kernel)
    shifts = np.zeros((taps, above, below))
    for tap, site, source in naive.visits(grid, kernel, padding, 1, stride):
        where = np.ravel_multi_index(site, naive.coarser(grid, stride)), np.ravel_multi_index(source, grid)
        shifts[np.ravel_multi_index(tap, kernel)][where] = 1.0
    both = [np.kron(np.eye(2), shift) for shift in shifts]
    pairs, coarse = rng.normal(size=(2 * below,) * 2), rng.normal(size=(2 * above,) * 2)
    mean = sum(both) / taps
    np.testing.assert_allclose(step.diagonal(pairs), sum(s @ pairs @ s.T for s in both) / taps, atol=1e-12)
    np.testing.assert_allclose(step.pulled_back(coarse), sum(s.T @ coarse @ s for s in both) / taps, atol=1e-12)
    np.testing.assert_allclose(step.independent(pairs), mean @ pairs @ mean.T, atol=1e-12)
    np.testing.assert_allclose(step.first(np.array([pairs, 2 * pairs]))[1], 2 * mean @ pairs, atol=1e-12)
    np.testing.assert_allclose(step.moved_back(coarse[:, :1]), mean.T @ coarse[:, :1], atol=1e-12)


@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_the_covariance_of_white_errors_is_walked_down_as_their_weights(padding):
    """Two roads to one label term: the errors' covariance, and the second moment of the kernel between channels."""
    net = mf.StagedConvNet(depth=5, stages=(2, 2, 1), channels=16, grid=(12,), padding=padding, readout="convolution")
    stages = Stages(net, None)
    outputs, taps = 3, 3
    white = net.head_variance * taps * stages.readout.step.pulled_back(np.eye(outputs)) / (net.outputs * outputs**2)
    np.testing.assert_allclose(stages._driven_terms(white), np.exp(staged_terms(net).label[:, 0]), rtol=1e-10)


@pytest.mark.parametrize("stride", [(2, 2), (1, 2)])
def test_covariance_and_kernel_are_those_of_any_list_of_maps(stride):
    """In every value, by another road (docs/theory.md section 16), through a shortcut too."""
    net = mf.StagedResidualConvNet(
        depth=4, stages=2, channels=16, grid=(4, 6), kernel=(2, 3), stride=stride, block_depth=2, stem=1
    )
    stages = Stages(net, None)
    for state, other in zip(stages.states(), value_kernels(net), strict=False):
        shape = (len(state.moments.kernel),) * 2
        np.testing.assert_allclose(state.moments.covariance, other.covariance.reshape(shape), atol=1e-12)
        np.testing.assert_allclose(state.moments.kernel, other.kernel.reshape(shape), rtol=1e-10)


CIRCULAR = {"depth": 5, "stages": (2, 2, 1), "grid": (12,), "outputs": 4, "readout": "convolution"}
PLANE = {"depth": 4, "stages": 2, "grid": (3, 4), "kernel": (3, 2), "padding": "zero", "outputs": 4}
DRAWN = {
    "plain": (mf.StagedConvNet, CIRCULAR),
    "plain, pooled": (mf.StagedConvNet, CIRCULAR | {"readout": "pooled"}),
    "plain, zero": (mf.StagedConvNet, PLANE | {"readout": "convolution"}),
    "residual": (mf.StagedResidualConvNet, CIRCULAR | {"scaling": "multiplier_sqrt", "stem": 1}),
    "residual, zero": (mf.StagedResidualConvNet, PLANE | {"readout": "convolution", "block_depth": 2}),
    "residual, one tap": (
        mf.StagedResidualConvNet,
        {"depth": 4, "stages": 2, "grid": (4,), "kernel": (1,), "readout": "convolution", "scaling": "none"},
    ),
}
WIDTHS, DRAWS = (12, 24, 48), 2500


@cache
def _measured(name):
    family, shape = DRAWN[name]
    with terms_alone():
        return [mf.simulate(family(channels=width, **shape), draws=DRAWS, seed=3, **SINGLE) for width in WIDTHS]


def _ratios(name, predicted, quantity="label_term"):
    """Drawn over predicted at every width, with standard errors: (widths, L)."""
    pairs = zip(_measured(name), predicted, strict=True)
    both = [(m[quantity].values / p, m[f"{quantity}_stderr"].values / p) for m, p in pairs]
    return map(np.array, zip(*both, strict=True))


def _meets(ratios, errors):
    """At the two larger widths the error halves, so that 2 r(2 C) - r(C) is 1, to second order in 1/C."""
    extrapolated, error = 2 * ratios[2] - ratios[1], np.hypot(2 * errors[2], errors[1])
    return consistent(extrapolated - 1, error, DRAWS, allowance=0.06)


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
@pytest.mark.parametrize("name", DRAWN)
def test_draws_meet_the_label_term_as_channels_grow(name):
    family, shape = DRAWN[name]
    nets = [family(channels=width, **shape) for width in WIDTHS]
    ratios, errors = _ratios(name, [mf.predict(net, level="mean_field")["label_term"].values for net in nets])
    assert _meets(ratios, errors)
    falls = excess(ratios[0] - ratios[2], np.hypot(errors[0], errors[2])) * np.sign(ratios[0] - ratios[2])
    assert np.all(falls[1:] > 3), "the narrowest net must stand measurably further off"


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
@pytest.mark.parametrize("name", DRAWN)
def test_a_theory_without_strides_is_refuted(name):
    """Channels doubled as they are, on one grid: of plain nets where outputs are pooled or not, and of streams."""
    family, shape = DRAWN[name]
    without = [family(channels=width, **shape | {"stride": 1}) for width in WIDTHS]
    assert not _meets(*_ratios(name, [mf.predict(net, level="mean_field")["label_term"].values for net in without]))


# The last of six blocks mixes a stream that five have made; one tap and linear units, of which draws scatter least.
MIXED = mf.StagedResidualConvNet(
    depth=6,
    stages=(5, 1),
    channels=96,
    grid=(2,),
    kernel=(1,),
    readout="convolution",
    activation="linear",
    scaling="none",
)
CHANGED, CARRIED = Stages._changed, Stages._carried


def _without_crossing(stages, *given):
    """Without the kernel between a unit of the branch and one of the shortcut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stages, "_carried", lambda own, number, gated: 0.0 * CARRIED(own, number, gated))
        return CHANGED(stages, *given)


def _without_memory(stages, number, shortcut, state, branch):
    """Without what the units of the old stream remember."""
    nothing = type(state)(state.moments, 0.0 * state.mean, 0.0 * state.ahead)
    return CHANGED(stages, number, shortcut, nothing, branch)


def test_what_a_shortcut_mixes_counts(monkeypatch):
    """ln B_6 / B_5, whose error is a tenth of theirs: draws meet it, and refute either part left out."""
    with terms_alone():
        measured = mf.simulate(MIXED, draws=3000, seed=1, **SINGLE)
    last = measured["label_term"].values[-2:]
    relative = measured["label_term_covariance"].values[-2:, -2:] / np.outer(last, last)
    error = np.sqrt(relative[0, 0] + relative[1, 1] - 2 * relative[0, 1])

    def deviation():
        return np.diff(np.log(last))[0] - np.diff(staged_terms(MIXED).label[-2:, 0])[0]

    assert consistent(deviation(), error, 3000, allowance=0.03)
    for without in (_without_crossing, _without_memory):
        monkeypatch.setattr(Stages, "_changed", without)
        assert not consistent(deviation(), error, 3000, allowance=0.03)


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_draws_meet_the_overlap_energy():
    """Of plain nets, by probes, and of small residual ones, by the kernel itself."""
    for family, shape, widths in (
        (mf.StagedConvNet, PLANE, (16, 32)),
        (
            mf.StagedResidualConvNet,
            {"depth": 3, "stages": (2, 1), "grid": (4,), "kernel": (2,), "block_depth": 2},
            (16, 32),
        ),
    ):
        ratios, errors = [], []
        for width in widths:
            net = family(channels=width, **shape)
            measured, predicted = mf.simulate(net, draws=600, seed=5), mf.predict(net, level="mean_field")
            ratios.append(measured["overlap_energy"].values / predicted["overlap_energy"].values)
            errors.append(measured["overlap_energy_stderr"].values / predicted["overlap_energy"].values)
        extrapolated, error = 2 * ratios[1] - ratios[0], np.hypot(2 * errors[1], errors[0])
        assert consistent(extrapolated - 1, error, 600, allowance=0.06)


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_draws_meet_the_output_term_of_many_outputs(padding):
    ratios, errors = [], []
    for width in (48, 96):
        net = mf.StagedConvNet(
            depth=4,
            stages=2,
            channels=width,
            grid=(6,),
            kernel=(2,),
            padding=padding,
            outputs=width // 4,
            readout="convolution",
        )
        with terms_alone():
            measured = mf.simulate(net, draws=600, seed=1, **SINGLE)
        predicted = mf.predict(net, level="mean_field")["output_term"].values
        ratios.append(measured["output_term"].values / predicted)
        errors.append(measured["output_term_stderr"].values / predicted)
    extrapolated, error = 2 * ratios[1] - ratios[0], np.hypot(2 * errors[1], errors[0])
    assert consistent(extrapolated - 1, error, 600, allowance=0.06)
    assert not consistent(extrapolated - 2, error, 600, allowance=0.06)


POOLING = {"downsampling": "pooling"}


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (
            mf.StagedConvNet(depth=3, channels=4, **POOLING),
            "none serves it: means over windows .* take downsampling='stride'",
        ),
        (mf.StagedResidualConvNet(depth=3, channels=4, **POOLING), "between two pairs of sites, behind four gates"),
    ],
)
def test_means_over_windows_are_refused(net, message):
    with pytest.raises(ValueError, match=message):
        mf.predict(net, level="mean_field")


def test_what_is_left_out_is_said():
    residual = mf.predict(mf.StagedResidualConvNet(depth=3, channels=4), level="mean_field")
    assert set(residual.data_vars) == {"overlap_energy", "log_overlap_energy"}
    assert "whose gates remember: take readout='convolution'" in residual.attrs["left_out"]
    smooth = mf.predict(mf.StagedConvNet(depth=3, channels=400, activation="gelu"), level="mean_field")
    assert "three gates, known for 'relu' and 'linear'" in smooth.attrs["left_out"]
    with pytest.raises(ValueError, match="predicted for nets of one grid; this is a StagedConvNet"):
        mf.predict(mf.StagedConvNet(depth=3, channels=4), level="mean_field", by_site=True)
    with pytest.raises(ValueError, match="stem=1"):
        mf.predict(mf.StagedResidualConvNet(depth=3, channels=4), level="mean_field", inputs=np.ones((1, 4, 32)))
    deep = mf.StagedResidualConvNet(
        depth=800, stages=4, channels=4, grid=(8,), kernel=(1,), scaling="none", readout="convolution"
    )
    with pytest.raises(OverflowError, match="outside what a float holds"):
        mf.predict(deep, level="mean_field")
