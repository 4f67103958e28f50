"""The covariance of a stream of tied blocks written out: all tokens, all pairs of steps, heads drawn one by one."""

import numpy as np
from scipy.special import softmax

HEADS = 60_000


def naive_covariances(net, seed=0):
    """E z_u(i) z_v(j) of values u, v = 0 .. L, (L + 1, L + 1, T, T), of a pre- or post-norm `Transformer`.

    z_u is kept as a sum over the start and the increments, each with its factor.
    """
    count, tokens, rng = 2 * net.depth, net.tokens, np.random.default_rng(seed)
    parts = np.zeros((count + 1, count + 1, tokens, tokens))  # E y y' of the start y_0 and the increments y_1 .. y_L
    parts[0, 0] = np.eye(tokens)
    factors = np.zeros((count + 1, count + 1, tokens))  # z_u = sum_p factors[u, p] y_p
    factors[0, 0] = 1
    for step in range(1, count + 1):
        values = np.einsum("upi,vqj,pqij->uvij", factors[:step], factors[:step], parts)
        sizes = np.sqrt(np.einsum("uuii->ui", values))
        normal = values / sizes[:, None, :, None] / sizes[None, :, None, :]
        alike = [u for u in range(step) if u % 2 == (step - 1) % 2 and (net.tied or u == step - 1)]
        kernel = (_attended if step % 2 else _hidden)(net, normal[np.ix_(alike, alike)], rng)
        for row, u in enumerate(alike):
            parts[step, u + 1], parts[u + 1, step] = kernel[-1, row], kernel[-1, row].T
        factors[step] = factors[step - 1]
        factors[step, step] = net.multiplier
        if net.norm == "post":
            factors[step] /= np.sqrt(np.einsum("pi,qi,pqii->i", factors[step], factors[step], parts))
    return np.einsum("upi,vqj,pqij->uvij", factors, factors, parts)


def _attended(net, normal, rng):
    """E x x' behind the heads of several steps, from the covariance (k, k, T, T) of what they are given."""
    count, tokens = len(normal), net.tokens
    logits = np.zeros((HEADS, count, tokens, tokens))
    if net.attention_scale == "inverse_sqrt":
        covariance = np.einsum("uvij,uvkl,ikjl->uikvjl", normal, normal, _turned(net)).reshape(2 * (count * tokens**2,))
        logits = rng.multivariate_normal(np.zeros(len(covariance)), covariance, HEADS, method="eigh")
        logits = logits.reshape(HEADS, count, tokens, tokens)
    if net.causal:
        logits = np.where(np.tri(tokens) > 0, logits, -np.inf)
    shares = softmax(logits, axis=3)
    return np.einsum("huik,hvjl,uvkl->uvij", shares, shares, normal, optimize=True) / HEADS


def _hidden(net, normal, rng):
    """E x x' behind hidden units, over drawn pairs of Gaussians but for ReLU's closed form; W_2's gain with it."""
    if net.activation == "relu":
        rho = np.clip(normal, -1, 1)
        return (np.sqrt(1 - rho**2) + rho * (np.pi - np.arccos(rho))) / np.pi
    units = rng.standard_normal((4, 2 * HEADS))
    mixed = normal[..., None] * units[0] + np.sqrt(np.maximum(1 - normal[..., None] ** 2, 0)) * units[1]
    silu = units[0] / (1 + np.exp(-units[0])), mixed / (1 + np.exp(-mixed))
    return normal * (silu[0] * silu[1]).mean(axis=-1) / (silu[0] ** 2).mean()


def _turned(net):
    """How rotary positions turn the covariance of logits (i, k) and (j, l): by the mean cosine of i - k - (j - l)."""
    if not net.rotary:
        return np.ones(4 * (net.tokens,))
    place = np.arange(net.tokens)
    apart = place[:, None, None, None] - place[:, None, None] - place[:, None] + place
    pairs = net.head_size // 2
    return np.mean([np.cos(apart * 10_000.0 ** (-m / pairs)) for m in range(pairs)], axis=0)
