"""Data that searches for rates train on."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def data():
    """Three classes of 60 points in 8 dimensions, each around a centre of its own."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=60)
    return rng.normal(size=(3, 8))[labels] + 0.7 * rng.normal(size=(60, 8)), labels
