"""GPT-like nets of characters: pre-norm, causal and rotary, with outputs at every character."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.common import Array
from meanfield.nets import Transformer
from sims.common.images import CHARACTERS

# Channels of a head; of Zheng et al. 2026 they are 64, at base models of 256 channels.
HEAD_SIZE = 16
_GPT: dict[str, Any] = {"causal": True, "rotary": True, "activation": "gelu", "readout": "every", "head": "fan_in"}


def text_net(width: int, depth: int, normalisation: str, **sizes: Any) -> Transformer:
    """A decoder of characters with heads of `HEAD_SIZE` channels, weights of variance 1/fan_in."""
    net: dict[str, Any] = {"width": width, "depth": depth, "heads": width // HEAD_SIZE}
    text: dict[str, Any] = {"vocabulary": len(CHARACTERS), "outputs": len(CHARACTERS)}
    return Transformer(normalisation=normalisation, **net, **_GPT, **text, **sizes)


def loss_of_pairs(tokens: Array, following: NDArray[np.int64]) -> float:
    """What pairs of letters tell of the next one in this text, in nats: nets that end below it use what stands before.

    ``tokens``: one-hot, (samples, characters, places); ``following``: the next character at every place.
    """
    pairs: Array = np.zeros((len(CHARACTERS),) * 2)
    np.add.at(pairs, (tokens.argmax(axis=1).ravel(), following.ravel()), 1.0)
    of_first = pairs.sum(axis=1, keepdims=True)
    seen = pairs > 0
    return float(-(pairs[seen] * np.log((pairs / np.maximum(of_first, 1.0))[seen])).sum() / pairs.sum())


def require_whole_heads(width: int) -> None:
    """Raise ValueError unless this width is one of whole heads."""
    if width % HEAD_SIZE:
        raise ValueError(f"width {width} is no multiple of {HEAD_SIZE}, the channels of a head: give such widths")
