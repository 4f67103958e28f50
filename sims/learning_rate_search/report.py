"""The printed report on tuned rates: slopes beside theory and papers, rates beside the stable rate, advice."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.verification import Finding, tuned_rates
from sims.common.report import Report, answer, folded
from sims.common.tables import MISSING, Column, Table, fitted, number, signed
from sims.learning_rate_search import claims, first_steps, printed_tables

WORDS = {
    "tuned rate": "the learning rate that minimises the loss on all training data after the last step: the vertex of a "
    "parabola of ln(loss) over log10(rate) for every seed, or without one the rate of the least loss; and the "
    "geometric mean of these over seeds.",
    "one step": "slope of the rate at which one step of the optimizer that trains, on its data, loss and batches, "
    "moves something by 1 (mean square, median over drawn nets): outputs; relative, the layers, each over its own "
    "size; last, the last layer over its size; absolute, the layers, as Zhang et al. 2026 have it.",
    "white": "the mean field's learning-rate scale eta* of the label term, of white inputs and labels, under plain "
    "gradient descent; of loops, of the stream. Images, labels, loss and optimizer of the nets that train are others.",
    "law": "the finite-depth law of plain ReLU nets of equal layers, docs/theory.md section 6.",
    "stable": "2 / lambda_max of the loss's curvature on 256 samples at initialisation: the median over 16 nets.",
    "least mean loss": "over the seeds, of the rates at which all of them were trained and none has diverged.",
    "weighted": "the papers' fit, weights inversely proportional to the variances over seeds, where none is 0.",
    "init": "residual nets whose branches have variance 1/K at initialisation; multiplier: branches times K^(-1/2); "
    "k=2: init, with two layers in a branch.",
}
HEADING = (
    "Trained on {data}: {samples} samples, batches of {batch_size}, {epochs} epoch(s), {optimizer}, {schedule} "
    "rate; {draws} seeds at every depth; {channels} channels of convolutional nets and Transformers, width {width} of "
    "the others"
)
# The precision of a tuned rate that the report names the seeds for, in decades.
PRECISE = 0.02
# What stands before the advice of a run that trains for too short a time.
HARDLY = (
    "No net of this run ends below a third of the loss of chance, so that tuned rates here say little of nets that "
    "learn: those are trained by --preset evidence, whose findings are in docs/findings.md."
)
# A slope this many standard errors from theory's is called another one.
APART = 3.0


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    followed = [finding for finding in findings if "the slopes of one step" in finding.claim] or list(findings)
    return answer(followed, _where(dataset))


def _where(dataset: xr.Dataset) -> str:
    """The families whose slopes are not those of one step, and those that have none."""
    off, none = _apart(dataset), _unmet(dataset)
    words = f"more than {APART:g} s.e. beyond {tuned_rates.ALLOWED:g} from"
    parts = [f"{words} one step are the slopes of {', '.join(off)}"] if off else []
    parts += [f"no slope was met in {', '.join(none)}"] if none else []
    return "; ".join(parts) or f"no slope lies {words} one step"


def _families(dataset: xr.Dataset) -> dict[str, xr.Dataset]:
    return {str(family): tuned_rates.family_at(dataset, family) for family in dataset["family"].values}


def _own_scale(at: xr.Dataset) -> str:
    """The scale that the slope of a family is held to."""
    _, of = tuned_rates.group_of(str(at["family"].values))
    return f"{of}_scale"


def _distance(at: xr.Dataset) -> float:
    """By how much the tuned slope is off one step's; NaN without a slope."""
    return tuned_rates.tuned_slope(at).exponent - claims.scale_slope(at, _own_scale(at))


def _apart(dataset: xr.Dataset) -> list[str]:
    """Families that are surely off."""
    beyond = {
        name: (abs(_distance(at)) - tuned_rates.ALLOWED) / tuned_rates.tuned_slope(at).stderr
        for name, at in _families(dataset).items()
    }
    return [family for family, off in beyond.items() if off > APART]


def _unmet(dataset: xr.Dataset) -> list[str]:
    """Families in which fewer than two depths have a tuned rate."""
    return [family for family, at in _families(dataset).items() if at.sizes["depth"] < 2]


def _slope_column(header: str, cell: Callable[[xr.Dataset], str]) -> Column:
    """Of the depths that have a tuned rate."""
    return Column(header, lambda at: cell(tuned_rates.with_minima(at)))


def _law_cell(at: xr.Dataset) -> str:
    return number(claims.law_slope(at) if str(at["family"].values) in claims.PLAIN else np.nan)


