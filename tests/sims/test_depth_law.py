"""The command for a law of one's own: nets by fields or files, what the report says, and where it is read again."""

import re

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.nets import Net
from meanfield.verification import Verdict
from sims import simulation
from sims.common.training_data import training_data
from sims.depth_law import FAMILIES, field_kinds, net_of_size, number
from tests.sims.commands import finished_run, without_figure

STUDY = simulation("depth_law")
RUN = ["--preset", "smoke", "--workers", "1"]
GIVEN = {
    "MLP": (["width=8", "weight_variance=none", "activation=gelu"], mf.MLP(depth=2, width=8, activation="gelu")),
    "ConvNet": (
        ["channels=4", "grid=4x4", "kernel=3,3", "readout=convolution"],
        mf.ConvNet(depth=2, channels=4, grid=(4, 4), kernel=(3, 3), readout="convolution"),
    ),
    "ResidualMLP": (["width=8", "scaling=0.75"], mf.ResidualMLP(depth=2, width=8, scaling=0.75)),
    "ResidualConvNet": (
        ["channels=4", "grid=8", "scaling=multiplier_sqrt"],
        mf.ResidualConvNet(depth=2, channels=4, grid=(8,), scaling="multiplier_sqrt"),
    ),
    "DenseNet": (["width=8", "growth=4"], mf.DenseNet(depth=2, width=8, growth=4)),
    "StagedConvNet": (
        ["channels=4", "stages=1x1", "grid=8x8", "kernel=3x3"],
        mf.StagedConvNet(depth=2, channels=4, stages=(1, 1), grid=(8, 8), kernel=(3, 3)),
    ),
    "StagedResidualConvNet": (
        ["channels=4", "stages=2", "grid=8", "downsampling=pooling", "stem=1"],
        mf.StagedResidualConvNet(depth=2, channels=4, stages=2, grid=(8,), downsampling="pooling", stem=1),
    ),
    "Transformer": (
        ["width=8", "tokens=4", "causal=true", "ffn=1.5", "scaling=none"],
        mf.Transformer(depth=2, width=8, tokens=4, causal=True, ffn=1.5),
    ),
    "TiedLoop": (["width=8", "alpha=0.5", "tied=false"], mf.TiedLoop(depth=2, width=8, alpha=0.5, tied=False)),
    "BlockNet": (
        ["width=8", "variances=1x2x1", "biases=false"],
        mf.BlockNet(depth=2, width=8, variances=(1.0, 2.0, 1.0)),
    ),
}


def test_every_family_is_among_them():
    nets = {name for name in mf.__all__ if isinstance(kind := getattr(mf, name), type) and issubclass(kind, Net)}
    assert nets - {"Chain"} == set(FAMILIES) == set(GIVEN)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_made_of_its_fields(family):
    given, net = GIVEN[family]
    assert net_of_size(family, given, "depth")(2) == net


@pytest.mark.parametrize("family", FAMILIES)
def test_every_field_reads_what_its_default_is_written_as(family):
    net, kinds = GIVEN[family][1], field_kinds(FAMILIES[family])
    for name in kinds:
        value = getattr(net, name)
        text = "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
        others = [f"{other}={value}" for other, value in _written(net).items() if other not in (name, "depth")]
        made = net_of_size(family, [*others, *([f"{name}={text}"] if name != "depth" else [])], "depth")(net.depth)
        assert made == net


def _written(net):
    values = {name: getattr(net, name) for name in field_kinds(type(net))}
    return {name: "x".join(map(str, value)) if isinstance(value, tuple) else value for name, value in values.items()}


def test_sizes_are_numbers():
    assert [number("8"), number("0.5")] == [8, 0.5]
    assert isinstance(number("8"), int)


