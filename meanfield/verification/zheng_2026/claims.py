"""Claims of P1 on width and depth together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import xarray as xr

from meanfield.parameterizations import OPTIMIZERS
from meanfield.verification.claims import Check, Claim, of_rival
from meanfield.verification.verdicts import Finding
from meanfield.verification.zheng_2026 import coordinate_checks, spectral_products, training_assumptions
from meanfield.verification.zheng_2026 import update_orders as update_order_claims

Checks = tuple[Check, ...]


# SGD's step is as large as the gradient, which scatters from draw to draw; Shampoo's and those of single elements
# scatter after ten steps.
SCATTERING = ("sgd", "adamw", "lion", "sophia", "shampoo")
NORMALISED = tuple(name for name in OPTIMIZERS if name != "sgd")
STEADY = tuple(name for name in OPTIMIZERS if name not in SCATTERING)


def _conditions(names: tuple[str, ...], *arguments: str, times: int, normalised: Sequence[str] = NORMALISED) -> Checks:
    """Of all optimizers, SGD with ``times`` the draws of the others."""
    found = []
    for run in (("--optimizers", *normalised), ("--optimizers", "sgd", "--times", str(times))):
        for name in names:
            judge = partial(spectral_products.judge_group, name=name)
            found.append(Check("spectral_condition", judge, (*arguments, *run)))
    return tuple(found)


def _flatness() -> Checks:
    """Of all optimizers, those that scatter with twice the draws; without a table one step is enough."""
    found = []
    for names, more in ((STEADY, ()), (SCATTERING, ("--times", "2"))):
        run = ("--tables", "many", "--optimizers", *names, *more)
        found.append(Check("coordinate_check", partial(coordinate_checks.judge_tables, optimizers=names), run))
    run = ("--tables", "standard", "--steps", "1", "--optimizers", "all")
    return *found, Check("coordinate_check", of_rival(coordinate_checks.judge_without_tables), run)


def _second_order(dataset: xr.Dataset, step: int) -> Finding:
    """Second-order terms under the k >= 2 table, of the last optimizer of the run."""
    optimizer = str(dataset["optimizer"].values[-1])
    return update_order_claims.judge_order(dataset, optimizer, "many", step, 2)


CLAIMS = (
    Claim(
        id="S1",
        source="P1 condition 3.1",
        statement="k = 2: weights, updates and their products scale as stated under the parameterization of table 1",
        checks=_conditions(("C1", "C2.1", "C2.2", "C2.3"), times=4),
    ),
    Claim(
        id="S2",
        source="P1 condition B.1",
        statement="k = 1: the multiplier L^(-1/2) keeps features of order one, and there is no second-order term",
        checks=_conditions(("C1", "C2.1", "C2.2"), "--block-depth", "1", times=3),
    ),
    Claim(
        id="S3",
        source="P1 condition B.2",
        statement="any k >= 2 obeys the rule of k = 2, orders of the update above the first included",
        checks=(
            *_conditions(("C1", "C2.1", "C2.2", "C2.3"), "--block-depth", "3", times=6),
            Check("update_orders", partial(_second_order, step=10)),
        ),
    ),
    Claim(
        id="S4",
        source="P1 condition B.3",
        statement="biases join with scales of order one",
        checks=_conditions(("C1", "C2.1", "C2.2"), "--biases", times=4, normalised=("adamw", "lion", "sophia")),
    ),
    Claim(
        id="S5",
        source="P1 tables 1, 3-7",
        statement="every optimizer's table keeps |h_L| and |Delta h_L| flat in width and depth, and none does without",
        checks=_flatness(),
    ),
    Claim(
        id="S6",
        source="P1 claims F.1, F.2",
        statement="features and updates reach a share of what the norms allow that no width changes",
        checks=_conditions(("F.1", "F.2"), times=4),
    ),
    Claim(
        id="S7",
        source="P1 assumptions G.1, G.2, G.3",
        statement="in training no update cancels, no activation collapses, a batch moves features as one sample does",
        checks=tuple(
            Check("training_assumptions", partial(training_assumptions.judge_assumption, name=name), ("--times", "3"))
            for name in ("G.1 weights", "G.1 features", "G.2", "G.3")
        ),
    ),
)
