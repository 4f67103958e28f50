"""The command on Transformers: verdicts and what would change them, far slopes, figure, report, images, refusals."""

import numpy as np
import pytest

from meanfield.execution import Workers
from meanfield.verification.verdicts import Verdict
from sims.transformer_depth import __main__ as study
from sims.transformer_depth import claims
from sims.transformer_depth.__main__ import STUDY as simulation
from tests.sims import claim_controls

# Relative errors of scales that are made up here.
ERROR = 0.003


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("transformer_depth")


def _as_predicted(dataset, order=("post", "pre")):
    """Drawn scales at both widths that are those of the mean field to 0.3 %, norms in this order."""
    name = claims.LABEL_SCALE
    scale = np.exp(dataset[f"log_{name}_mean_field"]).sel(norm=list(order)).assign_coords(norm=dataset["norm"])
    judged = scale.sel(scaling="none", depth=dataset["wide_depth"].values, drop=True).rename(depth="wide_depth")
    values = {name: scale, f"narrow_{name}": np.sqrt(2) * judged}
    errors = {f"{key}_stderr": ERROR * value for key, value in values.items()}
    shares = {f"{key}_largest_share": 0 * value for key, value in values.items()}
    return dataset.assign(values | errors | shares).assign_attrs(draws=1000)


def test_verdicts(finished):
    assert claims.judge_limit(finished, "post").verdict is Verdict.CONFIRMED
    assert claims.judge_limit(finished, "pre").verdict is Verdict.REFUTED
    assert claims.judge_placement_limit(finished).verdict is Verdict.REFUTED
    assert len(claims.findings(finished)) == len(claims.JUDGES)


def test_scales_of_the_other_norm_are_refuted(finished):
    """Power: to 0.3 % at two depths, slopes of either norm are told apart; the difference is no minimal effect."""
    right, wrong = _as_predicted(finished), _as_predicted(finished, ("pre", "post"))
    for norm in claims.OTHER:
        assert claims.judge_theory(right, norm).verdict is Verdict.CONFIRMED
        assert claims.judge_theory(wrong, norm).verdict is Verdict.REFUTED
    assert claims.judge_placement(_as_predicted(finished, ("pre", "pre"))).verdict is Verdict.CONFIRMED


def test_tangents_as_assumed_are_confirmed(finished):
    """Negative control: one rho for all, whose fluctuations vanish."""
    made = tangents_as_assumed({"transformer_depth": finished})["transformer_depth"].assign_attrs(draws=1000)
    judged = (claims.judge_post_bounded, claims.judge_pre_bounded, claims.judge_one_for_all)
    for judge in (*judged, claims.judge_fluctuations):
        assert judge(made).verdict is Verdict.CONFIRMED


def _made(dataset, **changed):
    """Of many draws, with these values of rho and its like in place of those as assumed, to 0.3 %."""
    made = tangents_as_assumed({"transformer_depth": dataset})["transformer_depth"].assign_attrs(draws=1000)
    names = {f"tangent_propagation{key}_by_width": value for key, value in changed.items()}
    values = {name: (value + 0 * made[name]).transpose(*made[name].dims) for name, value in names.items()}
    return made.assign(values | {f"{name}_stderr": ERROR * value for name, value in values.items()})


def test_tangents_that_grow_are_refuted(finished):
    """rho = l has slope 1; and l^0.5 is no bounded rho where half the width changes its slope by 0.05."""
    layer, width = finished["wide_layer"], finished["width"]
    for judge in (claims.judge_post_bounded, claims.judge_pre_bounded):
        finding = judge(_made(finished, **{"": layer}))
        assert finding.verdict is Verdict.REFUTED
        assert "slope 1.000 (inverse), 1.000 (inverse_sqrt)" in finding.evidence
        narrowed = layer ** (0.5 + 0.05 * (width < width.max()))
        assert judge(_made(finished, **{"": narrowed})).verdict is Verdict.REFUTED


