"""The recorded verdicts of each preset, with what they rest on, which a report is compared with."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meanfield.common import write_text_whole
from meanfield.verification import Claim, Finding, Power, Shares, Verdict
from sims.claims.catalogue import CLAIMS
from sims.claims.runs import Evidence, Result
from sims.claims.seeds import Counts

FOLDER = Path(__file__).parent / "recorded_verdicts"
# The page of the records, from the root of the repository; like them it may differ from the commit that they name.
PAGE = "docs/verdicts.md"

# Claims, the fields of each, and what a field lists: runs, findings and counts of seeds.
LEVELS_OF_LINES = 3

Entry = dict[str, Any]


def differences(results: Sequence[Result], preset: str) -> list[str]:
    """One line for each verdict that is not the recorded one."""
    kept = recorded(preset)
    verdicts = {result.claim.id: kept.get(result.claim.id, {}).get("verdict", "nothing") for result in results}
    return [
        f"{result.claim.id}: recorded {verdicts[result.claim.id]}, now {result.verdict}"
        for result in results
        if verdicts[result.claim.id] != result.verdict
    ]


def kept_findings(claim: Claim, entry: Entry, seed: int) -> dict[int, Finding]:
    """The findings of a claim's record by the place of their check, of runs with this seed.

    Runs of hours are made on one machine after another: what a record has of one that is not here stays as it is, also
    where the claim has gained checks by other runs behind those that are recorded.
    """
    findings = findings_of(entry)
    gained = claim.checks[len(findings) :]
    changed = len(findings) > len(claim.checks) or any(check.run in entry.get("runs", {}) for check in gained)
    if entry.get("seed") != seed or changed:
        return {}
    pairs = enumerate(zip(claim.checks, findings, strict=False))
    return {place: finding for place, (check, finding) in pairs if check.run in entry["runs"]}


def keep(results: Sequence[Result], evidence: Mapping[str, Evidence], preset: str, seed: int) -> Path:
    """Record these verdicts with seed, commit, runs and findings; those of other claims stay.

    So do counts of seeds, as long as the verdict does. A run whose findings are kept names the commit that judged it.
    """
    kept, origin = recorded(preset), {"seed": seed, "commit": clean_commit()}
    entries = {
        result.claim.id: {"verdict": str(result.verdict)}
        | origin
        | {
            "runs": _runs_of(result.claim, kept.get(result.claim.id, {}), evidence, seed),
            "findings": result.as_data(),
        }
        | _counts_of(kept.get(result.claim.id, {}), result)
        for result in results
    }
    return _write(preset, kept | entries)


def _runs_of(claim: Claim, entry: Entry, evidence: Mapping[str, Evidence], seed: int) -> Entry:
    """Where the findings come from: the runs that are here, and recorded ones with the commit that judged them."""
    names = {claim.checks[place].run for place in kept_findings(claim, entry, seed)}
    earlier = {name: {"commit": entry["commit"]} | entry["runs"][name] for name in names}
    return {
        name: evidence[name].origin if name in evidence else earlier[name]
        for name in claim.runs
        if name in {*evidence, *earlier}
    }


def _counts_of(entry: Entry, result: Result) -> Entry:
    """The counts of seeds beside a verdict that is reached again, from the same runs."""
    again = entry.get("verdict") == result.verdict and set(entry.get("runs", {})) == set(result.claim.runs)
    return {"seeds": entry["seeds"]} if "seeds" in entry and again else {}


def keep_counts(counts: Mapping[str, Counts], preset: str, times: int) -> Path:
    """Record how many seeds gave each verdict, with commit and ``times`` the draws, beside the recorded verdict."""
    kept, commit = recorded(preset), clean_commit()
    for name, count in counts.items():
        comparisons = [dict(sorted(by_verdict.items())) for by_verdict in count.comparisons]
        seeds = {
            "commit": commit,
            "times": times,
            "claim": dict(sorted(count.claim.items())),
            "comparisons": comparisons,
        }
        kept[name] = kept.get(name, {}) | {"seeds": seeds}
    return _write(preset, kept)


def seeds_of(entry: Entry) -> Entry:
    """Commit, times the draws, counts of the claim and of its comparisons; none of an entry without counts."""
    return {"commit": "", "times": 1, "claim": {}, "comparisons": []} | entry.get("seeds", {})


def findings_of(entry: Entry) -> list[Finding]:
    """What was found, of a recorded verdict."""
    return [
        Finding(**finding | {"verdict": Verdict(finding["verdict"]), "power": power_of(finding)})
        for finding in entry.get("findings", [])
    ]


def power_of(finding: Entry) -> Power | None:
    """The power of a recorded finding."""
    power = finding["power"]
    return Shares(**power) if isinstance(power, dict) else power


def recorded(preset: str) -> dict[str, Entry]:
    """By claim: verdict, and what it rests on."""
    path = FOLDER / f"{preset}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write(preset: str, entries: Mapping[str, Entry]) -> Path:
    """In the catalogue's order, without claims that it no longer has."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{preset}.json"
    kept = {name: entries[name] for name in CLAIMS if name in entries}
    write_text_whole(path, as_text(kept))
    return path


def as_text(entries: Mapping[str, Entry]) -> str:
    """The entries as JSON with one finding, one run and one count of seeds a line, so that records differ by lines."""
    return _json(entries, LEVELS_OF_LINES, "\n") + "\n"


def _json(value: Any, levels: int, line: str) -> str:
    """JSON of which so many outer levels have a line for every item; ``line`` begins one, with its indent."""
    if levels == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value)
    inner = line + "  "
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(_json(item, levels - 1, inner) for item in value)}{line}]"
    items = (f"{json.dumps(name)}: {_json(item, levels - 1, inner)}" for name, item in value.items())
    return f"{{{inner}{f',{inner}'.join(items)}{line}}}"


def clean_commit() -> str:
    """The commit that the code is of; "" outside a repository.

    Raises:
        ValueError: files differ from the commit, besides the records and their page: no commit has the code that made
            these numbers.
    """
    others = ":(top)", f":(top,exclude){PAGE}", f":(exclude){FOLDER.name}"
    try:
        commit = _git("describe", "--always", "--exclude=*")
        changed = _git("status", "--porcelain", "--", *others).splitlines()
    except (OSError, subprocess.CalledProcessError):
        return ""
    if changed:
        files = ", ".join(line.split(maxsplit=1)[1] for line in changed[:3]) + ", ..." * (len(changed) > 3)
        raise ValueError(
            f"{files} differ from commit {commit}, which a record would name as the code behind it; commit them first "
            "(finished runs are read again), or leave out --record"
        )
    return commit


def _git(*words: str) -> str:
    said = subprocess.run(["git", *words], cwd=FOLDER.parent, capture_output=True, text=True, check=True)
    return said.stdout.strip()
