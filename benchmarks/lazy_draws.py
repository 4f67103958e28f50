"""How fast a draw with lazily revealed weights is, against its own floor, a dense draw, and automatic differentiation.

    python benchmarks/lazy_draws.py [--width 1024 --depth 64 --outputs 10 --draws 256 --repeats 5]

A draw of an MLP: its weights, and every layer's one-step change for a column of labels and one of outputs. The floor
is the time of its random numbers alone; both are timed by turns, so that a machine whose speed drifts slows both, and
the medians are printed. Where JAX or PyTorch is installed, the same draw is made with it (see `autodiff`), in single
and double precision. Everything runs on one processor.

Convolutional nets of as many and twice as many channels follow, on small grids, where few columns meet large matrices:
one line each, beside a dense draw where that fits.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import prod

import autodiff
import numpy as np
from threadpoolctl import threadpool_limits

from meanfield.architectures import MLP, ConvNet, Sequential
from meanfield.memory import require_bytes
from meanfield.seeds import stream
from meanfield.simulation.cost import draw_bytes, draws_per_batch
from meanfield.simulation.inputs import draw_inputs
from meanfield.simulation.kernels.normals import fill_normal
from meanfield.simulation.update_energy import draw_energies
from meanfield.simulation.weights import NormalSource, draw_weights

# Weights, two steps, and what differentiation keeps of them at once.
AUTODIFF_MATRICES = 4

# Grids and stencils of the convolutional nets, and their layers.
CONVOLUTIONS = (((4,), (3,)), ((8,), (3,)), ((2, 2), (2, 2)))
CONVOLUTION_DEPTH = 8


def seconds(work: Callable[[], object]) -> float:
    """Time that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def numbers_per_draw(net: Sequential) -> int:
    """Fresh normals: per site a column forward, two back and two along per layer, and the readout's."""
    (first, _), *others = [(shape[0], prod(shape[1:])) for shape in net.weight_shapes[:-1]]
    hidden = first + sum(3 * rows + 2 * fan_in for rows, fan_in in others)
    return net.sites * (hidden + net.outputs + 2 * net.head_fan_in)


def lazy_draws(net: Sequential, draws: int) -> None:
    """Draw in the batches that `simulate` uses."""
    size = draws_per_batch(net, "lazy")
    for start in range(0, draws, size):
        draw_energies(net, 0, range(start, min(start + size, draws)), weights="lazy")


def paced(net: Sequential, draws: int, repeats: int) -> tuple[float, float]:
    """Median seconds of one normal and of one lazy draw, timed by turns."""
    buffer, generator = np.empty(NormalSource.BLOCK), stream(0, "benchmark", 0)
    fills = max(1, 4_000_000 // buffer.size)
    fill_normal(generator, buffer, 1.0)
    lazy_draws(replace(net, depth=2), 2)
    pairs = []
    for _ in range(repeats):
        filling = seconds(lambda: [fill_normal(generator, buffer, 1.0) for _ in range(fills)])
        pairs.append((filling / fills / buffer.size, seconds(lambda: lazy_draws(net, draws)) / draws))
    per_number, per_draw = map(float, np.median(pairs, axis=0))
    return per_number, per_draw


def time_lazy(net: MLP, draws: int, repeats: int) -> float:
    """Print what a lazy draw takes, and its floor; return its seconds."""
    per_number, per_draw = paced(net, draws, repeats)
    numbers = numbers_per_draw(net)
    floor = numbers * per_number
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"lazy draw           {per_draw * 1e3:10.2f} ms  (median of {repeats} x {draws} draws, double precision)")
    print(f"its random numbers  {floor * 1e3:10.2f} ms  ({numbers:,} at {1e-6 / per_number:.0f} million/s)")
    print(f"draw / floor        {per_draw / floor:10.2f}")
    print(f"peak memory         {peak:10.2f} GiB")
    return per_draw


def time_dense(net: MLP, lazy: float) -> None:
    """Print what a dense draw takes, if it fits."""
    try:
        require_bytes(draw_bytes(net), "a dense draw", "width or depth")
    except MemoryError as error:
        print(f"dense draw          skipped: {error}")
        return
    dense = min(seconds(lambda: draw_energies(net, 0, range(1), weights="dense")) for _ in range(3))
    print(f"dense draw          {dense * 1e3:10.2f} ms  ({dense / lazy:.0f} times the lazy draw)")


def time_convolutions(width: int, draws: int, repeats: int) -> None:
    """Print a lazy draw, its floor and a dense draw for convolutional nets on small grids."""
    print("\nchannels    grid  stencil    lazy ms   floor ms  draw / floor   dense ms  dense / lazy")
    for channels, (grid, kernel) in product((width, 2 * width), CONVOLUTIONS):
        net = ConvNet(depth=CONVOLUTION_DEPTH, channels=channels, grid=grid, kernel=kernel, readout="convolution")
        per_number, lazy = paced(net, max(2, draws // 16), repeats)
        floor = numbers_per_draw(net) * per_number
        try:
            require_bytes(draw_bytes(net), "a dense draw", "width")
            dense = min(seconds(lambda net=net: draw_energies(net, 0, range(1), weights="dense")) for _ in range(2))
        except MemoryError:
            dense = float("nan")
        times = f"{lazy * 1e3:9.2f}  {floor * 1e3:9.2f}  {lazy / floor:12.2f}  {dense * 1e3:9.1f}  {dense / lazy:12.0f}"
        print(f"{channels:8d}  {'x'.join(map(str, grid)):>6s}  {'x'.join(map(str, kernel)):>7s}  {times}")


def time_autodiff(net: MLP, lazy: float) -> None:
    """Print what the same draw takes by each library that is installed, after checking that it is the same."""
    for name, (build, energies) in autodiff.LIBRARIES.items():
        for precision in ("float64", "float32"):
            try:
                draw = build(net, precision)
                require_bytes(AUTODIFF_MATRICES * draw_bytes(net), "differentiation", "width or depth")
            except (ImportError, MemoryError) as error:
                print(f"{name:8s}            skipped: {error}")
                break
            if precision == "float64":
                require_same(energies)
            draw()
            taken = min(seconds(draw) for _ in range(3))
            print(f"{name:8s} {precision}    {taken * 1e3:10.2f} ms  ({taken / lazy:.0f} times the lazy draw)")


def require_same(energies: Callable[..., np.ndarray]) -> None:
    """A small dense draw by this library and by ours agree to rounding, or they would race on different things."""
    net = MLP(depth=6, width=50, outputs=3)
    ours = draw_energies(net, 0, range(1), weights="dense")
    weights = [weight.matrix[0] for weight in draw_weights(net, [stream(0, "weights", 0)], "dense")]
    inputs = draw_inputs(net, [stream(0, "inputs", 0)]).ravel()
    labels = stream(0, "labels", 0).standard_normal(net.outputs)
    theirs = np.asarray(energies(net, weights, inputs, labels))
    np.testing.assert_allclose(theirs, [ours["label_term"][0], ours["output_term"][0]], rtol=1e-10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument("--outputs", type=int, default=10)
    parser.add_argument("--draws", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # libraries size their thread pools by it
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    net = MLP(depth=options.depth, width=options.width, outputs=options.outputs)
    print(net)
    with threadpool_limits(1):
        lazy = time_lazy(net, options.draws, options.repeats)
        time_dense(net, lazy)
        time_autodiff(net, lazy)
        time_convolutions(options.width, options.draws, options.repeats)


if __name__ == "__main__":
    main()
