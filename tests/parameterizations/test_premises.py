"""Warnings where a premise fails, and none where all hold."""

import re

import pytest

from meanfield.parameterizations import OPTIMIZER_NAMES, unmet_premises

GROWN = {"width": 1024, "depth": 64, "base_width": 256, "base_depth": 4, "block_depth": 2}


def warned(optimizer, **changes):
    return "\n".join(unmet_premises(optimizer, **(GROWN | changes)))


def test_what_the_paper_trained_needs_no_warning():
    for optimizer in ("muon", "muon_kimi", "shampoo"):
        assert not warned(optimizer, roles=("hidden",), input_dimension=4, output_dimension=50257)


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