def test_the_report_answers_the_question(tmp_path, capsys):
    """Exponent and fit, whether it is a power law, verdict with its rival, limit and finite width, on one screen."""
    assert without_figure(STUDY, RUN, tmp_path / "run.nc") == 0
    text = capsys.readouterr().out
    attrs = xr.load_dataset(tmp_path / "run.nc").attrs
    body = " ".join(text.split())
    said = f"exponent {attrs['exponent']:.3f} +- {attrs['exponent_stderr']:.3f} over depth 4 .. 16"
    assert said in body
    assert attrs["power_law_verdict"] == Verdict.INCONCLUSIVE
    assert f"for a factor e; this run cannot tell whether one power serves, p = {attrs['p_value']:.2g}." in body
    assert "CONFIRMED eta* goes as depth^0.5 over depth = 4 .. 16" in body
    assert f"Rival: as depth^0; {attrs['power']}." in body
    assert "is a power of the depth over 4 .. 16" in body
    assert "of the label term alone, exponent +0.517 in mean field, +0 in the end" in body
    assert f"Finite width: exponent moved by {attrs['finite_width']:+.3f}" in body
    assert (
        len(text.partition("\n\n")[0].splitlines()) == 7
    )  # the question, and an answer of five lines, of which one goes on below
    assert not re.search(r"\w_term", body)  # no name of a variable
    assert "64" in body.partition("draws of each size")[0]
    assert len(text.splitlines()) <= 40


def test_the_command_has_the_numbers_of_the_library(tmp_path):
    run = finished_run(STUDY, [*RUN, "--net", "MLP", "--set", "width=32", "--claim", "-1"], tmp_path / "run.nc")
    law = mf.depth_law(lambda depth: mf.MLP(depth=depth, width=32), [4, 8, 16], claim=-1, draws=64, seed=0)
    for name in law.data_vars:
        np.testing.assert_array_equal(run[name], law[name])
    for name in ("exponent", "p_value", "verdict", "evidence", "power", "finite_width"):
        assert run.attrs[name] == law.attrs[name]


