"""GPT-like nets of characters under the hyperparameter tables of Zheng et al. 2026."""

from typing import Any

from meanfield import Chain
from meanfield.nets import Transformer, with_hyperparameters
from sims.common.blocks.base_values import BASE_SCALES, BASE_WIDTH, Values, hyperparameters
from sims.common.data.labelled import CHARACTERS

# The paper's heads have 64 channels, its base model 256 in four blocks.
HEAD_SIZE = 16
GPT: dict[str, Any] = {"causal": True, "rotary": True, "activation": "gelu", "readout": "every", "head": "fan_in"}
# The base model has the variances of `text_net` at its width, and its outputs are not multiplied.
OWN = {(role, "initial_variance"): 1.0 for role in BASE_SCALES} | {("output", "block_multiplier"): 1.0}


def values_of(optimizer: str, table: str, width: int, depth: int, **soap_epsilon: Any) -> Values:
    """role -> hyperparameters by a table; of variances, the factors on those of the base model. No weight decay."""
    return hyperparameters(optimizer, table, width, depth, own=OWN, **soap_epsilon)


def text_net(width: int, depth: int, normalisation: str, **sizes: Any) -> Transformer:
    """A decoder of characters with heads of `HEAD_SIZE` channels, weights of variance 1/fan_in."""
    net: dict[str, Any] = {"width": width, "depth": depth, "heads": width // HEAD_SIZE}
    text: dict[str, Any] = {"vocabulary": len(CHARACTERS), "outputs": len(CHARACTERS)}
    return Transformer(normalisation=normalisation, **net, **GPT, **text, **sizes)


def net_under(given: Values, width: int, depth: int, normalisation: str, **sizes: Any) -> Chain:
    """The same with the multipliers and variances that a table gives."""
    net, base = (text_net(own, depth, normalisation, **sizes) for own in (width, BASE_WIDTH))
    return with_hyperparameters(net, base, given)
