"""Patches of images as tokens: against loops over patches, and what cannot be cut."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.common import stream
from sims.common.images import image_tokens

IMAGES = np.random.default_rng(0).normal(size=(2, 3, 4, 6))


def test_tokens_are_embedded_patches():
    tokens = mf.patch_tokens(IMAGES, patch=(2, 3), width=8, seed=5)
    assert tokens.shape == (2, 8, 4)
    embedding = stream(5, "patch embedding", 0).standard_normal((8, 3 * 2 * 3))
    for image, found in zip(IMAGES, tokens, strict=True):
        corners = [(0, 0), (0, 3), (2, 0), (2, 3)]
        expected = [embedding @ image[:, top : top + 2, left : left + 3].ravel() for top, left in corners]
        scale = np.sqrt(np.mean(np.square(expected)))
        np.testing.assert_allclose(found, np.transpose(expected) / scale, rtol=1e-12)


def test_one_embedding_serves_all_patches_and_its_seed_fixes_it():
    same = np.tile(IMAGES[:, :, :2, :2], (1, 1, 2, 2))
    tokens = mf.patch_tokens(same, patch=2, width=5)
    np.testing.assert_allclose(tokens, tokens[..., :1].repeat(4, axis=2), rtol=1e-12)
    np.testing.assert_array_equal(tokens, mf.patch_tokens(same, patch=2, width=5, seed=0))
    assert not np.allclose(tokens, mf.patch_tokens(same, patch=2, width=5, seed=1))
    np.testing.assert_allclose(np.square(tokens).mean(axis=(1, 2)), 1.0, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200])
def test_the_scale_of_pixels_drops_out(scale):
    images = IMAGES * np.array([scale, 1.0]).reshape(2, 1, 1, 1)
    np.testing.assert_allclose(
        mf.patch_tokens(images, patch=2, width=5), mf.patch_tokens(IMAGES, patch=2, width=5), rtol=1e-10
    )


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        (IMAGES, {"patch": 4}, ValueError, "patch is 4 for images of 4 x 6 pixels; give one or two sides that divide"),
        (IMAGES, {"patch": (2, 3, 1)}, ValueError, r"patch is \(2, 3, 1\) for images"),
        (IMAGES, {"patch": ()}, ValueError, r"patch is \(\) for images"),
        (IMAGES, {"patch": 0}, ValueError, "patch is 0; it must be at least 1"),
        (IMAGES, {"patch": 1.5}, TypeError, "patch is 1.5; it must be a whole number"),
        (IMAGES, {"width": 0}, ValueError, "width is 0; it must be at least 1"),
        (IMAGES[0], {}, ValueError, r"images have shape \(3, 4, 6\); give \(samples, channels, height, width\)"),
        (IMAGES[:0], {}, ValueError, r"images have shape \(0, 3, 4, 6\)"),
        (IMAGES * np.nan, {}, ValueError, "NaN or infinite"),
        (IMAGES * [[[[1.0]]], [[[0.0]]]], {}, ValueError, "image 2 is 0 everywhere"),
        (IMAGES + 1j, {}, TypeError, "give real numbers"),
        (IMAGES, {"seed": -1}, ValueError, "seed is -1; it must be at least 0"),
        (IMAGES, {"seed": 0.5}, TypeError, "seed is 0.5; it must be a whole number"),
    ],
)
def test_what_cannot_be_cut_is_refused(images, options, error, message):
    with pytest.raises(error, match=message):
        mf.patch_tokens(images, **{"patch": 2, "width": 8} | options)


def test_a_transformer_takes_tokens_of_the_photograph_and_of_a_file(tmp_path):
    net = mf.Transformer(depth=1, width=16, heads=2, tokens=8, inputs=2)
    tokens = image_tokens("photo", net, 4, seed=1)
    assert tokens.shape == net.input_shape
    drawn = mf.simulate(net, draws=2, seed=0, inputs=tokens)
    assert (drawn.update_energy > 0).all()
    file = tmp_path / "images.npy"
    np.save(file, np.random.default_rng(2).normal(size=(2, 3, 8, 16)))  # 2 x 4 patches
    assert image_tokens(str(file), net, 4, seed=1).shape == net.input_shape
    with pytest.raises(ValueError, match="--tokens 8 and --patch 8 need images of 16 x 32 pixels"):
        image_tokens(str(file), net, 8, seed=1)


def test_neighbouring_patches_of_a_photograph_are_more_alike_than_white_tokens():
    """Mean size of the cosines of pairs in 12 crops; that of white tokens of 64 channels is about 0.1."""
    net = mf.Transformer(depth=1, width=64, tokens=4, inputs=12)
    crops, white = image_tokens("photo", net, 8, seed=3), np.random.default_rng(0).normal(size=net.input_shape)
    cosines = []
    for tokens in (crops, white):
        directions = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
        gram = np.einsum("bns,bnt->bst", directions, directions)
        cosines.append(np.abs(gram[:, ~np.eye(4, dtype=bool)]).mean())
    assert cosines[0] > 2 * cosines[1]
