"""What all printed reports share: question and answer first, then verdicts, tables, and the words that they use.

No line is longer than `LINE`, so that a report reads on any screen and in any mail.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TypeVar

import xarray as xr

from meanfield.common import FALSE_ALARM_BUDGET, NUMBERS_FAIL
from meanfield.quantities import QUANTITIES
from meanfield.verification import CONVERGED_SHARE, WIDEST_BAND, Finding, Verdict, combined
from sims.common.tables import LINE, Table, heavy_tail_notes

SAYS = {Verdict.CONFIRMED: "Yes", Verdict.REFUTED: "No", Verdict.INCONCLUSIVE: "This run cannot tell"}


# What stands in place of what could not be made.
UNMADE = "cannot be made of these numbers"
T = TypeVar("T")

Part = str | Callable[[xr.Dataset], str | Sequence[str]]


@dataclass(frozen=True)
class Report:
    """The printed report on a dataset, as a declaration.

    Attributes:
        question: one line.
        answer: (dataset, findings) -> one line.
        heading: what was run, with {NAME} for an attribute of the dataset, and {net} for all fields of its net.
        parts: notes as they stand, and functions of the dataset that make a table or several.
        findings: dataset -> verdicts.
        heavy: measured means of which a note tells where a single draw makes a large share.
        words: those that this report alone uses, with what they mean.
    """

    question: str
    answer: Callable[[xr.Dataset, Sequence[Finding]], str]
    heading: str
    parts: Sequence[Part]
    findings: Callable[[xr.Dataset], Sequence[Finding]]
    heavy: Sequence[str] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    def text(self, dataset: xr.Dataset) -> str:
        """The whole report; where numbers make no verdicts, answer or part of it, the reason stands in the place."""
        none: Sequence[Finding] = ()
        findings, lost = made_or_reason("Verdicts", lambda: self.findings(dataset), none)
        summary, unanswered = made_or_reason("answer", lambda: self.answer(dataset, findings), "")
        tables = [table for part in self.parts for table in tables_of(part, dataset)]
        parts = [
            lost,
            self.heading.format_map({**dataset.attrs, "net": described_net(dataset)}),
            *tables,
            heavy_tail_notes(dataset, self.heavy),
        ]
        return report(self.question, summary or unanswered, parts, findings, self.words)


def tables_of(part: Part, dataset: xr.Dataset) -> Sequence[str]:
    """What a part of a report says of a dataset: a note, a table or several; or why it says nothing."""
    if isinstance(part, str):
        return [part]

    def make() -> Sequence[str]:
        made = part(dataset)
        return [made] if isinstance(made, str) else made

    none: Sequence[str] = ()
    name = part.name if isinstance(part, Table) else getattr(part, "__name__", "table").strip("_").replace("_", " ")
    tables, lost = made_or_reason(name, make, none)
    return [lost] if lost else tables


def made_or_reason(what: str, make: Callable[[], T], nothing: T) -> tuple[T, str]:
    """What is made, and no words; where its numbers make nothing, that and the reason, so that the rest is not lost."""
    try:
        return make(), ""
    except NUMBERS_FAIL as error:
        return nothing, f"{what}: {UNMADE}: {error}"


def described_net(dataset: xr.Dataset) -> str:
    """Family and fields of the net that a dataset records; nothing where there is none, or more than one."""
    spec = json.loads(dataset.attrs.get("architecture", "{}"))
    family = spec.pop("family", "")
    return f"{family}: " + ", ".join(f"{name} {value}" for name, value in spec.items() if value is not None)


def report(
    question: str,
    answer: str,
    parts: Iterable[str],
    findings: Sequence[Finding] = (),
    words: Mapping[str, str] | None = None,
) -> str:
    """The whole text: the question, its answer, all verdicts, the ``parts``, and the words that need explaining.

    ``words`` are those that this report alone uses.
    """
    opening = f"Question: {question}\nAnswer:   {answer}"
    body = "\n\n".join(part for part in (opening, *_verdicts(findings), *parts) if part)
    return "\n".join(map(_fitted, [*body.splitlines(), *_legend(body, words or {})]))


def answer(findings: Iterable[Finding], numbers: str) -> str:
    """Yes, no or neither, as these findings together say, with the numbers that say it."""
    return f"{SAYS[combined(finding.verdict for finding in findings)]}: {numbers}."


def _verdicts(findings: Sequence[Finding]) -> list[str]:
    return ["\n".join(["Verdicts", *map(_sentence, findings)])] if findings else []


def _sentence(finding: Finding) -> str:
    """The verdict and the claim; below, its rival and the evidence."""
    claim = folded(finding.claim, f"  {finding.verdict:12}  ", 16)
    return f"{claim}\n{folded(f'rival: {finding.rival}; {finding.evidence}', ' ' * 16, 16)}"


def _legend(body: str, own: Mapping[str, str]) -> list[str]:
    lines = [f"  {word}: {meaning}" for word, meaning in used_words(body, own).items()]
    return ["", "Words", *lines] if lines else []


def folded(words: str, start: str, indent: int) -> str:
    """Words after a start, in lines of which all but the first are indented."""
    return fill(words, LINE, initial_indent=start, subsequent_indent=" " * indent, break_on_hyphens=False)


def _fitted(line: str) -> str:
    """A line that is too long goes on below, indented a little more than it begins."""
    if len(line) <= LINE:
        return line
    indent = len(line) - len(line.lstrip())
    return folded(line.strip(), " " * indent, indent + 2)


# The words of printed reports, explained once below each report that uses them.
STATISTICS = {
    "s.e.": "standard errors of a mean over independent draws: how many of them lie between a number and the one that "
    "it is held against. With a sign: drawn minus predicted, before any allowance.",
    "allowance": "how far the sizes of a run may move a number from the limit that it is held against, by a formula "
    "that its judge in sims/ states or calls. Verdicts count only the s.e. beyond it.",
    "band": "the s.e. (beyond an allowance, if there is one) that a true claim exceeds in one of "
    f"{1 / FALSE_ALARM_BUDGET:,.0f} runs. It is wide where few draws leave the error uncertain; where it is above "
    f"{WIDEST_BAND:g}, the report says so instead. In brackets the band that the rival must leave, where it is the one "
    "number of many that is nearest to it: fewer numbers leave a narrower band by chance.",
    "rival": "what would be true if the claim were false.",
    "worst": "of all points that a claim is about, the one that is farthest off; negative: inside an allowance.",
    "CONFIRMED": "the claim lies well inside the band, and its rival outside.",
    "REFUTED": "the claim lies outside the band.",
    "INCONCLUSIVE": "the run neither confirms nor refutes the claim, or one draw makes more than "
    f"{CONVERGED_SHARE:.0%} of a mean.",
    "too few draws": "with the number needed, so many of ten runs would find the rival (or a claim that is far off) "
    "outside the band, by how far off this run has seen it, and how uncertain that is: errors fall as draws^(-1/2). "
    "The option --times multiplies the draws.",
    "neither holds": "claim and rival are both farther off than a true law is once in a hundred runs.",
    "not converged": "a single draw makes too large a share of the mean, or there are fewer draws than its spread asks "
    "for: the distance in s.e. would mean nothing. With the number needed no draw would make so large a share, if "
    "draws are log-normal.",
    "Heavy tail": "rare draws make up much of the mean, and this run may not have met the rarest.",
}

LAWS = {
    "mean field": "the limit of many units or channels at fixed depth, computed without a draw.",
    "minima": "the papers' law for F and B, a sum over pairs of layers of the smaller layer number: l(l+1)(2l+1)/6 "
    "where all layers have as many inputs; its factor is set at the first layer.",
    "He": "weights of variance 2/fan_in.",
    "muP head": "output weights of variance 1/fan_in^2, so that outputs vanish with the width.",
}

LETTERS = {"label_term": "B", "output_term": "A", "update_energy": "S", "overlap_energy": "F"}
TERMS = {
    **{QUANTITIES[name].long_name: f"{letter}, {QUANTITIES[name].definition}." for name, letter in LETTERS.items()},
    "eta*": f"{QUANTITIES['learning_rate_scale'].definition}. Of a term alone: from that term.",
}

# As CITATION.cff has them, with their authors.
SOURCES = {
    "Zhang et al. 2026": "Hyperparameter Transfer Laws for Non-Recurrent Multi-Path Neural Networks.",
    "Zheng et al. 2026": "Spectral Condition for muP under Width-Depth Scaling.",
    "Wang et al. 2026": "On the Residual Scaling of Looped Transformers: Stability and Transferability.",
    "Zhang et al. 2025": "Arithmetic-Mean muP for Modern Architectures: A Unified Learning-Rate Scale for CNNs and "
    "ResNets.",
    "docs/theory.md": "the derivations, section by section, in the repository of this program.",
}


def used_words(text: str, own: Mapping[str, str]) -> dict[str, str]:
    """Those of a report's ``own`` words and of all reports' that stand in its text, with what they mean."""
    words = {**own, **STATISTICS, **LAWS, **TERMS, **SOURCES}
    return {word: meaning for word, meaning in words.items() if _stands_in(word, text)}


def _stands_in(word: str, text: str) -> bool:
    anywhere_folded = re.escape(word).replace(r"\ ", r"\s+")
    return re.search(rf"(?<!\w){anywhere_folded}(?!\w)", text) is not None
