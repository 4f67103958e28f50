"""Which kind of net of the trials a model is, by the classes of its modules."""

from typing import Any

import xarray as xr
from torch import nn

from meanfield.common.validation import require_choice
from meanfield.transfer.trials import (
    CONNECTED,
    CONVOLUTIONAL,
    OF_CHARACTERS,
    POST_NORM,
    PRE_NORM,
    TRANSFORMER,
    UNTRIED_CONVOLUTIONS,
    misses_of,
    slopes_parts,
)

# As users call the kinds of `meanfield.transfer.trials`.
KINDS = {"connected": CONNECTED, "convolutional": CONVOLUTIONAL, "transformer": TRANSFORMER}


def kind_of(model: nn.Module, kind: Any) -> str:
    """One of `KINDS`, as it is given, or else by the model's modules.

    A model with a module that has attention, or attn, in its class's name is a Transformer, one with convolutions
    convolutional.
    """
    if kind is not None:
        require_choice("kind", kind, KINDS)
        return kind
    names = [type(module).__name__.lower() for module in model.modules()]
    if any("attention" in name or "attn" in name for name in names):
        return "transformer"
    return "convolutional" if any(name.startswith("conv") for name in names) else "connected"


def families_of(kind: str, scales: xr.Dataset) -> list[str]:
    """Families of the trials that the model of these scales belongs to: Transformers by their normalisation."""
    family = {"pre": PRE_NORM, "post": POST_NORM}.get(scales.attrs["normalised"])
    return [family] if kind == "transformer" and family else []


def misses(kind: str, model: nn.Module, scales: xr.Dataset, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that a rate named for a model like this one misses its interval."""
    known = misses_of(families_of(kind, scales), optimizer)
    by_signs = optimizer in ("adamw", "lion")
    return (*known, UNTRIED_CONVOLUTIONS) if by_signs and kind == "convolutional" and _is_untried(model) else known


def _is_untried(model: nn.Module) -> bool:
    """Whether a convolutional model has kernels of some channels each, or a normalisation that is not of batches."""
    names = [type(module).__name__.lower() for module in model.modules()]
    grouped = any(getattr(module, "groups", 1) > 1 for module in model.modules() if hasattr(module, "kernel_size"))
    return grouped or any("norm" in name and "batchnorm" not in name for name in names)


def departures(kind: str, model: nn.Module, scales: xr.Dataset, optimizer: str) -> list[str]:
    """One sentence for each way in which trials say that one step does not tell how models like this one train."""
    reads_tokens = any(isinstance(module, nn.Embedding) for module in model.modules())
    of_tokens = [OF_CHARACTERS] if kind == "transformer" and reads_tokens else []
    return [*slopes_parts(families_of(kind, scales), optimizer), *of_tokens]
