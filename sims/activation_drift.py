"""How the activation and the variance of the weights bend the depth law of the learning rate.

ReLU keeps the energy of pre-activations at any variance; GELU, SiLU and tanh do not, and with the energy their gain
per layer, sigma_W^2 E[sigma'^2], drifts (Zhang et al. 2026, appendix F). Fully-connected nets with one input, scaled so
that z^(1) has variance 1, are drawn with each activation and three weight variances sigma_W^2/fan_in: the fan-in rule
1/q, He's 2 and the energy rule 1/E[sigma(G)^2]. Energies of pre-activations and gates are held against the mean field
by layer, and eta* over depths, extrapolated from two widths; the mean field goes on to depths that no width can follow.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common import Array, PowerLaw, log_slope, mean_square
from meanfield.nets import MLP, Activation, ConvNet, activation_named
from meanfield.simulation import ActivationStatistics
from meanfield.theory import chain_corrections, mean_field_chain, scales_by_depth
from meanfield.verification import (
    COMMON_SWEEP,
    GELU_SLOPE,
    HE_GAIN,
    RELU_SLOPE,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    between,
    checks,
    computed,
    contest,
    extrapolated,
    joined,
    lower,
    span,
)
from sims.common.command import Option, Preset, counted, ladder
from sims.common.datasets import Axes, Variable, attributes, over, seeded_run, taken
from sims.common.report import ETA, Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, drawn, fitted, measured, number, signed

NAME = "activation_drift"
LISTED = "how activation and weight variance bend the depth law"

# What is asked for.

# Scales are extrapolated in 1/width from the width and this part of it.
NARROW = 4
# Layers that the mean field is followed over: at the energy rule rounding, amplified, shows from some hundred on.
FAR = 60


def _followed_depths(written: str, given: list[int]) -> list[int]:
    """Depths for a slope, none beyond those of the mean field."""
    depths = ladder(written, given, 2, "a slope", why="depths of the nets that are drawn")
    if depths[-1] > FAR:
        raise ValueError(f"{written} reach {depths[-1]}; the mean field beside them is followed to {FAR} layers")
    return depths


OPTIONS = (
    Option("depths", "depths to draw, two or more", int, metavar="L", many="+", check=_followed_depths),
    Option(
        "width",
        "units of a layer; a fourth as many are drawn too",
        int,
        metavar="N",
        check=counted(f"a {NARROW}th as many units are drawn too", minimum=NARROW),
    ),
    Option("outputs", "outputs (default: 100; few blur the labels)", int, 100, metavar="M"),
)
PRESETS = {
    "smoke": Preset("4 s", depths=[3, 5, 8], width=1024, draws=64),
    "default": Preset("25 s", depths=[3, 5, 8, 12], width=8192, draws=128),
    "paper": Preset("20 min", depths=[3, 5, 8, 12, 18], width=32768, draws=1024),
}

# What is measured.

WHOLE, LABEL_SCALE = SCALES = ("learning_rate_scale", "label_learning_rate_scale")
ENERGIES = ("pre_activation_energy", "gate_energy")
RELU = "relu"
SMOOTH = ("gelu", "silu", "tanh")
# Of the weight variance sigma_W^2; "energy" keeps the mean energy of pre-activations, and Zhang et al. 2025 align GELU
# with ReLU so.
RULES = ("fan_in", "he", "energy")
# A small stand-in for the nets on images of Zhang et al. 2026 (table 3), and their activations; mean field alone.
CNN = ConvNet(depth=max(COMMON_SWEEP), channels=64, grid=(8, 8), kernel=(3, 3), readout="convolution")
TRAINED = (RELU, "gelu")

VARIABLES = (
    Variable("weight_variance", "variance of a weight times the fan-in", symbol="sigma_W^2"),
    Variable("gain", "mean square derivative of the activation at unit variance", "E[sigma'(G)^2], G ~ N(0, 1)", "q"),
    Variable("pre_activation_energy_correction", "correction in 1/n to the energy of pre-activations, relative"),
    Variable("gate_energy_correction", "correction in 1/n to the energy of gates, relative"),
    Variable(
        "cnn_scale_mean_field",
        "label term's eta* of a convolutional net with this activation, mean field",
        "a stand-in for the nets on images",
        source="Zhang et al. 2026, table 3",
    ),
    Variable("case", "activation, and rule of the weight variance"),
    Variable("layers", "layer, or depth, to which the mean field is followed"),
    Variable("cnn_layers", "depth of the convolutional net"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets by case, and the depths to draw them at."""
    return {"nets": nets(options.width, options.outputs), "depths": options.depths}


