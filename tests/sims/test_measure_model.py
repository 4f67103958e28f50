"""The command for a PyTorch model of one's own: the library's numbers, what the report names, and what it refuses."""

import contextlib
import io
import json
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import xarray as xr

from sims import simulation

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402
from figures.measure_model import draw  # noqa: E402
from sims.measure_model import measured  # noqa: E402
from sims.measure_model.dataset import fitted  # noqa: E402
from sims.measure_model.report import document, out_of_line  # noqa: E402
from tests.torch import models  # noqa: E402

COMMAND = simulation("measure_model")
HOW = {"optimizer": "adamw", "draws": 2}


# What the command imports from here.


def batches():
    return [models.tokens(seed=seed) for seed in range(2)]


def pictures():
    return [models.images(seed=seed) for seed in range(2)]


def deeper_and_wider(size):
    return models.UnnormalisedResNet(depth=size, channels=4 * size)


def broken(depth):
    model = models.GPT(depth=depth)
    torch.nn.init.constant_(model.transformer.h[1].ln_2.weight, 30.0)
    return model


def fast_gain(model):
    """A gain whose learning rate is a thousand times that of all else."""
    gain = model.transformer.h[0].ln_2.weight
    others = [parameter for parameter in model.parameters() if parameter is not gain]
    return torch.optim.AdamW([{"params": others, "lr": 1e-3}, {"params": [gain], "lr": 1.0}])


def no_model(depth):
    return depth


def on_no_device(depth):
    with torch.device("meta"):
        return models.GPT(depth=depth)


def evaluated(depth):
    return models.GPT(depth=depth).eval()


def vector(outputs, targets):
    return torch.nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")


def not_finite(outputs, targets):
    return measured.cross_entropy(outputs, targets) * float("nan")


def without_disk():
    yield models.tokens()
    raise OSError("the disk is gone")


def of_two_types():
    inputs, targets = models.tokens()
    return [(inputs, targets), (inputs, targets.double())]


def of_the_head(model):
    return torch.optim.AdamW(model.lm_head.parameters())


def failing(depth):
    if depth > 1:
        raise RuntimeError("too deep")
    return models.GPT(depth=depth)


class Narrow(torch.nn.Linear):
    def __init__(self, depth):
        super().__init__(36, 3)
        self.depth = depth

    def forward(self, x):
        return super().forward(x.flatten(1)[:, : 36 if self.depth < 2 else 10])


GPT = ["tests.torch.models:GPT", "--loss", "cross_entropy", "--data", f"{__name__}:batches", "--draws", "2"]
OF_PICTURES = ["--loss", "cross_entropy", "--data", f"{__name__}:pictures", "--draws", "2"]
RESNET = ["tests.torch.models:ResNet", *OF_PICTURES]
UNNORMALISED = ["tests.torch.models:UnnormalisedResNet", *OF_PICTURES]


