"""The list of all commands, `python -m sims`, a line each."""

import sys

from meanfield.signals import while_read

# The status of all refusals, as `sims.common.command` has it, which would load all that simulations need.
REFUSED = 2

COMMANDS = {
    "depth_law": "a law of your own: any net, any size, judged against a rival",
    "cnn_overlap": "how the terms and eta* of convolutional nets grow with depth",
    "cnn_finite_channels": "what channels, stencils and grids change in convolutional nets",
    "cnn_padding": "what zero padding costs convolutional nets, over grid size and depth",
    "mlp_depth": "fully-connected nets against the exact expectation at finite width",
    "residual_depth": "which depth law holds under which residual scaling",
    "optimizer_depth": "which depth law one step of each optimizer has, net by net",
    "transformer_depth": "which depth law holds for Transformers, by where they normalise",
    "residual_overlap": "overlaps of parameter directions in residual nets, block by block",
    "overlap_recursion": "overlaps of parameter directions: what is conserved, and what grows",
    "looped_energy": "whether weight-tied loops keep their energy as they get longer",
    "looped_update": "how far one update of a loop's weights moves its stream",
    "looped_transformer": "whether looped Transformers keep their energy as they begin to train",
    "looped_rates": "whether tuned rates of looped Transformers align over loops",
    "batch_size": "how the one-step change and eta* depend on the batch",
    "cross_entropy": "what cross-entropy changes against the squared loss",
    "activation_drift": "how activation and weight variance bend the depth law",
    "learning_rate_scale": "eta*(L) of every family; --transfer carries a rate to a depth",
    "learning_rate_search": "whether the rate that trains best follows the one-step scale",
    "training_length": "how the rate that trains best goes with steps, batch and schedule",
    "learning_rate_transfer": "what a carried rate costs in training, rule by rule",
    "hyperparameter_transfer": "whether tuned base rates stay over width and depth, by table",
    "spectral_condition": "the spectral conditions of Zheng et al. 2026, in width and depth",
    "update_orders": "the change of a stream by orders of a block's own updates",
    "coordinate_check": "how far nets move in a few steps, for every hyperparameter table",
    "transformer_coordinate_check": "how far GPT-like nets move in a few steps, table by table",
    "training_assumptions": "what Zheng et al. 2026 assume of training, measured on images",
    "reported_losses": "what the losses that Zheng et al. 2026 print say of its own claims",
    "identities": "statements that hold to rounding, or do not",
    "measure_model": "a PyTorch model of your own: its rate, and what one step of it moves",
    "hyperparameters": "the hyperparameters of a large net from those of a small one",
    "check_recipe": "which numbers of a training recipe are not those of a table",
    "table_cells": "the powers that norms ask for in the cells of hyperparameter tables",
    "sweep": "any of these over grids of its parameters, into one dataset",
    "claims": "every published claim with its verdict, from runs of all these",
}


def listed() -> str:
    """What each command asks, below how to ask it."""
    lines = [f"  {name:30}{words}" for name, words in COMMANDS.items()]
    return "\n".join(["python -m sims.NAME runs one; with --help it says all of itself\n", *lines])


def main(argv: list[str] | None = None) -> int:
    """Print the list; the exit status."""
    given = sys.argv[1:] if argv is None else argv
    if not given or given[0] in ("-h", "--help"):
        return while_read(lambda: print(listed()) or 0)
    name = given[0] if given[0] in COMMANDS else "NAME"
    print(f"error: python -m sims lists the commands, and no more; run one as python -m sims.{name}", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