def measure(options: argparse.Namespace, results: Results, nets: dict[str, MLP], depths: list[int]) -> xr.Dataset:
    """Scales by case, width and depth; energies by case and layer of the deepest wide nets; the mean field of all."""
    axes: Axes = {"case": list(nets), "width": [options.width // NARROW, options.width], "depth": depths}
    runs = [
        (replace(nets[case], depth=depth, width=width), f"{case}, {depth} layers of {width}")
        for case, width, depth in product(*axes.values())
    ]
    measured = results.draw([seeded_run(options, net, ActivationStatistics(), label) for net, label in runs])
    deepest = measured[2 * len(depths) - 1 :: 2 * len(depths)]
    scales = over(axes, [taken(drawn, *SCALES) for drawn in measured])
    energies = over({"case": list(nets)}, [taken(drawn, *ENERGIES) for drawn in deepest], "layer")
    return xr.merge([scales, energies, predicted(nets, depths[-1])]).assign_attrs(attributes(options, "outputs"))


def nets(width: int, outputs: int) -> dict[str, MLP]:
    """One net of a single layer for each case: ReLU, whose rules agree, and "ACTIVATION, RULE"."""
    plain = MLP(depth=1, width=width, outputs=outputs)
    by_case = {RELU: plain}
    for name, rule in product(SMOOTH, RULES):
        variance = weight_variance(activation_named(name), rule)
        by_case[f"{name}, {rule}"] = replace(plain, activation=name, weight_variance=variance)
    return by_case


def weight_variance(activation: Activation, rule: str) -> float:
    """sigma_W^2: 1/q, 2, or 1/E[sigma(G)^2]."""
    variances = {"fan_in": 1 / activation.gain, "he": 2.0, "energy": 1 / mean_square(activation.function, 1.0)}
    return variances[rule]


def predicted(nets: Mapping[str, MLP], drawn: int) -> xr.Dataset:
    """By case: scales and energies over layers 1 .. FAR, corrections up to the deepest drawn layer, a CNN's scales."""
    axes: Axes = {"case": list(nets)}
    corrections = [chain_corrections(replace(net, depth=drawn)) for net in nets.values()]
    by_drawn = [{f"{name}_correction": getattr(correction, name) for name in ENERGIES} for correction in corrections]
    images = [{"cnn_scale_mean_field": _image_scales(net)} for net in nets.values()]
    far = over(axes, [_far(replace(net, depth=FAR)) for net in nets.values()], "layers")
    parts = [far, over(axes, by_drawn, "layer"), over(axes, images, "cnn_layers")]
    depths = {"layers": FAR, "layer": drawn, "cnn_layers": CNN.depth}
    return xr.merge(parts).assign_coords({dim: np.arange(1, depth + 1) for dim, depth in depths.items()})


def _far(net: MLP) -> dict[str, Any]:
    """The mean field of one net by layer, its weight variance, and its gain at unit variance."""
    chain, gain = mean_field_chain(net), net.sigma.gain
    energies = {f"{name}_mean_field": getattr(chain, name) for name in ENERGIES}
    scale = {f"{LABEL_SCALE}_mean_field": scales_by_depth(net)}
    return scale | energies | {"weight_variance": net.variance_factor / gain, "gain": gain}


def _image_scales(net: MLP) -> Array:
    """Scales of the convolutional net with this net's activation and weights; NaN where the paper trained none."""
    if net.activation not in TRAINED:
        return np.full(CNN.depth, np.nan)
    return scales_by_depth(replace(CNN, activation=net.activation, weight_variance=net.weight_variance))


# What is claimed, and what decides it.
# Scales are extrapolated in 1/width from two widths, and granted what that leaves. Energies are held against the mean
# field with its derived correction of order 1/width, and granted the square of it.

# Half a unit of the last digit that is printed of the gain.
PRINTED_GAIN = 5e-4
# A drift of the energy that counts as small.
SMALL_DRIFT = 0.1
# "Slightly" steeper: up to twice the printed difference of slopes to either side of it.
SLIGHTLY = 2.0
# Where the local rate d ln eta* / dL at the far end must lie, relative to the rival's.
RATE_TOLERANCE = 0.2

# Those that rest on draws; the others need no share of the false-alarm budget.
JUDGES = Judges("Zhang et al. 2026")
COMPUTED = Judges("Zhang et al. 2026")


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every claim."""
    return [*JUDGES.findings(dataset), *COMPUTED.findings(dataset)]


def drawn_slope(dataset: xr.Dataset, case: str, name: str = LABEL_SCALE) -> tuple[PowerLaw, float]:
    """Log-log slope of the extrapolated scale over the drawn depths, all weighted alike, and what it is granted."""
    limit, depths = extrapolated(dataset, case, name), dataset["depth"].values
    mean = np.exp(limit.log_scale)
    law = log_slope(depths, mean, np.diag(np.square(limit.stderr * mean)))
    row = np.linalg.pinv(np.vander(np.log(depths), 2))[0]
    return law, float(np.abs(row) @ limit.left)


def theory_slope(dataset: xr.Dataset, case: str, depths: ArrayLike) -> float:
    """The same of the mean field, over any depths."""
    swept = np.asarray(depths)
    return float(np.polyfit(np.log(swept), _mean_field_logs(dataset, case, swept), 1)[0])


def far_gain(dataset: xr.Dataset, case: str) -> float:
    """sigma_W^2 E[sigma'^2] where the mean field has drifted to."""
    at = dataset.sel(case=case)
    return float(at["weight_variance"] * at["gate_energy_mean_field"][-1])


def rate_of_gain(gain: float) -> float:
    """d ln eta* / dL at gain chi: -ln(chi)/2 below 1, where the lowest layers are all that counts; -ln(chi) above.

    Below, B_l of a low layer falls as chi^(L - l). Above, V_L grows as chi^(2 L) from what the low layers begin.
    """
    return float(-np.log(gain) * (0.5 if gain < 1 else 1.0))


@JUDGES.decide(
    claim="GELU under He's 2/fan_in has gain 0.912 per layer at unit variance",
    source="appendix F",
    rival="1, as ReLU has",
    measured="2 E[sigma'(G)^2] at layer 1, whose pre-activations are N(0, 1)",
)
def judge_gain(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(case="gelu, he").isel(layer=0)
    gain, stderr = (float(at["weight_variance"] * at[f"gate_energy{end}"]) for end in ("", "_stderr"))
    made = contest(gain, stderr, claimed=HE_GAIN, rival=1.0, allowance=PRINTED_GAIN)
    words = f"drawn {gain:.5f} +- {stderr:.2g}, exact {2 * float(at['gain']):.5f}"
    return _of_cases(made, dataset, ["gelu, he"], *ENERGIES).saying(words)


@JUDGES.decide(
    claim="The gain of GELU under He's variance is 0.912 at every layer",
    source="appendix F",
    rival="it falls with the variance of pre-activations: {expected:.4f} at layer {layer}",
    measured="2 E[sigma'(z)^2] of drawn nets at that layer",
)
def judge_constant_gain(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(case="gelu, he").isel(layer=-1)
    variance, layer = float(at["weight_variance"]), int(at["layer"])
    gain, stderr = (variance * float(at[f"gate_energy{end}"]) for end in ("", "_stderr"))
    expected, slack = (variance * float(value[0]) for value in _expected(dataset, "gelu, he", "gate_energy", [layer]))
    made = contest(gain, stderr, claimed=HE_GAIN, rival=expected, allowance=slack)
    far = f"{far_gain(dataset, 'gelu, he'):.4f} in the limit of depth"
    words = f"drawn {gain:.4f} +- {stderr:.2g} at layer {layer}; {far}"
    return _of_cases(made, dataset, ["gelu, he"], *ENERGIES).saying(words, expected=expected, layer=layer)


@JUDGES.decide(
    claim="Under 1/(q fan_in) GELU's pre-activations are approximately stationary, their drifts small",
    source="appendix F",
    rival="at infinite width too their energy drifts, to {limit:.3f} at layer {layer} and on to 0",
    measured="the mean square of drawn pre-activations at that layer, which is 1 at the first",
    brief="Under 1/(q fan_in) GELU's pre-activations are stationary, but for small drifts",
)
def judge_stationary(dataset: xr.Dataset) -> Contest:
    case, layer, name = "gelu, fan_in", int(dataset["layer"][-1]), ENERGIES[0]
    at = dataset.sel(case=case).isel(layer=-1)
    energy, stderr = float(at[name]), float(at[f"{name}_stderr"])
    expected, slack = (float(value[0]) for value in _expected(dataset, case, name, [layer]))
    limit = float(dataset[f"{name}_mean_field"].sel(case=case, layers=layer))
    shift = abs(expected - limit)
    claim = Deviation(energy - 1, stderr, SMALL_DRIFT + shift + slack)
    made = between(claim, Deviation(energy - expected, stderr, slack))
    words = f"drawn {energy:.3f} +- {stderr:.2g}; 1/n correction {shift:.3f}"
    return _of_cases(made, dataset, [case], *ENERGIES).saying(words, limit=limit, layer=layer)


@JUDGES.decide(
    claim="Energies of pre-activations and gates drift as the mean field says",
    rival="they stay those of unit variance",
    measured="all cases, at all layers above the first",
)
def judge_energies(dataset: xr.Dataset) -> Contest:
    layers, cases = dataset["layer"].values[1:], [str(case) for case in dataset["case"].values]
    profiles = []
    for case in cases:
        at = dataset.sel(case=case, layer=layers)
        for name, unit in zip(ENERGIES, (1.0, float(at["gain"])), strict=True):
            expected, slack = _expected(dataset, case, name, layers)
            profile = at[name].values, at[f"{name}_stderr"].values
            profiles.append(contest(*profile, claimed=expected, rival=unit, allowance=slack))
    return _of_cases(joined(profiles), dataset, cases, *ENERGIES).saying(f"{len(profiles)} profiles")


@JUDGES.decide(
    claim="eta* of the label term follows the mean field of each activation",
    rival="ReLU's law, prefactor free",
    measured="all cases and depths, no constant fitted",
)
def judge_scales(dataset: xr.Dataset) -> Contest:
    depths, cases = dataset["depth"].values, [str(case) for case in dataset["case"].values]
    law = _mean_field_logs(dataset, RELU, depths)
    ladders = []
    for case in cases:
        limit = extrapolated(dataset, case, LABEL_SCALE)
        scaled = law + (limit.log_scale - law)[0]
        claim = Deviation(limit.log_scale - _mean_field_logs(dataset, case, depths), limit.stderr, limit.left)
        rival = Deviation(limit.log_scale - scaled, np.hypot(limit.stderr, limit.stderr[0]), limit.left)
        ladders.append(between(claim, rival))
    words = f"{len(ladders)} cases, depths {span(depths)}"
    return _of_cases(joined(ladders), dataset, cases, LABEL_SCALE).saying(words)


@JUDGES.decide(
    claim="Attenuation, a gain below 1, can bias GELU's slope to be steeper than ReLU's: it does under He's variance",
    source="appendix F",
    rival="it makes it shallower, as what attenuates gradients raises eta*",
    measured="the sign of the difference of slopes",
    brief="A gain below 1 can steepen GELU's slope: it does under He's variance",
)
def judge_attenuation(dataset: xr.Dataset) -> Contest:
    difference, stderr, slack, words = _steeper_by(dataset, "gelu, he")
    made = lower(difference, stderr, slack, unit="in the difference of slopes")
    return _of_cases(made, dataset, [RELU, "gelu, he"], LABEL_SCALE).saying(words)


@JUDGES.decide(
    claim="GELU with sigma_W^2 = {variance:.4f} ({rule}) is slightly steeper than ReLU, by {printed:+.3f}",
    source="table 3",
    rival="by {expected:+.3f}, the mean field's",
    measured="slopes in L of drawn eta* of the label term, extrapolated in the width, GELU's less ReLU's",
    brief="GELU, sigma_W^2 = {variance:.4f} ({rule}), is slightly steeper than ReLU, by {printed:+.3f}",
    cases=[{"rule": "fan_in"}, {"rule": "energy"}],
)
def judge_slightly_steeper(dataset: xr.Dataset, rule: str) -> Contest:
    case, printed, depths = f"gelu, {rule}", GELU_SLOPE - RELU_SLOPE, dataset["depth"].values
    difference, stderr, slack, words = _steeper_by(dataset, case)
    expected = theory_slope(dataset, case, depths) - theory_slope(dataset, RELU, depths)
    variance = float(dataset["weight_variance"].sel(case=case))
    claim = Deviation(difference - printed, stderr, slack + SLIGHTLY * abs(printed))
    made = between(claim, Deviation(difference - expected, stderr, slack))
    made = _of_cases(made, dataset, [RELU, case], LABEL_SCALE)
    return made.saying(words, variance=variance, printed=printed, expected=expected)


@COMPUTED.decide(
    claim="GELU only adds a slowly varying kappa(L) to L^(-3/2): no rate d ln eta*/dL remains",
    source="appendix F",
    rival="the rate of the gain at the variance that is drifted to",
    measured="the mean field's last step of ln eta* over the rival's rate",
    brief="GELU's eta* is L^(-3/2) times a slow factor: no rate d ln eta*/dL (mean field)",
)
def judge_asymptote(dataset: xr.Dataset) -> Ruling:
    cases = [str(case) for case in dataset["case"].values if str(case).startswith("gelu")]
    rates = [_far_rate(dataset, case) for case in cases]
    rivals = [rate_of_gain(far_gain(dataset, case)) for case in cases]
    words = ", ".join(
        f"{rate:+.4f} ({case}; {rival:+.4f})" for rate, rival, case in zip(rates, rivals, cases, strict=True)
    )
    evidence = f"d ln eta*/dL at L = {int(dataset['layers'][-1])}, mean field (and by the gain): {words}"
    return computed(np.divide(rates, rivals), 0.0, 1.0, RATE_TOLERANCE, evidence)


def _far_rate(dataset: xr.Dataset, case: str) -> float:
    """d ln eta* / dL of the mean field at its last layers."""
    return float(np.diff(_mean_field_logs(dataset, case, dataset["layers"].values[-2:]))[0])


def _expected(dataset: xr.Dataset, case: str, name: str, layers: ArrayLike) -> tuple[Array, Array]:
    """Mean field with its correction of order 1/n, and the square of the largest correction up to there."""
    at, layer_list = dataset.sel(case=case), list(np.asarray(layers))
    mean_field, correction = at[f"{name}_mean_field"].sel(layers=layer_list).values, at[f"{name}_correction"]
    largest = np.maximum.accumulate(np.abs(correction.values))[np.asarray(layers) - 1]
    return mean_field * (1 + correction.sel(layer=layer_list).values), mean_field * largest**2


def _steeper_by(dataset: xr.Dataset, case: str) -> tuple[float, float, float, str]:
    """Drawn slope of a case less ReLU's, its standard error, what it is granted, and all that in words."""
    (law, slack), (relu, relu_slack) = drawn_slope(dataset, case), drawn_slope(dataset, RELU)
    difference, stderr = law.exponent - relu.exponent, float(np.hypot(law.stderr, relu.stderr))
    sweep = [theory_slope(dataset, name, COMMON_SWEEP) for name in (case, RELU)]
    words = (
        f"drawn slopes {law.exponent:+.3f} and ReLU {relu.exponent:+.3f}: {difference:+.3f} +- {stderr:.3f}; over "
        f"depths {span(COMMON_SWEEP)} the mean field says {sweep[0]:+.3f} and {sweep[1]:+.3f}"
    )
    return difference, stderr, slack + relu_slack, words


def _mean_field_logs(dataset: xr.Dataset, case: str, depths: Array) -> Array:
    return np.log(dataset[f"{LABEL_SCALE}_mean_field"].sel(case=case, layers=depths).values)


def _of_cases(made: Contest, dataset: xr.Dataset, cases: list[str], *names: str) -> Contest:
    """With the draws that carry the means of these cases, and the largest share of one."""
    used = dataset.sel(case=cases)
    return made.carried_by(used, *names).shared_in(used, *names)


CLAIMS = (
    Claim(
        id="A17a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, appendix F",
        statement="GELU: E phi'^2 = 0.456 at unit variance, so that the gain per layer is 0.912 under He's variance",
        brief="GELU: E phi'^2 = 0.456 at unit variance, so that the gain per layer is 0.912",
        printed='"the linearized backward gain per layer becomes chi = 2 E[phi\'(Z)^2] ~= 0.912 < 1" (appendix F)',
        hypotheses="pre-activations of variance 1, as in the first layer; weights of variance 2 / fan-in",
        checks=checks(NAME, judge_gain),
    ),
    Claim(
        id="A17b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, appendix F",
        statement="GELU: the gain of unit variance stands for every layer, pre-activations drift little under the "
        "activation's own fan-in rule, and eta* keeps L^(-3/2) but for a slowly varying factor, which can make its "
        "slope over finite depths slightly steeper than ReLU's",
        brief="GELU: pre-activations drift little, and eta* all but keeps L^(-3/2)",
        printed='"Even with activation-aware fan-in scaling, the pre-activation distribution is only approximately '
        'stationary ... slowly depth-dependent prefactor kappa(L) ... slightly more negative fitted exponent" '
        "(appendix F)",
        hypotheses="that the gain of unit variance stands for every layer is our reading of 'gain per layer'; weights "
        "of variance 2 / fan-in (gain, attenuation) or 1 / (q fan-in) (drift); the limit for both, and for the "
        "variance that keeps energies",
        checks=checks(NAME, judge_constant_gain, judge_stationary, judge_asymptote),
        replaced_by="0.912 is the gain at variance 1 alone. Under He's variance and the fan-in rule pre-activations "
        "decay at infinite width too, the gain falls to sigma_W^2/4, and eta* rises as gain^(-L/2); where sigma_W^2 = "
        "1/E phi^2 keeps the variance, the gain is 1.072 and eta* falls as 1.072^-L",
        premise="the gain of unit variance is taken for that of every layer",
    ),
)

# What is printed.

WORDS = {
    "fan_in": "weights of variance sigma_W^2/fan_in with sigma_W^2 = 1/q; he: 2; energy: 1/E[sigma(G)^2].",
    "q": "E[sigma'(G)^2], G ~ N(0, 1).",
    "energy": "mean z^2; z^(1) has variance 1.",
    "gain": "sigma_W^2 mean sigma'(z)^2.",
    "with 1/n": "the mean field and its correction at this width.",
    "d ln/dL": "the rate at which ln eta* changes with the depth; by the gain: the rate that the gain there implies.",
}
SWEEP = f"{COMMON_SWEEP[0]} .. {COMMON_SWEEP[-1]}"


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    (relu, _), (gelu, _) = (drawn_slope(dataset, case) for case in (RELU, "gelu, he"))
    of_gelu = f"{gelu.exponent:.3f} +- {gelu.stderr:.3f} (GELU, He's variance)"
    slopes = f"drawn slopes of the label term's eta* over depths {span(dataset['depth'])} are"
    return answer([judge_scales(dataset)], f"{slopes} {relu.exponent:.3f} +- {relu.stderr:.3f} (ReLU), {of_gelu}")


def _widths(dataset: xr.Dataset) -> str:
    return f"Widths {' and '.join(map(str, dataset['width'].values))}; scales are extrapolated in 1/width."


def _drift_title(dataset: xr.Dataset) -> str:
    return f"Drift over {int(dataset['layer'][-1])} layers, width {int(dataset['width'][-1])} (at 1: at layer 1)"


def _drift_columns(dataset: xr.Dataset) -> list[Column]:
    """Energy and gain at the last drawn layer of the widest nets, and far up in the mean field."""
    last, far = int(dataset["layer"][-1]), int(dataset["layers"][-1])

    def top(word: str, name: str, unit: Callable[[xr.Dataset], float]) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            highest, mean_field = at.sel(layer=last), unit(at) * at[f"{name}_mean_field"]
            there = float(mean_field.sel(layers=last))
            corrected = there * (1 + float(highest[f"{name}_correction"]))
            mean, stderr = (unit(at) * float(highest[f"{name}{end}"]) for end in ("", "_stderr"))
            off = signed((mean - corrected) / stderr if stderr > 1e-12 else 0.0)
            values = [f"{there:.4f}", f"{corrected:.4f}", off, number(float(mean_field.sel(layers=far)))]
            return [drawn(highest, name, unit(at)), *values]

        return Column([f"{word} at {last}", "mean field", "with 1/n", "s.e.", f"at {far}"], cells)

    def variance(at: xr.Dataset) -> float:
        return float(at["weight_variance"])

    return [
        Column("q", lambda at: f"{float(at['gain']):.4f}"),
        Column("sigma_W^2", lambda at: f"{variance(at):.4f}"),
        Column("gain at 1", lambda at: f"{variance(at) * float(at['gain']):.4f}"),
        top("energy", ENERGIES[0], lambda at: 1.0),
        top("gain", ENERGIES[1], variance),
    ]


def _scale_columns(dataset: xr.Dataset) -> list[Column]:
    """The extrapolated scale at every drawn depth against the mean field."""

    def at_depth(place: int, depth: int) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            limit = extrapolated(dataset, str(at["case"].values), LABEL_SCALE)
            log_scale, stderr = limit.log_scale[place], limit.stderr[place]
            scale, theory = float(np.exp(log_scale)), float(at[f"{LABEL_SCALE}_mean_field"].sel(layers=depth))
            return [measured(scale, scale * stderr), number(theory), signed((log_scale - np.log(theory)) / stderr)]

        return Column([f"L = {depth}", "mean field", "s.e."], cells)

    return [at_depth(*drawn_depth) for drawn_depth in enumerate(dataset["depth"].values)]


def _brief_table(dataset: xr.Dataset) -> Grid:
    """Slopes by case, beside the mean field's, over the same depths and over those of the papers."""
    depths = dataset["depth"].values

    def slopes(at: xr.Dataset) -> list[str]:
        case = str(at["case"].values)
        law, theory = drawn_slope(dataset, case)[0], theory_slope(dataset, case, depths)
        off = signed((law.exponent - theory) / law.stderr)
        return [fitted(law), f"{theory:.3f}", off, f"{theory_slope(dataset, case, COMMON_SWEEP):.3f}"]

    columns = [
        Column("sigma_W^2", lambda at: f"{float(at['weight_variance']):.4f}"),
        Column(["drawn slope", "mean field", "off (s.e.)", f"mean field, L = {SWEEP}"], slopes),
    ]
    widths = " and ".join(map(str, dataset["width"].values))
    title = f"Slope in L of the label term's eta* over depths {span(depths)}, extrapolated from widths {widths}"
    return Table("brief table", title, ["case"], "activation, rule", columns)(dataset)


def _slope_title(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values
    return f"Slopes of eta* in L over {depths[0]} .. {depths[-1]}; by the mean field over {SWEEP}, for a CNN too"


def _slope_columns(dataset: xr.Dataset) -> list[Column]:
    def column(header: str, cell: Callable[[str], str]) -> Column:
        """Of the row's case."""
        return Column(header, lambda at: cell(str(at["case"].values)))

    return [
        column("eta*", lambda case: fitted(drawn_slope(dataset, case, WHOLE)[0])),
        column("of B alone", lambda case: fitted(drawn_slope(dataset, case)[0])),
        column("mean field", lambda case: f"{theory_slope(dataset, case, dataset['depth'].values):.3f}"),
        column(SWEEP, lambda case: f"{theory_slope(dataset, case, COMMON_SWEEP):.3f}"),
        Column(f"CNN {SWEEP}", lambda at: number(_cnn_slope(at))),
        column(f"d ln/dL at {int(dataset['layers'][-1])}", lambda case: f"{_far_rate(dataset, case):+.4f}"),
        column("by the gain", lambda case: f"{rate_of_gain(far_gain(dataset, case)):+.4f}"),
    ]


def _cnn_slope(at: xr.Dataset) -> float:
    scale = at["cnn_scale_mean_field"].sel(cnn_layers=list(COMMON_SWEEP)).values
    return float("nan") if np.isnan(scale).any() else float(np.polyfit(np.log(COMMON_SWEEP), np.log(scale), 1)[0])


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="35 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Does eta* of smooth activations follow a mean field of their own, and not ReLU's law?",
        answer=_answer,
        heading="MLP of one input and {outputs} outputs, weights of variance sigma_W^2/fan_in; {draws} draws, "
        f"seed {{seed}}\n{ETA}",
        brief=_brief_table,
        steps=[
            ("--preset paper", "depths to 18, width 32,768, 1,024 draws: small errors, in 20 minutes"),
        ],
        parts=[
            _widths,
            Table("drift table", _drift_title, ["case"], "case", _drift_columns),
            Table("scale table", "eta* of the label term", ["case"], "case", _scale_columns),
            Table("slope table", _slope_title, ["case"], "case", _slope_columns),
        ],
        findings=findings,
        heavy=SCALES,
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
