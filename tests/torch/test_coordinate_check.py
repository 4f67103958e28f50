"""Coordinate checks: tables are confirmed, the standard parameterization and broken cells are refuted and named."""

import doctest
import inspect
import re
from functools import partial

import numpy as np
import pytest
import xarray as xr

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

from torch import nn  # noqa: E402

import meanfield.torch as mft  # noqa: E402
from figures._command import draw_saved  # noqa: E402
from figures.model_coordinates import draw  # noqa: E402
from meanfield.torch.coordinate_verdicts import (  # noqa: E402
    Asked,
    NamedTable,
    judged,
)
from meanfield.torch.models import seeded  # noqa: E402
from tests.figures import test_all_figures as owed  # noqa: E402
from tests.torch import models, scaled  # noqa: E402

cross_entropy = nn.functional.cross_entropy
# Sizes near the least, and one far above, tell a slope best.
WIDTHS, DEPTHS = [16, 24, 48, 192], [2, 4, 6, 24]
HALF = 0.5


def checked(widths=WIDTHS, depths=2, steps=1, draws=12, **how):
    """Of the GPT, with its hyperparameters by a table or another."""
    make = {"optimizer": partial(scaled.adamw, **how), "widths": widths, "depths": depths}
    return mft.coordinate_check(
        partial(scaled.GPT, **how), models.token_loss, scaled.batches(), **make, steps=steps, draws=draws
    )


def rows_of(dataset):
    """(along, of, at, after) -> what was found there."""
    rows = dataset.drop_dims([dim for dim in dataset.dims if dim != "row"])
    labels = zip(*(rows[name].values.tolist() for name in ("along", "of", "at", "after")), strict=True)
    return {label: rows.isel(row=place) for place, label in enumerate(labels)}


def cells_of(row):
    """{(role, hyperparameter): the power by which it is said to be off}."""
    found = {}
    for said in filter(None, str(row.suspects.values).split("; ")):
        name, roles, way, power = re.fullmatch(r"(\w+) of (.+), too (large|small) by r_.\^(.+)", said).groups()
        for role in roles.split(" or "):
            found[role.split(" (")[0], name] = float(power) * (1 if way == "large" else -1)
    return found


@pytest.fixture(scope="module")
def by_table():
    return [checked(draws=16, steps=2), checked(widths=48, depths=DEPTHS, draws=16, steps=2)]


@pytest.fixture(scope="module")
def standard():
    return checked(depths=[2, 4, 6, 16], parameterization="standard", steps=2, draws=12)


def test_the_table_is_confirmed_by_slopes_that_would_have_shown_a_wrong_cell(by_table):
    for dataset in by_table:
        assert set(dataset.verdict.values) == {"CONFIRMED"}
        assert dataset.attrs["verdict"] == "CONFIRMED"
        assert float(dataset.refuted_from.max()) < 1.2 * HALF
        assert float(dataset.refuted_from.median()) < 0.8 * HALF
        assert not any(dataset.suspects.values)
    assert [dataset.sizes["row"] for dataset in by_table] == [12, 12]


def test_initial_outputs_fall_with_the_width_as_the_table_lets_them(by_table):
    row = rows_of(by_table[0])["width", "value", "outputs", 0]
    assert float(row.slope) == pytest.approx(-HALF, abs=0.1)
    assert row.verdict == "CONFIRMED"


def test_the_standard_parameterization_is_refuted_and_its_cells_are_named(standard):
    rows = rows_of(standard)
    assert standard.attrs["verdict"] == "REFUTED"
    expected = {
        ("width", "value", "outputs", 0): (("output", "block_multiplier"), 1.0),
        ("width", "change", "last", 1): (("hidden", "learning_rate"), 1.0),
        ("depth", "value", "last", 0): (("hidden", "block_multiplier"), 1.0),
    }
    for where, (cell, power) in expected.items():
        assert rows[where].verdict == "REFUTED", where
        assert cells_of(rows[where])[cell] == pytest.approx(power, abs=0.2), where
    # Branches that add to a stream that grows move it by more than the power that their multiplier is off by.
    where = "depth", "change", "middle", 1
    assert rows[where].verdict == "REFUTED"
    assert cells_of(rows[where])["hidden", "block_multiplier"] > 1
    for where in (("width", "change", "first", 1), ("width", "value", "last", 0), ("depth", "change", "first", 1)):
        assert rows[where].verdict == "CONFIRMED", where
    # The stream that the first block reads moves alike: what reads the inputs is not suspected of what comes after.
    assert not any(role.startswith("input") for role, _ in cells_of(rows["width", "change", "last", 1]))


