"""What is given for a net, and what is said of it."""

import numpy as np
import pytest

import meanfield as mf

NET, LOOP = mf.MLP(depth=2, width=3), mf.TiedLoop(depth=2, width=3)
PAIRS = [((1, 1), (1, 1))]
INPUTS, ERROR = np.ones((1, 3)), np.ones((1, 10))


def given(net):
    """Weights, inputs and an error for this net; for what is none, something."""
    if not isinstance(net, mf.MLP | mf.TiedLoop):
        return [], INPUTS, ERROR
    return [np.ones(shape) for shape in net.weight_shapes], INPUTS, ERROR[:, : net.output_shape[1]]


OF_NETS = {"PairOverlaps": lambda net: mf.simulate(net, measure=mf.PairOverlaps(pairs=PAIRS), draws=2, seed=0)}
OF_ALL = {
    "simulate": lambda net: mf.simulate(net, draws=2, seed=0),
    "predict": lambda net: mf.predict(net, level="mean_field"),
    "memory": lambda net: mf.memory(net),
    "one_step": lambda net: mf.one_step(net, *given(net)),
    "pre_activations": lambda net: mf.pre_activations(net, *given(net)[:2]),
}
ENTRIES = OF_NETS | OF_ALL


class Module:
    """As a program's own net would be, with attributes of its own."""

    inputs, depth, width, weight_variance = 1, 2, 3, None


@pytest.mark.parametrize("given", [Module(), "MLP", None, 5, [NET]])
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_what_is_no_net_is_refused_with_what_to_give(entry, given):
    kind = type(given).__name__
    with pytest.raises(TypeError, match=rf"net is of type \w+(\.\w+)*\.{kind}; give an MLP, ConvNet, Resid"):
        entry(given)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_a_class_is_no_net(entry):
    with pytest.raises(TypeError, match=r"net is the class MLP; .* such as meanfield.MLP\(depth=8, width=512"):
        entry(mf.MLP)


@pytest.mark.parametrize("entry", OF_NETS.values(), ids=OF_NETS.keys())
def test_loops_are_not_served_everywhere(entry):
    with pytest.raises(TypeError, match=r"TiedLoop; give an MLP, ConvNet, ResidualMLP or ResidualConvNet of this lib"):
        entry(LOOP)


@pytest.mark.parametrize("entry", OF_ALL.values(), ids=OF_ALL.keys())
def test_loops_are_served_elsewhere(entry):
    entry(LOOP)
    with pytest.raises(TypeError, match="ResidualConvNet, or a TiedLoop of this library"):
        entry(Module())


def test_updates_of_streams_are_of_streams():
    with pytest.raises(
        ValueError, match=r"no unit of this MLP adds its branch .*; give a loop, a residual net or a pre-"
    ):
        mf.simulate(NET, measure=mf.StreamUpdates(), draws=2, seed=0)


@pytest.mark.parametrize("given", [NET, None, 5])
def test_moments_are_words(given):
    with pytest.raises(TypeError, match="a moment is words such as 'Theta_ij Theta_ij'"):
        mf.derive(given)
