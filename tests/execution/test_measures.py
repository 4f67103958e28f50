"""`simulate` with measures: several at once say what each says alone, and options belong to the measure."""

import json

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.execution import chunks

NET = mf.MLP(depth=3, width=9)
TOKENS = mf.Transformer(depth=2, width=36, heads=2, tokens=4)
LOOP = mf.TiedLoop(depth=3, width=8)
OVERLAPS = mf.PairOverlaps(pairs=[((1, 1), (2, 1))], weights="lazy")
HOW = {"draws": 6, "seed": 2}


@pytest.mark.parametrize(
    ("net", "measures"),
    [
        (NET, [mf.Energies(weights="dense"), OVERLAPS]),
        (NET, [mf.Energies(), mf.ActivationStatistics()]),
        (mf.ResidualMLP(depth=2, width=8, block_depth=2), [mf.ActivationStatistics(), mf.Energies()]),
        (TOKENS, [mf.Energies(weights="lazy"), mf.TokenStatistics(weights="lazy"), mf.TangentPropagation()]),
        (LOOP, [mf.ResidualEnergies(correlations=True), mf.StreamUpdates(update="gradient"), mf.Energies()]),
    ],
)
def test_several_measures_say_what_each_says_alone(net, measures):
    together = mf.simulate(net, measure=measures, **HOW)
    alone = [mf.simulate(net, measure=measure, **HOW) for measure in measures]
    assert set(together.variables) == {name for dataset in alone for name in dataset.variables}
    for dataset in alone:
        for name in dataset.variables:
            xr.testing.assert_identical(together[name].variable, dataset[name].variable)


def test_an_attribute_on_which_measures_differ_names_them(tmp_path):
    drawn = mf.simulate(NET, measure=[mf.Energies(weights="dense"), OVERLAPS], **HOW)
    assert json.loads(drawn.attrs["weights"]) == {"Energies": "dense", "PairOverlaps": "lazy"}
    assert drawn.attrs["loss"] == "squared"
    assert drawn.attrs["seed"] == "2"
    drawn.to_netcdf(tmp_path / "run.nc", engine="netcdf4")


def test_without_a_measure_nets_have_energies_and_loops_residual_energies():
    xr.testing.assert_identical(mf.simulate(NET, **HOW), mf.simulate(NET, measure=mf.Energies(), **HOW))
    xr.testing.assert_identical(mf.simulate(LOOP, **HOW), mf.simulate(LOOP, measure=mf.ResidualEnergies(), **HOW))


def test_nets_that_no_family_lists_are_measured():
    net = mf.ConvNet(depth=2, channels=4, grid=(5,))
    chain = mf.Chain(units=net.units, readout_unit=net.readout_unit, input_channels=4, grid=net.grid)
    given, same = (mf.simulate(listed, weights="dense", **HOW) for listed in (net, chain))
    for name in ("label_term", "output_term"):
        np.testing.assert_array_equal(same[name], given[name])


def test_memory_is_that_of_the_measure_that_needs_most():
    each = [mf.memory(NET, measure=measure, draws=5) for measure in (mf.Energies(weights="dense"), OVERLAPS)]
    assert mf.memory(NET, measure=[mf.Energies(weights="dense"), OVERLAPS], draws=5) == max(each)
    assert mf.memory(NET, weights="dense", draws=5) == each[0]


@pytest.mark.parametrize(
    ("net", "options", "error", "message"),
    [
        (NET, {"measure": []}, ValueError, "measures are none"),
        (NET, {"measure": [mf.Energies(), mf.Energies()]}, ValueError, "each of another class"),
        (NET, {"measure": mf.Energies}, TypeError, r"give measures, such as meanfield.Energies\(\)"),
        (NET, {"measure": mf.Energies(), "weights": "lazy"}, TypeError, "no option 'weights' where a measure is given"),
        (NET, {"measure": "energies"}, TypeError, "measure is 'energies'; give measures"),
        (NET, {"weight": "lazy"}, TypeError, "no option 'weight'; Energies has inputs, weights"),
        (NET, {"measure": mf.ResidualEnergies()}, ValueError, "no unit of this MLP adds"),
        (LOOP, {"measure": OVERLAPS}, TypeError, "TiedLoop; give an MLP"),
        (LOOP, {"measure": mf.ActivationStatistics()}, TypeError, "TiedLoop; give an MLP"),
    ],
)
def test_refusals_come_before_any_work(net, options, error, message, monkeypatch):
    monkeypatch.setattr(chunks, "compute_chunk", None)
    with pytest.raises(error, match=message):
        mf.simulate(net, **HOW, **options)


def test_options_of_the_other_default_measure_ask_for_nothing_at_their_defaults():
    plain = mf.simulate(LOOP, backend="numpy", precision="float64", by_site=False, **HOW)
    xr.testing.assert_identical(plain, mf.simulate(LOOP, **HOW))
    xr.testing.assert_identical(mf.simulate(NET, correlations=False, **HOW), mf.simulate(NET, **HOW))


def test_measures_that_contradict_each_other_are_named():
    with pytest.raises(ValueError, match="Energies and ActivationStatistics have different values of one variable"):
        mf.simulate(NET, measure=[mf.Energies(weights="lazy"), mf.ActivationStatistics()], **HOW)
