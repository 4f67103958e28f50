"""Residual nets: K blocks z + a branch(z) on a stream, with plain layers below and above.

A branch is a chain of k layers Z = W patches(sigma(z)), the first of which reads the stream, so that with k = 1 a
block is z + a W sigma(z). The scaling says how a branch is kept small as K grows (`meanfield.nets.scalings`):

    "init"               every branch tensor has variance 1/(q K fan_in), and a = 1
    "multiplier_sqrt"    a = K^(-1/2), variance 1/(q fan_in)
    "multiplier_linear"  a = 1/K, variance 1/(q fan_in)
    "none"               a = 1, variance 1/(q fan_in)
    a number alpha       a = K^(-alpha), variance 1/(q fan_in)

Depth units are the stem's layers, the blocks and the tail's layers; parameters outside branches follow the fan-in
rule.

Source: Zhang et al. 2026, eqs. 4, 28, with "init" (eq. 5) and, as its equivalent, "multiplier_sqrt"; Zheng et al.
2026 take "multiplier_sqrt" for k = 1 and "multiplier_linear" for k >= 2.
"""

from dataclasses import dataclass
from functools import cached_property

from meanfield.common.validation import settle
from meanfield.nets.layered import MLP, ConvNet, Layer, Sequential
from meanfield.nets.scalings import branch_factors, settled_scaling


@dataclass(frozen=True, kw_only=True)
class Residual(Sequential):
    """What residual nets share: where their layers lie, and how branches are scaled."""

    block_depth: int = 1
    scaling: str | float = "init"
    stem: int = 0
    tail: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_blocks()

    @property
    def blocks(self) -> int:
        """K."""
        return self.depth

    @property
    def multiplier(self) -> float:
        """a, the factor on a branch."""
        return branch_factors(self.scaling, self.blocks)[0]

    @property
    def branch_variance_factor(self) -> float:
        """Factor on the fan-in variance of a branch's weights."""
        return branch_factors(self.scaling, self.blocks)[1]

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        multiplier, factor = self.multiplier, self.branch_variance_factor  # which many blocks share
        inner, layers = Layer(variance_factor=factor), [Layer()] * self.stem
        for _ in range(self.blocks):
            joint = Layer(len(layers), multiplier, factor)
            layers += [inner] * (self.block_depth - 1) + [joint]
        return (*layers, *[Layer()] * self.tail)

    @cached_property
    def unit_ends(self) -> tuple[int, ...]:
        stem, last = range(1, self.stem + 1), self.stem + self.blocks * self.block_depth
        blocks = range(self.stem + self.block_depth, last + 1, self.block_depth)
        return (*stem, *blocks, *range(last + 1, last + self.tail + 1))

    @cached_property
    def channels_by_layer(self) -> tuple[int, ...]:
        stream = getattr(self, self.WIDTH)
        return (getattr(self, self.INPUT) or stream, *(stream,) * len(self.layers))

    def _check_blocks(self) -> None:
        """Counts of blocks, and a stream of one width, which is also that of the input if there is no stem."""
        self._settle_counts(block_depth="layers of a branch")
        self._settle_counts(minimum=0, stem="plain layers below the blocks", tail="plain layers above the blocks")
        settle(self, scaling=settled_scaling(self.scaling, self.blocks))
        if self.weight_variance is not None:
            raise ValueError(
                f"weight_variance is {self.weight_variance:g}; residual nets keep to the fan-in rule 1/q, which "
                "their scalings refer to: leave it out, or take a plain net"
            )
        stream, given = getattr(self, self.WIDTH), getattr(self, self.INPUT)
        if isinstance(stream, tuple):
            raise ValueError(f"{self.WIDTH} is {stream}; blocks add to one stream, so give one number")
        if self.stem == 0 and given not in (None, stream):
            raise ValueError(
                f"the input has {given} channels and the stream {stream}: blocks cannot add to it; give stem=1 or more"
            )


@dataclass(frozen=True, kw_only=True)
class ResidualMLP(Residual, MLP):
    """Fully-connected residual net: stem, K blocks z + a branch(z), tail, and a linear readout.

    Datasets are indexed by depth units: the stem's layers, the blocks, the tail's layers.

    Args:
        depth: blocks K, at least 1.
        width: n, one number.
        block_depth: layers k of a branch.
        scaling: "init", "multiplier_sqrt", "multiplier_linear", "none", or a number alpha, which multiplies branches by
            K^(-alpha) (`meanfield.nets.residual`); 1/2, 1 and 0 are settled to the names that they have.
        stem, tail: plain layers below and above the blocks.
        activation, outputs, head, inputs, input_width: as for `MLP`; without a stem the stream starts from the input.

    Raises:
        TypeError, ValueError: a count that is not whole or too small, an unknown name, an alpha that is not finite or
            leaves K^(-alpha) no place among the floats, several widths, an input of another width than the stream
            without a stem.

    Source: Zhang et al. 2026, eqs. 4, 5, 28.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.ResidualMLP(depth=8, width=64, block_depth=2)
        >>> len(net.units), net.weight_variances[0] * 64
        (8, 0.25)
    """


@dataclass(frozen=True, kw_only=True)
class ResidualConvNet(Residual, ConvNet):
    """Convolutional residual net of stride 1: the blocks of `ResidualMLP` with convolutional layers.

    Args:
        depth: blocks K, at least 1.
        channels: C, one number.
        block_depth, scaling, stem, tail: as for `ResidualMLP`.
        grid, kernel, padding, activation, outputs, head, readout, input_channels, inputs: as for `ConvNet`.

    Raises:
        TypeError, ValueError: as for `ConvNet` and `ResidualMLP`.

    Source: Zhang et al. 2026, section 4.3.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.ResidualConvNet(depth=4, channels=16, grid=(8, 8), kernel=(3, 3), stem=1, input_channels=3)
        >>> net.input_shape, net.weight_shapes[0]
        ((1, 3, 8, 8), (16, 3, 3, 3))
    """
