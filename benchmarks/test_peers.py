"""Beside other libraries, where they are installed: draws by automatic differentiation (see `autodiff`), and steps of
training by PyTorch, by turns, on one thread, in single precision.

neural-tangents takes no part: its last release, 0.6.5, cannot be imported without TensorFlow.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from benchmarks import first_step_by_jax, transformer_by_jax
from benchmarks.autodiff import LIBRARIES
from benchmarks.limits import Demand, Limit, products
from benchmarks.nets import dense_demands, described, stepped, the_mlp
from benchmarks.race import Race, Sizes
from benchmarks.training_step import drawn, torch_step, training
from meanfield.common.machine import require_bytes
from meanfield.common.seeds import stream, streams_by_purpose, streams_of_draws
from meanfield.execution.training import train
from meanfield.nets.layered import MLP, ConvNet
from meanfield.nets.transformer import Transformer
from meanfield.simulation.arrays import on_numpy
from meanfield.simulation.cost import draw_bytes
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.measures.energies import draw_energies
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.one_step import one_step
from meanfield.simulation.weights import draw_weights

TRAINING = "Steps of training beside PyTorch"
SEARCH = "A round of a search for the learning rate beside PyTorch"
MODELS = "Models of PyTorch beside their steps of training"
SINGLE = "float32"

# Channels, and nets side by side: 16 learning rates of 3 seeds.
NETS = {"one net": (32, 1), "48 nets side by side": (8, 48)}

# Small nets as `mf.tuned_rate` trains them, on images of 4 x 4 pixels, patches or rows of them; rates and seeds.
SEARCHED: dict[str, Callable[[int, int], MLP | ConvNet | Transformer]] = {
    "MLP": lambda depth, batch: MLP(depth=depth, width=64, input_width=16, inputs=batch),
    "CNN": lambda depth, batch: ConvNet(
        depth=depth, channels=16, grid=(4, 4), kernel=(3, 3), input_channels=1, inputs=batch
    ),
    "Transformer": lambda depth, batch: Transformer(depth=depth // 2, width=16, tokens=16, inputs=batch),
}
RATES, SEEDS = 8, 6

# Weights, two steps, and what differentiation keeps of them at once.
MATRICES = 4


def require_same(energies: Callable[..., np.ndarray]) -> None:
    """A small dense draw by this library and by ours agree to rounding, or they would race on different things."""
    net = MLP(depth=6, width=50, outputs=3)
    ours = draw_energies(net, 0, range(1), weights="dense")
    weights = [weight.matrix[0] for weight in draw_weights(net, streams_of_draws(0, "weights", [0]), "dense").values()]  # type: ignore
    inputs = draw_inputs(net, streams_by_purpose(0, [0])).ravel()
    labels = stream(0, "labels", 0).standard_normal(net.outputs)
    theirs = np.asarray(energies(net, weights, inputs, labels))
    np.testing.assert_allclose(theirs, [ours["label_term"][0], ours["output_term"][0]], rtol=1e-10)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_draw_by_automatic_differentiation(race: Race, sizes: Sizes, library: str, precision: str) -> None:
    module, build, energies = LIBRARIES[library]
    pytest.importorskip(module)
    net = the_mlp(sizes)
    try:
        require_bytes(MATRICES * draw_bytes(net), "differentiation", "width or depth")
    except MemoryError as error:
        pytest.skip(str(error))
    draw = build(net, precision)
    if precision == "float64":
        require_same(energies)
    race(
        draw,
        dense_demands(net),
        group="Draws by automatic differentiation",
        what=f"dense draw, {precision}",
        size=described(net),
        amount=1,
        unit="draws",
        by=library,
    )


def require_same_transformer() -> None:
    """A small dense draw by JAX and by ours agree to rounding."""
    net = Transformer(depth=2, width=16, heads=4, tokens=3, outputs=3)
    ours = draw_energies(net, 0, range(1), weights="dense")
    weights = [weight.matrix[0] for weight in draw_weights(net, streams_of_draws(0, "weights", [0]), "dense").values()]  # type: ignore
    inputs, labels = draw_inputs(net, streams_by_purpose(0, [0]))[0, :, 0], stream(0, "labels", 0).standard_normal(3)
    theirs = np.asarray(transformer_by_jax.energies(net, weights, inputs, labels))
    np.testing.assert_allclose(theirs, [ours["label_term"][0], ours["output_term"][0]], rtol=1e-10)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_transformer_beside_jax(race: Race, sizes: Sizes, precision: str) -> None:
    """The limit is JAX's time for the same dense draw, so that the fraction says how many times faster ours is."""
    pytest.importorskip("jax")
    width, blocks = sizes("width", 1024, 64), sizes("jax_blocks", 32, 2)
    net = Transformer(depth=blocks, width=width, heads=8, tokens=16)
    try:
        require_bytes(MATRICES * draw_bytes(net), "differentiation", "width or blocks")
    except MemoryError as error:
        pytest.skip(str(error))
    peer, arrays = transformer_by_jax.draw(net, precision), on_numpy(precision)
    require_same_transformer()
    race(
        lambda: draw_energies(net, 0, range(1), arrays, weights="lazy"),
        [Demand(Limit("the same by JAX", peer, 1), 1)],
        group="Draws by automatic differentiation",
        what=f"lazy draw of a Transformer, {precision}",
        size=described(net),
        amount=1,
        unit="draws",
    )


