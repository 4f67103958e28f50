"""How fast the three passes run, as a fraction of this machine's own matrix-product rate in the same run.

    python benchmarks/passes.py [--channels 128 --grid 32 32 --kernel 3 3 --depth 4 --seconds 5]

The limit of a dense draw is the matrix product (and, for few sites, the random numbers). Passes and reference
products alternate on one thread, so that a machine whose speed drifts slows both; the fraction is the median of the
pairs. Drawing the weights is timed apart and reported as numbers per second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from math import prod

import numpy as np
from threadpoolctl import threadpool_limits

from meanfield.architectures import ConvNet
from meanfield.seeds import stream
from meanfield.simulation import passes
from meanfield.simulation.cost import draw_operations
from meanfield.simulation.inputs import draw_inputs
from meanfield.simulation.weights import draw_weights

REFERENCE = 1024


def timed(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def all_passes(net: ConvNet, weights: list, inputs: np.ndarray, labels: np.ndarray) -> None:
    """Forward, backward and tangent with a label column and an output column."""
    state = passes.forward(net, weights, inputs)
    top = passes.through_readout(net, weights, state, np.concatenate([labels, state.output], axis=2))
    for _ in passes.tangent(net, weights, state, passes.backward(net, weights, state, top, net.depth)):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, default=128)
    parser.add_argument("--grid", type=int, nargs="+", default=[32, 32])
    parser.add_argument("--kernel", type=int, nargs="+", default=[3, 3])
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    net = ConvNet(
        depth=options.depth, channels=options.channels, grid=options.grid, kernel=options.kernel, readout="convolution"
    )
    rng = np.random.default_rng(0)
    generator = stream(0, "weights", 0)
    weights, inputs = draw_weights(net, [generator], "dense"), draw_inputs(net, [stream(0, "inputs", 0)])
    labels = rng.normal(size=(1, net.outputs, 1, net.sites))
    square = rng.normal(size=(REFERENCE, REFERENCE))
    numbers = sum(prod(shape) for shape in net.weight_shapes)
    pairs = []
    with threadpool_limits(1):
        all_passes(net, weights, inputs, labels)
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end or len(pairs) < 3:
            product = timed(lambda: square @ square)
            ours = timed(lambda: all_passes(net, weights, inputs, labels))
            pairs.append((draw_operations(net) / ours, 2 * REFERENCE**3 / product))
        drawing = min(timed(lambda: draw_weights(net, [generator], "dense")) for _ in range(5))
    ours, product = np.array(pairs).T / 1e9
    ratio = ours / product
    print(net)
    print(f"passes          {np.median(ours):7.1f} GFLOP/s  (median of {len(pairs)}, one thread, double precision)")
    print(f"matrix product  {np.median(product):7.1f} GFLOP/s  ({REFERENCE} x {REFERENCE})")
    print(f"fraction        {np.median(ratio):7.2f}  (range {ratio.min():.2f} .. {ratio.max():.2f})")
    print(f"weights drawn   {numbers / drawing / 1e6:7.1f} million normals/s, {drawing * 1e3:.1f} ms per draw")


if __name__ == "__main__":
    main()
