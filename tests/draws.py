"""Random weights, inputs and errors in the layouts of `one_step`."""

from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from meanfield.simulation.maps import weighted
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.overlap_energy import LEFT_OUT

# The same nets, rounded: an energy moves by a millionth, where means of draws are known to percents. Convolutional
# nets take half the time.
SINGLE = {"precision": "float32"}


def given_inputs(net, rng, samples=None):
    """White Gaussian inputs, or random tokens of nets that take them, (samples, channels, *grid)."""
    shape = (samples or net.inputs, *net.input_shape[1:])
    if net.input_law != "tokens":
        return rng.normal(size=shape)
    return np.eye(shape[1])[rng.integers(shape[1], size=(shape[0], *shape[2:]))].swapaxes(1, 2)


def given_draw(net, seed):
    """(weights, inputs, output error) of one small net; weights that start at 0 are drawn about it."""
    rng = np.random.default_rng(seed)
    variances = [variance or 0.3 for variance in net.weight_variances]
    weights = [rng.normal(scale=np.sqrt(s), size=shape) for shape, s in zip(net.weight_shapes, variances, strict=True)]
    return weights, given_inputs(net, rng), rng.normal(size=net.output_shape)


def draw_energies_on(net, seed, draws, weights="dense", backend="numpy", precision="float64", **options):
    """What `Energies` finds in these draws, unsettled."""
    return Energies(weights=weights, backend=backend, precision=precision, **options).draw(net, seed, draws)


@contextmanager
def terms_alone():
    """Draws leave overlap energies out: small nets form tangent kernels for them, as long as all else takes."""
    with patch.object(Energies, "overlap_method", lambda *_: LEFT_OUT):
        yield


def in_batches(draw, draws, size=256):
    """What ``draw`` makes of ranges of draws, batch by batch as runs do: caches hold a batch, and no thousands."""
    batches = [draw(range(start, min(start + size, draws))) for start in range(0, draws, size)]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def drawn_by(measure):
    """Draws of a measure that is not settled, from its fields; weights are dense unless these say otherwise."""

    def draw(net, seed, draws, **fields):
        return measure(**{"weights": "dense"} | fields).draw(net, seed, draws)

    return draw


def drop_an_offset(monkeypatch):
    """Draws leave one offset out of every stencil from here on, forwards and backwards."""
    for name in ("neighbours", "reversed_neighbours"):
        whole = getattr(weighted, name)

        def dropped(*lattice, whole=whole):
            table = whole(*lattice).copy()
            table[0] = -1
            return table

        monkeypatch.setattr(weighted, name, dropped)
