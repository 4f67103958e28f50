"""How far one update of the weights moves a loop's stream: |dh_l|^2 / N by a tangent pass (P2 Theorem 2).

To first order in the update, with dh_0 = 0,

    dh_{l+1} = dh_l + eps (Delta W phi(h_l) + W (phi'(h_l) dh_l)),

W and Delta W being those of the step: the same at every step of a tied loop. The loss of the updates that follow one is
l = |h_L - y|^2 / (2 N) with labels y ~ N(0, I); its gradient is G = eps sum_s u_s phi(h_{s-1})^T over the steps that
share the matrix, u_s = dl/dh_s.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.nets.tied_loop import TiedLoop
from meanfield.seeds import stream
from meanfield.simulation.loop_walk import Step, draw_start, step_matrices, times, transpose_times, walk
from meanfield.simulation.residual_energy import require_finite
from meanfield.simulation.weights import WeightMatrix

Array = NDArray[np.float64]

# Delta W X for the features X = phi(h) of the steps that share a matrix, given eps and their errors u, (D, N, steps).
Change = Callable[[float, Array, Array, list[Generator]], Array]


def random_signs(size: int, generator: Generator) -> Array:
    """A matrix (size, size) of independent fair signs."""
    octets = np.frombuffer(generator.bytes(-(-size * size // 8)), dtype=np.uint8)
    return np.asarray(2.0 * np.unpackbits(octets, count=size * size).reshape(size, size) - 1.0)


def _isotropic(eps: float, errors: Array, features: Array, generators: list[Generator]) -> Array:
    size = features.shape[1]
    moved = [random_signs(size, generator) @ own for generator, own in zip(generators, features, strict=True)]
    return np.stack(moved) / np.sqrt(size)


def _aligned(eps: float, errors: Array, features: Array, generators: list[Generator]) -> Array:
    return -np.sign(errors @ features.swapaxes(1, 2)) @ features / np.sqrt(features.shape[1])


def _gradient(eps: float, errors: Array, features: Array, generators: list[Generator]) -> Array:
    return -eps * errors @ (features.swapaxes(1, 2) @ features)


# At learning rate 1: random signs S / sqrt(N), the gradient's signs -sign(G) / sqrt(N), and the gradient itself, -G.
UPDATES: dict[str, Change] = {"isotropic": _isotropic, "aligned": _aligned, "gradient": _gradient}


def draw_stream_updates(
    loop: TiedLoop, seed: int, draws: range, update: str, inputs: Array | None = None, weights: str = "dense"
) -> dict[str, Array]:
    """stream_update_energy |dh_l|^2 / N of every draw, (D, L), at learning rate 1.

    Raises:
        OverflowError: the stream or its change leaves the range of floats.
    """

    def streams(purpose: str) -> list[Generator]:
        return [stream(seed, purpose, draw) for draw in draws]

    start = draw_start(loop, streams("inputs"), inputs)
    matrices = list(step_matrices(loop, streams("weights"), weights, right=2, left=1))
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        steps = list(walk(loop, matrices, start))
        _require_plain(steps[-1])
        labels = np.stack([generator.standard_normal(loop.width) for generator in streams("labels")])
        errors = _errors(loop, matrices, steps, (steps[-1].stream - labels) / loop.width)
        features = np.stack([step.features for step in steps], axis=2)
        signs, change = streams("update signs"), UPDATES[update]
        shared = [slice(None)] if loop.tied else [slice(index, index + 1) for index in range(loop.depth)]
        own = [change(loop.step_size, errors[:, :, some], features[:, :, some], signs) for some in shared]
        found = {"stream_update_energy": _tangent_energies(loop, matrices, steps, np.concatenate(own, axis=2))}
    require_finite(found)
    return found


def _errors(loop: TiedLoop, matrices: list[WeightMatrix], steps: list[Step], output: Array) -> Array:
    """u_s = dl/dh_s of every step, (D, N, L), from u_L down."""
    errors = [output]
    for matrix, step in zip(matrices[:0:-1], steps[:0:-1], strict=True):
        back = transpose_times(matrix, errors[-1])
        errors.append(errors[-1] + loop.step_size * loop.sigma.gate(step.before) * back)
    return np.stack(errors[::-1], axis=2)


def _tangent_energies(loop: TiedLoop, matrices: list[WeightMatrix], steps: list[Step], own: Array) -> Array:
    """|dh_l|^2 / N, (D, L), from each step's own Delta W phi(h), (D, N, L)."""
    moved, energies = np.zeros_like(steps[0].before), []
    for index, (matrix, step) in enumerate(zip(matrices, steps, strict=True)):
        carried = times(matrix, loop.sigma.gate(step.before) * moved)
        moved = moved + loop.step_size * (own[:, :, index] + carried)
        energies.append(np.vecdot(moved, moved) / loop.width)
    return np.stack(energies, axis=1)


def _require_plain(last: Step) -> None:
    """Changes are carried in plain floats: refuse streams that are not."""
    if last.exponent.any():
        raise OverflowError(
            "the stream grows beyond 2^100, too far for its change to be followed in floats; take a larger alpha, a "
            "smaller depth or a smaller weight_variance"
        )
