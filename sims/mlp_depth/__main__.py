"""Fully-connected nets by layer: drawn against the exact expectation at finite width, and what it says of depth.

Draws with lazily revealed weights where these are cheaper and compares every layer's label, output and update energy
with the exact expectation (no allowance is needed). The exact spread of one draw says beforehand how many draws a layer
takes: where depth is of the order of the width (--preset square) no run has enough, and the report says so instead of
comparing. From the recursion alone: energies to depth 100000, the finite-width correction as a function of l/n, and the
output term over the label term against head, outputs and depth, with the slope of eta*(L).
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"depth": 6, "width": 64, "draws": 256},
    "default": {"depth": 32, "width": 512, "draws": 4096},
    "square": {"depth": 64, "width": 64, "draws": 4096},
    "paper": {"depth": 128, "width": 1024, "draws": 4096},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--width", type=int, metavar="N", help="units of every layer")
    add("--outputs", type=int, default=10, metavar="M", help="outputs (default: 10)")
    add("--activation", default="relu", help="relu (default) or linear: those with an exact expectation")
    add("--head", default="he", help="he (default), fan_in or mup")


COMMAND = Experiment("mlp_depth", __doc__, add_options, PRESETS, arrays=True)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
