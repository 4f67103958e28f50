"""The output term of Transformers where outputs are as many as channels: identities, and draws at three widths."""

from functools import cache

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.tangent_kernels import trails
from meanfield.theory.transformers.every_pair import _top_errors, pair_terms, pair_unit
from tests.statistics import consistent

pytestmark = pytest.mark.usefixtures("no_overlap_energies")

# Output terms of so many draws have errors of 1 to 3 %; without the part along the features they are 20 % off and more.
DRAWS, WIDTHS, BIAS = 600, (16, 64, 128), 9.0
NETS = {
    "pre-norm": {},
    "post-norm, causal": {"norm": "post", "causal": True, "normalisation": "rms"},
    "two samples, gated": {"activation": "swiglu", "inputs": 2, "causal": True},
    "smooth, last": {"activation": "gelu", "readout": "last"},
    "flattened": {"readout": "flatten"},
}


def _net(name, width):
    shared = {"depth": 2, "tokens": 3, "ffn": 1, "attention_scale": "inverse"}
    return mf.Transformer(**shared, width=width, outputs=width, **NETS[name])


@cache
def _predicted(name, width):
    return pair_terms(_net(name, width), None)


@cache
def _drawn(name, width):
    return mf.simulate(_net(name, width), draws=DRAWS, seed=11)


def _agrees(name, width, output, granted=None):
    drawn = _drawn(name, width)
    return consistent(
        drawn.output_term / output - 1, drawn.output_term_stderr / output, DRAWS, BIAS / (granted or width)
    )


@pytest.mark.parametrize("name", NETS)
def test_output_terms_tend_to_the_mean_field(name):
    for width in WIDTHS:
        assert _agrees(name, width, _predicted(name, width).output_term)


def _few(name, width):
    """What few outputs drive: terms fall as 1/outputs, and the part along the features does not."""
    net = _net(name, width)
    first, second = (pair_terms(net.replace(outputs=outputs), None).output_term for outputs in (1, 2))
    return 2 * (first - second) / width


@pytest.mark.parametrize("name", ["pre-norm", "post-norm, causal", "two samples, gated"])
def test_without_the_part_along_the_features_they_do_not(name):
    assert not _agrees(name, WIDTHS[-1], _few(name, WIDTHS[-1]))


def test_the_bias_shrinks_with_the_width():
    name, width = "two samples, gated", WIDTHS[0]
    assert not _agrees(name, width, _predicted(name, width).output_term, granted=WIDTHS[-1])


def test_a_normalised_token_takes_out_what_goes_along_it():
    """Where tokens have weights of their own, A = B E z_out^2 at any number of outputs; a pooled readout has more."""
    for name in ("smooth, last", "flattened"):
        np.testing.assert_allclose(_predicted(name, 64).output_term, _few(name, 64), rtol=1e-2)
    assert (_predicted("pre-norm", 64).output_term > 1.2 * _few("pre-norm", 64)).all()


def test_what_outputs_drive_along_the_features_does_not_know_their_number():
    net = _net("post-norm, causal", 64)
    one, two, four = (pair_terms(net.replace(outputs=outputs), None).output_term for outputs in (1, 2, 4))
    np.testing.assert_allclose((one - two) / (two - four), 2.0, rtol=1e-9)


def test_few_outputs_is_a_premise():
    net = mf.Transformer(depth=1, width=16, tokens=3, outputs=16)
    with pytest.warns(mf.PremiseWarning, match="16 outputs at width 16 are not few"):
        mf.predict(net, level="mean_field")
    for quiet in (
        net.replace(readout="last"),
        net.replace(readout="flatten"),
        net.replace(outputs=2),
        net.replace(tokens=1),
    ):
        mf.predict(quiet, level="mean_field")


@pytest.mark.parametrize("name", ["pre-norm", "post-norm, causal"])
def test_errors_go_down_a_unit_whole_and_across_normalisations_without_their_part_along_the_values(name):
    """E U U' on the stream is what arrives there, as a part along the values and the rest; E <U, h> is 0 where h was
    divided by its size."""
    net = _net(name, 16)
    *passed, readout = trails(net)
    errors = _top_errors(net, readout)
    for unit, trail in zip(reversed(net.units), reversed(passed), strict=True):
        one = pair_unit(unit, trail, net.first_channels)
        passage = one.down(errors)
        along, arriving = passage.joined.features, passage.joined.noise
        turned = along.swapaxes(-1, -2)
        handed_on = passage.below.noise - passage.branch.noise + along @ one.covariance @ turned
        np.testing.assert_allclose(handed_on, arriving + along @ one.joined_covariance @ turned, rtol=1e-10, atol=1e-15)
        if one.before:
            met = np.einsum("...pp->...p", passage.branch.features @ one.before.undivided)
            np.testing.assert_allclose(met, 0.0, atol=1e-12 * np.abs(passage.branch.features).max())
        errors = passage.below
    assert np.abs(along).max() > 0
