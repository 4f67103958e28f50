"""How the learning-rate scale eta*(L) falls with depth in theory: local slopes, and the slopes that a fit would find.

No net is drawn: the mean field gives the label term's scale for plain and residual nets of every depth, and for loops
the rate that keeps the change of the stream under one update fixed; the exact recursion gives the scale of the whole
update for fully-connected nets. Slopes over the depths that the papers print stand beside those that they measured and
the exponents that they claim, with no fitted constant; a table says how far the power law misses a carried rate, and
the claims on eta*(L) get their verdicts. With --transfer, carries a learning rate to another depth.
"""

from __future__ import annotations

import argparse
import sys

from sims.common.command import add_output_options, add_preset_option, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

NAME = "learning_rate_scale"
PRESETS = {"smoke": {"depth": 300}, "default": {"depth": 1000}, "paper": {"depth": 3000}}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument
    add_preset_option(parser, PRESETS)
    add("--depth", type=int, metavar="L", help="deepest net; time goes as its square")
    add("--width", type=int, default=1024, metavar="N", help="channels of every layer (default: 1024)")
    add("--outputs", type=int, default=10, metavar="M", help="outputs, for the exact scale (default: 10)")
    add("--transfer", type=float, metavar="RATE", help="a tuned learning rate to carry to another depth")
    add("--from", type=int, dest="start", metavar="L0", help="depth at which the rate was tuned")
    add("--to", type=int, dest="end", metavar="L", help="depth to carry it to")
    family = (
        "net of the transfer: mlp (default), mlp linear, cnn 1d, cnn 2d (or cnn), residual SCALING k=1..3 (residual: "
    )
    family += "init k=1), residual cnn 1d, looped linear (or looped), looped sqrt, deep linear, deep sqrt"
    add("--family", default="mlp", help=family)
    add_output_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Print the tables and write the dataset and its figure; or print one transferred learning rate."""
    from meanfield.common import MOST_LAYERS, require_count

    if options.transfer is not None:
        print(_transfer(options))
        return 0
    for name, value in (("--from", options.start), ("--to", options.end)):
        if value is not None:
            raise ValueError(f"{name} is {value}, but there is no rate to carry; give one with --transfer")
    require_count("--depth", options.depth, minimum=2, maximum=MOST_LAYERS, why="a slope needs two depths")
    from figures import learning_rate_scale as figure
    from sims.learning_rate_scale import report
    from sims.learning_rate_scale.families import shown
    from sims.learning_rate_scale.theory import scales

    nets, loops = shown(options.depth, options.width, options.outputs)
    results = Results(NAME, run_key(nets=nets, loops=loops), options)
    return results.deliver(lambda: scales(nets, loops), report.text, figure.draw)


def _transfer(options: argparse.Namespace) -> str:
    """The carried rate with all that should be known of it."""
    from meanfield.common import require_choice, require_count
    from sims.learning_rate_scale import transfer_report as _transfer_report
    from sims.learning_rate_scale.families import served

    for name, depth in (("--from", options.start), ("--to", options.end)):
        if depth is None:
            raise ValueError(f"--transfer {options.transfer:g} is given without {name}, a depth; it needs both")
        require_count(name, depth, why="a depth")
    nets = served(options.width, options.outputs)
    require_choice("--family", options.family, nets)
    return _transfer_report.text(options.transfer, nets[options.family], options.start, options.end, options.family)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
