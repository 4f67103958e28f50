"""The spectral conditions of Zheng et al. 2026: products of RMS operator norms against width and depth, per optimizer.

Nets of L blocks of k matrices are drawn and updated by every optimizer, once or more often (--steps), without momentum
or epsilon, under the paper's hyperparameter tables. Slopes of the products that conditions 3.1, B.1 and B.2 constrain
stand beside what these ask, and so do the features before the update and the alignments of claims F.1 and F.2, by which
norms are to say what features do.
"""

from sims.common.blocks.ladders import DEFAULT, PAPER, SMOKE, add_block_options, add_net_options
from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": SMOKE | {"optimizers": ["sgd", "adamw", "muon"]},
    "default": DEFAULT | {"draws": 16, "optimizers": ["all"]},
    "paper": PAPER | {"draws": 64},
}


def add_options(parser: CommandParser) -> None:
    add_block_options(parser)
    add_net_options(parser)
    parser.add_argument("--steps", type=int, default=1, help="steps that make an update (default: 1)")
    parser.add_argument(
        "--biases",
        action="store_true",
        help="nets with biases (condition B.3); adamw has those of muon and its like",
    )


COMMAND = Experiment("spectral_condition", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
