"""What sims.hyperparameters prints: one record of everything, and its text, Markdown and JSON."""

import json as _json
from typing import Any

from meanfield.parameterizations import (
    CONSTANT,
    HYPERPARAMETERS,
    PREMISES,
    ROLES,
    Scaling,
    base_value,
    resolve,
    scaling,
    table_of,
    unmet_premises,
)
from meanfield.theory import UNPRINTED, derive_scaling
from meanfield.verification import compare_table
from sims.common.report import report
from sims.common.table import MISSING, table

Record = dict[str, Any]
_TITLES = {role: role.replace("_", " ") + ("" if role.endswith("bias") else " weights") for role in ROLES}


def assemble(parts: list[dict[str, Any]], common: dict[str, Any]) -> Record:
    """The record: sizes, a cell per role and hyperparameter, sources, warnings, and cells that are not as derived."""
    sizes = {name: value for name, value in common.items() if name != "output_dimension"}
    record: Record = {**common, "sources": {}, "roles": {}, "differing": [], "compared": 0, "warnings": []}
    for part in parts:
        optimizer, roles, base = part["optimizer"], part["roles"], part["base_values"]
        printed = [name for name in base if name in HYPERPARAMETERS]
        factors = resolve(optimizer, base_values=dict.fromkeys(printed, 1.0), roles=roles, **sizes)
        given = {name: base[name] for name in printed if base[name] is not None}
        values = resolve(optimizer, base_values=given, roles=roles, **sizes)
        for role, found in factors.items():
            record["roles"][role] = {"optimizer": optimizer} | {
                name: _cell(optimizer, role, name, common, factor, base[name], values[role].get(name))
                for name, factor in found.items()
            }
            record["roles"][role] |= {
                name: _derived_cell(optimizer, role, name, common, base[name]) for name in base if name in UNPRINTED
            }
        record["sources"][optimizer] = _source(optimizer, common)
        cells = compare_table(table_of(optimizer, common["block_depth"]), optimizer)
        cells = [cell for cell in cells if cell.role in factors and common["parameterization"] == "spectral"]
        record["compared"] += len(cells)
        record["differing"] += [cell.sentence() for cell in cells if not cell.agrees]
        record["warnings"] += [
            f"{optimizer}: {sentence}" for sentence in unmet_premises(optimizer, roles=tuple(factors), **common)
        ]
    record["roles"] = {role: record["roles"][role] for role in ROLES if role in record["roles"]}
    record["premises"] = PREMISES
    return record


def _cell(
    optimizer: str, role: str, name: str, common: dict[str, Any], factor: float, base: float | None, value: float | None
) -> Record:
    found = scaling(
        optimizer, role, name, block_depth=common["block_depth"], parameterization=common["parameterization"]
    )
    divided = role == "input" and name == "initial_variance" and common["input_dimension"] is not None
    return _record(found, "1/d_0" if divided else str(found), factor, base, value)


def _record(found: Scaling, text: str, factor: float, base: float | None, value: float | None) -> Record:
    exponents = {"width_exponent": str(found.width), "depth_exponent": str(found.depth)}
    return exponents | {"scaling": text, "factor": factor, "base": base, "value": value}


def _derived_cell(optimizer: str, role: str, name: str, common: dict[str, Any], base: float | None) -> Record:
    """A cell of an epsilon that no table prints."""
    found = CONSTANT
    if common["parameterization"] == "spectral":
        found = derive_scaling(optimizer, role, name, block_depth=common["block_depth"])
    factor = found.at(common["width"] / common["base_width"], common["depth"] / common["base_depth"])
    value = None if base is None else base_value(name, base, role, (role,)) * factor
    return _record(found, str(found), factor, base, value)


def _source(optimizer: str, common: dict[str, Any]) -> str:
    found = table_of(optimizer, common["block_depth"])
    condition = "conditions 3.1 and B.2, branches of two or more layers"
    if found.one_layer:
        condition = "condition B.1, branches of one layer"
    if common["parameterization"] == "standard":
        return f"Zheng et al. 2026, table {found.number}, entries in grey: standard parameterization"
    return f"Zheng et al. 2026, table {found.number} ({condition})"


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
        agreeing = compared - len(differing)
        verdicts = [f"{agreeing} of {compared} printed cells follow from the update norms", *differing]
        verdicts.append(f"premises: {record['premises']}")
    meaning = "in brackets: what the base value was multiplied by; x: the factor alone, where no base value is given"
    return [*sources, meaning, *verdicts, *(f"WARNING {sentence}" for sentence in record["warnings"])]
