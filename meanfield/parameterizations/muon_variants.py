"""Muon as programs run it, the polar factor times a number that depends on the shape, and what that does to tables."""

import math
from collections.abc import Sequence

from meanfield.common.validation import require_choice, require_count
from meanfield.parameterizations.tables import WEIGHTS

# What an n_out x n_in step U V^T is multiplied by. `original` and `match_rms_adamw` are the settings of adjust_lr_fn in
# torch.optim.Muon, `original` its default; `match_rms_adamw` is Muon-Kimi (Zheng et al. 2026, section 4.2).
MUON_VARIANTS = {
    "plain": "1",
    "spectral": "sqrt(n_out/n_in)",
    "original": "sqrt(max(1, n_out/n_in))",
    "match_rms_adamw": "0.2 sqrt(max(n_out, n_in))",
}


def muon_step_size(variant: str, outputs: int, inputs: int) -> float:
    """Spectral norm of the variant's step for a matrix of ``outputs`` rows and ``inputs`` columns.

    Raises:
        ValueError: an unknown variant; TypeError, ValueError: a size that is no count.
    """
    require_choice("Muon's variant", variant, MUON_VARIANTS)
    rows, columns = require_count("outputs", outputs), require_count("inputs", inputs)
    return {
        "plain": 1.0,
        "spectral": math.sqrt(rows / columns),
        "original": math.sqrt(max(1.0, rows / columns)),
        "match_rms_adamw": 0.2 * math.sqrt(max(rows, columns)),
    }[variant]


def muon_variant_factors(
    variant: str,
    *,
    width: int,
    base_width: int,
    roles: Sequence[str] = WEIGHTS,
    input_dimension: int | None = None,
    output_dimension: int | None = None,
) -> dict[str, float]:
    """What table 4's (k = 1: table 10's) learning rates must be multiplied by under a variant of Muon, by role.

    The tables are for the step U V^T. A variant multiplies it by s(n_out, n_in) (`MUON_VARIANTS`), so that the same
    update needs

        eta_variant / eta_table = s(base shape) / s(shape) ,

    exactly, at any sizes: also where a vocabulary exceeds the width, and the larger side of a matrix is not the one
    that grows. Weight decays are divided by the same factor, where the step is W <- W - eta (A + lambda W), so that
    eta lambda is the table's. Hidden matrices keep their aspect, and count as square.

    Args:
        variant: of `MUON_VARIANTS`.
        width, base_width: of the net and of its base model.
        roles: of "input", "hidden" and "output".
        input_dimension, output_dimension: d_0 and d_(L+1), for these roles; of a language model both the vocabulary.

    Raises:
        TypeError, ValueError: an unknown variant or role, a size that is no count or is missing.

    Source: Zheng et al. 2026, eqs. 16, 17, tables 3, 4; docs/theory.md section 14.
    """
    dimensions = {"input": input_dimension, "output": output_dimension}
    factors = {}
    for role in roles:
        require_choice("role", role, WEIGHTS)
        if role != "hidden" and dimensions[role] is None:
            raise ValueError(f"the factor of {role} weights depends on {role}_dimension, which is missing; give it")
        shapes = []
        for units in (require_count("base_width", base_width), require_count("width", width)):
            shapes.append(
                {"input": (units, input_dimension), "output": (output_dimension, units)}.get(role, (units,) * 2)
            )
        base, wanted = (muon_step_size(variant, *shape) for shape in shapes)  # type: ignore[arg-type]
        factors[role] = base / wanted
    return factors
