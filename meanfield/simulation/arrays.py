"""What the passes ask of an array library, and what its numbers can hold.

The passes are written once for every library and precision. `Arrays` is one of them: NumPy on the host, or CuPy on a
device, which lacks the loops of `meanfield.simulation.kernels.stencils` and has one stream of numbers for a group of
draws.

Draws whose numbers leave the range of floats are refused, not averaged. Sizes change by a factor from layer to layer:
fading numbers come close to the smallest float before they are lost, and growing ones end as infinity. So it is
enough to check that no single matrix changes sizes by too much, and to look at the pre-activations of every layer and
at their change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.common.array_libraries import on_host
from meanfield.common.seeds import stream_key
from meanfield.common.validation import Array, require_choice
from meanfield.nets.activations import ON_NUMPY, ArrayFunctions
from meanfield.nets.lattice import OUTSIDE, SiteTable
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Net
from meanfield.simulation.kernels.stencils import DirectConvolution, gather, gather_transpose, sum_over_shifts

PRECISIONS = ("float64", "float32")
BACKENDS = ("numpy", "cupy")


@dataclass(frozen=True)
class Arrays:
    """One array library at one precision; no operation mixes two of either.

    Attributes:
        backend: its name.
        precision: "float64" or "float32", of weights, pre-activations, errors and tangents. Norms and energies are
            summed in double precision in either case.
        xp: the library's namespace.
        pointwise: the functions that activations are made of.
        gather, gather_transpose, sum_over_shifts: as in `meanfield.simulation.kernels.stencils`; tables are NumPy's.
        normals: (seed, purpose, group of draws, precision) -> source of standard normals on a device; None on the host,
            where every draw has a generator of its own.
        convolution: convolutions without patches, if they are wanted and the library has them.
        lenient: whether values that vanish under a normalisation become nan, as nets in training may come to them; an
            error if not.
    """

    backend: str
    precision: str
    xp: Any
    pointwise: ArrayFunctions
    gather: Callable[..., Any]
    gather_transpose: Callable[..., Any]
    sum_over_shifts: Callable[..., Any]
    normals: Callable[[int, str, range, str], Any] | None = None
    convolution: DirectConvolution | None = None
    lenient: bool = False

    @property
    def on_device(self) -> bool:
        """Whether the arrays lie on a device, whose answers the host waits for."""
        return self.normals is not None

    @property
    def order(self) -> str:
        """Which axis of fresh arrays lies innermost: the last, "C", or the first, "F", as convolutions want it."""
        return "F" if self.convolution else "C"

    def for_training(self) -> Arrays:
        """The same with convolutions that need no patches: the same numbers to rounding."""
        return self if self.on_device else replace(self, convolution=DirectConvolution())

    def moved(self, values: NDArray[np.float64]) -> Any:
        """A NumPy array as this library's, at this precision."""
        return self.xp.asarray(values, dtype=self.precision)

    def fetched(self, values: Any) -> NDArray[np.float64]:
        """An array of this library as NumPy's, in double precision."""
        return np.asarray(on_host(values), dtype=np.float64)

    def softmax(self, logits: Any, axis: int) -> Any:
        """exp(logits) over its sum along an axis; logits are -inf where nothing is to fall, but not all of them."""
        shares = logits - logits.max(axis=axis, keepdims=True)
        self.xp.exp(shares, out=shares)
        shares /= shares.sum(axis=axis, keepdims=True)
        return shares

    def squared_norms(self, vectors: Any) -> Any:
        """Sums of squares over the last axis, in double precision."""
        wide = vectors.astype("float64", copy=False)
        return np.vecdot(wide, wide) if self.normals is None else (wide * wide).sum(axis=-1)


def on_numpy(precision: str) -> Arrays:
    """NumPy, its stencils by compiled loops."""
    stencils = (gather, gather_transpose, sum_over_shifts)
    return Arrays("numpy", precision, np, ON_NUMPY, *stencils)


NUMPY = on_numpy("float64")


INSTALL = 'python -m pip install -e ".[cuda12]" (or ".[cuda13]", as the driver has it)'


@lru_cache(maxsize=8)
def arrays_of(backend: str, precision: str) -> Arrays:
    """The arrays of "numpy" or "cupy" in "float64" or "float32".

    Raises:
        ValueError: another name.
        ModuleNotFoundError: "cupy" without CuPy, or without the CUDA libraries that it calls.
        OSError: "cupy" without a device.
    """
    require_choice("backend", backend, BACKENDS)
    require_choice("precision", precision, PRECISIONS)
    return on_numpy(precision) if backend == "numpy" else on_device(*_cupy(), precision)


