"""P1's conditions 3.1, B.1 and B.2 held against measured norms: products, their slopes, verdicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.nets.families.block_net import BlockNet
from meanfield.theory.laws.spectral_conditions import branch_products
from meanfield.verification.ladder_slopes import LadderSlope, ladder_slope, mean_over_draws
from meanfield.verification.verdicts import Deviation, Finding, weigh

Array = NDArray[np.float64]

DIRECTIONS = ("width", "depth")
# Slopes of norms that are known exactly must not be told from their value by rounding or by how well SSO's sphere is
# kept.
EXACT = 1e-3


def products_of(measured: xr.Dataset, net: BlockNet) -> xr.Dataset:
    """The constrained products and the alignments of one net, draw by draw; those of blocks averaged over blocks.

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
            label(chosen, net.block_depth): value.mean(axis=1)
            for chosen, value in branch_products(a_block, inside, moved).items()
        }
        if net.biases:
            products |= bias_products(net, inside, measured["bias_update_norm"].values[:, place], "db")
        rows.append({"a_0 |dW_0|": a_in * update[:, 0], "a_out |dW_out|": a_out * update[:, -1], **products})
    unmoved = label((), net.block_depth)
    initial[unmoved] = rows[0][unmoved]
    names = [name for name in rows[0] if name != unmoved]
    updated = [[row[name] for name in names] for row in rows]
    alignments = measured["weight_alignment"].values, measured["update_alignment"].values
    return xr.Dataset(
        {
            "weight_product": (("weight_product_name", "draw"), np.stack(list(initial.values()))),
            "update_product": (
                ("optimizer", "update_product_name", "draw"),
                np.stack(updated),
            ),
            "weight_alignment": (("draw",), alignments[0][:, 1:-1].mean(axis=1)),
            "update_alignment": (("optimizer", "draw"), alignments[1][:, :, 1:-1].mean(axis=2).T),
        },
        {"weight_product_name": list(initial), "update_product_name": names},
    )


def bias_products(net: BlockNet, inside: list[Array], norms: Array, symbol: str) -> dict[str, Array]:
    """What condition B.3 constrains of biases or of their updates to first order: each through the layers above it."""
    found = {f"a_0 |{symbol}_0|": net.multipliers[0] * norms[:, 0]}
    of_blocks = norms[:, 1:].reshape(len(norms), net.depth, net.block_depth)
    for layer in range(net.block_depth):
        above = range(net.block_depth - 1, layer, -1)
        name = " ".join(["a_l", *(f"|W^({i + 1})|" for i in above), f"|{symbol}^({layer + 1})|"])
        product = of_blocks[..., layer] * np.prod([inside[i] for i in above], axis=0)
        found[name] = net.multipliers[1] * product.mean(axis=1)
    return found


def label(chosen: tuple[int, ...], block_depth: int) -> str:
    """a_l |W^(2)| |dW^(1)| and the like, for the layers that are updated."""
    factors = [f"|{'d' * (i in chosen)}W^({i + 1})|" for i in reversed(range(block_depth))]
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
    """Theta's argument in P1 eq. 6 with the larger root alone: what the norm is proportional to at infinite width."""
    return float(np.sqrt(inputs / outputs) * np.sqrt(max(outputs, inputs)))


@dataclass(frozen=True)
class Row:
    """One product's slope along one ladder, and what the condition asks for."""

    name: str
    optimizer: str
    direction: str
    slope: LadderSlope
    condition: float


def weight_rows(dataset: xr.Dataset) -> list[Row]:
    """Slopes of the initial products."""
    found = []
    for direction in DIRECTIONS:
        at = dataset[f"weight_product_by_{direction}"].transpose("weight_product_name", direction, "draw")
        for name, values in zip(map(str, at["weight_product_name"].values), at.values, strict=True):
            slope = ladder_slope(dataset[direction].values, values)
            found.append(Row(name, "", direction, slope, condition_of(name, direction, block_depth(dataset))))
    return found


