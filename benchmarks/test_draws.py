"""Draws of nets and of loops, and the passes that they are made of, against random numbers and matrix products."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.counting import counted
from benchmarks.limits import Demand, gram_variates, products, random_numbers, random_numbers_by_numpy
from benchmarks.nets import (
    ENERGY_SIDES,
    UPDATE_SIDES,
    dense_demands,
    described,
    loop_demands,
    products_of_values,
    step_demands,
    stepped,
    the_mlp,
)
from benchmarks.race import Race, Sizes
from meanfield.common.machine import require_bytes
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.nets.layered import MLP, ConvNet, Sequential
from meanfield.nets.loop import TiedLoop
from meanfield.nets.transformer import Transformer
from meanfield.simulation import passes
from meanfield.simulation.cost import draw_bytes, draw_operations, draws_per_batch
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.measures.energies import draw_energies
from meanfield.simulation.measures.overlap_energy import tangent_kernels
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.measures.streams import UPDATES, ResidualEnergies, StreamUpdates
from meanfield.simulation.passes import gradient_changes
from meanfield.simulation.weights import Weights, draw_weights

PASSES, DRAWS = "Passes with given weights", "Draws"

# Grids and stencils of convolutional nets whose few columns meet large matrices, and channels over the MLP's width.
SMALL_GRIDS = [(channels, *shape) for channels in (1, 2) for shape in (((4,), (3,)), ((8,), (3,)), ((2, 2), (2, 2)))]


def _given(net: Sequential) -> tuple[Weights, np.ndarray]:
    return draw_weights(net, streams_of_draws(0, "weights", [0]), "dense"), draw_inputs(net, streams_by_purpose(0, [0]))


def test_dense_passes(race: Race, sizes: Sizes) -> None:
    side, channels = sizes("side", 32, 4), sizes("channels", 128, 8)
    net = ConvNet(depth=4, channels=channels, grid=(side, side), kernel=(3, 3), readout="convolution")
    weights, inputs = _given(net)
    labels = np.random.default_rng(0).normal(size=(1, net.outputs, 1, net.sites))

    def all_passes() -> None:
        state = passes.forward(net, weights, inputs)
        for _ in gradient_changes(state, np.concatenate([labels, state.output], axis=2)):
            pass

    operations = draw_operations(net)
    size = f"{channels} channels, {side} x {side} sites, 3 x 3 taps, L = {net.depth}"
    named = {"group": PASSES, "what": "forward, backward and tangent", "size": size}
    race(all_passes, [products(operations)], amount=operations, unit="FLOP", **named)


def test_tangent_kernel(race: Race, sizes: Sizes) -> None:
    width = sizes("kernel_width", 512, 32)
    net = MLP(depth=4, width=width)
    weights, inputs = _given(net)
    state = passes.forward(net, weights, inputs)

    def kernels() -> None:
        for _ in tangent_kernels(state):
            pass

    operations = (net.depth - 1) * 4.0 * width**3
    named = {"group": PASSES, "what": "tangent kernels of all layers", "size": f"MLP, n = {width}, L = {net.depth}"}
    race(kernels, [products(operations)], amount=operations, unit="FLOP", **named)


def _draw(
    race: Race, net: MLP | ConvNet, weights: str, most: int = 64, numbers: Callable[[float], Demand] = random_numbers
) -> None:
    """Draws as `simulate` makes them, so many together; lazy ones beside ``numbers`` alone."""
    try:
        require_bytes(draw_bytes(net, weights), f"a {weights} draw", "width or depth")
    except MemoryError as error:
        pytest.skip(str(error))
    together = min(draws_per_batch(net, weights), most) if weights == "lazy" else 1

    def work() -> None:
        draw_energies(net, 0, range(together), weights=weights)

    demands = dense_demands(net, together)
    if weights == "lazy":
        demands = [numbers(counted(work).numbers)]
    race(
        work,
        demands,
        group=DRAWS,
        what=f"{weights} draw",
        size=f"{described(net)}; {together} together",
        amount=together,
        unit="draws",
    )


@pytest.mark.parametrize("weights", ["lazy", "dense"])
def test_draw_of_a_fully_connected_net(race: Race, sizes: Sizes, weights: str) -> None:
    _draw(race, the_mlp(sizes), weights)


def test_lazy_draw_beside_numpy_s_random_numbers(race: Race, sizes: Sizes) -> None:
    _draw(race, the_mlp(sizes), "lazy", numbers=random_numbers_by_numpy)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
def test_draw_of_a_first_step(race: Race, sizes: Sizes, optimizer: str) -> None:
    """Under the gradient, signs and polar factors, on a batch, the readout's own step included."""
    net, inputs, classes = stepped(sizes)
    measure = StepScales(inputs=inputs, targets=classes, optimizer=optimizer).settled(net)
    race(
        lambda: measure.draw(net, 0, range(1)),
        step_demands(net, len(inputs)),
        group=DRAWS,
        what=f"draw of the first step of {optimizer}",
        size=f"{described(net)}, batch of {len(inputs)}; 1 together",
        amount=1,
        unit="draws",
    )


