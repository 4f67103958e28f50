"""Do the cells of hyperparameter tables have the powers of width and depth that norms ask for?

Nets of L blocks of k matrices are drawn under the tables of Zheng et al. 2026 for their k. Before any step the norms of
weights, of gradients and of the first direction of every optimizer are measured, by role (input, hidden and output
weights, or biases). Each cell of a table is a factor of something that a condition asks to be of order one; its slope
over a ladder says by which power the printed cell is off. Printed powers are halves and wholes: a cell stands while no
other half power is nearer to what is measured.
"""

from sims.common.blocks.ladders import SMOKE, add_block_options, add_net_options
from sims.common.command import CommandParser
from sims.common.experiment import Experiment

LADDERS = {"widths": [32, 48, 192, 256], "depths": [4, 6, 24, 32], "width": 64, "depth": 2}

PRESETS = {
    "smoke": SMOKE | {"optimizers": ["all"], "width": 16, "depth": 2},
    "default": LADDERS | {"optimizers": ["all"], "draws": 96},
    "paper": LADDERS | {"optimizers": ["all"], "draws": 128, "widths": [64, 128, 256, 512, 1024], "width": 64},
}


def add_options(parser: CommandParser) -> None:
    add_block_options(parser)
    add_net_options(parser)
    words = "give the nets biases, and look at the cells of biases instead of those of weights"
    parser.add_argument("--biases", action="store_true", help=words)


COMMAND = Experiment("table_cells", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
