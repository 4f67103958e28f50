"""The figure says what the dataset says: artists' data, not pixels."""

import numpy as np
import pytest
import xarray as xr

from figures import cnn_overlap as figure
from sims.cnn_overlap.__main__ import COMMAND as simulation


@pytest.fixture(scope="module", params=["convolution", "pooled"])
def dataset(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("figure") / "run.nc"
    options = ["--depth", "5", "--channels", "8", "--grid", "6", "--kernel", "3", "--draws", "16", "--workers", "1"]
    assert simulation.main([*options, "--readout", request.param, "--out", str(path)]) == 0
    with xr.open_dataset(path, engine="h5netcdf") as stored:
        return stored.load()


def test_lines_are_the_numbers(dataset):
    deepest = dataset.isel(depth=-1)
    name = "label_term" if "label_term_mean_field" in dataset else "overlap_energy"
    growth, ratio = figure.draw(dataset).axes
    theory, law = (line.get_ydata() for line in growth.lines[:2])
    np.testing.assert_array_equal(theory, deepest[f"{name}_mean_field"].values)
    np.testing.assert_array_equal(law, deepest[f"{name}_law"].values)
    measured = growth.containers[0].lines[0].get_ydata()
    np.testing.assert_array_equal(measured, deepest[name].values)
    expected = deepest[name].values / deepest[f"{name}_mean_field"].values
    np.testing.assert_allclose(ratio.containers[0].lines[0].get_ydata(), expected)
    assert growth.get_xscale() == growth.get_yscale() == "log"


def test_files_are_byte_stable(dataset, tmp_path):
    for name in ("a.png", "b.png"):
        figure.draw(dataset).savefig(tmp_path / name, metadata={"Software": None})
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
