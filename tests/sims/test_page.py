"""The page of a run: one file that loads nothing, says all that the report says, and is made again where it is lost."""

import base64
import re
import shutil
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
import xarray as xr

from meanfield.verification import Finding, Verdict
from sims.common.markup import Glossary, table_html
from sims.common.page import LARGEST_PICTURE, SCRIPT, STYLE, figure_html, report_page, run_page
from sims.common.report import STATISTICS, Document
from sims.common.results import Results
from sims.common.study import Study
from sims.common.tables import table
from sims.looped_update import STUDY as looped_update

# Elements that have no end.
VOID = {"meta", "link", "input", "img", "br"}
HARMFUL = '<script>alert("1")</script><img src=x onerror=alert(1)>\' "&amp;'
ARGUMENTS = ["--loops", "2", "4", "--width", "8", "--draws", "4", "--workers", "1"]


class Page(HTMLParser):
    """Elements with their attributes and text; AssertionError where one ends that did not begin last."""

    def __init__(self, html):
        super().__init__()
        self.elements, self._open = [], []
        assert html.startswith("<!doctype html>\n")
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        element = {"tag": tag, "attrs": dict(attrs), "text": "", "inside": [parent["tag"] for parent in self._open]}
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, tag, **attrs):
        return [found for found in self.elements if found["tag"] == tag and attrs.items() <= found["attrs"].items()]

    def texts(self, tag, **attrs):
        return [" ".join(found["text"].split()) for found in self.all(tag, **attrs)]


