"""The referee's report: one run of all claims, a negative control for each, records, forms, refusals."""

import json
import re
import shutil
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import xarray as xr

from meanfield.execution.digests import code_digest
from meanfield.execution.workers import Workers
from meanfield.verification.claims import combined, of_rival
from meanfield.verification.judges import Contest, contest
from meanfield.verification.published import COMMON_SWEEP, MeasuredSlope
from meanfield.verification.verdicts import Bands, Deviation, Finding, Shares, Verdict
from sims import NAMES
from sims.claims import record
from sims.claims import runs as runs_of_claims
from sims.claims.__main__ import COMMAND as simulation
from sims.claims.catalogue import CLAIMS
from sims.claims.recorded_page import evidence_page
from sims.claims.runs import NOT_RUN, Job, Result, RunOptions, as_they_are, judged, split
from sims.claims.seeds import Counts
from sims.common.tables import LINE
from sims.learning_rate_scale import claims as scales
from tests.sims import claim_controls

# Claims that read no numbers of a dataset; their controls are in `tests/verification`, that of A21 below.
WITHOUT_DATASET = {"A16a", "A16b", "A19", "A21", "A23a", "S12", "S13"}
# Files of tests that a study has besides that of its name, with controls of its claims.
MORE_TESTS = {"learning_rate_search": ("first_steps", "over_widths", "printed_tables")}
# The studies whose runs decide a claim -> controls, of every file: they stand beside the tests of their study, as its
# CONTROLS, and those of claims that rest on several studies in `claim_controls`.
PARTS = [("several", claim_controls.CONTROLS)]
for _study in (name for name in NAMES if find_spec(f"tests.sims.test_{name}") and name != "claims"):
    for _file in (_study, *MORE_TESTS.get(_study, ())):
        PARTS.append((_study, getattr(import_module(f"tests.sims.test_{_file}"), "CONTROLS", {})))
CONTROLS = {name: control for _, part in PARTS for name, control in part.items()}


@pytest.fixture
def folder(smoke):
    return smoke


@pytest.fixture
def runs(smoke_runs):
    return dict(smoke_runs)


def _verdict(claim, runs):
    return combined(check.judge(runs[check.run]).verdict for check in claim.checks)


def test_every_claim_has_one_control():
    assert sorted([*WITHOUT_DATASET, *(name for _, part in PARTS for name in part)]) == sorted(CLAIMS)


def test_controls_stand_with_the_study_that_decides_their_claim():
    studies = {claim.id: {check.run.partition("-")[0] for check in claim.checks} for claim in CLAIMS.values()}
    homes = {name: of.pop() if len(of) == 1 else "several" for name, of in studies.items()}
    assert {name: study for study, part in PARTS for name in part if homes[name] != study} == {}


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_change_the_verdict(name, runs):
    claim = CLAIMS[name]
    assert _verdict(claim, runs | CONTROLS[name](runs)) is not _verdict(claim, runs)


def test_measured_slopes_can_be_refuted():
    """Negative control of A21: slopes as precise as they are many, and of -3/2."""
    exact = MeasuredSlope("made up", COMMON_SWEEP, -1.5, 1e-3, 8)
    assert scales.judge_measured_slope(exact, 1).verdict is Verdict.REFUTED


def test_theories_off_by_a_twentieth_flip_what_rests_on_them(runs, monkeypatch):
    """One constant of the finite-depth law changed by 5 %: its slope is no longer the rival that fits."""
    claim = CLAIMS["A5b"]
    assert _verdict(claim, runs) is Verdict.REFUTED
    true = scales.finite_depth_slope
    monkeypatch.setattr(scales, "finite_depth_slope", lambda depths: 0.95 * true(depths))
    assert claim.checks[0].judge(runs["learning_rate_scale"]).verdict is not Verdict.REFUTED


def test_energies_off_by_a_twentieth_flip_what_rests_on_them(runs):
    """The weight variance of the theory of loops 5 % too small: increments, and so C, 5 % too small at every step."""
    dataset, name = runs["looped_energy"], "log_energy_mean_field"
    weaker = np.log1p(0.95 ** dataset["loops"] * np.expm1(dataset[name]))
    assert _verdict(CLAIMS["L3"], runs | {"looped_energy": dataset.assign({name: weaker})}) is not Verdict.CONFIRMED


