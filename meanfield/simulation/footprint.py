"""The memory that drawing an architecture takes, whatever its family."""

from __future__ import annotations

from meanfield.nets.net import Net
from meanfield.simulation.cost import batch_bytes, chosen_weights
from meanfield.simulation.gram_process import require_gram_process
from meanfield.simulation.loop_cost import residual_energy_cost
from meanfield.simulation.weights import ENERGY_KINDS
from meanfield.validation import require_choice, require_count


def peak_bytes(net: Net, weights: str, draws: int) -> int:
    """Bytes of the largest batch, of a net's energies or of a loop's residual energy; TypeError, ValueError."""
    require_choice("weights", weights, ("auto", *ENERGY_KINDS))
    count = require_count("draws", draws, why="how many networks are drawn")
    if weights == "gram":
        require_gram_process(net)
    if net.readout_unit is None:
        cost = residual_energy_cost(net, correlations=False)
        return cost.batch_bytes(count, cost.chosen_weights(weights))
    return batch_bytes(net, count, chosen_weights(net, weights, gram=True))
