"""Rough durations of the presets, as --help shows them: on two cores that nothing else keeps busy.

By the processor time of some of the pieces that a preset is cut into; those of an hour and more are good to a factor of
two.
"""

from __future__ import annotations

DURATIONS: dict[str, dict[str, str]] = {
    "activation_drift": {"smoke": "5 s", "default": "1 min", "paper": "25 min"},
    "batch_size": {"smoke": "8 s", "default": "40 s", "paper": "40 min"},
    "claims": {"smoke": "90 s", "default": "10 min", "paper": "hours"},
    "cnn_finite_channels": {"smoke": "15 s", "default": "2 min", "paper": "40 min"},
    "cnn_overlap": {"smoke": "4 s", "default": "30 s", "paper": "20 min"},
    "cnn_padding": {"smoke": "4 s", "default": "40 s", "paper": "PADDING"},
    "coordinate_check": {"smoke": "6 s", "default": "80 s", "paper": "COORD"},
    "cross_entropy": {"smoke": "4 s", "default": "15 s", "paper": "5 min"},
    "looped_energy": {"smoke": "3 s", "default": "8 s", "paper": "1 min"},
    "looped_update": {"smoke": "4 s", "default": "30 s", "paper": "2 min"},
    "mlp_depth": {"smoke": "10 s", "default": "1 min", "square": "2 min", "paper": "2 min"},
    "overlap_recursion": {"smoke": "5 s", "default": "1 min", "paper": "5 min"},
    "residual_depth": {"smoke": "5 s", "default": "1 min", "paper": "25 min"},
    "residual_overlap": {"smoke": "8 s", "default": "40 s", "paper": "30 min"},
    "spectral_condition": {"smoke": "4 s", "default": "SPEC", "paper": "SPECP"},
    "training_assumptions": {"smoke": "TRAS", "default": "TRAD", "paper": "TRAP"},
    "update_orders": {"smoke": "4 s", "default": "ORD", "paper": "ORDP"},
}