def _slope_title(dataset: xr.Dataset) -> str:
    first, *_, last = dataset["depth"].values
    return f"Slopes in depth over {first} .. {last} (papers: means over the data sets of table 1)"


SLOPE_TABLE = Table(
    "slope table",
    _slope_title,
    ["family"],
    "family",
    [
        _slope_column("tuned rate", lambda at: fitted(tuned_rates.tuned_slope(at))),
        _slope_column("one step", lambda at: number(claims.scale_slope(at, _own_scale(at)))),
        _slope_column("off", lambda at: signed(_distance(at))),
        _slope_column("white", lambda at: number(claims.scale_slope(at, "one_step_scale"))),
        _slope_column("weighted", lambda at: fitted(claims.weighted_slope(at))),
        _slope_column("law", _law_cell),
        _slope_column("stable", lambda at: number(claims.scale_slope(at, "stable_rate"))),
        Column("papers", "printed_slope"),
    ],
)


def _brief_title(dataset: xr.Dataset) -> str:
    first, *_, last = dataset["depth"].values
    return f"Slope over depths {first} .. {last} of the tuned rate, beside one step of {dataset.attrs['optimizer']}"


BRIEF = Table(
    "brief table",
    _brief_title,
    ["family"],
    "family",
    [
        _slope_column("tuned rate", lambda at: fitted(tuned_rates.tuned_slope(at))),
        _slope_column("one step", lambda at: number(claims.scale_slope(at, _own_scale(at)))),
        _slope_column("off", lambda at: signed(_distance(at))),
        _slope_column("white", lambda at: number(claims.scale_slope(at, "one_step_scale"))),
        Column("papers", "printed_slope"),
    ],
)


def _local_columns(dataset: xr.Dataset) -> list[Column]:
    """From every depth to the next, with standard errors, beside those of one step."""

    def column(low: int, high: int) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            pair = tuned_rates.with_minima(at.sel(depth=[low, high]))
            return [fitted(tuned_rates.tuned_slope(pair)), number(claims.scale_slope(pair, _own_scale(pair)))]

        return Column([f"{low} .. {high}", "one step"], cells)

    return [column(*step) for step in pairwise(dataset["depth"].values)]


LOCAL_TABLE = Table("local table", "Local slopes of the tuned rate", ["family"], "family", _local_columns)


def _tuned_over_stable(at: xr.Dataset) -> str:
    return number(10.0 ** float(at["tuned_rate_log10"]) / float(at["stable_rate"]))


def _decades(at: xr.Dataset) -> str:
    error = float(at["tuned_rate_log10_stderr"])
    return MISSING if np.isnan(error) else f"{error:.2f}"


def _least_mean_loss(at: xr.Dataset) -> str:
    curve = at["final_loss"].where(np.isfinite(at["final_loss"])).mean("draw", skipna=False)
    return number(float(curve.min()))


RATE_TABLE = Table(
    "rate table",
    "Rates in absolute terms",
    ["family", "depth"],
    "net",
    [
        Column("tuned rate", lambda at: number(10.0 ** float(at["tuned_rate_log10"]))),
        Column("+- decades", _decades),
        Column("stable", lambda at: number(float(at["stable_rate"]))),
        Column("tuned/stable", _tuned_over_stable),
        Column("least mean loss", _least_mean_loss),
        Column("seeds", lambda at: f"{int(at['located'])} of {at.sizes['draw']}"),
    ],
    key=lambda family, depth: f"{family} {depth}",
)


# Scales of one step, in the order of the tables.
OF = ("outputs", "relative", "last", "absolute")


def _step_column(of: str, whose: str = "") -> Column:
    return Column(
        f"{DESCENDS}{of}" if whose else of,
        lambda at: number(claims.scale_slope(tuned_rates.with_minima(at), f"{whose}{of}_scale")),
    )


DESCENDS = "descent: "
STEP_TABLE = Table(
    "step table",
    lambda dataset: (
        f"Slopes in depth of tuned rates beside those of one step of {dataset.attrs['optimizer']} on the data, by what "
        "it moves"
    ),
    ["family"],
    "family",
    [
        _slope_column("tuned rate", lambda at: fitted(tuned_rates.tuned_slope(at))),
        *map(_step_column, OF),
        _step_column("outputs", "descent_"),
        _step_column("relative", "descent_"),
    ],
)


def _learns(at: xr.Dataset) -> str:
    least = float(at["final_loss"].min("rate").mean("draw"))
    return f"{least:.2f}{'' if least < tuned_rates.LEARNED * float(at['chance_loss']) else ' *'}"


