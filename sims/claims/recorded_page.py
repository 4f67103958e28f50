"""The recorded verdicts of a preset as one page of Markdown, docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any

from meanfield.verification import Claim, Verdict, power_in_words
from sims.claims.catalogue import CLAIMS
from sims.claims.false_alarms import of_claims, of_comparisons, takes_seed
from sims.claims.kinds import as_markdown
from sims.claims.record import Entry, power_of, recorded, seeds_of
from sims.claims.seeds import undecided_by_all

# Subjects and papers, by the letter of the claims' names.
PAPERS = {
    "A": "Depth and the learning rate (Zhang et al. 2026, and Zhang et al. 2025 where it says the same)",
    "L": "Networks that apply one layer over and over (Wang et al. 2026)",
    "S": "Hyperparameters over width and depth (Zheng et al. 2026)",
    "T": "Training: the rates that train best (by training of our own)",
}

HEAD = """\
# Verdicts

What the papers claim, and what this library found. `python -m sims.claims` runs every simulation that a claim rests on,
judges all claims and writes a report with the numbers, the rival and the command behind each verdict.
`python -m sims.claims --page docs/verdicts.md` writes this page from the recorded verdicts of the preset "{preset}"
and runs nothing.

- CONFIRMED: the claim lies inside its error band, and the band excludes the stated rival. The rival is what would be
  true if the claim were false.
- REFUTED: the claim lies outside its error band.
- INCONCLUSIVE: the run cannot tell the claim from its rival.

A verdict is on a claim of one of these kinds, and says nothing of another: a premise that fails is no theorem that
fails, and a reading of ours is nothing that a paper says.

{counts}