def test_forms_agree(folder):
    verdicts = {result["id"]: result["verdict"] for result in json.loads((folder / "verdicts.json").read_text())}
    assert list(verdicts) == list(CLAIMS)
    table, page = ((folder / f"verdicts.{kind}").read_text() for kind in ("md", "html"))
    for name, verdict in verdicts.items():
        assert f"| {name} |" in table
        assert f'id="{name}"' in page
        assert verdict in page
    assert "://" not in page


def test_every_claim_has_a_line_of_its_own():
    """Behind its id and its verdict, in the report; no two claims read alike."""
    lines = [claim.brief or claim.statement for claim in CLAIMS.values()]
    assert {line: len(line) for line in lines if len(line) > LINE - 20} == {}
    assert len(set(lines)) == len(lines)
    assert [claim.id for claim in CLAIMS.values() if claim.brief and len(claim.statement) <= LINE - 20] == []


def test_the_page_of_all_claims_leads_to_those_of_the_runs(folder):
    page = (folder / "verdicts.html").read_text()
    names = {f"{run}.html" for claim in CLAIMS.values() for run in claim.runs}  # other tests run others there
    assert names <= {path.name for path in folder.glob("*.html")}
    assert set(re.findall(r'<a href="([^#"]+)"', page)) == names
    assert len(page.encode()) < 2_000_000


def test_workers_change_no_verdict(folder, tmp_path):
    chosen = ["--only", "L5a,L5c", "--preset", "smoke", "--workers", "2", "--out", str(tmp_path)]
    assert simulation.main(chosen) == 0
    alone = {result["id"]: result for result in json.loads((folder / "verdicts.json").read_text())}
    for result in json.loads((tmp_path / "verdicts.json").read_text()):
        assert result == alone[result["id"]]


def test_a_simulation_longer_than_all_others_is_made_by_all_processes():
    jobs = [Job(name, name, ()) for name in ("cnn_padding", "looped_energy", "mlp_depth", "identities")]
    together = RunOptions("paper", 0, Workers(2), force=False)
    assert [[job.name for job in part] for part in split(jobs, together)] == [
        ["cnn_padding"],
        ["mlp_depth", "looped_energy", "identities"],
    ]
    alone = replace(together, workers=Workers(1))
    assert split(jobs, alone) == (jobs, [])
    assert split(jobs, replace(together, workers=Workers(scheduler="tcp://host:1"))) == (jobs, [])


def test_a_changed_verdict_is_the_status(folder, tmp_path, monkeypatch, capsys):
    """On a copy: the report of all claims stays for other tests."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    for path in folder.glob("looped_energy.*"):
        shutil.copy2(path, own)
    arguments = ["--only", "L2", "--preset", "smoke", "--workers", "1", "--out", str(own)]
    assert simulation.main(arguments) == 1
    assert "L2: recorded nothing, now CONFIRMED" in capsys.readouterr().out
    assert simulation.main([*arguments, "--record"]) == 0
    assert simulation.main(arguments) == 0
    entry = record.recorded("smoke")["L2"]
    assert (entry["verdict"], entry["seed"]) == ("CONFIRMED", 0)
    run = entry["runs"]["looped_energy"]
    assert (run["draws"], run["code"]) == (128, code_digest())
    reported = {result["id"]: result for result in json.loads((own / "verdicts.json").read_text())}
    assert entry["findings"] == reported["L2"]["findings"]
    (tmp_path / "smoke.json").write_text('{"L2": {"verdict": "REFUTED"}}')
    assert simulation.main(arguments) == 1
    assert "L2: recorded REFUTED, now CONFIRMED" in capsys.readouterr().out


def test_finished_runs_are_judged_as_they_are(folder, tmp_path, monkeypatch, capsys):
    """Whatever version made them; nothing is run, and a run that is not there leaves its claim open."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    for path in folder.glob("looped_energy.nc"):
        shutil.copy2(path, own)
    arguments = ["--only", "L2,A1", "--preset", "smoke", "--as-they-are", "--out", str(own)]
    monkeypatch.setattr(runs_of_claims, "_evidence", lambda *_: pytest.fail("a run begins"))
    assert simulation.main(arguments) == 1
    assert "L2: recorded nothing, now CONFIRMED" in (said := capsys.readouterr().out)
    assert "A1" not in said
    claim = replace(CLAIMS["L2"], checks=(*CLAIMS["L2"].checks, *CLAIMS["A1"].checks))
    result = judged(claim, as_they_are([claim], RunOptions("smoke", 0, Workers(1), force=False), own))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert [finding.evidence for finding in result.findings][-1] == NOT_RUN
    for more, words in {
        "--seed 1": "these claims rest on",
        "--seeds 2": "drop --seeds",
        "--force": "drop --force",
    }.items():
        assert simulation.main([*arguments, *more.split()]) == 2
        assert words in capsys.readouterr().err
    made = xr.load_dataset(own / "looped_energy.nc", engine="netcdf4")
    kept = {"python -m sims.looped_energy --seed 0 --preset smoke": 1, "python -m sims.looped_energy --preset smoke": 1}
    for other, status in {**kept, "python -m sims.looped_energy --preset smoke --gone": 2, "another": 2}.items():
        monkeypatch.setattr(runs_of_claims, "as_it_is", lambda path, as_=other: made.assign_attrs(command=as_))
        assert simulation.main(["--only", "L2", *arguments[2:]]) == status
    monkeypatch.undo()
    (own / "looped_energy.nc").write_bytes(b"no dataset")
    assert simulation.main(arguments) == 2
    assert "is no finished run as it was written" in capsys.readouterr().err
    (own / "looped_energy.nc").unlink()
    assert simulation.main(arguments) == 2
    assert "holds no run that these claims rest on" in capsys.readouterr().err


