"""How far the Gram matrix X^T X of a layer's features is from its mean, on which the mean field rests."""

from __future__ import annotations

from collections.abc import Iterator

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.mean_field.label_term import forward_moments, white_input
from meanfield.theory.mean_field.transport import Transport

# From here on a thin input is worth a word.
NOTABLE = 0.1


def gram_excess(architecture: Sequential, transport: Transport, covariance: Array, channels: int) -> float:
    """Relative excess of the mean squared Gram matrix over the square of its mean, over all pairs of sites.

    mean(E[s^2 s'^2] - E[s s']^2) / (C k mean(E[s s']^2)) for C channels of pre-activations of this covariance: up to
    (S + 1) / (C k) in linear nets on white inputs, and far more than its square root where C is small.
    """
    arguments = (*transport.variances(covariance), covariance)
    mean_square = transport.mean(architecture.sigma.product(*arguments) ** 2)
    excess = transport.mean(architecture.sigma.square_product(*arguments)) / mean_square - 1
    return excess / (channels * architecture.taps)


def layer_excesses(architecture: Sequential, transport: Transport, product: Array) -> Iterator[float]:
    """Yield the excess of the features below layers 2, 3, ... from the input's E[sigma sigma']."""
    moments = forward_moments(architecture, transport, product)
    for channels, (_, covariance) in zip(architecture.channels_by_layer[1:], moments, strict=True):
        yield gram_excess(architecture, transport, covariance, channels)


def thin_input_warning(architecture: Sequential) -> str:
    """What to say of drawn inputs with so few channels that layer 1 is far from the mean field at any width; or "".

    One number per sample of a fully-connected net with one input is fixed: there is nothing to say.
    """
    channels, hidden = architecture.channels_by_layer[:2]
    if channels >= hidden or (architecture.input_law == "normalised" and architecture.inputs == 1):
        return ""
    excess = gram_excess(architecture, *white_input(architecture), channels)
    if excess <= NOTABLE:
        return ""
    return (
        f"inputs are drawn with {channels} channels alone, so the squared Gram matrix of layer 1 exceeds the mean "
        f"field's by {excess:.0%} on average, at any width, and label terms and overlap energies exceed theirs, too; "
        "give the inputs themselves (inputs=), which the mean field takes as they are"
    )
