"""`Workers`: who computes the draws."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec

from meanfield.common.validation import require_count, settle

LOCAL = "local"
ADDRESS = re.compile(r"(tcp|tls)://.+:\d+")


@dataclass(frozen=True)
class Workers:
    """Who computes the draws: processes of this machine, or the workers of a Dask scheduler; no number depends on it.

    Attributes:
        processes: number of processes on this machine, at least 1; 1 computes in this process, None takes one process
            for every core, unless the work ends in this one before others would have begun.
        scheduler: None for plain processes; "local" for that many processes under a Dask scheduler that lives as long
            as the work; or the address of a running scheduler, "tcp://HOST:PORT", whose workers, on any machines, may
            come and go. They need this same version of the library, and one thread each.

    Raises:
        TypeError, ValueError: a bad count or address, or a count together with the address of a running scheduler.
        ModuleNotFoundError: a scheduler without dask.distributed. All before any work starts.
    """

    processes: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.processes is not None:
            settle(self, processes=require_count("workers", self.processes, why="processes"))
        if self.scheduler is None:
            return
        if not isinstance(self.scheduler, str) or not (self.scheduler == LOCAL or ADDRESS.fullmatch(self.scheduler)):
            raise ValueError(f"scheduler is {self.scheduler!r}; give its address, tcp://HOST:PORT, or 'local'")
        if self.remote and self.processes is not None:
            raise ValueError(
                f"workers is {self.processes}, but those of the scheduler at {self.scheduler} are already running; "
                "give a number of workers or the address of a scheduler, not both"
            )
        if find_spec("distributed") is None:
            raise ModuleNotFoundError(
                "a scheduler needs dask.distributed, which is not installed; "
                'install it with: python -m pip install -e ".[cluster]"'
            )

    @classmethod
    def of(cls, workers: int | Workers) -> Workers:
        """`Workers` of a number of processes; `Workers` are returned unchanged."""
        return workers if isinstance(workers, cls) else cls(require_count("workers", workers))

    @property
    def remote(self) -> bool:
        """Whether the workers were started by someone else, perhaps on other machines."""
        return self.scheduler not in (None, LOCAL)

    @property
    def here(self) -> int:
        """How many workers are known to share the memory of this machine."""
        return 0 if self.remote else self.processes or os.cpu_count() or 1
