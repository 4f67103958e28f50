"""Zhang et al. 2026, lemma 2: an average over labels splits the update energy, S = A + B; checked by enumeration."""

from itertools import product

import numpy as np
import xarray as xr
from numpy.random import Generator

import meanfield as mf
from meanfield.common import Array, stream
from meanfield.nets import MLP
from meanfield.verification import Claim, Judges, Kind, Ruling, checks, identity

# Parameters are moved by this much, so that differences of pre-activations are exact to about its square.
STEP = 1e-5
# What is left of ratios that should be 1: rounding of sums, and the error of central differences.
TOLERANCE = 1e-6
# Nets that are tried, in turn, until one has no layer whose units are all off.
ATTEMPTS = 100

JUDGES = Judges("Zhang et al. 2026")


def label_average(net: MLP, seed: int) -> xr.Dataset:
    """S_l of one net by enumeration of all labels of +-1, A_l + B_l from error columns, and B_l from the kernel.

    Variables, by layer: ``enumerated`` mean over labels of mean_a (Delta z_a)^2; ``split`` A + B; ``label_term`` B;
    ``kernel_term`` sigma_y^2 mean_a sum_t Theta_at^2 / M, as eq. 19 prints it, Theta by central differences.

    Raises:
        ValueError: every net that is tried has a layer whose units are all off, so that nothing moves it.
    """
    examples = (_example(net, stream(seed, "label average", attempt)) for attempt in range(ATTEMPTS))
    moving = next((example for example in examples if np.all(example[-1] > 0)), None)
    if moving is None:
        raise ValueError(
            f"{ATTEMPTS} nets of depth {net.depth} and width {net.channels_by_layer[1]} all had a layer that no label "
            "moves, as its units are off; give more width, or less depth"
        )
    weights, inputs, outputs, label_term, enumerated = moving
    columns = {
        "enumerated": enumerated,
        "split": _energies(net, weights, inputs, outputs) + label_term,
        "label_term": label_term,
        "kernel_term": _squared_kernel(net, weights, inputs) / outputs.size,
    }
    variables = {name: ("layer", values) for name, values in columns.items()}
    return xr.Dataset(variables, {"layer": np.arange(1, net.depth + 1)}, {"outputs": outputs.size})


def _example(net: MLP, random: Generator) -> tuple[list[Array], Array, Array, Array, Array]:
    """Weights, inputs and outputs of one net; B_l, and S_l by enumeration, 0 where all units of a layer are off."""
    weights = [
        random.normal(0.0, np.sqrt(s), shape) for shape, s in zip(net.weight_shapes, net.weight_variances, strict=True)
    ]
    inputs = random.normal(size=net.input_shape)
    *_, outputs = mf.pre_activations(net, weights, inputs)
    signs = [np.reshape(labels, outputs.shape) for labels in product((-1.0, 1.0), repeat=outputs.size)]
    enumerated = np.mean([_energies(net, weights, inputs, outputs - labels) for labels in signs], axis=0)
    units = np.eye(outputs.size).reshape(-1, *outputs.shape)
    label_term = np.sum([_energies(net, weights, inputs, unit) for unit in units], axis=0)
    return weights, inputs, outputs, label_term, enumerated


def _energies(net: MLP, weights: list[Array], inputs: Array, error: Array) -> Array:
    return np.array([np.mean(change**2) for change in mf.one_step(net, weights, inputs, error)])


@JUDGES.decide(
    claim="Averaged over labels, S = A + B exactly",
    source="lemma 2, eq. 18",
    rival="B alone",
    measured="(A + B) / S at every layer of one net, S the mean over all labels of -1 and 1",
)
def judge_split(dataset: xr.Dataset) -> Ruling:
    ratio, alone = (dataset[name] / dataset["enumerated"] for name in ("split", "label_term"))
    off, rival = (abs(values - 1) for values in (ratio, alone))
    return identity(
        ratio.values,
        1.0,
        float(alone.max()),
        TOLERANCE,
        f"A + B off by {float(off.max()):.2g} at most, B alone by at least {float(rival.min()):.2g}",
    )


@JUDGES.decide(
    claim="B = sigma_y^2 mean sum_t Theta_at^2 / M for the loss |z - y|^2 / (2M)",
    source="eq. 19",
    rival="over M^2",
    measured="the ratio of the two sides at every layer of one net",
)
def judge_prefactor(dataset: xr.Dataset) -> Ruling:
    ratio, outputs = dataset["label_term"] / dataset["kernel_term"], int(dataset.attrs["outputs"])
    evidence = f"ratio {float(ratio.min()):.6f} .. {float(ratio.max()):.6f} with M = {outputs}"
    return identity(ratio.values, 1.0, 1.0 / outputs, TOLERANCE, evidence)


@JUDGES.decide(
    claim="B is sigma_y^2 mean sum_t Theta_at^2 times one constant, whatever the layer",
    source="eq. 19",
    rival="the kernels of the layer below in its place",
    measured="B over that sum of squared kernels at every layer, divided by the same ratio at layer 1",
)
def judge_proportional(dataset: xr.Dataset) -> Ruling:
    kernel = dataset["kernel_term"].values
    ratio = dataset["label_term"].values / kernel
    below = dataset["label_term"].values[1:] / kernel[:-1]
    constant, outputs = float(ratio[0]), int(dataset.attrs["outputs"])
    printed = f"the constant is {constant:.6f} of the printed one, 1/M with M = {outputs}"
    evidence = f"layers differ by {np.ptp(ratio) / constant:.1g}; {printed}"
    return identity(ratio / constant, 1.0, float(below.min() / constant), TOLERANCE, evidence)


def _squared_kernel(net: MLP, weights: list[Array], inputs: Array) -> Array:
    """mean_a sum_t Theta_at^2 between z^(l) and the outputs, by layer: parameters of layers 1 .. l alone."""
    total = np.zeros((net.depth, net.channels_by_layer[1], net.output_units))
    for layer, weight in enumerate(weights[:-1]):
        for place in np.ndindex(weight.shape):
            ends = []
            for sign in (1, -1):
                moved = [w.copy() for w in weights]
                moved[layer][place] += sign * STEP
                ends.append(mf.pre_activations(net, moved, inputs))
            *hidden, output = ((up - down).ravel() / (2 * STEP) for up, down in zip(*ends, strict=True))
            for above in range(layer, net.depth):
                total[above] += np.outer(hidden[above], output)
    return np.asarray(np.square(total).sum(axis=2).mean(axis=1))


CLAIMS = (
    Claim(
        id="A2",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 2, eq. 18-20",
        statement="averaged over labels, S_l = A_l + B_l with B_l proportional to sigma_y^2 sum_t Theta_t^2 (eq. 19 "
        "loses a constant: for the loss |z - y|^2 / (2M) it is 1 / M^2, printed 1 / M; no exponent changes)",
        brief="averaged over labels S_l = A_l + B_l, B_l proportional to sum_t Theta_t^2",
        printed='"after one SGD step at initialization, E[(Delta z_a^(l))^2] = A_cnn^(l) + B_cnn^(l)" (lemma 2, eq. '
        "18)",
        hypotheses="labels of mean 0 and variance sigma_y^2, independent over outputs and of the network",
        checks=checks("identities", judge_split, judge_proportional),
        identity=True,
    ),
)
