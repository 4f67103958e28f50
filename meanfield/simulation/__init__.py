"""What is measured: the passes over a net, and what is read off a draw."""

from meanfield.simulation.arrays import arrays_of, device_described
from meanfield.simulation.measures.block_updates import FirstDirections, FirstUpdates, TrainingAssumptions
from meanfield.simulation.measures.blocks import TrainedFeatures, TrainedStreams, UpdateOrders
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.overlap_energy import controls_refusal
from meanfield.simulation.measures.pair_overlaps import PairOverlaps
from meanfield.simulation.measures.propagation import ActivationStatistics, TangentPropagation, TokenStatistics
from meanfield.simulation.measures.streams import UPDATES, ResidualEnergies, StreamUpdates
from meanfield.simulation.one_step import all_batches, drawn_population, random_batches
from meanfield.simulation.training.sharpness import WITH_STABLE_RATE, Sharpness
from meanfield.simulation.training.trained import TrainedLosses, TrainedResidualEnergies

__all__ = [
    "UPDATES",
    "WITH_STABLE_RATE",
    "ActivationStatistics",
    "Energies",
    "FirstDirections",
    "FirstUpdates",
    "PairOverlaps",
    "ResidualEnergies",
    "Sharpness",
    "StreamUpdates",
    "TangentPropagation",
    "TokenStatistics",
    "TrainedFeatures",
    "TrainedLosses",
    "TrainedResidualEnergies",
    "TrainedStreams",
    "TrainingAssumptions",
    "UpdateOrders",
    "all_batches",
    "arrays_of",
    "controls_refusal",
    "device_described",
    "drawn_population",
    "random_batches",
]
