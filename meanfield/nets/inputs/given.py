"""Inputs that a user gives in place of a net's own law."""

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_array
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.maps import Normalisation
from meanfield.nets.net import Net

# Bounds on the largest feature of a batch: energies go as its fourth power, those of the outputs as its sixth, and
# their squares are summed over draws.
LARGEST, SMALLEST = 1e20, 1e-20
# Deviations from the mean over channels, relative to the values, below which they are rounding.
RELATIVE_SPREAD = 1e-14


def checked_inputs(architecture: Net, inputs: ArrayLike | None) -> Array | None:
    """A given batch as floats, (samples, channels, *grid), or None.

    Raises:
        TypeError, ValueError: values that are not finite real numbers, another shape, or a batch that is 0 at the first
            layer or of a size whose energies leave the range of floats.
    """
    if inputs is None:
        return None
    batch = require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
    read, where = batch, ""
    if isinstance(architecture, Sequential):
        read, where = architecture.sigma.function(batch), f" after the activation {architecture.activation!r}"
    if not read.any():
        raise ValueError(
            f"inputs are 0 everywhere{where}, so that no layer sees anything and no step moves anything: eta* would be "
            "infinite; give others"
        )
    _require_size(read, where)
    require_allowed(architecture, batch)
    return batch


def checked_start(net: Net, inputs: ArrayLike | None) -> Array | None:
    """A given h_0 as floats, (width,) of a single vector, or None; raises as `checked_inputs` does."""
    if inputs is None:
        return None
    shape = (net.first_channels,) if net.inputs == 1 and not net.grid else net.input_shape
    start = require_array("inputs", inputs, shape, "one start for all draws, (width,)")
    if not start.any():
        raise ValueError("inputs is zero everywhere; a loop leaves a stream of zeros as it is: give another start")
    _require_size(start, "")
    require_allowed(net, start.reshape(net.input_shape))
    return start


def require_allowed(net: Net, batch: Array) -> None:
    """Raise ValueError for inputs that the net's first map does not take.

    Tokens are one-hot, and a normalisation does not divide by the size of a sample at a site that is 0.
    """
    if net.input_law == "tokens":
        _require_one_hot(batch)
    _require_spread(net, batch)


def _require_one_hot(batch: Array) -> None:
    bad = (np.count_nonzero(batch, axis=1) != 1) | (batch.sum(axis=1) != 1)
    if bad.any():
        sample, token = np.argwhere(bad)[0]
        raise ValueError(
            f"inputs are not one-hot in sample {sample + 1} at token {token + 1}; a net with a vocabulary takes "
            f"(samples, {batch.shape[1]}, tokens), 1 in the channel of a token's number and 0 in the others: make them "
            f"of numbers (samples, tokens) by numpy.eye({batch.shape[1]})[numbers].swapaxes(1, 2)"
        )


def _require_spread(net: Net, batch: Array) -> None:
    first = net.units[0].maps[0]
    if not isinstance(first, Normalisation) or first.epsilon:
        return
    centred = batch - batch.mean(axis=1, keepdims=True) if first.kind == "layer" else batch
    spread, size = (np.square(values).mean(axis=1) for values in (centred, batch))
    bad = spread <= (RELATIVE_SPREAD**2 * size if first.kind == "layer" else 0)
    if bad.any():
        sample, *site = np.argwhere(bad)[0]
        raise ValueError(
            f"inputs are {'the same in all channels' if first.kind == 'layer' else '0'} in sample {sample + 1} at site "
            f"{', '.join(str(at + 1) for at in site) or 1}; normalisation {first.kind!r} divides by their "
            f"{'standard deviation' if first.kind == 'layer' else 'root mean square'} there: give other inputs"
        )


def _require_size(values: Array, where: str) -> None:
    if not SMALLEST <= (size := float(np.abs(values).max())) <= LARGEST:
        raise ValueError(
            f"inputs are of size {size:.3g}{where}; energies go as the fourth to sixth power, beyond what floats can "
            f"hold: scale them to between {SMALLEST:g} and {LARGEST:g}"
        )
