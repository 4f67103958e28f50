"""Images as inputs: crops of the photograph that ships with matplotlib, or a file of the user's."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from math import isqrt
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from PIL import Image

from meanfield import Transformer, patch_tokens
from meanfield.common import UNREADABLE, Array, stream

PHOTO = "grace_hopper.jpg"
ATTEMPTS_PER_CROP = 100
# The first bytes of NumPy's files, and what writes them.
NPY, NPZ = b"\x93NUMPY", b"PK"
WRITERS = {NPY: "numpy.save", NPZ: "numpy.savez"}
ROUNDING = 1e-9
SMALLEST = 1e-100


class GridUnfilled(ValueError):
    """Images from which no array of the grid's size can be taken; ``held`` says what they are."""

    def __init__(self, held: str, lacking: str) -> None:
        super().__init__(held + lacking)
        self.held = held


def photo_crops(grid: tuple[int, ...], channels: int, samples: int, seed: int) -> Array:
    """Random crops of the sample photograph at the grid's size, standardised: (samples, channels, *grid).

    Three channels are RGB, one is grey; a 1D grid takes pieces of single rows. Crops without contrast in some
    channel are drawn again.
    """
    pixels = _photo(channels)
    window = grid if len(grid) == 2 else (1, *grid)
    limits = pixels.shape[1:]
    if any(size > limit for size, limit in zip(window, limits, strict=True)):
        held = f"the photograph has {limits[0]} x {limits[1]} pixels"
        raise GridUnfilled(held, f"; grid {grid} does not fit in it")
    generator = stream(seed, "photo crops", 0)
    crops: list[Array] = []
    for _ in range(ATTEMPTS_PER_CROP * samples):
        top, left = (generator.integers(limit - size + 1) for size, limit in zip(window, limits, strict=True))
        crop = pixels[:, top : top + window[0], left : left + window[1]].reshape(channels, *grid)
        if not _constant_channels(crop[None], len(grid)).any():
            crops.append(crop)
        if len(crops) == samples:
            return standardised(np.stack(crops), len(grid), "the photograph")
    raise ValueError(f"found no crop of size {grid} with contrast in every channel; enlarge the grid")


def images_from_file(name: str, grid: tuple[int, ...], samples: int | None, channels: int | None) -> Array:
    """Images of a .npy, .npz or .nc file, standardised: (samples, channels, *grid).

    Accepted layouts: grid; channels, grid; samples, channels, grid; and the last two with channels last. Of an array
    (n, grid) the n are channels of one sample, unless ``samples`` = n or ``channels`` = 1 says that they are grey
    samples. One of several arrays in a file is named as FILE::ARRAY.
    """
    values = np.asarray(read_array(name))
    if values.dtype.kind not in "biuf" or values.size == 0:
        raise ValueError(f"{name} holds {values.size} values of type {values.dtype}; images are real numbers")
    images = _channels_first(values.astype(float), grid, name)
    if values.shape[1:] == grid and len(values) > 1 and (samples == len(values) or channels == 1):
        images = images.swapaxes(0, 1)
    for option, given, held in (("--samples", samples, len(images)), ("--input-channels", channels, images.shape[1])):
        if given not in (None, held):
            raise ValueError(f"{option} is {given}, but {name}, of shape {values.shape}, holds {held}")
    if not np.isfinite(images).all():
        raise ValueError(f"{name} holds NaN or infinite values; remove or fill them first")
    return standardised(images, len(grid), name)


