"""Convolutional nets in stages: where a stage changes, the grid gets coarser and the channels more.

All layers of a stage have one grid and one number of channels. The first layer of every stage but the first brings
values to the next grid, by a stride or by means over windows, and to the next number of channels. In plain nets:

    "stride"    z = W patches(sigma(z_below)) at every s-th site
    "pooling"   z = W patches(means over windows of s sites of sigma(z_below))

In residual nets the first block of such a stage has a stride in the first layer of its branch, and a linear map W_s
of one tap, of variance 1/fan_in, on its skip:

    "stride"    z = W_s z_below at every s-th site + a branch(z_below)    (a projection, He et al. 2016, option B)
    "pooling"   z = W_s (means of z_below over windows of s sites) + a branch(z_below)           (He et al. 2019)

Each layer of a plain net, and each block, is one depth unit (Zhang et al. 2026, figure 2, of nets of one stage).
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np

from meanfield.common.validation import MOST_LAYERS, require_choice, require_count, require_counts, settle
from meanfield.nets.activations import ACTIVATIONS, Activation, activation_named
from meanfield.nets.lattice import PADDINGS, require_same_dimension, strided_grid
from meanfield.nets.layered import HEADS, readout_variance, require_fitting_kernel
from meanfield.nets.maps import AveragePooling, Linear, Map, Pointwise, Pooling, Weight
from meanfield.nets.net import Net, Unit
from meanfield.nets.scalings import branch_factors, settled_scaling

STAGED_READOUTS = ("pooled", "convolution")
DOWNSAMPLINGS = ("stride", "pooling")


@dataclass(frozen=True, kw_only=True)
class Staged(Net):
    """What nets in stages share: how depth, channels and grids lie over the stages, and the readout."""

    UNIT: ClassVar[str]

    depth: int
    channels: int | tuple[int, ...]
    stages: int | tuple[int, ...] = 3
    grid: tuple[int, ...] = (32,)
    kernel: tuple[int, ...] = (3,)
    stride: int | tuple[int, ...] = 2
    downsampling: str = "stride"
    padding: str = "circular"
    activation: str = "relu"
    outputs: int = 10
    head: str = "he"
    readout: str = "pooled"
    input_channels: int | None = None
    inputs: int = 1

    def __post_init__(self) -> None:
        settle(self, depth=require_count("depth", self.depth, maximum=MOST_LAYERS, why=f"depth counts the {self.UNIT}"))
        self._settle_counts(outputs="coordinates of the readout", inputs="samples in the batch")
        for name, allowed in (
            ("activation", ACTIVATIONS),
            ("head", HEADS),
            ("padding", PADDINGS),
            ("readout", STAGED_READOUTS),
            ("downsampling", DOWNSAMPLINGS),
        ):
            require_choice(name, getattr(self, name), allowed)
        if self.input_channels is not None:
            self._settle_counts(input_channels="channels of the input")
        self._settle_stages()
        self._settle_lattice()

    def _settle_stages(self) -> None:
        self._settle_count_or_counts("stages", f"how many stages, or the {self.UNIT} of each")
        if isinstance(stages := self.stages, int):
            if self.depth < stages:
                raise ValueError(f"depth {self.depth} is less than the {stages} stages, of one of the {self.UNIT} each")
            if self.depth % stages:
                raise ValueError(
                    f"depth {self.depth} is no multiple of {stages} stages; give the {self.UNIT} of each, such as "
                    f"stages={_spread(self.depth, stages)}, or another depth"
                )
        elif sum(stages) != self.depth:
            raise ValueError(
                f"stages {stages} hold {sum(stages)} {self.UNIT}, and depth is {self.depth}; let them add up to it"
            )
        if len(set(layers := self.depth_by_stage)) == 1:
            settle(self, stages=len(layers))
        self._settle_count_or_counts("channels", "those of the first stage, or one number per stage")
        if len(self.channels_by_stage) != len(layers):
            raise ValueError(
                f"channels has {len(self.channels_by_stage)} entries for {len(layers)} stages; give one number, which "
                "every next stage doubles, or one per stage"
            )
        if self.channels_by_stage == _doubled(self.channels_by_stage[0], len(layers)):
            settle(self, channels=self.channels_by_stage[0])

    def _settle_count_or_counts(self, name: str, why: str) -> None:
        """Settle a field as one whole number, or as a tuple of them."""
        value = getattr(self, name)
        counts = require_counts(name, value, why=why)
        settle(self, **{name: counts[0] if np.ndim(value) == 0 else counts})

    def _settle_lattice(self) -> None:
        grid = require_counts("grid", self.grid, why="sites along an axis")
        kernel = require_counts("kernel", self.kernel, why="taps along an axis")
        require_same_dimension(grid, kernel)
        if len(grid) not in (1, 2):
            raise ValueError(f"grid {grid} has {len(grid)} axes; give 1 or 2")
        settle(self, grid=grid, kernel=kernel)
        self._settle_count_or_counts("stride", "sites between two of the next grid, along an axis")
        if len(self.steps) != len(grid):
            raise ValueError(f"stride {self.stride} has {len(self.steps)} axes, grid {grid} has {len(grid)}")
        if len(set(self.steps)) == 1:
            settle(self, stride=self.steps[0])
        for stage, here in enumerate(self.grid_by_stage, start=1):
            if self.padding == "circular":
                try:
                    require_fitting_kernel(kernel, here)
                except ValueError as error:
                    raise ValueError(f"stage {stage}: {error}; or take fewer stages") from error

    @cached_property
    def depth_by_stage(self) -> tuple[int, ...]:
        """Layers, or blocks, of every stage."""
        given = self.stages
        return (self.depth // given,) * given if isinstance(given, int) else given

    @cached_property
    def channels_by_stage(self) -> tuple[int, ...]:
        """Channels of every stage: one number doubles from stage to stage."""
        given = self.channels
        return _doubled(given, len(self.depth_by_stage)) if isinstance(given, int) else given

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The stride along every axis."""
        return (self.stride,) * len(self.grid) if isinstance(self.stride, int) else self.stride

    @cached_property
    def grid_by_stage(self) -> tuple[tuple[int, ...], ...]:
        """The grid of every stage.

        Raises:
            ValueError: a grid that does not divide into the next one.
        """
        grids = [self.grid]
        for stage in range(2, len(self.depth_by_stage) + 1):
            try:
                pooled = AveragePooling(self.steps).grid_above(grids[-1]) if self.downsampling == "pooling" else ()
                grids.append(pooled or strided_grid(grids[-1], self.steps, self.padding))
            except ValueError as error:
                raise ValueError(f"stage {stage}: {error}") from error
        return tuple(grids)

    @cached_property
    def sigma(self) -> Activation:
        return activation_named(self.activation)

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.input_channels or self.channels_by_stage[0]

    @cached_property
    def taps(self) -> int:
        """k."""
        return prod(self.kernel)

    @property
    def head_variance(self) -> float:
        """Variance of the readout's weights, as of `meanfield.ConvNet`."""
        return self.readout_unit.branch[-1].weights[0].variance

    @cached_property
    def readout_unit(self) -> Unit:  # type: ignore[override]
        """One more layer, or the mean over sites of the features and a linear map."""
        pooled = self.readout == STAGED_READOUTS[0]
        shape = (self.outputs, self.channels_by_stage[-1], *(() if pooled else self.kernel))
        weight = Weight("readout", shape, 0.0)
        variance = readout_variance(self.head, weight.fan_in, self.sigma.gain)
        linear = Linear((Weight("readout", shape, variance),), self.padding)
        return Unit((Pointwise(self.activation), *([Pooling()] if pooled else []), linear))

    def _layer(self, name: str, above: int, below: int, changes: bool = False, factor: float = 1.0) -> tuple[Map, ...]:
        """sigma and a stencil under the fan-in rule times the factor; at the next grid, if the stage changes."""
        weight = Weight(name, (above, below, *self.kernel), 0.0)
        weight = Weight(name, weight.shape, factor / (self.sigma.gain * weight.fan_in))
        stencil = Linear((weight,), self.padding, stride=self.steps if changes else ())
        return Pointwise(self.activation), stencil


