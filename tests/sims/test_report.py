"""Printed reports: question and answer first, lines that any screen shows whole, and every word explained once."""

import re
from pathlib import Path

import pytest
import xarray as xr

import sims
from meanfield.verification.verdicts import WIDEST_BAND, Finding, Verdict
from sims.claims import report as _claims_report
from sims.claims.catalogue import CLAIMS
from sims.claims.runs import Evidence, judged
from sims.common.report import BRIEF, SAYS, SOURCES, STATISTICS, UNMADE, Document, answer, in_a_line, used_words
from sims.common.tables import LINE, table
from sims.hyperparameters import COMMAND as hyperparameters

ROOT = Path(sims.__file__).parent.parent
# Tables of the report on fully-connected nets have a file of their own.
COMPUTED = Finding("three is a third of nine", "a half", Verdict.CONFIRMED, "off by 0")
DRAWN = Finding("slope 1", "slope 2", Verdict.REFUTED, "worst 9.0 s.e. beyond the allowance, rival 0.1, band 7")


@pytest.fixture(scope="module")
def printed(smoke, smoke_runs):
    """The report of every smoke run by its name, and those that judge and print without a run of their own."""
    reports = {name: _report((smoke / f"{name}.txt").read_text()) for name in smoke_runs}
    evidence = {name: Evidence(name, "", Path(), dataset) for name, dataset in smoke_runs.items()}
    reports["claims"] = _claims_report.document([judged(claim, evidence) for claim in CLAIMS.values()], evidence).text()
    return reports


# Run -> words that its report must have.
WORDS = {
    "activation_drift": ("gelu, energy", "with 1/n", "CNN 3 .. 30", "by the gain", "Zhang et al. 2026, table 3"),
    "batch_size": ("ConvNet, rho 0.5, labels teacher", "with Cov/B", "muP head", "Law"),
    "cnn_finite_channels": ("L/C", "one site", "C = 256", "3x3 on 4x4", "ratio"),
    "cnn_padding": ("ln lambda", "growth ends", "Lemma 3", "on a torus", "eta* of B, zero / circular"),
    "coordinate_check-tables-one-optimizers-muon-activation-relu": ("in depth, step 2", "by output weights", "relu"),
    "coordinate_check-tables-many-optimizers-sso-steps-5": ("sso: slopes", "|Delta f| by output weights"),
    "cross_entropy": ("|p - y|^2", "Cross-entropy over squared loss", "Law"),
    "looped_energy": ("Looped: one matrix", "Deep: a matrix", "far up", "Correlation of increments"),
    "looped_update": ("isotropic", "aligned", "Slopes of", "By width"),
    "optimizer_depth": ("tuned (Adam)", "polar factors", "cross-entropy", "whole update"),
    "residual_depth": ("relu k=2 init", "falls as 2^-K", "m = 50, K = 50", "The ResNet of Zhang et al. 2026"),
    "spectral_condition-block-depth-3-optimizers-adamw-lion-sophia-muon-muon_kimi-shampoo-soap-sso": (
        "a_l |W^(3)| |W^(2)| |W^(1)|",
        "a_l |dW^(3)| |dW^(2)| |dW^(1)|",
        "shampoo",
        "F.2",
    ),
}


@pytest.mark.parametrize("run", WORDS)
def test_reports_have_their_words(printed, run):
    said = " ".join(printed[run].split())
    assert [words for words in (*WORDS[run], "Verdicts") if words not in said] == []


def test_the_report_on_claims_names_the_runs_that_took_longest():
    """By their commands, the longest first; not those that took no second, which were finished before."""
    took = {"short": 0.2, "long": 60.0, "one": 1.2, **{f"of{each}": 2.0 for each in range(4)}}
    evidence = {run: Evidence(run, f"python -m {run}", Path(), xr.Dataset(), seconds) for run, seconds in took.items()}
    (part,) = (part for part in _claims_report.document([], evidence).parts if "Processor" in str(part))
    first, *lines = part.splitlines()
    assert first.startswith("Processor seconds: 69 in all")
    assert [line.split() for line in lines] == [["60", "python", "-m", "long"]] + [
        ["2", "python", "-m", f"of{each}"] for each in range(4)
    ]
    finished = {"short": evidence["short"]}
    assert _claims_report.document([], finished).parts[-1] == "Processor seconds: 0 in all"


def test_commands_say_where_their_figures_are(smoke):
    for path in smoke.glob("*.txt"):
        assert f"{path.stem}.png" in path.read_text()


def _report(output):
    """What stands between the notice that a run is read and the places of its files."""
    return output[output.index("Question: ") :].partition("\n\ndataset  ")[0]


def test_every_line_is_short_and_the_answer_comes_first(printed):
    for name, text in printed.items():
        lines = text.splitlines()
        assert max(map(len, lines)) <= LINE, name
        assert re.fullmatch(r"Question: \S.*\?", lines[0]), name
        assert re.match(r"Answer:   \S[^\n]*(\n +\S[^\n]*)*\.\n\n", "\n".join(lines[1:])), name


@pytest.fixture(scope="module")
def shown(smoke_runs):
    """What every smoke run prints where nothing more is asked for, by its name."""
    return {name: sims.simulation(name.split("-")[0]).document(run).short() for name, run in smoke_runs.items()}


def test_a_report_fits_a_screen(shown):
    """With the four lines that say where its files are it has forty, and each says what it says in a line."""
    for name, text in shown.items():
        lines = text.splitlines()
        assert len(lines) <= BRIEF, name
        assert max(map(len, lines)) <= LINE, name
        assert lines[0].startswith("Question: "), name
        assert "--full" in text, name


