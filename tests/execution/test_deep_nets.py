"""Memory of deep nets from shallow ones: the number that counting every layer gives, and few layers are met."""

import pytest

import meanfield as mf
from meanfield.execution import run
from meanfield.simulation import cost
from meanfield.simulation.measures.energies import Energies

NETS = [
    mf.MLP(depth=61, width=7),
    mf.MLP(depth=90, width=300, inputs=3),
    mf.ConvNet(depth=45, channels=5, grid=(4, 4), kernel=(3, 3), padding="zero", input_channels=1),
    mf.ResidualMLP(depth=52, width=8, block_depth=2, stem=3),
    mf.ResidualConvNet(depth=44, channels=3, grid=(4,), kernel=(3,)),
    mf.TiedLoop(depth=55, width=6),
    mf.TiedLoop(depth=70, width=6, tied=False),
    mf.Transformer(depth=43, width=8, heads=2, tokens=3, tied=True, norm="post"),
]


@pytest.mark.parametrize("weights", ["auto", "lazy"])
@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
def test_bytes_are_those_of_every_layer_counted(net, weights):
    measure = Energies(weights=weights)
    counted = measure.settled(net)
    for draws in (1, 10, 1000):
        assert run.bytes_needed(measure, net, draws) == counted.bytes(net, draws)


def test_a_million_layers_are_not_met(monkeypatch):
    """Products are listed of nets of a few layers alone; the bytes of the Gram process are 80 a layer."""
    met = []
    own = cost._products
    monkeypatch.setattr(cost, "_products", lambda net: met.append(len(net.units)) or own(net))
    net = mf.MLP(depth=10**6, width=2)
    deep = mf.memory(net, weights="dense")
    assert met
    assert max(met) <= run.COUNTED[-1]
    assert "units" not in vars(net)
    assert deep - mf.memory(net.replace(depth=10**6 - 1), weights="dense") == pytest.approx(deep / 10**6, rel=0.01)


def test_nets_whose_layers_differ_are_counted_one_by_one():
    widths = tuple(range(1, 51))
    net = mf.MLP(depth=50, width=widths)
    assert mf.memory(net) == Energies().settled(net).bytes(net, 1)
    assert mf.memory(net) != mf.memory(mf.MLP(depth=50, width=50))
