"""How the learning-rate scale eta*(K) of residual nets falls, or does not, with the number of blocks K.

For every activation, branch depth k and scaling (branch weights of variance 1/K, branch times K^(-1/2) or 1/K, none),
nets are drawn over a grid of K and held against theory over the same K: the exact expectation for linear nets, the mean
field for ReLU. Its slope is followed to large K and set beside what the papers say. Then mixed backbones of m plain
layers and K blocks, whose slopes in m and K are told apart; PathSum's rule; and the net of the papers' ResNet tables.
"""

from sims.common.command import CommandParser, Presets
from sims.common.experiment import Experiment

PRESETS: Presets = {
    "smoke": {"blocks": [4, 8, 16], "width": 256, "draws": 32, "far": 100},
    "default": {"blocks": [8, 16, 32, 64, 128], "width": 512, "draws": 24, "far": 2_000},
    "paper": {"blocks": [8, 16, 32, 64, 128, 256], "width": 1024, "draws": 512, "far": 10_000},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--blocks", type=int, nargs="+", metavar="K", help="numbers of blocks to draw, two or more")
    add("--far", type=int, metavar="K", help="blocks to which theory follows the slopes")
    add("--width", type=int, metavar="N", help="units of the stream")
    add("--outputs", type=int, default=10, metavar="M", help="outputs (default: 10)")


COMMAND = Experiment("residual_depth", __doc__, add_options, PRESETS, arrays=True)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
