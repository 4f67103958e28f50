"""How the one-step change depends on the batch: update energy S and learning-rate scale eta*(B) against batch size
B.

Zhang et al. 2026 multiply eta* by 1 + O(1/B) (proposition 3.3, from lemma 4). The lemma is an identity: here all
batches out of a small population are enumerated, with a gradient step each, and larger ones are sampled. What it says
of eta* depends on what samples share: nets are drawn over a ladder of batch sizes for correlated and independent
inputs, for crops of a photograph, and for labels of mean 0, with a mean, and of a linear teacher y = T x. Beside them
stands the mean field, a quadratic form of the tangent kernel in the labels' covariance between samples.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array, require_counts
from meanfield.nets import MLP, Batch, ConvNet, Sequential
from meanfield.simulation import Energies, all_batches, drawn_population, random_batches
from meanfield.theory import correlated_term, finite_width_allowance, label_covariance
from meanfield.verification import Finding
from sims.batch_size import claims
from sims.batch_size.claims import CLAIMS, NAME
from sims.common.command import Option, Preset, chosen_arrays, ladder_of
from sims.common.datasets import Axes, Variable, attributes, labels_in_mean_field, layer_means, over, seeded_run
from sims.common.images import images_from_file, photo_crops
from sims.common.report import ETA, Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Column, Grid, Table, against, fitted, label, measured, number, signed

LISTED = "how the one-step change and eta* depend on the batch"

# Grid of the convolutional nets on white noise.
NOISE_GRID = (8,)
# The largest batches that nets with sites take; each sample has a grid of them.
LARGEST_NOISE, LARGEST_IMAGES = 16, 8
# Correlations of inputs and labels of fully-connected nets.
CORRELATIONS = (0.0, 0.5)
LABELS: dict[str, dict[str, Any]] = {"mean 0": {}, "mean 1": {"label_mean": 1.0}, "teacher": {"labels": "teacher"}}


@dataclass(frozen=True)
class Case:
    """One net over batches of up to ``largest`` samples: fresh ones of a law, or the first of the ``images``."""

    name: str
    net: Sequential
    batch: Batch
    largest: int
    images: Any = None

    def at(self, samples: int) -> Sequential:
        return replace(self.net, inputs=samples)  # type: ignore[type-var]

    def inputs(self, samples: int) -> Any:
        return None if self.images is None else self.images[:samples]

    def describe(self) -> dict[str, Any]:
        """The fields, for the key of a run."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def cases(options: argparse.Namespace, largest: int, images: Any) -> list[Case]:
    """All cases of a run: nets of one site, on a ring, and on images."""
    relu = MLP(width=options.width, depth=options.depth, outputs=options.outputs)
    dense = [
        (f"MLP, rho {rho:g}, labels {words}", relu, Batch(input_correlation=rho, **LABELS[words]))
        for rho, words in product(CORRELATIONS, LABELS)
    ]
    dense += [
        ("MLP, rho 0.9, labels mean 0", relu, Batch(input_correlation=0.9)),
        ("MLP, rho 0, labels mean 0, muP head", replace(relu, head="mup"), Batch()),
        ("linear MLP, rho 0, labels mean 0", replace(relu, activation="linear"), Batch()),
    ]
    return [Case(name, net, batch, largest) for name, net, batch in dense] + _convolutional(options, images)


def _convolutional(options: argparse.Namespace, images: Any) -> list[Case]:
    shared: dict[str, Any] = {"depth": options.depth, "outputs": options.outputs, "channels": options.channels}
    shared["readout"] = "convolution"
    ring = ConvNet(grid=NOISE_GRID, **shared)
    noise = [(0.0, "mean 0"), (0.5, "mean 1"), (0.5, "teacher")]
    on_noise = [
        Case(
            f"ConvNet, rho {rho:g}, labels {words}", ring, Batch(input_correlation=rho, **LABELS[words]), LARGEST_NOISE
        )
        for rho, words in noise
    ]
    plane = ConvNet(grid=options.image_grid, kernel=(3, 3), input_channels=images.shape[1], **shared)
    kind, most = "photo" if options.images == "photo" else "images", min(LARGEST_IMAGES, len(images))
    return on_noise + [
        Case(f"ConvNet, {kind}, labels {words}", plane, Batch(**LABELS[words]), most, images)
        for words in ("mean 0", "teacher")
    ]


