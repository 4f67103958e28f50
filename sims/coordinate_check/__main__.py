"""Coordinate check: how far nets move in a few steps, against width and depth, for every hyperparameter table.

Nets of L blocks of k matrices are trained, with one optimizer at a time or a hybrid of two, momentum, weight decay and
epsilon included. Every role has the table of the optimizer that steps it.
All sizes are root mean squares over units and samples: of the stream h_0, h_(L/2), h_L and its change since before the
first step, of the change of the outputs f, and of what input, hidden and output weights change alone. Three tables
start from one base model: those of Zheng et al. 2026 for blocks of k >= 2 layers (condition 3.1: many) and of k = 1
(condition B.1: one), and the standard parameterization.
"""

from sims.common.blocks.base_values import add_base_option, add_soap_epsilon_option
from sims.common.blocks.ladders import (
    DEFAULT,
    PAPER,
    SMOKE,
    TABLES,
    add_block_options,
    add_net_options,
    add_precision_option,
)
from sims.common.command import CommandParser
from sims.common.experiment import Experiment

# All tables of all optimizers are judged on these.
SMALL = {"widths": [32, 48, 64, 96, 256], "width": 64, "depth": 2}

PRESETS = {
    "smoke": SMOKE | {"optimizers": ["sgd", "adamw", "muon"], "draws": 6, "steps": 2},
    "default": DEFAULT | SMALL | {"draws": 20, "steps": 10, "optimizers": ["muon_kimi"]},
    "paper": PAPER | {"draws": 32, "steps": 10},
}


def add_options(parser: CommandParser) -> None:
    add_block_options(parser)
    add_net_options(parser)
    add = parser.add_argument_group("training").add_argument
    add("--steps", type=int, help="steps of training (default: 10; smoke: 2)")
    add("--tables", nargs="+", default=list(TABLES), metavar="NAME", help=f"of {', '.join(TABLES)} (default: all)")
    add("--biases", action="store_true", help="biases beside input and hidden matrices, which start at 0")
    add_base_option(add, "hidden.learning_rate=0.02")
    add_soap_epsilon_option(add)
    add_precision_option(add)
    add("--plain", action="store_true", help="no weight decay and negligible epsilons (default: such as matter)")


COMMAND = Experiment("coordinate_check", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
