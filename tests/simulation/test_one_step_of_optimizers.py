"""The first step of every optimizer against its definition on full matrices, on nets of every family.

Gradients and changes are those of automatic differentiation (tests/derivable.py), or central differences of the net's
own values; directions are optax's or written out here.
"""

from itertools import product

import numpy as np
import pytest
from autograd import make_jvp, make_vjp
from autograd.builtins import tuple as traced_tuple
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.maps import (
    Attention,
    BatchNormalisation,
    Bias,
    Gain,
    Linear,
    Normalisation,
    Pointwise,
    Pooling,
    Weight,
)
from meanfield.nets.net import Chain, Unit
from meanfield.optimizers import SGD, SSO, AdamW, Lion, Muon, Shampoo
from tests import derivable
from tests.draws import given_draw
from tests.strategies import nets

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

# Epsilons as large as gradients, at which A is far from a sign, are what some of these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* leaves")

# Of the largest element, or singular value, of a gradient: what is as good as zero, and what is no rounding error.
NOTHING, CLEAR = 1e-13, 1e-6
EPSILON = 1e-2


def _weight(name, *shape, groups=1):
    return Weight(name, shape, 0.3, groups)


def _linear(*weights, **how):
    return Linear(weights, **how)


def _grouped_and_normalised():
    """Groups of channels, a bias behind, batch normalisation behind a join, and two maps with one weight."""
    tanh, shared = Pointwise("tanh"), _linear(_weight("shared", 4, 4, 2), padding="zero")
    units = (
        Unit((_linear(_weight("groups", 4, 1, 3, groups=2)), tanh, _linear(_weight("point", 4, 4)))),
        Unit((shared, Bias(_weight("bias", 4)), tanh, shared), 1, 0.5, (BatchNormalisation(0.1),)),
    )
    readout = Unit((tanh, Pooling(), _linear(_weight("readout", 3, 4)), Bias(_weight("last_bias", 3))))
    return Chain(units=units, readout_unit=readout, input_channels=2, grid=(4,), inputs=3)


LANGUAGE = {"depth": 2, "width": 4, "heads": 2, "tokens": 3, "outputs": 5, "readout": "every", "ffn": 1.5} | {
    "norm": "pre",
    "vocabulary": 5,
    "activation": "swiglu",
}
NETS = {
    "MLP": mf.MLP(depth=3, width=(5, 7, 4), outputs=3, inputs=2, input_width=3, activation="tanh"),
    "ConvNet, circular": mf.ConvNet(depth=2, channels=4, grid=(2, 3), kernel=(2, 3), inputs=2, activation="gelu"),
    "ConvNet, zero": mf.ConvNet(
        depth=2, channels=(3, 4), grid=(5,), kernel=(3,), padding="zero", readout="convolution", activation="tanh"
    ),
    "strides": mf.StagedConvNet(
        depth=3, stages=(1, 2), channels=(3, 4), grid=(6,), kernel=(3,), stride=(2,), outputs=2, activation="silu"
    ),
    "residual": mf.ResidualMLP(depth=2, width=5, block_depth=2, stem=1, tail=1, outputs=3, activation="tanh", inputs=2),
    "dense": mf.DenseNet(depth=3, growth=2, width=3, grid=(3,), kernel=(2,), outputs=2, inputs=2, activation="gelu"),
    "loop": mf.TiedLoop(depth=5, width=6, alpha=0.5, activation="tanh"),
    "Transformer": mf.Transformer(**LANGUAGE),
    "looped Transformer": mf.Transformer(**LANGUAGE | {"activation": "gelu"}, tied=True, scaling="rezero"),
    "blocks with biases": mf.BlockNet(
        width=5, depth=2, input_width=3, samples=4, outputs=3, activation="linear", biases=True, bias_variance=1.0
    ),
    "groups, biases, batch normalisation": _grouped_and_normalised(),
}
SHAPES_OF_MATRICES = ("MLP", "strides", "looped Transformer", "groups, biases, batch normalisation")
each_net = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())


