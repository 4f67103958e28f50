"""A model of your own in PyTorch: the learning rate to start it from, and what one step of its optimizer moves.

FACTORY is package.module:name of a function, or a class, that makes the model from the sizes as keywords; it is
imported as Python imports it, from the current folder too. Every size is made anew for every draw and measured by one
exact step (`meanfield.torch.step_scales`); nothing is trained. The report says from which rate to start at every size
(`starting_rate`), or which rate a tuned one becomes (--carry), how the one-step scales go with the sizes, which
modules of the largest size move most, and which parameters move them. It takes the extra torch.

  python -m sims.measure_model train:gpt --sizes depth=4,8,16 --loss cross_entropy --data tokens.npz
"""

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module

import xarray as xr

from meanfield.common import require_choice, require_count, require_draws
from meanfield.execution import PieceStore
from sims.common.command import CommandParser, Service, add_output_options
from sims.common.results import Results, require_dataset_name
from sims.common.study import pictures_of
from sims.measure_model.report import document

LISTED = "a PyTorch model of your own: its rate, and what one step of it moves"

# As `meanfield.torch` has them, which is loaded when a model is measured.
DRAWS = 16
KINDS, OF = ("connected", "convolutional", "transformer"), ("outputs", "last", "relative", "absolute")
PRECISIONS = ("float64", "float32")


def add_options(parser: CommandParser) -> None:
    parser.add_argument("factory", metavar="FACTORY", help="package.module:name of what makes the model")
    model = parser.add_argument_group("model").add_argument
    sizes = "sizes, keywords of the factory; several options make all combinations (default: the model as it is)"
    model("--sizes", action="append", default=[], metavar="NAME=NUMBER,..", help=sizes)
    modules = "modules that are shown, by name or pattern (default: blocks, and what stands outside of them)"
    model("--modules", nargs="+", default=[], metavar="PATTERN", help=modules)
    groups = "groups of parameters that are shown, each by names or patterns (default: kinds of parameters)"
    model("--groups", nargs="+", default=[], metavar="NAME=PATTERN,..", help=groups)
    kind = "whose constant gives the rate to start from (default: by the classes of modules)"
    model("--kind", choices=KINDS, help=kind)
    step = parser.add_argument_group("step").add_argument
    loss = "cross_entropy, mse, or package.module:function of outputs and targets"
    step("--loss", required=True, metavar="LOSS", help=loss)
    data = (
        "FILE.npz or FILE.nc with inputs and labels or targets, as the model is to see them (whole numbers are tokens "
    )
    data += "or classes); text, characters of Python's documentation; or package.module:loader, pairs of tensors"
    step("--data", required=True, metavar="DATA", help=data)
    optimizer = "sgd, sgd_momentum, adamw, lion, muon, muon-adamw (whose step is muon-adamw-in-noise), ..; or "
    optimizer += "package.module:name of a class, or of a function from the model to its optimizer (default: adamw)"
    step("--optimizer", default="adamw", metavar="NAME", help=optimizer)
    step("--batch-size", type=int, metavar="B", help="samples of a batch (default: 64); take that of training")
    step("--length", type=int, metavar="T", help="characters of a window of text (default: 64)")
    carry = "learning rate that was tuned at one of the sizes, to be carried to the others, such as 0.003@depth=4"
    step("--carry", metavar="RATE@SIZE", help=carry)
    of = "by which scale it is carried (default: outputs; relative without skip connections, and without normalisation "
    of += "to another width under adamw and lion; last for muon-adamw)"
    step("--of", choices=OF, help=of)
    draw = parser.add_argument_group("run").add_argument
    draw("--draws", type=int, default=DRAWS, help=f"models drawn of every size (default: {DRAWS})")
    draw("--seed", type=int, default=0, help="root of all random streams (default: 0)")
    draw("--precision", default="float64", help="float64 (default) or float32, of weights and passes")
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Check everything; measure, or read what an equal run has measured; print, write, say where."""
    require_dataset_name(options)
    require_draws("--draws", options.draws)
    require_count("--seed", options.seed, minimum=0, why="a seed is a non-negative whole number")
    require_choice("--precision", options.precision, PRECISIONS)
    import_module("meanfield.torch")  # which says what to install where PyTorch is missing
    from sims.measure_model.measured import MeasuredModel, measure

    asked = MeasuredModel.by(options)
    results = Results("measure_model", asked.key, options)
    pieces = PieceStore(results.dataset_path.parent / f".measure_model-{asked.key_of_steps}.pieces")
    status = results.deliver(lambda: measure(asked, pieces), document, pictures)
    pieces.discard()
    return status


def pictures(dataset: xr.Dataset, kinds: Sequence[str]) -> Mapping[str, bytes]:
    return pictures_of("measure_model", dataset, kinds)


COMMAND = Service(name="measure_model", description=__doc__, add=add_options, work=run)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
