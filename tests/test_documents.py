"""What the documents show runs as pasted: Python blocks whole, commands as far as their checks before any work."""

import ast
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pytest

import meanfield as mf
from figures._command import draw_all
from meanfield.execution.workers import Workers
from meanfield.quantities.registry import QUANTITIES
from meanfield.simulation.maps import OPERATIONS
from meanfield.theory.maps import TRANSPORTS
from sims import simulation as simulation_module
from sims.claims.catalogue import CLAIMS
from sims.common import study
from sims.common.command import check_command
from sims.common.tables import LINE
from sims.learning_rate_scale.__main__ import STUDY as learning_rate_scale
from sims.sweep import check_points, read_plan

ROOT = Path(mf.__file__).parent.parent
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
}
README = DOCUMENTS["README.md"]
PYTHON = {name: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for name, text in DOCUMENTS.items()}
# A command ends with its line, a comment or the backquote that closes it.
COMMANDS = sorted(
    {command.strip() for text in DOCUMENTS.values() for command in re.findall(r"python -m ([^`\n#]+)", text)}
)
# Names that stand for one of many.
PLACEHOLDERS = {"sims.NAME": "sims.looped_update", "NAME": "reported_losses"}
# What has nothing to do without a model.
OF_A_MODEL = ("sims.measure_model",)
PRINTS_ONLY = ("sims.hyperparameters", "sims.learning_rate_scale --transfer")


# What a how-to has a warning of, and says so.
@pytest.mark.filterwarnings("ignore:whether one step says how rates of nets with batch normalisation go over depth")
# But the tutorial, whose cells `tests/test_tutorial.py` runs.
@pytest.mark.parametrize("name", [name for name, blocks in PYTHON.items() if blocks and name != "docs/tutorial.md"])
def test_python_blocks_run_as_pasted(name, tmp_path, monkeypatch):
    """All blocks of a document one after the other, with nothing defined before them."""
    if any("import torch" in block for block in PYTHON[name]):
        pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with patch.dict(QUANTITIES), patch.dict(OPERATIONS), patch.dict(TRANSPORTS):  # to which guides add their examples
        for block in PYTHON[name]:
            exec(compile(block, name, "exec"), names)


