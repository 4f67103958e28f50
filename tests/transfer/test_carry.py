"""Carrying a learning rate: the rules, their choice, what they refuse, and draws that they must meet."""

import math
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.finite_width import finite_width_allowance
from meanfield.theory.mean_field.label_term import label_profiles
from meanfield.transfer import carry
from meanfield.transfer.rules import log_channel_correction
from tests.draws import SINGLE
from tests.statistics import consistent

DRAWS = 2048


def mlps(*depths, **options):
    return [mf.MLP(depth=depth, **({"width": 4096} | options)) for depth in depths]


def convs(*depths, **options):
    return [mf.ConvNet(depth=depth, grid=(8,), **({"channels": 512} | options)) for depth in depths]


def carried(first, second, rule="finite_depth"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)
        return mf.transfer_learning_rate(1.0, first, second, rule=rule)


@pytest.mark.parametrize(("start", "end"), [(3, 10), (12, 48), (48, 12), (1, 1000)])
def test_finite_depth_rule_of_relu_nets(start, end):
    """sqrt((L0+1)(L0^2+L0+1) / ((L+1)(L^2+L+1))), whatever the width."""
    law = np.sqrt((start + 1) * (start**2 + start + 1) / ((end + 1) * (end**2 + end + 1)))
    for width in (64, 10**6):
        assert carried(*mlps(start, end, width=width)) == pytest.approx(law, rel=1e-12)


def test_power_law_is_the_limit_and_not_the_rule():
    """From 3 to 12 layers the two differ by 28 %, from 12 to 48 by 6 %; asymptotically they agree."""
    for start, end, gap in [(3, 12, 0.277), (12, 48, 0.064), (1000, 4000, 0.00075)]:
        finite, power = (carried(*mlps(start, end), rule=rule) for rule in ("finite_depth", "power_law"))
        assert power == pytest.approx((end / start) ** -1.5)
        assert finite / power - 1 == pytest.approx(gap, rel=0.01)


def test_exact_rule_knows_width_and_outputs():
    """Many outputs make the output term dominate: the rate must fall more steeply than the label term alone says."""
    few, many = (mlps(10, 100, width=20_000, outputs=outputs) for outputs in (1, 20_000))
    finite = carried(*few)
    assert carried(*few, rule="exact") == pytest.approx(finite, rel=0.02)
    assert carried(*many, rule="exact") < 0.5 * finite


POOLED = mf.ConvNet(depth=4, channels=64, grid=(6,), kernel=(3,), head="mup")
PAIRS = {
    "channels": (POOLED, replace(POOLED, channels=256)),
    "head": (replace(POOLED, head="he"), POOLED),
    "outputs": (POOLED, replace(POOLED, outputs=40)),
    "depth": (POOLED, replace(POOLED, depth=8)),
    "padding": (POOLED, replace(POOLED, padding="zero")),
    "readout": (POOLED, replace(POOLED, readout="convolution")),
}


@cache
def simulated(net, seed):
    """Drawn once for all pairs that it is part of."""
    return mf.simulate(net, draws=DRAWS, seed=seed, **SINGLE)


@pytest.mark.parametrize("nets", PAIRS.values(), ids=PAIRS)
@pytest.mark.usefixtures("no_overlap_energies")
def test_pooled_nets_carry_what_draws_show(nets):
    """Drawn scales of the label term, finite channels granted; the overlap energy in its place, as before, fails."""
    drawn = [simulated(net, 0 if net == POOLED else 1) for net in nets]
    logs = [math.log(scales["label_learning_rate_scale"]) for scales in drawn]
    error = math.hypot(*(float(o["label_learning_rate_scale_stderr"] / o["label_learning_rate_scale"]) for o in drawn))
    granted = sum(math.log1p(finite_width_allowance(net).max()) / 2 for net in nets)
    assert consistent(logs[1] - logs[0] - math.log(carried(*nets)), error, DRAWS, granted)
    overlap = [float(mf.predict(net, level="mean_field")["overlap_energy"].mean()) ** -0.5 for net in nets]
    if nets[1].depth == nets[0].depth and nets[1].padding == nets[0].padding:
        assert not consistent(logs[1] - logs[0] - math.log(overlap[1] / overlap[0]), error, DRAWS, granted)


