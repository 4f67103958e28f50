"""The public names of `meanfield`, in the order of the theory."""

# What a net is, and what it is given.
from .nets.families.mlp import MLP as MLP
from .nets.families.conv_net import ConvNet as ConvNet
from .nets.families.residual import ResidualMLP as ResidualMLP
from .nets.families.residual import ResidualConvNet as ResidualConvNet
from .nets.families.tied_loop import TiedLoop as TiedLoop
from .nets.families.transformer import Transformer as Transformer
from .nets.inputs.batches import Batch as Batch
from .nets.lattice import boundary_fraction as boundary_fraction

# What is measured: every quantity, one step of a given net, and draws.
from .quantities.registry import QUANTITIES as QUANTITIES
from .simulation.one_step import pre_activations as pre_activations
from .simulation.one_step import one_step as one_step
from .execution.simulate import simulate as simulate
from .execution.simulate import simulate_overlaps as simulate_overlaps
from .execution.simulate import simulate_loop_update as simulate_loop_update
from .execution.footprint import memory as memory
from .execution.team import Workers as Workers

# What is predicted.
from .theory.prediction import predict as predict
from .theory.exact.closure import derive as derive

# How the two compare, and the learning rate that follows.
from .verification.comparison import compare as compare
from .common.estimates import fit_power_law as fit_power_law
from .transfer.carry import transfer_learning_rate as transfer_learning_rate
from .transfer.carry import explain_transfer as explain_transfer
from .transfer.carry import Transfer as Transfer
from .common.validation import PremiseWarning as PremiseWarning

__version__: str
