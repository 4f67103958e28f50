"""The rules of the house that a machine can check."""

import ast
import re
import tomllib
from functools import cache
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
    "meanfield/torch": ("meanfield.theory", "meanfield.execution", "sims", "figures"),
    "meanfield": ("sims", "figures"),
    "figures": ("sims", "meanfield.simulation", "meanfield.theory", "meanfield.execution"),
}


@cache
def _nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


def _by_place(faults_of, paths=MODULES):
    """Path of a module, from the root -> what is wrong there, of modules where something is."""
    faults = {path.relative_to(ROOT).as_posix(): faults_of(path) for path in paths}
    return {place: wrong for place, wrong in faults.items() if wrong}


def _imports(path):
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_within(module, package):
    return module == package or module.startswith(f"{package}.")


def test_imports_run_one_way():
    def against(path):
        above = [names for folder, names in FORBIDDEN.items() if path.is_relative_to(ROOT / folder)]
        return [name for name in _imports(path) if any(_is_within(name, other) for names in above for other in names)]

    assert _by_place(against) == {}


# What loads PyTorch: the bridge to it, and what a command loads once it is to measure a model.
OF_PYTORCH = ("meanfield/torch", "sims/measure_model/measured.py")


def test_few_places_need_pytorch():
    """It is an extra, which nothing else of the library loads."""

    def loaded(path):
        return [name for name in _imports(path) if _is_within(name, "torch") or _is_within(name, "meanfield.torch")]

    others = [path for path in MODULES if not any(path.is_relative_to(ROOT / place) for place in OF_PYTORCH)]
    assert _by_place(loaded, others) == {}


def test_rooms_are_small():
    assert _by_place(lambda path: len(path.read_text().splitlines()) > 700) == {}


def test_functions_are_short():
    def long(path):
        functions = [node for node in _nodes(path) if isinstance(node, ast.FunctionDef)]
        return [function.name for function in functions if function.end_lineno - _first_line(function) > 70]

    assert _by_place(long) == {}


def _first_line(function):
    """Below the docstring, if there is one."""
    has_docstring = ast.get_docstring(function) and len(function.body) > 1
    return function.body[1].lineno if has_docstring else function.lineno


# Words that say of a local that it is something, not what it is.
VAGUE = {"one", "found", "beside"}


def _kinds_defined(path):
    """Names of classes and types at the top of a module, which are written in CapWords."""
    body = ast.parse(path.read_text()).body
    classes = [node.name for node in body if isinstance(node, ast.ClassDef)]
    named = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    types = [name.id for name in named if isinstance(name, ast.Name) and re.match(r"[A-Z][A-Za-z]*[a-z]", name.id)]
    return [name for name in classes + types if not name.startswith("_")]


def test_a_class_or_type_has_one_meaning():
    """No two modules define one under the same name."""
    homes = {}
    for path in MODULES:
        for name in _kinds_defined(path):
            homes.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
    assert {"Net", "Claim", "InputsAndTargets"} <= set(homes)


def test_locals_say_what_they_hold():
    def vague(path):
        bound = {node.id for node in _nodes(path) if isinstance(node, ast.Name)}
        return (bound | {node.arg for node in _nodes(path) if isinstance(node, ast.arg)}) & VAGUE

    assert _by_place(vague) == {}


OUTSIDE = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ("sims", "figures")]


def test_simulations_and_figures_live_on_tables_of_contents():
    """They import rooms of the library, or names that a room lists, and no module inside a room."""
    rooms = {room.name for room in (ROOT / "meanfield").iterdir() if room.is_dir()}

    def unlisted(path):
        imports = [node for node in _nodes(path) if isinstance(node, ast.ImportFrom) and node.module]
        for node in (node for node in imports if _is_within(node.module, "meanfield")):
            if node.module.count(".") > 1:
                yield node.module
                continue
            listed = {*import_module(node.module).__all__, *(rooms if node.module == "meanfield" else ())}
            yield from ({alias.name for alias in node.names} - listed)

    assert _by_place(lambda path: list(unlisted(path)), OUTSIDE) == {}


STUDIES = [path for path in MODULES if path.relative_to(ROOT).parts[0] == "sims"]


def test_every_study_is_one_room():
    """Of `sims`, a study knows its own module or folder and `sims.common`, which knows no study but by name."""

    def strangers(path):
        folder = path.relative_to(ROOT).parts[1].removesuffix(".py")
        known = ["sims.common", f"sims.{folder}"]
        others = {name for name in _imports(path) if _is_within(name, "sims")}
        if folder == "claims":  # an index over all studies
            return set()
        others -= {"sims", "sims.simulation", "sims.NAMES"} if folder in ("sweep", "common") else set()
        others -= {"sims", "sims.listed", "sims.NAMES"} if folder == "__main__" else set()
        return {name for name in others if not any(_is_within(name, own) for own in known)}

    assert _by_place(strangers, STUDIES) == {}


def test_maps_are_asked_and_not_recognised():
    """What a map is stands in its class, and what it does in two tables: nobody asks whether it is of some class."""
    maps = {node.name for node in _nodes(ROOT / "meanfield/nets/maps.py") if isinstance(node, ast.ClassDef)} - {"Map"}

    def recognised(path):
        calls = (node for node in _nodes(path) if isinstance(node, ast.Call) and len(node.args) == 2)
        tests = (node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "isinstance")
        return {node.id for test in tests for node in ast.walk(test.args[1]) if isinstance(node, ast.Name)} & maps

    assert _by_place(recognised) == {}


COMPILERS = {f"numba.{name}" for name in ("njit", "jit", "vectorize", "guvectorize", "cfunc", "stencil")}


def test_one_place_compiles_loops():
    """There, what is kept on disk goes by all code that it calls; Numba's own index would miss that of other files."""
    assert _by_place(lambda path: COMPILERS.intersection(_imports(path)) or _takes_all_of_numba(path)) == {
        "meanfield/common/compiled.py": {"numba.njit"}
    }


def _takes_all_of_numba(path):
    nodes = (node for node in _nodes(path) if isinstance(node, ast.Import))
    return {alias.name for node in nodes for alias in node.names if _is_within(alias.name, "numba")}


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


def test_every_quantity_is_fully_described():
    for name, quantity in QUANTITIES.items():
        assert all([quantity.symbol, quantity.definition, quantity.scaling, quantity.source]), name


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
FAMILIES |= {"StagedConvNet", "StagedResidualConvNet"}


ROADS = [path for path in MODULES if path.relative_to(ROOT).parts[1] in ("simulation", "theory")]


def test_neither_road_names_a_family():
    """A new family is a new list of units, not a new engine: who draws or predicts reads the list, or a form of it."""

    def families(path):
        named = {node.id for node in _nodes(path) if isinstance(node, ast.Name)}
        imports = (node for node in _nodes(path) if isinstance(node, ast.ImportFrom))
        return (named | {alias.name for node in imports for alias in node.names}) & FAMILIES

    assert _by_place(families, ROADS) == {}


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
