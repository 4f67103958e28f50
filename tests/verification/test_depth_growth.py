"""Growth with depth at infinitely many channels: the judges, what they can tell, and the road from finite channels."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.simulation import controls_refusal
from meanfield.verification.many_channels import (
    Rung,
    at_finite_channels,
    at_infinite_channels,
    best,
    has_channel_factor,
)
from meanfield.verification.verdicts import Verdict
from sims.cnn_overlap import claims
from sims.cnn_overlap import claims as exponents
from sims.cnn_overlap.__main__ import with_theory
from tests.statistics import consistent


def _ladder(draws=600, **changes):
    """A small ladder of nets with predictions beside, as the simulation saves it; with half the channels, too, where
    theory does not know the net's terms at finite channels."""
    rungs = []
    for depth in (3, 6):
        shared = {"grid": (4,), "kernel": (3,), "readout": "convolution", "outputs": 20, "channels": 64} | changes
        net = mf.ConvNet(depth=depth, **shared)
        nets = [net] if has_channel_factor(net) else [net, net.replace(channels=32)]
        measure = mf.Energies(controls=not controls_refusal(net, None))
        rungs.append(with_theory([(net, mf.simulate(net, measure=measure, draws=draws, seed=depth)) for net in nets]))
    return xr.concat(rungs, dim="depth", join="outer", combine_attrs="override").assign_coords(depth=[3, 6])


@pytest.fixture(scope="module")
def ladder():
    return _ladder()


def _verdicts(ladder):
    """Growth, mean field, sum of minima."""
    judges = claims.judge_growth, claims.judge_mean_field, claims.judge_sum_of_minima
    return [judge(ladder, "label_term").verdict for judge in judges]


def test_findings_tell_the_laws_apart(ladder):
    """ReLU refutes the sum of minima; for linear nets it is exact, so the mean field cannot be told from it."""
    assert _verdicts(ladder) == [Verdict.CONFIRMED, Verdict.CONFIRMED, Verdict.REFUTED]
    assert _verdicts(_ladder(activation="linear")) == [Verdict.CONFIRMED, Verdict.INCONCLUSIVE, Verdict.CONFIRMED]


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"padding": "zero"}, "as layers lose signals at edges"), ({"activation": "tanh"}, "as smooth gates")],
)
def test_nets_without_a_power_law_are_not_said_to_have_one(changes, why):
    """Negative control: at edges and behind smooth gates the label term grows as no power of the layer in the end."""
    net = mf.ConvNet(depth=6, channels=32, grid=(4,), kernel=(3,), readout="convolution", **changes)
    assert exponents.no_power_law(net).startswith(why)
    assert not exponents.deep_exponents(net)


def test_too_few_draws_are_inconclusive():
    assert set(_verdicts(_ladder(draws=8))) == {Verdict.INCONCLUSIVE}


def test_no_allowance_is_granted_where_theory_has_the_factor(ladder):
    """Few input channels are part of it; output terms have one site's ratio, whose size is granted."""
    for drawn in (ladder, _ladder(draws=60, input_channels=3)):
        found = claims.findings(drawn)
        granted = {finding.claim.split(" ")[0] for finding in found if "allowance" in finding.evidence}
        assert granted <= {"Output", "output", "eta*"}
        of_label = [finding for finding in found if finding.claim.startswith("label term")]
        assert not any("allowance" in finding.evidence for finding in of_label)


def _tilted(ladder, factor):
    """The ladder as it would be if drawn label terms were these factors of what they are, by layer."""
    limit = ladder["label_term_limit"] * factor
    return ladder.assign(label_term_limit=limit)


def test_an_error_of_the_stated_power_is_refuted_and_a_small_one_is_not(ladder):
    """Negative control: the data tilted by what the report says that this run would refute."""
    least = claims.power(ladder, "label_term")
    layer = ladder["layer"] / 6
    assert 0 < least.exponent < 1
    assert 0 < least.prefactor < 0.2
    for sign in (1, -1):
        steeper, scaled = _tilted(ladder, layer ** (sign * least.exponent)), _tilted(ladder, 1 + sign * least.prefactor)
        assert _verdicts(steeper)[0] is Verdict.REFUTED
        assert _verdicts(scaled)[1] is Verdict.REFUTED
        slightly = _tilted(ladder, layer ** (sign * least.exponent / 10))
        assert _verdicts(slightly)[0] is Verdict.CONFIRMED


