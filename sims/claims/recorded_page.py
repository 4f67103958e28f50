"""The recorded verdicts of a preset as one page of Markdown, docs/verdicts.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from meanfield.verification import CLAIMS, Claim, Verdict, power_in_words
from sims.claims.record import Entry, recorded

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

Together: {counts}.

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

For every claim the seed, draws and code of the recorded run, and the comparisons that decide: what is tested, the
rival that must be excluded, and the numbers. The power of a comparison is the least share of the way from claim to
rival that 99 of 100 such runs would have refuted; above 1 not even what the rival says would have been. Where claim and
rival meet in one value the power is a deviation in the unit of the numbers. Checks without draws say "exact", and
those that could not have refuted anything say "none" and why.

Claims are also judged from other seeds, at the small sizes of the preset "{counted}", perhaps at an earlier commit than
that of the recorded run. A false alarm is a seed whose verdict contradicts the recorded one: CONFIRMED where that is
REFUTED, or the reverse. Of {verdicts:,} such verdicts {alarms} are false alarms, and {undecided:,} are INCONCLUSIVE,
which neither raise an alarm nor show that none would be raised.
"""

# The preset whose verdicts are counted over seeds, and which of them contradict each other.
COUNTED = "smoke"
CONTRARY = {Verdict.CONFIRMED: Verdict.REFUTED, Verdict.REFUTED: Verdict.CONFIRMED}

# Of claims that no run of the preset has recorded yet.
NOT_RECORDED: Entry = {"verdict": "not recorded"}

COLUMNS = "| claim | statement | source | verdict | what holds instead | simulations |\n|---|---|---|---|---|---|"


def recorded_page(preset: str) -> str:
    """A table of claims for each paper, with the recorded verdict of every claim."""
    kept = dict.fromkeys(CLAIMS, NOT_RECORDED) | recorded(preset)
    counts = Counter(entry["verdict"] for entry in kept.values())
    head = HEAD.format(preset=preset, counts=", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
    seeds = {name: entry.get("seeds", {}) for name, entry in recorded(COUNTED).items()}
    shown = [claim for claim in CLAIMS.values() if "findings" in kept[claim.id]]
    numbers = [_shown_by(claim, kept[claim.id], seeds.get(claim.id, {})) for claim in shown]
    tables = [_table(letter, kept) for letter in PAPERS]
    return "\n".join([head, *tables, SHOWN_BY.format(counted=COUNTED, **_over_seeds(kept, seeds)), *numbers])


def _over_seeds(kept: Mapping[str, Entry], seeds: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """How many verdicts are counted, how many contradict the one that is kept of their claim, how many are neither."""
    total: Counter[str] = sum(map(Counter, seeds.values()), Counter())
    alarms = sum(by_verdict.get(CONTRARY.get(kept[name]["verdict"], ""), 0) for name, by_verdict in seeds.items())
    return {"verdicts": total.total(), "alarms": alarms, "undecided": total[Verdict.INCONCLUSIVE]}


def _table(letter: str, kept: Mapping[str, Entry]) -> str:
    rows = [_row(claim, kept[claim.id]["verdict"]) for claim in CLAIMS.values() if claim.id.startswith(letter)]
    return "\n".join([f"## {PAPERS[letter]}", "", COLUMNS, *rows, ""])


def _row(claim: Claim, verdict: str) -> str:
    instead = claim.replaced_by if verdict == Verdict.REFUTED else ""
    simulations = ", ".join(dict.fromkeys(f"`{check.simulation}`" for check in claim.checks))
    cells = (
        claim.id,
        *map(_escaped, (claim.statement, claim.source)),
        f"**{verdict}**{', an identity' if claim.identity else ''}",
        _escaped(instead),
        simulations,
    )
    return f"| {' | '.join(cells)} |"


def _shown_by(claim: Claim, entry: Entry, seeds: Mapping[str, int]) -> str:
    """What a verdict rests on: seed, draws and code, then every comparison."""
    runs = ", ".join(f"`{name}` {_drawn(origin)}code {origin['code']}" for name, origin in entry["runs"].items())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in seeds.items())
    head = [f"seed {entry['seed']}", runs]
    head += [f"commit {entry['commit']}"] if entry["commit"] else []
    head += [f"seeds at preset {COUNTED}: {counts}"] if counts else []
    lines = [
        f"- {finding['verdict']}: {finding['claim']}. Rival: {finding['rival']}. Numbers: {finding['evidence']}."
        f" Power: {power_in_words(finding['power'])}."
        for finding in entry["findings"]
    ]
    assumed = [f"Assumed: {claim.hypotheses}.", ""] if claim.hypotheses else []
    return "\n".join([f"**{claim.id}**: {'; '.join(head)}.", "", *map(_escaped, [*assumed, *lines]), ""])


def _drawn(origin: Mapping[str, Any]) -> str:
    return "" if origin["draws"] is None else f"{origin['draws']:,} draws, "


def _escaped(text: str) -> str:
    """Without what Markdown would take for columns or emphasis."""
    return text.replace("|", "\\|").replace("*", "\\*")
