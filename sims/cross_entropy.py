"""What cross-entropy instead of squared loss does to the one-step change, over depth, for two nets and two heads.

The papers derive eta* ~ L^(-3/2) for squared loss and train with cross-entropy; they say that it changes the prefactor
only, because at initialisation the softmax p is uniform and |p - y|^2 = 1 - 1/C for C classes (Zhang et al. 2026,
section G). Here both losses are drawn, with the same passes and other error columns: of labels, y - 1/C with a class
drawn uniformly, and of outputs, p - 1/C. Under the muP head logits vanish with the width; under the He head they are of
order one, and under the paper's own, of variance 1/n behind a pooling, in between.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, Array, PowerLaw
from meanfield.execution import Run
from meanfield.nets import LOSS_NAMES, MLP, ConvNet, Sequential
from meanfield.simulation import Energies
from meanfield.theory import predict
from meanfield.verification import (
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Series,
    checks,
    contest,
    scale_law,
)
from sims.common.command import Option, Preset, chosen_arrays, counted, ladder_of
from sims.common.datasets import (
    ENDS,
    Axes,
    Variable,
    attributes,
    labels_in_mean_field,
    layer_means,
    over,
    seeded_run,
    taken,
)
from sims.common.report import ETA, Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, ColumnGroup, Grid, Table, fitted, measured, number

NAME = "cross_entropy"
LISTED = "what cross-entropy changes against the squared loss"

# What is asked for.

OPTIONS = (
    Option(
        "depths",
        "hidden layers, two depths or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(2, "a slope", maximum=MOST_LAYERS, why="hidden layers"),
    ),
    Option("width", "units of every layer of the MLP", int, metavar="N"),
    Option("channels", "channels of every layer of the ConvNet, on a ring of 8 sites, pooled", int, metavar="C"),
    Option(
        "classes",
        "outputs, two or more",
        int,
        10,
        metavar="C",
        check=counted("one class has a softmax of 1 and no error", minimum=2),
    ),
)
PRESETS = {
    "smoke": Preset("4 s", depths=[2, 4, 8], width=128, channels=32, draws=128),
    "default": Preset("10 s", depths=[2, 4, 8, 16], width=256, channels=64, draws=768),
    "paper": Preset("4 min", depths=[2, 4, 8, 16, 32], width=1024, channels=256, draws=2048),
}

# What is measured.

HEADS = ("he", "fan_in", "mup")
ENTROPIC, SQUARED = "cross_entropy", "squared"
TERMS = ("label_term", "output_term", "update_energy")
GRID = (8,)

VARIABLES = (
    Variable("net", "net: fully-connected, or convolutional on a ring and pooled"),
    Variable("head", "variance of the output weights: He, 1/fan_in, or 1/fan_in^2 (muP)"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets at depth 1, by name, and the depths."""
    shared = {"depth": 1, "outputs": options.classes}
    nets = {
        "MLP": MLP(width=options.width, **shared),
        "ConvNet": ConvNet(channels=options.channels, grid=GRID, **shared),
    }
    return {"nets": nets, "depths": options.depths}


def measure(
    options: argparse.Namespace, results: Results, nets: dict[str, Sequential], depths: list[int]
) -> xr.Dataset:
    """Means over layers of all terms, and the error at the outputs, by net, head, loss and depth; theory beside."""
    axes: Axes = {"net": list(nets), "head": HEADS, "loss": LOSS_NAMES, "depth": depths}
    runs = [
        seeded_run(
            options,
            replace(nets[name], head=head, depth=depth),  # type: ignore[type-var]
            Energies(loss=loss, **chosen_arrays(options)),
            f"{name}, {head} head, {loss}, depth {depth}",
        )
        for name, head, loss, depth in product(*axes.values())
    ]
    rows = [
        layer_means(means, *TERMS) | taken(means, "output_error", ends=ENDS[:2]) | _theory(run)
        for run, means in zip(runs, results.draw(runs), strict=True)
    ]
    return over(axes, rows).assign_attrs(attributes(options, "width", "channels", "classes"))


def _theory(run: Run) -> dict[str, float]:
    """Means over layers of NAME_mean_field and, of the MLP under squared loss, of NAME_exact; NaN elsewhere."""
    net, loss = run.net, run.measure.loss
    levels = {"mean_field": ("label_term", "output_term", "output_error"), "exact": ("label_term", "update_energy")}
    predictions = {"mean_field": labels_in_mean_field(net, batch=run.measure.batch, loss=loss)}
    if loss == SQUARED and isinstance(net, MLP):
        predictions["exact"] = predict(net, level="exact")
    return {
        f"{name}_{level}": float(predictions[level][name].mean()) if level in predictions else float("nan")
        for level, names in levels.items()
        for name in names
    }


