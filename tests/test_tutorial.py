"""The tutorial prints what it says."""

import doctest
from pathlib import Path

import meanfield as mf

TUTORIAL = Path(mf.__file__).parent.parent / "docs" / "tutorial.md"


def test_the_tutorial_prints_what_it_says():
    failed, attempted = doctest.testfile(str(TUTORIAL), module_relative=False)
    assert attempted > 15
    assert failed == 0