def require_same_step(optimizer: str) -> None:
    """The first step of an optimizer on a small net by JAX and optax and by ours agree to rounding."""
    net, rng = MLP(depth=3, width=12, outputs=4, inputs=5), np.random.default_rng(0)
    weights = [rng.normal(scale=0.3, size=shape) for shape in net.weight_shapes]
    inputs, classes = rng.normal(size=net.input_shape), rng.integers(0, 4, 5)
    method = first_step_by_jax.OPTIMIZERS[optimizer]
    changes = one_step(net, weights, inputs, targets=classes, loss="cross_entropy", optimizer=method, outputs=True)
    ours = [np.square(change).mean() for change in changes]
    theirs = np.asarray(first_step_by_jax.energies(net, optimizer, weights, inputs, classes))
    np.testing.assert_allclose(theirs, ours, rtol=1e-9)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("optimizer", first_step_by_jax.OPTIMIZERS)
def test_first_step_beside_jax_and_optax(race: Race, sizes: Sizes, optimizer: str, precision: str) -> None:
    """The limit is their time for the same draw, so that the fraction says how many times faster ours is."""
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    net, inputs, classes = stepped(sizes)
    method = first_step_by_jax.OPTIMIZERS[optimizer]
    measure = StepScales(inputs=inputs, targets=classes, optimizer=method, precision=precision).settled(net)
    peer = first_step_by_jax.draw(net, optimizer, inputs, classes, precision)
    require_same_step(optimizer)
    race(
        lambda: measure.draw(net, 0, range(1)),
        [Demand(Limit("the same by JAX and optax", peer, 1), 1)],
        group="Draws by automatic differentiation",
        what=f"first step of {optimizer}, {precision}",
        size=f"{described(net)}, batch of {len(inputs)}",
        amount=1,
        unit="draws",
    )


def trained_net(sizes: Sizes, channels: int) -> ConvNet:
    side = sizes("training_side", 14, 6)
    shape = {"grid": (side, side), "kernel": (3, 3), "input_channels": 1}
    return ConvNet(depth=sizes("training_depth", 12, 3), channels=channels, inputs=sizes("batch", 128, 16), **shape)  # type: ignore[arg-type]


def operations(net: ConvNet) -> float:
    """Of the products forward, back (but to the input) and into the gradients."""
    of_layers = [2.0 * prod(shape) * net.inputs * net.sites for shape in net.weight_shapes[:-1]]
    return 3 * sum(of_layers) - of_layers[0]


def require_same_steps(net: MLP | ConvNet | Transformer) -> None:
    """Three steps of a small net move weights alike, or the two would race on different things."""
    small = net.replace(depth=3, inputs=11, **({"grid": (5, 4)} if isinstance(net, ConvNet) else {}))
    ours, theirs = drawn(small, 2, "float64"), drawn(small, 2, "float64")
    step = training(small, ours, np.array([0.3, 0.2]), "float64").step
    step_of_torch, moved = torch_step(small, theirs, 0.3, "float64")
    for _ in range(3):
        step()
        step_of_torch()
    for tensor, matrix, start in zip(moved, ours.values(), theirs.values(), strict=True):
        other = tensor.detach().numpy().reshape(matrix[0].shape)
        np.testing.assert_allclose(other, matrix[0], rtol=1e-9, atol=1e-12)
        assert np.abs(matrix[0] - start[0]).max() > 1e-4


@pytest.mark.parametrize("which", NETS)
def test_step_beside_matrix_products(race: Race, sizes: Sizes, which: str) -> None:
    channels, nets = NETS[which]
    net, nets = trained_net(sizes, channels), sizes("training_nets", nets, min(nets, 4))
    step = training(net, drawn(net, nets, SINGLE), np.geomspace(1e-3, 1e-1, nets), SINGLE).step
    named = {"group": TRAINING, "what": f"{which}, {SINGLE}", "size": f"{described(net)}, {net.inputs} samples"}
    race(step, [products(nets * operations(net), SINGLE)], amount=nets, unit="steps", **named)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("which", NETS)
