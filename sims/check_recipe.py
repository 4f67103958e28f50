"""Which hyperparameters of a training recipe are not those that a table of Zheng et al. 2026 makes of a small model's.

Takes two recipes in JSON, of one model at two sizes, as `meanfield.torch.recipe_of(model, optimizer).to_json()` writes
them: depth (blocks), heads, and parameters, each with name, kind (the name with * for the number of its block), block
(this number), shape, outputs_axis, role, optimizer, learning_rate, weight_decay, epsilon, std (initial standard
deviation) and multiplier (of its layer). What is left out is not compared. The base recipe stands for itself; of the
other, every number that is not the base's times the table's power of the ratios of width and depth is printed, with the
factor between them, and for every role what agrees. PyTorch is not needed. The exit status is 0 where all cells agree,
and 1 where some do not. Nothing is drawn.
"""

import argparse
import json
from pathlib import Path

from meanfield.common import require_choice, require_file, write_text_whole
from meanfield.parameterizations import CONDITIONS, Recipe, RecipeReport, judge_recipe, read_recipe
from sims.common.command import CommandParser, Service
from sims.common.report import Document
from sims.common.tables import Grid, table

LISTED = "which numbers of a training recipe are not those of a table"

DEVIATES = 1


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("target", type=Path, metavar="TARGET.json", help="recipe of the model to train")
    add("--base", type=Path, required=True, metavar="BASE.json", help="that of the small model, which was tuned")
    which = "whose tables: adamw, sgd, ..., or HIDDEN-OTHERS, such as muon-adamw (default: as the recipes say)"
    add("--optimizer", metavar="NAME", help=which)
    of = "of the paper: 3.1 (default) for branches of two or more layers, B.1 for branches of one"
    add("--condition", default="3.1", metavar="CONDITION", help=of)
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=FORMS, default="text", help="default: text")
    output.add_argument("--out", type=Path, help="file to write (default: print)")
    output.add_argument("--force", action="store_true", help="replace a file that exists")


def run(options: argparse.Namespace) -> int:
    """Print the report, or write it; the exit status says whether all agrees."""
    require_choice("--condition", options.condition, CONDITIONS)
    target, base = _read(options.target), _read(options.base)
    judged = judge_recipe(target, base, condition=options.condition, optimizer=options.optimizer)
    status = 0 if judged.agrees else DEVIATES
    text = FORMS[options.format](judged)
    if options.out is None:
        print(text)
        return status
    require_file(options.out)
    if options.out.exists() and not options.force:
        raise FileExistsError(f"{options.out} exists; give another --out, or --force to replace it")
    write_text_whole(options.out, text + "\n")
    print(f"report   {options.out}")
    return status


def _read(path: Path) -> Recipe:
    """A recipe; what is wrong with it is said of its file."""
    try:
        return read_recipe(path.read_text(encoding="utf-8"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


# What is printed.

QUESTION = "Which numbers are not those of the tables of Zheng et al. 2026?"


def as_json(judged: RecipeReport) -> str:
    """The whole record."""
    return json.dumps(judged.record(), indent=2)


def as_text(judged: RecipeReport) -> str:
    """What deviates, a line a cell, what agrees of every role, and what to beware of."""
    lists = ["\n".join([title, *(f"  - {line}" for line in lines)]) for title, lines in _lists(judged) if lines]
    deviating = 1 if judged.deviating else 0
    parts: list[str | Grid] = [*lists[:deviating], _agreeing(judged), *lists[deviating:]]
    return Document(question=QUESTION, answer=judged.answer(), heading=_heading(judged), parts=parts).text()


def as_markdown(judged: RecipeReport) -> str:
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


FORMS = {"text": as_text, "markdown": as_markdown, "json": as_json}
COMMAND = Service(name="check_recipe", description=__doc__, add=add_options, work=run)


if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
