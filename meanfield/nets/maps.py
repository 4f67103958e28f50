"""The maps that branches are made of, as frozen data; `simulation/maps` has what they do, `theory/maps` their theory.

Values have channels (or units), samples and sites. A map acts on every sample alike and by itself, but for batch
normalisation, which takes the samples of a batch together, and dropout, which is drawn.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from meanfield.common.validation import Array, require_choice, require_count, require_positive
from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.lattice import PADDINGS, strided_grid

NORMALISATIONS = ("layer", "rms")
ATTENTION_SCALES = ("inverse_sqrt", "inverse")
ROTARY_BASE = 10_000.0
POOLINGS = ("mean", "last")

# Deviations from the mean over channels, relative to the values, below which they are rounding.
RELATIVE_SPREAD = 1e-14


@dataclass(frozen=True)
class Weight:
    """A Gaussian tensor of i.i.d. N(0, variance) elements, with a name; weights of one name are one tensor.

    ``shape`` is (channels out, channels in / groups, *kernel), (channels,) of a bias, or (1,) of a gain. With several
    groups, group g of the channels out sees group g of the channels in alone.
    """

    name: str
    shape: tuple[int, ...]
    variance: float
    groups: int = 1

    @property
    def fan_in(self) -> int:
        """Elements of a row: channels in of one group, times taps."""
        return prod(self.shape[1:])

    @property
    def group_rows(self) -> int:
        """Rows of one group, of which there are ``groups`` one below the other."""
        return self.shape[0] // self.groups


class Map(ABC):
    """What a map says of itself. Most maps say what stands here.

    Attributes:
        weights: those of the map, in the order of its channels.
        mixes_channels: whether its weights are matrices over the channels, (out, in / groups, *kernel).
        scales: whether its weights are factors of what passes.
        activates: whether it applies an activation, to all of its input or to a part.
        normalises: whether it divides the channels of every site by their size.
        couples_samples: whether what becomes of a sample depends on the others of its batch.
        pools: whether it takes the sites of a sample together.
        reduces: whether it makes one number of all sites of a channel.
    """

    weights: tuple[Weight, ...] = ()
    mixes_channels: ClassVar[bool] = False
    scales: ClassVar[bool] = False
    activates: ClassVar[bool] = False
    normalises: ClassVar[bool] = False
    couples_samples: ClassVar[bool] = False
    pools: ClassVar[bool] = False
    reduces: ClassVar[bool] = False

    @abstractmethod
    def channels_above(self, below: int) -> int:
        """Channels that this map gives for so many below; ValueError if it takes another number of them."""

    def grid_above(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        """Lengths of the grid of what this map gives on such a grid; ValueError if it does not act there."""
        return grid

    def with_weights(self, given: Callable[[Weight], Weight]) -> Self:
        """This map with every weight replaced by what is given for it."""
        return self

    @property
    def is_one_stencil(self) -> bool:
        """Whether it is one stencil over all channels."""
        return False

    @property
    def pointwise_activation(self) -> str | None:
        """The activation that it is, element by element, or None."""
        return None

    def inputs_refusal(self, batch: Array) -> str:
        """Why it cannot read these inputs of a net, (samples, channels, *grid); empty if it can."""
        return ""


@dataclass(frozen=True)
class Linear(Map):
    """Z = W patches(X), for one weight or several side by side, whose outputs are stacked along the channels.

    With a kernel, patches(X) holds X shifted by every offset of the stencil, ``dilation`` sites apart; the padding says
    what is outside the grid. Without a kernel, sites do not mix. A ``stride``, one step per axis, keeps the result at
    every stride-th site alone (`meanfield.nets.lattice.strided_grid`); an empty one keeps all.
    """

    mixes_channels = True

    weights: tuple[Weight, ...] = field()
    padding: str = "circular"
    dilation: int = 1
    stride: tuple[int, ...] = ()

    @cached_property
    def kernel(self) -> tuple[int, ...]:
        return self.weights[0].shape[2:]

    @cached_property
    def taps(self) -> int:
        return prod(self.kernel)

    @cached_property
    def stays(self) -> bool:
        """Whether every site reads itself alone."""
        return self.taps == 1 and max(self.stride, default=1) == 1

    def grid_above(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        if self.kernel and len(self.kernel) != len(grid):
            raise ValueError(
                f"kernel {self.kernel} has {len(self.kernel)} axes, the grid below it, {grid}, {len(grid)}"
            )
        return strided_grid(grid, self.stride, self.padding)

    @cached_property
    def is_one_stencil(self) -> bool:
        return not self.stays and len(self.weights) == 1 and self.weights[0].groups == 1

    def with_weights(self, given: Callable[[Weight], Weight]) -> Self:
        return replace(self, weights=tuple(map(given, self.weights)))

    def channels_above(self, below: int) -> int:
        require_choice("padding", self.padding, PADDINGS)
        require_count("dilation", self.dilation, why="sites between two taps of a stencil")
        _require_steps("stride", self.stride, "sites between two places of a stencil")
        for weight in self.weights:
            channels = weight.shape[1] * weight.groups
            if channels != below or weight.shape[0] % weight.groups or weight.shape[2:] != self.kernel:
                raise ValueError(
                    f"weight {weight.name!r} of shape {weight.shape} in {weight.groups} group(s) takes {channels} "
                    f"channels and a kernel {weight.shape[2:]}; {below} channels and a kernel {self.kernel} stand "
                    "below it"
                )
        return sum(weight.shape[0] for weight in self.weights)


@dataclass(frozen=True)
class OneWeight(Map):
    """A map with one weight, a vector."""

    weight: Weight

    @cached_property
    def weights(self) -> tuple[Weight, ...]:  # type: ignore[override]
        return (self.weight,)

    def with_weights(self, given: Callable[[Weight], Weight]) -> Self:
        return replace(self, weight=given(self.weight))


@dataclass(frozen=True)
class Bias(OneWeight):
    """Z = X + b, the same at every sample and site."""

    def channels_above(self, below: int) -> int:
        if self.weight.shape != (below,):
            raise ValueError(
                f"bias {self.weight.name!r} has shape {self.weight.shape}; {below} channels stand below it"
            )
        return below


@dataclass(frozen=True)
class Gain(OneWeight):
    """Z = g X, one number g for all channels, samples and sites, which is a weight."""

    scales = True

    def channels_above(self, below: int) -> int:
        if self.weight.shape != (1,):
            raise ValueError(f"gain {self.weight.name!r} has shape {self.weight.shape}; it is one number, (1,)")
        return below


@dataclass(frozen=True)
class Pointwise(Map):
    """sigma(X), element by element."""

    activates = True

    activation: str

    @property
    def pointwise_activation(self) -> str:
        return self.activation

    def channels_above(self, below: int) -> int:
        require_choice("activation", self.activation, ACTIVATIONS)
        return below


@dataclass(frozen=True)
class Gate(Map):
    """sigma(X_1) X_2, the lower half of the channels times the activated upper half (SwiGLU with "silu")."""

    activates = True

    activation: str

    def channels_above(self, below: int) -> int:
        require_choice("activation", self.activation, ACTIVATIONS)
        if below % 2:
            raise ValueError(f"a gate takes two halves of its channels; {below} stand below it")
        return below // 2


@dataclass(frozen=True)
class Normalisation(Map):
    """(X - mean) / standard deviation ("layer") or X / root mean square ("rms"), over the channels of every site.

    ``epsilon`` is added to the mean square under the root; there are no affine parameters.
    """

    normalises = True

    kind: str
    epsilon: float = 0.0

    def channels_above(self, below: int) -> int:
        require_choice("normalisation", self.kind, NORMALISATIONS)
        least = {"layer": 3, "rms": 2}[self.kind]
        if below < least:
            raise ValueError(
                f"normalisation {self.kind!r} over {below} channel(s) leaves signs at most, which no step moves; give "
                f"{least} channels or more"
            )
        return below

    def inputs_refusal(self, batch: Array) -> str:
        if self.epsilon:
            return ""
        centred = batch - batch.mean(axis=1, keepdims=True) if self.kind == "layer" else batch
        spread, size = (np.square(values).mean(axis=1) for values in (centred, batch))
        bad = spread <= (RELATIVE_SPREAD**2 * size if self.kind == "layer" else 0)
        if not bad.any():
            return ""
        sample, *site = np.argwhere(bad)[0]
        return (
            f"inputs are {'the same in all channels' if self.kind == 'layer' else '0'} in sample {sample + 1} at site "
            f"{', '.join(str(at + 1) for at in site) or 1}; normalisation {self.kind!r} divides by their "
            f"{'standard deviation' if self.kind == 'layer' else 'root mean square'} there: give other inputs"
        )


@dataclass(frozen=True)
class Attention(Map):
    """softmax(Q^T K / size^p) V over the sites of a sample, head by head, of channels Q, K and V stacked in thirds.

    Head h owns the channels h size .. (h + 1) size - 1 of each third; p is 1/2 ("inverse_sqrt") or 1 ("inverse").
    ``causal`` sites look at those before them and at themselves alone. ``rotary`` turns pairs of channels
    (i, i + size/2) of Q and K at site t by the angle t ROTARY_BASE^(-2 i / size).
    """

    heads: int
    scale: str = "inverse_sqrt"
    causal: bool = False
    rotary: bool = False

    def channels_above(self, below: int) -> int:
        require_count("heads", self.heads, why="heads of attention")
        require_choice("attention scale", self.scale, ATTENTION_SCALES)
        if below % 3 or (below // 3) % self.heads:
            raise ValueError(
                f"attention of {self.heads} heads takes queries, keys and values of equally many channels, a "
                f"multiple of the heads; {below} channels stand below it, {below / 3:g} for each: change width or heads"
            )
        if self.rotary and (below // 3 // self.heads) % 2:
            raise ValueError(
                f"rotary positions turn pairs of channels; a head has {below // 3 // self.heads}: make it even"
            )
        return below // 3


@dataclass(frozen=True)
class Pooling(Map):
    """The mean over the sites of a sample, or its last site."""

    pools = True
    reduces = True

    kind: str = "mean"

    def channels_above(self, below: int) -> int:
        require_choice("pooling", self.kind, POOLINGS)
        return below

    def grid_above(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True)
class AveragePooling(Map):
    """The means over windows that tile the grid, of ``window`` sites along every axis: a coarser grid."""

    window: tuple[int, ...]

    def channels_above(self, below: int) -> int:
        _require_steps("window", self.window, "sites of a mean")
        return below

    def grid_above(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        if len(self.window) != len(grid) or any(sites % size for sites, size in zip(grid, self.window, strict=True)):
            raise ValueError(
                f"windows of {self.window} sites do not tile the grid {grid}: a rest would be left out; give windows "
                "that divide the lengths of the grid, axis by axis"
            )
        return tuple(sites // size for sites, size in zip(grid, self.window, strict=True))


@dataclass(frozen=True)
class Flatten(Map):
    """All values of a sample as channels of one site: channel c at site p becomes channel c sites + p.

    It is for the end of a net, as stencils above it would find no grid.
    """

    pools = True

    sites: int

    def channels_above(self, below: int) -> int:
        return below * require_count("sites", self.sites, why="sites of a sample that become channels")

    def grid_above(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        if self.sites != prod(grid):
            raise ValueError(
                f"a map flattens {self.sites} site(s), and the grid {grid} has {prod(grid)}; give it those"
            )
        return ()


@dataclass(frozen=True)
class BatchNormalisation(Map):
    """(X - mean) / sqrt(variance + epsilon), both of a channel over all samples of the batch and all sites.

    As in training mode of other libraries, without affine parameters (Ioffe and Szegedy 2015). There are no running
    means: whatever batch a net is given, it is normalised by that batch.
    """

    couples_samples = True

    epsilon: float = 1e-5

    def channels_above(self, below: int) -> int:
        require_positive("epsilon", self.epsilon, why="a channel may be constant over a batch")
        return below


@dataclass(frozen=True)
class Dropout(Map):
    """In training: every value 0 with probability ``rate``, or else divided by 1 - rate (Srivastava et al. 2014).

    Values are independent over channels, samples and sites, and drawn anew at every step. Outside training, as in
    `meanfield.one_step`, values pass as they are, which is their mean over the masks.
    """

    rate: float

    def channels_above(self, below: int) -> int:
        if require_positive("rate", self.rate, why="it is the share of values that are dropped") >= 1:
            raise ValueError(f"rate is {self.rate:g}; dropout of all values leaves nothing: give less than 1")
        return below


def _require_steps(name: str, steps: Any, why: str) -> None:
    """Raise TypeError or ValueError unless these are whole numbers, 1 or more, one for every axis."""
    if not isinstance(steps, tuple):
        raise TypeError(f"{name} is {steps!r}; give a tuple, {why} along every axis")
    for step in steps:
        require_count(name, step, why=f"{why} along an axis")
