"""The learning rate that trains looped Transformers best, over the number of loops: aligned under 1/L, or shifted?

Language models of one Llama-style pre-norm block that is applied L times, between an embedding and a readout, learn to
predict the next character of English text by Adam, as in figure 3 of Wang et al. 2026 at 340M parameters. Branches are
multiplied by L^(-1/2) ("sqrt") or 1/L ("linear"). For every L the rate that minimises the training loss is searched
for; further nets are trained at that rate, whose losses compare the scalings. The rate is constant in training: without
warm-up, decay or weight decay, which the paper has.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"loops": [1, 2, 4], "width": 8, "tokens": 8, "steps": 20, "tuning_seeds": 3, "draws": 6},
    "default": {"loops": [1, 2, 4, 8], "width": 32, "tokens": 16, "steps": 100, "tuning_seeds": 12, "draws": 36},
    "paper": {"loops": [1, 2, 4, 8, 16], "width": 128, "tokens": 64, "steps": 1000, "tuning_seeds": 12, "draws": 36},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--loops", type=int, nargs="+", metavar="L", help="numbers of loops, two or more")
    add("--width", type=int, metavar="N", help="channels of a token")
    add("--heads", type=int, default=2, help="heads of attention (default: 2)")
    add("--tokens", type=int, metavar="T", help="characters of a window")
    add = parser.add_argument_group("training").add_argument
    add("--steps", type=int, help="steps of training; every window is met once")
    add("--batch-size", type=int, default=8, metavar="B", help="windows of a mini-batch (default: 8)")
    add("--optimizer", default="adamw", help="adamw (default), or another name that meanfield.train takes")
    add("--tuning-seeds", type=int, metavar="S", help="nets that every rate is tuned on, 2 or more")
    add("--spacing", type=float, default=0.25, help="finest steps between rates, in decades (default: 0.25)")


COMMAND = Experiment("looped_rates", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