def test_claims_that_say_why_they_stay_open_do():
    kept = {claim.id: record.recorded(claim.preset or "default").get(claim.id) for claim in CLAIMS.values()}
    assert {name: kept[name]["verdict"] for name, claim in CLAIMS.items() if claim.undecided} == {
        name: "INCONCLUSIVE" for name, claim in CLAIMS.items() if claim.undecided
    }


@pytest.mark.parametrize("preset", ["smoke", "default", "evidence"])
def test_recorded_verdicts_are_those_of_their_findings(preset):
    entries = {name: entry for name, entry in record.recorded(preset).items() if "findings" in entry}
    assert entries
    for name, entry in entries.items():
        assert combined(Verdict(finding["verdict"]) for finding in entry["findings"]) == entry["verdict"], name
        made = [run for run in CLAIMS[name].runs if run in entry["runs"]]
        assert list(entry["runs"]) == made
        unmade = [finding for finding in entry["findings"] if finding["evidence"] == NOT_RUN]
        assert bool(unmade) == (made != CLAIMS[name].runs)


@pytest.mark.parametrize("name", ["L7d", "T4"])
def test_tuned_rates_in_what_replaces_a_claim_are_the_recorded_ones(name):
    findings = record.recorded(CLAIMS[name].preset or "default")[name]["findings"]
    slopes = re.findall(r"slope (-?[0-9.]+) [+]- ([0-9.]+)", str([finding["evidence"] for finding in findings]))
    said = re.findall(r"L[\^][(](-?[0-9.]+) [+]- ([0-9.]+)", CLAIMS[name].replaced_by)
    assert len(said) == len(slopes)
    for rounded in said:
        digits = len(rounded[0].partition(".")[2])
        assert rounded in [tuple(f"{float(number):.{digits}f}" for number in pair) for pair in slopes]


def test_every_recorded_verdict_says_what_it_would_have_refuted():
    """Shares of the way to the rival, or words: what exact numbers refute, or why nothing would have been."""
    powers = {
        (name, finding["claim"]): record.power_of(finding)
        for name, entry in record.recorded("smoke").items()
        for finding in entry["findings"]
    }
    for at, power in powers.items():
        assert power is not None, at
        stated = ("refuted", "exact: ", "none: ", "fewer than")
        assert isinstance(power, Shares) or any(word in power for word in stated), at


def test_recorded_powers_are_read_back_old_ones_too():
    """A share alone is of all numbers, as it was recorded before one number alone had another."""
    finding = Finding("law", "rival", Verdict.CONFIRMED, "numbers", Shares(0.00123456, 0.8), measured="slopes")
    result = Result(CLAIMS["A2"], (finding, replace(finding, power=Shares(0.5, None))), ())
    first, second = json.loads(json.dumps(result.as_data()))
    assert first["power"] == {"together": 0.00123, "alone": 0.8}
    assert first["measured"] == "slopes"
    assert (record.power_of(first), record.power_of(second)) == (Shares(0.00123, 0.8), Shares(0.5, None))
    assert record.power_of({"power": "none: why"}) == "none: why"
    assert record.findings_of({"findings": [first]}) == [replace(finding, power=Shares(0.00123, 0.8))]


