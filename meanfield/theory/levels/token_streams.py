"""The mean-field level of Transformers: leading order in 1/channels, 1/heads and 1/(head size)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.nets.families.token_stream import TokenStream
from meanfield.theory.levels.base import Level, Options, log_mean, with_logarithms
from meanfield.theory.outputs.whole_update import Terms, whole_update
from meanfield.theory.transformers.terms import TokenTerms, token_terms

PLAIN_ALONE = (
    "batch, loss, pairs, spread, correlations and by_site are for nets of layers or loops; this is a {kind}: leave "
    "them out"
)


class TokenStreamMeanFieldLevel(Level):
    """Second moments of the stream and of its changes, of exchangeable tokens or of all pairs of tokens.

    The attribute ``left_out`` says why a quantity is left out.
    """

    name = "mean_field"
    family = TokenStream
    whose = "all Transformers"
    refusals: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("batch", "loss", "pairs", "spread", "correlations", "by_site"), PLAIN_ALONE
    )

    def has(self, net: TokenStream, inputs: Array | None) -> bool:
        return True

    def takes(self, net: TokenStream, options: Options) -> set[str]:
        return {"inputs"}

    def predict(self, net: TokenStream, options: Options) -> xr.Dataset:
        terms = token_terms(net, options.inputs)
        values = _energies(terms) | {"stream_variance": terms.variance}
        if net.tokens > 1:  # one token has no other to be correlated with
            values["token_correlation"] = terms.correlation
        return self.dataset(net, options, values, {"left_out": terms.left_out} if terms.left_out else None)


def _energies(terms: TokenTerms) -> dict[str, Array]:
    """Those that are known, with their logarithms."""
    known = {"overlap_energy": terms.overlap_energy, "label_term": terms.label_term}
    logs = {name: np.log(values) for name, values in known.items() if values is not None}
    if terms.label_term is not None:
        logs["label_learning_rate_scale"] = -0.5 * log_mean(logs["label_term"])
    by_site = [None if values is None else np.log(values)[:, None] for values in (terms.label_term, terms.output_term)]
    return with_logarithms(logs) | whole_update(Terms(np.empty(0), *by_site))
