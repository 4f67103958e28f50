"""One step of other optimizers in residual nets: descent as a case, closed forms, draws at three widths, and laws."""

from math import pi, sqrt

import numpy as np
import pytest

import meanfield as mf
from meanfield import optimizers
from meanfield.optimizers.first_steps import FirstStep
from meanfield.parameterizations import hyperparameter_table
from meanfield.theory.laws import residual_exponent
from meanfield.theory.learning_rate import law_over_depth
from meanfield.theory.mean_field import residual_steps
from meanfield.theory.mean_field.residual_steps import GatePaths, GateWalk, PairGates, residual_step_terms
from tests.statistics import consistent

BOTH = ("adamw", "muon")


def _net(scaling="init", block_depth=1, blocks=4, **fields):
    return mf.ResidualMLP(**{"depth": blocks, "width": 64, "scaling": scaling, "block_depth": block_depth} | fields)


@pytest.mark.parametrize("scaling", ["init", "multiplier_sqrt", "multiplier_linear", "none", 0.75])
@pytest.mark.parametrize("fields", [{}, {"stem": 1}, {"stem": 2, "tail": 2}, {"activation": "linear", "head": "mup"}])
def test_births_of_descent_give_its_label_term(scaling, fields):
    for block_depth in (1, 2, 3):
        net = _net(scaling, block_depth, **fields)
        expected = mf.predict(net, level="mean_field")["label_term"]
        np.testing.assert_allclose(residual_step_terms(net, FirstStep("sgd")).label, expected, rtol=1e-12)


def test_births_of_descent_serve_given_inputs_and_other_sizes_of_errors():
    net = _net("multiplier_sqrt", 2, stem=1, input_width=8)
    inputs = np.random.default_rng(0).normal(size=net.input_shape)
    expected = mf.predict(net, level="mean_field", inputs=inputs)["label_term"]
    terms = residual_step_terms(net, FirstStep("sgd"), inputs)
    np.testing.assert_allclose(terms.label, expected, rtol=1e-12)
    np.testing.assert_allclose(terms.update, terms.label + terms.output, rtol=1e-12)
    forgetful = residual_step_terms(net, FirstStep("muon"), inputs)
    np.testing.assert_array_equal(forgetful.update, forgetful.label)


def test_plain_nets_have_the_closed_forms_of_one_site():
    layer, net = np.arange(1, 9), mf.MLP(depth=8, width=48)
    signs = 48**2 / (2 * pi) * ((2 / pi) * layer * (2 * layer**2 + 1) / 6 + (1 - 2 / pi) * (layer - 1 / 2))
    np.testing.assert_allclose(residual_step_terms(net, FirstStep("lion")).update, signs, rtol=1e-12)
    polar = layer * (2 * layer**2 + 1) / 6
    np.testing.assert_allclose(residual_step_terms(net, FirstStep("muon")).update, polar, rtol=1e-12)


def test_one_block_of_one_layer_is_known():
    """T_1 = a |x|_1 sign(U_1), which is 0 where the readout's gate is closed."""
    for scaling in ("init", "multiplier_sqrt", 1.5):
        update = residual_step_terms(_net(scaling, blocks=1), FirstStep("adamw")).update
        np.testing.assert_allclose(update, 64**2 / (2 * pi) / 2, rtol=1e-12)


def test_averages_of_pairs_are_those_over_walks():
    variances = np.array([1.0, 1.3, 2.0, 2.1])
    walk = GateWalk(variances, gated=True)
    exact, walks = PairGates(walk), GatePaths(walk, 2**14, 0)
    for first in range(4):
        assert walks.mean(walks.gate(first)) == exact.mean(exact.gate(first)) == 0.5
        for second in range(4):
            both = walks.mean_open(second, walks.gate(first) + walks.constant(2.0))
            assert both == pytest.approx(exact.mean_open(second, exact.gate(first) + exact.constant(2.0)), abs=1e-3)
    assert exact.mean_open(1, exact.gate(1)) == 0.5


def test_the_scatter_between_scramblings_is_the_error_that_is_stated(monkeypatch):
    net, step = _net("multiplier_sqrt", blocks=8), FirstStep("adamw")
    stated = residual_step_terms(net, step)
    monkeypatch.setattr(residual_steps, "SCRAMBLINGS", 24)
    finer = residual_step_terms(net, step)
    assert stated.attrs["gate_paths"] == 2 * 4 * 2**13
    assert 1e-5 < finer.attrs["relative_error"] < stated.attrs["relative_error"] < 4e-3
    assert np.abs(stated.update / finer.update - 1).max() < 6 * stated.attrs["relative_error"]
    assert not residual_step_terms(net.replace(activation="linear"), step).attrs


