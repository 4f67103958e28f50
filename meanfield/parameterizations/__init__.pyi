"""How hyperparameters scale with width and depth under every optimizer: tables as data, and numbers from them."""

from .tables import BIASES as BIASES
from .tables import HYPERPARAMETERS as HYPERPARAMETERS
from .tables import OPTIMIZERS as OPTIMIZERS
from .tables import PARAMETERIZATIONS as PARAMETERIZATIONS
from .tables import ROLES as ROLES
from .tables import TABLES as TABLES
from .tables import UNPRINTED as UNPRINTED
from .tables import WEIGHTS as WEIGHTS
from .tables import Table as Table
from .tables import scaling as scaling
from .tables import hyperparameter_table as hyperparameter_table
from .tables import hyperparameters_of as hyperparameters_of
from .scalings import CONSTANT as CONSTANT
from .scalings import Scaling as Scaling
from .resolution import transfer_hyperparameters as transfer_hyperparameters
from .resolution import optimizers_by_role as optimizers_by_role
from .premises import PREMISES as PREMISES
from .premises import unmet_premises as unmet_premises
from .muon_variants import MUON_VARIANTS as MUON_VARIANTS
from .muon_variants import muon_step_size as muon_step_size
from .muon_variants import muon_variant_factors as muon_variant_factors
