"""The spectral conditions of Zheng et al. 2026: products of RMS operator norms against width and depth, per optimizer.

Nets of L blocks of k matrices are drawn and updated by every optimizer, once or more often (--steps), without momentum
or epsilon, under the paper's hyperparameter tables. Slopes of the products that conditions 3.1, B.1 and B.2 constrain
stand beside what these ask, and so do the features before the update and the alignments of claims F.1 and F.2, by which
norms are to say what features do.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.execution import Run
from meanfield.nets import BlockNet
from meanfield.parameterizations import OPTIMIZER_NAMES, hyperparameter_table
from meanfield.simulation import FirstUpdates
from meanfield.theory import branch_products
from meanfield.verification import (
    OFF,
    Check,
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    LadderRow,
    against_conditions,
    ladder_slope,
    ladder_values,
    mean_over_draws,
)
from sims.common.blocks import (
    ACTIVATION,
    BLOCK_OPTIONS,
    DEFAULT,
    DIRECTIONS,
    NETS,
    PAPER,
    PLAIN_RATES,
    RATES,
    SMOKE,
    batch_options,
    block_net,
    gaussian_norm,
    hyperparameters,
    limit_norm,
    measure_ladders,
    planned_ladders,
    require_rate,
    worded,
)
from sims.common.command import Option, Preset, counted
from sims.common.datasets import Variable
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Grid, slope, table

NAME = "spectral_condition"
LISTED = "the spectral conditions of Zheng et al. 2026, in width and depth"

# What is asked for.

OPTIONS = (
    *BLOCK_OPTIONS,
    *batch_options(),
    ACTIVATION,
    Option("steps", "steps that make an update (default: 1)", int, 1, check=counted(), group=""),
    Option("biases", "nets with biases (condition B.3); adamw has those of muon and its like", flag=True, group=""),
)
PRESETS = {
    "smoke": Preset("4 s", **SMOKE, optimizers=["sgd", "adamw", "muon"]),
    "default": Preset("25 s", **DEFAULT, draws=16, optimizers=["all"]),
    "paper": Preset("6 min", **PAPER, draws=64),
}

# What is measured.

OF_BLOCKS = "of blocks their mean over blocks"
MEASURED = {
    "weight_product": ("product of a multiplier and norms of weights", f"over finite Gaussian norms; {OF_BLOCKS}"),
    "update_product": ("product of a multiplier, norms of updates and norms of other weights", OF_BLOCKS),
    "feature_norm": ("root mean square of the stream behind the last block, before the update", ""),
    "weight_alignment": ("share of a weight's norm that the features below it reach", OF_BLOCKS),
    "update_alignment": ("share of an update's norm that the features below it reach", OF_BLOCKS),
}
VARIABLES = (
    *(
        Variable(f"{name}_by_{direction}", words, f"{definition}; over the ladder in {direction}".removeprefix("; "))
        for name, (words, definition) in MEASURED.items()
        for direction in DIRECTIONS
    ),
    Variable("weight_product_name", "product of initial norms, as the conditions write it"),
    Variable("update_product_name", "product with norms of updates, as the conditions write it"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders; with biases, all optimizers are those whose tables have biases."""
    if options.biases and options.optimizers == ["all"]:
        options.optimizers = [name for name in OPTIMIZER_NAMES if "hidden_bias" in hyperparameter_table(name, 2).roles]
    return {"described": planned_ladders(options, "steps", *NETS) | {"biases": int(options.biases)}}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """Products and alignments of every draw over both ladders."""
    require_rate(options)
    table = "one" if options.block_depth == 1 else "many"

    def run_of(width: int, depth: int) -> Run:
        rates = RATES if options.steps == 1 else PLAIN_RATES
        given = {
            name: hyperparameters(name, table, width, depth, rate=options.rate, rates=rates, biases=options.biases)
            for name in options.optimizers
        }
        shape = {name: getattr(options, name) for name in ("block_depth", "biases", *NETS)}
        net = block_net(given[options.optimizers[0]], width, depth, **shape)
        return Run(net, FirstUpdates(hyperparameters=given, steps=options.steps), options.draws, options.seed)

    dataset = measure_ladders(options, results, run_of, lambda _: {}, products_of)
    return dataset.assign_coords(optimizer=options.optimizers).assign_attrs(worded(described))


