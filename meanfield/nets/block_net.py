"""Residual nets of blocks of k transformations, all matrices trained (Zheng et al. 2026).

    h_0 = a_0 phi(W_0 x + b_0)
    h_l = h_{l-1} + a_l phi(W_l^(k) ... phi(W_l^(1) h_{l-1} + b_l^(1)) ... + b_l^(k)),   l = 1 .. L
    f   = a_{L+1} W_{L+1} h_L

Unlike in `meanfield.nets.residual`, the activation follows each matrix, multipliers and variances are free
for input, hidden and output weights, and nets are meant to be trained for several steps by any optimizer.

Source: eqs. 2, 28, appendices B.1 - B.3 of the paper.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from meanfield.common.validation import MOST_LAYERS, require_choice, require_count, require_finite, require_flag, settle
from meanfield.nets.maps import Bias, Linear, Map, Pointwise, Weight
from meanfield.nets.net import Net, Unit

WEIGHT_ROLES = ("input", "hidden", "output")
BLOCK_ACTIVATIONS = ("linear", "relu")


@dataclass(frozen=True, kw_only=True)
class BlockNet(Net):
    """L residual blocks of k transformations between an input and an output matrix.

    Args:
        width: n, units of the stream.
        depth: blocks L.
        block_depth: transformations k of a block.
        block_width: units inside a block; n if left out.
        input_width: d_0.
        samples: inputs in a batch, each uniform on the sphere |x|^2 = d_0, with random labels +-1; the loss is the
            logistic one, averaged over the batch.
        outputs: of the readout; with several, labels are random classes and the loss is the cross-entropy.
        activation: phi, "linear" or "relu".
        biases: whether input and hidden matrices have biases (B.3).
        multipliers: a_0, a_l, a_{L+1}.
        variances: of an element of W_0, W_l and W_{L+1}.
        bias_variance: of an element of the biases.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, an unknown activation, numbers that are not finite
            or variances below zero.

    Source: Zheng et al. 2026, section 3.1, appendices B and G.2.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.BlockNet(depth=4, width=32)
        >>> net.weight_shapes[:2]
        [(32, 16), (32, 32)]
    """

    width: int
    depth: int
    block_depth: int = 2
    block_width: int | None = None
    input_width: int = 16
    samples: int = 2
    outputs: int = 1
    activation: str = "linear"
    biases: bool = False
    multipliers: tuple[float, float, float] = (1.0, 1.0, 1.0)
    variances: tuple[float, float, float] = (1.0, 1.0, 1.0)
    bias_variance: float = 0.0

    # Vectors on one site. Fixed for the family, not fields.
    grid: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    input_law: ClassVar[str] = "sphere"

    def __post_init__(self) -> None:
        self._settle_counts(
            width="units of the stream",
            block_depth="transformations of a block",
            input_width="numbers of an input",
            samples="inputs of a batch",
            outputs="coordinates of the readout",
        )
        if self.block_width is not None:
            self._settle_counts(block_width="units inside a block")
        require_choice("activation", self.activation, BLOCK_ACTIVATIONS)
        settle(
            self,
            depth=require_count("depth", self.depth, maximum=MOST_LAYERS, why="blocks of the stream"),
            biases=require_flag("biases", self.biases),
            multipliers=_three("multipliers", self.multipliers),
            variances=_three("variances", self.variances),
            bias_variance=require_finite("bias_variance", self.bias_variance, "a finite number"),
        )
        variances = (*self.variances, self.bias_variance)
        if min(variances) < 0:
            raise ValueError(f"variances and bias_variance are {variances}; variances cannot be below zero")

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(n_out, n_in) of W_0, of every W_l^(i), block by block, and of W_{L+1}."""
        inside = [self.width, *[self.block_width or self.width] * (self.block_depth - 1), self.width]
        block = list(zip(inside[1:], inside[:-1], strict=True))
        return (self.width, self.input_width), *(block * self.depth), (self.outputs, self.width)

    @property
    def roles(self) -> tuple[str, ...]:
        """ "input", "hidden" or "output", for every matrix."""
        return "input", *["hidden"] * (self.depth * self.block_depth), "output"

    def of_role(self, name: str, role: str) -> float:
        """The multiplier or variance ("multipliers", "variances") of one role."""
        return float(getattr(self, name)[WEIGHT_ROLES.index(role)])

    @property
    def inputs(self) -> int:  # type: ignore[override]
        return self.samples

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.input_width

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        """The input's matrix, then the blocks on the stream: W0, b0, and W3.2, b3.2 for block 3's second matrix."""
        first, *shapes = self.shapes
        units = [Unit(self._maps("0", "input", first), None, self.multipliers[0])]
        for block in range(1, self.depth + 1):
            inside = enumerate(shapes[: self.block_depth], start=1)  # the same in every block
            branch = tuple(chain(*(self._maps(f"{block}.{place}", "hidden", shape) for place, shape in inside)))
            units.append(Unit(branch, block, self.multipliers[1]))
        return tuple(units)

    def _maps(self, name: str, role: str, shape: tuple[int, int]) -> tuple[Map, ...]:
        """phi(W x [+ b])."""
        linear = Linear((Weight(f"W{name}", shape, self.of_role("variances", role)),))
        bias = (Bias(Weight(f"b{name}", shape[:1], self.bias_variance)),) if self.biases else ()
        return (linear, *bias, *(() if self.activation == "linear" else (Pointwise(self.activation),)))

    @cached_property
    def readout_unit(self) -> Unit:  # type: ignore[override]
        """W_{L+1}, without a bias."""
        return Unit((Linear((Weight("readout", self.shapes[-1], self.variances[2]),)),), None, self.multipliers[2])


def _three(name: str, values: Any) -> tuple[float, float, float]:
    if not isinstance(values, tuple | list) or len(values) != len(WEIGHT_ROLES):
        raise ValueError(f"{name} is {values!r}; give three numbers, for input, hidden and output weights")
    first, second, third = (require_finite(f"an entry of {name}", value, "a finite number") for value in values)
    return first, second, third