FINDINGS = [
    Finding("slope 1 (Zhang et al. 2026)", "slope 2", Verdict.CONFIRMED, "worst 0.1 s.e., rival 9.0, band 7"),
    Finding("slope 2", "slope 1", Verdict.REFUTED, "worst 9.0 s.e., rival 0.1, band 7"),
    Finding(HARMFUL, HARMFUL, Verdict.INCONCLUSIVE, HARMFUL),
]
GRID = table(
    ["layer", ["drawn", "s.e."], "law"], [["1", "0.5 +- 0.1", "-1.2", "a"], ["2", "-", "", HARMFUL]], "By layer"
)
DOCUMENT = Document(
    question=f"is it so, {HARMFUL}?",
    answer=f"No: {HARMFUL}.",
    heading="one net\ntwo lines",
    findings=FINDINGS,
    parts=[GRID, f"A note: {HARMFUL}."],
    steps=[("--times 4", "draws enough")],
    words={"layer": f"what is stacked, {HARMFUL}"},
)
DATASET = xr.Dataset(
    {"energy": ("depth", [1.0, 2.0], {"long_name": HARMFUL, "units": "1"})},
    {"depth": [4, 8]},
    {
        "command": f"python -m sims.NAME --input '{HARMFUL}'",
        "draws": 8,
        "seed": "3",
        "run": "0a1b",
        "provenance": '{"code": "0123", "versions": {"meanfield": "0.1.0", "numpy": "2.4.6"}}',
        "made": '{"machine": "2 cores, a kind", "processor_seconds": 81.5}',
    },
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 1"><path style="fill: red" d="M 0 0 L 1 1"/></svg>'


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "a <b> 'run'.nc"
    return run_page(DOCUMENT, DATASET, path, figure_html(SVG, "svg", f"Figure: {HARMFUL}"))


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_a_page_says_what_its_report_says(page):
    assert page.texts("title") == page.texts("h1") == [f"is it so, {HARMFUL}?"]
    headings = ["Verdicts", "Figure", "Tables", "What to run next", "How it was made", "Data", "Words"]
    assert page.texts("h2") == headings
    assert page.texts("p", **{"class": "answer"}) == [f"No: {HARMFUL}."]
    cells = page.texts("td")
    for finding in FINDINGS:
        assert {str(finding.verdict), finding.claim, finding.rival, finding.evidence} <= set(cells)
    assert {cell for row in GRID.rows for cell in row} <= set(cells)
    assert f"A note: {HARMFUL}." in page.texts("p")
    assert {"--times 4", f"python -m sims.NAME --input '{HARMFUL}'"} <= set(page.texts("code"))
    assert {"draws", "8", "seed", "3", "version of numpy", "2.4.6", "0123"} <= {*page.texts("dt"), *page.texts("dd")}
    assert {"machine", "2 cores, a kind", "processor seconds", "81.5"} <= {*page.texts("dt"), *page.texts("dd")}


def test_a_page_says_how_to_open_its_dataset(page):
    (opened,) = (code for code in page.texts("code") if "open_dataset" in code)
    assert opened == """import xarray as xr dataset = xr.open_dataset("a <b> 'run'.nc") dataset["energy"]"""
    compile(next(found["text"] for found in page.all("code") if "open_dataset" in found["text"]), "shown", "exec")
    assert page.all("details")
    assert {"energy", "depth (2)", HARMFUL} <= set(page.texts("td"))


def test_what_comes_with_the_data_does_nothing(page):
    """No element and no attribute is of its making."""
    assert [found["text"] for found in page.all("script")] == [SCRIPT]
    assert [found["attrs"]["alt"] for found in page.all("img")] == [f"Figure: {HARMFUL}"]
    assert not [name for found in page.elements for name in found["attrs"] if name.startswith("on")]


def test_a_page_loads_nothing_and_obeys_its_own_policy(html, page):
    """The digests are those of the style and the script as they stand; nothing else is styled or run."""
    (policy,) = (found["attrs"]["content"] for found in page.all("meta") if "http-equiv" in found["attrs"])
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert allowed["default-src"] == "'none'"
    for tag, written in (("style", STYLE), ("script", SCRIPT)):
        (carried,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(sha256(carried.encode()).digest()).decode()
        assert carried == written
        assert allowed[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not [found for found in page.elements if "style" in found["attrs"]]
    assert not [found for found in page.all("script") if found["attrs"]]
    sources = [found["attrs"][name] for found in page.elements for name in ("src", "href") if name in found["attrs"]]
    assert [source for source in sources if not source.startswith(("#", "data:"))] == []
    assert "://" not in html
    assert "@import" not in STYLE
    assert not re.search(r"\b(eval|Function|fetch|XMLHttpRequest|innerHTML|import)\b", SCRIPT)


def test_the_figure_stands_in_the_page_as_a_picture(page):
    (image,) = page.all("img")
    kind, _, content = image["attrs"]["src"].partition(";base64,")
    assert (kind, base64.b64decode(content)) == ("data:image/svg+xml", SVG)
    assert [found["attrs"]["data-zoom"] for found in page.all("button") if "data-zoom" in found["attrs"]] == [
        "in",
        "out",
        "fit",
    ]


def test_links_lead_to_something(page):
    ids = [found["attrs"]["id"] for found in page.elements if "id" in found["attrs"]]
    assert len(ids) == len(set(ids))
    for found in page.all("a"):
        assert found["attrs"]["href"].removeprefix("#") in ids
    for found in page.elements:
        assert set(found["attrs"].get("aria-describedby", "").split()) <= set(ids)
        assert {f"word-{number}" for number in found["attrs"].get("data-word", "").split()} <= set(ids)


def test_every_header_is_a_button_and_columns_of_numbers_say_so(page):
    heads = page.all("th")
    buttons = [found for found in page.all("button") if found["inside"][-1] == "th"]
    assert len(heads) == len(buttons) > 8
    kinds = {found["text"]: found["attrs"].get("class") for found in heads}
    assert (kinds["layer"], kinds["drawn"], kinds["s.e."]) == ("number",) * 3
    assert (kinds["law"], kinds["claim"]) == (None, None)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", "2", "-"], True),
        (["0.5 +- 0.1", "1.000e+400 +- 2e+398"], True),
        (["-3/2", "+1", "exponential"], True),
        (["50%", "3 .. 30", "+0.003 +- 0.032 (-0.02)"], True),
        (["41 %", "0.097 %"], True),
        (["1,024", "113,504"], True),
        (["1,2", "3,4"], False),
        (["1.50 *", "0.28", "1.41 *"], True),
        (["2 of 8", "6 of 8"], True),
        (["-1.3", "not converged", "not converged", "not converged"], True),
        (["8 x 8", "32 x 32"], False),
        (["1D ReLU", "2D ReLU"], False),
        (["slope", "4", "exponent"], False),
        (["-", ""], False),
        ([], False),
    ],
)
def test_columns_are_of_numbers_where_words_only_say_why_there_is_none(cells, numbers):
    grid = table(["name"], [[cell] for cell in cells])
    assert ('<th class="number">' in table_html(grid, Glossary({}))) == numbers


def test_options_with_their_reasons_stand_below_each_other_on_telephones():
    """Beside a long command there is no room: its reason had one letter a line."""
    telephone = STYLE.partition("@media (max-width: 40rem)")[2].partition("@media")[0]
    assert "  .short { display: block; }\n" in telephone
    assert "grid-template-columns: fit-content(50%) 1fr" in STYLE


def test_words_are_explained_where_they_stand(page):
    explained = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert explained["s.e."] == STATISTICS["s.e."]
    assert explained["layer"] == f"what is stacked, {HARMFUL}"
    number = next(found for found in page.all("dd") if found["text"] == STATISTICS["s.e."])["attrs"]["id"][5:]
    assert page.texts("span", **{"data-word": number}) == ["s.e."] * 2
    assert page.texts("button", **{"data-word": number}) == ["s.e."]
    assert "not converged" not in explained
    assert [found["inside"][-1] for found in page.all("a", **{"class": "word"})] == ["h3"]  # "By layer"


def test_words_in_prose_lead_to_their_explanation():
    marked = Glossary({"mean field": "the limit", "mean": "half of <it>"}).prose("the mean\n  field, its mean; meaning")
    words = re.findall(r'<a class="word" href="#word-(\d)" data-word="\1">([^<]+)</a>', marked)
    assert words == [("1", "mean\n  field"), ("2", "mean")]
    assert marked.endswith("</a>; meaning")


def test_words_that_mean_something_first_alone_are_plain_elsewhere():
    """As the kinds of claims: "own" is a kind, and nothing is explained in "its own features"."""
    glossary = Glossary({"own": "no source says it", "as stated": "the source says it", "rate": "eta"}, first=["own"])
    marked = [re.findall(r">([^<]+)<", glossary.cell(text)) for text in ("own", "own: a rate", "its own rate", "owner")]
    assert marked == [["own"], ["own", ": a ", "rate"], ["rate"], []]


def test_verdicts_can_be_chosen(page):
    boxes = [found["attrs"]["class"] for found in page.all("input")]
    assert boxes == ["confirmed", "refuted", "inconclusive"]
    assert page.texts("label") == ["CONFIRMED 1", "REFUTED 1", "INCONCLUSIVE 1"]
    for box in boxes:
        assert f"section:has(input.{box}:not(:checked)) tr:has(.verdict.{box})" in STYLE
        assert [found["inside"][-1] for found in page.all("span", **{"class": f"verdict {box}"})] == ["label", "td"]


def test_the_table_that_is_printed_stands_first():
    brief = table(["a"], [["b"]], "Brief")
    documents = (Document(question="q?", answer="a.", parts=parts, brief=brief) for parts in ([GRID], [GRID, brief]))
    assert [Page(report_page(document)).texts("h3") for document in documents] == [
        ["Brief", "By layer"],
        ["By layer", "Brief"],
    ]


def test_a_report_alone_is_a_page():
    """As --format html prints it: no figure and no dataset."""
    page = Page(report_page(Document(question="q?", answer="a.")))
    assert (page.texts("h2"), page.texts("h1")) == ([], ["q?"])


# What commands write.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with its figure."""
    folder = tmp_path_factory.mktemp("run")
    assert looped_update.main([*ARGUMENTS, "--out", str(folder / "run.nc")]) == 0
    return folder


def test_a_command_writes_a_small_page_beside_its_dataset(folder):
    html = (folder / "run.html").read_text()
    page = Page(html)
    assert len(html.encode()) < 2_000_000
    assert "Figure" in page.texts("h2")
    (source,) = (found["attrs"]["src"] for found in page.all("img"))
    assert b"</svg>" in base64.b64decode(source.partition(",")[2])
    assert "python -m sims.looped_update " + " ".join(ARGUMENTS[:-2]) in page.texts("code")


def test_what_is_lost_is_made_again_and_what_is_there_kept(folder, monkeypatch, capsys):
    drawn = []

    def counted(study, dataset, kinds):
        drawn.append(list(kinds))
        return dict.fromkeys(kinds, b"again")

    monkeypatch.setattr(Study, "pictures", counted)
    path, whole = folder / "run.nc", (folder / "run.html").read_text()
    for lost in ("html", "png", ""):
        (folder / f"run.{lost}").unlink(missing_ok=True)
        assert looped_update.main([*ARGUMENTS, "--out", str(path)]) == 0
        assert f"page     {folder / 'run.html'}\n" in capsys.readouterr().out
    assert drawn == [["svg"], ["png"]]
    assert (folder / "run.png").read_bytes() == b"again"
    again = (folder / "run.html").read_text()
    assert base64.b64encode(b"again").decode() in again
    cut = re.compile(r'src="data:image[^"]*"')
    assert cut.sub("", again) == cut.sub("", whole)


@pytest.fixture
def path(folder, tmp_path):
    """A finished dataset of one's own, without figure and page."""
    return Path(shutil.copy(folder / "run.nc", tmp_path))


def test_a_figure_that_cannot_be_drawn_leaves_its_reason_on_the_page(path, monkeypatch, capsys):
    def fails(*_):
        raise ValueError("<no> line")

    monkeypatch.setattr(Study, "pictures", fails)
    assert looped_update.main([*ARGUMENTS, "--out", str(path)]) == 0
    assert "figure   figure: cannot be made of these numbers: <no> line\npage     /" in capsys.readouterr().out
    page = Page(path.with_suffix(".html").read_text())
    assert "figure: cannot be made of these numbers: <no> line" in page.texts("p")
    assert not path.with_suffix(".png").exists()


def test_a_page_that_cannot_be_made_loses_nothing(path, monkeypatch, capsys):
    def fails(*_):
        raise ValueError("no page")

    monkeypatch.setattr(Study, "pictures", lambda study, dataset, kinds: dict.fromkeys(kinds, b""))
    monkeypatch.setattr(Results, "keep_page", fails)
    assert looped_update.main([*ARGUMENTS, "--out", str(path)]) == 0
    assert capsys.readouterr().out.endswith("page     page: cannot be made of these numbers: no page\n")
    assert path.exists()
    assert path.with_suffix(".png").exists()


def test_a_figure_too_large_to_look_into_is_shown_by_its_pixels(path, monkeypatch):
    large = {"png": b"pixels", "svg": b"<" * (LARGEST_PICTURE + 1)}
    monkeypatch.setattr(Study, "pictures", lambda study, dataset, kinds: {kind: large[kind] for kind in kinds})
    assert looped_update.main([*ARGUMENTS, "--out", str(path)]) == 0
    html = path.with_suffix(".html").read_text()
    assert f"data:image/png;base64,{base64.b64encode(b'pixels').decode()}" in html


def test_a_page_of_something_else_is_not_replaced(tmp_path, capsys):
    (tmp_path / "run.html").write_text("mine")
    assert looped_update.main([*ARGUMENTS, "--out", str(tmp_path / "run.nc")]) == 2
    assert f"error: {tmp_path / 'run.html'} was not written by this run" in capsys.readouterr().err
    assert (tmp_path / "run.html").read_text() == "mine"
    assert not (tmp_path / "run.nc").exists()


def test_forms_for_other_programs_are_printed_alone(folder, capsys):
    """Where the files are, and that they are read, is said on the error stream."""
    assert looped_update.main([*ARGUMENTS, "--out", str(folder / "run.nc"), "--format", "html"]) == 0
    said = capsys.readouterr()
    assert Page(said.out).texts("h2") == ["Verdicts", "Tables", "Words"]
    assert said.err.startswith("reading the finished run")
    assert "page     " in said.err


def test_the_largest_page_of_the_smoke_runs_is_small(smoke):
    """Without figures; one with the largest picture stays below 2 MB."""
    sizes = {path.name: path.stat().st_size for path in smoke.glob("*.html") if path.name != "verdicts.html"}
    assert len(sizes) == len(list(smoke.glob("*.nc")))
    assert max(sizes.values()) + LARGEST_PICTURE * 4 / 3 < 2_000_000
    for name in sizes:
        Page((smoke / name).read_text())
    Page((smoke / "verdicts.html").read_text())
