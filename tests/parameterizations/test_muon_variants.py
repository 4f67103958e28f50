"""Factors for Muon's variants: the update of every role keeps its norm over widths, whatever its step is."""

import numpy as np
import pytest

from meanfield.optimizers.matrices import ELEMENT_SIZE
from meanfield.parameterizations import (
    MUON_VARIANTS,
    WEIGHTS,
    hyperparameter_table,
    muon_step_size,
    muon_variant_factors,
)

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
