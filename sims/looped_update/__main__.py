"""How far one update of a loop's weights moves its stream: |dh_L|^2 / N against loops, residual scaling and width.

There are three updates at learning rate 1: isotropic signs independent of the weights, as theorem 2 of Wang et al. 2026
has them; the aligned sign of the true gradient, as sign-based optimizers make it; and the plain gradient. The scaling
(eta eps L)^2 of the theorem is read off as slopes in L for alpha = 1, 3/2 and 1/2 (eta enters squared, exactly, as
changes are to first order), beside the infinite-width recursion for isotropic updates; and in N, of which the theorem
says nothing.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"loops": [4, 8, 16], "width": 128, "draws": 128},
    "default": {"loops": [8, 16, 32, 64], "width": 256, "draws": 256},
    "paper": {"loops": [8, 16, 32, 64], "width": 1024, "draws": 256},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("loop").add_argument
    add("--loops", type=int, nargs="+", metavar="L", help="numbers of loops to draw, two or more")
    add("--width", type=int, metavar="N", help="units of the stream")
    add("--activation", default="relu", help="relu (default), linear, gelu or tanh")
    add("--weight-variance", type=float, default=2.0, help="sigma_W^2; W_ij has variance sigma_W^2 / N (default: 2)")


COMMAND = Experiment("looped_update", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