BROKEN = {
    ("output", "learning_rate"): ("change", "outputs", 1, 1),
    ("hidden", "learning_rate"): ("change", "last", 1, 1),
    ("input", "learning_rate"): ("change", "first", 1, 1),
    ("output", "block_multiplier"): ("value", "outputs", 0, 1),
    ("output", "initial_variance"): ("value", "outputs", 0, 2),
    ("input", "initial_variance"): ("value", "first", 0, 1),
}


@pytest.mark.parametrize("cell", BROKEN, ids="-".join)
def test_a_broken_cell_is_caught_and_named(cell):
    of, at, after, power = BROKEN[cell]
    rows = rows_of(checked(broken={cell: (power, 0)}))
    row = rows["width", of, at, after]
    assert row.verdict == "REFUTED"
    assert cells_of(row)[cell] == pytest.approx(power, abs=0.3)
    # Nothing below it is off.
    below = {"first": [], "last": ["first"], "outputs": ["first", "middle", "last"]}[at]
    assert {str(rows["width", "change", place, 1].verdict.values) for place in below} <= {"CONFIRMED", "INCONCLUSIVE"}


def test_a_multiplier_that_does_not_fall_with_the_depth_is_caught_and_named():
    cell = "hidden", "block_multiplier"
    rows = rows_of(checked(widths=32, depths=[2, 4, 6, 16], broken={cell: (0, 1)}))
    assert rows["depth", "change", "last", 1].verdict == "REFUTED"
    assert cells_of(rows["depth", "change", "last", 1])[cell] == pytest.approx(1, abs=0.3)


def test_an_epsilon_that_is_as_large_as_gradients_makes_changes_fall():
    rows = rows_of(checked(epsilon=1e-3, broken={("hidden", "adamw_epsilon"): (1, 0)}))
    row = rows["width", "change", "last", 1]
    assert float(row.slope) < -HALF
    assert row.verdict == "REFUTED"
    assert cells_of(row)["hidden", "adamw_epsilon"] == pytest.approx(-float(row.slope), abs=0.01)
    assert ("input", "adamw_epsilon") not in cells_of(row)  # of which the stream would say more where blocks begin


def decaying(model, width, depth, power, share, broken=None):
    """AdamW, a step of which takes so much of the input weights of the base model, off by a power of r_n."""
    made = scaled.adamw(model, width, depth, broken=broken)
    (group,) = (group for group in made.param_groups if any(own is model.wte.weight for own in group["params"]))
    group["weight_decay"] = share / group["lr"] * (width / scaled.BASE_WIDTH) ** power
    return made


def with_decay(steps=1, **how):
    optimizer = partial(decaying, **how)
    sizes = {"widths": WIDTHS, "depths": 2, "steps": steps, "draws": 8}
    rows = rows_of(mft.coordinate_check(scaled.GPT, models.token_loss, scaled.batches(8), optimizer=optimizer, **sizes))
    return {after: rows["width", "change", "first", after] for after in range(1, steps + 1)}


def test_a_weight_decay_that_is_off_by_a_power_is_caught_in_the_first_step_and_named():
    """And later on, as what decays grows no faster than what moves; one by the table is not blamed."""
    cell = "input", "weight_decay"
    for row in with_decay(steps=2, power=1, share=4e-3).values():
        assert row.verdict == "REFUTED"
        assert cells_of(row)[cell] == pytest.approx(1, abs=0.2)
    right = with_decay(power=0, share=4e-3)[1]
    assert right.verdict == "CONFIRMED"
    assert not cells_of(right)


