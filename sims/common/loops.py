"""Weight-tied loops, h <- h + eps W phi(h): options, which increments are correlated, what finite width is granted."""

from sims.common.command import Option

LOOP_OPTIONS = (
    Option("width", "units of the stream", int, metavar="N", group="loop"),
    Option("activation", "relu (default), linear, gelu or tanh", default="relu", group="loop"),
    Option("weight_variance", "sigma_W^2; W_ij has variance sigma_W^2 / N (default: 2)", float, 2.0, group="loop"),
)
# The scaling of each model under which increments are correlated, and the dims of their correlations.
HEATMAPS = {"looped": "linear", "deep": "sqrt"}
INCREMENTS = ("increment", "increment_other")


def finite_width(width: int) -> float:
    """Relative deviation from infinite width that is granted: 10/N.

    A step's energy fluctuates by 5/N (ReLU), and in loops the same matrix is met again at every step, so that
    fluctuations add up in amplitude while eps L is of order one.
    """
    return 10.0 / float(width)
