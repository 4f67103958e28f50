"""What a draw costs, before it is made: memory, arithmetic, and how many draws to carry together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from numpy import dtype

from meanfield.common.machine import NUMBER_BYTES
from meanfield.nets.maps import Map, Weight
from meanfield.nets.net import Net, joined_weights, named_weights
from meanfield.optimizers.linear_algebra import is_worth_factors
from meanfield.simulation.kernels.gaussians import TOGETHER
from meanfield.simulation.kernels.gram_process import NUMBERS_PER_LAYER, has_gram_process
from meanfield.simulation.maps.base import operation_of
from meanfield.simulation.maps.weighted import own_update_operations
from meanfield.simulation.measures.base import Cost
from meanfield.simulation.measures.overlap_energy import overlap_method

# Patches of one batch should stay near the processor: beyond this, larger batches only lengthen the way.
BATCH_BYTES = 1 << 19
# So should tangent kernels, which every map passes through from both sides: of 128 units, in batches of 8 draws instead
# of 64, draws take 0.7 to 0.8 of the time.
KERNEL_BYTES = 1 << 20
MOST_DRAWS_PER_BATCH = 64

# Freed blocks below this may stay with the process for the next request of their size (mallopt(3), M_MMAP_THRESHOLD).
REUSED_BYTES = 32 << 20

# What a batch may hold. A larger one of dense draws gains nothing where weights far outgrow the caches, one of lazily
# revealed draws little, as its memory serves the next batch (`slabs`); other workers need room, too.
BATCH_BYTES_HELD = 256 << 20

# Time per number that a lazily revealed matrix draws, over the time per element of a dense one: from 2.4 to 3.5 for 40
# to 320 columns of fully-connected and convolutional nets of 128 to 1024 channels. So an MLP of width 1024 crosses over
# at 85 inputs, one of width 256 at 21.
LAZY_EFFORT = 3.0
# Operations of a matrix product in the time of one random number.
OPERATIONS_PER_NUMBER = 150
# Operations of a matrix product in the time of all else that a pass through one map costs.
OPERATIONS_PER_MAP = 1e6
# Of one layer of the Gram process, variates and arithmetic; and how many of its draws are carried together.
GRAM_OPERATIONS = 1.5e5
GRAM_DRAWS_PER_BATCH = 256


def draw_cost(net: Net, weights: str, precision: str = "float64") -> Cost:
    """What a draw of energies costs."""
    together = draws_per_batch(net, weights, precision)
    return Cost(draw_operations(net, weights), draw_bytes(net, weights, precision), together)


def chosen_weights(net: Net, weights: str, gram: bool = False) -> str:
    """The kind of weights: what was asked for, or under "auto" the cheapest: Gram process, lazy or dense.

    The Gram process serves some nets, where nothing but energies is asked (``gram``) and the overlap energy does not
    come from the tangent kernel itself, for which all columns are needed. Revealing pays where few columns meet large
    matrices.
    """
    if weights != "auto":
        return weights
    if overlap_method(net).name == "dense":
        return "dense"
    if gram and has_gram_process(net):
        return "gram"
    elements = sum(prod(weight.shape) for weight in named_weights(net.units).values())
    return "lazy" if _lazy_effort(net) < elements else "dense"


def draw_bytes(net: Net, weights: str = "dense", precision: str = "float64") -> int:
    """Bytes that one draw holds at its peak: weights, pre-activations, errors, and one layer's working arrays."""
    if weights == "gram":
        return NUMBER_BYTES * NUMBERS_PER_LAYER * len(net.units)
    places = net.places
    columns = overlap_method(net).columns
    products = _products(net)
    widest = max(max(product.below, product.above) for product in products)
    taps = max(product.taps for product in products)
    held = sum(prod(shape) for shape in net.weight_shapes)
    if weights == "lazy":
        held = _lazy_numbers_held(net)
    kept = net.inputs * (_kept_by_maps(net) + columns * _error_numbers(net, products))
    gram, explicit = own_update_operations(places, widest, taps, widest * columns)
    # The Gram matrix of an own update, before and after its shifts, is gone when the tangent's patches are gathered.
    working = max(_patch_numbers(net, columns), 2 * places**2 if gram <= explicit else 0)
    working += (2 * _widest_numbers(products) + 3 * max(_own_kept(net))) * columns * net.inputs
    if gram > explicit:
        working += widest * columns * widest * taps
    working += columns * net.inputs * _tied_rows(products, net)
    if weights == "lazy" and columns * places >= TOGETHER:
        # Queries less what is known of them, and that part; and their products with all columns of either side.
        working += 2 * _patch_numbers(net, columns) + columns * places**2 * (1 + 3 * columns)
    features = _patch_numbers(net, 1)
    if taps > 1 and dtype(precision).itemsize * features < REUSED_BYTES:
        # Once the forward pass is over, its patches' memory waits for the tangent's, or goes back: the middle.
        working += features // 2
    if overlap_method(net).name == "dense":
        working += (3 + taps) * max(net.value_sizes) ** 2
    return dtype(precision).itemsize * (held + kept + working)


