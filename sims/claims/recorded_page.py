"""The recorded verdicts of a preset as two pages of Markdown: docs/verdicts.md, a table, and the evidence behind it.

The site of the documentation has both; it makes the second anew from the record (docs/site_pages.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from meanfield.verification import Claim, Verdict
from sims import listed, simulation
from sims.__main__ import commands
from sims.claims.catalogue import CLAIMS
from sims.claims.forms import Judgement, by_kind, section_of, spent, table_of
from sims.claims.record import Entry, findings_of, recorded, seeds_of
from sims.claims.runs import rests_on
from sims.claims.seeds import undecided_by_all
from sims.common.tables import Grid, table

# Subjects and papers, by the letter of the claims' names.
PAPERS = {
    "A": "Depth and the learning rate (Zhang et al. 2026, and Zhang et al. 2025 where it says the same)",
    "E": "Nets that learn: what one step of the optimizer says of the rates that train best (ours)",
    "L": "Networks that apply one layer over and over (Wang et al. 2026)",
    "O": "One step of the optimizer that trains (ours, and tables of Zheng et al. 2026)",
    "S": "Hyperparameters over width and depth (Zheng et al. 2026)",
    "T": "Training: the rates that train best (by training of our own)",
}

HEAD = """\
# Verdicts

What the papers claim, and what this library found: the recorded verdicts of the preset "{preset}", and those of the
preset "evidence" for claims that take long to decide. `python -m sims.claims` runs the simulations that the claims of a
preset rest on, judges them and writes a report with the numbers, the rival and the command behind each verdict.
`python -m sims.claims --page docs/verdicts.md` writes this page from the record and runs nothing.

- CONFIRMED: the claim lies inside its error band, and the band excludes the stated rival. The rival is what would be
  true if the claim were false.
- REFUTED: the claim lies outside its error band. The last column says what holds instead.
- INCONCLUSIVE: the run cannot tell the claim from its rival. The last column says what is lacking: draws, or, where
  more of them decide nothing or take hours ({open_by_design} claims), what else.

A claim with several parts is refuted as soon as one of them is. A verdict is on a claim of one of these kinds, and says
nothing of another: a premise that fails is no theorem that fails, and a reading of ours is nothing that a paper says.
An identity holds by construction: its checks test this library, not the networks.

{kinds}

The numbers behind every verdict stand in the repository in `sims/claims/recorded_verdicts/`, a comparison a line. On
the site of the documentation (`mkdocs build`) the name of a claim leads to them. [Papers](papers.md) has the titles,
[findings](findings.md) has more numbers, and [theory](theory.md) defines all symbols. These stand in the tables:

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

Rows on training use these words:

| word | meaning |
|---|---|
| tuned rate | the learning rate, the same at every step, at which the training loss is least after the last step |
| nets that learn | those whose loss at the tuned rate is below a third of that of equal probabilities |
| one step | the first step of the optimizer from initial weights, on the data of training, in the median net |
| relative change | the mean square change of a layer over the mean square of the layer itself |
| starting rate | the rate that one step names with nothing tuned: a scale of it over a constant of the kind of net |
| 2 / lambda_max | the largest rate at which descent on a batch is stable; lambda_max is the loss's largest curvature |
| finite-depth rule | carries a rate as eta\\* of equally many layers, in place of its limit L^(-3/2) |
| base rate, octave | the rate from which a table gives that of each weight; a factor of 2 |
| condition 3.1, B.1 | tables of Zheng et al. 2026: for branches of two layers (factor 1/L), and of one (1/sqrt(L)) |
| the standard | the parameterization of usual initial weights and one rate for all, without factors of width or depth |
| Muon with AdamW | Muon steps the matrices between the first and the last layer, AdamW all else |
| range test | a learning-rate finder: the rate grows at every step, and the loss says which to take |
"""

EVIDENCE = """\
# Evidence

What each of the [verdicts](verdicts.md) rests on. For every claim this page has what its source prints, formulas in
plain letters and words left out as "...", and what it assumes; the comparisons that decide, each with what is tested,
the rival that must be excluded, what was measured, and the numbers; and the seed, draws and code of the recorded runs.

