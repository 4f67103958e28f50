"""Recipes against the tables: a right one passes, a wrong cell is found with its factor, and so are known programs."""

import json
from dataclasses import replace

import pytest

from meanfield.parameterizations import Recipe, judge_recipe, read_recipe
from meanfield.parameterizations.recipes import ModelWeight, paired
from tests.recipes import ADAMW, BASE, by_powers, gpt

WIDTHS, DEPTHS = (64, 256), (2, 16)
RATIOS = (4, 8)


def judged(powers=ADAMW, *, target=None, base=None, **how):
    target = target or gpt(WIDTHS[1], DEPTHS[1], by_powers(powers, *RATIOS))
    return judge_recipe(target, base or gpt(WIDTHS[0], DEPTHS[0]), **how)


def found(report):
    """(column, hyperparameter) -> factor of what deviates."""
    return {(cell.column, cell.hyperparameter): cell.factor for cell in report.deviating}


def test_the_table_passes():
    report = judged()
    assert report.agrees
    assert report.notes == ()
    assert report.answer() == f"All {len(report.cells)} cells agree."
    assert report.agreeing()["ffn"] == ["initial_std", "learning_rate", "weight_decay", "adamw_epsilon"]
    assert report.agreeing()["projection"][0] == report.agreeing()["head"][0] == "block_multiplier"
    assert report.source == "Zheng et al. 2026, table 6 (adamw), condition 3.1"


def test_condition_b_1_is_another_table():
    root = {("hidden", "multiplier"): (0, -0.5), ("bias", "multiplier"): (0, -0.5), ("hidden", "epsilon"): (-1, -0.5)}
    root |= {("hidden", "learning_rate"): (-1, -0.5), ("bias", "learning_rate"): (0, -0.5)}
    powers = ADAMW | root | {("bias", "epsilon"): (-1, -0.5)}
    assert judged(powers, condition="B.1").agrees
    assert not judged(powers).agrees
    assert not judged(condition="B.1").agrees


NUMBERS = {"std": "initial_std", "multiplier": "block_multiplier", "epsilon": "adamw_epsilon"}
ONE_WRONG = [
    (kind, column, number)
    for kind, column in (
        ("wte.weight", "input"),
        ("wpe.weight", "input"),
        ("h.*.fc.weight", "hidden"),
        ("h.*.proj.weight", "hidden"),
        ("h.*.proj.bias", "hidden_bias"),
        ("h.*.ln_1.weight", "hidden_bias"),
        ("ln_f.weight", "input_bias"),
        ("head.weight", "output"),
    )
    for number in ("learning_rate", "weight_decay", "epsilon", "std", "multiplier")
]


@pytest.mark.parametrize("factor", [0.25, 1.5])
@pytest.mark.parametrize(("kind", "column", "number"), ONE_WRONG)
def test_one_wrong_cell_is_found_with_its_factor(kind, column, number, factor):
    """And no other; what a parameter has not, such as a multiplier of an embedding, cannot be wrong."""
    right = gpt(WIDTHS[1], DEPTHS[1], by_powers(ADAMW, *RATIOS))
    changed = [
        replace(weight, **{number: factor * getattr(weight, number)})
        if weight.kind == kind and getattr(weight, number)
        else weight
        for weight in right.weights
    ]
    report = judged(target=replace(right, weights=tuple(changed)))
    if tuple(changed) == right.weights:
        assert report.agrees
        return
    assert found(report) == {(column, NUMBERS.get(number, number)): pytest.approx(factor)}
    (cell,) = report.deviating
    assert cell.kinds == (kind,)
    assert ("4 times too small" if factor < 1 else "1.5 times too large") in cell.sentence()
    assert report.answer() == f"1 of {len(report.cells)} cells deviate."


def test_one_wrong_block_is_found():
    right = gpt(WIDTHS[1], DEPTHS[1], by_powers(ADAMW, *RATIOS))
    weights = [replace(each, learning_rate=1.0) if each.name == "h.9.fc.weight" else each for each in right.weights]
    assert found(judged(target=replace(right, weights=tuple(weights)))) == {("hidden", "learning_rate"): 400.0}