# What is claimed, and what decides it.

# Exponents in depth that differ by less are the same.
NEAR = 0.05
# Relative deviation granted to an average over logits: their variance fluctuates by some 5 L / n from net to net, and
# an average over the softmax bends with it.
LOGITS = 0.5
# Excess of the output term over its mean field, per (M + 5) L / n, that of one sample and squared loss.
OUTPUT_EXCESS = 2.0

JUDGES = Judges("Zhang et al. 2026")
findings = JUDGES.findings


def depth_slope(dataset: xr.Dataset, net: str, head: str, loss: str, name: str = "update_energy") -> PowerLaw:
    """Slope in L of (mean over layers of a term)^(-1/2) as drawn: of eta* for the update energy."""
    return scale_law(dataset.sel(net=net, head=head, loss=loss), "depth", name)


def scale_ratio(dataset: xr.Dataset, name: str = "update_energy") -> tuple[xr.DataArray, xr.DataArray]:
    """log of a term under cross-entropy over that under squared loss, and its standard error."""
    entropic, squared = (Series.of(dataset.sel(loss=loss), name) for loss in (ENTROPIC, SQUARED))
    error = (entropic.relative_error**2 + squared.relative_error**2) ** 0.5
    return xr.apply_ufunc(np.log, entropic.value / squared.value), error


@JUDGES.decide(
    claim="Label term is C - 1 = {ratio} times that under squared loss, for both nets, all heads and every depth",
    rival="(1 - 1/C)/C = {rival:.2g}, the ratio of |error|^2 without the 1/M of the squared loss",
    measured="logarithms of the ratio of drawn label terms",
    brief="Label term is C - 1 = {ratio} times that under squared loss: all nets, heads, depths",
)
def judge_label_term(dataset: xr.Dataset) -> Contest:
    logs, stderr = (values.values.ravel() for values in scale_ratio(dataset, "label_term"))
    classes = int(dataset.attrs["classes"])
    ratio, rival = classes - 1, (classes - 1) / classes**2
    made = contest(logs, stderr, claimed=np.log(ratio), rival=np.log(rival)).carried_by(dataset, "label_term")
    mean = float(np.exp(np.average(logs, weights=stderr**-2)))
    return made.saying(f"ratio {mean:.3g} on average", ratio=ratio, rival=rival)


@JUDGES.decide(
    claim="Under the muP head eta* is (C - 1)^(-1/2) = {factor:.3g} times that under squared loss",
    rival="equal",
    measured="logarithms of the ratio of drawn update energies, which go as eta*^(-2), of both nets at every depth",
)
def judge_prefactor(dataset: xr.Dataset) -> Contest:
    at, classes = dataset.sel(head="mup"), int(dataset.attrs["classes"])
    logs, stderr = (values.values.ravel() for values in scale_ratio(at))
    made = contest(logs, stderr, claimed=np.log(classes - 1), rival=0.0, allowance=2 * NEAR)
    words = f"ratios {np.exp(-logs.max() / 2):.3f} .. {np.exp(-logs.min() / 2):.3f}"
    return made.carried_by(at, "update_energy").saying(words, factor=(classes - 1) ** -0.5)


@JUDGES.decide(
    claim="Where outputs vanish, eta* falls with the same exponent in depth under cross-entropy",
    source="section G",
    rival="1/2 apart, as the exponents of labels (-3/2) and of outputs (-2) that drive a step",
    measured="the slope in L less that under squared loss, of all nets with the muP head",
    brief="muP head: eta* falls with the same exponent in depth under both losses",
)
def judge_exponent(dataset: xr.Dataset) -> Contest:
    return _same_exponent(dataset.sel(head="mup"))


def _same_exponent(at: xr.Dataset) -> Contest:
    gaps, stderr, words = _exponent_gaps(at)
    made = Contest(Deviation(gaps, stderr, NEAR), Deviation(np.abs(gaps) - 0.5, stderr, NEAR), apart=0.5)
    return made.carried_by(at, "update_energy").saying(words)


