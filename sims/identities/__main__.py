"""Statements of the papers that are identities, or are not: each checked to rounding on examples, without statistics.

All are of Zhang et al. 2026. The split of the update energy by an average over labels, with its prefactor (lemma 2), by
enumeration of all labels and by central differences over all parameters of a small net; the mean that is consistent
when layers are regrouped (appendix A), by a search for counterexamples; LayerNorm's Jacobian and the bound on its norm
(lemma 7).
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"depth": 2, "width": 4, "outputs": 2},
    "default": {"depth": 4, "width": 8, "outputs": 3},
    "paper": {"depth": 8, "width": 24, "outputs": 8},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--depth", type=int, metavar="L", help="hidden layers of the net")
    add("--width", type=int, metavar="N", help="units of its layers")
    add("--outputs", type=int, metavar="M", help="its outputs, of 2^M labels of +-1 (at most 12)")
    add("--seed", type=int, default=0, help="of the net and of all examples (default: 0)")


COMMAND = Experiment("identities", __doc__, add_options, PRESETS, draws=False)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
