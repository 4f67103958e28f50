"""Label and output terms over all pairs of tokens: the recursion of exchangeable ones, adjoints, and draws."""

from functools import cache

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.maps import ChannelKind
from meanfield.theory.transformers.every_pair import MOST_PAIRED, inner_map, pair_terms
from meanfield.theory.transformers.terms import stream_moments
from tests.statistics import consistent

pytestmark = pytest.mark.usefixtures("no_overlap_energies")

# Averages by quasi-Monte Carlo over gates and heads, those of gated units being the worst.
RTOL = 5e-3
BLOCK = {"depth": 1, "tokens": 3, "ffn": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"attention_scale": "inverse", "inputs": 2},
        {"attention_scale": "inverse", "activation": "swiglu", "readout": "last"},
        {"norm": "post", "activation": "gelu", "scaling": "init"},
        {"heads": 2, "inputs": 2, "normalisation": "rms"},
    ],
)
def test_exchangeable_tokens_by_both_roads(options):
    net = mf.Transformer(**{"depth": 2, "width": 64, "heads": 8, "tokens": 3, "ffn": 1} | options)
    np.testing.assert_allclose(pair_terms(net, None).label_term, stream_moments(net).label_term, rtol=RTOL)


def test_linear_units_without_logits_need_no_average():
    net = mf.Transformer(depth=3, width=64, tokens=4, activation="linear", attention_scale="inverse", norm="post")
    np.testing.assert_allclose(pair_terms(net, None).label_term, stream_moments(net).label_term, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"causal": True, "attention_scale": "inverse"}, 0),
        ({"causal": True, "attention_scale": "inverse_sqrt"}, 0),
        ({"activation": "relu"}, 1),
        ({"activation": "swiglu"}, 1),
    ],
)
def test_errors_go_down_by_the_transpose(options, place):
    """tr C O X = tr (O^T C) X for moments X and errors C of six points that are all different."""
    rng = np.random.default_rng(0)
    moments, errors, covariance, kernel = (side @ side.T for side in rng.normal(size=(4, 6, 6)))
    shape = (2, 3, 2, 3)
    kind = ChannelKind(12, covariance.reshape(shape), kernel.reshape(shape), np.zeros((2, 3)))
    branch = mf.Transformer(depth=1, width=12, heads=2, tokens=3, **options).branches[place]
    inner = inner_map(branch, (kind, kind, kind))
    none = np.zeros((6, 6))
    above = np.sum(errors * inner.up(moments, none, none, none)[0])
    below = np.sum(inner.down(errors, none)[0] * moments)
    assert above == pytest.approx(below, rel=1e-9)
    assert above != pytest.approx(np.sum(errors * moments), rel=0.01)


def _given(width, inputs=1):
    """Three tokens that are not alike, with a mean over channels."""
    rng, mix = np.random.default_rng(5), np.array([[1, 0.5, 0], [0, 1, 0.8], [0.3, 0, 1.5]])
    return np.einsum("bit,ts->bis", rng.normal(size=(inputs, width, 3)), mix) + 0.3


# Terms of so many draws have errors of 1 to 3 %; those of the controls are 17 % off and more.
DRAWS, WIDTHS, BIAS = 1000, (32, 64, 256), 12.0
NETS = {
    "causal": ({"causal": True}, False),
    "causal, 1/size": ({"causal": True, "attention_scale": "inverse", "readout": "last"}, False),
    "given": ({"norm": "post"}, True),
    "given, 1/size": ({"attention_scale": "inverse", "activation": "swiglu", "inputs": 2}, True),
    "two samples": ({"inputs": 2, "activation": "gelu"}, False),
}


def _case(name, width, **other):
    """The net, its heads of 8 channels or two, and its inputs."""
    options, given = NETS[name]
    heads = 2 if options.get("attention_scale") == "inverse" else width // 8
    net = mf.Transformer(**BLOCK, width=width, heads=heads, outputs=12, **options).replace(**other)
    return net, _given(width, net.inputs) if given else None


@cache
def _drawn(name, width):
    net, inputs = _case(name, width)
    return mf.simulate(net, draws=DRAWS, seed=7, inputs=inputs)


def _agrees(name, width, predicted, granted=None):
    drawn = _drawn(name, width)
    ratios, errors = (
        np.array([drawn[f"{term}{what}"] / predicted[term] for term in ("label_term", "output_term")])
        for what in ("", "_stderr")
    )
    return consistent(ratios - 1, errors, DRAWS, BIAS / (granted or width))


@pytest.mark.parametrize("name", NETS)
def test_terms_tend_to_the_mean_field(name):
    for width in WIDTHS:
        net, inputs = _case(name, width)
        assert _agrees(name, width, mf.predict(net, level="mean_field", inputs=inputs))


def test_the_bias_shrinks_with_the_width():
    """12 outputs at width 32 are not few: what is granted at width 256 would not do."""
    net, _ = _case("two samples", WIDTHS[0])
    assert not _agrees("two samples", WIDTHS[0], mf.predict(net, level="mean_field"), granted=WIDTHS[-1])


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("causal", {"causal": False}),
        ("causal", {"attention_scale": "inverse"}),
        ("causal, 1/size", {"readout": "pooled"}),
        ("given", {"attention_scale": "inverse"}),
        ("given, 1/size", {"activation": "silu"}),
        ("two samples", {"norm": "post"}),
    ],
)
def test_another_net_is_told_apart(name, other):
    net, inputs = _case(name, WIDTHS[-1], **other)
    assert not _agrees(name, WIDTHS[-1], mf.predict(net, level="mean_field", inputs=inputs))


def test_white_inputs_are_told_from_given_ones():
    assert not _agrees("given", WIDTHS[-1], mf.predict(_case("given", WIDTHS[-1])[0], level="mean_field"))


def test_what_is_left_out_says_why():
    net = mf.Transformer(**BLOCK, width=8, causal=True, attention_scale="inverse")
    paired, crowded = (mf.predict(net.replace(tokens=tokens), level="mean_field") for tokens in (3, MOST_PAIRED + 1))
    assert "overlap_energy" not in paired
    assert "no single column" in paired.attrs["left_out"]
    assert not {"overlap_energy", "label_term", "output_term", "learning_rate_scale"} & set(crowded)
    assert f"up to {MOST_PAIRED}" in crowded.attrs["left_out"]
    several = mf.predict(net.replace(causal=False, inputs=2), level="mean_field")
    assert "output_term" not in several
    assert "give inputs" in several.attrs["left_out"]
