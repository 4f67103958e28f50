"""The mean field of nets in layers: second moments of the tangent kernel at leading order in 1/channels, by layer.

It starts from averages over pairs of sites of the input, drawn by a net's own law or given, and yields overlap
energies and label terms for plain labels and the squared loss.

Plain nets. Notation (docs/theory.md section 6): per pair of sites, c is the covariance of the pre-activations, K the
tangent kernel within one channel, V its second moment between different channels; n the channels below, k the taps, q
the gain. With Gaussian averages xx, g, h of sigma sigma, sigma' sigma', sigma'^2 sigma'^2 at covariance c:

    V <- Pk [ V w + h K K / (q^2 n) ] Pk^T / k^2,    w = E[sigma'^2] E[sigma'^2] / q^2
    K <- Tr(g K) / (q k) + n Tr(xx)
    c <- Tr(xx) / (q k)
    F = mean over pairs of K K / n' + V              (overlap energy of a layer of n' channels)

Weights whose variance is f times the fan-in rule's carry f times as much: c, what K carries and, squared, V.

Nets with skip connections, where the gates of a unit remember. In a plain net every layer draws its pre-activations
anew, and the second moment V of the kernel between two channels is one number per pair of sites. A stream z + a
branch(z) + ... moves slowly instead: unit b keeps its sign, and the kernel between b and another unit has grown at
every block at which b was open,

    Theta_ab <- Theta_ab + a sum_i W_ai sigma'(z_i) Theta_ib + ...,  i = b:  W_ab sigma'(z_b) K.

So V between units a and b is V = A + phi(a) + phi(b), phi a sum over the blocks passed of [sigma'(z_b)^2 K K / (q
n)], and what later blocks and the readout take of it is its product with gates that it has met before. Kept are, per
pair of sites, A and the averages R_j = E[sigma'(z_j)^2 phi] for the gates j that the stream still has to pass, with b
at the second site, and R_mean = E[phi]. With f the variance factor of a branch's weights and w = E[sigma'^2]/q per
site, one block of k layers maps (Pk / k moves the first site; ^T exchanges the two)

    A  <- A + a^2 (D + D^T) + a^4 V_b,   D = (f Pk/k w)^(k-1) f Pk/k [w A + R_l^T / q]
    R_j <- R_j + a^2 (f Pk/k w)^(k-1) f Pk/k [w R_j + E[sigma'(z_l)^2 sigma'(z_j)^2] K K / (q n)]
    V_b: the plain recursion inside the branch, from V w w -> A w w + (w R_l + (w R_l)^T) / q
    K  <- K + a^2 K_b,   F = mean over pairs of K K / n + A + R_mean + R_mean^T

Covariances of the stream at two depths are those at the lower one, as what a branch adds has mean zero and weights of
its own. Forgetting the memory (R_j = w q R_mean) misses 13 % of the label term of 8 ReLU blocks at any width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.common.machine import LONGEST_SECONDS, NUMBER_BYTES, progress, require_bytes, seconds_refusal
from meanfield.common.validation import Array, require_array, takes
from meanfield.nets.activations import Activation
from meanfield.nets.dense import DenseNet
from meanfield.nets.lattice import OUTSIDE, reversed_neighbours
from meanfield.nets.layered import INPUT_LAYOUT, Layer, Sequential, joins
from meanfield.nets.staged import Staged
from meanfield.theory.two_points import Displacements, EveryPair, GridStep, Transport


@takes(Sequential)
def mean_field_profiles(
    net: Sequential, inputs: ArrayLike | None = None, *, correlation: float = 0.0, last: int | None = None
) -> tuple[Array, Array]:
    """F_l of depth units l = 1 .. ``last`` (or all), and the label term at every site: (last,) and (last, S).

    The mean over sites of the latter is B_l = n_l mean(F w) / M^2, for independent labels of variance 1 at all output
    sites of a convolutional readout. Inputs that are drawn have this ``correlation`` between samples.

    Source: docs/theory.md sections 6, 8.
    """
    transport, product = input_products(net, inputs, correlation)
    terms = (stream_terms if net.has_skips else plain_terms)(net, transport, product)
    walked = progress(islice(terms, last), net.depth if last is None else last, "layer")
    by_unit = [(transport.mean(pairs.overlap), transport.mean_by_site(pairs.label)) for pairs in walked]
    overlap, label = map(np.array, zip(*by_unit, strict=True))
    channels = np.array(net.channels_by_layer)[[*net.unit_ends[:last]]]
    places, outputs = net.inputs * net.sites, net.output_units * net.inputs
    return overlap, (channels * places)[:, None] * label / outputs**2


def log_profiles(net: Sequential, inputs: Array | None) -> tuple[Array, Array]:
    """ln of F_l, (L,), and of the label term at every site, (L, S).

    Where activations are homogeneous, weights of f times the fan-in rule's variance change both by powers of f alone
    (`powers_of_variance`), so that these are finite at any depth.

    Raises:
        OverflowError: other terms that leave the range of floats.
    """
    by_powers = net.sigma.homogeneous and net.weight_variance is not None
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        overlap, profile = mean_field_profiles(net.replace(weight_variance=None) if by_powers else net, inputs)
    require_floats(net, overlap, profile.mean(axis=1))
    with np.errstate(divide="ignore"):  # at sites that nothing reaches
        overlap, profile = np.log(overlap), np.log(profile)
    if by_powers:
        of_overlap, of_label = powers_of_variance(net, inputs)
        overlap += of_overlap * log(net.variance_factor)
        profile += of_label[:, None] * log(net.variance_factor)
    return overlap, profile


def powers_of_variance(net: Sequential, inputs: Array | None) -> tuple[Array, Array]:
    """The powers of f in F_l and in the label term of a plain net with homogeneous activations: (L,) each.

    A kernel is quadratic in the features below, which go as f^(l - 1), and F_l is its square; labels come through the
    L - l matrices above and, if it follows the variance, the readout. Inputs that give z^(1) variance 1 go as 1/f.
    """
    layer = np.arange(1, net.depth + 1, dtype=np.float64)
    overlap = 2.0 * (layer - 1 - (inputs is None and net.input_law == "normalised"))
    return overlap, overlap + net.depth - layer + (net.head == "he")


def require_floats(net: Sequential | DenseNet, *energies: Array) -> None:
    """Raise OverflowError unless all energies are positive and finite: others have left the range of floats."""
    if not all(np.all((energy > 0) & (energy < inf)) for energy in energies):
        raise OverflowError(
            f"the mean field of this {type(net).__name__} of depth {net.depth} is outside what a float holds, as it "
            "grows or decays exponentially with depth: lower the depth, or scale branches or weights"
        )


# Square arrays over pairs of sites that the recursion holds at once.
SITE_PAIR_ARRAYS = 12
# Of a processor, for a pair of sites at a layer.
PAIR_SECONDS = 1.2e-6
# The same for a gate that a block of a stream meets above it.
GATE_SECONDS = 3e-8


def input_products(net: Sequential, inputs: ArrayLike | None, correlation: float = 0.0) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] over pairs of sites of the input, in the leanest representation that serves it.

    Inputs that are drawn have this ``correlation`` between samples.
    """
    if why := memory_of_gates_refusal(net, inputs):
        raise ValueError(why)
    if inputs is not None or net.padding != "circular":
        pairs = (net.inputs * net.sites) ** 2
        needed = SITE_PAIR_ARRAYS * NUMBER_BYTES * pairs
        require_bytes(needed, "the mean field over all pairs of sites", "grid or samples")
        remedy = "lower grid, samples or depth, or take circular padding and the net's own inputs, which need no pairs"
        what = f"the mean field over {pairs:,} pairs of sites at {net.depth:,} layers"
        if why := seconds_refusal(PAIR_SECONDS * pairs * net.depth, what, remedy):
            raise ValueError(why)
    else:
        kinds = min(net.inputs, 2)
        numbers = (kinds * (SITE_PAIR_ARRAYS + net.taps) + 2 * net.taps) * net.sites
        require_bytes(NUMBER_BYTES * numbers, "the mean field over all displacements", "grid")
    if inputs is None:
        return white_product(net, correlation)
    batch = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
    if any(layer.skip == 0 for layer in net.layers):
        raise ValueError("a stream that starts from given values is not Gaussian; put a layer before it: stem=1")
    return given_product(net, batch)


