"""The figure says what the dataset says: artists' data, not pixels."""

import numpy as np
import pytest
import xarray as xr

from figures import cnn_overlap as figure
from meanfield.verification import best, growth_exponent
from sims.cnn_overlap.__main__ import STUDY as simulation


@pytest.fixture(scope="module", params=["convolution", "pooled"])
def dataset(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("figure") / "run.nc"
    options = ["--depth", "5", "--channels", "8", "--grid", "6", "--kernel", "3", "--draws", "64", "--workers", "1"]
    assert simulation.main([*options, "--readout", request.param, "--out", str(path)]) == 0
    with xr.open_dataset(path, engine="netcdf4") as stored:
        return stored.load()


def test_lines_are_the_numbers(dataset):
    deepest, name = dataset.isel(depth=-1), "label_term"
    growth, ratio = _panels(dataset)[-2:]
    theory, law = (line.get_ydata() for line in growth.lines[:2])
    np.testing.assert_array_equal(theory, deepest[f"{name}_mean_field"].values)
    np.testing.assert_array_equal(law, deepest[f"{name}_law"].values)
    limit, output = (container.lines[0].get_ydata() for container in growth.containers)
    np.testing.assert_array_equal(limit, deepest[f"{name}_limit"].values)
    np.testing.assert_array_equal(output, deepest[best(deepest, "output_term")].values)
    for container, column in zip(ratio.containers, (best(deepest, name), f"{name}_limit"), strict=True):
        np.testing.assert_allclose(container.lines[0].get_ydata(), deepest[column].values / theory)
    assert growth.get_xscale() == growth.get_yscale() == "log"


def _panels(dataset):
    """Of scales, eta* and over the papers' law; of growth and its ratio to the mean field."""
    axes = figure.draw(dataset).axes
    return [*axes[::2], *axes[1::2]]


def test_scales_are_the_numbers(dataset):
    """Over the theory's first, or their own first where there is no theory; below over L^(-3/2)."""
    scales, flat, *_ = _panels(dataset)
    depth = dataset["depth"].values
    law = (depth / depth[0]) ** -1.5
    whole, label = ([container.lines[0].get_ydata() for container in axes.containers] for axes in (scales, flat))
    drawn = dataset[best(dataset, "learning_rate_scale")].values
    np.testing.assert_allclose(whole[0] / whole[0][0], drawn / drawn[0])
    for above, below in zip(whole, label, strict=True):
        np.testing.assert_allclose(below, above / law)
    (line,) = (line for line in scales.lines if line.get_label() == "papers, $L^{-3/2}$")
    np.testing.assert_allclose(line.get_ydata(), law)


def test_nets_of_one_depth_have_no_scales(dataset):
    assert len(figure.draw(dataset.isel(depth=[-1])).axes) == 2


def test_the_title_says_the_exponent_of_the_report(dataset):
    law = growth_exponent(dataset.isel(depth=-1), "label_term_limit")
    title = figure.draw(dataset).axes[0].get_title(loc="left")
    assert f"label term B grows with exponent {law.exponent:.2f} +- {law.stderr:.2f} at C = inf" in title


def test_files_are_byte_stable(dataset, tmp_path):
    for name in ("a.png", "b.png"):
        figure.draw(dataset).savefig(tmp_path / name, metadata={"Software": None})
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
