"""The nets and batches that `sims.batch_size` draws, case by case."""

import argparse
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from meanfield.nets import MLP, Batch, ConvNet, Sequential

# Grid of the convolutional nets on white noise.
NOISE_GRID = (8,)
# The largest batches that nets with sites take; each sample has a grid of them.
LARGEST_NOISE, LARGEST_IMAGES = 16, 8
# Correlations of inputs and labels of fully-connected nets.
CORRELATIONS = (0.0, 0.5)
LABELS: dict[str, dict[str, Any]] = {"mean 0": {}, "mean 1": {"label_mean": 1.0}, "teacher": {"labels": "teacher"}}


@dataclass(frozen=True)
class Case:
    """One net over batches of up to ``largest`` samples: fresh ones of a law, or the first of the ``images``."""

    name: str
    net: Sequential
    batch: Batch
    largest: int
    images: Any = None

    def at(self, samples: int) -> Sequential:
        return replace(self.net, inputs=samples)  # type: ignore[type-var]

    def inputs(self, samples: int) -> Any:
        return None if self.images is None else self.images[:samples]

    def describe(self) -> dict[str, Any]:
        """The fields, for the key of a run."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def cases(options: argparse.Namespace, largest: int, images: Any) -> list[Case]:
    """All cases of a run: nets of one site, on a ring, and on images."""
    relu = MLP(width=options.width, depth=options.depth, outputs=options.outputs)
    dense = [
        (f"MLP, rho {rho:g}, labels {words}", relu, Batch(input_correlation=rho, **LABELS[words]))
        for rho, words in product(CORRELATIONS, LABELS)
    ]
    dense += [
        ("MLP, rho 0.9, labels mean 0", relu, Batch(input_correlation=0.9)),
        ("MLP, rho 0, labels mean 0, muP head", replace(relu, head="mup"), Batch()),
        ("linear MLP, rho 0, labels mean 0", replace(relu, activation="linear"), Batch()),
    ]
    return [Case(name, net, batch, largest) for name, net, batch in dense] + _convolutional(options, images)


def _convolutional(options: argparse.Namespace, images: Any) -> list[Case]:
    shared: dict[str, Any] = {"depth": options.depth, "outputs": options.outputs, "channels": options.channels}
    shared["readout"] = "convolution"
    ring = ConvNet(grid=NOISE_GRID, **shared)
    noise = [(0.0, "mean 0"), (0.5, "mean 1"), (0.5, "teacher")]
    on_noise = [
        Case(
            f"ConvNet, rho {rho:g}, labels {words}", ring, Batch(input_correlation=rho, **LABELS[words]), LARGEST_NOISE
        )
        for rho, words in noise
    ]
    plane = ConvNet(grid=options.image_grid, kernel=(3, 3), input_channels=images.shape[1], **shared)
    kind, most = "photo" if options.images == "photo" else "images", min(LARGEST_IMAGES, len(images))
    return on_noise + [
        Case(f"ConvNet, {kind}, labels {words}", plane, Batch(**LABELS[words]), most, images)
        for words in ("mean 0", "teacher")
    ]