class Derived:
    """A net of given weights, inputs and output error, with its gradients and its changes under any moves."""

    def __init__(self, net, seed):
        self.net = net
        self.weights, self.inputs, self.error = given_draw(net, seed)
        self.named = dict(zip(net.weights, self.weights, strict=True))
        self._pull, self.output = make_vjp(lambda w: derivable.values_and_output(net, w, self.inputs)[1])(self.named)
        self.slopes = self.pulled(self.error / (1 if net.readout_unit is None else self.error.size))
        self._push = make_jvp(lambda w: traced_tuple(self._values(w)))(self.named)

    def _values(self, weights):
        values, output = derivable.values_and_output(self.net, weights, self.inputs)
        return values if self.net.readout_unit is None else [*values, output]

    def pulled(self, slope):
        """dL/dW of every weight by name, for dL/dout."""
        return self._pull(np.reshape(slope, self.output.shape))

    def curvatures(self, columns=None):
        """sum over columns s, (columns, *output), of (d<s, f>/dW)^2; of the squared loss, if none are given."""
        if columns is None:
            columns = np.eye(self.output.size) * self.output.size**-0.5
        total = {name: np.zeros_like(weight) for name, weight in self.named.items()}
        for column in columns:
            for name, slope in self.pulled(column).items():
                total[name] += slope**2
        return total

    def changes(self, directions):
        """Of every value, and of the outputs, under a step of -A."""
        return self._push({name: -direction for name, direction in directions.items()})[1]

    def differences(self, directions):
        """The same by central differences of the net's own values, of two sizes: the error is of fourth order."""
        ends = [self._moved(directions, size) for size in (1e-5, -1e-5, 2e-5, -2e-5)]
        return [(4 * (a - b) - (c - d) / 2) / 6e-5 for a, b, c, d in zip(*ends, strict=True)]

    def _moved(self, directions, size):
        weights = [weight - size * directions[name] for name, weight in self.named.items()]
        return mf.pre_activations(self.net, weights, self.inputs)

    def one_step(self, **options):
        return mf.one_step(self.net, self.weights, self.inputs, self.error, outputs=True, **options)

    def has_clear_signs(self):
        """Whether rounding decides the sign of no element of a gradient: it is 0, or far from it."""
        return all(_is_clear(slope, 0.0) for slope in self._clear_slopes())

    def has_clear_ranks(self):
        """Whether rounding decides the rank of no gradient."""
        matrices = (slope.reshape(len(slope), -1) for slope in self._clear_slopes() if slope.ndim > 1)
        return all(_is_clear(np.linalg.svd(matrix, compute_uv=False), NOTHING) for matrix in matrices)

    def _clear_slopes(self):
        """Those that are not 0; one of nothing but rounding errors stands for all."""
        slopes = [slope for slope in self.slopes.values() if slope.any()]
        largest = max((np.abs(slope).max() for slope in slopes), default=0.0)
        return [slope if np.abs(slope).max() > CLEAR * largest else np.array([1.0, CLEAR / 10]) for slope in slopes]


def _is_clear(numbers, nothing):
    """Whether each is either as good as zero, or far above rounding errors."""
    shares = np.abs(numbers) / np.abs(numbers).max()
    return ((shares <= nothing) | (shares > CLEAR)).all()


def assert_alike(changes, references, rtol=1e-7, share=1e-9):
    for change, reference in zip(changes, references, strict=True):
        close = share * max(1.0, np.abs(reference).max())
        np.testing.assert_allclose(change, np.reshape(reference, change.shape), rtol=rtol, atol=close)


def differ(changes, references):
    """By how much, at most, of the largest."""
    sizes = [np.abs(reference).max() for reference in references]
    apart = (np.abs(a - np.reshape(b, a.shape)).max() for a, b in zip(changes, references, strict=True))
    return max(number / size for number, size in zip(apart, sizes, strict=True))


def of_matrices(function):
    """A function of (outputs, all that an output reads) for weights of any shape; biases and gains take their signs."""

    def direction(slope, *others):
        if slope.ndim == 1:
            return np.sign(slope)
        return function(slope.reshape(len(slope), -1), *others).reshape(slope.shape)

    return direction


def polar(matrix):
    """U V^T of the compact singular value decomposition."""
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    kept = s > CLEAR / 10 * s[0]
    return u[:, kept] @ v[kept]


def quarter_roots(matrix, epsilon=0.0):
    """(G G^T + epsilon)^(-1/4) G (G^T G + epsilon)^(-1/4), powers of zero being zero."""
    sides = []
    for square in (matrix @ matrix.T, matrix.T @ matrix):
        values, vectors = np.linalg.eigh(square)
        kept = values > (CLEAR / 10) ** 2 * values[-1]
        sides.append(vectors[:, kept] * (values[kept] + epsilon) ** -0.25 @ vectors[:, kept].T)
    return sides[0] @ matrix @ sides[1]