def products_of(measured: xr.Dataset, net: BlockNet) -> xr.Dataset:
    """The constrained products, |h_L| and the alignments of one net, by draw; those of blocks averaged over blocks.

    Products of weights are over what finite Gaussian matrices have on average (`gaussian_norm`) instead of their
    limit, so that slopes are not those of sqrt(n_in) + sqrt(n_out).
    """
    blocks = (len(measured["draw"]), net.depth, net.block_depth)
    typical = np.array([gaussian_norm(*shape) for shape in net.shapes])
    limit = np.array([limit_norm(*shape) for shape in net.shapes])
    weights = measured["weight_norm"].values * limit / typical
    updates = measured["update_norm"].values
    a_in, a_block, a_out = net.multipliers
    inside = [weights[:, 1:-1].reshape(blocks)[..., i] for i in range(net.block_depth)]
    initial = {"a_0 |W_0|": a_in * weights[:, 0], "a_out |W_out|": a_out * weights[:, -1]}
    if net.biases:
        initial |= bias_products(net, inside, measured["bias_norm"].values, "b")
    rows = []
    for place, update in enumerate(np.moveaxis(updates, 1, 0)):
        moved = [update[:, 1:-1].reshape(blocks)[..., i] for i in range(net.block_depth)]
        products = {
            label(layers, net.block_depth): value.mean(axis=1)
            for layers, value in branch_products(a_block, inside, moved).items()
        }
        if net.biases:
            products |= bias_products(net, inside, measured["bias_update_norm"].values[:, place], "db")
        rows.append({"a_0 |dW_0|": a_in * update[:, 0], "a_out |dW_out|": a_out * update[:, -1], **products})
    unmoved = label((), net.block_depth)
    initial[unmoved] = rows[0][unmoved]
    names = [name for name in rows[0] if name != unmoved]
    updated = [[row[name] for name in names] for row in rows]
    variables = {
        "weight_product": (("weight_product_name", "draw"), np.stack(list(initial.values()))),
        "update_product": (("optimizer", "update_product_name", "draw"), np.stack(updated)),
        "feature_norm": (("draw",), measured["feature_norm"].values[:, -1]),
        "weight_alignment": (("draw",), measured["weight_alignment"].values[:, 1:-1].mean(axis=1)),
        "update_alignment": (("optimizer", "draw"), measured["update_alignment"].values[:, :, 1:-1].mean(axis=2).T),
    }
    return xr.Dataset(variables, {"weight_product_name": list(initial), "update_product_name": names})


def bias_products(net: BlockNet, inside: list[Array], norms: Array, symbol: str) -> dict[str, Array]:
    """What condition B.3 constrains of biases or of their updates to first order: each through the layers above it."""
    products = {f"a_0 |{symbol}_0|": net.multipliers[0] * norms[:, 0]}
    of_blocks = norms[:, 1:].reshape(len(norms), net.depth, net.block_depth)
    for layer in range(net.block_depth):
        above = range(net.block_depth - 1, layer, -1)
        name = " ".join(["a_l", *(f"|W^({i + 1})|" for i in above), f"|{symbol}^({layer + 1})|"])
        through = of_blocks[..., layer] * np.prod([inside[i] for i in above], axis=0)
        products[name] = net.multipliers[1] * through.mean(axis=1)
    return products


def label(updated: tuple[int, ...], block_depth: int) -> str:
    """a_l |W^(2)| |dW^(1)| and the like, for the layers that are updated."""
    factors = [f"|{'d' * (i in updated)}W^({i + 1})|" for i in reversed(range(block_depth))]
    return " ".join(["a_l", *factors])


def order_of(name: str) -> int:
    """How many updates a product has."""
    return name.count("d")


# What is claimed, and what decides it.

# Slopes of norms that are known exactly must not be told from their value by rounding or by how well SSO's sphere is
# kept.
EXACT = 1e-3
# In the words of the report, what has no names of products.
SYMBOLS = {"feature_norm": "|h_L|", "weight_alignment": "F.1", "update_alignment": "F.2"}
# What the evidence says of groups that no draw can refute.
IDENTITY = "; an identity: of these optimizers one step has a norm that no gradient changes"


def weight_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of the initial products."""
    return _rows(dataset, "weight_product")


def update_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of the products with updates, of every optimizer."""
    return _rows(dataset, "update_product")


def feature_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of |h_L| before the update: root mean squares over units and samples."""
    return _rows(dataset, "feature_norm")


def alignment_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of the alignments of claims F.1 (weights) and F.2 (updates)."""
    return [*_rows(dataset, "weight_alignment"), *_rows(dataset, "update_alignment")]


@dataclass(frozen=True)
class _Ladder:
    """One quantity along one ladder: its variable at these labels."""

    name: str
    variable: str
    direction: str
    labels: dict[str, str]