def _allowance(blocks, width):
    """By what share drawn label terms leave their limit: |x|_1^2 and sizes of errors vary by 1/n, blocks add to it."""
    return (1.5 + blocks / 4) / width


@pytest.mark.parametrize("optimizer", BOTH)
@pytest.mark.parametrize(
    ("scaling", "block_depth", "blocks", "fields"),
    [
        ("init", 1, 8, {}),
        ("init", 2, 4, {"stem": 1, "input_width": 16}),
        ("multiplier_sqrt", 1, 16, {}),
        ("multiplier_linear", 2, 4, {"tail": 1}),
        ("multiplier_linear", 3, 2, {"stem": 2}),
        ("multiplier_sqrt", 1, 4, {"activation": "linear"}),
    ],
)
def test_draws_tend_to_it_as_the_width_grows(optimizer, scaling, block_depth, blocks, fields):
    excesses = []
    for width, draws in ((64, 256), (128, 128), (256, 48)):
        net = _net(scaling, block_depth, blocks, width=width, **fields)
        measure = mf.Energies(optimizer=optimizer)
        measured = mf.simulate(net, draws=draws, seed=1, measure=measure)
        predicted = residual_step_terms(net, FirstStep(optimizer))
        ratio, stderr = (measured[name] / predicted.label for name in ("label_term", "label_term_stderr"))
        stderr = np.hypot(stderr, predicted.attrs.get("relative_error", 0.0))
        allowance = _allowance(blocks, width)
        assert consistent(ratio - 1, stderr, draws, allowance)
        for missed in (0.7, 1.4):
            assert not consistent(ratio - missed, stderr, draws, allowance)
        excesses.append((float((ratio - 1)[-1]), float(stderr[-1])))
    (coarse, coarse_error), *_, (fine, fine_error) = excesses
    assert abs(fine) < abs(coarse) + 3 * np.hypot(coarse_error, fine_error)


def _predicted(net, optimizer):
    return mf.predict(net, level="mean_field", optimizer=optimizer)


@pytest.mark.parametrize("optimizer", [*BOTH, "muon-adamw"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_few_outputs_change_as_predicted(optimizer, outputs):
    """Whoever the error is of: outputs drive layers along their own features by a share of outputs over width."""
    net = _net("multiplier_linear", 2, width=128, outputs=outputs, stem=1)
    measure = mf.Energies(optimizer=optimizer)
    measured, predicted = mf.simulate(net, draws=192, seed=2, measure=measure), _predicted(net, optimizer)
    for name in ("label_term", "output_term", "update_energy", "relative_update_energy", "output_update_energy"):
        ratio, stderr = measured[name] / predicted[name], measured[f"{name}_stderr"] / predicted[name]
        assert consistent(ratio - 1, stderr, 192, (4 + 4 * outputs) / 128), name
    assert not consistent(measured["output_update_energy"] / predicted["update_energy"][-1] - 1, 0.1, 192, 8 / 128)


def test_what_would_be_wrong_is_seen(monkeypatch):
    """The rest of the sign dropped; a counted twice, as descent does; the shape factor forgotten."""
    draws, net = 192, _net("multiplier_sqrt", width=128, blocks=4, stem=1, input_width=16)
    measured = mf.simulate(net, draws=draws, seed=3, measure=mf.Energies(optimizer="adamw"))
    stderr, allowance = measured["label_term_stderr"] / measured["label_term"], _allowance(4, 128)

    def agrees(predicted, of=measured, error=stderr):
        return consistent(predicted / of["label_term"] - 1, error, draws, allowance)

    right = _predicted(net, "adamw")["label_term"]
    assert agrees(right)
    twice = net.replace(scaling="multiplier_linear")
    assert not agrees(_predicted(twice, "adamw")["label_term"])
    muon = mf.simulate(net, draws=draws, seed=3, measure=mf.Energies(optimizer="muon"))
    muon_error = muon["label_term_stderr"] / muon["label_term"]
    assert agrees(_predicted(net, "muon")["label_term"], muon, muon_error)
    assert not agrees(_predicted(net, "shampoo")["label_term"], muon, muon_error)

    def without_rest(self, level, linear, signed, fresh):
        error = self.error(level)
        return whole(self, level, linear + signed * sqrt(2 / (pi * error)), 0.0, fresh)

    whole = residual_steps.Stream.change
    monkeypatch.setattr(residual_steps.Stream, "change", without_rest)
    assert not agrees(_predicted(net, "adamw")["label_term"])


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "lion", "shampoo", "soap", "muon_kimi"])
def test_laws_over_depth_are_those_of_the_tables(optimizer):
    """Zheng et al. 2026: 1/sqrt(L) with 1/sqrt(L) branches of one layer, no power with 1/L branches of more."""
    for scaling, block_depth in (("multiplier_sqrt", 1), ("multiplier_linear", 2), ("multiplier_linear", 3)):
        table = hyperparameter_table(optimizer, block_depth).rows["learning_rate"]["hidden"]
        assert residual_exponent(scaling, block_depth, optimizer=optimizer) == table.depth
        assert law_over_depth(_net(scaling, block_depth), optimizer=optimizer) == (table.depth, "")