@dataclass(frozen=True, kw_only=True)
class StagedConvNet(Staged):
    """Convolutional net in stages: `ConvNet` with a coarser grid and more channels from stage to stage.

    z_j(p) = sum_i sum_Delta W_{j,i,Delta} sigma(z_i(s p + Delta)), s = 1 but for the first layer of stages 2, 3, ...

    Args:
        depth: hidden layers L.
        channels: C of the first stage, which every next stage doubles, or one number per stage.
        stages: how many, of equally many layers, or the layers of each.
        grid: lengths of the one or two axes of the input and the first stage.
        kernel: taps along each axis, odd or even.
        stride: s along every axis between two stages, one number or one per axis. It divides circular grids; of
            zero-padded ones the next length is rounded up.
        downsampling: "stride", or "pooling": the features are averaged over windows of s sites, which tile the grid,
            and the stencil is one of the coarser grid (`meanfield.nets.staged`).
        padding, activation, outputs, head, readout, input_channels, inputs: as for `ConvNet`; weights follow the
            fan-in rule.

    Raises:
        TypeError, ValueError: as for `ConvNet`; stages that do not add up to the depth, channels of another number of
            stages, a stride that does not divide the grid, a kernel larger than the circular grid of some stage.

    Source: Zhang et al. 2026, eq. 3, whose nets have one stage; stages as of He et al. 2016.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.StagedConvNet(depth=6, channels=16, grid=(16, 16), kernel=(3, 3), input_channels=3)
        >>> net.channels_by_stage, net.grid_by_stage
        ((16, 32, 64), ((16, 16), (8, 8), (4, 4)))
        >>> mf.simulate(net, draws=4, seed=0)["update_energy"].shape
        (6,)
    """

    UNIT = "layers"

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        """One unit a layer."""
        units: list[Unit] = []
        below = self.first_channels
        for stage, (layers, channels) in enumerate(zip(self.depth_by_stage, self.channels_by_stage, strict=True)):
            for layer in range(layers):
                changes = stage > 0 and layer == 0
                pools = changes and self.downsampling == "pooling"
                sigma, stencil = self._layer(f"W{len(units) + 1}", channels, below, changes and not pools)
                units.append(Unit((sigma, *([AveragePooling(self.steps)] if pools else []), stencil)))
                below = channels
        return tuple(units)


