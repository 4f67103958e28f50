"""The same draws by automatic differentiation, where JAX or PyTorch is installed (see `autodiff`).

neural-tangents takes no part: its last release, 0.6.5, cannot be imported without TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.autodiff import LIBRARIES
from benchmarks.nets import dense_demands, described, the_mlp
from benchmarks.race import Race, Sizes
from meanfield.machine_memory import require_bytes
from meanfield.nets.mlp import MLP
from meanfield.seeds import stream
from meanfield.simulation.cost import draw_bytes
from meanfield.simulation.inputs import draw_inputs
from meanfield.simulation.measures.update_energy import draw_energies
from meanfield.simulation.weights import draw_weights

# Weights, two steps, and what differentiation keeps of them at once.
MATRICES = 4


def require_same(energies: Callable[..., np.ndarray]) -> None:
    """A small dense draw by this library and by ours agree to rounding, or they would race on different things."""
    net = MLP(depth=6, width=50, outputs=3)
    ours = draw_energies(net, 0, range(1), weights="dense")
    weights = [weight.matrix[0] for weight in draw_weights(net, [stream(0, "weights", 0)], "dense").values()]  # type: ignore
    inputs = draw_inputs(net, [stream(0, "inputs", 0)]).ravel()
    labels = stream(0, "labels", 0).standard_normal(net.outputs)
    theirs = np.asarray(energies(net, weights, inputs, labels))
    np.testing.assert_allclose(theirs, [ours["label_term"][0], ours["output_term"][0]], rtol=1e-10)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_draw_by_automatic_differentiation(race: Race, sizes: Sizes, library: str, precision: str) -> None:
    module, build, energies = LIBRARIES[library]
    pytest.importorskip(module)
    net = the_mlp(sizes)
    try:
        require_bytes(MATRICES * draw_bytes(net), "differentiation", "width or depth")
    except MemoryError as error:
        pytest.skip(str(error))
    draw = build(net, precision)
    if precision == "float64":
        require_same(energies)
    race(
        draw,
        dense_demands(net),
        group="Draws by automatic differentiation",
        what=f"dense draw, {precision}",
        size=described(net),
        amount=1,
        unit="draws",
        by=library,
    )