def memory_of_gates_refusal(net: Sequential, inputs: ArrayLike | None = None) -> str:
    """Why a stream is not followed, as every block meets the gates of all above it; empty if it is."""
    blocks = sum(layer.skip is not None for layer in net.layers)
    by_pair = inputs is not None or net.padding != "circular"
    pairs = (net.inputs * net.sites) ** 2 if by_pair else min(net.inputs, 2) * net.sites
    of_pair = pairs * GATE_SECONDS
    what = f"the memory of {blocks:,} blocks, each of which meets the gates of all above it,"
    remedy = f"lower depth to {int((2 * LONGEST_SECONDS / of_pair) ** 0.5):,} blocks"
    return seconds_refusal(blocks**2 / 2 * of_pair, what, remedy)


def given_product(net: Sequential, inputs: Array) -> tuple[Transport, Array]:
    """The average of sigma(x) sigma(x') over the channels of a given batch (B, C_0, *grid)."""
    samples, channels = inputs.shape[:2]
    values = net.sigma_at(0).function(inputs).reshape(samples, channels, net.sites)
    product = np.einsum("bip,cir->bpcr", values, values, optimize=True) / channels
    return EveryPair(net), product.reshape(samples * net.sites, -1)


def white_product(net: Sequential, correlation: float = 0.0) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] of the default input."""
    transport, covariance = white_input(net, correlation)
    return transport, net.sigma_at(0).product(*transport.variances(covariance), covariance)


def white_input(net: Sequential | Staged, correlation: float = 0.0) -> tuple[Transport, Array]:
    """Covariance of the default input: white over sites, with this correlation between samples."""
    variance = input_variance(net)
    if net.padding == "circular":
        covariance = np.zeros((min(net.inputs, 2), net.sites))
        covariance[:, 0] = np.array([1.0, correlation])[: len(covariance)] * variance
        return Displacements(net), covariance
    samples = (1 - correlation) * np.eye(net.inputs) + correlation
    mirrored = all(taps % 2 for taps in net.kernel)
    return EveryPair(net, mirrored), np.asarray(variance * np.kron(samples, np.eye(net.sites)), dtype=float)


def input_variance(net: Sequential | Staged) -> float:
    """Variance of the default input's Gaussians: 1, or what gives z^(1) variance 1 if inputs are normalised so."""
    if isinstance(net, Staged) or net.input_law != "normalised":
        return 1.0
    sigma = net.sigma_at(0)
    if sigma.homogeneous:
        return 1.0 / net.variance_factor

    def lack(variance: float) -> float:
        return mean_square(sigma.function, variance) - net.input_energy

    return float(brentq(lack, 0.0, LARGEST_VARIANCE, xtol=1e-14))


