"""What is given in place of what a function takes is refused in one line, and PyTorch's absence by the extra's name."""

import inspect
import subprocess
import sys

import pytest

from tests.test_wrong_types import REFUSALS, WRONG

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402


def linear():
    return torch.nn.Linear(3, 2)


GOOD = {"model": linear, "small": linear, "large": linear, "loss": torch.nn.functional.cross_entropy, "rate": 0.1}
GOOD |= {"batches": [(torch.ones(4, 3), torch.arange(4) % 2)], "optimizer": "sgd", "draws": 2}
OPTIONS = ("modules", "forward", "reinit", "seed", "precision", "draws")
SERVED = {("rate", 5), ("seed", 5), ("draws", 5), ("modules", None), ("of", None), ("kind", None)}


@pytest.mark.parametrize("name", mft.__all__)
def test_wrong_arguments_are_refused(name):
    function = getattr(mft, name)
    parameters = inspect.signature(function).parameters
    good = {each: value for each, value in GOOD.items() if each in parameters or each == "draws"}
    function(**good)
    for each in {*good, *OPTIONS, *(extra for extra in ("of", "kind") if extra in parameters)}:
        for wrong in WRONG:
            if isinstance(wrong, dict | list) or (each, wrong) not in SERVED:
                with pytest.raises(REFUSALS):
                    function(**good | {each: wrong})


def test_without_pytorch_the_room_names_its_extra():
    code = "import sys; sys.modules['torch'] = None; import meanfield.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: meanfield.torch measures models of PyTorch, which is not installed; install it with: "
        'python -m pip install -e ".[torch]"'
    )
