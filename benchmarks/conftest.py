"""Fixtures and options of the benchmarks: one core, one thread, everything timed by turns with its limit."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import scipy.linalg  # noqa: F401  a limit on threads reaches the libraries that are loaded by then
from threadpoolctl import threadpool_limits

import meanfield.execution.chunks  # noqa: F401
from benchmarks.machine import described
from benchmarks.race import Race, Sizes

SECONDS = 2.0


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("benchmarks of meanfield").addoption
    add("--quick", action="store_true", help="one round of small sizes: does everything run?")
    add("--seconds", type=float, default=SECONDS, help=f"time for one benchmark, about (default: {SECONDS:g})")
    add("--size", action="append", default=[], metavar="NAME=N", help="another size: width=256, depth=8, channels=64")


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError('the benchmarks need pytest-benchmark: python -m pip install -e ".[test,bench]"')
    if hasattr(os, "sched_setaffinity"):  # libraries size their thread pools by it
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    machine_info["meanfield"] = described()


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


@pytest.fixture
def race(benchmark: Any, request: pytest.FixtureRequest) -> Race:
    options = request.config.option
    return Race(benchmark, 0.0 if options.quick else options.seconds)


@pytest.fixture(scope="session")
def sizes(request: pytest.FixtureRequest) -> Sizes:
    options = request.config.option
    pairs = (text.partition("=") for text in options.size)
    return Sizes(options.quick, {name: int(value) for name, _, value in pairs})
