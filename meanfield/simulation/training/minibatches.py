"""Mini-batches out of a finite population of samples: the change at an observed input, batch by batch.

At first order a batch moves z(x) by the mean over its samples b of what each would do alone, Delta z_a = mean xi_a(b).
Over batches of B samples, drawn independently out of P, then (Zhang et al. 2026, eq. 25)

    E[Delta z_a Delta z_b] = E xi_a E xi_b + f Cov(xi_a, xi_b) / B,   f = 1,

and f = (P - B) / (P - 1) if they are drawn without replacement, as the batches of one epoch are. Here every batch
makes a gradient step of its own, so that the two sides are computed independently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from meanfield.common.arrays import Array
from meanfield.common.seeds import stream
from meanfield.common.validation import takes
from meanfield.nets.families.layered import Sequential
from meanfield.simulation.one_step import one_step, pre_activations

Samples = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True)
class Population:
    """One net of given weights, P samples with their errors z_out - y, and an observed input that is not trained on."""

    net: Sequential
    weights: list[Array]
    inputs: Array
    errors: Array
    observed: Array

    def change(self, batch: Samples) -> Array:
        """Delta z^(L) at the observed input under one step of rate 1 on these samples: (width,)."""
        samples, count = list(batch), len(batch)
        inputs = np.concatenate([self.inputs[samples], self.observed[None]])
        errors = np.concatenate([self.errors[samples], np.zeros((1, self.net.outputs))])
        # The observed input is a sample without error; the mean over samples counts it.
        *_, top = one_step(self.net.replace(inputs=count + 1), self.weights, inputs, errors)
        return np.asarray(top[-1] * (count + 1) / count)

    def second_moment(self, batches: Sequence[Samples]) -> Array:
        """Mean of Delta z_a Delta z_b over batches: (width, width)."""
        changes = np.stack([self.change(batch) for batch in batches])
        return changes.T @ changes / len(changes)

    def identity(self, samples: int, *, replacement: bool = True) -> tuple[Array, Array]:
        """E xi_a E xi_b, and f Cov(xi_a, xi_b) / B for batches of B ``samples``: both (width, width)."""
        alone = np.stack([self.change([sample]) for sample in range(len(self.inputs))])
        mean, count = alone.mean(axis=0), len(alone)
        spread = (alone - mean).T @ (alone - mean) / count
        factor = 1.0 if replacement else (count - samples) / (count - 1)
        return np.outer(mean, mean), factor * spread / samples


@takes(Sequential)
def drawn_population(net: Sequential, samples: int, seed: int) -> Population:
    """Weights, inputs and labels y ~ N(0, 1) by the laws of `simulate`, before normalisation of the inputs."""
    generator = stream(seed, "population", samples)
    shapes = zip(net.weight_shapes, net.weight_variances, strict=True)
    weights = [np.sqrt(variance) * generator.standard_normal(shape) for shape, variance in shapes]
    inputs = generator.standard_normal((samples + 1, *net.input_shape[1:]))
    labels = generator.standard_normal((samples, net.outputs))
    outputs = pre_activations(net.replace(inputs=samples), weights, inputs[:-1])[-1]
    return Population(net, weights, inputs[:-1], outputs - labels, inputs[-1])


def all_batches(population: int, samples: int, *, replacement: bool = True) -> list[tuple[int, ...]]:
    """Every batch of so many samples: P^B with replacement, in every order, or P over B without."""
    if replacement:
        return list(product(range(population), repeat=samples))
    return list(combinations(range(population), samples))


def random_batches(population: int, samples: int, count: int, seed: int) -> NDArray[np.int64]:
    """Batches drawn with replacement: (count, samples)."""
    return stream(seed, "batches", samples).integers(population, size=(count, samples))