def test_scales_of_pooled_nets_are_those_of_their_label_term():
    deeper = replace(POOLED, depth=16, channels=4096)
    shallow = replace(deeper, depth=8)
    ratio = np.sqrt(label_profiles(shallow).mean() / label_profiles(deeper).mean())
    assert carried(shallow, deeper) == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize(
    "net",
    [
        mf.MLP(depth=1, width=64, weight_variance=4.0),
        mf.MLP(depth=1, width=64, activation="gelu"),
        mf.ConvNet(depth=1, channels=64, grid=(4,), padding="zero"),
    ],
    ids=["variance", "gelu", "zero padding"],
)
def test_power_laws_are_refused_where_there_is_none(net):
    with pytest.raises(ValueError, match="no power of its depth"):
        carried(replace(net, depth=10), replace(net, depth=40), rule="power_law")


def test_the_finite_depth_rule_follows_gains():
    """At weight_variance 4 every layer doubles the label term: eta* falls by 2^15 and more over 30 layers."""
    assert carried(*mlps(10, 40, weight_variance=4.0)) == pytest.approx(2.1e-10, rel=0.05)


@pytest.mark.parametrize(
    ("name", "value"), [("activation", "linear"), ("weight_variance", 3.0), ("outputs", 1000), ("head", "mup")]
)
def test_power_laws_know_depth_alone(name, value):
    first, second = mlps(4, 8)
    with pytest.raises(ValueError, match=f"differ in {name}"):
        carried(first, replace(second, **{name: value}), rule="power_law")


def test_outputs_that_change_are_accounted_for_or_refused():
    """The label term alone would ask for ten times the rate; the exact scale of the whole update for far less."""
    few, many = mlps(12, 12, width=64)[0], mlps(12, width=64, outputs=1000)[0]
    exact = [float(mf.predict(net, level="exact")["learning_rate_scale"]) for net in (few, many)]
    transfer = mf.explain_transfer(0.1, few, many)
    assert transfer.rule == "exact"
    assert transfer.rate == pytest.approx(0.1 * exact[1] / exact[0])
    with pytest.raises(ValueError, match=r"differ in outputs, .* factor of 0\.1"):
        carried(few, many)
    block = mf.ResidualMLP(depth=2, width=8)
    with pytest.raises(ValueError, match="by an unknown factor"):
        carried(block, replace(block, outputs=20))
    with pytest.raises(ValueError, match="differ in inputs"):
        carried(few, replace(few, inputs=4))


def streams(*depths, **options):
    return [mf.Transformer(depth=depth, **({"width": 128, "heads": 8, "tokens": 4} | options)) for depth in depths]


@pytest.mark.parametrize(("norm", "other"), [("pre", {"norm": "post"}), ("post", {"scaling": "multiplier_sqrt"})])
def test_transformers_carry_what_draws_show(norm, other):
    """From 1 to 6 blocks, by 400 draws of each end; a rate by the law of the ``other`` nets lies far off.

    Standard errors are 0.02 of the rate or less; finite width may take 3 L/n of it, as in nets of layers.
    """
    nets = streams(1, 6, norm=norm)
    drawn = [mf.simulate(net, draws=400, seed=seed) for seed, net in enumerate(nets)]
    granted = 3 * len(nets[1].units) / nets[1].width / 2
    for rule, name in (("finite_depth", "label_learning_rate_scale"), ("whole_update", "learning_rate_scale")):
        scales = [float(dataset[name]) for dataset in drawn]
        errors = [float(dataset[f"{name}_stderr"]) for dataset in drawn]
        error = math.hypot(*(error / scale for error, scale in zip(errors, scales, strict=True)))
        drift = math.log(scales[1] / scales[0])
        by_others = carried(*(net.replace(**other) for net in nets), rule=rule)
        assert consistent(drift - math.log(carried(*nets, rule=rule)), error, 400, granted)
        assert not consistent(drift - math.log(by_others), error, 400, granted)


