"""The losses of GPT-2 that Zheng et al. 2026 print (tables 15 - 40), and what they say of the paper's own claims.

Nothing is trained. Of every table: the best base value at every size, by a parabola; how far it moves over the ladder,
in octaves from end to end; what the base model's best value costs the largest net, and what it costs under one rule
for the depth more than under the other; and the least losses, table beside table. The
scatter of a loss comes from the base model, which several tables have trained alike. --tables prints whole tables.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {"smoke": {"tables": []}, "default": {"tables": []}, "paper": {"tables": [*range(15, 41)]}}


def add_options(parser: CommandParser) -> None:
    help_tables = "tables to print whole, with an error for every optimum (default: none; paper: all)"
    parser.add_argument("--tables", type=int, nargs="*", metavar="NUMBER", help=help_tables)


COMMAND = Experiment("reported_losses", __doc__, add_options, PRESETS, draws=False)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
