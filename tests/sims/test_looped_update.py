"""The command on one update of a loop: slopes, verdicts, controls, figure, refusals."""

import numpy as np
import pytest
import xarray as xr

from meanfield.verification.series import drawn_law, limit_law
from meanfield.verification.verdicts import Verdict
from sims import looped_update as study
from sims.looped_update import STUDY as simulation
from tests.sims.claim_controls import put
from tests.sims.commands import finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("updates") / "run.nc"
    return finished_run(simulation, ["--preset", "smoke", "--draws", "512", "--workers", "1"], path)


def test_verdicts(finished):
    assert study.judge_recursion(finished).verdict is Verdict.CONFIRMED
    assert study.judge_theorem(finished).verdict is Verdict.CONFIRMED
    assert study.judge_aligned(finished).verdict is Verdict.CONFIRMED
    assert study.judge_below_threshold(finished).verdict is Verdict.REFUTED
    assert study.judge_width(finished).verdict is Verdict.REFUTED
    assert len(study.JUDGES.findings(finished)) == len(study.JUDGES)


def test_the_printed_scaling_off_by_a_quarter_is_not_confirmed(finished):
    """Negative control: loops of alpha = 3/2 passed for such of 5/4."""
    renamed = finished.assign_coords(alpha=[0.5, 1.0, 1.25])
    assert study.judge_theorem(renamed).verdict is Verdict.REFUTED


def test_a_tenth_of_an_exponent_is_told_apart(finished):
    """Negative control: isotropic changes that fall by a further L^-0.1 at the same relative errors."""
    names = ("update_energy", "update_energy_stderr")
    tilted = finished.assign({name: finished[name] * finished["loops"] ** -0.1 for name in names})
    assert study.judge_theorem(tilted).verdict is Verdict.REFUTED


def test_limits_of_slopes_are_free_of_corrections():
    """x^-1 (1 + 0.4 / x), whose slope is off by 0.02, tends to x^-1."""
    x = np.array([8.0, 16.0, 32.0, 64.0])
    y = 1 / x * np.exp(0.4 / x)
    made_up = xr.Dataset({"y": ("x", y), "y_stderr": ("x", 0.01 * y)}, {"x": x})
    assert limit_law(made_up, "x", "y").exponent == pytest.approx(-1, abs=1e-12)
    assert drawn_law(made_up, "x", "y").exponent < -1.01
    # With as many points as coefficients, errors are those of an exact fit.
    three = made_up.isel(x=slice(3))
    columns = np.stack([np.log(x[:3]), np.ones(3), 1 / x[:3]], axis=1)
    assert limit_law(three, "x", "y").stderr == pytest.approx(0.01 * np.linalg.norm(np.linalg.inv(columns)[0]))


def test_changes_of_another_scaling_are_not_the_recursion(finished):
    """Negative control: alpha off by 0.05, that is energies off by about L^-0.1."""
    name = "log_update_energy_mean_field"
    shifted = finished.assign({name: finished[name] - 0.1 * np.log(finished["loops"])})
    assert study.judge_recursion(shifted).verdict is Verdict.REFUTED


def test_changes_alike_at_every_width_are_not_refuted(finished):
    """Negative control: aligned updates as flat as isotropic ones."""
    names = ("by_width", "by_width_stderr")
    flat = {name: finished[name].copy() for name in names}
    for name in names:
        flat[name].loc[{"update": "aligned"}] = finished[name].sel(update="isotropic").values
    assert study.judge_width(finished.assign(flat)).verdict is Verdict.CONFIRMED


def test_every_number_stands_at_the_loops_and_width_it_was_drawn_at():
    """Draws replaced by the depth and width of their net; the table by width says at how many loops it was drawn."""

    class Nets:
        def draw(self, runs):
            ends = ("", "_stderr", "_largest_share")
            sizes = [10.0**6 * run.net.depth + run.net.width for run in runs]
            return [xr.Dataset({f"stream_update_energy{end}": ("step", [size]) for end in ends}) for size in sizes]

    options = simulation.parse(["--preset", "smoke", "--loops", "2", "3", "5", "--width", "8"])
    dataset = simulation.measure(options, Nets(), **simulation.checked(options))
    np.testing.assert_array_equal(
        dataset["update_energy"], 1e6 * dataset["loops"].broadcast_like(dataset["update_energy"]) + 8
    )
    loops = dataset.attrs["width_loops"]
    np.testing.assert_array_equal(
        dataset["by_width"], (1e6 * loops + dataset["width"]).broadcast_like(dataset["by_width"])
    )


# Worlds in which claims of this study get another verdict: their negative controls.


def _updates_fall(beyond, *, like_widths=False):
    """Changes that go as (eps L)^2 times L^beyond, and where asked alike at every width."""

    def control(runs):
        dataset = runs["looped_update"]
        for update in ("isotropic", "aligned"):
            if like_widths:
                dataset = put(dataset, "by_width", 0 * dataset["width"] + 1.0, update=update)
            for alpha in map(float, dataset["alpha"].values):
                law = dataset["loops"].astype(float) ** (2 * (1 - alpha) + beyond)
                dataset = put(dataset, "update_energy", law, update=update, alpha=alpha)
        return {"looped_update": dataset}

    return control


CONTROLS = {
    "L5a": _updates_fall(-1.0),
    "L5b": _updates_fall(0.0),
    "L5c": _updates_fall(0.0, like_widths=True),
    "L5d": _updates_fall(-1.0),
}
