"""The command on finite channels: verdicts on draws and on laws put in their place, files, refusals."""

import numpy as np
import pytest
import xarray as xr

from figures import cnn_finite_channels as figure
from meanfield.verification.verdicts import Verdict
from sims import cnn_finite_channels
from sims.cnn_finite_channels import STUDY as simulation
from sims.cnn_finite_channels import one_site
from tests.sims.claim_controls import SCALE
from tests.sims.commands import finished_run

CORRECTION = cnn_finite_channels.CORRECTION
SMALL = ["--preset", "smoke", "--workers", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("channels") / "run.nc"
    return finished_run(simulation, [*SMALL, "--depths", "2", "6", "--slope-draws", "40"], path)


def _drawn_as(dataset, law):
    """The run with a law in the place of what was drawn, and a hundred times the draws."""
    stderr = dataset[f"{CORRECTION}_stderr"] / 10
    return dataset.assign({CORRECTION: law, f"{CORRECTION}_stderr": stderr, "label_term_stderr": stderr})


def test_draws_do_not_refute_what_is_true(finished):
    """And refute what is far from it: one prefactor for all claims."""
    for judge in (
        cnn_finite_channels.judge_function_of_ratio,
        cnn_finite_channels.judge_one_site_law,
        cnn_finite_channels.judge_slopes,
    ):
        assert judge(finished).verdict is not Verdict.REFUTED
    assert cnn_finite_channels.judge_added_variance(finished).verdict is Verdict.CONFIRMED
    assert cnn_finite_channels.judge_conditional_mean(finished).verdict is Verdict.REFUTED
    assert cnn_finite_channels.judge_prefactors(finished).verdict is Verdict.CONFIRMED


def test_one_site_law_is_told_from_a_uniform_correction(finished):
    right = _drawn_as(finished, finished[f"{CORRECTION}_one_site"])
    assert cnn_finite_channels.judge_uniform_in_depth(right).verdict is Verdict.REFUTED
    assert cnn_finite_channels.judge_function_of_ratio(right).verdict is Verdict.CONFIRMED
    assert cnn_finite_channels.judge_one_site_law(right).verdict is Verdict.CONFIRMED


def test_a_uniform_correction_would_be_seen(finished):
    """Negative control: 20/C at every depth."""
    uniform = _drawn_as(finished, (20 / finished["channels"]).broadcast_like(finished[CORRECTION]))
    assert cnn_finite_channels.judge_uniform_in_depth(uniform).verdict is Verdict.CONFIRMED
    assert cnn_finite_channels.judge_function_of_ratio(uniform).verdict is Verdict.REFUTED
    assert cnn_finite_channels.judge_one_site_law(uniform).verdict is Verdict.REFUTED


def test_exchanged_channels_are_seen(finished):
    """Negative control: theory for the other end's channels at the same depths, and added variances in wrong order."""
    name = f"{CORRECTION}_one_site"
    depth, channels = finished["correction_depth"], finished["channels"]
    exact = np.vectorize(lambda layers, width: one_site(int(layers), int(width)))
    exchanged = depth.copy(data=exact(depth.values, channels.values[::-1, None]))
    right = _drawn_as(finished, finished[name])
    assert cnn_finite_channels.judge_one_site_law(right.assign({name: exchanged})).verdict is Verdict.REFUTED
    names = ["overlap_variance_by_width", "overlap_variance_stderr_by_width"]
    backwards = finished.assign({key: finished[key].copy(data=finished[key].values[::-1]) for key in names})
    assert cnn_finite_channels.judge_added_variance(backwards).verdict is Verdict.REFUTED


def test_a_dropped_offset_is_seen(finished):
    """Negative control: theory for two taps in the place of three."""
    name = f"{cnn_finite_channels.SCALE}_mean_field"
    wrong = finished[name].copy()
    wrong.loc[{"stencil": "3 on 8"}] = 1.5 * finished[name].sel(stencil="3 on 8").values
    assert cnn_finite_channels.judge_prefactors(finished.assign({name: wrong})).verdict is Verdict.REFUTED


def test_slopes_as_printed_are_seen(finished):
    """Negative control: scales that fall as Zhang et al. 2026 fitted them for 3, 4 and 5 taps."""
    slopes = xr.DataArray([cnn_finite_channels.PRINTED.get(int(k), -1.5) for k in finished["taps"]], dims="stencil")
    printed = finished["depth"] ** slopes
    exact = {f"{cnn_finite_channels.SCALE}": printed, f"{cnn_finite_channels.SCALE}_stderr": 1e-3 * printed}
    right = finished.assign(exact)
    assert cnn_finite_channels.judge_one_exponent(right).verdict is Verdict.REFUTED
    assert cnn_finite_channels.judge_slopes(right).verdict is Verdict.REFUTED


def test_theory_knows_a_stencil_by_its_taps_and_a_grid_by_its_sites(finished):
    """On circular grids under white inputs neither shape nor dimension enters the mean field."""
    scale, taps, sites = (
        finished[name].values for name in (f"{cnn_finite_channels.SCALE}_mean_field", "taps", "sites")
    )
    for count in np.unique(sites):
        times_taps = (scale * taps[:, None])[sites == count]
        np.testing.assert_allclose(times_taps, times_taps[:1].repeat(len(times_taps), axis=0), rtol=1e-12)


def test_figure_shows_the_numbers(finished):
    panels = figure.draw(finished).axes
    np.testing.assert_array_equal(panels[0].lines[-2].get_ydata(), finished[f"{CORRECTION}_one_site"][-1].values)
    limit = finished[f"{cnn_finite_channels.SCALE}_mean_field"].isel(depth=0).values
    assert any(np.array_equal(line.get_xdata(), limit) for line in panels[3].lines)


# Worlds in which claims of this study get another verdict: their negative controls.


def one_prefactor(runs):
    """Scales of all stencils that are those of the first at every depth."""
    dataset = runs["cnn_finite_channels"]
    first = dataset[SCALE].isel(stencil=0, drop=True)
    return {"cnn_finite_channels": dataset.assign({SCALE: 0 * dataset[SCALE] + first})}


CONTROLS = {
    "A23b": one_prefactor,
}