def _ladders(dataset: xr.Dataset, variable: str) -> list[_Ladder]:
    """Of every optimizer and product, if the variable has any."""
    ladders, product_name = [], f"{variable}_name"
    for direction in DIRECTIONS:
        dims = [dim for dim in ("optimizer", product_name) if dim in dataset[f"{variable}_by_{direction}"].dims]
        for place in product(*(dataset[dim].values for dim in dims)):
            labels = dict(zip(dims, map(str, place), strict=True))
            name = labels[product_name] if product_name in labels else SYMBOLS[variable]
            ladders.append(_Ladder(name, variable, direction, labels))
    return ladders


def _row(dataset: xr.Dataset, ladder: _Ladder) -> LadderRow:
    name, direction = ladder.name, ladder.direction
    values = ladder_values(dataset, ladder.variable, direction, **ladder.labels)
    # Two samples of opposite labels all but cancel in biases, to which they are alike: no single draw's logarithm means
    # anything there, the mean over draws does.
    usual = mean_over_draws(values, power=1) if "|db" in name else values
    slope, condition = ladder_slope(dataset[direction].values, usual), _condition(dataset, name, direction)
    return LadderRow(name, direction, slope, ladder.labels.get("optimizer", ""), condition=condition, granted=EXACT)


def _rows(dataset: xr.Dataset, variable: str) -> list[LadderRow]:
    return [_row(dataset, ladder) for ladder in _ladders(dataset, variable)]


def block_depth(dataset: xr.Dataset) -> int:
    return int(dataset.attrs["block_depth"])


def _condition(dataset: xr.Dataset, name: str, direction: str) -> float:
    """The exponent that the condition asks for: 1/L in blocks, but 1/sqrt(L) initially where k = 1 (B.1)."""
    if direction == "width" or not name.startswith("a_l"):
        return 0.0
    return -0.5 if block_depth(dataset) == 1 and order_of(name) == 0 else -1.0


def groups(dataset: xr.Dataset) -> dict[str, tuple[str, list[_Ladder]]]:
    """Ladders by the condition that constrains their slopes, with the claim in words; no groups without a ladder."""
    updates = _ladders(dataset, "update_product")
    inside = [ladder for ladder in updates if ladder.name.startswith("a_l")]
    outside = [ladder for ladder in updates if ladder not in inside]
    all_groups = {
        "C1": ("weights meet the initial condition (C1.1, C1.2)", _ladders(dataset, "weight_product")),
        "features": ("features are of order one before the update", _ladders(dataset, "feature_norm")),
        "C2.1": ("input and output updates are of order one (C2.1)", outside),
        "C2.2": ("first-order products are 1/L (C2.2)", [ladder for ladder in inside if order_of(ladder.name) == 1]),
        "C2.3": ("products of higher order are 1/L (C2.3)", [ladder for ladder in inside if order_of(ladder.name) > 1]),
        "F.1": ("weights reach a fixed share of their norm (F.1)", _ladders(dataset, "weight_alignment")),
        "F.2": ("updates reach a fixed share of their norm (F.2)", _ladders(dataset, "update_alignment")),
    }
    return {name: group for name, group in all_groups.items() if group[1]}


JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every group of products, and the two claims on alignment."""
    return [judge_group(dataset, name) for name in groups(dataset)]


@JUDGES.decide(
    claim="{claimed}",
    rival="half a power of width or depth off",
    measured="slopes in width and in depth of each product, norm or share so named, less the exponents that the "
    "condition asks for",
)
def judge_group(dataset: xr.Dataset, name: str) -> Contest:
    by_name = groups(dataset)
    claimed, ladders = by_name[name]
    rows = [_row(dataset, ladder) for ladder in ladders]
    claim, rival = against_conditions(rows)
    worst = rows[int(np.argmax(np.abs(claim.difference)))]
    far = f"{worst.slope} for {worst.condition:+g} ({worst.where})"
    note = IDENTITY if is_identity(dataset, name) else ""
    comparisons = sum(len(ladders) for _, ladders in by_name.values())
    made = Contest(claim, rival, apart=OFF, gaussian=True, note=note, comparisons=comparisons)
    return made.saying(f"{len(rows)} slopes, farthest {far}", claimed=claimed)


def is_identity(dataset: xr.Dataset, name: str) -> bool:
    """Whether a group holds by construction: in one step the norm of every update but SGD's is known before it."""
    return name.startswith("C2") and int(dataset.attrs["steps"]) == 1 and "sgd" not in dataset["optimizer"].values


