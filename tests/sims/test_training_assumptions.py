"""The command on assumptions about training: verdicts, controls, images, files, refusals."""

import sys

import numpy as np
import pytest

from figures import training_assumptions as figure
from meanfield.verification.verdicts import Verdict
from sims import training_assumptions
from sims.claims.__main__ import COMMAND as claims_command
from sims.claims.catalogue import CLAIMS
from sims.common.images import two_classes
from sims.training_assumptions import STUDY as simulation
from tests.sims.claim_controls import ERROR, off_by_a_power
from tests.sims.commands import assert_refused, finished_run

SIZES = ["--widths", "16", "24", "32", "--depths", "1", "2", "3", "--batches", "4", "8", "16", "--width", "16"]
SMALL = ["--preset", "smoke", *SIZES, "--workers", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("training") / "run.nc"
    return finished_run(simulation, [*SMALL, "--draws", "6", "--steps", "3"], path)


def tilted(dataset, names, direction, power):
    """A world in which ratios fall as a power of the size, in every draw nearly alike."""
    draws = 1 + 1e-3 * np.cos(dataset["draw"])
    fallen = {f"{name}_by_{direction}": dataset[direction] ** power * draws for name in names}
    like = {name: 0 * dataset[name] + values for name, values in fallen.items()}
    return dataset.assign(like)


@pytest.mark.parametrize("direction", training_assumptions.DIRECTIONS)
@pytest.mark.parametrize("name", training_assumptions.ASSUMPTIONS)
def test_half_a_power_is_refuted_and_none_is_confirmed(finished, name, direction):
    names = training_assumptions.ASSUMPTIONS[name]
    flat = tilted(tilted(finished, names, "width", 0.0), names, "depth", 0.0)
    assert training_assumptions.judge_assumption(flat, name).verdict is Verdict.CONFIRMED
    assert training_assumptions.judge_assumption(tilted(flat, names, direction, -0.5), name).verdict is Verdict.REFUTED


def test_weights_may_end_independent_of_their_change_and_no_lower(finished):
    """From 0.8 at the smallest width to 0.65 at twice that is what independence leaves; half a power is not."""
    names = training_assumptions.ASSUMPTIONS["G.1 weights"]
    flat = tilted(tilted(finished, names, "width", 0.0), names, "depth", 0.0)
    start = 0.8 / finished["width"].values[0] ** -0.3
    name = "weight_travel_ratio_by_width"
    off = flat.assign({name: start * tilted(flat, names, "width", -0.3)[name]})
    assert training_assumptions.judge_assumption(off, "G.1 weights").verdict is not Verdict.REFUTED
    step = {"weight_step_ratio_by_width": off[name]}
    assert training_assumptions.judge_assumption(flat.assign(step), "G.1 weights").verdict is Verdict.REFUTED
    half = flat.assign({name: off[name] * finished["width"] ** -0.2})
    assert training_assumptions.judge_assumption(half, "G.1 weights").verdict is Verdict.REFUTED


def test_independence_leaves_at_least_the_golden_ratio():
    """A Gaussian matrix and one of rank one, of any norm: the least share of their norms, up to finite sizes."""
    random, size = np.random.default_rng(0), 300
    whole = random.normal(size=(size, size)) / np.sqrt(size)
    of_rank_one = np.outer(*(vector / np.linalg.norm(vector) for vector in random.normal(size=(2, size))))
    norms = np.linspace(0.5, 4, 15)
    sums = np.array([np.linalg.norm(whole + norm * of_rank_one, 2) for norm in norms])
    least = np.min(sums / (np.linalg.norm(whole, 2) + norms))
    assert least == pytest.approx(training_assumptions.INDEPENDENT, rel=0.03)


def test_a_ratio_that_falls_late_is_refuted(finished):
    """Flat at first and off at the last step alone: the assumptions are of all of training."""
    names = training_assumptions.ASSUMPTIONS["G.2"]
    flat = tilted(tilted(finished, names, "width", 0.0), names, "depth", 0.0)
    off = tilted(flat, names, "width", -0.5)
    late = flat["step"] == flat["step"][-1]
    mixed = flat.assign({name: off[name].where(late, flat[name]) for name in flat if str(name).startswith(names)})
    assert training_assumptions.judge_assumption(mixed, "G.2").verdict is Verdict.REFUTED


def test_the_premise_on_batches_is_judged(finished):
    names = training_assumptions.ASSUMPTIONS["G.3"]
    assert training_assumptions.judge_batch(tilted(finished, names, "batch", 0.0)).verdict is Verdict.CONFIRMED
    assert training_assumptions.judge_batch(tilted(finished, names, "batch", -1.0)).verdict is Verdict.REFUTED


def test_nets_learn(finished):
    losses = finished["training_loss_by_width"].mean("draw").transpose("step", "width").values
    assert np.all(np.diff(losses, axis=0) < 0)


def test_other_optimizers_are_judged_on_what_is_said_of_all(tmp_path):
    sizes = ["--steps", "2", "--draws", "4", "--optimizer", "muon", "--depths", "1", "2", "3", "--depth", "1"]
    run = finished_run(simulation, ["--preset", "smoke", *SIZES, "--workers", "1", *sizes], tmp_path / "muon.nc")
    assert not {name for name in run if str(name).startswith("sample_update") or str(name).endswith("batch")}
    assert [finding.claim.split(", ")[0] for finding in training_assumptions.findings(run)] == ["Under muon"] * 4
    assert "sample" not in simulation.document(run).text().split("Words")[0].split("Over training")[1]
    figure.draw(run)


def test_the_last_block_is_the_last(finished):
    """With one block, what all blocks have is the mean of its two layers."""
    first, last, both = (
        finished["weight_alignment_by_depth"].sel(depth=1, place=place)
        for place in (training_assumptions.FIRST, training_assumptions.LAST, "all blocks")
    )
    np.testing.assert_allclose((first + last) / 2, both)
    assert not np.allclose(first, both)
    features = finished["feature_step_ratio_by_depth"]
    assert features.sel(place=training_assumptions.FIRST).isnull().all()
    np.testing.assert_array_equal(
        features.sel(place=training_assumptions.LAST, depth=1), features.sel(place="all blocks", depth=1)
    )


def test_other_optimizers_have_the_rates_of_their_tables():
    base, other = (training_assumptions.hyperparameters(64 * n, 2 * n, 64, 0.1, "adamw") for n in (1, 2))
    names = ("block_multiplier", "initial_variance", "learning_rate")
    expected = {"input": (1, 2 / 64, 0.1), "hidden": (1 / 2, 2 / 64, 0.1), "output": (1 / 64, 2, 0.1)}
    for role, values in expected.items():
        np.testing.assert_allclose([base[role][name] for name in names], values)
    np.testing.assert_allclose(other["hidden"]["learning_rate"], 0.05)
    np.testing.assert_allclose(other["hidden"]["block_multiplier"], 1 / 4)


def test_hyperparameters_are_those_that_the_paper_prints():
    rates = training_assumptions.hyperparameters(256, 8, 3072, 0.001)
    names = ("block_multiplier", "initial_variance", "learning_rate")
    printed = {
        "input": (1, 2 / 3072, 0.001 * 256),
        "hidden": (1 / 8, 2 / 256, 0.001 * 8),
        "output": (1 / 256, 2, 0.001 * 256),
    }
    for role, values in printed.items():
        np.testing.assert_allclose([rates[role][name] for name in names], values)


def test_batches_hold_as_many_of_either_class():
    inputs, labels = two_classes("digits", None, None, (3, 8), 6, 0)
    assert inputs.shape == (64, 12)
    np.testing.assert_array_equal(labels, [1, -1] * 6)
    np.testing.assert_allclose(inputs.std(axis=0), 1.0)
    assert not np.array_equal(inputs, two_classes("digits", None, None, (3, 8), 6, 1)[0])


def test_digits_from_a_file_are_the_digits(tmp_path):
    from sklearn.datasets import load_digits

    digits, path = load_digits(), tmp_path / "own.npz"
    np.savez(path, images=digits.images, labels=digits.target, few=digits.target[:9], names=digits.target.astype(str))
    own = two_classes(f"{path}::images", f"{path}::labels", (8, 8), (3, 8), 4, 0)
    np.testing.assert_allclose(own[0], two_classes("digits", None, None, (3, 8), 4, 0)[0])
    for labels, message in (("few", "9 labels"), ("names", "whole numbers"), ("other", "has no .other.")):
        with pytest.raises(ValueError, match=message):
            two_classes(f"{path}::images", f"{path}::{labels}", (8, 8), (3, 8), 4, 0)


def test_without_scikit_learn_one_line_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert_refused(simulation, SMALL, 'pip install -e ".[data]"', tmp_path, capsys)
    assert claims_command.main(["--preset", "smoke", "--only", "S1,S7a", "--out", str(tmp_path)]) == 2
    assert "[data]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "S1 ran before S7a was refused"


def test_printed_report(finished):
    printed = simulation.document(finished).text()
    for words in ("classes 3 8 of digits", "Binary cross-entropy", "Slopes in batch size", "(G.3)", "step 3"):
        assert words in printed


# Worlds in which claims of this study get another verdict: their negative controls.


def _activations_collapse(claim):
    """Ratios of activations fall with the width, in all runs of a claim."""

    def control(runs):
        name, changed = "activation_ratio_by_width", {}
        for run in CLAIMS[claim].runs:
            dataset = runs[run]
            collapsed = 0 * dataset[name] + off_by_a_power(dataset, name)[name]
            changed[run] = dataset.assign({name: collapsed})
        return changed

    return control


def no_premise_on_batches(runs):
    """The ratio of assumption G.3 is the same for batches of all sizes, in every draw nearly alike."""
    (run,) = CLAIMS["S7c"].runs
    dataset, name = runs[run], "sample_update_ratio_by_batch"
    level = 1 + ERROR * np.cos(dataset["draw"])
    return {run: dataset.assign({name: 0 * dataset[name] + level})}


CONTROLS = {
    **{claim: _activations_collapse(claim) for claim in ("S7a", "S7b")},
    "S7c": no_premise_on_batches,
}
