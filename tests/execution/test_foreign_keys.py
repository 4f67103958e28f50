"""Keys of nets, maps, activations and measures that a user writes: what they compute counts, not what they are called.

Each of these pairs had one key, so that a rerun beside old pieces gave the numbers of the other.
"""

import importlib
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.execution.chunks import Chunk, keys
from meanfield.execution.digests import digest
from meanfield.nets import activations
from meanfield.nets.maps import Bias, Gain, Linear, Map, Pointwise, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.optimizers.elementwise import SGD
from meanfield.simulation.maps import OPERATIONS
from meanfield.simulation.maps.base import Operation
from meanfield.simulation.measures.energies import Energies

FACTOR = 1.0


def _key(net, measure=None, **changes):
    return replace(Chunk(net, measure or Energies(), 0, 0, 8), **changes).key


def _residual(value):
    @dataclass(frozen=True, kw_only=True)
    class Own(mf.ResidualMLP):
        @property
        def multiplier(self):
            return value

    return Own(depth=2, width=4)


def _variances(value):
    @dataclass(frozen=True, kw_only=True)
    class Own(mf.MLP):
        @property
        def weight_variances(self):
            return [value] * len(self.weights)

    return Own(depth=2, width=4)


def _law(value):
    @dataclass(frozen=True, kw_only=True)
    class Own(mf.MLP):
        input_law = value

    return Own(depth=2, width=4)


def _units(value):
    @dataclass(frozen=True, kw_only=True)
    class Own(mf.MLP):
        @cached_property
        def units(self):
            return tuple(replace(unit, multiplier=value) for unit in super().units)

    return Own(depth=2, width=4)


def _role(value):
    @dataclass(frozen=True, kw_only=True)
    class Own(mf.MLP):
        def role_of(self, weight):
            return value

    return Own(depth=2, width=4)


def _global(value):
    """What a method takes from its module."""

    @dataclass(frozen=True, kw_only=True)
    class Own(mf.MLP):
        def role_of(self, weight):
            return FACTOR

    global FACTOR
    FACTOR = value
    key = _key(Own(depth=2, width=4))
    FACTOR = 1.0
    return key


def _joined(kind):
    """A bias and a gain of one channel have one weight of one shape."""
    first = Linear((Weight("W", (1, 3), 1.0),))
    return Chain(units=(Unit((first,)), Unit((Pointwise("relu"), kind(Weight("b", (1,), 1.0))))), input_channels=3)


def _map(value, operates=1.0):
    @dataclass(frozen=True)
    class Scale(Map):
        def factor(self):
            return value

        def channels_above(self, below):
            return below

    class ScaleOperation(Operation):
        def forward(self, one, values, setting):
            return operates * values, None

        backward = tangent = forward

    OPERATIONS[Scale] = ScaleOperation()
    try:
        return _key(Chain(units=(Unit((Linear((Weight("W", (2, 3), 1.0),)), Scale())),), input_channels=3))
    finally:
        del OPERATIONS[Scale]


def _activation(value):
    own = replace(activations.RELU, name="own", function=lambda z, on=None: value * z)
    activations.ACTIVATIONS["own"] = own
    try:
        return _key(mf.MLP(depth=2, width=4, activation="own"))
    finally:
        del activations.ACTIVATIONS["own"]


def _measure(value):
    @dataclass(frozen=True, kw_only=True)
    class Own(Energies):
        def draw(self, net, seed, draws):
            return {"label_term": np.full((len(draws), 2), value)}

    return _key(mf.MLP(depth=2, width=4), Own())


def _optimizer(value):
    @dataclass(frozen=True)
    class Own(SGD):
        def direction(self, *given):
            return value

        def __repr__(self):
            return "Own()"

    return _trained(mf.MLP(depth=2, width=4, outputs=2), Own(0.0))


def _trained(net, optimizer="sgd"):
    from meanfield.execution.training import training_run

    data = np.ones((4, net.first_channels)), np.arange(4) % 2
    (chunk,) = training_run(net, data, rates=0.1, steps=1, optimizer=optimizer).chunks()
    return chunk.key


PAIRS = {
    "multiplier": lambda value: _key(_residual(value)),
    "multiplier in training": lambda value: _trained(_residual(value)),
    "variances": lambda value: _key(_variances(value)),
    "law": lambda value: _key(_law({1.0: "white", 2.0: "sphere"}[value])),
    "units": lambda value: _key(_units(value)),
    "roles": lambda value: _key(_role(value)),
    "global": _global,
    "kind of map": lambda value: _key(_joined({1.0: Bias, 2.0: Gain}[value])),
    "map": _map,
    "operation": lambda value: _map(0.0, value),
    "activation": _activation,
    "measure": _measure,
    "optimizer": _optimizer,
}


@pytest.mark.parametrize("key", PAIRS.values(), ids=PAIRS)
def test_what_is_computed_is_in_the_key(key):
    assert key(1.0) == key(1.0) != key(2.0)


INSTALLED = """
from dataclasses import dataclass
import meanfield as mf
@dataclass(frozen=True, kw_only=True)
class Own(mf.MLP):
    def role_of(self, weight):
        return {value}
"""


def test_a_class_that_was_installed_goes_by_its_code_too(tmp_path, monkeypatch):
    folder, found, name = tmp_path / "site-packages", [], "installed_with_a_net"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for value in (1.0, 1.0, 2.0):
        (folder / f"{name}.py").write_text(INSTALLED.format(value=value))
        monkeypatch.delitem(sys.modules, name, raising=False)
        found.append(_key(importlib.import_module(name).Own(depth=2, width=4)))
    assert found[0] == found[1] != found[2]


def test_a_class_of_the_library_goes_by_what_it_yields(monkeypatch):
    """A property that somebody replaces is no field."""
    before = _key(mf.ResidualMLP(depth=2, width=4))
    monkeypatch.setattr(mf.ResidualMLP, "multiplier", property(lambda self: 3.0))
    assert _key(mf.ResidualMLP(depth=2, width=4)) != before


def test_keys_do_not_depend_on_what_stands_beside_them():
    chunks = [Chunk(net, Energies(), 0, 0, 8) for net in (_residual(1.0), mf.MLP(depth=2, width=4), _residual(2.0))]
    assert keys(chunks) == [chunk.key for chunk in chunks]
    assert len(set(keys(chunks))) == 3


def test_a_net_that_was_edited_is_drawn_again(tmp_path):
    """Both ran under one name in one folder: what the second gave was the first one's."""
    how = {"draws": 4, "seed": 0}
    first, second = (mf.simulate(_residual(value), **how, resume_in=tmp_path) for value in (0.1, 3.0))
    xr.testing.assert_identical(second, mf.simulate(_residual(3.0), **how))
    assert not np.allclose(first.update_energy, second.update_energy)


def test_a_mapping_has_no_order():
    """Nor where its values hold each other: a class, and a function of it that knows the class."""

    class Own:
        def made(self):
            return Own

    of_class, of_function = ("class", Own), ("function", Own.made)
    assert digest(of=dict([of_class, of_function])) == digest(of=dict([of_function, of_class]))


def test_keys_are_the_same_in_another_process():
    """Whatever order sets have there, and wherever objects lie."""
    code = "from tests.execution import test_foreign_keys as t; print(*(key(1.0) for key in t.PAIRS.values()))"
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [key(1.0) for key in PAIRS.values()]
