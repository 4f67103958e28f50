"""Lazily revealed matrices: consistent for any sequence of queries, and in law the same as dense ones."""

import weakref
from functools import partial
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import meanfield as mf
from meanfield.common.seeds import stream, streams_of_draws
from meanfield.nets.maps import Weight
from meanfield.simulation import passes, weights
from meanfield.simulation import weights as memory
from meanfield.simulation.cost import chosen_weights
from meanfield.simulation.kernels import gaussians as kernel
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.measures import overlap_energy
from meanfield.simulation.measures.energies import draw_energies
from meanfield.simulation.passes import gradient_changes
from meanfield.simulation.weights import Dense, Lazy, Slabs, draw_weights
from tests.draws import in_batches
from tests.statistics import COMPARISONS, consistent
from tests.strategies import conv_nets

DRAWS = 4096


def _lazy(rows, columns, variance=0.3, draws=2, room=(0, 0)):
    normals = NormalSource(streams_of_draws(0, "weights", range(draws)))
    return Lazy(Weight("W", (rows, columns), variance), normals, Slabs(), room)


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.lists(st.tuples(st.booleans(), st.integers(1, 2 * kernel.TOGETHER + 1)), max_size=7),
    st.integers(0, 999),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_any_sequence_of_queries_is_one_matrix(rows, columns, queries, seed, room):
    """u.(W v) = (W^T u).v for all pairs, repeated and combined queries, also far beyond the matrix's own size."""
    rng = np.random.default_rng(seed)
    matrix = _lazy(rows, columns, room=room)
    right, left = [], []
    for from_right, count in queries:
        vectors = rng.normal(size=(2, columns if from_right else rows, count))
        (right if from_right else left).append(
            (vectors, (matrix.times if from_right else matrix.transpose_times)(vectors))
        )
    for v, wv in right:
        for u, wu in left:
            np.testing.assert_allclose(u.swapaxes(1, 2) @ wv, wu.swapaxes(1, 2) @ v, atol=1e-9)
    for vectors, answers in right:
        np.testing.assert_allclose(matrix.times(vectors), answers, atol=1e-9)
    if len(right) > 1:
        (v, wv), (x, wx) = right[:2]
        np.testing.assert_allclose(matrix.times(2 * v[..., :1] - x[..., :1]), 2 * wv[..., :1] - wx[..., :1], atol=1e-9)


def test_a_matrix_that_forgets_a_basis_vector_is_seen():
    """Negative control of the identity above."""
    matrix, rng = _lazy(8, 8), np.random.default_rng(0)
    u, v = rng.normal(size=(2, 8, 1)), rng.normal(size=(2, 8, 1))
    wu = matrix.transpose_times(u)
    matrix._left = type(matrix._left)(2, 8, 8, 0)
    assert np.abs(u.swapaxes(1, 2) @ matrix.times(v) - wu.swapaxes(1, 2) @ v).min() > 1e-3


def test_zero_and_dependent_columns():
    matrix = _lazy(5, 4)
    v = np.random.default_rng(0).normal(size=(2, 4, 1))
    answers = matrix.times(np.concatenate([np.zeros_like(v), v, -3 * v], axis=2))
    np.testing.assert_array_equal(answers[..., 0], 0.0)
    np.testing.assert_allclose(answers[..., 2], -3 * answers[..., 1], atol=1e-12)


def test_fully_revealed_elements_are_independent_gaussians():
    """All elements of 3 x 4 matrices, asked in mixed order: variance s, no correlation, Gaussian margins."""
    matrix = _lazy(3, 4, variance=0.3, draws=DRAWS)
    rng = np.random.default_rng(1)
    matrix.transpose_times(np.broadcast_to(rng.normal(size=(3, 1)), (DRAWS, 3, 1)).copy())
    matrix.times(np.broadcast_to(rng.normal(size=(4, 2)), (DRAWS, 4, 2)).copy())
    elements = matrix.times(np.broadcast_to(np.eye(4), (DRAWS, 4, 4)).copy()).reshape(DRAWS, 12) / np.sqrt(0.3)
    second = elements[:, :, None] * elements[:, None, :]
    error = second.std(axis=0) / np.sqrt(DRAWS)
    assert consistent(second.mean(axis=0) - np.eye(12), error, DRAWS)
    assert not consistent(1.25 * second.mean(axis=0) - np.eye(12), error, DRAWS)
    for element in elements.T:
        assert stats.kstest(element, "norm").pvalue > 1e-6 / COMPARISONS


