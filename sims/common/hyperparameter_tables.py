"""The hyperparameter tables of Zheng et al. 2026 as printed, cell by cell against what follows from update norms."""

from dataclasses import dataclass

from meanfield.parameterizations import TABLES, HyperparameterTable, Scaling
from meanfield.theory import derive_scaling


@dataclass(frozen=True)
class PrintedCell:
    """One cell of a table: printed against derived, both against the base model.

    Attributes:
        derived: from the initial norms of eq. 6 and the norms of updates.
        on_sphere: the same if SSO's weights begin with the norm R that appendix C.11 keeps them at.
    """

    table: int
    optimizer: str
    role: str
    hyperparameter: str
    printed: Scaling
    derived: Scaling
    on_sphere: Scaling

    @property
    def agrees(self) -> bool:
        return self.printed == self.derived

    @property
    def is_off_sphere(self) -> bool:
        return self.printed != self.on_sphere

    def sentence(self) -> str:
        """What a reader should know of this cell."""
        where = f"Zheng et al. 2026, table {self.table}, {self.optimizer}, {self.role}, {self.hyperparameter}"
        verdict = "as derived" if self.agrees else f"but {self.derived} follows from update norms"
        if self.is_off_sphere and self.agrees:
            verdict += f"; but {self.on_sphere} if weights begin on the sphere |W|_2 = R that appendix C.11 assumes"
        return f"{where}: printed {self.printed}, {verdict}"


def compare_table(table: HyperparameterTable, optimizer: str) -> list[PrintedCell]:
    """Every cell that the table has for this optimizer."""
    block_depth = 1 if table.one_layer else 2
    return [
        PrintedCell(
            table.number,
            optimizer,
            role,
            name,
            table.rows[name][role],
            *(derive_scaling(optimizer, role, name, block_depth=block_depth, on_sphere=on) for on in (False, True)),
        )
        for name in table.hyperparameters(optimizer)
        for role in table.roles
    ]


def printed_cells() -> list[PrintedCell]:
    """Every cell of every table, for each optimizer that it is of."""
    return [cell for table in TABLES for optimizer in table.optimizers for cell in compare_table(table, optimizer)]
