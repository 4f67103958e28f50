"""Transformers drawn and moved: against autograd, against loops, and what must not hold.

The two references are written from the formulas of the contract, and share no code with the list of units.
"""

import math

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import make_jvp, make_vjp
from autograd.builtins import tuple as traced_tuple
from autograd.tracer import getval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

import meanfield as mf
from meanfield.common.seeds import stream, streams_of_draws
from meanfield.simulation import passes
from meanfield.simulation.maps.weightless import NormalisationOperation
from meanfield.simulation.measures.energies import draw_energies
from meanfield.simulation.weights import draw_weights, given_weights
from tests import naive
from tests.derivable import SIGMA
from tests.draws import given_draw
from tests.statistics import COMPARISONS
from tests.strategies import transformers

# Every option beside the defaults, and some together.
OPTIONS = {
    "defaults": {},
    "post-norm": {"norm": "post"},
    "rms": {"normalisation": "rms"},
    "rms, post-norm": {"normalisation": "rms", "norm": "post"},
    "no normalisation": {"normalisation": "none", "scaling": "multiplier_linear"},
    "1/size": {"attention_scale": "inverse"},
    "causal": {"causal": True},
    "rotary": {"rotary": True},
    "rotary and causal": {"rotary": True, "causal": True, "readout": "last"},
    "swiglu": {"activation": "swiglu", "ffn": 1.5},
    "gelu": {"activation": "gelu"},
    "tanh": {"activation": "tanh"},
    "erf": {"activation": "erf"},
    "silu": {"activation": "silu", "ffn": 0.5},
    "linear": {"activation": "linear"},
    "square root of the depth": {"scaling": "multiplier_sqrt"},
    "depth": {"scaling": "multiplier_linear"},
    "initialisation": {"scaling": "init", "head": "mup"},
    "deepnorm": {"scaling": "deepnorm", "norm": "post"},
    "rezero": {"scaling": "rezero"},
    "rezero, post-norm": {"scaling": "rezero", "norm": "post", "tied": True, "activation": "swiglu"},
    "tied": {"tied": True},
    "tied, post-norm": {"tied": True, "norm": "post", "activation": "swiglu"},
    "last token": {"readout": "last", "head": "fan_in"},
    "every token": {"readout": "every", "head": "fan_in"},
    "vocabulary": {"vocabulary": 5, "norm": "post"},
    "language model": {"vocabulary": 7, "readout": "every", "causal": True, "outputs": 7, "tokens": 4},
    "one head, token, output and sample": {"heads": 1, "tokens": 1, "outputs": 1, "inputs": 1},
}
each_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())


SMALL = {"depth": 2, "width": 8, "heads": 2, "tokens": 3, "inputs": 2, "outputs": 3}


def _net(**options):
    return mf.Transformer(**SMALL | options)


# The contract in NumPy, which autograd derives ----------------------------------------------------------------------


def _streams(net, weights, z):
    """[Embedded tokens,] the stream behind every addition, and the outputs: z is (samples, channels, tokens)."""
    found, head = [], weights[-1]
    if net.vocabulary:
        z = weights[0][:, z.argmax(axis=1)].swapaxes(0, 1)
        found.append(z)
    for attends, matrices, factor in _branches(net, weights):
        branch = _attention if attends else _ffn
        z = _joined(net, z, lambda u, branch=branch, matrices=matrices: branch(net, u, *matrices), factor)
        found.append(z)
    top = _norm(net, z) if net.norm == "pre" else z
    flat = top.reshape(len(top), -1)  # channel by channel, token by token
    seen = {"pooled": top.mean(axis=2), "last": top[:, :, -1], "every": top, "flatten": flat}[net.readout]
    return found, anp.einsum("ow,bw...->bo...", head, seen)


def _branches(net, weights):
    """Whether it attends, its matrices, and its factor, of every branch from the bottom up."""
    blocks = weights[1:-1] if net.vocabulary else weights[:-1]
    gains, of_ffn = int(net.scaling == "rezero"), 3 if net.activation == "swiglu" else 2
    each = 4 + of_ffn + 2 * gains
    alpha = {"multiplier_sqrt": 0.5, "multiplier_linear": 1.0}.get(net.scaling, net.scaling)
    fixed = 1.0 if isinstance(alpha, str) else (2 * net.depth) ** -alpha
    for block in range(net.depth):
        start = 0 if net.tied else block * each
        for first, count in ((start, 4), (start + 4 + gains, of_ffn)):
            yield first == start, blocks[first : first + count], blocks[first + count][0] if gains else fixed


