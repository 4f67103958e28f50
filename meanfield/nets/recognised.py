"""What counts as a net, and the family's net that a chain of units is.

Whatever serves a family serves the chain as well. A reader takes the fields of a family off the units. What it read
is checked by listing the units of that family's net: they must be those of the chain, whatever the weights are
called.
"""

from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache
from itertools import pairwise, product
from math import isclose, log
from typing import Any

import numpy as np

from meanfield.nets.dense import DenseNet
from meanfield.nets.layered import HEADS, MLP, ConvNet, Sequential
from meanfield.nets.loop import Loop, TiedLoop
from meanfield.nets.maps import Attention, Flatten, Linear, Normalisation, Pointwise, Pooling, Weight
from meanfield.nets.net import Chain, Net, Unit
from meanfield.nets.residual import ResidualConvNet, ResidualMLP
from meanfield.nets.scalings import SCALINGS
from meanfield.nets.staged import DOWNSAMPLINGS, StagedConvNet, StagedResidualConvNet
from meanfield.nets.transformer import (
    SWIGLU,
    TOKEN_READOUTS,
    TRANSFORMER_SCALINGS,
    UNNORMALISED,
    Transformer,
    maps_of_readout,
)

NETS_OF_LAYERS = "an MLP, ConvNet, ResidualMLP or ResidualConvNet"
NETS_OF_UNITS = "an MLP, ConvNet, ResidualMLP, Transformer, StagedConvNet, StagedResidualConvNet or ResidualConvNet"


def require_net(net: Any, *, loops: bool = False, units: bool = False, why: str = "", instead: str = "") -> None:
    """Raise TypeError unless this is a net of layers or, if these are served, a loop or any net of ``units``.

    ``why``: what other units have not; ``instead``: what serves them (default: what serves any).
    """
    if isinstance(net, Net if units else (Sequential, Loop) if loops else Sequential):
        return
    served = f"{NETS_OF_UNITS if units else NETS_OF_LAYERS}{', or a TiedLoop' if loops or units else ''}"
    if isinstance(net, Chain):
        raise TypeError(
            "net is a Chain whose units are those of no family that has what is asked for, as batch "
            f"normalisation, dropout or units of one's own have not{f' ({why})' if why else ''}; give {served}, or a "
            f"Chain of the units of one; {instead or 'meanfield.Energies and what trains serve any units'}"
        )
    kind = net if isinstance(net, type) else type(net)
    what = f"the class {kind.__name__}" if kind is net else f"of type {kind.__module__}.{kind.__qualname__}"
    raise TypeError(
        f"net is {what}; give {served} of this library, which says a net's sizes and no more, such as "
        "meanfield.MLP(depth=8, width=512)"
    )


# Relative differences of variances and multipliers up to this are rounding.
ROUNDING = 1e-11
# A number read off a product is the one of so many digits that lies within rounding of it.
DIGITS, LAST_PLACE = 12, 4e-15

Fields = dict[str, Any]


def as_family(net: Net) -> Net:
    """The net of a family that has the units, the grid and the input law of this chain; any other net as it is."""
    return (_recognised(net) or net) if isinstance(net, Chain) else net


@lru_cache(maxsize=64)
def _recognised(chain: Chain) -> Net | None:
    sought = _told(chain)
    for family, given in _readings(chain):
        try:
            net: Net = family(**given)
        except ValueError:  # fields that the family does not have, such as a kernel larger than its circular grid
            continue
        if _same(_told(net), sought) and _same_inputs(net, chain):
            return net
    return None


def _told(net: Net) -> tuple[list[Any], list[float]]:
    """All that the units say but for the names of weights: what must be equal, and numbers that rounding may change."""
    places = {name: place for place, name in enumerate(net.weights)}
    kinds: list[Any] = []
    numbers: list[float] = []
    for unit in net.all_units:
        kinds.append((unit.skip, unit.join, len(unit.branch), len(unit.shortcut), len(unit.after)))
        numbers.append(unit.multiplier)
        for part in unit.maps:
            own = [getattr(part, field.name) for field in fields(part) if field.name not in ("weight", "weights")]  # type: ignore[arg-type]
            kinds.append((type(part), *own))
            for weight in part.weights:
                kinds.append((places[weight.name], weight.shape, weight.groups))
                numbers.append(weight.variance)
    return kinds, numbers


