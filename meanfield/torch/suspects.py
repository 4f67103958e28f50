"""Which cells of a table could be wrong where a model does not stay flat, found from how its moves depend on them.

At leading order, with multipliers m, standard deviations s, learning rates r and gradients G of roles i (input), h
(hidden) and o (output), L branches of k matrices in a sum, and directions A ~ G^d of the optimizer, where d is 1 for
SGD, and 0 for steps that do not know how large the gradient is:

    stream at the start     input   m_i s_i                   hidden  m_h s_h^k
    outputs at the start    m_o s_o times the stream
    change of the stream    input   m_i r_i A_i               hidden  m_h s_h^(k-1) r_h A_h
    change of the outputs   output  m_o r_o A_o               others  m_o s_o times the change of the stream
    decay of weights        l, the part r lambda of a weight that a step takes, times the part at the start
    gradients               G_i ~ m_i m_o s_o                 G_h ~ m_h s_h^(k-1) m_o s_o          G_o ~ m_o

Under a table of Zheng et al. 2026 all of these are flat but two at the start: outputs go as n^(-1/2), and what hidden
weights add to the stream as L^(-1/2) for k >= 2; with them goes what decays. A cell x that stands in a term as x^e, and
is off by a factor r^p, gives that term the slope e p. The steepest term makes the slope of a sum.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from meanfield.parameterizations import ROLES, Scaling, hyperparameters_of, optimizers_by_role, scaling
from meanfield.torch.short_training import FIRST, LAST, OUTPUTS
from meanfield.verification import OFF, Verdict

# A hyperparameter of a role.
Cell = tuple[str, str]
# What stands in a term, and as which power.
Term = Mapping[Cell, float]

MULTIPLIER, VARIANCE, RATE, DECAY = "block_multiplier", "initial_variance", "learning_rate", "weight_decay"
# The role by whose weights biases are multiplied.
WEIGHTS_OF = {"input_bias": "input", "hidden_bias": "hidden"}
# Where a role's own weights show, with nothing between.
SHOWS_AT = {"input": FIRST, "hidden": LAST, "output": OUTPUTS}
# A size over the least that was run, as the tables call it.
RATIOS = {"width": "r_n", "depth": "r_L"}


@dataclass(frozen=True)
class Suspect:
    """A cell that could be off by a power of r_n or r_L, or, where models leave the floats, by one unknown (NaN)."""

    role: str
    hyperparameter: str
    power: float
    printed: str = ""


def in_words(listed: Iterable[Suspect], direction: str) -> str:
    """Cells with what they could be off by, those of one hyperparameter and power together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for each in listed:
        size = f" by {RATIOS[direction]}^{abs(each.power):.2f}" if isfinite(each.power) else ""
        off = f"too {'small' if each.power < 0 else 'large'}{size}"
        role = f"{each.role} ({each.printed})" if each.printed else each.role
        alike.setdefault((each.hyperparameter, off), []).append(role)
    return "; ".join(f"{name} of {' or '.join(roles)}, {off}" for (name, off), roles in alike.items())


@dataclass(frozen=True)
class Table:
    """The table whose cells are named.

    Attributes:
        optimizer: one of `OPTIMIZER_NAMES` or a hybrid; "" where none is known.
        block_depth: matrices of a branch, k.
        decays: whether a step takes so much of a weight that what decays may be seen.
    """

    optimizer: str
    block_depth: int
    decays: bool

    @property
    def by_role(self) -> dict[str, str]:
        """Which optimizer steps each role."""
        if not self.optimizer:
            return dict.fromkeys(ROLES, "")
        return optimizers_by_role(self.optimizer, self.block_depth)

    def at_start(self, place: str, direction: str) -> dict[str, tuple[Term, float]]:
        """role -> its part of a value before the first step, and the slope of this part under the table."""
        own = {role: {(role, MULTIPLIER): 1.0, (role, VARIANCE): 0.5} for role in ("input", "hidden", "output")}
        own["hidden"][("hidden", VARIANCE)] = self.block_depth / 2
        parts: dict[str, tuple[Term, float]] = {"input": (own["input"], 0.0)}
        if place != FIRST:
            parts["hidden"] = own["hidden"], -0.5 if direction == "depth" and self.block_depth > 1 else 0.0
        if place == OUTPUTS:
            falls = -0.5 if direction == "width" else 0.0
            parts = {role: (_product(part, own["output"]), slope + falls) for role, (part, slope) in parts.items()}
            parts["output"] = own["output"], falls
        return parts

    def changes(self, place: str) -> dict[str, Term]:
        """role -> its part of the change of a value."""
        outwards: Term = {("output", MULTIPLIER): 1.0, ("output", VARIANCE): 0.5}
        parts: dict[str, Term] = {}
        for role in self.by_role:
            weights = WEIGHTS_OF.get(role, role)
            if (weights == "hidden" and place == FIRST) or (weights == "output" and place != OUTPUTS):
                continue
            forward: Term = {(weights, MULTIPLIER): 1.0}
            if role == "hidden":
                forward = _product(forward, {(role, VARIANCE): (self.block_depth - 1) / 2})
            gradient = forward if weights == "output" else _product(forward, outwards)
            moved = _product(forward, {(role, RATE): 1.0}, gradient if self.by_role[role] == "sgd" else {})
            parts[role] = _product(moved, outwards) if place == OUTPUTS and weights != "output" else moved
        return parts

    def epsilon(self, role: str) -> str:
        """The hyperparameter of this name that the role's optimizer has, or nothing."""
        optimizer = self.by_role[role]
        names = hyperparameters_of(optimizer, self.block_depth) if optimizer else ()
        return next((name for name in names if name.endswith("_epsilon")), "")

    def suspect(self, cell: Cell, power: float, direction: str) -> Suspect:
        """A cell that could be off, with the part of its factor that depends on this size."""
        optimizer = self.by_role.get(cell[0], "")
        if not optimizer:
            return Suspect(*cell, power)
        factor = scaling(optimizer, *cell, block_depth=self.block_depth)
        return Suspect(*cell, power, str(Scaling.of(**{direction: getattr(factor, direction)})))


