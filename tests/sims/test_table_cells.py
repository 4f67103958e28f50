"""The command on cells of hyperparameter tables: needed powers, wrong tables, report and figure, refusals."""

import numpy as np
import pytest

from figures import table_cells as figure
from meanfield.parameterizations import BIASES, OPTIMIZER_NAMES, WEIGHTS, hyperparameter_table
from meanfield.verification.verdicts import Verdict
from sims import table_cells as claims
from sims.claims.catalogue import CLAIMS
from sims.table_cells import STUDY as simulation
from tests.sims.claim_controls import gradients_stay
from tests.sims.commands import finished_run

LADDERS = ["--widths", "16", "24", "96", "128", "--depths", "4", "6", "24", "32", "--width", "16", "--depth", "1"]


def _run(folder, optimizers, draws, *more):
    arguments = ["--optimizers", *optimizers, *LADDERS, "--draws", str(draws), "--workers", "1", *more]
    return finished_run(simulation, arguments, folder / "run.nc")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return _run(tmp_path_factory.mktemp("cells"), OPTIMIZER_NAMES, 24)


@pytest.fixture(scope="module")
def of_gradients(tmp_path_factory):
    """More draws of those whose cells scatter as gradients and their squares do."""
    return _run(tmp_path_factory.mktemp("cells"), ("sgd", "shampoo"), 96)


@pytest.fixture(scope="module")
def of_biases(tmp_path_factory):
    elementwise = ("sgd", "adamw", "lion", "sophia")
    return _run(tmp_path_factory.mktemp("cells"), elementwise, 80, "--biases", "--block-depth", "1")


def _cells(dataset, optimizer):
    return {(c.role, c.hyperparameter, c.direction): c for c in claims.measured_cells(dataset, optimizer)}


def test_printed_powers_are_those_of_the_tables(finished):
    """Read off the values that the nets were given; every cell of every table is looked at."""
    for optimizer in OPTIMIZER_NAMES:
        table, cells = hyperparameter_table(optimizer, 2), _cells(finished, optimizer)
        names = table.hyperparameters(optimizer)
        assert {at[:2] for at in cells} == {(role, name) for role in WEIGHTS for name in names}
        for (role, name, direction), cell in cells.items():
            assert cell.printed == pytest.approx(float(getattr(table.rows[name][role], direction)), abs=1e-9)


def test_biases_have_cells_of_their_own():
    """Without multipliers, which are those of their weights; optimizers of matrices leave biases to AdamW."""
    for optimizer in OPTIMIZER_NAMES:
        by = optimizer if "input_bias" in hyperparameter_table(optimizer, 2).roles else "adamw"
        names = set(hyperparameter_table(by, 2).hyperparameters(by)) - {"block_multiplier"}
        assert set(claims.cells(optimizer, 2, biases=True)) == {(role, name) for role in BIASES for name in names}


def test_norms_that_are_known_give_whole_powers(finished):
    """U V^T has the norm sqrt(n_in / n_out), SSO's direction 1, whatever the gradient."""
    cells = _cells(finished, "muon")
    assert cells["input", "learning_rate", "width"].needed == pytest.approx(0.5, abs=1e-6)
    assert cells["output", "learning_rate", "width"].needed == pytest.approx(0.5, abs=1e-6)
    assert _cells(finished, "sso")["output", "learning_rate", "width"].needed == pytest.approx(1.0, abs=1e-4)


def test_the_printed_tables_stand(finished, of_biases):
    for dataset in (finished, of_biases):
        for optimizer in claims.run_optimizers(dataset):
            assert claims.judge_cells(dataset, (optimizer,)).verdict is not Verdict.REFUTED
            assert claims.judge_decays(dataset, (optimizer,)).verdict is not Verdict.REFUTED
    assert claims.judge_cells(finished, ("lion", "muon", "muon_kimi", "soap", "sso")).verdict is Verdict.CONFIRMED


def test_the_wrong_table_of_lion_is_refuted(finished):
    """Rates as 1/sqrt(r_n) with decays as 1/r_n, which moves of slopes against the standard value confirmed."""
    wrong = off_table(finished, *WRONG_LION)
    printed = {at: cell.printed for at, cell in _cells(wrong, "lion").items()}
    assert printed["hidden", "learning_rate", "width"] == pytest.approx(-0.5)
    assert printed["hidden", "weight_decay", "width"] == pytest.approx(-1.0)
    for judge, cell in ((claims.judge_cells, "learning rate"), (claims.judge_decays, "weight decay")):
        assert judge(finished, ("lion",)).verdict is Verdict.CONFIRMED
        finding = judge(wrong, ("lion",))
        assert finding.verdict is Verdict.REFUTED
        assert f"lion: {cell} of hidden weights, printed " in finding.evidence


def _judged(dataset, optimizer, hyperparameter):
    judge = claims.judge_decays if hyperparameter == "weight_decay" else claims.judge_cells
    return judge(dataset, (optimizer,)).verdict