def on_device(xp: Any, special: Any, precision: str) -> Arrays:
    """Arrays of a namespace with CuPy's interface; ``special`` has that of `scipy.special`."""
    pointwise = ArrayFunctions(xp.maximum, xp.exp, xp.tanh, xp.ones_like, special.ndtr, special.expit, special.erf)
    stencils = Stencils(xp)
    moves = (stencils.gather, stencils.gather_transpose, stencils.sum_over_shifts)
    return Arrays("cupy", precision, xp, pointwise, *moves, normals=partial(GroupNormals, xp))


def device_described(backend: str) -> dict[str, str]:
    """The device of this process and the library that drives it, if there are any."""
    if backend == "numpy":
        return {}
    try:
        xp = arrays_of(backend, PRECISIONS[0]).xp
    except (ModuleNotFoundError, OSError):  # the draws are made elsewhere
        return {}
    name = xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)["name"]
    return {"device": name.decode() if isinstance(name, bytes) else str(name), backend: xp.__version__}


def _cupy() -> tuple[Any, Any]:
    """CuPy and its special functions, once a device answers."""
    try:
        cupy, special = import_module("cupy"), import_module("cupyx.scipy.special")
    except ImportError as error:
        raise ModuleNotFoundError(
            f"backend 'cupy' needs CuPy, which is not installed ({error}); install it with: {INSTALL}"
        ) from error
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise _no_device(str(error)) from error
    if devices == 0:
        raise _no_device("none is visible")
    try:
        _ = cupy.cuda.curand.CURAND_RNG_PSEUDO_PHILOX4_32_10
    except ImportError as error:
        raise ModuleNotFoundError(f"CuPy finds no CUDA libraries ({error}); install them with it: {INSTALL}") from error
    return cupy, special


def _no_device(why: str) -> OSError:
    return OSError(
        f"backend 'cupy' needs a CUDA device, and CuPy finds none ({why}); take backend 'numpy', or a machine with an "
        f"NVIDIA GPU and its driver, and install CuPy with: {INSTALL}"
    )


