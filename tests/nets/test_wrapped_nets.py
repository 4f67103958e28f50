"""Chains, batch normalisation and dropout around every kind of net are served by each function, or refused in words."""

import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.nets.maps import Linear, Normalisation, Pointwise, Weight
from meanfield.nets.net import Unit
from meanfield.nets.recognised import as_family

HOW = {"draws": 3, "seed": 4}
NETS = {
    "mlp": mf.MLP(depth=2, width=16, inputs=3, outputs=2),
    "linear": mf.MLP(depth=2, width=5, activation="linear", outputs=2, head="mup"),
    "tanh": mf.MLP(depth=2, width=(4, 5), activation="tanh", weight_variance=1.7, head="mup", inputs=3),
    "wide": mf.MLP(depth=3, width=43, inputs=3, outputs=2),
    "residual": mf.ResidualMLP(depth=2, width=12, block_depth=2, scaling="multiplier_sqrt", stem=1, inputs=3),
    "convolutional": mf.ConvNet(depth=2, channels=4, grid=(4,), activation="silu"),
    "residual convolutional": mf.ResidualConvNet(
        depth=2, channels=4, grid=(4,), readout="convolution", activation="linear"
    ),
    "dense": mf.DenseNet(depth=2, growth=3, width=4, inputs=3, outputs=2),
    "stages": mf.StagedConvNet(depth=3, stages=(2, 1), channels=4, grid=(6,), readout="convolution", activation="gelu"),
    "residual stages": mf.StagedResidualConvNet(depth=3, channels=8, grid=(12,), block_depth=2, stem=1),
    "loop": mf.TiedLoop(depth=3, width=4, alpha=0.5, weight_variance=1.3),
    "stack": mf.TiedLoop(depth=3, width=4, tied=False, activation="gelu"),
    "transformer": mf.Transformer(depth=1, width=6, heads=2, tokens=3, norm="post"),
    "looped transformer": mf.Transformer(depth=2, width=6, tokens=3, vocabulary=4, tied=True, readout="every"),
}
WRAPS = {
    "batch normalisation": mf.with_batch_normalisation,
    "dropout": lambda net: mf.with_dropout(net, 0.1),
}


# Others, whose fields are read off the units, too.
FURTHER = (
    mf.Transformer(depth=2, width=8, heads=2, tokens=3, activation="swiglu", scaling="rezero", vocabulary=5, ffn=2.5),
    mf.Transformer(depth=2, width=8, tokens=3, norm="post", normalisation="rms", scaling="deepnorm", readout="last"),
    mf.Transformer(depth=3, width=8, tokens=3, normalisation="none", scaling="init", causal=True, rotary=True),
    mf.ResidualMLP(depth=3, width=4, scaling="multiplier_linear", stem=2, tail=1, input_width=3, head="fan_in"),
    mf.ResidualConvNet(depth=3, channels=4, grid=(4, 5), kernel=(3, 2), padding="zero", scaling="none"),
    mf.ConvNet(depth=3, channels=(4, 5, 6), grid=(4,), input_channels=3, weight_variance=2.0, activation="gelu"),
    mf.ConvNet(depth=2, channels=4, grid=(2, 3), kernel=(2, 2), readout="flatten", head="fan_in"),
    mf.ResidualConvNet(depth=2, channels=4, grid=(5,), readout="flatten", stem=1, input_channels=3),
    mf.Transformer(depth=2, width=8, tokens=3, readout="flatten", head="mup"),
    mf.DenseNet(depth=3, growth=4, width=6, head="fan_in", inputs=2),
    mf.DenseNet(depth=2, growth=2, width=3, stem=2, input_width=5, grid=(4, 3), padding="zero", readout="flatten"),
    mf.StagedConvNet(depth=4, channels=(4, 5), stages=(3, 1), grid=(4, 6), kernel=(1, 2), stride=(1, 3)),
    mf.StagedConvNet(depth=4, channels=4, stages=2, downsampling="pooling", head="mup", input_channels=3, inputs=2),
    mf.StagedConvNet(depth=4, channels=4, stages=2, grid=(5, 8), kernel=(3, 3), padding="zero", activation="gelu"),
    mf.StagedResidualConvNet(depth=6, channels=4, scaling="none", stem=2, input_channels=3, downsampling="pooling"),
    mf.TiedLoop(depth=1, width=3),
    mf.TiedLoop(depth=5, width=3, alpha=0.123456789, activation="silu"),
    mf.MLP(depth=2, width=3, input_width=7, inputs=4, head="mup"),
)


