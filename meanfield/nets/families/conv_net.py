"""Convolutional nets."""

from dataclasses import dataclass

from meanfield.common.validation import require_choice, require_counts, settle
from meanfield.nets.families.layered import READOUTS, Sequential
from meanfield.nets.lattice import PADDINGS, require_same_dimension


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
        if self.padding == "circular" and any(taps > sites for taps, sites in zip(self.kernel, self.grid, strict=True)):
            raise ValueError(
                f"kernel {self.kernel} is larger than the circular grid {self.grid}: it would visit a site twice; "
                "shrink the kernel, enlarge the grid, or use padding 'zero'"
            )
