"""Iterating a linear recursion over a million layers without overflow: numbers between 0 and 1, and a running log."""

import numpy as np
from numba import njit


@njit(cache=True)
def iterate(matrices, which, start, rows):
    """Logs of the chosen rows of state_1, state_2, ...: (len(which) + 1, len(rows)).

    state_{l+1} = matrices[which[l]] state_l. The state is divided by its largest entry after every step and the
    logarithm of that entry summed, so that growth like exp(3 l / n) never leaves the range of a float. Recursions are
    sparse: only the non-zero coefficients of each matrix are listed and visited.
    """
    size = start.size
    count = np.zeros((matrices.shape[0], size), np.int64)
    place = np.zeros(matrices.shape, np.int64)
    value = np.zeros(matrices.shape)
    for m in range(matrices.shape[0]):
        for i in range(size):
            for j in range(size):
                if matrices[m, i, j] != 0.0:
                    place[m, i, count[m, i]] = j
                    value[m, i, count[m, i]] = matrices[m, i, j]
                    count[m, i] += 1
    state = start.copy()
    moved = np.empty(size)
    logs = np.empty((which.size + 1, rows.size))
    log_scale = 0.0
    for step in range(which.size + 1):
        largest = np.max(np.abs(state))
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
    return logs
