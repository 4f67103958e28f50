"""Label and output terms of Transformers whose tokens differ, from matrices over all pairs of points.

Points are tokens of all samples. Errors go down unit by unit, changes up (`meanfield.theory.transformers.pair_unit`);
a term is the mean over points of the change's variance, under the errors of labels or of outputs. Outputs are followed
at any number of them over the width; behind attention at the scale 1/size^(1/2), at few of them.

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.machine import progress
from meanfield.nets.families.token_stream import TokenStream
from meanfield.nets.maps import Attention, Normalisation, Pooling
from meanfield.theory.maps.base import count, total
from meanfield.theory.maps.value_kernels import Trail, trails
from meanfield.theory.transformers.pair_unit import Changes, Errors, division, over_points, pair_unit

# Tokens, samples included, of which logits and a few values fit into the dimensions of the sequence of points.
MOST_PAIRED = 143


@dataclass(frozen=True)
class PairTerms:
    """By layer: covariance of the stream (2 D, B, T, B, T), and label and output term (2 D,)."""

    covariance: Array
    label_term: Array
    output_term: Array


def pair_terms(net: TokenStream, inputs: Array | None) -> PairTerms:
    """The terms of a net without tied weights on inputs (B, n, T), white ones if not given."""
    *passed, readout = trails(net, inputs)
    units = [pair_unit(unit, trail, net.first_channels) for unit, trail in zip(net.units, passed, strict=True)]
    passages, errors = [], _top_errors(net, readout)
    for unit in progress(units[::-1], len(units), "unit"):
        passages.append(unit.down(errors))
        errors = passages[-1].below
    changes, terms = Changes(np.zeros_like(errors.noise), np.zeros_like(errors.noise)), []
    upward = zip(units, reversed(passages), strict=True)
    for unit, passage in progress(upward, len(units), "unit"):
        changes = unit.up(changes, passage)
        moments, _ = changes.totals(passage.above, unit.kernel_above, unit.covariance_above)
        terms.append(np.einsum("epp->e", moments) / moments.shape[-1])
    covariance = np.array([total(trail.after[-1], "covariance") / count(trail.after[-1]) for trail in passed])
    label, output = np.array(terms).T
    return PairTerms(covariance, label, output)


def follows_features(net: TokenStream) -> bool:
    """Whether outputs are followed along the features that drive them, or are taken to be few."""
    attention = next(part for part in net.block[0].branch if isinstance(part, Attention))
    return attention.scale == "inverse"


def _top_errors(net: TokenStream, readout: Trail) -> Errors:
    """Errors at the last value, of labels and of outputs: (2, N, N).

    Between tokens that the readout takes with weights w, C = (s_h / M B^2) E[y y'] w w', y the labels, or the outputs;
    outputs have mu = (s_h / B) w w' within a sample besides.
    """
    unit = net.readout_unit
    assert unit is not None
    pooling = next(part for part in unit.branch if isinstance(part, Pooling))
    weight = unit.branch[-1].weights[0]
    tokens = np.full(net.tokens, 1 / net.tokens) if pooling.kind == "mean" else np.eye(net.tokens)[-1]
    taken = np.outer(tokens, tokens)
    targets = np.stack([np.eye(net.inputs), over_points(readout.after[-1], "covariance")])
    noise = weight.variance / (weight.shape[0] * net.inputs**2) * np.kron(targets, taken)
    features = np.zeros_like(noise)
    if follows_features(net):
        features[1] = weight.variance / net.inputs * np.kron(np.eye(net.inputs), taken)
    errors = Errors(np.asarray(noise), features)
    norm = division([part for part in unit.branch if isinstance(part, Normalisation)], readout.branch[0])
    return norm.errors_below(errors)[0] if norm else errors
