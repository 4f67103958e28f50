"""Residual energy of weight-tied loops against the number of loops, beside deep stacks with a matrix for every step.

Draws H_L = |h_L|^2 / N for three residual scalings (none, 1/sqrt(L), 1/L) over numbers of loops L, in the layout of
figure 1 of Wang et al. 2026, and holds them against the infinite-width covariance recursion, which is followed to
thousands of loops; then the correlations of the increments (figure 2), and the size of the cross term against the
width, the loops and eps L.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"loops": [1, 2, 4, 8, 16], "width": 256, "draws": 128, "far": 128},
    "default": {"loops": [1, 2, 4, 8, 16, 32, 64], "width": 512, "draws": 256, "far": 4096},
    "paper": {"loops": [1, 2, 4, 8, 16, 32, 64], "width": 2048, "draws": 1024, "far": 4096},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("loop").add_argument
    add("--loops", type=int, nargs="+", metavar="L", help="numbers of loops to draw, three or more")
    add("--far", type=int, metavar="L", help="loops to which theory is followed, by doubling")
    add("--width", type=int, metavar="N", help="units of the stream")
    add("--activation", default="relu", help="relu (default), linear, gelu or tanh")
    add("--weight-variance", type=float, default=2.0, help="sigma_W^2; W_ij has variance sigma_W^2 / N (default: 2)")


COMMAND = Experiment("looped_energy", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
