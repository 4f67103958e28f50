"""Quantities that leave the range of a float: each beside its logarithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanfield.common.arrays import Array


def with_logarithms(logs: Mapping[str, Any]) -> dict[str, Array]:
    """Quantities from their natural logarithms, infinite where they overflow, with log_NAME beside."""
    with np.errstate(over="ignore", under="ignore"):
        plain = {name: np.exp(log) for name, log in logs.items()}
    return plain | {f"log_{name}": log for name, log in logs.items()}
