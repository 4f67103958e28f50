"""What a net is given: how the samples of a batch correlate, inputs of a user's own, and images as tokens."""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.seeds import checked_seed, stream
from meanfield.common.validation import (
    Array,
    PremiseWarning,
    real_array,
    require_array,
    require_choice,
    require_count,
    require_counts,
    require_finite,
    settle,
)
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.net import Net
from meanfield.nets.staged import Staged

LABEL_LAWS = ("independent", "teacher")
LOSS_NAMES = ("squared", "cross_entropy")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The law of a batch's inputs and labels across its samples i = 1 .. B, the same for every draw.

    Inputs x_i = sqrt(1 - rho) v_i + sqrt(rho) u, with v_i and u white Gaussian (fully-connected nets then scale every
    sample as they do one alone). Labels at output coordinate t have variance 1 about a mean that all samples share:

        y_ti = m mu_t + g_ti,  mu ~ N(0, I) once per draw, so that E y_ti y_tj = m^2 + E g_ti g_tj.

    Args:
        input_correlation: rho, from 0 (independent samples) to 1 (B copies of one).
        labels: "independent", g ~ N(0, 1) for every sample and coordinate; or "teacher", a linear map of the input,
            g_ti = sum_c T_tc x_ci / sqrt(C_0) with T ~ N(0, 1) once per draw, at every output site a T of its own for
            the input at that site (under a pooled readout one T for the whole input): labels correlate as inputs do,
            E g_ti g_tj = x_i . x_j / C_0.
        label_mean: m, the root mean square of the mean over coordinates.

    Raises:
        TypeError, ValueError: a correlation outside 0 .. 1, a mean below 0, numbers that are not real, unknown labels.

    Source: Zhang et al. 2026, Lemma 4 and its remark, section B.2 (m = 0).

    Examples:
        >>> import meanfield as mf
        >>> alike = mf.Batch(input_correlation=0.5, labels="teacher")
        >>> measured = mf.simulate(mf.MLP(depth=2, width=32, inputs=4), draws=8, seed=0, batch=alike)
        >>> measured["label_term"].shape
        (2,)
    """

    input_correlation: float = 0.0
    labels: str = "independent"
    label_mean: float = 0.0

    def __post_init__(self) -> None:
        for name in ("input_correlation", "label_mean"):
            settle(self, **{name: require_finite(name, getattr(self, name), "a real number")})
        if not 0 <= self.input_correlation <= 1:
            raise ValueError(
                f"input_correlation is {self.input_correlation:g}; it must be from 0 to 1: samples share a part of "
                "their inputs, and more than two cannot all be anticorrelated"
            )
        if self.label_mean < 0:
            raise ValueError(
                f"label_mean is {self.label_mean:g}; it must be at least 0, as the sign of the mean is drawn"
            )
        require_choice("labels", self.labels, LABEL_LAWS)

    @property
    def has_plain_labels(self) -> bool:
        """Whether labels are independent of each other and of all else, with mean 0."""
        return self.labels == "independent" and self.label_mean == 0

    def describe(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


# Independent samples with independent labels of mean 0: what the papers assume.
PLAIN_BATCH = Batch()


def require_classes(loss: str, outputs: int) -> None:
    """Raise ValueError for the cross-entropy of a single output, whose one class has probability 1 whatever it is."""
    if loss == "cross_entropy" and outputs == 1:
        raise ValueError(
            "the net has one output, whose cross-entropy is 0 whatever the net does, without slope or curvature; give "
            "it outputs=2 or more, one for each class, or take loss 'squared'"
        )


def require_batch(batch: Batch, loss: str, inputs_given: bool, input_law: str = "white") -> None:
    """Raise TypeError or ValueError unless the loss exists, takes such labels, and inputs are given in one way.

    Tokens (`meanfield.nets.net.INPUT_LAWS`) are neither correlated nor taught by a linear map.
    """
    if not isinstance(batch, Batch):
        raise TypeError(f"batch is {batch!r}; it must be a Batch, the law of inputs and labels across samples")
    if inputs_given and batch.input_correlation:
        raise ValueError("inputs are given, so input_correlation has nothing to correlate: leave one of them out")
    if input_law == "tokens" and (batch.input_correlation or batch.labels == "teacher"):
        raise ValueError(
            f"{batch} asks for inputs that correlate as Gaussian ones do, or labels that are linear in them; this net "
            "takes one-hot tokens: leave input_correlation and labels out, or give inputs"
        )
    require_choice("loss", loss, LOSS_NAMES)
    if loss == "cross_entropy" and not batch.has_plain_labels:
        raise ValueError(
            f"loss 'cross_entropy' takes classes, drawn uniformly for every sample; {batch} asks for other labels: "
            "leave labels and label_mean out, or take loss 'squared'"
        )


# Fewer values under batch normalisation are -1, 0 or 1 whatever they were.
FEWEST_NORMALISED = 3
# Bounds on the largest feature of a batch: energies go as its fourth power, those of the outputs as its sixth, and
# their squares are summed over draws.
LARGEST_FEATURE, SMALLEST_FEATURE = 1e20, 1e-20


def checked_inputs(net: Net, inputs: ArrayLike | None) -> Array | None:
    """A given batch as floats, (samples, channels, *grid), or None.

    Raises:
        TypeError, ValueError: values that are not finite real numbers, another shape, or a batch that is 0 at the first
            layer or of a size whose energies leave the range of floats.
    """
    if inputs is None:
        return None
    batch = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
    read, where = batch, ""
    if isinstance(net, Sequential | Staged):
        read, where = net.sigma.function(batch), f" after the activation {net.activation!r}"
    if not read.any():
        raise ValueError(
            f"inputs are 0 everywhere{where}, so that no layer sees anything and no step moves anything: eta* would be "
            "infinite; give others"
        )
    _require_size(read, where)
    require_allowed(net, batch)
    return batch


def checked_start(net: Net, inputs: ArrayLike | None) -> Array | None:
    """A given h_0 as floats, (width,) of a single vector, or None; raises as `checked_inputs` does."""
    if inputs is None:
        return None
    shape = (net.first_channels,) if net.inputs == 1 and not net.grid else net.input_shape
    start = require_array("inputs", inputs, shape, "one start for all draws, (width,)")
    if not start.any():
        raise ValueError("inputs is zero everywhere; a loop leaves a stream of zeros as it is: give another start")
    _require_size(start, "")
    require_allowed(net, start.reshape(net.input_shape))
    return start


def require_allowed(net: Net, batch: Array) -> None:
    """Raise ValueError for inputs that the net's first map does not take.

    Tokens are one-hot, and a normalisation does not divide by the size of a sample at a site that is 0.
    """
    if net.input_law == "tokens":
        _require_one_hot(batch)
    if why := net.units[0].maps[0].inputs_refusal(batch):
        raise ValueError(why)


def require_normalisable(net: Net) -> None:
    """Raise ValueError where batch normalisation leaves nothing of a net's own batch, and warn where it leaves signs.

    One value of a channel is its own mean. Two values are as far from it on either side: what a step changes goes with
    epsilon, and rare draws, whose values all but meet, make its mean.
    """
    if not net.couples_samples or (values := net.inputs * net.sites) >= FEWEST_NORMALISED:
        return
    given = (
        f"batch normalisation over {values} value(s) of a channel, {net.inputs} sample(s) times {net.sites} site(s),"
    )
    remedy = f"give inputs={-(-FEWEST_NORMALISED // net.sites)} or more"
    if values == 1:
        raise ValueError(f"{given} leaves 0, as a value is its own mean, and no step moves it; {remedy}")
    why = "what a step changes is of the order of epsilon but in rare draws, which make the mean"
    warnings.warn(f"{given} leaves signs: {why}; {remedy}", PremiseWarning, stacklevel=2)


def _require_one_hot(batch: Array) -> None:
    bad = (np.count_nonzero(batch, axis=1) != 1) | (batch.sum(axis=1) != 1)
    if bad.any():
        sample, token = np.argwhere(bad)[0]
        raise ValueError(
            f"inputs are not one-hot in sample {sample + 1} at token {token + 1}; a net with a vocabulary takes "
            f"(samples, {batch.shape[1]}, tokens), 1 in the channel of a token's number and 0 in the others: make them "
            f"of numbers (samples, tokens) by numpy.eye({batch.shape[1]})[numbers].swapaxes(1, 2)"
        )


def _require_size(values: Array, where: str) -> None:
    if not SMALLEST_FEATURE <= (size := float(np.abs(values).max())) <= LARGEST_FEATURE:
        raise ValueError(
            f"inputs are of size {size:.3g}{where}; energies go as the fourth to sixth power, beyond what floats can "
            f"hold: scale them to between {SMALLEST_FEATURE:g} and {LARGEST_FEATURE:g}"
        )


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

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> images = np.random.default_rng(0).standard_normal((5, 3, 8, 8))
        >>> mf.patch_tokens(images, patch=4, width=16).shape  # samples, channels, tokens
        (5, 16, 4)
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
