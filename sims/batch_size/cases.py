"""The nets and batches that `sims.batch_size` draws, case by case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from meanfield.nets import MLP, Batch, ConvNet

if TYPE_CHECKING:
    import argparse

    from meanfield.nets import Sequential

# Grid of the convolutional nets on white noise.
NOISE_GRID = (8,)
# The largest batches that nets with sites take; each sample has a grid of them.
LARGEST_NOISE, LARGEST_IMAGES = 16, 8


@dataclass(frozen=True, kw_only=True)
class Case:
    """One net over a ladder of batch sizes."""

    name: str
    net: Sequential
    batch: Batch
    largest: int
    images: Any = None

    def at(self, samples: int) -> Sequential:
        return replace(self.net, inputs=samples)  # type: ignore[type-var]

    def inputs(self, samples: int) -> Any:
        return None if self.images is None else self.images[:samples]


def cases(options: argparse.Namespace, images: Any) -> list[Case]:
    """All cases of a run: nets of one site, on a ring, and on images."""
    shared = {"depth": options.depth, "outputs": options.outputs}
    relu = MLP(width=options.width, **shared)
    found = []
    for rho in (0.0, 0.5):
        for words, labels in (("mean 0", {}), ("mean 1", {"label_mean": 1.0}), ("teacher", {"labels": "teacher"})):
            found.append((f"MLP, rho {rho:g}, labels {words}", relu, Batch(input_correlation=rho, **labels)))
    found += [
        ("MLP, rho 0.9, labels mean 0", relu, Batch(input_correlation=0.9)),
        ("MLP, rho 0, labels mean 0, muP head", replace(relu, head="mup"), Batch()),
        ("linear MLP, rho 0, labels mean 0", replace(relu, activation="linear"), Batch()),
    ]
    dense = [Case(name=name, net=net, batch=batch, largest=max(options.batches)) for name, net, batch in found]
    return dense + _convolutional(options, images)


def _convolutional(options: argparse.Namespace, images: Any) -> list[Case]:
    shared: dict[str, Any] = {"depth": options.depth, "outputs": options.outputs, "readout": "convolution"}
    ring = ConvNet(channels=options.channels, grid=NOISE_GRID, **shared)
    drawn = [
        ("ConvNet, rho 0, labels mean 0", Batch()),
        ("ConvNet, rho 0.5, labels mean 1", Batch(input_correlation=0.5, label_mean=1.0)),
        ("ConvNet, rho 0.5, labels teacher", Batch(input_correlation=0.5, labels="teacher")),
    ]
    found = [Case(name=name, net=ring, batch=batch, largest=LARGEST_NOISE) for name, batch in drawn]
    plane = ConvNet(
        channels=options.channels, grid=options.image_grid, kernel=(3, 3), input_channels=images.shape[1], **shared
    )
    seen = {"net": plane, "largest": min(LARGEST_IMAGES, len(images)), "images": images}
    shown = "photo" if options.images == "photo" else "images"
    for words, batch in (("mean 0", Batch()), ("teacher", Batch(labels="teacher"))):
        found.append(Case(name=f"ConvNet, {shown}, labels {words}", batch=batch, **seen))
    return found