@dataclass(frozen=True, kw_only=True)
class StagedResidualConvNet(Staged):
    """Residual net in stages: `ResidualConvNet` with a coarser grid and more channels from stage to stage.

    The first block of stages 2, 3, ... has a stride in the first layer of its branch, and a linear map on its skip
    (`meanfield.nets.staged`).

    Args:
        depth: blocks K of all stages.
        channels, stages, grid, kernel, stride: as for `StagedConvNet`, stages counting blocks.
        downsampling: how the skip of such a block reaches the coarser grid: "stride", at every s-th site, or "pooling",
            by means over windows of s sites, which tile the grid.
        block_depth, scaling: as for `ResidualConvNet`; K is that of all stages.
        stem: plain layers below the blocks, with the channels and grid of the first stage.
        padding, activation, outputs, head, readout, input_channels, inputs: as for `ResidualConvNet`.

    Raises:
        TypeError, ValueError: as for `StagedConvNet` and `ResidualConvNet`.

    Source: He et al. 2016, option B; Zhang et al. 2026, eqs. 4, 5, of the blocks.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.StagedResidualConvNet(depth=6, channels=8, stages=2, stem=1, input_channels=3)
        >>> list(net.weights)[:4]
        ['W0.1', 'W1.1', 'W2.1', 'W3.1']
        >>> net.weights["shortcut4"].shape
        (16, 8, 1)
    """

    block_depth: int = 1
    scaling: str | float = "init"
    stem: int = 0

    UNIT = "blocks"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle_counts(block_depth="layers of a branch")
        self._settle_counts(minimum=0, stem="plain layers below the blocks")
        settle(self, scaling=settled_scaling(self.scaling, self.depth))
        if self.stem == 0 and self.first_channels != self.channels_by_stage[0]:
            raise ValueError(
                f"the input has {self.first_channels} channels and the first stage {self.channels_by_stage[0]}: blocks "
                "cannot add to it; give stem=1 or more"
            )

    @property
    def multiplier(self) -> float:
        """a, the factor on a branch."""
        return branch_factors(self.scaling, self.depth)[0]

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        """The stem's layers, and one unit a block."""
        stream, units = self.first_channels, []
        for layer in range(1, self.stem + 1):
            units.append(Unit(self._layer(f"W0.{layer}", self.channels_by_stage[0], stream)))
            stream = self.channels_by_stage[0]
        for stage, (blocks, channels) in enumerate(zip(self.depth_by_stage, self.channels_by_stage, strict=True)):
            for block in range(blocks):
                units.append(self._block(len(units), channels, stream, changes=stage > 0 and block == 0))
                stream = channels
        return tuple(units)

    def _block(self, below: int, channels: int, stream: int, changes: bool) -> Unit:
        """The block on value number ``below``, of so many channels on a stream of others."""
        number, (multiplier, factor) = below + 1 - self.stem, branch_factors(self.scaling, self.depth)
        branch = self._layer(f"W{number}.1", channels, stream, changes, factor)
        for layer in range(2, self.block_depth + 1):
            branch += self._layer(f"W{number}.{layer}", channels, channels, factor=factor)
        if not changes:
            return Unit(branch, below, multiplier)
        weight = Weight(f"shortcut{number}", (channels, stream, *(1,) * len(self.grid)), 1.0 / stream)
        if self.downsampling == "pooling":
            shortcut: tuple[Map, ...] = (AveragePooling(self.steps), Linear((weight,), self.padding))
        else:
            shortcut = (Linear((weight,), self.padding, stride=self.steps),)
        return Unit(branch, below, multiplier, shortcut=shortcut)


def _doubled(first: int, stages: int) -> tuple[int, ...]:
    return tuple(first * 2**stage for stage in range(stages))


def _spread(total: int, parts: int) -> tuple[int, ...]:
    """So many whole numbers, as equal as can be, with this sum."""
    return tuple(total // parts + (part < total % parts) for part in range(parts))
