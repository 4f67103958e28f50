"""How fast the mean field over all pairs of sites runs, against what this machine's memory allows in the same run.

    python benchmarks/mean_field.py [--grid 32 32 --kernel 3 3 --depth 64]

The least that a layer must do is to read and to write its three arrays over pairs of sites, c, K and V. The limit is
the time of that at the rate at which one thread copies an array of 256 MiB. Beside it the stationary case, the same
grid with circular padding, where one number per displacement is enough.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

import meanfield as mf

COPIED = 2**25
STATE_ARRAYS = 3


def timed(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def copies(source: np.ndarray, target: np.ndarray, count: int) -> list[float]:
    """Bytes read and written per second, copy by copy."""
    return [2 * source.nbytes / timed(lambda: np.copyto(target, source)) for _ in range(count)]


def peak() -> float:
    """Most memory that this process has held so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=int, nargs="+", default=[32, 32])
    parser.add_argument("--kernel", type=int, nargs="+", default=[3, 3])
    parser.add_argument("--depth", type=int, default=64)
    options = parser.parse_args()
    net = mf.ConvNet(
        depth=options.depth,
        channels=64,
        grid=options.grid,
        kernel=options.kernel,
        padding="zero",
        readout="convolution",
    )
    circular = replace(net, padding="circular")
    with threadpool_limits(1):
        mf.predict(replace(net, depth=1, grid=(2,) * len(net.grid)), level="mean_field")
        before = peak()
        zero = timed(lambda: mf.predict(net, level="mean_field"))
        held = peak()
        stationary = min(timed(lambda: mf.predict(circular, level="mean_field")) for _ in range(3))
        source, target = np.ones(COPIED), np.ones(COPIED)
        rate = float(np.median(copies(source, target, 15)))
    limit = 2 * STATE_ARRAYS * 8 * net.sites**2 * net.depth / rate
    print(net)
    print(f"zero padding        {zero:10.2f} s   ({zero / net.depth * 1e3:.0f} ms a layer)")
    print(f"memory limit        {limit:10.2f} s   ({rate / 1e9:.1f} GB/s read and written)")
    print(f"time / limit        {zero / limit:10.1f}")
    print(
        f"peak memory         {held:10.2f} GiB ({before:.2f} before; one array over pairs {net.sites**2 / 2**27:.3f})"
    )
    print(f"circular padding    {stationary * 1e3:10.2f} ms")


if __name__ == "__main__":
    main()