@dataclass(frozen=True)
class LayerMoments:
    """c, K and V of one layer, per pair of sites in the representation of the transport that made them."""

    covariance: Array
    kernel: Array
    cross_channel: Array

    def divided(self, products: Array) -> LayerMoments:
        """Those of values over their sizes, of which these are the ``products`` by pair of sites."""
        return LayerMoments(self.covariance / products, self.kernel / products, self.cross_channel / products**2)

    def overlap(self, channels: int) -> Array:
        """Second moment of the tangent kernel per pair of sites, averaged over pairs of channels."""
        return self.kernel**2 / channels + self.cross_channel


class UnitTerms(NamedTuple):
    """The terms of one depth unit by pair of sites: F, and the label term's summand for labels of variance 1."""

    overlap: Array
    label: Array


def forward_moments(net: Sequential, transport: Transport, input_product: Array) -> Iterator[tuple[Array, Array]]:
    """Yield Tr(xx) / k and c of layers 1 .. N; a branch, having its own weights, adds to its stream's covariance."""
    sigma, product = net.sigma_at(0), input_product
    sources = {layer.skip for layer in net.layers}
    streams = {0: white_input(net)[1]} if 0 in sources else {}
    for place, layer in enumerate(net.layers, start=1):
        carried = transport.diagonal(product)
        covariance = layer.variance_factor * carried / sigma.gain
        covariance = layer.multiplier**2 * covariance
        if layer.skip is not None:
            covariance = streams.pop(layer.skip) + covariance
        if place in sources:
            streams[place] = covariance
        yield carried, covariance
        sigma, epsilon = net.sigma_at(place), net.normalised_at(place)
        seen = covariance if epsilon is None else covariance / sizes(transport, covariance, epsilon)
        product = sigma.product(*transport.variances(seen), seen)