def published_muon(matrix):
    return max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5 * polar(matrix)


def kimi(matrix):
    return 0.2 * max(matrix.shape) ** 0.5 * polar(matrix)


def clipped(slope, curvature, rho=0.05):
    """G over rho times the curvature, 1 in size at most; the sign of G where there is none."""
    floor = rho * curvature
    return np.where(floor > np.abs(slope), slope / np.where(floor > 0, floor, 1.0), np.sign(slope))


def softened(slope):
    return slope / (np.abs(slope) + EPSILON)


# A of a gradient, what `one_step` is asked for, and whether A is smooth in the gradient.
DEFINED = {
    "sgd": (lambda slope: slope, {}, True),
    "adamw, softened": (softened, {"optimizer": "adamw", "epsilon": EPSILON}, True),
    "adamw": (np.sign, {}, False),
    "adamw as it is run": (np.sign, {"optimizer": AdamW(0.9, 0.999)}, False),
    "lion": (np.sign, {}, False),
    "muon": (of_matrices(published_muon), {}, False),
    "muon of the paper": (of_matrices(polar), {"optimizer": Muon(0.95, None)}, False),
    "muon_kimi": (of_matrices(kimi), {}, False),
    "shampoo": (of_matrices(quarter_roots), {}, False),
    "soap": (of_matrices(polar), {}, False),
}


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(nets(), st.integers(0, 2**31))
def test_first_steps_are_those_of_the_definitions(net, seed):
    derived = Derived(net, seed)
    clear = derived.has_clear_signs() and derived.has_clear_ranks()
    for name, (direction, asked, smooth) in DEFINED.items():
        if smooth or clear:
            directions = {weight: direction(slope) for weight, slope in derived.slopes.items()}
            assert_alike(derived.one_step(**{"optimizer": name} | asked), derived.changes(directions))


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(nets(), st.integers(0, 2**31))
def test_sophia_divides_by_the_curvature_of_every_output_and_sample(net, seed):
    assume(not net.couples_samples)
    derived = Derived(net, seed)
    assume(derived.output.size <= 24 and derived.has_clear_signs())
    curvatures = derived.curvatures()
    directions = {weight: clipped(slope, curvatures[weight]) for weight, slope in derived.slopes.items()}
    assert_alike(derived.one_step(optimizer="sophia"), derived.changes(directions))


def by_optax(optimizer, derived):
    """-update of every weight from rest."""
    with jax.enable_x64(True):
        weights, slopes = (jax.tree.map(jax.numpy.asarray, tree) for tree in (derived.named, derived.slopes))
        made = optimizer(derived.named)
        updates = jax.jit(lambda w, g: made.update(g, made.init(w), w)[0])(weights, slopes)
        return {name: -np.asarray(update) for name, update in updates.items()}


def optax_muon(weights):
    """Five of Newton and Schulz's iterations, Nesterov's momentum, sqrt(max(1, outputs / inputs)); Adam of biases."""
    numbers = {
        name: None if w.ndim == 1 else optax.contrib.MuonDimensionNumbers(tuple(range(1, w.ndim)), 0)
        for name, w in weights.items()
    }
    muon = optax.contrib.muon(1.0, eps=NONE, muon_weight_dimension_numbers=lambda _: numbers)
    of = {name: "vectors" if w.ndim == 1 else "matrices" for name, w in weights.items()}
    return optax.partition({"matrices": muon, "vectors": optax.adam(1.0, eps=NONE)}, of)


# An epsilon that divides nothing but zeros by itself.
NONE = 1e-200
RUN = {
    "sgd": (lambda _: optax.sgd(1.0, momentum=0.9), {"optimizer": SGD(0.9)}),
    "adamw": (lambda _: optax.adamw(1.0, 0.9, 0.95, eps=NONE, weight_decay=0.0), {"optimizer": AdamW(0.9, 0.95)}),
    "adamw, epsilon": (
        lambda _: optax.adamw(1.0, 0.9, 0.95, eps=EPSILON, weight_decay=0.0),
        {"optimizer": AdamW(0.9, 0.95), "epsilon": EPSILON},
    ),
    "adamw, decayed": (
        lambda _: optax.adamw(1.0, eps=EPSILON, weight_decay=0.3),
        {"optimizer": "adamw", "epsilon": EPSILON, "weight_decay": 0.3},
    ),
    "lion": (lambda _: optax.lion(1.0, 0.9, 0.99, weight_decay=0.0), {"optimizer": Lion(0.9, 0.99)}),
    "muon": (optax_muon, {"optimizer": Muon(0.95, 5, shape_factor=True)}),
}