GROUP = "network and batch"
OPTIONS = (
    Option(
        "batches",
        "batch sizes, three or more (nets with sites: those <= 16)",
        int,
        metavar="B",
        many="+",
        group=GROUP,
        check=ladder_of(3, "a fit to the larger of them", why="samples of a batch"),
    ),
    Option("depth", "hidden layers", int, metavar="L", group=GROUP),
    Option("width", "units of every layer of fully-connected nets", int, metavar="N", group=GROUP),
    Option("channels", "channels of every layer of convolutional nets", int, metavar="C", group=GROUP),
    Option("outputs", "output channels", int, 4, metavar="M", group=GROUP),
    Option(
        "images",
        "photo (default: crops of a photograph), or FILE[::ARRAY] (.npy, .npz, .nc) of samples",
        default="photo",
        metavar="SOURCE",
        group=GROUP,
    ),
    Option(
        "image_grid",
        "sides of the images",
        int,
        [6, 6],
        metavar="N",
        many=2,
        group=GROUP,
        check=require_counts,
    ),
)
PRESETS = {
    "smoke": Preset("5 s", batches=[1, 2, 4, 8], depth=3, width=128, channels=32, draws=64),
    "default": Preset("20 s", batches=[1, 2, 4, 8, 16, 32, 64], depth=4, width=256, channels=64, draws=256),
    "paper": Preset("30 min", batches=[1, 2, 4, 8, 16, 32, 64, 128], depth=6, width=1024, channels=256, draws=1024),
}

TERMS = ("label_term", "output_term", "update_energy")

