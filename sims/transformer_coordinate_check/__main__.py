"""Coordinate check of GPT-like nets: the size of features after ten steps, against width and depth, by table.

Pre-norm Transformers of characters, causal, rotary, with GELU, learn to predict the next character of English text, as
in figures 1, 3, 5, 6 and 8 of Zheng et al. 2026, with and without layer normalisation. |h_L| is the root mean square of
the stream behind the last block, on the batch that every step takes. Three tables start from one base model: those for
blocks of k >= 2 layers (condition 3.1: many) and of k = 1 (condition B.1: one), and the standard parameterization. The
base model is 64 channels wide and 2 blocks deep, with heads of 16 (the paper: 256, 4 and 64), and its streams are O(1).
"""

from sims.common.blocks.base_values import add_soap_epsilon_option
from sims.common.blocks.ladders import TABLES, add_ladder_options, add_precision_option
from sims.common.command import CommandParser
from sims.common.experiment import Experiment

# As the paper trains in its figure 1: Muon-Kimi for hidden matrices, AdamW for all else.
HYBRID = "muon_kimi-adamw"
PRESETS = {
    "smoke": {
        **{"optimizers": [HYBRID], "widths": [16, 32, 64], "depths": [1, 2, 4], "width": 32, "depth": 1},
        **{"tokens": 8, "samples": 4, "draws": 4, "steps": 3},
    },
    "default": {
        **{"optimizers": [HYBRID], "widths": [32, 48, 64, 128], "depths": [2, 3, 5, 16], "width": 32, "depth": 2},
        **{"tokens": 16, "samples": 4, "draws": 24, "steps": 10},
    },
    "paper": {
        **{
            "optimizers": [HYBRID, "muon-adamw", "shampoo-adamw", "sophia", "adamw"],
            "widths": [64, 128, 256, 512, 1024],
        },
        **{"depths": [2, 4, 8, 16, 32, 64], "width": 64, "depth": 4},
        **{"tokens": 64, "samples": 8, "draws": 24, "steps": 10},
    },
}


def add_options(parser: CommandParser) -> None:
    add = add_ladder_options(parser)
    norms = "layer, rms or none (default: layer none)"
    add("--normalisations", nargs="+", default=["layer", "none"], metavar="NAME", help=norms)
    add = parser.add_argument_group("training").add_argument
    add("--tokens", type=int, metavar="T", help="characters of a window")
    add("--samples", type=int, metavar="B", help="windows of a batch, of which every draw has one of its own")
    add("--steps", type=int, help="steps of training on that batch")
    curvatures = "of Sophia: from one character drawn at every place (sampled, default), as in practice, or exact"
    add("--curvature", choices=("sampled", "exact"), default="sampled", help=curvatures)
    add_soap_epsilon_option(add)
    add_precision_option(add)
    add("--tables", nargs="+", default=list(TABLES), metavar="NAME", help=f"of {', '.join(TABLES)} (default: all)")


COMMAND = Experiment("transformer_coordinate_check", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
