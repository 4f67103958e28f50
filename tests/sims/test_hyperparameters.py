"""The table to copy from: numbers, formats, sources, warnings, and bad input in one line."""

import json

import pytest

import meanfield as mf
from meanfield.parameterizations import (
    MUON_VARIANTS,
    OPTIMIZER_NAMES,
    PARAMETERIZATIONS,
    hyperparameters_of,
    optimizers_by_role,
    transfer_hyperparameters,
)
from sims.hyperparameters import COMMAND as simulation
from sims.hyperparameters import _common, _parts, assemble
from sims.learning_rate_scale.__main__ import STUDY

SIZES = ["--width", "4096", "--depth", "64", "--base-width", "256", "--base-depth", "4"]
MUON = ["--optimizer", "muon", *SIZES, "--base-lr", "0.02"]
HYBRID = [*MUON, "--others", "adamw", "--others-lr", "0.001", "--others-epsilon", "1e-8", "--base-variance", "4e-4"]


def printed(capsys, arguments):
    assert simulation.main(arguments) == 0
    return capsys.readouterr().out


def test_text(capsys):
    text = printed(capsys, MUON)
    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert "learning rate 0.08 (sqrt(r_n)) 0.02 0.08 (sqrt(r_n))" in lines
    assert "block multiplier 1 0.0625 (1/r_L) 0.0625 (1/r_n)" in lines
    assert "weight decay x 0.25 (1/sqrt(r_n)) x 1 x 0.25 (1/sqrt(r_n))" in lines
    assert "Zheng et al. 2026, table 4 (conditions 3.1 and B.2, branches of two or more layers)" in " ".join(
        text.split()
    )
    assert "12 of 12 printed cells follow" in text
    assert "WARNING muon: Zheng et al. 2026 trained muon on hidden weights only" in text


def test_branches_of_one_layer(capsys):
    text = printed(capsys, [*MUON, "--block-depth", "1"])
    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert "learning rate 0.08 (sqrt(r_n)) 0.005 (1/sqrt(r_L)) 0.08 (sqrt(r_n))" in lines
    assert "Zheng et al. 2026, table 10 (condition B.1, branches of one layer)" in text


def test_json_holds_what_resolve_gives(capsys):
    record = json.loads(printed(capsys, [*HYBRID, "--format", "json"]))
    sizes = {"width": 4096, "depth": 64, "base_width": 256, "base_depth": 4, "block_depth": 2}
    shared = {"block_multiplier": 1.0, "initial_variance": 4e-4}
    expected = transfer_hyperparameters(
        "adamw", **sizes, base_values=shared | {"learning_rate": 0.001, "adamw_epsilon": 1e-8}
    ) | transfer_hyperparameters("muon", **sizes, base_values=shared | {"learning_rate": 0.02}, roles=("hidden",))
    assert list(record["roles"]) == ["input", "hidden", "output", "input_bias", "hidden_bias"]
    for role, values in expected.items():
        assert {name: record["roles"][role][name]["value"] for name in values} == values
    cell = record["roles"]["hidden_bias"]["adamw_epsilon"]
    assert (cell["width_exponent"], cell["depth_exponent"], cell["factor"]) == ("-1", "-1", 1 / 256)
    assert record["roles"]["hidden"]["optimizer"] == "muon"
    assert record["roles"]["hidden"]["weight_decay"]["value"] is None


DIMENSIONS = {"input_dimension": 48, "output_dimension": 1000}
HYBRIDS = [(hidden, others) for hidden in OPTIMIZER_NAMES for others in ("adamw", "sgd", "muon")]


