"""Which numbers of a dataset every cell of a printed report shows: found by moving them, one variable at a time."""

import re
from collections import defaultdict
from contextlib import ExitStack
from functools import partial, reduce
from itertools import takewhile
from unittest.mock import patch

import numpy as np
import xarray as xr

import sims.common.report
import sims.common.tables
from meanfield.verification.judges import Judge
from meanfield.verification.verdicts import Finding, Verdict
from sims import simulation
from sims.common.report import Report

RULE = re.compile(r"-+(  -+)*")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
# Tables are not parted, and what judges the numbers and explains the words is tested elsewhere.
WIDE = 10_000
UNJUDGED = Finding("a claim", "a rival", Verdict.INCONCLUSIVE, "no evidence")
# What goes with a mean under its own name, in cells that one function makes.
COMPANIONS = ("_stderr", "_covariance", "_largest_share")


def shown(name, dataset, expected=None):
    """Lines "table | column: what moves it", or "table | row | column: ..", of a simulation's report on this dataset.

    A sign says whether the first number of the cell rises (+) or falls (-) where all of a variable rises, the more the
    deeper, wider or later; "~" says that both happen. Values of named coordinates stand behind a variable of which a
    cell shows their part alone: "named" where the words around the cell name it.

    ``expected``: lines of before. Variables that they do not name for a part of the report are moved together, each by
    a size of its own, and one by one only where a cell of that part changes then.
    """
    changes = [patch.object(module, "LINE", WIDE) for module in (sims.common.tables, sims.common.report)]
    changes.append(patch.object(Judge, "__call__", lambda *_, **__: UNJUDGED))
    changes.append(patch.object(sims.common.report, "used_words", lambda *_: {}))
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(change)
        return _shown(simulation(name), dataset, expected)


def _shown(study, dataset, expected):
    report, moves = _Report(study, dataset, expected), defaultdict(dict)
    before = report.cells(dataset, [])
    for variable in report.variables:
        raised = dataset.assign({variable: _raised(dataset, variable)})
        for cell, sign in _moved(before, report.cells(raised, [variable])).items():
            moves[cell][variable] = sign
    parts = _parts(dataset, moves, before, report)
    columns = defaultdict(dict)
    for (table, row, column), signs in moves.items():
        sources = {f"{name}{parts((table, row, column), name)}": sign for name, sign in sorted(signs.items())}
        columns[table, column][row] = sources
    return [line for column, by_row in columns.items() for line in _lines(*column, by_row)]


class _Report:
    """A report on one dataset whose parts are made anew only where a variable has moved that may move a cell of theirs.

    Those are all but the ones that lines of before do not name for the part, and that move none of its cells together.
    """

    def __init__(self, study, dataset, expected):
        declared = study.report
        self._parts = [lambda dataset: study.document(dataset).text()]
        if isinstance(declared, Report):
            is_apart = declared.brief and all(declared.brief is not part for part in declared.parts)
            parts = [declared.brief, *declared.parts] if is_apart else declared.parts
            self._parts = [partial(_written, part) for part in parts]
        self._before = [part(dataset) for part in self._parts]
        numbers = [name for name in sorted(dataset.data_vars) if dataset[name].dtype.kind == "f"]
        numbers = [name for name in numbers if not name.endswith(COMPANIONS)]
        places = range(len(self._parts))
        self._moving = [set(numbers) - self._silent(place, dataset, numbers, expected) for place in places]
        self.variables = [name for name in numbers if any(name in moving for moving in self._moving)]

    def _silent(self, place, dataset, numbers, expected):
        before = cells(self._before[place])
        if expected is None:
            return set()
        tables = {table for table, *_ in before}
        named_before = set(re.findall(r"\w+", " ".join(line for line in expected if line.split(" | ")[0] in tables)))
        others = [name for name in numbers if name not in named_before]
        together = {name: _raised(dataset, name, 0.05 + 0.03 * nth) for nth, name in enumerate(others)}
        return set(others) if cells(self._parts[place](dataset.assign(together))) == before else set()

    def cells(self, dataset, moved):
        """Of the whole report, where these variables of the dataset have moved."""
        parts = zip(self._parts, self._before, self._moving, strict=True)
        texts = [part(dataset) if moving & {*moved} else before for part, before, moving in parts]
        return cells("\n\n".join(texts))


def _written(part, dataset):
    made = sims.common.report.made_of(part, dataset)
    return "\n\n".join(text if isinstance(text, str) else text.text() for text in made)


def _lines(table, column, by_row):
    """One where all rows take the same numbers, else one for each."""
    first, *others = by_row.values()
    if any(set(other) != set(first) for other in others):
        return [f"{table} | {row} | {column}: {_words(sources)}" for row, sources in by_row.items()]
    alike = {source: sign if all(other[source] == sign for other in others) else "~" for source, sign in first.items()}
    return [f"{table} | {column}: {_words(alike)}"]


def _words(sources):
    return ", ".join(f"{sign}{source}" for source, sign in sources.items())


