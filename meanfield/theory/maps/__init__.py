"""How every map carries covariance and tangent kernel at infinite width, or why not: found by the map's type."""

from __future__ import annotations

from meanfield.nets.maps import Attention, Bias, Gate, Linear, Map, Normalisation, Pointwise, Pooling
from meanfield.theory.maps.attention import AttentionTransport
from meanfield.theory.maps.base import Transport
from meanfield.theory.maps.linear import BiasTransport, LinearTransport
from meanfield.theory.maps.normalisation import NormalisationTransport
from meanfield.theory.maps.pointwise import GateTransport, PointwiseTransport
from meanfield.theory.maps.pooling import PoolingTransport

TRANSPORTS: dict[type, Transport] = {
    Linear: LinearTransport(),
    Bias: BiasTransport(),
    Pointwise: PointwiseTransport(),
    Gate: GateTransport(),
    Normalisation: NormalisationTransport(),
    Attention: AttentionTransport(),
    Pooling: PoolingTransport(),
}


def transport_of(one: Map) -> Transport:
    """What theory knows of this map."""
    return TRANSPORTS[type(one)]
