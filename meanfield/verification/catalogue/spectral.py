"""Claims of P1 on width and depth together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import xarray as xr

from meanfield.verification import coordinate_checks, spectral_products, training_assumptions, update_order_claims
from meanfield.verification.claims import Check, Claim, of_rival
from meanfield.verification.verdicts import Finding


def _conditions(names: tuple[str, ...], *arguments: str) -> Iterator[Check]:
    for name in names:
        yield Check("spectral_condition", partial(spectral_products.judge_group, name=name), arguments)


def _second_order(dataset: xr.Dataset, step: int) -> Finding:
    """Second-order terms under the k >= 2 table, of the last optimizer of the run."""
    optimizer = str(dataset["optimizer"].values[-1])
    return update_order_claims.judge_order(dataset, optimizer, "many", step, 2)


CLAIMS = (
    Claim(
        id="S1",
        source="P1 condition 3.1",
        statement="k = 2: weights, updates and their products scale as stated under the parameterization of table 1",
        checks=tuple(_conditions(("C1", "C2.1", "C2.2", "C2.3"))),
    ),
    Claim(
        id="S2",
        source="P1 condition B.1",
        statement="k = 1: the multiplier L^(-1/2) keeps features of order one, and there is no second-order term",
        checks=tuple(_conditions(("C1", "C2.1", "C2.2"), "--block-depth", "1")),
    ),
    Claim(
        id="S3",
        source="P1 condition B.2",
        statement="any k >= 2 obeys the rule of k = 2, orders of the update above the first included",
        checks=(
            *_conditions(("C1", "C2.1", "C2.2", "C2.3"), "--block-depth", "3"),
            Check("update_orders", partial(_second_order, step=10)),
        ),
    ),
    Claim(
        id="S4",
        source="P1 condition B.3",
        statement="biases join with scales of order one",
        checks=tuple(_conditions(("C1", "C2.1", "C2.2"), "--biases", "--optimizers", "all")),
    ),
    Claim(
        id="S5",
        source="P1 tables 1, 3-7",
        statement="every optimizer's table keeps |h_L| and |Delta h_L| flat in width and depth, and none does without",
        checks=(
            Check("coordinate_check", coordinate_checks.judge_tables),
            Check("coordinate_check", of_rival(coordinate_checks.judge_without_tables)),
        ),
    ),
    Claim(
        id="S6",
        source="P1 claims F.1, F.2",
        statement="features and updates reach a share of what the norms allow that no width changes",
        checks=tuple(_conditions(("F.1", "F.2"))),
    ),
    Claim(
        id="S7",
        source="P1 assumptions G.1, G.2, G.3",
        statement="in training no update cancels, no activation collapses, a batch moves features as one sample does",
        checks=tuple(
            Check("training_assumptions", partial(training_assumptions.judge_assumption, name=name))
            for name in ("G.1 weights", "G.1 features", "G.2", "G.3")
        ),
    ),
)
