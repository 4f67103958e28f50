"""What the passes ask of an array library, so that they are written once for every library and precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.activations import ON_NUMPY, Pointwise
from meanfield.simulation.arrays.convolution import DirectConvolution
from meanfield.simulation.kernels import patches

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
        gather, gather_transpose, sum_over_shifts: as in `meanfield.simulation.kernels.patches`; tables are NumPy's.
        normals: (seed, purpose, group of draws, precision) -> source of standard normals on a device; None on the host,
            where every draw has a generator of its own.
        convolution: convolutions without patches, if they are wanted and the library has them.
        lenient: whether values that vanish under a normalisation become nan, as nets in training may come to them; an
            error if not.
    """

    backend: str
    precision: str
    xp: Any
    pointwise: Pointwise
    gather: Callable[..., Any]
    gather_transpose: Callable[..., Any]
    sum_over_shifts: Callable[..., Any]
    normals: Callable[[int, str, range, str], Any] | None = None
    convolution: DirectConvolution | None = None
    lenient: bool = False

    @property
    def order(self) -> str:
        """Which axis of fresh arrays lies innermost: the last, "C", or the first, "F", as convolutions want it."""
        return "F" if self.convolution else "C"

    def for_training(self) -> Arrays:
        """The same with convolutions that need no patches: the same numbers to rounding."""
        return self if self.normals else replace(self, convolution=DirectConvolution())

    def moved(self, values: NDArray[np.float64]) -> Any:
        """A NumPy array as this library's, at this precision."""
        return self.xp.asarray(values, dtype=self.precision)

    def fetched(self, values: Any) -> NDArray[np.float64]:
        """An array of this library as NumPy's, in double precision."""
        on_host = values if self.normals is None else self.xp.asnumpy(values)
        return np.asarray(on_host, dtype=np.float64)

    def softmax(self, logits: Any, axis: int) -> Any:
        """exp(logits) over its sum along an axis; logits are -inf where nothing is to fall, but not all of them."""
        shares = logits - logits.max(axis=axis, keepdims=True)
        self.xp.exp(shares, out=shares)
        shares /= shares.sum(axis=axis, keepdims=True)
        return shares

    def multiply_into(self, out: Any, left: Any, right: Any) -> None:
        """out <- left @ right, whatever the order of ``out`` in memory: not all versions of CuPy's matmul fill one."""
        if self.normals is None:
            np.matmul(left, right, out=out)
        else:
            out[...] = left @ right

    def squared_norms(self, vectors: Any) -> Any:
        """Sums of squares over the last axis, in double precision."""
        wide = vectors.astype("float64", copy=False)
        return np.vecdot(wide, wide) if self.normals is None else (wide * wide).sum(axis=-1)


def on_numpy(precision: str) -> Arrays:
    """NumPy, its stencils by compiled loops."""
    stencils = (patches.gather, patches.gather_transpose, patches.sum_over_shifts)
    return Arrays("numpy", precision, np, ON_NUMPY, *stencils)


NUMPY = on_numpy("float64")
