"""Nets made of other nets: with batch normalisation, with dropout, or with a table's hyperparameters."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from meanfield.common.validation import require_instance, takes
from meanfield.nets.maps import BatchNormalisation, Dropout, Map, Weight
from meanfield.nets.net import Chain, Net, Unit


def with_batch_normalisation(net: Net, *, epsilon: float = 1e-5) -> Chain:
    """The same net with batch normalisation behind every linear map of its depth units.

        x -> (x - m) / sqrt(v + epsilon),   m, v: mean and variance of a channel over the batch and all sites

    In plain and residual nets that is between W and the activation, and at the end of every branch before the join. The
    readout stays as it is. `meanfield.train`, `meanfield.one_step`, drawn `meanfield.stable_rate` and
    `meanfield.simulate` serve the net; predictions refuse it, as samples of a batch depend on each other. Draws take
    two values of a channel or more, samples times sites; of two they leave signs, and a `PremiseWarning` says so.

    Args:
        net: any net or loop.
        epsilon: positive.

    Returns:
        A `meanfield.Chain` with the weights of the net. Dimensionless.

    Raises:
        TypeError, ValueError: what is no net, an epsilon that is no positive number.

    Source: Ioffe and Szegedy 2015, without affine parameters; Zhang et al. 2026, table 3.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.with_batch_normalisation(mf.MLP(depth=2, width=8, inputs=16))
        >>> mf.simulate(net, draws=4, seed=0)["update_energy"].dims
        ('layer',)
    """
    _require_net(net)
    normalised = BatchNormalisation(epsilon)
    units = [_with_maps(unit, lambda part: [part, normalised] if part.mixes_channels else [part]) for unit in net.units]
    return Chain.of(net, units=tuple(units))


def with_dropout(net: Net, rate: float) -> Chain:
    """The same net with dropout behind every activation and gate, but for an activation of the input itself.

        x -> 0 with probability ``rate``, else x / (1 - rate),   drawn for every value at every step of training

    The seed of a run keys the masks, so that all rates meet the same. Only `meanfield.train` drops values; its
    ``final_loss``, and all else that serves the net, takes it whole. Predictions refuse it.

    Args:
        net: any net or loop.
        rate: between 0 and 1.

    Returns:
        A `meanfield.Chain` with the weights of the net. Dimensionless.

    Raises:
        TypeError, ValueError: what is no net, a rate that is no number between 0 and 1.

    Source: Srivastava et al. 2014; Zhang et al. 2026, table 3.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.with_dropout(mf.MLP(depth=2, width=8), 0.1)
        >>> mf.simulate(net, draws=4, seed=0)["update_energy"].dims
        ('layer',)
    """
    _require_net(net)
    dropout = Dropout(rate)

    def dropped(part: Map) -> list[Map]:
        return [part, dropout] if part.activates else [part]

    first, *others = [_with_maps(unit, dropped) for unit in net.units]
    if net.units[0].maps[0].activates:
        first = replace(first, branch=(first.branch[0], *first.branch[2:]))
    top = None if net.readout_unit is None else _with_maps(net.readout_unit, dropped)
    return Chain.of(net, units=(first, *others), readout_unit=top)


def _require_net(net: Net) -> None:
    require_instance("net", net, Net, "a net, such as meanfield.MLP(depth=8, width=512)")


def _with_maps(unit: Unit, around: Callable[[Map], list[Map]]) -> Unit:
    """The unit with every map replaced by those that it becomes."""
    branch, shortcut, after = (
        tuple(new for part in maps for new in around(part)) for maps in (unit.branch, unit.shortcut, unit.after)
    )
    return replace(unit, branch=branch, shortcut=shortcut, after=after)


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
        branch, shortcut, after = (
            tuple(part.with_weights(given) for part in maps) for maps in (unit.branch, unit.shortcut, unit.after)
        )
        return replace(unit, branch=branch, shortcut=shortcut, after=after, multiplier=multiplier)

    top = None if net.readout_unit is None else under(net.readout_unit)
    return Chain.of(net, units=tuple(map(under, net.units)), readout_unit=top)
