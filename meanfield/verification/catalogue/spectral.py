"""Claims of P1 on width and depth together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from meanfield.parameterizations import OPTIMIZERS
from meanfield.verification import coordinate_checks, spectral_products, update_order_claims
from meanfield.verification.claims import Check, Claim

SMALL_STEP = ("--optimizers", "all")


def _conditions(names: tuple[str, ...], *arguments: str) -> Iterator[Check]:
    for name in names:
        yield Check("spectral_condition", partial(spectral_products.judge_group, name=name), arguments)


def _orders(optimizer: str) -> Iterator[Check]:
    for step, order in ((1, 1), (10, 2)):
        judge = partial(update_order_claims.judge_order, optimizer=optimizer, table="many", step=step, order=order)
        yield Check("update_orders", judge)


def _tables(optimizer: str) -> Iterator[Check]:
    """The table of k >= 2 keeps everything flat, and none does not: the second is a claim of P1 too."""
    judge = partial(coordinate_checks.judge_flat, optimizer=optimizer, table="many")
    yield Check("coordinate_check", judge, ("--optimizers", "all"))


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
        checks=tuple(_conditions(("C1", "C2.1", "C2.2", "C2.3"), "--block-depth", "3")),
    ),
    Claim(
        id="S4",
        source="P1 condition B.3",
        statement="biases join with scales of order one",
        checks=tuple(_conditions(("C1", "C2.1", "C2.2"), "--biases")),
    ),
    Claim(
        id="S5",
        source="P1 tables 1, 3-7",
        statement="every optimizer's table keeps |h_L| and |Delta h_L| flat in width and depth",
        checks=tuple(check for optimizer in OPTIMIZERS for check in _tables(optimizer)),
    ),
    Claim(
        id="S6",
        source="P1 claims F.1, F.2",
        statement="features and updates reach a share of what the norms allow that no width changes",
        checks=tuple(_conditions(("F.1", "F.2"))),
    ),
)
