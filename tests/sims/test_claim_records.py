"""Records of verdicts: of code that a commit has, and repeated by as many draws as decide."""

import argparse
import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr

from meanfield.execution.workers import Workers
from meanfield.verification import Finding, Verdict
from sims.claims import record, runs, seeds
from sims.claims.__main__ import COMMAND as simulation
from sims.claims.catalogue import CLAIMS
from sims.claims.recorded_page import evidence_page
from sims.claims.runs import Result, RunOptions
from sims.claims.seeds import Counts

FILES = ("meanfield/law.py", "docs/verdicts.md", "sims/claims/recorded_verdicts/smoke.json")


def _git(folder, *words):
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A tiny one, of which the records are the recorded verdicts."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setattr(record, "FOLDER", tmp_path / "sims/claims/recorded_verdicts")
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "All."]):
        _git(tmp_path, *words)
    return tmp_path


def test_a_record_names_the_commit_that_has_its_code(repository):
    commit = _git(repository, "rev-parse", "HEAD").strip()
    assert commit.startswith(record.clean_commit())
    for name in FILES[1:]:
        (repository / name).write_text('{"A2": {}}')
    (repository / "sims/claims/recorded_verdicts/default.json").write_text("{}")
    assert commit.startswith(record.clean_commit())
    assert len(record.clean_commit()) >= 7


@pytest.mark.parametrize("name", ["meanfield/law.py", "meanfield/new.py"])
def test_code_that_no_commit_has_is_not_recorded(repository, tmp_path, capsys, name):
    """Refused before any work, and nothing is written."""
    (repository / name).write_text("changed")
    with pytest.raises(ValueError, match=re.escape(f"{name} differ from commit ")):
        record.clean_commit()
    with pytest.raises(ValueError, match="commit them first"):
        record.keep_counts({"A2": Counts(Counter(CONFIRMED=1), [])}, "smoke", 1)
    out = tmp_path / "run"
    for seed in ([], ["--seeds", "2"]):
        assert simulation.main(["--only", "A2", "--preset", "smoke", "--record", *seed, "--out", str(out)]) == 2
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1
        assert name in complaint
    assert not out.exists()
    assert (repository / FILES[2]).read_text() == "{}"


@pytest.mark.parametrize("preset", ["smoke", "default"])
def test_a_record_read_and_written_again_is_the_same_file_with_a_line_for_every_finding(preset, tmp_path, monkeypatch):
    kept = record.FOLDER / f"{preset}.json"
    entries = record.recorded(preset)
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    assert record._write(preset, entries).read_bytes() == kept.read_bytes()
    lines = {line.strip().removesuffix(",") for line in kept.read_text().splitlines()}
    findings = [json.dumps(finding) for entry in entries.values() for finding in entry["findings"]]
    assert findings
    assert set(findings) <= lines


def test_outside_a_repository_no_commit_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path / "recorded_verdicts")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert record.clean_commit() == ""


@pytest.mark.parametrize(
    ("times", "own", "given"),
    [(1, (), []), (8, (), ["--times", "8"]), (1, ("--times", "6"), []), (3, ("--times", "6"), ["--times", "18"])],
)
def test_claims_can_be_judged_with_more_draws(tmp_path, monkeypatch, times, own, given):
    """By every simulation that draws, and in proportion by a check that has more draws than the preset."""
    taken = []

    class Simulation:
        def parse(self, arguments):
            return argparse.Namespace(preset="", seed=0, times=int(arguments[1]) if arguments else 1)

        def finished(self, arguments, _):
            taken.append(arguments)
            return xr.Dataset()

    monkeypatch.setattr(runs, "simulation", lambda name: Simulation())
    made = runs._evidence(runs.Job("x", "x", own), RunOptions("smoke", 3, Workers(1), False, times), tmp_path)
    assert taken == [[*own, "--preset", "smoke", "--seed", "3", *given]]
    assert made.command.endswith(" ".join(["--seed 3", *given]))


def test_claims_that_no_seed_decides_are_not_replicated(tmp_path, monkeypatch):
    verdicts = {"A2": {"CONFIRMED": 2}, "A3": {"INCONCLUSIVE": 2}, "A4": {"INCONCLUSIVE": 1, "REFUTED": 1}}
    counts = {name: Counts(Counter(given), []) for name, given in verdicts.items()}
    text = seeds.text(counts)
    assert "Not replicated, as all seeds leave it INCONCLUSIVE: A3: with --times N" in text
    assert "Not replicated" not in seeds.text({name: counts[name] for name in ("A2", "A4")})
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    record.keep_counts(counts, "smoke", 8)
    assert record.recorded("smoke")["A3"]["seeds"]["times"] == 8
    (tmp_path / "default.json").write_text(
        '{"A3": {"verdict": "REFUTED", "seed": 0, "commit": "", "runs": {}, "findings": []}}'
    )
    page = evidence_page("default")
    assert "\nNot replicated, as all seeds leave it INCONCLUSIVE: A3.\n" in page
    assert "\n- Other seeds: 2 INCONCLUSIVE, at preset smoke, 8 times its draws.\n" in page


