"""Models of PyTorch: how far one step moves them, and the learning rates that follow. It takes the extra ``torch``."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ModuleNotFoundError(
        "meanfield.torch measures models of PyTorch, which is not installed; install it with: "
        'python -m pip install -e ".[torch]"',
        name="torch",
    )

from meanfield.torch.carrying import carry
from meanfield.torch.scales import step_scales
from meanfield.torch.sharpness import stable_rate
from meanfield.torch.starting import starting_rate

__all__ = ["carry", "stable_rate", "starting_rate", "step_scales"]
