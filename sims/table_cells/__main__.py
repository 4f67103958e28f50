"""Which cells of the hyperparameter tables does a coordinate check need?

Nets of L blocks of k matrices are trained under the table of Zheng et al. 2026 for their k, and again with one cell of
it (a hyperparameter of input, hidden or output weights, or of biases) kept as in the base model, which is the standard
parameterization of that cell. Draws are the same, so that the difference of two slopes is that of one cell. A cell
along whose ladder no slope moves is one that the coordinate check does not see.
"""

from sims.common.blocks.ladders import SMOKE, add_block_options, add_net_options, add_precision_option
from sims.common.command import CommandParser, Presets
from sims.common.experiment import Experiment

LADDERS = {"widths": [32, 48, 256], "depths": [2, 4, 16], "width": 32, "depth": 2}

PRESETS: Presets = {
    "smoke": SMOKE | {"optimizers": ["all"], "steps": 2, "width": 16, "depth": 2},
    "default": LADDERS | {"optimizers": ["all"], "draws": 18, "steps": 6},
    "paper": LADDERS | {"optimizers": ["all"], "draws": 64, "steps": 10, "widths": [64, 128, 256, 512, 1024]},
}


def add_options(parser: CommandParser) -> None:
    add_block_options(parser)
    add_net_options(parser)
    words = "give the nets biases, and try the cells of biases instead of those of weights"
    parser.add_argument("--biases", action="store_true", help=words)
    parser.add_argument("--steps", type=int, help="steps of training (default: 6; smoke: 2)")
    add_precision_option(parser.add_argument)


COMMAND = Experiment("table_cells", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
