"""What all simulations share on the command line: refusals in one line."""

from argparse import Namespace

import pytest

from sims._command import run_command


@pytest.mark.parametrize("error", [MemoryError(), OverflowError("too large"), ValueError("bad")])
def test_every_refusal_says_something_in_one_line(error, capsys):
    def refuse(_: Namespace) -> int:
        raise error

    assert run_command(refuse, Namespace()) == 2
    complaint = capsys.readouterr().err
    assert complaint.removeprefix("error: ").strip()
    assert complaint.count("\n") == 1
