"""What sims.check_recipe prints: the cells that deviate, with their factors, and what agrees."""

import json as _json

from meanfield.parameterizations import RecipeReport
from sims.common.report import Document
from sims.common.tables import Grid, table

QUESTION = "Which numbers are not those of the tables of Zheng et al. 2026?"


def json(judged: RecipeReport) -> str:
    """The whole record."""
    return _json.dumps(judged.record(), indent=2)


def text(judged: RecipeReport) -> str:
    """What deviates, a line a cell, what agrees of every role, and what to beware of."""
    lists = ["\n".join([title, *(f"  - {line}" for line in lines)]) for title, lines in _lists(judged) if lines]
    deviating = 1 if judged.deviating else 0
    parts: list[str | Grid] = [*lists[:deviating], _agreeing(judged), *lists[deviating:]]
    return Document(question=QUESTION, answer=judged.answer(), heading=_heading(judged), parts=parts).text()


def markdown(judged: RecipeReport) -> str:
    """The same as Markdown."""
    lists = ["\n".join([f"{title}\n", *(f"- {line}" for line in lines)]) for title, lines in _lists(judged) if lines]
    return "\n\n".join([f"**{judged.answer()}** {_heading(judged)}", *lists, _agreeing(judged).markdown()])


def _heading(judged: RecipeReport) -> str:
    return f"{judged.source}; {judged.sizes}"


def _lists(judged: RecipeReport) -> list[tuple[str, list[str]]]:
    return [("Deviates", [cell.sentence() for cell in judged.deviating]), ("Notes", list(judged.notes))]


def _agreeing(judged: RecipeReport) -> Grid:
    rows = [[role, ", ".join(names) or "nothing"] for role, names in judged.agreeing().items()]
    return table(["role", "agrees"], rows)