@pytest.mark.parametrize(
    ("nets", "rule", "message"),
    [
        (
            streams(2, 4, norm="post", causal=True, tokens=144),
            "auto",
            "no rule knows these nets .* white tokens, but here under a causal mask .* up to 143",
        ),
        (streams(2, 4, tied=True), "finite_depth", "white tokens, but here blocks share weights .* take tied=False"),
        (streams(2, 4, norm="post", inputs=2, activation="gelu", tokens=100), "auto", "or inputs=1"),
        (streams(2, 4), "power_law", "follows no power of its depth .* take rule 'finite_depth'"),
        (streams(2, 4), "exact", "this is a Transformer of 'relu'"),
        (streams(2, 4), "typical", "learning_rate_scale_quantile for any net"),
        (streams(2, 4, inputs=2), "whole_update", "outputs of several samples correlate"),
    ],
)
def test_transformers_that_a_rule_does_not_serve_are_refused(nets, rule, message):
    with pytest.raises(ValueError, match=message):
        mf.transfer_learning_rate(0.1, *nets, rule=rule)


@pytest.mark.parametrize("options", [{}, {"causal": True, "tokens": 2}])
def test_the_whole_update_of_transformers_counts_their_outputs(options):
    options |= {"norm": "post"}
    nets = [streams(1, **options)[0], streams(2, head="mup", outputs=20, **options)[0]]
    first, second = (float(mf.predict(net, level="mean_field").learning_rate_scale) for net in nets)
    assert carried(*nets, rule="whole_update") == pytest.approx(second / first, rel=1e-9)
    assert mf.explain_transfer(0.1, *nets).rule == "whole_update"


def test_transformers_have_premises_of_their_own():
    transfer = mf.explain_transfer(0.1, *streams(1, 8, norm="post"))
    assert transfer.rule == "whole_update"
    assert "the output term changes the rate by a factor of 0.8" in transfer.reason
    assert not any("no normalisation" in premise for premise in transfer.premises)
    assert any("white Gaussian inputs" in premise for premise in transfer.premises)
    assert any("small Transformers did not" in premise for premise in transfer.premises)
    assert any(r"depth over width is 0.12" in warning for warning in transfer.warnings)


def test_trained_post_norm_transformers_are_warned_of_over_depth_alone():
    (warning,) = mf.explain_transfer(0.1, *streams(1, 6, norm="post")).warnings
    assert "post-norm Transformers fell as L^(-1.38" in warning
    assert "in eight on MNIST as L^(-1.00 +- 0.10)" in warning
    wider = streams(1, norm="post")[0], streams(1, norm="post", width=128)[0]
    assert not any("post-norm" in warning for warning in mf.explain_transfer(0.1, *wider).warnings)


@pytest.mark.parametrize(
    ("net", "other", "warned"),
    [
        (mf.ConvNet(depth=2, channels=512, grid=(4, 4), kernel=(3, 3)), {"depth": 8}, True),
        (mf.ConvNet(depth=2, channels=512, grid=(4, 4), kernel=(3, 3)), {"channels": 256}, False),
        (mf.ResidualConvNet(depth=2, channels=512, grid=(4, 4), kernel=(3, 3)), {"depth": 8}, False),
        (mf.MLP(depth=2, width=4096), {"depth": 8}, False),
    ],
)
def test_trained_plain_convolutional_nets_are_warned_of_over_depth_alone(net, other, warned):
    """They fell faster than one step says, so that a carried rate is too large."""
    said = mf.explain_transfer(0.1, net, net.replace(**other), rule="power_law").warnings
    assert any("plain convolutional nets of 32 channels fell as L^(-2.47" in each for each in said) is warned


