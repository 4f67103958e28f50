"""What Zheng et al. 2026 assume of training, measured: assumptions G.1 - G.3 and alignments F.1, F.2 on real images.

The paper's ReLU nets (eq. 28) of L blocks of two matrices, under its table for SGD, learn to tell two classes of images
by binary cross-entropy and full-batch gradient descent (appendix G.2). Every draw has new weights and the same images.
The ratios that the paper plots are followed over 200 steps, against the width, the depth and the batch size. The paper
trains on 200 images of 3072 numbers at width 256 and rate 0.001; the default is smaller, so that many draws of weights
take minutes, and digits of 64 numbers take ten times the rate. Only gradient descent is followed: its updates are sums
over samples.
"""

from sims.common.command import CommandParser, Presets
from sims.common.experiment import Experiment

PRESETS: Presets = {
    "smoke": {"widths": [16, 32, 64], "depths": [1, 2, 4], "batches": [4, 8, 16], "draws": 12, "steps": 10}
    | {"width": 32, "depth": 2, "batch": 16},
    "default": {"widths": [32, 64, 128, 256], "depths": [1, 2, 4, 8, 16], "batches": [10, 20, 40, 80], "draws": 48}
    | {"width": 64, "depth": 2, "batch": 20, "steps": 200},
    "paper": {"widths": [64, 128, 256, 512, 1024], "depths": [2, 4, 8, 16, 32], "batches": [26, 50, 100, 200]}
    | {"width": 256, "depth": 4, "batch": 200, "steps": 200, "draws": 64},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("nets").add_argument
    add("--widths", type=int, nargs="+", metavar="N", help="widths of the ladder in width, three or more")
    add("--depths", type=int, nargs="+", metavar="L", help="numbers of blocks of the ladder in depth, three or more")
    add("--batches", type=int, nargs="+", metavar="B", help="images of the ladder in batch size, even, three or more")
    add("--width", type=int, help="width of the other ladders (see the preset)")
    add("--depth", type=int, help="blocks of the other ladders")
    add("--batch", type=int, help="images of the other ladders, half of them of either class")
    add = parser.add_argument_group("training").add_argument
    add("--steps", type=int, help="steps of training (default: 200)")
    add("--rate", type=float, default=0.01, help="base learning rate (default: 0.01; the paper, on 3072 pixels: 0.001)")
    add("--input", default="digits", help="digits (default; needs the extra data) or a .npy, .npz, .nc FILE of images")
    add("--labels", metavar="FILE", help="with --input FILE: the class of every image, FILE::ARRAY of several arrays")
    add("--grid", type=int, nargs="+", help="with --input FILE: size of an image, as 32 32")
    add("--classes", type=int, nargs=2, default=[3, 8], metavar="C", help="the two to tell apart (default: 3 8)")


def require_installed() -> None:
    """Raise ModuleNotFoundError, with what to install, where a run without --input lacks its images."""
    from sims.common.data import labelled

    labelled.require_installed("digits")


COMMAND = Experiment("training_assumptions", __doc__, add_options, PRESETS, require_installed=require_installed)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
