"""Rough durations of the presets, as --help shows them: on two cores that nothing else keeps busy."""

from __future__ import annotations

DURATIONS: dict[str, dict[str, str]] = {}
