"""Optimizers as pure functions of a state and a gradient, by the names that hyperparameter tables use."""

from .base import Gradient as Gradient
from .base import Optimizer as Optimizer
from .base import Place as Place
from .elementwise import SGD as SGD
from .elementwise import AdamW as AdamW
from .elementwise import Lion as Lion
from .elementwise import Sophia as Sophia
from .muon import Muon as Muon
from .muon import MuonKimi as MuonKimi
from .shampoo import Shampoo as Shampoo
from .soap import SOAP as SOAP
from .sso import SSO as SSO
from .by_name import OPTIMIZERS as OPTIMIZERS
from .by_name import FIRST_STEPS as FIRST_STEPS
from .by_name import ELEMENTWISE as ELEMENTWISE
from .by_name import HYBRIDS as HYBRIDS
from .by_name import optimizer_of_role as optimizer_of_role
from .by_name import require_optimizer as require_optimizer
