"""What P1 assumes of training, measured: assumptions G.1 - G.3 and alignments F.1, F.2 over 200 steps on real images.

P1's ReLU nets (eq. 28) of L blocks of two matrices, under its table for SGD, learn to tell two classes of images by
binary cross-entropy and full-batch gradient descent (appendix G.2). Every draw has new weights and the same images. The
ratios that P1 plots are followed over steps, against the width, the depth and the batch size.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run

NAME = "training_assumptions"

LADDERS = ("width", "depth", "batch")
PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"widths": [16, 32, 64], "depths": [1, 2, 4], "batches": [4, 8, 16], "draws": 12, "steps": 10}
    | {"width": 32, "depth": 2, "batch": 16},
    "default": {"widths": [32, 64, 128, 256], "depths": [1, 2, 4, 8, 16], "batches": [10, 20, 40, 80], "draws": 48}
    | {"width": 64, "depth": 2, "batch": 20, "steps": 200},
    "paper": {"widths": [64, 128, 256, 512, 1024], "depths": [2, 4, 8, 16, 32], "batches": [26, 50, 100, 200]}
    | {"width": 256, "depth": 4, "batch": 200, "steps": 200, "draws": 64},
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("nets").add_argument
    add("--widths", type=int, nargs="+", metavar="N", help="widths of the ladder in width, three or more")
    add("--depths", type=int, nargs="+", metavar="L", help="numbers of blocks of the ladder in depth, three or more")
    add("--batches", type=int, nargs="+", metavar="B", help="images of the ladder in batch size, even, three or more")
    add("--width", type=int, help="width of the other ladders (see the preset)")
    add("--depth", type=int, help="blocks of the other ladders")
    add("--batch", type=int, help="images of the other ladders, half of them of either class")
    add = parser.add_argument_group("training").add_argument
    add("--steps", type=int, help="steps of training (default: 200)")
    add("--rate", type=float, default=0.01, help="base learning rate (default: 0.01; P1, on 3072 pixels: 0.001)")
    add("--input", default="digits", help="digits (default; needs the extra data) or a .npy, .npz, .nc FILE of images")
    add("--labels", metavar="FILE", help="with --input FILE: the class of every image, FILE::ARRAY of several arrays")
    add("--grid", type=int, nargs="+", help="with --input FILE: size of an image, as 32 32")
    add("--classes", type=int, nargs=2, default=[3, 8], metavar="C", help="the two to tell apart (default: 3 8)")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import training_assumptions as figure
    from sims.training_assumptions import report
    from sims.training_assumptions.labelled_images import two_classes

    check(options)
    most = max(options.batch, *options.batches) // 2
    grid = None if options.grid is None else tuple(options.grid)
    images = two_classes(options.input, options.labels, grid, tuple(options.classes), most, options.seed)
    results = Results(NAME, run_key(**_described(options), images=images[0]), options)
    return results.deliver(lambda: _measure(options, results, images), report.text, figure.draw)


def require_installed() -> None:
    """Raise ModuleNotFoundError, with what to install, where a run without --input lacks its images."""
    from sims.training_assumptions.labelled_images import require_digits

    require_digits()


def check(options: argparse.Namespace) -> None:
    """Refuse ladders too short for a slope with its correction, and batches that cannot be halved; sort."""
    from meanfield.common import MOST_LAYERS, require_count, require_counts, require_positive

    for ladder in LADDERS:
        name = f"{ladder}{'es' if ladder == 'batch' else 's'}"
        most = MOST_LAYERS if ladder == "depth" else None
        given = require_counts(f"--{name}", getattr(options, name), maximum=most, why="sizes of a ladder")
        sizes = sorted(set(given))
        if len(sizes) < 3:
            raise ValueError(f"--{name} {sizes}: a slope with its correction needs three or more sizes")
        setattr(options, name, sizes)
    for name in ("width", "depth", "batch", "steps"):
        require_count(f"--{name}", getattr(options, name))
    odd = [size for size in (*options.batches, options.batch) if size % 2]
    if odd:
        raise ValueError(f"a batch of {odd[0]} images cannot be half of either class; give even numbers")
    require_positive("--rate", options.rate, why="it is a learning rate")


def looks(steps: int) -> list[int]:
    """The steps that are looked at: 1, 3, 10, 30, .. and the last."""
    found = [factor * 10**power for power in range(len(str(steps))) for factor in (1, 3)]
    return sorted({step for step in found if step <= steps} | {steps})


def _described(options: argparse.Namespace) -> dict[str, Any]:
    names = ("widths", "depths", "batches", "width", "depth", "batch", "steps", "rate", "input", "classes", "draws")
    return {name: getattr(options, name) for name in (*names, "seed")}


def hyperparameters(width: int, depth: int, numbers: int, rate: float) -> dict[str, dict[str, float]]:
    """P1 G.2: multipliers 1, 1/L, 1/n, variances 2/d_0, 2/n, 2 and learning rates eta n, eta L, eta n."""
    from meanfield.parameterizations import WEIGHTS, transfer_hyperparameters

    base = {"block_multiplier": 1.0, "initial_variance": 2.0, "learning_rate": rate}
    shared: dict[str, Any] = {"base_values": base, "base_width": 1, "base_depth": 1, "block_depth": 2}
    return transfer_hyperparameters("sgd", width=width, depth=depth, input_dimension=numbers, roles=WEIGHTS, **shared)


def _run_of(options: argparse.Namespace, images: Any, size: dict[str, int]) -> Run:
    from meanfield.execution import Run
    from meanfield.simulation import TrainingAssumptions
    from sims.common.block_nets import block_net

    inputs, labels = (values[..., : size["batch"]].copy() for values in images)
    given = hyperparameters(size["width"], size["depth"], len(inputs), options.rate)
    shape = {"input_width": len(inputs), "samples": size["batch"], "activation": "relu"}
    net = block_net(given, size["width"], size["depth"], **shape)
    training = {"hyperparameters": given, "steps": looks(options.steps), "inputs": inputs, "labels": labels}
    return Run(net, TrainingAssumptions(**training), options.draws, options.seed)


def _measure(options: argparse.Namespace, results: Results, images: Any) -> xr.Dataset:
    """Every ratio by ladder, place in the net, step and draw."""
    import xarray as xr

    from meanfield.execution import provenance, simulate_all
    from meanfield.verification import places_of
    from sims.common.block_ladders import attributes

    own = {"width": options.width, "depth": options.depth, "batch": options.batch}
    rungs = {"width": options.widths, "depth": options.depths, "batch": options.batches}
    wanted = [_run_of(options, images, own | {ladder: size}) for ladder in LADDERS for size in rungs[ladder]]
    measured = iter(simulate_all(wanted, workers=options.workers, store=results.pieces))
    parts: dict[str, xr.DataArray] = {}
    for ladder, sizes in rungs.items():
        found = [places_of(next(measured)) for _ in sizes]
        joined = xr.concat(found, dim=ladder).assign_coords({ladder: sizes})
        parts |= {f"{name!s}_by_{ladder}": variable for name, variable in joined.items()}
    attrs = attributes(_described(options)) | {"numbers": len(images[0]), "provenance": provenance()}
    return xr.Dataset(parts, {"step": looks(options.steps)}, attrs)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