def _batched(net):
    """Three values or more of every channel, which batch normalisation takes."""
    if net.inputs * net.sites > 2:
        return net
    return mf.Chain.of(net, inputs=3) if isinstance(net, mf.TiedLoop) else net.replace(inputs=3)


def _weights(net):
    generator = np.random.default_rng(1)
    return [generator.standard_normal(shape) / np.prod(shape[1:]) ** 0.5 for shape in net.weight_shapes]


def _inputs(net, samples):
    values = np.random.default_rng(2).standard_normal((samples, net.first_channels, *net.grid))
    if net.input_law != "tokens":
        return values
    return (values == values.max(axis=1, keepdims=True)).astype(float)


def _data(net):
    """Five samples of whole labels."""
    return _inputs(net, 5), np.random.default_rng(3).integers(2, size=(5, *net.output_shape[2:]))


def _targets(net):
    """Five samples of values."""
    return _inputs(net, 5), np.ones((5, *net.output_shape[1:]))


def _stepped(net):
    given = _weights(net), _inputs(net, net.inputs)
    return xr.Dataset(
        {
            str(n): (f"number {n}", step.ravel())
            for n, step in enumerate(mf.one_step(net, *given, np.ones(net.output_shape)))
        }
    )


def _transferred(net):
    told = mf.explain_transfer(0.1, net, net, rule="finite_depth")
    return xr.Dataset({"rate": told.rate, **told.rates})


FUNCTIONS = {
    "simulate": lambda net: mf.simulate(net, **HOW),
    "simulate dense": lambda net: mf.simulate(net, weights="dense", **HOW),
    "simulate lazy": lambda net: mf.simulate(net, weights="lazy", **HOW),
    "simulate float32": lambda net: mf.simulate(net, precision="float32", **HOW),
    "simulate cross-entropy": lambda net: mf.simulate(net, loss="cross_entropy", **HOW),
    "overlaps": lambda net: mf.simulate(net, measure=mf.PairOverlaps(pairs=[((1, 1), (2, 2))]), **HOW),
    "run": lambda net: mf.simulate_all([mf.Run(net, mf.Energies(weights="dense"), 3, 4)])[0],
    "activation statistics": lambda net: mf.simulate(net, measure=mf.ActivationStatistics(), **HOW),
    "tangents": lambda net: mf.simulate(net, measure=mf.TangentPropagation(), **HOW),
    "tokens": lambda net: mf.simulate(net, measure=mf.TokenStatistics(), **HOW),
    "residual energies": lambda net: mf.simulate(net, measure=mf.ResidualEnergies(), **HOW),
    "stream updates": lambda net: mf.simulate(net, measure=mf.StreamUpdates(), **HOW),
    "trained energies": lambda net: mf.simulate(net, measure=mf.TrainedResidualEnergies(steps=1), **HOW),
    "memory": lambda net: xr.Dataset({"bytes": mf.memory(net)}),
    "exact": lambda net: mf.predict(net, level="exact"),
    "mean field": lambda net: mf.predict(net, level="mean_field"),
    "law": lambda net: mf.predict(net, level="law"),
    "one step": _stepped,
    "train": lambda net: mf.train(net, _data(net), rates=[0.1], steps=2, seeds=2),
    "tuned rate": lambda net: mf.tuned_rate(net, _data(net), steps=1, seeds=2, grid=[0.01, 0.1, 1.0], spacing=1 / 2),
    "stable rate": lambda net: mf.stable_rate(net, _data(net), draws=2),
    "stable rate in mean field": lambda net: mf.stable_rate(net, _targets(net), loss="squared", level="mean_field"),
    "transfer": _transferred,
}
# Functions that take long, and nets that stand for all of them.
FEW = {"tuned rate": ("linear", "loop")}
# What a refusal says of nets whose units no family has, and of what a kind of net has not.
DOCUMENTED = (
    r"Chain whose units are those of no family that has .*; give an MLP",
    r"divides every channel by its own deviation over the batch,.*; train or simulate this net",
    r"its masks are those of steps of training.*; predict the net without dropout, or train it",
    r"a net is 'Chain'; give two specs of one family .*; draw both ends of other nets",
    r"a single token or site, .*; give 2 or more",
    r"adds its branch to the value below it, .*; give a loop, a residual net",
    r"a step of the stream alone moves no other weights, .*: leave these out",
    r"of the stream above its units|behind their joins",
    r"loop is of type \w+; it must be a TiedLoop",
    r"is for nets: leave it out|are those of nets; .*: leave them out",
    r"is used in several places, so that values correlate across them",
    r"its input is not Gaussian, .*; put a linear map that sees many channels before it",
    r"maps behind the join",
    r"unit 1 skips|skips from value",
)


