"""What a report says: question and answer first, then verdicts, tables, and the words that they use.

Printed, it has no line longer than `LINE`, and `BRIEF` lines at most: every verdict in a line, and one table. All of it
is printed on demand, and stands on the page of the run (`sims.common.page`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from textwrap import fill, shorten
from typing import TypeVar

import xarray as xr

from meanfield.common import FALSE_ALARM_BUDGET, NUMBERS_FAIL
from meanfield.quantities import QUANTITIES
from meanfield.verification import CONVERGED_SHARE, WIDEST_BAND, Finding, Verdict, combined, tuned_rates
from sims.common.tables import LINE, Grid, Table, heavy_tail_notes, latex_of, markdown_of, table

SAYS = {Verdict.CONFIRMED: "Yes", Verdict.REFUTED: "No", Verdict.INCONCLUSIVE: "This run cannot tell"}

# Lines of a report as it is printed, without the four that say where its files are: what a screen shows at once.
BRIEF = 36
# Of these, how many say verdicts where there are more than that.
MOST_VERDICTS = 12
# How many steps it names, one that is always there beside.
MOST_STEPS = 3
# Rows of a table, and lines of a note, that it keeps in any case.
LEAST_ROWS = 4
# What stands in place of what could not be made.
UNMADE = "cannot be made of these numbers"
# Behind a sentence that goes on, so that it is shortened wherever it ends.
ENDLESS = "x" * LINE
T = TypeVar("T")

# A note, a table, or what makes one or several of a dataset.
Part = str | Grid | Callable[[xr.Dataset], "str | Grid | Sequence[str | Grid]"]
# What to run next: options, and what they are good for.
NextStep = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Document:
    """What is said of one run.

    Attributes:
        question: one line.
        answer: the same, or a few.
        heading: what was run.
        findings: verdicts, in order.
        parts: notes and tables.
        brief: the table that is printed where there is room for one (default: the first).
        shown: tables and notes that are printed in its place, of the last one, where it is a note, what has room: a
            title, and sentences whose further lines are indented by four.
        steps: what to run next.
        words: those that this report alone uses, with what they mean.
    """

    question: str
    answer: str
    heading: str = ""
    findings: Sequence[Finding] = ()
    parts: Sequence[str | Grid] = ()
    brief: Grid | None = None
    shown: Sequence[str | Grid] = ()
    steps: Sequence[NextStep] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """All of it."""
        verdicts = ["\n".join(["Verdicts", *map(_sentence, self.findings)])] if self.findings else []
        tables = [part if isinstance(part, str) else part.text() for part in self.parts]
        body = _joined([self._opening, *verdicts, self.heading, *tables, self._steps(self.steps)])
        legend = [f"  {word}: {meaning}" for word, meaning in used_words(body, self.words).items()]
        return "\n".join(map(_fitted, [*body.splitlines(), *(["", "Words", *legend] if legend else [])]))

    def short(self, lines: int = BRIEF) -> str:
        """No more than so many lines: what was asked, the answer, the run, a line a verdict, a table, what to run next.

        What has no room is told: verdicts by their number, the undecided ones last; rows of the table by their number.
        """
        hidden = "whole warnings, premises" if self.shown else "the evidence of every verdict"
        everything = ("--full", f"all tables, {hidden}, and what words mean")
        steps = self._steps([*self.steps[:MOST_STEPS], everything])
        fixed = [_fitted_lines(part) for part in (self._opening, self.heading, steps)]
        if self.shown:
            chosen = [part if isinstance(part, str) else part.narrowed().text() for part in self.shown]
            *others, last = map(_fitted_lines, chosen)
            room = lines - len("\n\n".join([*fixed, *others]).splitlines()) - 1
            last = _cut(last, room) if isinstance(self.shown[-1], str) else last
            return _joined([*fixed[:2], *others, last, fixed[2]])
        room = lines - len("\n\n".join(fixed).splitlines()) - 1
        grids = (part for part in (self.brief, *self.parts) if isinstance(part, Grid))
        grid = next((grid.narrowed() for grid in grids), None)
        around = 0 if grid is None else len(grid.text().splitlines()) - len(grid.rows) + 2
        rows = 0 if grid is None else min(LEAST_ROWS, len(grid.rows))
        verdicts = _lines_of_verdicts(self.findings, min(MOST_VERDICTS, room - around - rows - 2))
        room -= len(verdicts.splitlines()) + 1 if verdicts else 0
        # Two lines are spared for what a title says of rows left out, where there are such.
        most = room - around
        if grid is not None and len(grid.rows) <= most + 2:
            most = len(grid.rows)
        shown = "" if grid is None else _fitted_lines(grid.thinned(max(most, rows)).text())
        opening, heading, steps = fixed
        return _joined([opening, heading, verdicts, shown, steps])

    def markdown(self) -> str:
        """All of it but the words."""
        tables = [part if isinstance(part, str) else part.markdown() for part in self.parts]
        opening = [f"# {self.question}", markdown_of(_flowing(self.answer)), markdown_of(self.heading)]
        return _joined([*opening, self.verdicts.markdown() if self.findings else "", *tables])

    def latex(self) -> str:
        """Its tables, verdicts first, each with what it shows; question and answer as comments."""
        rows = [[finding.verdict, finding.claim, finding.evidence] for finding in self.findings]
        verdicts = [table([["verdict", "claim", "numbers"]], rows, self.question)] if rows else []
        grids = [part.latex() for part in [*verdicts, *self.parts] if isinstance(part, Grid)]
        return _joined([f"% {latex_of(self.question)}\n% {latex_of(_flowing(self.answer))}", *grids])

    def csv(self) -> str:
        """Its tables, each below a line that begins with # and says what it shows."""
        grids = [part for part in self.parts if isinstance(part, Grid)]
        return _joined([f"# {_flowing(grid.title)}\n{grid.csv()}" for grid in grids])

    @property
    def verdicts(self) -> Grid:
        """As a table."""
        rows = [[said.verdict, said.claim, said.rival, said.evidence] for said in self.findings]
        return table(["verdict", "claim", "rival", "numbers"], rows)

    @property
    def _opening(self) -> str:
        return f"Question: {self.question}\nAnswer:   {self.answer}"

    @staticmethod
    def _steps(steps: Sequence[NextStep]) -> str:
        width = max((len(options) for options, _ in steps if len(options) <= LINE // 3), default=0)
        lines = [folded(why, f"  {options:{width}}  ", width + 4) for options, why in steps]
        return "\n".join(["What to run next", *lines]) if lines else ""


@dataclass(frozen=True)
class Report:
    """The report on a dataset, as a declaration.

    Attributes:
        question: one line, with {NAME} for an attribute of the dataset.
        answer: (dataset, findings) -> one line.
        heading: what was run, with {NAME} for an attribute of the dataset, and {net} for all fields of its net; or made
            from the dataset.
        parts: notes as they stand, and functions of the dataset that make a table or several.
        findings: dataset -> verdicts.
        brief: what makes the table that is printed (default: the first of the parts).
        steps: what to run next.
        heavy: measured means of which a note tells where a single draw makes a large share.
        words: those that this report alone uses, with what they mean.
    """

    question: str
    answer: Callable[[xr.Dataset, Sequence[Finding]], str]
    heading: str | Callable[[xr.Dataset], str]
    parts: Sequence[Part]
    findings: Callable[[xr.Dataset], Sequence[Finding]]
    brief: Callable[[xr.Dataset], Grid] | None = None
    steps: Sequence[NextStep] = ()
    heavy: Sequence[str] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    def document(self, dataset: xr.Dataset) -> Document:
        """The whole report; where numbers make no verdicts, answer or part of it, the reason stands in the place."""
        none: Sequence[Finding] = ()
        findings, lost = made_or_reason("Verdicts", lambda: self.findings(dataset), none)
        summary, unanswered = made_or_reason("answer", lambda: self.answer(dataset, findings), "")
        parts = [made for part in self.parts for made in made_of(part, dataset)]
        brief = [] if self.brief is None else made_of(self.brief, dataset)
        heading = self.heading(dataset) if callable(self.heading) else self.heading
        return Document(
            question=self.question.format_map(dataset.attrs),
            answer=summary or unanswered,
            heading=heading.format_map({**dataset.attrs, "net": described_net(dataset)}),
            findings=findings,
            parts=[part for part in (lost, *parts, heavy_tail_notes(dataset, self.heavy)) if part],
            brief=next((made for made in brief if isinstance(made, Grid)), None),
            steps=[*self._untaken(dataset), *more_draws(findings, dataset)],
            words=self.words,
        )

    def _untaken(self, dataset: xr.Dataset) -> list[NextStep]:
        """Steps that the command of this run has not taken."""
        command = f"{dataset.attrs.get('command', '')} "
        return [step for step in self.steps if f" {step[0]} " not in command]


def made_of(part: Part, dataset: xr.Dataset) -> Sequence[str | Grid]:
    """What a part of a report says of a dataset: a note, a table or several; or why it says nothing."""
    if isinstance(part, str | Grid):
        return [part]

    def make() -> Sequence[str | Grid]:
        made = part(dataset)
        return [made] if isinstance(made, str | Grid) else made

    none: Sequence[str | Grid] = ()
    name = part.name if isinstance(part, Table) else getattr(part, "__name__", "table").strip("_").replace("_", " ")
    made, lost = made_or_reason(name, make, none)
    return [lost] if lost else made


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


def more_draws(findings: Sequence[Finding], dataset: xr.Dataset) -> list[NextStep]:
    """The option that gives the undecided verdicts draws enough, where they say how many."""
    lacking = [finding for finding in findings if finding.needed is not None]
    if not lacking or "draws" not in dataset.attrs:
        return []
    times = ceil(max((finding.needed or 0.0) / (finding.made or dataset.attrs["draws"]) for finding in lacking))
    undecided = sum(finding.verdict is Verdict.INCONCLUSIVE for finding in findings)
    of_them = f"{len(lacking)} of " if len(lacking) < undecided else ""
    verdicts = f"{of_them}{undecided} undecided verdicts" if undecided > 1 else "the undecided verdict"
    return [(f"--times {times}", f"about enough draws for {verdicts}, in {times} times the time")]


def answer(findings: Sequence[Finding], numbers: str) -> str:
    """Yes, no or neither, as these findings together say, with the numbers that say it."""
    return f"{SAYS[combined(finding.verdict for finding in findings)]}: {numbers}."


def _lines_of_verdicts(findings: Sequence[Finding], most: int) -> str:
    """A line for every verdict; where there are more, for the refuted ones first, then the confirmed ones."""
    if not findings:
        return ""
    counts = Counter(finding.verdict for finding in findings)
    title = f"Verdicts: {', '.join(f'{counts[verdict]} {verdict}' for verdict in Verdict if counts[verdict])}"
    ranked = [Verdict.REFUTED, Verdict.CONFIRMED, Verdict.INCONCLUSIVE]
    shown = findings
    if len(findings) > most:
        shown = sorted(findings, key=lambda finding: ranked.index(finding.verdict))[: max(most - 1, 0)]
    left = len(findings) - len(shown)
    more = [f"  and {left} more (--full)"] if left else []
    return "\n".join([title, *(f"  {finding.verdict:12}  {in_a_line(finding)}" for finding in shown), *more])


def in_a_line(finding: Finding) -> str:
    """What was claimed, without its source; and of a rival that is refuted as well, that it is."""
    both = " (its rival, too)" if finding.verdict is finding.verdict_of_rival is Verdict.REFUTED else ""
    claim = finding.brief or SOURCE_AT_END.sub("", finding.claim)
    return shorten(claim, LINE - 16 - len(both), placeholder=" ...") + both


# Where a claim says from where it is, last.
SOURCE_AT_END = re.compile(r" \([^()]*(?:et al\. \d{4}|docs/)[^()]*\)$")


def _sentence(finding: Finding) -> str:
    """The verdict and the claim; below, its rival and the evidence."""
    claim = folded(finding.claim, f"  {finding.verdict:12}  ", 16)
    return f"{claim}\n{folded(f'rival: {finding.rival}; {finding.evidence}', ' ' * 16, 16)}"


def _cut(note: str, most: int) -> str:
    """A note of so many lines: where it has more, the first line of every sentence; then as many as have room."""
    title, *lines = note.splitlines()
    if len(lines) < most:
        return note
    follows = [line.startswith("    ") for line in [*lines[1:], ""]]
    begun = [(line, cut) for line, cut in zip(lines, follows, strict=True) if not line.startswith("    ")]
    firsts = [f"  {shorten(f'{line} {ENDLESS}', LINE - 2, placeholder=' ..')}" if cut else line for line, cut in begun]
    kept = firsts if len(firsts) < most else firsts[: max(most - 2, LEAST_ROWS - 2)]
    left = len(firsts) - len(kept)
    return "\n".join([title, *kept, *([f"  and {left} more (--full)"] if left else [])])


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def _flowing(words: str) -> str:
    """In one line."""
    return " ".join(words.split())


def folded(words: str, start: str, indent: int) -> str:
    """Words after a start, in lines of which all but the first are indented."""
    return fill(words, LINE, initial_indent=start, subsequent_indent=" " * indent, break_on_hyphens=False)


def _fitted_lines(text: str) -> str:
    return "\n".join(map(_fitted, text.splitlines()))


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
    f"{1 / FALSE_ALARM_BUDGET:,.0f} runs, or of {1 / tuned_rates.TRAINED_BUDGET:,.0f} that train nets. It is wide "
    f"where few draws leave the error uncertain; where it is above {WIDEST_BAND:g}, the report says so instead. In "
    "brackets the band that the rival must leave, where it is the one number of many that is nearest to it: fewer "
    "numbers leave a narrower band by chance.",
    "rival": "what would be true if the claim were false.",
    "worst": "of all points that a claim is about, the one that is farthest off; negative: inside an allowance.",
    "CONFIRMED": "the claim lies well inside the band, and its rival outside.",
    "REFUTED": "the claim lies outside the band.",
    "INCONCLUSIVE": "the run neither confirms nor refutes the claim, or one draw makes more than "
    f"{CONVERGED_SHARE:.0%} of a mean.",
    "too few draws": "with the number needed, so many of ten runs would find the rival (or a claim that is far off) "
    "outside the band, by how far off this run has seen it, and how uncertain that is: errors fall as draws^(-1/2). "
    "The option --times multiplies the draws, and the nets that rates are tuned on.",
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

# Of a heading, where a report is about this rate.
ETA = "eta*: rate at which one step moves units by 1 in mean square; of the label term: by the labels alone"
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
