"""The legend of printed verdicts stands where errors of draws decide, and only there."""

from meanfield.verification.verdicts import Finding, Verdict
from sims._verdicts import LEGEND, verdicts

COMPUTED = Finding("three is a third of nine", "a half", Verdict.CONFIRMED, "off by 0")
DRAWN = Finding("slope 1", "slope 2", Verdict.REFUTED, "worst 9.0 s.e. beyond what is granted, rival 0.1, band 7")


def test_legend():
    assert verdicts([COMPUTED]) == f"Verdicts\n{COMPUTED.sentence()}"
    assert verdicts(iter([COMPUTED, DRAWN])) == f"Verdicts\n{LEGEND}\n{COMPUTED.sentence()}\n{DRAWN.sentence()}"
