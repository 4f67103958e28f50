"""`python -m sims.check_recipe`: what deviates and its factor, formats, exit statuses, and bad input in one line."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from meanfield.parameterizations import judge_recipe
from sims.check_recipe import COMMAND as simulation
from tests.recipes import ADAMW, by_powers, gpt


@pytest.fixture
def files(tmp_path):
    """Recipes of a base model, of a right one and of one whose hidden epsilons are the base's."""
    right = gpt(256, 16, by_powers(ADAMW, 4, 8))
    wrong = [
        replace(each, epsilon=1e-8) if each.role in ("ffn", "projection", "query_key_value") else each
        for each in right.weights
    ]
    recipes = {"base": gpt(64, 2), "right": right, "wrong": replace(right, weights=tuple(wrong))}
    paths = {name: tmp_path / f"{name}.json" for name in recipes}
    for name, recipe in recipes.items():
        paths[name].write_text(recipe.to_json())
    return {name: str(path) for name, path in paths.items()}


def ran(capsys, *arguments):
    status = simulation.main([*map(str, arguments)])
    return status, capsys.readouterr()


def test_a_right_recipe_passes(capsys, files):
    status, said = ran(capsys, files["right"], "--base", files["base"])
    assert status == 0
    assert "cells agree." in said.out
    assert "Deviates" not in said.out
    assert "table 6 (adamw), condition 3.1; width x 4 (r_n), depth 2 -> 16 blocks (r_L = 8)" in said.out


def test_what_deviates_is_said_with_its_factor(capsys, files):
    status, said = ran(capsys, files["wrong"], "--base", files["base"])
    assert status == 1
    words = " ".join(said.out.split())
    assert "Answer: 1 of " in words
    assert (
        "hidden adamw_epsilon (query key value, projection, ffn): 1e-08, the table has 3.13e-10 (base 1e-08 x "
        "1/(r_n r_L)), 32 times too large" in words
    )
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "ffn initial_std, learning_rate, weight_decay" in lines
    assert "embedding initial_std, learning_rate, weight_decay, adamw_epsilon" in lines


@pytest.mark.parametrize(("role", "agrees"), [("norm_gain", True), ("bias", True), ("ffn", False)])
def test_gains_and_biases_that_do_not_decay_agree(role, agrees):
    """Where those of the base model do, as by an optimizer with one group; a matrix must."""
    right = gpt(256, 16, by_powers(ADAMW, 4, 8))
    weights = {each.role: each for each in right.weights}
    assert role in weights

    def decaying(recipe, decay):
        held = (replace(each, weight_decay=decay) if each.role == role else each for each in recipe.weights)
        return replace(recipe, weights=tuple(held))

    report = judge_recipe(decaying(right, 0.0), decaying(gpt(64, 2), 0.1))
    assert report.agrees is agrees
    assert bool([note for note in report.notes if "does not decay, as is the custom" in note]) is agrees


def test_some_gains_that_decay_make_the_others_deviate():
    """As where a group has left out those of one block."""
    right, base = gpt(256, 16, by_powers(ADAMW, 4, 8)), gpt(64, 2)
    gains = [each.name for each in right.weights if each.role == "norm_gain"]
    decaying = {each.name for each in base.weights if each.role == "norm_gain"}

    def held(recipe, names):
        weights = (replace(each, weight_decay=0.1) if each.name in names else each for each in recipe.weights)
        return replace(recipe, weights=tuple(weights))

    assert judge_recipe(right, held(base, decaying)).agrees
    report = judge_recipe(held(right, gains[1:]), held(base, decaying))
    assert {role for cell in report.deviating for role in cell.roles} == {"norm gain"}


def test_markdown_and_json(capsys, files):
    status, said = ran(capsys, files["wrong"], "--base", files["base"], "--format", "markdown")
    assert status == 1
    assert "| ffn | initial_std, learning_rate, weight_decay |" in said.out
    assert "- hidden adamw_epsilon (query key value, projection, ffn): 1e-08" in said.out
    status, said = ran(capsys, files["wrong"], "--base", files["base"], "--format", "json")
    record = json.loads(said.out)
    assert (status, record["agrees"], record["width_ratio"], record["depth_ratio"]) == (1, False, 4, 8)
    (cell,) = [cell for cell in record["cells"] if not cell["agrees"]]
    assert (cell["column"], cell["hyperparameter"]) == ("hidden", "adamw_epsilon")
    assert cell["factor"] == pytest.approx(32)


def test_other_tables_and_conditions(capsys, files):
    status, said = ran(capsys, files["right"], "--base", files["base"], "--condition", "B.1")
    assert status == 1
    assert "table 12 (adamw), condition B.1" in " ".join(said.out.split())
    status, said = ran(capsys, files["right"], "--base", files["base"], "--optimizer", "lion")
    assert (status, "table 6 (lion)" in said.out) == (0, True)  # whose rates are AdamW's


def test_out_writes_the_file_once(capsys, files, tmp_path):
    path = tmp_path / "new" / "report.txt"
    arguments = [files["wrong"], "--base", files["base"], "--out", path]
    assert ran(capsys, *arguments)[0] == 1
    assert path.read_text() == ran(capsys, *arguments[:-2])[1].out
    status, said = ran(capsys, *arguments)
    assert (status, "give another --out" in said.err) == (2, True)
    assert ran(capsys, *arguments, "--force")[0] == 1


def test_it_needs_no_pytorch(files):
    code = f"""
import sys
sys.modules["torch"] = None
from sims.check_recipe import COMMAND
sys.exit(COMMAND.main([{files["wrong"]!r}, "--base", {files["base"]!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, ["--base", "nowhere.json"], "No such file or directory: 'nowhere.json'"),
        ({"base": "{"}, [], "base.json: the recipe is no JSON"),
        ({"wrong": "[]"}, [], "wrong.json: the recipe is no object with depth and a list of parameters"),
        ({}, ["--condition", "4"], "--condition is '4'; choose one of '3.1', 'B.1'"),
        ({}, ["--optimizer", "adam"], "optimizer is 'adam'; choose one of"),
        ({}, ["--optimizer", "muon"], "is a vector, which muon does not step: name who steps it, muon-adamw"),
        ({"wrong": gpt(64, 2).to_json()}, [], "both models are of one size, so that nothing scales"),
        ({}, ["--out", ".", "--force"], "cannot write the file .: it is a folder"),
    ],
)
def test_bad_input_gets_one_line(capsys, files, change, arguments, message):
    for name, text in change.items():
        with open(files[name], "w") as file:
            file.write(text)
    base = [] if "--base" in arguments else ["--base", files["base"]]
    status, said = ran(capsys, files["wrong"], *base, *arguments)
    assert status == 2
    assert message in said.err
    assert said.err.count("\n") == 1
