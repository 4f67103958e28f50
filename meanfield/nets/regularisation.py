"""Batch normalisation and dropout, put between the maps of any net."""

import warnings
from collections.abc import Callable
from dataclasses import replace

from meanfield.common.validation import PremiseWarning, require_instance
from meanfield.nets.chain import Chain
from meanfield.nets.maps import BatchNormalisation, Dropout, Gate, Linear, Map, Pointwise
from meanfield.nets.net import Net
from meanfield.nets.units import Unit

# Fewer values under batch normalisation are -1, 0 or 1 whatever they were.
FEWEST_NORMALISED = 3


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
    """
    _require_net(net)
    normalised = BatchNormalisation(epsilon)
    units = [_with(unit, lambda part: [part, normalised] if isinstance(part, Linear) else [part]) for unit in net.units]
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
    """
    _require_net(net)
    dropout = Dropout(rate)

    def dropped(part: Map) -> list[Map]:
        return [part, dropout] if isinstance(part, Pointwise | Gate) else [part]

    first, *others = [_with(unit, dropped) for unit in net.units]
    if isinstance(net.units[0].maps[0], Pointwise | Gate):
        first = replace(first, branch=(first.branch[0], *first.branch[2:]))
    top = None if net.readout_unit is None else _with(net.readout_unit, dropped)
    return Chain.of(net, units=(first, *others), readout_unit=top)


def require_normalisable(net: Net) -> None:
    """Raise ValueError where batch normalisation leaves nothing of a net's own batch, and warn where it leaves signs.

    One value of a channel is its own mean. Two values are as far from it on either side: what a step changes goes with
    epsilon, and rare draws, whose values all but meet, make its mean.
    """
    if not net.couples_samples or (values := net.inputs * net.sites) >= FEWEST_NORMALISED:
        return
    given = (
        f"batch normalisation over {values} value(s) of a channel, {net.inputs} sample(s) times {net.sites} site(s),"
    )
    remedy = f"give inputs={-(-FEWEST_NORMALISED // net.sites)} or more"
    if values == 1:
        raise ValueError(f"{given} leaves 0, as a value is its own mean, and no step moves it; {remedy}")
    why = "what a step changes is of the order of epsilon but in rare draws, which make the mean"
    warnings.warn(f"{given} leaves signs: {why}; {remedy}", PremiseWarning, stacklevel=2)


def _require_net(net: Net) -> None:
    require_instance("net", net, Net, "a net, such as meanfield.MLP(depth=8, width=512)")


def _with(unit: Unit, around: Callable[[Map], list[Map]]) -> Unit:
    """The unit with every map replaced by those that it becomes."""
    branch, after = (tuple(new for part in maps for new in around(part)) for maps in (unit.branch, unit.after))
    return replace(unit, branch=branch, after=after)
