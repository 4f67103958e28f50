"""The command on padding: verdicts, what must be refuted, figure, report, refusals."""

import numpy as np
import pytest
import xarray as xr

from figures import cnn_padding as figure
from meanfield.verification.verdicts import Verdict
from sims.cnn_padding import claims
from tests.sims.claim_controls import SCALE, put

SMALL = ["--lines", "3", "6", "--squares", "3", "--depths", "2", "4", "8", "--channels", "64", "--workers", "1"]
FAR = ["--far-lines", "8", "16", "32", "--far-squares", "4", "8"]


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("cnn_padding")


def test_verdicts(finished):
    assert claims.judge_mean_field(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_exponent(finished).verdict is not Verdict.CONFIRMED
    assert claims.judge_uniform_correction(finished).verdict is Verdict.REFUTED
    assert claims.judge_turning(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_half(finished, "1D linear").verdict is Verdict.CONFIRMED
    half = claims.judge_half(finished, "1D ReLU")
    assert half.verdict is Verdict.INCONCLUSIVE
    assert half.evidence.endswith("longer lines (--far-lines) decide, draws do not")
    assert claims.judge_missing_terms(finished).verdict is Verdict.CONFIRMED
    assert len(claims.JUDGES.findings(finished)) == len(claims.JUDGES)


def test_label_terms_decay_by_the_eigenvalue(finished):
    assert claims.judge_decay(finished, "3 x 3").verdict is Verdict.CONFIRMED
    assert float(finished["transport_eigenvalue"].sel(grid="3 x 3")) == pytest.approx(((1 + 2**0.5) / 3) ** 2)


# Negative controls ------------------------------------------------------------------------------------------


def test_swapped_paddings_are_refuted(finished):
    swapped = finished["label_term_mean_field"].sel(padding=["circular", "zero"])
    swapped = swapped.assign_coords(padding=finished["padding"])
    assert claims.judge_mean_field(finished.assign(label_term_mean_field=swapped)).verdict is Verdict.REFUTED


def test_a_true_constant_factor_is_not_refuted(finished):
    """Scales under zero padding that are 1.5 times the circular ones at every depth, as Zhang et al. 2026 have it."""
    scale = finished[claims.LABEL_SCALE].copy()
    scale.loc[{"padding": "zero"}] = 1.5 * scale.sel(padding="circular").values
    finding = claims.judge_exponent(finished.assign({claims.LABEL_SCALE: scale}))
    assert finding.verdict is not Verdict.REFUTED


def test_the_eigenvalue_of_a_stencil_with_a_dropped_offset_is_refuted(finished):
    """Two of three taps keep a quarter of the signal on a square, not (1 + sqrt 2)^2 / 9."""
    dropped = finished.assign(transport_eigenvalue=xr.full_like(finished["transport_eigenvalue"], 0.25))
    assert claims.judge_decay(dropped, "3 x 3").verdict is Verdict.REFUTED


def test_depths_that_grow_with_the_grid_alone_are_refuted(finished):
    sites = finished["sites"] + 1.0
    by_grid = finished["turning_depth"].notnull() * sites
    linear = finished.assign(turning_depth=by_grid, half_depth=by_grid)
    assert claims.judge_turning(linear).verdict is Verdict.REFUTED
    assert claims.judge_half(linear, "1D linear").verdict is Verdict.REFUTED


def test_a_bound_for_fewer_taps_is_refuted(finished):
    weak = finished.assign(missing_bound=finished["missing_bound"] / finished["set_taps"])
    assert claims.judge_missing_terms(weak).verdict is Verdict.REFUTED
    without = claims.judge_missing_terms(finished.assign(set_taps=xr.ones_like(finished["set_taps"])))
    assert without.verdict is Verdict.INCONCLUSIVE
    assert without.evidence.endswith("sets with more taps decide, draws do not")


# Output -----------------------------------------------------------------------------------------------------


def test_figure_shows_the_numbers(finished):
    _, profile, drawn, far = figure.draw(finished).axes
    zero, circular = (finished["label_term_by_site_mean_field"].sel(padding=name)[0] for name in ("zero", "circular"))
    np.testing.assert_allclose(profile.lines[0].get_ydata(), zero / circular.mean())
    theory = finished["label_term_mean_field"].sel(grid="4")
    lines = [np.asarray(line.get_ydata()) for line in drawn.lines]
    ratio = (theory.sel(padding="zero") / theory.sel(padding="circular")).values
    assert any(len(line) == len(ratio) and np.allclose(line, ratio) for line in lines)
    at = finished["far_ratio"].sel(family="1D ReLU", sites=8)
    np.testing.assert_allclose(far.lines[0].get_ydata(), at)


def test_a_correction_by_padding_is_followed_until_a_quarter_is_lost(smoke_run):
    """As l^(1/10) up to there, and otherwise beyond it."""
    dataset = smoke_run("cnn_padding")
    layer = dataset["far_layer"]
    lost = 0.2 * (layer / 4) ** 0.1
    bent = lost.where(lost <= 0.25, 0.25 + 0.1 * np.log(layer / layer.max()) ** 2)
    assert claims.correction_exponent(dataset.assign(far_ratio=1 - bent)) == pytest.approx(0.1)


@pytest.mark.parametrize(("fraction", "judged"), [(0.49, True), (0.51, False)])
def test_lines_of_which_half_is_boundary_are_not_judged(fraction, judged, smoke_run):
    dataset = smoke_run("cnn_padding")
    changed = 0.1 + 0 * dataset["boundary_fraction"]
    changed.loc[{"grid": claims._line(dataset, 0)}] = fraction
    evidence = claims.judge_exponent(dataset.assign(boundary_fraction=changed)).evidence
    assert ("not judged" not in evidence) == judged


# Worlds in which claims of this study get another verdict: their negative controls.


def padding_as_printed(runs):
    """Scales off by one factor at every depth, and a share lost that is the boundary fraction at every layer."""
    dataset = runs["cnn_padding"]
    circular = dataset[SCALE].sel(padding="circular")
    dataset = put(dataset, SCALE, 1.2 * circular, padding="zero")
    lost = 0 * dataset["far_ratio"] + dataset["far_boundary_fraction"]
    return {"cnn_padding": dataset.assign(far_ratio=1 - lost)}


def padding_of_another_exponent(runs):
    """Scales whose ratio grows as the depth on every grid."""
    dataset = runs["cnn_padding"]
    circular = dataset[SCALE].sel(padding="circular")
    return {"cnn_padding": put(dataset, SCALE, circular * dataset["depth"], padding="zero")}


def more_is_missing(runs):
    dataset = runs["cnn_padding"]
    return {"cnn_padding": dataset.assign(missing_largest=dataset["missing_largest"] * dataset["set_taps"])}


CONTROLS = {
    "A7a": padding_as_printed,
    "A7b": padding_of_another_exponent,
    "A8": more_is_missing,
}
