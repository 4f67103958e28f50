"""What users call to draw nets, and the runs that these calls are: draws of nets under measures.

Runs are computed on one set of workers, and may stop and continue. How much memory draws take is known beforehand;
that of deep nets of equal layers comes from shallow ones, as no layer need be met a million times to be counted.
"""

import json
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, fields
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield.common.machine import on_one_thread
from meanfield.common.seeds import checked_seed
from meanfield.common.validation import require_count, require_draws, require_instance, require_instances, settle
from meanfield.execution import chunks
from meanfield.execution.chunks import Chunk, PieceStore, TimedPieces, one_thread
from meanfield.execution.digests import provenance
from meanfield.execution.workers import Submit, Workers, cluster, interrupts_held, leave_import, pool
from meanfield.nets.net import Net
from meanfield.nets.recognised import as_family, require_net
from meanfield.signals import terminable
from meanfield.simulation.arrays import device_described
from meanfield.simulation.cost import BATCH_BYTES_HELD
from meanfield.simulation.kernels.gram_process import require_gram_process
from meanfield.simulation.measures.base import Measure, Pieces, require_measure
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.streams import ResidualEnergies
from meanfield.simulation.weights import give_back

# Why an option of one default measure means nothing for a net that is measured by the other.
_SAMPLES = "batch and loss are those of nets; a loop has neither samples nor labels: leave them out"
_ARRAYS = "a {family} is walked by backend 'numpy' in float64; {name} {value!r} is for nets: leave it out"
REFUSED = {
    **{"batch": _SAMPLES, "loss": _SAMPLES, "backend": _ARRAYS, "precision": _ARRAYS},
    "scales": "scales are those of update energies; a {family} is measured by its residual energies: give an optimizer",
    "epsilon": "epsilon is that of an optimizer; a {family} is measured by its residual energies: give an optimizer",
    "by_site": "by_site is for nets on grids; a {family} has no sites of outputs: leave it out",
    "correlations": "correlations are those of the steps of a TiedLoop; this is a {family}",
}