def _same(first: tuple[list[Any], list[float]], second: tuple[list[Any], list[float]]) -> bool:
    return first[0] == second[0] and bool(np.allclose(first[1], second[1], rtol=ROUNDING, atol=0))


def _same_inputs(net: Net, chain: Chain) -> bool:
    shared = ("input_law", "input_shape", "output_shape")
    if any(getattr(net, name) != getattr(chain, name) for name in shared):
        return False
    if net.input_law != "normalised":
        return True
    return isclose(net.input_energy or 0, chain.input_energy or 0, rel_tol=ROUNDING)


def _readings(chain: Chain) -> Iterator[tuple[type[Net], Fields]]:
    """Families with the fields that the units suggest."""
    if chain.readout_unit is None:
        match chain.units[0].branch:
            case (Pointwise(activation=activation), Linear(weights=(weight, *_))):
                yield TiedLoop, _loop(chain, activation, weight)
        return
    if Attention in {type(part) for unit in chain.units[:2] for part in unit.branch}:
        yield from ((Transformer, given) for given in _transformers(chain, chain.readout_unit))
        return
    match chain.units[0].branch[:2], chain.readout_unit.branch:
        case (Pointwise(activation=activation), Linear()), (*_, Linear()):
            dense = any(unit.concatenates for unit in chain.units)
            reading = _dense if dense else _layered if chain.has_one_grid else _staged
            yield from reading(chain, chain.readout_unit, activation)


def _layered(chain: Chain, readout: Unit, activation: str) -> Iterator[tuple[type[Net], Fields]]:
    """Plain nets and residual ones, fully connected or on grids."""
    layers: list[Any] = [part for unit in chain.units for part in unit.branch if part.mixes_channels]
    weights = [layer.weights[0] for layer in layers]
    widths = tuple(weight.shape[0] for weight in weights)
    blocks = [number for number, unit in enumerate(chain.units) if unit.skip is not None]
    width = "channels" if chain.grid else "width"
    given: Fields = {"activation": activation, "inputs": chain.inputs, "outputs": chain.output_shape[1]}
    given[width] = widths[0] if len(set(widths)) == 1 else widths
    given[f"input_{width}"] = None if chain.input_channels == widths[0] else chain.input_channels
    if chain.grid:
        given |= _on_grid(chain, readout, layers[0])
    if blocks:
        given |= {"depth": len(blocks), "stem": blocks[0], "tail": len(chain.units) - 1 - blocks[-1]}
        given["block_depth"] = len(chain.units[blocks[0]].branch) // 2
        family: type[Net] = ResidualConvNet if chain.grid else ResidualMLP
        joint = chain.units[blocks[0]].multiplier
        for scaling, head in product((*SCALINGS, *_exponents(joint, len(blocks))), HEADS):
            yield family, given | {"scaling": scaling, "head": head}
        return
    family = ConvNet if chain.grid else MLP
    own = _rounded(weights[0].variance * weights[0].fan_in)
    for variance, head in product((None, own), HEADS):
        yield family, given | {"depth": len(chain.units), "weight_variance": variance, "head": head}


def _on_grid(chain: Chain, readout: Unit, layer: Linear) -> Fields:
    kinds = {type(part) for part in readout.branch}
    seen = "pooled" if Pooling in kinds else "flatten" if Flatten in kinds else "convolution"
    return {"grid": chain.grid, "kernel": layer.kernel, "padding": layer.padding, "readout": seen}


def _dense(chain: Chain, readout: Unit, activation: str) -> Iterator[tuple[type[Net], Fields]]:
    """Nets whose blocks concatenate; a width of 0, of a block that adds nothing, is that of no net."""
    stem = next(number for number, unit in enumerate(chain.units) if unit.concatenates)
    width, above = chain.value_channels[stem : stem + 2]
    given: Fields = {"activation": activation, "inputs": chain.inputs, "outputs": chain.output_shape[1]}
    given |= {"depth": len(chain.units) - stem, "stem": stem, "width": width, "growth": above - width}
    given["input_width"] = None if chain.input_channels == width else chain.input_channels
    if chain.grid:
        layer: Any = chain.units[0].branch[1]
        given |= _on_grid(chain, readout, layer)
    yield from ((DenseNet, given | {"head": head}) for head in HEADS)


