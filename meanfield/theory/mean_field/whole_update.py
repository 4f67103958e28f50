"""Label term, output term and the whole update S = A + B at leading order in 1/channels, in logarithms; and what to say
where the channels of a net, or of its input, are too few for it.

Fluctuations that the mean field leaves out: of the energy of a layer, and of the Gram matrix of its features.

In plain fully-connected nets with one input, given the layers below, the pre-activations of layer l are exactly
i.i.d. Gaussians of variance c_l = sigma_W^2 mean_i sigma(z_i)^2. Its mean is the mean field's map of c_{l-1}; what it
has beyond, epsilon_l, has relative variance v / n, v = E[sigma^4] / E[sigma^2]^2 - 1, whatever happened below. So c
is a Markov chain of one number, and for any function f of it, at order 1/n,

    E f - f(mean field) = sum_h (v_h / 2 n) d^2 f / d epsilon_h^2.

Energies and gates are such functions. The label term is more than that: tangents and errors have a part along z,
which is amplified like the energy, so that its corrections are not these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import logsumexp

from meanfield.common.validation import Array, takes
from meanfield.nets.layered import Sequential, readout_variance
from meanfield.nets.maps import Linear, Pointwise, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.nets.recognised import as_family
from meanfield.nets.staged import Staged
from meanfield.quantities.registry import log_mean, with_logarithms
from meanfield.theory.exact import exact_terms
from meanfield.theory.mean_field.label_term import label_profiles, label_term_refusal
from meanfield.theory.mean_field.layers import forward_moments, log_profiles, powers_of_variance, white_input
from meanfield.theory.mean_field.output_term import output_profiles, output_term_refusal
from meanfield.theory.two_points import Transport

# Relative kick for second differences: their error is its square.
KICK = 1e-3


@dataclass(frozen=True)
class EnergyChain:
    """c and E[sigma'^2] at c, by layer 1 .. L: (..., L)."""

    pre_activation_energy: Array
    gate_energy: Array


@takes(Sequential)
def mean_field_chain(net: Sequential) -> EnergyChain:
    """The chain without noise, each (L,).

    Raises:
        ValueError: more than one input, or skip connections, where the energy of a layer is not one number.

    Source: docs/theory.md section 6.
    """
    chains = _chains(net, np.zeros((1, net.depth)))
    return EnergyChain(chains.pre_activation_energy[0], chains.gate_energy[0])


@takes(Sequential)
def chain_corrections(net: Sequential) -> EnergyChain:
    """Relative corrections of order 1/n to the mean energies of layers 1 .. L, each (L,).

    Raises:
        ValueError: as for `mean_field_chain`.
    """
    depth = net.depth
    kicks = KICK * np.concatenate([np.zeros((1, depth)), np.eye(depth), -np.eye(depth)])
    chains = _chains(net, kicks)
    noise = _noise(net, chains.pre_activation_energy[0])

    def correction(values: Array) -> Array:
        start, up, down = values[0], values[1 : depth + 1], values[depth + 1 :]
        return np.asarray(noise / 2 @ ((up + down - 2 * start) / KICK**2) / start)

    return EnergyChain(correction(chains.pre_activation_energy), correction(chains.gate_energy))


def _noise(net: Sequential, energy: Array) -> Array:
    """v / n of epsilon_1 .. epsilon_L: none at layer 1, whose inputs are normalised."""
    sigma, below = net.sigma, energy[:-1]
    squares = sigma.product(below, below, below)
    relative = sigma.square_product(below, below, below) / squares**2 - 1
    return np.concatenate([[0.0], relative / np.array(net.channels_by_layer[1:-1])])


def _chains(net: Sequential, kicks: Array) -> EnergyChain:
    """The chains that meet epsilon = kicks (P, L) on their way."""
    if net.inputs > 1 or net.has_skips:
        raise ValueError(
            "the energy of a layer is one number for plain fully-connected nets with one input alone; this is a "
            f"{type(net).__name__} with {net.inputs} input(s)"
        )
    sigma = net.sigma
    variance = net.variance_factor / sigma.gain
    energy = 1.0 + kicks[:, 0]
    energies = [energy]
    for kick in kicks.T[1:]:
        energy = variance * sigma.product(energy, energy, energy) * (1 + kick)
        energies.append(energy)
    by_layer = np.array(energies).T
    return EnergyChain(by_layer, sigma.gate_product(by_layer, by_layer, by_layer))


def gram_excess(net: Sequential | Staged, transport: Transport, covariance: Array, channels: int) -> float:
    """Relative excess of the mean squared Gram matrix over the square of its mean, over all pairs of sites.

    mean(E[s^2 s'^2] - E[s s']^2) / (C k mean(E[s s']^2)) for C channels of pre-activations of this covariance: up to
    (S + 1) / (C k) in linear nets on white inputs, and far more than its square root where C is small.

    The k taps count as independent. In linear nets on white inputs they are; taps of ReLU units that share a site
    correlate, so that this is low there (0.445 for 0.472 on a 3 x 4 grid with 3 x 2 taps and 3 channels), as it is
    above correlated sites. docs/theory.md section 20 has the excess with all correlations.
    """
    arguments = (*transport.variances(covariance), covariance)
    mean_square = transport.mean(net.sigma.product(*arguments) ** 2)
    excess = transport.mean(net.sigma.square_product(*arguments)) / mean_square - 1
    return excess / (channels * net.taps)


def layer_excesses(net: Sequential, transport: Transport, product: Array) -> Iterator[float]:
    """Yield the excess of the features below layers 2, 3, ... from the input's E[sigma sigma']."""
    moments = forward_moments(net, transport, product)
    for channels, (_, covariance) in zip(net.channels_by_layer[1:], moments, strict=True):
        yield gram_excess(net, transport, covariance, channels)


Profiles = Callable[[Sequential, Array | None], Array]

# The factor between the learning-rate scales of infinitely many and of finitely many channels that is worth a warning.
NOTABLE_FACTOR = 1.1
# What gates above a layer add to log B_l under a pooled readout, by layer of the net and over channels.
GATES_ABOVE = 2.0
# The relative excess of the first Gram matrix from which on a thin input is worth a warning.
NOTABLE_EXCESS = 0.1
# The largest logarithm of a factor that is printed.
LARGEST_LOG = 700.0


class LogTerms(NamedTuple):
    """ln of F_l, (L,), and of label and output term at every site, (L, S); None where a term is not predicted."""

    overlap: Array
    label: Array | None
    output: Array | None

    @property
    def both(self) -> tuple[Array, Array] | None:
        """ln of B_l and of A_l, each (L,); None where one of them is not predicted."""
        if self.label is None or self.output is None:
            return None
        return log_mean(self.label), log_mean(self.output)


def mean_field_terms(net: Sequential, inputs: Array | None = None) -> LogTerms:
    """The terms of a net under plain labels and the squared loss.

    Raises:
        OverflowError: an overlap energy, or under a convolutional readout a label term, outside the range of floats.
    """
    overlap, label = log_profiles(net, inputs)
    known: Array | None = label
    if net.is_pooled:
        known = None if label_term_refusal(net, inputs) else _log_profiles(net, inputs, label_profiles, 0)
    if output_term_refusal(net, inputs):
        return LogTerms(overlap, known, None)
    own = net.depth + (net.head == "he") - (inputs is None and net.input_law == "normalised")
    return LogTerms(overlap, known, _log_profiles(net, inputs, output_profiles, own))


def whole_update(terms: LogTerms) -> dict[str, Array]:
    """A_l, S_l = A_l + B_l, Sbar and eta* with their logarithms; nothing where a term is not predicted."""
    both = terms.both
    if both is None:
        return {}
    update = np.logaddexp(*both)
    mean = log_mean(update)
    logs = {"output_term": both[1], "update_energy": update, "mean_update_energy": mean}
    return with_logarithms(logs | {"learning_rate_scale": -0.5 * mean})


def _log_profiles(net: Sequential, inputs: Array | None, profiles: Profiles, power: int) -> Array | None:
    """ln of these profiles; None where they leave the range of floats, or take more memory than the machine has.

    With homogeneous activations, weights of f times the fan-in rule's variance change a term by a power of f: that of
    the label term and, for outputs, that of z_out^2, the ``power`` beside.
    """
    by_powers = net.sigma.homogeneous
    rule = replace(net, weight_variance=None) if by_powers else net  # type: ignore[type-var]
    try:
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            logs = np.log(profiles(rule, inputs))
    except MemoryError:
        return None
    if not np.isfinite(logsumexp(logs, axis=1)).all():
        return None
    powers = powers_of_variance(net, inputs)[1] + power if by_powers else np.zeros(net.depth)
    return np.asarray(logs + np.log(net.variance_factor) * powers[:, None])


def log_channel_error(net: Sequential | Staged, terms: LogTerms) -> float:
    """Estimate of ln(eta* at infinitely many channels / eta* at the net's own), of the whole update; 0 without it.

    Output and label term of every layer are multiplied by what finite width makes of them in the fully-connected net
    of the same channels, outputs and head, whose exact expectations are known (docs/theory.md sections 4, 18).
    """
    both = terms.both
    if both is None or net.sigma.triple is None:
        return 0.0
    site = _of_one_site(net)
    limit, exact = mean_field_terms(site).both, exact_terms(site)
    if limit is None:
        return 0.0
    ratios = np.array([exact.label_term, exact.output_term]) - limit
    leading = np.array(both)
    return float(0.5 * (log_mean(np.logaddexp(*(leading + ratios))) - log_mean(np.logaddexp(*leading))))


def _of_one_site(net: Sequential | Staged) -> Sequential:
    """The plain net of the same channels, outputs and head on one site, with one sample and weights by the rule."""
    if isinstance(net, Staged):
        channels, gain = net.value_channels, net.sigma.gain
        weights = [
            Weight(str(at), (above, below, 1), 1 / (gain * below))
            for at, (below, above) in enumerate(pairwise(channels))
        ]
        head = Weight("readout", (net.outputs, channels[-1], 1), readout_variance(net.head, channels[-1], gain))
        *units, readout = [Unit((Pointwise(net.activation), Linear((weight,)))) for weight in (*weights, head)]
        chain = Chain(units=tuple(units), readout_unit=readout, input_channels=channels[0], grid=(1,))
        return cast(Sequential, as_family(chain))
    changes: dict[str, Any] = {"inputs": 1, "weight_variance": None}
    if net.grid:
        changes |= {"grid": (1,), "kernel": (1,), "padding": "circular", "readout": "convolution"}
        if net.readout == "flatten":  # of a site's own channels outputs see as little as this many would alone
            changes["outputs"] = max(1, round(net.outputs / net.sites))
    return replace(net, **changes)  # type: ignore[type-var]


def _hidden_channels(net: Sequential | Staged) -> tuple[int, ...]:
    return net.value_channels[1:] if isinstance(net, Staged) else net.channels_by_layer[1:]


@takes(Sequential | Staged)
def pooled_excess(net: Sequential | Staged) -> float:
    """Up to about ln(label term at a net's channels / that at infinitely many) of every layer, by what gates above do.

    2 sum_{h=1}^{L} 1/C_h under a pooled readout of gated plain nets, 0 elsewhere. A pooled label reaches all sites
    alike, and the gates of all layers above take that apart, by as much as sites differ there. That fluctuates with the
    channels, and two sites that are more alike than on average keep more than others lose. Layer 1 is off by it, whose
    kernel does not fluctuate at all where inputs are given; what tangents below a layer add comes besides. It is no
    expansion: the factor 2 bounds what drawn label terms of layer 1 show, 1.5 to 2.1 (+- 0.2) on white inputs and on a
    photograph, 16 sites, 6 and 12 layers, 32 and 64 channels, and 0.8 on six sites of one channel.
    """
    if not net.is_pooled or net.has_skips or net.activation == "linear":
        return 0.0
    return GATES_ABOVE * float(np.sum(1.0 / np.array(_hidden_channels(net), dtype=float)))


def finite_channels_note(net: Sequential | Staged) -> str:
    """What a label term under a pooled readout has beyond its mean field; "" where it has nothing of that kind."""
    excess = pooled_excess(net)
    if not excess:
        return ""
    return (
        "label_term: under a pooled readout the gates above a layer fluctuate with the channels, which the mean field "
        "leaves out at every layer, the first included: up to about exp(2 sum 1/channels) - 1 = "
        f"{np.expm1(excess):.1%} at this net's channels, beside what tangents below add (docs/theory.md section 9)"
    )


def finite_channels_warning(net: Sequential | Staged, terms: LogTerms) -> str:
    """What to say of a learning-rate scale that is off by more than `NOTABLE_FACTOR` at this net's channels; or ""."""
    if terms.both is None and terms.label is not None:
        return _pooled_warning(net)
    error = log_channel_error(net, terms)
    if abs(error) <= log(NOTABLE_FACTOR):
        return ""
    remedy = "level 'exact' has it" if not net.grid and net.inputs == 1 else "`simulate` has that of drawn nets"
    return (
        "the mean field of the whole update is leading order in 1/channels, and what it leaves out grows with depth: "
        f"at depth {net.depth} and {min(_hidden_channels(net))} channels its learning-rate scale is about "
        f"{exp(min(error, LARGEST_LOG)):.2g} times that of the net itself, as a net of one site has it; {remedy}"
    )


def _pooled_warning(net: Sequential | Staged) -> str:
    """What to say of the label term's scale in the same way, where the whole update has no theory."""
    error = 0.5 * pooled_excess(net)
    if error <= log(NOTABLE_FACTOR):
        return ""
    return (
        "the mean field of the label term is leading order in 1/channels, and under a pooled readout it leaves out "
        f"what the gates above a layer do: at depth {net.depth} and {min(_hidden_channels(net))} channels its "
        f"learning-rate scale is up to about {exp(min(error, LARGEST_LOG)):.2g} times that of the net itself; "
        "`simulate` has that of drawn nets"
    )


@takes(Sequential | Staged)
def thin_input_warning(net: Sequential | Staged) -> str:
    """What to say of drawn inputs with so few channels that layer 1 is far from the mean field at any width; or "".

    One number per sample of a fully-connected net with one input is fixed: there is nothing to say.
    """
    channels, hidden = net.first_channels, _hidden_channels(net)[0]
    if channels >= hidden or (net.input_law == "normalised" and net.inputs == 1):
        return ""
    excess = gram_excess(net, *white_input(net), channels)
    if excess <= NOTABLE_EXCESS:
        return ""
    return (
        f"inputs are drawn with {channels} channels alone, so the squared Gram matrix of layer 1 exceeds the mean "
        f"field's by {excess:.0%} on average, at any width, and label terms and overlap energies exceed theirs, too; "
        "give the inputs themselves (inputs=), which the mean field takes as they are"
    )
