"""The table of docs/theory.md section 24: which nets and optimizers `predict` serves, cell by cell."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.validation import PremiseWarning
from meanfield.nets.maps import Bias, Linear, Pointwise, Weight
from meanfield.nets.net import Unit
from meanfield.optimizers.matrices import Muon
from meanfield.theory.mean_field import plain_steps, residual_steps, sampled_units

PAGE = (Path(mf.__file__).parent.parent / "docs" / "theory.md").read_text()
TABLE = re.search(r"\| net \| signs \| polar factors \| others \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE)
SIGNS, POLAR = ("adamw", "lion"), ("muon", "muon_kimi", "shampoo", "soap")
OTHERS = ("sophia", "sso", Muon())

CONV = {"depth": 2, "channels": 32, "grid": (4,), "kernel": (3,)}


def _uneven(grid=(), kernel=()):
    """Two layers of other widths, activations and variances."""
    first = Unit((Pointwise("tanh"), Linear((Weight("first", (24, 16, *kernel), 0.1),))))
    second = Unit((Pointwise("relu"), Linear((Weight("second", (32, 24, *kernel), 0.05),))))
    return mf.Chain(
        units=(first, second),
        readout_unit=Unit((Pointwise("linear"), Linear((Weight("out", (5, 32, *kernel), 0.03),)))),
        input_channels=16,
        grid=grid,
    )


def _with_biases(net):
    biases = [Bias(Weight(f"b{place}", (net.width,), 0.1)) for place in range(net.depth)]
    units = [replace(unit, branch=(*unit.branch, bias)) for unit, bias in zip(net.units, biases, strict=True)]
    return mf.Chain.of(net, units=tuple(units))


NETS = {
    "`MLP`, up to 16 samples": [
        mf.MLP(depth=2, width=32),
        mf.MLP(depth=2, width=32, activation="linear", inputs=2),
        mf.MLP(depth=2, width=32, activation="tanh", inputs=2),
    ],
    "`ConvNet`, up to 16 places": [
        mf.ConvNet(**CONV, readout="convolution"),
        mf.ConvNet(**CONV),
        mf.ConvNet(**CONV, readout="convolution", activation="gelu"),
    ],
    "`MLP`, `ConvNet`, 17 to 32 samples or places": [
        mf.ConvNet(**CONV | {"channels": 256, "grid": (5, 5), "kernel": (3, 3)}, readout="convolution"),
        mf.MLP(depth=2, width=256, inputs=17),
    ],
    "`ResidualMLP`, one sample, ReLU or linear": [
        mf.ResidualMLP(depth=2, width=32, block_depth=2),
        mf.ResidualMLP(depth=2, width=32, stem=1, tail=1, activation="linear", scaling=0.7),
    ],
    "`ResidualMLP`, other activations, up to 32 samples": [
        mf.ResidualMLP(depth=2, width=32, activation="silu"),
        mf.ResidualMLP(depth=2, width=32, inputs=3),
    ],
    "`ResidualConvNet`, up to 32 places": [
        mf.ResidualConvNet(**CONV, readout="convolution"),
        mf.ResidualConvNet(**CONV | {"grid": (32,)}, block_depth=2, scaling="multiplier_linear", stem=1, tail=1),
        mf.ResidualConvNet(**CONV, inputs=2, activation="tanh", padding="zero", readout="flatten"),
    ],
    "`BlockNet`, list of layers that differ, up to 32 places": [
        _uneven(),
        mf.BlockNet(depth=2, width=16),
        _uneven(grid=(4, 2), kernel=(3, 2)),
    ],
    "nets of layers, more places": [
        mf.ConvNet(**CONV | {"grid": (33,)}, readout="convolution"),
        mf.ResidualConvNet(**CONV | {"grid": (6, 6), "kernel": (3, 3)}),
        mf.ResidualMLP(depth=2, width=64, inputs=33),
    ],
    "`TiedLoop`, tied or not, up to 64 steps": [
        mf.TiedLoop(depth=3, width=32),
        mf.TiedLoop(depth=3, width=32, tied=False, activation="erf"),
    ],
    "`StagedConvNet`, `StagedResidualConvNet`": [
        mf.StagedConvNet(depth=2, stages=2, channels=8, grid=(8,)),
        mf.StagedResidualConvNet(depth=2, stages=2, channels=8, grid=(8,)),
    ],
    "`DenseNet`": [mf.DenseNet(depth=2, width=8, growth=8)],
    "`Transformer`, looped or not": [
        mf.Transformer(depth=1, width=16, heads=2, tokens=3),
        mf.Transformer(depth=2, width=16, heads=2, tokens=3, tied=True),
    ],
    "lists with biases or batch normalisation": [
        _with_biases(mf.MLP(depth=2, width=16)),
        mf.with_batch_normalisation(mf.MLP(depth=2, width=16, inputs=4)),
    ],
}


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Whether a cell is served does not depend on how well."""
    for name in ("ONE_PLACE", "SEVERAL", "SIGNS_OF_SEVERAL"):
        monkeypatch.setattr(sampled_units, name, (2**6, 2))
    monkeypatch.setattr(sampled_units, "MANY", (2**9, 4))
    for name, value in {"UNITS": 2**6, "UNITS_UNDER_SIGNS": 2**6, "REPLICATES": 2}.items():
        monkeypatch.setattr(sampled_units, name, value)
    monkeypatch.setattr(residual_steps, "MOST_PATHS", 256)
    monkeypatch.setattr(plain_steps, "DRAWS", 2)