def _joined(net, z, branch, factor):
    if net.norm == "pre":
        return z + factor * branch(_norm(net, z))
    kept = (2 * net.depth) ** 0.25 if net.scaling == "deepnorm" else 1.0
    return _norm(net, kept * z + factor * branch(z))


def _norm(net, z):
    if net.normalisation == "none":
        return z
    if net.normalisation == "layer":
        z = z - anp.mean(z, axis=1, keepdims=True)
    return z / anp.sqrt(anp.mean(z * z, axis=1, keepdims=True))


def _attention(net, u, wq, wk, wv, wo):
    size = net.width // net.heads
    q, k, v = (anp.einsum("hsw,bwt->bhts", w.reshape(net.heads, size, -1), u) for w in (wq, wk, wv))
    if net.rotary:
        q, k = _rotated(q, size), _rotated(k, size)
    logits = anp.einsum("bhts,bhus->bhtu", q, k) / (size if net.attention_scale == "inverse" else math.sqrt(size))
    if net.causal:
        logits = logits + anp.where(anp.tri(net.tokens) > 0, 0.0, -anp.inf)
    weights = anp.exp(logits - getval(logits).max(axis=3, keepdims=True))
    mixed = anp.einsum("bhtu,bhus->bhst", weights / weights.sum(axis=3, keepdims=True), v)
    return anp.einsum("ow,bwt->bot", wo, mixed.reshape(u.shape))


