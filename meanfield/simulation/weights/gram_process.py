"""Exact draws whose cost does not depend on the width: the Gram process of fully-connected nets with one input.

Up to the signs of weight rows, the gates of ReLU are fair coins independent of all else (docs/theory.md section 3). So
the m active units of a layer are a subspace on which all vectors are isotropic, and update energies depend on lengths
and angles alone: of the features, the two error columns (labels y and outputs) and their changes. These follow a Markov
chain of chi-squares and 2 x 2 Wishart matrices over the layers, some 15 variates a layer whatever its width:

    forward    |phi_l|^2 = s |phi_{l-1}|^2 chi2(m_l) on active units, and with chi2(n_l - m_l) on inactive ones
    backward   U_l = W^T U_{l+1}: known along phi_l, as U_l' z_l is the same at every layer, and fresh beside it
    tangent    T_{l+1} = W T_l + U_{l+1} |phi_l|^2: along phi_l it becomes z_{l+1}; of the rest, what meets the errors
               above is what W^T sent down from them; all else is fresh

Linear nets are the case m = n. The law is that of drawn matrices, not an approximation of it.

Source: docs/theory.md section 13.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.common.arrays import Array
from meanfield.common.seeds import streams_of_draws
from meanfield.nets.families.layered import Sequential
from meanfield.simulation.kernels.gram_process import CHI_SQUARES, NORMALS, column_energies

# Numbers that one layer of one draw holds while it is made.
NUMBERS_PER_LAYER = 1 + CHI_SQUARES + NORMALS + 2


def has_gram_process(architecture: Any) -> bool:
    """Whether `draw_gram_energies` serves this net: fully connected, without skips, one input, ReLU or linear."""
    if not isinstance(architecture, Sequential) or architecture.input_law != "normalised":
        return False
    return architecture.inputs == 1 and architecture.sigma.homogeneous and not architecture.has_skips


def require_gram_process(architecture: Any) -> None:
    """Raise ValueError unless `draw_gram_energies` serves this net."""
    if not has_gram_process(architecture):
        raise ValueError(
            f"weights 'gram' are for MLPs of 'relu' or 'linear' with one input, whose update energies follow from "
            f"lengths and angles alone; this is {architecture}: take 'lazy' or 'dense'"
        )


def draw_gram_energies(
    architecture: Sequential, seed: int, draws: range, inputs: Array | None = None
) -> dict[str, Array]:
    """label_term and output_term of every draw, (D, L), and output_error (D, 1), labels being N(0, 1).

    ``inputs`` are (1, n_0), or left out for those of the net's law, whose |phi(x)|^2 is fixed.
    """
    depth, widths = architecture.depth, np.array([*architecture.channels_by_layer[1:], architecture.outputs])
    generators = streams_of_draws(seed, "Gram process", draws).generators()
    active = _active_units(architecture, widths[:-1], generators)
    degrees, of_head = _halved_degrees(active, widths[:-1] - active), (widths[-1] / 2, (widths[-1] - 1) / 2)
    halves, normals = np.empty(degrees.shape), np.empty((len(draws), depth, NORMALS))
    head_halves, head_normals = np.empty((len(draws), 2)), np.empty(len(draws))
    for place, generator in enumerate(generators):
        generator.standard_gamma(degrees[place], out=halves[place])
        generator.standard_normal(out=normals[place])
        head_halves[place] = [generator.standard_gamma(degree) for degree in of_head]  # as an array it takes longer
        head_normals[place] = generator.standard_normal()
    variances = np.array(architecture.weight_variances)
    energies, errors = np.empty((len(draws), depth, 2)), np.empty(len(draws))
    start = _input_square(architecture, inputs)
    drawn = (active, halves, normals, head_halves, head_normals)
    column_energies(*drawn, widths.astype(float), variances, start, energies, errors)
    return {"label_term": energies[:, :, 0], "output_term": energies[:, :, 1], "output_error": errors[:, None]}


def _active_units(
    architecture: Sequential, widths: NDArray[np.int64], generators: Sequence[Generator]
) -> NDArray[np.int64]:
    """m_1 .. m_L of every draw, (D, L): sums of fair coins, or all units of a linear net."""
    if architecture.activation == "linear":
        return np.broadcast_to(widths, (len(generators), len(widths)))
    # NumPy looks through an array of widths three times, and at one width once; the numbers are the same.
    given = (widths, None) if len(set(widths)) > 1 else (widths[0], len(widths))
    return np.array([generator.binomial(given[0], 0.5, given[1]) for generator in generators])


def _halved_degrees(active: NDArray[np.int64], inactive: NDArray[np.int64]) -> Array:
    """Half the degrees of freedom of the chi-squares of layers (..., L), by their places (..., L, 8), at least 0."""
    degrees = (active, inactive, active - 1, active - 2, active - 3, active - 4, inactive - 1, inactive - 2)
    return np.maximum(np.stack(degrees, axis=-1), 0) / 2


def _input_square(architecture: Sequential, inputs: Array | None) -> float:
    """|phi(x)|^2."""
    if inputs is None:
        return architecture.input_energy * architecture.channels_by_layer[0]
    return float(np.square(architecture.sigma.function(inputs)).sum())