@pytest.mark.parametrize("parameterization", PARAMETERIZATIONS)
@pytest.mark.parametrize(("optimizer", "others"), [*((name, None) for name in OPTIMIZER_NAMES), *HYBRIDS])
def test_the_library_returns_what_the_command_prints(optimizer, others, parameterization):
    """Every optimizer and hybrid under every variant of Muon, epsilons that the paper leaves out included."""
    name = optimizer if others is None else f"{optimizer}-{others}"
    sizes = {"width": 512, "depth": 12, "base_width": 96, "base_depth": 4, "block_depth": 2}
    shared = {**sizes, **DIMENSIONS, "parameterization": parameterization}
    stepped_by = optimizers_by_role(name, 2)
    variants = MUON_VARIANTS if "muon" in stepped_by.values() and parameterization == "spectral" else ["plain"]
    arguments = [f"--{key.replace('_', '-')}={value}" for key, value in shared.items()]
    arguments += [f"--optimizer={optimizer}", "--base-lr=0.3", "--base-weight-decay=0.07", "--base-variance=1.7"]
    others_given = ["--others-lr=0.3", "--others-weight-decay=0.07"]
    arguments += [] if others is None else [f"--others={others}", *others_given]
    base = {"learning_rate": 0.3, "weight_decay": 0.07, "initial_variance": 1.7, "block_multiplier": 1.0}
    for flag, by in (("--base", optimizer), ("--others", others)):
        if by is not None and f"{by}_epsilon" in hyperparameters_of(by, 2):
            arguments.append(f"{flag}-epsilon=1e-7")
            base |= {f"{by}_epsilon": 1e-7} if by in stepped_by.values() else {}
    for variant in variants:
        options = simulation.parse([*arguments, f"--muon-variant={variant}"])
        record = assemble(_parts(options), _common(options), variant, {})
        printed = {
            role: {cell: held["value"] for cell, held in cells.items() if cell != "optimizer"}
            for role, cells in record["roles"].items()
        }
        assert printed == transfer_hyperparameters(name, base_values=base, muon_variant=variant, **shared)
        assert {role: cells["optimizer"] for role, cells in record["roles"].items()} == stepped_by


LAYERS, BLOCKS = "fully-connected ReLU layers", "residual blocks without factor and normalisation"
MOVED = [
    "--width",
    "256",
    "--base-width",
    "256",
    "--parameterization",
    "standard",
    "--depth",
    "24",
    "--base-depth",
    "6",
]


@pytest.mark.parametrize(("optimizer", "factor"), [("sgd", "0.142"), ("adamw", "0.138"), ("muon", "0.134")])
def test_standard_says_what_one_step_says_of_a_rate_over_depth(capsys, optimizer, factor):
    """The factors that `mf.explain_transfer` gives under the optimizer that is named, and no other's."""
    shared = ["--optimizer", optimizer, *MOVED]
    text = " ".join(printed(capsys, shared).split())
    nets = {LAYERS: mf.MLP(depth=6, width=256)}
    nets[BLOCKS] = mf.ResidualMLP(depth=6, width=256, block_depth=2, scaling="none")
    how = {"rule": "finite_depth"} if optimizer == "sgd" else {"optimizer": optimizer}
    found = json.loads(printed(capsys, [*shared, "--format", "json"]))["over_depth"]
    assert set(found) == {optimizer}
    for what, net in nets.items():
        carried = mf.explain_transfer(1.0, net, net.replace(depth=24), **how).rate
        assert found[optimizer][what] == pytest.approx(carried, rel=1e-12)
        assert f"{optimizer} x {carried:.3g} in {what}" in text
        assert f"{what} x {carried:.3g}" in text
    assert f"{found[optimizer][LAYERS]:.3g}" == factor
    assert "keeps the learning rate over depth" in text
    kept = printed(capsys, [*shared, "--depth", "6"])
    assert "explain_transfer" not in kept
    assert "except for the learning rate" not in kept


def test_both_optimizers_of_a_hybrid_have_their_factors_and_others_none(capsys):
    hybrid = json.loads(printed(capsys, ["--optimizer", "muon", "--others", "adamw", *MOVED, "--format", "json"]))
    assert {name: f"{of[LAYERS]:.3g}" for name, of in hybrid["over_depth"].items()} == {
        "muon": "0.134",
        "adamw": "0.138",
    }
    text = " ".join(printed(capsys, ["--optimizer", "sophia", *MOVED]).split())
    assert f"{LAYERS} by a factor that no theory has (mf.explain_transfer draws it, on data)" in text
    assert "Answer: Those of the table; warnings: 3." in text


def test_the_two_commands_carry_a_rate_alike(capsys):
    factor = json.loads(printed(capsys, ["--optimizer", "adamw", *MOVED, "--format", "json"]))["over_depth"]["adamw"]
    how = ["--transfer", "1", "--from", "6", "--to", "24", "--width", "256", "--optimizer", "adamw"]
    assert STUDY.main(how) == 0
    assert f"Answer:   {factor[LAYERS]:.4g}, by rule 'one_step'" in capsys.readouterr().out