def _product(*terms: Term) -> dict[Cell, float]:
    total: Counter[Cell] = Counter()
    for term in terms:
        total.update(term)
    return {cell: power for cell, power in total.items() if power}


@dataclass(frozen=True)
class Row:
    """A slope that was judged.

    Attributes:
        along: its direction, "width" or "depth".
        of: "value", before the first step, or "change", after some.
        at: its place.
        after: steps of training before it.
        slope: NaN where there is none, as models leave the floats.
        verdict: on the claim that it is flat.
        grows: whether it is above 0, or models leave the floats.
    """

    along: str
    of: str
    at: str
    after: int
    slope: float
    verdict: Verdict
    grows: bool

    def excludes(self, slope: float) -> bool:
        """Whether no part of it has this slope: it is flat, and the part would make it grow by half a power or more."""
        return self.verdict is Verdict.CONFIRMED and slope >= self.slope + OFF


# The row of ("of", "at", "after") along the same direction, None where there is none.
Look = Callable[[str, str, int], Row | None]


def suspects(row: Row, look: Look, table: Table) -> list[Suspect]:
    """The cells each of which, wrong alone, could give a row its slope, and that no other row clears.

    A cell is cleared where it would show and does not: in the place of its own role at the same step, and, of
    multipliers and variances, before the first step. Weight decay takes its part of the weights in every step, the
    first one too, in which it is suspected of a change that grows. Where the first step is flat, and changes fall
    later, epsilons are left; where they grow later, no cell is.
    """
    first = look("change", row.at, 1)
    if row.after > 1 and first is not None and first.verdict is Verdict.CONFIRMED:
        return [] if row.grows else list(_epsilons(row, look, table))
    return list(_of_terms(row, look, table))


def _of_terms(row: Row, look: Look, table: Table) -> Iterator[Suspect]:
    steepest: dict[Cell, tuple[float, float]] = {}
    for term, usual in _parts(row, look, table).values():
        for cell, power in term.items():
            steepest[cell] = max(steepest.get(cell, (0.0, 0.0)), (power, usual))
    for cell, (power, usual) in steepest.items():
        off = (row.slope - usual) / power
        if not _shows_at_start(row, look, table, cell, off):
            yield table.suspect(cell, off, row.along)
    if row.of == "change":
        yield from _decays(row, look, table) if row.grows else _epsilons(row, look, table)


def _parts(row: Row, look: Look, table: Table) -> dict[str, tuple[Term, float]]:
    """role -> its part of what a row is of, and the usual slope of that, without the roles that are cleared."""
    if row.of == "value":
        parts = table.at_start(row.at, row.along)
    else:
        parts = {role: (term, 0.0) for role, term in table.changes(row.at).items()}
    return {role: part for role, part in parts.items() if not _is_cleared(role, row, look)}


def _is_cleared(role: str, row: Row, look: Look) -> bool:
    """Whether what a role moves in its own place is flat, or goes another way than what is asked about."""
    own = look(row.of, SHOWS_AT[WEIGHTS_OF.get(role, role)], row.after)
    if own is None or own is row:
        return False
    return own.verdict is Verdict.CONFIRMED or (own.verdict is Verdict.REFUTED and own.grows != row.grows)


def _shows_at_start(row: Row, look: Look, table: Table, cell: Cell, off: float) -> bool:
    """Whether a cell that is so far off would make values grow before the first step, and these do not grow so."""
    weights = WEIGHTS_OF.get(cell[0], cell[0])
    own = look("value", SHOWS_AT[weights], 0)
    if own is None or own is row:
        return False
    term, usual = table.at_start(own.at, row.along)[weights]
    return cell in term and own.excludes(usual + term[cell] * off)


def _decays(row: Row, look: Look, table: Table) -> Iterator[Suspect]:
    """What decays of a value goes as this value does; biases begin at 0, and have nothing to lose."""
    for role, (_, usual) in table.at_start(row.at, row.along).items() if table.decays else ():
        if not _is_cleared(role, row, look):
            yield table.suspect((role, DECAY), row.slope - usual, row.along)


def _epsilons(row: Row, look: Look, table: Table) -> Iterator[Suspect]:
    """Steps fall in proportion to an epsilon that is larger than what it stands beside."""
    for role in _parts(row, look, table):
        if name := table.epsilon(role):
            yield table.suspect((role, name), -row.slope, row.along)