The power of a comparison is the least share of the way from claim to rival that 99 of 100 such runs would have refuted;
above 1 not even what the rival says would have been. Of several numbers compared at once it is one share if all of them
go so far, which the surest shows, and one if the least sure goes alone. Where claim and rival meet in one value the
power is a deviation in the unit of the numbers. Checks without draws say "exact", and those that could not have refuted
anything say "none" and why. Where a source claims what its comparison takes for the rival, that is refuted by
confirming the other side: all numbers must be near it, and one alone refutes nothing.
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

STUDIES = """\
## Where they are decided

Every claim is an entry of the study whose runs decide it, in `sims/`, and stands beside its judges; those that rest on
several studies are entries of `sims/claims/catalogue.py`.
"""

WIDTH = 120

# The preset whose verdicts are counted over seeds.
COUNTED = "smoke"

# In place of a verdict, of claims that no run of the preset has recorded yet.
NOT_RECORDED = "not recorded"


def recorded_page(preset: str) -> str:
    """A table of claims for each paper, with the recorded verdict of every claim."""
    judgements = _judgements(preset)
    kinds = by_kind([(judgement.claim, judgement.verdict) for judgement in judgements.values()])
    by_design = [at for at in judgements.values() if at.verdict == Verdict.INCONCLUSIVE and at.claim.undecided]
    parts = [HEAD.format(preset=preset, kinds=kinds.markdown(), open_by_design=len(by_design))]
    for letter, paper in PAPERS.items():
        rows = [judgement for name, judgement in judgements.items() if name.startswith(letter)]
        parts += [f"## {paper}", table_of(rows).markdown()]
    return _joined([*parts, STUDIES, _studies().markdown()])


def _studies() -> Grid:
    """What each study asks, and the claims that rest on its runs."""
    resting: dict[str, list[str]] = {name: [] for name in commands()}
    for claim in CLAIMS.values():
        for name in dict.fromkeys(check.simulation for check in claim.checks):
            resting[name].append(claim.id)
    rows = [[f"`sims.{name}`", listed(name), ", ".join(claims)] for name, claims in resting.items() if claims]
    return table(["study", "what it asks", "claims"], rows)


def evidence_page(preset: str) -> str:
    """A section for each claim, and how often other seeds contradict the verdicts."""
    shown = _judgements(preset)
    parts = [EVIDENCE, *_over_seeds(_kept(preset), recorded(COUNTED))]
    for letter, paper in PAPERS.items():
        sections = [section_of(judgement).markdown() for name, judgement in shown.items() if name.startswith(letter)]
        parts += [f"## {paper}", *sections] if sections else []
    return _joined(parts)


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _over_seeds(kept: Mapping[str, Entry], counted: Mapping[str, Entry]) -> list[str]:
    """How many verdicts from other seeds contradict the one that is kept of their claim, in paragraphs."""
    commits = sorted({seeds_of(entry)["commit"] for entry in counted.values()} - {""})
    when = f", at commit {', '.join(commits)}" if commits else ", perhaps at an earlier commit"
    unrecorded: dict[str, Entry] = {name: {"verdict": NOT_RECORDED} for name in CLAIMS}
    verdicts = {**unrecorded, **kept}
    claims, comparisons = of_claims(verdicts, counted), of_comparisons(verdicts, counted)
    paragraphs = [FROM_SEEDS.format(counted=COUNTED, commits=when, claims=claims)]
    paragraphs += [BY_COMPARISON.format(comparisons=comparisons)] if comparisons.verdicts else []
    seeded = {name: seeds_of(entry)["claim"] for name, entry in counted.items() if takes_seed(CLAIMS[name])}
    paragraphs += [f"{left}."] if (left := undecided_by_all(seeded)) else []
    return [fill(text, WIDTH, break_on_hyphens=False) for text in paragraphs]


def _kept(preset: str) -> dict[str, Entry]:
    """The record of a preset, and of claims that rest on another one that of theirs."""
    others = {claim.preset for claim in CLAIMS.values() if not rests_on(claim, preset)}
    return {name: entry for other in [preset, *sorted(others)] for name, entry in recorded(other or preset).items()}


def _judgements(preset: str) -> dict[str, Judgement]:
    """Every claim, as it is recorded."""
    kept, counted = _kept(preset), recorded(COUNTED)
    return {
        name: _judgement(claim, kept[name], seeds_of(counted.get(name, {})))
        if name in kept
        else Judgement(claim, NOT_RECORDED, runs=dict.fromkeys(claim.runs, ""))
        for name, claim in CLAIMS.items()
    }