def test_step_beside_pytorch(race: Race, sizes: Sizes, which: str) -> None:
    """The limit is PyTorch's time for the same steps, net by net, so that the fraction says how many times faster."""
    pytest.importorskip("torch")
    channels, nets = NETS[which]
    net, nets = trained_net(sizes, channels), sizes("training_nets", nets, min(nets, 4))
    require_same_steps(net)
    weights = drawn(net, nets, SINGLE)
    step = training(net, weights, np.geomspace(1e-3, 1e-1, nets), SINGLE).step
    peer, _ = torch_step(net, weights, 1e-3, SINGLE)
    named = {"group": TRAINING, "what": f"{which}, {SINGLE}", "size": f"{described(net)}, {net.inputs} samples"}
    limit = Limit("the same by PyTorch, net by net", peer, 1)
    race(step, [Demand(limit, nets)], amount=nets, unit="steps", **named)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("which", SEARCHED)
def test_search_beside_pytorch(race: Race, sizes: Sizes, which: str) -> None:
    """All of `mf.train`, from drawing weights to final losses, beside PyTorch's steps alone, net by net.

    PyTorch makes every step on one mini-batch, which it need not gather.
    """
    pytest.importorskip("torch")
    net = SEARCHED[which](sizes("search_depth", 8, 2), sizes("search_batch", 16, 4))
    require_same_steps(net)
    steps, samples = sizes("search_steps", 32, 2), 16 * net.inputs
    data = stream(0, "benchmark data", 0)
    inputs = data.standard_normal((samples, net.first_channels, *net.grid))
    labels = data.integers(0, net.outputs, samples)
    how = {"batch_size": net.inputs, "steps": steps, "seeds": SEEDS, "precision": SINGLE}

    def search() -> None:
        train(net, (inputs, labels), rates=np.geomspace(1e-3, 1e-1, RATES).tolist(), **how)  # type: ignore[arg-type]

    peer, _ = torch_step(net, drawn(net, 1, SINGLE), 1e-3, SINGLE)
    limit, made = Limit("the same by PyTorch, net by net", peer, 1), RATES * SEEDS * steps
    named = {"group": SEARCH, "what": f"{which}, {RATES} rates of {SEEDS} seeds, {SINGLE}"}
    race(
        search,
        [Demand(limit, made)],
        size=f"{described(net)}, batches of {net.inputs}",
        amount=made,
        unit="steps",
        **named,
    )


# Optimizers of PyTorch: each makes its steps in both, from rest in a draw and on and on in training.
STEPPED = {"adamw": "AdamW", "sgd": "SGD", "muon": "Muon"}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("optimizer", STEPPED)
def test_step_scales_of_a_model_beside_its_training(race: Race, sizes: Sizes, optimizer: str) -> None:
    """The limit is one step of training the same model on the same batch, so that its inverse counts steps a draw."""
    torch = pytest.importorskip("torch")
    import meanfield.torch as mft

    torch.set_num_threads(1)
    width, blocks, batch = sizes("model_width", 512, 16), sizes("model_blocks", 6, 1), sizes("model_batch", 512, 4)
    model = _perceptron(width, blocks)
    inputs, targets = torch.randn(batch, width), torch.randint(10, (batch,))
    made_by = getattr(torch.optim, STEPPED[optimizer])
    loss, stepped = torch.nn.functional.cross_entropy, made_by(model.parameters(), lr=1e-4)

    def step() -> None:
        stepped.zero_grad()
        loss(model(inputs), targets).backward()
        stepped.step()

    draws = 8
    race(
        lambda: mft.step_scales(
            model, loss, [(inputs, targets)], optimizer=made_by, reinit=None, draws=draws, precision=SINGLE
        ),
        [Demand(Limit("a step of training it", step, 1), draws)],
        group=MODELS,
        what=f"step_scales under {STEPPED[optimizer]}, {SINGLE}",
        size=f"MLP with LayerNorm, n = {width}, L = {blocks}, {batch} samples",
        amount=draws,
        unit="draws",
    )


def _perceptron(width: int, blocks: int) -> Any:
    """Blocks of normalisation, weights without biases, as Muon takes them, and ReLU, below ten outputs."""
    from torch import nn

    def block() -> Any:
        return nn.Sequential(
            nn.LayerNorm(width, elementwise_affine=False), nn.Linear(width, width, bias=False), nn.ReLU()
        )

    return nn.Sequential(*[block() for _ in range(blocks)], nn.Linear(width, 10, bias=False))
