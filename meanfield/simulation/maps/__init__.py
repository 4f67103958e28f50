"""What every map does. The files of this folder enter it in one table, by the map's type."""

from meanfield.simulation.maps import weighted, weightless
from meanfield.simulation.maps.base import OPERATIONS, Operation, WeightedOperation, operation, operation_of

__all__ = ["OPERATIONS", "Operation", "WeightedOperation", "operation", "operation_of", "weighted", "weightless"]
