"""Who computes draws, what is kept of them, and where a number comes from."""

from .chunks import one_thread as one_thread
from .processes import interrupts_held as interrupts_held
from .processes import pool as pool
from .pieces import PieceStore as PieceStore
from .digests import code_digest as code_digest
from .digests import digest as digest
from .digests import provenance as provenance
from .digests import sources_digest as sources_digest
from .run import Run as Run
from .run import simulate_all as simulate_all
from .team import Workers as Workers
from .training import training_run as training_run
