"""The hyperparameter tables of Zheng et al. 2026, as data: the factor of every hyperparameter of every role.

A factor is against the base model, in exact powers of the width ratio and of the depth ratio. Tables 3 .. 7 implement
condition 3.1 (branches of two layers; of k >= 2 by condition B.2), tables 9 .. 13 condition B.1 (branches of one
layer). Table 1 is table 3 without weight decay. The standard parameterization is printed in grey in the same cells:
no hyperparameter depends on width or depth. Every cell stands here as the paper prints it. Weight decays are for
steps W <- W - rate (direction + decay W) (appendix C.1). `meanfield.theory.laws` derives the same factors
from update norms, and the study `sims.table_cells` compares the two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from meanfield.common.validation import require_choice, require_count

_FACTOR = re.compile(r"(sqrt\()?(r_[nL])\)?(?:\^(\d+))?")

# A role and one of its hyperparameters.
Cell = tuple[str, str]


@dataclass(frozen=True)
class Scaling:
    """r_n^width r_L^depth, with r_n = n / n_base and r_L = L / L_base (Zheng et al. 2026, section 4.4).

    Exponents are exact fractions; products, quotients and rational powers of scalings are scalings.
    """

    width: Fraction = Fraction(0)
    depth: Fraction = Fraction(0)

    @classmethod
    def of(cls, width: int | str | Fraction = 0, depth: int | str | Fraction = 0) -> Scaling:
        """Make a scaling from exponents that `Fraction` reads: 1, "-1/2", Fraction(1, 2)."""
        return cls(Fraction(width), Fraction(depth))

    @classmethod
    def read(cls, printed: str) -> Scaling:
        """Read a cell as `str` prints it, such as "r_n" or "1/(r_n sqrt(r_L))"; ValueError for any other text."""
        exponents = {"r_n": Fraction(0), "r_L": Fraction(0)}
        for sign, part in zip((1, -1), printed.split("/"), strict=False):
            for root, name, power in _FACTOR.findall(part):
                exponents[name] += sign * Fraction(power or 1) / (2 if root else 1)
        scaling = cls(exponents["r_n"], exponents["r_L"])
        if str(scaling) != printed:
            raise ValueError(f"the cell {printed!r} reads as {scaling}; write it so")
        return scaling

    def __mul__(self, other: Scaling) -> Scaling:
        return Scaling(self.width + other.width, self.depth + other.depth)

    def __truediv__(self, other: Scaling) -> Scaling:
        return Scaling(self.width - other.width, self.depth - other.depth)

    def __pow__(self, power: int | Fraction) -> Scaling:
        return Scaling(self.width * power, self.depth * power)

    def at(self, width_ratio: float, depth_ratio: float) -> float:
        """The factor at given ratios.

        Raises:
            ValueError: a ratio that is not positive and finite.
        """
        for name, ratio in (("width", width_ratio), ("depth", depth_ratio)):
            if not (ratio > 0 and math.isfinite(ratio)):
                raise ValueError(
                    f"the {name} ratio is {ratio!r}; it must be positive and finite, the {name} over the base model's"
                )
        return float(width_ratio ** float(self.width) * depth_ratio ** float(self.depth))

    def __str__(self) -> str:
        """The scaling in plain letters: 1, r_n, 1/sqrt(r_L), sqrt(r_n)/r_L^2."""
        factors = [("r_n", self.width), ("r_L", self.depth)]
        above = [_power(name, exponent) for name, exponent in factors if exponent > 0]
        below = [_power(name, -exponent) for name, exponent in factors if exponent < 0]
        if not below:
            return " ".join(above) or "1"
        divisor = below[0] if len(below) == 1 else f"({' '.join(below)})"
        return f"{' '.join(above) or '1'}/{divisor}"


CONSTANT = Scaling()


def _power(name: str, exponent: Fraction) -> str:
    if exponent == Fraction(1, 2):
        return f"sqrt({name})"
    power = str(exponent) if exponent.denominator == 1 else f"({exponent})"
    return name if exponent == 1 else f"{name}^{power}"


OPTIMIZER_NAMES = ("sgd", "adamw", "lion", "sophia", "muon", "muon_kimi", "shampoo", "soap", "sso")
WEIGHTS = ("input", "hidden", "output")
BIASES = ("input_bias", "hidden_bias")
ROLES = WEIGHTS + BIASES
PARAMETERIZATIONS = ("spectral", "standard")
HYPERPARAMETERS = (
    "block_multiplier",
    "initial_variance",
    "learning_rate",
    "weight_decay",
    "adamw_epsilon",
    "shampoo_epsilon",
)

# Epsilons that the paper leaves out -> the row that they follow, and the power of it: Sophia divides the momentum by
# the larger of its epsilon and the curvature, so that it scales as the gradient's entries do; SOAP adds its own to
# singular values of the gradient, Shampoo to their squares. `meanfield.theory` derives both without tables.
_FOLLOWED = {
    "sophia_epsilon": ("adamw", "adamw_epsilon", Fraction(1)),
    "soap_epsilon": ("shampoo", "shampoo_epsilon", Fraction(1, 2)),
}
UNPRINTED = tuple(_FOLLOWED)

_Row = Mapping[str, Scaling]


def _row(printed: str) -> _Row:
    """Factors by role, of cells "input | hidden | output" or "input and input bias | hidden | output | hidden bias"."""
    cells = [Scaling.read(cell) for cell in printed.split(" | ")]
    row = dict(zip(WEIGHTS, cells[:3], strict=True))
    return row if len(cells) == 3 else row | dict(zip(BIASES, cells[::3], strict=True))


@dataclass(frozen=True)
class HyperparameterTable:
    """One table of Zheng et al. 2026: for each hyperparameter and role the factor against the base model.

    Attributes:
        number: the table's number in the paper.
        optimizers: those that share it.
        one_layer: whether it is for branches of one layer (condition B.1) or of more (conditions 3.1, B.2).
        rows: hyperparameter -> role -> `Scaling`, as printed.
    """

    number: int
    optimizers: tuple[str, ...]
    one_layer: bool
    rows: Mapping[str, _Row]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles with a column: biases only where the optimizer steps vectors."""
        return tuple(role for role in ROLES if role in self.rows["learning_rate"])

    def hyperparameters(self, optimizer: str) -> tuple[str, ...]:
        """The hyperparameters of this optimizer; an epsilon belongs to the optimizer that its row names."""
        foreign_epsilons = {f"{name}_epsilon" for name in OPTIMIZER_NAMES if name != optimizer}
        return tuple(name for name in HYPERPARAMETERS if name in self.rows and name not in foreign_epsilons)


