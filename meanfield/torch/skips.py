"""Whether a PyTorch model has skip connections, found by what its outputs depend on.

Every path of a plain model goes through each of its layers: with any one of them silenced, so that it gives 0, the
outputs do not depend on what the first layer gives. A skip connection leads around the layers of its branch, and around
all branches at once. Parallel towers lead around each other, and not around both.
"""

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from meanfield.torch.parts import AROUND, inner_layers, weighted_leaves
from meanfield.torch.passes import Pass, Task, reaches

# What is found: skip connections, none, or what tells neither.
YES, NO, UNKNOWN = "yes", "no", "unknown"
# Of a model's layers so many at each end, and about so many between, are silenced alone.
AT_ENDS, BETWEEN = 2, 8


def skips(model: nn.Module, task: Task, made: Pass) -> str:
    """Whether something leads around the layers between the first and the last.

    "no" where nothing leads around any layer that is silenced alone, and where there is no layer between. "yes" where
    the outputs still depend on the first layer with all others silenced, but for those that nothing leads around, as in
    a stem of two layers, and for shortcuts by name. Else "unknown".
    """
    layers = inner_layers(model, made)
    if not layers:
        return UNKNOWN if any(map(is_parametrized, model.modules())) else NO
    first = weighted_leaves(model, made.calls)[0]
    if not reaches(model, task, first, ()):
        return UNKNOWN  # as behind a head that starts at 0
    alone = {name: reaches(model, task, first, [name]) for name in _tried(layers)}
    if None in alone.values():
        return UNKNOWN
    if not any(alone.values()):
        return NO
    silenced = [name for name in layers if alone.get(name, True) and not AROUND.search(name.lower())]
    return YES if silenced and reaches(model, task, first, silenced) else UNKNOWN


def _tried(layers: list[str]) -> list[str]:
    """Those at the ends, and some between at even distances."""
    step = max(1, len(layers) // BETWEEN)
    return list(dict.fromkeys([*layers[:AT_ENDS], *layers[::step], *layers[-AT_ENDS:]]))