def simulate(
    net: Net,
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
        net: the net or loop.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        measure: what to read off every draw, one or several of `Energies`, `PairOverlaps`, `ActivationStatistics`,
            `TokenStatistics`, `TangentPropagation`, `ResidualEnergies`, `StreamUpdates` and `TrainedResidualEnergies`.
            Each has options of its own and refuses nets that it does not serve. Measures that draw the same kind of
            ``weights`` see the same nets. If left out, `ResidualEnergies` for loops and other streams without a
            readout, `Energies` for all other nets.
        workers: number of processes, where 1 computes in this one; or `Workers`, for a Dask scheduler.
        resume_in: folder for finished pieces; a rerun with the same arguments continues from them. One that is
            damaged is named in a warning and computed again.
        options: those of the default measure, where none is given: ``weights``, ``inputs``, ``backend``,
            ``precision``, ``batch``, ``loss``, ``by_site``, ``optimizer`` and others of `Energies`; ``weights``,
            ``inputs`` and ``correlations`` of `ResidualEnergies`. With an ``optimizer``, that of the update whose
            energies are measured, the measure is `Energies` of any net.

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

    Examples:
        >>> import meanfield as mf
        >>> measured = mf.simulate(mf.MLP(depth=8, width=256), draws=16, seed=0)
        >>> measured["update_energy"].sizes["layer"], measured.attrs["draws"]
        (8, 16)
    """
    measures = _measures(net, measure, options)
    runs = [Run(net, measure, draws, seed) for measure in measures]
    drawn = simulate_all(runs, workers=workers, store=store_in(resume_in))
    return _merged([type(measure).__name__ for measure in measures], drawn)


def memory(net: Net, *, draws: int = 1, measure: Measure | Iterable[Measure] | None = None, **options: Any) -> int:
    """Bytes that `simulate` will need at its peak in each process, beyond those of the program itself.

    A prediction from the sizes alone, of weights, values, errors and one layer's working arrays: for MLPs of width n
    and depth L it is 8 n^2 L with dense weights, O(n L) with lazy ones. It is within 20 % of the memory that a process
    is observed to take where that is 10 MiB or more. Draws are carried in batches of a size chosen from it, so that it
    grows with ``draws`` up to one batch.

    Args:
        net: the net or loop.
        draws: how many will be drawn, at least 1.
        measure, options: as for `simulate`; of several measures, the one that needs most counts.

    Raises:
        TypeError, ValueError: not a net, options that `simulate` refuses, a number of draws that is no count.

    Source: docs/theory.md section 12 for lazy weights.

    Examples:
        >>> import meanfield as mf
        >>> mf.memory(mf.MLP(depth=8, width=256), draws=16) < 2**30
        True
    """
    measures = _measures(net, measure, options)
    count = require_count("draws", draws, why="how many networks are drawn")
    return max(bytes_needed(measure, net, count) for measure in measures)


def _measures(net: Net, measure: Measure | Iterable[Measure] | None, options: dict[str, Any]) -> list[Measure]:
    """The measures that are asked for, each once."""
    require_net(net, units=True)
    if measure is None:
        return [_default_measure(net, options)]
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
    """Energies of a net with outputs, residual energies of a stream that is its own, as a loop's; options of the other
    only at their defaults."""
    net = as_family(net)
    if isinstance(weights := options.get("weights"), str) and weights == "gram":
        require_gram_process(net)
    is_stream = net.readout_unit is None and net.has_skips and "optimizer" not in options
    kinds: tuple[Any, Any] = (ResidualEnergies, Energies) if is_stream else (Energies, ResidualEnergies)
    own, defaults = (
        [field.name for field in fields(kinds[0])],
        {field.name: field.default for field in fields(kinds[1])},
    )
    for name, value in options.items():
        if name in own:
            continue
        if name not in defaults:
            raise TypeError(f"simulate has no option {name!r}; {kinds[0].__name__} has {', '.join(own)}")
        if np.ndim(value) or value != defaults[name]:
            raise ValueError(REFUSED[name].format(name=name, value=value, family=type(net).__name__))
    measure: Measure = kinds[0](**{name: value for name, value in options.items() if name in own})
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


# Depths that are counted layer by layer. Bytes of a draw are sums and maxima over layers, and sums of such sums: from
# the first of these on a polynomial of second degree in depth.
COUNTED = (24, 32, 40)
# Nets that say their depth in one number and their sizes once for all layers, by family.
SIZE_FIELDS = {
    "MLP": "width",
    "ResidualMLP": "width",
    "ConvNet": "channels",
    "ResidualConvNet": "channels",
    "TiedLoop": "width",
    "Transformer": "width",
}


def bytes_needed(measure: Measure, net: Net, draws: int) -> int:
    """`Measure.bytes` of the settled measure, which for deep nets of equal layers takes the time of shallow ones."""
    net = measure.drawn_net(net)
    if not (isinstance(measure, Energies) and measure.backend == "numpy" and _has_equal_layers(net)):
        return measure.settled(net).bytes(net, draws)
    shallow: list[Any] = [net.replace(depth=depth) for depth in COUNTED]
    settled = [measure.settled(each) for each in shallow]
    if len({each.weights for each in settled}) > 1:
        return measure.settled(net).bytes(net, draws)
    costs = [each.cost(at) for each, at in zip(settled, shallow, strict=True)]
    of_draw = _at(net.depth, [cost.bytes for cost in costs])  # type: ignore[attr-defined]
    together = costs[-1].together
    if settled[-1].weights != "gram":
        together = min(together, max(1, BATCH_BYTES_HELD // of_draw))
    return min(draws, together) * of_draw


def _has_equal_layers(net: Net) -> bool:
    """Whether it is so deep that shallow nets tell, and of a family whose layers are all alike."""
    size = SIZE_FIELDS.get(type(net).__name__)
    known = type(net).__module__.startswith("meanfield.nets.") and size is not None
    return known and isinstance(getattr(net, str(size)), int) and int(getattr(net, "depth", 0)) > COUNTED[-1]


def _at(depth: int, counted: list[int]) -> int:
    """The polynomial of second degree through what was counted."""
    step = COUNTED[1] - COUNTED[0]
    place = Fraction(depth - COUNTED[0], step)
    first, second = counted[1] - counted[0], counted[2] - 2 * counted[1] + counted[0]
    return int(counted[0] + place * first + place * (place - 1) / 2 * second)


# Seconds of a processor that a process takes to begin, with what it imports: work that ends before is not shared out.
START_SECONDS = 2.0


@dataclass(frozen=True)
class Run:
    """Draws of a net under a measure, checked when the run is made; `simulate_all` computes it.

    Attributes:
        net: what is drawn, a `Net`; of a chain with the units of a family that family's net.
        measure: what is read off every draw, such as `meanfield.Energies()`.
        draws: how many, at least as many as the measure needs, which is 2 for means.
        seed: the root of all streams.

    Raises:
        TypeError, ValueError: what is no net or no measure, a bad count, or a net or options that the measure does not
            serve.

    Examples:
        >>> import meanfield as mf
        >>> runs = [mf.Run(mf.MLP(depth=depth, width=64), mf.Energies(), draws=8, seed=0) for depth in (2, 4)]
        >>> [dataset.sizes["layer"] for dataset in mf.simulate_all(runs)]
        [2, 4]
    """

    net: Any
    measure: Any
    draws: int
    seed: int

    def __post_init__(self) -> None:
        require_net(self.net, units=True)
        require_measure(self.measure)
        settle(self, draws=require_draws("draws", self.draws, self.measure.fewest), seed=checked_seed(self.seed))
        settle(self, net=self.measure.drawn_net(self.net))
        settle(self, measure=self.measure.settled(self.net))

    def chunks(self) -> list[Chunk]:
        """The plan of this run."""
        all_draws = Chunk(self.net, self.measure, self.seed, 0, self.draws)
        return chunks.plan(all_draws, self.measure.cost(self.net).operations, self.measure.multiple(self.net))

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once."""
        self.measure.require_memory(self.net, self.draws, workers)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The dataset of all finished chunks, in order; seeds are text, as files hold no integers beyond 64 bits."""
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        how: dict[str, Any] = {"seed": str(self.seed), "draws": self.draws}
        record = provenance(**how, **device_described(self.measure.backend))
        return self.measure.dataset(self.net, values, {"level": "measured", **how, "provenance": record})


def store_in(resume_in: Any) -> PieceStore | None:
    """Where finished pieces are kept: in this folder, or nowhere."""
    if resume_in is None:
        return None
    return PieceStore(Path(require_instance("resume_in", resume_in, str | PathLike, "the path of a folder, or None")))


def simulate_all(
    runs: Sequence[Run], *, workers: int | Workers = 1, store: PieceStore | None = None
) -> list[xr.Dataset]:
    """Several runs on one set of workers, with one progress bar, as sweeps over nets need them.

    Args:
        runs: each a net, a measure, draws and a seed.
        workers: number of processes, where 1 computes in this one; or `Workers`.
        store: where finished pieces are kept, so that a rerun continues from them.

    Returns:
        One dataset for each run, in order.

    Raises:
        TypeError: what are no runs, no workers or no store.
        MemoryError: more than the machine has; before any run starts.

    Examples:
        >>> import meanfield as mf
        >>> runs = [mf.Run(mf.MLP(depth=4, width=width), mf.Energies(), draws=8, seed=0) for width in (32, 64)]
        >>> len(list(mf.simulate_all(runs)))
        2
    """
    runs = require_instances("runs", runs, Run, "runs, such as meanfield.Run(net, meanfield.Energies(), draws, seed)")
    if store is not None:
        require_instance("store", store, PieceStore, "a meanfield.execution.PieceStore of a folder, or None")
    workers = Workers.of(workers)
    plans = [run.chunks() for run in runs]
    for run in runs:
        run.require_memory(workers.here)
    plan = [chunk for chunks_of_run in plans for chunk in chunks_of_run]
    keys = chunks.keys(plan) if store else [str(number) for number in range(len(plan))]
    named = dict(zip(keys, plan, strict=True))  # of equal chunks one
    try:
        stored = {key: store.load(key, chunk.stop - chunk.start) if store else None for key, chunk in named.items()}
        pieces = {key: piece for key, piece in stored.items() if piece is not None}
        missing = [(key, chunk) for key, chunk in named.items() if key not in pieces]
        bar = tqdm(total=len(stored), initial=len(pieces), unit="chunk", delay=2, disable=None, leave=False)
        with bar as progress, closing(_computed(missing, workers)) as computed:
            for key, (piece, seconds) in computed:
                if store:
                    store.save(key, piece, seconds)
                pieces[key] = piece
                progress.update()
    finally:
        give_back()
    in_order = iter(keys)
    return [run.dataset([pieces[next(in_order)] for _ in own]) for run, own in zip(runs, plans, strict=True)]


def _computed(tasks: list[tuple[str, Chunk]], workers: Workers) -> Generator[tuple[str, TimedPieces]]:
    """Yield (key, (numbers, seconds)) of every task as it is finished.

    This process works alone before others begin: as long as they take to, if no number of them is given, and not at
    all where the work is known to be long.
    """
    rest = deque(tasks)
    alone = START_SECONDS
    if workers.here == 1:
        alone = float("inf")
    elif workers.processes or sum(chunk.seconds for _, chunk in tasks) > 2 * START_SECONDS:
        alone = 0.0
    alone_until = time.process_time() + alone
    with on_one_thread():
        while rest and workers.scheduler is None and (len(rest) == 1 or time.process_time() < alone_until):
            key, chunk = rest.popleft()
            yield key, chunks.timed_chunk(chunk)
    if not rest:
        return
    leave_import()
    with terminable(), ExitStack() as stack:
        with interrupts_held():
            submit = stack.enter_context(_processes(workers, rest) if workers.scheduler is None else cluster(workers))
            keys = {submit(chunk): key for key, chunk in rest}
        for future in as_completed(keys):
            # Popped, so that a scheduler need not hold what has arrived here.
            yield keys.pop(future), future.result()


@contextmanager
def _processes(workers: Workers, tasks: Sequence[tuple[str, Chunk]]) -> Iterator[Submit]:
    """Chunks go to processes of this machine."""
    with pool(min(workers.here, len(tasks)), one_thread) as executor:
        yield lambda chunk: executor.submit(chunks.timed_chunk, chunk)
