"""The printed tables of Zheng et al. 2026 against the derivation: all cells follow, and a wrong cell is found."""

from dataclasses import replace

import pytest

from meanfield.parameterizations import TABLES, Scaling
from meanfield.verification.verdicts import Verdict
from sims.common.hyperparameter_tables import compare_table, printed_cells
from sims.identities import hyperparameter_tables
from sims.identities.hyperparameter_tables import judge_derivation, judge_sphere

CELLS = printed_cells()


def test_all_cells_follow_and_the_output_column_of_sso_is_off_its_sphere():
    assert len(CELLS) == 2 * (12 + 2 * 12 + 15 + 20 + 25 + 2 * 20 + 12)
    assert all(cell.agrees for cell in CELLS)
    off = {(cell.table, cell.optimizer, cell.role, cell.hyperparameter) for cell in CELLS if cell.is_off_sphere}
    rows = ("block_multiplier", "initial_variance", "learning_rate", "weight_decay")
    assert off == {(table, "sso", "output", name) for table in (7, 13) for name in rows}


def test_sentence_and_verdict_of_the_derivation_agree():
    """What the claim says follows is what is compared: 296 of 296 cells, and the sphere beside it is refuted."""
    assert (judge_derivation().verdict, judge_sphere().verdict) == (Verdict.CONFIRMED, Verdict.REFUTED)
    assert judge_derivation().evidence == "296 of 296 cells follow"
    assert judge_sphere().evidence.startswith("16 of 24 cells follow from weights of norm R; the others: table 7, sso")


def test_a_wrong_cell_refutes_the_derivation_and_a_right_variance_mends_the_sphere(monkeypatch):
    """Negative controls, of both claims."""
    wrong = replace(CELLS[0], printed=CELLS[0].printed * Scaling.of(0, "1/2"))
    monkeypatch.setattr(hyperparameter_tables, "printed_cells", lambda: [wrong, *CELLS[1:]])
    assert judge_derivation().verdict is Verdict.REFUTED
    mended = [replace(cell, printed=cell.on_sphere) for cell in CELLS]
    monkeypatch.setattr(hyperparameter_tables, "printed_cells", lambda: mended)
    assert judge_sphere().verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"table {table.number}")
def test_any_mistyped_cell_is_found(table):
    """Negative control: each cell in turn with its depth exponent off by a half."""
    optimizer = table.optimizers[0]
    for name in table.hyperparameters(optimizer):
        for role in table.roles:
            wrong = dict(table.rows[name]) | {role: table.rows[name][role] * Scaling.of(0, "1/2")}
            cells = compare_table(replace(table, rows={**table.rows, name: wrong}), optimizer)
            assert {(c.role, c.hyperparameter) for c in cells if not c.agrees} == {(role, name)}


def test_the_tables_of_one_condition_fail_the_other():
    """Negative control: a table for k >= 2 read as one for k = 1 leaves no hidden learning rate as derived."""
    for table in TABLES:
        swapped = replace(table, one_layer=not table.one_layer)
        cells = {(c.role, c.hyperparameter) for c in compare_table(swapped, table.optimizers[0]) if not c.agrees}
        assert {("hidden", "block_multiplier"), ("hidden", "learning_rate")} <= cells


def test_sentences():
    first, off = CELLS[0], next(cell for cell in CELLS if cell.is_off_sphere)
    assert first.sentence() == "Zheng et al. 2026, table 3, muon_kimi, input, block_multiplier: printed 1, as derived"
    assert "printed 1/r_n, as derived; but 1 if weights begin on the sphere |W|_2 = R" in off.sentence()
    wrong = replace(first, printed=Scaling.of(1))
    assert wrong.sentence().endswith("printed r_n, but 1 follows from update norms")