NORMALISED = tuple(name for name in OPTIMIZER_NAMES if name != "sgd")
PRODUCTS = ("C1", "C2.1", "C2.2")
# What nets are before any step, whatever optimizer takes it.
BEFORE = ("C1", "features", "F.1")
# After several steps norms of updates depend on how steps add up. Without momentum the other optimizers take the steps
# of these, but for SSO, and for Sophia where curvature is large.
TRAINED = ("--steps", "10", "--times", "2", "--optimizers", "sgd", "adamw", "muon")


def conditions(
    names: Sequence[str], *arguments: str, times: int, normalised: Sequence[str] = NORMALISED
) -> tuple[Check, ...]:
    """Of all optimizers, SGD with ``times`` the draws of the others: its step scatters as the gradient does.

    What nets are before the step is judged by those draws alone, as the others' nets are the first of them.
    """
    stepped = [name for name in names if name not in BEFORE]
    runs = {("--optimizers", *normalised): stepped, ("--optimizers", "sgd", "--times", str(times)): names}
    return tuple(
        Check(NAME, partial(judge_group, name=name), (*arguments, *run))
        for run, judged in runs.items()
        for name in judged
    )


# Blocks of one matrix with ReLU behind it.
RELU = ("--block-depth", "1", "--activation", "relu")


def _group(name: str, *arguments: str) -> Check:
    return Check(NAME, partial(judge_group, name=name), arguments)


# What the default preset runs: widths and blocks of the products.
RUN = "on eight samples and four outputs, without momentum, widths 64 .. 512 and 2 .. 32 blocks"
LATER = "ten steps of SGD, AdamW and Muon, after which norms are no identities"

CLAIMS = (
    Claim(
        id="S1",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition 3.1",
        statement="k = 2: weights, updates and their products scale as stated under the parameterizations of tables "
        "3-7 (after one step, when norms of updates are identities for all optimizers but SGD, and after ten)",
        brief="k = 2: weights, updates and their products scale as stated, by tables 3-7",
        printed='"the initial weights and their per-step updates should satisfy: ... alpha_l |W_l^(2)|_R |W_l^(1)|_R '
        '= Theta(1/L) ... alpha_l |Delta W_l^(2)|_R |Delta W_l^(1)|_R = Theta(1/L)" (condition 3.1)',
        hypotheses=f"linear nets, one step on one sample; checked with all nine optimizers, and in {LATER}, {RUN}",
        checks=(
            *conditions((*PRODUCTS, "C2.3"), times=6),
            *(_group(name, *TRAINED) for name in ("C2.1", "C2.2", "C2.3")),
        ),
    ),
    Claim(
        id="S2a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.1",
        statement="k = 1, linear: under the multiplier L^(-1/2) weights and updates scale as stated (after one step, "
        "when norms of updates are identities for all optimizers but SGD, and after ten), and features before training",
        brief="k = 1, linear: weights, updates and features scale as stated under L^(-1/2)",
        printed='"Hidden weights: alpha_l |W_l|_R = O(1/sqrt(L)) ... Hidden weights (first-order): alpha_l |Delta '
        'W_l|_R = Theta(1/L)" (condition B.1)',
        hypotheses=f"one step on one sample; checked with all nine optimizers, and in {LATER}, {RUN}",
        checks=(
            *conditions((*PRODUCTS, "features"), "--block-depth", "1", times=5),
            *(_group(name, "--block-depth", "1", *TRAINED) for name in ("C2.1", "C2.2")),
        ),
    ),
    Claim(
        id="S2b",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, condition B.1, taken to ReLU as appendix G takes eq. 2",
        statement="k = 1: the multiplier L^(-1/2) keeps features of order one with ReLU behind every matrix, too",
        brief="k = 1: L^(-1/2) keeps features of order one with ReLU behind every matrix, too",
        printed='"We assume that the activation function preserves the asymptotic order of the feature norms, ensuring '
        'that the scaling properties ... remain valid for the post-activations" (appendix G.1)',
        hypotheses="that activations keep the order of norms (assumption G.2), which ReLU does, and that the blocks' "
        "summands have zero mean (appendix B), which they then have not; the paper's own ReLU nets (eq. 28) have k = 2 "
        "and the multiplier 1/L. Features before any step, width 128, 2 .. 32 blocks",
        checks=(_group("features", *RELU, "--times", "2", "--optimizers", "adamw"),),
        replaced_by="|h_L| grows as about L^0.8 over 2 .. 32 blocks; in theory as exp(c L^(1/2))",
        premise="that a block adds to the stream without preference of sign; ReLU adds a positive mean L times",
    ),
    Claim(
        id="S4",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.3",
        statement="biases whose size and update are of order one (eq. 13) meet the parts of condition B.3 that are "
        "initial or of first order",
        brief="biases that obey eq. 13 meet condition B.3's initial and first-order parts",
        printed='"all bias-related spectral conditions can be satisfied simultaneously by initializing and training '
        'with biases of order Theta(1)" (condition B.3)',
        hypotheses="its second-order products are not checked. Linear nets of k = 2, biases of variance 1; one step of "
        f"SGD and of AdamW, Lion and Sophia, of which norms are identities, {RUN}",
        checks=conditions(PRODUCTS, "--biases", times=6, normalised=("adamw", "lion", "sophia")),
    ),
    Claim(
        id="S6",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, claims F.1, F.2",
        statement="features and updates reach a share of what the norms allow that neither width nor depth changes",
        brief="features and updates reach a share of what norms allow that no size changes",
        printed='"an update Delta W_l^(2) given by gradient descent with batch size 1, we have |Delta W_l^(2) '
        'W_l^(1) h_(l-1)(x)|_R = Theta(|Delta W_l^(2)|_R |W_l^(1)|_R |h_(l-1)(x)|_R)" (claim F.2)',
        hypotheses="F.2 of gradient descent on one sample, whose update of rank one reads the feature it is made of. "
        "Checked beyond that, where gradients have ranks above one: linear nets of k = 2, one step of all nine "
        f"optimizers, {RUN}",
        checks=conditions(("F.1", "F.2"), times=6),
    ),
)


