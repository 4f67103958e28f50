"""How the one-step change depends on the batch: update energy S and learning-rate scale eta*(B) against batch size B.

The papers multiply eta* by 1 + O(1/B) (P0 proposition 3.3, from lemma 4). The lemma is an identity: here all batches
out of a small population are enumerated, with a gradient step each, and larger ones are sampled. What it says of eta*
depends on what samples share: nets are drawn over a ladder of batch sizes for correlated and independent inputs, for
crops of a photograph, and for labels of mean 0, with a mean, and of a linear teacher y = T x. Beside them stands the
mean field, a quadratic form of the tangent kernel in the labels' covariance between samples.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from sims.common.command import (
    add_array_options,
    add_run_options,
    chosen_arrays,
    command_parser,
    fill_from_preset,
    run_command,
)
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from sims.batch_size.cases import Case

NAME = "batch_size"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"batches": [1, 2, 4, 8], "depth": 3, "width": 128, "channels": 32, "draws": 64},
    "default": {"batches": [1, 2, 4, 8, 16, 32, 64], "depth": 4, "width": 256, "channels": 64, "draws": 256},
    "paper": {"batches": [1, 2, 4, 8, 16, 32, 64, 128], "depth": 6, "width": 1024, "channels": 256, "draws": 1024},
}
TERMS = ("label_term", "output_term", "update_energy")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network and batch").add_argument
    add("--batches", type=int, nargs="+", metavar="B", help="batch sizes, three or more (nets with sites: those <= 16)")
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--width", type=int, metavar="N", help="units of every layer of fully-connected nets")
    add("--channels", type=int, metavar="C", help="channels of every layer of convolutional nets")
    add("--outputs", type=int, default=4, metavar="M", help="output channels (default: 4)")
    source = "photo (default: crops of a photograph), or FILE[::ARRAY] (.npy, .npz, .nc) of samples"
    add("--images", default="photo", metavar="SOURCE", help=source)
    add("--image-grid", type=int, nargs=2, default=[6, 6], metavar="N", help="sides of the images (default: 6 6)")
    add_array_options(parser)
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import batch_size as figure
    from meanfield.common import require_counts
    from sims.batch_size import report
    from sims.batch_size.cases import cases

    options.batches = sorted(set(require_counts("--batches", options.batches, why="samples of a batch")))
    if len(options.batches) < 3:
        raise ValueError(f"--batches {options.batches} are fewer than three; growth is fitted to the larger ones")
    images = _images(options)
    chosen = cases(options, images)
    run_of = {"batches": options.batches, "draws": options.draws, "seed": options.seed, "images": images}
    described = [[case.name, case.net, case.batch, case.largest] for case in chosen]
    results = Results(NAME, run_key(cases=described, **run_of, **chosen_arrays(options)), options)
    return results.deliver(lambda: _measure(options, chosen, results), report.text, figure.draw)


def _images(options: argparse.Namespace) -> Any:
    """Samples with contents, standardised: (samples, channels, height, width)."""
    from meanfield.common import require_counts
    from sims.batch_size.cases import LARGEST_IMAGES
    from sims.common.images import images_from_file, photo_crops

    grid = require_counts("--image-grid", options.image_grid)
    if options.images == "photo":
        return photo_crops(grid, 3, LARGEST_IMAGES, options.seed)
    return images_from_file(options.images, grid, None, None)


def _measure(options: argparse.Namespace, chosen: list[Case], results: Results) -> xr.Dataset:
    """Terms by case and batch size with theory beside; the identity; slopes of theory in depth."""
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.simulation import Energies
    from sims.batch_size import theory
    from sims.batch_size.minibatches import DRAWN_BATCHES, identity

    places = [(case, count) for case in chosen for count in options.batches if count <= case.largest]
    runs = [
        Run(
            case.at(count),
            Energies(inputs=case.inputs(count), batch=case.batch, **chosen_arrays(options)),
            options.draws,
            derived_seed(options.seed, f"{case.name}, batch of {count}"),
        )
        for case, count in places
    ]
    measured = simulate_all(runs, workers=options.workers, store=results.pieces)
    rows = [_means(found) | theory.beside(case, count) for (case, count), found in zip(places, measured, strict=True)]
    keys = [(case.name, count) for case, count in places]
    dataset = xr.merge([theory.table(keys, rows), theory.floors(chosen), identity(options.seed), theory.depth_slopes()])
    attrs = {name: getattr(options, name) for name in ("depth", "width", "channels", "outputs", "draws")}
    attrs |= {"images": options.images, "sampled_batches": DRAWN_BATCHES, **chosen_arrays(options)}
    attrs["provenance"] = provenance()
    return dataset.assign_attrs(attrs)


def _means(measured: xr.Dataset) -> dict[str, float]:
    """Means over layers with their errors and largest shares."""
    found = {}
    for name in TERMS:
        covariance = measured[f"{name}_covariance"].values
        found[name] = float(measured[name].mean())
        found[f"{name}_stderr"] = float(covariance.mean() ** 0.5)
        found[f"{name}_largest_share"] = float(measured[f"{name}_largest_share"].max())
    return found


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