@dataclass(frozen=True)
class WeightUse:
    """One use of weights: W patches, (above, below x taps) by (below x taps, samples x sites).

    ``revealed`` matrices lie side by side where weights are lazy; ``gated`` says whether a pointwise map stands below.
    Of the value that comes in there are ``sites_below``.
    """

    weights: tuple[Weight, ...]
    below: int
    above: int
    taps: int
    revealed: int
    gated: bool
    sites: int
    sites_below: int

    @property
    def fan_in(self) -> int:
        return self.below * self.taps

    @property
    def asked_below(self) -> int:
        """Elements below, once for each of the matrices side by side: they are asked from the left one by one."""
        return self.fan_in * self.revealed


def _products(net: Net) -> list[WeightUse]:
    """The products of the depth units, from the input up."""
    products = []
    for unit, place, spec, (below, grid) in net.map_shapes:
        if spec.mixes_channels and unit < len(net.units):
            of, above = spec.weights, sum(weight.shape[0] for weight in spec.weights)
            gated = place > 0 and net.units[unit].maps[place - 1].pointwise_activation is not None
            taps, sites = prod(of[0].shape[2:]), prod(spec.grid_above(grid))
            products.append(WeightUse(of, below, above, taps, len(joined_weights(of)), gated, sites, prod(grid)))
    return products


def _widest_numbers(products: list[WeightUse]) -> int:
    """The most channels times sites at an end of a product."""
    return max(max(product.below * product.sites_below, product.above * product.sites) for product in products)


def _error_numbers(net: Net, products: list[WeightUse]) -> int:
    """Numbers per sample and column of the errors at the input and above all products."""
    return net.first_channels * net.sites + sum(product.above * product.sites for product in products)


def _tied_rows(products: list[WeightUse], net: Net) -> int:
    """Rows times sites of all uses of tied weights, made at once beside their errors, thrice those of the largest.

    Moves wait for their use; of the weight at work errors and moves are gathered besides, and put in order.
    """
    rows = Counter[tuple[Weight, ...]]()
    for product in products:
        if net.use_counts[product.weights[0].name] > 1:
            rows[product.weights] += product.above * product.sites
    return rows.total() + 3 * max(rows.values(), default=0)


def _kept_by_maps(net: Net) -> int:
    """Numbers per sample of the values that maps are given, the last value, and what maps keep besides."""
    given, remade = net.value_channels[-1] * prod(net.value_grids[-1]), False
    for spec, channels, sites in _maps(net):
        given += 0 if remade else channels * sites
        remade = operation_of(spec).remade
    return given + sum(_own_kept(net))


