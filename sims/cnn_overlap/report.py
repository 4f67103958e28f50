"""The printed report of a depth-growth run: verdicts, table by layer, exponents, learning-rate scale."""

import json

import xarray as xr

from meanfield.nets import ConvNet
from meanfield.theory import thin_input_warning
from meanfield.verification import depth_growth as claims
from sims.common.cells import against, drawn, fitted, heavy_tail_notes, predicted, rows
from sims.common.report import answer, described_net, report
from sims.common.table import MISSING, number, signed, table

QUESTION = "Does eta* of these nets fall with depth as L^(-3/2), as the papers say?"
WORDS = {"beyond": "the s.e. beyond the allowance, which verdicts count; negative: inside the allowance."}
TERMS = ("label_term", "output_term", "update_energy", "overlap_energy")
LEVELS = ("mean_field", "law")
LABEL_SCALE = "label_learning_rate_scale"
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


def text(dataset: xr.Dataset) -> str:
    """The whole report on a dataset of a ladder of depths."""
    deepest, net = dataset.isel(depth=-1), _net(dataset)
    parts = [_heading(dataset), _layer_table(deepest), _notes(deepest, net)]
    if net.depth < LEAST_DEPTH:
        shallow = f"Too shallow: growth laws need {LEAST_DEPTH} layers or more; this net has {net.depth}."
        return report(QUESTION, shallow, parts, (), WORDS)
    parts += [_exponent_table(deepest), _scale_table(dataset)]
    return report(QUESTION, _answer(dataset), parts, claims.findings(dataset), WORDS)


def _net(dataset: xr.Dataset) -> ConvNet:
    """The deepest net."""
    spec = json.loads(dataset.attrs["architecture"])
    return ConvNet(**{name: value for name, value in spec.items() if name != "family"})


def _answer(dataset: xr.Dataset) -> str:
    update, label = (claims.scale_slope(dataset, name) for name in claims.SCALED_TERM)
    slopes = f"slope {update.exponent:.3f} +- {update.stderr:.3f}"
    alone = f"of the label term alone {label.exponent:.3f} +- {label.stderr:.3f}"
    return answer([claims.judge_transfer_rule(dataset)], f"{slopes}, {alone}")


def _heading(dataset: xr.Dataset) -> str:
    run = "{draws} draws per depth, seed {seed}, input {inputs}; learning rate 1, labels of variance 1"
    return f"{described_net(dataset)}\n{run.format_map(dataset.attrs)}"


def _layer_table(deepest: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        label, overlap = (_by_layer(at, name) for name in ("label_term", "overlap_energy"))
        terms = [drawn(at, name) for name in ("output_term", "update_energy")]
        return [f"{float(at['finite_width_allowance']):.1%}", *label, *terms, *overlap]

    comparison = ("mean field", "s.e.", "beyond", "minima")
    header = [
        "layer",
        ["allowance", "label term B", *comparison],
        ["output term A", "update energy S"],
        ["overlap F", *comparison],
    ]
    law = deepest["overlap_energy_law"].attrs
    form = "l(l+1)(2l+1)/6" if law["equal_layers"] else "with layers weighted by their input channels"
    title = f"By layer (minima: sum of minima {form}, set at layer {law['anchor_layer']})"
    return table(header, rows(deepest, ["layer"], cells), title)


def _by_layer(at: xr.Dataset, name: str) -> list[str]:
    """Measured, mean field, difference in standard errors, those beyond the allowance, sum of minima."""
    texts = against(at, name)
    has_theory = texts[-1] != MISSING
    beyond = claims.against_values(at, name, at[f"{name}_mean_field"].values).worst if has_theory else float("nan")
    return [*texts, signed(beyond), predicted(at, f"{name}_law")]


def _notes(deepest: xr.Dataset, net: ConvNet) -> str:
    """What a reader must know about the columns: missing predictions, methods, heavy tails."""
    thin = thin_input_warning(net) if deepest.attrs["inputs"] == "gaussian" else ""
    granted = float(deepest["finite_width_allowance"].max())
    notes = [
        f"WARNING: {thin}" if thin else "",
        POOLED_NOTE if net.is_pooled else "",
        OVERLAP_NOTES[deepest.attrs["overlap_method"]],
        heavy_tail_notes(deepest, TERMS),
        GRANTED_NOTE.format(granted=granted) if granted > 1 else "",
    ]
    return "\n".join(filter(None, notes))


def _exponent_table(deepest: xr.Dataset) -> str:
    lines = []
    for name in (name for name in TERMS if name in deepest):
        theory = [_exponent(deepest, f"{name}_{level}") for level in LEVELS]
        law = claims.growth_exponent(deepest, name)
        lines.append([name.replace("_", " "), fitted(law), *map(number, theory)])
    layers = deepest.sizes["layer"]
    title = f"Growth with the layer, l = {claims.first_deep_layer(layers)} .. {layers}"
    return table(["growth exponent", "measured", "mean field", "minima"], lines, title)


def _exponent(deepest: xr.Dataset, name: str) -> float:
    return claims.exponent_of(deepest[name].values) if name in deepest else float("nan")


def _scale_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        law = predicted(at, f"{LABEL_SCALE}_law")
        return [drawn(at, "learning_rate_scale"), *against(at, LABEL_SCALE), law]

    slopes = [fitted(claims.scale_slope(dataset, name)) for name in ("learning_rate_scale", LABEL_SCALE)]
    theory, law = (number(claims.predicted_scale_slope(dataset, level)) for level in LEVELS)
    lines = [*rows(dataset, ["depth"], cells), ["slope", *slopes, theory, "", law]]
    title = "Learning-rate scale, one independent set of nets per depth (papers: slope -1.5)"
    return table(["depth", "eta*", ["eta* of B alone", "mean field", "s.e.", "minima"]], lines, title)
