"""Terms by case and batch size, drawn, with theory beside; the mini-batch identity; slopes of theory in depth."""

import argparse
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import require_counts
from meanfield.simulation import Energies
from sims.batch_size import theory
from sims.batch_size.cases import LARGEST_IMAGES, Case, cases
from sims.batch_size.minibatches import DRAWN_BATCHES, identity
from sims.common.command import chosen_arrays, ladder
from sims.common.data.images import images_from_file, photo_crops
from sims.common.datasets import Axes, attributes, layer_means, over, seeded_run
from sims.common.results import Results

TERMS = ("label_term", "output_term", "update_energy")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The cases, images included, and the batch sizes."""
    batches = ladder("--batches", options.batches, 3, "a fit to the larger of them", why="samples of a batch")
    return {"cases": cases(options, batches[-1], _images(options)), "batches": batches}


def _images(options: argparse.Namespace) -> Any:
    """Samples with contents, standardised: (samples, channels, height, width)."""
    grid = require_counts("--image-grid", options.image_grid)
    if options.images == "photo":
        return photo_crops(grid, 3, LARGEST_IMAGES, options.seed)
    return images_from_file(options.images, grid, None, None)


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
