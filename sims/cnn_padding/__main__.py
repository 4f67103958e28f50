"""Zero against circular padding: what the edge of a grid costs, measured and predicted, over grid size and depth.

Draws convolutional nets under both paddings on lines and squares, holds label terms, their profile over sites and the
learning-rate scale against the mean field, and asks to what depth the remark of Zhang et al. 2026 on zero padding holds
(a correction of the order of the boundary fraction, exponent unchanged). On larger grids the mean field alone then goes
on to where the growth turns into decay; and the paper's bound on missing terms is tried on sets of many shapes.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"lines": [4, 16], "squares": [3], "depths": [2, 4, 8], "channels": 64, "draws": 64}
    | {"far_lines": [8, 16, 32], "far_squares": [4, 8]},
    "default": {"lines": [4, 8, 16, 32], "squares": [4], "depths": [4, 8, 16], "channels": 96, "draws": 128}
    | {"far_lines": [8, 16, 32, 64], "far_squares": [4, 8, 16, 32]},
    "paper": {"lines": [4, 8, 16, 32, 64], "squares": [8, 16], "depths": [4, 8, 16, 32], "channels": 256, "draws": 1024}
    | {"far_lines": [8, 16, 32, 64, 128], "far_squares": [4, 8, 16, 32]},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--lines", type=int, nargs="+", metavar="N", help="sites of the one-dimensional grids that are drawn")
    add("--squares", type=int, nargs="+", metavar="N", help="sides of the two-dimensional grids that are drawn")
    add("--depths", type=int, nargs="+", metavar="L", help="layers of the nets that are drawn, three or more numbers")
    lines = "sites of the one-dimensional grids of the mean field alone, three or more numbers"
    add("--far-lines", type=int, nargs="+", metavar="N", help=lines)
    squares = "sides of the two-dimensional grids of the mean field alone"
    add("--far-squares", type=int, nargs="+", metavar="N", help=squares)
    add("--channels", type=int, metavar="C", help="channels of every layer that is drawn")


COMMAND = Experiment("cnn_padding", __doc__, add_options, PRESETS, arrays=True)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
