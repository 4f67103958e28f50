"""What a claim is: a statement with its source, the comparisons that decide it, and the law that replaces it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

import xarray as xr

from meanfield.verification.judges import Ruling
from meanfield.verification.verdicts import Finding, Power, Shares, Verdict

JudgeOfRun = Callable[[xr.Dataset], Finding]

OPPOSITE = {Verdict.CONFIRMED: Verdict.REFUTED, Verdict.REFUTED: Verdict.CONFIRMED}


class Kind(StrEnum):
    """What a claim is to its source: what the source says, or what is made of it.

    Attributes:
        meaning: of the kind, in words that tables of claims print.
    """

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        kind = str.__new__(cls, name)
        kind._value_, kind.meaning = name, meaning
        return kind

    AS_STATED = "as stated", "what the source says, under the hypotheses that it states"
    PREMISE = "premise", "what the source assumes in a proof, put to the test"
    BEYOND = "beyond", "what the source says, outside the premises that it states, where users apply it"
    READING = "reading", "what we read into the source, which does not say it"
    OWN = "own", "our own: no source says it"


# How `Claim.printed` begins where no source has a sentence.
UNPRINTED = "no sentence of a paper"


@dataclass(frozen=True)
class Check:
    """One comparison that a claim must pass: a judge, and the run whose dataset it reads.

    A run is a simulation (of `sims`), and what its command line has beyond a preset.
    """

    simulation: str
    judge: JudgeOfRun
    arguments: tuple[str, ...] = ()

    @property
    def run(self) -> str:
        """A name for the run, the simulation's where it has no arguments."""
        words = [word.lstrip("-").replace(" ", "_") for word in self.arguments]
        return "-".join([self.simulation, *words])


def checks(simulation: str, *judges: JudgeOfRun, arguments: tuple[str, ...] = ()) -> tuple[Check, ...]:
    """One for each judge, all of the same run."""
    return tuple(Check(simulation, judge, arguments) for judge in judges)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published claim.

    Attributes:
        id: as in docs/verdicts.md, such as A1, L2, S3 or T4; a letter behind it names a part, as in A20a.
        kind: what it is to its source. A verdict on one kind is no verdict on another, so that kinds are counted apart.
        statement: what the source says, in our words.
        source: paper by name and year, and equation or section.
        printed: the sentence as the source prints it, in quotation marks, with its place; of a reading, what is read.
            Where no source says it (kind `own`, and no other): "no sentence of a paper", and what is asked.
        hypotheses: what the source assumes for it, as far as the verdict turns on that.
        checks: all of them must be CONFIRMED for the claim to be; one REFUTED refutes it.
        replaced_by: the law that holds instead, where the claim fails.
        premise: what the source assumes and the networks do not have, where the claim fails.
        undecided: why no more draws decide it, of a claim that stays INCONCLUSIVE by design.
        brief: the statement in a line of a list, where that needs fewer words.
        identity: whether the claim holds by construction, so that its checks test this library and not the networks.
        preset: the one that the verdict rests on, where that is not the one of all other claims: its runs take hours.

    Raises:
        TypeError: a kind that is none.
        ValueError: a claim of our own with a sentence of a paper, or one of a paper without.
    """

    id: str
    kind: Kind
    statement: str
    source: str
    checks: tuple[Check, ...]
    printed: str
    hypotheses: str
    replaced_by: str = ""
    premise: str = ""
    undecided: str = ""
    brief: str = ""
    identity: bool = False
    preset: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Kind):
            named = ", ".join(f"Kind.{kind.name}" for kind in Kind)
            raise TypeError(f"kind of claim {self.id} is {self.kind!r}; choose one of {named}")
        if (self.kind is Kind.OWN) is not self.printed.startswith(UNPRINTED):
            raise ValueError(
                f"claim {self.id} is of the kind {self.kind!r} and printed is {self.printed[:40]!r} ...; claims of our "
                f"own, and no others, begin it with {UNPRINTED!r}"
            )

    @property
    def runs(self) -> list[str]:
        """Those that this claim's checks read, each once."""
        return list(dict.fromkeys(check.run for check in self.checks))


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """Of a claim, from those of its checks."""
    distinct = set(verdicts)
    if Verdict.REFUTED in distinct:
        return Verdict.REFUTED
    return Verdict.CONFIRMED if distinct == {Verdict.CONFIRMED} else Verdict.INCONCLUSIVE


