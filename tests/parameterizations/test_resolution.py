"""Numbers for every layer, by hand; and what is refused.

Factors for Muon's variants: the update of every role keeps its norm over widths, whatever its step is.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.optimizers.matrices import ELEMENT_SIZE
from meanfield.parameterizations import (
    MUON_VARIANTS,
    OPTIMIZER_NAMES,
    UNPRINTED,
    WEIGHTS,
    hyperparameter_table,
    muon_step_size,
    muon_variant_factors,
    optimizers_by_role,
    transfer_hyperparameters,
)
from meanfield.theory import derive_scaling

GROWN = {"width": 4096, "depth": 64, "base_width": 256, "base_depth": 4}
sizes = st.integers(1, 10**6)


def test_muon_kimi_as_in_the_main_text():
    base = {"block_multiplier": 1.0, "initial_variance": 4e-4, "learning_rate": 2**-7, "weight_decay": 0.1}
    transferred = transfer_hyperparameters("muon_kimi", **GROWN, base_values=base, block_depth=2)
    assert list(transferred) == ["input", "hidden", "output"]
    assert transferred["input"] == base
    assert transferred["hidden"] == pytest.approx(
        {"block_multiplier": 1 / 16, "initial_variance": 2.5e-5, "learning_rate": 2**-9, "weight_decay": 0.4}
    )
    assert transferred["output"] == base | {"block_multiplier": 1 / 16}


def test_one_layer_branches_take_the_other_table():
    base = {"block_multiplier": 1.0, "learning_rate": 0.02}
    hidden = transfer_hyperparameters("muon_kimi", **GROWN, base_values=base, block_depth=1)["hidden"]
    assert hidden == pytest.approx({"block_multiplier": 1 / 4, "learning_rate": 0.02 / 16})


def test_sgd_as_in_appendix_g2():
    """Appendix G.2 writes table 5 out for a base of one unit and one block: n = 256, d_0 = 3072."""
    base = {"block_multiplier": 1.0, "initial_variance": 2.0, "learning_rate": 0.001}
    transferred = transfer_hyperparameters(
        "sgd",
        width=256,
        depth=32,
        base_width=1,
        base_depth=1,
        base_values=base,
        block_depth=2,
        roles=("input", "hidden", "output"),
        input_dimension=3072,
    )
    names = ("block_multiplier", "initial_variance", "learning_rate")
    printed = {
        "input": (1.0, 2 / 3072, 0.001 * 256),
        "hidden": (1 / 32, 2 / 256, 0.001 * 32),
        "output": (1 / 256, 2.0, 0.001 * 256),
    }
    for role, values in printed.items():
        assert transferred[role] == pytest.approx(dict(zip(names, values, strict=True)))


def test_the_input_dimension_divides_the_variance_of_input_weights_alone():
    base = {"initial_variance": 2.0, "learning_rate": 0.1}
    given, plain = (
        transfer_hyperparameters("adamw", **GROWN, base_values=base, block_depth=2, **more)
        for more in ({"input_dimension": 3072}, {})
    )
    for role, values in plain.items():
        divisor = 3072 if role == "input" else 1
        assert given[role] == values | {"initial_variance": values["initial_variance"] / divisor}


def test_base_values_may_differ_by_role():
    rates = {"input": 1.0, "hidden": 2.0, "output": 3.0}
    transferred = transfer_hyperparameters("sso", **GROWN, base_values={"learning_rate": rates}, block_depth=2)
    assert {role: values["learning_rate"] for role, values in transferred.items()} == {
        "input": 1.0,
        "hidden": 2.0,
        "output": 48.0,
    }


@given(
    st.sampled_from(OPTIMIZER_NAMES), st.integers(1, 3), st.tuples(sizes, sizes, sizes), st.tuples(sizes, sizes, sizes)
)
def test_two_steps_are_one(optimizer, block_depth, widths, depths):
    """From the base to a middle net and on to the large one is from the base to the large one."""
    names = hyperparameter_table(optimizer, block_depth).hyperparameters(optimizer)

    def carry(first, last, values):
        ends = {"base_width": widths[first], "base_depth": depths[first], "width": widths[last], "depth": depths[last]}
        transferred = transfer_hyperparameters(optimizer, **ends, base_values=values, block_depth=block_depth)
        return {name: {role: transferred[role][name] for role in transferred} for name in names}

    start = dict.fromkeys(names, 1.5)
    twice, once = carry(1, 2, carry(0, 1, start)), carry(0, 2, start)
    for name in names:
        assert twice[name] == pytest.approx(once[name], rel=1e-12)


def test_the_standard_parameterization_leaves_the_base_values():
    base = {"block_multiplier": 1.0, "initial_variance": 0.5, "learning_rate": 0.1, "adamw_epsilon": 1e-8}
    transferred = transfer_hyperparameters(
        "adamw", **GROWN, base_values=base, block_depth=2, parameterization="standard"
    )
    assert all(values == base for values in transferred.values())


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"width": 0}, ValueError, "width is 0"),
        ({"base_depth": -4}, ValueError, "base_depth is -4"),
        ({"depth": 2.5}, TypeError, "whole number"),
        ({"base_values": {"learning_rate": -1.0}}, ValueError, "base value of learning_rate is -1.0"),
        ({"base_values": {"learning_rate": float("nan")}}, ValueError, "finite"),
        ({"base_values": {"learning_rate": "0.1"}}, TypeError, "must be a number"),
        ({"base_values": {"rate": 0.1}}, ValueError, "'learning_rate'"),
        ({"base_values": {"adamw_epsilon": 0.1}}, ValueError, "do not define for 'muon'"),
        ({"base_values": {"learning_rate": {"hidden": 0.1}}}, ValueError, "given for 'hidden' and not for 'input'"),
        ({"base_values": {"learning_rate": {"hidden_bias": 0.1}}}, ValueError, "'hidden_bias'; choose one of 'input'"),
        ({"base_values": 0.1}, TypeError, "map hyperparameters"),
        ({"roles": ("hidden_bias",)}, ValueError, "defines no biases for 'muon'"),
        ({"block_depth": 0}, ValueError, "layers of a branch"),
        ({"input_dimension": 0}, ValueError, "input_dimension is 0"),
    ],
)
def test_bad_input(given, error, message):
    asked = GROWN | {"base_values": {"learning_rate": 0.1}, "block_depth": 2} | given
    with pytest.raises(error, match=message):
        transfer_hyperparameters("muon", **asked)


def test_a_hybrid_takes_each_role_from_the_optimizer_that_steps_it():
    """Muon's hidden weights and AdamW's others, and an epsilon for the roles of its optimizer alone."""
    sizes = {**GROWN, "block_depth": 2}
    base = {"learning_rate": {"input": 0.001, "hidden": 0.02, "output": 0.001, "input_bias": 0.001, "hidden_bias": 0.1}}
    transferred = transfer_hyperparameters("muon-adamw", **sizes, base_values=base | {"adamw_epsilon": 1e-8})
    assert list(transferred) == ["input", "hidden", "output", "input_bias", "hidden_bias"]
    assert transferred["hidden"] == {"learning_rate": 0.02}
    others = transfer_hyperparameters("adamw", **sizes, base_values={"learning_rate": 0.1, "adamw_epsilon": 1e-8})
    assert transferred["hidden_bias"] == others["hidden_bias"]
    assert optimizers_by_role("muon-adamw", 2)["hidden"] == "muon"
    with pytest.raises(ValueError, match="optimizer is 'adam'"):
        transfer_hyperparameters("muon-adam", **sizes, base_values=base)


@pytest.mark.parametrize("block_depth", [1, 2])
@pytest.mark.parametrize("name", UNPRINTED)
def test_epsilons_that_the_paper_leaves_out_scale_as_update_norms_say(name, block_depth):
    optimizer = name.removesuffix("_epsilon")
    ratios = GROWN["width"] / GROWN["base_width"], GROWN["depth"] / GROWN["base_depth"]
    transferred = transfer_hyperparameters(optimizer, **GROWN, base_values={name: 1e-3}, block_depth=block_depth)
    for role, values in transferred.items():
        derived = derive_scaling(optimizer, role, name, block_depth=block_depth).at(*ratios)
        assert values[name] == pytest.approx(1e-3 * derived)
    with pytest.raises(ValueError, match="do not define for 'muon'"):
        transfer_hyperparameters("muon", **GROWN, base_values={name: 1e-3}, block_depth=block_depth)


def test_variants_of_muon_change_rates_and_decays_against_each_other():
    base = {"learning_rate": 0.02, "weight_decay": 0.1}
    asked = {**GROWN, "block_depth": 2, "base_values": base, "output_dimension": 50257}
    plain = transfer_hyperparameters("muon-adamw", **asked)
    varied = transfer_hyperparameters("muon-adamw", **asked, muon_variant="match_rms_adamw")
    assert {role for role in plain if plain[role] != varied[role]} == {"hidden"}
    assert varied["hidden"]["learning_rate"] == pytest.approx(plain["hidden"]["learning_rate"] / 4)
    assert varied["hidden"]["weight_decay"] == pytest.approx(plain["hidden"]["weight_decay"] * 4)
    with pytest.raises(ValueError, match="which steps nothing here"):
        transfer_hyperparameters("sgd", **asked, muon_variant="original")
    with pytest.raises(ValueError, match="by standard none does"):
        transfer_hyperparameters("muon", **asked, muon_variant="original", parameterization="standard")


RATIO = 4


def shape_of(role, width, dimension):
    return {"input": (width, dimension), "output": (dimension, width)}.get(role, (width, width))


@pytest.mark.parametrize("variant", MUON_VARIANTS)
@pytest.mark.parametrize("role", WEIGHTS)
@pytest.mark.parametrize("dimension", [3, 40, 200])
def test_updates_keep_their_norm(variant, role, dimension):
    """alpha |eta A|_R of drawn directions over widths 16 and 64: dimensions below both, between them, above both."""
    rows = hyperparameter_table("muon", 2).rows
    factors = muon_variant_factors(
        variant, width=16 * RATIO, base_width=16, input_dimension=dimension, output_dimension=dimension
    )
    norms = []
    for ratio, factor in ((1, 1.0), (RATIO, factors[role])):
        outputs, inputs = shape_of(role, 16 * ratio, dimension)
        left, _, right = np.linalg.svd(np.random.default_rng(0).normal(size=(outputs, inputs)), full_matrices=False)
        step = muon_step_size(variant, outputs, inputs) * left @ right
        rate, multiplier = (rows[name][role].at(ratio, 1) for name in ("learning_rate", "block_multiplier"))
        norms.append(multiplier * rate * factor * np.sqrt(inputs / outputs) * np.linalg.norm(step, 2))
    assert norms[1] == pytest.approx(norms[0])


def test_at_small_dimensions_the_variant_of_kimi_has_its_own_table():
    factors = muon_variant_factors("match_rms_adamw", width=64, base_width=16, input_dimension=3, output_dimension=3)
    muon, kimi = (hyperparameter_table(name, 2).rows["learning_rate"] for name in ("muon", "muon_kimi"))
    for role, factor in factors.items():
        assert muon[role].at(RATIO, 1) * factor == pytest.approx(kimi[role].at(RATIO, 1))


def test_above_the_width_a_vocabulary_changes_what_scales():
    """Then 0.2 sqrt(max) stands still at input and output, and sqrt(max(1, n_out/n_in)) at the input alone."""
    sizes = {"width": 64, "base_width": 16, "input_dimension": 1000, "output_dimension": 1000}
    assert muon_variant_factors("match_rms_adamw", **sizes) == pytest.approx({"input": 1, "hidden": 0.5, "output": 1})
    assert muon_variant_factors("original", **sizes) == pytest.approx({"input": 1, "hidden": 1, "output": 2})
    assert muon_variant_factors("spectral", **sizes) == pytest.approx({"input": 0.5, "hidden": 1, "output": 2})


def test_step_sizes_are_those_of_torch():
    assert muon_step_size("original", 8, 2) == 2.0
    assert muon_step_size("original", 2, 8) == 1.0
    assert muon_step_size("spectral", 2, 8) == 0.5
    assert muon_step_size("match_rms_adamw", 2, 9) == pytest.approx(ELEMENT_SIZE * 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": "kimi"}, "Muon's variant is 'kimi'; choose one of 'plain'"),
        ({"roles": ("bias",)}, "role is 'bias'"),
        ({"output_dimension": None}, "the factor of output weights depends on output_dimension"),
        ({"width": 0}, "width is 0"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    given = {"variant": "original", "width": 64, "base_width": 16, "input_dimension": 3, "output_dimension": 3}
    with pytest.raises(ValueError, match=message):
        muon_variant_factors(**(given | arguments))
