"""What counts words, inputs or outputs is no width, by whatever ratio it grows; heads that are frozen have no group."""

import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402
from meanfield.torch.edits import multiplier_of  # noqa: E402
from tests.torch import models  # noqa: E402

nn = torch.nn
GIVEN = {"lr": 0.01, "weight_decay": 0.1, "eps": 1e-8}
pytestmark = pytest.mark.filterwarnings("ignore:.*this is no width:meanfield.PremiseWarning")


def gpt(width, depth, vocabulary, tied=True, bias=False):
    model = models.GPT(depth=depth, width=width, heads=width // 16, vocabulary=vocabulary)
    if not tied or bias:
        model.lm_head = nn.Linear(width, vocabulary, bias=bias)
        nn.init.normal_(model.lm_head.weight, std=0.1)
    if tied:
        model.transformer.wte.weight = model.lm_head.weight
    return model


def numbers(groups):
    """Of every parameter its group and numbers, and every multiplier."""
    own = {name: (group.name, group.learning_rate, group.weight_decay, group.epsilon)
           for group in groups.groups for name in group.parameters}  # fmt: skip
    return own, {edit.where: edit.value for edit in groups.edits if edit.what == "multiplier"}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("vocabulary", "width"), [(128, 64), (96, 64), (128, 32), (32, 64)])
def test_a_vocabulary_that_grows_changes_no_number(vocabulary, width, tied, bias):
    """Not by the ratio of widths either, where a head has two sides that grow alike."""
    base = gpt(32, 2, 64, tied, bias)
    with pytest.warns(mf.PremiseWarning, match=f"counts {vocabulary} where the base model's counts 64: this is no"):
        grown = mft.parameter_groups(gpt(width, 4, vocabulary, tied, bias), base, **GIVEN)
    kept = mft.parameter_groups(gpt(width, 4, 64, tied, bias), base, **GIVEN)
    assert grown.sizes == kept.sizes == f"width x {width // 32} (r_n), depth 2 -> 4 blocks (r_L = 2)"
    assert numbers(grown) == numbers(kept)
    own, multipliers = numbers(grown)
    assert multipliers.get("lm_head", 1) == 32 / width
    assert own["transformer.wte.weight"][0] == ("tied" if tied else "embedding")
    if bias:
        assert own["lm_head.bias"][0] == "head bias"


def test_a_check_takes_a_grown_vocabulary_for_none():
    base, model = gpt(32, 2, 64, False), gpt(64, 4, 128, False)
    groups = mft.parameter_groups(model, base, **GIVEN)
    groups.apply()
    tables = [parameter for parameter in base.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in base.parameters() if parameter.dim() < 2]
    of_base = torch.optim.AdamW(
        [{"params": tables}, {"params": vectors, "weight_decay": 0.0}], lr=0.01, weight_decay=0.1
    )
    report = mft.check_recipe(model, torch.optim.AdamW(groups), base, of_base)
    assert report.agrees, str(report)
    assert any("counts 128 where the base model's counts 64" in note for note in report.notes)


class Projected(nn.Module):
    """A hidden matrix between the blocks and the head."""

    def __init__(self, width, vocabulary, middle=None):
        super().__init__()
        self.embed, self.project = nn.Embedding(vocabulary, width), nn.Linear(width, middle or width)
        self.head = nn.Linear(middle or width, vocabulary)


@pytest.mark.parametrize("middle", [None, (64, 32)])
def test_a_vocabulary_as_large_as_a_width_is_refused_and_may_be_said(middle):
    large, small = (Projected(64, 64, middle and middle[0]), Projected(32, 32, middle and middle[1]))
    with pytest.raises(
        ValueError, match=r"'project.weight' and 'head.weight', which may.*roles=\{'head.weight': 'head'"
    ):
        mft.parameter_groups(large, small, **GIVEN)
    roles = {"head.weight": "head", "project.weight": "hidden"}
    labels = mft.parameter_groups(large, small, roles=roles, **GIVEN).labels()
    assert [labels[f"{name}.weight"] for name in ("embed", "project", "head")] == [
        "embedding",
        "hidden outside blocks",
        "head",
    ]


def linear(inputs, width, outputs):
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, outputs))


