"""What cross-entropy instead of squared loss does to the one-step change, over depth, for two nets and two heads.

The papers derive eta* ~ L^(-3/2) for squared loss and train with cross-entropy; they say that it changes the prefactor
only, because at initialisation the softmax p is uniform and |p - y|^2 = 1 - 1/C for C classes (Zhang et al. 2026,
section G). Here both losses are drawn, with the same passes and other error columns: of labels, y - 1/C with a class
drawn uniformly, and of outputs, p - 1/C. Under the muP head logits vanish with the width; under the He head they are of
order one, and under the paper's own, of variance 1/n behind a pooling, in between.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"depths": [2, 4, 8], "width": 128, "channels": 32, "draws": 128},
    "default": {"depths": [2, 4, 8, 16], "width": 256, "channels": 64, "draws": 768},
    "paper": {"depths": [2, 4, 8, 16, 32], "width": 1024, "channels": 256, "draws": 2048},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--depths", type=int, nargs="+", metavar="L", help="hidden layers, two depths or more")
    add("--width", type=int, metavar="N", help="units of every layer of the MLP")
    add(
        "--channels", type=int, metavar="C", help="channels of every layer of the ConvNet, on a ring of 8 sites, pooled"
    )
    add("--classes", type=int, default=10, metavar="C", help="outputs, two or more (default: 10)")


COMMAND = Experiment("cross_entropy", __doc__, add_options, PRESETS, arrays=True)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
