"""What one step of plain SGD says of a rate over depth, where the standard parameterization keeps it."""

from collections.abc import Mapping
from typing import Any

from meanfield.nets import MLP, ResidualMLP
from meanfield.theory import scales_at
from meanfield.transfer import PRE_NORM_TRAINED

# Energies of blocks without a factor double at every block, so that floats hold their squares up to some 500.
MOST_BLOCKS = 400


def over_depth(common: Mapping[str, Any]) -> list[str]:
    """One sentence with the factors by which `mf.explain_transfer` carries a rate between nets of these depths.

    The nets are those of the tables without a factor on the branches, and fully-connected ones of as many layers. No
    sentence where the parameterization knows the depth, or the depth stays.

    Args:
        common: sizes and parameterization, as `transfer_hyperparameters` names them.
    """
    depths = common["base_depth"], common["depth"]
    if common["parameterization"] != "standard" or depths[0] == depths[1]:
        return []
    layers = MLP(depth=1, width=common["width"])
    blocks = ResidualMLP(depth=1, width=common["width"], block_depth=common["block_depth"], scaling="none")
    grown = "by an exponential of the depth" if max(depths) > MOST_BLOCKS else f"x {_factor(blocks, depths):.3g}"
    return [
        f"sgd over depth {depths[0]} -> {depths[1]}, by rule 'finite_depth' of mf.explain_transfer: the rate of "
        f"fully-connected ReLU layers x {_factor(layers, depths):.3g}, of residual blocks without factor and "
        f"normalisation {grown}; {PRE_NORM_TRAINED}"
    ]


def _factor(net: MLP, depths: tuple[int, int]) -> float:
    """What a rate is multiplied by from one depth to the other."""
    first, second = scales_at(net, depths)
    return float(second / first)
