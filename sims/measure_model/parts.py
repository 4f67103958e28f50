"""What is shown of a model where nobody chooses: its blocks and what stands outside, and kinds of parameters."""

from collections.abc import Sequence

from torch import nn

# Kinds of parameters, as a report calls them.
EMBEDDINGS, ATTENTION, WEIGHTS, HEAD = "embeddings", "attention", "weights", "head"
GAINS, BIASES = "norm gains", "biases"
KINDS = (EMBEDDINGS, ATTENTION, WEIGHTS, HEAD, GAINS, BIASES)


def places_of(model: nn.Module, blocks: Sequence[str], called: Sequence[str]) -> list[str]:
    """Names of the blocks, and of called leaves with parameters that stand in none; of the leaves alone without blocks.

    Args:
        model: whose modules these are.
        blocks: names of its blocks.
        called: names of its leaves, in the order of their calls.
    """
    outside = [name for name in called if not any(name.startswith(f"{block}.") for block in blocks)]
    return [*blocks, *(name for name in outside if any(True for _ in model.get_submodule(name).parameters()))]


def kinds_of(model: nn.Module, head: str) -> dict[str, list[str]]:
    """Names of all parameters that train, by kind; kinds without any are left out.

    Args:
        model: whose parameters these are.
        head: the leaf that makes the outputs.
    """
    attention = tuple(f"{name}." for name, module in model.named_modules() if "attention" in _class(module))
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            owner = name.rpartition(".")[0]
            kinds[_kind(name, parameter, model.get_submodule(owner), attention, owner == head)].append(name)
    return {kind: names for kind, names in kinds.items() if names}


def _kind(name: str, parameter: nn.Parameter, owner: nn.Module, attention: tuple[str, ...], is_head: bool) -> str:
    if "norm" in _class(owner) and name.endswith("weight"):
        return GAINS
    if parameter.dim() < 2:
        return BIASES
    is_beside = any(True for _ in owner.children())  # positions stand beside modules
    if isinstance(owner, nn.Embedding) or (is_beside and "attention" not in _class(owner)):
        return EMBEDDINGS
    return ATTENTION if name.startswith(attention) else HEAD if is_head else WEIGHTS


def _class(module: nn.Module) -> str:
    return type(module).__name__.lower()