def test_seeds_are_counted_beside_the_verdict(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    (tmp_path / "smoke.json").write_text('{"A2": {"verdict": "CONFIRMED"}}')
    arguments = ["--only", "A2", "--preset", "smoke", "--workers", "1", "--seeds", "2", "--out", str(tmp_path / "run")]
    assert simulation.main([*arguments, "--record"]) == 0
    assert "None: all seeds agree" in capsys.readouterr().out
    entry = record.recorded("smoke")["A2"]
    assert (entry["verdict"], entry["seeds"]["claim"]) == ("CONFIRMED", {"CONFIRMED": 2})
    assert entry["seeds"]["comparisons"] == [{"CONFIRMED": 2}] * 2
    assert entry["seeds"]["commit"] == record.clean_commit()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["seed-0", "seed-1"]


def test_verdicts_combine():
    confirmed, refuted, neither = Verdict.CONFIRMED, Verdict.REFUTED, Verdict.INCONCLUSIVE
    assert combined([confirmed, confirmed]) is confirmed
    assert combined([confirmed, neither]) is neither
    assert combined([neither, refuted, confirmed]) is refuted


FOUND = {
    **{"claim": "law", "rival": "other", "measured": "slopes", "evidence": "numbers"},
    **{"power": {"together": 0.5, "alone": 0.5}},
}


@pytest.mark.parametrize(("seeds", "alarms"), [({"CONFIRMED": 1, "REFUTED": 3}, 1), ({"INCONCLUSIVE": 4}, 0)])
def test_the_page_says_which_seeds_contradict_a_verdict(tmp_path, monkeypatch, seeds, alarms):
    """Verdicts of the page's preset, counts of the one that is counted; claims that are not recorded raise no alarm,
    and those that no seed enters (S10i reads printed losses) are no twenty verdicts."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    entry = {"verdict": "REFUTED", "seed": 0, "commit": "", "runs": {}, "findings": []}
    (tmp_path / "default.json").write_text(json.dumps({"A2": entry, "S10i": entry}))
    counts = {"A2": seeds, "A3": {"CONFIRMED": 20}, "S10i": {"CONFIRMED": 20}}
    kept = {name: {"seeds": {"commit": "", "claim": count, "comparisons": []}} for name, count in counts.items()}
    (tmp_path / "smoke.json").write_text(json.dumps(kept))
    page = evidence_page("default")
    counted = ", ".join(f"{count} {verdict}" for verdict, count in seeds.items())
    sections = dict(section.split("\n", 1) for section in page.split("\n### ")[1:])
    others = {name: re.findall(r"^- Other seeds: (.*)\.$", words, re.MULTILINE) for name, words in sections.items()}
    assert list(sections) == list(CLAIMS)
    known = {name: words for name, words in others.items() if words}
    assert known == {"A2": [f"{counted}, at preset smoke"], "S10i": ["no seed enters"]}
    assert page.count("\n- Recorded: seed 0.\n") == len(known)
    said = f"Of 24 such verdicts {alarms} are false alarms and {seeds.get('INCONCLUSIVE', 0)} are INCONCLUSIVE"
    assert said in page.replace("\n", " ")
    assert "By comparison" not in page


def test_the_page_counts_comparisons_where_they_are_recorded(tmp_path, monkeypatch):
    """A claim that one comparison leaves undecided, with the other one decided by every seed but one."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    findings = [FOUND | {"verdict": verdict} for verdict in ("CONFIRMED", "INCONCLUSIVE", "REFUTED")]
    entry = {"verdict": "REFUTED", "seed": 0, "commit": "", "runs": {}, "findings": findings}
    comparisons = [{"CONFIRMED": 3, "REFUTED": 1}, {"INCONCLUSIVE": 4}, {}]
    seeds = {"commit": "0abc", "claim": {"REFUTED": 4}, "comparisons": comparisons}
    (tmp_path / "default.json").write_text(json.dumps({"A2": entry, "A3": entry}))
    of_other_comparisons = {"A3": {"seeds": seeds | {"comparisons": [{"CONFIRMED": 4}]}}}
    (tmp_path / "smoke.json").write_text(json.dumps({"A2": {"seeds": seeds}} | of_other_comparisons))
    page = evidence_page("default")
    assert "By comparison, of 8 such verdicts 1 are false alarms and 4 are INCONCLUSIVE" in page.replace("\n", " ")
    assert ", at commit 0abc. A false" in page.replace("\n", " ")
    own = page[page.index("### A2\n") : page.index("### A3\n")]
    counted = re.findall(r" Seeds: (.+)\.$", own, re.MULTILINE)
    assert counted == ["3 CONFIRMED, 1 REFUTED", "4 INCONCLUSIVE", "the same numbers from all"]
    assert " Seeds: " not in page[page.index("### A3\n") :]


def test_seeds_that_change_no_number_count_nothing():
    """Two seeds: the second comparison has the same evidence from both."""
    drawn, computed = (Finding("law", "other", Verdict.CONFIRMED, words) for words in ("0.1", "exact"))
    results = [Result(CLAIMS["A2"], (replace(drawn, evidence=words), computed), ()) for words in ("0.1", "0.2")]
    counts = Counts.of(results)
    assert (counts.claim, counts.comparisons) == ({"CONFIRMED": 2}, [{"CONFIRMED": 2}, {}])


def test_the_page_says_what_was_measured_printed_and_assumed(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    findings = [FOUND | {"verdict": "REFUTED", "measured": "slopes of all nets"}]
    entry = {"verdict": "REFUTED", "seed": 0, "commit": "", "runs": {}, "findings": findings}
    (tmp_path / "default.json").write_text(json.dumps({"A14": entry}))
    page = evidence_page("default")
    claim = CLAIMS["A14"]
    said = {"Printed": claim.printed, "Assumed": claim.hypotheses, "Instead": claim.replaced_by}
    for name, words in (said | {"Premise that fails": claim.premise}).items():
        assert f"\n- {name}: {words}.\n" in page.replace("\\*", "*")
    line = (
        "- **REFUTED**: law. Rival: other. Measured: slopes of all nets. Numbers: numbers. Power: a deviation of 50 %"
    )
    assert line in page


@pytest.mark.parametrize(("mine", "theirs"), [("CONFIRMED", "REFUTED"), ("INCONCLUSIVE", "INCONCLUSIVE")])
def test_a_law_confirmed_refutes_its_rival(mine, theirs):
    shares = Shares(0.1, 0.2), Shares(0.3, None)
    made = Finding("law", "paper", Verdict(mine), "numbers", *shares, "numbers of the paper", "slopes")
    finding = of_rival(lambda dataset: made)(xr.Dataset())
    assert (finding.claim, finding.rival, finding.verdict) == ("paper", "law", theirs)
    assert (finding.evidence, finding.measured) == ("numbers of the paper", "slopes")
    assert (finding.power, finding.power_of_rival) == shares[::-1]
    twice = replace(made, verdict_of_rival=Verdict(theirs))
    assert of_rival(of_rival(lambda dataset: made))(xr.Dataset()) == twice
    alike = of_rival(lambda dataset: replace(made, evidence_of_rival=""))(xr.Dataset())
    assert alike.evidence == "numbers"


def test_exchanged_numbers_are_those_of_the_other_side():
    """What is printed first is how far the numbers are from what is claimed, here from 0 where the law says 2."""
    made = contest([2.0], [0.1], claimed=2.0, rival=0.0).weigh(3, 1000)
    band = f"band {Bands.of(3, 1000).alarm:.3g}"
    assert made.evidence == f"worst 0.0 s.e., rival 20.0, {band}"
    assert made.evidence_of_rival == f"worst 20.0 s.e., rival 0.0, {band}"
    undecided = Contest(Deviation(0.0, 1.0), Deviation(1.0, 1.0, 2.0)).weigh(1, 1000)
    assert undecided.evidence.endswith("; the rival lies within the allowance, where no draws decide")
    assert undecided.evidence_of_rival.endswith("; what is claimed lies within the allowance, where no draws decide")


def test_every_claim_of_a_comparison_is_a_sentence_with_a_subject(folder):
    """Also where a judge's rival is what the source claims: 'they fall as 1/C' says nothing of what does."""
    results = json.loads((folder / "verdicts.json").read_text())
    assert [result["id"] for result in results] == list(CLAIMS)
    said = {finding["claim"] for result in results for finding in result["findings"]}
    assert sorted(words for words in said if re.match(r"(it|they|as|slopes|conserved|times|none|to|by) ", words)) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "A3,Z9"], "--only is 'Z9'; choose one of 'A1', "),
        (["--seed", "-1"], "--seed is -1"),
        (["--workers", "0"], "workers is 0"),
        (["--page", "verdicts.md", "--record", "--only", "A3"], "runs nothing; drop --only, --record"),
    ],
)
def test_bad_input_gets_one_line(tmp_path, capsys, arguments, message):
    assert simulation.main([*arguments, "--preset", "smoke", "--out", str(tmp_path)]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not list(tmp_path.iterdir())