def test_depths_at_which_floats_hold_no_factor_are_said(capsys):
    shared = ["--optimizer", "sgd", "--width", "8", "--base-width", "8", "--parameterization", "standard"]
    assert "without factor and normalisation by an exponential of the depth" in " ".join(
        printed(capsys, [*shared, "--depth", "3000", "--base-depth", "6"]).split()
    )


def test_the_standard_deviation_stands_beside_the_variance(capsys):
    lines = {" ".join(line.split()) for line in printed(capsys, HYBRID).splitlines()}
    assert "initial variance 0.0004 2.5e-05 (1/r_n) 0.0004" in lines
    assert "initial std 0.02 0.005 (1/sqrt(r_n)) 0.02" in lines
    dense = [*MUON, "--base-variance", "2", "--input-dimension", "100"]
    assert "0.141421 (1/sqrt(d_0))" in printed(capsys, dense)
    cells = json.loads(printed(capsys, [*HYBRID, "--format", "json"]))["roles"]["hidden"]["initial_variance"]
    assert cells["std"] == {"scaling": "1/sqrt(r_n)", "factor": 0.25, "value": pytest.approx(0.005)}


def test_norms_and_depth_are_spoken_of(capsys):
    words = " ".join(printed(capsys, HYBRID).split())
    assert "depth counts residual blocks, which are the layers of a Transformer" in words
    norms = "norms: gains start at 1 and shifts at 0, and neither decays; within blocks they take learning rate 0.001, "
    assert f"{norms}adamw epsilon 3.90625e-11 (1/(r_n r_L)), as hidden biases do" in words
    assert "step them by adamw or sgd (--others), whose tables have biases" in " ".join(printed(capsys, MUON).split())


def test_markdown(capsys):
    text = printed(capsys, [*HYBRID, "--format", "markdown"])
    assert "| learning rate | 0.001 | 0.02 | 0.001 | 0.001 | 0.001 |" in text
    assert "| optimizer | adamw | muon | adamw | adamw | adamw |" in text
    assert "| adamw epsilon | 6.25e-10 (1/r_n) | - |" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {7}


def test_cells_off_the_sphere_of_sso_are_named(capsys):
    text = printed(capsys, ["--optimizer", "sso", *SIZES])
    assert "12 of 12 printed cells follow" in text
    cell = "Zheng et al. 2026, table 7, sso, output, learning_rate: printed r_n, as derived; "
    assert f"{cell}but 1 if weights begin on the sphere |W|_2 = R" in " ".join(text.split())
    assert "contradicts SSO's own constraint" in text


@pytest.mark.parametrize(
    ("optimizer", "row"),
    [
        ("soap", "soap epsilon (derived) 2.5e-09 (1/sqrt(r_n)) 6.25e-10 (1/r_L) 2.5e-09 (1/sqrt(r_n))"),
        ("sophia", "sophia epsilon (derived) 6.25e-10 (1/r_n) 3.90625e-11 (1/(r_n r_L)) 6.25e-10 (1/r_n)"),
    ],
)
def test_epsilons_that_the_paper_leaves_out(capsys, optimizer, row):
    text = printed(capsys, ["--optimizer", optimizer, *SIZES, "--base-epsilon", "1e-8"])
    assert row in " ".join(text.split())
    assert "Zheng et al. 2026 give no epsilon" in text


def test_the_standard_parameterization_claims_nothing(capsys):
    text = printed(capsys, [*MUON, "--parameterization", "standard"])
    assert "entries in grey" in text
    assert "follow from the update norms" not in text
    assert "(sqrt(r_n))" not in text


def test_dense_inputs_divide_the_variance(capsys):
    text = printed(capsys, [*MUON, "--base-variance", "2", "--input-dimension", "100"])
    assert "0.02 (1/d_0)" in text


