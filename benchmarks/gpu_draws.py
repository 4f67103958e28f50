"""Draws per second on a CUDA device against one processor: dense and lazily revealed weights, in both precisions.

    python benchmarks/gpu_draws.py [--seconds 2]

Every line is one net, one kind of weights and one precision. The processor makes the batches that `simulate` makes in
one process, the device its groups; each is timed over whole batches for so many seconds, after one to warm up. Beside
the device stand the limits that bind it, measured in the same run: its normals per second (dense weights are made of
them) and its rate of matrix products. Without CuPy or a device it says so and ends.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from math import prod
from typing import Any

from threadpoolctl import threadpool_limits

from meanfield.nets.layered import MLP, ConvNet, Sequential
from meanfield.simulation.arrays import PRECISIONS, GroupNormals, arrays_of, device_described
from meanfield.simulation.measures.energies import Energies

NETS: dict[str, Sequential] = {
    "MLP 1024 x 64": MLP(depth=64, width=1024),
    "MLP 4096 x 16": MLP(depth=16, width=4096),
    "ConvNet 256 x 8, 16 x 16 sites": ConvNet(
        depth=8, channels=256, grid=(16, 16), kernel=(3, 3), readout="convolution"
    ),
    "ConvNet 1024 x 8, 8 sites": ConvNet(depth=8, channels=1024, grid=(8,), kernel=(3,), readout="convolution"),
}
NORMALS, SIDE = 1 << 26, 4096


def rate(work: Callable[[int], object], draws: int, seconds: float, wait: Callable[[], object]) -> float:
    """Draws per second of work that makes ``draws`` at the call's place, called as long as ``seconds`` last."""
    work(0)
    wait()
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < seconds:
        calls += 1
        work(calls)
        wait()
    return calls * draws / (time.perf_counter() - start)


def draws_per_second(net: Sequential, kind: str, precision: str, backend: str, seconds: float, wait: Any) -> float:
    """Of `Energies.draw` in whole batches or groups; NaN where it does not fit."""
    measure = Energies(weights=kind, backend=backend, precision=precision).settled(net)
    size = measure.together(net)
    try:
        measure.require_memory(net, size, 1)
    except MemoryError:
        return float("nan")

    def batch(place: int) -> object:
        return measure.draw(net, 0, range(place * size, (place + 1) * size))

    return rate(batch, size, seconds, wait)


def limits(xp: Any, precision: str, seconds: float, wait: Callable[[], object]) -> str:
    """Normals and operations of large matrix products per second on the device."""
    normals = GroupNormals(xp, 0, "benchmark", range(1), precision)
    square = normals.drawn((SIDE, SIDE), 1.0)
    filled = rate(lambda _: normals.drawn((NORMALS,), 1.0), NORMALS, seconds, wait)
    multiplied = rate(lambda _: square @ square, 2 * SIDE**3, seconds, wait)
    return f"{precision}: {filled / 1e9:.2f} thousand million normals/s, {multiplied / 1e12:.1f} TFLOP/s of products"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    seconds = parser.parse_args().seconds
    try:
        xp = arrays_of("cupy", PRECISIONS[0]).xp
    except (ModuleNotFoundError, OSError) as missing:
        print(f"skipped: {missing}")
        return 0
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    described = device_described("cupy")
    print(f"{described['device']}, CuPy {described['cupy']}, against one processor")
    wait = xp.cuda.Device().synchronize
    for precision in PRECISIONS:
        print(limits(xp, precision, seconds, wait))
    heading = f"{'net':>32s}  weights  precision  weights/draw"
    print(f"\n{heading}   CPU draws/s   device draws/s   ratio   normals/s on the device")
    with threadpool_limits(1):
        for name, net in NETS.items():
            elements = sum(prod(shape) for shape in net.weight_shapes)
            for kind in ("dense", "lazy"):
                for precision in PRECISIONS:
                    here = draws_per_second(net, kind, precision, "numpy", seconds, lambda: None)
                    there = draws_per_second(net, kind, precision, "cupy", seconds, wait)
                    filled = f"{elements * there:.2e}" if kind == "dense" else ""
                    print(
                        f"{name:>32s}  {kind:>7s}  {precision:>9s}  {elements:12.2e}   {here:11.2f}   {there:14.2f}   "
                        f"{there / here:5.0f}   {filled}",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
