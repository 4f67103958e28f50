"""What a claim is: a statement with its source, the comparisons that decide it, and the law that replaces it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import xarray as xr

from meanfield.verification.verdicts import Finding, Verdict

JudgeOfRun = Callable[[xr.Dataset], Finding]

OPPOSITE = {Verdict.CONFIRMED: Verdict.REFUTED, Verdict.REFUTED: Verdict.CONFIRMED}


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
        return "-".join([self.simulation, *(word.lstrip("-") for word in self.arguments)])


def checks(simulation: str, *judges: JudgeOfRun, arguments: tuple[str, ...] = ()) -> tuple[Check, ...]:
    """One for each judge, all of the same run."""
    return tuple(Check(simulation, judge, arguments) for judge in judges)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published claim.

    Attributes:
        id: as in docs/papers.md, such as A1, L2, S3 or T4; a letter behind it names a part, as in A20a.
        statement: what the source says, in our words.
        source: paper by name and year, and equation or section.
        hypotheses: what the source assumes for it, as far as the verdict turns on that.
        checks: all of them must be CONFIRMED for the claim to be; one REFUTED refutes it.
        replaced_by: the law that holds instead, where the claim fails.
        premise: what the source assumes and the networks do not have, where the claim fails.
        identity: whether the claim holds by construction, so that its checks test this library and not the networks.
    """

    id: str
    statement: str
    source: str
    checks: tuple[Check, ...]
    hypotheses: str = ""
    replaced_by: str = ""
    premise: str = ""
    identity: bool = False

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

    Confirming a law excludes its rival, so that one verdict is the opposite of the other.
    """

    def judge_rival(dataset: xr.Dataset) -> Finding:
        finding = judge(dataset)
        evidence = f"claim and rival exchanged: {finding.evidence}"
        verdict = OPPOSITE.get(finding.verdict, finding.verdict)
        return Finding(finding.rival, finding.claim, verdict, evidence, finding.power_of_rival, finding.power)

    return judge_rival


def on_examples(judge: Callable[[int], Finding]) -> JudgeOfRun:
    """A judge of an identity, which makes its examples again from the seed of the run."""
    return lambda dataset: judge(int(dataset.attrs["seed"]))