def run(arguments, path):
    assert COMMAND.main([*arguments, "--out", str(path)]) == 0
    return xr.load_dataset(path, engine="netcdf4")


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    """A carried run with everything that it writes, and the folder."""
    folder = tmp_path_factory.mktemp("gpt")
    sizes = ["--sizes", "depth=1,3", "--carry", "0.1@depth=1"]
    return run([*GPT, *sizes], folder / "run.nc"), folder


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_the_command_has_the_numbers_of_the_library(gpt):
    dataset, _ = gpt
    data = measured.cross_entropy, batches()
    factories = {f"depth={depth}": partial(models.GPT, depth=depth) for depth in (1, 3)}
    for size, factory in factories.items():
        at, started = dataset.sel(size=size), mft.starting_rate(factory, *data, **HOW)
        for name in ("rate", "low", "high"):
            assert float(at[f"started_{name}"]) == float(started[name])
        names = started["module"].values.tolist()
        np.testing.assert_array_equal(at["relative_update_energy"].sel(module=names), started["relative_update_energy"])
        np.testing.assert_array_equal(
            at["scale"].sel(of="outputs"), started["output_learning_rate_scale_quantile"].sel(quantile=0.5)
        )
    carried = mft.carry(0.1, *factories.values(), *data, **HOW)
    for name in ("rate", "low", "high"):
        assert float(dataset[f"carried_{name}"].sel(size="depth=3")) == float(carried[name])
    said = " ".join(document(dataset).short().split())
    assert f"The rate 0.1 at depth=1 becomes {float(carried['rate']):.2g} at depth=3." in said
    assert f"{float(dataset['started_rate'][0]):.2g}" in said


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_sizes_of_two_kinds_are_each_carried_as_the_library_does(tmp_path):
    """Over the depth by the outputs, over the width by the relative change, so that no one power is named."""
    sizes = [
        "--sizes",
        "depth=1,2",
        "--sizes",
        "channels=4,8",
        "--optimizer",
        "adamw",
        "--carry",
        "0.1@depth=1,channels=4",
    ]
    dataset = run([*UNNORMALISED, *sizes], tmp_path / "run.nc")
    data = torch.nn.functional.cross_entropy, pictures()
    for depth, channels in ((2, 4), (1, 8), (2, 8)):
        pair = (partial(models.UnnormalisedResNet, depth=at, channels=wide) for at, wide in ((1, 4), (depth, channels)))
        carried = mft.carry(0.1, *pair, *data, **HOW)
        assert float(dataset["carried_rate"].sel(size=f"depth={depth},channels={channels}")) == float(carried["rate"])
    assert dataset.attrs["carried_by"] == "relative or outputs"
    assert "goes as" not in " ".join(document(dataset).short().split())
    premises = dataset.attrs["carried_premises"].split("; ")
    assert len(premises) == len(set(premises))
    assert sum("moves the outputs by 1" in each or "relative to themselves by 1" in each for each in premises) == 2


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_under_descent_a_rate_stays_over_the_width_also_where_the_depth_differs(tmp_path):
    """Where a size of the tuned width is as deep; the library, which has two models alone, gives none."""
    ladder = ["--optimizer", "sgd", "--sizes", "depth=1,2", "--sizes", "channels=4,8"]
    dataset = run([*UNNORMALISED, *ladder, "--carry", "0.1@depth=1,channels=4"], tmp_path / "run.nc")
    rates = dataset["carried_rate"].to_series()
    assert rates["depth=1,channels=8"] == 0.1
    assert rates["depth=2,channels=8"] == rates["depth=2,channels=4"] != 0.1
    assert dataset["carried_of"].values.tolist() == [
        "outputs",
        "none: it stays over the width",
        "outputs",
        "outputs, over depth alone",
    ]
    pair = (partial(models.UnnormalisedResNet, depth=at, channels=4 * at) for at in (1, 2))
    with pytest.raises(ValueError, match="no scale carries a rate at once under descent"):
        mft.carry(0.1, *pair, torch.nn.functional.cross_entropy, pictures(), **HOW | {"optimizer": "sgd"})
    sizes = ["--sizes", "size=1,2", "--carry", "0.1@size=1", "--optimizer", "sgd"]
    alone = run([f"{__name__}:deeper_and_wider", *UNNORMALISED[1:], *sizes], tmp_path / "both.nc")
    assert alone["carried_rate"].isnull().values.tolist() == [False, True]
    assert "is not carried to size=2: the models differ in width and depth" in " ".join(document(alone).text().split())


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_sizes_of_one_kind_go_as_one_power(tmp_path):
    """The tuned size, which is carried to itself, has no part in it."""
    sizes = ["--sizes", "channels=4,6,8", "--optimizer", "adamw", "--carry", "0.1@channels=4"]
    dataset = run([*UNNORMALISED, *sizes], tmp_path / "run.nc")
    assert dataset.attrs["carried_by"] == "relative"
    lost = dataset.copy(deep=True).assign_attrs(not_carried="its last layer is another")
    lost["carried_rate"][2] = np.nan
    said = " ".join(document(lost).short().split())
    assert "becomes" in said
    assert "is not carried to channels=8: its last layer is another." in said
    lost["carried_rate"][1] = np.nan
    said = " ".join(document(lost).short().split())
    assert "becomes" not in said
    assert "0.1 at channels=4 is not carried to channels=6 and channels=8" in said
    assert "nan" not in said
    assert "By one step the rate goes as channels^(" in " ".join(document(dataset).short().split())
    assert "outputs" not in dataset.attrs["carried_premises"]