# What is printed.


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    rows = [*weight_rows(dataset), *update_rows(dataset)]
    off = [abs(row.slope.settled - row.condition) for row in rows]
    return answer(findings, f"{len(off)} slopes are {max(off):.2g} off at most, {np.median(off):.2g} in the middle")


def _weights(dataset: xr.Dataset) -> Grid:
    by = {(row.name, row.direction): row for row in (*weight_rows(dataset), *feature_rows(dataset))}
    lines = []
    for name in dict.fromkeys(name for name, _ in by):
        cells = [by[name, direction] for direction in DIRECTIONS]
        lines.append([name, *(cell for row in cells for cell in (_slope(row), f"{row.condition:+g}"))])
    return table(["initially", ["in width", "condition"], ["in depth", "condition"]], lines)


def _updates(dataset: xr.Dataset) -> list[Grid]:
    """A table for every ladder: what the condition asks of each product, and its slopes by optimizer."""
    rows, tables = update_rows(dataset), []
    for direction in DIRECTIONS:
        along = [row for row in rows if row.direction == direction]
        wanted = {row.name: f"{row.condition:+g}" for row in along}
        lines = [["condition", *wanted.values()]]
        for optimizer in dict.fromkeys(row.optimizer for row in along):
            lines.append([optimizer, *(_slope(row) for row in along if row.optimizer == optimizer)])
        tables.append(table([f"in {direction}", *wanted], lines))
    return tables


def _aligned(dataset: xr.Dataset) -> Grid:
    rows, lines = alignment_rows(dataset), []
    for optimizer in dict.fromkeys(row.optimizer for row in rows):
        slopes = [_slope(row) for row in rows if row.optimizer == optimizer]
        aligned = dataset["update_alignment_by_depth"] if optimizer else dataset["weight_alignment_by_depth"]
        last = aligned.sel(optimizer=optimizer) if optimizer else aligned
        lines.append([optimizer or "weights (F.1)", f"{float(last.isel(depth=-1).mean()):.3f}", *slopes])
    header = ["|A z| / (|A| |z|), A =", "deepest net", "slope in width", "slope in depth"]
    return table(header, lines, "Alignment of matrices and of their updates (F.2) with what they read, in blocks")


def _slope(row: LadderRow) -> str:
    return slope(row.slope.settled, row.slope.settled_stderr)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Do weights, updates and their products scale as Zheng et al. 2026 ask?",
        answer=_answer,
        heading="L blocks of {block_depth} {activation} layers; widths {widths} at L = {depth}, L = {depths} at width "
        "{width}\nupdates of {steps} steps on {samples} samples, {outputs} outputs, under each optimizer's table\n"
        "{draws} draws, seed {seed}; |.| are RMS operator norms\n"
        "slopes: log y = a + s log x + c / x (depths: + d / L^2), draw by draw; weights over finite Gaussian norms",
        parts=[_weights, _updates, _aligned],
        findings=findings,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