def _own_kept(net: Net) -> list[int]:
    """Numbers per sample that every map of the depth units keeps besides its input."""
    return [operation_of(spec).kept(spec, channels, sites) * sites for spec, channels, sites in _maps(net)]


def _maps(net: Net, readout: bool = False) -> Iterator[tuple[Map, int, int]]:
    """The maps of the depth units, and those of the ``readout``, each with the channels and sites of its input."""
    for unit, _, spec, (channels, grid) in net.map_shapes:
        if readout or unit < len(net.units):
            yield spec, channels, prod(grid)


def step_operations(net: Net, samples: int) -> float:
    """Operations of the matrix products of one forward and backward pass and of the gradients, of any batch."""
    products = sum(sites * prod(weight.shape) for spec, _, sites in _maps(net, readout=True) for weight in spec.weights)
    return 6.0 * samples * products + OPERATIONS_PER_MAP * sum(len(unit.maps) for unit in net.all_units)


def weight_bytes(net: Net, precision: str = "float64") -> int:
    """Bytes of all weights."""
    return dtype(precision).itemsize * sum(map(prod, net.weight_shapes))


def passes_bytes(net: Net, samples: int, columns: int, precision: str) -> int:
    """A bound on the bytes that values and so many columns of errors of one net take, of a batch of any size."""
    products = _products(net)
    numbers = _kept_by_maps(net) + columns * _error_numbers(net, products)
    numbers += 2 * (1 + columns) * _widest_patches(products) + net.first_channels * net.sites
    return dtype(precision).itemsize * samples * numbers


def step_bytes(net: Net, samples: int, columns: int, curved: int, precision: str, patches: bool = True) -> int:
    """Bytes that one draw of the first step of a whole net holds at its peak, of a batch of any size.

    Values and the errors of so many ``columns``, and ``curved`` ones that make up a curvature, are held as the tangent
    begins. It works on one weight at a time, with ``patches`` of what a stencil multiplies or without them, and with
    its gradient by all columns where factors are more numbers than that. A curvature and what divides by it are whole.
    """
    products = _products(net)
    numbers = _kept_by_maps(net) + (columns + curved) * _error_numbers(net, products)
    numbers += 2 * (1 + columns) * _widest_numbers(products) + net.first_channels * net.sites
    if patches:
        numbers += (columns + curved) * max((_widest_patches([each]) for each in products if each.taps > 1), default=0)
    multiplied = (
        prod(weight.shape)
        for product in products
        for weight in product.weights
        if curved or not is_worth_factors((weight.shape[0], weight.fan_in), samples * product.sites)
    )
    held = sum(map(prod, net.weight_shapes)) + (1 + columns + (curved > 0)) * max(multiplied, default=0)
    return dtype(precision).itemsize * (samples * numbers + held)


def _widest_patches(products: list[WeightUse]) -> int:
    """The most numbers per sample that patches of a product have, at either end of it."""
    return max(
        max(product.below, product.above) * product.taps * max(product.sites_below, product.sites)
        for product in products
    )


def _own_products(net: Net) -> float:
    """Operations of the products of values with values in one draw, such as those of attention."""
    columns, total = overlap_method(net).columns, 0
    for spec, channels, sites in _maps(net):
        up, column = operation_of(spec).products(spec, channels, sites)
        total += sites * (up + columns * column)
    return float(net.inputs * total)


def _matrices(net: Net) -> list[tuple[tuple[int, int], WeightUse]]:
    """For every product the columns asked from the right and from the left, and the product itself."""
    products, probed = _products(net), overlap_method(net).name == "probes"
    matrices = []
    for layer, product in enumerate(products):
        places = net.inputs * product.sites
        # A probe at a layer goes down and comes back up through every matrix below.
        errors = (overlap_method(net).columns + probed * (len(products) - layer)) * places
        asked = (places + errors, errors) if layer else (places, 0)  # nothing is carried below the first layer
        matrices.append((asked, product))
    return matrices