def test_changes_of_modules_and_groups_are_those_of_the_library(gpt):
    dataset, _ = gpt
    places = dataset["place"].values.tolist()
    blocks = [f"transformer.h.{block}" for block in range(3)]
    assert places == ["transformer.wte", "transformer.wpe", *blocks, "transformer.ln_f", "lm_head"]
    gains = ["*.ln_?.weight", "*.ln_f.weight"]
    factory, data = partial(models.GPT, depth=3), (measured.cross_entropy, batches())
    scales = mft.step_scales(factory, *data, modules=places, groups={"norm gains": gains}, **HOW)
    np.testing.assert_array_equal(dataset["place_relative_update_energy"], scales["relative_update_energy"])
    np.testing.assert_allclose(
        dataset["place_energy_of_group"].sel(group="norm gains"), scales["update_energy_of_group"][0], rtol=1e-12
    )
    assert set(dataset["group"].values) == {"embeddings", "attention", "weights", "norm gains", "biases"}


def test_it_writes_a_page_and_a_figure_and_is_read_again(gpt, capsys):
    dataset, folder = gpt
    assert (folder / "run.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "run.html").read_text()
    assert "image/svg+xml" in page
    assert "transformer.h.2" in page
    assert [str(name) for name in dataset.variables if not dataset[name].attrs.get("long_name")] == []
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    sizes = ["--sizes", "depth=1,3", "--out", str(folder / "run.nc")]
    assert COMMAND.main([*GPT, *sizes, "--carry", "0.1@depth=1"]) == 0
    assert "reading the finished run" in capsys.readouterr().out
    assert COMMAND.main([*GPT, *sizes]) == 2
    assert "was not written by this run" in capsys.readouterr().err


def test_bars_of_modules_are_changes_with_errors_of_roots(gpt):
    dataset, _ = gpt
    modules = draw(dataset).axes[0]
    errors, bars = modules.containers
    at = dataset.sel(place=[text.get_text() for text in modules.get_yticklabels()])
    energy, stderr = (at[f"place_relative_update_energy{end}"].values for end in ("", "_stderr"))
    changes = [bar.get_width() for bar in bars]
    assert at.sizes["place"] == len(bars) > 3
    np.testing.assert_allclose(np.square(changes), dataset.attrs["shown_rate"] ** 2 * energy)
    halves = [np.ptp(np.asarray(segment)[:, 0]) / 2 for segment in errors[2][0].get_segments()]
    np.testing.assert_allclose(np.divide(halves, changes), stderr / energy / 2)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a run over three sizes prints, which three sentences speak against, and its document."""
    path, said = tmp_path_factory.mktemp("printed") / "run.nc", io.StringIO()
    sizes = ["--sizes", "depth=1,2,4", "--kind", "transformer"]
    with contextlib.redirect_stdout(said):
        dataset = run([*GPT, *sizes], path)
    return said.getvalue(), document(dataset), dataset


def test_the_report_fits_a_screen_and_keeps_its_answer(printed):
    """With the lines that say where its files are."""
    text, whole, dataset = printed
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 100
    words = " ".join(text.split())
    for size in dataset["size"].values:
        assert f"{float(dataset['started_rate'].sel(size=size)):.2g} at {size}" in words
    assert re.search(r"By one step the rate goes as depth\^\(-?\d\.\d\d \+- \d\.\d\d\)", words)
    assert "moves most, by" in words
    assert "stands out" in words or "out of line" in words
    assert all(sentence[:80] in words for sentence in dataset.attrs["warnings"].split("\n"))
    assert "run.html" in words
    assert "Premises" not in text
    assert "Premises" in whole.text()
    assert "What the rate to start from rests on" in whole.text()


def test_warnings_are_whole_where_they_have_room_and_counted_where_they_have_none(printed):
    def short(*sentences):
        return document(printed[2].assign_attrs(warnings="\n".join(sentences))).short()

    sentence = " ".join(["a sentence of two lines"] * 6)
    assert sentence in " ".join(short(sentence).split())
    assert ".." not in short(sentence).partition("Warnings")[2]
    lines = short(*[sentence] * 4).splitlines()
    assert sum(line.startswith("  a sentence") and line.endswith(" ..") for line in lines) == 4
    many = short(*(f"this is warning {number}" for number in range(40)))
    assert len(many.splitlines()) == 36
    (left,) = re.findall(r"and (\d+) more \(--full\)", many)
    assert int(left) + many.count("this is warning") == 40


def test_a_gain_that_is_too_large_is_named_and_a_right_model_is_not_blamed(gpt, tmp_path, capsys):
    wrong = run([f"{__name__}:broken", *GPT[1:], "--sizes", "depth=3"], tmp_path / "run.nc")
    said = " ".join(capsys.readouterr().out.split())
    (factor,) = re.findall(r"transformer\.h\.1\.ln_2 stands out: its values are (\d+) times those of its like", said)
    assert 25 < float(factor) < 35
    assert out_of_line(wrong)["transformer.h.1.ln_2"] == pytest.approx(30, rel=0.05)
    assert max(out_of_line(gpt[0]).values()) < 3
    assert "No module's values are out of line with those of its like in other blocks" in document(gpt[0]).text()


def test_the_one_parameter_that_moves_all_is_named(tmp_path, capsys):
    fast = ["--sizes", "depth=2", "--optimizer", f"{__name__}:fast_gain"]
    run([*GPT, *fast], tmp_path / "run.nc")
    said = " ".join(capsys.readouterr().out.split())
    assert "norm gains move it most" in said
    assert re.search(r"of these transformer\.h\.0\.ln_2\.weight moves it \d+ times as far as", said)


def test_a_residual_net_over_two_sizes(tmp_path, capsys):
    sizes = ["--sizes", "depth=1,2", "--sizes", "channels=4", "--optimizer", "sgd"]
    dataset = run(
        [*RESNET, *sizes, "--modules", "layer?.*", "--groups", "convolutions=*.conv?.weight"], tmp_path / "run.nc"
    )
    assert dataset["size"].values.tolist() == ["depth=1,channels=4", "depth=2,channels=4"]
    assert dataset["axis"].values.tolist() == ["depth"]
    rates = dataset["scale"].sel(of="outputs").values
    slope = float(dataset["slope"].sel(of="outputs", axis="depth"))
    assert slope == pytest.approx(np.log(rates[1] / rates[0]) / np.log(2))
    assert dataset["group"].values.tolist() == ["convolutions"]
    assert f"depth^({slope:.2f} +- " in capsys.readouterr().out


def test_slopes_over_several_sizes_have_the_errors_of_their_points():
    depths, widths = np.array([2.0, 4.0, 2.0, 4.0]), np.array([8.0, 8.0, 16.0, 16.0])
    values = 3 * depths**-1.5 * widths**-0.5
    design = np.stack([np.ones(4), np.log(depths), np.log(widths)], axis=1)
    slopes, errors, chance = fitted(design, values, 0.1 * values)
    np.testing.assert_allclose(slopes, [-1.5, -0.5])
    np.testing.assert_allclose(errors, 0.1 / np.log(2))
    assert chance == pytest.approx(1.0)
    assert np.isnan(fitted(design, values * [1, 1, 1, np.nan], values)[0]).all()


def test_optimizers_without_a_trial_have_scales_and_no_rate(tmp_path, capsys):
    dataset = run([*RESNET, "--sizes", "depth=1", "--optimizer", "torch.optim:Adagrad"], tmp_path / "run.nc")
    said = " ".join(capsys.readouterr().out.split())
    assert "No rate to start from is named: no trial has a constant for Adagrad" in said
    assert dataset["started_rate"].isnull().all()
    assert dataset["scale"].notnull().all()


def test_what_is_measured_of_a_size_is_kept_where_the_next_one_fails(tmp_path, capsys, monkeypatch):
    narrow = [f"{__name__}:Narrow", *RESNET[1:], "--out", str(tmp_path / "run.nc"), "--sizes"]
    assert COMMAND.main([*narrow, "depth=1,2"]) == 2
    complaint = capsys.readouterr().err.splitlines()[-1]
    assert complaint.startswith("error: at depth=2: RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    assert "(test_measure_model.py, line" in complaint
    assert [path.suffix for path in tmp_path.iterdir()] == [".pieces"]
    steps = []
    monkeypatch.setattr(mft, "step_scales", lambda *given, **how: steps.append(how) or _measured(*given, **how))
    assert COMMAND.main([*narrow, "depth=1"]) == 0
    assert all("groups" in how for how in steps)
    assert not list(tmp_path.glob(".*"))


_measured = mft.step_scales


def test_tokens_of_a_file_stay_whole_numbers(tmp_path):
    tokens, following = models.tokens(samples=8)
    np.savez(tmp_path / "tokens.npz", inputs=tokens.numpy().astype(np.uint16), targets=following.numpy())
    given = ["--data", str(tmp_path / "tokens.npz"), "--batch-size", "4", "--sizes", "depth=1"]
    dataset = run([*GPT[:3], *given, "--draws", "2"], tmp_path / "run.nc")
    assert dataset.attrs["batch"] == "2 batches of inputs (4, 6)"


def test_cross_entropy_asks_where_the_classes_are():
    logits, targets = torch.randn(2, 4, 5), torch.randint(4, (2, 5))
    assert measured.cross_entropy(logits, targets) == torch.nn.functional.cross_entropy(logits, targets)
    turned = measured.cross_entropy(logits.transpose(1, 2), targets)
    assert float(turned) == pytest.approx(float(measured.cross_entropy(logits, targets)))
    with pytest.raises(ValueError, match="on the second axis or the last"):
        measured.cross_entropy(torch.randn(2, 5, 5), targets)
    with pytest.raises(ValueError, match="takes the numbers of classes: give labels of an integer type"):
        measured.cross_entropy(torch.randn(2, 5), torch.zeros(2))
    with pytest.raises(TypeError, match="gives a tuple, and cross_entropy takes one tensor"):
        measured.cross_entropy((logits, None), targets)


OWN = f"{__name__}:"
REFUSED = {
    "nowhere:gpt": "the factory nowhere:gpt: importing nowhere raises ModuleNotFoundError: No module named 'nowhere'",
    "train.py:gpt": "give the module as Python imports it, train:gpt",
    "gpt": "the factory is 'gpt'; give package.module:name",
    f"{OWN}nothing": "has no 'nothing'; it has",
    f"{OWN}no_model --sizes depth=2": "no_model makes int at depth=2; give a function that makes a torch.nn.Module",
    f"{OWN}failing --sizes depth=1,2": "at depth=2: RuntimeError: too deep (test_measure_model.py, line",
    f"{OWN}broken": "broken needs depth; give --sizes depth=NUMBER",
    f"{OWN}broken --sizes depht=2": "takes no 'depht', which --sizes gives; it takes depth",
    f"{OWN}broken --sizes depth=2,2": "repeats a number",
    f"{OWN}broken --sizes depth=2 --sizes depth=3": "--sizes gives depth twice",
    f"{OWN}broken --sizes depth=deep": "has 'deep'; give positive numbers",
    f"{OWN}broken --sizes depth=0": "is 0; it must be at least 1",
    f"{OWN}broken --sizes depth": "is no NAME=NUMBER,NUMBER,..",
    f"{OWN}broken --sizes depth=2 --loss hinge": "--loss is 'hinge'; choose one of 'cross_entropy', 'mse'",
    f"{OWN}broken --sizes depth=2 --data photos": "--data is 'photos'; give FILE.npz",
    f"{OWN}broken --sizes depth=2 --data nowhere.npz": "--data nowhere.npz is not there",
    f"{OWN}broken --sizes depth=2 --length 4": "--length is of windows of text",
    f"{OWN}broken --sizes depth=2 --batch-size 4": "has batches of its own size; leave --batch-size out",
    f"{OWN}broken --sizes depth=2 --optimizer adamx": "--optimizer is 'adamx'; choose one of",
    f"{OWN}broken --sizes depth=2 --carry 0.1": "give the tuned learning rate and its size, such as 0.003@depth=4",
    f"{OWN}broken --sizes depth=2 --carry 0.1@depth=2": "is carried to other sizes, and there is one: give --sizes",
    f"{OWN}on_no_device --sizes depth=2": "are on the meta device, without numbers",
    f"{OWN}evaluated --sizes depth=2": "at depth=2: the model is in evaluation mode",
    f"{OWN}broken --sizes depth=2 --data {OWN}without_disk": "its batches raise OSError: the disk is gone",
    f"{OWN}broken --sizes depth=2,3 --carry 0.1@depth=4": "depth=4 is none of the sizes that are measured",
    f"{OWN}broken --sizes depth=2 --groups gains": "is no NAME=PATTERN",
    f"{OWN}broken --sizes depth=2 --groups gains=*.gain": "--groups has *.gain, which fits nothing at depth=2",
    f"{OWN}broken --sizes depth=2 --modules block.*": "--modules has block.*, which fits nothing at depth=2",
    f"{OWN}broken --sizes depth=2 --draws 1": "--draws is 1",
    f"{OWN}broken --sizes depth=2 --precision float16": "--precision is 'float16'",
    f"{OWN}broken --sizes depth=2 --out run.txt": "must end in .nc",
}


@pytest.mark.parametrize("given", REFUSED)
def test_bad_input_gets_one_line_before_any_work(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    factory, *others = given.split()
    assert COMMAND.main([factory, *GPT[1:], *others]) == 2
    complaint = capsys.readouterr().err
    assert REFUSED[given] in complaint
    assert complaint.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--loss", f"{__name__}:vector"], "at depth=2: the loss has shape"),
        (["--loss", f"{__name__}:not_finite"], "at depth=2: the loss is nan at initial weights"),
        (["--data", f"{__name__}:of_two_types"], "targets of batch 1 are float64, and those of batch 0 int64"),
        (["--optimizer", f"{__name__}:of_the_head"], "no group of the optimizer has the parameters"),
    ],
)
def test_what_the_first_step_shows_is_refused_in_one_line(given, sentence, tmp_path, capsys):
    assert COMMAND.main([*GPT, "--sizes", "depth=2", *given, "--out", str(tmp_path / "run.nc")]) == 2
    complaint = capsys.readouterr().err
    assert sentence in complaint
    assert complaint.count("\n") == 2  # with the size that is measured
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"labels": np.zeros(4)}, "has no 'inputs'"),
        ({"inputs": np.zeros((4, 2)), "more": np.zeros(4)}, "has no 'targets'"),
        ({"inputs": np.full((4, 2), np.nan), "labels": np.zeros(4)}, "give finite real numbers"),
        (
            {"inputs": np.zeros((4, 2)), "labels": np.array(1)},
            "are one number; give an array with a sample in each row",
        ),
        ({"inputs": np.zeros((4, 2)), "labels": np.zeros(3)}, "4 inputs and targets of shape (3,)"),
        ({"inputs": np.zeros((4, 2)), "labels": np.zeros(4)}, "holds 4 samples, and a batch takes 64"),
    ],
)
def test_files_that_lack_something_are_refused(arrays, sentence, tmp_path, capsys):
    np.savez(tmp_path / "data.npz", **arrays)
    assert COMMAND.main([*GPT[:3], "--data", str(tmp_path / "data.npz")]) == 2
    assert sentence in capsys.readouterr().err


def test_a_model_that_its_data_do_not_fit_is_told_of_them(tmp_path, monkeypatch, capsys):
    """Windows of 64 characters, and 16 positions."""
    monkeypatch.chdir(tmp_path)
    given = "docs.own_model:GPT --sizes depth=1 --loss cross_entropy --data text --batch-size 2 --draws 2"
    assert COMMAND.main(given.split()) == 2
    said = (
        "index out of range in self (own_model.py, line 19); it was given 2 batches of inputs (2, 64), whole numbers up"
    )
    assert said in capsys.readouterr().err


def of_waves():
    return [(torch.randn(4, 2, dtype=torch.complex64), torch.arange(4) % 2)] * 2


class Waves(torch.nn.Linear):
    def __init__(self, depth):
        super().__init__(2, 2)

    def forward(self, x):
        if not x.is_complex():
            raise RuntimeError("no waves")
        return super().forward(x.abs())


def test_data_are_looked_at_only_for_a_model_that_fails_on_them(tmp_path, monkeypatch):
    """Complex numbers have no largest one."""
    monkeypatch.chdir(tmp_path)
    given = f"{OWN}Waves --sizes depth=1 --loss cross_entropy --data {OWN}of_waves --draws 2 --precision float32"
    assert COMMAND.main(given.split()) == 0


def test_without_pytorch_the_command_names_its_extra():
    """And --help needs none."""
    code = "import sys; sys.modules['torch'] = None; import sims; command = sims.simulation('measure_model')"
    given = json.dumps(GPT)
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit(command.main({given}))"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: meanfield.torch measures models of PyTorch, which is not installed")
    assert done.stderr.count("\n") == 1
    shown = subprocess.run([sys.executable, "-c", f"{code}; command.main(['--help'])"], capture_output=True, text=True)
    assert "package.module:name" in shown.stdout
