"""Iterating a linear recursion over a million layers without overflow: numbers between 0 and 1, and a running log."""

import numpy as np
from numpy.typing import NDArray

from meanfield.common.arrays import Array
from meanfield.common.compiled import compiled


def iterate(matrices: Array, which: NDArray[np.int64], start: Array, rows: NDArray[np.int64]) -> Array:
    """Logs of the chosen rows of state_1, state_2, ...: (len(which) + 1, len(rows)).

    state_{l+1} = matrices[which[l]] state_l. The state is divided by its largest entry after every step and the
    logarithm of that entry summed, so that growth like exp(3 l / n) never leaves the range of a float. Recursions are
    sparse: only the non-zero coefficients of each matrix are listed and visited.
    """
    place = np.argsort(matrices == 0.0, axis=2, kind="stable")
    value = np.take_along_axis(matrices, place, axis=2)
    logs, state = np.empty((len(which) + 1, len(rows))), start.copy()
    _iterate(place, value, np.count_nonzero(matrices, axis=2), which, state, np.empty_like(state), rows, logs)
    return logs


@compiled()
def _iterate(place, value, count, which, state, moved, rows, logs):
    """Fill ``logs``; row i of a matrix has ``count`` coefficients ``value``, in the columns ``place``.

    ``moved`` is room for a state.
    """
    size = state.size
    log_scale = 0.0
    for step in range(which.size + 1):
        largest = 0.0
        for i in range(size):
            if abs(state[i]) > largest:
                largest = abs(state[i])
        log_scale += np.log(largest)
        for i in range(size):
            state[i] /= largest
        for k in range(rows.size):
            logs[step, k] = np.log(state[rows[k]]) + log_scale
        if step < which.size:
            m = which[step]
            for i in range(size):
                total = 0.0
                for k in range(count[m, i]):
                    total += value[m, i, k] * state[place[m, i, k]]
                moved[i] = total
            state, moved = moved, state
