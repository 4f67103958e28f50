"""A finished run is read back by the very same run alone: every option, and every line of code, is in its key."""

import subprocess
import sys

import numpy as np
import pytest

import sims
from meanfield.execution import digests
from meanfield.execution.run import Run
from sims import simulation as simulation_module
from sims.common import results
from sims.common.results import Results, run_key
from sims.looped_update import STUDY as looped_update
from tests.sims.commands import finished_run

# The module; its function of this name is what the room lists.
# Simulations with a dataset of their own, whose run has a key.
OTHERS = ("check_recipe", "claims", "hyperparameters", "measure_model", "sweep")
NAMES = [name for name in sims.NAMES if name not in OTHERS]
# What no number depends on, what only prints, and what a file of one's own takes with it (seen below).
BESIDE = {"help", "preset", "times", "out", "force", "full", "format", "workers", "scheduler"}
BESIDE |= {"labels"}
# Those of a carried rate alone.
CARRIED = ("transfer", "from", "to", "rule", "stem", "family", "optimizer", "of", "data", "batch_size")
OF_TRANSFER = {("learning_rate_scale", name) for name in CARRIED}
OTHER_WORDS = {
    "activation": ["linear"],
    "backend": ["cupy"],
    "base": ["hidden.learning_rate=0.5"],
    "biases": [],
    "curvature": ["exact"],
    "data": ["mnist"],
    "families": ["cnn gelu"],
    "head": ["mup"],
    "image_grid": ["7", "7"],
    "no_theory": [],
    "theory": [],
    "normalisations": ["rms"],
    "optimizer": ["adamw"],
    "optimizers": ["lion"],
    "padding": ["zero"],
    "plain": [],
    "pair": ["1,1:2,2"],
    "precision": ["float32"],
    "readout": ["pooled"],
    "scaling": ["none"],
    "schedule": ["warmup_cosine"],
    "tables": ["many"],
}
# Where the general rule below gives what a simulation refuses, or what it has already.
OWN_WORDS = {
    ("cnn_overlap", "input"): ["photo"],
    ("cnn_overlap", "input_channels"): ["5"],
    ("cnn_overlap", "samples"): ["2"],
    ("coordinate_check", "activation"): ["relu"],
    ("coordinate_check", "precision"): ["float64"],
    ("coordinate_check", "soap_epsilon"): ["0.001", "--optimizers", "soap"],
    ("transformer_coordinate_check", "soap_epsilon"): ["0.001", "--optimizers", "soap-adamw"],
    ("cnn_overlap", "precision"): ["float64"],
    ("depth_law", "net"): ["MLP", "--set", "width=8"],
    ("depth_law", "set"): ["width=16"],
    ("depth_law", "along"): ["width", "--set", "depth=2"],
    ("depth_law", "quantity"): ["label_learning_rate_scale"],
    ("depth_law", "claim"): ["-0.25"],
    ("depth_law", "rival"): ["0.25"],
    ("depth_law", "loss"): ["cross_entropy"],
    ("depth_law", "optimizer"): ["lion"],
    ("depth_law", "epsilon"): ["0.001", "--optimizer", "adamw"],
    ("depth_law", "data"): ["digits"],
    ("depth_law", "batch_size"): ["32", "--data", "digits"],
    ("looped_transformer", "heads"): ["1"],
    ("looped_transformer", "width"): ["24"],
    ("hyperparameter_transfer", "decays"): ["0.0625", "0.5"],
    ("hyperparameter_transfer", "families"): ["gpt"],
    ("hyperparameter_transfer", "optimizers"): ["adamw"],
    ("hyperparameter_transfer", "tokens"): ["8", "--families", "gpt"],
    ("learning_rate_transfer", "across"): ["width"],
    ("learning_rate_search", "grid"): ["9"],
    ("learning_rate_search", "wider"): ["2"],
    ("learning_rate_transfer", "precision"): ["float64"],
    ("looped_rates", "blocks"): ["own"],
    ("looped_rates", "heads"): ["4"],
    ("looped_rates", "optimizer"): ["lion"],
    ("looped_rates", "width"): ["16"],
    ("optimizer_depth", "families"): ["plain"],
    ("overlap_recursion", "fixed"): ["3"],
    ("reported_losses", "tables"): ["15"],
    ("spectral_condition", "activation"): ["relu"],
    ("table_cells", "activation"): ["relu"],
    ("transformer_coordinate_check", "precision"): ["float64"],
    ("transformer_coordinate_check", "width"): ["48"],
    ("transformer_depth", "heads"): ["2"],
    ("transformer_depth", "input"): ["photo"],
    ("transformer_depth", "width"): ["128"],
    ("training_assumptions", "batch"): ["8"],
    ("training_assumptions", "rate"): ["0.02"],
    ("training_assumptions", "soap_epsilon"): ["0.001", "--optimizer", "soap"],
    ("training_assumptions", "classes"): ["3", "4"],
    ("training_length", "batch_sizes"): ["4", "16"],
    ("training_length", "schedules"): ["constant"],
}


