"""The theory tables of the learning-rate scale, and the transfer of a tuned rate."""

import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from figures import learning_rate_scale as figure
from meanfield.verification.series import spline_slopes
from meanfield.verification.verdicts import Verdict
from sims.common.training_data import training_data
from sims.learning_rate_scale import __main__ as study
from sims.learning_rate_scale import claims
from sims.learning_rate_scale.__main__ import STUDY as simulation
from sims.learning_rate_scale.__main__ import depth_grid, on_data, served
from tests.sims.commands import finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("scale") / "run.nc"
    return finished_run(simulation, ["--depth", "40", "--width", "256"], path)


def test_tables(finished):
    printed = simulation.document(finished).text()
    for words in ("-1.394", "Zhang et al. 2026, table 6, audio  6 .. 18", "mlp exact", "less -3/2"):
        assert words in printed
    assert "  REFUTED       eta* of the label term is kappa L^(-3/2) at depths 3 .. 30" in printed
    assert "  INCONCLUSIVE  Zhang et al. 2026, table 1, all nine" in printed


def test_transfer_table_is_the_library_s_rule(finished):
    nets = [mf.MLP(depth=depth, width=256) for depth in (3, 24)]
    finite, power = (mf.explain_transfer(1.0, *nets, rule=rule).rate for rule in ("finite_depth", "power_law"))
    row, *_ = (
        line.split() for line in simulation.document(finished).text().splitlines() if line.split()[:2] == ["3", "24"]
    )
    assert row[3] == f"{finite / power - 1:+.1%}" == "+33.1%"


def test_exact_slope_is_the_slope_of_the_exact_scale(finished):
    """That of the quartic through five depths, in which theory is smooth."""
    depths = np.array([8, 9, 10, 11, 12])
    nets = [mf.MLP(depth=int(depth), width=256) for depth in depths]
    logs = [float(mf.predict(net, level="exact")["log_learning_rate_scale"]) for net in nets]
    at = finished.sel(exact_depth=10)
    assert float(at.log_learning_rate_scale) == pytest.approx(logs[2], rel=1e-12)
    quartic = np.polynomial.Polynomial.fit(np.log(depths), logs, 4)
    assert float(at.exact_slope) == pytest.approx(quartic.deriv()(np.log(10)), abs=2e-4)


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
    *_, axes = figure.draw(finished).axes
    scale = finished.label_learning_rate_scale.sel(family="mlp").values
    np.testing.assert_allclose(axes.lines[0].get_ydata(), spline_slopes(finished.depth.values, scale))


def test_figure_shows_every_scale_with_its_fit(finished):
    """In each panel a dashed fit and the scale itself for every family; the legend names it with the fitted slope."""
    *panels, _ = figure.draw(finished).axes
    labels = {label.split(":")[0]: label for axes in panels for label in axes.get_legend_handles_labels()[1]}
    names = [*finished.family.values, *finished.loop.values]
    del labels["power law, fitted over 3 .. 30"]
    assert len(labels) == len(names) - 1  # "cnn 1d" stands in two panels
    assert labels["variance 1/K, k=1"].endswith("slope -1.10")
    fit, line = panels[1].lines[:2]
    scale = finished.label_learning_rate_scale.sel(family="residual init k=1").values
    np.testing.assert_allclose(line.get_ydata(), scale / scale[0])
    slopes = np.diff(np.log(fit.get_ydata())) / np.diff(np.log(finished.depth.values))
    chosen = slice(2, 30)
    expected = np.polyfit(np.log(finished.depth.values[chosen]), np.log(scale[chosen]), 1)[0]
    np.testing.assert_allclose(slopes, expected)


def test_every_family_has_its_law_beside_the_papers(finished):
    (table,) = (
        part
        for part in simulation.document(finished).text().split("\n\n")
        if re.search(r"law +papers", part.split("\n")[0])
    )
    rows = {line[: line.index("  ", 20)].strip(): re.split(r"  +", line)[-2:] for line in table.splitlines()[2:]}
    papers = {"residual init k=1": ["-1", "-3/2 (Zhang et al. 2026)"]}
    papers["residual multiplier_sqrt k=1"] = ["0", "-3/2 (Zhang et al. 2026), 0 (Zheng et al. 2026)"]
    papers |= {
        "looped sqrt": ["exponential", "-1/2 (Wang et al. 2026)"],
        "deep linear": ["+1/2", "0 (Wang et al. 2026)"],
    }
    assert {name: rows[name] for name in papers} == papers