FILE = """
from dataclasses import dataclass

import meanfield as mf


@dataclass(frozen=True, kw_only=True)
class Damped(mf.ResidualMLP):
    @property
    def multiplier(self):
        return 1 / (1 + self.depth)


def make(depth):
    return Damped(depth=depth, width=16)


def law(depth):
    return 1.0 * depth


def other(depth):
    return mf.MLP(depth=depth, width=8) if depth < 9 else mf.TiedLoop(depth=depth, width=8)


def broken(depth):
    return 1 / 0


def ending(depth):
    raise SystemExit(3)


number = 5
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / f"nets_of_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(FILE)
    return path


def test_nets_and_laws_of_a_file_are_drawn_by_several_processes(file, tmp_path):
    """They import the file by its name."""
    given = ["--net", f"{file}:make", "--claim", f"{file}:law", "--rival", "0", "--draws", "8"]
    two = finished_run(STUDY, ["--preset", "smoke", *given, "--workers", "2"], tmp_path / "two.nc")
    one = finished_run(STUDY, [*RUN, *given], tmp_path / "one.nc")
    assert one["learning_rate_scale"].identical(two["learning_rate_scale"])
    assert one["claim_law"].attrs["law"] == "law"
    assert one.attrs["along"] == "depth"


@pytest.mark.parametrize(
    ("net", "message"),
    [
        ("other", "different families, MLP at size 4, TiedLoop at size 16"),
        ("broken", "make raises ZeroDivisionError at size 4: division by zero"),
        ("ending", "make raises SystemExit at size 4: 3"),
        ("number", "is 5; give a function of the size"),
        ("law", "make returns float at size 4"),
        ("none", "has no 'none'; it has dataclass, Damped, make, law, other, broken, ending"),
    ],
)
def test_bad_files_are_refused_in_one_line(net, message, file, tmp_path, capsys):
    assert STUDY.main([*RUN, "--net", f"{file}:{net}", "--out", str(tmp_path / "run.nc")]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("raise SystemExit(3)", "SystemExit: 3")],
)
def test_a_file_that_raises_is_refused_in_one_line(line, message, tmp_path, capsys):
    path = tmp_path / f"raising_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(f"import meanfield\n{line}\n")
    for option in ("--net", "--claim"):
        assert STUDY.main([*RUN, option, f"{path}:make"]) == 2
        complaint = capsys.readouterr().err
        assert f"the file raises {message}" in complaint
        assert complaint.count("\n") == 1


def test_a_file_named_as_another_module_is_refused(tmp_path, capsys):
    (tmp_path / "json.py").write_text("def make(depth):\n    pass\n")
    assert STUDY.main([*RUN, "--net", f"{tmp_path}/json.py:make"]) == 2
    assert "another module is called 'json'; give the file another name" in capsys.readouterr().err


def test_what_a_step_on_data_is_stands_in_the_heading(tmp_path, capsys):
    small = ["--net", "ResidualMLP", "--set", "width=16", "stem=1", "input_width=64", "--draws", "8"]
    step = ["--optimizer", "adamw", "--data", "digits", "--batch-size", "16"]
    assert without_figure(STUDY, [*RUN, *small, *step], tmp_path / "run.nc") == 0
    body = " ".join(capsys.readouterr().out.split())
    assert "loss cross_entropy, first step of adamw, medians over draws on mini-batches of 16 of digits" in body
    assert "Theory: none at these sizes, draws are on data, and theory has white inputs and labels." in body
    run = xr.load_dataset(tmp_path / "run.nc")

    def make(depth):
        return mf.ResidualMLP(depth=depth, width=16, stem=1, input_width=64)

    pair = training_data("digits", make(4))
    law = mf.depth_law(make, [4, 8, 16], draws=8, seed=0, optimizer="adamw", data=pair, batch_size=16)
    np.testing.assert_array_equal(run["learning_rate_scale"], law["learning_rate_scale"])
    assert run.attrs["statistic"] == "median"
    assert run.attrs["data"] == "digits"


def test_data_of_a_file_and_of_every_width(tmp_path):
    """A stream that begins at the input takes images embedded at its own width."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "images.npz", inputs=rng.standard_normal((40, 4, 4)), labels=rng.integers(0, 3, 40))
    given = ["--net", "ResidualMLP", "--set", "depth=2", "--along", "width", "--sizes", "6", "9", "12", "--draws", "4"]
    step = ["--data", str(tmp_path / "images.npz"), "--batch-size", "8", "--optimizer", "muon-adamw"]
    run = finished_run(STUDY, [*RUN, *given, *step, "--quantity", "output_learning_rate_scale"], tmp_path / "run.nc")
    assert np.isfinite(run["output_learning_rate_scale"]).all()
    assert run.attrs["along"] == "width"


CHAINS = """
from meanfield import Chain
from meanfield.nets.maps import Linear, Pointwise, Weight
from meanfield.nets.net import Unit


def make(depth):
    maps = Pointwise("relu"), Linear((Weight("tied", (8, 8), 0.25),))
    return Chain(units=(Unit(maps),) * depth, readout_unit=Unit(maps), input_channels=8)
"""


@pytest.fixture
def chains(tmp_path):
    path = tmp_path / f"chains_of_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(CHAINS)
    return path


def test_long_lines_of_an_answer_go_on_below_and_the_report_fits_a_screen(chains, tmp_path, capsys):
    """Theory says at length why it has none of these nets; where it says something else of every size, in part."""
    given = ["--net", f"{chains}:make", "--sizes", *"23456789", "10", "11", "--claim", "-0.5", "--draws", "8"]
    assert without_figure(STUDY, [*RUN, *given], tmp_path / "run.nc") == 0
    text = capsys.readouterr().out
    opening, run = text.partition("\n\n")[0], xr.load_dataset(tmp_path / "run.nc")
    assert len(run.attrs["theory_missing"]) > 300
    assert f"Theory: none at these sizes, {run.attrs['theory_missing']}." in " ".join(opening.split())
    assert max(map(len, opening.splitlines())) <= 100
    assert len(text.splitlines()) <= 40
    longer = run.assign_attrs(theory_missing="; ".join([run.attrs["theory_missing"]] * 9))
    short = STUDY.report.document(longer).short()
    assert "... (--full)" in short
    assert len(short.splitlines()) <= 36