def _nets(call):
    few = next((few for name, few in FEW.items() if FUNCTIONS[name] is call), NETS)
    return [(name, NETS[name]) for name in few]


def _answer(call, net):
    """The numbers of a function, or its refusal."""
    try:
        return call(net)
    except (TypeError, ValueError) as refusal:
        return refusal


def _same(first, second):
    """Numbers to rounding; refusals word by word, but for the name of the class."""
    if isinstance(first, Exception) or isinstance(second, Exception):
        kinds = r"\b(Chain|(Residual|Staged|StagedResidual)?(MLP|ConvNet)|TiedLoop|Transformer)\b"
        return type(first) is type(second) and re.sub(kinds, "", str(first)) == re.sub(kinds, "", str(second))
    xr.testing.assert_allclose(first, second, rtol=1e-12)
    return set(first.data_vars) == set(second.data_vars)


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning", "ignore:no seed has a minimum")
@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_chain_of_a_family_s_units_is_served_as_the_family(call):
    answered = 0
    for name, net in _nets(call):
        of_family, of_chain = (_answer(call, given) for given in (net, mf.Chain.of(net)))
        assert _same(of_family, of_chain), (name, of_family, of_chain)
        answered += not isinstance(of_chain, Exception)
    assert answered


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning", "ignore:no seed has a minimum")
@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_wrapped_nets_are_served_or_refused_in_a_documented_line(call, wrap):
    for name, net in _nets(call):
        given = _answer(call, wrap(_batched(net)))
        if isinstance(given, Exception):
            assert any(re.search(words, str(given)) for words in DOCUMENTED), (name, given)
            continue
        numbers = [values for key, values in given.data_vars.items() if "rate" not in key]  # which may be infinite
        assert numbers or "rate" in str(list(given.data_vars)), name
        assert all(np.isfinite(values).all() for values in numbers), name


ALWAYS = ("simulate", "simulate dense", "simulate lazy", "run", "memory", "one step", "train", "stable rate")


@pytest.mark.parametrize("wrap", [mf.Chain.of, *WRAPS.values()], ids=["chain", *WRAPS])
def test_what_draws_and_trains_serves_every_wrapped_net(wrap):
    for net in NETS.values():
        for name in ALWAYS:
            FUNCTIONS[name](wrap(_batched(net)))


@pytest.mark.parametrize("net", [*NETS.values(), *FURTHER])
def test_the_family_of_a_chain_is_read_off_its_units(net):
    assert as_family(mf.Chain.of(net)) == net
    assert as_family(net) is net


