"""A law of one's own: how a quantity of any net goes with its depth, or any other size, judged against a rival.

The net is a family with fields (--net ResidualMLP --set block_depth=2 scaling=0.75 width=300), whose field --along is
the size, or FILE.py:make, a function of the size that returns any net. The law is an exponent, or FILE.py:law, a
function of the size. Nets are drawn at every size and predicted where theory serves. The report says the exponent with
its error, whether it is one exponent at all, what theory says it tends to, and how far finite width moves it.

The step is that of gradient descent on random labels; with --optimizer the first one of that optimizer, and with --data
the first one of training on these data, of which every draw takes a mini-batch.

Without a net it asks whether eta* of a residual GELU net of K blocks, branches of two layers times K^-0.75, rises as
K^(1/2), as it does without a stem, or not at all, as it does in the end above one.
"""

import argparse
from typing import Any

import xarray as xr

from meanfield.nets import LOSS_NAMES
from meanfield.transfer import LAW_QUANTITIES, LawQuestion
from sims.common.command import Option, Preset, counted
from sims.common.images import require_installed
from sims.common.results import Results
from sims.common.study import Study
from sims.common.training_data import training_data
from sims.depth_law.nets import is_in_file, law, net_of_size, number
from sims.depth_law.report import REPORT

LISTED = "a law of your own: any net, any size, judged against a rival"

# What is asked for.

QUANTITY = "learning_rate_scale"
# Samples of a mini-batch where data are given.
BATCH = 64
OPTIONS = (
    Option("net", "family, such as MLP or Transformer, or FILE.py:make, a function of the size that returns a net"),
    Option("set", "fields of the family, such as width=512 heads=4 activation=gelu", metavar="NAME=VALUE", many="+"),
    Option("along", "field of the family that is the size (depth by default)", metavar="FIELD"),
    Option("sizes", "three sizes or more", number, metavar="SIZE", many="+"),
    Option("quantity", "whose law it is", default=QUANTITY, choices=list(LAW_QUANTITIES)),
    Option("claim", "exponent that is claimed, or FILE.py:law, a function of the size", metavar="POWER", group="law"),
    Option("rival", "what would be true if the claim were false (default: 0.1 off)", metavar="POWER", group="law"),
    Option(
        "optimizer",
        "whose first step from rest it is, such as adamw, lion, muon or muon-adamw",
        default="sgd",
        metavar="NAME",
        group="step",
    ),
    Option("epsilon", "of optimizers that divide by the size of gradients", float, 0.0, metavar="E", group="step"),
    Option(
        "data",
        "digits, mnist, text (Transformers), or a .npz or .nc file with inputs and labels (default: random labels); a "
        "draw takes longer there, so begin with --draws 64",
        group="step",
    ),
    Option(
        "batch_size",
        f"samples of a mini-batch of the data (default: {BATCH})",
        int,
        metavar="B",
        check=counted("samples of a mini-batch"),
        group="step",
    ),
    Option(
        "loss", "loss of the outputs (default: cross_entropy on data, else squared)", choices=LOSS_NAMES, group="step"
    ),
    Option("theory", "predict even where that takes longer than 15 minutes", flag=True, group="step"),
    Option("no_theory", "draw alone", flag=True, group="step"),
)
PRESETS = {
    "smoke": Preset("4 s", sizes=[4, 8, 16], draws=64),
    "default": Preset("10 s", sizes=[4, 8, 16, 32, 64], draws=512),
    "paper": Preset("10 min", sizes=[4, 8, 16, 32, 64, 128, 256], draws=8192),
}
# The question that is asked without a net: its fields, the exponent without a stem, and that above one.
NET, CLAIM, RIVAL = "ResidualMLP", "0.5", "0"
FIELDS = ("block_depth=2", "scaling=0.75", "activation=gelu", "width=300", "stem=1", "input_width=64")
ASKED = ("depth", QUANTITY, "sgd", None)

# What is measured.


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The question: every net, and the claimed values at every size."""
    claim, rival = options.claim, options.rival
    if options.net is None:
        along = options.along or "depth"
        changed = {word.partition("=")[0] for word in options.set or ()}
        left = [word for word in FIELDS if word.partition("=")[0] not in {*changed, along}]
        make = net_of_size(NET, [*left, *(options.set or ())], along)
        if not changed and (along, options.quantity, options.optimizer, options.data) == ASKED:
            rival = RIVAL if claim is rival is None else rival
            claim = claim or CLAIM
    else:
        if is_in_file(options.net) and (options.set or options.along):
            raise ValueError(f"--net {options.net} makes its nets itself; leave out --set and --along")
        make = net_of_size(options.net, options.set or (), options.along or "depth")
    if options.theory and options.no_theory:
        raise ValueError("--theory and --no-theory ask for opposite things; leave one of them out")
    asked: dict[str, Any] = {
        "quantity": options.quantity,
        "claim": law("--claim", claim),
        "rival": law("--rival", rival),
        "optimizer": options.optimizer,
        "epsilon": options.epsilon,
        "loss": options.loss,
        "theory": True if options.theory else False if options.no_theory else None,
    }
    if options.data is not None:
        require_installed(options.data)
        if options.loss == "squared":
            raise ValueError("labels of data are classes, and loss 'squared' takes values; leave --loss out")
        asked["data"] = lambda size: training_data(options.data, make(size), seed=options.seed)
    batch_size = BATCH if options.batch_size is None and options.data is not None else options.batch_size
    question = LawQuestion.of(make, options.sizes, batch_size=batch_size, **asked)
    for run in question.runs(options.draws, options.seed):
        run.require_memory(options.workers.here)
    return {"question": question}


def measure(options: argparse.Namespace, results: Results, question: LawQuestion) -> xr.Dataset:
    """The dataset of `meanfield.depth_law`, by the workers of the command."""
    law = question.answered(results.draw, options.draws, options.seed)
    return law.assign_attrs(data=options.data or "")


STUDY = Study(
    name="depth_law",
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="10 s",
    planned=planned,
    measure=measure,
    report=REPORT,
)
