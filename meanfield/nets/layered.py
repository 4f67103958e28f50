"""Nets of layers: fully-connected and convolutional ones, by where each layer's output joins the net.

A fully-connected net is a convolutional net on the empty grid: one site, one tap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from math import prod
from typing import ClassVar

from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.common.validation import (
    MOST_LAYERS,
    require_choice,
    require_count,
    require_counts,
    require_positive,
    settle,
)
from meanfield.nets.activations import ACTIVATIONS, Activation, activation_named
from meanfield.nets.lattice import PADDINGS, require_same_dimension
from meanfield.nets.maps import Flatten, Linear, Map, Pointwise, Pooling, Weight
from meanfield.nets.net import Net, Unit


@dataclass(frozen=True)
class Layer:
    """How the output of one weight matrix joins the net: z = z_skip + multiplier * W patches(sigma(z_below)).

    Attributes:
        skip: layer whose pre-activation is added (0 is the input), or None.
        multiplier: factor on the branch.
        variance_factor: factor on the fan-in variance of the weights.
    """

    skip: int | None = None
    multiplier: float = 1.0
    variance_factor: float = 1.0


def joins(layers: Sequence[Layer]) -> dict[int, int]:
    """The layer that every skip connection leads to, by the layer that it starts from.

    Raises:
        ValueError: two skip connections start from one layer; errors would be sent back through one of them alone.
    """
    ends: dict[int, int] = {}
    for place, layer in enumerate(layers, start=1):
        if layer.skip is None:
            continue
        if layer.skip in ends:
            raise ValueError(
                f"layers {ends[layer.skip]} and {place} both skip from layer {layer.skip}; errors and labels are "
                "sent back through one skip connection of a layer: let every skip start from a layer of its own"
            )
        ends[layer.skip] = place
    return ends


def readout_variance(head: str, fan_in: int, gain: float, factor: float = 1.0) -> float:
    """Variance of a readout's weights: as the others, of this factor on the fan-in rule, 1/fan_in or 1/fan_in^2."""
    return {"he": factor / (gain * fan_in), "fan_in": 1.0 / fan_in, "mup": 1.0 / fan_in**2}[head]


