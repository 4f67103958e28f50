"""Measure the depth law of convolutional nets: label term, output term, update energy, overlap energy by layer.

Draws networks at initialisation, computes for every draw the exact one-step change of every pre-activation, and
holds the result against the mean field and the papers' sum-of-minima law, with a verdict for each.
"""

import argparse
import json
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, require_counts
from meanfield.execution import Run, provenance
from meanfield.nets import ConvNet
from meanfield.simulation import Energies, controls_refusal
from meanfield.theory import finite_width_allowance, pooled_excess, thin_input_warning
from meanfield.verification import (
    Finding,
    Rung,
    Verdict,
    at_finite_channels,
    at_infinite_channels,
    best,
    exponent_of,
    growth_exponent,
    has_channel_factor,
)
from sims.cnn_overlap import claims
from sims.cnn_overlap import claims as exponents
from sims.cnn_overlap.claims import CLAIMS, LABEL_SCALE, NAME, SCALE, deep_exponents
from sims.cnn_overlap.settings import (
    OUTPUT_SCALE,
    PAPERS,
    DrawnNet,
    ReadoutSetting,
    at_settings,
    draws_beside,
    nets_beside,
    premises_in_the_report,
    scales_under,
    setting_of,
    slope_under,
    turning_points,
)
from sims.common.command import Option, Preset, chosen_arrays, counted
from sims.common.datasets import Variable, attributes, labels_in_mean_field, seeded_run, suffixed, words_of
from sims.common.images import images_from_file, photo_crops
from sims.common.report import Document, NextStep, described_net, folded
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import (
    Column,
    Grid,
    Table,
    against,
    fitted,
    heavy_tail_notes,
    measured,
    number,
    predicted,
    row_or_reason,
    rows,
    table,
    value,
)

LISTED = "how the terms and eta* of convolutional nets grow with depth"

# Channels that stand for infinitely many, where theory asks for a number.
LIMIT = 10**12
# What the judges must know of the draws with half the channels: how far single draws scatter.
FEW = ("label_term", "label_term_stderr", "overlap_energy", "overlap_energy_stderr")


def lengths(written: str, given: list[int]) -> list[int]:
    """Sites along the one or two axes of a grid."""
    require_counts(written, given)
    if len(given) > 2:
        raise ValueError(f"{written} {given} has {len(given)} axes; give 1 or 2")
    return given


INPUT_LAYOUTS = """An image file holds (grid), (channels, grid) or (samples, channels, grid), channels first or last;
  with --samples n or --input-channels 1, an array (n, grid) is n grey samples. Images are standardised."""

OPTIONS = (
    Option("depth", "hidden layers", int, metavar="L", check=counted(maximum=MOST_LAYERS)),
    Option(
        "channels",
        "channels of every hidden layer",
        int,
        metavar="C",
        check=counted("a second run has half of them", minimum=2),
    ),
    Option("grid", "sites along the one or two axes", int, metavar="N", many="+", check=lengths),
    Option("kernel", "taps along each axis, odd or even; one number for all axes", int, metavar="K", many="+"),
    Option("padding", "circular (default) or zero", default="circular"),
    Option("activation", "relu (default), linear, gelu or tanh", default="relu"),
    Option(
        "readout",
        "convolution (default; theory has its label term at finite channels) or pooled, the papers' head",
        default="convolution",
    ),
    Option(
        "head",
        "variance of the readout's weights: he (default) 1/(q fan_in), fan_in 1/fan_in, mup 1/fan_in^2",
        default="he",
    ),
    Option("outputs", "output channels, classes of a label", int, metavar="M"),
    Option(
        "input",
        "gaussian (default: fresh white noise), photo (crops of a photograph), or FILE[::ARRAY] (.npy, .npz, .nc)",
        default="gaussian",
        metavar="SOURCE",
        group="input",
    ),
    Option(
        "input_channels",
        "channels of the input (gaussian: as the hidden layers; photo: 3 for RGB, 1 for grey; a file: its own)",
        int,
        metavar="C",
        check=counted(),
        group="input",
    ),
    Option(
        "samples",
        "samples in the batch (default: 1; a file: its own)",
        int,
        metavar="B",
        check=counted(),
        group="input",
    ),
)
SHARED: dict[str, Any] = {"precision": "float32"}
PRESETS = {
    "smoke": Preset("3 s", depth=4, channels=32, grid=[8], kernel=[3], outputs=10, draws=160, **SHARED),
    "default": Preset("12 s", depth=12, channels=256, grid=[16], kernel=[3], outputs=100, draws=640, **SHARED),
    "paper": Preset("15 min", depth=16, channels=256, grid=[16, 16], kernel=[3], outputs=100, draws=2048, **SHARED),
}

