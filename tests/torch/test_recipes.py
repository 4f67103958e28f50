"""Live optimizers and their models against the tables: what `parameter_groups` makes passes, what is usual does not."""

from math import sqrt

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402
from meanfield.parameterizations import judge_recipe, read_recipe  # noqa: E402
from tests.torch import models  # noqa: E402

nn = torch.nn
GIVEN = {"lr": 0.01, "weight_decay": 0.1, "eps": 1e-8}


def gpt(width, depth):
    return models.GPT(depth=depth, width=width, heads=width // 16)


def usual(model, **numbers):
    """AdamW as nanoGPT makes it: matrices decay, vectors do not."""
    decaying = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": decaying, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, **{"lr": 0.01} | numbers)


@pytest.fixture
def base():
    model = gpt(32, 2)
    return model, usual(model)


def applied(model, base_model, **how):
    groups = mft.parameter_groups(model, base_model, **GIVEN | how)
    groups.apply()
    return groups


@pytest.mark.parametrize("condition", ["3.1", "B.1"])
def test_what_parameter_groups_makes_passes(base, condition):
    model = gpt(128, 8)
    optimizer = torch.optim.AdamW(applied(model, base[0], condition=condition))
    report = mft.check_recipe(model, optimizer, *base, condition=condition)
    assert report.agrees, str(report)
    assert not mft.check_recipe(model, optimizer, *base, condition="B.1" if condition == "3.1" else "3.1").agrees


def test_groups_without_their_edits_do_not_pass(base):
    """The base model's standard deviations, and no multipliers."""
    model = gpt(128, 8)
    optimizer = torch.optim.AdamW(mft.parameter_groups(model, base[0], **GIVEN))
    report = mft.check_recipe(model, optimizer, *base)
    assert {(cell.column, cell.hyperparameter) for cell in report.deviating} == {
        ("hidden", "initial_std"),
        ("hidden", "block_multiplier"),
        ("hidden_bias", "block_multiplier"),
        ("output", "block_multiplier"),
    }
    assert {cell.factor for cell in report.deviating if cell.hyperparameter == "block_multiplier"} == {4.0}


def test_the_base_model_s_own_numbers_do_not_pass(base):
    model = gpt(128, 8)
    applied(model, base[0])
    report = mft.check_recipe(model, usual(model), *base)
    factors = {(cell.column, cell.hyperparameter): cell.factor for cell in report.deviating}
    assert factors == {
        ("hidden", "learning_rate"): pytest.approx(4),
        ("hidden", "weight_decay"): pytest.approx(1 / 4),
        ("hidden", "adamw_epsilon"): pytest.approx(16),
        ("hidden_bias", "adamw_epsilon"): pytest.approx(16),
        ("input_bias", "adamw_epsilon"): pytest.approx(4),
        ("input", "adamw_epsilon"): pytest.approx(4),
    }
    lines = str(report).splitlines()
    assert lines[0].startswith("6 of ")
    wanted = "hidden adamw_epsilon (query key value, projection, ffn): 1e-08, the table has 6.25e-10"
    assert any(wanted in line and line.endswith("16 times too large") for line in lines)
    assert "  agrees ffn: initial_std" in lines


class CompleteGPT(models.GPT):
    """As EleutherAI's nanoGPT-mup has CompleteP: factors in the forward pass, standard deviations of its own."""

    def __init__(self, width, depth, base_width=32, base_depth=2, alpha=1.0):
        super().__init__(depth=depth, width=width, heads=width // 16)
        self.ratio, self.depth_ratio, self.alpha = width / base_width, depth / base_depth, alpha
        for name, parameter in self.named_parameters():
            if name.endswith((".weight",)) and ".h." in name and parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.1 / sqrt(self.ratio))

    def optimizer(self, lr=0.01, weight_decay=0.1, eps=1e-8):
        """Its five groups."""
        named, layer = dict(self.named_parameters()), self.depth_ratio ** (self.alpha - 1)
        groups = {"emb": [], "ln": [], "weight": [], "bias": [], "ln_f": []}
        for name, parameter in named.items():
            kind = (
                "emb"
                if "wte" in name or "wpe" in name
                else "ln_f"
                if "ln_f" in name
                else "ln"
                if ".ln_" in name
                else ""
            )
            groups[kind or ("bias" if parameter.dim() < 2 else "weight")].append(parameter)
        decays = {"emb": weight_decay, "weight": weight_decay * self.ratio}
        scales = {"ln": layer, "weight": layer / self.ratio, "bias": layer}
        listed = [
            {"params": held, "weight_decay": decays.get(kind, 0.0), "lr": lr * scales.get(kind, 1.0)}
            for kind, held in groups.items()
        ]
        return torch.optim.AdamW(listed, lr=lr, eps=eps / self.ratio / self.depth_ratio**self.alpha)

    @property
    def multipliers(self):
        """What its forward pass makes, said of the parameters of these layers."""
        branch = self.depth_ratio**-self.alpha
        ends = dict.fromkeys(("*.c_proj.*", "*.mlp.2.*"), branch)
        return ends | {"transformer.wte.weight": 1 / self.ratio}


@pytest.mark.parametrize(("alpha", "condition"), [(1.0, "3.1"), (0.5, "B.1")])
def test_complete_p_as_nano_gpt_mup_states_it(alpha, condition):
    """All cells are the table's but the epsilons outside of blocks: one epsilon for all falls with the depth there."""
    small, large = CompleteGPT(32, 2, alpha=alpha), CompleteGPT(128, 8, alpha=alpha)
    report = mft.check_recipe(
        large,
        large.optimizer(),
        small,
        small.optimizer(),
        multipliers=large.multipliers,
        base_multipliers=small.multipliers,
        condition=condition,
    )
    assert {(cell.column, cell.hyperparameter): cell.factor for cell in report.deviating} == {
        ("input", "adamw_epsilon"): pytest.approx(4**-alpha),
        ("input_bias", "adamw_epsilon"): pytest.approx(4**-alpha),
    }


def mu_adamw(model, width_ratio):
    """As microsoft's mup groups them: matrices of two widths at lr / r_n and decay x r_n, all others as they are."""
    matrices = [model[2].weight]
    others = [parameter for parameter in model.parameters() if parameter is not model[2].weight]
    groups = [
        {"params": matrices, "lr": 0.01 / width_ratio, "weight_decay": 0.1 * width_ratio},
        {"params": others, "lr": 0.01, "weight_decay": 0.1},
    ]
    return torch.optim.AdamW(groups, eps=1e-8)


def test_mup_s_adamw_has_all_but_the_epsilons():
    """Its readout reads inputs over r_n, and starts at the base model's standard deviation."""

    def model(width):
        return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 64))

    small, large = model(64), model(256)
    with torch.no_grad():
        for parameter in (large[4].weight, large[4].bias, large[2].bias):
            parameter *= 2
    both = (large, mu_adamw(large, 4)), (small, mu_adamw(small, 1))
    report = mft.check_recipe(*both[0], *both[1], multipliers={"4.weight": 0.25})
    assert {cell.hyperparameter for cell in report.deviating} == {"adamw_epsilon"}
    assert {cell.factor for cell in report.deviating} == {4.0}
    assert {cell.column for cell in report.deviating} == {"input", "hidden", "output", "input_bias"}
    without = mft.check_recipe(*both[0], *both[1])
    missing = {cell.hyperparameter: cell.factor for cell in without.deviating if cell.column == "output"}
    assert missing == {"adamw_epsilon": 4.0, "block_multiplier": 4.0}