class Stencils:
    """Values moved between sites by whole-array operations of one namespace, which keeps the tables it is asked for.

    The zero outside the grid is one more site behind the last, which the table's -1 reaches from the end.
    """

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._tables: dict[int, tuple[SiteTable, Any]] = {}

    def gather(self, values: Any, table: SiteTable) -> Any:
        """patches: (D, n, R, S) -> (D, n k, R S'), row (i, Delta) being channel i shifted by Delta."""
        draws, channels, rows, _ = values.shape
        taps, sites = table.shape
        shifted = self._xp.take(self._bordered(values, table, 3), self._own(table), axis=3)
        return self._xp.moveaxis(shifted, 3, 2).reshape(draws, channels * taps, rows * sites)

    def gather_transpose(self, patches: Any, reversed_table: SiteTable, rows: int) -> Any:
        """patches^T: (D, n k, R S') -> (D, n, R, S), every site collecting what it gave to its neighbours."""
        taps, draws = len(reversed_table), len(patches)
        by_tap = self._bordered(patches.reshape(draws, -1, taps, rows, patches.shape[2] // rows), reversed_table, 4)
        givers = self._own(reversed_table)
        collected = self._xp.take(by_tap[:, :, 0], givers[0], axis=3)
        for tap in range(1, taps):
            collected += self._xp.take(by_tap[:, :, tap], givers[tap], axis=3)
        return collected

    def sum_over_shifts(self, gram: Any, table: SiteTable, samples: int) -> Any:
        """X^T X from sigma^T sigma: sum_Delta A(p + Delta, p' + Delta) for (D, B S, B S) site pairs."""
        taps, sites = table.shape
        pairs = gram.reshape(len(gram), samples, sites, samples, sites)
        bordered = self._bordered(self._bordered(pairs, table, 2), table, 4)
        reached = self._own(table)
        total = self._xp.zeros_like(pairs)
        for tap in range(taps):
            total += self._xp.take(self._xp.take(bordered, reached[tap], axis=2), reached[tap], axis=4)
        return total.reshape(gram.shape)

    def _bordered(self, values: Any, table: SiteTable, axis: int) -> Any:
        """Add a site of zeros behind the last along an axis, if the table reaches outside."""
        if not np.any(table == OUTSIDE):
            return values
        shape = (*values.shape[:axis], 1, *values.shape[axis + 1 :])
        return self._xp.concatenate([values, self._xp.zeros(shape, dtype=values.dtype)], axis=axis)

    def _own(self, table: SiteTable) -> Any:
        """The table in this namespace; the entry holds NumPy's too, so that its identity stays taken."""
        if id(table) not in self._tables:
            self._tables[id(table)] = (table, self._xp.asarray(table))
        return self._tables[id(table)][1]


class GroupNormals:
    """Standard normals of a group's draws, of one purpose and in one precision, by CuPy's `RandomState`.

    Its Philox generator takes a key of 64 bits, where those of CuPy's newer `Generator` are seeded with 32: among as
    many groups as long runs have, some would share their numbers.
    """

    def __init__(self, xp: Any, seed: int, purpose: str, draws: range, precision: str) -> None:
        key = stream_key(seed, f"{purpose} of {len(draws)} draws on a device", draws.start)
        self._generator = xp.random.RandomState(key, method=xp.cuda.curand.CURAND_RNG_PSEUDO_PHILOX4_32_10)
        self._precision = precision

    def drawn(self, shape: tuple[int, ...], deviation: float) -> Any:
        """The next numbers times ``deviation``, in an array of this shape that is written once."""
        return self._generator.normal(0.0, deviation, shape, dtype=self._precision)


# Below this, the errors behind a change, which are smaller by up to the fan-in, near the smallest number that single
# precision keeps in full, 1.2e-38.
LEAST = 1e-30
# The least size of weights in single precision: numbers that they shrink too far in one step were below LEAST before.
JUMP = 1e-15
# Energies are squared and summed over draws.
LARGEST_ENERGY = 1e150
LOG_RANGE = 300.0


def overflow_silent() -> AbstractContextManager[None]:
    """No warnings about what is refused here."""
    return np.errstate(over="ignore", invalid="ignore")


def require_range(sizes: Mapping[str, Array]) -> None:
    """Raise OverflowError unless all sizes, (D, layers) by what they are of, are 0 or well inside single precision."""
    for what, values in sizes.items():
        bad = ~np.isfinite(values) | ((values > 0) & (values < LEAST))
        if bad.any():
            draw, layer = np.argwhere(bad)[0]
            raise OverflowError(
                f"{what} has size {values[draw, layer]:.2g} at layer {layer + 1} in some draw, outside the range of "
                f"float32 ({LEAST:g} to 3e38, with room for what they are made of); take precision 'float64'"
            )


def require_followed(what: str, size: float, least: float = LEAST) -> None:
    """Raise OverflowError unless elements of this size are 0, or can be followed in single precision."""
    if size and not least <= size <= 1 / least:
        raise OverflowError(
            f"{what} has size {size:.2g}; float32 would lose in one step what passes through it (of sizes from "
            f"{least:g} to {1 / least:g} all is seen); take precision 'float64'"
        )


def require_reach(net: Net) -> None:
    """Raise OverflowError where weights off the fan-in rule make energies that double precision cannot hold.

    With homogeneous activations label terms go as f^(2L) and output terms as f^(3L), f the variance over the rule's.
    Other nets are checked when they are drawn.
    """
    if not isinstance(net, Sequential):
        return
    factor = net.variance_factor
    if factor == 1 or not net.sigma.homogeneous:
        return
    power = 3 if factor > 1 else 2
    deepest = LOG_RANGE / abs(power * log(factor))
    if net.depth > deepest:
        raise OverflowError(
            f"weight_variance is {net.weight_variance:g}: at depth {net.depth} energies are about "
            f"{factor:g}^{power * net.depth}, beyond what floats can hold and square; draw nets of depth "
            f"{int(deepest)} or less, or take predict, which has logarithms"
        )


def require_energies(energies: Mapping[str, Array], may_vanish: bool) -> None:
    """Raise OverflowError unless double precision holds all energies, (D, ...) by name, and their squares.

    A label term of 0 has been lost, unless terms ``may_vanish``, as behind units that are all off.
    """
    for name, values in energies.items():
        bad = ~(np.abs(values) < LARGEST_ENERGY)
        if name == "label_term" and not may_vanish:
            bad |= values == 0
        if bad.any():
            raise OverflowError(
                f"{name} is {values[bad][0]:.2g} at some layer in some draw, beyond what floats can hold and square; "
                "lower the depth or what makes it grow or fade so fast (branch scaling, weight_variance, inputs)"
            )


def require_finite_layers(what: str, arrays: Sequence[ArrayLike]) -> None:
    """Raise OverflowError unless all elements, layer by layer, are finite."""
    for layer, values in enumerate(arrays, start=1):
        if not np.isfinite(values).all():
            raise OverflowError(f"{what} of layer {layer} leaves the range of floats; give smaller weights or inputs")