@pytest.fixture
def keys(monkeypatch):
    """The keys of the runs that follow, none of which begins its work, nor looks for a device."""
    keys = []
    monkeypatch.setattr(Run, "require_memory", lambda self, workers: None)
    monkeypatch.setattr(Results, "deliver", lambda self, *_: keys.append(self.run_key) or 0)
    return keys


def _arguments(name):
    return ["--preset", "smoke"] if simulation_module(name).presets else []


def _altered(name, action, value):
    """Other words for an option of that value."""
    if (name, action.dest) in OWN_WORDS:
        return OWN_WORDS[name, action.dest]
    if action.dest in OTHER_WORDS:
        return OTHER_WORDS[action.dest]
    if action.type is float:
        return [str(0.5 * (value or 0.02))]
    return [*map(str, value[:-1]), str(2 * value[-1])] if isinstance(value, list) else [str(value + 1)]


def _cases():
    for name in NAMES:
        options = simulation_module(name).parse(_arguments(name))
        for action in options.parser._actions:
            if action.dest not in BESIDE and (name, action.dest) not in OF_TRANSFER | {
                ("training_assumptions", "input"),
                ("training_assumptions", "grid"),
                ("batch_size", "images"),
                ("transformer_depth", "patch"),
            }:
                yield pytest.param(name, action, getattr(options, action.dest), id=f"{name}-{action.dest}")


