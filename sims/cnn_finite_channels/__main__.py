"""What finite channels do to convolutional nets, and what stencils, grids and dimensions do to their depth law.

The label term over its mean field, less 1, for channels C and depths L at several L/C: is it O(1/C) at every depth, as
the papers say, or a function of L/C? The mean of an overlap given the layers below, and the variance that a layer of C
channels adds to it (Zhang et al. 2026, lemmas 1 and 5). And slope and prefactor of the label term's eta*(L) for 1D and
2D grids and stencils of many shapes, odd and even, beside the mean field and the papers' one exponent and one
prefactor.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"channels": [32, 64], "draws": 256, "depths": [2, 4, 8]} | {"slope_channels": 128, "slope_draws": 24},
    "default": {"channels": [48, 96, 192], "draws": 3072, "depths": [4, 8, 16]}
    | {"slope_channels": 384, "slope_draws": 64},
    "paper": {"channels": [64, 128, 256], "draws": 16_384, "depths": [4, 8, 16, 32]}
    | {"slope_channels": 1024, "slope_draws": 256},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--channels", type=int, nargs="+", metavar="C", help="channels of the correction, multiples of 16")
    add("--slope-channels", type=int, metavar="C", help="channels of the nets whose slopes are taken")
    add("--depths", type=int, nargs="+", metavar="L", help="depths of the slopes, two or more")
    add("--slope-draws", type=int, help="independent networks drawn for each depth and stencil of the slopes")


COMMAND = Experiment("cnn_finite_channels", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