def image_tokens(source: str, net: Transformer, patch: int, seed: int) -> Array:
    """Tokens of square patches, as many as the net takes: (samples, width, tokens), embedded by `patch_tokens`.

    Of random crops of the photograph (``source`` "photo", in colour) or of the images of a file, which have the net's
    number of samples. An image has r rows of T / r patches, r the largest divisor of T that is not above its root.

    Raises:
        ValueError: images of another size, by the options --tokens and --patch that ask for it.
    """
    rows = max(row for row in range(1, isqrt(net.tokens) + 1) if net.tokens % row == 0)
    grid = (rows * patch, net.tokens // rows * patch)
    try:
        photo = source == "photo"
        images = photo_crops(grid, 3, net.inputs, seed) if photo else images_from_file(source, grid, net.inputs, None)
    except GridUnfilled as error:
        raise ValueError(
            f"--tokens {net.tokens} and --patch {patch} need images of {grid[0]} x {grid[1]} pixels, but {error.held}; "
            "change these options, or give such images"
        ) from error
    return patch_tokens(images, patch=patch, width=net.width, seed=seed)


def standardised(images: Array, dimensions: int, name: str) -> Array:
    """Every channel of every sample to mean 0 and variance 1; ValueError if one is constant."""
    constant = _constant_channels(images, dimensions)
    if constant.any():
        sample, channel = np.argwhere(constant)[0]
        raise ValueError(
            f"channel {channel} of sample {sample} in {name} is constant and cannot be standardised; leave it out"
        )
    axes = tuple(range(-dimensions, 0))
    return np.asarray((images - images.mean(axis=axes, keepdims=True)) / images.std(axis=axes, keepdims=True))


def _constant_channels(images: Array, dimensions: int) -> NDArray[np.bool_]:
    """Which channels vary by no more than rounding, relative to their size."""
    flat = images.reshape(*images.shape[:-dimensions], -1)
    return np.asarray(flat.std(axis=-1) <= ROUNDING * np.maximum(np.abs(flat).max(axis=-1), SMALLEST))


def _photo(channels: int) -> Array:
    """The photograph as (channels, height, width)."""
    if channels not in (1, 3):
        raise ValueError(f"the photograph has 1 (grey) or 3 (RGB) channels, not {channels}; set --input-channels so")
    source = files("matplotlib").joinpath("mpl-data", "sample_data", PHOTO)
    with source.open("rb") as file, Image.open(file) as image:
        pixels = np.moveaxis(np.asarray(image, dtype=np.float64), -1, 0)
    return pixels if channels == 3 else pixels.mean(axis=0, keepdims=True)


def read_array(name: str) -> Any:
    """The named array of a file."""
    file, _, array = name.partition("::")
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{name!r} is neither a source of inputs that --help names nor a file that exists")
    readers = {".npy": _read_npy, ".npz": _read_npz, ".nc": _read_netcdf}
    if path.suffix not in readers:
        raise ValueError(f"{path} ends in {path.suffix!r}; images are read from {', '.join(readers)} files")
    return readers[path.suffix](path, array)


def _read_npy(path: Path, array: str) -> Any:
    if array:
        raise ValueError(f"{path} holds one unnamed array; leave out ::{array}")
    with _readable(path, NPY) as file:
        return np.load(file, allow_pickle=False)


def _read_npz(path: Path, array: str) -> Any:
    with _readable(path, NPZ) as file, np.load(file, allow_pickle=False) as stored:
        names = list(stored)
        arrays = {name: stored[name] for name in names if name == array or len(names) == 1}
    return arrays[_pick(names, array, path)]


@contextmanager
def _readable(path: Path, beginning: bytes) -> Iterator[BinaryIO]:
    """An open file; ValueError for one that does not begin so, or breaks off, or holds more than numbers."""
    with path.open("rb") as file:
        if file.read(len(beginning)) != beginning:
            raise ValueError(
                f"{path} is no {path.suffix} file, whatever its name says: its first bytes are others; write it with "
                f"{WRITERS[beginning]}"
            )
        file.seek(0)
        try:
            yield file
        except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            raise ValueError(f"{path} is not a readable {path.suffix} file: {error}") from error


def _read_netcdf(path: Path, array: str) -> Any:
    try:
        with xr.open_dataset(path, engine="netcdf4") as dataset:
            return dataset[_pick([str(key) for key in dataset.data_vars], array, path)].values
    except UNREADABLE as error:
        raise ValueError(f"{path} is not a readable NetCDF-4 file: {error}") from error


def _pick(names: list[str], wanted: str, path: Path) -> str:
    if wanted in names:
        return wanted
    if not wanted and len(names) == 1:
        return names[0]
    held = f"{path} holds the arrays {', '.join(names) or '(none)'}"
    raise ValueError(f"{held}; it has no {wanted!r}" if wanted else f"{held}; name one as {path}::NAME")


def _channels_first(values: Array, grid: tuple[int, ...], name: str) -> Array:
    """Bring one of the accepted layouts to (samples, channels, *grid)."""
    dimensions = len(grid)
    extra = values.ndim - dimensions
    if extra in (0, 1, 2) and values.shape[extra:] == grid:
        return values.reshape((1,) * (2 - extra) + values.shape)
    if extra in (1, 2) and values.shape[extra - 1 : -1] == grid:
        return np.moveaxis(values, -1, extra - 1).reshape(
            (1,) * (2 - extra) + values.shape[: extra - 1] + values.shape[-1:] + grid
        )
    layouts = f"{grid}, (channels, *grid) or (samples, channels, *grid), channels first or last"
    raise GridUnfilled(
        f"{name} has shape {values.shape}",
        f", which does not match the grid {grid}; give {layouts}, or change the grid",
    )
