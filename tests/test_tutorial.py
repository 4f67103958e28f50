"""The tutorial prints what it says, and is a notebook in form."""

import ast
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import meanfield as mf

TUTORIAL = Path(mf.__file__).parent.parent / "docs" / "tutorial.md"
# A cell, and the block without a language that shows what it prints, if it prints anything.
CELLS = re.findall(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)


def test_the_tutorial_prints_what_it_says():
    names = {"__name__": "__main__"}
    assert [_printed(cell, names) for cell, _ in CELLS] == [shown for _, shown in CELLS]
    assert len(CELLS) == 9
    assert sum(len(ast.parse(cell).body) for cell, _ in CELLS) > 15


def _printed(cell, names):
    """What a notebook shows below the cell: what it prints, then the value of its last line, where that is one."""
    tree = ast.parse(cell)
    value = (
        ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else ast.parse("None", mode="eval")
    )
    shown = StringIO()
    with redirect_stdout(shown):
        exec(compile(tree, "docs/tutorial.md", "exec"), names)
        last = eval(compile(value, "docs/tutorial.md", "eval"), names)
    return shown.getvalue() + (f"{last!r}\n" if last is not None else "")


def test_the_tutorial_opens_as_a_notebook():
    """By jupytext, which knows a notebook by this header."""
    header = re.match(r"---\njupyter:\n(.*?)---\n", TUTORIAL.read_text(), re.DOTALL)
    assert "format_name: markdown" in header[1]
    assert "name: python3" in header[1]
