"""How the one-step change depends on the batch: update energy S and learning-rate scale eta*(B) against batch size B.

Zhang et al. 2026 multiply eta* by 1 + O(1/B) (proposition 3.3, from lemma 4). The lemma is an identity: here all
batches out of a small population are enumerated, with a gradient step each, and larger ones are sampled. What it says
of eta* depends on what samples share: nets are drawn over a ladder of batch sizes for correlated and independent
inputs, for crops of a photograph, and for labels of mean 0, with a mean, and of a linear teacher y = T x. Beside them
stands the mean field, a quadratic form of the tangent kernel in the labels' covariance between samples.
"""

import argparse
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import require_counts
from meanfield.simulation import Energies
from sims.batch_size import theory
from sims.batch_size.cases import LARGEST_IMAGES, Case, cases
from sims.batch_size.claims import CLAIMS, NAME
from sims.batch_size.minibatches import DRAWN_BATCHES, identity
from sims.batch_size.report import REPORT
from sims.common.command import Option, Preset, chosen_arrays, ladder_of
from sims.common.data.images import images_from_file, photo_crops
from sims.common.datasets import Axes, Variable, attributes, layer_means, over, seeded_run
from sims.common.results import Results
from sims.common.study import Study

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
        (case.name, count): layer_means(terms, *TERMS) | theory.predicted_means(case, count)
        for (case, count), terms in measured
    }
    axes: Axes = {"case": [case.name for case in cases], "batch": batches}
    missing = dict.fromkeys(next(iter(rows.values())), np.nan)
    drawn = over(axes, [rows.get(place, missing) for place in product(*axes.values())])
    dataset = xr.merge([drawn, theory.floors(cases), identity(options.seed), theory.depth_slopes()])
    own = attributes(options, "depth", "width", "channels", "outputs", "images")
    return dataset.assign_attrs(own, sampled_batches=DRAWN_BATCHES)


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
