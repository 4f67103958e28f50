"""How the one-step change depends on the batch: update energy S and learning-rate scale eta*(B) against batch size B.

Zhang et al. 2026 multiply eta* by 1 + O(1/B) (proposition 3.3, from lemma 4). The lemma is an identity: here all
batches out of a small population are enumerated, with a gradient step each, and larger ones are sampled. What it says
of eta* depends on what samples share: nets are drawn over a ladder of batch sizes for correlated and independent
inputs, for crops of a photograph, and for labels of mean 0, with a mean, and of a linear teacher y = T x. Beside them
stands the mean field, a quadratic form of the tangent kernel in the labels' covariance between samples.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"batches": [1, 2, 4, 8], "depth": 3, "width": 128, "channels": 32, "draws": 64},
    "default": {"batches": [1, 2, 4, 8, 16, 32, 64], "depth": 4, "width": 256, "channels": 64, "draws": 256},
    "paper": {"batches": [1, 2, 4, 8, 16, 32, 64, 128], "depth": 6, "width": 1024, "channels": 256, "draws": 1024},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network and batch").add_argument
    add("--batches", type=int, nargs="+", metavar="B", help="batch sizes, three or more (nets with sites: those <= 16)")
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--width", type=int, metavar="N", help="units of every layer of fully-connected nets")
    add("--channels", type=int, metavar="C", help="channels of every layer of convolutional nets")
    add("--outputs", type=int, default=4, metavar="M", help="output channels (default: 4)")
    source = "photo (default: crops of a photograph), or FILE[::ARRAY] (.npy, .npz, .nc) of samples"
    add("--images", default="photo", metavar="SOURCE", help=source)
    add("--image-grid", type=int, nargs=2, default=[6, 6], metavar="N", help="sides of the images (default: 6 6)")


COMMAND = Experiment("batch_size", __doc__, add_options, PRESETS, arrays=True)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
