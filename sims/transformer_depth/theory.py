"""What the mean field says of Transformers: the label term's scale over depth, its local slopes, tokens by layer."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import meanfield as mf
from meanfield.nets import Transformer
from meanfield.theory import scales_at

LABEL_SCALE = "label_learning_rate_scale"
TOKENS = ("token_correlation", "stream_variance")


def slope_depths(far: int) -> list[int]:
    """Depth units at which local slopes are taken: powers of two up to 128, then of ten, and the last one."""
    powers = [2**power for power in range(3, 8)] + [10**power for power in range(3, 6)]
    return [*(depth for depth in powers if depth < far), far]


def scales(net: Transformer, blocks: Sequence[int]) -> dict[str, Any]:
    """log eta* of the label term at these numbers of blocks, white tokens."""
    return {f"log_{LABEL_SCALE}_mean_field": np.log(scales_at(net, blocks))}


def local_slopes(net: Transformer, far: int) -> dict[str, Any]:
    """d log eta* / d log L between L / 2 and L, at the depths L of `slope_depths`, white tokens."""
    ends = np.array([(depth // 4, depth // 2) for depth in slope_depths(far)])
    logs = np.log(scales_at(net, ends.ravel().tolist())).reshape(ends.shape)
    return {"local_slope_mean_field": np.diff(logs)[:, 0] / np.diff(np.log(ends))[:, 0]}


def by_layer(net: Transformer) -> dict[str, Any]:
    """Correlation between tokens and variance of the stream by layer, white tokens."""
    predicted = mf.predict(net, level="mean_field")
    return {f"{name}_mean_field": predicted[name].values for name in TOKENS}