def _table(number: int, *optimizers: str, **rows: str) -> HyperparameterTable:
    """Make a table with the rows of multiplier and variance, which no optimizer changes (section 4.1, appendix D)."""
    one_layer = number >= 9
    branch = "1/sqrt(r_L)" if one_layer else "1/r_L"
    shared = {
        "block_multiplier": _row(f"1 | {branch} | 1/r_n | {branch}"),
        "initial_variance": _row("1 | 1/r_n | 1 | 1"),
    }
    own = {name: _row(row) for name, row in rows.items()}
    initial = {name: {role: row[role] for role in own["learning_rate"]} for name, row in shared.items()}
    return HyperparameterTable(number, optimizers, one_layer, {**initial, **own})


_MATRICES = ("muon", "shampoo", "soap")
_SIGNS = ("adamw", "lion", "sophia")

TABLES = (
    _table(3, "muon_kimi", learning_rate="1 | 1/sqrt(r_n) | 1", weight_decay="1 | sqrt(r_n) | 1"),
    _table(
        4,
        *_MATRICES,
        learning_rate="sqrt(r_n) | 1 | sqrt(r_n)",
        weight_decay="1/sqrt(r_n) | 1 | 1/sqrt(r_n)",
        shampoo_epsilon="1/r_n | 1/r_L^2 | 1/r_n",
    ),
    _table(5, "sgd", learning_rate="r_n | r_L | r_n | r_n r_L", weight_decay="1/r_n | 1/r_L | 1/r_n | 1/(r_n r_L)"),
    _table(
        6,
        *_SIGNS,
        learning_rate="1 | 1/r_n | 1 | 1",
        weight_decay="1 | r_n | 1 | 1",
        adamw_epsilon="1/r_n | 1/(r_n r_L) | 1/r_n | 1/(r_n r_L)",
    ),
    _table(7, "sso", learning_rate="1 | 1 | r_n", weight_decay="1 | 1 | 1/r_n"),
    _table(9, "muon_kimi", learning_rate="1 | 1/(sqrt(r_n) sqrt(r_L)) | 1", weight_decay="1 | sqrt(r_n) | 1"),
    _table(
        10,
        *_MATRICES,
        learning_rate="sqrt(r_n) | 1/sqrt(r_L) | sqrt(r_n)",
        weight_decay="1/sqrt(r_n) | 1 | 1/sqrt(r_n)",
        shampoo_epsilon="1/r_n | 1/r_L | 1/r_n",
    ),
    _table(
        11, "sgd", learning_rate="r_n | 1 | r_n | r_n", weight_decay="1/r_n | 1/sqrt(r_L) | 1/r_n | 1/(r_n sqrt(r_L))"
    ),
    _table(
        12,
        *_SIGNS,
        learning_rate="1 | 1/(r_n sqrt(r_L)) | 1 | 1/sqrt(r_L)",
        weight_decay="1 | r_n | 1 | 1",
        adamw_epsilon="1/r_n | 1/(r_n sqrt(r_L)) | 1/r_n | 1/(r_n sqrt(r_L))",
    ),
    _table(13, "sso", learning_rate="1 | 1/sqrt(r_L) | r_n", weight_decay="1 | 1 | 1/r_n"),
)