@pytest.mark.parametrize(("name", "action", "value"), list(_cases()))
def test_every_option_is_in_the_key(name, action, value, keys):
    simulation, arguments = simulation_module(name), _arguments(name)
    words = [action.option_strings[-1], *_altered(name, action, value)]
    for given in (arguments, arguments, [*arguments, *words]):
        assert simulation.main([*given]) == 0
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edited", ["meanfield", "sims"])
def test_all_code_is_in_the_key(name, edited, keys, monkeypatch):
    simulation, real = simulation_module(name), digests.sources_digest
    assert simulation.main(_arguments(name)) == 0
    with monkeypatch.context() as patched:
        digests.code_digest.cache_clear()
        for module in (digests, results):
            patched.setattr(module, "sources_digest", lambda root: "edited" if root.name == edited else real(root))
        assert simulation.main(_arguments(name)) == 0
    digests.code_digest.cache_clear()
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("cnn_overlap", ["--input", "images.npy", "--grid", "8", "8"]),
        ("batch_size", ["--images", "images.npy", "--image-grid", "8", "8"]),
        ("training_assumptions", ["--input", "images.npy", "--labels", "labels.npy", "--grid", "8", "8"]),
    ],
)
def test_images_are_in_the_key_by_their_contents(name, given, keys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulation, random = simulation_module(name), np.random.default_rng(0)
    classes = ["--classes", "0", "1"] if "--labels" in given else []
    np.save("labels.npy", np.arange(40) % 2)
    for images in (random.normal(size=(2, 40, 1, 8, 8)), random.normal(size=(1, 40, 1, 8, 8))):
        np.save("images.npy", images[0])
        assert simulation.main([*_arguments(name), *given, *classes]) == 0
    assert simulation.main([*_arguments(name), *given, *classes]) == 0
    assert keys[0] != keys[1] == keys[2]


FILE = """
import meanfield as mf

FACTOR = {factor}


class Own(mf.ResidualMLP):
    @property
    def multiplier(self):
        return FACTOR * self.depth**-0.75


def make(depth):
    return Own(depth=depth, width=16)


def law(depth):
    return depth**{power}
"""


def test_files_of_nets_and_laws_are_in_the_key_by_what_they_compute(keys, tmp_path, monkeypatch):
    """By the numbers in them, not by their names or by comments."""
    for number, (factor, power, words) in enumerate([(1, 1, ""), (2, 1, ""), (1, 2, ""), (1, 1, "# the same")]):
        path = tmp_path / f"own_nets_{number}.py"
        path.write_text(FILE.format(factor=factor, power=power) + words)
        given = ["--net", f"{path}:make", "--claim", f"{path}:law", "--rival", "0"]
        assert simulation_module("depth_law").main([*_arguments("depth_law"), *given]) == 0
    assert len({keys[0], keys[1], keys[2]}) == 3


DOCUMENTED = '''
"""Nets of one's own."""

import meanfield as mf


class Own(mf.ResidualMLP):
    """A residual net."""

    @property
    def multiplier(self):
        """None where there is no block."""

        def power():
            """Of the depth."""
            return None if not self.depth else -0.75

        class Kept:
            """What the law says."""

            law = power()

        for _ in range(2):
            """No step of the loop."""
            if Kept.law is None:
                return None
        return self.depth**Kept.law


def make(depth):
    """A net of this depth."""
    return Own(depth=depth, width=16)
'''


def _compiled(source, optimize):
    names = {"__name__": "own_nets"}
    exec(compile(source, "own_nets.py", "exec", optimize=optimize), names)
    return digests.digest(make=names["make"], net=names["Own"])


def test_docstrings_are_in_no_key():
    """Other docstrings, or none, as under `python -OO`, and the same steps; one step more is another key."""
    key = _compiled(DOCUMENTED, 0)
    assert key == _compiled(DOCUMENTED, 2) == _compiled(DOCUMENTED.replace("None where", "Nothing where"), 0)
    others = {"-0.75": "-0.5", "range(2)": "range(3)", "not self.depth": "self.depth", "**": "*", "width=": "channels="}
    for step, other in others.items():
        assert _compiled(DOCUMENTED.replace(step, other), 0) != key, step


KEY = """
import sys
from meanfield.execution.workers import Workers
from sims import simulation
from sims.common.results import run_key, shared_values

study = simulation("depth_law")
options = study.parse(["--preset", "smoke", "--net", f"{sys.argv[1]}:make", "--claim", "0.5", "--data", "digits"])
options.workers = Workers(1)
print(run_key(**study.checked(options), **shared_values(options)), study.description)
"""


def test_python_without_docstrings_has_the_same_keys(tmp_path):
    """As a run is found again that another setting of Python began; only --help says less."""
    path = tmp_path / "own_nets.py"
    path.write_text(DOCUMENTED)
    script = [sys.executable, "-c", KEY, str(path)]
    told = [script, [*script[:1], "-OO", *script[1:]]]
    printed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in told]
    keys = [words.split()[0] for words in printed]
    assert keys[0] == keys[1]
    assert [words.split()[1] for words in printed] == ["A", "None"]


def test_patches_are_in_the_key(keys):
    for patch in ("2", "4"):
        arguments = [*_arguments("transformer_depth"), "--input", "photo", "--patch", patch]
        assert simulation_module("transformer_depth").main(arguments) == 0
    assert keys[0] != keys[1]


def test_a_result_of_other_simulations_is_not_read_back(tmp_path, monkeypatch, capsys):
    """As after an edit of a theory column in sims/, which used to leave the old numbers standing as finished."""
    arguments = ["--loops", "2", "4", "--width", "8", "--draws", "4", "--workers", "1"]
    finished_run(looped_update, arguments, tmp_path / "run.nc")
    assert looped_update.main([*arguments, "--out", str(tmp_path / "run.nc")]) == 0
    assert "reading the finished run" in capsys.readouterr().out
    real = digests.sources_digest
    monkeypatch.setattr(results, "sources_digest", lambda root: "edited" if root.name == "sims" else real(root))
    assert looped_update.main([*arguments, "--out", str(tmp_path / "run.nc")]) == 2
    assert "was not written by this run" in capsys.readouterr().err


def test_pieces_of_other_simulations_are_not_taken(tmp_path):
    """Unfinished pieces lie in a folder that the key names."""
    options = looped_update.parse(["--out", str(tmp_path / "run.nc")])
    folders = {Results("looped_update", run_key(draws=draws), options).pieces.folder for draws in (4, 5)}
    assert len(folders) == 2
