"""Zheng et al. 2026, conditions 3.1, B.1, B.2, B.3, against measured norms: products, their slopes, verdicts."""

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.nets.families.block_net import BlockNet
from meanfield.parameterizations import OPTIMIZERS
from meanfield.theory.laws.spectral_conditions import branch_products
from meanfield.verification.claims import Check, Claim
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.ladder_slopes import OFF, LadderRow, against_conditions, ladder_slope, mean_over_draws
from meanfield.verification.verdicts import Finding
from meanfield.verification.zheng_2026 import update_orders

DIRECTIONS = ("width", "depth")
# Slopes of norms that are known exactly must not be told from their value by rounding or by how well SSO's sphere is
# kept.
EXACT = 1e-3
# What the evidence says of groups that no draw can refute.
IDENTITY = "; an identity: of these optimizers one step has a norm that no gradient changes"


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


def gaussian_norm(outputs: int, inputs: int) -> float:
    """Mean RMS operator norm of a matrix of unit variance, up to o(n^(-2/3)) (Johnstone, Tracy-Widom mean -1.2065)."""
    if min(outputs, inputs) == 1:
        return float(np.sqrt(inputs / outputs) * np.sqrt(max(outputs, inputs)))
    edge = (np.sqrt(outputs) + np.sqrt(inputs)) ** 2
    width = np.sqrt(edge) * (1 / np.sqrt(outputs) + 1 / np.sqrt(inputs)) ** (1 / 3)
    return float(np.sqrt(inputs / outputs) * np.sqrt(edge - 1.2065 * width))


def limit_norm(outputs: int, inputs: int) -> float:
    """Theta's argument in eq. 6 with the larger root alone: what the norm is proportional to at infinite width."""
    return float(np.sqrt(inputs / outputs) * np.sqrt(max(outputs, inputs)))


def weight_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of the initial products."""
    return _rows(dataset, "weight_product")


def update_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of the products with updates, of every optimizer."""
    return _rows(dataset, "update_product")


def feature_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of |h_L| before the update: root mean squares over units and samples."""
    return _rows(dataset, "feature_norm", "|h_L|")


def alignment_rows(dataset: xr.Dataset) -> list[LadderRow]:
    """Slopes of the alignments of claims F.1 (weights) and F.2 (updates)."""
    return [*_rows(dataset, "weight_alignment", "F.1"), *_rows(dataset, "update_alignment", "F.2")]


def _rows(dataset: xr.Dataset, variable: str, name: str = "") -> list[LadderRow]:
    """Of every optimizer and product, if the variable has any; ``name`` is that of a variable without products."""
    rows = []
    for direction in DIRECTIONS:
        at = dataset[f"{variable}_by_{direction}"].transpose(..., direction, "draw")
        labels = [dim for dim in ("optimizer", f"{variable}_name") if dim in at.dims]
        for place in product(*(at[dim].values for dim in labels)):
            where = dict(zip(labels, map(str, place), strict=True))
            label, values = where.get(f"{variable}_name", name), at.sel(where).values
            # Two samples of opposite labels all but cancel in biases, to which they are alike: no single draw's
            # logarithm means anything there, the mean over draws does.
            usual = mean_over_draws(values, power=1) if "|db" in label else values
            slope, condition = ladder_slope(dataset[direction].values, usual), _condition(dataset, label, direction)
            optimizer = where.get("optimizer", "")
            rows.append(LadderRow(label, direction, slope, optimizer, condition=condition, granted=EXACT))
    return rows


def block_depth(dataset: xr.Dataset) -> int:
    return int(dataset.attrs["block_depth"])


def _condition(dataset: xr.Dataset, name: str, direction: str) -> float:
    """The exponent that the condition asks for: 1/L in blocks, but 1/sqrt(L) initially where k = 1 (B.1)."""
    if direction == "width" or not name.startswith("a_l"):
        return 0.0
    return -0.5 if block_depth(dataset) == 1 and order_of(name) == 0 else -1.0


def groups(dataset: xr.Dataset) -> dict[str, tuple[str, list[LadderRow]]]:
    """Slopes by the condition that constrains them, with the claim in words; no groups that this net has nothing of."""
    updates, aligned = update_rows(dataset), alignment_rows(dataset)
    inside = [row for row in updates if row.name.startswith("a_l")]
    all_groups = {
        "C1": ("weights meet the initial condition (C1.1, C1.2)", weight_rows(dataset)),
        "features": ("features are of order one before the update", feature_rows(dataset)),
        "C2.1": ("input and output updates are of order one (C2.1)", [row for row in updates if row not in inside]),
        "C2.2": ("first-order products are 1/L (C2.2)", [row for row in inside if order_of(row.name) == 1]),
        "C2.3": ("products of higher order are 1/L (C2.3)", [row for row in inside if order_of(row.name) > 1]),
        "F.1": ("weights reach a fixed share of their norm (F.1)", [row for row in aligned if row.name == "F.1"]),
        "F.2": ("updates reach a fixed share of their norm (F.2)", [row for row in aligned if row.name == "F.2"]),
    }
    return {name: group for name, group in all_groups.items() if group[1]}


# The judges of `sims.spectral_condition`.
JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every group of products, and the two claims on alignment."""
    return [judge_group(dataset, name) for name in groups(dataset)]


