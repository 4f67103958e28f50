"""The tables are those of Zheng et al. 2026, cell by cell, and asking for what they do not define says so.

Warnings where a premise fails, and none where all hold.
"""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.parameterizations import (
    BIASES,
    HYPERPARAMETERS,
    OPTIMIZER_NAMES,
    TABLES,
    WEIGHTS,
    Scaling,
    hyperparameter_table,
    scaling,
    unmet_premises,
)
from tests.parameterizations.printed_cells import FAMILIES, PRINTED, TABLE_1, by_role, read

exponents = st.fractions(min_value=-2, max_value=2, max_denominator=4)
scalings = st.builds(Scaling, exponents, exponents)
ratios = st.floats(0.01, 100)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"table {table.number}")
def test_every_cell_is_as_printed(table):
    assert {name: dict(row) for name, row in table.rows.items()} == {
        name: by_role(cells) for name, cells in PRINTED[table.number].items()
    }


def test_printed_cells_are_read_right():
    cells = [str(read(cell)) for cell in (r"\eta", r"\lambda/(r_n\sqrt{r_L})", r"\varepsilon/r_L^2", r"\eta r_Lr_n")]
    assert cells == ["1", "1/(r_n sqrt(r_L))", "1/r_L^2", "r_n r_L"]
    assert read(r"\eta/\sqrt{r_n r_L}") == Scaling.of("-1/2", "-1/2")


@pytest.mark.parametrize("cell", ["1", "r_n", "r_L^2", "sqrt(r_n)", "1/sqrt(r_L)", "r_n/r_L^2", "1/(r_n sqrt(r_L))"])
def test_cells_are_read_as_they_are_shown(cell):
    assert str(Scaling.read(cell)) == cell


@pytest.mark.parametrize("cell", ["", "r_N", "n", "1/r_n/r_L", "r_L r_n"])
def test_other_cells_are_refused(cell):
    with pytest.raises(ValueError, match="write it so"):
        Scaling.read(cell)


def test_every_table_is_there():
    assert [table.number for table in TABLES] == list(PRINTED)
    assert set(FAMILIES) == set(OPTIMIZER_NAMES)
    for optimizer, (deep, shallow) in FAMILIES.items():
        assert (hyperparameter_table(optimizer, 1).number, hyperparameter_table(optimizer, 2).number) == (shallow, deep)
        assert hyperparameter_table(optimizer, 7) is hyperparameter_table(optimizer, 2)


def test_table_1_is_table_3_without_weight_decay():
    for name, cells in TABLE_1.items():
        assert by_role(cells) == {role: scaling("muon_kimi", role, name, block_depth=2) for role in WEIGHTS}


def test_depth_reaches_only_sgd_and_epsilons_beyond_the_multiplier():
    """Takeaway 2 of the paper holds for learning rates and decays; the epsilons carry depth under every optimizer."""
    deep = {
        (optimizer, name)
        for optimizer in OPTIMIZER_NAMES
        for name in hyperparameter_table(optimizer, 2).hyperparameters(optimizer)
        if scaling(optimizer, "hidden", name, block_depth=2).depth
    }
    multipliers = {(optimizer, "block_multiplier") for optimizer in OPTIMIZER_NAMES}
    rates = {("sgd", "learning_rate"), ("sgd", "weight_decay")}
    assert deep == multipliers | rates | {("adamw", "adamw_epsilon"), ("shampoo", "shampoo_epsilon")}


def test_nothing_scales_under_the_standard_parameterization():
    for optimizer in OPTIMIZER_NAMES:
        for name in hyperparameter_table(optimizer, 2).hyperparameters(optimizer):
            for role in hyperparameter_table(optimizer, 2).roles:
                cell = scaling(optimizer, role, name, block_depth=2, parameterization="standard")
                assert cell == Scaling()


