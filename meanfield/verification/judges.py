"""Judges: what each claims, what its rival says, and on which numbers the two are held against each other.

A study's claims have one `Judges`, the judges of a run. A judge is a function of the run's dataset; it is declared with
what is claimed, where the claim stands in the paper (if it does), what its rival says, and what is measured:

    @JUDGES.decide(
        claim="The cross term vanishes with the width, as N^(-1/2)",
        source="C.2",
        rival="it does not",
        measured="its slope in N",
    )
    def judge_cross_term(dataset):
        law = Series.of(dataset, "cross_term_spread").law("cross_width")
        return slope_contest(law, claimed=-0.5, rival=0.0, shown="slope {laws}")

Called with the dataset it gives a `Finding`. Words in braces are arguments of the judge, or words that it returns.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import update_wrapper
from typing import Any, Generic, ParamSpec

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.estimates import FALSE_ALARM_BUDGET, NUMBERS_FAIL
from meanfield.common.power_laws import PowerLaw
from meanfield.common.validation import Array
from meanfield.verification.series import effective_draws, exponents_of, largest_share, shown_laws
from meanfield.verification.verdicts import (
    CONVERGED_SHARE,
    NOT_FINITE,
    UNCONVERGED,
    Bands,
    Deviation,
    Distances,
    Finding,
    Power,
    Unsaid,
    Verdict,
    judge,
    judge_computed,
    judge_identity,
    lost_points,
    powers,
    shares_refuted,
    two_digits,
)

P = ParamSpec("P")


@dataclass(frozen=True)
class Ruling:
    """What a judge says: the verdict, its evidence, and what the sentences name in braces, beside its own arguments.

    ``power``, ``power_of_rival``, ``evidence_of_rival``, ``verdict_of_rival``, ``needed``, ``made``: as in `Finding`.
    """

    verdict: Verdict
    evidence: str
    words: dict[str, Any] = field(default_factory=dict)
    power: Power | None = None
    power_of_rival: Power | None = None
    evidence_of_rival: str = ""
    verdict_of_rival: Verdict | None = None
    needed: float | None = None
    made: float | None = None


@dataclass(frozen=True)
class Contest:
    """What a judge of drawn numbers returns: how far they are from the claim and from its rival.

    Attributes:
        shown: what the evidence says first; ``note``, what it says last. ``words``: as in `Ruling`.
        draws, effective: as many as were made, and as many as carry the means. Where None, `Judges` says.
        largest_share: of one draw in a mean. Where None, `Judges` says.
        fixed: the share of the errors' squares that does not fall with draws, such as a grid's (default: none).
        gaussian: the means are over numbers without skewness, as slopes of logarithms are, draw by draw; see `Bands`.
        comparisons: points that share the false-alarm budget (default: those of the claim, for every judge of the run);
            those of the rival share it likewise, in proportion to how many they are.
        apart: by how much the claim's deviations grow on the way from the claim to its rival, point by point (0: not).
        back: the same of the rival's deviations on the way back, where that is another number (default: `apart`).
        granted: the claim's allowance on that way, where it depends on the side (default: the claim's own).
        unit: where claim and rival meet in one value, so that no share of a way says how far off is refuted: what a
            deviation of 1 is called, such as "in the slope"; `apart` is not asked for then.
    """

    claim: Deviation
    rival: Deviation
    _: KW_ONLY
    shown: str = ""
    note: str = ""
    words: dict[str, Any] = field(default_factory=dict)
    draws: float | None = None
    effective: float | None = None
    largest_share: float | None = None
    fixed: float = 0.0
    gaussian: bool = False
    comparisons: int | None = None
    apart: ArrayLike | None = None
    back: ArrayLike | None = None
    granted: ArrayLike | None = None
    unit: str = ""

    def saying(self, shown: str, **words: Any) -> Contest:
        """With what the evidence says first, and the words of the sentences."""
        return replace(self, shown=shown, words=words)

    def carried_by(self, measured: xr.Dataset, *names: str) -> Contest:
        """With the effective draws of these means."""
        return replace(self, effective=effective_draws(measured, *names))

    def shared_in(self, measured: xr.Dataset, *names: str) -> Contest:
        """With the largest share of one draw in any of these means."""
        return replace(self, largest_share=largest_share(measured, *names))

    def weigh(self, comparisons: int, draws: float, budget: float = FALSE_ALARM_BUDGET) -> Ruling:
        """What `verdicts.judge` says at this budget of false alarms, and the numbers behind it in a sentence."""
        carrying = draws if self.effective is None else self.effective
        share = self.largest_share or 0.0
        shown = f"{self.shown}; " if self.shown else ""
        if lost := lost_points(self.claim, self.rival, counts=(carrying, share)):
            evidence = f"{shown}{lost}{self.note}"
            return Ruling(Verdict.INCONCLUSIVE, evidence, self.words, NOT_FINITE, NOT_FINITE, evidence)
        against_rival = comparisons * self.rival.difference.size / self.claim.difference.size
        how: dict[str, Any] = {"gaussian": self.gaussian, "budget": budget}
        bands, of_rival = (Bands.of(count, carrying, **how) for count in (comparisons, against_rival))
        verdict = judge(self.claim, self.rival, bands, share, of_rival)
        exchanged = judge(self.rival, self.claim, of_rival, share, bands)
        distances = Distances(self.claim, self.rival, bands, of_rival)
        either = distances, distances.exchanged
        reasons, needed = [way.decided for way in either], None
        if verdict is Verdict.INCONCLUSIVE:
            counts = comparisons, against_rival
            reasons, needed = distances.undecided(counts, carrying, draws, share, self.fixed, **how)
        said = [f"{shown}{way.worst}{reason}{self.note}" for way, reason in zip(either, reasons, strict=True)]
        powers = (UNCONVERGED, UNCONVERGED) if share > CONVERGED_SHARE else self.powers(bands, of_rival)
        return Ruling(verdict, said[0], self.words, *powers, said[1], exchanged, needed, draws)

    def powers(self, bands: Bands, of_rival: Bands) -> tuple[Power | None, Power | None]:
        """Of the contest, and of the one with claim and rival exchanged, as `Finding` has them."""
        if self.unit:
            least = shares_refuted(self.claim, np.ones(self.claim.difference.shape), bands)
            first = f"a deviation of {two_digits(least.together)} {self.unit} is refuted"
            return least.in_words(first, f" {self.unit}"), None
        if self.apart is None:
            return None, None
        back = self.apart if self.back is None else self.back
        granted = self.claim.allowance if self.granted is None else self.granted
        return powers(Distances(self.claim, self.rival, bands, of_rival), self.apart, back, granted)


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
    sides = (Deviation(np.subtract(measured, expected), stderr, allowance) for expected in (claimed, rival))
    return between(*sides, **details)


def between(claim: Deviation, rival: Deviation, **details: Any) -> Contest:
    """The same numbers against two laws that each expect one value of every number."""
    return Contest(claim, rival, apart=claim.difference - rival.difference, **details)


def lower(difference: float, stderr: float, allowance: ArrayLike = 0.0, **details: Any) -> Contest:
    """A drawn difference against the claim that it is at most 0, and the rival that it is at least 0."""
    sides = (Deviation(max(sign * difference, 0.0), stderr, allowance) for sign in (1, -1))
    return Contest(*sides, **details)


def joined(contests: Iterable[Contest]) -> Contest:
    """One contest over the points of several."""
    parts = list(contests)
    sides = (Deviation.joined(getattr(part, side) for part in parts) for side in ("claim", "rival"))
    apart = [np.broadcast_to(part.apart, part.claim.difference.shape) for part in parts if part.apart is not None]
    return Contest(*sides, apart=np.concatenate(apart) if len(apart) == len(parts) else None)


def only_above(measured: ArrayLike, expected: ArrayLike, relative: ArrayLike) -> Array:
    """The allowance ``relative`` times ``expected`` for a correction that is known to be positive: none below."""
    above = np.greater(measured, expected)
    return np.asarray(above * np.multiply(relative, expected))


def slope_contest(*laws: PowerLaw, shown: str = "slope {laws}", **options: Any) -> Contest:
    """The same of the exponents of power laws, which stand in place of {laws} in what the evidence says first."""
    slopes, errors = exponents_of(*laws)
    return contest(slopes, errors, shown=shown.replace("{laws}", shown_laws(*laws)), **options)


def computed(
    values: ArrayLike,
    claimed: float,
    rival: float,
    tolerance: float,
    evidence: str,
    words: dict[str, Any] | None = None,
) -> Ruling:
    """The ruling of `judge_computed`, on numbers without draws that come near a law."""
    share = 1 - tolerance / abs(claimed - rival)
    power = f"exact: a deviation of {two_digits(100 * share)} % of the gap between claim and rival is refuted"
    return Ruling(judge_computed(values, claimed, rival, tolerance), evidence, words or {}, power)


def identity(values: ArrayLike, claimed: float, rival: float, tolerance: float, evidence: str) -> Ruling:
    """The ruling of `judge_identity`, on numbers that are equal to rounding or not at all."""
    power = f"exact: any deviation above {tolerance:g} is refuted"
    return Ruling(judge_identity(values, claimed, rival, tolerance), evidence, power=power)


@dataclass(frozen=True)
class Sentences:
    """What a judge says beside its numbers; words in braces are filled in, finding by finding."""

    claim: str
    rival: str
    measured: str
    source: str = ""
    brief: str = ""


class Judge(Generic[P]):
    """One claim with its rival, decided by a function; called as that is, it gives a finding, or why there is none."""

    def __init__(self, judges: Judges, decide: Callable[P, Contest | Ruling], said: Sentences) -> None:
        self.judges, self.decide = judges, decide
        source = f" ({', '.join(filter(None, (judges.paper, said.source)))})" if said.source else ""
        self.claim, self.rival, self.measured = said.claim + source, said.rival, said.measured
        self.brief = said.brief
        update_wrapper(self, decide)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Finding:
        given = inspect.signature(self.decide).bind(*args, **kwargs).arguments
        try:
            decided = self.decide(*args, **kwargs)
            ruling = self.judges.weigh(given["dataset"], decided) if isinstance(decided, Contest) else decided
        except NUMBERS_FAIL as error:
            ruling = Ruling(Verdict.INCONCLUSIVE, f"no verdict: {error}", power="none: no verdict")
        words = defaultdict(Unsaid, given | ruling.words)
        sentences = (self.claim, self.rival, self.measured, self.brief)
        claim, rival, measured, brief = (sentence.format_map(words) for sentence in sentences)
        return Finding(
            claim,
            rival,
            ruling.verdict,
            ruling.evidence,
            ruling.power,
            ruling.power_of_rival,
            ruling.evidence_of_rival,
            measured,
            ruling.verdict_of_rival,
            ruling.needed,
            brief,
            ruling.made,
        )


class Judges:
    """The judges of one run, in the order of its report; the run's false-alarm budget is split over them.

    Args:
        paper: name and year, which stand before the source in the sentence of a claim.
        draws: the attribute of the dataset that counts the draws.
        findings: over how many the budget is split (default: one for every judge and case that is declared).
        budget: the share of runs that refute a true claim, whichever.
        effective, largest_share: of a dataset, for judges whose `Contest` says nothing of them (default: all, 0).
    """

    def __init__(
        self,
        paper: str = "",
        *,
        draws: str = "draws",
        findings: int | None = None,
        budget: float = FALSE_ALARM_BUDGET,
        effective: Callable[[xr.Dataset], float] | None = None,
        largest_share: Callable[[xr.Dataset], float] | None = None,
    ) -> None:
        self.paper, self.draws, self._findings, self.budget = paper, draws, findings, budget
        self._effective, self._largest_share = effective, largest_share
        self._declared: list[tuple[Callable[..., Finding], Mapping[str, Any]]] = []

    def decide(
        self,
        *,
        claim: str,
        rival: str,
        measured: str,
        source: str = "",
        brief: str = "",
        cases: Sequence[Mapping[str, Any]] = ({},),
    ) -> Callable[[Callable[P, Contest | Ruling]], Judge[P]]:
        """The judge that the decorated function is, with its sentences; a finding for each case of arguments.

        ``brief`` is the claim in a line, where that needs fewer words.
        """
        said = Sentences(claim, rival, measured, source, brief)

        def declare(function: Callable[P, Contest | Ruling]) -> Judge[P]:
            declared = Judge(self, function, said)
            self._declared += [(declared, case) for case in cases]
            return declared

        return declare

    def __len__(self) -> int:
        return self._findings or len(self._declared)

    def findings(self, *run: Any) -> list[Finding]:
        """One for every judge and case, on the dataset of a run (or whatever the judges are given)."""
        return [declared(*run, **case) for declared, case in self._declared]

    def weigh(self, dataset: xr.Dataset, made: Contest) -> Ruling:
        """The ruling on a contest, at its share of this run's false-alarm budget."""
        if made.effective is None and self._effective:
            made = replace(made, effective=self._effective(dataset))
        if made.largest_share is None and self._largest_share:
            made = replace(made, largest_share=self._largest_share(dataset))
        draws = dataset.attrs[self.draws] if made.draws is None else made.draws
        return made.weigh(made.comparisons or len(self) * made.claim.difference.size, draws, self.budget)
