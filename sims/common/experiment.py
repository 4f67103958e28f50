"""A simulation that is not yet a `Study` of its own: its parts in modules that are imported when its work begins.

`sims/NAME/measure.py` has ``planned`` and ``measure``, `sims/NAME/report.py` has ``text``. Each study that is converted
takes its lines away from the tables below; with the last of them this file goes.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from sims.common.command import CommandParser, Preset
from sims.common.study import Study

DURATIONS: dict[str, dict[str, str]] = {
    "activation_drift": {"smoke": "4 s", "default": "25 s", "paper": "20 min"},
    "batch_size": {"smoke": "5 s", "default": "20 s", "paper": "30 min"},
    "cnn_finite_channels": {"smoke": "8 s", "default": "35 s", "paper": "30 min"},
    "cnn_overlap": {"smoke": "3 s", "default": "12 s", "paper": "15 min"},
    "cnn_padding": {"smoke": "4 s", "default": "25 s", "paper": "8 h"},
    "cross_entropy": {"smoke": "4 s", "default": "10 s", "paper": "4 min"},
    "identities": {"smoke": "4 s", "default": "4 s", "paper": "5 s"},
    "learning_rate_scale": {"smoke": "6 s", "default": "8 s", "paper": "30 s"},
    "learning_rate_search": {"smoke": "15 s", "default": "2 min", "paper": "20 h"},
    "learning_rate_transfer": {"smoke": "6 s", "default": "70 s", "paper": "20 h"},
    "looped_energy": {"smoke": "3 s", "default": "6 s", "paper": "40 s"},
    "looped_rates": {"smoke": "6 s", "default": "80 s", "paper": "20 h"},
    "looped_update": {"smoke": "3 s", "default": "10 s", "paper": "80 s"},
    "looped_transformer": {"smoke": "10 s", "default": "70 s", "paper": "3 h"},
    "mlp_depth": {"smoke": "8 s", "default": "8 s", "square": "90 s", "paper": "80 s"},
    "overlap_recursion": {"smoke": "4 s", "default": "8 s", "paper": "4 min"},
    "transformer_depth": {"smoke": "10 s", "default": "30 s", "paper": "4 h"},
}

# How much longer a first run takes, which compiles the kernels of a simulation and keeps them: processor time of smoke
# runs with an empty cache, less that with a full one. Others have nothing to compile.
COMPILING: dict[str, str] = {
    "activation_drift": "35 s",
    "batch_size": "60 s",
    "cnn_finite_channels": "55 s",
    "cnn_overlap": "4 s",
    "cnn_padding": "50 s",
    "cross_entropy": "15 s",
    "identities": "0.5 s",
    "learning_rate_scale": "2 s",
    "learning_rate_search": "12 s",
    "learning_rate_transfer": "6 s",
    "looped_energy": "35 s",
    "looped_update": "45 s",
    "mlp_depth": "40 s",
    "overlap_recursion": "3 s",
    "transformer_depth": "25 s",
}


class Experiment(Study):
    """A study from its name: ``add_options`` adds its options; the rest is as in `Study`."""

    def __init__(
        self,
        name: str,
        description: str | None,
        add_options: Callable[[CommandParser], None],
        presets: Mapping[str, Mapping[str, Any]],
        **details: Any,
    ) -> None:
        super().__init__(
            name=name,
            description=description,
            presets={preset: Preset(DURATIONS[name][preset], **values) for preset, values in presets.items()},
            compiles=COMPILING.get(name, ""),
            planned=lambda options: import_module(f"sims.{name}.measure").planned(options),
            measure=lambda *args, **plan: import_module(f"sims.{name}.measure").measure(*args, **plan),
            report=lambda dataset: import_module(f"sims.{name}.report").text(dataset),
            **details,
        )
        object.__setattr__(self, "add_options", add_options)