def test_variants_of_muon_change_rates_by_shape(capsys):
    """A vocabulary above the width: torch's default keeps input weights and takes sqrt(r_n) more at the output."""
    arguments = [*MUON, "--base-weight-decay", "0.1", "--output-dimension", "50257", "--format", "json"]
    plain, original, matched = (
        json.loads(printed(capsys, [*arguments, "--muon-variant", variant]))["roles"]
        for variant in ("plain", "original", "match_rms_adamw")
    )
    rates = [
        {role: cells["learning_rate"]["value"] for role, cells in roles.items()} for roles in (plain, original, matched)
    ]
    assert rates[0] == {"input": 0.08, "hidden": 0.02, "output": 0.08}
    assert rates[1] == pytest.approx({"input": 0.08, "hidden": 0.02, "output": 0.32})
    assert rates[2] == pytest.approx({"input": 0.08, "hidden": 0.005, "output": 0.08})
    for roles in (plain, original, matched):
        assert roles["output"]["learning_rate"]["value"] * roles["output"]["weight_decay"]["value"] == pytest.approx(
            2e-3
        )
    text = printed(capsys, [*arguments[:-2], "--muon-variant", "original"])
    assert "0.32 (sqrt(r_n), step x 4)" in text
    assert "U V^T times sqrt(max(1, n_out/n_in))" in text


def test_a_role_may_have_base_values_of_its_own(capsys):
    arguments = [
        *HYBRID,
        "--base",
        "hidden_bias.initial_variance=0",
        "hidden.initial_variance=1e-4",
        "--format",
        "json",
    ]
    roles = json.loads(printed(capsys, arguments))["roles"]
    assert {role: cells["initial_variance"]["value"] for role, cells in roles.items()} == {
        "input": 4e-4,
        "hidden": 1e-4 / 16,
        "output": 4e-4,
        "input_bias": 4e-4,
        "hidden_bias": 0.0,
    }


def test_out_writes_the_file_once(capsys, tmp_path):
    path = tmp_path / "new" / "table.md"
    arguments = [*MUON, "--format", "markdown", "--out", str(path)]
    assert str(path) in printed(capsys, arguments)
    written = path.read_text()
    assert written == printed(capsys, arguments[:-2])
    assert simulation.main(arguments) == 2
    assert "give another --out" in capsys.readouterr().err
    assert simulation.main([*MUON, "--out", str(path), "--force"]) == 0
    assert path.read_text() != written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--optimizer", "adam", *SIZES], "--optimizer is 'adam'; choose one of 'sgd', 'adamw', 'lion'"),
        ([*MUON, "--width", "0"], "width is 0"),
        ([*MUON, "--base-depth", "-1"], "base_depth is -1"),
        ([*MUON, "--block-depth", "0"], "block_depth is 0"),
        ([*MUON, "--base-lr", "-1"], "base value of learning_rate is -1.0"),
        ([*MUON, "--base-epsilon", "1e-8"], "'muon' has no epsilon"),
        (["--optimizer", "soap", *SIZES, "--base-epsilon", "-1"], "base value of soap_epsilon is -1.0"),
        ([*MUON, "--others-lr", "1"], "add --others"),
        ([*MUON, "--others", "rmsprop"], "--others is 'rmsprop'; choose one of 'sgd', 'adamw'"),
        ([*MUON, "--base-multiplier", "0"], "--base-multiplier is 0; it must be positive: at 0 blocks pass nothing on"),
        ([*MUON, "--base-multiplier", "-1"], "--base-multiplier is -1; it must be positive"),
        ([*MUON, "--out", ".", "--force"], "cannot write the file .: it is a folder"),
        ([*MUON, "--parameterization", "mup"], "'spectral', 'standard'"),
        ([*MUON, "--input-dimension", "0"], "input_dimension is 0"),
        ([*MUON, "--muon-variant", "kimi"], "--muon-variant is 'kimi'; choose one of 'plain', 'spectral', 'original'"),
        ([*MUON, "--muon-variant", "original"], "the factor of input weights depends on input_dimension"),
        (["--optimizer", "sgd", *SIZES, "--muon-variant", "original"], "which steps nothing here"),
        ([*MUON, "--muon-variant", "spectral", "--parameterization", "standard"], "by standard none does"),
        ([*MUON, "--base", "hidden=3"], "--base hidden=3 is not ROLE.NAME=VALUE"),
        ([*MUON, "--base", "hidden_bias.learning_rate=3"], "this net has no such value; it has input.block_multiplier"),
        ([*MUON, "--base", *["hidden.learning_rate=3"] * 2], "hidden.learning_rate a second value"),
        ([*MUON, "--base", "hidden.block_multiplier=0"], "--base hidden.block_multiplier is 0; it must be positive"),
        ([*MUON, "--output-dimension", "-5"], "output_dimension is -5"),
    ],
)
def test_bad_input_gets_one_line(capsys, arguments, message):
    assert simulation.main(arguments) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