def test_draw_beyond_dense_memory(race: Race, sizes: Sizes) -> None:
    _draw(race, MLP(depth=sizes("great_depth", 256, 4), width=sizes("great_width", 100_000, 512)), "lazy")


@pytest.mark.parametrize("width", [1024, 10**9])
def test_draw_by_the_gram_process(race: Race, sizes: Sizes, width: int) -> None:
    net = MLP(depth=sizes("depth", 64, 8), width=width)
    together = draws_per_batch(net, "gram")
    race(
        lambda: draw_energies(net, 0, range(together), weights="gram"),
        [gram_variates(together * net.depth, width)],
        group=DRAWS,
        what="draw by the Gram process",
        size=f"{described(net)}; {together} together",
        amount=together,
        unit="draws",
    )


@pytest.mark.parametrize(("factor", "grid", "kernel"), SMALL_GRIDS)
def test_lazy_draw_on_a_small_grid(
    race: Race, sizes: Sizes, factor: int, grid: tuple[int, ...], kernel: tuple[int, ...]
) -> None:
    channels = factor * sizes("width", 1024, 256)
    _draw(race, ConvNet(depth=8, channels=channels, grid=grid, kernel=kernel, readout="convolution"), "lazy", most=4)


def test_lazy_draw_of_a_transformer(race: Race, sizes: Sizes) -> None:
    """Beside its random numbers and the products that they meet, those with known columns and of attention included."""
    width, depth = sizes("width", 1024, 64), sizes("blocks", 32, 2)
    net = Transformer(depth=depth, width=width, heads=8, tokens=16)

    def work() -> None:
        draw_energies(net, 0, range(1), weights="lazy")

    count = counted(work)
    race(
        work,
        [random_numbers(count.numbers), products(count.revealed + products_of_values(net))],
        group=DRAWS,
        what="lazy draw of a Transformer",
        size=f"n = {width}, 8 heads, 16 tokens, {depth} blocks; 1 together",
        amount=1,
        unit="draws",
    )


def test_dense_draw_on_a_small_grid(race: Race, sizes: Sizes) -> None:
    channels = sizes("width", 1024, 256)
    _draw(race, ConvNet(depth=8, channels=channels, grid=(8,), kernel=(3,), readout="convolution"), "dense", most=1)


@pytest.mark.parametrize("weights", ["lazy", "dense"])
def test_draw_of_a_tied_loop(race: Race, sizes: Sizes, weights: str) -> None:
    loop = TiedLoop(depth=sizes("loops", 64, 8), width=sizes("width", 1024, 256))
    together = ResidualEnergies(weights=weights).together(loop)

    def work() -> None:
        ResidualEnergies(weights=weights).draw(loop, 0, range(together))

    race(
        work,
        loop_demands(loop, weights, counted(work).numbers, together, ENERGY_SIDES),
        group=DRAWS,
        what=f"{weights} draw of a tied loop",
        size=f"N = {loop.width}, L = {loop.depth}; {together} together",
        amount=together,
        unit="draws",
    )


@pytest.mark.parametrize("update", UPDATES)
def test_stream_update(race: Race, sizes: Sizes, update: str) -> None:
    loop = TiedLoop(depth=sizes("loops", 64, 8), width=sizes("loop_width", 512, 32))
    measure = StreamUpdates(update=update).settled(loop)
    kind, together = measure.weights, measure.together(loop)

    def work() -> None:
        measure.draw(loop, 0, range(together))

    square = loop.depth * loop.width * (loop.depth if update == "gradient" else loop.width)
    own = 2.0 * square * (1 if update == "isotropic" else 2)  # signs need the gradient before they multiply features
    demands = loop_demands(loop, kind, counted(work).numbers, together, UPDATE_SIDES)
    race(
        work,
        [*demands, products(together * own)],
        group=DRAWS,
        what=f"{update} update of a tied loop, {kind}",
        size=f"N = {loop.width}, L = {loop.depth}; {together} together",
        amount=together,
        unit="draws",
    )