def test_laws_over_depth_by_scaling():
    of = {
        scaling: [residual_exponent(scaling, k, optimizer="adamw") for k in (1, 2, 3, 4)] for scaling in ("init", 0.7)
    }
    assert of["init"] == [-1, -0.5, 0, 0.5]
    assert of[0.7] == pytest.approx([-0.3] * 4)
    assert residual_exponent(1.5, 2, stem=1, optimizer="muon") == 0 == residual_exponent(1.0, 1, optimizer="muon")
    assert residual_exponent(2.5, 2, tail=1, optimizer="muon") == 0.5
    assert np.isnan(residual_exponent("none", 1, optimizer="muon"))
    assert law_over_depth(mf.MLP(depth=4, width=8), optimizer="adamw") == (-1.5, "")
    assert "depends on more than the signs" in law_over_depth(_net(), optimizer="sso")[1]
    with pytest.raises(ValueError, match="depends on more than the signs"):
        residual_exponent("init", 1, optimizer="sophia")
    exponent, why = law_over_depth(mf.TiedLoop(depth=4, width=8), optimizer="adamw")
    assert np.isnan(exponent)
    assert "uses of one matrix" in why


@pytest.mark.parametrize(("scaling", "block_depth", "stem"), [("init", 1, 0), ("init", 2, 0), (0.6, 1, 0), (1.0, 2, 1)])
def test_local_slopes_tend_to_the_law(scaling, block_depth, stem):
    law = residual_exponent(scaling, block_depth, stem, optimizer="muon")
    scales = [
        residual_step_terms(_net(scaling, block_depth, depth, stem=stem), FirstStep("muon")).values[
            "learning_rate_scale"
        ]
        for depth in (8, 16, 32, 64, 128, 256)
    ]
    wide = [_net(scaling, block_depth, depth, stem=stem, outputs=1, width=4096) for depth in (8, 16)]
    few = [_predicted(net, "muon")["learning_rate_scale"] for net in wide]
    np.testing.assert_allclose(few, scales[:2], rtol=0.02)
    off = np.abs(np.diff(np.log2(scales)) - law)
    assert np.all(np.diff(off) < 0)
    assert off[-1] < 0.05


@pytest.mark.parametrize(
    ("net", "optimizer", "why"),
    [
        (_net(inputs=2), "adamw", "one sample and one site"),
        (mf.ResidualConvNet(depth=2, channels=8, grid=(4,)), "muon", "one sample and one site"),
        (_net(activation="gelu"), "adamw", "open or closed"),
        (_net(), "sophia", "more than the signs or the polar factor"),
        (_net(), optimizers.Muon(), "iterations"),
        (_net(blocks=60_000), "adamw", "hours of a processor"),
    ],
)
def test_what_has_no_recursion_says_why(net, optimizer, why):
    with pytest.raises(ValueError, match=why):
        residual_step_terms(net, FirstStep(optimizer))


def test_a_stream_from_given_values_is_refused():
    with pytest.raises(ValueError, match="stem=1"):
        mf.predict(_net(), level="mean_field", optimizer="muon", inputs=np.ones((1, 64)))


def test_lists_of_units_and_deep_nets_are_served():
    net = _net("multiplier_sqrt", 2, stem=1)
    chain = mf.Chain.of(net)
    np.testing.assert_allclose(_predicted(chain, "muon")["update_energy"], _predicted(net, "muon")["update_energy"])
    with pytest.raises(OverflowError, match="range of floats"):
        _predicted(_net("none", blocks=2000), "muon")


def test_signs_of_all_blocks_are_summed_whatever_is_held_at_once(monkeypatch):
    net, step = _net("multiplier_sqrt", blocks=24), FirstStep("adamw")
    expected = residual_step_terms(net, step).update
    monkeypatch.setattr(residual_steps, "OVERLAPS_AT_ONCE", 1)
    np.testing.assert_allclose(residual_step_terms(net, step).update, expected, rtol=1e-12)