def test_weight_decay_that_takes_too_little_to_be_seen_is_not_suspected():
    rate = "input", "learning_rate"
    found = {share: with_decay(power=0, share=share, broken={rate: (1, 0)})[1] for share in (1e-5, 4e-3)}
    assert {str(row.verdict.values) for row in found.values()} == {"REFUTED"}
    assert all(rate in cells_of(row) for row in found.values())
    assert [("input", "weight_decay") in cells_of(row) for row in found.values()] == [False, True]


def test_shuffled_widths_have_no_slope(standard):
    """Of every draw in an order of its own: what grows with the width is lost."""
    generator = np.random.default_rng(0)
    plain = standard.drop_dims("row").drop_vars("depth").drop_dims("depth", errors="ignore")
    shuffled = plain.copy(deep=True)
    for name in ("feature_norm_by_width", "feature_update_norm_by_width"):
        values = shuffled[name].transpose("width", "draw", ...).values
        for number in range(values.shape[1]):
            values[:, number] = values[generator.permutation(len(values)), number]
        shuffled[name] = (("width", "draw", "step", "place"), values)
    again = judged(shuffled, Asked.checked(0.1, None, 2))
    assert "REFUTED" not in again.verdict.values
    assert (abs(again.slope) < 4 * again.slope_stderr + 0.1).all()
    assert judged(plain, Asked.checked(0.1, None, 2)).attrs["verdict"] == "REFUTED"


# What is measured.


def stack(width, depth=1):
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), *hidden, nn.Linear(width, 3))


def vectors(count=3):
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(7, 4, generator=generator), torch.arange(7) % 3) for _ in range(count)]


SGD = partial(torch.optim.SGD, lr=0.05)
HOW = {"widths": [8, 12, 16], "depths": 1, "optimizer": SGD, "steps": 2, "draws": 3}


def measured(factory=stack, loss=cross_entropy, batches=None, **how):
    return mft.coordinate_check(factory, loss, vectors() if batches is None else batches, **HOW | how)


def test_a_small_step_of_descent_moves_blocks_and_outputs_as_its_first_order():
    rate, small = 1e-5, {"depth": 2, "width": 16}
    data = models.token_loss, [models.tokens(seed=seed) for seed in range(3)]
    how = {"optimizer": partial(torch.optim.SGD, lr=rate), "steps": 1, "draws": 3, "precision": "float64"}
    moved = mft.coordinate_check(models.GPT, *data, widths=[16, 24, 32], depths=2, **how)
    blocks = ["transformer.h.0", "transformer.h.1"]
    scales = mft.step_scales(partial(models.GPT, **small), *data, optimizer=torch.optim.SGD, draws=3, modules=blocks)
    energies = (moved.feature_update_norm_by_width.sel(width=16, step=1) ** 2).mean("draw") / rate**2
    expected = [*scales.update_energy.values, float(scales.output_update_energy)]
    np.testing.assert_allclose(energies.sel(place=["middle", "last", "outputs"]), expected, rtol=1e-3)


