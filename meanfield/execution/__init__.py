"""Who computes draws, what is kept of them, and where a number comes from."""

from meanfield.execution.chunks import PieceStore, one_thread
from meanfield.execution.digests import code_digest, digest, provenance, sources_digest
from meanfield.execution.run import Run, simulate_all
from meanfield.execution.training import scales_run, training_run
from meanfield.execution.workers import Workers, interrupts_held, pool

__all__ = [
    "PieceStore",
    "Run",
    "Workers",
    "code_digest",
    "digest",
    "interrupts_held",
    "one_thread",
    "pool",
    "provenance",
    "scales_run",
    "simulate_all",
    "sources_digest",
    "training_run",
]