def _judgement(claim: Claim, entry: Entry, seeds: Entry) -> Judgement:
    """A claim with its recorded verdict, and with the counts of seeds, where these are of the same comparisons."""
    verdict = Verdict(entry["verdict"])
    if "findings" not in entry:
        return Judgement(claim, verdict)
    commit = f", commit {entry['commit']}" if entry["commit"] else ""
    at = f"preset {claim.preset}, " * bool(claim.preset)
    origin = {"recorded": f"{at}seed {entry['seed']}{commit}", "other seeds": _other_seeds(claim, seeds)}
    findings = findings_of(entry)
    same = len(seeds["comparisons"]) == len(findings)
    by_seed = [_counts(counts) or "the same numbers from all" for counts in seeds["comparisons"]] if same else []
    runs = {name: _known(run) for name, run in entry["runs"].items()}
    spent = {name: run["processor_seconds"] for name, run in entry["runs"].items() if "processor_seconds" in run}
    return Judgement(claim, verdict, findings, origin, runs, by_seed, spent)


def _other_seeds(claim: Claim, seeds: Entry) -> str:
    if not takes_seed(claim):
        return "no seed enters"
    times = f", {seeds['times']} times its draws" if seeds["times"] > 1 else ""
    return f"{_counts(seeds['claim'])}, at preset {COUNTED}{times}" if seeds["claim"] else ""


def _counts(by_verdict: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in by_verdict.items())


def _known(run: Mapping[str, Any]) -> str:
    """The draws of a recorded run, the digest of its code, and the commit that judged it where that was another.

    Then, where it is known, how long processors drew and trained, on which machine.
    """
    draws = "" if run["draws"] is None else f"{run['draws']:,} draws, "
    judged = f", judged at commit {run['commit']}" if "commit" in run else ""
    took = f", {spent(run['processor_seconds'])} of a processor" if "processor_seconds" in run else ""
    machine = f", {run['machine']}" if "machine" in run else ""
    return f"{draws}code {run['code']}{judged}{took}{machine}"


CONTRARY = {Verdict.CONFIRMED: Verdict.REFUTED, Verdict.REFUTED: Verdict.CONFIRMED}


@dataclass(frozen=True)
class Tally:
    """Verdicts from other seeds: how many, how many that contradict the recorded one, and how many that are neither."""

    verdicts: int
    alarms: int
    undecided: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, Mapping[str, int]]]) -> Tally:
        """Of recorded verdicts, each with the counts of the seeds."""
        total: Counter[str] = Counter()
        alarms = 0
        for verdict, counts in pairs:
            total.update(counts)
            alarms += counts.get(CONTRARY.get(verdict, ""), 0)  # type: ignore[call-overload]
        return cls(total.total(), alarms, total[Verdict.INCONCLUSIVE])

    def __str__(self) -> str:
        return f"{self.verdicts:,} such verdicts {self.alarms} are false alarms and {self.undecided:,} are INCONCLUSIVE"


def takes_seed(claim: Claim) -> bool:
    """Whether a run that the claim rests on draws anything: twenty seeds of the others are one verdict."""
    return any("seed" in simulation(check.simulation).parse([]) for check in claim.checks)


def of_claims(kept: Mapping[str, Entry], counted: Mapping[str, Entry]) -> Tally:
    """Of the claims that a seed enters."""
    seeded = {name: seeds_of(entry)["claim"] for name, entry in counted.items() if takes_seed(CLAIMS[name])}
    return Tally.of((kept[name]["verdict"], counts) for name, counts in seeded.items())


def of_comparisons(kept: Mapping[str, Entry], counted: Mapping[str, Entry]) -> Tally:
    """Of the comparisons that both records have; those whose numbers no seed changes count nothing."""
    pairs = []
    for name, entry in counted.items():
        findings, comparisons = kept[name].get("findings", []), seeds_of(entry)["comparisons"]
        if len(findings) == len(comparisons):
            pairs += [(own["verdict"], counts) for own, counts in zip(findings, comparisons, strict=True)]
    return Tally.of(pairs)