def test_the_default_takes_the_median_net_where_rare_ones_make_the_mean(monkeypatch):
    """Depth 12 -> 300 at width 256: mean field 8.7e-4, exact mean 7.4e-7, median 7.3e-3 (of 400 dense draws)."""
    nets = mlps(12, 300, width=256)
    transfer = mf.explain_transfer(0.1, *nets)
    assert transfer.rule == "typical"
    assert transfer.rates["finite_depth"] == pytest.approx(8.665e-4, rel=1e-3)
    assert transfer.rates["exact"] == pytest.approx(7.35e-7, rel=1e-2)
    assert abs(math.log(transfer.rate / 7.3e-3)) < 5 * transfer.error
    low, high = transfer.interval
    assert low < transfer.rate / 3 < 3 * transfer.rate < high
    assert transfer.error < 0.05
    assert "rare nets make the mean" in transfer.reason
    assert "depth over width 1.2" in transfer.reason
    monkeypatch.setattr(carry, "explain_transfer", lambda *_, **__: transfer)  # which takes 3 s
    with pytest.warns(mf.PremiseWarning, match=r"width 1\.2 .* four in five nets would take between 0\.000307"):
        assert mf.transfer_learning_rate(0.1, *nets) == transfer.rate


def test_the_default_is_the_finite_depth_rule_where_all_agree():
    transfer = mf.explain_transfer(0.1, *mlps(3, 12, width=4096))
    assert (transfer.rule, transfer.interval, transfer.error, transfer.warnings) == ("finite_depth", None, 0.0, ())
    assert set(transfer.rates) == {"finite_depth", "power_law", "whole_update", "exact"}
    assert transfer.rate == mf.transfer_learning_rate(0.1, *mlps(3, 12)) == 0.1 * carried(*mlps(3, 12))
    assert mf.transfer_learning_rate(0.1, *mlps(3, 3)) == 0.1


def test_the_default_takes_the_whole_update_where_outputs_are_many():
    transfer = mf.explain_transfer(0.1, *mlps(10, 100, width=20_000, outputs=20_000))
    assert transfer.rule == "exact"
    assert transfer.rate < 0.5 * transfer.rates["finite_depth"]


def test_the_whole_update_is_followed_on_grids():
    """From 2 to 8 layers of as many outputs as channels: the label term alone asks for twice the rate that is drawn."""
    net = mf.ConvNet(depth=2, channels=128, outputs=128, grid=(4,))
    deep = replace(net, depth=8)
    drawn = [mf.simulate(each, draws=192, seed=6) for each in (net, deep)]
    logs = [math.log(scales["learning_rate_scale"]) for scales in drawn]
    error = math.hypot(*(float(s["learning_rate_scale_stderr"] / s["learning_rate_scale"]) for s in drawn))
    transfer = mf.explain_transfer(1.0, net, deep)
    assert transfer.rule == "whole_update"
    finite = log_channel_correction(net, deep)
    assert consistent(logs[1] - logs[0] - math.log(transfer.rate) - finite, error, 192, abs(finite) / 3)
    assert not consistent(logs[1] - logs[0] - math.log(transfer.rates["finite_depth"]), error, 192)
    assert any("infinitely many channels" in sentence for sentence in transfer.warnings)


def test_typical_rates_are_medians_over_draws():
    """Against draws of whole matrices, of another seed, and their order statistics."""
    nets = mlps(2, 16, width=32)
    drawn = [mf.simulate(net, draws=2000, seed=9, weights="dense") for net in nets]
    median = [scales["learning_rate_scale_quantile"].sel(quantile=0.5) for scales in drawn]
    errors = [scales["learning_rate_scale_quantile_stderr"].sel(quantile=0.5) for scales in drawn]
    transfer = mf.explain_transfer(1.0, *nets, rule="typical")
    error = math.hypot(transfer.error, *(float(e / m) for e, m in zip(errors, median, strict=True)))
    assert consistent(math.log(transfer.rate / float(median[1] / median[0])), error, 512)
    assert not consistent(math.log(carried(*nets, rule="exact") / transfer.rate), transfer.error, 512)


