"""The nets that several benchmarks draw, in the words of a table, and what a dense draw of one cannot do without."""

from __future__ import annotations

from math import prod

from benchmarks.limits import Demand, products, random_numbers
from benchmarks.race import Sizes
from meanfield.architectures import MLP, ConvNet, Sequential
from meanfield.simulation.cost import draw_operations


def the_mlp(sizes: Sizes) -> MLP:
    """The net that draws are compared on, the library's and others'."""
    return MLP(depth=sizes("depth", 64, 3), width=sizes("width", 1024, 256))


def described(net: MLP | ConvNet) -> str:
    """Its sizes."""
    if isinstance(net, MLP):
        return f"MLP, n = {net.width}, L = {net.depth}"
    grid, kernel = (" x ".join(map(str, lengths)) for lengths in (net.grid, net.kernel))
    return f"{net.channels} channels, {grid} sites, {kernel} taps, L = {net.depth}"


def dense_demands(net: Sequential, draws: int = 1) -> list[Demand]:
    """The numbers of all matrices, and the products of the three passes."""
    numbers = draws * sum(map(prod, net.weight_shapes))
    return [random_numbers(numbers), products(draws * draw_operations(net))]