def _rows():
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.group(1).splitlines()]
    return {net: dict(zip((SIGNS, POLAR, OTHERS), served, strict=True)) for net, *served in cells}


def _served(net, optimizer, **options):
    """How, in the words of the table; by the attributes of the prediction."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PremiseWarning)
            predicted = mf.predict(net, level="mean_field", optimizer=optimizer, **options)
    except ValueError as refusal:
        return "draws" if "simulate" in str(refusal) else str(refusal)
    assert predicted.attrs["optimizer"] == (optimizer if isinstance(optimizer, str) else repr(optimizer))
    for name in ("label_term", "output_term", "update_energy", "relative_update_energy", "output_update_energy"):
        assert (predicted[name] > 0).all(), name
    sampled = "sampled_units" in predicted.attrs
    if isinstance(net, mf.ResidualMLP) and net.inputs == 1 and net.activation in ("relu", "linear"):
        assert sampled
        return "recursion, sampled units"
    return "sampled units" if sampled else "recursion"


def test_the_table_names_the_nets_that_are_tried():
    assert list(_rows()) == list(NETS)


@pytest.mark.parametrize("row", NETS)
def test_every_cell(row):
    for optimizers, cell in _rows()[row].items():
        for net in NETS[row]:
            for optimizer in optimizers:
                assert _served(net, optimizer) == cell, (net, optimizer)


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
@pytest.mark.parametrize("row", NETS)
def test_scales_of_descent_are_served_where_polar_factors_are(row):
    """Loops excepted, and nothing that is predicted without scales changes by more than averages err."""
    for net in NETS[row]:
        cell = _rows()[row][POLAR]
        assert _served(net, "sgd", scales=True) == ("draws" if isinstance(net, mf.TiedLoop) else cell)
        if cell == "draws" or row.startswith("`Tied") or getattr(net, "activation", "") not in ("relu", "linear"):
            continue
        plain, scales = (mf.predict(net, level="mean_field", scales=asked) for asked in (False, True))
        error = 1e-12 if cell.startswith("recursion") and not net.is_pooled else 3 * scales.attrs["relative_error"]
        for name in {"label_term", "output_term", "update_energy", "learning_rate_scale"} & set(plain):
            np.testing.assert_allclose(scales[name], plain[name], rtol=error)


@pytest.mark.parametrize("net", [nets[0] for nets in NETS.values()], ids=[str(place) for place in range(len(NETS))])
def test_no_other_level_has_another_step(net):
    for level in ("exact", "law", "finite_channels"):
        with pytest.raises(ValueError, match=r"level|optimizer"):
            mf.predict(net, level=level, optimizer="muon")


def test_hybrids_are_served_where_both_are():
    assert _served(NETS["`MLP`, up to 16 samples"][0], "muon-adamw") == "recursion"
    assert _served(mf.ResidualMLP(depth=2, width=32), "shampoo-adamw") == "recursion, sampled units"


def test_scales_under_a_pooled_readout_are_those_of_its_own_recursion(monkeypatch):
    """What outputs drive at a gate of one site depends on all sites; four layers carry that up."""
    monkeypatch.setattr(plain_steps, "DRAWS", 64)
    net = mf.ConvNet(depth=4, channels=64, grid=(4,), kernel=(3,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PremiseWarning)
        plain, scales = (mf.predict(net, level="mean_field", scales=asked) for asked in (False, True))
    assert scales.attrs["relative_error"] < 0.15
    for name in ("label_term", "output_term", "update_energy"):
        np.testing.assert_allclose(scales[name], plain[name], rtol=3 * scales.attrs["relative_error"])