def sizes(transport: Transport, covariance: Array, epsilon: float) -> Array:
    """s s' of a normalisation between a value and its activation, by pair of sites.

    Over many channels the size of a site's values is a number, s^2 = c(p, p) + epsilon. What the Jacobian takes out of
    tangents along the values is a share of order 1/channels of the kernel between two channels.
    """
    here, there = transport.variances(covariance)
    return np.asarray(np.sqrt((here + epsilon) * (there + epsilon)))


def layer_moments(net: Sequential, transport: Transport, input_product: Array) -> Iterator[LayerMoments]:
    """Yield c, K, V of layers 1 .. L of a plain net from the input's E[sigma(x) sigma(x')] per pair of sites."""
    below: LayerMoments | None = None
    for place, (features, covariance) in enumerate(forward_moments(net, transport, input_product)):
        through_gates = None
        if below is not None:
            if (epsilon := net.normalised_at(place)) is not None:
                below = below.divided(sizes(transport, below.covariance, epsilon))
            sigma, (here, there) = net.sigma_at(place), transport.variances(below.covariance)
            both_on = sigma.gate_product(here, here, here) * sigma.gate_product(there, there, there) / sigma.gain**2
            through_gates = both_on * below.cross_channel
        moved = through_weights(matrix_of(net, place), transport, features, below, through_gates)
        below = LayerMoments(covariance, *moved)
        yield below


class Matrix(NamedTuple):
    """One weight matrix: the activation before it, channels below, taps, and the factor f on the fan-in variance.

    ``square``: of the multiplier of what it gives, but for a block, of whose multiplier the join takes care.
    """

    sigma: Activation
    channels: int
    taps: int
    factor: float
    square: float = 1.0


def matrix_of(net: Sequential, place: int) -> Matrix:
    """That of layer ``place`` + 1."""
    layer = net.layers[place]
    square = layer.multiplier**2 if layer.skip is None else 1.0
    return Matrix(net.sigma_at(place), net.channels_by_layer[place], net.taps, layer.variance_factor, square)


def through_weights(
    matrix: Matrix,
    transport: Transport | GridStep,
    features: Array,
    below: LayerMoments | None,
    through_gates: Array | None,
) -> tuple[Array, Array]:
    """K and V above one weight matrix, from ``features`` Tr(xx) / k and the moments below; layer 1 has none below.

    ``through_gates`` is what the gates leave of V: w V, 1 V for homogeneous activations except where
    pre-activations vanish.
    """
    sigma, channels, taps, factor, square = matrix
    own = square * channels * taps * features
    if below is None or through_gates is None:
        return own, np.zeros_like(own)
    pair = *transport.variances(below.covariance), below.covariance
    gate = sigma.gate_product(*pair)
    same = sigma.gate_square_product is sigma.gate_product  # gates that are 0 or 1
    gate_square = gate if same else sigma.gate_square_product(*pair)
    moved = through_gates + gate_square * below.kernel**2 / (sigma.gain**2 * channels)
    factor = square * factor
    carried = factor * transport.diagonal(gate * below.kernel) / sigma.gain
    return own + carried, factor**2 * transport.independent(moved)


def plain_terms(net: Sequential, transport: Transport, input_product: Array) -> Iterator[UnitTerms]:
    """Yield the terms of every layer of a plain net."""
    weights = label_weights(net, gate_energies(net, transport, input_product))
    layers = layer_moments(net, transport, input_product)
    for channels, weight, moments in zip(net.channels_by_layer[1:], weights, layers, strict=True):
        pairs = moments.overlap(channels)
        yield UnitTerms(pairs, transport.at_second(weight) * pairs)


def gate_energies(net: Sequential, transport: Transport, input_product: Array) -> list[Array]:
    """E[sigma'(z)^2] / q of layers 1 .. N at every site, at that layer's own variance; broadcastable to (B, S).

    Taken as 1 for homogeneous activations, as it is wherever anything arrives.
    """
    if net.sigma.homogeneous and net.follows_one_rule:
        return [np.ones(())] * len(net.layers)
    energies = []
    moments = forward_moments(net, transport, input_product)
    for place, (_, covariance) in enumerate(progress(moments, len(net.layers), "layer"), start=1):
        sigma, variance, epsilon = net.sigma_at(place), transport.own(covariance), net.normalised_at(place)
        square = 1.0 if epsilon is None else variance + epsilon
        seen = variance / square
        gates = np.ones(()) if sigma.homogeneous else sigma.gate_product(seen, seen, seen) / sigma.gain
        energies.append(gates / square)
    return energies