def test_vectors_that_decay_in_one_model_alone_are_found():
    right = gpt(WIDTHS[1], DEPTHS[1], by_powers(ADAMW, *RATIOS))
    weights = [replace(each, weight_decay=0.1) if each.kind == "ln_f.weight" else each for each in right.weights]
    (cell,) = judged(target=replace(right, weights=tuple(weights))).deviating
    assert cell.sentence().endswith("weight_decay (norm gain outside blocks): 0.1, the table has 0 (base 0 x 1)")
    assert json.loads(json.dumps(judged(target=replace(right, weights=tuple(weights))).record()))["agrees"] is False


MOVES = {"adamw": (1, 1), "sgd": (2, 0), "muon": (1, 0)}


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_a_factor_may_stand_in_the_weights(name):
    """Projections and head without a multiplier, their weights, rates, decays and epsilons instead, are the same."""
    power, of_epsilon = MOVES[name]
    table = ADAMW if name == "adamw" else SGD

    def numbers(kind, column, in_block):
        own = by_powers(table, *RATIOS)(kind, column, in_block)
        if not kind.startswith(("h.*.proj", "head")):
            return own
        factor = own.pop("multiplier")
        changes = {"std": factor, "learning_rate": factor**power, "weight_decay": factor**-power}
        changes |= {"epsilon": factor**-of_epsilon}
        return {key: own.get(key, 1.0) * change for key, change in changes.items()}

    how = {"optimizer": name}
    report = judged(target=gpt(WIDTHS[1], DEPTHS[1], numbers, **how), base=gpt(WIDTHS[0], DEPTHS[0], **how))
    assert report.agrees
    assert any("make up for it" in note for note in report.notes)
    half = gpt(WIDTHS[1], DEPTHS[1], lambda *place: numbers(*place) | {"weight_decay": 1.0}, **how)
    assert not judged(target=half, base=gpt(WIDTHS[0], DEPTHS[0], **how)).agrees


# Table 5.
SGD = {
    ("input", "learning_rate"): (1, 0),
    ("input", "weight_decay"): (-1, 0),
    ("hidden", "multiplier"): (0, -1),
    ("hidden", "std"): (-0.5, 0),
    ("hidden", "learning_rate"): (0, 1),
    ("hidden", "weight_decay"): (0, -1),
    ("bias", "multiplier"): (0, -1),
    ("bias", "learning_rate"): (1, 1),
    ("output", "multiplier"): (-1, 0),
    ("output", "learning_rate"): (1, 0),
    ("output", "weight_decay"): (-1, 0),
}


def test_hybrids_take_a_table_for_each():
    """Muon-Kimi's table 3 for hidden matrices, AdamW's for the others, as the recipes say or as it is chosen."""
    powers = ADAMW | {("hidden", "learning_rate"): (-0.5, 0), ("hidden", "weight_decay"): (0.5, 0)}
    both = ("adamw", "muon_kimi")
    target = gpt(WIDTHS[1], DEPTHS[1], by_powers(powers, *RATIOS), optimizer=both)
    base = gpt(WIDTHS[0], DEPTHS[0], optimizer=both)
    assert judged(target=target, base=base).agrees
    assert "table 6 (adamw) and table 3 (muon_kimi)" in judged(target=target, base=base).source
    assert judged(target=target, base=base, optimizer="muon_kimi-adamw").agrees
    wrong = judged(target=target, base=base, optimizer="muon-adamw")
    assert found(wrong) == {("hidden", "learning_rate"): 0.5, ("hidden", "weight_decay"): 2.0}


