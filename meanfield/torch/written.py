"""Parameter groups as JSON: what stands in it, and what is refused before a group is made of it."""

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

# What a field has to be: in words, and whether a value is it.
Kind = tuple[str, Callable[[Any], bool]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


STRING: Kind = ("a string", lambda value: isinstance(value, str))
NAMES: Kind = ("a list of strings", _are_names)
NUMBER: Kind = ("a number, finite and at least 0", _is_number)
OBJECTS: Kind = ("a list of objects", lambda value: isinstance(value, list) and all(isinstance(x, dict) for x in value))
WHOLE = {"groups": OBJECTS, "edits": OBJECTS, "sizes": STRING, "premises": NAMES}
GROUP = {"name": STRING, "optimizer": STRING, "parameters": NAMES, "learning_rate": NUMBER, "weight_decay": NUMBER}
GROUP |= {"epsilon": ("a number or null", lambda value: value is None or _is_number(value))}
EDIT = {"what": ("'initial_std' or 'multiplier'", lambda value: value in ("initial_std", "multiplier"))}
EDIT |= {"where": STRING, "places": NAMES, "value": NUMBER, "was": NUMBER}
EDIT |= {"of_input": ("true or false", lambda value: isinstance(value, bool))}


def read_groups(text: str) -> dict[str, Any]:
    """What `ParameterGroups.to_json` wrote, with every field of every group and edit.

    Raises:
        ValueError: what is no JSON, no object, or has fields that are unknown, missing or of another kind.
    """
    try:
        held = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the text is no JSON of parameter groups: {error}; {WRITE}") from error
    _require_fields("the whole", held, WHOLE)
    for what, kinds in (("groups", GROUP), ("edits", EDIT)):
        for number, each in enumerate(held[what]):
            _require_fields(f"{what}[{number}]", each, kinds)
    return dict(held)


WRITE = "give what groups.to_json() wrote, unchanged"


def _require_fields(where: str, held: Any, kinds: Mapping[str, Kind]) -> None:
    start = f"the text is no JSON of parameter groups: {where}"
    if not isinstance(held, dict):
        raise ValueError(f"{start} is {json.dumps(held)[:60]} and no object; {WRITE}")
    if missing := [name for name in kinds if name not in held]:
        raise ValueError(f"{start} has no {missing[0]!r}; it needs {', '.join(map(repr, kinds))}; {WRITE}")
    if unknown := [name for name in held if name not in kinds]:
        raise ValueError(f"{start} has {unknown[0]!r}, which none has; {WRITE}")
    for name, (words, fits) in kinds.items():
        if not fits(held[name]):
            raise ValueError(f"{start} has {name!r} {json.dumps(held[name])[:60]}, which must be {words}; {WRITE}")
