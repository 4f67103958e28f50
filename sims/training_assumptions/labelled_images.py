"""Images of two classes with labels: handwritten digits of installed packages, or files of the user's."""

from typing import Any

import numpy as np

from meanfield.common import Array, stream
from sims.common.data.images import images_from_file, read_array, standardised
from sims.common.data.labelled import IMAGE_SETS, labelled_images

DIGITS = "digits"


def two_classes(
    source: str, labels: str | None, grid: tuple[int, ...] | None, classes: tuple[int, int], each: int, seed: int
) -> tuple[Array, Array]:
    """So many images of either class in random order, by turns: (d_0, 2 each) standardised, and +1, -1, +1, ..

    So every even number of first columns has as many of one class as of the other.

    Raises:
        ModuleNotFoundError: the package that ships the images is not installed.
        ValueError: files that do not fit, or too few images of a class.
    """
    images, names = _installed(source) if source in IMAGE_SETS else _files(source, labels, grid)
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


def _installed(source: str) -> tuple[Array, Any]:
    """Images of `IMAGE_SETS` as (samples, 1, height, width), standardised, and which digits they are."""
    images, digits = labelled_images(source)
    return standardised(images, 2, source), digits


def _files(source: str, labels: str | None, grid: tuple[int, ...] | None) -> tuple[Array, Any]:
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