# What published programs do to the numbers of AdamW, as powers of the ratios of width and depth.
PROGRAMS = {
    # EleutherAI's nanoGPT-mup, branch completep, alpha = 1: one epsilon for all parameters.
    "CompleteP, alpha = 1": (
        ADAMW | {("input", "epsilon"): (-1, -1), ("output", "epsilon"): (-1, -1)},
        "3.1",
        {("input", "adamw_epsilon"): 1 / 8, ("output", "adamw_epsilon"): 1 / 8, ("input_bias", "adamw_epsilon"): 1 / 8},
    ),
    # The same at alpha = 1/2, which is condition B.1.
    "CompleteP, alpha = 1/2": (
        ADAMW
        | {(column, "epsilon"): (-1, -0.5) for column in ("input", "hidden", "bias", "output")}
        | {(column, "multiplier"): (0, -0.5) for column in ("hidden", "bias")}
        | {("hidden", "learning_rate"): (-1, -0.5), ("bias", "learning_rate"): (0, -0.5)},
        "B.1",
        {(column, "adamw_epsilon"): 8**-0.5 for column in ("input", "output", "input_bias")},
    ),
    # Its branch for the width alone: the decay of hidden weights is not multiplied, and there is no rule of depth.
    "mup of nanoGPT-mup": (
        {
            ("hidden", "std"): (-0.5, 0),
            ("hidden", "learning_rate"): (-1, 0),
            ("output", "multiplier"): (-1, 0),
        },
        "3.1",
        {
            ("input", "adamw_epsilon"): 4,
            ("hidden", "block_multiplier"): 8,
            ("hidden", "weight_decay"): 1 / 4,
            ("hidden", "adamw_epsilon"): 32,
            ("hidden_bias", "block_multiplier"): 8,
            ("hidden_bias", "adamw_epsilon"): 32,
            ("input_bias", "adamw_epsilon"): 4,
            ("output", "adamw_epsilon"): 4,
        },
    ),
    # Microsoft's mup, MuAdamW: matrices of two widths lr / r_n and decay x r_n, vectors as they are; epsilons as well.
    "MuAdamW": (
        {
            ("hidden", "std"): (-0.5, 0),
            ("hidden", "learning_rate"): (-1, 0),
            ("hidden", "weight_decay"): (1, 0),
            ("output", "multiplier"): (-1, 0),
        },
        "3.1",
        {
            ("input", "adamw_epsilon"): 4,
            ("hidden", "block_multiplier"): 8,
            ("hidden", "adamw_epsilon"): 32,
            ("hidden_bias", "block_multiplier"): 8,
            ("hidden_bias", "adamw_epsilon"): 32,
            ("input_bias", "adamw_epsilon"): 4,
            ("output", "adamw_epsilon"): 4,
        },
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_published_programs_do(program):
    """They agree with the table but in the cells that are listed; none has its row of epsilons."""
    powers, condition, deviating = PROGRAMS[program]

    def numbers(kind, column, in_block):
        own = by_powers(powers, *RATIOS)(kind, column, in_block)
        if program.startswith("CompleteP"):
            own["epsilon"] = 4.0**-1 * 8.0 ** -(1 if condition == "3.1" else 0.5)
        return own

    report = judged(target=gpt(WIDTHS[1], DEPTHS[1], numbers), condition=condition)
    assert found(report) == {cell: pytest.approx(factor) for cell, factor in deviating.items()}


def test_without_depth_mup_deviates_by_its_epsilons_alone():
    """At equal depths: microsoft's MuAdamW against table 6."""
    numbers = by_powers(PROGRAMS["MuAdamW"][0], 4, 1)
    report = judged(target=gpt(WIDTHS[1], DEPTHS[0], numbers))
    assert {hyperparameter for _, hyperparameter in found(report)} == {"adamw_epsilon"}
    assert set(found(report).values()) == {4.0}


def test_a_root_of_depth_as_in_gpt_2_is_named():
    def numbers(kind, column, in_block):
        own = by_powers(ADAMW, *RATIOS)(kind, column, in_block)
        return own | ({"std": own["std"] / 32**0.5} if kind == "h.*.proj.weight" else {})

    report = judged(target=gpt(WIDTHS[1], DEPTHS[1], numbers))
    assert found(report) == {("hidden", "initial_std"): pytest.approx(32**-0.5)}
    assert any("over sqrt(2 L), as in GPT-2" in note for note in report.notes)


def test_heads_of_another_size_are_named():
    target = gpt(WIDTHS[1], DEPTHS[1], by_powers(ADAMW, *RATIOS), heads=4)
    assert judged(target=target, base=gpt(WIDTHS[0], DEPTHS[0], heads=1)).notes == ()
    (note,) = judged(target=target, base=gpt(WIDTHS[0], DEPTHS[0], heads=2)).notes
    assert note.startswith("the head size is 2 times the base model's")


def test_standard_deviations_are_compared_within_what_draws_tell():
    """5 standard errors of both, and 5 %: 1 % of a large matrix is no deviation, 40 % is one."""

    def scaled(by):
        def numbers(kind, column, in_block):
            own = by_powers(ADAMW, *RATIOS)(kind, column, in_block)
            return own | ({"std": own["std"] * by} if kind == "h.*.fc.weight" else {})

        return gpt(WIDTHS[1], DEPTHS[1], numbers)

    assert judged(target=scaled(1.01)).agrees
    assert found(judged(target=scaled(1.4))) == {("hidden", "initial_std"): pytest.approx(1.4)}
    tiny = replace(gpt(4, 2).weights[3], shape=(4, 4))
    base = replace(tiny, shape=(2, 2))
    report = judge_recipe(Recipe((replace(tiny, std=0.05),), 1), Recipe((base,), 1))
    assert any("so few numbers that their standard deviation is not told" in note for note in report.notes)


def test_ratios_that_tell_nothing_are_said():
    (note,) = judge_recipe(gpt(66, 2, by_powers(ADAMW, 66 / 64, 1)), gpt(64, 2)).notes
    assert note == "the width is 1.031 times the base model's, too near 1 to tell a wrong power; compare others"


def test_rounded_numbers_agree():
    """To two digits, as they are typed."""
    right = gpt(WIDTHS[1], DEPTHS[1], by_powers(ADAMW, *RATIOS))
    typed = [replace(each, epsilon=float(f"{each.epsilon:.1e}")) for each in right.weights]
    assert typed != list(right.weights)
    assert judged(target=replace(right, weights=tuple(typed))).agrees


def test_what_is_not_given_is_said():
    right = gpt(WIDTHS[1], DEPTHS[1], by_powers(ADAMW, *RATIOS))
    bare = tuple(replace(each, std=None) for each in right.weights)
    report = judged(target=replace(right, weights=bare))
    assert report.agrees
    assert "ffn initial_std: not given, and not compared" in report.notes
    nothing = dict.fromkeys(("std", "multiplier", "learning_rate", "weight_decay", "epsilon"))
    bare = tuple(replace(each, **nothing) for each in right.weights)
    with pytest.raises(ValueError, match="no numbers to compare"):
        judged(target=replace(right, weights=bare))


def test_a_tied_table_of_two_columns_is_refused():
    """SSO's rates of input and output weights differ."""
    tied = {"name": "wte.weight", "kind": "wte.weight", "role": "tied", "outputs_axis": 1, "optimizer": "sso"}
    tied |= {"learning_rate": 0.1, "multiplier": 1.0}
    both = [Recipe((ModelWeight(shape=(96, width), **tied),), 0) for width in (64, 16)]
    with pytest.raises(ValueError, match=r"the embedding and the head at once, but under sso.*untie them, or take"):
        judge_recipe(*both)
    agreeing = [Recipe((replace(recipe.weights[0], optimizer="adamw", multiplier=1.0),), 0) for recipe in both]
    assert found(judge_recipe(*agreeing)) == {("output", "block_multiplier"): 4.0}


def test_recipes_come_back_from_json():
    recipe = gpt(16, 2, heads=2)
    assert read_recipe(recipe.to_json()) == recipe


LINEAR = {"name": "w", "kind": "w", "shape": [4, 4], "role": "hidden"}
BAD_JSON = {
    "no JSON": ("{", "the recipe is no JSON"),
    "no object": ("[1]", "no object with depth and a list of parameters"),
    "no depth": (json.dumps({"parameters": [LINEAR]}), "no object with depth"),
    "no parameters": (json.dumps({"depth": 1, "parameters": []}), "the recipe has no parameters"),
    "no name": (json.dumps({"depth": 1, "parameters": [{"role": "hidden"}]}), "needs name, kind, shape and role"),
    "unknown field": (json.dumps({"depth": 1, "parameters": [LINEAR | {"lr": 1}]}), "'w' of the recipe has 'lr'"),
    "unknown role": (json.dumps({"depth": 1, "parameters": [LINEAR | {"role": "core"}]}), "the role of 'w' is 'core'"),
    "negative": (json.dumps({"depth": 1, "parameters": [LINEAR | {"std": -1}]}), "std of 'w' is -1; it must be"),
    "no number": (json.dumps({"depth": 1, "parameters": [LINEAR | {"epsilon": "x"}]}), "epsilon of 'w' is 'x'"),
    "no size": (json.dumps({"depth": 1, "parameters": [LINEAR | {"shape": [0]}]}), "a size of 'w' is 0"),
    "no axis": (json.dumps({"depth": 1, "parameters": [LINEAR | {"outputs_axis": 2}]}), "outputs_axis of 'w' is 2"),
    "half a block": (json.dumps({"depth": 1, "parameters": [LINEAR | {"block": 0.5}]}), "the block of 'w' is 0.5"),
    "half a depth": (json.dumps({"depth": 0.5, "parameters": [LINEAR]}), "depth is 0.5"),
    "no heads": (json.dumps({"depth": 1, "heads": 0, "parameters": [LINEAR]}), "heads is 0"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_bad_json_is_refused(case):
    text, sentence = BAD_JSON[case]
    with pytest.raises((TypeError, ValueError), match=sentence):
        read_recipe(text)


BASE_GPT = gpt(16, 2)
UNPAIRED = {
    "one size": (BASE_GPT, {}, "both models are of one size"),
    "depth of one alone": (replace(BASE_GPT, depth=0), {}, "has 2 blocks and the model 0; give models of one kind"),
    "unknown": (gpt(32, 2), {"optimizer": "adam"}, "optimizer is 'adam'; choose one of"),
    "of matrices": (gpt(32, 2), {"optimizer": "muon"}, "'h.0.ln_1.weight' is a vector, which muon does not step"),
    "condition": (gpt(32, 2), {"condition": "3"}, "condition is '3'; choose one of '3.1', 'B.1'"),
    "two optimizers": (gpt(32, 2, optimizer="sgd"), {}, "'wte.weight' is stepped by sgd, and in the base model by"),
    "no optimizer": (gpt(32, 2, optimizer=None), {}, "names no optimizer of 'wte.weight'; choose one for all"),
    "no such table": (gpt(32, 2, optimizer="adagrad"), {}, "is stepped by adagrad"),
    "other axes": (
        replace(BASE_GPT, weights=(replace(BASE_GPT.weights[0], shape=(96,), outputs_axis=0),)),
        {},
        r"'wte.weight' has shape \(96,\) and in the base model \(96, 16\)",
    ),
}


@pytest.mark.parametrize("case", UNPAIRED)
def test_recipes_that_do_not_go_together_are_refused(case):
    target, how, sentence = UNPAIRED[case]
    with pytest.raises(ValueError, match=sentence):
        judge_recipe(target, BASE_GPT, **how)


def test_blocks_beyond_the_base_s_go_with_its_last():
    sizes, pairs = paired(gpt(32, 5), gpt(16, 2))
    assert (sizes.width_ratio, sizes.depth_ratio) == (2, 2.5)
    assert {pair.base.block for pair in pairs if pair.weight.block and pair.weight.block >= 1} == {1}
    assert {pair.role for pair in pairs if pair.weight.name == "head.weight"} == {"head"}


def test_a_longer_context_is_no_width():
    longer = gpt(32, 2)
    weights = [replace(each, shape=(999, 32)) if each.role == "position" else each for each in longer.weights]
    assert paired(replace(longer, weights=tuple(weights)), gpt(16, 2))[0].width_ratio == 2
    assert BASE["std"] == 0.02
