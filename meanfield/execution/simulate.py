"""What users call to draw nets and to know beforehand how much memory that takes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.validation import require_count
from meanfield.execution.deep_nets import bytes_needed
from meanfield.execution.run import Run, simulate_all, store_in
from meanfield.execution.team import Workers
from meanfield.nets.families.known import require_net
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.recognised import as_family
from meanfield.nets.families.tied_loop import TiedLoop
from meanfield.nets.net import Net
from meanfield.simulation.measures.base import Measure, require_measure
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.pair_overlaps import PairOverlaps
from meanfield.simulation.measures.residual_energy import ResidualEnergies
from meanfield.simulation.measures.stream_update import StreamUpdates
from meanfield.simulation.weights.gram_process import require_gram_process

# Why an option of one default measure means nothing for a net that is measured by the other.
_SAMPLES = "batch and loss are those of nets; a loop has neither samples nor labels: leave them out"
_ARRAYS = "a TiedLoop is walked by backend 'numpy' in float64; {name} {value!r} is for nets: leave it out"
REFUSED = {
    **{"batch": _SAMPLES, "loss": _SAMPLES, "backend": _ARRAYS, "precision": _ARRAYS},
    "by_site": "by_site is for nets on grids; a TiedLoop has no sites: leave the option out",
    "correlations": "correlations are those of the steps of a TiedLoop; this is a {family}",
}


def simulate(
    architecture: Net,
    *,
    draws: int,
    seed: int,
    measure: Measure | Iterable[Measure] | None = None,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
    **options: Any,
) -> xr.Dataset:
    """Measure a net over independent draws of its weights, by default its update energies or a loop's residual energy.

    Args:
        architecture: the net or loop.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        measure: what to read off every draw, one or several of `Energies`, `PairOverlaps`, `ActivationStatistics`,
            `TokenStatistics`, `TangentPropagation`, `ResidualEnergies`, `StreamUpdates` and `TrainedResidualEnergies`.
            Each has options of its own and refuses nets that it does not serve. Measures that draw the same kind of
            ``weights`` see the same nets. If left out, `ResidualEnergies` for loops and `Energies` for all other nets.
        workers: number of processes, where 1 computes in this one; or `Workers`, for a Dask scheduler.
        resume_in: folder for finished pieces; a rerun with the same arguments continues from them. One that is
            damaged is named in a warning and computed again.
        options: those of the default measure, where none is given: ``weights``, ``inputs``, ``backend``,
            ``precision``, ``batch``, ``loss`` and ``by_site`` of `Energies`; ``weights``, ``inputs`` and
            ``correlations`` of `ResidualEnergies`.

    Returns:
        Dataset of the measure's variables, each with NAME_stderr and most with NAME_largest_share, as
        `meanfield.QUANTITIES` defines them; of several measures their union, where an attribute on which they differ
        holds JSON of measure -> value.

    Raises:
        TypeError, ValueError: not a net, a net that a measure does not serve, bad counts, options or inputs.
        MemoryError: more than the machine has.
        ModuleNotFoundError, OSError: a backend without its library or its device; like all above, before any work.
        OverflowError: the numbers of a draw leave the range of floats.

    Source: Zhang et al. 2026, eqs. 7-9, 18-20; Wang et al. 2026, eqs. 1, 2.
    """
    measures = _measures(architecture, measure, options)
    runs = [Run(architecture, measure, draws, seed) for measure in measures]
    drawn = simulate_all(runs, workers=workers, store=store_in(resume_in))
    return _merged([type(measure).__name__ for measure in measures], drawn)


def memory(
    architecture: Net, *, draws: int = 1, measure: Measure | Iterable[Measure] | None = None, **options: Any
) -> int:
    """Bytes that `simulate` will need at its peak in each process, beyond those of the program itself.

    A prediction from the sizes alone, of weights, values, errors and one layer's working arrays: for MLPs of width n
    and depth L it is 8 n^2 L with dense weights, O(n L) with lazy ones. It is within 20 % of the memory that a process
    is observed to take where that is 10 MiB or more. Draws are carried in batches of a size chosen from it, so that it
    grows with ``draws`` up to one batch.

    Args:
        architecture: the net or loop.
        draws: how many will be drawn, at least 1.
        measure, options: as for `simulate`; of several measures, the one that needs most counts.

    Raises:
        TypeError, ValueError: not a net, options that `simulate` refuses, a number of draws that is no count.

    Source: docs/theory.md section 12 for lazy weights.
    """
    measures = _measures(architecture, measure, options)
    count = require_count("draws", draws, why="how many networks are drawn")
    return max(bytes_needed(measure, architecture, count) for measure in measures)


def simulate_overlaps(architecture: Sequential, *, pairs: Iterable[Any], **options: Any) -> xr.Dataset:
    """Measure the overlaps T_h of pairs of parameter directions: `simulate` with the measure `PairOverlaps`.

    ``options`` are ``weights`` and ``fixed_layers`` of `PairOverlaps`, and ``draws``, ``seed``, ``workers`` and
    ``resume_in`` of `simulate`; shapes, errors and source as both say.
    """
    require_net(as_family(architecture))
    own, how = _split(PairOverlaps, options)
    given: Any = tuple(pairs) if isinstance(pairs, Iterable) else pairs
    return simulate(architecture, measure=PairOverlaps(pairs=given, **own), **how)


def simulate_loop_update(loop: TiedLoop, **options: Any) -> xr.Dataset:
    """Measure the change |dh_l|^2 / N of a loop's stream under one update: `simulate` with `StreamUpdates`.

    ``options`` are ``update``, ``weights`` and ``inputs`` of `StreamUpdates`, and ``draws``, ``seed``, ``workers`` and
    ``resume_in`` of `simulate`; shapes, errors and source as both say.
    """
    if not isinstance(loop := as_family(loop), TiedLoop):  # type: ignore[assignment]
        raise TypeError(
            f"loop is of type {type(loop).__name__}; it must be a TiedLoop (simulate measures updates of nets)"
        )
    own, how = _split(StreamUpdates, options)
    return simulate(loop, measure=StreamUpdates(**own), **how)


def _split(kind: Any, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of this kind of measure, and the others."""
    names = {field.name for field in fields(kind)}
    own = {name: value for name, value in options.items() if name in names}
    return own, {name: value for name, value in options.items() if name not in names}


