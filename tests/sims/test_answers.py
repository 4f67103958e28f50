"""What reports say beside their tables: each number of a sentence is that of what the sentence names."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from meanfield.verification import growth_exponent
from sims import cross_entropy
from sims.cnn_overlap import __main__ as overlap
from sims.cnn_overlap import claims
from sims.cnn_overlap import claims as growth
from sims.cnn_overlap.settings import LEVELS, PAPERS, scales_under
from sims.common.tables import heavy_tail_notes
from sims.learning_rate_search import conclusions
from sims.looped_transformer import __main__ as loops
from sims.looped_transformer.claims import energy, energy_slope
from tests.sims.claim_controls import put


def _in_one_line(words):
    return " ".join(words.split())


@pytest.mark.parametrize(("share", "said"), [(0.09, False), (0.11, True)])
def test_a_draw_that_makes_a_tenth_of_a_mean_is_told(share, said):
    shares = {"label_term_largest_share": ("layer", [share, 0.0]), "label_term": ("layer", [1.0, 1.0])}
    assert bool(heavy_tail_notes(xr.Dataset(shares, {"layer": [1, 2]}), ["label_term"])) == said


def test_the_answer_on_loops_has_the_slope_of_the_larger_factor(smoke_run):
    dataset = smoke_run("looped_transformer")
    slope = energy_slope(energy(dataset, "looped", "sqrt", -1)).exponent
    assert f"under L^(-1/2), as L^{slope:.2f}" in _in_one_line(loops._answer(dataset, []))


def test_the_answer_on_losses_names_each_slope(smoke_run):
    dataset = smoke_run("cross_entropy")
    entropic, squared = (cross_entropy.depth_slope(dataset, "MLP", "he", loss) for loss in ("cross_entropy", "squared"))
    both = f"slopes {entropic.exponent:.3f} +- {entropic.stderr:.3f} against {squared.exponent:.3f}"
    assert both in _in_one_line(cross_entropy._answer(dataset, []))


def test_the_answer_on_growth_has_its_exponent(smoke_run):
    dataset = smoke_run("cnn_overlap")
    limit = growth_exponent(dataset.isel(depth=-1), "label_term_limit")
    words = _in_one_line(overlap.answer(dataset))
    assert f"exponent {limit.exponent:.2f} +- {limit.stderr:.2f} in layers 2 .. 4, brought from 32 channels" in words


def test_the_answer_on_scales_is_of_the_papers_head(smoke_run):
    """Its slope, and the load from which on it is steeper than the paper's."""
    dataset = smoke_run("cnn_overlap")
    at = scales_under(dataset, str(PAPERS))
    law = growth.scale_slope(at, "learning_rate_scale")
    words = _in_one_line(overlap.answer(dataset))
    assert f"slope is {law.exponent:.2f} +- {law.stderr:.2f} over depths 2 .. 4 at 32 channels" in words
    assert f"beyond -3/2 from {float(at['turning']):.2g} on." in words
    unknown = dataset.assign(setting_turning=np.nan * dataset["setting_turning"])
    assert "beyond" not in overlap.answer(unknown)


@pytest.mark.parametrize(("exponent", "said"), [(-1.5, "Yes, "), (-1.0, "No, "), (-1.9, "No, ")])
def test_what_is_said_of_the_papers_head_is_what_was_drawn_under_it(smoke_run, exponent, said):
    """Whatever scales are under another head."""
    dataset = smoke_run("cnn_overlap")
    for name in ("setting_learning_rate_scale", *(f"setting_learning_rate_scale_{level}" for level in LEVELS)):
        dataset = put(dataset, name, dataset["depth"] ** exponent, setting=str(PAPERS))
    assert overlap.answer(dataset).startswith(f"{said}eta* under the paper's head")


@pytest.mark.parametrize(
    ("exponent", "said"), [(3.0, "Yes, B of the net below grows"), (3.5, "No, B of"), (4.13, "No, B of")]
)
def test_yes_is_said_of_a_cube_alone_whatever_theory_has(smoke_run, exponent, said):
    """Draws and the mean field agree on all of these exponents."""
    dataset = smoke_run("cnn_overlap")
    deepest = dataset.isel(depth=-1)
    law = deepest["layer"].astype(float) ** exponent
    for name in ("label_term_limit", "label_term_mean_field"):
        dataset = put(dataset, name, law, depth=deepest["depth"].item())
    words = _in_one_line(overlap.answer(dataset))
    assert said in words
    assert f"as l^3: exponent {exponent:.2f}" in words


def test_what_controls_leave_of_errors_is_said_term_by_term(smoke_run):
    deepest = smoke_run("cnn_overlap").isel(depth=-1)
    label, output = (
        float((deepest[f"adjusted_{name}_stderr"] / deepest[f"{name}_stderr"])[-1])
        for name in ("label_term", "output_term")
    )
    assert f"{label:.2f} of the standard error of B and {output:.2f} of that of A" in overlap._adjusted_note(deepest)


def test_the_next_run_has_draws_for_all_verdicts(smoke_run):
    dataset = smoke_run("cnn_overlap")
    finding = growth.judge_output_term(dataset)
    needs = [replace(finding, needed=count) for count in (1_200.0, 40_000.0)]
    assert overlap.steps(dataset, claims.net_of(dataset), needs)[0][0] == "--draws 40000"


def test_advice_speaks_of_the_median_net(smoke_run):
    """One net whose seeds are far apart makes a mean, and no median."""
    dataset = smoke_run("learning_rate_search")
    seeds = dataset["seed_tuned_rate_log10"].copy()
    seeds[:] = 0.0
    seeds[0, 0, 0] = 5.0
    still = {name: 0 * dataset[name] for name in ("tuned_rate_log10", "seed_tuned_rate_log10_stderr")}
    changed = dataset.assign(still | {"seed_tuned_rate_log10": seeds})
    assert np.mean(conclusions.spreads(changed)) > 0.1
    assert "uncertain by 0.00 decades in the median net" in _in_one_line(conclusions.advice(changed))
