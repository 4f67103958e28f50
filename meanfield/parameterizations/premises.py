"""The premises of the tables of Zheng et al. 2026, and where a net or an optimizer breaks them."""

from collections.abc import Sequence

from meanfield.common.validation import require_count
from meanfield.parameterizations.tables import hyperparameter_table

PREMISES = (
    "derived for one step on one sample, linear branches of a fixed number of layers, no momentum, and dimensions of "
    "input and output that stay fixed as the width grows"
)

PAPER = "Zheng et al. 2026"
KEEPS_OVER_DEPTH = (
    "standard parameterization keeps the learning rate over depth, where the rate that suits a net does not stay: "
    "`meanfield.explain_transfer` has the factor that one step of the optimizer asks for, by the kind of net; carry by "
    "it, tune the rate again at the new depth, or take spectral"
)

# What the paper trained (section 5.1). Optimizers of matrices stepped hidden weights only, AdamW all others.
LARGEST_TRAINED = {"width": 4096, "depth": 256}
_TRAINED_ON_HIDDEN = ("muon", "muon_kimi", "shampoo")
_TRAINED = ("adamw", "sophia")

# Optimizer -> the role that this is about (None: all), and what the table leaves open.
_OF_OPTIMIZER: dict[str, tuple[str | None, str]] = {
    "adamw": (
        None,
        "the epsilon row holds for sqrt(v) + eps, as torch.optim.AdamW and optax's eps have it; if yours stands under "
        "the root, as in eq. 19 and optax's eps_root, square the row's factors",
    ),
    "sophia": (
        None,
        f"{PAPER} give no epsilon; the step is a sign only while epsilon stays below the gradient's entries, "
        "and so scales as AdamW's row: give it as --base-epsilon or sophia_epsilon",
    ),
    "soap": (
        None,
        f"{PAPER} give no epsilon; SOAP adds it to singular values of the gradient, which scale as the square "
        "root of Shampoo's row: give it as --base-epsilon or soap_epsilon",
    ),
    "muon": (
        "input",
        "for the bare step U V^T; common implementations multiply it by sqrt(max(1, n_out/n_in)) or by another number "
        "that grows with the width: say which (--muon-variant, `muon_variant_factors`)",
    ),
    "sso": (
        "output",
        "the output column contradicts SSO's own constraint |W|_2 = R = sqrt(n_out/n_in): the paper's initial variance "
        "puts these weights at r_n R, and a step that returns them to R shrinks the output by r_n; with weights that "
        "start at R the initial variance scales as 1/r_n^2; multiplier, learning rate and weight decay do not scale",
    ),
}


def unmet_premises(
    optimizer: str,
    *,
    width: int,
    depth: int,
    base_width: int,
    base_depth: int,
    block_depth: int,
    parameterization: str = "spectral",
    roles: Sequence[str] | None = None,
    input_dimension: int | None = None,
    output_dimension: int | None = None,
    muon_variant: str = "plain",
) -> list[str]:
    """One sentence for every premise of the table that this use of it breaks, with what to do about it.

    Args:
        optimizer, width, depth, base_width, base_depth, block_depth, parameterization, roles: as for
            `transfer_hyperparameters`.
        input_dimension, output_dimension: d_0 and d_(L+1), where known; the output's is the vocabulary of a
            language model.
        muon_variant: whose factors the learning rates have already (`muon_variant_factors`).

    Raises:
        TypeError, ValueError: an unknown optimizer; a block depth or dimension that is no count.
    """
    dimensions = {"input": input_dimension, "output": output_dimension}
    for role, dimension in dimensions.items():
        if dimension is not None:
            require_count(f"{role}_dimension", dimension)
    table = hyperparameter_table(optimizer, block_depth)
    used = table.roles if roles is None else roles
    if parameterization == "standard":
        grown = "each hidden layer then multiplies the features by sqrt(r_n)"
        sentences = [
            f"as printed, not even the initial variance of hidden weights falls with the width: {grown}; divide the "
            "variance by r_n, or take spectral"
        ]
        return sentences + [KEEPS_OVER_DEPTH] * (depth != base_depth)
    sentences = _sizes({"width": (base_width, width), "depth": (base_depth, depth)})
    for role, dimension in dimensions.items():
        if role in used and dimension is not None and dimension > (smallest := min(width, base_width)):
            sentences.append(
                f"{role} dimension {dimension} exceeds the width {smallest}: the {role} column is for dimensions that "
                "are small compared with the width; tune its rate at two widths before you carry it"
            )
    if optimizer in _TRAINED_ON_HIDDEN and set(used) != {"hidden"}:
        others = f"take {optimizer}-adamw (--others adamw)"
        sentences.append(
            f"{PAPER} trained {optimizer} on hidden weights only; AdamW stepped all other parameters: {others}"
        )
    elif optimizer not in (*_TRAINED, *_TRAINED_ON_HIDDEN):
        sentences.append(
            f"{PAPER} derive table {table.number} for {optimizer} but train no language model with it; tune the rate "
            "at two sizes before you carry it"
        )
    if table.one_layer and "hidden" in used:
        sentences.append(
            "condition B.1 only bounds the branch multiplier by 1/sqrt(r_L); the table takes the bound: a smaller base "
            "multiplier is allowed, too, so tune it"
        )
    about, sentence = _OF_OPTIMIZER.get(optimizer, ("", ""))
    if optimizer == "muon" and muon_variant != "plain":
        about = ""  # its rates have the factors already
    return sentences + [sentence] * (about is None or about in used)


def _sizes(sizes: dict[str, tuple[int, int]]) -> list[str]:
    sentences = []
    for name, (base, size) in sizes.items():
        if size < base:
            sentences.append(
                f"{name} {size} is below the base's {base}: the exponents describe growing nets; tune a smaller base"
            )
        if size > LARGEST_TRAINED[name]:
            sentences.append(
                f"{name} {size} is beyond what {PAPER} trained, up to {LARGEST_TRAINED[name]}; see in a coordinate "
                "check that features keep their size there"
            )
    return sentences
