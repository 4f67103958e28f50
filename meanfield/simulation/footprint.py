"""The memory that drawing an architecture takes, whatever its family."""

from __future__ import annotations

from meanfield.nets.layered import Sequential
from meanfield.nets.tied_loop import TiedLoop
from meanfield.simulation.cost import batch_bytes, chosen_weights
from meanfield.simulation.gram_process import require_gram_process
from meanfield.simulation.loop_cost import residual_energy_cost
from meanfield.simulation.weights import ENERGY_KINDS
from meanfield.validation import require_choice, require_count


def peak_bytes(architecture: Sequential | TiedLoop, weights: str, draws: int) -> int:
    """Bytes of the largest batch, of a net's energies or of a loop's residual energy; TypeError, ValueError."""
    require_choice("weights", weights, ("auto", *ENERGY_KINDS))
    count = require_count("draws", draws, why="how many networks are drawn")
    if weights == "gram":
        require_gram_process(architecture)
    if isinstance(architecture, TiedLoop):
        cost = residual_energy_cost(architecture, correlations=False)
        return cost.batch_bytes(count, cost.chosen_weights(weights))
    return batch_bytes(architecture, count, chosen_weights(architecture, weights, gram=True))