def test_values_and_changes_are_those_of_training_by_hand():
    make = partial(torch.optim.AdamW, lr=0.02, weight_decay=0.3)
    found = measured(optimizer=make, steps=3, precision="float64")
    (inputs, targets), values = vectors()[1], []
    with seeded(0, "torch weights", 1):
        model = stack(12).double()
    optimizer, kept = make(model.parameters()), []
    model[2].register_forward_hook(lambda _module, _inputs, value: kept.append(value.detach().clone()))
    for _ in range(4):
        outputs = model(inputs.double())
        loss = cross_entropy(outputs, targets)
        values.append((kept[-1], outputs.detach(), loss.item()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    drawn = found.sel(width=12, draw=1)
    for number, place in enumerate(("last", "outputs")):
        sizes = [float(each[number].square().mean() ** 0.5) for each in values]
        moved = [float((each[number] - values[0][number]).square().mean() ** 0.5) for each in values]
        np.testing.assert_allclose(drawn.feature_norm_by_width.sel(place=place), sizes, rtol=1e-9)
        np.testing.assert_allclose(drawn.feature_update_norm_by_width.sel(place=place), moved, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(drawn.loss_by_width, [each[2] for each in values], rtol=1e-9)


def test_one_generator_of_random_numbers_stays_as_it_was_and_draws_come_again():
    state = torch.random.get_rng_state()
    first, second = measured(), measured()
    assert torch.equal(torch.random.get_rng_state(), state)
    xr.testing.assert_identical(first, second)
    assert not np.array_equal(first.slope, measured(seed=1).slope)


def test_more_draws_keep_those_that_were_made():
    few, many = measured(draws=3), measured(draws=5, batches=vectors(3))
    np.testing.assert_array_equal(few.feature_norm_by_width, many.feature_norm_by_width.isel(draw=slice(3)))


def test_both_ladders_start_at_the_least_size_of_the_other():
    both = measured(depths=[4, 2, 3])
    assert both.depth.values.tolist() == [2, 3, 4]
    at = {"step": 2, "draw": 0, "place": "outputs"}
    assert both.feature_norm_by_width.sel(width=8, **at) == both.feature_norm_by_depth.sel(depth=2, **at)
    alone = measured(widths=8, depths=[2, 3, 4])
    np.testing.assert_array_equal(alone.feature_norm_by_depth, both.feature_norm_by_depth)


def test_optimizers_may_know_the_size():
    def plain(model):
        return torch.optim.SGD(model.parameters(), lr=0.05)

    def of_width(model, width):
        return [torch.optim.SGD(model.parameters(), lr=0.4 / width)]

    np.testing.assert_array_equal(measured(optimizer=plain).slope, measured().slope)
    scaled_down, constant = measured(optimizer=of_width), measured()
    at = {"step": 1, "place": "outputs"}
    ratio = scaled_down.feature_update_norm_by_width.sel(**at) / constant.feature_update_norm_by_width.sel(**at)
    np.testing.assert_allclose(ratio.mean("draw"), [1, 8 / 12, 8 / 16], rtol=0.1)


def test_sizes_that_are_given_already_stay():
    found = measured(partial(stack, width=12), widths=8, depths=[1, 2, 3], steps=1)
    xr.testing.assert_equal(found.slope, measured(stack, widths=12, depths=[1, 2, 3], steps=1).slope)
    with pytest.raises(TypeError, match="factory takes no width"):
        measured(partial(stack, width=12))


def test_both_precisions_say_the_same():
    single, double = (measured(precision=precision) for precision in ("float32", "float64"))
    np.testing.assert_allclose(single.slope, double.slope, atol=1e-3)
    assert (single.slope != double.slope).any()


def test_muon_beside_adamw_has_the_table_of_both():
    def both(model):
        hidden = [model[2].weight]
        others = [each for each in model.parameters() if each is not hidden[0]]
        return [torch.optim.AdamW(others, lr=1e-3), torch.optim.Muon(hidden, lr=0.02)]

    found = measured(optimizer=both, steps=1)
    assert (found.attrs["optimizer"], found.attrs["table"]) == ("AdamW and Muon", "muon-adamw")
    assert measured(optimizer=torch.optim.Adagrad, steps=1).attrs["table"] == ""
    assert measured(optimizer=torch.optim.Adagrad, steps=1, table="sophia").attrs["table"] == "sophia"


def test_batch_statistics_are_taken_and_buffers_stay():
    made = []

    def kept(width):
        made.append(models.ResNet(channels=width))
        return made[-1]

    found = measured(kept, batches=[models.images()], widths=[4, 6, 8])
    assert found.place.values.tolist() == ["first", "middle", "last", "outputs"]
    assert {int(model.bn1.num_batches_tracked) for model in made} == {0}
    assert all(torch.equal(model.bn1.running_mean, torch.zeros_like(model.bn1.running_mean)) for model in made)


def test_masks_of_dropout_are_no_change():
    gpt = partial(models.GPT, dropout=0.3)
    how = {"widths": [8, 12, 16], "depths": 2, "batches": [models.tokens()], "loss": models.token_loss}
    with pytest.raises(ValueError, match="nothing moves in any of the models"):
        measured(gpt, optimizer=partial(torch.optim.SGD, lr=0.0), **how)
    assert np.isfinite(measured(gpt, **how).slope).all()


def test_checkpoints_change_nothing():
    class Checkpointed(models.Block):
        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=False)

    def gpt(width, kind):
        own = models.GPT(width=width)
        own.transformer["h"] = nn.ModuleList([kind(width, 2, 0.0) for _ in range(2)])
        return own

    how = {"widths": [8, 12, 16], "batches": [models.tokens()], "loss": models.token_loss, "depths": 2}
    plain, saved = (measured(partial(gpt, kind=kind), **how) for kind in (models.Block, Checkpointed))
    np.testing.assert_allclose(saved.slope, plain.slope, rtol=1e-4)


def test_modules_are_chosen():
    found = measured(modules=["0", "4"], depths=2)
    assert found.place.values.tolist() == ["first", "middle", "last", "outputs"]
    assert "first" not in set(found["at"].values.tolist())  # data, which nothing moves
    with pytest.raises(ValueError, match="no module of the model fits 'attention'"):
        measured(modules="attention")


def test_what_starts_at_zero_and_what_does_not_move_yet_has_no_row():
    def zero(width):
        model = stack(width)
        nn.init.zeros_(model[-1].weight)
        nn.init.zeros_(model[-1].bias)
        return model

    rows = rows_of(measured(zero))
    assert ("width", "value", "outputs", 0) not in rows
    assert ("width", "change", "last", 1) not in rows
    assert {("width", "change", "last", 2), ("width", "change", "outputs", 1)} < set(rows)


def test_changes_of_the_size_of_rounding_are_not_judged():
    rows = rows_of(measured(optimizer=partial(torch.optim.SGD, lr=1e-6), steps=1))
    row = rows["width", "change", "last", 1]
    assert row.verdict == "INCONCLUSIVE"
    assert "of the size of rounding" in str(row.evidence.values)


# What is refused.


def growing(model, width):
    """Of a rate that larger models do not bear."""
    return torch.optim.SGD(model.parameters(), lr=1e25 if width > 12 else 0.05)


def linear(width, depth=1):
    return nn.Sequential(nn.Linear(4, width), nn.Linear(width, 3))


def squares(outputs, targets):
    return outputs.square().mean()


def test_larger_models_that_leave_the_floats_refute_and_are_told_of():
    with pytest.warns(mf.PremiseWarning, match="3 of 3 models of width 16 and depth 1 leave the range of floats"):
        found = measured(linear, squares, optimizer=growing, steps=4)
    row = rows_of(found)["width", "change", "outputs", 4]
    assert row.verdict == "REFUTED"
    assert str(row.evidence.values) == "models leave the range of floats at width 16"
    assert "learning_rate of input" in str(row.suspects.values)
    assert "models leave the range of floats" in mft.coordinate_report(found)


def test_the_smallest_models_must_stay_within_the_floats():
    with pytest.raises(ValueError, match=r"3 of 3 models of width 8 and depth 1 leave .* the smallest already"):
        measured(linear, squares, optimizer=partial(torch.optim.SGD, lr=1e25), steps=4)


REFUSED = [
    (ValueError, "nothing is compared", {"widths": 8}),
    (ValueError, "nothing is compared", {"widths": [8], "depths": [1]}),
    (ValueError, "each once", {"widths": [8, 8, 16]}),
    (ValueError, "takes 3 sizes or more", {"widths": [8, 16]}),
    (ValueError, "widths are .*; give one size", {"widths": []}),
    (ValueError, "do not grow with the width: they have 139 at width 8", {"factory": lambda width: stack(8)}),
    (ValueError, "do not grow with the depth", {"factory": lambda width, depth: stack(width), "depths": [1, 2, 3]}),
    (TypeError, "factory takes no width", {"factory": lambda depth: stack(8, depth)}),
    (TypeError, "factory is to be a function of width and depth, by these names", {"factory": lambda n, m: stack(n)}),
    (TypeError, "factory is a Sequential; give a function", {"factory": stack(8)}),
    (TypeError, "optimizer is a str; give a function", {"optimizer": "adamw"}),
    (TypeError, "optimizer is to be a function of the model", {"optimizer": lambda model, w, d: SGD([])}),
    (TypeError, "the function made NoneType", {"optimizer": lambda model: None}),
    (ValueError, "no group of the optimizer has", {"optimizer": lambda own: SGD(own[0].parameters())}),
    (ValueError, "takes several gradients", {"optimizer": torch.optim.LBFGS}),
    (ValueError, "steps is 0", {"steps": 0}),
    (ValueError, "draws is 1", {"draws": 1}),
    (ValueError, "there are no batches", {"batches": []}),
    (ValueError, "the loss is nan at initial weights", {"loss": lambda outputs, _: outputs.sum() * torch.nan}),
    (ValueError, "flat is 0.3; give less than 0.25", {"flat": 0.3}),
    (ValueError, "optimizer is 'adagrad'", {"table": "adagrad"}),
    (ValueError, "precision is 'float16'", {"precision": "float16"}),
]


@pytest.mark.parametrize(("refusal", "sentence", "given"), REFUSED)
def test_what_cannot_be_checked_is_refused(refusal, sentence, given):
    with pytest.raises(refusal, match=sentence):
        measured(**given)


def test_modules_that_are_not_called_in_every_step_are_refused():
    class Moody(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner, self.called = stack(width), 0

        def forward(self, x):
            self.called += 1
            return self.inner(x) if self.called % 2 else self.inner[4](self.inner[0](x))

    with pytest.raises(ValueError, match=r"(calls other modules in some steps|gives no gradient)"):
        measured(Moody)


# What is said.


def test_every_variable_has_words_and_numbers_have_units(standard):
    for name, variable in standard.variables.items():
        assert variable.attrs.get("long_name"), name
        assert variable.dtype.kind not in "fiu" or variable.attrs["units"] == "1", name


def test_the_dataset_is_kept_in_a_file(standard, tmp_path):
    standard.to_netcdf(tmp_path / "kept.nc", engine="netcdf4")
    with xr.open_dataset(tmp_path / "kept.nc", engine="netcdf4") as kept:
        assert mft.coordinate_report(kept) == mft.coordinate_report(standard)


def test_the_report_has_question_answer_slopes_and_cells(standard, by_table):
    report = mft.coordinate_report(standard)
    assert report.startswith("Do the values and outputs of GPT stay flat in width and depth under AdamW?\nREFUTED: of ")
    assert "widths 16 24 48 192 at depth 2, depths 2 4 6 16 at width 16; 12 draws, seed 0; 2 steps in float32" in report
    assert report.count("REFUTED  ") == int((standard.verdict == "REFUTED").sum())
    assert "change of last after step 1, in width: +" in report
    assert "    learning_rate of hidden (1/r_n) or hidden_bias (1), too large by r_n^" in report
    confirmed = mft.coordinate_report(by_table[0])
    assert "\nCONFIRMED: of 12 slopes 12 are flat.\n" in confirmed
    assert "could be wrong" not in confirmed
    assert "before training outputs may fall with the width" in confirmed
    assert "may fall" not in mft.coordinate_report(by_table[1])
    with pytest.raises(ValueError, match="no slopes that were judged"):
        mft.coordinate_report(standard.drop_dims("row"))


def test_the_figure_shows_every_slope(standard, by_table):
    for dataset, panels in ((standard, 6), (by_table[1], 3)):
        figure = draw(dataset)
        figure.draw_without_rendering()
        assert len(figure.axes) == panels
        words = [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]
        assert len(words) == dataset.sizes["row"] + panels
        assert sum("not flat" in each for each in words) == int((dataset.verdict == "REFUTED").sum())
        assert not any("may fall" in each for each in words)  # not in depth, and not by the standard
        for test in (
            owed.test_no_legend_covers_what_is_drawn,
            owed.test_no_legend_leaves_the_figure_or_meets_another,
            owed.test_logarithmic_axes_have_numbers_on_them,
            owed.test_titles_and_labels_are_written_out,
        ):
            test([figure])
        for row in np.reshape(figure.axes, (-1, 3)):
            spans = [np.ptp(np.log10(axes.get_ylim())) for axes in row]
            np.testing.assert_allclose(spans, spans[0])


def test_the_figure_says_of_outputs_that_they_may_fall(by_table):
    words = [text.get_text() for text in draw(by_table[0]).axes[0].get_legend().get_texts()]
    assert [each for each in words if "may fall" in each] == [each for each in words if each.startswith("outputs")]


def test_the_figure_of_a_file_is_a_command(standard, tmp_path, capsys):
    standard.to_netcdf(tmp_path / "kept.nc", engine="netcdf4")
    name, maker = "model_coordinates", "meanfield.torch.coordinate_check"
    assert draw_saved(name, maker, draw, [str(tmp_path / "kept.nc")]) == 0
    assert (tmp_path / "kept.png").exists()
    standard.assign_attrs(command="").to_netcdf(tmp_path / "other.nc", engine="netcdf4")
    assert draw_saved(name, maker, draw, [str(tmp_path / "other.nc")]) == 2
    assert "is no dataset of meanfield.torch.coordinate_check" in capsys.readouterr().err
    assert draw_saved(name, maker, draw, [str(tmp_path / "none.nc")]) == 2


@pytest.mark.parametrize("function", [mft.coordinate_check, mft.coordinate_report])
def test_the_examples_run(function):
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(function), {}, function.__name__, None, None)
    report = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


# What cells do, against steps of a net that is as simple as the terms are.


class Line(nn.Module):
    """A linear net of one branch of two matrices, with multipliers and weights that may be scaled."""

    def __init__(self, multipliers):
        super().__init__()
        self.input, self.first, self.second = nn.Linear(3, 5, False), nn.Linear(5, 5, False), nn.Linear(5, 5, False)
        self.output, self.multipliers = nn.Linear(5, 2, False), multipliers

    def forward(self, x):
        m = self.multipliers
        stream = m["input"] * self.input(x)
        last = stream + m["hidden"] * self.second(self.first(stream))
        return last, m["output"] * self.output(last)


OWN = {"input": ["input"], "hidden": ["first", "second"], "output": ["output"]}
SMALL = 1e-6


def moved(optimizer, role, cell=None, factor=1.0):
    """Changes of the stream and of the outputs where the weights of one role make a small step."""
    torch.manual_seed(1)
    multipliers = {"input": 1.0, "hidden": 1e-3, "output": 1.0}
    model = Line(multipliers).double()
    own, name = cell or (role, "")
    with torch.no_grad():
        for module in OWN[own] if name == "initial_variance" else ():
            getattr(model, module).weight.mul_(factor**0.5)
    if name == "block_multiplier":
        multipliers[own] *= factor
    inputs, slopes = torch.randn(4, 3).double(), torch.randn(4, 2).double()
    before = [value.clone() for value in model(inputs)]
    (before[1] * slopes).sum().backward()
    rate = SMALL * (factor if name == "learning_rate" else 1.0)
    parameters = [getattr(model, module).weight for module in OWN[role]]
    kinds = {"sgd": torch.optim.SGD, "adamw": partial(torch.optim.AdamW, eps=1e-30, weight_decay=0.0)}
    kinds[optimizer](parameters, lr=rate).step()
    with torch.no_grad():
        return [float((new - old).square().mean() ** 0.5) for new, old in zip(model(inputs), before, strict=True)]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("role", OWN)
def test_cells_stand_in_terms_as_the_powers_that_steps_show(role, optimizer):
    table, plain = NamedTable(optimizer, block_depth=2, decays=False), moved(optimizer, role)
    for number, place in enumerate(("last", "outputs")):
        if role == "output" and place == "last":
            continue
        powers = table.changes(place)[role]
        for own in OWN:
            for name in ("block_multiplier", "initial_variance", "learning_rate"):
                if own != role and (name == "learning_rate" or own == "input" or role == "output"):
                    continue  # the stream that comes in, which a table keeps as it is
                ratio = moved(optimizer, role, (own, name), 4.0)[number] / plain[number]
                expected = 4.0 ** powers.get((own, name), 0.0)
                assert ratio == pytest.approx(expected, rel=0.02), (place, own, name)
