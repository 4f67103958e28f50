"""What models of users have in them: each is measured, or refused with a reason."""

import random
from functools import partial

import numpy as np
import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import meanfield.torch as mft  # noqa: E402
from tests.torch import models  # noqa: E402

cross_entropy = functional.cross_entropy
vectors = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
labels = torch.arange(7) % 3
BATCHES = [(vectors, labels)]


def scales_of(model, loss=cross_entropy, batches=BATCHES, optimizer="sgd", draws=2, **how):
    return mft.step_scales(model, loss, batches, optimizer=optimizer, draws=draws, **how)


def energies(model, **how):
    return scales_of(model, **how).update_energy.values


def stack(*middle):
    return nn.Sequential(nn.Linear(4, 6), *middle, nn.Linear(6, 3))


class Listed(nn.Module):
    """Its weights stand in a list of parameters, of which it takes a slice."""

    def __init__(self, sliced):
        super().__init__()
        shapes = [(4, 6), (6, 6), (6, 3)]
        self.matrices = nn.ParameterList([nn.Parameter(torch.randn(shape) / 2) for shape in shapes])
        self.end, self.sliced = nn.Identity(), sliced

    def forward(self, x):
        for matrix in self.matrices[:3] if self.sliced else self.matrices:
            x = torch.tanh(x @ matrix)
        return self.end(x)


def test_a_slice_of_a_list_of_parameters_loses_nothing():
    np.testing.assert_array_equal(energies(partial(Listed, True)), energies(partial(Listed, False)))
    assert energies(partial(Listed, True))[0] > 0


def test_buffers_stay_as_they_were():
    model = stack(nn.BatchNorm1d(6), nn.ReLU())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    scales_of(model, reinit=None)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert int(model[1].num_batches_tracked) == 0


def test_both_passes_take_one_mask_of_dropout_and_draws_take_their_own():
    scales = scales_of(stack(nn.Dropout(0.5)), reinit=None, draws=4)
    assert (scales.update_energy_stderr.sel(layer=2) > 0).all()
    assert float(scales_of(stack(nn.Dropout(0.0)), reinit=None).update_energy_stderr.sum()) == 0


def test_dropout_inside_of_attention_is_the_same_in_both_passes():
    scales = scales_of(
        partial(models.GPT, dropout=0.3), models.token_loss, [models.tokens()], optimizer="adamw", draws=3
    )
    assert np.isfinite(scales.update_energy).all()


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.reentrant = reentrant

    def forward(self, x):
        x = torch.tanh(self.first(x))
        if self.reentrant is None:
            return self.third(torch.tanh(self.second(x)))
        return self.third(torch.tanh(checkpoint(self.second, x, use_reentrant=self.reentrant)))


def test_checkpoints_change_nothing():
    np.testing.assert_allclose(
        energies(partial(Checkpointed, False)), energies(partial(Checkpointed, None)), rtol=1e-12
    )


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_reentrant_checkpoints_are_refused():
    with pytest.raises(ValueError, match=r"operation without a forward derivative.*give use_reentrant=False"):
        scales_of(partial(Checkpointed, True))