A claim with several parts is refuted as soon as one of them is. The last two columns say what holds instead of a
refuted claim, and which simulations decide. An identity holds by construction: its checks test this library, not the
networks. [Shown by](#shown-by) has the comparisons behind every verdict with their numbers, [papers](papers.md) the
titles, [findings](findings.md) more numbers.

| symbol | meaning |
|---|---|
| L, l; K, k | depth and layer; residual blocks, and layers in the branch of a block |
| n or N, C, M | width (units of a layer), channels or classes, coordinates of the output |
| eta, eta\\* | learning rate; learning-rate scale, the rate at which the mean update energy is 1 |
| S_l | update energy of layer l: the mean square of its change in one step |
| B_l, A_l | label term and output term: the parts of S_l that labels and outputs cause |
| T_h, Theta | overlap of two directions in the space of weights at layer h; tangent kernel |
| q, sigma_y^2 | mean square of the activation's slope, 1/2 for ReLU; variance of the labels |
| H_L, B_L, eps, alpha | residual energy of a loop and its cross term; factor eps = L^(-alpha) on every step |

All symbols are defined in [theory](theory.md).
"""

SHOWN_BY = """\
## Shown by

For every claim the seed, draws and code of the recorded run; what its source prints, formulas in plain letters and
words left out as "...", and assumes; and the comparisons that decide: what is tested, the rival that must be excluded,
what was measured, and the numbers. The power of a comparison is the least share of the way
from claim to rival that 99 of 100 such runs would have refuted; above 1 not even what the rival says would have been.
Of several numbers compared at once it is one share if all of them go so far, which the surest shows, and one if the
least sure goes alone. Where claim and rival meet in one value the power is a deviation in the unit of the numbers.
Checks without draws say "exact", and those that could not have refuted anything say "none" and why. Where a source
claims what its comparison takes for the rival, that is refuted by confirming the other side: all numbers must be near
it, and one alone refutes nothing.
"""

FROM_SEEDS = """\
Claims are also judged from other seeds, at the small sizes of the preset "{counted}"{commits}. A false alarm is a seed
whose verdict contradicts the recorded one: CONFIRMED where that is REFUTED, or the reverse. Of {claims};
the latter neither raise an alarm nor show that none would be raised. Claims that no seed enters are left out.
"""

BY_COMPARISON = """\
A claim of many comparisons is undecided as soon as one of them is. By comparison, of {comparisons};
left out are those whose numbers are the same from every seed.
"""

WIDTH = 120

# The preset whose verdicts are counted over seeds.
COUNTED = "smoke"

# Of claims that no run of the preset has recorded yet.
NOT_RECORDED: Entry = {"verdict": "not recorded"}

NAMES = ("claim", "kind", "statement", "source", "verdict", "what holds instead", "simulations")
COLUMNS = f"| {' | '.join(NAMES)} |\n|{'---|' * len(NAMES)}"


def recorded_page(preset: str) -> str:
    """A table of claims for each paper, with the recorded verdict of every claim."""
    kept = dict.fromkeys(CLAIMS, NOT_RECORDED) | recorded(preset)
    verdicts = [(claim, kept[claim.id]["verdict"]) for claim in CLAIMS.values()]
    head = HEAD.format(preset=preset, counts=as_markdown(verdicts))
    counted = recorded(COUNTED)
    shown = [claim for claim in CLAIMS.values() if "findings" in kept[claim.id]]
    numbers = [_shown_by(claim, kept[claim.id], seeds_of(counted.get(claim.id, {}))) for claim in shown]
    tables = [_table(letter, kept) for letter in PAPERS]
    return "\n".join([head, *tables, _over_seeds(kept, counted), *numbers])


def _over_seeds(kept: Mapping[str, Entry], counted: Mapping[str, Entry]) -> str:
    """What the numbers mean, and how many verdicts from other seeds contradict the one that is kept of their claim."""
    commits = sorted({seeds_of(entry)["commit"] for entry in counted.values()} - {""})
    when = f", at commit {', '.join(commits)}" if commits else ", perhaps at an earlier commit"
    claims, comparisons = of_claims(kept, counted), of_comparisons(kept, counted)
    paragraphs = [FROM_SEEDS.format(counted=COUNTED, commits=when, claims=claims)]
    paragraphs += [BY_COMPARISON.format(comparisons=comparisons)] if comparisons.verdicts else []
    seeded = {name: seeds_of(entry)["claim"] for name, entry in counted.items() if takes_seed(CLAIMS[name])}
    paragraphs += [f"{left}."] if (left := undecided_by_all(seeded)) else []
    return SHOWN_BY + "".join(f"\n{fill(text, WIDTH, break_on_hyphens=False)}\n" for text in paragraphs)


def _table(letter: str, kept: Mapping[str, Entry]) -> str:
    rows = [_row(claim, kept[claim.id]["verdict"]) for claim in CLAIMS.values() if claim.id.startswith(letter)]
    return "\n".join([f"## {PAPERS[letter]}", "", COLUMNS, *rows, ""])


def _row(claim: Claim, verdict: str) -> str:
    instead = claim.replaced_by if verdict == Verdict.REFUTED else ""
    simulations = ", ".join(dict.fromkeys(f"`{check.simulation}`" for check in claim.checks))
    cells = (
        claim.id,
        claim.kind,
        *map(_escaped, (claim.statement, claim.source)),
        f"**{verdict}**{', an identity' if claim.identity else ''}",
        _escaped(instead),
        simulations,
    )
    return f"| {' | '.join(cells)} |"


def _shown_by(claim: Claim, entry: Entry, seeds: Entry) -> str:
    """What a verdict rests on: seed, draws and code, the source's own words and premises, then every comparison."""
    runs = ", ".join(f"`{name}` {_drawn(origin)}code {origin['code']}" for name, origin in entry["runs"].items())
    head = [f"seed {entry['seed']}", runs]
    head += [f"commit {entry['commit']}"] if entry["commit"] else []
    if not takes_seed(claim):
        head.append("no seed enters")
    elif seeds["claim"]:
        times = f", {seeds['times']} times its draws" if seeds["times"] > 1 else ""
        head.append(f"seeds at preset {COUNTED}{times}: {_counts(seeds['claim'])}")
    findings = entry["findings"]
    by_seed = seeds["comparisons"] if len(seeds["comparisons"]) == len(findings) else [None] * len(findings)
    lines = [*_said(claim, entry["verdict"]), *map(_comparison, findings, by_seed)]
    return "\n".join([f"**{claim.id}**: {'; '.join(head)}.", "", *map(_escaped, lines), ""])


def _said(claim: Claim, verdict: str) -> list[str]:
    """What the source prints and assumes, and what of that fails."""
    said = [f"Printed: {claim.printed}.", "", f"Assumed: {claim.hypotheses}.", ""]
    fails = [f"Premise that fails: {claim.premise}.", ""] if verdict == Verdict.REFUTED and claim.premise else []
    return [*said, *fails]


def _comparison(finding: Entry, by_seed: Mapping[str, int] | None) -> str:
    """One comparison with its numbers; ``by_seed``, where its seeds are counted."""
    parts = [f"- {finding['verdict']}: {finding['claim']}", f"Rival: {finding['rival']}"]
    parts += [f"Measured: {finding['measured']}", f"Numbers: {finding['evidence']}"]
    parts.append(f"Power: {power_in_words(power_of(finding))}")
    if by_seed is not None:
        parts.append(f"Seeds: {_counts(by_seed) or 'the same numbers from all'}")
    return ". ".join([*parts, ""]).rstrip()


def _counts(by_verdict: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in by_verdict.items())


def _drawn(origin: Mapping[str, Any]) -> str:
    return "" if origin["draws"] is None else f"{origin['draws']:,} draws, "


def _escaped(text: str) -> str:
    """Without what Markdown would take for columns or emphasis."""
    return text.replace("|", "\\|").replace("*", "\\*")
