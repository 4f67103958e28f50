"""The hyperparameters of a wide and deep residual net, from those tuned on a small one, for any of nine optimizers.

Prints, for every role (weights of input, hidden and output layers, biases, norms), the numbers to copy into a training
run: base value times powers of the width ratio r_n and the depth ratio r_L, as Zheng et al. 2026 tabulate them, with
the table that they come from, whether they follow from the optimizer's update norms, and a warning where the table's
premises do not hold, with what to do about it.
Hyperparameters without a base value are printed as factors. Optimizers of matrices usually step hidden weights only:
--others names the optimizer of all other parameters. Nothing is drawn.
"""

import argparse
import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Any

import meanfield as mf
from meanfield.common import require_choice, require_file, require_positive, write_text_whole
from meanfield.nets import MLP, ResidualMLP
from meanfield.parameterizations import (
    HYPERPARAMETERS,
    MUON_VARIANTS,
    OPTIMIZER_NAMES,
    PREMISES,
    ROLES,
    UNPRINTED,
    Scaling,
    hyperparameter_table,
    hyperparameters_of,
    muon_variant_factors,
    optimizers_by_role,
    scaling,
    transfer_hyperparameters,
    unmet_premises,
)
from meanfield.theory import scales_at
from meanfield.transfer import PRE_NORM, PRE_NORM_TRAINED, slopes_part
from sims.common.blocks import base_option, own_values
from sims.common.command import CommandParser, Service
from sims.common.hyperparameter_tables import compare_table
from sims.common.report import Document
from sims.common.tables import MISSING, table

LISTED = "the hyperparameters of a large net from those of a small one"


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--optimizer", required=True, help="sgd, adamw, lion, sophia, muon, muon_kimi, shampoo, soap or sso")
    add("--width", type=int, required=True, metavar="N", help="units of every layer of the net to train")
    add("--depth", type=int, required=True, metavar="L", help="its residual blocks, of a Transformer its layers")
    add("--base-width", type=int, required=True, metavar="N", help="width of the net that the base values suit")
    add("--base-depth", type=int, required=True, metavar="L", help="its residual blocks, or layers")
    block = "layers of a residual branch, 1 or more (default: 2; attention and feed-forward branches have 2 or more)"
    add("--block-depth", type=int, default=2, metavar="K", help=block)
    add(
        "--parameterization",
        default="spectral",
        help="spectral (default), or standard: nothing scales (nor do rates carry over depth)",
    )
    add("--input-dimension", type=int, metavar="D", help="of dense inputs (images); divides their initial variance")
    add("--output-dimension", type=int, metavar="D", help="outputs (vocabulary), for warnings and --muon-variant")
    variant = "what Muon's step U V^T is multiplied by: plain (default: 1), spectral: sqrt(n_out/n_in), original: "
    variant += (
        "sqrt(max(1, n_out/n_in)), match_rms_adamw: 0.2 sqrt(max(n_out, n_in)) (torch.optim.Muon: the last two); "
    )
    add(
        "--muon-variant",
        default="plain",
        help=f"{variant}without --input-dimension, inputs are one-hot, as many as outputs",
    )
    base = parser.add_argument_group("base values")
    base.add_argument("--base-lr", type=float, metavar="RATE", help="learning rate")
    base.add_argument("--base-weight-decay", type=float, metavar="DECAY")
    base.add_argument("--base-epsilon", type=float, metavar="EPS", help="of adamw, sophia, shampoo or soap")
    base.add_argument("--base-variance", type=float, metavar="VAR", help="initial variance of every parameter")
    base.add_argument("--base-multiplier", type=float, default=1.0, metavar="A", help="block multiplier (default: 1)")
    base_option("hidden_bias.initial_variance=0").add_to(base)
    group = parser.add_argument_group("all parameters but hidden weights")
    group.add_argument("--others", metavar="OPTIMIZER", help="optimizer that steps them (default: the same)")
    group.add_argument("--others-lr", type=float, metavar="RATE")
    group.add_argument("--others-weight-decay", type=float, metavar="DECAY")
    group.add_argument("--others-epsilon", type=float, metavar="EPS")
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=FORMS, default="text", help="default: text")
    output.add_argument("--out", type=Path, help="file to write (default: print)")
    output.add_argument("--force", action="store_true", help="replace a file that exists")


