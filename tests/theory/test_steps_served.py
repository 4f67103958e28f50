"""The table of docs/theory.md section 24: which nets and optimizers `predict` serves, cell by cell."""

import re
import warnings
from pathlib import Path

import pytest

import meanfield as mf
from meanfield.common.validation import PremiseWarning

PAGE = (Path(mf.__file__).parent.parent / "docs" / "theory.md").read_text()
TABLE = re.search(r"\| net \| signs \| polar factors \| others \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE)
SIGNS, POLAR = ("adamw", "lion"), ("muon", "muon_kimi", "shampoo", "soap")
OTHERS = ("sophia", "sso", mf.optimizers.AdamW(epsilon=1e-8), mf.optimizers.Muon())

CONV = {"depth": 2, "channels": 32, "grid": (4,), "kernel": (3,)}
UNEVEN = mf.Chain(
    units=(*mf.MLP(depth=1, width=24).units, *mf.MLP(depth=1, width=32, input_width=24, activation="gelu").units),
    readout_unit=mf.MLP(depth=1, width=32).readout_unit,
    first_channels=24,
)
NETS = {
    "`MLP`, ReLU or linear, up to 16 samples": [
        mf.MLP(depth=2, width=32),
        mf.MLP(depth=2, width=32, activation="linear", inputs=2),
    ],
    "`MLP`, other activations, up to 16 samples": [mf.MLP(depth=2, width=32, activation="tanh", inputs=2)],
    "`ConvNet`, ReLU or linear, up to 16 places": [mf.ConvNet(**CONV, readout="convolution"), mf.ConvNet(**CONV)],
    "`ConvNet`, other activations, or more places": [
        mf.ConvNet(**CONV, readout="convolution", activation="gelu"),
        mf.ConvNet(**CONV | {"grid": (5, 5), "kernel": (3, 3)}, readout="convolution"),
    ],
    "`ResidualMLP`, one sample, ReLU or linear": [
        mf.ResidualMLP(depth=2, width=32, block_depth=2),
        mf.ResidualMLP(depth=2, width=32, stem=1, tail=1, activation="linear", scaling=0.7),
    ],
    "`ResidualMLP`, other activations, up to 16 samples": [
        mf.ResidualMLP(depth=2, width=32, activation="silu"),
        mf.ResidualMLP(depth=2, width=32, inputs=3),
    ],
    "`ResidualConvNet`": [mf.ResidualConvNet(**CONV, readout="convolution")],
    "list of layers that differ, one site": [UNEVEN],
    "`TiedLoop`, tied or not, up to 64 steps": [
        mf.TiedLoop(depth=3, width=32),
        mf.TiedLoop(depth=3, width=32, tied=False, activation="erf"),
    ],
    "`StagedConvNet`, `StagedResidualConvNet`": [
        mf.StagedConvNet(stages=(1, 1), channels=(8, 16), grid=(8,)),
        mf.StagedResidualConvNet(stages=(1, 1), channels=(8, 16), grid=(8,)),
    ],
    "`DenseNet`": [mf.DenseNet(depth=2, width=8, growth=8)],
    "`Transformer`": [mf.Transformer(depth=1, width=16, heads=2, tokens=3)],
}


def _rows():
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.group(1).splitlines()]
    return {net: dict(zip((SIGNS, POLAR, OTHERS), served, strict=True)) for net, *served in cells}


def _served(net, optimizer):
    """How, in the words of the table; by the attributes of the prediction."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PremiseWarning)
            predicted = mf.predict(net, level="mean_field", optimizer=optimizer)
    except ValueError as refusal:
        assert "simulate" in str(refusal), refusal
        return "draws"
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


@pytest.mark.parametrize("net", [nets[0] for nets in NETS.values()], ids=[str(place) for place in range(len(NETS))])
def test_no_other_level_has_another_step(net):
    for level in ("exact", "law", "finite_channels"):
        with pytest.raises(ValueError, match=r"level|optimizer"):
            mf.predict(net, level=level, optimizer="muon")


def test_hybrids_are_served_where_both_are():
    assert _served(NETS["`MLP`, ReLU or linear, up to 16 samples"][0], "muon-adamw") == "recursion"
    assert _served(mf.ResidualMLP(depth=2, width=32), "shampoo-adamw") == "recursion, sampled units"
