"""The list of all commands, `python -m sims`, a line each."""

import sys

from meanfield.signals import while_read
from sims import NAMES, listed

# The status of all refusals, as `sims.common.command` has it, which would load all that simulations need.
REFUSED = 2

# Studies that ask alike stand together; one that is not named here stands between the first and the last.
FIRST = (
    "depth_law",
    "cnn_overlap",
    "cnn_finite_channels",
    "cnn_padding",
    "mlp_depth",
    "residual_depth",
    "optimizer_depth",
    "transformer_depth",
    "residual_overlap",
    "overlap_recursion",
    "looped_energy",
    "looped_update",
    "looped_transformer",
    "looped_rates",
    "batch_size",
    "cross_entropy",
    "activation_drift",
    "learning_rate_scale",
    "learning_rate_search",
    "training_length",
    "learning_rate_transfer",
    "hyperparameter_transfer",
    "spectral_condition",
    "update_orders",
    "coordinate_check",
    "transformer_coordinate_check",
    "training_assumptions",
    "reported_losses",
    "identities",
)
LAST = (
    "measure_model",
    "hyperparameters",
    "check_recipe",
    "table_cells",
    "sweep",
    "claims",
)


def commands() -> list[str]:
    """The names of all of them, in the order of the list."""
    others = [name for name in NAMES if name not in (*FIRST, *LAST)]
    return [*FIRST, *others, *LAST]


def page() -> str:
    """What each command asks, below how to ask it."""
    lines = [f"  {name:30}{listed(name)}" for name in commands()]
    return "\n".join(["python -m sims.NAME runs one; with --help it says all of itself\n", *lines])


def main(argv: list[str] | None = None) -> int:
    """Print the list; the exit status."""
    given = sys.argv[1:] if argv is None else argv
    if not given or given[0] in ("-h", "--help"):
        return while_read(lambda: print(page()) or 0)
    name = given[0] if given[0] in NAMES else "NAME"
    print(f"error: python -m sims lists the commands, and no more; run one as python -m sims.{name}", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
