"""How every map carries covariance and tangent kernel at infinite width, or why not: found by the map's type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from meanfield.nets.maps import (
    Attention,
    BatchNormalisation,
    Bias,
    Dropout,
    Gain,
    Gate,
    Linear,
    Normalisation,
    Pointwise,
    Pooling,
)
from meanfield.theory.maps.base import Kinds
from meanfield.theory.maps.batches import not_through
from meanfield.theory.maps.linear import through_bias, through_linear
from meanfield.theory.maps.mixing import through_attention, through_normalisation, through_pooling
from meanfield.theory.maps.pointwise import through_gate, through_pointwise

# Values above a map on a grid of sites from those below it; raises `NoTransport` where they do not close.
TRANSPORTS: dict[type, Callable[[Any, Kinds, tuple[int, ...]], Kinds]] = {
    Linear: through_linear,
    Bias: through_bias,
    Pointwise: through_pointwise,
    Gate: through_gate,
    Normalisation: through_normalisation,
    Attention: through_attention,
    Pooling: through_pooling,
    BatchNormalisation: not_through,
    Dropout: not_through,
    Gain: not_through,
}