def require_fitting_kernel(kernel: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """Raise ValueError for a kernel larger than a circular grid."""
    if any(taps > sites for taps, sites in zip(kernel, grid, strict=True)):
        raise ValueError(
            f"kernel {kernel} is larger than the circular grid {grid}: it would visit a site twice; "
            "shrink the kernel, enlarge the grid, or use padding 'zero'"
        )


HEADS = ("he", "fan_in", "mup")
READOUTS = ("pooled", "convolution", "flatten")
INPUT_LAYOUT = "(samples, channels, *grid)"


class Sequential(Net):
    """A chain of layers z_l = [z_skip +] a W patches(sigma(z_{l-1})) and a linear readout.

    Notation: N layers with weights of their own, gathered in L depth units (in plain nets every layer is one), C_l
    channels of layer l (C_0 those of the input), S sites of one sample, k taps of the stencil, q the activation's gain,
    M output coordinates of one sample. Weights have variance sigma_W^2/fan_in; a ``weight_variance`` of None is the
    fan-in rule, sigma_W^2 = 1/q (Zhang et al. 2026, eq. 1). ``WIDTH`` and ``INPUT`` name the fields that
    hold the channels of the layers and of the input.
    """

    WIDTH: ClassVar[str]
    INPUT: ClassVar[str]
    # Whether one activation and one variance, over the fan-in rule, serve all layers outside branches.
    follows_one_rule: ClassVar[bool] = True

    activation: str
    weight_variance: float | None
    depth: int
    outputs: int
    head: str
    inputs: int
    grid: tuple[int, ...]
    kernel: tuple[int, ...]
    padding: str
    readout: str

    def __post_init__(self) -> None:
        depth = require_count("depth", self.depth, maximum=MOST_LAYERS, why="depth counts the hidden layers")
        settle(self, depth=depth)
        self._settle_counts(outputs="coordinates of the readout", inputs="samples in the batch")
        require_choice("activation", self.activation, ACTIVATIONS)
        require_choice("head", self.head, HEADS)
        self._check_weight_variance()
        self._check_width()
        if getattr(self, self.INPUT) is not None:
            self._settle_counts(**{self.INPUT: "channels of the input"})  # type: ignore[arg-type]

    @cached_property
    def channels_by_layer(self) -> tuple[int, ...]:
        """C_0 .. C_N."""
        width = getattr(self, self.WIDTH)
        hidden = width if isinstance(width, tuple) else (width,) * self.depth
        return (getattr(self, self.INPUT) or hidden[0], *hidden)

    @cached_property
    def sigma(self) -> Activation:
        return activation_named(self.activation)

    def sigma_at(self, place: int) -> Activation:
        """That which reads value_place, of 0 .. N."""
        return self.sigma

    def normalised_at(self, place: int) -> float | None:
        """epsilon of the normalisation between value_place and its activation; None without one."""
        return None

    @property
    def variance_factor(self) -> float:
        """Variance of the weights over that of the fan-in rule: q sigma_W^2, or 1 under the rule."""
        return 1.0 if self.weight_variance is None else self.weight_variance * self.sigma.gain

    @property
    def input_energy(self) -> float:  # type: ignore[override]
        """E[sigma(x)^2] of normalised inputs, at which z^(1) has variance 1: 1/sigma_W^2, q under the fan-in rule."""
        return self.sigma.gain / self.variance_factor

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """How layers 1 .. N join the net: in plain nets one after the other."""
        return (Layer(variance_factor=self.variance_factor),) * (len(self.channels_by_layer) - 1)

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        """Every depth unit: its layers, sigma and W one after the other, with the join of the last."""
        ends, maps = (0, *self.unit_ends), list(map(self._layer_maps, self.hidden_weights))
        joins, values = [self.layers[end - 1] for end in ends[1:]], {end: value for value, end in enumerate(ends)}
        return tuple(
            Unit(tuple(chain(*maps[start:end])), None if join.skip is None else values[join.skip], join.multiplier)
            for (start, end), join in zip(pairwise(ends), joins, strict=True)
        )

    @property
    def has_skips(self) -> bool:
        """The layers say it as for any net: they are few objects in nets of a million units."""
        return any(layer.skip is not None for layer in self.layers)

    @cached_property
    def readout_unit(self) -> Unit:  # type: ignore[override]
        """One more layer, or a linear map of the mean over sites of the features, or of all of them."""
        shape = (self.outputs, self.channels_by_layer[-1], *self.kernel)
        joined: tuple[Map, ...] = ()
        if self.readout != "convolution":
            shape, joined = (self.outputs, self.head_fan_in), (Pooling() if self.is_pooled else Flatten(self.sites),)
        activation, *linear = self._layer_maps(Weight("readout", shape, self.head_variance))
        return Unit((activation, *joined, *linear))

    @cached_property
    def hidden_weights(self) -> list[Weight]:
        """W1 .. WN, of variance s = 1/(q fan_in) times the layer's factor."""
        weights = []
        sizes = zip(self.layers, pairwise(self.channels_by_layer), strict=True)
        for number, (layer, (below, above)) in enumerate(sizes, start=1):
            variance = layer.variance_factor / (self.sigma.gain * self.taps * below)
            weights.append(Weight(f"W{number}", (above, below, *self.kernel), variance))
        return weights

    @property
    def weight_variances(self) -> list[float]:
        """The variances are those of any net, read without its units: these take longer than most recursions."""
        return [*(weight.variance for weight in self.hidden_weights), self.head_variance]

    def _layer_maps(self, weight: Weight) -> tuple[Map, ...]:
        return Pointwise(self.activation), Linear((weight,), self.padding)

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.channels_by_layer[0]

    @property
    def reduces_to_top(self) -> bool:
        """Where edges lose no signal, gates have one mean square at any variance, and weights follow 1/q."""
        return self.covers_evenly and self.sigma.homogeneous and self.weight_variance is None

    @cached_property
    def unit_ends(self) -> tuple[int, ...]:
        """The layer at which each depth unit ends, and at which datasets over ``layer`` are read off."""
        return tuple(range(1, len(self.layers) + 1))

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
    def output_grid(self) -> tuple[int, ...]:
        """The readout says it without its maps."""
        return self.grid if self.readout == "convolution" else ()

    @property
    def output_units(self) -> int:
        """M = output channels times output sites."""
        return self.outputs * prod(self.output_grid)

    @property
    def head_fan_in(self) -> int:
        """Channels of the last layer, times the taps, or the sites of a sample, that an output sees of each."""
        seen = {"pooled": 1, "convolution": self.taps, "flatten": self.sites}
        return self.channels_by_layer[-1] * seen[self.readout]

    @property
    def head_variance(self) -> float:
        """Variance of the readout's weights: as the others, 1/fan_in or 1/fan_in^2 (Zhang et al. 2026, 3.1, 3.3)."""
        return readout_variance(self.head, self.head_fan_in, self.sigma.gain, self.variance_factor)

    def _check_weight_variance(self) -> None:
        """Settle sigma_W^2: it is positive and, where inputs are normalised, some input gives z^(1) variance 1."""
        if self.weight_variance is None:
            return
        why = "it is sigma_W^2, the variance of the weights times fan-in"
        given = require_positive("weight_variance", self.weight_variance, why=why)
        settle(self, weight_variance=given)
        reached = mean_square(self.sigma.function, LARGEST_VARIANCE)
        if self.input_law == "normalised" and not self.sigma.homogeneous and self.input_energy >= reached:
            raise ValueError(
                f"weight_variance is {given:g}: inputs are scaled so that z^(1) has variance 1, which takes "
                f"E[sigma(x)^2] = {self.input_energy:g}, and {self.activation} reaches {reached:.4g}; "
                f"give more than {1 / reached:.4g}"
            )

    def _check_width(self) -> None:
        counts = require_counts(self.WIDTH, getattr(self, self.WIDTH), why="one number, or one per layer")
        if len(counts) not in (1, self.depth):
            raise ValueError(
                f"{self.WIDTH} has {len(counts)} entries for depth {self.depth}; give one number, or one per layer"
            )
        settle(self, **{self.WIDTH: counts[0] if len(set(counts)) == 1 else counts})


@dataclass(frozen=True, kw_only=True)
class MLP(Sequential):
    """Fully-connected net: z^(l) = W^(l) sigma(z^(l-1)), readout W sigma(z^(L)).

    Source: Zhang et al. 2026, eq. 2.

    Args:
        depth: hidden layers L, at least 1.
        width: n, one number or one per layer.
        activation: "relu", "linear", "gelu" (exact, z Phi(z)), "silu", "tanh" or "erf".
        outputs: M.
        head: "he", "fan_in" or "mup".
        inputs: samples in the batch; drawn Gaussian, normalised so that |sigma(x)|^2 = q n, or n/sigma_W^2, and z^(1)
            has variance 1.
        input_width: channels of x; as the first layer's width if not given.
        weight_variance: sigma_W^2 where weights have variance sigma_W^2/fan_in, such as 2 (He) for any activation;
            1/q, the fan-in rule, if not given. A "he" head follows it.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, a wrong number of widths, an unknown name, a
            variance that is not positive or at which no input gives z^(1) variance 1.

    Examples:
        >>> import meanfield as mf
        >>> mf.MLP(depth=3, width=64, inputs=2).weight_shapes
        [(64, 64), (64, 64), (64, 64), (10, 64)]
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
    input_law: ClassVar[str] = "normalised"
    WIDTH, INPUT = "width", "input_width"


@dataclass(frozen=True, kw_only=True)
class ConvNet(Sequential):
    """Convolutional net of stride 1 on a 1D or 2D grid (Zhang et al. 2026, eq. 3).

    z_j(p) = sum_i sum_Delta W_{j,i,Delta} sigma(z_i(p + Delta)), with the offsets of `meanfield.nets.lattice`.

    Args:
        depth: hidden layers L, at least 1.
        channels: C, one number or one per layer.
        grid: lengths of the one or two axes.
        kernel: taps along each axis, odd or even.
        padding: "circular" (the grid is a torus) or "zero".
        activation: "relu", "linear", "gelu" (exact, z Phi(z)), "silu", "tanh" or "erf".
        outputs: output channels.
        head: "he", "fan_in" or "mup".
        readout: "pooled" averages over sites before a linear map (the papers' head); "convolution" is one more
            convolutional layer; "flatten" is a linear map of all features of a sample, whose weights (outputs,
            channels x sites) see channel c at site p in column c S + p. The top-layer reduction is exact for the last
            two.
        input_channels: channels of x; as the first layer's if not given.
        inputs: samples in the batch; drawn white Gaussian of unit variance over channels and sites.
        weight_variance: sigma_W^2, as for `MLP`.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, a wrong number of channels, an unknown name, a
            variance that is not positive, grid and kernel of different dimension, a kernel larger than a circular grid.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.ConvNet(depth=4, channels=16, grid=(8, 8), kernel=(3, 3), padding="zero")
        >>> net.output_shape, net.head_variance
        ((1, 10), 0.125)
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

    WIDTH, INPUT = "channels", "input_channels"

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if self.padding == "circular":
            require_fitting_kernel(self.kernel, self.grid)
