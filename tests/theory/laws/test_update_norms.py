"""Exponents from update norms: what they share, and where they part."""

import pytest

from meanfield.parameterizations import HYPERPARAMETERS, OPTIMIZER_NAMES, TABLES, WEIGHTS, Scaling, hyperparameter_table
from meanfield.theory.laws import derive_scaling


def derived(optimizer, block_depth):
    table = hyperparameter_table(optimizer, block_depth)
    return {
        (role, name): derive_scaling(optimizer, role, name, block_depth=block_depth)
        for role in table.roles
        for name in table.hyperparameters(optimizer)
    }


@pytest.mark.parametrize("optimizer", OPTIMIZER_NAMES)
def test_deeper_branches_scale_as_those_of_two_layers(optimizer):
    assert derived(optimizer, 3) == derived(optimizer, 5) == derived(optimizer, 2)


@pytest.mark.parametrize("optimizer", OPTIMIZER_NAMES)
def test_the_two_conditions_part_in_hidden_layers_only(optimizer):
    single, pair = derived(optimizer, 1), derived(optimizer, 2)
    parted = {role for (role, name), condition in single.items() if condition != pair[role, name]}
    assert "hidden" in parted
    assert parted <= {"hidden", "hidden_bias"}


def test_every_update_moves_the_features_by_one():
    """alpha |Delta W| = 1/L per block and 1 outside, with the derived scales put back in: Lion's signs."""
    width, depth = Scaling.of(1), Scaling.of(0, 1)
    fan_in = {"input": Scaling(), "hidden": width, "output": width}
    for block_depth in (1, 2):
        for role in WEIGHTS:
            multiplier, rate = (
                derive_scaling("lion", role, name, block_depth=block_depth)
                for name in ("block_multiplier", "learning_rate")
            )
            target = Scaling() / depth if role == "hidden" else Scaling()
            assert multiplier * rate * fan_in[role] == target


def test_epsilons_that_the_paper_leaves_out():
    for block_depth in (1, 2):
        for role in WEIGHTS:
            at = {"role": role, "block_depth": block_depth}
            shampoo = derive_scaling("shampoo", hyperparameter="shampoo_epsilon", **at)
            assert derive_scaling("soap", hyperparameter="soap_epsilon", **at) ** 2 == shampoo
            adamw = derive_scaling("adamw", hyperparameter="adamw_epsilon", **at)
            assert derive_scaling("sophia", hyperparameter="sophia_epsilon", **at) == adamw


def test_sso_off_its_sphere_is_as_printed():
    """The printed output column follows only if the constraint on the weights' norm is dropped."""
    for table in (table for table in TABLES if "sso" in table.optimizers):
        for name, row in table.rows.items():
            for role, printed in row.items():
                depth = 1 if table.one_layer else 2
                free = derive_scaling("sso", role, name, block_depth=depth)
                held = derive_scaling("sso", role, name, block_depth=depth, on_sphere=True)
                assert free == printed
                assert (held == printed) == (role != "output")


def test_on_and_off_the_sphere_the_function_is_the_same():
    """alpha sigma, the scale of alpha W, and alpha eta A, that of its change, do not depend on where W is kept."""
    for block_depth in (1, 2):
        for role in WEIGHTS:
            scales = []
            for on_sphere in (True, False):
                alpha, variance, rate = (
                    derive_scaling("sso", role, name, block_depth=block_depth, on_sphere=on_sphere)
                    for name in ("block_multiplier", "initial_variance", "learning_rate")
                )
                scales.append((alpha**2 * variance, alpha * rate))
            assert scales[0] == scales[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("adam", "hidden", "learning_rate"), "'adamw'"),
        (("sgd", "head", "learning_rate"), "'output'"),
        (("sgd", "hidden", "rate"), "'learning_rate'"),
        (("muon", "hidden_bias", "learning_rate"), "steps matrices"),
        (("sgd", "hidden", "adamw_epsilon"), "no hyperparameter of 'sgd'"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(ValueError, match=message):
        derive_scaling(*given, block_depth=2)


def test_every_hyperparameter_is_derived():
    assert {name for optimizer in OPTIMIZER_NAMES for _, name in derived(optimizer, 2)} == set(HYPERPARAMETERS)