def test_names_of_weights_are_no_part_of_a_family():
    net = mf.MLP(depth=2, width=4)
    renamed = {name: f"layer {name}" for name in net.weights}

    def under(unit):
        activation, linear = unit.branch
        (weight,) = linear.weights
        other = Weight(renamed[weight.name], weight.shape, weight.variance)
        return Unit((activation, Linear((other,))))

    chain = mf.Chain.of(net, units=tuple(map(under, net.units)), readout_unit=under(net.readout_unit))
    assert as_family(chain) == net


def _changed(net, place, **changes):
    units = list(net.units)
    units[place] = replace(units[place], **changes)
    return mf.Chain.of(net, units=tuple(units))


@pytest.mark.parametrize(
    "chain",
    [
        _changed(NETS["residual"], 1, skip=None),
        _changed(NETS["mlp"], 0, after=(Normalisation("rms"),)),
        mf.Chain.of(NETS["mlp"], readout_unit=None),
        mf.Chain.of(NETS["loop"], inputs=2),
        mf.Chain.of(NETS["transformer"], grid=(3, 1)),
    ],
)
def test_other_units_are_no_family_s(chain):
    """The negative control: any number, map, law or shape that differs leaves the chain what it is."""
    assert as_family(chain) is chain
    with pytest.raises(ValueError, match=r"there is none for lists of units that are no family's: .*; take a chain of"):
        mf.predict(chain, level="mean_field")


@pytest.mark.parametrize(
    ("chain", "net"),
    [
        (_changed(NETS["mlp"], 1, multiplier=1.001), NETS["mlp"]),
        (_changed(NETS["residual"], 2, multiplier=0.5), NETS["residual"]),
        (mf.Chain.of(NETS["tanh"], input_law="white"), NETS["tanh"]),
        (mf.Chain.of(NETS["mlp"], input_energy=0.7), NETS["mlp"]),
    ],
)
def test_other_layers_are_no_family_s_but_predicted(chain, net):
    """The mean field of its own layers, which is not that of the family's net."""
    assert as_family(chain) is chain
    predicted, of_family = (mf.predict(each, level="mean_field") for each in (chain, net))
    assert not np.allclose(predicted["label_term"], of_family["label_term"], rtol=1e-4)
    with pytest.raises(ValueError, match="level for Chain is 'exact'; choose one of 'mean_field'"):
        mf.predict(chain, level="exact")


def test_normalised_inputs_of_a_chain_make_a_first_value_of_variance_one():
    first = Unit((Pointwise("gelu"), Linear((Weight("first", (64, 5), 0.3),))))
    chain = mf.Chain(units=(first,), input_channels=5, input_law="normalised")
    drawn = mf.simulate(chain, draws=200, seed=1, measure=mf.Energies())
    assert drawn["label_term"].size == 1
    assert chain.input_energy == pytest.approx(1 / 1.5)
    with pytest.raises(ValueError, match=r"input_energy is 1.6, and the mean square of the activation .* is below"):
        mf.Chain(
            units=(Unit((Pointwise("tanh"), first.branch[1])),),
            input_channels=5,
            input_law="normalised",
            input_energy=1.6,
        )
    with pytest.raises(ValueError, match="known of a first unit that is a linear map"):
        mf.Chain(units=(Unit((Normalisation("rms"), first.branch[1])),), input_channels=5, input_law="normalised")
    with pytest.raises(ValueError, match="inputs of that law are not scaled: leave it out"):
        mf.Chain(units=(first,), input_channels=5, input_energy=0.5)


def test_batch_normalisation_of_one_value_is_refused_and_of_two_is_warned_of():
    net = mf.MLP(depth=2, width=4)
    with pytest.raises(ValueError, match=r"over 1 value.s. of a channel, .* leaves 0, .*; give inputs=3 or more"):
        mf.simulate(mf.with_batch_normalisation(net), **HOW)
    with pytest.warns(mf.PremiseWarning, match=r"over 2 value.s. of a channel, .* leaves signs"):
        drawn = mf.simulate(mf.with_batch_normalisation(net.replace(inputs=2)), **HOW)
    assert np.isfinite(drawn["update_energy"]).all()
    mf.simulate(mf.with_batch_normalisation(net.replace(inputs=3)), **HOW)