def run(options: argparse.Namespace) -> int:
    """Print the table, or write it."""
    _check(options)
    record = assemble(_parts(options), _common(options), options.muon_variant, own_values(options.base))
    text = FORMS[options.format](record)
    if options.out is None:
        print(text)
        return 0
    require_file(options.out)
    if options.out.exists() and not options.force:
        raise FileExistsError(f"{options.out} exists; give another --out, or --force to replace it")
    write_text_whole(options.out, text + "\n")
    print(f"table    {options.out}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse optimizers by the option that names them, and a multiplier under which a block does nothing."""
    for name in ("optimizer", "others"):
        if getattr(options, name) is not None:
            require_choice(f"--{name}", getattr(options, name), OPTIMIZER_NAMES)
    require_choice("--muon-variant", options.muon_variant, MUON_VARIANTS)
    require_positive("--base-multiplier", options.base_multiplier, why="at 0 blocks pass nothing on and never learn")


def _common(options: argparse.Namespace) -> dict[str, Any]:
    """What all roles share, as `transfer_hyperparameters` and `unmet_premises` name it."""
    names = ("width", "depth", "base_width", "base_depth", "block_depth", "parameterization", "input_dimension")
    return {name: getattr(options, name) for name in (*names, "output_dimension")}


def _parts(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One part per optimizer, that of hidden weights first: its name, and its base values."""
    shared = {"block_multiplier": options.base_multiplier, "initial_variance": options.base_variance}
    own = _base_values("--base", options.optimizer, options, "base")
    if options.others is None:
        for name in ("lr", "weight_decay", "epsilon"):
            if getattr(options, f"others_{name}") is not None:
                raise ValueError(f"--others-{name.replace('_', '-')} is given, but no optimizer for it; add --others")
        return [{"optimizer": options.optimizer, "base_values": shared | own}]
    of_others = _base_values("--others", options.others, options, "others")
    return [
        {"optimizer": options.optimizer, "base_values": shared | own},
        {"optimizer": options.others, "base_values": shared | of_others},
    ]


def _base_values(flag: str, optimizer: str, options: argparse.Namespace, prefix: str) -> dict[str, float | None]:
    """The optimizer's own base values; an epsilon only where it has one that scales."""
    given = {name: getattr(options, f"{prefix}_{name}") for name in ("lr", "weight_decay", "epsilon")}
    values = {"learning_rate": given["lr"], "weight_decay": given["weight_decay"]}
    epsilon = f"{optimizer}_epsilon"
    if epsilon in hyperparameters_of(optimizer, options.block_depth):
        return values | {epsilon: given["epsilon"]}
    if given["epsilon"] is not None:
        raise ValueError(f"{flag}-epsilon is {given['epsilon']:g}, but {optimizer!r} has no epsilon; drop it")
    return values


# What is printed.

Record = dict[str, Any]
_TITLES = {role: role.replace("_", " ") + ("" if role.endswith("bias") else " weights") for role in ROLES}
LAYERS, BLOCKS = "fully-connected ReLU layers", "residual blocks without factor and normalisation"
EXPONENTIAL = "an exponential of the depth"
UNPREDICTED = "a factor that no theory has (mf.explain_transfer draws it, on data)"
# Energies of blocks without a factor double at every block, so that floats hold their squares up to some 500.
MOST_BLOCKS = 400


def assemble(
    parts: list[dict[str, Any]], common: dict[str, Any], muon_variant: str, own_values: dict[tuple[str, str], float]
) -> Record:
    """The record: sizes, a cell per role and hyperparameter, sources, warnings, and cells that are not as derived.

    Args:
        parts: one for the optimizer of all roles, or one for hidden weights and one for all others: the optimizer's
            name, and its base values, None where none is given.
        own_values: (role, hyperparameter) -> a base value that is not that of all roles.
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
    shared = common | {"muon_variant": muon_variant}
    optimizer = "-".join(part["optimizer"] for part in parts)
    by_role = optimizers_by_role(optimizer, common["block_depth"])
    base = _base_numbers(parts, by_role, own_values)
    for name in dict.fromkeys(part["optimizer"] for part in parts):
        roles = tuple(role for role, stepped_by in by_role.items() if stepped_by == name)
        record["sources"][name] = _source(name, common)
        if common["parameterization"] == "spectral":
            compared = compare_table(hyperparameter_table(name, common["block_depth"]), name)
            compared = [cell for cell in compared if cell.role in roles]
            record["compared"] += len(compared)
            record["agreeing"] += sum(cell.agrees for cell in compared)
            record["differing"] += [cell.sentence() for cell in compared if cell.is_off_sphere or not cell.agrees]
        record["warnings"] += [f"{name}: {sentence}" for sentence in unmet_premises(name, roles=roles, **shared)]
    record["over_depth"] = _over_depth(parts, common)
    depths = common["base_depth"], common["depth"]
    record["warnings"] += [_sentence(name, factors, depths) for name, factors in record["over_depth"].items()]
    record["roles"] = _cells(optimizer, by_role, base, shared)
    return record | {"premises": PREMISES}


def _base_numbers(
    parts: list[dict[str, Any]], by_role: dict[str, str], own_values: dict[tuple[str, str], float]
) -> dict[str, dict[str, float | None]]:
    """Hyperparameter -> role -> base value, None where none is given; refuses values of cells that do not exist."""
    numbers: dict[str, dict[str, float | None]] = {}
    for role in by_role:
        part = parts[0] if role == "hidden" else parts[-1]
        for name, number in part["base_values"].items():
            numbers.setdefault(name, {})[role] = own_values.get((role, name), number)
    cells = [f"{role}.{name}" for role in by_role for name, of_role in numbers.items() if role in of_role]
    for role, name in own_values:
        if f"{role}.{name}" not in cells:
            raise ValueError(f"--base {role}.{name}: this net has no such value; it has {', '.join(cells)}")
    return numbers


def _cells(
    optimizer: str,
    by_role: dict[str, str],
    base: dict[str, dict[str, float | None]],
    shared: dict[str, Any],
) -> dict[str, Record]:
    """By role: its optimizer, and of every hyperparameter how it scales, its factor and its value."""
    filled = {name: {role: 1.0 if n is None else n for role, n in of_role.items()} for name, of_role in base.items()}
    alike = {name: _one_for_all(of_role) for name, of_role in filled.items()}
    values = transfer_hyperparameters(optimizer, base_values=alike, **shared)
    factors = transfer_hyperparameters(optimizer, base_values=dict.fromkeys(base, 1.0), **shared)
    steps = _muon_steps(by_role, shared)
    cells: dict[str, Record] = {role: {"optimizer": name} for role, name in by_role.items()}
    for name, of_role in base.items():
        for role, number in of_role.items():
            table = {name: shared[name] for name in ("block_depth", "parameterization")}
            scale = scaling(by_role[role], role, name, **table)
            divided = (role, name) == ("input", "initial_variance") and shared["input_dimension"] is not None
            shown = "1/d_0" if divided else str(scale)
            if name in ("learning_rate", "weight_decay") and (step := steps.get(role, 1.0)) != 1:
                shown += f", step x {step if name == 'learning_rate' else 1 / step:.4g}"
            value = None if number is None else values[role][name]
            cells[role][name] = _cell(scale, shown, factors[role][name], number, value)
            if name == "initial_variance":
                root = f"1/sqrt({shown[2:]})" if divided else str(scale ** Fraction(1, 2))
                cells[role][name]["std"] = {"scaling": root} | {
                    key: None if held is None else sqrt(held)
                    for key, held in {"factor": factors[role][name], "value": value}.items()
                }
    return cells


def _one_for_all(of_role: dict[str, float]) -> float | dict[str, float]:
    """The number where all roles have the same, as refusals then name no role."""
    numbers = set(of_role.values())
    return numbers.pop() if len(numbers) == 1 else of_role


def _muon_steps(by_role: dict[str, str], shared: dict[str, Any]) -> dict[str, float]:
    """What Muon's variant changes in the rates of the roles that it steps."""
    if shared["muon_variant"] == "plain":
        return {}
    roles = tuple(role for role, name in by_role.items() if name == "muon")
    sizes = {name: shared[name] for name in ("width", "base_width", "output_dimension")}
    inputs = shared["input_dimension"] or shared["output_dimension"]
    return muon_variant_factors(shared["muon_variant"], roles=roles, input_dimension=inputs, **sizes)


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


def _over_depth(parts: list[dict[str, Any]], common: Mapping[str, Any]) -> dict[str, dict[str, float | str]]:
    """Optimizer -> net -> the factor that its first step asks of a rate over depth, as `mf.explain_transfer` has it.

    The nets are those of the tables without a factor on the branches, and fully-connected ones of as many layers. In
    place of a factor that does not exist stands why. Nothing where the parameterization knows the depth, or the depth
    stays.

    Args:
        parts: of the optimizers, each of which is taken to step all weights.
        common: sizes and parameterization, as `transfer_hyperparameters` names them.
    """
    depths = common["base_depth"], common["depth"]
    if common["parameterization"] != "standard" or depths[0] == depths[1]:
        return {}
    blocks = ResidualMLP(depth=1, width=common["width"], block_depth=common["block_depth"], scaling="none")
    nets = {LAYERS: MLP(depth=1, width=common["width"]), BLOCKS: blocks}
    names = dict.fromkeys(part["optimizer"] for part in parts)
    return {name: {what: _factor(name, net, depths) for what, net in nets.items()} for name in names}


@lru_cache(maxsize=256)
def _factor(optimizer: str, net: MLP, depths: tuple[int, int]) -> float | str:
    """What a rate is multiplied by from one depth to the other, in the mean field; or why there is no such number."""
    if net.has_skips and max(depths) > MOST_BLOCKS:
        return EXPONENTIAL
    if optimizer == "sgd":
        first, second = scales_at(net, depths)
        return float(second / first)
    try:
        start, end = (net.replace(depth=depth) for depth in depths)
        return mf.explain_transfer(1.0, start, end, optimizer=optimizer).rate
    except OverflowError:
        return EXPONENTIAL
    except ValueError:  # which says at length what it says here in short
        return UNPREDICTED


def _sentence(optimizer: str, factors: Mapping[str, float | str], depths: tuple[int, int]) -> str:
    """The factors of one optimizer over depth as a warning, with what trials say of Transformers under it."""
    asked = [f"{net} {'by ' * isinstance(of_net, str)}{_times(of_net)}" for net, of_net in factors.items()]
    rule = "rule 'finite_depth'" if optimizer == "sgd" else f"optimizer={optimizer!r}"
    trained = PRE_NORM_TRAINED if optimizer == "sgd" else slopes_part(PRE_NORM, optimizer)
    return (
        f"{optimizer} over depth {depths[0]} -> {depths[1]}, by {rule} of mf.explain_transfer: the rate of "
        f"{', of '.join(asked)}{f'; {trained}' * bool(trained)}"
    )


def _times(factor: float | str) -> str:
    return factor if isinstance(factor, str) else f"x {factor:.3g}"


def as_json(record: Record) -> str:
    """The whole record."""
    return json.dumps(record, indent=2)


def as_text(record: Record) -> str:
    """A plain table, where it comes from, and what to beware of."""
    base, wanted = (f"width {record[f'{of}width']}, depth {record[f'{of}depth']}" for of in ("base_", ""))
    question = f"Which values suit {wanted}, if the base values suit {base}?"
    answer = f"Those of the table{_other_rates(record)}; warnings: {len(record['warnings'])}."
    notes = "\n".join(f"  - {sentence}" for sentence in _notes(record))
    return Document(question=question, answer=answer, parts=[_title(record), table(*_grid(record)), notes]).text()


def _norms(record: Record) -> list[str]:
    """What gains and shifts of normalisations take, which no table has: they act as biases do, and no program decays
    them.
    """
    start = "norms: gains start at 1 and shifts at 0, and neither decays"
    bias = record["roles"].get("hidden_bias")
    if bias is None:
        return [f"{start}; step them by adamw or sgd (--others), whose tables have biases"]
    rows = [name for name in bias if name == "learning_rate" or name.endswith("_epsilon")]
    numbers = ", ".join(f"{name.replace('_', ' ')} {_shown(bias[name])}" for name in rows)
    return [
        f"{start}; within blocks they take {numbers}, as hidden biases do, and the last norm what input biases take"
    ]


def _other_rates(record: Record) -> str:
    """What one step asks of learning rates over depth, where the table keeps them; empty where it does not."""
    rates = [
        f"{optimizer} x {factor:.3g} in {net}"
        for optimizer, factors in record["over_depth"].items()
        for net, factor in factors.items()
        if isinstance(factor, float)
    ]
    return f", except for the learning rate over depth: one step asks for {', '.join(rates)}" if rates else ""


def as_markdown(record: Record) -> str:
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
        if name == "initial_variance":
            rows.append(["initial std", *(_shown(role[name]["std"]) for role in roles.values())])
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
    depth = "depth counts residual blocks, which are the layers of a Transformer"
    return [
        *sources,
        meaning,
        depth,
        decay,
        *_norms(record),
        *verdicts,
        *(f"WARNING {sentence}" for sentence in record["warnings"]),
    ]


FORMS = {"text": as_text, "markdown": as_markdown, "json": as_json}
COMMAND = Service(name="hyperparameters", description=__doc__, add=add_options, work=run)


if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
