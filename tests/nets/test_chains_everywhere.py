"""Chains that no family lists, in every function that takes a net: each works, or refuses in one line that says why."""

import re

import pytest

import meanfield as mf
from meanfield.nets.maps import Attention, Bias, Gate, Linear, Normalisation, Pointwise, Pooling, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.transfer import StableRate
from tests.nets.test_wrapped_nets import FUNCTIONS, _data

N = 8


def linear(name, above=N, below=N, *kernel):
    return Linear((Weight(name, (above, below, *kernel), 2 / below),))


def relu(name, *kernel):
    return Pointwise("relu"), linear(name, N, N, *kernel)


def chain(*units, readout=Unit((Pointwise("relu"), linear("readout", 2))), **options):  # noqa: B008 (frozen)
    return Chain(units=tuple(units), readout_unit=readout, input_channels=N, **({"inputs": 3} | options))


POOLED = Unit((Pooling("mean"), linear("readout", 2)))
CHAINS = {
    "activations": chain(*(Unit((Pointwise(name), linear(name))) for name in ("relu", "tanh", "erf"))),
    "factors": chain(Unit(relu("a"), None, 0.5), Unit(relu("b"))),
    "blocks": chain(Unit(relu("stem")), Unit(relu("a"), 1, 0.5), Unit((*relu("b"), *relu("c")), 2, 0.3)),
    "normalised": chain(Unit((linear("stem"),)), Unit((Normalisation("rms"), *relu("a")))),
    "bias": chain(Unit((linear("a"), Bias(Weight("bias", (N,), 0.1)))), Unit(relu("b"))),
    "gated": chain(Unit((linear("a", 2 * N), Gate("silu"), linear("b")))),
    "long skip": chain(Unit((linear("a"),)), Unit(relu("b")), Unit(relu("c"), 0)),
    "tied": chain(Unit((linear("a"),)), Unit((linear("a"),))),
    "stencils": chain(Unit(relu("a", 3)), Unit(relu("b", 2)), readout=POOLED, grid=(4,)),
    "attention": chain(Unit((linear("qkv", 3 * N), Attention(2), linear("o")), 0), readout=POOLED, grid=(4,)),
    "no readout": chain(Unit(relu("a")), readout=None),
    "stream alone": chain(Unit(relu("a"), 0, 0.5), Unit(relu("b"), 1, 0.5), readout=None),
}
STREAMS = {"blocks", "attention", "stream alone"}
SITES = {"stencils", "attention"}
LAYERS = {"activations", "factors", "blocks", "normalised"}
CLOSED = {*LAYERS, "bias", "gated", "stencils", "attention", "no readout"}

MOVED = {
    **FUNCTIONS,
    "compare": lambda net: mf.compare(*(mf.simulate(net, draws=9, seed=seed) for seed in (0, 1))),
    "transfer by curvature": lambda net: mf.explain_transfer(0.1, net, net, rule=StableRate(_data(net), draws=2)),
    "gram": lambda net: mf.simulate(net, weights="gram", draws=3, seed=0),
}
# Of each function, the chains that it serves, or all; and what it says of the others.
SERVED = {
    "simulate float32": (set(CHAINS) - {"stream alone"}, "a Chain is walked by backend 'numpy' in float64"),
    "simulate cross-entropy": (set(CHAINS) - {"stream alone"}, "a loop has neither samples nor labels"),
    "overlaps": (
        set(),
        r"those of no family that has what .* \(the change that one weight makes .*Energies serves any",
    ),
    "activation statistics": (
        set(),
        r"those of no family that has what .* \(energies of gates .*TokenStatistics these",
    ),
    "tangents": (SITES, "has a single token or site, which has no directions that sum to zero"),
    "tokens": (SITES, "has a single token or site, which has no other token"),
    "residual energies": (STREAMS, "adds its branch to the value below it"),
    "stream updates": (
        {"stream alone"},
        "adds its branch to the value below it|a step of the stream alone moves no other",
    ),
    "trained energies": (STREAMS, "adds its branch to the value below it"),
    "mean field": (LAYERS, "there is none for lists of units that are no family's: .*, and here "),
    "exact": (set(), "choose one of 'mean_field'|there is none for lists of units that are no family's"),
    "law": (set(), "choose one of 'mean_field'|there is none for lists of units that are no family's"),
    "stable rate in mean field": (CLOSED, "is used in several places|its input is not Gaussian"),
    "transfer": (
        LAYERS,
        r"a net is 'Chain'; .* give data=\(inputs, labels\), .* rule=meanfield.transfer.StableRate",
    ),
    "gram": (set(), "'gram' are for MLPs of 'relu' or 'linear' with one input.*; this is a Chain of other units"),
}
SLOW = {"tuned rate": {"activations", "stream alone"}}


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning", "ignore:no seed has a minimum")
@pytest.mark.parametrize("function", MOVED)
def test_every_function_serves_a_chain_or_says_why_not(function):
    served, words = SERVED.get(function, (set(CHAINS), ""))
    for name in SLOW.get(function, CHAINS):
        refusal = _refusal(MOVED[function], CHAINS[name])
        assert (refusal is None) == (name in served), (name, refusal)
        if refusal is not None:
            assert re.search(words, refusal), (name, refusal)
            assert "\n" not in refusal


def _refusal(call, net):
    """What it says, or None where it serves the net."""
    try:
        call(net)
    except (TypeError, ValueError) as refusal:
        return str(refusal)
    return None
