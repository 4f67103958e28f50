"""The table of a run, in Markdown, from the JSON that pytest-benchmark writes."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

HEAD = """# Benchmarks

How fast the library is, beside the limit of the machine that binds it. Made by

    {command}

on {date}, of commit {commit}.

{machine}

Everything runs on one core and one thread, in double precision unless a line says otherwise. Work and limit are timed
by turns, so that a machine whose speed drifts slows both; times are the processor's. Given are medians over rounds,
and of the fraction of the limit also the quartiles. A limit is the time of what the work cannot do without, at the rate
measured beside it, summed where it needs several things:

- random numbers: the normals that it draws, by the library's own fill, the fastest at hand
- random numbers by NumPy: the same of the same generator, as NumPy makes them
- random words: of the generator behind them, compiled and not stored
- matrix products: their operations, by products of 1024 x 1024 matrices
- memory copied, memory read: the bytes that it moves, by copies between arrays, or sums of squares of one, of that size
- the same by PyTorch: of training, its own time for the same steps, so that the fraction says how many times faster
- logarithms, log-sums, chained multiply-adds: of one number after another

A fraction of 1 is work that does nothing else. Peers in single precision are held against the limit of double.
"""

COLUMNS = ("what", "size", "by", "time", "throughput", "limit", "its time", "fraction of the limit")

PREFIXES = (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))
TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def markdown(run: Mapping[str, Any], command: str) -> str:
    """The page: how it was made and where, then one table for each group, in the order in which they ran."""
    machine = "\n".join(f"- {name}: {words}" for name, words in run["machine_info"]["meanfield"].items())
    commit = run["commit_info"]
    name = f"{str(commit.get('id', 'unknown'))[:10]}{', changed' if commit.get('dirty') else ''}"
    head = HEAD.format(command=command, date=run["datetime"][:10], commit=name, machine=machine)
    groups = groupby(run["benchmarks"], key=lambda benchmark: benchmark["group"])
    return head + "".join(f"\n## {group}\n\n{_table(rows)}" for group, rows in groups)


def _table(benchmarks: Any) -> str:
    rows = [COLUMNS, tuple("---" for _ in COLUMNS), *(_row(benchmark["extra_info"]) for benchmark in benchmarks)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(timed: Mapping[str, Any]) -> tuple[str, ...]:
    middle, low, high = timed["fraction"]
    return (
        timed["what"],
        timed["size"],
        timed["by"],
        duration(timed["seconds"]),
        rate(timed["rate"], timed["unit"]),
        timed["limit"],
        duration(timed["limit_seconds"]),
        f"{middle:.2g} ({low:.2g} .. {high:.2g})",
    )


def duration(seconds: float) -> str:
    """Three digits and a unit: 1.25 ms."""
    for unit, size in TIMES:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def rate(value: float, unit: str) -> str:
    """Three digits, a prefix and a unit: 74.1 GFLOP/s, 310 M numbers/s."""
    prefix, size = next(((name, size) for name, size in PREFIXES if value >= size), PREFIXES[-1])
    joint = "" if unit in ("B", "FLOP") else " " if prefix else ""
    return f"{value / size:.3g} {prefix}{joint}{unit}/s"