def test_finite_channels_left_out_are_refuted(ladder):
    """Negative control: what is drawn at 64 units, taken for that at infinitely many."""
    columns = {f"label_term_limit{end}": ladder[f"adjusted_label_term{end}"] for end in ("", "_stderr", "_covariance")}
    assert _verdicts(ladder.assign(columns))[1] is Verdict.REFUTED


def _rung(channels, **changes):
    net = mf.ConvNet(depth=4, channels=channels, grid=(4,), kernel=(3,), readout="convolution", **changes)
    drawn = mf.simulate(net, measure=mf.Energies(controls=net.padding == "circular"), draws=400, seed=channels)
    return Rung(net, drawn, mf.predict(net, level="mean_field"))


@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_two_numbers_of_channels_lead_to_the_mean_field(padding):
    """Extrapolated label terms agree with it in standard errors alone; drawn ones do not."""
    many, few = (_rung(channels, padding=padding) for channels in (64, 32))
    limit, expected = at_infinite_channels(many, few), many.leading["label_term"].values
    assert consistent(limit["label_term_limit"] - expected, limit["label_term_limit_stderr"], 400)
    if padding == "circular":
        drawn = many.drawn["adjusted_label_term"] - expected
        assert not consistent(drawn, many.drawn["adjusted_label_term_stderr"], 400)
    assert not limit["extrapolation_left"].any()
    scale = limit["label_term_limit"].mean() ** -0.5
    np.testing.assert_allclose(limit["label_learning_rate_scale_limit"], scale)


def test_extrapolation_is_exact_for_what_is_linear_in_one_over_channels():
    """Made-up means (1 + 7/C) times one site's ratio and the mean field; errors by independence of both draws."""
    rungs = []
    for channels in (60, 20):
        net = mf.ConvNet(depth=4, channels=channels, grid=(5,), kernel=(3,), readout="convolution", padding="zero")
        leading = mf.predict(net, level="mean_field")
        finite = at_finite_channels(Rung(net, xr.Dataset(), leading))["label_term"].values
        columns = {
            "label_term": ("layer", (1 + 7 / channels) * finite),
            "label_term_covariance": (("layer", "layer_other"), np.diag(finite**2)),
            "label_term_largest_share": ("layer", np.full(4, 1 / channels)),
        }
        rungs.append(Rung(net, xr.Dataset(columns), leading))
    limit, expected = at_infinite_channels(*rungs), rungs[0].leading["label_term"].values
    np.testing.assert_allclose(limit["label_term_limit"], expected)
    np.testing.assert_allclose(limit["label_term_limit_stderr"], expected * np.sqrt(9 + 1) / 2)
    np.testing.assert_allclose(limit["label_term_limit_largest_share"], 1 / 20)


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({}, True),
        ({"readout": "pooled"}, True),
        ({"padding": "zero"}, False),
        ({"activation": "relu"}, True),
        ({"activation": "relu", "readout": "pooled"}, False),
    ],
    ids=["linear", "linear, pooled", "linear, edges", "relu", "relu, pooled"],
)
def test_where_theory_has_the_factor(options, known):
    """Linear nets with edges have it, too, but it takes longer than a second run."""
    plain = {"depth": 4, "channels": 32, "grid": (24,), "readout": "convolution", "activation": "linear"}
    net = mf.ConvNet(**plain | options)
    assert has_channel_factor(net) == known


def test_linear_nets_are_granted_what_extrapolation_leaves():
    rungs = []
    for channels in (60, 20):
        net = mf.ConvNet(
            depth=2, channels=channels, grid=(24,), readout="convolution", activation="linear", padding="zero"
        )
        leading = mf.predict(net, level="mean_field")
        finite = at_finite_channels(Rung(net, xr.Dataset(), leading))["label_term"].values
        columns = {
            "label_term": ("layer", (1 + 6 / channels) * finite),
            "label_term_covariance": (("layer", "layer_other"), np.diag(finite**2)),
            "label_term_largest_share": ("layer", np.full(2, 0.1)),
        }
        rungs.append(Rung(net, xr.Dataset(columns), leading))
    np.testing.assert_allclose(at_infinite_channels(*rungs)["extrapolation_left"], 3 * 0.1**2)


def test_one_site_is_exact_at_any_width():
    net = mf.MLP(depth=5, width=12, outputs=3)
    exact, leading = (mf.predict(net, level=level) for level in ("exact", "mean_field"))
    finite = at_finite_channels(Rung(net, xr.Dataset(), leading))
    for name in ("label_term", "output_term", "update_energy", "learning_rate_scale", "label_learning_rate_scale"):
        np.testing.assert_allclose(finite[name], exact[name])
    ratio = exact["overlap_energy"] / leading["overlap_energy"]
    np.testing.assert_allclose(Rung(net, xr.Dataset(), leading).ratios["overlap_energy"], ratio)


