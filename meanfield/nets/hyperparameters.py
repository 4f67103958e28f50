"""Multipliers and initial variances of any net by the roles of its weights, as hyperparameter tables give them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from meanfield.common.validation import takes
from meanfield.nets.chain import Chain
from meanfield.nets.maps import Bias, Gain, Linear, Map, Weight
from meanfield.nets.net import Net
from meanfield.nets.units import Unit


@takes(Net, Net, Mapping)
def with_hyperparameters(net: Net, base: Net, by_role: Mapping[str, Mapping[str, float]]) -> Chain:
    """The net with a table's multipliers, and variances that are a table's factors times those of the base model.

    Args:
        net: any net whose units have weights.
        base: a net whose weights have the same names, such as the same family at the width of the base model.
        by_role: role -> "block_multiplier", of every unit whose weights have that role, and "initial_variance", the
            factor on the variance in ``base`` of every weight of that role: `transfer_hyperparameters` with a base
            value of 1 gives it. Roles are those of ``net.role_of``.

    Returns:
        A `meanfield.Chain` with the names and shapes of the net's weights. Dimensionless.

    Raises:
        ValueError: a weight that the base model lacks, or a role without hyperparameters.

    Source: Zheng et al. 2026, section 4.1, "block multiplier" and "initial variance" of tables 3-7 and 9-13.
    """
    of_base = base.weights
    if missing := [name for name in net.weights if name not in of_base]:
        raise ValueError(f"the base model has no weight {missing[0]!r}; give the same family, and as many blocks")
    if missing := sorted({net.role_of(name) for name in net.weights} - set(by_role)):
        raise ValueError(f"there are hyperparameters of {', '.join(by_role)} and none of {missing[0]!r}; give them")

    def given(weight: Weight) -> Weight:
        factor = by_role[net.role_of(weight.name)]["initial_variance"]
        return replace(weight, variance=factor * of_base[weight.name].variance)

    def under(unit: Unit) -> Unit:
        first = next(weight for part in unit.maps for weight in part.weights)
        multiplier = by_role[net.role_of(first.name)]["block_multiplier"]
        branch, after = (tuple(_with(part, given) for part in maps) for maps in (unit.branch, unit.after))
        return replace(unit, branch=branch, after=after, multiplier=multiplier)

    top = None if net.readout_unit is None else under(net.readout_unit)
    return Chain.of(net, units=tuple(map(under, net.units)), readout_unit=top)


def _with(part: Map, given: Callable[[Weight], Weight]) -> Map:
    if isinstance(part, Linear):
        return replace(part, weights=tuple(map(given, part.weights)))
    return replace(part, weight=given(part.weight)) if isinstance(part, Bias | Gain) else part
