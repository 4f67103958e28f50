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
from meanfield.simulation.maps.attention import AttentionOperation
from meanfield.simulation.maps.base import Operation
from meanfield.simulation.maps.batches import BatchNormalisationOperation, DropoutOperation
from meanfield.simulation.maps.linear import BiasOperation, GainOperation, LinearOperation
from meanfield.simulation.maps.normalisation import NormalisationOperation
from meanfield.simulation.maps.pointwise import GateOperation, PointwiseOperation
from meanfield.simulation.maps.pooling import PoolingOperation
from meanfield.simulation.maps.rectified import RectifiedLinear, RectifiedLinearOperation

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
