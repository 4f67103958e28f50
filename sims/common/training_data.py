"""Labelled real data in the layout and size that a net takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield import patch_tokens, with_batch_normalisation, with_dropout
from meanfield.common import Array, require_choice, require_count, stream
from meanfield.nets import MLP, ConvNet, Net, ResidualConvNet, ResidualMLP, TiedLoop, Transformer
from sims.common.images import (
    CHARACTERS,
    IMAGE_SETS,
    MOST_SIDES,
    TEXT,
    DataShape,
    file_samples,
    labelled_images,
    text_windows,
)

# Windows of text, where a number is not asked for.
TEXT_SAMPLES = 5000
# The most layers, blocks or steps of a net that is trained: beyond, one step takes minutes.
MOST_TRAINED = 10_000


def training_data(
    source: str, net: Net, *, samples: int | None = None, seed: int = 0
) -> tuple[Array, NDArray[np.int64]]:
    """Inputs (samples, channels, *grid) and labels for `meanfield.train`, as this net takes them.

    Labels are (samples,), or of text, for a net with outputs at every token, (samples, tokens).

    Images are averaged over blocks of pixels down to the size that the net asks for. A net on a grid of two axes takes
    them as they are. A net on one axis of T sites, such as a Transformer, takes T patches embedded by
    `meanfield.patch_tokens`. A net without a grid takes all pixels in a row, where it has as many input channels; a
    stream that begins at the input, such as a loop's, takes the whole image embedded as one patch. All values of a
    channel (of vectors: all values) have mean 0 and variance 1 over the whole set. Characters of text are one-hot
    tokens of a net with a vocabulary; otherwise each is embedded by a Gaussian vector of mean square 1. A label is the
    number of the next character: behind a window, or, of a net with outputs at every token, behind every character.

    Args:
        source: "digits" (1,797 of 8 x 8), "mnist" (5,000 of 28 x 28), "text" (Python's own documentation), or a .npz
            or .nc file with ``inputs`` and ``labels``. Inputs of a file have the net's own shape (samples, channels,
            *grid), or are images (samples, height, width) or (samples, channels, height, width).
        net: what is trained; its number of samples counts for nothing.
        samples: so many of the set, in random order; all of them if left out, of text 5,000 windows.
        seed: of the order, of the windows of text, and of embeddings.

    Raises:
        ModuleNotFoundError: the package of the images is not installed (extra ``data``).
        ValueError: an unknown source, inputs that the net cannot take, labels that it has no outputs for, more samples
            than there are.
    """
    count = None if samples is None else require_count("samples", samples, why="samples of the data")
    if source == TEXT:
        inputs, labels = _text(net, count or TEXT_SAMPLES, seed)
    elif net.input_law == "tokens":
        raise ValueError(f"the net has a vocabulary, and {source} holds no tokens: take text, or a net without one")
    else:
        values, labels = labelled_images(source) if source in IMAGE_SETS else file_samples(source)
        chosen = stream(seed, "training samples", 0).permutation(len(labels))[:count]
        if count is not None and len(chosen) < count:
            raise ValueError(f"{source} holds {len(labels)} samples and {count} are asked for")
        inputs, labels = _laid_out(values, net, source, seed, chosen), labels[chosen]
    _require_outputs(net, labels, source)
    return inputs, labels


# Inputs of all samples, and their targets.
InputsAndTargets = tuple[Any, Any]


def shared_training_data(
    source: str, nets: Sequence[Net], *, samples: int | None = None, seed: int = 0
) -> list[tuple[Array, NDArray[np.int64]]]:
    """`training_data` of each of several nets; those that take and give arrays of the same shapes share theirs."""
    shapes = [(net.input_law, net.input_shape, net.output_shape) for net in nets]
    made = {
        shape: training_data(source, net, samples=samples, seed=seed)
        for shape, net in dict(zip(shapes, nets, strict=True)).items()
    }
    return [made[shape] for shape in shapes]


def _laid_out(values: Array, net: Net, source: str, seed: int, chosen: NDArray[np.int64]) -> Array:
    """The chosen samples (samples, channels, *grid) of inputs of a file, or of images, standardised over all."""
    if values.shape[1:] == (net.first_channels, *net.grid):
        return _standardised(values, source)[chosen]
    if values.ndim not in (3, 4):
        raise ValueError(
            f"inputs in {source} have shape {values.shape}; this net takes (samples, "
            f"{', '.join(map(str, (net.first_channels, *net.grid)))}), or images (samples, height, width) or (samples, "
            "channels, height, width)"
        )
    images = values.reshape(len(values), -1, *values.shape[-2:])
    if len(net.grid) == 2:
        return _on_grid(images, net, source)[chosen]
    if len(net.grid) == 1:
        sides = _patch_sides(images.shape[2:], net.grid[0], source)
        return patch_tokens(_standardised(images, source)[chosen], patch=sides, width=net.first_channels, seed=seed)
    return _as_vectors(images, net, source, seed, chosen)


def _on_grid(images: Array, net: Net, source: str) -> Array:
    channels, *size = images.shape[1:]
    if channels != net.first_channels or any(have % want for have, want in zip(size, net.grid, strict=True)):
        raise ValueError(
            f"images of {source} have {channels} channel(s) of {size[0]} x {size[1]} pixels, and the net takes "
            f"{net.first_channels} on a grid {net.grid}: give it input_channels={channels} (a residual net a stem, "
            "too) and a grid whose sides divide those of the images"
        )
    return _standardised(_averaged(images, (net.grid[0], net.grid[1])), source)


def _as_vectors(images: Array, net: Net, source: str, seed: int, chosen: NDArray[np.int64]) -> Array:
    """All pixels in a row, or, for a stream that begins at the input, the image as one patch: (samples, channels)."""
    channels, height, width = images.shape[1:]
    shared = [factor for factor in range(1, height + 1) if height % factor == 0 and width % factor == 0]
    sizes = {channels * height * width // factor**2: (height // factor, width // factor) for factor in shared}
    if net.first_channels in sizes:
        averaged = _standardised(_averaged(images, sizes[net.first_channels]), source)[chosen]
        return averaged.reshape(len(averaged), -1)
    if net.units[0].skip != 0:
        raise ValueError(
            f"the net takes vectors of {net.first_channels} values; images of {source} give "
            f"{', '.join(map(str, sorted(sizes)))}: set the net's input_width to one of these"
        )
    whole = _standardised(images, source)[chosen]
    return patch_tokens(whole, patch=(height, width), width=net.first_channels, seed=seed)[:, :, 0]


def _averaged(images: Array, size: tuple[int, int]) -> Array:
    """Means over blocks of pixels, so many blocks along each axis."""
    samples, channels, height, width = images.shape
    blocks = images.reshape(samples, channels, size[0], height // size[0], size[1], width // size[1])
    return np.asarray(blocks.mean(axis=(3, 5)))


def _standardised(values: Array, source: str) -> Array:
    """Mean 0 and variance 1 of every channel over samples and sites; of vectors, of all values together."""
    axes = (0, 1) if values.ndim == 2 else (0, *range(2, values.ndim))
    spread = values.std(axis=axes, keepdims=True)
    if (constant := spread <= 1e-9 * np.abs(values).max(axis=axes, keepdims=True)).any():
        raise ValueError(f"channel {constant.ravel().argmax()} of {source} is constant; leave it out")
    return np.asarray((values - values.mean(axis=axes, keepdims=True)) / spread)


def _patch_sides(size: tuple[int, ...], tokens: int, source: str) -> tuple[int, int]:
    """Height and width of a patch, such that an image has so many, as nearly as many in a column as in a row."""
    height, width = size
    for rows in range(isqrt(tokens), 0, -1):
        if tokens % rows == 0 and height % rows == 0 and width % (tokens // rows) == 0:
            return height // rows, width // (tokens // rows)
    raise ValueError(
        f"the net takes {tokens} tokens, and images of {source}, of {height} x {width} pixels, cannot be cut into so "
        f"many equal patches; give tokens such as {height} or {height * width}"
    )


def _text(net: Net, samples: int, seed: int) -> tuple[Array, NDArray[np.int64]]:
    if len(net.grid) != 1:
        raise ValueError(
            f"text has one axis, its characters, and the net has {len(net.grid)}; give a Transformer or a ConvNet on "
            "one axis"
        )
    windows, following = text_windows(prod(net.grid), samples, seed)
    labels = np.column_stack([windows[:, 1:], following]) if net.output_grid else following
    return np.ascontiguousarray(_characters(net, seed)[:, windows].swapaxes(0, 1)), labels


def _characters(net: Net, seed: int) -> Array:
    """What every character is to the net, (channels, characters): one-hot, or embedded."""
    if net.input_law == "tokens":
        if net.first_channels < len(CHARACTERS):
            raise ValueError(
                f"text has {len(CHARACTERS)} characters, and the net a vocabulary of {net.first_channels} tokens: give "
                f"vocabulary={len(CHARACTERS)}"
            )
        return np.eye(net.first_channels)[:, : len(CHARACTERS)]
    vectors = stream(seed, "character embedding", 0).standard_normal((net.first_channels, len(CHARACTERS)))
    return np.asarray(vectors / np.sqrt(np.square(vectors).mean(axis=0)))


def _require_outputs(net: Net, labels: NDArray[np.int64], source: str) -> None:
    """Raise ValueError unless the net has one output for every class, at a site for every label of a sample."""
    classes = len(CHARACTERS) if source == TEXT else int(labels.max()) + 1
    _, outputs, *sites = net.output_shape
    if labels.shape[1:] != tuple(sites):
        raise ValueError(f"labels of {source} are one a sample, and the net has outputs on a grid; pool its readout")
    if outputs < classes:
        raise ValueError(
            f"labels of {source} are 0 .. {classes - 1}, and the net has {outputs} outputs: give {classes}"
        )


# The share of values that families with dropout drop; Zhang et al. 2026, table 3, do not say theirs.
DROPPED = 0.1


def _mlp(depth: int, width: int, data: DataShape, **options: Any) -> MLP:
    return MLP(depth=depth, width=width, input_width=data.values, outputs=data.classes, head="fan_in", **options)


def _residual_mlp(depth: int, width: int, data: DataShape, **options: Any) -> ResidualMLP:
    shared: dict[str, Any] = {"input_width": data.values, "stem": 1, "head": "fan_in"}
    return ResidualMLP(depth=depth, width=width, outputs=data.classes, **shared, **options)


def _residual_mlp_without_stem(depth: int, width: int, data: DataShape, **options: Any) -> ResidualMLP:
    """Its first block reads the inputs, so that it is as wide as these are many."""
    return ResidualMLP(depth=depth, width=data.values, outputs=data.classes, head="fan_in", **options)


def _conv(depth: int, width: int, data: DataShape, kernel: int = 3, **options: Any) -> ConvNet:
    lattice: dict[str, Any] = {"grid": data.sides, "kernel": (kernel, kernel), "input_channels": data.channels}
    return ConvNet(depth=depth, channels=width, outputs=data.classes, head="fan_in", **lattice, **options)


def _residual_conv(depth: int, width: int, data: DataShape, **options: Any) -> ResidualConvNet:
    lattice: dict[str, Any] = {"grid": data.sides, "kernel": (3, 3), "input_channels": data.channels, "stem": 1}
    return ResidualConvNet(depth=depth, channels=width, outputs=data.classes, head="fan_in", **lattice, **options)


def _transformer(depth: int, width: int, data: DataShape, **options: Any) -> Transformer:
    shared: dict[str, Any] = {"tokens": data.tokens, "heads": max(1, width // 16), "head": "fan_in"}
    return Transformer(depth=depth, width=width, outputs=data.classes, **shared, **options)


def _loop(depth: int, width: int, data: DataShape, alpha: str) -> TiedLoop:
    return TiedLoop(depth=depth, width=width, alpha=alpha)


Builder = Callable[..., Net]


def _normalised(build: Builder) -> Builder:
    return lambda *sizes: with_batch_normalisation(build(*sizes))


def _dropped(build: Builder) -> Builder:
    return lambda *sizes: with_dropout(build(*sizes), DROPPED)


# Depth counts layers, blocks of residual nets and Transformers, steps of loops. "init": branches of variance 1/K;
# "multiplier": branches times K^(-1/2), for blocks of one layer, "linear": times 1/K; "k=2", "k=3": blocks of as many
# layers under "init", above a layer, the stem, that reads the inputs.
FAMILIES: dict[str, Builder] = {
    "mlp": _mlp,
    "mlp gelu": partial(_mlp, activation="gelu"),
    "cnn": _conv,
    "cnn zero": partial(_conv, padding="zero"),
    "cnn 4x4": partial(_conv, kernel=4),
    "cnn 5x5": partial(_conv, kernel=5, padding="zero"),
    "cnn gelu": partial(_conv, activation="gelu"),
    "residual mlp init": _residual_mlp,
    "residual mlp multiplier": partial(_residual_mlp, scaling="multiplier_sqrt"),
    "residual mlp linear": partial(_residual_mlp, scaling="multiplier_linear"),
    "residual mlp k=2": partial(_residual_mlp, block_depth=2),
    "residual mlp k=3": partial(_residual_mlp, block_depth=3),
    "residual mlp k=3 without stem": partial(_residual_mlp_without_stem, block_depth=3),
    "residual cnn init": _residual_conv,
    "residual cnn multiplier": partial(_residual_conv, scaling="multiplier_sqrt"),
    "residual cnn linear": partial(_residual_conv, scaling="multiplier_linear"),
    "residual cnn k=2": partial(_residual_conv, block_depth=2),
    "residual cnn k=3": partial(_residual_conv, block_depth=3),
    "cnn batch norm": _normalised(_conv),
    "cnn dropout": _dropped(_conv),
    "residual cnn init batch norm": _normalised(_residual_conv),
    "residual cnn init dropout": _dropped(_residual_conv),
    "transformer pre": partial(_transformer, norm="pre"),
    "transformer post": partial(_transformer, norm="post"),
    "loop linear": partial(_loop, alpha="linear"),
    "loop sqrt": partial(_loop, alpha="sqrt"),
}
# How names of Transformers begin, and those of nets whose width counts channels.
TRANSFORMER = "transformer"
OF_CHANNELS = ("cnn", "residual cnn", TRANSFORMER)


def trained_net(family: str, depth: int, width: int, source: str, most_sides: int = MOST_SIDES) -> Net:
    """The net of this family for the data of a source: "digits", "mnist", "text" or a file with inputs and labels.

    Width counts channels of convolutional nets. Input channels, grid, tokens and classes are those of the data
    (`DataShape`), with at most so many sites along a side. All have a head of variance 1/fan-in, pooled over sites; a
    loop's outputs are its whole last stream.

    Raises:
        ValueError: an unknown family, more depth than is trained, text or vectors for one that takes images, or a file
            without labelled inputs.
    """
    require_choice("--families", family, FAMILIES)
    if depth > MOST_TRAINED:
        raise ValueError(f"{family!r} has depth {depth:,}; nets are trained up to {MOST_TRAINED:,}: give less depth")
    if source == TEXT and not family.startswith(TRANSFORMER):
        raise ValueError(f"text is a row of characters, which Transformers take; {family!r} takes images")
    data = DataShape.of(source, most_sides)
    if source != TEXT and len(data.sides) == 1 and not family.startswith(("mlp", "residual mlp", "loop")):
        raise ValueError(f"inputs in {source} are vectors, which 'mlp' and others take; {family!r} takes images")
    return FAMILIES[family](depth, width, data)
