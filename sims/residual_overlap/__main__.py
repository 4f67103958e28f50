"""Overlaps of pairs of parameter directions in residual nets, from block to block (Zhang et al. 2026, appendix C.1).

A direction is one unit's weights at the end of a block (or in a stem or tail layer), moved along that unit's incoming
features; T_l is the mean over units of the product of two tangents of the stream, T~_l the same behind the gates.
Measured: the mean over one block given all below it (eq. 31); the mean over redraws against (1 + cq/K)^blocks and its
bound e^(cq) (eq. 35); at several widths epsilon = E T~ - q E T, by which gates depend on tangents (eq. 34). Depth units
are counted from 1: stem layers, blocks, tail layers. Choose pairs with --pair.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment
from sims.common.pairs import PAIR

PRESETS = {
    "smoke": {"depth": 4, "width": 32, "draws": 4096},
    "default": {"depth": 8, "width": 64, "draws": 16384},
    "paper": {"depth": 24, "width": 128, "draws": 262_144},
}


def add_options(parser: CommandParser) -> None:
    group = parser.add_argument_group("network")
    add = group.add_argument
    add("--depth", type=int, metavar="K", help="residual blocks")
    add("--width", type=int, metavar="N", help="units of every layer")
    add("--block-depth", type=int, default=1, metavar="k", help="layers of a branch (default: 1)")
    add("--scaling", default="init", help="init (default), multiplier_sqrt, multiplier_linear or none")
    add("--activation", default="relu", help="relu (default) or linear")
    add("--stem", type=int, default=1, metavar="M", help="plain layers below the blocks (default: 1)")
    add("--tail", type=int, default=0, metavar="M", help="plain layers above the blocks (default: 0)")
    PAIR.add_to(group)


COMMAND = Experiment("residual_overlap", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