# Studies whose verdicts are told in a line each; the others cut some.
UNCUT = (
    "activation_drift",
    "batch_size",
    "cnn_finite_channels",
    "cnn_padding",
    "cross_entropy",
    "learning_rate_scale",
    "learning_rate_search",
    "learning_rate_transfer",
    "mlp_depth",
    "optimizer_depth",
    "overlap_recursion",
    "reported_losses",
    "residual_depth",
    "residual_overlap",
    "training_length",
)


@pytest.mark.parametrize("name", UNCUT)
def test_no_verdict_is_cut(smoke_run, name):
    findings = sims.simulation(name).document(smoke_run(name)).findings
    assert [line for line in map(in_a_line, findings) if line.endswith("...") or "... (" in line] == []


def test_a_report_of_many_verdicts_and_rows_keeps_to_its_lines():
    rows = [[str(row), "1"] for row in range(200)]
    document = Document(
        question="what?", answer="this.", findings=[COMPUTED, DRAWN] * 40, parts=[table(["l", "x"], rows, "Many")]
    )
    lines = document.short().splitlines()
    assert len(lines) <= BRIEF
    assert lines[3] == "Verdicts: 40 CONFIRMED, 40 REFUTED"
    assert lines[4].split() == ["REFUTED", "slope", "1"]
    assert "  and 69 more (--full)" in lines
    assert [line.split()[0] for line in lines if line.split()[-1:] == ["1"]][-2:] == ["174", "199"]
    assert any("rows)" in line and line.startswith("Many (") for line in lines)


def test_nothing_is_lost_to_its_numbers(printed):
    """What a part, a row or a judge could not make would stand there as a reason."""
    for name, text in printed.items():
        assert UNMADE not in text, name
        assert "no verdict:" not in text, name


def test_every_simulation_with_a_report_is_among_them(printed):
    """All that print a report at all pass through `sims.common.report`."""
    without = {"check_recipe", "hyperparameters", "measure_model", "sweep"}
    assert {name.split("-")[0] for name in printed} == set(sims.NAMES) - without


def test_words_are_explained_once_where_they_are_used(printed):
    for name, text in printed.items():
        body, legend = text.split("\nWords\n")
        explained = re.findall(r"^  (\S.*?): ", legend, re.MULTILINE)
        assert len(explained) == len(set(explained)), name
        for word in ("s.e.", "allowance", "band", "minima", "mean field", "label term", "too few draws"):
            stands = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", " ".join(body.split())) is not None
            assert stands == (word in explained), (name, word)


def test_no_band_is_so_wide_that_it_says_nothing(printed):
    bands = [float(band) for text in printed.values() for band in re.findall(r"\bband\s+([\d.e+]*\d)", text)]
    assert len(bands) > 50
    assert max(bands) <= WIDEST_BAND
    assert any("too few draws; about" in " ".join(text.split()) for text in printed.values())


def test_a_report_has_its_parts_in_order():
    said = {"question": "is it so?", "answer": answer([DRAWN], "slope 2"), "words": {"table": "what it is."}}
    text = Document(**said, findings=[COMPUTED, DRAWN], parts=["a table"]).text()
    assert text.startswith("Question: is it so?\nAnswer:   No: slope 2.\n\nVerdicts\n")
    order = [
        text.index(part) for part in ("Verdicts", "slope 1", "rival: slope 2", "a table", "Words", "  table: what")
    ]
    assert order == sorted(order)
    assert "band: " in text


def test_an_answer_is_what_all_its_findings_say():
    assert answer([COMPUTED], "9 / 3") == f"{SAYS[Verdict.CONFIRMED]}: 9 / 3."
    assert answer([COMPUTED, DRAWN], "9 / 3").startswith(SAYS[Verdict.REFUTED])
    unknown = Finding("it rains", "it does not", Verdict.INCONCLUSIVE, "no window")
    assert answer([COMPUTED, unknown], "9 / 3").startswith(SAYS[Verdict.INCONCLUSIVE])


def test_long_lines_go_on_below():
    lines = Document(question="what?", answer="this.", parts=["  word " * 40]).text().splitlines()
    assert max(map(len, lines)) <= LINE
    assert sum(line.count("word") for line in lines) == 40


def test_words_that_are_not_used_are_not_explained():
    assert not used_words("three is a third of nine", {"half": "a second part"})
    assert set(used_words(DRAWN.evidence, {})) == {"s.e.", "allowance", "band", "rival", "worst"} <= set(STATISTICS)
    assert set(used_words("too few\n                draws", {})) == {"too few draws"}


def test_sources_are_those_of_the_citation():
    cited = " ".join((ROOT / "CITATION.cff").read_text().split())
    papers = {name: title.removesuffix(".") for name, title in SOURCES.items() if name != "docs/theory.md"}
    assert len(papers) == 4
    for name, title in papers.items():
        author, year = re.fullmatch(r"(\w+) et al\. (\d+)", name).groups()
        (entry,) = (entry for entry in cited.split("- type: article") if title in entry)
        assert f"family-names: {author}" in entry.partition("}")[0]
        assert f"year: {year}" in entry


def test_hyperparameters_are_reported_alike(capsys):
    sizes = ["--width", "4096", "--depth", "64", "--base-width", "256", "--base-depth", "4"]
    assert hyperparameters.main(["--optimizer", "muon", "--others", "adamw", *sizes]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= LINE
    assert lines[0].startswith("Question: ")
    assert lines[1].startswith("Answer:   ")
