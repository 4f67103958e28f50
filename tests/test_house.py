"""The rules of the house that a machine can check."""

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import meanfield as mf
from meanfield.quantities.registry import QUANTITIES

ROOT = Path(mf.__file__).parent.parent
MODULES = sorted(path for folder in ("meanfield", "sims", "figures") for path in (ROOT / folder).rglob("*.py"))

FORBIDDEN = {
    "meanfield/theory": ("meanfield.simulation", "meanfield.execution", "meanfield.verification", "sims", "figures"),
    "meanfield/simulation": ("meanfield.theory", "meanfield.execution", "meanfield.verification", "sims", "figures"),
    "meanfield/parameterizations": (
        "meanfield.theory",
        "meanfield.simulation",
        "meanfield.execution",
        "meanfield.verification",
        "sims",
        "figures",
    ),
    "meanfield/execution": ("meanfield.theory", "meanfield.verification", "sims", "figures"),
    "meanfield/verification": ("sims", "figures"),
    "meanfield": ("sims", "figures"),
    "figures": ("sims", "meanfield.simulation", "meanfield.theory", "meanfield.execution"),
}


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_within(module, package):
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_one_way(path):
    place = path.relative_to(ROOT).as_posix()
    for folder, forbidden in FORBIDDEN.items():
        if place.startswith(f"{folder}/"):
            assert not [name for name in _imports(path) if any(_is_within(name, f) for f in forbidden)]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_are_small(path):
    tree = ast.parse(path.read_text())
    assert len(path.read_text().splitlines()) <= 300
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            start = node.body[1].lineno if ast.get_docstring(node) and len(node.body) > 1 else node.lineno
            assert node.end_lineno - start <= 45, f"{node.name} is long"


# Words that say of a local that it is something, not what it is.
VAGUE = {"one", "found", "beside"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_locals_say_what_they_hold(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    bound = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert not (bound | {node.arg for node in nodes if isinstance(node, ast.arg)}) & VAGUE


OUTSIDE = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ("sims", "figures")]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda p: str(p.relative_to(ROOT)))
def test_simulations_and_figures_live_on_tables_of_contents(path):
    """They import rooms of the library, or names that a room lists, and no module inside a room."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and _is_within(node.module, "meanfield"):
            listed = import_module(node.module).__all__
            rooms = {room.name for room in (ROOT / "meanfield").iterdir() if room.is_dir()}
            assert node.module.count(".") <= 1
            assert {alias.name for alias in node.names} <= {*listed, *(rooms if node.module == "meanfield" else ())}


STUDIES = [path for path in MODULES if path.relative_to(ROOT).parts[0] == "sims"]
# What gathers runs of other simulations has them by name.
GATHERERS = ("claims", "sweep")


@pytest.mark.parametrize("path", STUDIES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_study_is_one_room(path):
    """Of `sims`, a study knows its own folder and `sims.common`, which knows no study."""
    folder = path.relative_to(ROOT).parts[1]
    known = ["sims.common", f"sims.{folder}"]
    others = {name for name in _imports(path) if _is_within(name, "sims")}
    others -= {"sims", "sims.simulation"} if folder in GATHERERS else set()
    assert {name for name in others if not any(_is_within(name, own) for own in known)} == set()


FULL = 12
FOLDERS = sorted({path.parent for path in MODULES} - {ROOT / "sims", ROOT / "figures"})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_folder_is_crowded(folder):
    """But `sims/` and `figures/`, which have an entry for every simulation."""
    entries = [path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    assert len([path for path in entries if path.name != "__init__.py"]) <= FULL


def test_public_names_are_documented():
    for name in mf.__all__:
        thing = getattr(mf, name)
        if callable(thing):
            assert thing.__doc__
            assert len(thing.__doc__) > 100, f"{name} needs meaning, equation, shapes, errors and source"


@pytest.mark.parametrize("table", sorted((ROOT / "meanfield").rglob("__init__.pyi")), ids=lambda p: p.parent.name)
def test_no_listed_name_is_hidden_by_a_module_of_the_same_name(table):
    """A module that is loaded becomes an attribute of its package, in place of what a table of contents lists."""
    lines = [line for line in ast.parse(table.read_text()).body if isinstance(line, ast.ImportFrom)]
    listed = {alias.name: line.module for line in lines for alias in line.names}
    modules = {path.stem for path in table.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert {name for name, home in listed.items() if home} & modules == set()


def test_unknown_public_names_list_the_known_ones():
    with pytest.raises(AttributeError, match="predict"):
        _ = mf.forecast


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES.keys())
def test_every_quantity_is_fully_described(quantity):
    assert all([quantity.symbol, quantity.definition, quantity.scaling, quantity.source])


def test_every_folder_of_code_is_a_package_that_is_installed():
    """What is installed is found by its top folder's name, as far down as folders say that they are packages."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    folders = {path.parent for path in MODULES}
    assert {f"{folder.relative_to(ROOT).parts[0]}*" for folder in folders} == set(packages)
    assert all((folder / "__init__.py").exists() for folder in folders)


# A section may follow on the next line.
REFERENCE = re.compile(r"docs/theory\.md\s+sections?\s+(\d+(?:(?:,|\s+and)\s+\d+)*)")
REFERRING = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "docs").glob("*.md"))]


def test_sections_of_the_theory_that_are_named_are_there():
    """In docstrings, and in the sources of quantities, which datasets carry."""
    theory = (ROOT / "docs" / "theory.md").read_text()
    sections = [int(number) for number in re.findall(r"^## (\d+)\. \S", theory, re.MULTILINE)]
    assert sections == list(range(1, len(sections) + 1))
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in REFERRING}
    named = {name: _numbers(" ".join(REFERENCE.findall(text))) for name, text in texts.items()}
    assert {
        name: sorted(sections_named - {*sections})
        for name, sections_named in named.items()
        if sections_named - {*sections}
    } == {}
    assert set().union(*named.values()) | _numbers(" ".join(re.findall(r"\(sections? ([\d, ]+)\)", theory))) <= {
        *sections
    }
    sources = " ".join(quantity.source for quantity in QUANTITIES.values())
    assert sources.count("docs/theory.md") == len(REFERENCE.findall(sources)) > 0


def _numbers(text):
    return {int(number) for number in re.findall(r"\d+", text)}


FAMILIES = {"MLP", "ConvNet", "ResidualMLP", "ResidualConvNet", "TiedLoop", "BlockNet", "Transformer"}


ROADS = [path for path in MODULES if path.relative_to(ROOT).parts[1] in ("simulation", "theory")]


@pytest.mark.parametrize("path", ROADS, ids=lambda p: str(p.relative_to(ROOT)))
def test_neither_road_names_a_family(path):
    """A new family is a new list of units, not a new engine: who draws or predicts reads the list, or a form of it."""
    tree = ast.parse(path.read_text())
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not named & FAMILIES


def test_no_module_imports_itself_by_way_of_others():
    """But for the table of contents, which loads what it names when it is asked for."""
    names = {_module(path): path for path in MODULES if path.name != "__init__.py"}
    arrows = {
        name: {imported for imported in _imports(path) if imported in names} - {name} for name, path in names.items()
    }
    while arrows:
        last = {name for name, imported in arrows.items() if not imported & set(arrows)}
        assert last, f"a circle among {sorted(arrows)}"
        arrows = {name: imported for name, imported in arrows.items() if name not in last}


def _module(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)
