"""Nets whose blocks are set beside what they read: z_l = [z_{l-1}, W^(l) patches(sigma(z_{l-1}))] (Huang et al. 2017).

Every block reads all values below it and adds ``growth`` channels to them, so that value l has n_l = width + l growth
channels. The weights of block l have variance 1/(q fan_in), fan_in = n_{l-1} times the taps: the fan-in rule of nets
whose layers have n_0, n_1, .. channels, and the readout is that of such a net.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from meanfield.common.validation import require_choice, require_counts, settle
from meanfield.nets.lattice import PADDINGS
from meanfield.nets.layered import MLP, READOUTS, ConvNet, Sequential
from meanfield.nets.maps import Linear, Pointwise
from meanfield.nets.net import Net, Unit


@dataclass(frozen=True, kw_only=True)
class DenseNet(Net):
    """L blocks that concatenate, z_l = [z_{l-1}, W^(l) patches(sigma(z_{l-1}))], on vectors or on a grid.

    Depth units are the stem's layers and the blocks. Energies of a depth unit are means over all channels of its value:
    those that it has from the value below, and its own. Without a stem the channels of the input are among them, which
    no step moves.

    Args:
        depth: blocks L, at least 1.
        growth: g, channels that a block adds.
        width: n_0, channels of the first value.
        stem: plain layers of n_0 channels below the blocks; without one the first value is the input.
        activation: "relu", "linear", "gelu" (exact, z Phi(z)), "silu" or "tanh".
        grid: lengths of the one or two axes; none for vectors.
        kernel: taps along each axis; one number for all axes.
        padding: "circular" (the grid is a torus) or "zero".
        outputs: M.
        head: "he", "fan_in" or "mup", by the fan-in of the readout, which grows with n_L.
        readout: on a grid "pooled", "convolution" or "flatten", as for `ConvNet`; on vectors all are one.
        inputs: samples in the batch, drawn as for `MLP` (vectors) or `ConvNet`.
        input_width: channels of x; n_0 if not given.

    Raises:
        TypeError, ValueError: as for `MLP` and `ConvNet`; an input of another width than n_0 without a stem.

    Source: Huang et al. 2017 (arXiv 1608.06993), without batch normalisation, bottlenecks and transitions.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.DenseNet(depth=3, growth=8, width=16)
        >>> net.value_channels, net.weight_shapes[:3]
        ((16, 24, 32, 40), [(8, 16), (8, 24), (8, 32)])
    """

    depth: int
    growth: int
    width: int
    stem: int = 0
    activation: str = "relu"
    grid: tuple[int, ...] = ()
    kernel: tuple[int, ...] = (3,)
    padding: str = "circular"
    outputs: int = 10
    head: str = "he"
    readout: str = "pooled"
    inputs: int = 1
    input_width: int | None = None

    def __post_init__(self) -> None:
        self._settle_counts(depth="blocks", growth="channels of a block", width="channels of the first value")
        self._settle_counts(minimum=0, stem="plain layers below the blocks")
        if self.input_width is not None:
            self._settle_counts(input_width="channels of the input")
        if self.stem == 0 and self.input_width not in (None, self.width):
            raise ValueError(
                f"the input has {self.input_width} channels and width is {self.width}: without a stem the input is the "
                "first value; give stem=1 or more, or width alone"
            )
        require_choice("padding", self.padding, PADDINGS)
        require_choice("readout", self.readout, READOUTS)
        settle(self, grid=require_counts("grid", self.grid, why="sites along an axis"))
        kernel = require_counts("kernel", self.kernel, why="taps along an axis")
        one_for_all = len(set(kernel)) == 1 and len(kernel) == len(self.grid)
        settle(self, kernel=kernel[:1] if one_for_all else kernel)
        settle(self, inputs=self.plain.inputs, outputs=self.plain.outputs)  # which checks all that is left

    @cached_property
    def plain(self) -> Sequential:
        """The plain net with as many channels at every value, which has the fan-ins, the inputs and the readout.

        Raises:
            TypeError, ValueError: what no plain net takes.
        """
        values = [self.width] * self.stem + [self.width + block * self.growth for block in range(1, self.depth + 1)]
        shared: dict[str, Any] = {
            "activation": self.activation,
            "outputs": self.outputs,
            "head": self.head,
            "inputs": self.inputs,
        }
        first = self.input_width or self.width
        if not self.grid:
            return MLP(depth=len(values), width=tuple(values), input_width=first, **shared)
        kernel = self.kernel * len(self.grid) if len(self.kernel) == 1 else self.kernel
        shared |= {"grid": self.grid, "kernel": kernel, "padding": self.padding, "readout": self.readout}
        return ConvNet(depth=len(values), channels=tuple(values), input_channels=first, **shared)

    @property
    def input_law(self) -> str:  # type: ignore[override]
        return self.plain.input_law

    @property
    def input_energy(self) -> float:  # type: ignore[override]
        return self.plain.input_energy

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.plain.first_channels

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        """The stem's layers, and a block of sigma and W beside the value below it, one after the other."""
        sigma, units = Pointwise(self.activation), []
        for number, weight in enumerate(self.plain.hidden_weights):
            if number < self.stem:
                units.append(Unit((sigma, Linear((weight,), self.plain.padding))))
                continue
            block = replace(weight, shape=(self.growth, *weight.shape[1:]))
            units.append(Unit((sigma, Linear((block,), self.plain.padding)), number, join="concat"))
        return tuple(units)

    @property
    def readout_unit(self) -> Unit:  # type: ignore[override]
        return self.plain.readout_unit
