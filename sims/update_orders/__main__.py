"""The change of the stream by the order of a block's own updates in it: where k >= 2 would differ from k = 1.

Zheng et al. 2026 derive alpha = 1/L for blocks of k >= 2 matrices from terms with two and more updates of one block,
which are to be of order one (C2.3). Here Delta h_L is split exactly, after one step and after many, for each table: by
condition 3.1 (k >= 2) and by condition B.1 (k = 1), on blocks of one, two and three matrices.
"""

from sims.common.blocks.ladders import PAPER, SMOKE, add_batch_options, add_block_options
from sims.common.command import CommandParser
from sims.common.experiment import Experiment

# From four blocks upwards, where what finite depths leave in a plain slope is below what is granted.
LADDERS = {"widths": [64, 96, 256], "depths": [4, 6, 32], "width": 64, "depth": 4}
PRESETS = {
    "smoke": SMOKE | {"optimizers": ["muon"]},
    "default": LADDERS | {"draws": 24, "optimizers": ["sgd", "adamw", "muon"]},
    "paper": PAPER | {"draws": 64, "depths": [4, 8, 16, 32, 64]},
}


def add_options(parser: CommandParser) -> None:
    add_block_options(parser)
    # Base rates without momentum are such that ten steps move the stream on this batch by about itself.
    add_batch_options(parser, samples=2, outputs=1)
    steps = "steps after which the change is split again (default: 10)"
    parser.add_argument("--steps", type=int, default=10, help=steps)
    tables = "of many (k >= 2) and one (k = 1) (default: both)"
    parser.add_argument("--tables", nargs="+", default=["many", "one"], metavar="NAME", help=tables)


COMMAND = Experiment("update_orders", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