def _half_a_power_off(dataset, optimizer):
    """Verdicts on tables with one cell off, variances aside, to the side on which finite sizes hide it.

    That of Shampoo's epsilons to the other side: they scatter as squares of gradients, and need more draws.
    """
    for (role, name, direction), cell in _cells(dataset, optimizer).items():
        if name != "initial_variance":
            power = float(np.copysign(0.5, cell.off)) * (1 if name == "shampoo_epsilon" else -1)
            wrong = off_table(dataset, (optimizer, role, name, direction, power))
            yield (role, name, direction), _judged(wrong, optimizer, name)


@pytest.mark.parametrize("optimizer", OPTIMIZER_NAMES)
def test_half_a_power_in_any_cell_is_refuted(finished, of_gradients, optimizer):
    """In width and in depth; variances, which change what is drawn, are in the mutations of tables."""
    dataset = of_gradients if optimizer in of_gradients["optimizer"] else finished
    verdicts = dict(_half_a_power_off(dataset, optimizer))
    assert verdicts == dict.fromkeys(verdicts, Verdict.REFUTED)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "lion", "sophia"])
def test_half_a_power_in_any_cell_of_biases_is_refuted(of_biases, optimizer):
    verdicts = dict(_half_a_power_off(of_biases, optimizer))
    assert verdicts == dict.fromkeys(verdicts, Verdict.REFUTED)


def test_what_the_depth_asks_of_rates_and_epsilons(finished):
    """Takeaway 2; negative control: gradients that keep their size in depth."""
    assert claims.judge_rates_in_depth(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_epsilons_in_depth(finished).verdict is Verdict.REFUTED
    alike = gradients_stay({"table_cells": finished})["table_cells"]
    assert claims.judge_rates_in_depth(alike).verdict is Verdict.REFUTED
    assert claims.judge_epsilons_in_depth(alike).verdict is Verdict.CONFIRMED


def test_report_and_figure_show_every_cell_that_scales(finished):
    wrong = claims.with_powers(off_table(finished, ("sso", "input", "learning_rate", "depth", 1.0)))
    printed = simulation.document(wrong).text()
    axes = dict(zip(("width", "depth"), figure.draw(wrong).axes, strict=True))
    for direction, panel in axes.items():
        shown = [c for c in claims.measured_cells(wrong, *OPTIMIZER_NAMES) if c.direction == direction]
        shown = [c for c in shown if c.printed or not c.stands]
        assert [label.get_text() for label in panel.get_yticklabels()] == [cell.name for cell in shown]
        lines = {line.get_label(): line for line in panel.lines}
        np.testing.assert_allclose(lines["printed"].get_xdata(), [cell.printed for cell in shown])
        (points,) = [line for line in panel.lines if line.get_marker() == "o"]
        np.testing.assert_allclose(points.get_xdata(), [cell.needed for cell in shown])
        assert panel.get_xlabel() == f"power of the {direction}"
        for cell in shown:
            assert f"{cell.name}  " in printed
    (line,) = [line for line in printed.splitlines() if "sso: learning rate of input weights  " in line]
    assert line.split()[-4] == "+1"
    assert line.endswith("*")


def test_optimizers_that_were_not_run_are_refused(of_biases):
    finding = claims.judge_cells(of_biases, ("muon",))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "and not muon; run all" in finding.evidence


# Worlds in which claims of this study get another verdict: their negative controls.


def table_is_wrong(claim, *planted):
    """Values that the nets of all runs of a claim were given are off by these powers.

    Each is (optimizer, role, hyperparameter, direction, power); rates and decays change no norm before the first step.
    """

    def control(runs):
        return {run: off_table(runs[run], *planted) for run in CLAIMS[claim].runs}

    return control


def off_table(dataset, *planted):
    """A run of `sims.table_cells` under tables with these cells off."""
    for optimizer, role, hyperparameter, direction, power in planted:
        name, at = f"value_by_{direction}", {"optimizer": optimizer, "role": role, "hyperparameter": hyperparameter}
        here = (dataset["optimizer"] == optimizer) & (dataset["role"] == role)
        here = here & (dataset["hyperparameter"] == hyperparameter)
        assert int(here.sum()) == 1, at
        off = dataset[name] * (dataset[direction] / dataset[direction][0]) ** power
        dataset = dataset.assign({name: dataset[name].where(~here, off).transpose(*dataset[name].dims)})
    return dataset


# A wrong table that the moves of slopes took for a right one: rates as 1/sqrt(r_n), decays as 1/r_n.
WRONG_LION = (
    ("lion", "hidden", "learning_rate", "width", 0.5),
    ("lion", "hidden", "weight_decay", "width", -2.0),
)


CONTROLS = {
    "S5e": table_is_wrong("S5e", ("lion", "hidden", "learning_rate", "width", 1.0)),
    "S5f": gradients_stay,
    "S5g": table_is_wrong("S5g", *WRONG_LION),
    "S5j": table_is_wrong("S5j", ("lion", "hidden_bias", "learning_rate", "depth", 1.0)),
    "S5k": table_is_wrong("S5k", ("lion", "hidden_bias", "weight_decay", "width", -1.0)),
}
