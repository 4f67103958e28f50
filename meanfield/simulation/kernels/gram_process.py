"""Exact draws whose cost does not depend on the width: the Gram process of fully-connected nets with one input.

Up to the signs of weight rows, the gates of ReLU are fair coins independent of all else (docs/theory.md section 3).
So the m active units of a layer are a subspace on which all vectors are isotropic, and update energies depend on
lengths and angles alone: of the features, the two error columns (labels y and outputs) and their changes. These
follow a Markov chain of chi-squares and 2 x 2 Wishart matrices over the layers, some 15 variates a layer whatever its
width:

    forward    |phi_l|^2 = s |phi_{l-1}|^2 chi2(m_l) on active units, and with chi2(n_l - m_l) on inactive ones
    backward   U_l = W^T U_{l+1}: known along phi_l, as U_l' z_l is the same at every layer, and fresh beside it
    tangent    T_{l+1} = W T_l + U_{l+1} |phi_l|^2: along phi_l it becomes z_{l+1}; of the rest, what meets the errors
               above is what W^T sent down from them; all else is fresh

Linear nets are the case m = n. The law is that of drawn matrices, not an approximation of it.

The loops go through one draw after the other, a chain over layers whose state is a handful of numbers. Vectors at a
layer are kept by their coordinates in two orthonormal frames of the space of its active units. The first starts with
the features phi, so that the stream z = W phi above is known along it; the second starts with two directions that
span the errors U (labels, outputs), so that what W^T sends down from them is known. `Q` turns one into the other;
beyond three dimensions only lengths and angles matter, and two coordinates hold them.

Source: docs/theory.md section 13.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.common.compiled import compiled
from meanfield.common.seeds import streams_of_draws
from meanfield.common.validation import Array
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Chain

# Places of a layer's variates: halves of chi-squares by their degrees of freedom (m active units, i inactive ones) ...
ACTIVE, INACTIVE, DOWN, DOWN_NEXT, BEYOND, BEYOND_NEXT, IDLE, IDLE_NEXT = range(8)
CHI_SQUARES = 8
# ... and normals: off the diagonals of the triangles, along the third direction of the frame, along inactive features.
DOWN_OFF, THIRD, THIRD_NEXT, BEYOND_OFF, ALONG, ALONG_NEXT, IDLE_OFF = range(7)
NORMALS = 7


@compiled()
def column_energies(active, halves, normals, head_halves, head_normals, widths, variances, start, energies, errors):
    """Fill ``energies`` (D, L, 2), |T_l|^2 / n_l of both columns, and ``errors`` (D,), |y|^2 + |z_out|^2.

    ``active`` (D, L) units, ``halves`` (D, L, 8) and ``normals`` (D, L, 7) by the places above, ``head_halves`` (D, 2)
    of M and M - 1 degrees, ``head_normals`` (D,); ``widths`` n_1 .. n_L and M, ``variances`` of W^(1) .. and the
    readout's; ``start`` = |phi(x)|^2.
    """
    depth = active.shape[1]
    squares, idle = np.empty(depth + 1), np.empty(depth + 1)
    turns, downs, spans = np.empty((depth, 3, 3)), np.empty((depth, 2, 2)), np.empty((depth, 2, 2))
    for d in range(len(active)):
        squares[0] = start
        for layer in range(depth):
            squares[layer + 1] = 2 * variances[layer] * squares[layer] * halves[d, layer, ACTIVE]
            idle[layer + 1] = 2 * variances[layer] * squares[layer] * halves[d, layer, INACTIVE]
        outputs = np.sqrt(2 * variances[depth] * squares[depth] * head_halves[d, 0])
        along, across = head_normals[d], np.sqrt(2 * head_halves[d, 1])
        errors[d] = outputs**2 + along**2 + across**2
        if squares[depth] == 0.0:  # a layer without active units lets nothing through, either way
            energies[d] = 0.0
            continue
        head, net, drawn = (outputs, along, across), (widths, variances), (active[d], halves[d], normals[d])
        _errors_down(drawn, head, net, squares, turns, downs, spans)
        _changes_up(drawn, net, squares, idle, turns, downs, spans, energies[d])


@compiled()
def _errors_down(drawn, head, net, squares, turns, downs, spans):
    """U_l from the readout down: ``downs``, what the frame above sends to the two directions beside phi; ``turns`` Q
    from the frame of phi to that of the errors, and ``spans``, the errors in the latter.
    """
    active, halves, normals = drawn
    outputs, along, across = head
    widths, variances = net
    count = widths[-1]
    with_outputs = np.array([along * outputs, outputs * outputs]) / count  # U' z, the same at every layer
    above = np.array([[along, outputs], [across, 0.0]]) / count
    errors = np.empty((3, 2))
    for layer in range(len(active) - 1, -1, -1):
        deviation = np.sqrt(variances[layer + 1])
        down = downs[layer]
        down[0, 0] = deviation * np.sqrt(2 * halves[layer, DOWN])
        down[0, 1] = deviation * normals[layer, DOWN_OFF] if active[layer] > 1 else 0.0
        down[1, 0] = 0.0
        down[1, 1] = deviation * np.sqrt(2 * halves[layer, DOWN_NEXT])
        for column in range(2):
            errors[0, column] = with_outputs[column] / np.sqrt(squares[layer + 1])
            errors[1, column] = down[0, 0] * above[0, column] + down[0, 1] * above[1, column]
            errors[2, column] = down[1, 1] * above[1, column]
        _triangulate(errors, turns[layer])
        above = spans[layer]
        for column in range(2):
            above[0, column], above[1, column] = errors[0, column], errors[1, column]


@compiled()
def _triangulate(errors, turn):
    """Turn three rows into an upper triangle, in place, by rotations of two rows; ``turn`` @ errors is what they were.

    Rows that are zero, as those of directions that do not exist, stay so and take part in no rotation.
    """
    turn[:] = 0.0
    turn[0, 0] = turn[1, 1] = turn[2, 2] = 1.0
    for column, first, second in ((0, 1, 2), (0, 0, 1), (1, 1, 2)):
        x, y = errors[first, column], errors[second, column]
        length = np.hypot(x, y)
        if y == 0.0 or length == 0.0:
            continue
        cosine, sine = x / length, y / length
        for k in range(2):
            x, y = errors[first, k], errors[second, k]
            errors[first, k], errors[second, k] = cosine * x + sine * y, cosine * y - sine * x
        for k in range(3):
            x, y = turn[k, first], turn[k, second]
            turn[k, first], turn[k, second] = cosine * x + sine * y, cosine * y - sine * x


@compiled()
def _changes_up(drawn, net, squares, idle, turns, downs, spans, energies):
    """T_1 .. T_L: rows 0 - 2 of ``moved`` in the frame of the errors, rows 3 and 4 beyond it."""
    active, halves, normals = drawn
    widths, variances = net
    moved, turned, triangle, carried = np.zeros((5, 2)), np.empty((5, 2)), np.zeros((2, 2)), np.empty(2)
    for k in range(2):
        moved[0, k], moved[1, k] = spans[0, 0, k] * squares[0], spans[0, 1, k] * squares[0]
    _set_energy(moved, widths[0], energies[0])
    for layer in range(1, len(active)):
        units, square = active[layer], squares[layer]
        deviation, length = np.sqrt(variances[layer]), np.sqrt(squares[layer + 1])
        turn, down, span = turns[layer], downs[layer - 1], spans[layer]
        _turned(turns[layer - 1], moved, turned)
        _lengths_and_angle(turned, triangle)
        for k in range(2):
            carried[k] = turned[0, k] / np.sqrt(square)  # along phi, which becomes z
            fresh = normals[layer, THIRD] * triangle[0, k] + normals[layer, THIRD_NEXT] * triangle[1, k]
            moved[0, k] = length * turn[0, 0] * carried[k] + down[0, 0] * turned[1, k] + span[0, k] * square
            moved[1, k] = length * turn[0, 1] * carried[k] + down[0, 1] * turned[1, k] + down[1, 1] * turned[2, k]
            moved[1, k] = moved[1, k] + span[1, k] * square if units > 1 else 0.0
            moved[2, k] = length * turn[0, 2] * carried[k] + deviation * fresh if units > 2 else 0.0
        off = normals[layer, BEYOND_OFF] if units > 3 else 0.0
        _spread(deviation, halves[layer, BEYOND], halves[layer, BEYOND_NEXT], off, triangle, moved[3:])
        _set_energy(moved, widths[layer], energies[layer])
        if widths[layer] > units:
            share = np.sqrt(idle[layer + 1] / widths[layer]), deviation / np.sqrt(widths[layer])
            _add_inactive(
                widths[layer] - units, halves[layer], normals[layer], carried, share, triangle, energies[layer]
            )


@compiled()
def _turned(turn, rows, out):
    """The first three rows in the frame of phi; those beyond are the same in both."""
    for k in range(2):
        for i in range(3):
            out[i, k] = turn[i, 0] * rows[0, k] + turn[i, 1] * rows[1, k] + turn[i, 2] * rows[2, k]
        out[3, k], out[4, k] = rows[3, k], rows[4, k]


@compiled()
def _set_energy(rows, units, energy):
    """Mean square over units of both columns."""
    for k in range(2):
        total = 0.0
        for i in range(5):
            total += rows[i, k] * rows[i, k]
        energy[k] = total / units


@compiled()
def _lengths_and_angle(rows, triangle):
    """The upper triangle whose columns have the lengths and the angle of those of ``rows`` below the first."""
    square, product = 0.0, 0.0
    for i in range(1, 5):
        square += rows[i, 0] * rows[i, 0]
        product += rows[i, 0] * rows[i, 1]
    part = product / square if square > 0.0 else 0.0
    triangle[0, 0], triangle[0, 1], square_off = np.sqrt(square), part * np.sqrt(square), 0.0
    for i in range(1, 5):
        square_off += (rows[i, 1] - part * rows[i, 0]) ** 2
    triangle[1, 1] = np.sqrt(square_off)


@compiled()
def _spread(deviation, half, next_half, off, triangle, rows):
    """Two rows that stand for all of deviation x Gaussian matrix x ``triangle``: a triangle of its law (Bartlett)."""
    first, next_, off = deviation * np.sqrt(2 * half), deviation * np.sqrt(2 * next_half), deviation * off
    rows[0, 0], rows[0, 1] = first * triangle[0, 0], first * triangle[0, 1] + off * triangle[1, 1]
    rows[1, 0], rows[1, 1] = 0.0, next_ * triangle[1, 1]


@compiled()
def _add_inactive(units, halves, normals, carried, share, triangle, energy):
    """Add what inactive units have, where errors vanish: along z, and beyond it."""
    of_features, deviation = share
    rows = np.empty((2, 2))
    off = normals[IDLE_OFF] if units > 1 else 0.0
    _spread(deviation, halves[IDLE], halves[IDLE_NEXT], off, triangle, rows)
    for k in range(2):
        fresh = normals[ALONG] * triangle[0, k] + normals[ALONG_NEXT] * triangle[1, k]
        along = of_features * carried[k] + deviation * fresh
        energy[k] += along**2 + rows[0, k] ** 2 + rows[1, k] ** 2


# Numbers that one layer of one draw holds while it is made.
NUMBERS_PER_LAYER = 1 + CHI_SQUARES + NORMALS + 2


def has_gram_process(net: Any) -> bool:
    """Whether `draw_gram_energies` serves this net: fully connected, without skips, one input, ReLU or linear."""
    if not isinstance(net, Sequential) or net.input_law != "normalised" or not net.follows_one_rule:
        return False
    return net.inputs == 1 and net.sigma.homogeneous and not net.has_skips


def require_gram_process(net: Any) -> None:
    """Raise ValueError unless `draw_gram_energies` serves this net."""
    if not has_gram_process(net):
        raise ValueError(
            f"weights 'gram' are for MLPs of 'relu' or 'linear' with one input, whose update energies follow from "
            f"lengths and angles alone; this is {'a Chain of other units' if isinstance(net, Chain) else net}: take "
            "'lazy' or 'dense'"
        )


def draw_gram_energies(net: Sequential, seed: int, draws: range, inputs: Array | None = None) -> dict[str, Array]:
    """label_term and output_term of every draw, (D, L), and output_error (D, 1), labels being N(0, 1).

    ``inputs`` are (1, n_0), or left out for those of the net's law, whose |phi(x)|^2 is fixed.
    """
    depth, widths = net.depth, np.array([*net.channels_by_layer[1:], net.outputs])
    generators = streams_of_draws(seed, "Gram process", draws).generators()
    active = _active_units(net, widths[:-1], generators)
    degrees, of_head = _halved_degrees(active, widths[:-1] - active), (widths[-1] / 2, (widths[-1] - 1) / 2)
    halves, normals = np.empty(degrees.shape), np.empty((len(draws), depth, NORMALS))
    head_halves, head_normals = np.empty((len(draws), 2)), np.empty(len(draws))
    for place, generator in enumerate(generators):
        generator.standard_gamma(degrees[place], out=halves[place])
        generator.standard_normal(out=normals[place])
        head_halves[place] = [generator.standard_gamma(degree) for degree in of_head]  # as an array it takes longer
        head_normals[place] = generator.standard_normal()
    variances = np.array(net.weight_variances)
    energies, errors = np.empty((len(draws), depth, 2)), np.empty(len(draws))
    start = _input_square(net, inputs)
    drawn = (active, halves, normals, head_halves, head_normals)
    column_energies(*drawn, widths.astype(float), variances, start, energies, errors)
    return {"label_term": energies[:, :, 0], "output_term": energies[:, :, 1], "output_error": errors[:, None]}


def _active_units(net: Sequential, widths: NDArray[np.int64], generators: Sequence[Generator]) -> NDArray[np.int64]:
    """m_1 .. m_L of every draw, (D, L): sums of fair coins, or all units of a linear net."""
    if net.activation == "linear":
        return np.broadcast_to(widths, (len(generators), len(widths)))
    # NumPy looks through an array of widths three times, and at one width once; the numbers are the same.
    given = (widths, None) if len(set(widths)) > 1 else (widths[0], len(widths))
    return np.array([generator.binomial(given[0], 0.5, given[1]) for generator in generators])


def _halved_degrees(active: NDArray[np.int64], inactive: NDArray[np.int64]) -> Array:
    """Half the degrees of freedom of the chi-squares of layers (..., L), by their places (..., L, 8), at least 0."""
    degrees = (active, inactive, active - 1, active - 2, active - 3, active - 4, inactive - 1, inactive - 2)
    return np.maximum(np.stack(degrees, axis=-1), 0) / 2


def _input_square(net: Sequential, inputs: Array | None) -> float:
    """|phi(x)|^2."""
    if inputs is None:
        return net.input_energy * net.channels_by_layer[0]
    return float(np.square(net.sigma.function(inputs)).sum())