def of_rival(judge: JudgeOfRun) -> JudgeOfRun:
    """The same comparison, where the source claims what the judge takes for the rival.

    The verdict is that of drawn numbers with the sides exchanged: where both are far off, both are REFUTED. Of what is
    computed, one is the opposite of the other. The rival in the judge's docstring is a whole sentence, as it is the
    claim here.
    """

    def judge_rival(dataset: xr.Dataset) -> Finding:
        finding = judge(dataset)
        return replace(
            finding,
            claim=finding.rival,
            rival=finding.claim,
            verdict=finding.verdict_of_rival or _opposite(finding.verdict),
            verdict_of_rival=finding.verdict,
            evidence=_back(finding),
            evidence_of_rival=finding.evidence,
            power=finding.power_of_rival,
            power_of_rival=finding.power,
        )

    return judge_rival


def _opposite(verdict: Verdict) -> Verdict:
    return OPPOSITE.get(verdict, verdict)


def of_all(findings: Mapping[str, Finding], needed: Collection[str], kind: str, words: dict[str, Any]) -> Ruling:
    """One ruling of those on several things of a ``kind``, such as optimizers, all of which must be CONFIRMED.

    What is true of those that were run is not yet true of the others that are ``needed``.
    """
    verdict = combined(finding.verdict for finding in findings.values())
    if verdict is Verdict.CONFIRMED and set(findings) != set(needed):
        verdict = Verdict.INCONCLUSIVE
    each = [
        (f"{name} {finding.verdict}: {finding.evidence}", f"{name} {_opposite(finding.verdict)}: {_back(finding)}")
        for name, finding in findings.items()
    ]
    said = [f"{len(findings)} of {len(needed)} {kind}: {'; '.join(words)}" for words in zip(*each, strict=True)]
    power = _first_of({name: finding.power for name, finding in findings.items()})
    back = _last_of({name: finding.power_of_rival for name, finding in findings.items()}, set(needed))
    draws = [finding.needed for finding in findings.values() if finding.needed is not None]
    return Ruling(verdict, said[0], words, power, back, said[1], needed=max(draws, default=None))


def _back(finding: Finding) -> str:
    return finding.evidence_of_rival or finding.evidence


def _first_of(powers: Mapping[str, Power | None]) -> Power:
    """Where one that is refuted refutes all: its least share, and of the least sure; or words where none has any."""
    shares = [power for power in powers.values() if isinstance(power, Shares)]
    if not shares:
        return _by_words(powers)
    alone = [share.alone for share in shares if share.alone is not None]
    return Shares(min(share.together for share in shares), max(alone, default=None))


def _last_of(powers: Mapping[str, Power | None], needed: set[str]) -> Power:
    """Where all must be CONFIRMED to refute the rival: the largest share, or what one lacks."""
    if lacking := needed - set(powers):
        return f"none: {', '.join(sorted(lacking))} not run"
    worded = {name: power for name, power in powers.items() if not isinstance(power, Shares)}
    return _by_words(worded) or Shares(max(p.together for p in powers.values() if isinstance(p, Shares)), None)


def _by_words(powers: Mapping[str, Power | None]) -> str:
    """What is said of several, once, behind their names."""
    names = {words: [name for name, own in powers.items() if own == words] for words in powers.values()}
    return "; ".join(f"{', '.join(own)}: {words}" for words, own in names.items())


def on_examples(judge: Callable[[int], Finding]) -> JudgeOfRun:
    """A judge of an identity, which makes its examples again from the seed of the run."""
    return lambda dataset: judge(int(dataset.attrs["seed"]))
