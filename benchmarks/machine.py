"""The machine that benchmarks run on, in words for their table."""

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

PACKAGES = ("numpy", "scipy", "numba", "jax", "torch")


def described() -> dict[str, str]:
    """Processor, memory, system, versions, load."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores, of which one is used",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *_versions()]),
        "matrix products": _blas(),
        "load": f"{os.getloadavg()[0]:.1f} processes waiting or running in the last minute",
    }


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text().splitlines() if listed.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _versions() -> list[str]:
    versions = []
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    return versions


def _blas() -> str:
    """The library behind NumPy's products, and the kernels that it uses."""
    for library in threadpool_info():
        if library["user_api"] == "blas" and "numpy" in library["filepath"]:
            return f"{library['internal_api']} {library['version']} ({library.get('architecture', 'unknown')})"
    return "unknown"
