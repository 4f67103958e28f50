"""The change of a stream by the order of the block's own updates in it (Zheng et al. 2026, eqs. 5, 26).

In a linear net of blocks, with W -> W + Delta W in every matrix,

    Delta h_s = Delta h_0 + sum_{j=0}^k epsilon_j(s)
    epsilon_j(s) = sum_{l<=s} a_l [terms with j factors Delta W_l^(i) in block l] applied to h_{l-1} + Delta h_{l-1}

but for j = 0, where W_l^(k) .. W_l^(1) is applied to Delta h_{l-1}: what earlier blocks have changed, carried along.
The net's first unit makes h_0; the others are the blocks (appendix B.2 of the paper).
"""

from collections.abc import Mapping
from dataclasses import replace

from meanfield.common.arrays import Array
from meanfield.nets.maps import Bias, Linear, Pooling
from meanfield.nets.net import Net
from meanfield.nets.units import Unit
from meanfield.simulation.arrays.arrays import NUMPY
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.passes import through
from meanfield.simulation.weights.matrices import given_weights

LINEAR = (Linear, Bias, Pooling)


def split_by_order(
    net: Net, before: Mapping[str, Array], after: Mapping[str, Array], inputs: Array
) -> tuple[Array, list[list[Array]]]:
    """Delta h_0 and, for s = 1 .. L, [epsilon_0(s) .. epsilon_k(s)], each (D, n, B, S).

    Their sum is Delta h_s to rounding; a bias stands for the same factor as the matrix before it.

    Raises:
        ValueError: a net that is not linear, whose change is not a polynomial in the updates, or whose units do not
            each add to the one before.
    """
    _require_linear(net)
    moves = {name: after[name] - before[name] for name in before}
    old_way, new_way, change = (
        Setting(net.grid, inputs.shape[2], given_weights(net, weights), NUMPY) for weights in (before, after, moves)
    )
    first_unit, *blocks = net.units
    old = through(first_unit, [inputs], old_way)[0]
    moved = first = through(first_unit, [inputs], new_way)[0] - old
    sums: list[list[Array]] = []
    for block in blocks:
        terms = [block.multiplier * term for term in _block_terms(block, old + moved, old_way, change)]
        passed = through(replace(block, skip=None), [old], old_way)[0]
        terms[0] -= passed
        if sums:
            terms = [term + earlier for term, earlier in zip(terms, sums[-1], strict=True)]
        sums.append(terms)
        old, moved = old + passed, first + sum(terms)
    return first, sums


def _block_terms(block: Unit, value: Array, way: Setting, change: Setting) -> list[Array]:
    """The block applied to what it sees now, by the number of updates in each term."""
    terms = [value]
    for part in block.branch:
        operation = operation_of(part)
        if isinstance(part, Bias):
            terms[0] = operation.forward(part, terms[0], way)[0]
            terms[1] = operation.forward(part, terms[1], change)[0]
            continue
        kept = [operation.forward(part, term, way)[0] for term in terms]
        if isinstance(part, Linear):
            changed = [operation.forward(part, term, change)[0] for term in terms]
            kept = [kept[0], *(up + own for up, own in zip(kept[1:], changed[:-1], strict=True)), changed[-1]]
        terms = kept
    return terms


def is_linear(net: Net) -> bool:
    """Whether all maps below the readout are linear."""
    return not _nonlinear(net)


def _nonlinear(net: Net) -> set[str]:
    return {type(part).__name__ for unit in net.units for part in unit.maps if not isinstance(part, LINEAR)}


def _require_linear(net: Net) -> None:
    if names := _nonlinear(net):
        raise ValueError(f"the net has maps {', '.join(sorted(names))}; only linear nets split by the order of updates")
    if any(unit.skip != number for number, unit in enumerate(net.units[1:], start=1)) or net.units[0].skip is not None:
        raise ValueError("orders of updates are told apart in nets whose units, from the second on, add to the last")
