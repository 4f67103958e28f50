"""What sims.hyperparameters prints: one record of everything, and its text, Markdown and JSON."""

from __future__ import annotations

import json as _json
from textwrap import fill
from typing import Any

from meanfield.parameterizations import HYPERPARAMETERS, PREMISES, ROLES, resolve, scaling, table_of, unmet_premises
from meanfield.verification.hyperparameter_tables import compare_table
from sims._table import MISSING, table

Record = dict[str, Any]
WIDTH = 110
_TITLES = {role: role.replace("_", " ") + ("" if role.endswith("bias") else " weights") for role in ROLES}


def assemble(parts: list[dict[str, Any]], common: dict[str, Any]) -> Record:
    """The record: sizes, a cell per role and hyperparameter, sources, warnings, and cells that are not as derived."""
    sizes = {name: value for name, value in common.items() if name != "output_dimension"}
    record: Record = {**common, "sources": {}, "roles": {}, "differing": [], "compared": 0, "warnings": []}
    for part in parts:
        optimizer, roles = part["optimizer"], part["roles"]
        given = {name: value for name, value in part["base_values"].items() if value is not None}
        factors = resolve(optimizer, base_values=dict.fromkeys(part["base_values"], 1.0), roles=roles, **sizes)
        values = resolve(optimizer, base_values=given, roles=roles, **sizes)
        for role, found in factors.items():
            record["roles"][role] = {"optimizer": optimizer} | {
                name: _cell(optimizer, role, name, common, factor, given.get(name), values[role].get(name))
                for name, factor in found.items()
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
    return {
        "width_exponent": str(found.width),
        "depth_exponent": str(found.depth),
        "scaling": "1/d_0" if divided else str(found),
        "factor": factor,
        "base": base,
        "value": value,
    }


def _source(optimizer: str, common: dict[str, Any]) -> str:
    found = table_of(optimizer, common["block_depth"])
    condition, layers = ("B.1", "one layer") if found.one_layer else ("3.1, B.2", "two or more layers")
    if common["parameterization"] == "standard":
        return f"P1 table {found.number}, entries in grey: standard parameterization"
    return f"P1 table {found.number} (condition {condition}, branches of {layers})"


def json(record: Record) -> str:
    """The whole record."""
    return _json.dumps(record, indent=2)


def text(record: Record) -> str:
    """A plain table, where it comes from, and what to beware of."""
    body = table(*_grid(record))
    notes = [fill(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    ") for sentence in _notes(record)]
    return "\n".join([_title(record), "", body, "", *notes])


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
    for name in HYPERPARAMETERS:
        if any(name in role for role in roles.values()):
            rows.append([name.replace("_", " "), *(_shown(role.get(name)) for role in roles.values())])
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
    return [
        *sources,
        meaning,
        *verdicts,
        *(f"WARNING {sentence}" for sentence in record["warnings"]),
    ]
