"""What a draw costs, before it is made: memory, arithmetic, and how many draws to carry together."""

from __future__ import annotations

from math import prod

from numpy import dtype

from meanfield.memory import NUMBER_BYTES, require_bytes
from meanfield.nets.layered import Sequential
from meanfield.simulation.gram_process import NUMBERS_PER_LAYER, has_gram_process
from meanfield.simulation.kernels.reveal import TOGETHER
from meanfield.simulation.old_passes import own_update_operations
from meanfield.simulation.overlap import unit_counts
from meanfield.simulation.update_energy import error_columns, overlap_method

# Patches of one batch should stay near the processor: beyond this, larger batches only lengthen the way.
BATCH_BYTES = 1 << 19
MOST_DRAWS_PER_BATCH = 64

# Freed blocks below this may stay with the process for the next request of their size (mallopt(3), M_MMAP_THRESHOLD).
REUSED_BYTES = 32 << 20

# A batch of lazily revealed draws should fit in what stays with the process from batch to batch (`slabs`). One of dense
# draws gains nothing where weights far outgrow the caches, and must leave room for other workers.
LAZY_BATCH_BYTES = 29 << 20
DENSE_BATCH_BYTES = 256 << 20

# Time per number that a lazily revealed matrix draws, over the time per element of a dense one: from 2.4 to 3.5 for 40
# to 320 columns of fully-connected and convolutional nets of 128 to 1024 channels. So an MLP of width 1024 crosses over
# at 85 inputs, one of width 256 at 21.
LAZY_EFFORT = 3.0
# Operations of a matrix product in the time of one random number.
OPERATIONS_PER_NUMBER = 150
# Of one layer of the Gram process, variates and arithmetic; and how many of its draws are carried together.
GRAM_OPERATIONS = 1.5e5
GRAM_DRAWS_PER_BATCH = 256


def chosen_weights(architecture: Sequential, weights: str, gram: bool = False) -> str:
    """The kind of weights: what was asked for, or under "auto" the cheapest: Gram process, lazy or dense.

    The Gram process serves some nets, where nothing but energies is asked (``gram``) and the overlap energy does not
    come from the tangent kernel itself, for which all columns are needed. Revealing pays where few columns meet large
    matrices.
    """
    if weights != "auto":
        return weights
    if overlap_method(architecture) == "dense":
        return "dense"
    if gram and has_gram_process(architecture):
        return "gram"
    elements = sum(rows * columns for _, (rows, columns) in _matrices(architecture))
    return "lazy" if _lazy_effort(architecture) < elements else "dense"


def draw_bytes(architecture: Sequential, weights: str = "dense", precision: str = "float64") -> int:
    """Bytes that one draw holds at its peak: weights, pre-activations, errors, and one layer's working arrays."""
    if weights == "gram":
        return NUMBER_BYTES * NUMBERS_PER_LAYER * architecture.depth
    places = architecture.inputs * architecture.sites
    columns = error_columns(architecture)
    widest = max(architecture.channels_by_layer)
    held = sum(prod(shape) for shape in architecture.weight_shapes)
    if weights == "lazy":
        held = _lazy_numbers_held(architecture)
    kept = sum(architecture.channels_by_layer) * places * (1 + columns)
    gram, explicit = own_update_operations(architecture, widest, widest * columns)
    # The Gram matrix of an own update, before and after its shifts, is gone when the tangent's patches are gathered.
    working = max(_patch_numbers(architecture, columns), 2 * places**2 if gram <= explicit else 0)
    working += 4 * widest * columns * places
    if gram > explicit:
        working += widest * columns * widest * architecture.taps
    if weights == "lazy" and columns * places >= TOGETHER:
        # Queries less what is known of them, and that part; and their products with all columns of either side.
        working += 2 * _patch_numbers(architecture, columns) + columns * places**2 * (1 + 3 * columns)
    features = _patch_numbers(architecture, 1)
    if architecture.taps > 1 and dtype(precision).itemsize * features < REUSED_BYTES:
        # Once the forward pass is over, its patches' memory waits for the tangent's, or goes back: the middle.
        working += features // 2
    if overlap_method(architecture) == "dense":
        working += (3 + architecture.taps) * max(unit_counts(architecture)) ** 2
    return dtype(precision).itemsize * (held + kept + working)


def batch_bytes(architecture: Sequential, draws: int, weights: str, precision: str = "float64") -> int:
    """Bytes at the peak of so many draws in one process, which carries a batch of them at a time."""
    together = min(draws, draws_per_batch(architecture, weights, precision))
    return together * draw_bytes(architecture, weights, precision)