def label_weights(net: Sequential, gates: list[Array], errors: Array | float = 1.0) -> list[Array]:
    """For layers 1 .. N the diagonal over sites of E[J^T J], J the Jacobian from that layer to the outputs: (..., S).

    For a convolutional readout or a flattening one, where errors at different sites are independent and the matrix
    stays diagonal: w_l <- g_l (n_{l+1} / n_l) Pk^T w_{l+1} / k with ``gates`` g_1 .. g_N from `gate_energies`, and plus
    w_m where layer m skips from layer l. On evenly covered grids, in plain nets and for homogeneous activations
    n_l w_l is the same constant at every layer and site: the top-layer reduction (Zhang et al. 2026, Lemma 1). With
    ``errors``, the second moment of what stands at every output site, it is that of J^T times them.
    """
    joined_by = joins(net.layers)
    conserved: dict[int, Array] = {}
    for place in progress(range(len(net.layers), 0, -1), len(net.layers), "layer"):
        conserved[place] = gates[place - 1] * label_weight_above(net, place, conserved.get(place + 1), errors)
        if place in joined_by:
            conserved[place] = conserved[place] + conserved[joined_by[place]]
    widths = net.channels_by_layer
    return [conserved[place] / widths[place] for place in range(1, len(widths))]


def label_weight_above(net: Sequential, place: int, above: Array | None, errors: Array | float = 1.0) -> Array:
    """n_l w_l that arrives at layer ``place`` through the one weight matrix above it, before the layer's own gates.

    ``above`` is n w of the next layer, None where that is the readout, with errors of this second moment.
    """
    layer = Layer() if above is None else net.layers[place]
    if above is None:
        gamma = net.head_variance * net.head_fan_in * net.sigma_at(len(net.layers)).gain
        above = np.full(net.sites, gamma * net.outputs) * errors
        if net.readout == "flatten":
            return np.asarray(above / net.sites)
    table = reversed_neighbours(net.grid, net.kernel, net.padding)
    arriving = np.where(table == OUTSIDE, 0.0, above[..., table]).sum(axis=-2) / net.taps
    return np.asarray(layer.variance_factor * layer.multiplier**2 * arriving)


@dataclass(frozen=True)
class StreamState:
    """The state at the end of one depth unit: c, K and A, R_mean, and R_j of the gates ahead, (gates, *pairs)."""

    moments: LayerMoments
    mean: Array
    ahead: Array


def stream_terms(net: Sequential, transport: Transport, input_product: Array) -> Iterator[UnitTerms]:
    """Yield the terms of every depth unit, in plain layers below and above the blocks too."""
    stream = _Stream(net, transport, input_product)
    weights = label_weights(net, gate_energies(net, transport, input_product))
    through_gates = stream.labels_through_gates(weights)
    state = stream.start
    for bottom, top in pairwise([0, *net.unit_ends]):
        state = stream.past_unit(bottom, top, state)
        channels = net.channels_by_layer[top]
        fresh = state.moments.overlap(channels)
        to_first = transport.transpose(state.mean)
        remembered = (through_gates[len(through_gates) - len(state.ahead) :] * state.ahead).sum(axis=0) / channels
        label = transport.at_second(weights[top - 1]) * (fresh + to_first) + remembered
        yield UnitTerms(fresh + state.mean + to_first, label)


