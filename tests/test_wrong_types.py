"""What is given in place of what a function takes is refused in one line: no error of Python's own escapes."""

import importlib
import inspect

import pytest

import meanfield as mf
from meanfield.common import machine
from meanfield.verification.judges import Judge

ROOMS = (
    "meanfield",
    *(f"meanfield.{room}" for room in ("common", "execution", "nets", "optimizers", "parameterizations", "quantities")),
    *(f"meanfield.{room}" for room in ("simulation", "theory", "transfer")),
)
# The engine of verdicts is not among the rooms: beside what `meanfield` lists of it, its names are for judges, which
# are handed the datasets of their own study.
WRONG = (None, "word", 5, {"a": 1}, [1])
REFUSALS = (TypeError, ValueError, OverflowError, MemoryError, OSError)
ESCAPES = (AttributeError, LookupError, AssertionError, NameError)


def _callables():
    """Every public function and class that takes something, by its first name; judges are called by their reports."""
    found = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, Judge):
                found.setdefault(id(value), (f"{room}.{name}", value))
    return dict(found.values())


def _required(value):
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # of type aliases
        return []
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each for each in parameters if each.default is each.empty and each.kind not in free]


TAKERS = {name: value for name, value in _callables().items() if _required(value)}


def refused(call, *args, **kwargs):
    """The refusal, or None where the call is served."""
    try:
        call(*args, **kwargs)
    except REFUSALS as refusal:
        return refusal
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TAKERS)
def test_no_error_of_python_s_own_escapes_a_public_name(name, monkeypatch):
    monkeypatch.setattr(machine, "_sharing", machine._sharing)  # which a number of processes changes
    required = _required(TAKERS[name])
    for wrong in WRONG:
        args = [wrong for each in required if each.kind is not each.KEYWORD_ONLY]
        named = {each.name: wrong for each in required if each.kind is each.KEYWORD_ONLY}
        refusal = refused(TAKERS[name], *args, **named)
        assert refusal is None or str(refusal)


def test_the_sweep_sees_what_escapes():
    """The negative control."""
    with pytest.raises(ESCAPES):
        refused(lambda net: net.units, None)
    with pytest.raises(ESCAPES):
        refused(lambda names: names["a"], {})
    assert len(TAKERS) > 130


NET, DRAWN = mf.MLP(depth=2, width=3), {"draws": 2, "seed": 0}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mf.Chain(units=NET), r"units is .*; give a sequence of depth units"),
        (lambda: mf.Chain(units=[1]), r"an entry of units is 1; give depth units"),
        (lambda: mf.Chain.of(None), r"net is None; give a net, such as meanfield.MLP"),
        (lambda: mf.Run(NET, "energies", 2, 0), r"measure is 'energies'; give measures, such as meanfield.Energies"),
        (lambda: mf.Run(None, mf.Energies(), 2, 0), r"net is of type builtins.NoneType; give an MLP"),
        (lambda: mf.simulate_all(None), r"runs is None; give a sequence of runs"),
        (lambda: mf.simulate_all([NET]), r"an entry of runs is .*; give runs, such as meanfield.Run"),
        (lambda: mf.with_dropout("net", 0.1), r"net is 'net'; give a net, such as"),
        (lambda: mf.with_batch_normalisation(5), r"net is 5; give a net, such as"),
        (lambda: mf.Workers(None, 3), r"scheduler is 3; give its address"),
        (lambda: mf.simulate(NET, resume_in=5, **DRAWN), r"resume_in is 5; give the path of a folder, or None"),
    ],
)
def test_a_refusal_says_what_was_given_and_what_is_allowed(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