# The optimizers of matrices are compiled for every shape of every net.
RUNS = [(net, name) for net in NETS for name in RUN if name != "muon" or net in SHAPES_OF_MATRICES]


@pytest.mark.parametrize(("which", "name"), RUNS)
def test_values_move_as_they_do_under_optax_s_first_update(which, name):
    """Against central differences of the net's own values, as well as to rounding."""
    derived = Derived(NETS[which], 0)
    assert derived.has_clear_signs()
    optimizer, asked = RUN[name]
    directions, changes = by_optax(optimizer, derived), derived.one_step(**asked)
    assert_alike(changes, derived.changes(directions), rtol=1e-9)
    assert_alike(changes, derived.differences(directions), rtol=1e-6, share=1e-7)


def test_hybrids_step_hidden_matrices_by_the_first_and_all_else_by_the_second():
    for net in NETS.values():
        derived = Derived(net, 1)
        hidden = {weight.name for unit in net.units[1:] for spec in unit.maps for weight in spec.weights}
        for name, stepped in {"muon-adamw": published_muon, "muon_kimi-adamw": kimi}.items():
            directions = {
                weight: of_matrices(stepped)(slope) if weight in hidden else np.sign(slope)
                for weight, slope in derived.slopes.items()
            }
            assert_alike(derived.one_step(optimizer=name), derived.changes(directions))


def test_shampoo_takes_epsilon_beside_its_moments():
    """A mean that starts from 0 is (1 - beta1) of its gradient; the moments are corrected for their start."""
    made = of_matrices(lambda matrix: quarter_roots(matrix, EPSILON))
    for net in NETS.values():
        derived = Derived(net, 2)
        for optimizer, share in {"shampoo": 1.0, Shampoo(0.95, 0.9): 0.05, Shampoo(0.0, 0.5): 1.0}.items():
            directions = {
                weight: softened(slope) if slope.ndim == 1 else share * made(slope)
                for weight, slope in derived.slopes.items()
            }
            assert_alike(derived.one_step(optimizer=optimizer, epsilon=EPSILON), derived.changes(directions))


def _on_the_sphere(slope, weight):
    """sqrt(outputs / inputs) times the polar factor of G + t u v^T with nothing along u v^T, the weights' top pair."""
    matrix, gradient = (each.reshape(len(each), -1) for each in (weight, slope))
    u, _, v = np.linalg.svd(matrix, full_matrices=False)
    pair = np.outer(u[:, 0], v[0])
    low, high = -1e3, 1e3
    for _ in range(90):
        middle = (low + high) / 2
        along = np.sum(pair * polar(gradient + middle * np.abs(gradient).max() * pair))
        low, high = (middle, high) if along < 0 else (low, middle)
    direction = polar(gradient + middle * np.abs(gradient).max() * pair)
    assert abs(np.sum(pair * direction)) < 1e-9
    return (len(matrix) / matrix.shape[1]) ** 0.5 * direction.reshape(slope.shape)


def test_sso_takes_the_steepest_step_that_keeps_the_largest_singular_value():
    """Of gradients of full rank, for which this step is the only one."""
    net = mf.MLP(depth=2, width=(4, 3), outputs=2, inputs=6, input_width=5, activation="tanh")
    derived = Derived(net, 3)
    directions = {name: _on_the_sphere(slope, derived.named[name]) for name, slope in derived.slopes.items()}
    for optimizer in ("sso", SSO(0.9, 1e-9)):
        assert_alike(derived.one_step(optimizer=optimizer), derived.changes(directions), rtol=1e-5, share=1e-5)


