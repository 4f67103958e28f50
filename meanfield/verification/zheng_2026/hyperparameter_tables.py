"""The hyperparameter tables of Zheng et al. 2026 as printed, cell by cell against what follows from update norms."""

from dataclasses import dataclass

from meanfield.parameterizations import Scaling, Table
from meanfield.theory.laws.update_norms import derive_scaling


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