def _changes(net, matrices, inputs, error):
    """Outputs and every layer's change, by the three passes."""
    state = passes.forward(net, matrices, inputs)
    return [state.output, *gradient_changes(state, error)]


def _lazy_and_dense_changes(net, seed, forget=0):
    """Of lazily revealed matrices, and of the dense ones that they turn out to be; ``forget`` blanks one column."""
    matrices = draw_weights(net, streams_of_draws(seed, "weights", range(2)), "lazy")
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(2, net.channels_by_layer[0], net.inputs, net.sites))
    error = rng.normal(size=(2, net.outputs, 2 * net.inputs, net.output_units // net.outputs))
    changes = _changes(net, matrices, inputs, error)
    fan_ins = [prod(shape[1:]) for shape in net.weight_shapes]
    sizes = dict(zip(matrices, fan_ins, strict=True))
    elements = {name: matrix.times(np.stack([np.eye(sizes[name])] * 2)) for name, matrix in matrices.items()}
    for element in elements.values():
        element[:, :, :forget] = 0.0
    return changes, _changes(net, {name: Dense(element) for name, element in elements.items()}, inputs, error)


@given(conv_nets(), st.integers(0, 99))
def test_a_lazy_convolution_is_that_by_the_matrices_it_reveals(net, seed):
    """All passes of a draw against the elements that its matrices say they have when they are asked for them after."""
    for lazy, dense in zip(*_lazy_and_dense_changes(net, seed), strict=True):
        np.testing.assert_allclose(lazy, dense, rtol=1e-8, atol=1e-8 * np.abs(dense).max(initial=1.0))


def test_a_forgotten_tap_is_seen():
    """Negative control of the identity above: the first tap of the first channel is missing in the matrices."""
    net = mf.ConvNet(depth=2, channels=4, grid=(5,), kernel=(3,), activation="linear")
    revealed, expected = _lazy_and_dense_changes(net, 0, forget=1)
    assert min(np.abs(lazy - dense).max() for lazy, dense in zip(revealed, expected, strict=True)) > 1e-3


def _disagreements(net, wrong=None):
    """Two-sample Kolmogorov-Smirnov p-values of dense against lazy draws, every term at every layer."""
    dense = in_batches(partial(draw_energies, net, 1, weights="dense"), DRAWS)
    lazy = in_batches(partial(draw_energies, wrong or net, 2, weights="lazy"), DRAWS)
    return [stats.ks_2samp(a, b).pvalue for name in dense for a, b in zip(dense[name].T, lazy[name].T, strict=True)]


NETS = {
    "mlp": mf.MLP(depth=4, width=24, outputs=3),
    "mlp, two inputs, linear": mf.MLP(depth=3, width=(20, 30, 16), inputs=2, activation="linear"),
    "conv": mf.ConvNet(depth=3, channels=24, grid=(3,), kernel=(3,), outputs=2),
    "conv, two dimensions, even stencil, zero padding": mf.ConvNet(
        depth=3, channels=(16, 10, 14), grid=(2, 2), kernel=(2, 2), padding="zero", readout="convolution", outputs=2
    ),
    "mlp, gelu": mf.MLP(depth=3, width=12, activation="gelu", outputs=3),
}


@pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())
def test_lazy_draws_have_the_law_of_dense_ones(net, monkeypatch):
    monkeypatch.setattr(overlap_energy, "DENSE_UNITS", 0)  # the tangent kernel would ask for all columns
    assert min(p for p in _disagreements(net) if p == p) > 1e-6 / COMPARISONS


def test_another_width_is_seen(monkeypatch):
    monkeypatch.setattr(overlap_energy, "DENSE_UNITS", 0)
    """Negative control: one channel in twelve more changes every distribution that is compared above."""
    assert min(_disagreements(mf.MLP(depth=4, width=24), mf.MLP(depth=4, width=32))) < 1e-6 / COMPARISONS


@pytest.mark.parametrize("net", [mf.MLP(depth=24, width=512, outputs=1), mf.MLP(depth=12, width=1024, outputs=8)])
def test_lazy_draws_meet_the_exact_expectation(net):
    measured, predicted = mf.simulate(net, draws=1024, seed=4, weights="lazy"), mf.predict(net, level="exact")
    for name in ("label_term", "output_term"):
        difference = measured[name].values - predicted[name].values
        assert consistent(difference, measured[f"{name}_stderr"].values, 1024)


def test_a_lazy_draw_does_not_depend_on_its_company():
    net = mf.MLP(depth=4, width=200)
    together = draw_energies(net, 9, range(20), weights="lazy")
    for name, values in together.items():
        alone = np.concatenate([draw_energies(net, 9, range(i, i + 1), weights="lazy")[name] for i in range(20)])
        np.testing.assert_array_equal(values, alone)


def test_normals_are_those_of_each_generator_in_order():
    """Answers to unit vectors, few and many at once, of matrices that share a source, against NumPy's own fill."""
    normals, deviation = NormalSource(streams_of_draws(0, "weights", range(2))), 0.3**0.5
    asked = []
    for rows, count in ((1, 1), (700, 3), (400, 2 * kernel.TOGETHER), (5, 2)):
        matrix = Lazy(Weight("W", (rows, 8), 0.3), normals, Slabs())
        asked.append(matrix.times(np.tile(np.eye(8, count), (2, 1, 1))).swapaxes(1, 2).reshape(2, -1))
    answers = np.concatenate(asked, axis=1)
    expected = [deviation * stream(0, "weights", draw).standard_normal(answers.shape[1]) for draw in range(2)]
    np.testing.assert_array_equal(answers, expected)


def test_rare_normals_are_numpys():
    """So many that the tail beyond 3.65 and the edges of all layers are met, after an odd count and with a scale."""
    ours, theirs = NormalSource(streams_of_draws(2, "weights", [0])), stream(2, "weights", 0)
    assert ours.drawn((1,)) == theirs.standard_normal()
    normals = ours.drawn((300_000,), 3.0)[0]
    np.testing.assert_array_equal(normals, 3.0 * theirs.standard_normal(normals.size))
    assert (np.abs(normals) > 3 * 3.7).sum() > 30
    np.testing.assert_array_equal(ours.states[0], theirs.bit_generator.state["state"]["state"])


def test_slabs_hand_out_separate_arrays():
    slabs, beyond = Slabs(), memory.BLOCK_BYTES // 8
    arrays = [slabs.empty((3, 5)), slabs.empty((0, 4)), slabs.empty((7,)), slabs.empty((beyond, 2))]
    assert [array.shape for array in arrays] == [(3, 5), (0, 4), (7,), (beyond, 2)]
    assert all(array.flags.c_contiguous for array in arrays)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_block_serves_anew_once_none_of_its_arrays_is_in_use(precision):
    memory.give_back()
    slabs = Slabs(precision)
    part, other = slabs.empty((2, 3)), slabs.empty((4,))[1:]
    del slabs, part
    assert not memory._spare
    address = other.ctypes.data
    del other
    assert len(memory._spare) == 1
    anew = Slabs(precision).empty((4, 3))
    assert not memory._spare
    assert 0 < address - anew.ctypes.data < anew.nbytes
    del anew
    memory.give_back()
    assert not memory._spare


def test_a_draw_lets_go_of_the_layers_that_its_tangent_has_passed(monkeypatch):
    """At every change that it yields, only the matrices above that layer are alive: 5 .. 0, and the readout."""
    net, alive = mf.MLP(depth=6, width=200), []
    matrices = weakref.WeakSet()
    monkeypatch.setattr(weights, "Lazy", lambda *options: matrices.add(made := Lazy(*options)) or made)
    vecdot = np.vecdot
    monkeypatch.setattr(np, "vecdot", lambda *arrays: alive.append(len(matrices)) or vecdot(*arrays))
    draw_energies(net, 0, range(2), weights="lazy")
    assert alive == [6, 5, 4, 3, 2, 1]


# Columns asked (five per site and layer) against a third of the fan-in: what was measured to be the faster.
CONVOLUTIONS = (
    (1024, (4,), (3,), "lazy"),
    (2048, (8,), (3,), "lazy"),
    (2048, (2, 2), (2, 2), "lazy"),
    (256, (6, 6), (3, 3), "lazy"),
    (128, (6, 6), (3, 3), "dense"),
    (64, (16, 16), (3, 3), "dense"),
)


def test_auto_picks_by_cost():
    assert chosen_weights(mf.MLP(depth=4, width=1024), "auto") == "lazy"
    assert chosen_weights(mf.MLP(depth=4, width=1024), "auto", gram=True) == "gram"
    assert chosen_weights(mf.MLP(depth=4, width=1024, inputs=2), "auto", gram=True) == "lazy"
    assert chosen_weights(mf.MLP(depth=4, width=32), "auto", gram=True) == "dense"
    for width, crossover in ((1024, 85), (256, 21)):
        assert chosen_weights(mf.MLP(depth=4, width=width, inputs=crossover * 3 // 4), "auto") == "lazy"
        assert chosen_weights(mf.MLP(depth=4, width=width, inputs=crossover * 4 // 3), "auto") == "dense"
    for channels, grid, stencil, cheaper in CONVOLUTIONS:
        net = mf.ConvNet(depth=4, channels=channels, grid=grid, kernel=stencil, readout="convolution")
        assert chosen_weights(net, "auto") == cheaper
    assert chosen_weights(mf.MLP(depth=4, width=32), "lazy") == "lazy"
    shallow, deep = (mf.MLP(depth=depth, width=256, activation="gelu") for depth in (4, 96))
    assert [chosen_weights(net, "auto") for net in (shallow, deep)] == ["lazy", "dense"]  # a probe for every layer


@pytest.mark.parametrize("count", [2, kernel.TOGETHER + 1])
@pytest.mark.parametrize(("size", "image_size"), [(7, 6), (kernel.TILE, 3 * kernel.TILE + 5)])
def test_reveal_is_its_naive_twin(size, image_size, count):
    """The kernel against plain projections with NumPy, one column after the other."""
    rng = np.random.default_rng(3)
    basis, images = (rng.normal(size=(1, 1 + count, n)) for n in (size, image_size))
    basis[:, 0] /= np.linalg.norm(basis[:, 0])
    other = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(image_size, 2)))[0].T[None])
    other_images = rng.normal(size=(1, 2, size))
    images[0, 0] -= other[0].T @ (other[0] @ images[0, 0] - other_images[0] @ basis[0, 0])
    queries, generator = rng.normal(size=(1, count, size)), stream(3, "weights", 0)
    states = NormalSource(streams_of_draws(3, "weights", [0])).states
    fresh = 0.7 * generator.standard_normal((count, image_size))
    expected, q, a = [], basis[0, :1].copy(), images[0, :1].copy()
    for k in range(count):
        rest = queries[0, k] - q.T @ (q @ queries[0, k])
        direction = rest / np.linalg.norm(rest)
        image = other[0].T @ (other_images[0] @ direction) + fresh[k] - other[0].T @ (other[0] @ fresh[k])
        q, a = np.vstack([q, direction]), np.vstack([a, image])
        expected.append(a.T @ (q @ queries[0, k]))
    answers = np.empty((1, count, image_size))
    kernel.reveal(queries, basis, images, 1, 2, other, other_images, states, 0.7, answers)
    np.testing.assert_allclose(answers[0], expected, atol=1e-12)
    np.testing.assert_allclose(basis[0], q, atol=1e-12)
