"""The inner loop of every simulation that draws: a batch of its costliest net, as its workers compute it."""

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import sims
from benchmarks.counting import counted
from benchmarks.limits import Demand, gram_variates, memory, products, random_numbers, reading
from benchmarks.nets import ENERGY_SIDES, UPDATE_SIDES, loop_demands
from benchmarks.race import Race, Sizes
from meanfield.execution.chunks import Chunk, compute_chunk
from meanfield.nets.block_net import BlockNet
from meanfield.nets.loop import TiedLoop
from meanfield.simulation.cost import draw_operations
from meanfield.simulation.measures.blocks import BlockMeasure
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.propagation import ActivationStatistics
from meanfield.simulation.measures.streams import StreamUpdates
from sims import simulation as simulation_module

# What simulations hand to the workers goes through these; the few draws by which some choose a net do not. Searches of
# rates begin with the curvature where it is asked for.
GATES = ("sims.common.results.Results.draw", "meanfield.transfer.tuning.simulate_all")
NAMES = [name for name in sims.NAMES if getattr(simulation_module(name), "draws", False)]
# Theory that comes before the draws and changes none of them: as little as there can be.
BEFORE = {"cnn_padding": ["--far-lines", "3", "4", "5", "--far-squares", "3"]}

# How the passes of these measures are counted by the library itself; of others, their products with weights are.
PASSES = (Energies, ActivationStatistics)


class Planned(Exception):
    """A simulation has come to its draws: here they are."""


def planned(name: str, preset: str, folder: Path) -> list[Any]:
    """The runs that a simulation would hand to its workers."""

    def stop(*given: Any, **how: Any) -> list[Any]:
        if runs := list(given[-1]):
            raise Planned(runs)
        return runs

    command = ["--preset", preset, "--out", str(folder / f"{name}.nc"), *BEFORE.get(name, [])]
    try:
        with patch(GATES[0], stop), patch(GATES[1], stop):
            simulation_module(name).main(command)
    except Planned as reached:
        return list(reached.args[0])
    pytest.skip(f"sims.{name} does not come to its draws; something that it needs is not installed")


def costliest(runs: list[Any]) -> Chunk:
    """One batch of draws of the run that takes longest, or whose draws are the largest where several are as long."""
    plans: list[list[Chunk]] = [run.chunks() for run in runs]
    chunk = max(plans, key=lambda plan: (len(plan), -_together(plan[0]), len(plan[0].net.units)))[0]
    return replace(chunk, stop=min(chunk.stop, chunk.start + _together(chunk)))


def _together(chunk: Chunk) -> int:
    return chunk.measure.together(chunk.net)


def demands_of(chunk: Chunk) -> list[Demand]:
    """The random numbers of a batch, and the products or the visits of weights that follow."""
    net, draws, kind = chunk.net, chunk.stop - chunk.start, chunk.measure.weights
    if isinstance(net, BlockNet) and isinstance(chunk.measure, BlockMeasure):
        weights, steps = draws * sum(map(prod, net.shapes)), chunk.measure.visits
        # Every weight is read on the way forward and back; the update reads and writes it.
        visits, held = 2 * 8.0 * steps * weights, 8.0 * weights / draws
        return [random_numbers(weights), reading(visits, held), memory(visits, 2 * held)]
    if kind == "gram":
        return [gram_variates(draws * net.depth, net.width)]  # type: ignore[attr-defined]
    count = counted(lambda: compute_chunk(chunk))
    if isinstance(net, TiedLoop) and net.tied:
        sides = UPDATE_SIDES if isinstance(chunk.measure, StreamUpdates) else ENERGY_SIDES
        return loop_demands(net, kind, count.numbers, draws, sides)
    operations = count.operations
    if kind == "dense" and isinstance(chunk.measure, PASSES):
        operations = draws * draw_operations(net)  # type: ignore[arg-type]
    return [random_numbers(count.numbers), *([products(operations)] if operations else [])]


def described(chunk: Chunk) -> str:
    """A batch in the words of a table."""
    spec = chunk.net.describe()
    sizes = [f"{words} {spec[name]}" for name, words in (("width", "n ="), ("channels", "n =")) if name in spec]
    sizes += [
        f"L = {spec.get('depth', len(chunk.net.units))}",
        *(["x".join(map(str, spec["grid"]))] if spec.get("grid") else []),
    ]
    samples = [f"{spec['inputs']} samples"] if spec.get("inputs", 1) > 1 else []
    together = f"{chunk.stop - chunk.start} together"
    return ", ".join([spec["family"], *sizes, *samples, chunk.measure.weights, together])


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", NAMES)
def test_inner_loop(race: Race, sizes: Sizes, name: str, tmp_path: Path) -> None:
    chunk = costliest(planned(name, "smoke" if sizes.quick else "default", tmp_path))
    race(
        lambda: compute_chunk(chunk),
        demands_of(chunk),
        group="Inner loops of the simulations",
        what=f"{name}: {type(chunk.measure).__name__}",
        size=described(chunk),
        amount=chunk.stop - chunk.start,
        unit="draws",
    )
