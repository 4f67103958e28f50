"""Fully-connected nets over depths to 10^5 and more, exact at finite width: what is asked of depth laws in the limit.

All energies are natural logarithms, as they leave the range of a float where depth is many times the width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from meanfield.common.arrays import Array
from meanfield.common.validation import takes
from meanfield.nets.families.layered import Sequential
from meanfield.theory.exact.plain import ExactTerms, exact_terms_by_depth, overlap_energies
from meanfield.theory.laws.plain import single_site_overlap, sum_of_minima

ENERGIES = ("update_energy", "label_term", "output_term", "overlap_energy")
# A scan has these at finite width alone; of one net, `predict` has them in the limit of many channels, too.
EXACT_ALONE = ("update_energy", "output_term")
LAYERS = ("last", "mean")

# Ratio of the two depths between which a local slope is taken.
STEP = 1.1


@takes(Sequential)
def energies_by_depth(net: Sequential, depths: Sequence[int]) -> xr.Dataset:
    """Energies of the last layer and their mean over layers, for nets of these depths, exact and in two limits.

    Returns:
        ``log_energy`` (energy, layers, net_depth): exact; energy names a registry quantity, layers is "last" or "mean".
        ``log_energy_mean_field`` and ``log_energy_law``: the same of the limit of many channels and of the papers' sum
        of minima set at layer 1; missing for the energies of ``EXACT_ALONE``.

    Source: docs/theory.md sections 3, 4, 6; Zhang et al. 2026, eqs. 9, 22, 23.
    """
    deepest = net.replace(depth=max(depths))
    layer, first = np.arange(1, deepest.depth + 1), single_site_overlap(1, net.activation)
    columns = {
        "exact at finite width": [_rows(terms) for terms in exact_terms_by_depth(deepest, depths)],
        "mean_field": _rows_of_overlap(net, depths, single_site_overlap(layer, net.activation)),
        "law": _rows_of_overlap(net, depths, first * sum_of_minima(np.ones(deepest.depth))),
    }
    dims, names = ("net_depth", "energy", "layers"), ("log_energy", "log_energy_mean_field", "log_energy_law")
    variables = {
        name: (dims, rows, {"long_name": f"natural logarithm of an energy, {level}"})
        for name, (level, rows) in zip(names, columns.items(), strict=True)
    }
    return xr.Dataset(variables, {"net_depth": list(depths), "energy": list(ENERGIES), "layers": list(LAYERS)})


def _rows_of_overlap(net: Sequential, depths: Sequence[int], overlap_over_width: Array) -> list[Array]:
    """(energy, last and mean) by depth where the label term is the overlap energy times a constant."""
    overlap = np.log(overlap_over_width * net.channels_by_layer[-1])
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    label, left_out = overlap + np.log(gamma / net.outputs), np.full_like(overlap, np.nan)
    by_layer = np.array([left_out, label, left_out, overlap])
    return [_last_and_mean(by_layer[:, :depth]) for depth in depths]


def _rows(terms: ExactTerms) -> Array:
    """(energy, last and mean) of one net."""
    update = np.logaddexp(terms.label_term, terms.output_term)
    return _last_and_mean(np.array([update, terms.label_term, terms.output_term, terms.overlap_energy]))


def _last_and_mean(by_layer: Array) -> Array:
    return np.stack([by_layer[:, -1], logsumexp(by_layer, axis=1) - np.log(by_layer.shape[1])], axis=1)


@takes(Sequential)
def finite_width_excess(
    net: Sequential, widths: Sequence[int], shares: Sequence[float], layers: Sequence[int]
) -> xr.Dataset:
    """F_l over its leading order, less 1: at l/n (``excess_at_share``) and at fixed l (``excess_at_layer``), by width.

    Source: docs/theory.md section 3.
    """
    at_share, at_layer = [], []
    for width in widths:
        places = np.array([round(width * share) for share in shares])
        depth = max(places.max(), *layers)
        overlap = overlap_energies(net.replace(depth=int(depth), width=width))
        leading = np.log(width * single_site_overlap(np.arange(1, depth + 1), net.activation))
        excess = np.expm1(overlap - leading)
        at_share.append(excess[places - 1])
        at_layer.append(excess[np.array(layers) - 1])
    label = {"long_name": "relative excess of the overlap energy over its leading order in 1/n"}
    return xr.Dataset(
        {
            "excess_at_share": (("width", "depth_over_width"), at_share, label),
            "excess_at_layer": (("width", "fixed_layer"), at_layer, label),
        },
        {"width": list(widths), "depth_over_width": list(shares), "fixed_layer": list(layers)},
    )


@takes(Sequential)
def output_share(net: Sequential, heads: Sequence[str], outputs: Sequence[int], depths: Sequence[int]) -> xr.Dataset:
    """The output term over the label term at the last layer, and the local slope of eta*, by head, outputs, depth.

    Returns:
        ``log_output_over_label`` and ``scale_slope`` = d ln eta* / d ln L, both (head, outputs, share_depth).

    Source: docs/theory.md section 4, against Zhang et al. 2026, eq. 21.
    """
    steps = [round(STEP * depth) for depth in depths]
    grown = np.log(np.array(steps) / np.array(depths))
    ratio, slope = (np.empty((len(heads), len(outputs), len(depths))) for _ in range(2))
    for place in np.ndindex(ratio.shape[:2]):
        cut = net.replace(depth=max(steps), head=heads[place[0]], outputs=outputs[place[1]])
        rows = np.array([_rows(terms) for terms in exact_terms_by_depth(cut, [*depths, *steps])])
        last, scale = rows[: len(depths), :, 0], -0.5 * rows[:, 0, 1]
        ratio[place] = last[:, ENERGIES.index("output_term")] - last[:, ENERGIES.index("label_term")]
        slope[place] = (scale[len(depths) :] - scale[: len(depths)]) / grown
    dims = ("head", "outputs", "share_depth")
    return xr.Dataset(
        {
            "log_output_over_label": (dims, ratio, {"long_name": "log of output over label term at the last layer"}),
            "scale_slope": (dims, slope, {"long_name": "local slope of the learning-rate scale in depth"}),
        },
        {"head": list(heads), "outputs": list(outputs), "share_depth": list(depths)},
    )
