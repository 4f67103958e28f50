"""The products of norms that the conditions of Zheng et al. 2026 constrain, of one net by draw."""

import numpy as np
import xarray as xr

from meanfield.common.validation import Array, takes
from meanfield.nets.block_net import BlockNet
from meanfield.theory.update_norms import branch_products


@takes(xr.Dataset, BlockNet)
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


@takes(xr.Dataset, BlockNet)
def scales_of(measured: xr.Dataset, net: BlockNet) -> xr.Dataset:
    """What cells of tables follow from, of one net by draw and role; norms of weights as in `products_of`."""
    roles = list(dict.fromkeys(map(net.role_of, net.weights)))
    shapes = {net.role_of(name): weight.shape for name, weight in net.weights.items() if len(weight.shape) > 1}
    limits = [limit_norm(*shapes[role]) / gaussian_norm(*shapes[role]) if role in shapes else 1.0 for role in roles]
    return measured.assign(role_weight_norm=measured["role_weight_norm"] * limits).assign_coords(role=roles)


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