def test_transfer_of_blocks_and_loops_is_by_their_own_law(finished):
    printed = simulation.document(finished).text().split(study.OWN_LAWS)[1]
    nets = [mf.ResidualMLP(depth=depth, width=256) for depth in (3, 24)]
    finite, power = (mf.explain_transfer(1.0, *nets, rule=rule).rate for rule in ("finite_depth", "power_law"))
    row, *_ = (line.split() for line in printed.splitlines() if line.split()[:2] == ["3", "24"])
    assert row[2] == f"{finite / power - 1:+.1%}" == "-21.9%"
    assert "looped sqrt" not in printed.split("Words")[0]


def test_printed_exponents_are_judged(finished):
    """REFUTED where the family has another law; CONFIRMED on a made-up scale that is as the paper prints."""
    name = "residual init k=2"
    assert (
        claims.judge_printed(finished, name, "Zhang et al. 2026").verdict is Verdict.INCONCLUSIVE
    )  # not yet at its law
    scale = finished.label_learning_rate_scale
    for exponent, verdict in ((-1.5, Verdict.CONFIRMED), (0.0, Verdict.REFUTED), (-0.7, Verdict.INCONCLUSIVE)):
        made_up = finished.assign(label_learning_rate_scale=0 * scale + finished.depth**exponent)
        assert claims.judge_printed(made_up, name, "Zhang et al. 2026").verdict is verdict
    verdicts = {finding.claim.split(":")[0]: finding.verdict for finding in claims.family_findings(finished)}
    assert verdicts["residual init k=1"] is Verdict.REFUTED
    assert verdicts["looped linear"] is Verdict.CONFIRMED
    assert not {"mlp", "looped sqrt", "deep sqrt"} & set(verdicts)


def test_plain_claims_are_judged_on_plain_nets_alone(finished):
    """The asymptote is not refuted by families that have another, and is by plain nets that do."""
    scale = finished.label_learning_rate_scale
    for plain, verdict in ((-1.5, Verdict.CONFIRMED), (-1.0, Verdict.REFUTED)):
        exponents = [0.0 if str(name).startswith("residual") else plain for name in finished.family.values]
        made_up = finished.depth ** xr.DataArray(exponents, {"family": finished.family})
        changed = finished.assign(label_learning_rate_scale=made_up.transpose(*scale.dims))
        assert claims.judge_asymptote(changed).verdict is verdict


