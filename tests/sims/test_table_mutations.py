"""Tables with one cell of another power are told from those of the paper: what S5a, S5c and S5e rest on."""

import pytest

from meanfield.verification.verdicts import Verdict
from sims import coordinate_check, table_cells
from sims.common import blocks
from tests.sims.commands import finished_run

TABLES = {1: "one", 2: "many"}
LADDERS = ["--widths", "8", "12", "16", "--depth", "1", "--width", "32", "--depths", "2", "4", "8", "16"]


def _one_cell_off(right, role, name, power):
    """Under the name of the other table the right one, with one cell multiplied by a power of the ratio of depths."""

    def changed(optimizer, table, width, depth, **options):
        given = blocks.hyperparameters(optimizer, right, width, depth, **options)
        if table != right:
            given[role][name] *= (depth / blocks.BASE_DEPTH) ** power
        return given

    return changed


@pytest.mark.parametrize(
    ("block_depth", "optimizer", "name", "power"),
    [
        (2, "adamw", "adamw_epsilon", 1.0),
        (2, "shampoo", "shampoo_epsilon", 2.0),
        (2, "sgd", "learning_rate", -1.0),
        (2, "sgd", "weight_decay", 1.0),
        (1, "adamw", "adamw_epsilon", 0.5),
        (1, "sgd", "learning_rate", -0.5),
        (1, "muon", "learning_rate", 0.5),
        (1, "muon", "block_multiplier", -0.5),
    ],
)
def test_a_hidden_cell_off_in_depth_is_refuted(tmp_path, monkeypatch, block_depth, optimizer, name, power):
    """Against the standard parameterization's power, or the other condition's, in the runs of two tables on one net."""
    right = TABLES[block_depth]
    monkeypatch.setattr(coordinate_check, "hyperparameters", _one_cell_off(right, "hidden", name, power))
    arguments = ["--optimizers", optimizer, "--tables", *TABLES.values(), "--block-depth", str(block_depth)]
    sizes = [*LADDERS, "--draws", "64", "--steps", "1", "--workers", "1"]
    run = finished_run(coordinate_check.STUDY, [*arguments, *sizes], tmp_path / "run.nc")
    assert coordinate_check.judge_tables(run, (optimizer,)).verdict is not Verdict.REFUTED
    off = coordinate_check.judge_other_tables(run, (optimizer,))
    assert off.verdict is Verdict.REFUTED
    assert "in depth), allowance" in off.evidence


@pytest.mark.parametrize(
    ("block_depth", "role", "name", "along", "power"),
    [
        (2, "hidden", "initial_variance", "width", 0.5),
        (2, "input", "initial_variance", "width", -0.5),
        (2, "output", "initial_variance", "width", 0.5),
        (2, "hidden", "initial_variance", "depth", -0.5),
        (1, "hidden", "block_multiplier", "depth", -0.5),
        (1, "hidden", "block_multiplier", "width", 0.5),
        (2, "output", "block_multiplier", "width", -0.5),
    ],
)
def test_half_a_power_in_a_cell_that_nets_are_drawn_by_is_refuted(
    tmp_path, monkeypatch, block_depth, role, name, along, power
):
    """Muon's tables, whose other cells follow from norms that no gradient changes."""

    def changed(optimizer, table, width, depth, **options):
        given = blocks.hyperparameters(optimizer, table, width, depth, **options)
        given[role][name] *= {"width": width / blocks.BASE_WIDTH, "depth": depth / blocks.BASE_DEPTH}[along] ** power
        return given

    ladders = ["--widths", "16", "24", "96", "128", "--depths", "4", "6", "24", "32", "--width", "16", "--depth", "1"]
    arguments = ["--optimizers", "muon", "--block-depth", str(block_depth), *ladders, "--draws", "16", "--workers", "1"]
    right = finished_run(table_cells.STUDY, arguments, tmp_path / "right.nc")
    assert table_cells.judge_cells(right, ("muon",)).verdict is not Verdict.REFUTED
    monkeypatch.setattr(table_cells, "hyperparameters", changed)
    wrong = finished_run(table_cells.STUDY, arguments, tmp_path / "wrong.nc")
    finding = table_cells.judge_cells(wrong, ("muon",))
    assert finding.verdict is Verdict.REFUTED
    (cell,) = [
        cell
        for cell in table_cells.measured_cells(wrong, "muon")
        if (cell.role, cell.hyperparameter, cell.direction) == (role, name, along)
    ]
    assert not cell.stands