def test_fluctuations_that_vanish_more_slowly_are_not_confirmed(finished):
    made = _made(finished, _spread=finished["width"] ** -0.3)
    assert claims.judge_fluctuations(made).verdict is not Verdict.CONFIRMED


def test_nets_that_are_judged_are_drawn_as_often_as_judges_say():
    options = simulation.parse(["--preset", "smoke"])
    options.workers = Workers(1)
    plan = simulation.checked(options)
    runs = study._runs(options, *(plan[name] for name in ("nets", "blocks", "inputs")))
    judged = [*runs["narrow"], *runs["by_width"]]
    judged += [run for run in runs["streams"] if run.net.scaling == "none" and 2 * run.net.depth <= 64 * claims.WIDE]
    assert {run.draws for run in judged} == {claims.MORE * options.draws}
    assert claims.MORE > 1


def test_slopes_of_theory_tend_to_both_laws(finished):
    local = finished[claims.LOCAL].mean("attention_scale")
    laws = np.array([claims.pre_norm_slope(depth) for depth in local["slope_depth"].values])
    missed = {"post": np.abs(local.sel(norm="post") + 1.5), "pre": np.abs(local.sel(norm="pre") - laws)}
    for norm, distance in missed.items():
        assert distance[-1] < 0.03, norm
        assert distance[-1] < distance[-2], norm


def test_pre_norm_slope_is_that_of_its_law():
    depths = np.array([5e5, 1e6])
    law = depths**-0.5 * np.log(depths) ** -1.5
    assert claims.pre_norm_slope(1e6) == pytest.approx(np.diff(np.log(law))[0] / np.log(2), rel=1e-12)


def test_images_are_drawn_without_a_mean_field(tmp_path, capsys):
    arguments = ["--input", "photo", "--blocks", "1", "4", "8", "--width", "64", "--tokens", "4", "--draws", "2"]
    arguments += ["--outputs", "4", "--far", "1000", "--workers", "1", "--full", "--out", str(tmp_path / "run.nc")]
    assert simulation.main(arguments) == 0
    printed = capsys.readouterr().out
    for words in ("Given inputs have no mean field", "post-norm none inverse_sqrt", "Where the proof", "run.png"):
        assert words in printed


# Worlds in which claims of this study get another verdict: their negative controls.


def _local_slopes(runs, norm, slopes):
    """Slopes of the mean field of one norm put in its place."""
    dataset = runs["transformer_depth"]
    changed = dataset["local_slope_mean_field"].copy()
    changed.loc[{"norm": norm}] = slopes
    return {"transformer_depth": dataset.assign(local_slope_mean_field=changed)}


def post_norm_falls_as_pre_norm(runs):
    return _local_slopes(runs, "post", runs["transformer_depth"]["local_slope_mean_field"].sel(norm="pre").values)


def pre_norm_as_printed(runs):
    return _local_slopes(runs, "pre", -1.5)


def tangents_as_assumed(runs):
    """One rho for all directions at all depths, but for fluctuations as n^(-1/2), the remainder among them."""
    dataset, name = runs["transformer_depth"], "tangent_propagation"
    rho = 1 + 0 * dataset[f"{name}_by_width"]
    noise = (0 * rho + dataset["width"] ** -0.5).transpose(*rho.dims)
    changed = {name: rho, f"{name}_spread": noise, f"{name}_remainder": noise.sel(direction="shared", drop=True)}
    made = {f"{key}_by_width": values for key, values in changed.items()}
    made |= {f"{key}_by_width_stderr": claim_controls.ERROR * values for key, values in changed.items()}
    return {"transformer_depth": dataset.assign(made | {f"{name}_by_width_largest_share": 0 * rho})}


CONTROLS = {
    "A20a": post_norm_falls_as_pre_norm,
    "A20b": pre_norm_as_printed,
    "A20d": tangents_as_assumed,
    "A20e": pre_norm_as_printed,
}
