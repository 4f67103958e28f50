"""The arrays of a backend and a precision by name, or one line that says what is missing."""

from functools import lru_cache, partial
from importlib import import_module
from typing import Any

from meanfield.common.validation import require_choice
from meanfield.nets.activations import Pointwise
from meanfield.simulation.arrays.arrays import BACKENDS, PRECISIONS, Arrays, on_numpy
from meanfield.simulation.arrays.device import GroupNormals, Stencils

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
    pointwise = Pointwise(xp.maximum, xp.exp, xp.tanh, xp.ones_like, special.ndtr, special.expit)
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
