"""Claims of P0 that are identities, decided on examples without statistics."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from meanfield.verification.claims import Check, Claim, Judge
from meanfield.verification.verdicts import Finding
from meanfield.verification.zhang_2026.identities import aggregators, label_average, layer_norm


def _on_examples(judge: Callable[[int], Finding]) -> Judge:
    """A judge that finds its examples again from the seed of the run."""

    def judge_examples(dataset: xr.Dataset) -> Finding:
        return judge(int(dataset.attrs["seed"]))

    return judge_examples


CLAIMS = (
    Claim(
        id="A2",
        source="P0 lemma 2, eq. 18-20",
        statement="averaged over labels, S_l = A_l + B_l with B_l = sigma_y^2 sum_t Theta_t^2 / M",
        checks=(
            Check("identities", label_average.judge_split),
            Check("identities", label_average.judge_prefactor),
        ),
        replaced_by="the split is exact, with B_l = sigma_y^2 sum_t Theta_t^2 / M^2 for the loss |z - y|^2 / (2M): no "
        "exponent changes, every prefactor does",
        premise="one factor 1/M of the gradient of the loss is lost between the proof and eq. 19",
    ),
    Claim(
        id="A16",
        source="P0 appendix A, A1-A7",
        statement="the arithmetic mean is the only aggregator with permutation, scale and merge consistency",
        checks=(
            Check("identities", _on_examples(aggregators.judge_uniqueness)),
            Check("identities", _on_examples(aggregators.judge_other_means)),
        ),
    ),
    Claim(
        id="A19",
        source="P0 section D.2, eq. 38-39",
        statement="LayerNorm has the Jacobian of eq. 38, of norm at most 2 gamma_max / s",
        checks=(
            Check("identities", _on_examples(layer_norm.judge_jacobian)),
            Check("identities", _on_examples(layer_norm.judge_bound)),
        ),
    ),
)
