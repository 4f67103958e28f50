"""The output term of a convolutional or a flattening readout with every sum over sites and every matrix written out.

And that of one site.
"""

from itertools import product

import numpy as np

from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.theory.mean_field.layers import given_product


def _shifts(net):
    """S_D over all points of the batch, a list of matrices."""
    table = neighbours(net.grid, net.kernel, net.padding)
    shifts = []
    for row in table:
        shift = np.zeros((net.sites, net.sites))
        for site, reached in enumerate(row):
            if reached != OUTSIDE:
                shift[site, reached] = 1.0
        shifts.append(np.kron(np.eye(net.inputs), shift))
    return shifts


def three_sites(c, activation):
    """E[1_a b c+], E[1_a b+ c+] and E[1_a 1_b 1_c] over all a, b, c: (N, N, N) each, by conditional Gaussians."""
    count = len(c)
    first, both, on = (np.zeros((count,) * 3) for _ in range(3))
    for a, b, d in product(range(count), repeat=3):
        place = a, b, d
        first[place], both[place], on[place] = (_linear if activation == "linear" else _relu)(c[np.ix_(place, place)])
    return first, both, on


def _linear(c):
    return c[1, 2], c[1, 2], 1.0


def _relu(c):
    """Stein's lemma on one factor, then moments of what is left given the site at which a gate opens."""
    if np.any(np.diag(c) <= 0):
        return 0.0, 0.0, 0.0
    size = np.sqrt(np.diag(c))
    rho = np.clip(c / np.outer(size, size), -1, 1)
    pair = 1 / 4 + np.arcsin(rho) / (2 * np.pi)
    on = 1 / 8 + (np.arcsin(rho[0, 1]) + np.arcsin(rho[0, 2]) + np.arcsin(rho[1, 2])) / (4 * np.pi)

    def given(kept, at):
        return size[kept] * np.sqrt(max(1 - rho[kept, at] ** 2, 0.0))

    def partial(left, right, at):
        scale = given(left, at) * given(right, at)
        return (
            0.0
            if scale < 1e-12 * size[left] * size[right]
            else (np.clip((c[left, right] - c[left, at] * c[right, at] / c[at, at]) / scale, -1, 1))
        )

    first = c[1, 2] * pair[0, 2] + c[1, 0] / size[0] * given(2, 0) / (2 * np.pi)
    both = c[1, 2] * on + size[1] / (2 * np.pi) * given(2, 1) * (1 + partial(0, 2, 1)) / 2
    both += c[1, 0] / size[0] * given(2, 0) * (1 + partial(1, 2, 0)) / (4 * np.pi)
    return first, both, on


