"""The nets that several benchmarks draw, their names in tables, and what draws of them demand."""

from math import prod

import numpy as np

from benchmarks.limits import Demand, products, random_numbers, reading
from benchmarks.race import Sizes
from meanfield.common.seeds import stream
from meanfield.nets.layered import MLP, ConvNet, Sequential
from meanfield.nets.loop import TiedLoop
from meanfield.nets.transformer import Transformer
from meanfield.simulation.cost import draw_operations

# Vectors that each step of a loop multiplies by its matrix from the right and from the left.
ENERGY_SIDES, UPDATE_SIDES = (1, 0), (2, 1)


def the_mlp(sizes: Sizes) -> MLP:
    """The net that draws are compared on, the library's and others'."""
    return MLP(depth=sizes("depth", 64, 3), width=sizes("width", 1024, 256))


def stepped(sizes: Sizes) -> tuple[MLP, np.ndarray, np.ndarray]:
    """A net, and inputs and classes of a batch on which an optimizer makes its first step."""
    net, batch = MLP(depth=sizes("step_depth", 16, 3), width=sizes("width", 1024, 256), outputs=10), 16
    data = stream(0, "benchmark data", 0)
    return net, data.standard_normal((batch, net.first_channels)), data.integers(0, net.outputs, batch)


def step_demands(net: MLP, batch: int, precision: str = "float64") -> list[Demand]:
    """The numbers of all matrices, and their products with values, errors and changes of a batch."""
    numbers = sum(map(prod, net.weight_shapes))
    return [random_numbers(numbers), products(6.0 * batch * numbers, precision)]


def described(net: MLP | ConvNet | Transformer) -> str:
    """Its sizes."""
    if isinstance(net, MLP):
        return f"MLP, n = {net.width}, L = {net.depth}"
    if isinstance(net, Transformer):
        return f"n = {net.width}, heads of {net.width // net.heads}, {net.tokens} tokens, {net.depth} blocks"
    grid, kernel = (" x ".join(map(str, lengths)) for lengths in (net.grid, net.kernel))
    return f"{net.channels} channels, {grid} sites, {kernel} taps, L = {net.depth}"


def dense_demands(net: Sequential, draws: int = 1) -> list[Demand]:
    """The numbers of all matrices, and the products of the three passes."""
    numbers = draws * sum(map(prod, net.weight_shapes))
    return [random_numbers(numbers), products(draws * draw_operations(net))]


def products_of_values(net: Transformer) -> float:
    """Operations of the products of values with values: of features among themselves and with errors, and attention.

    For two columns of errors; an update is U (X^T X), of 2 n T^2 operations for every matrix's rows and columns.
    """
    square, columns = 2.0 * net.tokens**2, 2
    rows = sum(shape[0] for shape in net.weight_shapes[:-1])
    features = 3 * net.width + net.hidden_units  # what q, k, v, what W_o, what W_1 and what W_2 are given
    attention = net.width * (2 + 8 * columns)
    return square * (columns * rows + net.depth * (features + attention))


def _known_vectors(loop: TiedLoop, right: int, left: int) -> float:
    """Bytes of the known vectors that the queries of a lazily revealed tied matrix meet.

    A query of one side meets all directions of its side, twice, and their images, and of the other side both, once.
    """
    asked, steps = 8.0 * loop.width * loop.depth**2, (right, left)
    return asked * (3 / 2 * sum(side**2 for side in steps) + 2 * right * left)


def loop_demands(loop: TiedLoop, kind: str, numbers: int, draws: int, sides: tuple[int, int]) -> list[Demand]:
    """Random numbers, and the vectors or the matrix that every step looks through."""
    held = 8.0 * loop.width * (loop.width if kind == "dense" else 2 * loop.depth * sum(sides))
    looked = held * loop.depth * sum(sides) if kind == "dense" else _known_vectors(loop, *sides)
    return [random_numbers(numbers), reading(draws * looked, held)]
