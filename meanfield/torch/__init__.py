"""Models of PyTorch: how far a step moves them, the rates that follow, and recipes. It takes the extra ``torch``."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ModuleNotFoundError(
        "meanfield.torch measures models of PyTorch, which is not installed; install it with: "
        'python -m pip install -e ".[torch]"',
        name="torch",
    )

from meanfield.torch.coordinate_verdicts import coordinate_report
from meanfield.torch.coordinates import coordinate_check
from meanfield.torch.models import require_measurable
from meanfield.torch.parameter_groups import ParameterGroups, parameter_groups
from meanfield.torch.rates import carry, starting_rate
from meanfield.torch.recipes import check_recipe, recipe_of
from meanfield.torch.scales import step_scales
from meanfield.torch.sharpness import stable_rate

__all__ = [
    "ParameterGroups",
    "carry",
    "check_recipe",
    "coordinate_check",
    "coordinate_report",
    "parameter_groups",
    "recipe_of",
    "require_measurable",
    "stable_rate",
    "starting_rate",
    "step_scales",
]
