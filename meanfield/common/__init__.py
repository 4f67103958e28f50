"""Shared by all rooms: seeds, files, signals, memory, checks of input, and statistics of draws."""

from meanfield.common.estimates import FALSE_ALARM_BUDGET, NUMBERS_FAIL, critical_z
from meanfield.common.files import (
    UNREADABLE,
    DamagedFileWarning,
    behind_links,
    require_file,
    require_writable,
    write_text_whole,
    write_whole,
)
from meanfield.common.gaussian_averages import mean_square
from meanfield.common.machine import collect_seldom, machine_described, share_machine
from meanfield.common.power_laws import PowerLaw, fit_power_law, local_slopes, log_slope
from meanfield.common.seeds import checked_seed, derived_seed, stream
from meanfield.common.validation import (
    MOST_DRAWS,
    MOST_LAYERS,
    Array,
    PremiseWarning,
    require_choice,
    require_count,
    require_counts,
    require_draws,
    require_positive,
)
from meanfield.signals import (
    INTERRUPTED,
    TERMINATED,
    Terminated,
    interrupts_raised,
    terminable,
    when_terminated,
    while_read,
)

__all__ = [
    "FALSE_ALARM_BUDGET",
    "INTERRUPTED",
    "MOST_DRAWS",
    "MOST_LAYERS",
    "NUMBERS_FAIL",
    "TERMINATED",
    "UNREADABLE",
    "Array",
    "DamagedFileWarning",
    "PowerLaw",
    "PremiseWarning",
    "Terminated",
    "behind_links",
    "checked_seed",
    "collect_seldom",
    "critical_z",
    "derived_seed",
    "fit_power_law",
    "interrupts_raised",
    "local_slopes",
    "log_slope",
    "machine_described",
    "mean_square",
    "require_choice",
    "require_count",
    "require_counts",
    "require_draws",
    "require_file",
    "require_positive",
    "require_writable",
    "share_machine",
    "stream",
    "terminable",
    "when_terminated",
    "while_read",
    "write_text_whole",
    "write_whole",
]
