"""The example of docs/how_to/check_a_law.md: a net of any size, and a law that is claimed of it."""

import meanfield as mf


def make(depth):
    """Wider where it is deeper."""
    return mf.MLP(depth=depth, width=64 * depth)


def law(depth):
    """n^(-1/2) L^(-3/2) with n = 64 L, and the correction of shallow nets."""
    return depth**-2 / (1 + 1 / depth)