def _matrices(architecture: Sequential) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Per hidden matrix, ((columns asked from the right, from the left), (rows, columns))."""
    places = architecture.inputs * architecture.sites
    probed = overlap_method(architecture) == "probes"
    found = []
    for layer, shape in enumerate(architecture.weight_shapes[:-1]):
        # A probe at a layer goes down and comes back up through every matrix below.
        errors = (error_columns(architecture) + probed * (len(architecture.layers) - layer)) * places
        asked = (places + errors, errors) if layer else (places, 0)  # nothing is carried below the first layer
        found.append((asked, (shape[0], prod(shape[1:]))))
    return found


def _lazy_numbers_held(architecture: Sequential) -> int:
    """What lazily revealed matrices keep between the passes, and the tangent's additions to the one at work.

    Every column is kept with its image, and answers from the left to the errors before they are gathered from patches.
    The tangent of the errors lets a matrix go when it has asked its last question; those of probes do not, and leave
    their columns on both sides.
    """
    places = architecture.inputs * architecture.sites
    errors = error_columns(architecture) * places
    held = [0]
    for (right, left), (rows, columns) in _matrices(architecture):
        answers = min(left, errors) * columns if architecture.taps > 1 else 0
        probed = max(0, right - places - errors)
        held.append((places + probed + left) * (rows + columns) + answers)
    return sum(held) + 2 * max(held)


def _lazy_effort(architecture: Sequential) -> float:
    """Time of a lazily revealed draw, in elements of a dense one: an answer has as many fresh numbers as elements."""
    return LAZY_EFFORT * sum(
        right * rows + left * columns for (right, left), (rows, columns) in _matrices(architecture)
    )


def draw_operations(architecture: Sequential, weights: str = "dense") -> float:
    """Floating-point operations of the matrix products in one draw: its three passes and its overlap energy.

    Draws without matrix products are counted as the operations that take the same time.
    """
    if weights == "gram":
        return GRAM_OPERATIONS * architecture.depth
    if weights == "lazy":
        return OPERATIONS_PER_NUMBER * _lazy_effort(architecture)
    columns = error_columns(architecture)
    passes = sum(_layer_operations(architecture, layer, columns) for layer in _layers(architecture))
    method = overlap_method(architecture)
    if method == "dense":
        return passes + sum(_kernel_operations(architecture, layer) for layer in _layers(architecture)[1:])
    if method == "probes":
        up_to = [_layer_operations(architecture, layer, 1) for layer in _layers(architecture)]
        return passes + sum(sum(up_to[:layer]) for layer in _layers(architecture))
    return passes


def _layers(architecture: Sequential) -> range:
    return range(1, len(architecture.layers) + 1)


def _layer_operations(architecture: Sequential, layer: int, columns: int) -> float:
    """One layer's share: its product forward, back and along for every column, and its own update."""
    below, above = architecture.channels_by_layer[layer - 1 : layer + 1]
    places = architecture.inputs * architecture.sites
    products = 1 + (2 * columns if layer > 1 else 0)  # nothing is carried below the first layer
    carried = 2 * below * above * architecture.taps * places * products
    return carried + min(own_update_operations(architecture, below, above * columns))


def _kernel_operations(architecture: Sequential, layer: int) -> float:
    """Carrying the tangent kernel through a layer, its columns and then its rows."""
    below, above = architecture.channels_by_layer[layer - 1 : layer + 1]
    places = architecture.inputs * architecture.sites
    return 2 * below * above * architecture.taps * places * places * (below + above)


def draws_per_batch(architecture: Sequential, weights: str = "dense", precision: str = "float64") -> int:
    """How many draws to carry through the passes together; it changes speed, never a number."""
    if weights == "gram":
        return GRAM_DRAWS_PER_BATCH
    patches = dtype(precision).itemsize * _patch_numbers(architecture, error_columns(architecture))
    most = LAZY_BATCH_BYTES if weights == "lazy" else DENSE_BATCH_BYTES
    fitting = min(BATCH_BYTES // patches, most // draw_bytes(architecture, weights, precision))
    return max(1, min(MOST_DRAWS_PER_BATCH, fitting))


def require_memory(
    architecture: Sequential, workers: int, draws: int, weights: str, precision: str = "float64"
) -> None:
    """Raise MemoryError, saying how much is needed, unless so many workers can hold their batches at once."""
    needed = workers * batch_bytes(architecture, draws, weights, precision)
    require_bytes(needed, f"drawing with {workers} worker(s)", "channels, grid, samples, depth or workers")


def _patch_numbers(architecture: Sequential, columns: int) -> int:
    return max(architecture.channels_by_layer) * architecture.taps * columns * architecture.inputs * architecture.sites