def test_the_adjusted_estimate_is_taken_where_there_is_one():
    assert best(xr.Dataset({"label_term": 1.0, "adjusted_label_term": 1.0}), "label_term") == "adjusted_label_term"
    assert best(xr.Dataset({"label_term": 1.0}), "label_term") == "label_term"


def test_whole_update_of_theory_is_a_rival_of_the_transfer_rule(ladder):
    """Its slope at these depths, of which finite channels make a part; without it, the label term's."""
    finding = claims.judge_exponent(ladder, "learning_rate_scale")
    slope = exponents.predicted_scale_slope(ladder, "learning_rate_scale", "mean_field")
    assert f"{slope:.3f}, the mean field's of the whole update" in finding.rival
    unknown = ladder.drop_vars(["learning_rate_scale_mean_field", "learning_rate_scale_finite_channels"])
    assert "slope of the label term" in claims.judge_exponent(unknown, "learning_rate_scale").rival


def _drawn_as(ladder, exponent):
    """The ladder if drawn label terms and their mean field both grew as this power of the layer."""
    growth = ladder["layer"].astype(float) ** exponent
    terms = {name: 0 * ladder[name] + growth for name in ("label_term_limit", "label_term_mean_field")}
    relative = terms["label_term_limit"] / ladder["label_term_limit"]
    both = relative * relative.rename(layer="layer_other")
    covariance = (ladder["label_term_limit_covariance"] * both).transpose(*ladder["label_term_limit_covariance"].dims)
    return ladder.assign(terms | {"label_term_limit_covariance": covariance})


@pytest.mark.parametrize(
    ("exponent", "verdict"),
    [(3.0, Verdict.CONFIRMED), (3.4, Verdict.REFUTED), (4.13, Verdict.REFUTED), (2.2, Verdict.REFUTED)],
)
def test_agreement_with_our_theory_is_not_the_power_that_was_asked(ladder, exponent, verdict):
    """Whatever the exponent, theory agrees with these draws; only one near 3 is l^3."""
    made = _drawn_as(ladder, exponent)
    found = claims.judge_growth(made, "label_term")
    assert found.verdict is Verdict.CONFIRMED
    assert f"exponent, {exponent:.3f}," in found.claim
    assert "l^3" not in found.claim
    asked = claims.judge_exponent(made, "label_term")
    assert (asked.verdict, "grows as l^3" in asked.claim) == (verdict, True)


@pytest.fixture(scope="module")
def deep():
    """Mean fields of deep nets under both readouts, by name of the readout."""
    plain = {"depth": 4, "channels": 256, "grid": (8,), "kernel": (3,), "outputs": 10}
    nets = {
        "convolution": mf.ConvNet(**plain, readout="convolution"),
        "pooled": mf.ConvNet(**plain, readout="pooled", head="fan_in"),
    }
    return {name: exponents.deep_exponents(net) for name, net in nets.items()}


@pytest.mark.parametrize(
    ("name", "convolution", "pooled"),
    [
        ("label_term", Verdict.CONFIRMED, Verdict.REFUTED),
        ("output_term", Verdict.REFUTED, Verdict.REFUTED),
        ("learning_rate_scale", Verdict.REFUTED, Verdict.REFUTED),
        ("label_learning_rate_scale", Verdict.CONFIRMED, Verdict.CONFIRMED),
    ],
)
def test_limits_of_deep_nets(deep, name, convolution, pooled):
    """Under a pooled readout B_l grows as l^5 within a net although the eta* of B falls as L^(-3/2)."""
    for readout, verdict in (("convolution", convolution), ("pooled", pooled)):
        assert claims.judge_limit(deep[readout], name).verdict is verdict, readout


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((2.9, 2.95), Verdict.CONFIRMED),
        ((2.9, 2.8), Verdict.INCONCLUSIVE),
        ((3.8, 3.5), Verdict.INCONCLUSIVE),
        ((3.5, 3.6), Verdict.REFUTED),
        ((2.3, 2.2), Verdict.REFUTED),
    ],
)
def test_a_limit_needs_exponents_that_come_near(values, verdict):
    dataset = xr.Dataset({"label_term_deep": ("deep_depth", list(values))})
    assert claims.judge_limit(dataset, "label_term").verdict is verdict