MOMENTS = "Zhang et al. 2026, eq. 25"
VARIABLES = (
    Variable("label_term_allowance", "how far finite width may move the label term from its mean field"),
    Variable("label_term_alike", "label term if all samples of a batch had one label, mean field"),
    Variable("label_floor", "label term that is left as the batch grows, mean field"),
    Variable("output_floor", "output term that is left as the batch grows, mean field"),
    Variable("other_sample", "squared kernel of two samples over that of one with itself", symbol="f"),
    Variable(
        "enumerated_gap", "gap in the second moment of a step over all batches, relative to the largest", source=MOMENTS
    ),
    Variable("uncorrected_gap", "the same gap without the term in 1/B"),
    Variable("sampled_energy", "mean square change of the top layer over sampled batches"),
    Variable("sampled_energy_identity", "the same by the identity of mini-batches", source=MOMENTS),
    Variable("sampled_energy_limit", "the same for batches of all samples"),
    Variable("depth_slope", "slope of the label term's eta* in depth, mean field", "between depths 150 and 300"),
    Variable("case", "net, correlation of its inputs, and labels"),
    Variable("batch", "samples B of a batch"),
    Variable("drawing", "how batches are drawn: with replacement or without"),
    Variable("enumerated_batch", "samples B of the batches of which all are taken"),
    Variable("sampled_batch", "samples B of the batches that are sampled"),
    Variable("label_mean", "mean of the labels"),
    Variable("theory_batch", "samples B of a batch in theory"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The cases, images included, and the batch sizes."""
    return {"cases": cases(options, options.batches[-1], _images(options)), "batches": options.batches}


def _images(options: argparse.Namespace) -> Any:
    """Samples with contents, standardised: (samples, channels, height, width)."""
    if options.images == "photo":
        return photo_crops(options.image_grid, 3, LARGEST_IMAGES, options.seed)
    return images_from_file(options.images, options.image_grid, None, None)


def measure(options: argparse.Namespace, results: Results, cases: list[Case], batches: list[int]) -> xr.Dataset:
    """All cases at the batch sizes that they take, NaN at others; what theory says beside them, and alone."""
    places = [(case, count) for case in cases for count in batches if count <= case.largest]
    runs = [
        seeded_run(
            options,
            case.at(count),
            Energies(inputs=case.inputs(count), batch=case.batch, **chosen_arrays(options)),
            f"{case.name}, batch of {count}",
        )
        for case, count in places
    ]
    measured = zip(places, results.draw(runs), strict=True)
    rows = {
        (case.name, count): layer_means(terms, *TERMS) | predicted_means(case, count)
        for (case, count), terms in measured
    }
    axes: Axes = {"case": [case.name for case in cases], "batch": batches}
    missing = dict.fromkeys(next(iter(rows.values())), np.nan)
    drawn = over(axes, [rows.get(place, missing) for place in product(*axes.values())])
    dataset = xr.merge([drawn, floors(cases), identity(options.seed), depth_slopes()])
    own = attributes(options, "depth", "width", "channels", "outputs", "images")
    return dataset.assign_attrs(own, sampled_batches=DRAWN_BATCHES)


# Populations out of which batches are enumerated and sampled, sizes of those, and how many are sampled.
ENUMERATED, SAMPLED = 4, 64
SIZES, DRAWN_BATCHES = (1, 4, 16, 64), 256
DRAWINGS = {"with replacement": True, "without": False}


def identity(seed: int) -> xr.Dataset:
    """Zhang et al. 2026, eq. 25: gaps of enumerated batches with and without its 1/B, and energies of sampled ones."""
    return xr.merge([enumerated(seed), sampled(seed)])


def enumerated(seed: int) -> xr.Dataset:
    """Largest gap over pairs of units, relative to the largest second moment, by drawing and batch size."""
    population = drawn_population(MLP(depth=3, width=8, outputs=2), ENUMERATED, seed)
    axes: Axes = {"drawing": list(DRAWINGS), "enumerated_batch": list(range(1, ENUMERATED + 1))}
    rows = []
    for drawing, size in product(*axes.values()):
        replacement = DRAWINGS[drawing]
        moment = population.second_moment(all_batches(ENUMERATED, size, replacement=replacement))
        square, correction = population.identity(size, replacement=replacement)
        gaps = {"enumerated_gap": moment - square - correction, "uncorrected_gap": moment - square}
        rows.append({name: np.abs(gap).max() / np.abs(moment).max() for name, gap in gaps.items()})
    return over(axes, rows)


def sampled(seed: int) -> xr.Dataset:
    """Mean square change of the top layer over sampled batches, beside the identity and its limit."""
    population = drawn_population(MLP(depth=4, width=64, outputs=2), SAMPLED, seed)
    rows = []
    for size in SIZES:
        batches = random_batches(SAMPLED, size, DRAWN_BATCHES, seed)
        energy = np.array([np.square(population.change(batch)).mean() for batch in batches])
        square, correction = (np.trace(part) / len(part) for part in population.identity(size))
        drawn = {"": energy.mean(), "_stderr": energy.std(ddof=1) / np.sqrt(DRAWN_BATCHES)}
        expected = {"_identity": square + correction, "_limit": square}
        rows.append({f"sampled_energy{end}": number for end, number in (drawn | expected).items()})
    return over({"sampled_batch": list(SIZES)}, rows)


# A batch from which theory reads what is left as B grows.
ENDLESS = 10**6
# Depths between which theory takes slopes, batches at which it does, and a width at which it is all there is.
DEPTHS, DEPTH_BATCHES, WIDE = (150, 300), (1, 64, ENDLESS), 10**6


def predicted_means(case: Case, samples: int) -> dict[str, float]:
    """Means over layers that theory gives: label term, output term, both allowances, and labels all alike."""
    net, inputs, rho = case.at(samples), case.inputs(samples), case.batch.input_correlation
    limit = labels_in_mean_field(net, inputs=inputs, batch=case.batch)
    label = limit["label_term"].values
    copies = np.ones((samples, samples, 1)) if net.padding != "circular" or inputs is not None else np.ones((2, 2, 1))
    alike = correlated_term(net, inputs, rho, copies)
    granted = _granted(net, inputs, rho, label)
    if case.batch.labels == "teacher" and inputs is None:
        granted += _taught_excess(net, rho)
    return {
        "label_term_mean_field": float(label.mean()),
        "label_term_allowance": float(granted.mean()),
        "label_term_alike": float(alike.mean()),
        "output_term_mean_field": float(limit["output_term"].mean()) if "output_term" in limit else np.nan,
    }


def _granted(net: Sequential, inputs: Any, rho: float, label: Any) -> Any:
    """Deviation from the mean field granted to the label term, by layer.

    With several sites that of `finite_width_allowance`. With one, that of a single sample, and what squared kernels
    between samples gain at finite width: the correlation of two samples takes a random step of variance
    (1 - rho^2)^2 / C at every layer, the input's included, so that sums of correlations over l layers have second
    moment sum_{h, h' <= l} min(h, h') / C, over l^2 if they are to be relative to a sample's kernel with itself.
    """
    if net.sites > 1:
        return finite_width_allowance(net, inputs, rho) * label
    layers = np.arange(1, net.depth + 1)
    walked = (layers + 1) * (2 * layers + 1) / (6 * layers) * (1 - rho**2) ** 2 / net.channels_by_layer[-1]
    from_others = (net.inputs - 1) / net.inputs**2 * walked * _alone(net)
    return finite_width_allowance(replace(net, inputs=1)) * label + from_others  # type: ignore[type-var]


def _taught_excess(net: Sequential, rho: float) -> Any:
    """Bound on what labels and kernel share by the fluctuation of one Gram matrix, x_r . x_j / C_0 of variance 1 / C_0.

    Among the terms of the label term 2 (B - 1) are Sigma_rj K_rr K_rj, and K_rj rises by K_rr at most with Sigma_rj.
    """
    return 2 * (net.inputs - 1) / net.inputs**2 * (1 + rho) / net.channels_by_layer[0] * _alone(net)


def _alone(net: Sequential) -> Any:
    """Label term of one sample with plain labels, by layer."""
    return labels_in_mean_field(replace(net, inputs=1))["label_term"].values  # type: ignore[type-var]


def floors(cases: list[Case]) -> xr.Dataset:
    """Label and output term that are left as B grows, where samples are drawn; and f, the weight of another sample.

    f = G_d / G_s, the squared kernel between two samples over that of one with itself, from labels of mean 0.
    """
    return over({"case": [case.name for case in cases]}, [_floor(case) for case in cases])


def _floor(case: Case) -> dict[str, float]:
    if case.images is not None:
        return dict.fromkeys(("label_floor", "output_floor", "other_sample"), np.nan)
    plain = Batch(input_correlation=case.batch.input_correlation)

    def at(samples: int, batch: Batch) -> xr.Dataset:
        return labels_in_mean_field(case.at(samples), batch=batch)

    left, own = (at(ENDLESS, batch) for batch in (case.batch, plain))
    of_pair, alone = (at(samples, plain)["label_term"].mean() for samples in (2, 1))
    return {
        "label_floor": max(0.0, float((left["label_term"] - own["label_term"]).mean())),
        "output_floor": float(left["output_term"].mean()) if "output_term" in left else np.nan,
        "other_sample": 4 * float(of_pair / alone) - 1,
    }


def depth_slopes() -> xr.Dataset:
    """Slope of the label term's eta* in depth, by the mean of the labels and the batch size."""
    axes: Axes = {"label_mean": [0.0, 1.0], "theory_batch": list(DEPTH_BATCHES)}
    slopes = []
    for mean, samples in product(*axes.values()):
        terms = [_label_term(MLP(depth=depth, width=WIDE, inputs=int(samples)), mean) for depth in DEPTHS]
        slopes.append({"depth_slope": -0.5 * np.log(terms[1] / terms[0]) / np.log(DEPTHS[1] / DEPTHS[0])})
    return over(axes, slopes).assign_attrs(slope_depths=list(DEPTHS))


def _label_term(net: MLP, label_mean: float) -> float:
    """Mean over layers of the label term alone, independent inputs."""
    return float(correlated_term(net, None, 0.0, label_covariance(net, None, Batch(label_mean=label_mean))).mean())


# What is printed.

WORDS = {
    "rho": "correlation of the inputs of two samples.",
    "teacher": "labels that a linear map of the inputs gives.",
    "f": "squared kernel of two samples over that of one with itself.",
    "with Cov/B": "the mean square by Zhang et al. 2026, eq. 25; B = inf: its limit for batches of all samples.",
    "beyond": "standard errors beyond the allowance, at the batch size where they are most.",
    "floor": "what the label term tends to as B grows.",
}
LAW = """Law, for labels of mean m and variance 1 (mean field; G_s the squared kernel of a sample with itself,
G_d with another, f = G_d / G_s; G_1 and G_2 the product of its kernels with two samples, of which
one is itself, or none):
  label term = {G_s + (B-1) G_d + m^2 [G_s + (B-1)(G_d + 2 G_1) + (B-1)(B-2) G_2]} / (M B^2)
For m = 0, eta*_B is B / sqrt(1 + (B-1) f) times that of one sample: B if f = 0, and of the order
of sqrt(B) once B f >> 1. It is 1 + O(1/B) only above the floor m^2 G_2 / M, which labels with a
mean have, or those of a teacher where inputs correlate. At an input outside the batch the label
term for m = 0 is 1/B exactly: eta*_B ~ sqrt(B)."""


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    terms, sizes = dataset["label_term"].sel(case=claims.INDEPENDENT).values, dataset["batch"].values
    grown = f"{(terms[0] / terms[-1]) ** 0.5:.3g}-fold from B = {sizes[0]} to {sizes[-1]}"
    net = f"MLP of width {dataset.attrs['width']}, independent inputs"
    return answer([claims.judge_printed(dataset)], f"the drawn eta* of the label term grows {grown} ({net})")


def _by_size(dataset: xr.Dataset, values: Callable[[xr.Dataset], Array]) -> list[Column]:
    """A column for every batch size, of a row's values at all of them."""

    def column(place: int, size: int) -> Column:
        return Column(label(size), lambda at: number(values(at)[place]))

    return [column(*size) for size in enumerate(dataset["batch"].values)]


IDENTITY = Table(
    "identity",
    "Change at an input outside the batch, one net, batches sampled from 64 samples (Zhang et al. 2026, eq. 25)",
    ["sampled_batch"],
    "B",
    [
        Column(["mean square", "with Cov/B", "s.e."], lambda at: against(at, "sampled_energy", "identity")),
        Column("B = inf", "sampled_energy_limit"),
    ],
)


def _scale_columns(dataset: xr.Dataset) -> list[Column]:
    """eta*_B relative to one sample of the case."""

    def relative(at: xr.Dataset) -> Array:
        scale: Array = at["label_term"].values ** -0.5
        return scale / scale[0]

    def slope(at: xr.Dataset) -> str:
        law = claims.drawn_slope(dataset, str(at["case"].values))
        return MISSING if law is None else fitted(law)

    return [
        Column("f", "other_sample"),
        *_by_size(dataset, relative),
        Column(f"slope, B >= {int(claims.tail(dataset)['batch'][0])}", slope),
        Column("mean field", lambda at: number(claims.theory_slope(dataset, str(at["case"].values)))),
    ]


SCALES = Table(
    "scales",
    "Learning-rate scale of the label term by batch size, 1 + O(1/B) in the papers",
    ["case"],
    "eta*(B) / eta*(1), label term",
    _scale_columns,
)


def _brief_table(dataset: xr.Dataset) -> Grid:
    """eta* by batch size for labels of mean 0, and for two of the cases that have a floor."""

    def relative(place: int, at: xr.Dataset) -> str:
        terms = at["label_term"].values
        return number(float((terms[place] / terms[0]) ** -0.5))

    def slopes(at: xr.Dataset) -> list[str]:
        case = str(at["case"].values)
        law, theory = claims.drawn_slope(dataset, case), claims.theory_slope(dataset, case)
        if law is None:
            return [MISSING, number(theory), MISSING]
        return [fitted(law), number(theory), signed((law.exponent - theory) / law.stderr)]

    sizes, cases = dataset["batch"].values, map(str, dataset["case"].values)
    shown = [name for name in cases if name.endswith("mean 0") or name in (claims.WITH_MEAN, claims.TAUGHT)]
    columns = [
        *(Column(f"B = {sizes[place]}", partial(relative, place)) for place in (len(sizes) // 2, -1)),
        Column([f"slope, B >= {int(claims.tail(dataset)['batch'][0])}", "mean field", "off (s.e.)"], slopes),
    ]
    title = "eta*(B) / eta*(1) of the label term, drawn, and its slope in B (papers: 1 + O(1/B), slope 0)"
    return Table("brief table", title, ["case"], "case", columns)(dataset.sel(case=shown))


def _deviation_cells(at: xr.Dataset) -> list[str]:
    """Label terms over their mean field, and in standard errors from it, beyond the allowance."""
    names = ("label_term", "label_term_stderr", "label_term_allowance")
    ratio, error, granted = ((at[name] / at["label_term_mean_field"]).values for name in names)
    last = np.flatnonzero(np.isfinite(at["label_term"].values))[-1]
    worst = float(np.nanmax((np.abs(ratio - 1) - granted) / error))
    ends = [measured(float(ratio[place]), float(error[place])) for place in (0, last)]
    return [*ends, number(granted[last]), signed(worst)]


TERM_TABLE = Table(
    "terms",
    "Label terms over their mean field, and their floor",
    ["case"],
    "label term / mean field",
    [
        Column(["one sample", "largest batch", "allowance", "beyond"], _deviation_cells),
        Column("floor", "label_floor"),
    ],
)


def _output_columns(dataset: xr.Dataset) -> list[Column]:
    by_size = _by_size(dataset, lambda at: (at["output_term"] / at["label_term"]).values)
    return [*by_size, Column("leading order", "leading")]


OUTPUTS = Table(
    "outputs",
    "Output over label term A/B by batch size; leading order in outputs x depth / width at the largest",
    ["case"],
    "A/B",
    _output_columns,
)


def _outputs(dataset: xr.Dataset) -> Grid:
    """Of nets whose leading order is known at the largest batch: fully-connected ones."""
    leading = (dataset["output_term_mean_field"] / dataset["label_term_mean_field"]).isel(batch=-1)
    return OUTPUTS(dataset.assign(leading=leading).isel(case=np.flatnonzero(np.isfinite(leading.values))))


def _depth_columns(dataset: xr.Dataset) -> list[Column]:
    def column(size: float) -> Column:
        return Column(f"B = {size:g}", lambda at: number(float(at["depth_slope"].sel(theory_batch=size))))

    return [column(size) for size in dataset["theory_batch"].values]


DEPTH = Table(
    "depth",
    "Slopes in depth by the mean field, 150 to 300 layers (papers: -1.5 for every B)",
    ["label_mean"],
    "eta* of the label term",
    _depth_columns,
    key=lambda mean: f"labels of mean {mean}",
)

REPORT = Report(
    question="Does the batch size B move eta* by no more than 1 + O(1/B), for labels of mean 0?",
    answer=_answer,
    heading="MLPs of width {width}, ConvNets of {channels} channels, depth {depth}, outputs {outputs}; relu and he "
    "head unless said otherwise; {draws} draws of each case and size, seed {seed}; "
    "rho: correlation of two samples' inputs; "
    f"images: {{images}}\n{ETA}",
    brief=_brief_table,
    steps=[
        ("--batches 1 4 16 64", "larger batches, at which labels with a mean reach their floor"),
        ("--preset paper", "width 1024, B to 128, 1,024 draws: small errors, in 30 minutes"),
    ],
    parts=[IDENTITY, SCALES, TERM_TABLE, _outputs, DEPTH, LAW],
    findings=claims.findings,
    heavy=["label_term", "output_term"],
    words=WORDS,
)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="60 s",
    arrays=True,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)


if __name__ == "__main__":
    run_as_command("batch_size")
