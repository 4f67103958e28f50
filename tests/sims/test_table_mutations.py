"""Tables with one cell of another power of the depth are told from those of the paper: what S5a and S5c rest on."""

import pytest

from meanfield.verification.verdicts import Verdict
from meanfield.verification.zheng_2026 import coordinate_checks as claims
from sims.common.blocks import base_values
from sims.coordinate_check import measure
from sims.coordinate_check.__main__ import COMMAND as simulation
from tests.sims.commands import finished_run

TABLES = {1: "one", 2: "many"}
LADDERS = ["--widths", "8", "12", "16", "--depth", "1", "--width", "32", "--depths", "2", "4", "8", "16"]


def _one_cell_off(right, role, name, power):
    """Under the name of the other table the right one, with one cell multiplied by a power of the ratio of depths."""

    def changed(optimizer, table, width, depth, **options):
        given = base_values.hyperparameters(optimizer, right, width, depth, **options)
        if table != right:
            given[role][name] *= (depth / base_values.BASE_DEPTH) ** power
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
    monkeypatch.setattr(measure, "hyperparameters", _one_cell_off(right, "hidden", name, power))
    arguments = ["--optimizers", optimizer, "--tables", *TABLES.values(), "--block-depth", str(block_depth)]
    sizes = [*LADDERS, "--draws", "64", "--steps", "1", "--workers", "1"]
    run = finished_run(simulation, [*arguments, *sizes], tmp_path / "run.nc")
    assert claims.judge_tables(run, (optimizer,)).verdict is not Verdict.REFUTED
    off = claims.judge_other_tables(run, (optimizer,))
    assert off.verdict is Verdict.REFUTED
    assert "in depth), allowance" in off.evidence
