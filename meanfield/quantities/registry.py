"""The registry: every quantity that a dataset may hold, defined once, as the glossary has it.

All quantities are dimensionless and reported at learning rate 1. ``scaling`` says how a quantity grows with the
channels n, the depth L and the layer l in nets with a "he" head, at leading order.
"""

import re
from dataclasses import dataclass, replace

from meanfield.quantities.block_nets import BLOCKS
from meanfield.quantities.glossary import CURVATURE, LOOPS, NETS, SINGLE_DRAWS, TRAINING

# A dataset's quantiles are at these shares p of the drawn nets: the middle net is typical, four in five nets lie
# between the outer two.
SHARES = (0.1, 0.5, 0.9)

_TITLE = re.compile(r"(\w+) = (.+?)(?: \[([\w ]+)\])?")
_LABEL = re.compile(r" (scaling|source|unpredicted): ")


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One variable of a dataset: its public name, the papers' letter, its dims, meaning, scaling and source.

    ``unpredicted`` says why `predict` gives it at no level, and where its theory is; empty if it does.
    """

    name: str
    symbol: str
    dims: tuple[str, ...]
    definition: str
    scaling: str
    source: str
    unpredicted: str = ""

    @property
    def long_name(self) -> str:
        return self.name.replace("_", " ")


def _entries(glossary: str, **shared: str) -> list[Quantity]:
    """The quantities of a glossary, with fields that all of them share."""
    return [_entry(entry, shared) for entry in re.split(r"\n(?=\w)", glossary.strip())]


def _entry(entry: str, shared: dict[str, str]) -> Quantity:
    title, text = entry.split("\n", 1)
    matched = _TITLE.fullmatch(title)
    if matched is None:
        raise ValueError(f"the glossary has the title {title!r}; write: name = symbol [dims]")
    name, symbol, dims = matched.groups(default="")
    definition, *labelled = _LABEL.split(" ".join(text.split()))
    fields = shared | dict(zip(labelled[::2], labelled[1::2], strict=True))
    return Quantity(name=name, symbol=symbol, dims=tuple(dims.split()), definition=definition, **fields)


def _logarithm(quantity: Quantity) -> Quantity:
    """The natural logarithm of a quantity, for depths at which the quantity itself leaves the range of a float."""
    name, symbol, definition = f"log_{quantity.name}", f"ln {quantity.symbol}", f"logarithm of: {quantity.definition}"
    scaling = f"logarithm of: {quantity.scaling}"
    return replace(quantity, name=name, symbol=symbol, definition=definition, scaling=scaling, unpredicted="")


def _adjusted(quantity: Quantity) -> Quantity:
    """The same mean with less error, where energies with exactly known means were measured beside it."""
    name, symbol = f"adjusted_{quantity.name}", f"{quantity.symbol} (adjusted)"
    definition = f"{quantity.definition}; less what energies with known means tell of each draw, at the same mean"
    said = f"is an estimate of the {quantity.long_name}, which is predicted"
    source = f"{quantity.source}; docs/theory.md section 6"
    return replace(quantity, name=name, symbol=symbol, definition=definition, source=source, unpredicted=said)


_ADJUSTED = (
    *("label_term", "output_term", "overlap_energy", "update_energy"),
    *("mean_update_energy", "learning_rate_scale", "label_learning_rate_scale"),
)
_ONE_STEP = _entries(NETS) + _entries(LOOPS)
_BLOCKS = _entries(
    BLOCKS,
    unpredicted="the paper gives exponents alone, which `meanfield.theory.laws` derives and simulations measure",
)
_SINGLE_DRAWS = _entries(
    SINGLE_DRAWS, unpredicted="of single draws; the exact level has their second moment, `predict(..., spread=True)`"
)
_TRAINING = _entries(TRAINING, unpredicted="what many steps do has no theory here; `meanfield.train` measures it")
_CURVATURE = _entries(CURVATURE, unpredicted="`meanfield.stable_rate` predicts it, for given inputs")
_CONTROLLED = [_adjusted(quantity) for quantity in _ONE_STEP if quantity.name in _ADJUSTED]
_ALL = (
    *(*_ONE_STEP, *map(_logarithm, _ONE_STEP), *_CONTROLLED),
    *(*_BLOCKS, *_SINGLE_DRAWS, *_TRAINING, *_CURVATURE),
)
QUANTITIES = {quantity.name: quantity for quantity in _ALL}
