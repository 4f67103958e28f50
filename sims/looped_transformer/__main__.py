"""Residual energy of looped Transformers in their first training steps, against the number of loops.

Pre-norm Transformers of one block, applied L times (looped) or with weights for every block (deep), are trained for a
few Adam steps on one sequence of random tokens, next-token cross-entropy over all of them, under three residual
scalings: the protocol of figure 1 of Wang et al. 2026. H_L, the mean square of the stream before the last
normalisation, is split into H_0 + B + C after every step, beside the correlations of the increments (figure 2) and how
far one update moves the stream to first order (theorem 2). Two rivals train beside: ReZero, whose branches have gains
that start at 0, and post-norm blocks with the constants of DeepNorm.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

LOOPS = [1, 2, 4, 8, 16, 32, 64]
PRESETS = {
    "smoke": {"loops": [1, 4, 8, 16], "width": 32, "tokens": 16, "vocabulary": 32, "draws": 20},
    "default": {"loops": LOOPS, "width": 64, "tokens": 64, "vocabulary": 64, "draws": 16},
    "paper": {"loops": LOOPS, "width": 512, "tokens": 128, "vocabulary": 512, "draws": 20},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--loops", type=int, nargs="+", metavar="L", help="numbers of loops, three or more")
    add("--width", type=int, metavar="N", help="channels of a token")
    add("--heads", type=int, default=4, help="heads of attention (default: 4)")
    add("--tokens", type=int, metavar="T", help="tokens of the sequence")
    add("--vocabulary", type=int, metavar="V", help="tokens that there are")
    add = parser.add_argument_group("training").add_argument
    add("--steps", type=int, default=10, help="Adam steps (default: 10)")
    add("--rate", type=float, default=1e-3, help="learning rate of all weights; the paper names none (default: 0.001)")


COMMAND = Experiment("looped_transformer", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
