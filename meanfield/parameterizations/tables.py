"""The hyperparameter tables that P1 prints, as data: what every hyperparameter of every role is multiplied by.

Tables 3 .. 7 implement condition 3.1 (branches of two layers; of k >= 2 by condition B.2), tables 9 .. 13 condition B.1
(branches of one layer). Table 1 is table 3 without weight decay. The standard parameterization is printed in grey in
the same cells: no hyperparameter depends on width or depth. Every cell is typed here as the paper prints it; what
follows from update norms instead is `meanfield.theory.laws.update_norms`, and
`meanfield.verification.zheng_2026.hyperparameter_tables` holds one against the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from meanfield.common.validation import require_choice, require_count
from meanfield.parameterizations.scalings import CONSTANT, Scaling

OPTIMIZERS = ("sgd", "adamw", "lion", "sophia", "muon", "muon_kimi", "shampoo", "soap", "sso")
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

_of = Scaling.of
_Row = Mapping[str, Scaling]


def _weights(input: Scaling, hidden: Scaling, output: Scaling) -> _Row:
    return dict(zip(WEIGHTS, (input, hidden, output), strict=True))


def _with_biases(input: Scaling, hidden: Scaling, output: Scaling, hidden_bias: Scaling) -> _Row:
    """Input weights and input biases share a column."""
    return {**_weights(input, hidden, output), "input_bias": input, "hidden_bias": hidden_bias}


@dataclass(frozen=True)
class Table:
    """One table: for each hyperparameter and role the factor against the base model.

    Attributes:
        number: P1's table.
        optimizers: those that share it.
        one_layer: whether it is for branches of one layer (condition B.1), else of two or more (conditions 3.1, B.2).
        rows: hyperparameter -> role -> `Scaling`, as printed.
    """

    number: int
    optimizers: tuple[str, ...]
    one_layer: bool
    rows: Mapping[str, _Row]

    @property
    def roles(self) -> tuple[str, ...]:
        """Those it has columns for: biases only where the optimizer steps vectors."""
        return tuple(role for role in ROLES if role in self.rows["learning_rate"])

    def hyperparameters(self, optimizer: str) -> tuple[str, ...]:
        """Those that this optimizer has; an epsilon belongs to the optimizer that its row names."""
        others = {f"{name}_epsilon" for name in OPTIMIZERS if name != optimizer}
        return tuple(name for name in HYPERPARAMETERS if name in self.rows and name not in others)


def _table(number: int, optimizers: tuple[str, ...], one_layer: bool, **rows: _Row) -> Table:
    """With the rows of multiplier and variance, which do not depend on the optimizer (section 4.1, appendix D)."""
    branch = _of(0, "-1/2") if one_layer else _of(0, -1)
    shared = {
        "block_multiplier": _with_biases(CONSTANT, branch, _of(-1), branch),
        "initial_variance": _with_biases(CONSTANT, _of(-1), CONSTANT, CONSTANT),
    }
    roles = tuple(rows["learning_rate"])
    initial = {name: {role: row[role] for role in roles} for name, row in shared.items()}
    return Table(number, optimizers, one_layer, {**initial, **rows})


def _deep(number: int, optimizers: tuple[str, ...], **rows: _Row) -> Table:
    return _table(number, optimizers, False, **rows)


def _shallow(number: int, optimizers: tuple[str, ...], **rows: _Row) -> Table:
    return _table(number, optimizers, True, **rows)


_ORTHOGONAL = ("muon", "shampoo", "soap")
_SIGN = ("adamw", "lion", "sophia")

TABLES = (
    _deep(
        3,
        ("muon_kimi",),
        learning_rate=_weights(CONSTANT, _of("-1/2"), CONSTANT),
        weight_decay=_weights(CONSTANT, _of("1/2"), CONSTANT),
    ),
    _deep(
        4,
        _ORTHOGONAL,
        learning_rate=_weights(_of("1/2"), CONSTANT, _of("1/2")),
        weight_decay=_weights(_of("-1/2"), CONSTANT, _of("-1/2")),
        shampoo_epsilon=_weights(_of(-1), _of(0, -2), _of(-1)),
    ),
    _deep(
        5,
        ("sgd",),
        learning_rate=_with_biases(_of(1), _of(0, 1), _of(1), _of(1, 1)),
        weight_decay=_with_biases(_of(-1), _of(0, -1), _of(-1), _of(-1, -1)),
    ),
    _deep(
        6,
        _SIGN,
        learning_rate=_with_biases(CONSTANT, _of(-1), CONSTANT, CONSTANT),
        weight_decay=_with_biases(CONSTANT, _of(1), CONSTANT, CONSTANT),
        adamw_epsilon=_with_biases(_of(-1), _of(-1, -1), _of(-1), _of(-1, -1)),
    ),
    _deep(
        7,
        ("sso",),
        learning_rate=_weights(CONSTANT, CONSTANT, _of(1)),
        weight_decay=_weights(CONSTANT, CONSTANT, _of(-1)),
    ),
    _shallow(
        9,
        ("muon_kimi",),
        learning_rate=_weights(CONSTANT, _of("-1/2", "-1/2"), CONSTANT),
        weight_decay=_weights(CONSTANT, _of("1/2"), CONSTANT),
    ),
    _shallow(
        10,
        _ORTHOGONAL,
        learning_rate=_weights(_of("1/2"), _of(0, "-1/2"), _of("1/2")),
        weight_decay=_weights(_of("-1/2"), CONSTANT, _of("-1/2")),
        shampoo_epsilon=_weights(_of(-1), _of(0, -1), _of(-1)),
    ),
    _shallow(
        11,
        ("sgd",),
        learning_rate=_with_biases(_of(1), CONSTANT, _of(1), _of(1)),
        weight_decay=_with_biases(_of(-1), _of(0, "-1/2"), _of(-1), _of(-1, "-1/2")),
    ),
    _shallow(
        12,
        _SIGN,
        learning_rate=_with_biases(CONSTANT, _of(-1, "-1/2"), CONSTANT, _of(0, "-1/2")),
        weight_decay=_with_biases(CONSTANT, _of(1), CONSTANT, CONSTANT),
        adamw_epsilon=_with_biases(_of(-1), _of(-1, "-1/2"), _of(-1), _of(-1, "-1/2")),
    ),
    _shallow(
        13,
        ("sso",),
        learning_rate=_weights(CONSTANT, _of(0, "-1/2"), _of(1)),
        weight_decay=_weights(CONSTANT, CONSTANT, _of(-1)),
    ),
)


def hyperparameter_table(optimizer: str, block_depth: int) -> Table:
    """The table that P1 gives for this optimizer and branches of ``block_depth`` layers.

    Raises:
        ValueError: an unknown optimizer; TypeError, ValueError: a block depth that is no count.
    """
    require_choice("optimizer", optimizer, OPTIMIZERS)
    one_layer = require_count("block_depth", block_depth, why="layers of a branch") == 1
    return next(table for table in TABLES if optimizer in table.optimizers and table.one_layer == one_layer)


def scaling(
    optimizer: str, role: str, hyperparameter: str, *, block_depth: int, parameterization: str = "spectral"
) -> Scaling:
    """One cell: what ``hyperparameter`` of ``role`` is multiplied by, as P1 prints it.

    Raises:
        ValueError: an unknown optimizer, role, hyperparameter or parameterization; a cell that the table does not
            define, such as a bias under an optimizer of matrices, with where to take it from.
    """
    require_choice("parameterization", parameterization, PARAMETERIZATIONS)
    table = hyperparameter_table(optimizer, block_depth)
    require_choice("role", role, ROLES)
    require_choice("hyperparameter", hyperparameter, HYPERPARAMETERS)
    if role not in table.roles:
        raise ValueError(
            f"role is {role!r}, but P1 table {table.number} defines no biases for {optimizer!r}: an optimizer of "
            f"matrices does not step vectors; choose one of {_listed(table.roles)}, and step the biases with 'adamw' "
            "or 'sgd', whose tables have them"
        )
    if hyperparameter not in table.hyperparameters(optimizer):
        raise ValueError(
            f"hyperparameter is {hyperparameter!r}, which P1 does not define for {optimizer!r}; choose one of "
            f"{_listed(table.hyperparameters(optimizer))}"
        )
    return CONSTANT if parameterization == "standard" else table.rows[hyperparameter][role]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
