"""The theory tables of the learning-rate scale, and the transfer of a tuned rate."""

import numpy as np
import pytest
import xarray as xr

from figures import learning_rate_scale as figure
from sims import learning_rate_scale as simulation


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("scale") / "run.nc"
    assert simulation.main(["--depth", "40", "--width", "256", "--out", str(path)]) == 0
    with xr.open_dataset(path, engine="h5netcdf") as stored:
        return stored.load()


def test_tables(finished, capsys):
    print(simulation.report(finished))
    printed = capsys.readouterr().out
    for words in ("-1.394", "P0 table 6", "CNN -1.339", "mlp exact"):
        assert words in printed


def test_scales_are_the_closed_law(finished):
    depth = finished.depth.values
    law = np.sqrt(24 / ((depth + 1) * (depth**2 + depth + 1)))
    scale = finished.label_learning_rate_scale.sel(family="mlp").values
    np.testing.assert_allclose(scale / scale[0], law / law[0], rtol=1e-12)


def test_figure_shows_the_slopes(finished):
    (axes,) = figure.draw(finished).axes
    scale = finished.label_learning_rate_scale.sel(family="mlp").values
    expected = np.gradient(np.log(scale), np.log(finished.depth.values))
    np.testing.assert_allclose(axes.lines[0].get_ydata(), expected)


@pytest.mark.parametrize("family", ["mlp", "cnn", "cnn 1d"])
def test_transfer(capsys, family):
    arguments = ["--transfer", "0.003", "--from", "12", "--to", "48", "--family", family]
    assert simulation.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "0.000375" in printed
    assert "finite depth / power law = 1." in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--transfer", "0.1"], "--from is None"),
        (["--transfer", "-1", "--from", "1", "--to", "2"], "positive and finite"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--family", "rnn"], "'mlp', 'mlp linear'"),
        (["--depth", "1"], "a slope needs two depths"),
        (["--out", "x.txt"], "must end in .nc"),
    ],
)
def test_bad_input_gets_one_line(capsys, arguments, message):
    assert simulation.main(arguments) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
