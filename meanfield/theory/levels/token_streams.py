"""The mean-field level of Transformers: leading order in 1/channels, 1/heads and 1/(head size)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.nets.families.token_stream import TokenStream
from meanfield.theory.levels.base import Level, Options, log_mean, with_logarithms
from meanfield.theory.transformers.mean_field import (
    given_statistics,
    refusal,
    refusal_of_all_roads,
    stream_moments,
)

PLAIN_ALONE = (
    "batch, loss, pairs, spread, correlations and by_site are for nets of layers or loops; this is a {kind}: leave "
    "them out"
)


class TokenStreamMeanFieldLevel(Level):
    """Two covariances and two kernels, of one token and of two, and second moments by the pattern of four tokens.

    Where the recursion does not serve (`refusal`, or given inputs), only variance and correlation of tokens; the
    attribute ``left_out`` says why.
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
        why = refusal(net) if options.inputs is None else "inputs are given, and their tokens are not exchangeable"
        if never := refusal_of_all_roads(net):
            raise ValueError(never)
        if why:
            variance, correlation = given_statistics(net, options.inputs)
            return self.dataset(net, options, _of_tokens(net, variance, correlation), {"left_out": why})
        moments = stream_moments(net)
        logs = {"overlap_energy": np.log(moments.overlap_energy), "label_term": np.log(moments.label_term)}
        logs["label_learning_rate_scale"] = -0.5 * log_mean(logs["label_term"])
        values = with_logarithms(logs) | _of_tokens(net, moments.variance, moments.correlation)
        return self.dataset(net, options, values)


def _of_tokens(net: TokenStream, variance: Array, correlation: Array) -> dict[str, Array]:
    """The stream's statistics; one token has no other to be correlated with."""
    values = {"stream_variance": variance}
    return values | {"token_correlation": correlation} if net.tokens > 1 else values
