"""What single precision changes: the same draws in float32 and in float64, whose weights, inputs and labels it rounds.

    python benchmarks/precision.py [--draws 256]

For every net the relative difference of a draw's update energy, float32 over float64 less 1: its mean over draws with
its standard error, at the last layer and at the layer where it stands out most, and its root mean square; in units of
1e-6.
"""

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from meanfield.nets.layered import MLP, ConvNet, Sequential
from meanfield.nets.residual import ResidualMLP
from meanfield.simulation.cost import chosen_weights, draws_per_batch
from meanfield.simulation.measures.energies import Energies

CONVOLUTION = {"grid": (8, 8), "kernel": (3, 3), "readout": "convolution"}


def nets() -> dict[str, Sequential]:
    """Fully-connected nets by depth and width, other families at one size."""
    plain = {
        f"MLP {width} x {depth}": MLP(depth=depth, width=width) for width in (64, 256, 1024) for depth in (4, 16, 64)
    }
    return plain | {
        "MLP 256 x 16, gelu": MLP(depth=16, width=256, activation="gelu"),
        "MLP 256 x 16, 16 inputs": MLP(depth=16, width=256, inputs=16),
        "residual MLP 1024 x 64": ResidualMLP(depth=64, width=1024),
        "ConvNet 64 x 8, 8 x 8 sites": ConvNet(depth=8, channels=64, **CONVOLUTION),
        "ConvNet 128 x 32, 4 sites": ConvNet(depth=32, channels=128, **CONVOLUTION | {"grid": (4,), "kernel": (3,)}),
    }


def relative_differences(net: Sequential, draws: int) -> np.ndarray:
    """Update energy in float32 over that in float64, less 1, of every draw and layer: (D, L)."""
    kind = chosen_weights(net, "auto")
    size, energies = draws_per_batch(net, kind), {}
    for precision in ("float64", "float32"):
        batches = [
            Energies(weights=kind, precision=precision).draw(net, 0, range(start, min(start + size, draws)))
            for start in range(0, draws, size)
        ]
        energies[precision] = np.concatenate([batch["label_term"] + batch["output_term"] for batch in batches])
    return energies["float32"] / energies["float64"] - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=256)
    draws = parser.parse_args().draws
    print(f"{'1e-6':>32s}   last layer      most significant layer   root mean square, largest")
    with threadpool_limits(1):
        for name, net in nets().items():
            differences = 1e6 * relative_differences(net, draws)
            mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(draws)
            most = int(np.argmax(np.abs(mean / error)))
            last, worst = (f"{mean[layer]:7.3f} +- {error[layer]:.3f}" for layer in (-1, most))
            spread = np.sqrt(np.square(differences).mean(axis=0)).max()
            print(f"{name:>32s}   {last}   {worst} (l = {most + 1})   {spread:.2f}", flush=True)


if __name__ == "__main__":
    main()
