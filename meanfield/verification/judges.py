"""Judges: what each claims, what its rival says, and on which numbers the two are held against each other.

A module of judges has one `Judges`, the judges of a run. A judge is a function of the run's dataset; the first
paragraph of its docstring says claim and rival, where the claim stands in the paper (if it does), and what is measured:

    @JUDGES.decide
    def judge_cross_term(dataset):
        '''The cross term vanishes with the width, as N^(-1/2); rival: it does not; source: C.2;
        measured: its slope in N.'''
        law = drawn_law(dataset, "cross_width", "cross_term_spread")
        return slope_contest(law, claimed=-0.5, rival=0.0)

Called with the dataset it gives a `Finding`. Words in braces are arguments of the judge, or words that it returns.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import update_wrapper
from typing import Any, Generic, ParamSpec

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.estimates import PowerLaw
from meanfield.verification.verdicts import Deviation, Finding, Verdict, weigh

P = ParamSpec("P")

SENTENCES = re.compile(r"(?P<claim>.+?); rival: (?P<rival>.+?)(; source: (?P<source>.+?))?(; measured: .+)?\.")


@dataclass(frozen=True, kw_only=True)
class Contest:
    """What a judge of drawn numbers returns: how far they are from the claim and from its rival.

    Attributes:
        claim, rival: the two deviations.
        shown: what the evidence says first; ``note``, what it says last.
        draws, effective: as many as were made, and as many as carry the means. Where None, `Judges` says.
        largest_share: of one draw in a mean. Where None, `Judges` says.
        comparisons: points that share the false-alarm budget (default: those of the claim, for every judge of the run).
        words: what the sentences of claim and rival name in braces, beside the judge's own arguments.
    """

    claim: Deviation
    rival: Deviation
    shown: str = ""
    note: str = ""
    draws: float | None = None
    effective: float | None = None
    largest_share: float | None = None
    comparisons: int | None = None
    words: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ruling:
    """What a judge returns that needs no draws: the verdict, its evidence, and words as in `Contest`."""

    verdict: Verdict
    evidence: str
    words: dict[str, Any] = field(default_factory=dict)


def contest(
    measured: ArrayLike,
    stderr: ArrayLike,
    *,
    claimed: ArrayLike,
    rival: ArrayLike,
    allowance: ArrayLike = 0.0,
    **details: Any,
) -> Contest:
    """Measured numbers against what claim and rival say they are, the ``allowance`` being granted to both."""
    sides = [Deviation(np.subtract(measured, expected), stderr, allowance) for expected in (claimed, rival)]
    return Contest(claim=sides[0], rival=sides[1], **details)


def slope_contest(*laws: PowerLaw, **options: Any) -> Contest:
    """The same of the exponents of power laws."""
    return contest([law.exponent for law in laws], [law.stderr for law in laws], **options)


def joined(contests: Iterable[Contest], **details: Any) -> Contest:
    """One contest over the points of several."""
    parts = list(contests)
    claim, rival = (Deviation.joined(getattr(part, side) for part in parts) for side in ("claim", "rival"))
    return Contest(claim=claim, rival=rival, **details)


class Judge(Generic[P]):
    """One claim with its rival, decided by a function; called as that function is, it gives the finding."""

    def __init__(self, judges: Judges, decide: Callable[P, Contest | Ruling]) -> None:
        self.judges, self.decide = judges, decide
        paragraph = " ".join((inspect.getdoc(decide) or "").split("\n\n")[0].split())
        said = SENTENCES.fullmatch(paragraph)
        if said is None:
            raise TypeError(f"{decide.__name__} says {paragraph!r}; a judge says 'claim; rival: its rival.' first")
        source = f" ({', '.join(filter(None, (judges.paper, said['source'])))})" if said["source"] else ""
        self.claim, self.rival = said["claim"] + source, said["rival"]
        update_wrapper(self, decide)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Finding:
        decided = self.decide(*args, **kwargs)
        given = inspect.signature(self.decide).bind(*args, **kwargs).arguments
        words = given | decided.words
        sentences = self.claim.format_map(words), self.rival.format_map(words)
        if isinstance(decided, Ruling):
            return Finding(*sentences, decided.verdict, decided.evidence)
        return self.judges.weigh(given["dataset"], sentences, decided)


class Judges:
    """The judges of one run, in the order of its report; the run's false-alarm budget is split over them.

    Args:
        paper: name and year, which stand before the source in the sentence of a claim.
        draws: the attribute of the dataset that counts the draws.
        findings: over how many the budget is split (default: one for every judge and case that is declared).
        effective, largest_share: of a dataset, for judges whose `Contest` says nothing of them (default: all, 0).
    """

    def __init__(
        self,
        paper: str = "",
        *,
        draws: str = "draws",
        findings: int | None = None,
        effective: Callable[[xr.Dataset], float] | None = None,
        largest_share: Callable[[xr.Dataset], float] | None = None,
    ) -> None:
        self.paper, self.draws, self._findings = paper, draws, findings
        self._effective, self._largest_share = effective, largest_share
        self._declared: list[tuple[Callable[..., Finding], Mapping[str, Any]]] = []

    def decide(self, function: Callable[P, Contest | Ruling]) -> Judge[P]:
        """The judge that this function is."""
        return self.decide_each({})(function)

    def decide_each(self, *cases: Mapping[str, Any]) -> Callable[[Callable[P, Contest | Ruling]], Judge[P]]:
        """The same, with one finding for each of these arguments."""

        def declare(function: Callable[P, Contest | Ruling]) -> Judge[P]:
            judge = Judge(self, function)
            self._declared += [(judge, case) for case in cases]
            return judge

        return declare

    def __len__(self) -> int:
        return self._findings or len(self._declared)

    def findings(self, *run: Any) -> list[Finding]:
        """One for every judge and case, on the dataset of a run (or whatever the judges are given)."""
        return [judge(*run, **case) for judge, case in self._declared]

    def weigh(self, dataset: xr.Dataset, sentences: tuple[str, str], made: Contest) -> Finding:
        """The finding on a contest, at its share of this run's false-alarm budget."""
        effective, share = made.effective, made.largest_share
        if effective is None and self._effective:
            effective = self._effective(dataset)
        if share is None:
            share = self._largest_share(dataset) if self._largest_share else 0.0
        finding = weigh(
            sentences,
            made.claim,
            made.rival,
            comparisons=made.comparisons or len(self) * made.claim.difference.size,
            draws=dataset.attrs[self.draws] if made.draws is None else made.draws,
            effective=effective,
            largest_share=share,
            shown=made.shown,
        )
        return replace(finding, evidence=finding.evidence + made.note)
