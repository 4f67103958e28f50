"""How the learning rate of a deep network must shrink with depth, computed exactly.

The public names, in the order of the theory: what a net is, what one gradient step does to it, what theory
expects, and how the two compare. Names load on first use, so that asking for help costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from meanfield.version import __version__

if TYPE_CHECKING:
    from meanfield.common.estimates import fit_power_law as fit_power_law
    from meanfield.common.validation import PremiseWarning as PremiseWarning
    from meanfield.execution.footprint import memory as memory
    from meanfield.execution.simulate import simulate as simulate
    from meanfield.execution.simulate import simulate_loop_update as simulate_loop_update
    from meanfield.execution.simulate import simulate_overlaps as simulate_overlaps
    from meanfield.execution.team import Workers as Workers
    from meanfield.nets.batches import Batch as Batch
    from meanfield.nets.families.conv_net import ConvNet as ConvNet
    from meanfield.nets.families.mlp import MLP as MLP
    from meanfield.nets.families.residual import ResidualConvNet as ResidualConvNet
    from meanfield.nets.families.residual import ResidualMLP as ResidualMLP
    from meanfield.nets.families.tied_loop import TiedLoop as TiedLoop
    from meanfield.nets.lattice import boundary_fraction as boundary_fraction
    from meanfield.quantities.registry import QUANTITIES as QUANTITIES
    from meanfield.simulation.one_step import one_step as one_step
    from meanfield.simulation.one_step import pre_activations as pre_activations
    from meanfield.theory.exact.closure import derive as derive
    from meanfield.theory.prediction import predict as predict
    from meanfield.transfer.carry import Transfer as Transfer
    from meanfield.transfer.carry import explain_transfer as explain_transfer
    from meanfield.transfer.carry import transfer_learning_rate as transfer_learning_rate
    from meanfield.verification.comparison import compare as compare

_HOME = {
    "MLP": "nets.families.mlp",
    "ConvNet": "nets.families.conv_net",
    "ResidualMLP": "nets.families.residual",
    "ResidualConvNet": "nets.families.residual",
    "TiedLoop": "nets.families.tied_loop",
    "Batch": "nets.batches",
    "QUANTITIES": "quantities.registry",
    "boundary_fraction": "nets.lattice",
    "pre_activations": "simulation.one_step",
    "one_step": "simulation.one_step",
    "simulate": "execution.simulate",
    "simulate_overlaps": "execution.simulate",
    "simulate_loop_update": "execution.simulate",
    "memory": "execution.footprint",
    "Workers": "execution.team",
    "predict": "theory.prediction",
    "derive": "theory.exact.closure",
    "transfer_learning_rate": "transfer.carry",
    "explain_transfer": "transfer.carry",
    "Transfer": "transfer.carry",
    "PremiseWarning": "common.validation",
    "compare": "verification.comparison",
    "fit_power_law": "common.estimates",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'meanfield' has no name {name!r}; it has {', '.join(_HOME)}")
    return getattr(import_module(f"meanfield.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
