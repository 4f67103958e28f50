"""Base values of nets of blocks: of hybrids, of single roles, of biases, and what is refused."""

import numpy as np
import pytest

from meanfield.optimizers import HYBRIDS, optimizer_of_role
from meanfield.parameterizations import scaling
from sims import table_cells
from sims.common.blocks import BASE_DEPTH, BASE_WIDTH, BIAS_OF, block_net, hyperparameters, own_values
from sims.coordinate_check import STUDY as simulation
from tests.sims.commands import finished_run

ROLES = ("input", "hidden", "output", *BIAS_OF)
LADDERS = ["--widths", "16", "32", "64", "--depths", "1", "2", "3", "--width", "16", "--depth", "1"]


@pytest.mark.parametrize("table", ["many", "one", "standard"])
@pytest.mark.parametrize("name", [*HYBRIDS, "muon", "soap-sgd"])
def test_every_role_has_the_rows_of_the_optimizer_that_steps_it(name, table):
    """As the paper prints them, cell by cell: a width of 4 and a depth of 8 times the base model's."""
    at = hyperparameters(name, table, 4 * BASE_WIDTH, 8 * BASE_DEPTH, biases=True, acting=True)
    base = hyperparameters(name, table, BASE_WIDTH, BASE_DEPTH, biases=True, acting=True)
    for role in ROLES:
        by = optimizer_of_role(name, role)
        cells = {"block_depth": 1 if table == "one" else 2}
        cells |= {"parameterization": "standard" if table == "standard" else "spectral"}
        for hyperparameter in set(at[role]) - {"soap_epsilon"}:
            factor = scaling(by, role, hyperparameter, **cells).at(4, 8)
            assert at[role][hyperparameter] == pytest.approx(factor * base[role][hyperparameter])


def test_cells_of_a_hybrid_are_those_of_both_its_tables():
    """Hidden weights by table 4, input and output weights by table 6."""
    cells = table_cells.cells("muon-adamw", 2)
    of_both = {name: table_cells.cells(name, 2) for name in ("muon", "adamw")}
    assert [cell for cell in cells if cell[0] == "hidden"] == [cell for cell in of_both["muon"] if cell[0] == "hidden"]
    assert [cell for cell in cells if cell[0] != "hidden"] == [cell for cell in of_both["adamw"] if cell[0] != "hidden"]


def test_a_role_may_have_base_values_of_its_own():
    own = own_values(["hidden.learning_rate=0.5", "output.initial_variance=3", "input.block_multiplier=2"])
    usual, given = (hyperparameters("muon-adamw", "many", 256, 2, acting=True, own=values) for values in ({}, own))
    assert given["hidden"]["learning_rate"] == 0.5
    assert given["hidden"]["weight_decay"] == pytest.approx(0.02 / 0.5)
    assert given["output"].pop("initial_variance") == 3
    assert given["input"].pop("block_multiplier") == 2
    usual["output"].pop("initial_variance"), usual["input"].pop("block_multiplier")
    assert [given[role] for role in ("input", "output")] == [usual[role] for role in ("input", "output")]
    zero = {(role, "initial_variance"): 0.0 for role in BIAS_OF}
    values = hyperparameters("muon", "many", 64, 2, biases=True, own=zero)
    assert block_net(values, 64, 2, biases=True).weights["b1.1"].variance == 0.0


def test_rates_of_single_roles_scale_what_these_roles_change(tmp_path):
    """Nearly all of the first step: twice the rate, twice the change by these weights alone; biases start at 0."""
    ends = []
    for rate in ("0.001", "0.002"):
        arguments = ["--optimizers", "muon-adamw", "--tables", "many", *LADDERS, "--draws", "2", "--steps", "1"]
        base = ["--biases", "--plain", "--base", f"hidden_bias.learning_rate={rate}", "--precision", "float64"]
        run = finished_run(simulation, [*arguments, *base, "--workers", "1"], tmp_path / f"{rate}.nc")
        ends.append(run["own_change_by_width"].sel(step=1))
    ratio = (ends[1] / ends[0]).squeeze(drop=True)
    np.testing.assert_allclose(ratio.sel(role="hidden_bias"), 2.0, rtol=1e-6)
    np.testing.assert_allclose(ratio.drop_sel(role="hidden_bias"), 1.0, rtol=1e-12)