def _staged(chain: Chain, readout: Unit, activation: str) -> Iterator[tuple[type[Net], Fields]]:
    """Nets in stages: where the grid changes, one begins."""
    blocks = [number for number, unit in enumerate(chain.units) if unit.skip is not None]
    stem = blocks[0] if blocks else 0
    grids = chain.value_grids[stem + 1 :]
    starts = [number for number, pair in enumerate(pairwise((chain.grid, *grids))) if pair[0] != pair[1]]
    ends = [*starts, len(grids)]
    first: Any = next(part for part in chain.units[0].branch if part.mixes_channels)
    steps = tuple(-(-below // above) for below, above in zip(chain.grid, grids[starts[0]], strict=True))
    channels = tuple(chain.value_channels[stem + end] for end in ends)
    given: Fields = {"depth": len(grids), "stages": tuple(np.diff([0, *ends]).tolist()), "activation": activation}
    given |= {"channels": channels, "stride": steps, "inputs": chain.inputs}
    given |= _on_grid(chain, readout, first) | {"outputs": chain.output_shape[1]}
    given["input_channels"] = None if chain.input_channels == channels[0] else chain.input_channels
    for downsampling, head in product(DOWNSAMPLINGS, HEADS):
        given |= {"downsampling": downsampling, "head": head}
        if not blocks:
            yield StagedConvNet, given
            continue
        depths = {"stem": stem, "block_depth": len(chain.units[stem].branch) // 2}
        scalings = (*SCALINGS, *_exponents(chain.units[stem].multiplier, len(grids)))
        yield from ((StagedResidualConvNet, given | depths | {"scaling": scaling}) for scaling in scalings)


def _loop(chain: Chain, activation: str, weight: Weight) -> Fields:
    depth = len(chain.units)
    alpha = next(_exponents(chain.units[0].multiplier, depth), 1.0)
    given: Fields = {"depth": depth, "width": chain.input_channels, "alpha": alpha, "activation": activation}
    return given | {"weight_variance": _rounded(weight.variance * weight.fan_in), "tied": chain.is_tied or depth == 1}


def _transformers(chain: Chain, readout: Unit) -> Iterator[Fields]:
    """The fields for every scaling and head, as what these set is a number in every weight."""
    embedded = len(chain.units[0].branch) == 1 and chain.units[0].branch[0].mixes_channels
    if len(chain.units) < embedded + 2 or len(chain.grid) != 1:
        return
    looks_unit, feeds_unit = chain.units[embedded : embedded + 2]
    first_of_kind: dict[type, Any] = {type(part): part for part in reversed(looks_unit.maps)}
    attention, norm = first_of_kind.get(Attention), first_of_kind.get(Normalisation)
    fed: Any = next((part for part in feeds_unit.maps if part.activates), None)
    matrices = [weight for part in feeds_unit.maps for weight in part.weights if len(weight.shape) > 1]
    if attention is None or fed is None or not matrices:
        return
    width, hidden = matrices[-1].shape[:2]
    pooled = tuple(part for part in readout.branch if part.pools)
    given: Fields = {"depth": (len(chain.units) - embedded) // 2, "width": width, "tokens": chain.sites}
    given |= {"heads": attention.heads, "attention_scale": attention.scale, "causal": attention.causal}
    given |= {"rotary": attention.rotary, "ffn": _rounded(hidden / width), "inputs": chain.inputs}
    given |= {"norm": "post" if looks_unit.after else "pre", "tied": chain.is_tied, "outputs": chain.output_shape[1]}
    given["normalisation"] = UNNORMALISED if norm is None else norm.kind
    given["activation"] = fed.pointwise_activation or SWIGLU
    given["vocabulary"] = chain.input_channels if embedded else None
    given["readout"] = next((name for name in TOKEN_READOUTS if maps_of_readout(name, chain.sites) == pooled), "every")
    alphas = _exponents(looks_unit.multiplier, len(chain.units) - embedded)
    for scaling, head in product((*TRANSFORMER_SCALINGS, *alphas), HEADS):
        yield given | {"scaling": scaling, "head": head}


def _exponents(multiplier: float, additions: int) -> Iterator[float]:
    """alpha, if some number makes this factor of so many branches."""
    if additions > 1 and multiplier > 0:
        length = log(additions)
        yield _rounded(-log(multiplier) / length, LAST_PLACE / length)


def _rounded(value: float, apart: float = 0.0) -> float:
    """The number of few digits that this one is but for its last places, or for what lies ``apart``, or itself."""
    short = float(f"{value:.{DIGITS}g}")
    return short if isclose(short, value, rel_tol=LAST_PLACE, abs_tol=apart) else value
