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
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import update_wrapper
from typing import Any, Generic, ParamSpec

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.estimates import PowerLaw
from meanfield.verification.verdicts import (
    CONVERGED_SHARE,
    WIDEST_BAND,
    Bands,
    Deviation,
    Finding,
    Verdict,
    effective_draws,
    judge,
    largest_share,
)

P = ParamSpec("P")

# A true error of the stated power is refuted in all but one of a hundred runs: so many standard errors beyond the band.
CERTAIN = 2.33

# Factors by which draws are multiplied when it is asked how many would do.
MORE = 1.05 ** np.arange(200)

SENTENCES = re.compile(r"(?P<claim>.+?); rival: (?P<rival>.+?)(; source: (?P<source>.+?))?(; measured: .+)?\.")


@dataclass(frozen=True)
class Ruling:
    """What a judge says: the verdict, its evidence, and what the sentences name in braces, beside its own arguments.

    ``power``: as in `Finding`.
    """

    verdict: Verdict
    evidence: str
    words: dict[str, Any] = field(default_factory=dict)
    power: float | None = None


@dataclass(frozen=True)
class Contest:
    """What a judge of drawn numbers returns: how far they are from the claim and from its rival.

    Attributes:
        shown: what the evidence says first; ``note``, what it says last. ``words``: as in `Ruling`.
        draws, effective: as many as were made, and as many as carry the means. Where None, `Judges` says.
        largest_share: of one draw in a mean. Where None, `Judges` says.
        comparisons: points that share the false-alarm budget (default: those of the claim, for every judge of the run).
        apart: what the rival expects less what the claim expects, point by point, where each expects one number.
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
    comparisons: int | None = None
    apart: ArrayLike | None = None

    def saying(self, shown: str, **words: Any) -> Contest:
        """With what the evidence says first, and the words of the sentences."""
        return replace(self, shown=shown, words=words)

    def carried_by(self, measured: xr.Dataset, *names: str) -> Contest:
        """With the effective draws of these means."""
        return replace(self, effective=effective_draws(measured, *names))

    def shared_in(self, measured: xr.Dataset, *names: str) -> Contest:
        """With the largest share of one draw in any of these means."""
        return replace(self, largest_share=largest_share(measured, *names))

    def weigh(self, comparisons: int, draws: float) -> Ruling:
        """What `verdicts.judge` says, and the numbers behind it in a sentence."""
        carrying = draws if self.effective is None else self.effective
        share = self.largest_share or 0.0
        bands = Bands.of(comparisons, carrying)
        verdict = judge(self.claim, self.rival, bands, share)
        if verdict is Verdict.INCONCLUSIVE:
            lacking = self.claim.worst if self.claim.worst > bands.doubt else self.rival.worst
            needed = draws * _times_more(lacking, comparisons, carrying)
            reason = _unconverged(share, needed, draws) or _undecided(bands, lacking, needed, draws)
        else:
            reason = _band(bands) or f"; few draws, yet enough (a band of {bands.alarm:.2g})"
        claim, rival = (_miss(deviation) for deviation in (self.claim, self.rival))
        beyond = " beyond the allowance" if self.claim.grants or self.rival.grants else ""
        missed = f"worst {claim} s.e.{beyond}, rival {rival}{reason}{self.note}"
        evidence = f"{self.shown}; {missed}" if self.shown else missed
        return Ruling(verdict, evidence, self.words, self._power(bands))

    def _power(self, bands: Bands) -> float | None:
        """Share of the way from claim to rival at which the most sensitive number leaves the band, 99 times in 100."""
        if self.apart is None or bands.alarm > WIDEST_BAND:
            return None
        least = self.claim.allowance + (bands.alarm + CERTAIN) * self.claim.stderr
        way = np.broadcast_to(np.abs(self.apart), least.shape)
        share = np.divide(least, way, out=np.full(least.shape, np.inf), where=way > 0)
        return float(share.min()) if np.isfinite(share.min()) else None


def _unconverged(share: float, needed: float, made: float) -> str:
    """What the evidence says of a mean of which one draw makes this share: nothing, or a warning.

    ``needed`` are those that its standard error asks for; its tail may ask for more.
    """
    if not share > CONVERGED_SHARE:
        return ""
    needed = max(needed, draws_to_converge(share, made))
    return f"; not converged, one draw makes {share:.0%} of a mean{needing(needed, made)}"


def draws_to_converge(share: float, made: float) -> float:
    """Draws N' of which none would make more than a quarter of a mean, if one makes this share of N ``made`` ones.

    Energies of deep nets are products over layers, so that a draw is log-normal: with v the variance of its logarithm,
    the largest of N is exp(sqrt(2 v log N) - v / 2) means for large N. Hence sqrt(log N) - sqrt(log(1 / share)) =
    sqrt(v / 2) for any N, and

        sqrt(log N') = sqrt(log N) - sqrt(log(1 / share)) + sqrt(log 4) .

    The largest of a few hundred draws says v, and N', to a factor of a few, more often too low than too high.

    Source: docs/theory.md section 3.
    """
    root = np.sqrt(np.log(made)) - np.sqrt(-np.log(min(share, 1.0))) + np.sqrt(-np.log(CONVERGED_SHARE))
    return float(np.exp(root**2))


def needing(needed: float, made: float) -> str:
    """What the evidence says of the draws that would decide."""
    return f"; about {float(f'{needed:.2g}'):,.0f} needed ({made:,.0f} made)"


def _undecided(bands: Bands, lacking: float, needed: float, made: float) -> str:
    """Why neither: what is ``lacking`` beyond the allowance no draws can bring, or more of them are needed."""
    if bands.alarm <= WIDEST_BAND and lacking <= 0:
        return f"{_band(bands)}; the rival lies within the allowance, where no draws decide"
    return f"{_band(bands)}; too few draws{needing(needed, made)}"


def _miss(deviation: Deviation) -> str:
    return f"{deviation.worst:.1f}" if abs(deviation.worst) < 1000 else f"{deviation.worst:.2g}"


def _band(bands: Bands) -> str:
    return f", band {bands.alarm:.3g}" if bands.alarm <= WIDEST_BAND else ""


def _times_more(lacking: float, comparisons: int, effective: float) -> float:
    """How many times the draws a deviation of so many standard errors needs to leave its band, itself no wide one.

    Standard errors fall as draws^(-1/2), so that deviations grow as draws^(1/2) in them, while the band narrows. Of a
    deviation below one standard error nothing is known but that; it counts as one.
    """
    for times in MORE:
        alarm = Bands.of(comparisons, times * effective).alarm
        if alarm <= min(WIDEST_BAND, max(lacking, 1.0) * np.sqrt(times)):
            return float(times)
    return float(MORE[-1])


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


def slope_contest(*laws: PowerLaw, **options: Any) -> Contest:
    """The same of the exponents of power laws."""
    return contest([law.exponent for law in laws], [law.stderr for law in laws], **options)


def joined(contests: Iterable[Contest]) -> Contest:
    """One contest over the points of several."""
    parts = list(contests)
    sides = (Deviation.joined(getattr(part, side) for part in parts) for side in ("claim", "rival"))
    apart = [np.broadcast_to(part.apart, part.claim.difference.shape) for part in parts if part.apart is not None]
    return Contest(*sides, apart=np.concatenate(apart) if len(apart) == len(parts) else None)


class Judge(Generic[P]):
    """One claim with its rival, decided by a function; called as that function is, it gives the finding."""

    def __init__(self, judges: Judges, decide: Callable[P, Contest | Ruling]) -> None:
        if sys.flags.optimize > 1:
            raise ValueError("python -OO strips docstrings, where claims are stated; run python, or python -O")
        self.judges, self.decide = judges, decide
        paragraph = " ".join((inspect.getdoc(decide) or "").split("\n\n")[0].split())
        said = SENTENCES.fullmatch(paragraph)
        if said is None:
            raise TypeError(f"{decide.__name__} says {paragraph!r}; a judge says 'claim; rival: its rival.' first")
        source = f" ({', '.join(filter(None, (judges.paper, said['source'])))})" if said["source"] else ""
        self.claim, self.rival = said["claim"] + source, said["rival"]
        update_wrapper(self, decide)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Finding:
        given = inspect.signature(self.decide).bind(*args, **kwargs).arguments
        decided = self.decide(*args, **kwargs)
        ruling = self.judges.weigh(given["dataset"], decided) if isinstance(decided, Contest) else decided
        claim, rival = (sentence.format_map(given | ruling.words) for sentence in (self.claim, self.rival))
        return Finding(claim, rival, ruling.verdict, ruling.evidence, ruling.power)


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
            declared = Judge(self, function)
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
        return made.weigh(made.comparisons or len(self) * made.claim.difference.size, draws)
