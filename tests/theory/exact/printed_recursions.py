"""The recursions as docs/theory.md sections 3, 4 print them, typed by hand: an independent check."""

import numpy as np


def relu_or_linear(state, n, s, relu):
    """One layer of P, F, D, U, V, G, W, Q for ReLU or linear gates; n the new width, s its weight variance."""
    P, F, D, U, V, G, W, Q = state
    if relu:
        p, f, u, g, w = (P + D) / 4, (F + D) / 4, (U + V) / 4, (G + V) / 4, (W + Q) / 4
    else:
        p, f, u, g, w = P, F, U, G, W
    return np.array(
        [
            s**2 * (n**2 * p + 2 * n * f) + 2 * s * n**2 * u + n**2 * w,
            s**2 * (n * p + n * (n + 1) * f) + 2 * s * n * u + n * w,
            n * (s**2 * (p + 2 * f) + 2 * s * u + w),
            s**2 * (n**2 * u + 2 * n * g) + s * n**2 * w,
            n * (s**2 * (u + 2 * g) + s * w),
            s**2 * (n * (n + 1) * g + n * u) + s * n * w,
            s**2 * n * (n + 2) * w,
            3 * s**2 * n * w,
        ]
    )


def first_layer(n, s, c):
    """Layer 1: Theta = c I, z ~ N(0, s c)."""
    return np.array(
        [
            (n * c) ** 2,
            n * c**2,
            n * c**2,
            n**2 * s * c**2,
            n * s * c**2,
            n * s * c**2,
            n * (n + 2) * (s * c) ** 2,
            3 * n * (s * c) ** 2,
        ]
    )


def overlap_energies(n, depth, relu=True):
    """F_l = |Theta|_F^2 / n^2 for l = 1 .. L at width n everywhere."""
    gain = 0.5 if relu else 1.0
    s, c = 1 / (gain * n), gain * n
    state, energies = first_layer(n, s, c), []
    for _ in range(depth):
        energies.append(state[1] / n**2)
        state = relu_or_linear(state, n, s, relu)
    return np.array(energies)


def overlap_of_two_tangents(b, e, m, n, s):
    """<v1, v2>^2, |v1|^2 |v2|^2 and sum v1_i^2 v2_i^2 through one ReLU layer."""
    bh, eh = (b + m) / 4, (e + m) / 4
    return s**2 * (n**2 * bh + n * (eh + bh)), s**2 * (n**2 * eh + 2 * n * bh), n * s**2 * (eh + 2 * bh)


def gram_downwards(a1, a2, n, s, relu):
    """(tr S)^2 and tr S^2 through one layer of lower width n."""
    if relu:
        return s**2 / 4 * (n * (n + 1) * a1 + 4 * n * a2), s**2 / 4 * (2 * n * a1 + n * (n + 3) * a2)
    return s**2 * (n**2 * a1 + 2 * n * a2), s**2 * (n * a1 + n * (n + 1) * a2)


def linear_block(state, n, s, beta):
    """One block z + a W z of F, P, U, G, W, beta = a^2 (section 3)."""
    F, P, U, G, W = state
    return np.array(
        [
            F
            + beta * (2 * s * n * F + 2 * s * F)
            + beta**2 * s**2 * (n * P + n * (n + 1) * F)
            + 2 * beta * s * P
            + n * beta**2 * W
            + 2 * beta * U
            + 2 * beta**2 * s * n * U,
            P
            + 4 * beta * s * F
            + beta**2 * s**2 * (n**2 * P + 2 * n * F)
            + beta**2 * n**2 * W
            + 2 * beta * s * n * P
            + 2 * beta * n * U
            + 2 * beta**2 * s * n**2 * U,
            U
            + 2 * beta * s * n * U
            + beta * n * W
            + 4 * beta * s * G
            + beta**2 * s**2 * (n**2 * U + 2 * n * G)
            + beta**2 * n**2 * s * W,
            G
            + 2 * beta * s * n * G
            + beta * (2 * s * U + 2 * s * G)
            + beta**2 * s**2 * (n * (n + 1) * G + n * U)
            + beta * (W + beta * s * n * W),
            W * (1 + 4 * beta * s + 2 * beta * s * n + beta**2 * s**2 * n * (n + 2)),
        ]
    )