class Hiding(torch.autograd.Function):
    """Twice its input, whose forward derivative says once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, slope):
        return 2 * slope

    @staticmethod
    def jvp(ctx, change):
        return change.clone()


def test_derivatives_that_disagree_are_refused():
    class Model(nn.Linear):
        def forward(self, x):
            return Hiding.apply(super().forward(x))

    with pytest.raises(ValueError, match=r"by forward derivatives and by .* by the gradient"):
        scales_of(lambda: Model(4, 3))


def test_operations_in_place_change_nothing():
    np.testing.assert_allclose(
        energies(partial(stack, nn.ReLU(inplace=True))), energies(partial(stack, nn.ReLU())), rtol=1e-12
    )


def test_every_call_of_a_module_is_a_place():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head, self.idle = nn.Linear(4, 4), nn.Linear(4, 3), nn.Identity()

        def forward(self, x):
            return self.head(self.inner(torch.tanh(self.inner(x))))

    scales = scales_of(Twice)
    assert scales.module.values.tolist() == ["inner", "inner#2", "head"]
    assert scales.attrs["last_layer"] == "inner#2"
    assert scales_of(Twice, modules="inner").module.values.tolist() == ["inner", "inner#2"]


class Wrapped(nn.Module):
    """Gives its outputs in a tuple, or in a mapping with its own loss in front."""

    def __init__(self, kind):
        super().__init__()
        self.inner, self.kind = stack(nn.Tanh()), kind

    def forward(self, x, labels=None):
        logits = self.inner(x)
        if self.kind == "tuple":
            return logits, {"hidden": x}
        return {"loss": cross_entropy(logits, labels), "logits": logits} if self.kind == "mapping" else logits


def test_outputs_in_tuples_and_mappings_and_models_of_their_own_loss():
    expected = scales_of(partial(Wrapped, ""))
    in_tuple = scales_of(partial(Wrapped, "tuple"), lambda outputs, targets: cross_entropy(outputs[0], targets))
    own = [({"x": vectors, "labels": labels}, None)]
    in_mapping = scales_of(partial(Wrapped, "mapping"), lambda outputs, _: outputs["loss"], own)
    for scales in (in_tuple, in_mapping):
        np.testing.assert_allclose(scales.update_energy, expected.update_energy, rtol=1e-12)
        np.testing.assert_allclose(scales.output_update_energy, expected.output_update_energy, rtol=1e-12)


def test_a_model_that_is_called_in_another_way():
    how = {"forward": lambda model, inputs: model.inner(inputs)}
    expected = scales_of(partial(Wrapped, "")).output_update_energy
    assert float(scales_of(partial(Wrapped, "tuple"), **how).output_update_energy) == pytest.approx(float(expected))


def test_lstms_and_attention_of_pytorch():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.lstm(x[:, None])[0][:, -1])

    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            self.lift = nn.Linear(4, 6)
            layer = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True, norm_first=True)
            self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.encoder(self.lift(x)[:, None]).mean(1))

    assert scales_of(Recurrent, optimizer=torch.optim.AdamW).module.values.tolist() == ["lstm", "head"]
    scales = scales_of(Attending, optimizer="muon-adamw", modules=nn.TransformerEncoderLayer)
    assert scales.attrs["last_layer"] == "encoder.layers.1"


def test_half_precision_and_autocast_are_measured_in_double():
    def half():
        torch.manual_seed(0)
        return stack(nn.Tanh()).to(torch.bfloat16)

    def lowered(model, inputs):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(inputs)

    def whole():
        return half().double()

    expected = energies(whole)
    np.testing.assert_array_equal(energies(half), expected)
    np.testing.assert_array_equal(energies(whole, forward=lowered), expected)
    np.testing.assert_allclose(energies(whole, precision="float32"), expected, rtol=1e-4)
    with pytest.raises(ValueError, match="bfloat16, which holds no exact change"):
        scales_of(whole, forward=lowered, precision="float32")


def test_single_precision_makes_steps_as_exact_ones():
    for optimizer in (torch.optim.AdamW, partial(torch.optim.SGD, lr=1e-4), "muon"):
        both = [energies(models.ResNet, batches=[models.images()], optimizer=optimizer, precision=precision)
                for precision in ("float64", "float32")]  # fmt: skip
        np.testing.assert_allclose(both[1], both[0], rtol=2e-2)


def test_frozen_parameters_do_not_move():
    def frozen():
        model = stack(nn.Tanh())
        model[0].requires_grad_(False)
        return model

    scales = scales_of(frozen, optimizer="adamw")
    assert scales.update_energy.values[:2].tolist() == [0, 0]
    assert float(scales.relative_update_energy[0]) == 0 < float(scales.output_update_energy)


def test_gradients_that_cancel_but_for_rounding_have_no_signs():
    """A bias below a normalisation shifts nothing: its gradient is 0, and what rounding leaves of it is no step."""

    def with_bias(bias):
        def make():
            model = nn.Sequential(nn.Linear(4, 6, bias=bias), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))
            torch.manual_seed(0)
            nn.init.normal_(model[0].weight)
            nn.init.normal_(model[3].weight)
            nn.init.zeros_(model[3].bias)
            return model

        return make

    np.testing.assert_allclose(
        energies(with_bias(True), optimizer="adamw"), energies(with_bias(False), optimizer="adamw"), rtol=1e-9
    )


def test_compiled_models_run_as_they_are_written():
    model = stack(nn.Tanh())
    expected = energies(model, reinit=None)
    compiled = torch.compile(model, backend="eager")
    np.testing.assert_allclose(energies(compiled, reinit=None), expected, rtol=1e-12)


def test_draws_depend_on_the_seed_alone():
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    how = {"optimizer": torch.optim.AdamW}
    first = scales_of(partial(stack, nn.Dropout()), seed=4, **how)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    again = scales_of(partial(stack, nn.Dropout()), seed=4, **how)
    other = scales_of(partial(stack, nn.Dropout()), seed=5, **how)
    assert first.identical(again)
    assert (first.update_energy != other.update_energy).all()
    more = scales_of(partial(stack, nn.Dropout()), seed=4, draws=5, **how)
    assert (more.update_energy_quantile.sel(quantile=0.1) <= first.update_energy_quantile.max("quantile")).all()


def test_loaders_are_shuffled_by_the_seed():
    loader = torch.utils.data.DataLoader(list(zip(vectors, labels, strict=True)), batch_size=3, shuffle=True)
    runs = [scales_of(partial(stack), batches=loader, draws=3, seed=seed) for seed in (2, 2, 3)]
    assert runs[0].identical(runs[1])
    assert not runs[0].update_energy.equals(runs[2].update_energy)


def test_modules_have_their_weights_drawn_anew():
    model = stack(nn.LayerNorm(6), nn.Tanh())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    scales = scales_of(model, draws=3)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (scales.update_energy_stderr > 0).all()

    assert float(scales_of(model, reinit=lambda own: nn.init.normal_(own[0].weight), draws=3).update_energy[3]) > 0


def test_values_that_start_at_zero_have_no_relative_change():
    """Outputs of a head that starts at 0 move; relative to themselves they have no scale, and all others have."""

    def from_zero():
        model = stack(nn.Tanh())
        nn.init.zeros_(model[2].weight)
        nn.init.zeros_(model[2].bias)
        return model

    scales = scales_of(from_zero, optimizer=torch.optim.AdamW, draws=4)
    assert np.isnan(scales.relative_update_energy.values).tolist() == [False, False, True]
    assert float(scales.output_update_energy) == float(scales.update_energy[2]) > 0
    names = ("relative_learning_rate_scale", "last_learning_rate_scale", "output_learning_rate_scale")
    assert all(np.isfinite(scales[name]) for name in names[2:])


def test_initial_weights_of_a_models_own_are_noticed():
    with pytest.warns(mf.PremiseWarning, match=r"h.0.mlp.2.weight' 0.051, not 0.\d+.*give the function"):
        scales_of(models.GPT(width=32), models.token_loss, [models.tokens()])


def test_parts_are_chosen_by_name_by_pattern_and_by_class():
    model = partial(models.ResNet, depth=2)
    how = {"batches": [models.images()]}
    by_class = scales_of(model, modules=models.BasicBlock, **how)
    assert by_class.module.values.tolist() == ["layer1.0", "layer1.1", "layer2.0", "layer2.1"]
    assert set(by_class.kind.values) == {"BasicBlock"}
    by_pattern = scales_of(model, modules=["layer?.[01]", "fc"], **how)
    assert by_pattern.module.values.tolist() == [*by_class.module.values, "fc"]
    np.testing.assert_array_equal(by_pattern.update_energy[:4], by_class.update_energy)
    leaves = scales_of(model, **how)
    assert leaves.attrs["last_layer"] == by_class.attrs["last_layer"] == by_pattern.attrs["last_layer"] == "layer2.1"
    last = "last_learning_rate_scale"
    assert float(leaves[last]) == float(by_class[last]) == float(by_pattern[last])


def test_hidden_state_is_refused():
    class Counting(nn.Linear):
        def forward(self, x):
            return super().forward(x) * random.random()

    with pytest.raises(ValueError, match="two passes of one batch differ"):
        scales_of(lambda: nn.Sequential(Counting(4, 3)))


def test_a_module_without_a_forward_derivative_is_named():
    def bag():
        return nn.Sequential(nn.EmbeddingBag(5, 6), nn.Linear(6, 3))

    with pytest.raises(ValueError, match="module '0' has an operation without a forward derivative"):
        scales_of(bag, batches=[(torch.arange(14).reshape(7, 2) % 5, labels)])


@pytest.mark.parametrize(
    ("sentence", "how"),
    [
        ("no parameter of the model trains", {"model": nn.Identity}),
        ("no parameter of the model trains", {"model": lambda: stack().requires_grad_(False)}),
        ("gives no gradient to the parameters '1.weight', '1.bias'", {"model": lambda: Unused()}),
        ("in evaluation mode", {"model": stack().eval(), "reinit": None}),
        ("the loss is inf", {"loss": lambda outputs, targets: (outputs.sum() * torch.inf).abs()}),
        ("the loss is nan", {"batches": [(vectors * torch.nan, labels)]}),
        ("the loss has shape", {"loss": lambda outputs, targets: outputs}),
        ("no parameter that trains moves the loss", {"loss": lambda outputs, targets: outputs.detach().sum()}),
        ("there are no batches", {"batches": []}),
        ("batch 0 is empty", {"batches": [(vectors[:0], labels[:0])]}),
        (
            "has the parameters '1.weight', '1.bias'",
            {"optimizer": lambda model: torch.optim.SGD(model[0].parameters())},
        ),
        ("no module of the model fits 'block'", {"modules": "block"}),
        ("none of the modules is called", {"model": lambda: Unused(frozen=True), "modules": "1"}),
        ("optimizer is 'adam'", {"optimizer": "adam"}),
        ("divides by the curvature", {"optimizer": "sophia"}),
        ("takes several gradients", {"optimizer": torch.optim.LBFGS}),
        ("have no shape yet", {"model": lambda: nn.Sequential(nn.LazyLinear(3))}),
        ("precision is 'half'", {"precision": "half"}),
        ("leave reinit to modules", {"reinit": None}),
        ("reinit is 'xavier'", {"model": stack(), "reinit": "xavier"}),
        ("have parameters and no reset_parameters", {"model": Listed(False)}),
        ("nothing moves in any of the 2 draws", {"batches": [(vectors, labels)], "loss": lambda out, _: 0 * out.sum()}),
    ],
)
def test_what_cannot_be_measured_is_refused_with_one_sentence(sentence, how):
    with pytest.raises(ValueError, match=sentence):
        scales_of(**{"model": stack} | how)


@pytest.mark.parametrize(
    ("sentence", "how"),
    [
        ("give a torch.nn.Module", {"model": 3}),
        ("and no torch.nn.Module", {"model": lambda: 3}),
        ("give a function", {"loss": "cross_entropy"}),
        (
            r"loss is the class CrossEntropyLoss; give one made from it, CrossEntropyLoss\(\)",
            {"loss": nn.CrossEntropyLoss},
        ),
        ("the loss is a float", {"loss": lambda outputs, targets: 1.0}),
        ("without a tensor of floats", {"forward": lambda model, inputs: labels}),
        ("give a list of pairs", {"batches": vectors}),
        ("batch 0 is a Tensor and no pair", {"batches": (vectors, labels)}),
        ("optimizer is 3", {"optimizer": 3}),
        ("the function made Linear", {"optimizer": lambda model: model[0]}),
        ("give its class, such as torch.optim.AdamW", {"optimizer": torch.optim.SGD(stack().parameters())}),
        ("modules has 3", {"modules": [3]}),
        ("draws is 1.5", {"draws": 1.5}),
    ],
)
def test_what_is_of_another_type_is_refused(sentence, how):
    with pytest.raises(TypeError, match=sentence):
        scales_of(**{"model": stack} | how)


def test_a_live_optimizer_goes_with_the_weights_as_they_are():
    model = stack()
    with pytest.raises(ValueError, match="give reinit=None beside it"):
        scales_of(model, optimizer=torch.optim.SGD(model.parameters()))
    with pytest.raises(ValueError, match="no group of the optimizer has"):
        scales_of(model, optimizer=torch.optim.SGD(stack().parameters()), reinit=None)
    measured = scales_of(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.3), reinit=None, precision="float32")
    np.testing.assert_allclose(measured.update_energy, energies(model, optimizer="sgd", reinit=None), rtol=1e-4)


class Unused(nn.Sequential):
    """Its last module is never called."""

    def __init__(self, frozen=False):
        super().__init__(nn.Linear(4, 3), nn.Linear(4, 3).requires_grad_(not frozen))

    def forward(self, x):
        return self[0](x)
