"""Images as tokens: patches of pixels, each embedded in the width of a Transformer."""

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.seeds import checked_seed, stream
from meanfield.common.validation import real_array, require_count, require_counts


def patch_tokens(images: ArrayLike, *, patch: int | tuple[int, int], width: int, seed: int = 0) -> Array:
    """Cut images into patches and embed each as a token: inputs of a `meanfield.Transformer` in place of white ones.

        token = s E x,   E_ij ~ N(0, 1 / pixels of a patch)

    with x the pixels of a patch over all channels. One matrix E, which the seed fixes, serves all patches of all
    images, so that tokens are as correlated as patches are; s, one number for each image, gives the image's tokens a
    mean square of 1. Give standardised images (mean 0): a mean over pixels would be shared by all tokens.

    Args:
        images: (samples, channels, height, width).
        patch: sides of a patch, which divide those of the image; one number for both.
        width: n, channels of a token.
        seed: of the embedding.

    Returns:
        (samples, n, tokens), the patches of an image row by row. Dimensionless.

    Raises:
        TypeError, ValueError: images of another shape, or with values that are not finite real numbers, an image that
            is 0 everywhere, patches that do not divide the image, counts that are not whole or below 1, a seed that
            is no whole number or negative.

    Source: Zhang et al. 2026, section 4 (the embedding of ViT, without positions).
    """
    pixels = real_array("images", images)
    if pixels.ndim != 4 or 0 in pixels.shape:
        raise ValueError(f"images have shape {pixels.shape}; give (samples, channels, height, width), none of them 0")
    if not np.isfinite(pixels).all():
        raise ValueError("images hold NaN or infinite values; remove or replace them first")
    if (blank := ~pixels.any(axis=(1, 2, 3))).any():
        raise ValueError(f"image {blank.argmax() + 1} is 0 everywhere, and gives no direction: leave it out")
    channels = require_count("width", width, why="channels of a token")
    largest = np.abs(pixels).max(axis=(1, 2, 3), keepdims=True)
    patches = _patches(pixels / largest, _sides(patch, pixels.shape[2:]))
    embedding = stream(checked_seed(seed), "patch embedding", 0).standard_normal((channels, patches.shape[1]))
    tokens = embedding @ patches
    return np.asarray(tokens / np.sqrt(np.square(tokens).mean(axis=(1, 2), keepdims=True)))


def _sides(patch: int | tuple[int, int], image: tuple[int, ...]) -> tuple[int, int]:
    """Height and width of a patch, checked against those of the image."""
    sides = require_counts("patch", patch, why="sides of a patch")
    height, width = sides * 2 if len(sides) == 1 else sides if len(sides) == 2 else (0, 0)
    if not height or image[0] % height or image[1] % width:
        raise ValueError(
            f"patch is {patch!r} for images of {image[0]} x {image[1]} pixels; give one or two sides that divide those "
            "of the image, so that every pixel belongs to one patch, or crop the image"
        )
    return height, width


def _patches(pixels: Array, sides: tuple[int, int]) -> Array:
    """(samples, channels, H, W) -> (samples, pixels of a patch, patches), channel by channel and row by row."""
    samples, channels, *image = pixels.shape
    rows, columns = (length // side for length, side in zip(image, sides, strict=True))
    cut = pixels.reshape(samples, channels, rows, sides[0], columns, sides[1])
    return cut.transpose(0, 1, 3, 5, 2, 4).reshape(samples, -1, rows * columns)
