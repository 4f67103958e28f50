"""Batch normalisation, dropout and gains, which no prediction serves, and why."""

from __future__ import annotations

from typing import NoReturn

from meanfield.nets.maps import BatchNormalisation, Dropout, Gain, Map
from meanfield.nets.net import Net
from meanfield.theory.maps.base import Kinds, NoTransport

REASONS: dict[type, str] = {
    BatchNormalisation: "it divides every channel by its own deviation over the batch, which is random at any width: "
    "what is above is not Gaussian, and covariances do not follow from covariances; train or simulate this net",
    Dropout: "its masks are those of steps of training, and predictions are made of nets before any; predict the net "
    "without dropout, or train it",
    Gain: "its one number multiplies all channels, so that a step of it moves them together, and no kernel of a single "
    "channel tells how far; train or simulate this net",
}


def not_through(spec: Map, below: Kinds, grid: tuple[int, ...]) -> NoReturn:
    """Raise `NoTransport` with the reason."""
    raise NoTransport(REASONS[type(spec)])


def require_predictable(net: Net) -> None:
    """Raise `NoTransport` for a net with such a map."""
    for number, unit in enumerate(net.units, start=1):
        for spec in unit.maps:
            if type(spec) in REASONS:
                raise NoTransport(REASONS[type(spec)], f"unit {number}", spec)