class _Stream:
    """A net with what must be known before its first block: covariances at all places, since later gates enter early.

    ``gates`` are the places at which blocks start, and the one at which the last block ends.
    """

    def __init__(self, net: Sequential, transport: Transport, input_product: Array) -> None:
        self._net, self._transport = net, transport
        self._features, covariances = zip(*forward_moments(net, transport, input_product), strict=True)
        starts = [layer.skip for layer in net.layers if layer.skip is not None]
        self.gates = [*starts, max(place for place, layer in enumerate(net.layers, 1) if layer.skip is not None)]
        at_input = white_input(net)[1] if 0 in starts else np.zeros_like(input_product)
        self._covariances = [at_input, *covariances]
        sides = zip(*map(transport.variances, self._covariances), strict=True)
        here, there = (
            np.stack([np.reshape(v, np.shape(v) or (1,) * input_product.ndim) for v in side]) for side in sides
        )
        self._at_gates = there[self.gates]
        # E[sigma'^2] / q at the first and at the second site of every place.
        self._energies, self._energies_there = (net.sigma.gate_product(v, v, v) / net.sigma.gain for v in (here, there))
        nothing = np.zeros_like(input_product)
        self.start = StreamState(
            LayerMoments(at_input, nothing, nothing), nothing, np.zeros((len(self.gates), *nothing.shape))
        )

    def labels_through_gates(self, weights: list[Array]) -> Array:
        """n w / q that labels send down through each of the stream's gates alone, by its site: (gates, *pairs)."""
        channels, arriving = self._net.channels_by_layer, []
        for gate in self.gates:
            above = weights[gate] * channels[gate + 1] if gate < len(weights) else None
            arriving.append(label_weight_above(self._net, gate, above) / self._net.sigma.gain)
        at_second = map(self._transport.at_second, arriving)
        return np.stack([np.broadcast_to(weight, self.start.mean.shape) for weight in at_second])

    def past_unit(self, bottom: int, top: int, state: StreamState) -> StreamState:
        """The state above the layers ``bottom`` + 1 .. ``top``: a block, if the last of them adds the stream again."""
        if self._net.layers[top - 1].skip is not None:
            return self._past_block(bottom, top, state)
        if bottom not in self.gates:
            return StreamState(self._through(bottom, state.moments), state.mean, state.ahead)
        moments = self._through(bottom, state.moments, self._met(bottom, state))
        return StreamState(moments, np.zeros_like(state.mean), state.ahead[1:])  # memory ends above the last gate

    def _past_block(self, bottom: int, top: int, state: StreamState) -> StreamState:
        below, branch = state.moments, self._through(bottom, state.moments, self._met(bottom, state))
        for place in range(bottom + 1, top):
            branch = self._through(place, branch)
        crossing, mean, ahead = self._beside(bottom, top, state)
        square = self._net.layers[top - 1].multiplier ** 2
        cross = below.cross_channel + square * (crossing + self._transport.transpose(crossing))
        joined = LayerMoments(
            branch.covariance, below.kernel + square * branch.kernel, cross + square**2 * branch.cross_channel
        )
        return StreamState(joined, state.mean + square * mean, state.ahead[1:] + square * ahead)

    def _through(self, place: int, below: LayerMoments, met: Array | None = None) -> LayerMoments:
        """The plain recursion through one weight matrix, with what the stream's gates remember."""
        through_gates = self._energies[place] * self._energies_there[place] * below.cross_channel
        if met is not None:
            through_gates = through_gates + met + self._transport.transpose(met)
        plain_below = below if place else None
        matrix, features = matrix_of(self._net, place), self._features[place]
        moved = through_weights(matrix, self._transport, features, plain_below, through_gates)
        return LayerMoments(self._covariances[place + 1], *moved)

    def _met(self, gate: int, state: StreamState) -> Array:
        """w R_l / q at the next gate."""
        return self._energies[gate] * state.ahead[0] / self._net.sigma.gain

    def _beside(self, bottom: int, top: int, state: StreamState) -> tuple[Array, Array, Array]:
        """D and what is added to R_mean and to R_j, between a branch unit (first site) and a stream unit."""
        sigma, energy = self._net.sigma, self._energies[bottom]
        square = state.moments.kernel**2 / self._net.channels_by_layer[bottom]
        here, _ = self._transport.variances(self._covariances[bottom])
        later = self._at_gates[len(self.gates) + 1 - len(state.ahead) :]
        gates = sigma.gate_square_product(here, later, self._covariances[bottom]) / sigma.gain
        between = energy * state.moments.cross_channel + self._transport.transpose(state.ahead[0]) / sigma.gain
        met = between, energy * (state.mean + square), energy * state.ahead[1:] + gates * square
        crossing, mean, ahead = (self._carried(bottom, top, moments) for moments in met)
        return crossing, mean, ahead

    def _carried(self, bottom: int, top: int, gated: Array) -> Array:
        """Moments between branch and stream, from behind the branch's first gate, above all of its matrices."""
        carried = self._net.layers[bottom].variance_factor * self._transport.first(gated)
        for place in range(bottom + 1, top):
            moved = self._transport.first(self._energies[place] * carried)
            carried = self._net.layers[place].variance_factor * moved
        return carried