def _over_tuned(at: xr.Dataset, name: str) -> str:
    return number(float(at[name]) / 10.0 ** float(at["tuned_rate_log10"]))


NAMED_TABLE = Table(
    "named table",
    "Scales of one step over the tuned rate (* loss above a third of chance: the net hardly learns)",
    ["family", "depth"],
    "net",
    [
        Column("loss", _learns),
        *(
            Column(header, partial(_over_tuned, name=name))
            for header, name in [*((of, f"{of}_scale") for of in OF), ("2/lambda_max", "stable_rate")]
        ),
    ],
    key=lambda family, depth: f"{family} {depth}",
)


def _without_parabola(dataset: xr.Dataset) -> str:
    """Minima that are rates of the search, and nets that no rate trains, each with the reason."""
    errors = dataset["seed_tuned_rate_log10_stderr"]
    coarse, every = int((errors > 0).sum()), int(errors.notnull().sum())
    words = (
        f"{coarse} of {every} seeds have a minimum without a parabola, as beside a cliff: it is the rate of the least "
        "loss, and its error, the distance of its neighbours over sqrt(12), is part of the net's. A finer --spacing "
        "makes that smaller, and more seeds do not."
    )
    lost = json.loads(dataset.attrs["without_minimum"])
    return "\n".join(
        [*[folded(words, "", 2)] * bool(coarse), *(folded(f"{n}: {why}", "", 2) for n, why in lost.items())]
    )


def _advice(dataset: xr.Dataset) -> str:
    """What an engineer may do, in the numbers of this run."""
    ratio = claims.log_ratio(dataset)
    if not (known := np.isfinite(ratio)).any():
        least = "two seeds or more must have a minimum between the least and the largest rate that was tried"
        return folded(f"No net of this run has a tuned rate: {least}.", "", 0)
    learns = "" if tuned_rates.learning(dataset).any() else HARDLY
    words = [
        learns,
        "In practice: tune at one depth, and carry the rate by one step of your own optimizer on your own data"
        " (mf.transfer_learning_rate with optimizer= and data=). Here:"
        f" {_where(dataset)}.",
        _with_nothing_tuned(dataset.attrs["optimizer"], 10 ** ratio[known]),
        f"A tuned rate from one seed is uncertain by {np.median(_spreads(dataset)):.2f} decades in the median net:"
        f" losses are rugged where training is barely stable. {_seeds_needed(dataset)}",
    ]
    return folded(" ".join(filter(None, words)), "", 0)


def _with_nothing_tuned(optimizer: str, ratio: Array) -> str:
    if optimizer != "sgd":
        return f"With nothing tuned: 2 / lambda_max (mf.stable_rate), of gradient descent, says nothing of {optimizer}."
    return (
        f"With nothing tuned: the tuned rate is {ratio.min():.2g} to {ratio.max():.2g} times 2 / lambda_max"
        " (mf.stable_rate) over all nets of this run that have a minimum, in the median"
        f" {np.median(ratio):.2g} times."
    )


def _spreads(dataset: xr.Dataset) -> Array:
    """Standard deviations of single seeds in decades, of the nets of which two have a minimum."""
    spreads = dataset["seed_tuned_rate_log10"].std("draw", ddof=1).values
    errors: xr.DataArray = dataset["seed_tuned_rate_log10_stderr"]
    coarse = ((errors**2).mean("draw") ** 0.5).values
    return np.asarray(np.hypot(spreads, coarse)[np.isfinite(spreads)])


def _seeds_needed(dataset: xr.Dataset) -> str:
    """How many seeds give a standard error of `PRECISE`, in the median net and in that of the widest spread."""
    needed = np.ceil((_spreads(dataset) / PRECISE) ** 2)
    return (
        f"A standard error of {PRECISE:g} decades takes {np.median(needed):.0f} seeds in the median net, and"
        f" {needed.max():.0f} where seeds scatter most."
    )


def _findings(dataset: xr.Dataset) -> list[Finding]:
    return [*claims.findings(dataset), *first_steps.findings(dataset), *printed_tables.findings(dataset)]


REPORT = Report(
    question="Do tuned rates fall over depth as one step of the optimizer that trains says?",
    answer=_answer,
    heading=HEADING,
    brief=BRIEF,
    parts=[SLOPE_TABLE, STEP_TABLE, NAMED_TABLE, LOCAL_TABLE, RATE_TABLE, _without_parabola, _advice],
    findings=_findings,
    words=WORDS,
)