@pytest.mark.parametrize(("name", "power", "of_epsilon"), [("AdamW", 1, 1), ("SGD", 2, 0)])
def test_a_factor_in_the_multiplier_or_in_the_weights_is_the_same_training(name, power, of_epsilon):
    """Weights W / c behind a multiplier c, with rates over c or its square: outputs agree after ten steps."""
    factor, inputs, targets = 0.25, torch.randn(8, 5, dtype=torch.double), torch.arange(8) % 3
    outputs = []
    for moved in (False, True):
        torch.manual_seed(0)
        first, last = nn.Linear(5, 6).double(), nn.Linear(6, 3).double()
        scale = factor if moved else 1.0
        with torch.no_grad():
            for parameter in last.parameters():
                parameter *= 1.0 if moved else factor
        rate = 0.1 * (1.0 if moved else factor**power)
        own = {"params": last.parameters(), "lr": rate, "weight_decay": 0.01 / rate}
        if name == "AdamW":
            own["eps"] = 1e-2 * (1.0 if moved else factor**-of_epsilon)
        kind = getattr(torch.optim, name)
        optimizer = kind([{"params": first.parameters(), "lr": 0.1, "weight_decay": 0.0}, own])
        for _ in range(10):
            optimizer.zero_grad()
            nn.functional.cross_entropy(scale * last(torch.relu(first(inputs))), targets).backward()
            optimizer.step()
        outputs.append((scale * last(torch.relu(first(inputs)))).detach())
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-10, atol=1e-12)


