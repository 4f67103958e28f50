"""What every map does, found by the map's type."""

from meanfield.nets.maps import (
    Attention,
    BatchNormalisation,
    Bias,
    Dropout,
    Gain,
    Gate,
    Linear,
    Map,
    Normalisation,
    Pointwise,
    Pooling,
)
from meanfield.simulation.maps.base import Operation
from meanfield.simulation.maps.weighted import (
    BiasOperation,
    GainOperation,
    LinearOperation,
    RectifiedLinear,
    RectifiedLinearOperation,
)
from meanfield.simulation.maps.weightless import (
    AttentionOperation,
    BatchNormalisationOperation,
    DropoutOperation,
    GateOperation,
    NormalisationOperation,
    PointwiseOperation,
    PoolingOperation,
)

OPERATIONS: dict[type, Operation] = {
    Linear: LinearOperation(),
    RectifiedLinear: RectifiedLinearOperation(),
    Bias: BiasOperation(),
    Gain: GainOperation(),
    Pointwise: PointwiseOperation(),
    Gate: GateOperation(),
    Normalisation: NormalisationOperation(),
    Attention: AttentionOperation(),
    Pooling: PoolingOperation(),
    BatchNormalisation: BatchNormalisationOperation(),
    Dropout: DropoutOperation(),
}


def operation_of(spec: Map) -> Operation:
    """What this map does."""
    return OPERATIONS[type(spec)]
