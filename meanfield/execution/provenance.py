"""Where a number comes from: which code, which versions, which arguments."""

from __future__ import annotations

import json
import platform
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.common.digests import fingerprint
from meanfield.version import __version__

# Another version of these may draw, integrate or round otherwise; xarray only carries what they have computed.
_UNDER_NUMBERS = ("numpy", "numba", "scipy")
_CARRIERS = ("xarray",)


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of all code behind the library's numbers: pieces made by other code are never mistaken for this code's.

    That is its own sources, and the versions of what draws, integrates and rounds under them. (The driver and CuPy of a
    device are not in it, as a machine without them prepares its work too; `provenance` names them.)
    """
    return digest(sources=sources_digest(Path(__file__).parent.parent), versions=_versions(_UNDER_NUMBERS))


@lru_cache
def sources_digest(root: Path) -> str:
    """A digest of all Python files below a folder, and of where they lie."""
    found = sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def digest(**what: Any) -> str:
    """A short digest of plain values, specs and arrays, the same on every machine."""
    return sha256(json.dumps(what, sort_keys=True, default=_plain).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """As JSON can hold it: an array by a digest of its bytes, a spec by its values."""
    if isinstance(value, np.ndarray):
        return fingerprint(value)
    return value.describe()


def provenance(**what: Any) -> str:
    """JSON of ``what`` with the library's digest and the versions behind the numbers."""
    versions = {"meanfield": __version__, "python": platform.python_version()}
    versions |= _versions((*_UNDER_NUMBERS, *_CARRIERS))
    return json.dumps({**what, "code": code_digest(), "versions": versions}, sort_keys=True)


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    return {name: version(name) for name in packages}