def cells(text):
    """(table, row, column) -> its texts, from the top down; rows with a name of their own are told apart."""
    lines, found, title = text.splitlines(), defaultdict(list), ""
    for place, line in enumerate(lines):
        if not RULE.fullmatch(line.strip()) or not place:
            continue
        spans = [match.span() for match in re.finditer("-+", line)]
        above = list(takewhile(str.strip, lines[place - 2 :: -1] if place > 1 else []))
        title = " ".join(above[::-1]) or title
        header = _split(lines[place - 1], spans)
        for row in takewhile(str.strip, lines[place + 1 :]):
            own = _split(row, spans)
            names = list(takewhile(lambda cell: not NUMBER.match(cell) and cell != "-", own))
            names = names if len(names) < len(own) else names[:1]
            for column, cell in zip(header, own, strict=True):
                found[title, " ".join(names), column].append(cell)
    return dict(found)


def _split(line, spans):
    ends = [*(start for start, _ in spans[1:]), max(len(line), spans[-1][1]) + 1]
    return [line[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)]


def _raised(dataset, variable, share=0.05):
    """This variable, higher by this share of its size and more, the further along any dimension."""
    values = dataset.variables[variable]
    sizes = np.abs(values.values)
    steps = [1 + np.arange(size) / size for size in values.shape]
    rise = share * np.maximum(sizes, 1e-3 * np.nanmax(sizes, initial=0.0)) * reduce(np.multiply.outer, steps, 1.0)
    return values.copy(data=values.values + rise)


def _apart(cells_of):
    """Groups of variables of which no two move one cell, so that what a group moves tells which of them did."""
    groups = []
    for variable, own in cells_of.items():
        free = (group for group in groups if not any(own & cells_of[other] for other in group))
        group = next(free, None)
        groups.append([variable]) if group is None else group.append(variable)
    return groups


def _multiplied(dataset, variables, dim):
    """A copy in which the parts of these variables at every value of a named coordinate have factors of their own."""
    factors = xr.DataArray(_factors(dataset.sizes[dim]), dims=dim)
    return dataset.assign({variable: dataset[variable] * factors for variable in variables})


def _factors(count):
    """Such that no two have the ratio of two others, and four digits of a cell tell one from the next."""
    return 1 + 0.05 * 1.3 ** np.arange(count)


def _moved(before, after):
    """Cells of numbers that differ, with the sign of what their first numbers do.

    Words are chosen by comparing numbers, and which of two that are nearly equal is larger is a matter of rounding.
    """
    numbers = {cell: texts for cell, texts in before.items() if any(map(NUMBER.match, texts))}
    return {cell: _sign(texts, after[cell]) for cell, texts in numbers.items() if texts != after.get(cell, texts)}


def _sign(before, after):
    first, last = ([NUMBER.match(text) for text in texts] for texts in (before, after))
    changes = {np.sign(float(b[0]) - float(a[0])) for a, b in zip(first, last, strict=False) if a and b} - {0.0}
    return {1.0: "+", -1.0: "-"}[changes.pop()] if len(changes) == 1 else "~"


def _parts(dataset, moves, before, report):
    """The values of named coordinates whose part of a variable a cell shows, as words; none if it shows a law of it."""
    found, cells_of = defaultdict(list), defaultdict(set)
    for cell, signs in moves.items():
        for variable in signs:
            cells_of[variable].add(cell)
    for dim in (dim for dim in dataset.dims if dim in dataset and dataset[dim].dtype.kind in "UTO"):
        for variables in _apart({name: cells_of[name] for name in cells_of if dim in dataset[name].dims}):
            after = report.cells(_multiplied(dataset, variables, dim), variables)
            moved = [(cell, variable) for variable in variables for cell in cells_of[variable]]
            for cell, variable in moved:
                values = _of_factors(before[cell], after.get(cell, before[cell]), dataset[dim].values)
                if 0 < len(values) < dataset.sizes[dim]:
                    found[cell, variable].append(values)

    def words(cell, variable):
        told = ["named" if named(" ".join(cell), values) else " ".join(values) for values in found[cell, variable]]
        return f"[{'; '.join(told)}]" if told else ""

    return words


def _of_factors(before, after, values):
    """The values with whose factors the first numbers of these texts are multiplied; none if one has another factor."""
    numbers = [[NUMBER.match(text) for text in texts] for texts in (before, after)]
    ratios = [float(b[0]) / float(a[0]) for a, b in zip(*numbers, strict=False) if a and b and float(a[0])]
    factors = _factors(len(values))
    places = {int(np.argmin(np.abs(factors - ratio))) for ratio in ratios}
    exact = all(np.min(np.abs(factors - ratio)) <= 2e-3 * ratio for ratio in ratios)
    return [str(values[place]) for place in sorted(places)] if exact else []


def named(context, values):
    return len(values) == 1 and re.search(rf"(?<!\w){re.escape(values[0])}(?!\w)", context, re.IGNORECASE)