@pytest.mark.parametrize("optimizer", OPTIMIZER_NAMES)
@pytest.mark.parametrize("role", BIASES)
def test_biases_belong_to_optimizers_of_vectors(optimizer, role):
    if optimizer in ("sgd", "adamw", "lion", "sophia"):
        assert scaling(optimizer, role, "learning_rate", block_depth=2)
        return
    with pytest.raises(ValueError, match=rf"table \d+ defines no biases for '{optimizer}'.*'hidden'.*'adamw'"):
        scaling(optimizer, role, "learning_rate", block_depth=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"optimizer": "adam"}, "'adamw'"),
        ({"role": "bias"}, "'hidden_bias'"),
        ({"hyperparameter": "lr"}, "'learning_rate'"),
        ({"hyperparameter": "shampoo_epsilon"}, "do not define for 'sgd'; choose one of 'block_multiplier'"),
        ({"parameterization": "mup"}, "'spectral', 'standard'"),
        ({"block_depth": 0}, "block_depth is 0"),
    ],
)
def test_unknown_names_get_the_choices(given, message):
    asked = {"optimizer": "sgd", "role": "hidden", "hyperparameter": "learning_rate", "block_depth": 2} | given
    with pytest.raises(ValueError, match=message):
        scaling(asked.pop("optimizer"), asked.pop("role"), asked.pop("hyperparameter"), **asked)


def test_an_epsilon_belongs_to_its_optimizer():
    own = {optimizer: hyperparameter_table(optimizer, 2).hyperparameters(optimizer) for optimizer in OPTIMIZER_NAMES}
    owners = {name: [optimizer for optimizer, names in own.items() if name in names] for name in HYPERPARAMETERS}
    assert owners["adamw_epsilon"] == ["adamw"]
    assert owners["shampoo_epsilon"] == ["shampoo"]
    assert owners["learning_rate"] == list(OPTIMIZER_NAMES)


@given(scalings, scalings, ratios, ratios)
def test_scalings_multiply_as_their_factors_do(first, second, width, depth):
    assert (first * second).at(width, depth) == pytest.approx(first.at(width, depth) * second.at(width, depth))
    assert (first / second).at(width, depth) == pytest.approx(first.at(width, depth) / second.at(width, depth))
    assert (first**2).at(width, depth) == pytest.approx(first.at(width, depth) ** 2)


def test_scalings_print_as_the_papers_write_them():
    cells = {
        "1": (0, 0),
        "r_n": (1, 0),
        "1/sqrt(r_L)": (0, "-1/2"),
        "sqrt(r_n)/r_L^2": ("1/2", -2),
        "r_n^(3/2) r_L": ("3/2", 1),
    }
    assert {str(Scaling.of(*powers)): powers for powers in cells.values()} == cells
    assert Scaling.of("1/3").width == Fraction(1, 3)


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("nan"), float("inf")])
def test_ratios_must_be_positive(ratio):
    with pytest.raises(ValueError, match=r"width ratio is .* positive"):
        Scaling.of(1).at(ratio, 1)
    with pytest.raises(ValueError, match=r"depth ratio is .* positive"):
        Scaling.of(1).at(1, ratio)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"table {table.number}")
def test_the_share_that_decays_in_a_step_scales_with_the_depth_of_one_layer_blocks_alone(table):
    """Learning rate times weight decay, docs/theory.md section 14: what decay is where no rate multiplies it."""
    for role in table.roles:
        share = table.rows["learning_rate"][role] * table.rows["weight_decay"][role]
        hidden = table.one_layer and role.startswith("hidden")
        assert share == (Scaling.of(0, "-1/2") if hidden else Scaling())


GROWN = {"width": 1024, "depth": 64, "base_width": 256, "base_depth": 4, "block_depth": 2}


def warned(optimizer, **changes):
    return "\n".join(unmet_premises(optimizer, **(GROWN | changes)))


def test_what_the_paper_trained_needs_no_warning():
    """But for Muon over the width, where GPTs of our own moved (claim E5c)."""
    how = {"roles": ("hidden",), "input_dimension": 4, "output_dimension": 50257}
    for optimizer in ("muon_kimi", "shampoo"):
        assert not warned(optimizer, **how)
    assert warned("muon", **how).startswith("in GPTs of characters that learn")
    assert not warned("muon", **how, width=256)