@JUDGES.decide
def judge_group(dataset: xr.Dataset, name: str) -> Contest:
    """{claimed}; rival: half a power of width or depth off; measured: slopes in width and in depth of all that the
    claim is about, less the exponents that it asks for."""
    by_name = groups(dataset)
    claimed, rows = by_name[name]
    claim, rival = against_conditions(rows)
    worst = rows[int(np.argmax(np.abs(claim.difference)))]
    far = f"{worst.slope} for {worst.condition:+g} ({worst.where})"
    note = IDENTITY if is_identity(dataset, name) else ""
    made = Contest(
        claim, rival, apart=OFF, gaussian=True, note=note, comparisons=sum(len(rows) for _, rows in by_name.values())
    )
    return made.saying(f"{len(rows)} slopes, farthest {far}", claimed=claimed)


def is_identity(dataset: xr.Dataset, name: str) -> bool:
    """Whether a group holds by construction: in one step the norm of every update but SGD's is known before it."""
    return name.startswith("C2") and int(dataset.attrs["steps"]) == 1 and "sgd" not in dataset["optimizer"].values


NORMALISED = tuple(name for name in OPTIMIZERS if name != "sgd")
PRODUCTS = ("C1", "C2.1", "C2.2")
# What nets are before any step, whatever optimizer takes it.
BEFORE = ("C1", "features", "F.1")
# After several steps norms of updates depend on how steps add up. Without momentum the other optimizers take the steps
# of these, but for SSO, and for Sophia where curvature is large.
TRAINED = ("--steps", "10", "--times", "2", "--optimizers", "sgd", "adamw", "muon")


def _conditions(
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
        source="Zheng et al. 2026, condition 3.1",
        statement="k = 2: weights, updates and their products scale as stated under the parameterizations of tables "
        "3-7 (after one step, when norms of updates are identities for all optimizers but SGD, and after ten)",
        hypotheses=f"linear nets, one step on one sample; checked with all nine optimizers, and in {LATER}, {NETS}",
        checks=(
            *_conditions((*PRODUCTS, "C2.3"), times=6),
            *(_group(name, *TRAINED) for name in ("C2.1", "C2.2", "C2.3")),
        ),
    ),
    Claim(
        id="S2a",
        source="Zheng et al. 2026, condition B.1",
        statement="k = 1, linear: under the multiplier L^(-1/2) weights, updates and features scale as stated (after "
        "one step, when norms of updates are identities for all optimizers but SGD, and after ten)",
        hypotheses=f"one step on one sample; checked with all nine optimizers, and in {LATER}, {NETS}",
        checks=(
            *_conditions((*PRODUCTS, "features"), "--block-depth", "1", times=5),
            *(_group(name, "--block-depth", "1", *TRAINED) for name in ("C2.1", "C2.2")),
        ),
    ),
    Claim(
        id="S2b",
        source="Zheng et al. 2026, condition B.1, extended to nonlinearities by section 3.2 and appendix G",
        statement="k = 1: the multiplier L^(-1/2) keeps features of order one with ReLU behind every matrix, too",
        hypotheses="that activations keep the order of norms (assumption G.2), which ReLU does; the paper's own ReLU "
        "nets (eq. 28) have k = 2 and the multiplier 1/L. Features before any step, width 128, 2 .. 32 blocks",
        checks=(_group("features", *RELU, "--times", "2", "--optimizers", "adamw"),),
        replaced_by="|h_L| grows faster than any power of L, as exp(c L^(1/2))",
        premise="that a block adds to the stream without preference of sign; ReLU adds a positive mean L times",
    ),
    Claim(
        id="S3a",
        source="Zheng et al. 2026, condition B.2",
        statement="k = 3 obeys the rule of k = 2: weights, updates and their products after one step, and, as at k = "
        "2, all orders of a block's update are of order one after ten steps of SGD, AdamW and Muon",
        hypotheses=f"linear nets; products of all nine optimizers, {NETS}; orders {update_orders.NETS}",
        checks=(
            *_conditions((*PRODUCTS, "C2.3"), "--block-depth", "3", times=10),
            *update_orders.all_orders(2, 3),
        ),
    ),
    Claim(
        id="S4",
        source="Zheng et al. 2026, condition B.3",
        statement="biases join with scales of order one",
        hypotheses=f"linear nets of k = 2, biases of variance 1; one step of SGD and of AdamW, Lion and Sophia, of "
        f"which norms are identities, {NETS}",
        checks=_conditions(PRODUCTS, "--biases", times=6, normalised=("adamw", "lion", "sophia")),
    ),
    Claim(
        id="S6",
        source="Zheng et al. 2026, claims F.1, F.2",
        statement="features and updates reach a share of what the norms allow that neither width nor depth changes",
        hypotheses="F.2 of gradient descent on one sample, whose update of rank one reads the feature it is made of. "
        "Checked beyond that, where gradients have ranks above one: linear nets of k = 2, one step of all nine "
        f"optimizers, {NETS}",
        checks=_conditions(("F.1", "F.2"), times=6),
    ),
)
