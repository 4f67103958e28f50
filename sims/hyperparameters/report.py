"""What sims.hyperparameters prints: one record of everything, and its text, Markdown and JSON."""

import json as _json
from typing import Any

from meanfield.parameterizations import (
    CONSTANT,
    HYPERPARAMETERS,
    MUON_VARIANTS,
    PREMISES,
    ROLES,
    Scaling,
    base_value,
    hyperparameter_table,
    muon_variant_factors,
    scaling,
    transfer_hyperparameters,
    unmet_premises,
)
from meanfield.theory import UNPRINTED, derive_scaling
from meanfield.verification import compare_table
from sims.common.report import report
from sims.common.table import MISSING, table

Record = dict[str, Any]
_TITLES = {role: role.replace("_", " ") + ("" if role.endswith("bias") else " weights") for role in ROLES}


def assemble(
    parts: list[dict[str, Any]], common: dict[str, Any], muon_variant: str, own_values: dict[tuple[str, str], float]
) -> Record:
    """The record: sizes, a cell per role and hyperparameter, sources, warnings, and cells that are not as derived.

    ``own_values``: (role, hyperparameter) -> a base value that is not that of all roles.
    """
    record: Record = {
        **common,
        "sources": {},
        "roles": {},
        "differing": [],
        "compared": 0,
        "agreeing": 0,
        "warnings": [],
    }
    record["muon_variant"] = muon_variant
    by_role: dict[str, Record] = {}
    left = dict(own_values)
    for part in parts:
        optimizer, roles = part["optimizer"], part["roles"]
        cells = _cells(optimizer, roles, part["base_values"], common, left)
        if optimizer == "muon":
            _vary(cells, muon_variant, common)
        by_role |= {role: {"optimizer": optimizer} | named for role, named in cells.items()}
        record["sources"][optimizer] = _source(optimizer, common)
        if common["parameterization"] == "spectral":
            compared = compare_table(hyperparameter_table(optimizer, common["block_depth"]), optimizer)
            compared = [cell for cell in compared if cell.role in cells]
            record["compared"] += len(compared)
            record["agreeing"] += sum(cell.agrees for cell in compared)
            record["differing"] += [cell.sentence() for cell in compared if cell.is_off_sphere or not cell.agrees]
        warnings = unmet_premises(optimizer, roles=tuple(cells), muon_variant=muon_variant, **common)
        record["warnings"] += [f"{optimizer}: {sentence}" for sentence in warnings]
    if left:
        role, name = next(iter(left))
        known = ", ".join(f"{role}.{name}" for role, named in by_role.items() for name in named if name != "optimizer")
        raise ValueError(f"--base {role}.{name}: this net has no such value; it has {known}")
    record["roles"] = {role: by_role[role] for role in ROLES if role in by_role}
    return record | {"premises": PREMISES}


def _cells(
    optimizer: str,
    roles: Any,
    base: dict[str, float | None],
    common: dict[str, Any],
    own_values: dict[tuple[str, str], float],
) -> dict[str, dict[str, Record]]:
    """By role and hyperparameter: how it scales, its factor and its value; those of no table are derived.

    Takes what it uses out of ``own_values``.
    """
    sizes = {name: value for name, value in common.items() if name != "output_dimension"}
    printed = [name for name in base if name in HYPERPARAMETERS]
    factors = transfer_hyperparameters(optimizer, base_values=dict.fromkeys(printed, 1.0), roles=roles, **sizes)
    ratios = [common[name] / common[f"base_{name}"] for name in ("width", "depth")]
    shared = {"block_depth": common["block_depth"]}
    spectral = common["parameterization"] == "spectral"
    cells: dict[str, dict[str, Record]] = {}
    for role, by_name in factors.items():
        cells[role] = {}
        for name in base:
            if name in UNPRINTED:
                scale = derive_scaling(optimizer, role, name, **shared) if spectral else CONSTANT
                factor = scale.at(*ratios)
            else:
                scale = scaling(optimizer, role, name, parameterization=common["parameterization"], **shared)
                factor = by_name[name]
            divided = role == "input" and name == "initial_variance" and common["input_dimension"] is not None
            number = own_values.pop((role, name), base[name])
            value = None if number is None else base_value(name, number, role, (role,)) * factor
            cells[role][name] = _cell(scale, "1/d_0" if divided else str(scale), factor, number, value)
    return cells


