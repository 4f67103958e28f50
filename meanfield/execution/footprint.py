"""What drawing a net takes of the memory, before anything is drawn."""

from __future__ import annotations

from meanfield.common.validation import require_count
from meanfield.execution.simulate import default_measure
from meanfield.nets.families.known import require_net
from meanfield.nets.net import Net


def memory(architecture: Net, *, weights: str = "auto", draws: int = 1) -> int:
    """Bytes that `simulate` will need at its peak in each process, beyond those of the program itself.

    A prediction from the sizes alone, of weights, values, errors and one layer's working arrays: for MLPs of width n
    and depth L it is 8 n^2 L with dense weights, O(n L) with lazy ones. It is within 20 % of what a process is seen to
    take where that is 10 MiB or more. Draws are carried in batches of a size chosen from it, so that it grows with
    ``draws`` up to one batch.

    Args:
        architecture: the net or loop.
        weights: "dense", "lazy", "gram" or "auto", as `simulate` takes it.
        draws: how many will be drawn, at least 1.

    Raises:
        TypeError, ValueError: what is no net, an unknown kind of weights, a number of draws that is no count.

    Source: docs/theory.md section 12 for lazy weights.
    """
    require_net(architecture, units=True)
    count = require_count("draws", draws, why="how many networks are drawn")
    return default_measure(architecture, weights=weights).settled(architecture).bytes(architecture, count)