def test_no_block_of_code_is_left_out():
    """Blocks are Python, which runs here, or indented commands; what a run prints is a block without a language."""
    languages = {language for text in DOCUMENTS.values() for language in re.findall(r"^```(\w+)$", text, re.MULTILINE)}
    assert languages == {"python"}
    unfenced = re.sub(r"^```.*?^```$", "", "\n".join(DOCUMENTS.values()), flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^    (?:import|from|[a-z_]+ =) .*$", unfenced, re.MULTILINE)
    assert indented == []


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_accepted(command, tmp_path, monkeypatch):
    module, *arguments = (PLACEHOLDERS.get(word, word) for word in shlex.split(command))
    assert find_spec(module) is not None
    if module == "figures":
        assert draw_all([*arguments, "--preset", "smoke", "--folder", str(tmp_path)]) == 0
    elif module == "benchmarks":
        shown = subprocess.run(
            [sys.executable, "-m", module, "--help"], capture_output=True, text=True, cwd=ROOT
        ).stdout
        assert all(word in shown for word in arguments if word.startswith("--"))
    elif module.startswith("sims."):
        if module in OF_A_MODEL:
            pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(study, "run_key", lambda **_: "key")  # it refuses nothing, and reads every weight
        _accepted(module, arguments)


def _accepted(module, arguments):
    """Everything that a simulation refuses is refused before its work; without options some have nothing to do."""
    simulation = simulation_module(module.removeprefix("sims."))
    if " ".join([module, *arguments]).startswith(PRINTS_ONLY):
        assert not arguments or simulation.main(arguments) == 0
    elif module == "sims.sweep":
        check_points(read_plan(Path(arguments[1] if arguments else "docs/sweep.toml")), Workers(1))
    elif module == "sims.check_recipe":  # which reads files of its user
        simulation.parse([*arguments, "target.json", "--base", "base.json"])
    elif "--help" not in arguments and (arguments or module not in OF_A_MODEL):
        options = simulation.parse(arguments)
        if module != "sims.claims":
            check_command(simulation.run, options, Workers(1))


def test_files_that_are_named_are_there():
    """Files, folders and modules, wherever a document names them."""
    words = "\n".join(DOCUMENTS.values())
    named = set(re.findall(r"\b(?:benchmarks|docs|figures|meanfield|sims|tests)/[\w/.]*\w/?", words))
    assert len(named) > 100
    assert sorted(name for name in named if not (ROOT / name).exists()) == []
    modules = set(re.findall(r"\b(?:meanfield|sims|tests|figures)(?:\.\w+)+", words)) - {"sims.NAME"}
    if find_spec("torch") is None:  # without which this module is not imported, and its names are not looked up
        modules = {name for name in modules if not name.startswith("meanfield.torch.")}
    assert sorted(name for name in modules if not _is_there(name)) == []


def _is_there(name):
    """Whether it is a module, or a name that a module or a class in it has; the last module is not imported."""
    place, *rest = name.split(".")
    thing = import_module(place)
    for left, word in zip(range(len(rest) - 1, -1, -1), rest, strict=True):
        place = f"{place}.{word}"
        if not hasattr(thing, word) and find_spec(place) is None:
            return False
        if left:
            thing = getattr(thing, word) if hasattr(thing, word) else import_module(place)
    return True


LINKS = sorted({(name, link) for name, text in DOCUMENTS.items() for link in re.findall(r"\]\(([^)\s]+)\)", text)})


@pytest.mark.parametrize(("name", "link"), [pair for pair in LINKS if not pair[1].startswith("https://")])
def test_links_lead_somewhere(name, link):
    """Links within the project: the file is there, and has the heading."""
    target, _, anchor = link.partition("#")
    path = (ROOT / name).parent / target if target else ROOT / name
    assert path.exists()
    assert not anchor or anchor in _anchors(path.read_text())


def _anchors(text):
    """Of the headings of a document, as both the site and its host make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links_to_the_web_are_few():
    """To papers and to the documentation of tools, by their own addresses."""
    hosts = {link.split("/")[2] for _, link in LINKS if link.startswith("https://")}
    assert hosts <= {"arxiv.org", "openreview.net", "distributed.dask.org"}


def test_papers_go_by_name_and_year():
    """One line of the list of papers says which letter older datasets used."""
    lettered = {name: re.findall(r"\bP[0-3]\b.*", text) for name, text in DOCUMENTS.items()}
    assert len(lettered.pop("docs/papers.md")) == 1
    assert {name: lines for name, lines in lettered.items() if lines} == {}


def test_every_claim_stands_beside_a_study_that_decides_it():
    """By the page of verdicts; its entry is in a file of that study, or, if several decide it, in the catalogue."""
    rows = re.findall(r"^\| `sims\.(\w+)` \|.*\| ([AELOST]\d.*?) \|$", DOCUMENTS["docs/verdicts.md"], re.MULTILINE)
    listed = {(name, study) for study, names in rows for name in names.split(", ")}
    assert listed == {(name, check.simulation) for name, claim in CLAIMS.items() for check in claim.checks}
    files = {path.relative_to(ROOT / "sims"): path.read_text() for path in (ROOT / "sims").rglob("*.py")}
    stated = {
        (name, file.parts[0].removesuffix(".py"))
        for file, text in files.items()
        for name in re.findall(r'^ +id="(\w+)"', text, re.MULTILINE)
    }
    several = {name for name, study in stated if study == "claims"}
    assert {pair for pair in stated if pair[0] not in several} <= listed
    assert all(len({study for name, study in listed if name == shared}) > 1 for shared in several)
    assert {name for name, _ in stated} == set(CLAIMS)


def test_the_page_of_verdicts_is_the_recorded_one(tmp_path, capsys):
    """As `python -m sims.claims --page docs/verdicts.md` writes it."""
    written, page = tmp_path / "verdicts.md", DOCUMENTS["docs/verdicts.md"]
    assert simulation_module("claims").main(["--page", str(written)]) == 0
    assert str(written) in capsys.readouterr().out
    assert page == written.read_text()
    assert re.findall(r"^\| ([AELOST]\d+[a-z]?) \|", page, re.MULTILINE) == list(CLAIMS)


def test_the_readme_counts_claims_and_papers():
    """Claims to the ten below, so that it stays right where studies are added."""
    ((claims, papers),) = re.findall(r"judges some (\d+) claims,\s+most of them from\s+(\w+) papers", README)
    sources = {source for claim in CLAIMS.values() for source in re.findall(r"\w+ et al\. \d{4}", claim.source)}
    assert (int(claims), papers) == (len(CLAIMS) // 10 * 10, {3: "three", 4: "four", 5: "five"}[len(sources)])


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_the_commands_set_themselves_up():
    setup = 'python3 -m venv .venv && .venv/bin/python -m pip install -e ".[test]" && .venv/bin/python -m '
    assert re.findall(rf"^    {re.escape(setup)}(\S+)(?: .+)?$", README, re.MULTILINE) == ["sims.cnn_overlap", "pytest"]


def test_the_command_and_the_library_carry_one_rate(capsys):
    """README's transfer by command and in a few lines is of one net, and prints the number that stands there."""
    (command,) = re.findall(r"^    python -m sims\.learning_rate_scale (--transfer .*)$", README, re.MULTILINE)
    assert learning_rate_scale.main(shlex.split(command)) == 0
    printed = capsys.readouterr().out
    names = {}
    (block,) = (block for block in PYTHON["README.md"] if "explain_transfer" in block)
    exec(block, names)
    rate = f"{names['transfer'].rate:.4g}"
    assert capsys.readouterr().out.startswith(f"{rate} by rule finite_depth\n")
    assert f"# {rate} by rule finite_depth" in block
    assert f"prints {rate}, with the reason" in README
    assert f"{rate}, by rule 'finite_depth'" in printed


def test_pasted_reports_are_as_short_as_printed_ones():
    (report,) = re.findall(r"^```\n(Question: .*?)^```", DOCUMENTS["docs/findings.md"], re.DOTALL | re.MULTILINE)
    assert max(map(len, report.splitlines())) <= LINE


# Sections of entries that begin with names; their other lines are indented further, or the site takes them for entries.
ENTRIES = re.compile(r"^(?:Args|Attributes|Raises|Warns):\n((?: {4}.*\n?)+)", re.MULTILINE)
ENTRY = re.compile(r"    (?: |\w+(?:, \w+)*:(?: |$))")
SECOND_ERROR = re.compile(r"\. \w+(?:Error|Warning)(?:, \w+Error)*: ")


def _lost(docstring):
    """Lines of entries that the site would drop or misread: no names begin them, or the entry of a second error."""
    lines = [line for section in ENTRIES.findall(docstring) for line in section.splitlines()]
    return [line for line in lines if not ENTRY.match(line) or SECOND_ERROR.search(line)]


def test_no_entry_of_a_docstring_is_lost_on_the_site():
    lost = []
    for path in (ROOT / "meanfield").rglob("*.py"):
        nodes = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        lost += [(path, line) for node in nodes for line in _lost(ast.get_docstring(node) or "")]
    assert lost == []


def test_entries_that_the_site_loses_are_found():
    assert _lost("It is so.\n\nRaises:\n    ValueError: a width\n    of zero.\n") == ["    of zero."]
    assert _lost("It is so.\n\nRaises:\n    ValueError: zero. MemoryError: too much.\n") != []
    assert _lost("It is so.\n\nArgs:\n    width, depth: counts,\n        in all.\n    rule:\n        any.\n") == []
