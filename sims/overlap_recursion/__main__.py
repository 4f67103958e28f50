"""Overlaps of pairs of parameter directions, followed from the layer where they begin to the top.

A direction is one unit's weights, moved along that unit's incoming features; T_h is the mean over units of the product
of the two tangents of z^(h). All claims are of Zhang et al. 2026. Over redraws of the net: the mean of T_h, which lemma
1 says is conserved; the growth of its square against the exact recursion; the variance that each new layer adds (lemma
5: at most C0/C). Over redraws of the layers above a fixed one: the mean of T_h given z^(l), as lemma 1 is written.
Choose pairs with --pair.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment
from sims.common.pairs import PAIR

PRESETS = {
    "smoke": {"depth": 5, "width": 32, "draws": 2048},
    "default": {"depth": 12, "width": 128, "draws": 32768},
    "paper": {"depth": 24, "width": 256, "draws": 131_072},
}


def add_options(parser: CommandParser) -> None:
    group = parser.add_argument_group("network")
    add = group.add_argument
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--width", type=int, metavar="N", help="units of every layer")
    add("--activation", default="relu", help="relu (default) or linear")
    PAIR.add_to(group)
    add("--fixed", type=int, metavar="L", help="layer up to which the net is fixed (default: the pairs' own)")


COMMAND = Experiment("overlap_recursion", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
