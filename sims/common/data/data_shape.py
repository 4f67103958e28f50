"""What nets that simulations train must take: input channels, sites, tokens and classes of labelled data."""

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, log, prod
from pathlib import Path

from sims.common.data.labelled import CHARACTERS, IMAGE_SETS, TEXT, file_samples

# Images are averaged to at most so many sites along a side; a Transformer takes so many tokens, or nearly.
MOST_SIDES, TOKENS = 7, 16
DIGITS = 10


@dataclass(frozen=True)
class DataShape:
    """Sizes of data for every family.

    Attributes:
        channels: of images.
        sides: sites along both sides of the grid, to which images are averaged: the most, up to 7, that one block
            size leaves on both, or all pixels where there is no such size. Of vectors and of text, their length.
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
    def of(cls, source: str) -> "DataShape":
        """Of "digits", "mnist", "text" or a file with inputs and labels.

        Raises:
            ValueError: what `file_samples` refuses.
        """
        if source == TEXT:
            return cls(1, (TOKENS,), TOKENS, len(CHARACTERS))
        if source in IMAGE_SETS:
            return cls.of_images(1, IMAGE_SETS[source][3], DIGITS)
        return _of_file(source, Path(source).stat().st_mtime if Path(source).is_file() else 0.0)

    @classmethod
    def of_images(cls, channels: int, size: tuple[int, int], classes: int) -> "DataShape":
        """Of images of so many pixels."""
        shared = [block for block in _divisors(gcd(*size)) if min(size) > block]
        block = next((block for block in shared if max(size) // block <= MOST_SIDES), 1)
        cuts = [(rows, columns) for rows in _divisors(size[0]) for columns in _divisors(size[1]) if rows <= columns]
        tokens = min(map(prod, cuts), key=lambda count: abs(log(count / TOKENS)))
        return cls(channels, (size[0] // block, size[1] // block), tokens, classes)


@lru_cache
def _of_file(source: str, changed: float) -> DataShape:
    """It is read again where the file has changed."""
    inputs, labels = file_samples(source)
    classes = int(labels.max()) + 1
    if inputs.ndim not in (3, 4):
        return DataShape(1, inputs.shape[1:], TOKENS, classes)
    height, width = inputs.shape[-2:]
    return DataShape.of_images(inputs.shape[1] if inputs.ndim == 4 else 1, (height, width), classes)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