@pytest.mark.parametrize(
    ("verdict", "run", "kept"), [("CONFIRMED", "", True), ("REFUTED", "", False), ("", "x", False)]
)
def test_counts_of_seeds_stay_with_the_verdict_and_its_runs(verdict, run, kept):
    """Claims that moved to nets that learn kept the counts of the nets before."""
    result = Result(CLAIMS["A2"], (Finding("a", "b", Verdict.CONFIRMED, "", "none", measured="c"),), ())
    given = {"verdict": verdict or "CONFIRMED", "runs": dict.fromkeys([run] if run else CLAIMS["A2"].runs)}
    assert record._counts_of(given | {"seeds": {"times": 1}}, result) == ({"seeds": {"times": 1}} if kept else {})


def test_a_recorded_verdict_has_the_draws_of_its_preset(tmp_path, capsys):
    arguments = ["--only", "A2", "--preset", "smoke", "--times", "2", "--record", "--out", str(tmp_path / "run")]
    assert simulation.main(arguments) == 2
    assert "has the preset's draws; drop --times, or count" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def _result(claim, verdicts, made, kept=None):
    """Of a claim whose checks find these verdicts, from the runs that are here."""
    found = [Finding("so", "not so", verdict, "seen") for verdict in verdicts]
    checks = [replace(check, judge=lambda _, one=one: one) for check, one in zip(claim.checks, found, strict=True)]
    return runs.judged(replace(claim, checks=tuple(checks)), made, kept)


def _entry(claim):
    return record.recorded("evidence").get(claim.id, {})


def test_runs_of_one_claim_may_be_recorded_one_after_another(repository, monkeypatch):
    """What an earlier run has found stays, with the commit that judged it; not beside another seed."""
    (repository / "sims/claims/recorded_verdicts/evidence.json").write_text("{}")
    claim = CLAIMS["E4a"]
    first, second, third = claim.runs
    of_run = {name: runs.Evidence(name, "", Path(), xr.Dataset(attrs={"draws": 4, "run": name})) for name in claim.runs}
    verdicts = [Verdict.CONFIRMED, Verdict.CONFIRMED, Verdict.REFUTED]

    def record_of(*names, seed=0):
        here = {name: of_run[name] for name in names}
        result = _result(claim, verdicts, here, record.kept_findings(claim, _entry(claim), seed))
        record.keep([result], here, "evidence", seed)
        entry = record.recorded("evidence")[claim.id]
        return entry, [finding["verdict"] for finding in entry["findings"]]

    open_one = str(Verdict.INCONCLUSIVE)
    entry, found = record_of(first)
    assert found == ["CONFIRMED", open_one, open_one]
    assert list(entry["runs"]) == [first]
    judged_at = entry["commit"]

    (repository / "meanfield/law.py").write_text("later")
    _git(repository, "commit", "-q", "-a", "-m", "Later.")
    entry, found = record_of(second)
    assert found == ["CONFIRMED", "CONFIRMED", open_one]
    assert entry["verdict"] == open_one
    assert entry["runs"][first]["commit"] == judged_at != entry["commit"]
    assert "commit" not in entry["runs"][second]

    entry, found = record_of(third)
    assert (found, entry["verdict"]) == (["CONFIRMED", "CONFIRMED", "REFUTED"], "REFUTED")
    assert f"4 draws, code None, judged at commit {judged_at}" in evidence_page("default")

    entry, found = record_of(third, seed=1)
    assert found == [open_one, open_one, "REFUTED"]
    assert list(entry["runs"]) == [third]


def test_findings_of_a_claim_that_has_other_checks_by_now_are_not_kept():
    entry = {"verdict": "REFUTED", "seed": 0, "commit": "", "runs": {CLAIMS["E4a"].runs[0]: {}}, "findings": []}
    assert record.kept_findings(CLAIMS["E4a"], entry, 0) == {}


def test_a_claim_that_gains_a_check_by_another_run_keeps_its_findings():
    """And not where a check stands before recorded ones, or where the new one is by a recorded run."""
    claim = CLAIMS["E4a"]
    *recorded, gained = claim.checks
    said = {"verdict": "CONFIRMED", "rival": "", "measured": "", "evidence": "", "power": None}
    made = [said | {"claim": f"{place}"} for place in range(len(recorded))]
    runs = {check.run: {} for check in recorded}
    entry = {"verdict": "CONFIRMED", "seed": 0, "commit": "", "runs": runs, "findings": made}
    kept = record.kept_findings(claim, entry, 0)
    assert [(place, finding.claim) for place, finding in kept.items()] == [(0, "0"), (1, "1")]
    for checks in ((gained, *recorded), (*recorded, recorded[0])):
        assert record.kept_findings(replace(claim, checks=checks), entry, 0) == {}


def test_readme_counts_what_is_recorded():
    """The claims that few draws leave undecided, those of the default sizes, and how many there are of these."""
    undecided = {
        preset: sum(entry["verdict"] == Verdict.INCONCLUSIVE for entry in record.recorded(preset).values())
        for preset in ("smoke", "default")
    }
    readme = " ".join((Path(record.__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert f"so few draws leave {undecided['smoke']} undecided" in readme
    assert f"leaves {undecided['default']} of {len(record.recorded('default'))}, and" in readme
