"""Draws of these tests: of label and output terms alone."""

import pytest


@pytest.fixture(autouse=True)
def _terms_alone(no_overlap_energies):
    """No test here reads an overlap energy."""
