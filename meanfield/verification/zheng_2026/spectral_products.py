"""Zheng et al. 2026, conditions 3.1, B.1, B.2, B.3, against measured norms: slopes of products, verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import xarray as xr

from meanfield.parameterizations import OPTIMIZER_NAMES
from meanfield.verification.claims import Check, Claim, Kind
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.series import (
    OFF,
    LadderRow,
    against_conditions,
    ladder_slope,
    ladder_values,
    mean_over_draws,
)
from meanfield.verification.verdicts import Finding
from meanfield.verification.zheng_2026.norm_products import order_of

DIRECTIONS = ("width", "depth")
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


# The judges of `sims.spectral_condition`.
JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every group of products, and the two claims on alignment."""
    return [judge_group(dataset, name) for name in groups(dataset)]


@JUDGES.decide
def judge_group(dataset: xr.Dataset, name: str) -> Contest:
    """{claimed}; rival: half a power of width or depth off; measured: slopes in width and in depth of each product,
    norm or share so named, less the exponents that the condition asks for."""
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
        Check("spectral_condition", partial(judge_group, name=name), (*arguments, *run))
        for run, judged in runs.items()
        for name in judged
    )


# Blocks of one matrix with ReLU behind it.
RELU = ("--block-depth", "1", "--activation", "relu")


def _group(name: str, *arguments: str) -> Check:
    return Check("spectral_condition", partial(judge_group, name=name), arguments)


# What the default preset runs: widths and blocks of the products.
NETS = "on eight samples and four outputs, without momentum, widths 64 .. 512 and 2 .. 32 blocks"
LATER = "ten steps of SGD, AdamW and Muon, after which norms are no identities"

CLAIMS = (
    Claim(
        id="S1",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition 3.1",
        statement="k = 2: weights, updates and their products scale as stated under the parameterizations of tables "
        "3-7 (after one step, when norms of updates are identities for all optimizers but SGD, and after ten)",
        printed='"the initial weights and their per-step updates should satisfy: ... alpha_l |W_l^(2)|_R |W_l^(1)|_R '
        '= Theta(1/L) ... alpha_l |Delta W_l^(2)|_R |Delta W_l^(1)|_R = Theta(1/L)" (condition 3.1)',
        hypotheses=f"linear nets, one step on one sample; checked with all nine optimizers, and in {LATER}, {NETS}",
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
        printed='"Hidden weights: alpha_l |W_l|_R = O(1/sqrt(L)) ... Hidden weights (first-order): alpha_l |Delta '
        'W_l|_R = Theta(1/L)" (condition B.1)',
        hypotheses=f"one step on one sample; checked with all nine optimizers, and in {LATER}, {NETS}",
        checks=(
            *conditions((*PRODUCTS, "features"), "--block-depth", "1", times=5),
            *(_group(name, "--block-depth", "1", *TRAINED) for name in ("C2.1", "C2.2")),
        ),
    ),
    Claim(
        id="S2b",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.1, extended to nonlinearities by section 3.2 and appendix G",
        statement="k = 1: the multiplier L^(-1/2) keeps features of order one with ReLU behind every matrix, too",
        printed='"the activation function preserves the asymptotic order of the feature norms, ensuring that the '
        'scaling properties ... remain valid for the post-activations" (appendix G.1)',
        hypotheses="that activations keep the order of norms (assumption G.2), which ReLU does; the paper's own ReLU "
        "nets (eq. 28) have k = 2 and the multiplier 1/L. Features before any step, width 128, 2 .. 32 blocks",
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
        printed='"all bias-related spectral conditions can be satisfied simultaneously by initializing and training '
        'with biases of order Theta(1)" (condition B.3)',
        hypotheses="its second-order products are not checked. Linear nets of k = 2, biases of variance 1; one step of "
        f"SGD and of AdamW, Lion and Sophia, of which norms are identities, {NETS}",
        checks=conditions(PRODUCTS, "--biases", times=6, normalised=("adamw", "lion", "sophia")),
    ),
    Claim(
        id="S6",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, claims F.1, F.2",
        statement="features and updates reach a share of what the norms allow that neither width nor depth changes",
        printed='"an update Delta W_l^(2) given by gradient descent with batch size 1, we have |Delta W_l^(2) '
        'W_l^(1) h_(l-1)(x)|_R = Theta(|Delta W_l^(2)|_R |W_l^(1)|_R |h_(l-1)(x)|_R)" (claim F.2)',
        hypotheses="F.2 of gradient descent on one sample, whose update of rank one reads the feature it is made of. "
        "Checked beyond that, where gradients have ranks above one: linear nets of k = 2, one step of all nine "
        f"optimizers, {NETS}",
        checks=conditions(("F.1", "F.2"), times=6),
    ),
)
