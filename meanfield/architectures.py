"""What a network is: frozen, keyword-only specs, checked once, before any work starts.

Every net is ONE layer map repeated. A fully-connected net is a convolutional net on the empty grid: one site, one tap.
`Sequential` is what the rest of the library reads; `MLP` and `ConvNet` are what a user writes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

from meanfield.activations import ACTIVATIONS
from meanfield.lattice import PADDINGS, require_same_dimension
from meanfield.layers import Layer
from meanfield.memory import Drawable
from meanfield.validation import MOST_LAYERS, require_choice, require_count, require_counts, settle
from meanfield.weight_scale import WeightScale

HEADS = ("he", "fan_in", "mup")
READOUTS = ("pooled", "convolution")
INPUT_LAYOUT = "(samples, channels, *grid)"


class Sequential(WeightScale, Drawable, ABC):
    """A chain of layers z_l = [z_skip +] a W patches(sigma(z_{l-1})) and a linear readout, as numbers from a spec.

    Notation: N layers with weights of their own, gathered in L depth units (in plain nets every layer is one), C_l
    channels of layer l (C_0 those of the input), S sites of one sample, k taps of the stencil, q the activation's gain,
    M output coordinates of one sample.
    """

    depth: int
    outputs: int
    head: str
    inputs: int
    grid: tuple[int, ...]
    kernel: tuple[int, ...]
    padding: str
    readout: str

    @property
    @abstractmethod
    def channels_by_layer(self) -> tuple[int, ...]:
        """C_0 .. C_N."""

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """How layers 1 .. N join the net: in plain nets one after the other."""
        return (Layer(variance_factor=self.variance_factor),) * (len(self.channels_by_layer) - 1)

    @property
    def reduces_to_top(self) -> bool:
        """Whether labels reach every layer with the same energy, so that one column measures overlaps at all of them.

        The top-layer reduction (P0 Lemma 1): no signal is lost at edges, gates keep their mean square at any variance,
        and weights make up for it exactly.
        """
        return self.covers_evenly and self.sigma.homogeneous and self.weight_variance is None

    @cached_property
    def unit_ends(self) -> tuple[int, ...]:
        """The layer at which each depth unit ends; what datasets hold by ``layer`` is read off there."""
        return tuple(range(1, len(self.layers) + 1))

    @property
    def has_skips(self) -> bool:
        """Whether some layer adds an earlier one to its own branch."""
        return any(layer.skip is not None for layer in self.layers)

    @cached_property
    def sites(self) -> int:
        """S."""
        return prod(self.grid)

    @cached_property
    def taps(self) -> int:
        """k."""
        return prod(self.kernel)

    @property
    def covers_evenly(self) -> bool:
        """Whether every site is visited by every offset, so that no signal is lost at an edge."""
        return self.padding == "circular" or self.taps == 1

    @property
    def is_pooled(self) -> bool:
        """Whether the readout averages over sites before its linear map."""
        return self.readout == "pooled"

    @property
    def output_units(self) -> int:
        """M = output channels times output sites."""
        return self.outputs * (1 if self.is_pooled else self.sites)

    @property
    def head_fan_in(self) -> int:
        return self.channels_by_layer[-1] * (1 if self.is_pooled else self.taps)

    @property
    def head_variance(self) -> float:
        """Variance of the readout's weights: as the others, 1/fan_in or 1/fan_in^2 (P0 sections 3.1, 3.3)."""
        fan_in = self.head_fan_in
        if self.head == "he":
            return self.variance_factor / (self.sigma.gain * fan_in)
        return 1.0 / {"fan_in": fan_in, "mup": fan_in**2}[self.head]

    @property
    def weight_variances(self) -> list[float]:
        """s = 1/(q fan_in) of W^(1) .. W^(N) (P0 eq. 1), times the layer's factor, then the readout's."""
        below = zip(self.layers, self.channels_by_layer, strict=False)
        hidden = [layer.variance_factor / (self.sigma.gain * self.taps * width) for layer, width in below]
        return [*hidden, self.head_variance]

    @property
    def weight_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of W^(1) .. W^(N), then the readout's: (channels out, channels in, *kernel)."""
        channels = self.channels_by_layer
        hidden = [(above, below, *self.kernel) for below, above in pairwise(channels)]
        return [*hidden, (self.outputs, channels[-1], *(() if self.is_pooled else self.kernel))]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(samples, channels, *grid)."""
        return (self.inputs, self.channels_by_layer[0], *self.grid)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """(samples, outputs, *grid), without the grid under a pooled readout."""
        return (self.inputs, self.outputs, *(() if self.is_pooled else self.grid))

    def describe(self) -> dict[str, Any]:
        """The full spec as plain values, for records that outlive the process."""
        spec = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"family": type(self).__name__, **{k: list(v) if isinstance(v, tuple) else v for k, v in spec.items()}}

    def _check_counts_and_names(self) -> None:
        settle(
            self,
            depth=require_count("depth", self.depth, maximum=MOST_LAYERS, why="depth counts the hidden layers"),
            outputs=require_count("outputs", self.outputs, why="coordinates of the readout"),
            inputs=require_count("inputs", self.inputs, why="samples in the batch"),
        )
        require_choice("activation", self.activation, ACTIVATIONS)
        require_choice("head", self.head, HEADS)
        self._check_weight_variance()

    def _check_width(self, name: str) -> None:
        counts = require_counts(name, getattr(self, name), why="one number, or one per layer")
        if len(counts) not in (1, self.depth):
            raise ValueError(
                f"{name} has {len(counts)} entries for depth {self.depth}; give one number, or one per layer"
            )
        settle(self, **{name: counts[0] if len(set(counts)) == 1 else counts})

    def _check_input_width(self, name: str) -> None:
        if getattr(self, name) is not None:
            settle(self, **{name: require_count(name, getattr(self, name), why="channels of the input")})


def _with_input(width: int | tuple[int, ...], depth: int, input_width: int | None) -> tuple[int, ...]:
    hidden = width if isinstance(width, tuple) else (width,) * depth
    return (input_width or hidden[0], *hidden)


@dataclass(frozen=True, kw_only=True)
class MLP(Sequential):
    """Fully-connected net: z^(l) = W^(l) sigma(z^(l-1)), readout W sigma(z^(L)) (P0 eq. 2).

    Args:
        depth: hidden layers L, at least 1.
        width: n, one number or one per layer.
        activation: "relu", "linear", "gelu" (exact, z Phi(z)), "silu" or "tanh".
        outputs: M.
        head: "he", "fan_in" or "mup".
        inputs: samples in the batch; drawn Gaussian, normalised so that |sigma(x)|^2 = q n, or n/sigma_W^2: z^(1) has
            variance 1.
        input_width: channels of x; as the first layer's width if not given.
        weight_variance: sigma_W^2 where weights have variance sigma_W^2/fan_in, such as 2 (He) for any activation;
            1/q, the fan-in rule, if not given. A "he" head follows it.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, a wrong number of widths, an unknown name, a
            variance that is not positive or at which no input gives z^(1) variance 1.
    """

    depth: int
    width: int | tuple[int, ...]
    activation: str = "relu"
    outputs: int = 10
    head: str = "he"
    inputs: int = 1
    input_width: int | None = None
    weight_variance: float | None = None

    # The empty grid: one site, one tap, a readout that is one more layer. Fixed for the family, not fields.
    grid: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    kernel: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    padding: ClassVar[str] = "circular"  # type: ignore[misc]
    readout: ClassVar[str] = "convolution"  # type: ignore[misc]
    normalised_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_counts_and_names()
        self._check_width("width")
        self._check_input_width("input_width")

    @cached_property
    def channels_by_layer(self) -> tuple[int, ...]:
        return _with_input(self.width, self.depth, self.input_width)


@dataclass(frozen=True, kw_only=True)
class ConvNet(Sequential):
    """Convolutional net of stride 1 on a 1D or 2D grid (P0 eq. 3).

    z_j(p) = sum_i sum_Delta W_{j,i,Delta} sigma(z_i(p + Delta)), with the offsets of `meanfield.lattice`.

    Args:
        depth: hidden layers L, at least 1.
        channels: C, one number or one per layer.
        grid: lengths of the one or two axes.
        kernel: taps along each axis, odd or even.
        padding: "circular" (the grid is a torus) or "zero".
        activation: "relu", "linear", "gelu" (exact, z Phi(z)), "silu" or "tanh".
        outputs: output channels.
        head: "he", "fan_in" or "mup".
        readout: "pooled" averages over sites before a linear map (the papers' head); "convolution" is one more
            convolutional layer, for which the top-layer reduction is exact.
        input_channels: channels of x; as the first layer's if not given.
        inputs: samples in the batch; drawn white Gaussian of unit variance over channels and sites.
        weight_variance: sigma_W^2, as for `MLP`.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, a wrong number of channels, an unknown name, a
            variance that is not positive, grid and kernel of different dimension, a kernel larger than a circular grid.
    """

    depth: int
    channels: int | tuple[int, ...]
    grid: tuple[int, ...] = (32,)
    kernel: tuple[int, ...] = (3,)
    padding: str = "circular"
    activation: str = "relu"
    outputs: int = 10
    head: str = "he"
    readout: str = "pooled"
    input_channels: int | None = None
    inputs: int = 1
    weight_variance: float | None = None

    def __post_init__(self) -> None:
        self._check_counts_and_names()
        self._check_width("channels")
        self._check_input_width("input_channels")
        require_choice("padding", self.padding, PADDINGS)
        require_choice("readout", self.readout, READOUTS)
        self._check_lattice()

    def _check_lattice(self) -> None:
        settle(
            self,
            grid=require_counts("grid", self.grid, why="sites along an axis"),
            kernel=require_counts("kernel", self.kernel, why="taps along an axis"),
        )
        require_same_dimension(self.grid, self.kernel)
        if len(self.grid) not in (1, 2):
            raise ValueError(f"grid {self.grid} has {len(self.grid)} axes; give 1 or 2")
        if self.padding == "circular" and any(taps > sites for taps, sites in zip(self.kernel, self.grid, strict=True)):
            raise ValueError(
                f"kernel {self.kernel} is larger than the circular grid {self.grid}: it would visit a site twice; "
                "shrink the kernel, enlarge the grid, or use padding 'zero'"
            )

    @cached_property
    def channels_by_layer(self) -> tuple[int, ...]:
        return _with_input(self.channels, self.depth, self.input_channels)