def written_out(net, inputs=None, *, along=1.0, own=1.0, late=0):
    """docs/theory.md section 18 for a convolutional or a flattening readout: (L, S).

    Controls: ``along`` 0 drops mu; ``own`` 0 drops the own updates of layers above the first; ``late`` 1 takes the
    kernel of the layer below.
    """
    shifts, gain, taps, widths = _shifts(net), net.sigma.gain, net.taps, net.channels_by_layer
    places, factor = net.sites * net.inputs, net.variance_factor
    if inputs is None:
        energy = np.eye(places)
        xx = net.sigma.product(np.diag(energy)[:, None], np.diag(energy)[None], energy)
    else:
        _, xx = given_product(net, inputs)

    def up(pairs):
        return sum(shift @ pairs @ shift.T for shift in shifts)

    def down(pairs):
        return sum(shift.T @ pairs @ shift for shift in shifts)

    layers, kernel, gate = [], np.zeros((places, places)), np.zeros((places, places))
    for place in range(net.depth):
        kernel = factor / (gain * taps) * up(gate * kernel) + (own if place else 1.0) * widths[place] * up(xx)
        c = factor / (gain * taps) * up(xx)
        variance = np.diag(c)[:, None], np.diag(c)[None]
        xx, gate = net.sigma.product(*variance, c), net.sigma.gate_product(*variance, c)
        layers.append((c, xx, gate, kernel))
    kernels = [layers[max(place - late, 0)][3] for place in range(net.depth)]
    scale = net.head_variance
    mu = along * scale / places * sum(shift.sum(axis=0) for shift in shifts)
    errors = scale**2 * widths[-1] / (net.outputs * places**2) * down(up(xx))
    if net.readout == "flatten":
        mu, errors = along * scale / net.inputs * np.ones(places), np.zeros((places, places))
        for first, second in product(range(places), repeat=2):
            if (first - second) % net.sites == 0:
                samples = [np.arange(net.sites) + net.sites * (place // net.sites) for place in (first, second)]
                outputs = scale * widths[-1] * xx[samples[0], samples[1]].sum()
                errors[first, second] = scale / (net.outputs * net.inputs**2) * outputs
    backward = [(errors, mu)]
    for place in range(net.depth - 1, 0, -1):
        _, xx, gate, _ = layers[place]
        share = factor * widths[place + 1] / (gain * taps * widths[place])
        errors = share * down(errors * gate + np.outer(mu, mu) * xx)
        mu = gain * share * sum(shift.T @ mu for shift in shifts)
        backward.insert(0, (errors, mu))
    energy, with_z, by_layer = np.zeros(places), np.zeros((places, places)), []
    for (c, xx, gate, _), kernel, (errors, mu) in zip(layers, kernels, backward, strict=True):
        inverse, weight = np.linalg.pinv(c, hermitian=True), kernel * mu
        z_feature = gain * c
        first, both, on = three_sites(c, net.activation)
        slope = with_z @ inverse
        rest = energy - np.diag(slope @ c @ slope.T)
        coherent = slope @ c @ slope.T + 2 * slope @ z_feature @ weight.T + weight @ xx @ weight.T
        by_layer.append(rest + np.diag(coherent) + np.diag(kernel @ (errors * gate) @ kernel))
        z_both = c[None] * np.diag(gate)[:, None, None]
        gated = np.einsum("pr,ps,prs->p", slope, slope, z_both) + 2 * np.einsum("pr,ps,prs->p", slope, weight, first)
        gated += np.einsum("pr,ps,prs->p", weight, weight, both) + gain * rest
        gated += np.einsum("pr,ps,rs,prs->p", kernel, kernel, errors, on)
        pairs = np.einsum("pr,prs->ps", slope, first) + np.einsum("pr,prs->ps", weight, both)
        energy = factor / (gain * taps) * sum(shift @ gated for shift in shifts)
        with_z = factor / (gain * taps) * up(pairs)
    return np.array(by_layer).reshape(net.depth, net.inputs, net.sites).mean(axis=1)


def single_site_terms(depth, outputs_over_width, output_energy, gain):
    """A_l and B_l of fully-connected nets with one input and equal layers, at n -> infinity with M/n fixed: two (L,).

    With x = M/n, v = E z_out^2, q the gain and labels of variance 1

        A_l = v^2 ([l (l-1)/2]^2 + q l^2 (l-1) + q^2 l^2 g_l + q sum_{h<l} h^2 g_{h+1}),  g_l = 1/x + (L - l + 1)/q
        B_l = (v/x) (q^2 l^2 + q sum_{h<l} h^2)

    The first part of A_l, l^4/4, is the change along z itself, which all outputs drive together: with outputs of the
    order of the width it makes eta* fall as L^-2. The others are its interference with the error, the error itself, and
    what lower layers pass on.

    Args:
        depth: L.
        outputs_over_width: x, positive.
        output_energy: v; 1 under a "he" head, q under "fan_in", q/n under "mup".
        gain: q of a homogeneous activation.

    Source: docs/theory.md section 9.
    """
    x, v, q = outputs_over_width, output_energy, gain
    layer = np.arange(1.0, depth + 1)
    error = 1 / x + (depth - layer + 1) / q
    below = np.append(0.0, np.cumsum(layer[:-1] ** 2))
    passed_on = np.append(0.0, np.cumsum(layer[:-1] ** 2 * error[1:]))
    along = (layer * (layer - 1) / 2) ** 2 + q * layer**2 * (layer - 1)
    output = v**2 * (along + q**2 * layer**2 * error + q * passed_on)
    return output, v / x * (q**2 * layer**2 + q * below)
