"""The spec of a Transformer: shapes, variances and order of its weights, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import Attention, Normalisation, Pointwise
from meanfield.nets.transformer import TokenBranch


def _net(**options):
    return mf.Transformer(**{"depth": 3, "width": 8, "heads": 2, "tokens": 5} | options)


def test_weights_come_block_by_block_with_their_shapes():
    """W_q, W_k, W_v, W_o, W_1, W_2 (out, in), and the readout."""
    block = [(8, 8)] * 4 + [(32, 8), (8, 32)]
    assert _net().weight_shapes == [*block * 3, (10, 8)]
    gated = [(8, 8)] * 4 + [(12, 8), (12, 8), (8, 12)]
    assert _net(activation="swiglu", ffn=1.5).weight_shapes == [*gated * 3, (10, 8)]
    assert list(_net(activation="swiglu").weights)[4:8] == ["W1_1", "W3_1", "W2_1", "Wq_2"]
    assert _net(tied=True, outputs=3).weight_shapes == [*block, (3, 8)]


@pytest.mark.parametrize(
    ("activation", "gain"),
    [("relu", 1 / 2), ("linear", 1.0), ("gelu", 0.455851), ("swiglu", 0.355776)],
)
def test_variances(activation, gain):
    block = [1 / 8] * 4 + [1 / 8] * (2 if activation == "swiglu" else 1) + [1 / (gain * 32)]
    for scaling, factor in (("none", 1), ("multiplier_sqrt", 1), ("multiplier_linear", 1), ("init", 1 / 6)):
        net = _net(activation=activation, scaling=scaling, head="fan_in")
        assert net.weight_variances == pytest.approx([factor * s for s in block] * 3 + [1 / 8], rel=1e-5)
    heads = [_net(activation=activation, head=head).weight_variances[-1] for head in ("he", "fan_in", "mup")]
    assert heads == pytest.approx([1 / (gain * 8), 1 / 8, 1 / 64], rel=1e-5)


@pytest.mark.parametrize("activation", ["relu", "linear", "swiglu"])
def test_a_branch_of_the_ffn_has_variance_1(activation):
    """Of tokens of variance 1, in mean over weights: within 6 standard errors, about 2 %."""
    net, rng = _net(width=64, activation=activation, norm="post"), np.random.default_rng(0)
    *up, down = [rng.normal(scale=np.sqrt(s), size=(99, *shape)) for shape, s in zip(*_of_ffn(net), strict=True)]
    u = rng.normal(size=(99, 64, 20))
    hidden = [weight @ u for weight in up]
    if activation == "swiglu":
        seen = hidden[0] / (1 + np.exp(-hidden[0])) * hidden[1]
    else:
        seen = np.maximum(hidden[0], 0) if activation == "relu" else hidden[0]
    squares = np.square(down @ seen).mean(axis=(1, 2))
    assert abs(squares.mean() - 1) < 6 * squares.std() / np.sqrt(len(squares)) < 0.15


def _of_ffn(net):
    last = 3 if net.activation == "swiglu" else 2
    return net.weight_shapes[4 : 4 + last], net.weight_variances[4 : 4 + last]


def test_depth_counts_blocks_of_two_units():
    net = _net(scaling="multiplier_sqrt")
    assert [unit.skip for unit in net.units] == [0, 1, 2, 3, 4, 5]
    assert {unit.multiplier for unit in net.units} == {6**-0.5}
    assert {unit.multiplier for unit in _net(scaling="multiplier_linear").units} == {1 / 6}
    assert {unit.multiplier for unit in _net(scaling="init").units} == {1.0}
    assert (net.input_shape, net.output_shape) == ((1, 8, 5), (1, 10))


def test_deepnorm_scales_values_and_the_ffn_but_neither_queries_nor_keys():
    """Wang et al. 2022, figure 2, of 3 blocks: alpha = 6^(1/4), beta^2 = 24^(-1/2)."""
    net, plain = _net(scaling="deepnorm", norm="post"), _net(norm="post")
    factors = np.divide(net.weight_variances, plain.weight_variances)
    np.testing.assert_allclose(factors, [1, 1, *[24**-0.5] * 4] * 3 + [1])
    assert {unit.multiplier for unit in net.units} == {6**-0.25}


def test_rezero_has_a_gain_behind_every_branch_that_starts_at_0():
    for tied, gains in ((False, 6), (True, 2)):
        net = _net(scaling="rezero", tied=tied)
        own = [name for name in net.weights if name.partition("_")[2].startswith("gain")]
        assert len(own) == gains
        assert {(net.weights[name].shape, net.weights[name].variance, net.role_of(name)) for name in own} == {
            ((1,), 0.0, "hidden_bias")
        }
    streams = mf.simulate(net, measure=mf.ResidualEnergies(), draws=2, seed=0)
    np.testing.assert_array_equal(
        streams["residual_energy"], streams["initial_energy"], "branches are nothing at first"
    )


def test_norms_stand_before_the_branch_or_behind_the_join():
    norm = Normalisation("rms")
    pre, post = (_net(norm=norm, normalisation="rms") for norm in ("pre", "post"))
    assert all(unit.branch[0] == norm and not unit.after for unit in pre.units)
    assert all(norm not in unit.branch and unit.after == (norm,) for unit in post.units)
    assert [norm in net.readout_unit.branch for net in (pre, post)] == [True, False]
    looks = Attention(2, "inverse", causal=True, rotary=True)
    assert looks in _net(attention_scale="inverse", causal=True, rotary=True).units[0].branch


def test_no_weight_but_the_readout_s_is_of_another_role():
    """Tokens come embedded: the first block is a hidden one."""
    net = _net()
    assert [net.role_of(name) for name in net.weights] == ["hidden"] * 18 + ["output"]


def test_a_vocabulary_puts_an_embedding_below_the_blocks():
    net, plain = _net(vocabulary=6, readout="every"), _net()
    assert net.weight_shapes == [(8, 6), *plain.weight_shapes]
    assert net.weight_variances == [1.0, *plain.weight_variances]
    assert (net.role_of("embedding"), net.role_of("Wq_1"), net.role_of("readout")) == ("input", "hidden", "output")
    assert [unit.skip for unit in net.units] == [None, 1, 2, 3, 4, 5, 6]
    assert (net.input_shape, net.output_shape) == ((1, 6, 5), (1, 10, 5))
    energies = mf.simulate(net, draws=2, seed=0)
    assert energies["layer"].values.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert energies["label_term_covariance"].dims == ("layer", "layer_other")


TOKENS = np.eye(6)[[[0, 5, 5, 1, 2]]].swapaxes(1, 2)


@pytest.mark.parametrize("inputs", [2 * TOKENS, np.zeros((1, 6, 5)), TOKENS + TOKENS[:, ::-1], 1 - TOKENS])
def test_inputs_that_are_no_tokens_are_refused(inputs):
    net = _net(vocabulary=6, outputs=6)
    message = r"not one-hot in sample 1 at token 1; .*\(samples, 6, tokens\).*numpy.eye\(6\)"
    with pytest.raises(ValueError, match=message):
        mf.train(net, (inputs, [0]), rates=[0.1], steps=1, batch_size=1, seeds=[0])
    weights = [np.ones(shape) for shape in net.weight_shapes]
    for refused in (
        lambda: mf.one_step(net, weights, inputs, np.ones((1, 6))),
        lambda: mf.simulate(net, draws=2, seed=0, inputs=inputs),
        lambda: mf.stable_rate(net, (inputs, [0]), draws=2, seed=0),
    ):
        with pytest.raises(ValueError, match=r"give others|not one-hot"):
            refused()


def test_what_serves_no_tokens_says_so():
    net = _net(vocabulary=6, outputs=6)
    for batch in (mf.Batch(input_correlation=0.5), mf.Batch(labels="teacher")):
        with pytest.raises(ValueError, match="this net takes one-hot tokens"):
            mf.simulate(net, draws=2, seed=0, batch=batch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": 6}, r"embeds tokens of a vocabulary.*take vocabulary=None"),
        ({"vocabulary": 6, "tied": True}, r"embeds tokens of a vocabulary.*take vocabulary=None"),
        ({"readout": "every"}, r"outputs at every token.*take readout='pooled', 'last' or 'flatten'"),
        ({"scaling": "rezero"}, "multiplied by a gain that starts at 0"),
        ({"normalisation": "none"}, r"not normalised.*take normalisation='layer' or 'rms'"),
        ({"scaling": "rezero", "tied": True}, "multiplied by a gain that starts at 0"),
        ({"scaling": "deepnorm", "norm": "post"}, r"variances of their own.*take attention_scale='inverse'"),
    ],
)
def test_what_has_no_mean_field_says_why(options, message):
    with pytest.raises(ValueError, match=message):
        mf.predict(_net(**options), level="mean_field")


@pytest.mark.parametrize("options", [{}, {"norm": "post"}, {"normalisation": "none"}, {"scaling": "rezero"}])
def test_a_block_is_read_as_it_was_written(options):
    """Part by part, and with the channels between the inner map and the last weight."""
    net = _net(ffn=3, activation="swiglu", **options)
    for unit, branch in zip(net.block, net.branches, strict=True):
        before, gain = [branch.before] * (branch.before is not None), [branch.gain] * (branch.gain is not None)
        assert unit.branch == (*before, branch.first, branch.inner, branch.last, *gain)
        assert unit.after == (branch.after,) * (branch.after is not None)
        assert branch.multiplier == unit.multiplier
    assert net.attention == net.branches[0].inner == Attention(2)
    assert [branch.channels for branch in net.branches] == [8, 24]
    assert [branch.gain_below for branch in net.branches] == pytest.approx([1, 1])
    assert net.is_pre_norm == (not options or "scaling" in options)


def test_a_block_of_another_form_is_no_block_of_theory():
    class Doubled(mf.Transformer):
        @property
        def block(self):
            return tuple(replace(unit, branch=(*unit.branch, Pointwise("tanh"))) for unit in super().block)

    net = Doubled(depth=2, width=8, heads=2, tokens=3)
    with pytest.raises(ValueError, match="made of Normalisation, Linear, Attention, Linear, Pointwise; theory reads"):
        TokenBranch.of(net.block[0])
    with pytest.raises(ValueError, match="theory reads blocks of"):
        mf.predict(net, level="mean_field")


@pytest.mark.parametrize("other", [{"tied": True}, {"rotary": True}])
def test_a_stream_is_predicted_whatever_its_readout(other):
    """Where no labels are followed down, outputs at every token are no hindrance."""
    every, pooled = (mf.predict(_net(readout=readout, **other), level="mean_field") for readout in ("every", "pooled"))
    assert every.stream_variance.equals(pooled.stream_variance)


def test_a_spec_survives_json():
    net = _net(activation="swiglu", tied=True, ffn=8 / 3, readout="every", vocabulary=7)
    spec = json.loads(json.dumps(net.describe()))
    assert spec.pop("family") == "Transformer"
    assert mf.Transformer(**spec) == net
    assert len({net, mf.Transformer(**spec)}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 3}, "heads is 3 at width 8; .*heads must divide the width: choose one of 1, 2, 4, 8"),
        ({"heads": 0}, "heads is 0; it must be at least 1"),
        ({"tokens": 0}, "tokens is 0; it must be at least 1"),
        ({"depth": 0}, "depth is 0"),
        ({"depth": 10**6}, "depth is 1000000; it must be at most 500,000"),
        ({"outputs": 0}, "outputs is 0"),
        ({"vocabulary": 0}, "vocabulary is 0; it must be at least 1"),
        ({"inputs": 0}, "inputs is 0"),
        ({"ffn": 0}, "ffn is 0; it must be positive"),
        ({"ffn": 0.01}, r"ffn is 0.01 at width 8, which leaves the FFN no hidden unit: give at least 0.125"),
        (
            {"heads": 8, "rotary": True},
            r"a head of width 8 / 8 heads has 1: choose width and heads such that it is even",
        ),
        ({"width": 1, "heads": 1}, r"normalisation 'layer' over 1 channel.* give 3 channels or more"),
        ({"width": 1, "heads": 1, "normalisation": "rms"}, "normalisation 'rms' over 1 channel.* give 2"),
        ({"width": 2}, "leaves signs at most, which no step moves"),
        ({"norm": "sandwich"}, "norm is 'sandwich'; choose one of 'pre', 'post'"),
        ({"normalisation": "batch"}, "normalisation is 'batch'; choose one of 'layer', 'rms', 'none'"),
        ({"attention_scale": "sqrt"}, "attention_scale is 'sqrt'; choose one of 'inverse_sqrt', 'inverse'"),
        ({"activation": "swish"}, "choose one of 'relu', .*'swiglu'"),
        ({"scaling": "depth"}, "choose one of 'init', 'multiplier_sqrt', 'multiplier_linear', 'none', 'deepnorm', "),
        ({"scaling": "deepnorm"}, "norm 'pre' and normalisation 'layer'; .* take norm='post' and"),
        ({"scaling": "deepnorm", "norm": "post", "normalisation": "none"}, "normalisation 'none'; .* take norm='post'"),
        ({"head": "lecun"}, "choose one of 'he', 'fan_in', 'mup'"),
        ({"readout": "cls"}, "readout is 'cls'; choose one of 'pooled', 'last', 'every'"),
    ],
)
def test_bad_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        _net(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 2.0}, "heads is 2.0; it must be a whole number"),
        ({"tokens": "5"}, "tokens is '5'; it must be a whole number"),
        ({"vocabulary": "abc"}, "vocabulary is 'abc'; it must be a whole number"),
        ({"ffn": "4"}, "ffn is '4'; it must be a positive number"),
        ({"causal": 1}, "causal is 1; it must be True or False"),
        ({"tied": None}, "tied is None"),
    ],
)
def test_values_of_other_types_are_refused(options, message):
    with pytest.raises(TypeError, match=message):
        _net(**options)


def test_what_normalisation_cannot_divide_by_is_refused_before_any_work():
    net, x = _net(inputs=2), np.random.default_rng(0).normal(size=(2, 8, 5))
    x[1, :, 3] = 0.3
    with pytest.raises(ValueError, match=r"the same in all channels in sample 2 at site 4; .*'layer' divides"):
        mf.simulate(net, draws=2, seed=0, inputs=x)
    zero = np.zeros((2, 8, 5))
    zero[0] = x[0]
    with pytest.raises(ValueError, match="inputs are 0 in sample 2 at site 1"):
        mf.simulate(net.replace(normalisation="rms"), draws=2, seed=0, inputs=zero)
    weights = [np.zeros(shape) for shape in net.weight_shapes]
    with pytest.raises(ValueError, match="the same in all channels"):
        mf.one_step(net, weights, x, np.zeros((2, 10)))
    with pytest.raises(ValueError, match="divides by the size of values, which is 0 at some sample"):
        mf.simulate(net.replace(norm="post"), draws=2, seed=0, inputs=zero)
    mf.simulate(net.replace(norm="post"), draws=2, seed=0, inputs=x)


@pytest.mark.parametrize("shape", [(8, 5), (1, 5, 8), (1, 8, 4), (2, 8, 5)])
def test_tokens_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"inputs has shape .* this net takes .* = \(1, 8, 5\)"):
        mf.simulate(_net(), draws=2, seed=0, inputs=np.ones(shape))


def test_the_gram_process_says_that_it_has_nothing():
    with pytest.raises(ValueError, match="weights 'gram' are for MLPs"):
        mf.simulate(_net(), draws=2, seed=0, weights="gram")
