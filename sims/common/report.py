"""What all printed reports share: question and answer first, then verdicts, tables, and the words that they use.

No line is longer than `LINE`, so that a report reads on any screen and in any mail.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TypeVar

import xarray as xr

from meanfield.common import NUMBERS_FAIL
from meanfield.verification import Finding, Verdict, combined
from sims.common.cells import heavy_tail_notes
from sims.common.table import LINE
from sims.common.words import used_words

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
    tables, lost = made_or_reason(getattr(part, "__name__", "table").strip("_").replace("_", " "), make, none)
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