@pytest.mark.parametrize(
    ("optimizer", "changes", "message"),
    [
        ("adamw", {"width": 128}, "width 128 is below the base's 256"),
        ("adamw", {"depth": 257}, "depth 257 is beyond what Zheng et al. 2026 trained, up to 256"),
        ("adamw", {"width": 4097}, "width 4097 is beyond"),
        ("adamw", {"output_dimension": 50257}, "output dimension 50257 exceeds the width 256"),
        ("adamw", {"input_dimension": 3072}, "input dimension 3072 exceeds"),
        ("adamw", {"block_depth": 1}, "takes the bound"),
        ("adamw", {}, "square the row's factors"),
        ("muon", {}, "on hidden weights only"),
        ("muon", {}, "sqrt(max(1, n_out/n_in))"),
        ("muon", {"muon_variant": "plain"}, "bare step U V^T"),
        ("sgd", {}, "table 5 for sgd but train no language model"),
        ("sophia", {}, "Zheng et al. 2026 give no epsilon"),
        ("soap", {}, "square root of Shampoo's row"),
        ("sso", {}, "contradicts SSO's own constraint"),
        ("adamw", {"output_dimension": 1000, "width": 512, "base_width": 2000}, "exceeds the width 512"),
        ("sgd", {"parameterization": "standard"}, "not even the initial variance"),
    ],
)
def test_warnings(optimizer, changes, message):
    assert message in warned(optimizer, **changes)


def test_factors_of_a_variant_need_no_warning_of_it():
    assert "U V^T" not in warned("muon", muon_variant="original")


@pytest.mark.parametrize("optimizer", ["adamw", "sophia", "soap", "sso"])
def test_a_variant_of_muon_silences_no_other_optimizer(optimizer):
    """In a hybrid, notes on epsilons and on SSO stay whatever Muon's step is multiplied by."""
    assert warned(optimizer, muon_variant="original") == warned(optimizer)
    assert warned(optimizer)


def test_standard_parameterization_says_that_rates_do_not_carry_over_depth():
    said = "keeps the learning rate over depth, where the rate that suits a net does not stay"
    assert said in warned("sgd", parameterization="standard")
    assert said not in warned("sgd", parameterization="standard", depth=GROWN["base_depth"])
    assert said not in warned("sgd")


def test_warnings_keep_to_the_roles():
    inner = {"roles": ("hidden",), "output_dimension": 50257, "input_dimension": 3072}
    assert "output" not in warned("sso", **inner)
    assert "exceeds" not in warned("sso", **inner)
    assert "takes the bound" not in warned("adamw", roles=("output",), block_depth=1)


@pytest.mark.parametrize("optimizer", OPTIMIZER_NAMES)
def test_trained_sizes_are_not_called_beyond(optimizer):
    assert "beyond" not in warned(optimizer, width=4096, depth=256)
    assert "below the base" not in warned(optimizer, width=256, depth=4)


# What a warning tells its reader to do.
REMEDIES = re.compile(r"take|tune|see in|give it|say which|divide|square the row|weights that start at R")


@pytest.mark.parametrize("optimizer", OPTIMIZER_NAMES)
@pytest.mark.parametrize("parameterization", ["spectral", "standard"])
@pytest.mark.parametrize("block_depth", [1, 2])
def test_every_warning_has_its_remedy(optimizer, parameterization, block_depth):
    broken = {"width": 8192, "depth": 2, "output_dimension": 50257, "input_dimension": 3072}
    how = GROWN | broken | {"parameterization": parameterization, "block_depth": block_depth}
    sentences = unmet_premises(optimizer, **how)
    assert sentences
    assert [sentence for sentence in sentences if not REMEDIES.search(sentence)] == []


def test_dimensions_must_be_counts():
    with pytest.raises(ValueError, match="output_dimension is 0"):
        warned("sgd", output_dimension=0)