@pytest.mark.parametrize("deepest", [2, 40, 77, 3000])
def test_depths_are_dense_where_nets_are_trained_and_steps_are_small(deepest):
    grid = np.array(depth_grid(deepest))
    assert grid[-1] == deepest
    assert set(range(1, min(deepest, 30) + 1)) <= set(grid.tolist())
    assert np.all(grid[1:] / grid[:-1] <= 2)
    assert set(grid[:-1].tolist()) <= set(depth_grid(10 * deepest))  # sweeps join runs of several depths


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("residual", ["power law L^(-1) 0.00075", "L^(-3/2) (Zhang et al. 2026) 0.000375"]),
        ("residual multiplier_linear k=2", ["power law L^(+1) 0.012"]),
        ("residual none k=1", ["none holds: eta* is an exponential"]),
        ("residual cnn 1d", ["power law L^(-1)", "grid [32]"]),
        ("looped", ["power law L^(0) 0.003", "one update of isotropic signs"]),
        ("looped sqrt", ["none holds: eta* is an exponential", "L^(-1/2) (Wang et al. 2026) 0.0015"]),
        ("deep linear", ["power law L^(+1/2) 0.006"]),
        (
            "transformer post",
            ["finite_depth mean field at finite depth 0.0003153", "L^(-3/2) (Zhang et al. 2026) 0.000375"],
        ),
    ],
)
def test_transfer_of_residual_nets_and_loops(capsys, family, words):
    assert simulation.main(["--transfer", "0.003", "--from", "12", "--to", "48", "--family", family]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for word in words:
        assert word in printed


def test_transfer_of_pre_norm_transformers_is_by_a_rule_that_is_asked_for(capsys):
    """By default it is refused, with the slopes that training showed; a rule that is asked for warns of them."""
    arguments = ["--transfer", "0.003", "--from", "12", "--to", "48", "--family", "transformer"]
    assert simulation.main(arguments) == 2
    refused = capsys.readouterr().err
    assert "fell as L^(-0.57 +- 0.06)" in refused
    assert refused.count("\n") == 1
    assert simulation.main([*arguments, "--rule", "finite_depth"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("finite_depth mean field at finite depth 0.0007003", "no power of common depths", "norm pre"):
        assert words in printed
    assert "WARNING: tuned rates of pre-norm Transformers fell as L^(-0.57 +- 0.06)" in printed


def test_rules_on_other_grounds_may_be_asked_for(capsys):
    arguments = ["--transfer", "0.003", "--from", "12", "--to", "48", "--rule", "three_halves", "--family", "cnn"]
    assert simulation.main(arguments) == 0
    assert "Answer:   0.000375, by rule 'three_halves': asked for." in capsys.readouterr().out


def test_a_stem_stops_the_rise_of_a_carried_rate(capsys):
    """x 23 without a stem, with a premise and a warning; x 7.1 and x 1.5 on stems of 64 and 1024 channels."""
    arguments = ["--transfer", "0.003", "--from", "4", "--to", "64", "--family", "residual init k=3"]
    assert simulation.main(arguments) == 0
    bare = " ".join(capsys.readouterr().out.split())
    assert "WARNING: the rate changes by a factor of 23 because" in bare
    assert "nothing but the blocks learns at this rate" in bare
    for channels, rate in ((64, "0.02136"), (1024, "0.004548")):
        assert simulation.main([*arguments, "--stem", str(channels)]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert f"Answer: {rate}, by rule 'finite_depth'" in printed
        assert "stops" not in printed
        assert f"stem 1, input_width {channels}" in printed


def test_transfer_at_any_exponent_of_the_branches(capsys):
    """A number for SCALING; 1 is the net that has a name."""
    arguments = ["--transfer", "0.1", "--from", "4", "--to", "16", "--family"]
    for family, rate, law in (("residual 0.75 k=2", "0.2768", "L^(+1/2)"), ("residual 1 k=1", "0.5229", "L^(+1)")):
        assert simulation.main([*arguments, family]) == 0
        printed = capsys.readouterr().out
        assert f"Answer:   {rate}, by rule 'finite_depth'" in printed
        assert law in printed


@pytest.mark.parametrize("family", ["mlp", "cnn", "cnn 1d"])
def test_transfer(capsys, family):
    arguments = ["--transfer", "0.003", "--from", "12", "--to", "48", "--family", family]
    assert simulation.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    net = served(1024, 10)[family]
    transfer = mf.explain_transfer(0.003, *[replace(net, depth=depth) for depth in (12, 48)])
    assert lines[0] == f"Question: Which learning rate at depth 48, if 0.003 was tuned at depth 12 ({family})?"
    assert lines[1].startswith(f"Answer:   {transfer.rate:.4g}")
    rows = {line.split()[0]: line.split()[-1] for line in lines if line.split() and line.split()[0] in transfer.rates}
    assert rows == {name: f"{rate:.4g}" for name, rate in transfer.rates.items()}
    assert rows["power_law"] == "0.000375"
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    assert all(sentence in text for sentence in transfer.premises)
    assert ("WARNING: " in text) == bool(transfer.warnings)


CARRIED = ["--transfer", "0.003", "--from", "2", "--to", "8", "--width", "32"]


@pytest.mark.parametrize("of", ["absolute", "outputs"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_transfer_under_an_optimizer(capsys, optimizer, of):
    """The library's number and premises, and no law of descent beside it."""
    assert simulation.main([*CARRIED, "--optimizer", optimizer, "--of", of]) == 0
    text = " ".join(capsys.readouterr().out.split())
    nets = [replace(served(32, 10)["mlp"], depth=depth) for depth in (2, 8)]
    transfer = mf.explain_transfer(0.003, *nets, optimizer=optimizer, of=of)
    assert f"learning rate at depth 8 under {optimizer}, if 0.003 was tuned" in text
    assert f"Answer: {transfer.rate:.4g}, by rule 'one_step': first step of {optimizer}, {of}: mean field." in text
    assert all(sentence in text for sentence in (*transfer.premises, *transfer.warnings))
    assert "power_law" not in text
    assert abs(transfer.rate / mf.explain_transfer(0.003, *nets, rule="finite_depth").rate - 1) > 0.03


def test_residual_convolutional_nets_read_images_through_a_stem(capsys):
    arguments = [*CARRIED, "--family", "residual cnn 2d pooled", "--data", "mnist", "--batch-size", "8"]
    assert simulation.main(arguments) == 2
    assert "of 1 channels, and blocks of 32 cannot add to them: give --stem 1" in capsys.readouterr().err
    assert simulation.main([*arguments, "--stem", "1"]) == 0
    assert "grid [7, 7], kernel [3, 3]" in (printed := " ".join(capsys.readouterr().out.split()))
    assert "stem 1, input_channels 1" in printed


@pytest.mark.parametrize("family", ["mlp", "residual init k=1", "cnn 2d pooled", "transformer post", "looped"])
def test_transfer_by_draws_on_data(capsys, family):
    arguments = [*CARRIED, "--family", family, "--optimizer", "adamw", "--of", "last", "--data", "digits"]
    assert simulation.main([*arguments, "--batch-size", "8"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    nets = [replace(on_data(served(32, 10)[family], "digits"), depth=depth) for depth in (2, 8)]
    how = {"data": training_data("digits", nets[0]), "batch_size": 8}
    transfer = mf.explain_transfer(0.003, *nets, optimizer="adamw", of="last", **how)
    assert f"Answer: {transfer.rate:.4g} (+- {transfer.error:.0%}, from draws), by rule 'one_step'" in text


def test_transfer_to_depths_of_the_order_of_the_width(capsys):
    """The answer is the median net's rate, with the interval of four nets in five and the reason."""
    arguments = ["--transfer", "0.1", "--from", "12", "--to", "300", "--width", "256", "--family", "mlp"]
    assert simulation.main(arguments) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "by rule 'typical': at depth over width 1.2 rare nets make the mean" in printed
    assert "Four in five nets of depth 300 would take a rate between" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--transfer", "0.1"], "--transfer 0.1 is given without --from"),
        (["--transfer", "0.1", "--from", "3"], "is given without --to"),
        (["--transfer", "-1", "--from", "1", "--to", "2"], "rate is -1; it must be positive"),
        (["--transfer", "1e-320", "--from", "12", "--to", "48"], "outside what a float holds"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--family", "rnn"], "'mlp', 'mlp linear'"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--family", "residual init k=4"], "'residual init k=3'"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--family", "residual 1e99 k=2"], "within +-"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--family", "residual nan k=2"], "a finite number alpha"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--family", "residual 0.3 k=4"], "branch is 'k=4'"),
        (["--transfer", "0.1", "--from", "1", "--to", "2000", "--family", "residual none k=1"], "what a float holds"),
        (["--transfer", "0.1", "--from", "0", "--to", "2"], "--from is 0"),
        (["--from", "3"], "give one with --transfer"),
        ([*CARRIED, "--out", "rate.nc"], "--transfer prints a rate and writes no file"),
        (["--optimizer", "adamw"], "--optimizer is adamw, but there is no rate to carry"),
        (["--batch-size", "3"], "--batch-size is 3, but there is no rate to carry"),
        ([*CARRIED, "--batch-size", "3"], "--batch-size is 3, but no data are given"),
        ([*CARRIED, "--data", "digits", "--batch-size", "0"], "batch_size is 0"),
        ([*CARRIED, "--data", "digits", "--family", "cnn 1d"], "give 'cnn 2d pooled'"),
        ([*CARRIED, "--data", "digits", "--family", "cnn"], "the net has outputs on a grid; pool its readout"),
        ([*CARRIED, "--data", "nowhere.npz"], "nor a file that exists"),
        ([*CARRIED, "--optimizer", "adam"], "optimizer is 'adam'; choose one of 'sgd'"),
        ([*CARRIED, "--of", "all"], "of is 'all'; choose one of 'absolute'"),
        ([*CARRIED, "--of", "last", "--family", "cnn"], "no theory has this step of sgd"),
        ([*CARRIED, "--optimizer", "adamw", "--rule", "exact"], "rule 'exact' is given beside optimizer"),
        (["--stem", "3"], "--stem is 3, but there is no rate to carry"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--stem", "3"], "--stem 3 is for residual nets"),
        (["--transfer", "1", "--from", "1", "--to", "2", "--family", "residual", "--stem", "0"], "--stem is 0"),
        (["--transfer", "0.1", "--from", "1", "--to", "2", "--rule", "linear"], "'auto', 'finite_depth'"),
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
