"""The figure says what the dataset says: artists' data, not pixels."""

import numpy as np
import pytest
import xarray as xr

from figures import cnn_overlap as figure
from meanfield.verification import best, growth_exponent
from sims.cnn_overlap.study import STUDY as simulation


@pytest.fixture(scope="module", params=["convolution", "pooled"])
def dataset(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("figure") / "run.nc"
    options = ["--depth", "5", "--channels", "8", "--grid", "6", "--kernel", "3", "--draws", "64", "--workers", "1"]
    assert simulation.main([*options, "--readout", request.param, "--out", str(path)]) == 0
    with xr.open_dataset(path, engine="netcdf4") as stored:
        return stored.load()


def test_lines_are_the_numbers(dataset):
    deepest, name = dataset.isel(depth=-1), "label_term"
    growth, ratio = figure.draw(dataset).axes
    theory, law = (line.get_ydata() for line in growth.lines[:2])
    np.testing.assert_array_equal(theory, deepest[f"{name}_mean_field"].values)
    np.testing.assert_array_equal(law, deepest[f"{name}_law"].values)
    limit, output = (container.lines[0].get_ydata() for container in growth.containers)
    np.testing.assert_array_equal(limit, deepest[f"{name}_limit"].values)
    np.testing.assert_array_equal(output, deepest[best(deepest, "output_term")].values)
    for container, column in zip(ratio.containers, (best(deepest, name), f"{name}_limit"), strict=True):
        np.testing.assert_allclose(container.lines[0].get_ydata(), deepest[column].values / theory)
    assert growth.get_xscale() == growth.get_yscale() == "log"


def test_the_title_says_the_exponent_of_the_report(dataset):
    law = growth_exponent(dataset.isel(depth=-1), "label_term_limit")
    title = figure.draw(dataset).axes[0].get_title(loc="left")
    assert f"label term B grows with exponent {law.exponent:.2f} +- {law.stderr:.2f} at C = inf" in title


def test_files_are_byte_stable(dataset, tmp_path):
    for name in ("a.png", "b.png"):
        figure.draw(dataset).savefig(tmp_path / name, metadata={"Software": None})
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
