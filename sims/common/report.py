"""What all printed reports share: question and answer first, then verdicts, tables, and the words that they use.

No line is longer than `LINE`, so that a report reads on any screen and in any mail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

from meanfield.verification import Finding, Verdict, combined
from sims.common.table import LINE
from sims.common.words import used_words

SAYS = {Verdict.CONFIRMED: "Yes", Verdict.REFUTED: "No", Verdict.INCONCLUSIVE: "This run cannot tell"}


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
