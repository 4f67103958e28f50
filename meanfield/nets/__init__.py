"""What a net is: depth units and maps as data, and the families that list them."""

from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.block_net import WEIGHT_ROLES, BlockNet
from meanfield.nets.dense import DenseNet
from meanfield.nets.directions import DirectionPair, checked_pairs, pair_name, unit_shares
from meanfield.nets.inputs import LOSS_NAMES, Batch
from meanfield.nets.lattice import neighbours, offsets, rectangle_boundary_fraction
from meanfield.nets.layered import HEADS, MLP, ConvNet, Sequential
from meanfield.nets.loop import TiedLoop
from meanfield.nets.net import Net
from meanfield.nets.residual import ResidualConvNet, ResidualMLP
from meanfield.nets.scalings import SCALINGS
from meanfield.nets.staged import StagedConvNet, StagedResidualConvNet
from meanfield.nets.transformer import Transformer
from meanfield.nets.variants import with_hyperparameters

__all__ = [
    "HEADS",
    "LOSS_NAMES",
    "MLP",
    "SCALINGS",
    "WEIGHT_ROLES",
    "Activation",
    "Batch",
    "BlockNet",
    "ConvNet",
    "DenseNet",
    "DirectionPair",
    "Net",
    "ResidualConvNet",
    "ResidualMLP",
    "Sequential",
    "StagedConvNet",
    "StagedResidualConvNet",
    "TiedLoop",
    "Transformer",
    "activation_named",
    "checked_pairs",
    "neighbours",
    "offsets",
    "pair_name",
    "rectangle_boundary_fraction",
    "unit_shares",
    "with_hyperparameters",
]
