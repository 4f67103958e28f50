"""Where a number comes from: which code, which versions, which arguments."""

import json
import platform
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from meanfield.common.identity import Identity
from meanfield.common.validation import require_instance
from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.net import Net
from meanfield.simulation.maps.base import OPERATIONS
from meanfield.simulation.training.losses import LOSSES
from meanfield.version import __version__

# Another version of these may draw, integrate or round otherwise; xarray only carries what they have computed.
_UNDER_NUMBERS = ("numpy", "numba", "scipy")
_CARRIERS = ("xarray",)

# What nets may state without computing it.
STATED = frozenset({"units", "readout_unit", "first_channels", "inputs", "grid", "input_law", "first_layer"})

# What they compute of these, map by map, which would make keys of deep nets half as long again to find.
RETOLD = frozenset({"map_shapes"})

# Endings of code and of the data beside it; the folder of `sims.claims` that holds results.
_SOURCES, _RECORDS = (".py", ".json"), "recorded_verdicts"

installed_version = lru_cache(metadata.version)  # which reads files


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
    """A short digest of plain values, specs, arrays and code, the same on every machine; see `Digests`."""
    return Digests()(**what)


class Digests:
    """Digests of things that share nets, measures and large arrays, each of which is gone through once.

    Two of them are equal where all is equal that numbers depend on. A net counts by its class and fields, and by what
    it is computed by: its units and readout, their maps, multipliers and variances, its inputs, and what its maps and
    activations do. Classes and functions of the library go by name, as `code_digest` holds their code; those of
    others go by their code, too.
    """

    def __init__(self) -> None:
        self._identity = Identity(known=[__name__.partition(".")[0]], parts_of=_parts)

    def __call__(self, **what: Any) -> str:
        return self._identity(what)[:16]


def _parts(value: Any) -> dict[str, Any]:
    """What a value says of itself, and what a net or a part of it is computed by."""
    told: dict[str, Any] = {"described": value.describe()} if callable(getattr(value, "describe", None)) else {}
    if isinstance(value, Net):
        kind: type = type(value)
        told |= {name: _yielded(value, name) for name in (_properties(kind) | STATED) - RETOLD}
    if (operation := OPERATIONS.get(type(value))) is not None:
        told["operation"] = operation
    for name, table in (("activation", ACTIVATIONS), ("loss", LOSSES)):
        word = getattr(value, name, None)
        if isinstance(word, str) and word in table:
            told[name] = table[word]
    return told


@lru_cache
def _properties(kind: type) -> frozenset[str]:
    """The public names that a class computes."""
    names = {name: value for base in kind.__mro__ for name, value in vars(base).items() if not name.startswith("_")}
    return frozenset(name for name, value in names.items() if isinstance(value, property | cached_property))


def _yielded(net: Net, name: str) -> Any:
    """What a net gives under this name, or why it gives nothing."""
    try:
        return getattr(net, name, None)
    except Exception as error:  # a family need not serve what only some measures ask for
        return repr(error)


def provenance(**what: Any) -> str:
    """JSON of ``what`` with the library's digest and the versions behind the numbers."""
    versions = {"meanfield": __version__, "python": platform.python_version()}
    versions |= _versions((*_UNDER_NUMBERS, *_CARRIERS))
    return json.dumps({**what, "code": code_digest(), "versions": versions}, sort_keys=True)


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    return {name: installed_version(name) for name in packages}
