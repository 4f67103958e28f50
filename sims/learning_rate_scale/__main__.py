"""How the learning-rate scale eta*(L) falls with depth in theory: local slopes, and the slopes that a fit would find.

No net is drawn: the mean field gives the label term's scale for plain and residual nets of every depth, and for loops
the rate that keeps the change of the stream under one update fixed; the exact recursion gives the scale of the whole
update for fully-connected nets. Slopes over the depths that the papers print stand beside those that they measured and
the exponents that they claim, with no fitted constant; a table says how far the power law misses a carried rate, and
the claims on eta*(L) get their verdicts. With --transfer, carries a learning rate to another depth.
"""

import argparse

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {"smoke": {"depth": 300}, "default": {"depth": 1000}, "paper": {"depth": 3000}}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--depth", type=int, metavar="L", help="deepest net; time goes as its square")
    add("--width", type=int, default=1024, metavar="N", help="channels of every layer (default: 1024)")
    add("--outputs", type=int, default=10, metavar="M", help="outputs, for the exact scale (default: 10)")
    add("--transfer", type=float, metavar="RATE", help="a tuned learning rate to carry to another depth")
    add("--from", type=int, dest="start", metavar="L0", help="depth at which the rate was tuned")
    add("--to", type=int, dest="end", metavar="L", help="depth to carry it to")
    add(
        "--rule",
        dest="transfer_rule",
        metavar="NAME",
        help="rule of the transfer, such as finite_depth (default: auto, which chooses)",
    )
    stem = "give residual nets of the transfer a plain layer below their blocks, which reads so many channels"
    add(
        "--stem",
        dest="transfer_stem",
        type=int,
        metavar="CHANNELS",
        help=f"{stem} (default: none; it stops every rise)",
    )
    family = "net of the transfer: mlp (default), mlp linear, cnn 1d, cnn 2d (or cnn), either cnn pooled, residual "
    family += "SCALING k=1..3 (residual: init k=1), residual cnn 1d, looped linear (or sqrt, looped: linear), "
    family += "deep linear (or sqrt), transformer pre (or transformer), transformer post; residual nets and "
    family += "Transformers count blocks; transformer pre needs a --rule"
    add("--family", default="mlp", help=family)


class _Scales(Experiment):
    """With --transfer, the one carried rate in place of the report."""

    def run(self, options: argparse.Namespace) -> int:
        if options.transfer is None:
            return super().run(options)
        from sims.learning_rate_scale.transfer_report import carried

        print(carried(options))
        return 0


COMMAND = _Scales("learning_rate_scale", __doc__, add_options, PRESETS, draws=False)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
