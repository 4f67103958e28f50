"""Fully-connected nets."""

from dataclasses import dataclass
from typing import ClassVar

from meanfield.nets.families.layered import Sequential


@dataclass(frozen=True, kw_only=True)
class MLP(Sequential):
    """Fully-connected net: z^(l) = W^(l) sigma(z^(l-1)), readout W sigma(z^(L)).

    Source: Zhang et al. 2026, eq. 2.

    Args:
        depth: hidden layers L, at least 1.
        width: n, one number or one per layer.
        activation: "relu", "linear", "gelu" (exact, z Phi(z)), "silu" or "tanh".
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
