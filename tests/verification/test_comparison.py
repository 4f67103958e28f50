"""Measured beside predicted: of one net, over the same layers, or not at all (numbers: test_verdicts)."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf

NET = mf.MLP(depth=4, width=8)
LOOP = mf.TiedLoop(depth=3, width=8)
INPUTS = np.ones((1, 8))


def _measured(net=NET, **options):
    return mf.simulate(net, draws=4, seed=0, **options)


def _predicted(net=NET, **options):
    return mf.predict(net, level="mean_field", **options)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"depth": 3}, r"depth \(4 and 3\)"),
        ({"width": 16}, r"width \(8 and 16\)"),
        ({"activation": "tanh", "outputs": 3}, r"activation \(relu and tanh\), outputs \(10 and 3\)"),
        ({"weight_variance": 1.0}, r"weight_variance \(None and 1.0\)"),
    ],
)
def test_two_nets_are_refused(changes, said):
    with pytest.raises(ValueError, match=f"differ in {said}; predict what was drawn"):
        mf.compare(_measured(), _predicted(replace(NET, **changes)))


def test_two_families_are_refused():
    with pytest.raises(ValueError, match=r"differ in family \(MLP and ResidualMLP\)"):
        mf.compare(_measured(), _predicted(mf.ResidualMLP(depth=4, width=8)))
    with pytest.raises(ValueError, match=r"tied \(True and False\)"):
        mf.compare(_measured(LOOP), _predicted(replace(LOOP, tied=False)))


@pytest.mark.parametrize(
    ("how", "theory", "said"),
    [
        ({"loss": "cross_entropy"}, {}, r"loss \(cross_entropy and squared\)"),
        ({}, {"loss": "cross_entropy"}, r"loss \(squared and cross_entropy\)"),
        ({"batch": mf.Batch(label_mean=1)}, {}, "batch"),
        ({"inputs": INPUTS}, {}, "given_inputs"),
        ({"inputs": INPUTS}, {"inputs": 2 * INPUTS}, "given_inputs"),
    ],
)
def test_other_losses_batches_and_inputs_are_refused(how, theory, said):
    with pytest.raises(ValueError, match=f"differ in {said}"):
        mf.compare(_measured(**how), _predicted(**theory))


def test_draws_conditional_on_fixed_layers_are_no_expectation():
    pairs = [((1, 1), (1, 1))]
    measured = mf.simulate(NET, measure=mf.PairOverlaps(pairs=pairs, fixed_layers=2), draws=4, seed=0)
    with pytest.raises(ValueError, match=r"fixed_layers \(2 and 0\)"):
        mf.compare(measured, mf.predict(NET, level="exact", pairs=pairs))


@pytest.mark.parametrize(
    ("net", "how", "theory"),
    [
        (NET, {"weights": "lazy", "precision": "float32"}, {"level": "exact"}),
        (NET, {"inputs": INPUTS}, {"level": "mean_field", "inputs": [[1] * 8]}),
        (NET, {"loss": "cross_entropy"}, {"level": "mean_field", "loss": "cross_entropy"}),
        (NET, {"batch": mf.Batch()}, {"level": "law"}),
        (LOOP, {}, {"level": "mean_field"}),
    ],
)
def test_how_numbers_are_made_may_differ(net, how, theory):
    assert len(mf.compare(_measured(net, **how), mf.predict(net, **theory)))


def test_a_part_of_the_layers_is_compared_with_the_same_part():
    measured, predicted = _measured(), _predicted()
    with pytest.raises(ValueError, match=r"differ in layer \(3 and 4 values\); select the same of both"):
        mf.compare(measured.isel(layer=slice(3)), predicted)
    with pytest.raises(ValueError, match=r"differ in layer \(3 and 3 values\)"):
        mf.compare(measured.isel(layer=slice(3)), predicted.isel(layer=slice(1, None)))
    top = {"layer": slice(1, None)}
    np.testing.assert_array_equal(
        mf.compare(measured.isel(top), predicted.isel(top)).label_term_ratio,
        mf.compare(measured, predicted).label_term_ratio.isel(top),
    )


def test_datasets_without_attributes_are_taken_at_their_word():
    measured, predicted = _measured().drop_attrs(), _predicted(replace(NET, width=16))
    assert len(mf.compare(measured, predicted))


@pytest.mark.parametrize("given", [NET, None, "run.nc"])
def test_what_is_no_dataset_is_refused(given):
    with pytest.raises(TypeError, match=r"measured is of type \w+; give a dataset, as simulate and predict return"):
        mf.compare(given, _predicted())
    with pytest.raises(TypeError, match="predicted is of type"):
        mf.compare(_measured(), given)


@pytest.mark.parametrize(("precision", "constant"), [("float32", 1e-6), ("float64", 1e-12)])
def test_rounding_of_the_precision_that_was_drawn_in_is_no_deviation(precision, constant):
    """A constant that single precision rounds off by so much, equally in many draws; ten times that is a difference."""
    measured, predicted = _measured(precision=precision), _predicted()
    for off, zero in ((constant, True), (1e4 * constant, False)):
        exact = predicted["overlap_energy"]
        drawn = measured.assign(overlap_energy=(1 + off) * exact, overlap_energy_stderr=0.01 * constant * exact)
        scores = mf.compare(drawn, predicted).overlap_energy_zscore.values
        assert (scores == 0).all() == zero
        assert zero or (scores > 1e5).all()


def test_layer_one_of_nets_in_single_precision_is_a_constant():
    """The energy of layer 1 is the same in every draw: what many draws leave of rounding is no deviation."""
    net = mf.MLP(depth=1, width=48)
    measured = mf.simulate(net, draws=2000, seed=0, precision="float32")
    predicted = mf.predict(net, level="exact")
    assert abs(measured.overlap_energy / predicted.overlap_energy - 1).max() < 1e-6
    assert mf.compare(measured, predicted).overlap_energy_zscore.values.tolist() == [0.0]


@pytest.mark.parametrize(("share", "warns"), [(0.72, True), (0.2, False)])
def test_a_mean_that_one_draw_makes_is_told(share, warns):
    measured, predicted = _measured(), _predicted()
    light = {name: 0 * values for name, values in measured.items() if name.endswith("_largest_share")}
    heavy = measured.assign(light | {"label_term_largest_share": light["label_term_largest_share"] + share})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        compared = mf.compare(heavy, predicted)
    words = (
        "one draw makes 72% of label_term at some place, where standard errors and z-scores by them say nothing; about"
    )
    assert [str(warning.message).startswith(words) for warning in told] == [True] * warns
    assert [warning.category for warning in told] == [mf.PremiseWarning] * warns
    assert (compared.label_term_largest_share == share).all()