def test_inputs_and_outputs_that_grow_as_the_width_does_are_asked_for():
    large, small = linear(16, 64, 20), linear(8, 32, 10)
    with pytest.warns(mf.PremiseWarning) as given:
        mft.parameter_groups(large, small, **GIVEN)
    said = " ".join(str(each.message) for each in given)
    assert "where '0.weight' does, whose inputs grow by the ratio of widths, say roles={'0.weight': 'input'}" in said
    assert (
        "where '3.weight' makes them, whose outputs grow by the ratio of widths, say roles={'3.weight': 'head'}" in said
    )
    roles = {"0.weight": "input", "3.weight": "head"}
    groups = mft.parameter_groups(large, small, roles=roles, **GIVEN)
    assert numbers(groups) == numbers(mft.parameter_groups(linear(8, 64, 10), small, **GIVEN))


@pytest.mark.parametrize(("sizes", "side", "name"), [((8, 32, 20), "outputs", 3), ((16, 32, 10), "inputs", 0)])
def test_outputs_or_inputs_alone_are_no_width(sizes, side, name):
    with pytest.raises(
        ValueError, match=f"the {side} of '{name}.weight' are others than the base model's.*as many {side}"
    ):
        mft.parameter_groups(linear(*sizes), linear(8, 32, 10), **GIVEN)


def test_a_table_of_ones_own_is_said():
    """A bare parameter, whose rows are words as it is an embedding."""

    class Own(nn.Module):
        def __init__(self, width, vocabulary):
            super().__init__()
            self.table = nn.Parameter(torch.randn(vocabulary, width))
            self.head = nn.Linear(width, vocabulary, bias=False)

    groups = mft.parameter_groups(Own(64, 128), Own(32, 64), roles={"table": "embedding"}, **GIVEN)
    assert groups.labels() == {"table": "embedding", "head.weight": "head"}


def test_a_frozen_tied_table_has_no_group_and_its_head_a_multiplier():
    def frozen(width, depth):
        model = gpt(width, depth, 64)
        model.lm_head.weight.requires_grad_(False)
        return model

    model, base = frozen(64, 4), frozen(32, 2)
    with pytest.warns(mf.PremiseWarning, match="the weight of 'lm_head', which makes the outputs, is frozen") as given:
        groups = mft.parameter_groups(model, base, **GIVEN)
    assert not any("no layer was found" in str(each.message) for each in given)
    assert "transformer.wte.weight" not in groups.labels()
    groups.apply()
    assert multiplier_of(model.lm_head) == 0.5
    assert {id(parameter) for group in groups for parameter in group["params"]}.isdisjoint({id(model.lm_head.weight)})
    with pytest.raises(
        ValueError, match=r"'transformer\.wte\.weight', which fits, is frozen and has no role: leave it"
    ):
        mft.parameter_groups(model, base, roles={"transformer.wte.weight": "tied"}, **GIVEN)


def test_a_frozen_head_has_a_multiplier_and_frozen_layers_beside_a_head_none():
    def model(width, head):
        made = nn.Sequential(nn.Linear(8, width), nn.Linear(width, 5), nn.Linear(width, 3))
        made[1].requires_grad_(False)
        made[2].requires_grad_(head)
        return made

    def multiplied(head):
        groups = mft.parameter_groups(model(64, head), model(32, head), **GIVEN)
        return [edit.where for edit in groups.edits if edit.what == "multiplier"]

    assert multiplied(True) == ["2"]
    with pytest.warns(mf.PremiseWarning, match="the weight of '1', '2', which makes the outputs, is frozen"):
        assert multiplied(False) == ["1", "2"]


@pytest.mark.filterwarnings("ignore:no layer was found that makes the outputs")
def test_a_matrix_of_no_layer_has_no_side_that_is_known():
    """As CLIP's, which is multiplied from the right."""

    class Clip(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.lift, self.middle = nn.Linear(5, width), nn.Linear(width, width)
            self.proj = nn.Parameter(torch.randn(width, 7))

    with pytest.warns(
        mf.PremiseWarning, match="'proj' belongs to no layer, and its first axis.* x @ proj and it makes"
    ):
        mft.parameter_groups(Clip(32), Clip(16), **GIVEN)
