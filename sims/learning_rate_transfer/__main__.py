"""Zero-shot transfer: a learning rate is tuned on one net and carried to deeper ones, which are trained at it.

Nets of every family are tuned at every depth. From the first depth the tuned rate is carried to the others by each
rule: unchanged, by L^(-3/2), by the family's own power, by the finite-depth rule, by PathSum, by a power through two
tuned depths, by 2 / lambda_max, and with the wrong sign. Nets that were not tuned on are trained at each of these rates
and at the rate tuned at their own depth, on the same mini-batches from the same weights. The report says by how many
decades each rule misses the tuned rate, and what that costs in training loss. With --across width, over widths.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {
        "families": ["mlp", "residual mlp init"],
        "depths": [2, 4, 8],
        "widths": [16, 32, 64],
        "data": "digits",
        "samples": 600,
        "tuning_seeds": 2,
        "spacing": 0.25,
        "draws": 8,
    },
    "default": {
        "families": ["mlp", "cnn", "residual mlp init", "residual mlp multiplier"],
        "depths": [3, 5, 8, 12],
        "widths": [16, 32, 64],
        "data": "digits",
        "samples": 1024,
        "tuning_seeds": 12,
        "spacing": 0.125,
        "draws": 16,
    },
    "paper": {
        "families": [
            "mlp",
            "cnn",
            "residual cnn init",
            "residual cnn multiplier",
            "transformer pre",
            "transformer post",
            "loop linear",
            "loop sqrt",
        ],
        "depths": [3, 5, 8, 12, 18, 27],
        "widths": [16, 32, 64, 128],
        "data": "mnist",
        "samples": None,
        "tuning_seeds": 16,
        "spacing": 0.125,
        "draws": 32,
    },
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("nets").add_argument
    add("--families", nargs="+", metavar="NAME", help="families of nets (quote names of several words)")
    add("--across", choices=("depth", "width"), default="depth", help="what grows (default: depth)")
    add("--depths", nargs="+", type=int, metavar="L", help="depths; the rate is carried from the first of them")
    add("--widths", nargs="+", type=int, metavar="N", help="widths or channels, with --across width")
    add("--depth", type=int, default=4, metavar="L", help="depth, with --across width (default: 4)")
    add("--width", type=int, default=32, metavar="N", help="width or channels, with --across depth (default: 32)")
    add("--segment", type=int, default=4, metavar="K", help="sizes of a segment; its first two are tuned (default: 4)")
    add = parser.add_argument_group("training").add_argument
    source = "digits, mnist, text (Transformers), or a .npz or .nc file with inputs and labels"
    add("--data", help=source)
    add("--samples", type=int, help="of the data (default: all)")
    add("--epochs", type=int, default=1, help="passes over the data (default: 1)")
    add("--batch-size", type=int, default=32, metavar="B", help="samples of a mini-batch (default: 32)")
    add("--optimizer", default="sgd", help="sgd (default), or another of the library's optimizers")
    add("--tuning-seeds", type=int, metavar="S", help="nets that every rate is tuned on, 2 or more")
    add("--spacing", type=float, help="finest steps between rates that are tried, in decades")
    add("--precision", choices=("float32", "float64"), default="float32", help="of weights (default: float32)")


def require_installed() -> None:
    """Raise ModuleNotFoundError, with what to install, where the images of a run without --data are missing."""
    from sims.common.data import labelled

    labelled.require_installed("digits")


COMMAND = Experiment("learning_rate_transfer", __doc__, add_options, PRESETS, require_installed=require_installed)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
