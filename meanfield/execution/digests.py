"""Where a number comes from: which code, which versions, which arguments."""

import json
import platform
from functools import lru_cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.common.arrays import fingerprint
from meanfield.common.validation import require_instance
from meanfield.version import __version__

# Another version of these may draw, integrate or round otherwise; xarray only carries what they have computed.
_UNDER_NUMBERS = ("numpy", "numba", "scipy")
_CARRIERS = ("xarray",)

# Endings of code and of the data beside it; the folder of `sims.claims` that holds results.
_SOURCES, _RECORDS = (".py", ".json"), "recorded_verdicts"

version = lru_cache(metadata.version)  # which reads files


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of all code behind the library's numbers, so that pieces of other code are never taken for its own.

    It covers the library's sources and the versions of the packages that draw, integrate and round for them. It leaves
    out the driver and CuPy of a device, as a machine without them prepares its work too; `provenance` names them.
    """
    return digest(sources=sources_digest(Path(__file__).parent.parent), versions=_versions(_UNDER_NUMBERS))


@lru_cache
def sources_digest(root: Path) -> str:
    """A digest of the paths and contents below a folder of all code, and of the data that it reads.

    Recorded verdicts are neither: no number depends on them.
    """
    code = sha256()
    require_instance("root", root, Path, "the Path of a folder")
    for path in sorted(path for path in root.rglob("*") if path.suffix in _SOURCES and path.parent.name != _RECORDS):
        code.update(path.relative_to(root).as_posix().encode())
        code.update(path.read_bytes())
    return code.hexdigest()[:16]


def digest(**what: Any) -> str:
    """A short digest of plain values, specs and arrays, the same on every machine."""
    told: dict[int, tuple[Any, str]] = {}  # many specs may share large arrays, held here so that ids stay their own

    def plain(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value.describe()
        if id(value) not in told:
            told[id(value)] = value, fingerprint(value)
        return told[id(value)][1]

    return sha256(json.dumps(what, sort_keys=True, default=plain).encode()).hexdigest()[:16]


def provenance(**what: Any) -> str:
    """JSON of ``what`` with the library's digest and the versions behind the numbers."""
    versions = {"meanfield": __version__, "python": platform.python_version()}
    versions |= _versions((*_UNDER_NUMBERS, *_CARRIERS))
    return json.dumps({**what, "code": code_digest(), "versions": versions}, sort_keys=True)


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    return {name: version(name) for name in packages}
