"""The theory tables of the learning-rate scale, and the transfer of a tuned rate."""

import numpy as np
import pytest

import meanfield as mf
from figures import learning_rate_scale as figure
from sims import _scale_report as report
from sims import learning_rate_scale as simulation
from tests.sims.commands import finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("scale") / "run.nc"
    return finished_run(simulation, ["--depth", "40", "--width", "256"], path)


def test_tables(finished):
    printed = report.text(finished)
    for words in ("-1.394", "P0 table 6, audio  6 .. 18", "mlp exact", "less -3/2"):
        assert words in printed
    assert "  REFUTED       eta* of the label term is kappa L^(-3/2) at depths 3 .. 30" in printed
    assert "  INCONCLUSIVE  P0 table 1, all nine" in printed


def test_transfer_table_is_the_library_s_rule(finished):
    nets = [mf.MLP(depth=depth, width=256) for depth in (3, 24)]
    finite, power = (mf.transfer_learning_rate(1.0, *nets, rule=rule) for rule in ("finite_depth", "power_law"))
    (row,) = (line.split() for line in report.text(finished).splitlines() if line.split()[:2] == ["3", "24"])
    assert row[3] == f"{finite / power - 1:+.1%}" == "+33.1%"


def test_exact_slope_is_the_slope_of_the_exact_scale(finished):
    nets = [mf.MLP(depth=depth, width=256) for depth in (9, 10, 11)]
    logs = [float(mf.predict(net, level="exact")["log_learning_rate_scale"]) for net in nets]
    at = finished.sel(exact_depth=10)
    assert float(at.log_learning_rate_scale) == pytest.approx(logs[1], rel=1e-12)
    assert float(at.exact_slope) == pytest.approx(np.gradient(logs, np.log([9, 10, 11]))[1], rel=1e-9)


def test_shallow_nets_leave_out_what_they_do_not_reach(tmp_path, capsys):
    assert simulation.main(["--depth", "2", "--width", "8", "--out", str(tmp_path / "run.nc")]) == 0
    printed = capsys.readouterr().out
    assert "trained nets showed" not in printed
    assert "at depths 3 .. 30" not in printed


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
        (["--transfer", "0.1", "--from", "0", "--to", "2"], "--from is 0"),
        (["--from", "3"], "give one with --transfer"),
        (["--depth", "1"], "a slope needs two depths"),
        (["--width", "0"], "width is 0"),
        (["--outputs", "0"], "outputs is 0"),
        (["--out", "x.txt"], "must end in .nc"),
    ],
)
def test_bad_input_gets_one_line(capsys, arguments, message):
    assert simulation.main(arguments) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
