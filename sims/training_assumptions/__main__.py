"""What Zheng et al. 2026 assume of training, measured: assumptions G.1 - G.3 and alignments F.1, F.2 on real images.

The paper's ReLU nets (eq. 28) of L blocks of two matrices, under its table for k >= 2, learn to tell two classes of
images by binary cross-entropy on the full batch (appendix G.2). Every draw has new weights and the same images. As in
the paper, the ratios are taken at the first step, half-way and at the last of 200, in the input layer and in both
layers of the last block; besides, as means over all blocks. The paper varies the depth alone, 4 .. 256 blocks, at width
256, on 200 images of 3072 numbers (CIFAR-10), by gradient descent of rate 0.001. --preset paper has these sizes, on
MNIST's images of 784 numbers; CIFAR-10 is not installed with any extra and goes in by --input FILE. The default is
smaller, so that many draws take minutes: up to 64 blocks, width 64, 20 digits of 64 numbers, ten times the rate.

G.1, G.2 and F.1 are said of every optimizer. G.3 is of updates that are sums over samples, and F.2 of gradients: of
--optimizer they are measured under sgd alone.
"""

from sims.common.blocks.base_values import add_soap_epsilon_option
from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"widths": [16, 32, 64], "depths": [1, 2, 4], "batches": [4, 8, 16], "draws": 18, "steps": 10}
    | {"width": 32, "depth": 2, "batch": 16, "input": "digits", "precision": "float64"},
    "default": {"widths": [16, 24, 32, 48, 256], "depths": [1, 2, 4, 8, 12, 64], "batches": [10, 20, 40, 80]}
    | {"width": 64, "depth": 4, "batch": 20, "steps": 200, "draws": 12, "input": "digits", "precision": "float32"},
    "paper": {"widths": [64, 128, 256, 512], "depths": [4, 8, 16, 32, 64, 128, 256], "batches": [26, 50, 100, 200]}
    | {"width": 256, "depth": 4, "batch": 200, "steps": 200, "draws": 8, "input": "mnist", "precision": "float32"},
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
    add("--optimizer", default="sgd", metavar="NAME", help="sgd, without momentum (default), or any of the others")
    add("--rate", type=float, help="base learning rate (default: sgd 0.001, on digits 0.01; others by the base model)")
    add_soap_epsilon_option(add)
    add("--precision", choices=("float64", "float32"), help="of weights and passes (see the preset)")
    add("--input", help="digits, mnist (see the preset; they need the extra data) or a .npy, .npz, .nc FILE of images")
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