def _softmax_columns(output):
    """Slopes at classes drawn by the outputs' own law, times the roots of its shares: (samples sites classes, ...)."""
    shares = np.exp(output - output.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    columns, places = [], output.size // output.shape[1]
    for sample, channel, *site in np.ndindex(output.shape):
        column, at = np.zeros_like(output), (sample, slice(None), *site)
        column[at] = shares[at]
        column[sample, channel, *site] -= 1.0
        columns.append((shares[sample, channel, *site] / places) ** 0.5 * column)
    return columns


@pytest.mark.parametrize("which", ["MLP", "ConvNet, zero", "Transformer", "loop", "blocks with biases"])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "sophia"])
def test_targets_of_a_loss_are_the_error_that_they_make(which, optimizer):
    """Out - y of the squared loss, and the softmax less the class, of which each counts for the M outputs."""
    net = NETS[which]
    derived, rng = Derived(net, 4), np.random.default_rng(4)
    output = derived.output
    counted = 1 if net.readout_unit is None else output.size
    classes = rng.integers(output.shape[1], size=(len(output), *output.shape[2:]))
    chosen = np.moveaxis(np.eye(output.shape[1])[classes], -1, 1)
    values = rng.normal(size=output.shape)
    shares = np.exp(output) / np.exp(output).sum(axis=1, keepdims=True)
    places = output.size // output.shape[1]
    slopes = {"squared": (output - values) / output.size, "cross_entropy": (shares - chosen) / places}
    for loss, targets in {"squared": values, "cross_entropy": classes}.items():
        how = {"optimizer": optimizer, "outputs": True}
        by_loss = mf.one_step(net, derived.weights, derived.inputs, targets=targets, loss=loss, **how)
        derived.slopes = derived.pulled(slopes[loss])
        if optimizer == "sophia":
            curvatures = derived.curvatures(_softmax_columns(output) if loss == "cross_entropy" else None)
            directions = {name: clipped(slope, curvatures[name]) for name, slope in derived.slopes.items()}
        else:
            directions = {name: DEFINED[optimizer][0](slope) for name, slope in derived.slopes.items()}
        assert_alike(by_loss, derived.changes(directions))
        if optimizer != "sophia" or loss == "squared":
            error = np.reshape(slopes[loss] * counted, net.output_shape if counted > 1 else derived.inputs.shape)
            alike = mf.one_step(net, derived.weights, derived.inputs, error, **how)
            assert_alike(by_loss, alike)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "sophia"])
@each_net
def test_weight_decay_adds_the_change_of_shrunken_weights(net, optimizer):
    if optimizer == "sophia" and net.couples_samples:
        pytest.skip("curvatures are summed sample by sample")
    derived = Derived(net, 5)
    decay = derived.changes({name: 0.3 * weight for name, weight in derived.named.items()})
    step = derived.one_step(optimizer=optimizer)
    both = derived.one_step(optimizer=optimizer, weight_decay=0.3)
    assert_alike(both, [first + np.reshape(second, first.shape) for first, second in zip(step, decay, strict=True)])
    derived.error = np.zeros_like(derived.error)
    assert not any(change.any() for change in derived.one_step(optimizer=optimizer))
    assert_alike(derived.one_step(optimizer=optimizer, weight_decay=0.3), decay)


@each_net
def test_layers_do_not_depend_on_whether_outputs_are_asked_for(net):
    """The outputs of a net without a readout are its last value, which nothing stands behind."""
    derived = Derived(net, 6)
    for optimizer, decay in product(("sgd", "lion", "shampoo"), (0.0, 0.3)):
        how = {"optimizer": optimizer, "weight_decay": decay}
        layers = mf.one_step(net, derived.weights, derived.inputs, derived.error, **how)
        assert_alike(layers, derived.one_step(**how)[: len(net.units)], rtol=1e-10)
        assert len(layers) == len(net.units)


# Directions that are wrong, and where they show: of the derived net and its right directions.
def _without_the_factor(derived, directions):
    return {name: of_matrices(polar)(slope) for name, slope in derived.slopes.items()}


def _without_biases(derived, directions):
    return {name: d if d.ndim > 1 else np.zeros_like(d) for name, d in directions.items()}


def _without_the_readout(derived, directions):
    names = [weight.name for spec in derived.net.readout_unit.maps for weight in spec.weights]
    return directions | {name: np.zeros_like(directions[name]) for name in names}


def _with_the_factor_twice(derived, directions):
    twice = of_matrices(lambda matrix: max(1.0, matrix.shape[0] / matrix.shape[1]) * polar(matrix))
    return {name: twice(slope) for name, slope in derived.slopes.items()}


def _of_all_taps_apart(derived, directions):
    """The polar factor of every tap's matrix by itself."""

    def apart(slope):
        taps = np.moveaxis(slope.reshape(*slope.shape[:2], -1), 2, 0)
        return np.moveaxis([published_muon(tap) for tap in taps], 0, 2).reshape(slope.shape)

    return {name: apart(slope) if slope.ndim > 2 else directions[name] for name, slope in derived.slopes.items()}


