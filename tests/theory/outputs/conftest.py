"""Draws of these tests: of label and output terms alone."""

import pytest

from meanfield.simulation.measures.overlap_methods import LEFT_OUT
from meanfield.simulation.measures.update_energy import Conditions


@pytest.fixture(autouse=True)
def _no_overlap_energies(monkeypatch):
    """Small nets form their tangent kernels for them, which takes as long as all else and moves no other number."""
    monkeypatch.setattr(Conditions, "overlap_method", lambda *_: LEFT_OUT)
