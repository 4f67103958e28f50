"""What is measured: the passes over a net, and what is read off a draw."""

from .arrays.resolve import arrays_of as arrays_of
from .arrays.resolve import device_described as device_described
from .measures.propagation.activation_statistics import ActivationStatistics as ActivationStatistics
from .measures.propagation.tangent_propagation import TangentPropagation as TangentPropagation
from .measures.propagation.token_statistics import TokenStatistics as TokenStatistics
from .measures.blocks.assumptions import TrainingAssumptions as TrainingAssumptions
from .measures.blocks.first_directions import FirstDirections as FirstDirections
from .measures.blocks.first_updates import FirstUpdates as FirstUpdates
from .measures.blocks.training import TrainedFeatures as TrainedFeatures
from .measures.blocks.training import TrainedStreams as TrainedStreams
from .measures.blocks.training import UpdateOrders as UpdateOrders
from .measures.estimates.controls import controls_refusal as controls_refusal
from .measures.energies import Energies as Energies
from .measures.pair_overlaps import PairOverlaps as PairOverlaps
from .measures.residual_energy import ResidualEnergies as ResidualEnergies
from .measures.stream_update import UPDATES as UPDATES
from .measures.stream_update import StreamUpdates as StreamUpdates
from .training.sharpness import Sharpness as Sharpness
from .training.trained_energies import TrainedResidualEnergies as TrainedResidualEnergies
from .training.trained_losses import TrainedLosses as TrainedLosses
from .training.minibatches import all_batches as all_batches
from .training.minibatches import drawn_population as drawn_population
from .training.minibatches import random_batches as random_batches
