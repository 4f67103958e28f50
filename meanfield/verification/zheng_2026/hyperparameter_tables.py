"""The hyperparameter tables of Zheng et al. 2026 as printed, cell by cell against what follows from update norms."""

from dataclasses import dataclass

from meanfield.common.validation import takes
from meanfield.parameterizations import TABLES, Scaling, Table
from meanfield.theory.laws.update_norms import derive_scaling
from meanfield.verification.claims import Claim, Kind, checks, on_examples
from meanfield.verification.judges import Judges, Ruling
from meanfield.verification.verdicts import Verdict

JUDGES = Judges("Zheng et al. 2026")


@dataclass(frozen=True)
class Cell:
    """One cell of a table: printed against derived, both against the base model."""

    table: int
    optimizer: str
    role: str
    hyperparameter: str
    printed: Scaling
    derived: Scaling

    @property
    def agrees(self) -> bool:
        return self.printed == self.derived

    def sentence(self) -> str:
        """What a reader should know of this cell."""
        verdict = "as derived" if self.agrees else f"but {self.derived} follows from update norms"
        where = f"Zheng et al. 2026, table {self.table}, {self.optimizer}, {self.role}, {self.hyperparameter}"
        return f"{where}: printed {self.printed}, {verdict}"


@takes(Table)
def compare_table(table: Table, optimizer: str) -> list[Cell]:
    """Every cell that the table has for this optimizer."""
    block_depth = 1 if table.one_layer else 2
    return [
        Cell(
            table.number,
            optimizer,
            role,
            name,
            table.rows[name][role],
            derive_scaling(optimizer, role, name, block_depth=block_depth),
        )
        for name in table.hyperparameters(optimizer)
        for role in table.roles
    ]


def printed_cells() -> list[Cell]:
    """Every cell of every table, for each optimizer that it is of."""
    return [cell for table in TABLES for optimizer in table.optimizers for cell in compare_table(table, optimizer)]


@JUDGES.decide
def judge_derivation(seed: int = 0) -> Ruling:
    """Every cell of the hyperparameter tables follows from the norms of its optimizer's updates; rival: some do not;
    source: tables 3-7 and 9-13; measured: powers of width, depth and block multiplier in every printed cell, and in a
    derivation that reads no table; no examples."""
    cells = printed_cells()
    off = [cell for cell in cells if not cell.agrees]
    places = dict.fromkeys(f"table {cell.table}, {cell.optimizer}, {cell.role}" for cell in off)
    named = f"; the others: {'; '.join(places)}" if off else ""
    verdict = Verdict.REFUTED if off else Verdict.CONFIRMED
    evidence = f"{len(cells) - len(off)} of {len(cells)} cells follow{named}"
    return Ruling(verdict, evidence, power="exact: one cell that is off by any power is refuted")


CLAIMS = (
    Claim(
        id="S12",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 3-7 and 9-13, appendices C and D",
        statement="every cell of the hyperparameter tables follows from condition 3.1 or B.1 and the norms of its "
        "optimizer's updates",
        printed='"R = Theta(sqrt(n_out / n_in)), and Phi_l = arg max ... s.t. |Phi|_2 = 1, |W_l - eta_l Phi|_2 = '
        '|W_l|_2 = R" (appendix C.11, of SSO)',
        hypotheses="those of the conditions: one step on one sample, no momentum, widths of input and output that stay",
        checks=checks("identities", on_examples(judge_derivation)),
        replaced_by="all but the output weights of SSO, in tables 7 and 13: 288 of 296 cells, each optimizer with its "
        "table. From weights of norm R follows an initial variance of 1/r_n^2 and no scaling of multiplier, rate and "
        "decay",
        premise="that SSO's output weights begin on its sphere, |W|_2 = R; their printed variance puts them a factor "
        "r_n off",
    ),
)