@pytest.mark.parametrize(
    ("nets", "rule", "sentence"),
    [
        (convs(6, 12, channels=64, head="mup"), "auto", "depth over width is 0.19"),
        (convs(6, 12, outputs=512), "finite_depth", "rule 'whole_update' has it"),
        (convs(6, 12, outputs=512, padding="zero"), "finite_depth", "something like a factor"),
        (convs(6, 24, channels=128), "whole_update", "rate is that of infinitely many channels"),
        (convs(2, 3, input_channels=3), "auto", "3 channels alone"),
        (mlps(12, 100, width=128), "finite_depth", "depth over width is 0.78"),
        (mlps(12, 100, width=128), "exact", "rule 'typical' has the median net's"),
    ],
)
def test_broken_premises_are_said(nets, rule, sentence):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mf.transfer_learning_rate(0.1, *nets, rule=rule)
    said = mf.explain_transfer(0.1, *nets, rule=rule).warnings
    assert [str(warning.message) for warning in caught] == list(said)
    assert {warning.category for warning in caught} == {mf.PremiseWarning}
    assert any(sentence in warning for warning in said)


@pytest.mark.parametrize(
    ("rate", "options", "error", "message"),
    [
        (0.0, {}, ValueError, "rate is 0; it must be positive"),
        (float("nan"), {}, ValueError, "rate is nan"),
        ("0.1", {}, TypeError, "a positive number"),
        (
            0.1,
            {"rule": "linear"},
            ValueError,
            "'auto', 'finite_depth', 'power_law', 'whole_update', 'exact', 'typical'",
        ),
        (1e-300, {"rule": "power_law"}, ValueError, "outside what a float holds"),
    ],
)
def test_bad_rates_and_rules_are_refused(rate, options, error, message):
    with pytest.raises(error, match=message):
        mf.transfer_learning_rate(rate, *mlps(1, 10**6), **options)


def test_nets_that_a_rule_does_not_serve_are_refused():
    conv = [mf.ConvNet(depth=d, channels=8) for d in (2, 4)]
    with pytest.raises(ValueError, match="two families, MLP and ConvNet"):
        mf.transfer_learning_rate(0.1, mlps(2)[0], conv[0])
    with pytest.raises(ValueError, match=r"exact scales are those of fully-connected nets.*this is a ConvNet"):
        mf.transfer_learning_rate(0.1, *conv, rule="exact")
    with pytest.raises(ValueError, match=r"typical nets are drawn by the Gram process.*this is a ConvNet"):
        mf.transfer_learning_rate(0.1, *conv, rule="typical")
    with pytest.raises(ValueError, match="typical nets are drawn up to 10,000 layers; this MLP has 10,001"):
        mf.transfer_learning_rate(0.1, *mlps(1, 10_001), rule="typical")
    with pytest.raises(ValueError, match=r"no rule knows these nets.*rule 'power_law' does"):
        mf.transfer_learning_rate(0.1, *[mf.ResidualConvNet(depth=d, channels=8) for d in (2, 4)])
    with pytest.raises(TypeError, match="a net is 'int'; give two specs"):
        mf.transfer_learning_rate(0.1, 12, 48)
    chains = [mf.BlockNet(width=8, depth=depth, biases=True) for depth in (2, 4)]
    with pytest.raises(
        TypeError, match=r"a net is 'BlockNet'; .* where unit 1 is made of Linear, Bias.* draw both ends"
    ):
        mf.transfer_learning_rate(0.1, *chains)


def test_a_kernel_wider_than_its_grid_is_carried():
    """No circular net of this kernel stands in for the size of the output term."""
    size = {"channels": 64, "grid": (4,), "kernel": (5,), "padding": "zero"}
    transfer = mf.explain_transfer(0.1, mf.ConvNet(depth=3, **size), mf.ConvNet(depth=6, **size))
    assert transfer.rule == "finite_depth"
    assert not any("output term" in warning for warning in transfer.warnings)