def _lazy_numbers_held(net: Net) -> int:
    """What lazily revealed matrices keep between the passes, and the tangent's additions to the one at work.

    Every column is kept with its image, and answers that are not themselves a value or an error: those to the errors,
    but where a gate turns them into the error below, and those to values where they are put side by side. The tangent
    of the errors lets a matrix go when it has asked its last question; those of probes do not, and leave their columns,
    which move to new memory when others join them. Tied weights have room for all columns from the start.
    """
    held, added = 0, defaultdict[tuple[Weight, ...], int](int)
    for (right, left), product in _matrices(net):
        places = net.inputs * product.sites
        errors = overlap_method(net).columns * places
        tied = net.use_counts[product.weights[0].name] > 1
        stay = right if tied else right - min(errors, right - places)
        size = product.above + product.asked_below
        answers = min(left, errors) * product.asked_below
        gathered = answers if product.taps > 1 else 0
        apart = places * product.above + answers if product.revealed > 1 else 0 if product.gated else answers
        held += (stay + left) * size + max(gathered, apart)
        added[product.weights] += 0 if tied else 2 * ((stay + left) * size + gathered)
    return held + max(added.values(), default=0)


def _lazy_effort(net: Net) -> float:
    """Time of a lazily revealed draw, in elements of a dense one: an answer has as many fresh numbers as elements."""
    return LAZY_EFFORT * sum(
        right * product.above + left * product.asked_below for (right, left), product in _matrices(net)
    )


def draw_operations(net: Net, weights: str = "dense") -> float:
    """Floating-point operations of the matrix products in one draw: its three passes and its overlap energy.

    Draws without matrix products are counted as the operations that take the same time.
    """
    if weights == "gram":
        return GRAM_OPERATIONS * len(net.units)
    if weights == "lazy":
        return OPERATIONS_PER_NUMBER * _lazy_effort(net) + _own_products(net)
    first, *above_first = _products(net)
    samples, columns = net.inputs, overlap_method(net).columns
    passes = _operations(first, samples, columns, first=True)
    passes += sum(_operations(product, samples, columns) for product in above_first)
    passes += _own_products(net)
    method = overlap_method(net).name
    if method == "dense":
        # The tangent kernel is carried through a product by its columns and then by its rows.
        through = ((2 * product.above * product.fan_in, samples * product.sites, product) for product in above_first)
        return passes + sum(once * places * places * (each.below + each.above) for once, places, each in through)
    if method == "probes":
        up_to = list(accumulate(_operations(product, samples, 1) for product in above_first))
        return passes + sum(up_to) + (len(above_first) + 1) * _operations(first, samples, 1, first=True)
    return passes


def _operations(product: WeightUse, samples: int, columns: int, first: bool = False) -> float:
    """A product's share: forward, back and along for every column, and its own update; the first carries none."""
    places = samples * product.sites
    carried = 2 * product.above * product.fan_in * places * (1 if first else 1 + 2 * columns)
    return carried + min(own_update_operations(places, product.below, product.taps, product.above * columns))


def draws_per_batch(net: Net, weights: str = "dense", precision: str = "float64") -> int:
    """How many draws to carry through the passes together; it changes speed, never a number."""
    if weights == "gram":
        return GRAM_DRAWS_PER_BATCH
    size, method = dtype(precision).itemsize, overlap_method(net)
    patches = size * _patch_numbers(net, method.columns)
    fitting = min(BATCH_BYTES // patches, BATCH_BYTES_HELD // draw_bytes(net, weights, precision))
    if method.name == "dense":
        fitting = min(fitting, KERNEL_BYTES // (size * max(net.value_sizes) ** 2))
    return max(1, min(MOST_DRAWS_PER_BATCH, fitting))


def _patch_numbers(net: Net, columns: int) -> int:
    products = _products(net)
    return _widest_numbers(products) * max(product.taps for product in products) * columns * net.inputs
