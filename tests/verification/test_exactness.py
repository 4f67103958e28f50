"""Draws against the exact expectation: planned from exact spreads, honest where no run has draws enough."""

import re

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.simulation.measures.energies import draw_energies
from meanfield.theory.exact import label_spread, relative_spread
from meanfield.verification.series import LABEL_SPREAD, OVERLAP_SPREAD, draws_needed, is_converged
from meanfield.verification.verdicts import Verdict
from sims.mlp_depth import judge_drawn_share, judge_exact, layer_ranges, share_at_top


def _beside(net, draws):
    """Measured, exact and mean field, with exact spreads."""
    predicted = [mf.predict(net, level=level) for level in ("exact", "mean_field")]
    named = [
        prediction.rename({name: f"{name}_{prediction.attrs['level']}" for name in prediction.data_vars})
        for prediction in predicted
    ]
    spreads = {LABEL_SPREAD: ("layer", label_spread(net)), OVERLAP_SPREAD: ("layer", relative_spread(net))}
    measured = mf.simulate(net, draws=draws, seed=0)
    return xr.merge([measured, *named, xr.Dataset(spreads)], combine_attrs="override")


@pytest.fixture(scope="module")
def moderate():
    return _beside(mf.MLP(depth=12, width=64), 4096)


@pytest.fixture(scope="module")
def square():
    """As deep as wide: B and A need millions of draws, F of the lower layers does not."""
    return _beside(mf.MLP(depth=32, width=32), 1024)


@pytest.mark.parametrize("name", ["label_term", "overlap_energy"])
def test_draws_confirm_the_exact_expectation(moderate, name):
    assert judge_exact(moderate, name).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("name", ["label_term", "overlap_energy"])
def test_a_wrong_expectation_is_refuted(moderate, name):
    """Negative control: 20 % off at every layer."""
    wrong = moderate.assign({f"{name}_exact": 1.2 * moderate[f"{name}_exact"]})
    assert judge_exact(wrong, name).verdict is Verdict.REFUTED


def test_where_depth_is_width_nothing_is_claimed_of_labels(square):
    """Negative control of the plan: by their own errors the drawn output terms would refute the exact ones."""
    wrong = np.abs(square["output_term"] - square["output_term_exact"]) / square["output_term_stderr"]
    assert float(wrong.max()) > 8
    for name in ("label_term", "output_term"):
        finding = judge_exact(square, name)
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert re.search(r"at no layer; about [\d,]+ needed \(1,024 made\)", finding.evidence)
        assert not is_converged(square, name).any()


def test_where_depth_is_width_the_lower_layers_overlap_is_confirmed(square):
    finding = judge_exact(square, "overlap_energy")
    planned = np.flatnonzero(draws_needed(square[OVERLAP_SPREAD]) <= 1024) + 1
    assert finding.verdict is Verdict.CONFIRMED
    assert f"layers {planned[-1] + 1} .. 32 left out, not converged" in finding.evidence
    wrong = square.assign(overlap_energy_exact=1.3 * square["overlap_energy_exact"])
    assert judge_exact(wrong, "overlap_energy").verdict is Verdict.REFUTED


def test_a_planned_mean_that_one_draw_makes_decides_nothing(moderate):
    lone = moderate.assign(label_term_largest_share=0 * moderate["label_term_largest_share"] + 0.3)
    finding = judge_exact(lone, "label_term")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "its mean has not converged; about 6,500 needed (4,096 made)" in finding.evidence


def test_nets_that_one_draw_makes_decide_nothing():
    """Made up: three tenths of a mean in one draw need 6,543 draws; 64 effective ones in place of 100, 6,400."""
    row = {"": 1.0, "_stderr": 0.1, "_exact": 1.0, "_converged": 0.0, "_draws": 4096.0, "_draws_needed": 10.0}
    for largest, evidence in ((0.3, "about 6,500 needed"), (0.1, "about 6,400 needed")):
        values = row | {"_largest_draw": largest, "_effective_draws": 64.0}
        variables = {f"drawn_share{end}": (("head", "drawn_outputs"), [[value] * 2]) for end, value in values.items()}
        finding = judge_drawn_share(xr.Dataset(variables, attrs={"draws": 4096}))
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert f"2 nets have not converged; {evidence} (4,096 made)" in finding.evidence


def test_draws_needed():
    np.testing.assert_array_equal(draws_needed([0.0, 1.0, 12.0], 0.1), [0, 100, 14400])


def test_layer_ranges():
    assert layer_ranges([1, 2, 3, 5, 8, 9]) == "1 .. 3, 5, 8 .. 9"


def test_error_of_the_share_knows_that_both_terms_rise_together():
    """Against the delta method on the draws themselves; without the covariance it would be far off."""
    net = mf.MLP(depth=4, width=32)
    draws = draw_energies(net, 0, range(400))
    output, label = draws["output_term"][:, -1], draws["label_term"][:, -1]
    share, stderr = share_at_top(mf.simulate(net, draws=400, seed=0))
    ratio = output.mean() / label.mean()
    expected = np.std(output - ratio * label, ddof=1) / label.mean() / np.sqrt(400)
    assert share == pytest.approx(ratio, rel=1e-9)
    assert stderr == pytest.approx(expected, rel=1e-6)
    assert stderr < 0.95 * ratio * np.hypot(output.std() / output.mean(), label.std() / label.mean()) / np.sqrt(400)