@pytest.mark.parametrize(
    ("which", "optimizer", "spoiled"),
    [
        ("MLP", "muon", _without_the_factor),
        ("MLP", "muon", _with_the_factor_twice),
        ("ConvNet, zero", "muon", _of_all_taps_apart),
        ("blocks with biases", "adamw", _without_biases),
        ("blocks with biases", "muon", _without_biases),
        ("MLP", "adamw", _without_the_readout),
        ("ConvNet, zero", "muon", _without_the_readout),
    ],
)
def test_a_wrong_direction_is_seen(which, optimizer, spoiled):
    """Negative control."""
    derived = Derived(NETS[which], 7)
    directions = {name: DEFINED[optimizer][0](slope) for name, slope in derived.slopes.items()}
    changes = derived.one_step(optimizer=optimizer)
    assert differ(changes, derived.changes(directions)) < 1e-9
    assert differ(changes, derived.changes(spoiled(derived, directions))) > 0.05


@pytest.mark.parametrize("direction", [np.sign, of_matrices(polar)])
def test_a_tied_weight_steps_by_the_sum_of_its_uses_and_not_by_each(direction):
    """Negative control: directions made use by use, as those of a loop of the same matrices untied, and added up."""
    tied = mf.TiedLoop(depth=4, width=5, alpha=0.5, activation="tanh")
    derived, untied = Derived(tied, 8), tied.replace(tied=False)
    pull, _ = make_vjp(lambda w: derivable.values_and_output(untied, w, derived.inputs)[1])(
        dict.fromkeys(untied.weights, derived.weights[0])
    )
    of_uses = pull(derived.error)
    np.testing.assert_allclose(sum(of_uses.values()), derived.slopes["W"], rtol=1e-10)
    optimizer = "adamw" if direction is np.sign else "shampoo"
    changes = derived.one_step(optimizer=optimizer)
    assert differ(changes, derived.changes({"W": direction(sum(of_uses.values()))})) < 1e-9
    assert differ(changes, derived.changes({"W": sum(map(direction, of_uses.values()))})) > 0.05


CANCELLED = {
    # By name: a net, and which elements of which vector no value behind the next map depends on.
    "bias below batch normalisation": (
        (Unit((_linear(_weight("W", 4, 2, 3)), Bias(_weight("bias", 4)))), Unit((BatchNormalisation(1e-5),))),
        ("bias", slice(None)),
    ),
    "gain below a norm": (
        (Unit((_linear(_weight("W", 4, 2)), Gain(_weight("gain", 1)))), Unit((Normalisation("rms", 0.0),))),
        ("gain", slice(None)),
    ),
    "bias of keys": (
        (
            Unit((_linear(_weight("W", 4, 2)),)),
            Unit((_linear(_weight("q", 4, 4), _weight("k", 4, 4), _weight("v", 4, 4)), Bias(_weight("qkv_bias", 12)))),
            Unit((Attention(2),)),
        ),
        ("qkv_bias", slice(4, 8)),
    ),
}


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("units", "cancelled"), CANCELLED.values(), ids=CANCELLED.keys())
def test_what_cancels_but_for_rounding_has_no_sign(units, cancelled, precision):
    readout = Unit((Pointwise("tanh"), Pooling(), _linear(_weight("readout", 3, 4))))
    derived = Derived(Chain(units=units, readout_unit=readout, input_channels=2, grid=(4,), inputs=5), 9)
    name, elements = cancelled
    rounding = np.abs(derived.slopes[name][elements])
    assert (rounding < 1e-14).all()
    directions = {weight: np.sign(slope) for weight, slope in derived.slopes.items()}
    directions[name][elements] = 0.0
    assert name != "qkv_bias" or directions[name].any()
    share = {"float64": 1e-9, "float32": 1e-5}[precision]
    assert_alike(derived.one_step(optimizer="adamw", precision=precision), derived.changes(directions), share, share)


def test_gradients_of_zero_move_nothing():
    """Of units that are shut: a sign of 0 is 0, and so is the polar factor."""
    net = mf.MLP(depth=2, width=4, outputs=2, input_width=3)
    weights, inputs, error = given_draw(net, 0)
    weights[0] = -np.abs(weights[0])  # of all the second layer's inputs none is above 0
    for optimizer in ("sgd", "adamw", "lion", "sophia", "muon", "muon_kimi", "shampoo", "soap", Muon(0.95, 5)):
        first, second, _ = mf.one_step(net, weights, np.abs(inputs), error, optimizer=optimizer, outputs=True)
        assert not first.any(), optimizer
        assert not second.any(), optimizer