def test_muon_beside_adamw():
    small, large = gpt(32, 2), gpt(64, 4)

    def made(model, **how):
        given = {"lr": {"muon": 0.02, "adamw": 0.01}, "weight_decay": 0.1, "eps": 1e-8, "optimizer": "muon-adamw"}
        groups = mft.parameter_groups(model, gpt(32, 2), **given | how) if model is large else None
        if groups is None:
            hidden = [each for name, each in model.named_parameters() if ".h." in name and each.dim() > 1]
            others = [each for name, each in model.named_parameters() if not (".h." in name and each.dim() > 1)]
            vectors = [each for each in others if each.dim() < 2]
            tables = [each for each in others if each.dim() > 1]
            groups = [{"params": tables, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
            return [torch.optim.Muon(hidden, lr=0.02, weight_decay=0.1), torch.optim.AdamW(groups, lr=0.01)]
        groups.apply()
        handed = groups.by_optimizer()
        return [torch.optim.Muon(handed["muon"]), torch.optim.AdamW(handed["adamw"])]

    report = mft.check_recipe(large, made(large), small, made(small))
    assert report.agrees, str(report)
    assert "table 6 (adamw) and table 4 (muon)" in report.source
    recipe = mft.recipe_of(small, made(small))
    hidden = {weight.optimizer for weight in recipe.weights if weight.role == "ffn"}
    assert hidden == {"muon"}
    assert {weight.epsilon for weight in recipe.weights if weight.optimizer == "muon"} == {None}


def test_a_recipe_says_what_the_model_and_its_optimizer_have(base):
    recipe = mft.recipe_of(*base)
    assert read_recipe(recipe.to_json()) == recipe
    weights = {weight.name: weight for weight in recipe.weights}
    assert (recipe.depth, recipe.heads) == (2, 2)
    assert weights["transformer.wte.weight"].role == "tied"
    assert weights["transformer.wpe.weight"].role == "position"
    ends = {name for name, weight in weights.items() if weight.role == "projection"}
    assert ends == {f"transformer.h.{block}.{end}.weight" for block in (0, 1) for end in ("attn.c_proj", "mlp.2")}
    gain = weights["transformer.h.1.ln_2.weight"]
    assert (gain.role, gain.kind, gain.block, gain.std) == ("norm_gain", "transformer.h.*.ln_2.weight", 1, 1.0)
    assert gain.weight_decay == 0
    fc = weights["transformer.h.0.mlp.0.weight"]
    assert fc.std == pytest.approx(float(base[0].transformer.h[0].mlp[0].weight.detach().square().mean().sqrt()))
    assert (fc.learning_rate, fc.weight_decay, fc.epsilon, fc.optimizer) == (0.01, 0.1, 1e-8, "adamw")


def test_rates_under_a_schedule_are_those_it_starts_from(base):
    model, optimizer = base
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5)
    assert schedule.get_last_lr()[0] == 0.005
    assert {weight.learning_rate for weight in mft.recipe_of(model, optimizer).weights} == {0.01}


def test_the_json_of_a_recipe_judges_as_the_live_one(base):
    model = gpt(64, 4)
    target, of_base = mft.recipe_of(model, usual(model)), mft.recipe_of(*base)
    by_json = judge_recipe(read_recipe(target.to_json()), read_recipe(of_base.to_json()))
    assert by_json == mft.check_recipe(model, usual(model), *base)


class Unheard(torch.optim.SGD):
    pass


def test_optimizers_that_no_table_knows_are_refused(base):
    model, _ = base
    with pytest.raises(
        ValueError, match=r"no table goes by the name of Unheard; say whose it takes: names=\{'Unheard'"
    ):
        mft.recipe_of(model, Unheard(model.parameters(), lr=0.1))
    recipe = mft.recipe_of(model, Unheard(model.parameters(), lr=0.1), names={"Unheard": "sgd"})
    assert {weight.optimizer for weight in recipe.weights} == {"sgd"}
    with pytest.raises(ValueError, match="the name of Unheard is 'core'; choose one of"):
        mft.recipe_of(model, Unheard(model.parameters(), lr=0.1), names={"Unheard": "core"})
    with pytest.raises(ValueError, match="Adam adds weight decay to the gradient"):
        mft.recipe_of(model, torch.optim.Adam(model.parameters(), weight_decay=0.1))
    assert mft.recipe_of(model, torch.optim.Adam(model.parameters())).weights[0].optimizer == "adamw"


def test_what_recipes_refuse(base):
    model, optimizer = base
    part = torch.optim.SGD(list(model.parameters())[:3], lr=0.1)
    with pytest.raises(ValueError, match="no group of the optimizer has the parameters"):
        mft.recipe_of(model, part)
    with pytest.raises(TypeError, match=r"optimizer is 'adamw'; give an optimizer of torch\.optim"):
        mft.recipe_of(model, "adamw")
    with pytest.raises(ValueError, match="no parameter that trains fits 'core'"):
        mft.recipe_of(model, optimizer, multipliers={"core": 1.0})
    with pytest.raises(ValueError, match=r"multiplier of .* is nan; it must be a finite number"):
        mft.recipe_of(model, optimizer, multipliers={"*": float("nan")})
    with pytest.raises(TypeError, match="multipliers is 3; give a mapping from names of parameters"):
        mft.recipe_of(model, optimizer, multipliers=3)
    with pytest.raises(TypeError, match="names is 3; give a mapping from classes of optimizers"):
        mft.recipe_of(model, optimizer, names=3)
    frozen = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(ValueError, match="no parameter of the model trains"):
        mft.recipe_of(frozen, optimizer)


def test_a_tensor_in_two_optimizers_is_refused():
    model = torch.nn.Linear(4, 2)
    both = [torch.optim.AdamW(model.parameters(), lr=0.01), torch.optim.SGD(model.parameters(), lr=9.0)]
    with pytest.raises(ValueError, match="'weight', 'bias' stand in several groups"):
        mft.recipe_of(model, both)