def hyperparameter_table(optimizer: str, block_depth: int) -> HyperparameterTable:
    """The table of factors for this optimizer and branches of ``block_depth`` layers.

    A factor r_n^a r_L^b multiplies what was tuned on a base model of width n / r_n and depth L / r_L; `print` shows a
    cell, ``table.rows["learning_rate"]["hidden"]``, as the paper writes it.

    Raises:
        ValueError: an unknown optimizer; TypeError, ValueError: a block depth that is no count.

    Source: Zheng et al. 2026, tables 3 .. 7 and 9 .. 13.

    Examples:
        >>> import meanfield as mf
        >>> print(mf.hyperparameter_table("adamw", block_depth=2).rows["learning_rate"]["hidden"])
        1/r_n
    """
    require_choice("optimizer", optimizer, OPTIMIZER_NAMES)
    one_layer = require_count("block_depth", block_depth, why="layers of a branch") == 1
    return next(table for table in TABLES if optimizer in table.optimizers and table.one_layer == one_layer)


def scaling(
    optimizer: str, role: str, hyperparameter: str, *, block_depth: int, parameterization: str = "spectral"
) -> Scaling:
    """One cell: what ``hyperparameter`` of ``role`` is multiplied by, as the paper prints it.

    The epsilons of `UNPRINTED`, which the paper leaves out, follow from the rows of AdamW and Shampoo.

    Raises:
        ValueError: an unknown optimizer, role, hyperparameter or parameterization; a cell that the table does not
            define, such as a bias under an optimizer of matrices, with where to take it from.
    """
    require_choice("parameterization", parameterization, PARAMETERIZATIONS)
    table = hyperparameter_table(optimizer, block_depth)
    require_choice("role", role, ROLES)
    require_choice("hyperparameter", hyperparameter, (*HYPERPARAMETERS, *UNPRINTED))
    if role not in table.roles:
        raise ValueError(
            f"role is {role!r}, but in Zheng et al. 2026 table {table.number} defines no biases for {optimizer!r}: an "
            f"optimizer of matrices does not step vectors; choose one of {_listed(table.roles)}, and step the biases "
            "with 'adamw' or 'sgd', whose tables have them"
        )
    known = hyperparameters_of(optimizer, block_depth)
    if hyperparameter not in known:
        raise ValueError(
            f"hyperparameter is {hyperparameter!r}, which Zheng et al. 2026 do not define for {optimizer!r}; choose "
            f"one of {_listed(known)}"
        )
    if parameterization == "standard":
        return CONSTANT
    if hyperparameter in _FOLLOWED:
        followed, row, power = _FOLLOWED[hyperparameter]
        return hyperparameter_table(followed, block_depth).rows[row][role] ** power
    return table.rows[hyperparameter][role]


def hyperparameters_of(optimizer: str, block_depth: int) -> tuple[str, ...]:
    """The hyperparameters of this optimizer that scale: those of its table, and an epsilon that the paper leaves out.

    Raises:
        TypeError, ValueError: as for `hyperparameter_table`.
    """
    printed = hyperparameter_table(optimizer, block_depth).hyperparameters(optimizer)
    return (*printed, *(name for name in UNPRINTED if name == f"{optimizer}_epsilon"))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))


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


# What tuned base rates of our own did under the tables.
MUON_OVER_WIDTH = (
    "in GPTs of characters that learn, with Muon on hidden weights and AdamW at a tenth of its rate on others, the "
    "base rate that trains best went by -0.58 +- 0.02 octaves (factors of 2) from 32 to 128 channels under this table "
    "(E5c), and by -0.78 +- 0.02 to 256 (E5e), no less than without one: tune it at two widths"
)


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
    if optimizer == "muon" and width != base_width and not table.one_layer and "hidden" in used:
        sentences.append(MUON_OVER_WIDTH)
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
                f"{name} {size} is below the base's {base}: the exponents describe growing nets; tune a smaller base, "
                "or exchange the two if they were given the wrong way round"
            )
        if size > LARGEST_TRAINED[name]:
            sentences.append(
                f"{name} {size} is beyond what {PAPER} trained, up to {LARGEST_TRAINED[name]}; see in a coordinate "
                "check that features keep their size there"
            )
    return sentences