def _measures(architecture: Net, measure: Measure | Iterable[Measure] | None, options: dict[str, Any]) -> list[Measure]:
    """The measures that are asked for, each once."""
    require_net(architecture, units=True)
    if measure is None:
        return [_default_measure(architecture, options)]
    if options:
        named = ", ".join(map(repr, options))
        raise TypeError(f"simulate has no option {named} where a measure is given; give its options to the measure")
    measures = list(measure) if isinstance(measure, Iterable) and not isinstance(measure, str) else [measure]
    for wanted in measures:
        require_measure(wanted)
    kinds = [type(wanted).__name__ for wanted in measures]
    if not measures or len(set(kinds)) < len(kinds):
        raise ValueError(f"measures are {', '.join(kinds) or 'none'}; give one or more, each of another class")
    return measures


def _default_measure(net: Net, options: dict[str, Any]) -> Measure:
    """Energies of a net with outputs, residual energies of a loop; options of the other only at their defaults."""
    net = as_family(net)
    if isinstance(weights := options.get("weights"), str) and weights == "gram":
        require_gram_process(net)
    kinds: tuple[Any, Any] = (ResidualEnergies, Energies) if net.readout_unit is None else (Energies, ResidualEnergies)
    own, foreign = _split(kinds[0], options)
    defaults = {field.name: field.default for field in fields(kinds[1])}
    for name, value in foreign.items():
        if name not in defaults:
            options_known = ", ".join(field.name for field in fields(kinds[0]))
            raise TypeError(f"simulate has no option {name!r}; {kinds[0].__name__} has {options_known}")
        if np.ndim(value) or value != defaults[name]:
            raise ValueError(REFUSED[name].format(name=name, value=value, family=type(net).__name__))
    measure: Measure = kinds[0](**own)
    return measure


def _merged(names: Sequence[str], datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """One dataset of all measures; an attribute on which they differ becomes JSON of measure -> value."""
    if len(datasets) == 1:
        return datasets[0]
    try:
        merged = xr.merge(datasets, join="exact", compat="equals", combine_attrs="drop_conflicts")
    except xr.MergeError as error:
        raise ValueError(f"{' and '.join(names)} have different values of one variable; simulate them apart") from error
    values: dict[str, dict[str, Any]] = {}
    for name, dataset in zip(names, datasets, strict=True):
        for key, value in dataset.attrs.items():
            values.setdefault(key, {})[name] = value
    differing = {key: json.dumps(of) for key, of in values.items() if key not in merged.attrs}
    return merged.assign_attrs(differing)
