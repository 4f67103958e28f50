"""The printed report of a depth-growth run: verdicts, table by layer, exponents, learning-rate scale."""

from __future__ import annotations

import xarray as xr

from meanfield.nets import Sequential
from meanfield.theory import thin_input_warning
from meanfield.verification import depth_growth, score
from sims.common.beside import heavy_tail_notes
from sims.common.report import answer, report
from sims.common.table import MISSING, measured, number, signed, table

QUESTION = "Does eta* of these nets fall with depth as L^(-3/2), as the papers say?"
TERMS = ("label_term", "output_term", "update_energy", "overlap_energy")
LEVELS = ("mean_field", "law")
LEAST_DEPTH = 3

# Beyond the whole mean field nothing that is granted can be exceeded by being too small.
GRANTED_NOTE = (
    "The allowance is {granted:.2g} times the mean field (fluctuations compound with depth, and smooth gates "
    "follow them): so few channels confirm no law. More channels or fewer layers would."
)

POOLED_NOTE = (
    "Pooled readout: a label reaches all sites alike, so the label term does not reduce to the overlap energy "
    "and has no prediction here; compare F."
)
OVERLAP_NOTES = {
    "dense": "F comes from the whole tangent kernel.",
    "reduction": "F comes from the label term by the top-layer reduction, exact in mean for this readout.",
    "probe": "F comes from one white error column at the top layer (top-layer reduction, exact in mean).",
    "probes": "F comes from one white error column at every layer (zero padding or smooth gates: no one serves all).",
}


def text(dataset: xr.Dataset, architecture: Sequential) -> str:
    """The whole report on a dataset of a ladder of depths whose deepest net is ``architecture``."""
    deepest = dataset.isel(depth=-1)
    parts = [_heading(dataset, architecture), _layer_table(deepest), _notes(deepest, architecture)]
    if architecture.depth < LEAST_DEPTH:
        shallow = f"Too shallow: growth laws need {LEAST_DEPTH} layers or more; this net has {architecture.depth}."
        return report(QUESTION, shallow, parts)
    parts += [_exponent_table(deepest), _scale_table(dataset)]
    return report(QUESTION, _answer(dataset), parts, depth_growth.findings(dataset))


def _answer(dataset: xr.Dataset) -> str:
    whole, label = (depth_growth.scale_slope(dataset, name) for name in depth_growth.SCALED_TERM)
    slopes = f"slope {whole.exponent:.3f} +- {whole.stderr:.3f}"
    alone = f"of the label term alone {label.exponent:.3f} +- {label.stderr:.3f}"
    return answer([depth_growth.judge_transfer_rule(dataset)], f"{slopes}, {alone}")


def _heading(dataset: xr.Dataset, architecture: Sequential) -> str:
    spec = {k: v for k, v in architecture.describe().items() if k != "family"}
    lines = [f"{type(architecture).__name__}: " + ", ".join(f"{name} {value}" for name, value in spec.items())]
    run = f"{dataset.attrs['draws']} draws per depth, seed {dataset.attrs['seed']}, input {dataset.attrs['inputs']}"
    lines.append(f"{run}; learning rate 1, labels of variance 1")
    return "\n".join(lines)


def _layer_table(deepest: xr.Dataset) -> str:
    beside = ("mean field", "s.e.", "beyond", "minima")
    header = [
        "layer",
        ["allowance", "label term B", *beside],
        ["output term A", "update energy S"],
        ["overlap F", *beside],
    ]
    rows = []
    for layer in deepest["layer"].values:
        at = deepest.sel(layer=layer)
        rows.append(
            [
                str(layer),
                f"{float(at['finite_width_allowance']):.1%}",
                *_by_layer(at, "label_term"),
                _measured(at, "output_term"),
                _measured(at, "update_energy"),
                *_by_layer(at, "overlap_energy"),
            ]
        )
    anchor = deepest["overlap_energy_law"].attrs["anchor_layer"]
    equal = deepest["overlap_energy_law"].attrs["equal_layers"]
    form = "l(l+1)(2l+1)/6" if equal else "with layers weighted by their input channels"
    law = f"minima: sum of minima {form}, set at layer {anchor}"
    title = f"By layer (s.e.: measured minus mean field; beyond: the s.e. beyond the allowance, negative inside; {law})"
    return table(header, rows, title)


