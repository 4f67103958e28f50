"""What a net is: depth units and maps as data, and the families that list them."""

from .activations import Activation as Activation
from .activations import activation_named as activation_named
from .inputs.batches import LOSSES as LOSSES
from .inputs.batches import Batch as Batch
from .directions import Pair as Pair
from .directions import checked_pairs as checked_pairs
from .directions import pair_name as pair_name
from .directions import unit_shares as unit_shares
from .families.block_net import ROLES as ROLES
from .families.block_net import BlockNet as BlockNet
from .families.conv_net import ConvNet as ConvNet
from .families.mlp import MLP as MLP
from .families.residual import SCALINGS as SCALINGS
from .families.residual import ResidualConvNet as ResidualConvNet
from .families.residual import ResidualMLP as ResidualMLP
from .families.tied_loop import TiedLoop as TiedLoop
from .families.transformer import Transformer as Transformer
from .hyperparameters import with_hyperparameters as with_hyperparameters
from .net import Net as Net
from .lattice import neighbours as neighbours
from .lattice import offsets as offsets
from .lattice import rectangle_boundary_fraction as rectangle_boundary_fraction
from .families.layered import HEADS as HEADS
from .families.layered import Sequential as Sequential