@JUDGES.decide(
    claim="eta* falls with the same exponent in depth where outputs are of order one (MLP, He head), too",
    rival="{steeper:.3f} less steeply: the squared loss's output term steepens its own, by the exact expectations",
    measured="the slope in L of drawn eta* less that under squared loss, of the MLP",
    brief="He head (MLP): eta* falls with the same exponent in depth under both losses",
)
def judge_exponent_with_outputs(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(net=["MLP"], head="he")
    gaps, stderr, words = _exponent_gaps(at)
    squared = at.sel(net="MLP", loss=SQUARED)
    logs = (np.log(squared[f"{name}_exact"].values) for name in ("label_term", "update_energy"))
    label, update = (-0.5 * np.polyfit(np.log(at["depth"].values), log, 1)[0] for log in logs)
    steeper = float(label - update)
    made = contest(gaps, stderr, claimed=0.0, rival=steeper, allowance=NEAR)
    return made.carried_by(at, "update_energy").saying(words, steeper=steeper)


@JUDGES.decide(
    claim="With the head of the paper, of variance 1/n behind a pooling, eta* falls with the same exponent in depth "
    "under both losses",
    source="sections 3.1, G",
    rival="1/2 apart, as the exponents of labels and of outputs",
    measured="the slope in L of drawn eta* less that under squared loss, of the ConvNet",
    brief="fan_in head (ConvNet): eta* falls with the same exponent under both losses",
)
def judge_exponent_of_paper_head(dataset: xr.Dataset) -> Contest:
    return _same_exponent(dataset.sel(net=["ConvNet"], head="fan_in"))


@JUDGES.decide(
    claim="Logits are near zero, and |p - y|^2 = 1 - 1/C = {uniform:.3g}, with the head of the paper, of variance 1/n "
    "behind a pooling",
    source="sections 3.1, G",
    rival="as the mean field of these logits says, {rival:.4g} at the first depth",
    measured="|p - y|^2 of drawn ConvNets at every depth",
    brief="fan_in head (ConvNet): |p - y|^2 = 1 - 1/C = {uniform:.3g}, logits near zero",
)
def judge_error_of_paper_head(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(net="ConvNet", loss=ENTROPIC, head="fan_in")
    error, stderr, theory = (at[f"output_error{end}"].values for end in ("", "_stderr", "_mean_field"))
    uniform = 1 - 1 / int(dataset.attrs["classes"])
    made = contest(error, stderr, claimed=uniform, rival=theory).carried_by(at, "output_error")
    words = f"drawn {error.min():.4g} .. {error.max():.4g}, mean field {theory.min():.4g} .. {theory.max():.4g}"
    return made.saying(words, uniform=uniform, rival=theory[0])


def _exponent_gaps(at: xr.Dataset) -> tuple[Array, Array, str]:
    """Of all nets, the slope of eta* under cross-entropy less that under squared loss, its error, both in words."""
    nets = list(map(str, at["net"].values))
    pairs = [
        [scale_law(at.sel(net=net, loss=loss), "depth", "update_energy") for loss in (ENTROPIC, SQUARED)]
        for net in nets
    ]
    gaps = np.array([entropic.exponent - squared.exponent for entropic, squared in pairs])
    stderr = np.array([float(np.hypot(entropic.stderr, squared.stderr)) for entropic, squared in pairs])
    both = zip(nets, pairs, strict=True)
    words = ", ".join(f"{net} {entropic.exponent:.3f} and {squared.exponent:.3f}" for net, (entropic, squared) in both)
    return gaps, stderr, f"slopes {words} (squared)"


@JUDGES.decide(
    claim="|p - y|^2 = 1 - 1/C = {uniform:.3g} under the {head_name} head",
    source="section G",
    rival="{gaussian:.4g}, logits of variance 1",
    measured="|p - y|^2 of drawn MLPs at every depth",
    cases=[{"head": "mup"}, {"head": "he"}],
)
def judge_error(dataset: xr.Dataset, head: str) -> Contest:
    both = dataset.sel(net="MLP", loss=ENTROPIC)
    at, uniform = both.sel(head=head), 1 - 1 / int(dataset.attrs["classes"])
    error, stderr = at["output_error"].values, at["output_error_stderr"].values
    gaussian = both["output_error_mean_field"].sel(head="he").values
    granted = LOGITS * at["depth"].values / float(dataset.attrs["width"]) * (gaussian - uniform)
    words = {"uniform": uniform, "gaussian": gaussian[0], "head_name": "muP" if head == "mup" else "He"}
    made = contest(error, stderr, claimed=uniform, rival=gaussian, allowance=granted).carried_by(at, "output_error")
    return made.saying(f"drawn {error.min():.4g} .. {error.max():.4g}", **words)


@JUDGES.decide(
    claim="Output term under the He head is the mean field's, near the label term times (E|p|^2 - 1/C) / (1 - 1/C), "
    "but for corrections in L/n",
    rival="that under squared loss",
    measured="the logarithm of output over label term, of drawn MLPs with the He head at every depth",
    brief="He head (MLP): output over label term is the mean field's, but for terms in L/n",
)
def judge_output_term(dataset: xr.Dataset) -> Contest:
    at, squared = (dataset.sel(net="MLP", head="he", loss=loss) for loss in (ENTROPIC, SQUARED))
    terms = ("output_term", "label_term")
    logs = np.log((at["output_term"] / at["label_term"]).values)
    stderr = np.hypot(*(Series.of(at, name).relative_error.values for name in terms))
    granted = OUTPUT_EXCESS * (dataset.attrs["classes"] + 5) / dataset.attrs["width"] * at["depth"].values
    own, rival = (
        np.log((run["output_term_mean_field"] / run["label_term_mean_field"]).values) for run in (at, squared)
    )
    words = (
        f"A/B {np.exp(logs[0]):.3f} .. {np.exp(logs[-1]):.3f}, mean field {np.exp(own[0]):.3f} .. {np.exp(own[-1]):.3f}"
    )
    made = contest(logs, stderr, claimed=own, rival=rival, allowance=np.log1p(granted))
    return made.carried_by(at, *terms).saying(words)


CLAIMS = (
    Claim(
        id="A18a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section G, under its premise: logits near zero",
        statement="where logits vanish (muP head), cross-entropy instead of squared error changes the prefactor of "
        "eta* alone, and |p - y|^2 = 1 - 1/C",
        brief="cross-entropy changes the prefactor of eta* alone where logits vanish",
        printed='"this choice does not change the depth exponent ... |g|_2^2 = (1 - 1/C)^2 + (C - 1)(1/C)^2 = 1 - '
        '1/C" (appendix G)',
        hypotheses="logits near zero",
        checks=checks(NAME, judge_exponent, partial(judge_error, head="mup")),
    ),
    Claim(
        id="A18b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section G, for the head of section 3.1",
        statement="with the paper's head, of variance 1/n behind a pooling, logits are near zero: |p - y|^2 = 1 - 1/C",
        brief="with the paper's head logits are near zero: |p - y|^2 = 1 - 1/C",
        printed='"At initialization, logits are near zero, so p = softmax(z) is close to uniform" (appendix G)',
        hypotheses="a linear head of variance 1/n behind global average pooling",
        checks=checks(NAME, judge_error_of_paper_head),
        replaced_by="logits of order one: sites correlate more and more with depth, so that pooling does not remove "
        "them, and |p - y|^2 is 0.93 to 0.94 where 1 - 1/C is 0.9; of order one, which the argument needs, it stays",
        premise="the softmax is taken at vanishing outputs, which need a head of variance 1/n^2",
    ),
    Claim(
        id="A18c",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section G, for the head of section 3.1",
        statement="with the paper's head, of variance 1/n behind a pooling, eta* under cross-entropy has the exponent "
        "of squared error",
        brief="with the paper's head eta* under cross-entropy has the exponent of squared error",
        printed='"this choice does not change the depth exponent, because the derivation only requires that the '
        'logit-gradient has an O(1) second moment" (appendix G)',
        hypotheses="a linear head of variance 1/n behind global average pooling; the whole update, of which outputs of "
        "order one have a part",
        checks=checks(NAME, judge_exponent_of_paper_head),
        undecided="a few nets carry the means, so that what would decide grows with the draws: 768 nets name 1,900, "
        "3,072 name 10,000; with 3,072 slopes over 2 to 16 layers differ by 0.22 +- 0.02, which is neither 0 nor 1/2",
    ),
)

# What is printed.

LAW = (
    "Law: whatever the net, its width and its head, the label term under cross-entropy is C - 1 times that under "
    "squared loss, exactly: labels enter through the trace of their covariance (I - 11'/C)/C alone. The output term is "
    "the label term times (E|p|^2 - 1/C) / (1 - 1/C) at leading order in M L/n, and beyond what outputs drive along "
    "the features (mean field): none under the muP head, where p is uniform."
)
NETS = ("net", "head")


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    laws = [depth_slope(dataset, "MLP", "he", loss) for loss in (ENTROPIC, SQUARED)]
    entropic, squared = (f"{law.exponent:.3f} +- {law.stderr:.3f}" for law in laws)
    judged = [judge_exponent(dataset), judge_exponent_with_outputs(dataset)]
    depths, width = dataset["depth"].values, dataset.attrs["width"]
    where = f"MLP of width {width}, He head, depths {depths[0]} .. {depths[-1]}"
    return answer(judged, f"drawn slopes {entropic} against {squared} under squared loss ({where})")


def _brief_table(dataset: xr.Dataset) -> Grid:
    """The exponents under both losses, and the ratios at the largest depth."""

    def at_depth(name: str, power: float, at: xr.Dataset) -> str:
        log, error = (float(part[-1]) for part in scale_ratio(at, name))
        return measured(float(np.exp(power * log)), float(abs(power) * error * np.exp(power * log)))

    def slope(loss: str, at: xr.Dataset) -> str:
        return fitted(scale_law(at.sel(loss=loss), "depth", "update_energy"))

    depths, ratio = dataset["depth"].values, dataset.attrs["classes"] - 1
    last = depths[-1]
    columns = [
        Column("slope, cross-entropy", partial(slope, ENTROPIC)),
        Column("slope, squared loss", partial(slope, SQUARED)),
        Column(f"eta* ratio, L = {last}", partial(at_depth, "update_energy", -0.5)),
        Column(f"label term ratio, L = {last}", partial(at_depth, "label_term", 1.0)),
    ]
    title = (
        f"Slope of eta* in depth over {depths[0]} .. {last}, and ratios cross-entropy over squared loss (theory: label "
        f"term {ratio}; eta* {ratio**-0.5:.3f} with the muP head)"
    )
    return Table("brief table", title, NETS, NETS, columns)(dataset)


def _terms(dataset: xr.Dataset) -> Grid:
    """|p - y|^2, label term and A/B under cross-entropy."""

    def share(at: xr.Dataset) -> list[str]:
        return [number(float(at[f"output_term{end}"] / at[f"label_term{end}"])) for end in ("", "_mean_field")]

    columns: list[ColumnGroup] = [
        [Column("|p - y|^2", "output_error"), Column("mean field", "output_error_mean_field")],
        [Column("label term", "label_term"), Column("mean field", "label_term_mean_field")],
        Column(["A/B", "mean field"], share),
    ]
    title = f"Cross-entropy (|p - y|^2 at uniform p: {1 - 1 / dataset.attrs['classes']:.4g})"
    table = Table("terms", title, [*NETS, "depth"], [*NETS, "depth"], columns)
    return table(dataset.sel(loss=ENTROPIC))


def _ratio_title(dataset: xr.Dataset) -> str:
    ratio = dataset.attrs["classes"] - 1
    return f"Cross-entropy over squared loss (C - 1 = {ratio}, its inverse root {ratio**-0.5:.3f})"


def _ratio_columns(dataset: xr.Dataset) -> list[Column]:
    """Label term and eta* under cross-entropy over those under squared loss, by depth."""

    def column(word: str, name: str, power: float) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            logs, errors = (part.values for part in scale_ratio(at, name))
            ratios = zip(np.exp(power * logs), errors, strict=True)
            return [measured(float(ratio), float(abs(power) * error * ratio)) for ratio, error in ratios]

        return Column([f"{word}, L = {int(depth)}" for depth in dataset["depth"].values], cells)

    return [column("B", "label_term", 1.0), column("eta*", "update_energy", -0.5)]


def _slope_columns(dataset: xr.Dataset) -> list[list[Column]]:
    def column(header: str, loss: str, name: str) -> Column:
        def cell(at: xr.Dataset) -> str:
            return fitted(scale_law(at.sel(loss=loss), "depth", name))

        return Column(header, cell)

    of_update = [("eta*, squared", SQUARED), ("eta*, cross-entropy", ENTROPIC)]
    of_labels = [("label term alone, squared", SQUARED), ("cross-entropy", ENTROPIC)]
    terms = (("update_energy", of_update), ("label_term", of_labels))
    return [[column(*of_loss, name) for of_loss in group] for name, group in terms]


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="15 s",
    arrays=True,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Does cross-entropy in place of squared loss change the prefactor of eta* alone?",
        answer=_answer,
        heading="MLP width {width}; ConvNet channels {channels}, ring of 8 sites, pooled; relu, "
        "{classes} classes, one sample\n"
        "heads of variance 2/n (he), 1/n (fan_in), 1/n^2 (mup); {draws} draws each, seed {seed}\n"
        f"{ETA}",
        brief=_brief_table,
        steps=[
            ("--classes 100", "a hundred classes, where the label term should be 99 times as large"),
            ("--preset paper", "depths to 32, width 1024 and 2,048 draws, in 4 minutes"),
        ],
        parts=[
            _terms,
            Table("ratios", _ratio_title, NETS, NETS, _ratio_columns),
            Table("slopes", "Slopes in depth (papers: -1.5 for both)", NETS, NETS, _slope_columns),
            LAW,
        ],
        findings=findings,
        heavy=["label_term", "output_term"],
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
