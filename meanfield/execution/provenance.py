"""Where a number comes from: which code, which versions, which arguments."""

from __future__ import annotations

import hashlib
import json
import platform
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from meanfield.version import __version__

_READ_BY_NUMBERS = ("numpy", "numba", "scipy", "xarray")


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of the library's own sources: pieces made by other code are never mistaken for this code's."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def digest(**what: Any) -> str:
    """A short digest of plain values, the same on every machine."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def provenance(**what: Any) -> str:
    """JSON of ``what`` with the library's digest and the versions behind the numbers."""
    versions = {"meanfield": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _READ_BY_NUMBERS}
    return json.dumps({**what, "code": code_digest(), "versions": versions}, sort_keys=True)
