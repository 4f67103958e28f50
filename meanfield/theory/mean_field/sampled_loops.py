"""One step of any optimizer from rest in loops, over a sample of the units of a wide stream.

h_{t+1} = h_t + e W phi(h_t) with one matrix W for all steps: its gradient is e sum_t U_{t+1} x_t^T, x_t = phi(h_t), of
rank L, so that signs are those of sums over the steps and a polar factor joins all of them, as samples are joined in
`meanfield.theory.mean_field.sampled_units`. At leading order in 1/width the matrix is no more than what it gave so far:
after right queries X with R = W X and left ones U with G = W^T U, the next ones are

    W v    = R a + U (U^T U)^-1 G^T v' + Gaussian of variance s |v'|^2,   v = X a + v',   v' orthogonal to X
    W^T u  = G b + X (X^T X)^-1 R^T u' + Gaussian of variance s |u'|^2,   u = U b + u',   u' orthogonal to U

in which sums over units are the width times means over a sample of them. Forward, x_0 .. x_{L-1} are asked; backward,
U_L .. U_2; then the gated changes T_t of the steps, T_{t+1} = T_t + e [W (gate T_t) + births]. With weights of its own
every step asks its own matrix, one column each way. The outputs of a loop are its stream, as many as units.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.machine import on_one_thread, progress
from meanfield.common.validation import Array, takes
from meanfield.nets.loop import Loop
from meanfield.optimizers.first_steps import SIGN, FirstStep
from meanfield.theory.mean_field.sampled_units import RANK, births
from meanfield.theory.mean_field.step_terms import StepTerms, form_refusal, forms

# Units of the stream and replicates; with signs of sums over steps, which take the square of the units.
UNITS, UNITS_UNDER_SIGNS, REPLICATES = 2**12, 2**10, 8
MOST_STEPS = 64
# Shares of labels and of outputs in the error.
KINDS = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))


@takes(Loop)
def loop_step_terms(loop: Loop, step: FirstStep) -> StepTerms:
    """The terms of one step of this optimizer from rest, for labels of the stream of variance 1.

    Raises:
        ValueError: a loop or an optimizer that is not served, saying why.
    """
    if why := loop_step_refusal(loop, step):
        raise ValueError(why)
    signs = SIGN in forms(loop, step)
    count, runs, values = UNITS_UNDER_SIGNS if signs and loop.tied else UNITS, [], []
    with on_one_thread(), np.errstate(over="ignore", invalid="ignore"):  # seen in sums over units
        for replicate in progress(range(REPLICATES), REPLICATES, "replicate"):
            anew = [SampledLoop(loop, step, count, replicate) for _ in KINDS]  # a matrix keeps what it has been asked
            runs.append([sampled.energies(*shares) for sampled, shares in zip(anew, KINDS, strict=True)])
            values.append(anew[0].values)
    label, output, update = means = np.mean(runs, axis=0)
    scatter = np.std(runs, axis=0, ddof=1) / sqrt(REPLICATES) / means
    attrs = {"sampled_units": count, "replicates": REPLICATES, "relative_error": float(scatter.max())}
    return StepTerms(
        update=update, value=np.mean(values, axis=0), label=label, output=output, outputs=float(update[-1]), attrs=attrs
    )


@takes(Loop)
def loop_step_refusal(loop: Loop, step: FirstStep) -> str:
    """Why `loop_step_terms` does not serve this loop and this optimizer, and what to take; empty if it does."""
    if why := form_refusal(loop, step):
        return why
    if loop.depth > min(MOST_STEPS, loop.width):
        return (
            f"one step of {step.name} joins all steps of a loop, up to {MOST_STEPS} of them and no more than units; "
            f"these are {loop.depth} of {loop.width} units: take fewer, or draw it with `simulate`"
        )
    return ""


class Queried:
    """A Gaussian matrix by what it gave to columns over sampled units, from the right (W v) and from the left (W^T u).

    Columns are kept orthonormal, in mean squares over the sample, each with its answer.
    """

    def __init__(self, width: int, variance: float, count: int, most: int) -> None:
        self._size = sqrt(width * variance)
        self._right, self._left = _Answered(count, most), _Answered(count, most)

    def raise_(self, column: Array, noise: Array) -> Array:
        """W v."""
        return self._answer(column, noise, self._right, self._left)

    def lower(self, column: Array, noise: Array) -> Array:
        """W^T u."""
        return self._answer(column, noise, self._left, self._right)

    def _answer(self, column: Array, noise: Array, same: _Answered, other: _Answered) -> Array:
        along = same.columns @ column / len(column)
        rest = column - along @ same.columns
        again = same.columns @ rest / len(column)  # what rounding has left
        along, rest = along + again, rest - again @ same.columns
        size = sqrt(float((rest**2).mean()))
        of_rest = (other.answers @ rest / len(column)) @ other.columns + self._size * size * noise
        known = along @ same.answers
        if size**2 > RANK * float((column**2).mean()):
            same.add(rest / size, of_rest / size)
        return np.asarray(known + of_rest)


class _Answered:
    """Orthonormal columns and what a matrix gave to each, as rows."""

    def __init__(self, count: int, most: int) -> None:
        self._columns, self._answers, self._known = np.empty((most, count)), np.empty((most, count)), 0

    @property
    def columns(self) -> Array:
        return self._columns[: self._known]

    @property
    def answers(self) -> Array:
        return self._answers[: self._known]

    def add(self, column: Array, answer: Array) -> None:
        self._columns[self._known], self._answers[self._known] = column, answer
        self._known += 1


class SampledLoop:
    """A loop in so many sampled units of its stream."""

    def __init__(self, loop: Loop, step: FirstStep, count: int, replicate: int) -> None:
        self._loop, self._step = loop, step
        normals = even_normals(3 * loop.depth + 2, replicate).random(count).T
        self._labels, start, self._noise = normals[0], normals[1], normals[2:].reshape(3, loop.depth, count)
        uses = loop.depth if loop.tied else 1
        matrices = [
            Queried(loop.width, loop.element_variance, count, 2 * uses) for _ in range(1 if loop.tied else loop.depth)
        ]
        self._matrices = [matrices[place % len(matrices)] for place in range(loop.depth)]
        stream = [start]
        self._features, self._gates = list[Array](), list[Array]()
        for matrix, noise in zip(self._matrices, self._noise[0], strict=True):
            self._features.append(loop.sigma.function(stream[-1]))
            self._gates.append(loop.sigma.gate(stream[-1]))
            stream.append(stream[-1] + loop.step_size * matrix.raise_(self._features[-1], noise))
        self._last = stream[-1]
        self.values = np.array([float((value**2).mean()) for value in stream[1:]])

    def energies(self, labels: float, outputs: float) -> Array:
        """S of steps 1 .. L for an error with these shares of labels and outputs: (L,)."""
        loop, size = self._loop, self._loop.step_size
        errors = [(outputs * self._last - labels * self._labels) / loop.width]
        for place in reversed(range(1, loop.depth)):
            above = size * errors[-1]
            lowered = self._matrices[place].lower(above, self._noise[1][place])
            errors.append(errors[-1] + self._gates[place] * lowered)
        births = self._births(size * np.column_stack(errors[::-1]), np.column_stack(self._features))
        change, energies = np.zeros_like(self._last), []
        for place, matrix in enumerate(self._matrices):
            met = self._gates[place] * change
            raised = matrix.raise_(met, self._noise[2][place]) if place else np.zeros_like(change)
            change = change + size * (raised + births[:, place])
            energies.append(float((change**2).mean()))
        return np.array(energies)

    def _births(self, above: Array, features: Array) -> Array:
        """What the move of the weights adds to their output at every step: columns."""
        shape, roles = (self._loop.width,) * 2, [self._loop.role_of(name) for name in self._loop.weights]
        if self._loop.tied:
            return births(self._step, roles[0], above, features, shape)
        columns = [births(self._step, role, above[:, [at]], features[:, [at]], shape) for at, role in enumerate(roles)]
        return np.concatenate(columns, axis=1)