@pytest.mark.parametrize(
    ("bend", "error", "verdict", "says"),
    [
        (0.0, 0.001, Verdict.CONFIRMED, "one power serves, p = "),
        (0.0, 0.01, Verdict.INCONCLUSIVE, "this run cannot tell whether one power serves, p = "),
        (0.1, 0.01, Verdict.INCONCLUSIVE, "this run cannot tell whether one power serves, p = "),
        (0.5, 0.01, Verdict.REFUTED, "no one power, p = "),
    ],
)
def test_what_is_said_of_slopes_follows_the_verdict(bend, error, verdict, says, tmp_path):
    """Of an exact power law, times one that bends."""
    given = ["--net", "MLP", "--set", "width=32", "--draws", "8", "--no-theory"]
    run = finished_run(STUDY, [*RUN, *given], tmp_path / "run.nc")
    sizes, name = run["size"].values, "learning_rate_scale"
    values = 1 / sizes * np.exp(bend * np.log(sizes / 8) ** 2)
    run[name].values, run[f"{name}_stderr"].values = values, error * values
    run[f"{name}_largest_share"].values[:] = 1e-3
    run.attrs["draws"] = 100_000
    document = STUDY.report.document(run)
    assert document.findings[-1].verdict is verdict
    assert f"for a factor e; {says}" in document.answer


def test_a_rival_that_nothing_could_refute_is_told_in_whole_sentences(chains, tmp_path, capsys):
    """Few draws of a tied chain, whose mean one draw makes; whatever else is said of power stands behind the rival."""
    given = ["--net", f"{chains}:make", "--claim", "-0.5", "--draws", "8", "--full"]
    assert without_figure(STUDY, [*RUN, *given], tmp_path / "run.nc") == 0
    body = " ".join(capsys.readouterr().out.split())
    assert "Rival: its exponent is 0.1 off. No power: a mean has not converged. Slopes:" in body
    assert "is 0 with p = " in body
    assert ". No power: a mean has not converged. No theory" in body
    run = xr.load_dataset(tmp_path / "run.nc").assign_attrs(power="a half is refuted")
    assert "Rival: its exponent is 0.1 off; a half is refuted." in STUDY.report.document(run).answer


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("file", "Damped: width 16, activation relu,"),
        ("wider", "Damped: depth 4 .. 16, width 16 .. 64, activation relu,"),
        ("chains", "Chain: units 4 .. 16, input_channels 8, inputs 1, input_law white"),
    ],
)
def test_the_heading_says_the_nets_of_all_sizes(made, said, file, chains, tmp_path, capsys):
    path = chains if made == "chains" else file
    if made == "wider":
        path.write_text(FILE.replace("width=16", "width=4 * depth"))
    assert without_figure(STUDY, [*RUN, "--net", f"{path}:make", "--draws", "4"], tmp_path / "run.nc") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("Damped", "Chain"))]
    assert line.startswith(said)


def test_csv_is_the_table_of_sizes_alone_with_missing_cells_empty(tmp_path, capsys):
    given = ["--net", "MLP", "--set", "width=16", "--draws", "8", "--claim", "-1", "--format", "csv"]
    assert without_figure(STUDY, [*RUN, *given], tmp_path / "run.nc") == 0
    title, header, first, *others = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert title.startswith("# Drawn by depth")
    at = header.split(",").index("local slope")
    assert first.split(",")[at : at + 3] == ["", "", ""]  # with its error and theory: there is no size before
    assert len(others) == 2
    assert all(re.fullmatch(r"[-+.\de,]+", line) and "" not in line.split(",") for line in others)
    with pytest.raises(SystemExit):
        STUDY.main(["--help"])
    assert "csv the tables of numbers alone" in " ".join(capsys.readouterr().out.split())


def test_without_theory_nothing_is_predicted(tmp_path):
    given = ["--net", "MLP", "--set", "width=16", "--no-theory"]
    run = finished_run(STUDY, [*RUN, *given], tmp_path / "run.nc")
    assert not [name for name in run if "mean_field" in str(name) or "exact" in str(name)]
    assert run.attrs["theory_missing"] == "it was not asked for"
    assert "verdict" not in run.attrs
