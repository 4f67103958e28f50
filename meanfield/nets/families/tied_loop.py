"""Tied loops: one weight matrix, applied again and again to a residual stream."""

from dataclasses import dataclass

from meanfield.nets.families.loop import Loop


@dataclass(frozen=True, kw_only=True)
class TiedLoop(Loop):
    """L steps of one residual layer of width N, with the same weights at every step.

    h_{l+1} = h_l + eps W phi(h_l), h_0 ~ N(0, I). With ``tied=False`` every step has a matrix of its own: the deep
    stack that loops are compared with.

    Args:
        depth: steps L, at least 1.
        width: N.
        alpha: residual scaling eps = L^(-alpha), a real number, or "none" (0), "sqrt" (1/2), "linear" (1).
        weight_variance: sigma_W^2, positive; W_ij has variance sigma_W^2 / N.
        activation: phi, "relu", "linear", "gelu" or "tanh".
        tied: whether all steps share W; if not, each has its own.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, an unknown name, numbers that are not finite, a
            variance that is not positive, or an alpha that leaves eps no place among the floats.

    Source: Wang et al. 2026, eq. 1, appendix B.
    """
