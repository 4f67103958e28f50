"""The law level of nets: the papers' depth law, its prefactor taken from the mean field at one layer."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.laws.plain import sum_of_minima
from meanfield.theory.levels.base import NetLevel, Options, with_label_term
from meanfield.theory.mean_field.profiles import mean_field_profiles
from meanfield.theory.outputs.label_term import label_profiles, label_term_refusal


class LawLevel(NetLevel):
    """The sum of minima, which is claimed layer by layer for plain nets alone (Zhang et al. 2026, eqs. 22, 23)."""

    name = "law"
    whose = "plain nets without a weight_variance"

    def has(self, net: Sequential, inputs: Array | None) -> bool:
        return net.weight_variance is None and not net.has_skips

    def takes(self, net: Sequential, options: Options) -> set[str]:
        return {"inputs"}

    def predict(self, net: Sequential, options: Options) -> xr.Dataset:
        channels, anchor = np.array(net.channels_by_layer), anchor_layer(net)
        law = sum_of_minima(channels[:-1] / channels[-1])
        growth = np.log(law / law[anchor - 1])
        overlap, profile = mean_field_profiles(net, options.inputs, last=anchor)
        label = None if net.is_pooled else profile[-1]
        if net.is_pooled and not label_term_refusal(net, options.inputs):
            label = label_profiles(net, options.inputs)[anchor - 1]
        log_label = None if label is None else np.log(label.mean()) + growth
        attrs = {"anchor_layer": anchor, "equal_layers": int(len(set(net.channels_by_layer)) == 1)}
        return self.dataset(net, options, with_label_term(np.log(overlap[-1]) + growth, log_label), attrs)


def anchor_layer(net: Sequential) -> int:
    """Layer at which the sum of minima takes its prefactor from the mean field: the first one like all others.

    That is layer 1 if the input has as many channels as the layers, else layer 2.
    """
    return 1 if net.depth == 1 or len(set(net.channels_by_layer[:2])) == 1 else 2