def _by_layer(at: xr.Dataset, name: str) -> list[str]:
    """As `_against_theory`, with the standard errors beyond the allowance, which verdicts count."""
    value, theory, score, law = _against_theory(at, name)
    known = score != MISSING
    beyond = depth_growth.against_values(at, name, at[f"{name}_mean_field"].values).worst if known else float("nan")
    return [value, theory, score, signed(beyond), law]


def _against_theory(at: xr.Dataset, name: str) -> list[str]:
    """Measured, mean field, difference in standard errors, sum of minima."""
    theory, law = _value(at, f"{name}_mean_field"), _value(at, f"{name}_law")
    known = {name, f"{name}_stderr", f"{name}_mean_field"} <= set(at.data_vars)
    scored = float(score(at[name], at[f"{name}_stderr"], at[f"{name}_mean_field"])) if known else float("nan")
    return [_measured(at, name), number(theory), signed(scored), number(law)]


def _notes(deepest: xr.Dataset, architecture: Sequential) -> str:
    """What a reader must know about the columns: missing predictions, methods, heavy tails."""
    thin = thin_input_warning(architecture) if deepest.attrs["inputs"] == "gaussian" else ""
    notes = [f"WARNING: {thin}"] if thin else []
    notes += [POOLED_NOTE] if architecture.is_pooled else []
    notes.append(OVERLAP_NOTES[deepest.attrs["overlap_method"]])
    notes += heavy_tail_notes(deepest, TERMS)
    if (granted := float(deepest["finite_width_allowance"].max())) > 1:
        notes.append(GRANTED_NOTE.format(granted=granted))
    return "\n".join(notes)


def _exponent_table(deepest: xr.Dataset) -> str:
    rows = []
    for name in TERMS:
        if name in deepest:
            law = depth_growth.growth_exponent(deepest, name)
            theory = [_exponent(deepest, f"{name}_{level}") for level in LEVELS]
            rows.append([name.replace("_", " "), measured(law.exponent, law.stderr), *map(number, theory)])
    layers = deepest.sizes["layer"]
    title = f"Growth with the layer, l = {depth_growth.first_deep_layer(layers)} .. {layers}"
    return table(["growth exponent", "measured", "mean field", "minima"], rows, title)


def _exponent(deepest: xr.Dataset, name: str) -> float:
    return depth_growth.exponent_of(deepest[name].values) if name in deepest else float("nan")


def _scale_table(dataset: xr.Dataset) -> str:
    label = "label_learning_rate_scale"
    rows = []
    for depth in dataset["depth"].values:
        at = dataset.sel(depth=depth)
        rows.append([str(depth), _measured(at, "learning_rate_scale"), *_against_theory(at, label)])
    slopes = [depth_growth.scale_slope(dataset, name) for name in ("learning_rate_scale", label)]
    whole, labels = (measured(slope.exponent, slope.stderr) for slope in slopes)
    theory, law = (number(depth_growth.predicted_scale_slope(dataset, level)) for level in LEVELS)
    rows.append(["slope", whole, labels, theory, "", law])
    title = "Learning-rate scale, one independent set of nets per depth (papers: slope -1.5)"
    return table(["depth", "eta*", ["eta* of B alone", "mean field", "s.e.", "minima"]], rows, title)


def _value(at: xr.Dataset, name: str) -> float:
    return float(at[name]) if name in at else float("nan")


def _measured(at: xr.Dataset, name: str) -> str:
    return measured(_value(at, name), _value(at, f"{name}_stderr"))