def update_rows(dataset: xr.Dataset) -> list[Row]:
    """Slopes of the products with updates, of every optimizer."""
    found = []
    for direction in DIRECTIONS:
        at = dataset[f"update_product_by_{direction}"]
        at = at.transpose("optimizer", "update_product_name", direction, "draw")
        for optimizer, products in zip(map(str, at["optimizer"].values), at.values, strict=True):
            for name, values in zip(map(str, at["update_product_name"].values), products, strict=True):
                # Two samples of opposite labels all but cancel in biases, to which they are alike: no single draw's
                # logarithm means anything there, the mean over draws does.
                usual = mean_over_draws(values, power=1) if "|db" in name else values
                slope = ladder_slope(dataset[direction].values, usual)
                wanted = condition_of(name, direction, block_depth(dataset))
                found.append(Row(name, optimizer, direction, slope, wanted))
    return found


def alignment_rows(dataset: xr.Dataset) -> list[Row]:
    """Slopes of the alignments of claims F.1 (weights) and F.2 (updates)."""
    found = []
    for direction in DIRECTIONS:
        sizes = dataset[direction].values
        own = dataset[f"weight_alignment_by_{direction}"].transpose(direction, "draw").values
        found.append(Row("F.1", "", direction, ladder_slope(sizes, own), 0.0))
        at = dataset[f"update_alignment_by_{direction}"].transpose("optimizer", direction, "draw")
        for optimizer, values in zip(map(str, at["optimizer"].values), at.values, strict=True):
            found.append(Row("F.2", optimizer, direction, ladder_slope(sizes, values), 0.0))
    return found


def block_depth(dataset: xr.Dataset) -> int:
    return int(dataset.attrs["block_depth"])


def condition_of(name: str, direction: str, layers: int) -> float:
    """The exponent that the condition asks for: 1/L in blocks, but 1/sqrt(L) initially where k = 1 (B.1)."""
    if direction == "width" or not name.startswith("a_l"):
        return 0.0
    return -0.5 if layers == 1 and order_of(name) == 0 else -1.0


def groups(dataset: xr.Dataset) -> dict[str, tuple[str, list[Row]]]:
    """Slopes by the condition that constrains them, with the claim in words; no groups that this net has nothing of."""
    updates = update_rows(dataset)
    inside = [row for row in updates if row.name.startswith("a_l")]
    aligned = alignment_rows(dataset)
    found = {
        "C1": ("weights meet the initial condition (C1.1, C1.2)", weight_rows(dataset)),
        "C2.1": ("input and output updates are of order one (C2.1)", [row for row in updates if row not in inside]),
        "C2.2": ("first-order products are 1/L (C2.2)", [row for row in inside if order_of(row.name) == 1]),
        "C2.3": ("products of higher order are 1/L (C2.3)", [row for row in inside if order_of(row.name) > 1]),
        "F.1": ("weights reach a fixed share of their norm (F.1)", [row for row in aligned if row.name == "F.1"]),
        "F.2": ("updates reach a fixed share of their norm (F.2)", [row for row in aligned if row.name == "F.2"]),
    }
    return {name: group for name, group in found.items() if group[1]}


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per group of products, and the two claims on alignment; the rival must be out at every slope."""
    return [judge_group(dataset, name) for name in groups(dataset)]


def judge_group(dataset: xr.Dataset, name: str) -> Finding:
    """All slopes of one group are those that the condition asks for; rival: half a power off."""
    found = groups(dataset)
    return _finding(dataset, *found[name], sum(len(rows) for _, rows in found.values()))


def _finding(dataset: xr.Dataset, claim: str, rows: list[Row], comparisons: int) -> Finding:
    difference = np.array([row.slope.settled - row.condition for row in rows])
    stderr = np.array([row.slope.settled_stderr for row in rows])
    allowance = np.array([row.slope.allowance for row in rows]) + EXACT
    inside = Deviation(difference, stderr, allowance)
    weakest = [int(np.argmin(Deviation(np.abs(difference) - 0.5, stderr, allowance).excess))]
    rival = Deviation(np.abs(difference[weakest]) - 0.5, stderr[weakest], allowance[weakest])
    worst = rows[int(np.argmax(np.abs(difference)))]
    shown = (
        f"{len(rows)} slopes, farthest {worst.slope.settled:+.3f} +- {worst.slope.settled_stderr:.3f} for "
        f"{worst.condition:+g} ({worst.name}{', ' * bool(worst.optimizer)}{worst.optimizer}, in {worst.direction})"
    )
    titles, draws = (claim, "half a power of width or depth off"), dataset.attrs["draws"]
    return weigh(titles, inside, rival, comparisons=comparisons, draws=draws, shown=shown)
