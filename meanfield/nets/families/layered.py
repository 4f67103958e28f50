"""What nets of layers share: one kind of layer, of one activation and one stencil, again and again.

A fully-connected net is a convolutional net on the empty grid: one site, one tap.
"""

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
from meanfield.nets.layers import Layer
from meanfield.nets.maps import Linear, Map, Pointwise, Pooling, Weight
from meanfield.nets.net import Net
from meanfield.nets.units import Unit

HEADS = ("he", "fan_in", "mup")
READOUTS = ("pooled", "convolution")
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
        """As of any net, read off the layers: they are few objects in nets of a million units."""
        return any(layer.skip is not None for layer in self.layers)

    @cached_property
    def readout_unit(self) -> Unit:  # type: ignore[override]
        """One more layer, or the mean over sites of the features and a linear map."""
        shape = (self.outputs, self.channels_by_layer[-1], *(() if self.is_pooled else self.kernel))
        activation, *linear = self._layer_maps(Weight("readout", shape, self.head_variance))
        return Unit((activation, *([Pooling()] if self.is_pooled else []), *linear))

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
        """As of any net, without its units, which take longer than most recursions that start from these."""
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
    def output_units(self) -> int:
        """M = output channels times output sites."""
        return self.outputs * (1 if self.is_pooled else self.sites)

    @property
    def head_fan_in(self) -> int:
        return self.channels_by_layer[-1] * (1 if self.is_pooled else self.taps)

    @property
    def head_variance(self) -> float:
        """Variance of the readout's weights: as the others, 1/fan_in or 1/fan_in^2 (Zhang et al. 2026, 3.1, 3.3)."""
        fan_in = self.head_fan_in
        if self.head == "he":
            return self.variance_factor / (self.sigma.gain * fan_in)
        return 1.0 / {"fan_in": fan_in, "mup": fan_in**2}[self.head]

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
