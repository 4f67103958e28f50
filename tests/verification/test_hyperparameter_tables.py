"""The printed tables of Zheng et al. 2026 against the derivation: which cells differ, and a wrong cell is found."""

from dataclasses import replace

import pytest

from meanfield.parameterizations import TABLES, Scaling
from meanfield.verification.zheng_2026.hyperparameter_tables import compare_table, printed_cells

CELLS = printed_cells()


def test_all_cells_follow_but_the_output_column_of_sso():
    assert len(CELLS) == 2 * (12 + 2 * 12 + 15 + 20 + 25 + 2 * 20 + 12)
    differing = {(cell.table, cell.role, cell.hyperparameter) for cell in CELLS if not cell.agrees}
    rows = ("block_multiplier", "initial_variance", "learning_rate", "weight_decay")
    assert differing == {(table, "output", name) for table in (7, 13) for name in rows}
    assert {cell.optimizer for cell in CELLS if not cell.agrees} == {"sso"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"table {table.number}")
def test_any_mistyped_cell_is_found(table):
    """Negative control: each cell in turn with its depth exponent off by a half."""
    optimizer = table.optimizers[0]
    expected = {(cell.role, cell.hyperparameter) for cell in compare_table(table, optimizer) if not cell.agrees}
    for name in table.hyperparameters(optimizer):
        for role in table.roles:
            wrong = dict(table.rows[name]) | {role: table.rows[name][role] * Scaling.of(0, "1/2")}
            cells = compare_table(replace(table, rows={**table.rows, name: wrong}), optimizer)
            assert {(c.role, c.hyperparameter) for c in cells if not c.agrees} == expected | {(role, name)}


def test_the_tables_of_one_condition_fail_the_other():
    """Negative control: a table for k >= 2 read as one for k = 1 leaves no hidden learning rate as derived."""
    for table in TABLES:
        swapped = replace(table, one_layer=not table.one_layer)
        cells = {(c.role, c.hyperparameter) for c in compare_table(swapped, table.optimizers[0]) if not c.agrees}
        assert {("hidden", "block_multiplier"), ("hidden", "learning_rate")} <= cells


def test_sentences():
    first, differing = CELLS[0], next(cell for cell in CELLS if not cell.agrees)
    assert first.sentence() == "Zheng et al. 2026, table 3, muon_kimi, input, block_multiplier: printed 1, as derived"
    assert differing.sentence().endswith("printed 1/r_n, but 1 follows from update norms")
