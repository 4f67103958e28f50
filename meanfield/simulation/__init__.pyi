"""What is measured: the passes over a net, and what is read off a draw."""

from .arrays.resolve import arrays_of as arrays_of
from .measures.activation_statistics import ActivationStatistics as ActivationStatistics
from .measures.blocks.measure import BlockTraining as BlockTraining
from .measures.blocks.training import draw_trained_streams as draw_trained_streams
from .measures.energies import Energies as Energies
from .measures.pair_overlaps import PairOverlaps as PairOverlaps
from .measures.residual_energy import ResidualEnergies as ResidualEnergies
from .measures.stream_update import UPDATES as UPDATES
from .measures.stream_update import StreamUpdates as StreamUpdates
from .training.minibatches import all_batches as all_batches
from .training.minibatches import drawn_population as drawn_population
from .training.minibatches import random_batches as random_batches