def _vary(cells: dict[str, dict[str, Record]], variant: str, common: dict[str, Any]) -> None:
    """Put the factors of Muon's variant into learning rates and weight decays."""
    sizes = {name: common[name] for name in ("width", "base_width", "output_dimension")}
    inputs = common["input_dimension"] or common["output_dimension"]
    if variant == "plain":
        return
    factors = muon_variant_factors(variant, roles=tuple(cells), input_dimension=inputs, **sizes)
    for role, factor in factors.items():
        for name, own in (("learning_rate", factor), ("weight_decay", 1 / factor)):
            cell = cells[role][name]
            cell["factor"] *= own
            if cell["value"] is not None:
                cell["value"] *= own
            cell["scaling"] = f"{cell['scaling']}, step x {own:.4g}" if own != 1 else cell["scaling"]


def _cell(scale: Scaling, text: str, factor: float, base: float | None, value: float | None) -> Record:
    exponents = {"width_exponent": str(scale.width), "depth_exponent": str(scale.depth)}
    return exponents | {"scaling": text, "factor": factor, "base": base, "value": value}


def _source(optimizer: str, common: dict[str, Any]) -> str:
    printed = hyperparameter_table(optimizer, common["block_depth"])
    condition = "condition B.1, branches of one layer"
    if not printed.one_layer:
        condition = "conditions 3.1 and B.2, branches of two or more layers"
    if common["parameterization"] == "standard":
        return f"Zheng et al. 2026, table {printed.number}, entries in grey: standard parameterization"
    return f"Zheng et al. 2026, table {printed.number} ({condition})"


def json(record: Record) -> str:
    """The whole record."""
    return _json.dumps(record, indent=2)


def text(record: Record) -> str:
    """A plain table, where it comes from, and what to beware of."""
    base, wanted = (f"width {record[f'{of}width']}, depth {record[f'{of}depth']}" for of in ("base_", ""))
    question = f"Which values suit {wanted}, if the base values suit {base}?"
    answer = f"Those of the table; warnings: {len(record['warnings'])}."
    notes = "\n".join(f"  - {sentence}" for sentence in _notes(record))
    return report(question, answer, [_title(record), table(*_grid(record)), notes])


def markdown(record: Record) -> str:
    """The same as a Markdown table and list."""
    header, rows = _grid(record)
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    cells = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([f"**{_title(record)}**", "", *cells, "", *(f"- {sentence}" for sentence in _notes(record))])


def _title(record: Record) -> str:
    ratios = (record[name] / record[f"base_{name}"] for name in ("width", "depth"))
    width, depth = (f"{ratio:.4g}" for ratio in ratios)
    return (
        f"{' and '.join(record['sources'])}, {record['parameterization']} parameterization: "
        f"width {record['base_width']} -> {record['width']} (r_n = {width}), "
        f"depth {record['base_depth']} -> {record['depth']} (r_L = {depth}), "
        f"layers per branch {record['block_depth']}"
    )


def _grid(record: Record) -> tuple[list[str], list[list[str]]]:
    roles = record["roles"]
    rows = [["optimizer", *(role["optimizer"] for role in roles.values())]]
    for name in (*HYPERPARAMETERS, *UNPRINTED):
        if any(name in role for role in roles.values()):
            title = name.replace("_", " ") + (" (derived)" if name in UNPRINTED else "")
            rows.append([title, *(_shown(role.get(name)) for role in roles.values())])
    return ["", *(_TITLES[role] for role in roles)], rows


def _shown(cell: Record | None) -> str:
    """The number and how it scales; without a base value the factor on it."""
    if cell is None:
        return MISSING
    number = f"x {cell['factor']:.6g}" if cell["value"] is None else f"{cell['value']:.6g}"
    return number if cell["scaling"] == "1" else f"{number} ({cell['scaling']})"


def _notes(record: Record) -> list[str]:
    sources = [f"source: {optimizer}, {source}" for optimizer, source in record["sources"].items()]
    compared, differing = record["compared"], record["differing"]
    verdicts = []
    if compared:
        verdicts = [f"{record['agreeing']} of {compared} printed cells follow from the update norms", *differing]
        verdicts.append(f"premises: {record['premises']}")
    if record["muon_variant"] != "plain":
        formula = MUON_VARIANTS[record["muon_variant"]]
        sources.append(
            f"muon's step is U V^T times {formula}; step: this number at the base shape over that at this "
            "one, in learning rates, and its inverse in weight decays"
        )
    meaning = "in brackets: what the base value was multiplied by; x: the factor alone, where no base value is given"
    decay = "weight decay is of steps W <- W - rate (direction + decay W): outside of momentum, times the learning rate"
    return [*sources, meaning, decay, *verdicts, *(f"WARNING {sentence}" for sentence in record["warnings"])]
