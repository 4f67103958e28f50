"""How layers join the net."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.layered import Layer, joins
from meanfield.theory.mean_field.layers import label_weights


@dataclass(frozen=True, kw_only=True)
class Forked(mf.MLP):
    """A net of three layers, the upper two of which both skip from the first."""

    @cached_property
    def layers(self):
        return (Layer(), Layer(skip=1), Layer(skip=1))


def test_joins_are_found_by_where_they_start():
    assert joins([Layer(), Layer(), Layer(skip=1), Layer(), Layer(skip=3)]) == {1: 3, 3: 5}
    assert joins([Layer(skip=0)]) == {0: 1}
    assert joins(mf.MLP(depth=3, width=2).layers) == {}


def test_label_weights_refuse_two_skips_from_one_layer():
    """Sent back through the upper one alone, labels of layer 1 would lack what comes through the lower one."""
    with pytest.raises(ValueError, match="layers 2 and 3 both skip from layer 1"):
        label_weights(Forked(depth=3, width=4), [np.ones(())] * 3)
