"""Work timed by turns with its limit, so that a machine whose speed drifts slows both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from benchmarks.limits import Demand, clock, seconds

# Work shorter than this is repeated within a round.
LEAST_SECONDS = 0.02
FEWEST_ROUNDS, MOST_ROUNDS = 3, 60


@dataclass(frozen=True)
class Sizes:
    """How large the work is: as the table has it, small for a quick look, or as --size NAME=N says."""

    quick: bool
    given: Mapping[str, int]

    def __call__(self, name: str, usual: int, quick: int) -> int:
        return self.given.get(name, quick if self.quick else usual)


@dataclass(frozen=True)
class Race:
    """Times work by turns with what it demands, and notes both in the benchmark's ``extra_info``.

    Attributes:
        benchmark: pytest-benchmark's fixture.
        budget: seconds that one benchmark may take, but for `FEWEST_ROUNDS`; 0 for a single round.
    """

    benchmark: Any
    budget: float

    def __call__(
        self,
        work: Callable[[], object],
        demands: Sequence[Demand],
        *,
        group: str,
        what: str,
        size: str,
        amount: float,
        unit: str,
        by: str = "meanfield",
    ) -> None:
        """Time ``work``, a call of which does ``amount`` units; compiled code is compiled before."""
        work()
        for demand in demands:
            demand.limit.probe()
        calls, rounds = self._plan(work, demands) if self.budget else (1, 1)
        limits: list[float] = []
        times: list[float] = []

        def limit_first() -> None:
            limits.append(sum(demand.seconds() for demand in demands))

        def repeated() -> None:
            start = clock()
            for _ in range(calls):
                work()
            times.append((clock() - start) / calls)

        self.benchmark.group = group
        self.benchmark.pedantic(repeated, setup=limit_first, rounds=rounds, iterations=1)
        fractions = np.array(limits) / np.array(times)
        self.benchmark.extra_info |= {
            "what": what,
            "size": size,
            "by": by,
            "seconds": float(np.median(times)),
            "rate": float(amount / np.median(times)),
            "unit": unit,
            "limit": " + ".join(demand.limit.name for demand in demands),
            "limit_seconds": float(np.median(limits)),
            "fraction": [float(part) for part in np.quantile(fractions, (0.5, 0.25, 0.75))],
            "rounds": rounds,
            "calls": calls,
        }

    def _plan(self, work: Callable[[], object], demands: Sequence[Demand]) -> tuple[int, int]:
        """Calls in a round, and rounds."""
        once = seconds(work)
        calls = ceil(LEAST_SECONDS / max(once, 1e-7))
        fitting = int(self.budget / (calls * once + sum(demand.seconds() for demand in demands)))
        return calls, min(max(fitting, FEWEST_ROUNDS), MOST_ROUNDS)
