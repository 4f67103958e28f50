"""The learning rate that trains best, over depth: does it follow the one-step scale eta*(L)?

For every family and depth, nets are trained on real images under many learning rates from several seeds, and the rate
that minimises the training loss is searched for (Zhang et al. 2026, section 4.1). Its slope in depth stands beside that
of the one-step theory over the same depths, the papers' slopes, and 2 / lambda_max of the loss's curvature at
initialisation, which is an absolute rate with nothing tuned.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PLAIN = ["mlp", "cnn"]
RESIDUAL = ["residual mlp init", "residual mlp multiplier", "residual mlp k=2"]
OTHERS = ["transformer pre", "transformer post", "loop linear", "loop sqrt"]
ABLATIONS = [
    "cnn zero",
    "cnn gelu",
    "cnn 4x4",
    "cnn 5x5",
    "residual cnn init",
    "residual cnn multiplier",
    "residual cnn k=2",
]
ALL = [*PLAIN, *RESIDUAL, *OTHERS]
PRESETS = {
    "smoke": {"families": ALL, "depths": [2, 4], "channels": 4, "width": 16, "draws": 2, "samples": 96},
    "default": {"families": ALL, "depths": [2, 4, 8, 16], "channels": 16, "width": 64, "draws": 20, "samples": 1792},
    "paper": {"families": [*ALL, *ABLATIONS], "depths": [2, 4, 6, 8, 12, 16, 24, 32], "channels": 32, "width": 128}
    | {"draws": 32, "samples": 1792},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("nets").add_argument
    add("--families", nargs="+", metavar="NAME", help="families of nets (quote names of several words)")
    add("--depths", type=int, nargs="+", metavar="L", help="layers, blocks, steps, or twice the blocks of Transformers")
    add("--channels", type=int, metavar="C", help="channels of convolutional nets and of Transformers")
    add("--width", type=int, metavar="N", help="units of fully-connected nets and of loops")
    add = parser.add_argument_group("training").add_argument
    data = "digits (default; needs the extra data), mnist, text, or FILE.npz with inputs and labels"
    add("--data", default="digits", metavar="SOURCE", help=data)
    add("--samples", type=int, help="samples of the data")
    add("--batch-size", type=int, default=16, metavar="B", help="samples of a mini-batch (default: 16)")
    add("--epochs", type=int, default=1, help="passes over the data (default: 1)")
    add("--optimizer", default="sgd", help="sgd (default, without momentum) or another name that meanfield.train takes")
    add("--spacing", type=float, default=0.25, help="finest steps between rates, in decades (default: 0.25)")
    add("--grid", type=int, metavar="N", help="train under N rates from 10^-4 to 10 instead of searching (papers: 80)")


def require_installed() -> None:
    """Raise ModuleNotFoundError, with what to install, where the images of a run without --data are missing."""
    from sims.common.data import labelled

    labelled.require_installed("digits")


COMMAND = Experiment("learning_rate_search", __doc__, add_options, PRESETS, require_installed=require_installed)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