def _rotated(x, size):
    """Channels (i, i + size/2) of token t as a vector in the plane, turned by t 10000^(-2 i / size)."""
    angles = np.arange(x.shape[2])[:, None] * 10_000.0 ** (-2 * np.arange(size // 2) / size)
    first, second = x[..., : size // 2], x[..., size // 2 :]
    turned = (first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles))
    return anp.concatenate(turned, axis=3)


def _ffn(net, u, first, *others):
    lifted = anp.einsum("ow,bwt->bot", first, u)
    if net.activation == "swiglu":
        hidden = SIGMA["silu"](lifted) * anp.einsum("ow,bwt->bot", others[0], u)
    else:
        hidden = SIGMA[net.activation](lifted)
    return anp.einsum("ow,bwt->bot", others[-1], hidden)


def _derived_step(net, weights, inputs, error):
    """Changes under one step of rate 1 on |z_out - y|^2 / (2 M), mean over samples."""
    gradient = make_vjp(lambda w: _streams(net, w, inputs)[1])(tuple(weights))[0](error / error.size)
    along = make_jvp(lambda w: traced_tuple(_streams(net, w, inputs)[0]))(tuple(weights))
    return along(tuple(-slope for slope in gradient))[1]


def _apart(net, reference, seed=0):
    """The largest difference of changes, over the largest change, from those of a reference net with the same draw."""
    weights, inputs, error = given_draw(net, seed)
    pairs = zip(mf.one_step(net, weights, inputs, error), _derived_step(reference, weights, inputs, error), strict=True)
    return max(np.abs(change - expected).max() / np.abs(expected).max() for change, expected in pairs)


def _assert_alike(net, seed):
    weights, inputs, error = given_draw(net, seed)
    theirs = _derived_step(net, weights, inputs, error)
    assert len(theirs) == 2 * net.depth + (net.vocabulary is not None)
    for change, expected in zip(mf.one_step(net, weights, inputs, error), theirs, strict=True):
        np.testing.assert_allclose(change, expected, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(expected).max()))


@each_option
def test_one_step_of_every_option_is_that_of_automatic_differentiation(options):
    _assert_alike(_net(**options), 0)


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(transformers(), st.integers(0, 2**31))
def test_one_step_of_any_transformer_is_that_of_automatic_differentiation(net, seed):
    _assert_alike(net, seed)


# Negative controls of these: what the reference would look like if the library did another thing.
OTHERS = {
    "another attention scale": ({"attention_scale": "inverse"}, {"attention_scale": "inverse_sqrt"}),
    "norms elsewhere": ({"norm": "pre"}, {"norm": "post"}),
    "heads joined": ({"heads": 2}, {"heads": 1}),
    "a mean that is not taken out": ({"normalisation": "layer"}, {"normalisation": "rms"}),
    "looking ahead": ({"causal": True}, {"causal": False}),
    "positions": ({"rotary": True}, {"rotary": False}),
    "another token read": ({"readout": "last"}, {"readout": "pooled"}),
    "branches of another size": ({"scaling": "multiplier_sqrt"}, {"scaling": "none"}),
    "constants of a deep net": ({"scaling": "deepnorm", "norm": "post"}, {"scaling": "none", "norm": "post"}),
}


@pytest.mark.parametrize(("options", "other_options"), OTHERS.values(), ids=OTHERS.keys())
def test_a_reference_of_another_net_is_seen(options, other_options):
    """At a difference of 1e-3 of the largest change, where right ones agree to 1e-11."""
    assert _apart(_net(**options), _net(**options)) < 1e-11
    assert _apart(_net(**options), _net(**other_options)) > 1e-3


def test_a_dropped_head_is_seen():
    """The second head's share of W_o set to 0 in the reference."""
    net = _net()
    weights, inputs, error = given_draw(net, 0)
    dropped = [weight.copy() for weight in weights]
    dropped[3][:, 4:] = 0.0
    ours, theirs = mf.one_step(net, weights, inputs, error), _derived_step(net, dropped, inputs, error)
    assert np.abs(ours[0] - theirs[0]).max() > 1e-3 * np.abs(theirs[0]).max()


@pytest.mark.parametrize("normalisation", ["layer", "rms"])
def test_a_jacobian_of_normalisation_without_its_second_projection_is_seen(normalisation, monkeypatch):
    """(P - y y' / C) / s without y y' / C, which keeps tokens from growing."""

    def centred_alone(self, spec, values, kept, moved, setting):
        columns = setting.by_sample(moved)
        across = columns - columns.mean(axis=1)[:, None] if spec.kind == "layer" else columns
        return (kept[1][:, :, None] * across).reshape(moved.shape)

    net = _net(normalisation=normalisation)
    assert _apart(net, net) < 1e-11
    monkeypatch.setattr(NormalisationOperation, "tangent", centred_alone)
    assert _apart(net, net) > 1e-3


# The forward pass by loops ------------------------------------------------------------------------------------------


def _naive_values(net, weights, sample):
    """The stream of one sample [at 0 and] behind every addition, and its outputs, token by token, head by head."""
    tokens, head = [sample[:, t] for t in range(net.tokens)], weights[-1]
    found = []
    if net.vocabulary:
        tokens = [weights[0][:, list(token).index(1.0)] for token in tokens]
        found.append(np.stack(tokens, axis=1))
    kept = (2 * net.depth) ** 0.25 if net.scaling == "deepnorm" else 1.0
    for attends, own, factor in _branches(net, weights):
        seen = [_naive_norm(net, token) for token in tokens] if net.norm == "pre" else tokens
        branch = _naive_attention(net, seen, own) if attends else [_naive_ffn(net, u, own) for u in seen]
        tokens = [kept * z + factor * f for z, f in zip(tokens, branch, strict=True)]
        if net.norm == "post":
            tokens = [_naive_norm(net, token) for token in tokens]
        found.append(np.stack(tokens, axis=1))
    if net.norm == "pre":
        tokens = [_naive_norm(net, token) for token in tokens]
    if net.readout == "every":
        return found, np.stack([head @ token for token in tokens], axis=1)
    return found, head @ (tokens[-1] if net.readout == "last" else sum(tokens) / net.tokens)


def _naive_norm(net, token):
    if net.normalisation == "none":
        return token
    mean = sum(token) / net.width if net.normalisation == "layer" else 0.0
    return (token - mean) / math.sqrt(sum((x - mean) ** 2 for x in token) / net.width)


def _naive_attention(net, tokens, matrices):
    wq, wk, wv, wo = matrices
    size, out = net.width // net.heads, []
    for t, token in enumerate(tokens):
        mixed = np.zeros(net.width)
        for head in range(net.heads):
            rows = range(head * size, (head + 1) * size)
            query = _naive_turned(net, [wq[row] @ token for row in rows], t)
            reached = range(t + 1 if net.causal else net.tokens)
            energies = []
            for s in reached:
                key = _naive_turned(net, [wk[row] @ tokens[s] for row in rows], s)
                power = 1.0 if net.attention_scale == "inverse" else 0.5
                energies.append(sum(a * b for a, b in zip(query, key, strict=True)) / size**power)
            total = sum(math.exp(energy) for energy in energies)
            for s, energy in zip(reached, energies, strict=True):
                for row in rows:
                    mixed[row] += math.exp(energy) / total * (wv[row] @ tokens[s])
        out.append(wo @ mixed)
    return out


def _naive_turned(net, channels, t):
    if not net.rotary:
        return channels
    size, turned = len(channels), list(channels)
    for i in range(size // 2):
        angle = t * 10_000.0 ** (-2 * i / size)
        x, y = channels[i], channels[i + size // 2]
        turned[i], turned[i + size // 2] = (
            x * math.cos(angle) - y * math.sin(angle),
            x * math.sin(angle) + y * math.cos(angle),
        )
    return turned


def _naive_ffn(net, u, matrices):
    if net.activation == "swiglu":
        first, third, second = matrices
        return second @ (naive.sigma("silu", first @ u) * (third @ u))
    first, second = matrices
    return second @ naive.sigma(net.activation, first @ u)


@each_option
def test_values_are_those_of_loops_over_tokens_and_heads(options):
    net = _net(**options)
    weights, inputs, _ = given_draw(net, 1)
    *streams, output = mf.pre_activations(net, weights, inputs)
    for sample, tokens in enumerate(inputs):
        values, out = _naive_values(net, weights, tokens)
        np.testing.assert_allclose([stream[sample] for stream in streams], values, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(output[sample], out, rtol=1e-9, atol=1e-11)


# Symmetries ---------------------------------------------------------------------------------------------------------


def _moved_by_tokens(order, **options):
    """Changes for tokens in another order, put back into the old one, and those for the old order."""
    net = _net(tokens=4, **options)
    weights, inputs, error = given_draw(net, 2)
    moved = mf.one_step(net, weights, inputs[:, :, order], error)
    back = np.argsort(order)
    return np.stack(moved)[..., back], np.stack(mf.one_step(net, weights, inputs, error))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_without_positions_nothing_depends_on_the_order_of_tokens(norm):
    moved, still = _moved_by_tokens([2, 0, 3, 1], norm=norm)
    np.testing.assert_allclose(moved, still, rtol=1e-9, atol=1e-11 * np.abs(still).max())


@pytest.mark.parametrize("options", [{"causal": True}, {"rotary": True}, {"readout": "last"}])
def test_masks_positions_and_the_last_token_make_order_matter(options):
    moved, still = _moved_by_tokens([2, 0, 3, 1], **options)
    assert np.abs(moved - still).max() > 1e-3 * np.abs(still).max()


def _in_other_order(net, weights, order):
    """Heads in another order: rows of W_q, W_k, W_v and columns of W_o."""
    size = net.width // net.heads
    rows = np.concatenate([np.arange(head * size, (head + 1) * size) for head in order])
    moved = [weight.copy() for weight in weights]
    for start in range(0, len(weights) - 1, 6):
        moved[start : start + 3] = [weight[rows] for weight in weights[start : start + 3]]
        moved[start + 3] = weights[start + 3][:, rows]
    return moved


def test_nothing_depends_on_the_order_of_heads():
    net = _net(heads=4, rotary=True, causal=True)
    weights, inputs, error = given_draw(net, 3)
    still = np.stack(mf.one_step(net, weights, inputs, error))
    moved = _in_other_order(net, weights, [2, 0, 3, 1])
    np.testing.assert_allclose(mf.one_step(net, moved, inputs, error), still, rtol=1e-9, atol=1e-11)
    moved[3] = weights[3]  # negative control: W_o in the old order
    assert np.abs(np.stack(mf.one_step(net, moved, inputs, error)) - still).max() > 1e-3 * np.abs(still).max()


@pytest.mark.parametrize("causal", [True, False])
def test_a_causal_mask_leaks_nothing(causal):
    """Later tokens change nothing before them, to the bit; without a mask they do."""
    net = _net(tokens=5, causal=causal, rotary=True)
    weights, inputs, _ = given_draw(net, 4)
    other = inputs.copy()
    other[:, :, 3:] *= -1.5
    pairs = zip(*(mf.pre_activations(net, weights, x)[:-1] for x in (inputs, other)), strict=True)
    apart = [np.abs(first - second)[:, :, :3].max() for first, second in pairs]
    assert (max(apart) == 0.0) if causal else (min(apart) > 1e-4)


def test_a_causal_error_at_the_last_token_alone_reaches_all_and_one_at_the_first_only_the_first():
    """dL/dz of a token depends on tokens behind it alone: seen in what the first token's own error moves."""
    net = _net(tokens=4, causal=True)
    weights, inputs, _ = given_draw(net, 5)
    other = inputs.copy()
    other[:, :, -1] *= -1.5
    state = _state(net, weights, inputs), _state(net, weights, other)
    first = np.zeros((1, net.width, net.inputs, net.tokens))
    first[..., 0] = 1.0
    errors = [passes.backward(error, first, len(net.units)) for error in state]
    for place in errors[0]:
        np.testing.assert_array_equal(errors[0][place], errors[1][place])
        assert not errors[0][place][..., 1:].any()


def _state(net, weights, inputs):
    shaped = {name: weight[None] for name, weight in zip(net.weights, weights, strict=True)}
    return passes.forward(net, given_weights(net, shaped), inputs.swapaxes(0, 1)[None])


# Draws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"readout": "last", "causal": True}, {"norm": "post", "tied": True}])
def test_label_and_output_terms_are_the_energies_of_one_step(options):
    """The step of a draw under its labels alone, and under its outputs alone."""
    net, seed, draw = _net(**options), 7, 3
    measured = draw_energies(net, seed, range(draw, draw + 1))
    drawn = draw_weights(net, streams_of_draws(seed, "weights", [draw]), "dense")
    weights = [drawn[name].matrix[0] for name in net.weights]
    inputs = stream(seed, "inputs", draw).standard_normal((net.width, net.inputs, net.tokens)).swapaxes(0, 1)
    labels = stream(seed, "labels", draw).standard_normal((net.outputs, net.inputs, 1))[..., 0].T
    *_, output = mf.pre_activations(net, weights, inputs)
    for name, error in (("label_term", labels), ("output_term", output)):
        energies = [np.square(change).mean() for change in mf.one_step(net, weights, inputs, error)]
        np.testing.assert_allclose(measured[name][0], energies, rtol=1e-9)
    assert measured["output_error"][0, 0] == pytest.approx((np.square(labels).sum() + np.square(output).sum()) / 2)


DRAWS = 2000
# More units than those up to which the tangent kernel itself is drawn.
LARGE = {"width": 15, "heads": 3, "inputs": 3}
LAWS = {
    "pre": {"rotary": True, "width": 18},
    "post, tied": {"norm": "post", "tied": True, "activation": "swiglu", "causal": True},
}


def _energies(net, kind):
    chunks = [draw_energies(net, 11, range(start, start + 50), weights=kind) for start in range(0, DRAWS, 50)]
    terms = [np.concatenate([chunk[name] for chunk in chunks]) for name in ("label_term", "output_term")]
    return np.log(np.concatenate(terms, axis=1))


def _smallest_p(draws, reference):
    return min(stats.ks_2samp(a, b, method="asymp").pvalue for a, b in zip(draws.T, reference.T, strict=True))


@pytest.mark.parametrize("options", LAWS.values(), ids=LAWS.keys())
def test_lazily_revealed_weights_have_the_law_of_dense_ones(options):
    """Two-sample tests of every energy's logarithm; the control says what they would see.

    At the suite's level, 5e-10, samples of 2000 tell distributions that differ by 0.106 anywhere, such as Gaussians
    apart by three tenths of their deviation.
    """
    net = _net(**LARGE | options)
    dense, lazy = _energies(net, "dense"), _energies(net, "lazy")
    assert _smallest_p(dense, lazy) > 1e-6 / COMPARISONS
    shifted = dense + 0.35 * dense.std(axis=0)
    assert _smallest_p(lazy, shifted) < 1e-6 / COMPARISONS


def test_another_law_of_attention_is_seen():
    """Negative control: 1/size in place of 1/sqrt(size)."""
    options = {"width": 16, "heads": 1, "inputs": 3, "readout": "last"}
    dense, lazy = _energies(_net(**options), "dense"), _energies(_net(attention_scale="inverse", **options), "lazy")
    assert _smallest_p(dense, lazy) < 1e-6 / COMPARISONS


@pytest.mark.parametrize("weights", ["dense", "lazy"])
def test_draws_are_simulated_in_either_precision(weights):
    net = _net(width=64, heads=4, tokens=8)
    found = {
        precision: mf.simulate(net, draws=4, seed=0, weights=weights, precision=precision)
        for precision in ("float64", "float32")
    }
    assert found["float64"].update_energy.dims == ("layer",)
    assert list(found["float64"].layer) == [1, 2, 3, 4]
    for name in ("update_energy", "label_term", "output_term"):
        np.testing.assert_allclose(found["float32"][name], found["float64"][name], rtol=1e-4)
    compared = mf.compare(found["float32"], found["float64"])
    assert abs(compared.update_energy_zscore).max() < 0.1


def test_memory_follows_the_tokens_of_attention():
    """Shares of attention are heads x tokens^2 numbers a layer: at many tokens memory grows as their square."""
    sizes = [_net(width=8, tokens=tokens).memory(weights="dense") for tokens in (1000, 2000)]
    assert 3.5 < sizes[1] / sizes[0] < 4
    lazy, dense = (_net(width=512, heads=8, tokens=4, inputs=1).memory(weights=kind) for kind in ("lazy", "dense"))
    assert lazy < dense / 4
