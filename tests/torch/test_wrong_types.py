"""What is given in place of what a function takes is refused in one line, and PyTorch's absence by the extra's name."""

import inspect
import subprocess
import sys
from functools import partial

import pytest
import xarray as xr

from tests.test_wrong_types import REFUSALS, WRONG

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402


def linear():
    return torch.nn.Linear(3, 2)


GOOD = {"model": linear, "small": linear, "large": linear, "loss": torch.nn.functional.cross_entropy, "rate": 0.1}
GOOD |= {"batches": [(torch.ones(4, 3), torch.arange(4) % 2)], "optimizer": "sgd", "draws": 2}
GOOD |= {"factory": lambda width: torch.nn.Linear(3, 2 * width), "widths": [1, 2, 3], "depths": 1, "steps": 1}
OWN = {"coordinate_check": {"optimizer": partial(torch.optim.SGD, lr=0.1)}, "require_measurable": {"model": linear()}}
# Of recipes and groups, which take modules.
WIDE, NARROW = torch.nn.Linear(6, 2), torch.nn.Linear(3, 2)
RECIPES = {"model": WIDE, "optimizer": torch.optim.SGD(WIDE.parameters(), lr=0.1), "base_model": NARROW, "lr": 0.1}
RECIPES |= {"base_optimizer": torch.optim.SGD(NARROW.parameters(), lr=0.1), "condition": "3.1", "roles": None}
RECIPES |= {"multipliers": None, "base_multipliers": None, "names": None, "weight_decay": 0.1, "eps": 1e-8}
OF_RECIPES = ("check_recipe", "parameter_groups", "recipe_of")
OPTIONS = ("modules", "forward", "reinit", "seed", "precision", "draws")
SERVED = {("rate", "5"), ("seed", "5"), ("draws", "5"), ("modules", "None"), ("of", "None"), ("kind", "None")}
SERVED |= {("depths", "5"), ("depths", "[1]"), ("steps", "5")}
OTHERS = (*OF_RECIPES, "ParameterGroups", "coordinate_report")


@pytest.mark.filterwarnings("ignore:trials had batches of 16", "ignore:in plain nets of the trials")
@pytest.mark.parametrize("name", [name for name in mft.__all__ if name not in OTHERS])
def test_wrong_arguments_are_refused(name):
    function = getattr(mft, name)
    parameters = inspect.signature(function).parameters
    taken = {*parameters, *(OPTIONS if "options" in parameters else ())}
    good = {each: value for each, value in (GOOD | OWN.get(name, {})).items() if each in taken}
    function(**good)
    for each in {*good, *OPTIONS, *(extra for extra in ("of", "kind") if extra in parameters)}:
        for wrong in WRONG:
            if (each, repr(wrong)) not in SERVED:
                with pytest.raises(REFUSALS):
                    function(**good | {each: wrong})


@pytest.mark.parametrize("name", OF_RECIPES)
def test_wrong_models_and_numbers_are_refused(name):
    function = getattr(mft, name)
    good = {each: value for each, value in RECIPES.items() if each in inspect.signature(function).parameters}
    good |= {"optimizer": "sgd"} if name == "parameter_groups" else {}
    function(**good)
    for each in good:
        for wrong in WRONG:
            is_served = (wrong is None and good[each] is None) or (wrong == 5 and each in ("lr", "weight_decay", "eps"))
            if isinstance(wrong, dict | list) or not is_served:
                with pytest.raises(REFUSALS):
                    function(**good | {each: wrong})


@pytest.mark.parametrize("wrong", [*WRONG, xr.Dataset()])
def test_a_report_is_of_a_coordinate_check(wrong):
    with pytest.raises(REFUSALS):
        mft.coordinate_report(wrong)


def test_without_pytorch_the_room_names_its_extra():
    code = "import sys; sys.modules['torch'] = None; import meanfield.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: meanfield.torch measures models of PyTorch, which is not installed; install it with: "
        'python -m pip install -e ".[torch]"'
    )