AT_LIMIT = ("label_term", "overlap_energy", LABEL_SCALE)
PREDICTED = (*AT_LIMIT, "output_term", "update_energy", SCALE)
IN_DEEP_NETS = ("label_term", "output_term", "overlap_energy", SCALE, LABEL_SCALE)


def _each(names: tuple[str, ...], end: str, words: str) -> list[Variable]:
    return [Variable(f"{name}_{end}", f"{name.replace('_', ' ')}, {words}") for name in names]


# What variables over the settings are of.
OF_SETTINGS = {
    "learning_rate_scale": "learning-rate scale",
    "label_learning_rate_scale": "learning-rate scale of the label term alone",
    "output_learning_rate_scale": "learning-rate scale of the output term alone",
    "output_over_label": "output term over label term at the last layer",
}
VARIABLES = (
    Variable("setting", "readout, number of outputs, and variance of the head's weights"),
    *(Variable(f"setting_{name}", f"{words}, by setting") for name, words in OF_SETTINGS.items()),
    *(
        Variable(f"setting_{name}_finite_channels", f"{words}, by setting, theory at the net's own channels")
        for name, words in OF_SETTINGS.items()
    ),
    Variable("setting_load", "outputs x depth / channels, by setting"),
    Variable(
        "setting_turning",
        "outputs x depth / channels of the deepest net from which eta* falls faster than L^(-3/2) over these depths, "
        "mean field",
    ),
    *_each(PREDICTED, "finite_channels", "theory at the net's own channels"),
    *_each(AT_LIMIT, "limit", "drawn, brought to infinitely many channels"),
    *_each(IN_DEEP_NETS, "deep", "exponent in deep nets, mean field"),
    Variable("extrapolation_left", "what extrapolation in 1/channels may leave, relative to the mean field"),
    Variable("thin_input_allowance", "what few channels of a drawn input may add, relative to the mean field"),
    Variable("deep_depth", "depth of deep nets"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets of the ladder and their inputs; sizes are refused before any file is read."""
    inputs = _inputs(options)
    nets = [_net(options, depth, inputs) for depth in depth_ladder(options.depth)]
    for net in (nets[-1], *nets_beside(nets[-1])):
        _run(options, net, inputs).require_memory(options.workers.here)
    return {"nets": nets, "inputs": inputs}


def depth_ladder(depth: int) -> list[int]:
    """Depths at which the learning-rate scale is measured: L, L/2, L/4, ... down to 2 (or 1 for shallow nets)."""
    least = 2 if depth >= 4 else 1
    ladder = [depth]
    while ladder[0] // 2 >= least and len(ladder) < 4:
        ladder.insert(0, ladder[0] // 2)
    return ladder


def _inputs(options: argparse.Namespace) -> Any:
    """The fixed batch that the user asked for, or None for fresh noise in every draw."""
    if options.input == "gaussian":
        return None
    grid = tuple(options.grid)
    if options.input == "photo":
        channels = 3 if options.input_channels is None else options.input_channels
        return photo_crops(grid, channels, 1 if options.samples is None else options.samples, options.seed)
    return images_from_file(options.input, grid, options.samples, options.input_channels)


def _net(options: argparse.Namespace, depth: int, inputs: Any) -> ConvNet:
    names = ("channels", "grid", "padding", "activation", "outputs", "head", "readout")
    return ConvNet(
        depth=depth,
        kernel=options.kernel * len(options.grid) if len(options.kernel) == 1 else options.kernel,
        input_channels=options.input_channels if inputs is None else inputs.shape[1],
        inputs=(1 if options.samples is None else options.samples) if inputs is None else len(inputs),
        **{name: getattr(options, name) for name in names},
    )


def measure(options: argparse.Namespace, results: Results, nets: list[ConvNet], inputs: Any) -> xr.Dataset:
    """Every rung of the ladder with its predictions beside: one dataset with a leading dim ``depth``.

    Where theory does not know a net's terms at finite channels, it is drawn with half of them, too. Nets of the other
    settings are drawn less often, and have variables of their own, over ``setting`` and ``depth``.
    """
    drawn_nets, others = [_drawn_nets(net, inputs) for net in nets], [nets_beside(net) for net in nets]
    own = [_run(options, net, inputs) for rung in drawn_nets for net in rung]
    drawn = iter(results.draw([*own, *(_run_beside(options, net, inputs) for rung in others for net in rung)]))
    rungs = [with_theory([(net, next(drawn)) for net in rung], inputs) for rung in drawn_nets]
    sources = [
        [DrawnNet(net, rung), *(DrawnNet.beside(other, next(drawn), inputs) for other in at_depth)]
        for net, rung, at_depth in zip(nets, rungs, others, strict=True)
    ]
    depths = {"depth": [net.depth for net in nets]}
    dataset = xr.concat(rungs, dim="depth", join="outer", combine_attrs="override").assign_coords(depths)
    settings = xr.concat([at_settings(at) for at in sources], dim="depth").assign_coords(depths)
    dataset = dataset.merge(settings).assign(deep_exponents(nets[-1]))
    dataset.attrs |= attributes(options) | {
        "architecture": json.dumps(nets[-1].describe()),
        "few_channels": drawn_nets[-1][-1].channels if len(drawn_nets[-1]) > 1 else 0,
        "inputs": options.input,
        "draws_beside": draws_beside(options.draws),
        "provenance": provenance(seeds=[str(_run(options, net, inputs).seed) for net in nets], draws=options.draws),
    }
    return dataset.assign(turning_points(dataset, sources, inputs))


def _drawn_nets(net: ConvNet, inputs: Any) -> list[ConvNet]:
    return [net] if has_channel_factor(net, inputs) else [net, net.replace(channels=net.channels_by_layer[-1] // 2)]


def _run(options: argparse.Namespace, net: ConvNet, inputs: Any) -> Run:
    """The draws of one net, with controls wherever their means are known."""
    energies = Energies(inputs=inputs, controls=not controls_refusal(net, inputs), **chosen_arrays(options))
    return seeded_run(options, net, energies, f"depth {net.depth}, channels {net.channels}")


def _run_beside(options: argparse.Namespace, net: ConvNet, inputs: Any) -> Run:
    """Fewer draws of a net of another setting, by seeds of their own."""
    run = _run(options, net, inputs)
    label = f"depth {net.depth}, channels {net.channels}, {ReadoutSetting.of(net)}"
    return seeded_run(options, net, run.measure, label, draws_beside(options.draws))


def with_theory(drawn: list[tuple[Any, xr.Dataset]], inputs: Any = None) -> xr.Dataset:
    """One depth: what was drawn, every level's predictions as NAME_level, and what is left at infinitely many."""
    with premises_in_the_report():
        many, *few = [Rung(net, of, labels_in_mean_field(net, inputs=inputs), inputs) for net, of in drawn]
    unlimited = (
        finite_width_allowance(many.net.replace(**{many.net.WIDTH: LIMIT}), inputs) if few else np.zeros(many.net.depth)
    )
    known = [
        suffixed(many.leading, "mean_field"),
        suffixed(mf.predict(many.net, level="law", inputs=inputs), "law"),
        suffixed(at_finite_channels(many), "finite_channels"),
        at_infinite_channels(many, few[0] if few else None),
        xr.Dataset({"thin_input_allowance": ("layer", unlimited)}),
    ]
    scatter = {
        f"few_channels_{name}": rung.drawn[name].assign_attrs(
            long_name=f"{words_of(name)['long_name']}, half the channels"
        )
        for rung in few
        for name in FEW
        if name in rung.drawn
    }
    return xr.merge([many.drawn, *known, xr.Dataset(scatter)], combine_attrs="override")


# What is printed.

QUESTION = "Does eta* fall with depth as L^(-3/2), and the label term B grow with the layer as l^3?"
WORDS = {
    "theory": "the mean field, times what theory has for finite channels (below the tables).",
    "fan_in": "output weights of variance 1/n, n being the channels.",
    "he": "output weights of variance 2/n, of a convolution 2/(n taps).",
    "mup": "output weights of variance 1/n^2, so that outputs vanish as channels grow.",
    "C = inf": "the drawn means, brought to infinitely many channels (below the tables).",
}
WITH_LIMIT = {"label_term": "label term B", "overlap_energy": "overlap F"}
TERMS = ("label_term", "output_term", "update_energy", "overlap_energy")
# Allowances below this, relative to the mean field, go without saying.
NOTABLE = 1e-3

# How the means at finite channels and at infinitely many are connected, by what theory has for the net.
FACTOR_NOTE = "Label term at {channels} channels: theory's finite-channel factor; C = inf: drawn / factor."
EXTRAPOLATED_NOTE = (
    "Label term at {channels} channels: the exact factor of one site stands in for the grid's. C = inf: drawn / "
    "factor, with draws at {few_channels} channels extrapolated in 1/C."
)
SMOOTH_NOTE = (
    "C = inf: drawn at {channels} and {few_channels} channels and extrapolated in 1/C; verdicts grant what that may "
    "leave, {left:.1%} of the mean field, as smooth gates have no theory at finite channels."
)
POOLED_NOTE = (
    "Under a pooled readout the gates above a layer change its label term, too, which theory at {channels} channels "
    "lacks: up to about {excess:+.0%} of B at every layer, layer 1 included. The columns C = inf are free of it."
)
OUTPUT_NOTE = (
    "Theory of A, S and eta*: the exact factor of one site stands in for the grid's. Where L/C is 1/8, drawn A has "
    "exceeded it by 13 % with three taps and by 40 % with one; verdicts on A and eta* grant as much as it changes."
)
NO_OUTPUT_NOTE = (
    "A, S and eta* of the whole update have no theory at finite channels: output terms are solved for ReLU and linear "
    "nets whose drawn inputs have many channels."
)
THIN_NOTE = "Verdicts grant {left:.1%} of the mean field to B, as the few channels of the drawn input fluctuate."
ADJUSTED_NOTE = (
    "Means are adjusted by energies with exactly known means; it leaves {left:.2f} of the standard error of B and "
    "{output:.2f} of that of A at the last layer. The dataset has the plain means, too."
)
NO_LABEL_NOTE = "The label term has no theory for this readout with such gates and edges; compare F."
OVERLAP_NOTES = {
    "dense": "F comes from the whole tangent kernel.",
    "reduction": "Overlap energy: F = {ratio:.4g} B at every layer, in mean exactly, for this readout.",
    "probe": "F comes from one white error column at the top layer (top-layer reduction, exact in mean).",
    "probes": "F comes from one white error column at every layer (zero padding or smooth gates: no one serves all).",
}
POWER_NOTE = (
    "Power: this run would refute, in 99 of 100 repeats, a theory whose growth exponent is off by {exponent:.2g}, or "
    "whose prefactor is off by {prefactor:.1%}."
)
POWERLESS_NOTE = "Power: none; so few draws refute neither an exponent that is off by 1 nor a factor of 2 (--times)."


def document(dataset: xr.Dataset) -> Document:
    """What is said of a ladder of depths: slopes by setting, the table of the short form, come first."""
    deepest, net = dataset.isel(depth=-1), exponents.net_of(dataset)
    tables: list[str | Grid] = [*_layer_tables(deepest)]
    if net.depth < claims.LEAST_DEPTH:
        shallow = f"Too shallow: growth laws need {claims.LEAST_DEPTH} layers or more; this net has {net.depth}."
        parts = [*tables, _notes(deepest, net)]
        return Document(question=QUESTION, answer=shallow, heading=_heading(dataset), parts=parts, words=WORDS)
    findings = claims.findings(dataset)
    rest = [*tables, _exponent_table(deepest), _scale_table(dataset), _notes(deepest, net), _power(dataset)]
    return Document(
        question=QUESTION,
        answer=answer(dataset),
        heading=_heading(dataset),
        findings=findings,
        parts=[settings_table(dataset), *rest],
        steps=steps(dataset, net, findings),
        words=WORDS,
    )


def steps(dataset: xr.Dataset, net: ConvNet, findings: list[Finding]) -> list[NextStep]:
    """Options that say more than this run, and what each is good for."""
    more = [round(finding.needed) for finding in findings if finding.needed is not None]
    draws, gain = 4 * int(dataset.attrs["draws"]), "all errors become half as large"
    if more:
        draws, gain = max(more), "enough for every undecided verdict"
    runs = [(f"--draws {draws}", gain)]
    if setting_of(dataset) != PAPERS:
        runs.append((" ".join(claims.P0_HEAD), "the same under the paper's head"))
    others = ["--grid 8 8"] * (len(net.grid) == 1) + ["--input photo"] * (dataset.attrs["inputs"] != "photo")
    if others:
        runs.append((", ".join(others), "the same for other nets and inputs"))
    return [*runs, ("python -m sims.cnn_finite_channels", "how corrections go with the channels")]


def settings_table(dataset: xr.Dataset) -> Grid:
    """Slopes of eta* in every setting, of the whole step and of each part alone, and how much of each part there is."""
    net = exponents.net_of(dataset)
    title = (
        f"Slope of eta* over depths {_depths(dataset)} at {net.channels} channels, by readout, outputs and head; in "
        f"theory also of its parts B (by labels) and A (by outputs) alone, A/B at layer {net.depth}, and the load "
        f"(outputs x depth / channels) beyond which the mean field passes -3/2. The paper's: {PAPERS}"
    )
    columns = [
        Column(["eta*", "theory"], lambda at: [fitted(exponents.scale_slope(at, SCALE)), _slope(at, SCALE)]),
        Column(["B alone", "A alone"], lambda at: [_slope(at, LABEL_SCALE), _slope(at, OUTPUT_SCALE)]),
        Column("A/B", lambda at: predicted(at.isel(depth=-1), "output_over_label_finite_channels")),
        Column("load", lambda at: predicted(at.isel(depth=-1), "load")),
        Column("-3/2 at", lambda at: predicted(at, "turning")),
    ]

    def cells(setting: str) -> list[str]:
        at = scales_under(dataset, setting)
        return [cell for column in columns for cell in column.cells(at)]

    lines = [row_or_reason(name, partial(cells, name)) for name in map(str, dataset["setting"].values)]
    return table(["setting", *(column.headers for column in columns)], lines, title)


def _slope(at: xr.Dataset, name: str) -> str:
    """In theory at the net's own channels."""
    return number(slope_under(at, name, "finite_channels"))


def _minima(deepest: xr.Dataset) -> str:
    """The papers' law in words."""
    law = deepest["overlap_energy_law"].attrs
    form = "l(l+1)(2l+1)/6" if law["equal_layers"] else "with layers weighted by their input channels"
    return f"minima: sum of minima {form}, set at layer {law['anchor_layer']}"


def _heading(dataset: xr.Dataset) -> str:
    run = "{draws} draws per depth, seed {seed}, input {inputs}; learning rate 1, labels of variance 1"
    about = "Verdicts are about this net, unless they name another head. C = inf: infinitely many channels."
    return f"{described_net(dataset)}\n{run.format_map(dataset.attrs)}\n{about}"


def _layer_tables(deepest: xr.Dataset) -> list[Grid]:
    """Terms by layer: drawn beside theory at the net's own channels, and what depends on labels alone in the limit."""
    known = {name: letter for name, letter in WITH_LIMIT.items() if not _follows_labels(deepest, name)}
    titles = {name: f"{letter}, by layer ({_minima(deepest)})" for name, letter in known.items()}
    tables = [
        Table("layer table", titles[name], ["layer"], "layer", [_own_column(name, letter), _limit_column(name)])
        for name, letter in known.items()
    ]
    whole = [_own_column("output_term", "output term A"), _own_column("update_energy", "update energy S")]
    tables.append(Table("update table", "Output term and whole update, by layer", ["layer"], "layer", whole))
    return [table_of(deepest) for table_of in tables]


def _own_column(name: str, header: str) -> Column:
    return Column([header, "theory", "s.e."], partial(_at_channels, name=name))


def _limit_column(name: str) -> Column:
    return Column(["C = inf", "mean field", "s.e.", "minima"], partial(_limit, name=name))


def _follows_labels(deepest: xr.Dataset, name: str) -> bool:
    """Whether a term is a constant times the label term, draw by draw."""
    return name == "overlap_energy" and deepest.attrs["overlap_method"] == "reduction"


def _at_channels(at: xr.Dataset, name: str) -> list[str]:
    """Drawn, theory at the net's own channels, and how far they are apart in standard errors."""
    known = at.rename({f"{name}_finite_channels": f"{best(at, name)}_finite_channels"} if _has_theory(at, name) else {})
    return against(known, best(at, name), "finite_channels")


def _has_theory(at: xr.Dataset, name: str) -> bool:
    return f"{name}_finite_channels" in at and best(at, name) != name


def _limit(at: xr.Dataset, name: str) -> list[str]:
    """Brought to infinitely many channels, the mean field, s.e. between them; the papers' law."""
    expected = value(at, f"{name}_mean_field")
    known = at.assign({f"{name}_limit_mean_field": expected})
    return [*against(known, f"{name}_limit"), predicted(at, f"{name}_law")]


def _exponent_table(deepest: xr.Dataset) -> Grid:
    lines = []
    for name in (name for name in TERMS if name in deepest and not _follows_labels(deepest, name)):
        law = growth_exponent(deepest, best(deepest, name))
        limit = fitted(growth_exponent(deepest, f"{name}_limit")) if f"{name}_limit" in deepest else "-"
        theory, mean_field, minima = (
            number(_exponent(deepest, f"{name}_{level}")) for level in ("finite_channels", "mean_field", "law")
        )
        lines.append([name.replace("_", " "), fitted(law), theory, limit, mean_field, minima])
    title = f"Exponent of growth with the layer, l = {layers(deepest)}"
    return table(["exponent of", "drawn", "theory", "C = inf", "mean field", "minima"], lines, title)


def _exponent(deepest: xr.Dataset, name: str) -> float:
    return exponent_of(deepest[name].values) if name in deepest else float("nan")


def _scale_table(dataset: xr.Dataset) -> Grid:
    def cells(at: xr.Dataset) -> list[str]:
        return [*_at_channels(at, SCALE), *_at_channels(at, LABEL_SCALE), *_limit(at, LABEL_SCALE)]

    slopes = ["slope", *_slopes(dataset, SCALE), *_slopes(dataset, LABEL_SCALE), *_limit_slopes(dataset)]
    lines = [*rows(dataset, ["depth"], cells), slopes]
    header = ["depth", ["eta*", "theory", "s.e."], ["eta* of B alone", "theory", "s.e."]]
    title = "Learning-rate scale, independent nets at each depth (papers: slope -1.5, of minima in deep nets)"
    return table([*header, ["C = inf", "mean field", "s.e.", "minima"]], lines, title)


def _slopes(dataset: xr.Dataset, name: str) -> list[str]:
    law = exponents.scale_slope(dataset, best(dataset, name))
    return [
        measured(law.exponent, law.stderr),
        number(exponents.predicted_scale_slope(dataset, name, "finite_channels")),
        "",
    ]


def _limit_slopes(dataset: xr.Dataset) -> list[str]:
    if f"{LABEL_SCALE}_limit" not in dataset:
        return ["", "", "", ""]
    law = exponents.scale_slope(dataset, f"{LABEL_SCALE}_limit")
    theory, minima = (
        number(exponents.predicted_scale_slope(dataset, LABEL_SCALE, level)) for level in ("mean_field", "law")
    )
    return [measured(law.exponent, law.stderr), theory, "", minima]


def _notes(deepest: xr.Dataset, net: ConvNet) -> str:
    """What a reader must know about the columns: where theory comes from, what it lacks, heavy tails."""
    drawn = deepest.attrs["inputs"] == "gaussian" and deepest.attrs["few_channels"]
    thin = thin_input_warning(net) if drawn else ""
    attrs = deepest.attrs | {"channels": net.channels}
    left = float(deepest["extrapolation_left"].max())
    excess = float(np.expm1(pooled_excess(net)))
    granted = float(deepest["thin_input_allowance"].max())
    ratio = float(deepest["overlap_energy"][-1] / deepest["label_term"][-1])
    notes = [
        f"WARNING: {thin}" if thin else "",
        "" if "label_term_mean_field" in deepest else NO_LABEL_NOTE,
        _finite_note(deepest).format(left=left, **attrs),
        POOLED_NOTE.format(excess=excess, **attrs) if excess > NOTABLE else "",
        THIN_NOTE.format(left=granted) if granted > NOTABLE else "",
        OUTPUT_NOTE if "output_term_finite_channels" in deepest else NO_OUTPUT_NOTE,
        OVERLAP_NOTES[deepest.attrs["overlap_method"]].format(ratio=ratio),
        _adjusted_note(deepest),
        heavy_tail_notes(deepest, TERMS),
    ]
    return "\n".join(filter(None, notes))


def _finite_note(deepest: xr.Dataset) -> str:
    if not deepest.attrs["few_channels"]:
        return FACTOR_NOTE
    return EXTRAPOLATED_NOTE if "overlap_energy_finite_channels" in deepest else SMOOTH_NOTE


def _adjusted_note(deepest: xr.Dataset) -> str:
    if "adjusted_label_term" not in deepest:
        return ""
    left, output = (float(deepest[f"adjusted_{name}_stderr"][-1] / deepest[f"{name}_stderr"][-1]) for name in TERMS[:2])
    return ADJUSTED_NOTE.format(left=left, output=output)


def _power(dataset: xr.Dataset) -> str:
    name = claims.judged_term(dataset)
    if name is None:
        return ""
    least = claims.power(dataset, name)
    if not max(least.exponent, least.prefactor) < 1:
        return POWERLESS_NOTE
    return POWER_NOTE.format(exponent=least.exponent, prefactor=least.prefactor)


def answer(dataset: xr.Dataset) -> str:
    """What was asked of eta*, under the paper's head, what decides its exponent; and what was asked of B."""
    first, *others = [*_papers_scale(dataset), *_growth(dataset)]
    indent = " " * 10
    return f"{first}\n{folded(' '.join(others), indent, 10)}"


def _papers_scale(dataset: xr.Dataset) -> list[str]:
    """Of eta* under the paper's head, and from which outputs times depth over channels on it is steeper."""
    is_own, net = setting_of(dataset) == PAPERS, exponents.net_of(dataset)
    finding = claims.judge_exponent(dataset, SCALE) if is_own else claims.judge_papers_head(dataset)
    law = exponents.scale_slope(scales_under(dataset, str(PAPERS)), SCALE)
    load = float(dataset["setting_turning"].sel(setting=str(PAPERS)))
    slope = f"Its slope is {_exponent_words(law)} over depths {_depths(dataset)} at {net.channels} channels"
    steeper = "" if load != load else f"; it steepens with outputs x depth / channels, beyond -3/2 from {load:.2g} on"
    return [_whether(finding, "eta* under the paper's head", "fall", "as L^(-3/2)"), f"{slope}{steeper}."]


def _growth(dataset: xr.Dataset) -> list[str]:
    """Of the label term, or what stands for it."""
    name, net = claims.judged_term(dataset), exponents.net_of(dataset)
    if name is None:
        return ["The growth of B has no prediction here."]
    deepest = dataset.isel(depth=-1)
    which = "B" if name == "label_term" else f"B (here {name.replace('_', ' ')})"
    said = _whether(claims.judge_exponent(dataset, name), f"{which} of the net below", "grow", "as l^3")
    exponent = _exponent_words(growth_exponent(deepest, f"{name}_limit"))
    numbers = (
        f"exponent {exponent} in layers {layers(deepest)}, brought from {net.channels} channels to infinitely many"
    )
    why = exponents.no_power_law(net)
    deeper = [f"In deeper nets it is no power law, {why}."] if why else []
    return [f"{said.removesuffix('.')}: {numbers}.", *deeper]


def _whether(finding: Finding, subject: str, verb: str, law: str) -> str:
    return {
        Verdict.CONFIRMED: f"Yes, {subject} {verb}s {law}.",
        Verdict.REFUTED: f"No, {subject} does not {verb} {law}.",
        Verdict.INCONCLUSIVE: f"This run cannot tell whether {subject} {verb}s {law}.",
    }[finding.verdict]


def layers(deepest: xr.Dataset) -> str:
    """Those over which exponents are fitted."""
    return claims.where(deepest, "label_term").removeprefix("layers ")


def _exponent_words(law: Any) -> str:
    return f"{law.exponent:.2f} +- {law.stderr:.2f}" if law.stderr < 1 else "not measured"


def _depths(dataset: xr.Dataset) -> str:
    return " .. ".join(str(int(dataset["depth"][end])) for end in (0, -1))


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    notes={"input": INPUT_LAYOUTS},
    presets=PRESETS,
    compiles="4 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=document,
    claims=CLAIMS,
    arrays=True,
)


if __name__ == "__main__":
    run_as_command("cnn_overlap")
