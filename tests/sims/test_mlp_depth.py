"""The command on fully-connected nets: tables, verdicts, files, refusals."""

import json

import numpy as np
import pytest

from figures import mlp_depth as figure
from sims.common import results
from sims.common.study import Study
from sims.common.tables import number
from sims.mlp_depth import STUDY as simulation
from tests.sims.commands import finished_run, without_figure

SMALL = ["--depth", "3", "--width", "16", "--draws", "64", "--workers", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("mlp") / "run.nc"
    return path, finished_run(simulation, SMALL, path)


def test_figure_shows_the_numbers(finished):
    dataset = finished[1]
    growth, nets, excess, ratio, shape, slope = figure.draw(dataset).axes
    exact = (dataset["label_term_exact"] / dataset["label_term_mean_field"]).values
    np.testing.assert_allclose(growth.lines[1].get_ydata(), exact)
    measured = np.concatenate([container.lines[0].get_ydata() for container in ratio.containers[:2]])
    expected = (dataset["label_term"] / dataset["label_term_exact"]).values
    np.testing.assert_allclose(np.sort(measured), np.sort(expected))
    quantiles = dataset["update_energy_quantile"].values / dataset["update_energy_exact"].values
    for container, value in zip(nets.containers, quantiles, strict=True):
        np.testing.assert_allclose(container.lines[0].get_ydata(), value)
    for container, name in zip(shape.containers, ("spread", "skewness"), strict=True):
        np.testing.assert_array_equal(container.lines[0].get_ydata(), dataset[f"update_energy_log_{name}"].values)
        assert container.get_label() == f"{name} of ln S"
    np.testing.assert_array_equal(excess.lines[0].get_ydata(), dataset["excess_at_share"].values[-1])
    np.testing.assert_array_equal(slope.lines[0].get_ydata(), dataset["scale_slope"].sel(head="he", outputs=1).values)


def test_a_rerun_prints_the_same_and_computes_nothing(finished, capsys, monkeypatch):
    monkeypatch.setattr(Study, "measured", None)
    assert without_figure(simulation, SMALL, finished[0]) == 0
    printed = capsys.readouterr().out
    for words in (
        "label term B",
        "overlap energy F",
        "One draw of B at layer 3 spreads by",
        "100000",
        "l/n = 0.125",
        "A/B at the last layer, 64 draws of nets of width 256",
        "not converged",
        "REFUTED       Finite channels correct F by O(1/n)",
        "REFUTED       Output term is negligible",
        "run.png",
    ):
        assert words in printed


def test_the_dataset_says_what_made_it(finished):
    attrs = finished[1].attrs
    assert json.loads(attrs["architecture"])["width"] == 16
    assert attrs["command"].startswith("python -m sims.mlp_depth --")


def test_the_plan_is_known_before_the_draws(tmp_path, capsys, monkeypatch):
    """Depth = width: the warning stands on stderr before a single net is drawn."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "simulate_all", interrupted)
    assert simulation.main(["--preset", "square", "--workers", "1", "--out", str(tmp_path / "run.nc")]) == 130
    warned = " ".join(capsys.readouterr().err.split())
    assert "takes 4.56e+08 draws. 4096 draws do for no layer" in warned
    assert "takes 1.26e+08 draws. 4096 draws do for layers 1 .. 23" in warned


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--width", "0"], "width is 0"),
        (["--depth", "0"], "depth is 0"),
        (["--outputs", "0"], "outputs is 0"),
        (["--draws", "1"], "one draw has no standard error"),
        (["--workers", "0"], "workers is 0"),
        (["--seed", "-1"], "--seed is -1"),
        (["--head", "x"], "'he', 'fan_in', 'mup'"),
        (["--activation", "gelu"], "'relu', 'linear'"),
        (["--out", "run.txt"], "must end in .nc"),
        (["--width", "200000000", "--precision", "float32"], "GiB"),
    ],
)
def test_bad_input_gets_one_line(tmp_path, capsys, arguments, message):
    out = [] if "--out" in arguments else ["--out", str(tmp_path / "run.nc")]
    assert simulation.main([*arguments, *out]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_a_width_per_layer_is_refused_by_the_command_line(capsys):
    with pytest.raises(SystemExit) as ended:
        simulation.main(["--width", "4,5"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "error: argument --width: invalid int value: '4,5'; python -m sims.mlp_depth --help lists the options\n"
    )


def test_the_table_of_single_nets_is_the_dataset(finished):
    dataset = finished[1]
    table = (
        simulation.document(dataset).text().split("Single nets: S of one net over the exact mean\n")[1].split("\n\n")[0]
    )
    rows = [line.split() for line in table.splitlines()[2:5]]
    exact, spread = dataset["update_energy_exact"].values, dataset["update_energy_log_spread"].values
    low, median, high = dataset["update_energy_quantile"].values / exact
    columns = [low, median, np.exp(-(spread**2) / 2), high, spread, dataset["update_energy_log_skewness"].values]
    assert rows == [[str(n + 1), *(number(column[n]) for column in columns)] for n in range(3)]
    assert f"eta* of single nets: {number(float(dataset['learning_rate_scale_quantile'][1]))} in the median" in table
