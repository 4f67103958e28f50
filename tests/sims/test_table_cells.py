"""The command on cells of hyperparameter tables: which move a slope, verdicts, controls, refusals."""

import numpy as np
import pytest

from figures import table_cells as figure
from meanfield.parameterizations import OPTIMIZERS, hyperparameter_table
from meanfield.verification.verdicts import Verdict
from meanfield.verification.zheng_2026 import table_cells as claims
from meanfield.verification.zheng_2026 import takeaways
from sims.common.blocks.base_values import hyperparameters
from sims.table_cells.__main__ import COMMAND as simulation
from sims.table_cells.report import text
from tests.sims.claim_controls.zheng_2026 import cells_of_no_use
from tests.sims.commands import assert_refused, finished_run

LADDERS = ["--widths", "16", "32", "64", "--depths", "2", "4", "8", "--width", "16", "--depth", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    arguments = ["--optimizers", "sgd", "adamw", *LADDERS, "--draws", "40", "--steps", "1", "--workers", "1"]
    return finished_run(simulation, arguments, tmp_path_factory.mktemp("cells") / "run.nc")


def _moves(dataset, optimizer):
    return {(move.cell, move.direction): move for move in claims.moves(dataset, optimizer)}


def test_rates_move_what_their_own_weights_change_by_their_power(finished):
    """At the first step the direction does not depend on the rate, so that the move is the exponent of the cell."""
    move = _moves(finished, "sgd")["sgd: learning rate of output weights", "width"]
    assert move.change == pytest.approx(-1.0, abs=1e-3)
    move = _moves(finished, "sgd")["sgd: learning rate of input weights", "width"]
    assert move.change == pytest.approx(-1.0, abs=1e-3)


def test_cells_are_those_that_scale():
    for optimizer in OPTIMIZERS:
        table = hyperparameter_table(optimizer, 2)
        for along, exponent in (("width", "width"), ("depth", "depth")):
            expected = {
                (role, name)
                for name in table.hyperparameters(optimizer)
                for role in ("input", "hidden", "output")
                if getattr(table.rows[name][role], exponent)
            }
            assert set(claims.cells(optimizer, 2, along)) == expected


def test_a_standard_cell_is_the_only_one_that_changes():
    whole, cut = (
        hyperparameters("adamw", "many", 256, 8, acting=True, standard_cell=cell)
        for cell in (None, ("hidden", "learning_rate"))
    )
    base = hyperparameters("adamw", "many", 64, 2, acting=True)
    assert cut["hidden"].pop("learning_rate") == base["hidden"]["learning_rate"]
    assert whole["hidden"].pop("learning_rate") == pytest.approx(base["hidden"]["learning_rate"] / 4)
    assert cut == whole


@pytest.mark.parametrize(
    ("optimizer", "block_depth", "names"),
    [
        ("sgd", 2, [f"{name} of {role}" for name in ("learning rate", "weight decay") for role in ("input", "hidden")]),
        ("adamw", 2, ["adamw epsilon of input", "adamw epsilon of hidden"]),
        ("muon", 2, ["adamw epsilon of input", "adamw epsilon of hidden"]),
        ("lion", 1, ["learning rate of hidden"]),
    ],
)
def test_biases_have_cells_of_their_own(optimizer, block_depth, names):
    """Without multipliers, which are those of their weights; optimizers of matrices leave biases to AdamW."""
    cells = {cell for along in ("width", "depth") for cell in claims.cells(optimizer, block_depth, along, biases=True)}
    assert {claims.named(optimizer, cell) for cell in cells} == {f"{optimizer}: {name} biases" for name in names}


def test_biases_without_a_cell_are_refused(tmp_path, capsys):
    given = ["--preset", "smoke", "--biases", "--optimizers", "lion"]
    assert_refused(simulation, given, "no cell of biases scales in the tables for lion", tmp_path, capsys)


def test_a_cell_of_no_use_is_not_taken_for_one(finished):
    """Negative control, of every claim that reads this run."""
    for judge, names in (
        (lambda run: claims.judge_cells(run, ("sgd",)), "sgd: learning rate of output"),
        (lambda run: claims.judge_decays(run, ("sgd",)), "sgd: weight decay of input"),
        (takeaways.judge_rates_in_depth, "sgd: learning rate of hidden"),
    ):
        before = judge(finished).verdict
        without = cells_of_no_use(names)({"table_cells": finished})["table_cells"]
        assert judge(without).verdict is Verdict.REFUTED
        assert before is not Verdict.REFUTED


def test_the_cell_that_moves_least_is_weighed_as_one_of_all_that_were_looked_at(finished):
    first, *_ = numbers = claims.watched(finished)
    moves = [claims.Move(f"sgd: {name}", "width", change, 0.01, first) for name, change in (("a", 0.5), ("b", 0.05))]
    contest = claims.contest_of(finished, moves)
    assert contest.comparisons == 2 * len(numbers)
    assert contest.rival.difference.tolist() == [0.05]


def test_epsilons_scale_with_the_depth(finished):
    assert takeaways.judge_epsilons_in_depth(finished).verdict is Verdict.REFUTED
    without = cells_of_no_use("adamw: adamw epsilon")({"table_cells": finished})["table_cells"]
    assert takeaways.judge_epsilons_in_depth(without).verdict is Verdict.CONFIRMED


def test_nets_that_leave_the_floats_have_moved(finished):
    name, cell = "feature_norm_by_width", "sgd: learning rate of input weights"
    lost = finished[name].copy()
    lost.loc[{"width_cell": cell, "width": 64}] = np.nan
    run = finished.assign({name: lost})
    assert _moves(run, "sgd")[cell, "width"].change == np.inf
    assert "leaves the floats" in text(run)
    arrows = [
        line for axes in figure.draw(run).axes for line in axes.lines if line.get_label().startswith("nets leave")
    ]
    assert [len(line.get_ydata()) for line in arrows] == [1, 0]


def test_report_and_figure_show_every_cell(finished):
    printed = text(finished)
    labels = [label.get_text() for axes in figure.draw(finished).axes for label in axes.get_yticklabels()]
    for optimizer in ("sgd", "adamw"):
        for move in claims.moves(finished, optimizer):
            assert move.cell in printed
            assert labels.count(move.cell) == sum(
                other.cell == move.cell for other in claims.moves(finished, optimizer)
            )


def test_optimizers_that_were_not_run_are_refused(finished):
    with pytest.raises(ValueError, match="and not muon; run all"):
        claims.judge_cells(finished, ("muon",))


def test_bad_input_gets_one_line(tmp_path, capsys):
    assert_refused(simulation, ["--preset", "smoke", "--steps", "0"], "--steps is 0", tmp_path, capsys)
