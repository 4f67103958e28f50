"""The public names of `meanfield`, in the order of the theory."""

# Nets, and the batches that they are given.
from .nets.layered import MLP as MLP
from .nets.layered import ConvNet as ConvNet
from .nets.residual import ResidualMLP as ResidualMLP
from .nets.residual import ResidualConvNet as ResidualConvNet
from .nets.dense import DenseNet as DenseNet
from .nets.staged import StagedConvNet as StagedConvNet
from .nets.staged import StagedResidualConvNet as StagedResidualConvNet
from .nets.loop import TiedLoop as TiedLoop
from .nets.transformer import Transformer as Transformer
from .nets.block_net import BlockNet as BlockNet
from .nets.net import Chain as Chain
from .nets.variants import with_batch_normalisation as with_batch_normalisation
from .nets.variants import with_dropout as with_dropout
from .nets.inputs import Batch as Batch
from .nets.inputs import patch_tokens as patch_tokens
from .nets.lattice import boundary_fraction as boundary_fraction

# Quantities, and one step of a given net.
from .quantities.registry import QUANTITIES as QUANTITIES
from .simulation.one_step import pre_activations as pre_activations
from .simulation.one_step import one_step as one_step

# Measures: what is read off a draw.
from .simulation.measures.energies import Energies as Energies
from .simulation.measures.pair_overlaps import PairOverlaps as PairOverlaps
from .simulation.measures.propagation import ActivationStatistics as ActivationStatistics
from .simulation.measures.propagation import TangentPropagation as TangentPropagation
from .simulation.measures.propagation import TokenStatistics as TokenStatistics
from .simulation.measures.streams import ResidualEnergies as ResidualEnergies
from .simulation.measures.streams import StreamUpdates as StreamUpdates
from .simulation.training.trained import TrainedResidualEnergies as TrainedResidualEnergies

# Runs: draws of a net under a measure.
from .execution.run import simulate as simulate
from .execution.run import memory as memory
from .execution.run import Run as Run
from .execution.run import simulate_all as simulate_all
from .execution.workers import Workers as Workers

# Training, and its first step.
from .execution.training import train as train
from .execution.training import step_scales as step_scales
from .optimizers.schedules import WarmupCosine as WarmupCosine

# Predictions.
from .theory.prediction import predict as predict
from .theory.recursions import derive as derive

# Comparisons, and the learning rate that follows.
from .verification.comparison import compare as compare
from .verification.verdicts import judge as judge
from .verification.verdicts import Deviation as Deviation
from .verification.verdicts import Bands as Bands
from .common.power_laws import fit_power_law as fit_power_law
from .common.power_laws import local_slopes as local_slopes
from .transfer.carry import transfer_learning_rate as transfer_learning_rate
from .transfer.carry import explain_transfer as explain_transfer
from .transfer.carry import Transfer as Transfer
from .transfer.depth_law import depth_law as depth_law
from .transfer.stability import stable_rate as stable_rate
from .transfer.range_test import range_test as range_test
from .transfer.starting import starting_rate as starting_rate
from .transfer.tuning import tuned_rate as tuned_rate
from .common.validation import PremiseWarning as PremiseWarning

# Hyperparameters under every optimizer.
from .parameterizations.resolution import transfer_hyperparameters as transfer_hyperparameters
from .parameterizations.tables import hyperparameter_table as hyperparameter_table

__version__: str
