"""Who computes draws, what is kept of them, and where a number comes from."""

from .interrupts import interrupts_held as interrupts_held
from .processes import pool as pool
from .provenance import code_digest as code_digest
from .provenance import digest as digest
from .provenance import provenance as provenance
from .provenance import sources_digest as sources_digest
from .run import Run as Run
from .run import simulate_all as simulate_all
from .storage import PieceStore as PieceStore
from .team import Workers as Workers
from .threads import one_thread as one_thread
