"""Zhang et al. 2026, appendix F, on activations: gain per layer, drift of pre-activations, slope of eta* in depth.

Cases are an activation and a rule for sigma_W^2: "fan_in", 1/q; "he", 2; "energy", 1/E[sigma(G)^2], which keeps the
mean energy of pre-activations (Zhang et al. 2025 align GELU with ReLU so). Scales are extrapolated in 1/width from two
widths, and granted what that leaves. Energies are held against the mean field with its derived correction of order
1/width, and granted the square of it.
"""

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.estimates import PowerLaw, log_slope
from meanfield.common.validation import Array
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.judges import Contest, Judges, Ruling, between, computed, contest, joined, lower
from meanfield.verification.published import COMMON_SWEEP, GELU_SLOPE, HE_GAIN, RELU_SLOPE
from meanfield.verification.series import span
from meanfield.verification.verdicts import Deviation, Finding
from meanfield.verification.zhang_2026.plain_nets.many_channels import extrapolated

RELU = "relu"
LABEL_SCALE = "label_learning_rate_scale"
ENERGIES = ("pre_activation_energy", "gate_energy")
# Half a unit of the last digit that is printed of the gain.
PRINTED_GAIN = 5e-4
# A drift of the energy that counts as small.
SMALL_DRIFT = 0.1
# "Slightly" steeper: up to twice the printed difference of slopes to either side of it.
SLIGHTLY = 2.0
# Where the local rate d ln eta* / dL at the far end must lie, relative to the rival's.
RATE_TOLERANCE = 0.2

# The judges of `sims.activation_drift` that rest on draws; the others need no share of the false-alarm budget.
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


def theory_slope(dataset: xr.Dataset, case: str, depths: ArrayLike, name: str = f"{LABEL_SCALE}_mean_field") -> float:
    """The same of the mean field, over any depths."""
    depth_list = list(np.asarray(depths))
    return float(np.polyfit(np.log(depth_list), np.log(dataset[name].sel(case=case, layers=depth_list).values), 1)[0])


def far_gain(dataset: xr.Dataset, case: str) -> float:
    """sigma_W^2 E[sigma'^2] where the mean field has drifted to."""
    at = dataset.sel(case=case)
    return float(at["weight_variance"] * at["gate_energy_mean_field"][-1])


def rate_of_gain(gain: float) -> float:
    """d ln eta* / dL at gain chi: -ln(chi)/2 below 1, where the lowest layers are all that counts; -ln(chi) above.

    Below, B_l of a low layer falls as chi^(L - l). Above, V_L grows as chi^(2 L) from what the low layers begin.
    """
    return float(-np.log(gain) * (0.5 if gain < 1 else 1.0))


@JUDGES.decide
def judge_gain(dataset: xr.Dataset) -> Contest:
    """GELU under He's 2/fan_in has gain 0.912 per layer at unit variance; rival: 1, as ReLU has; source:
    appendix F; measured: 2 E[sigma'(G)^2] at layer 1, whose pre-activations are N(0, 1)."""
    at = dataset.sel(case="gelu, he").isel(layer=0)
    gain, stderr = (float(at["weight_variance"] * at[f"gate_energy{end}"]) for end in ("", "_stderr"))
    made = contest(gain, stderr, claimed=HE_GAIN, rival=1.0, allowance=PRINTED_GAIN)
    words = f"drawn {gain:.5f} +- {stderr:.2g}, exact {2 * float(at['gain']):.5f}"
    return _of_cases(made, dataset, ["gelu, he"], *ENERGIES).saying(words)


@JUDGES.decide
def judge_constant_gain(dataset: xr.Dataset) -> Contest:
    """The gain of GELU under He's variance is 0.912 at every layer; rival: it falls with the variance of
    pre-activations: {expected:.4f} at layer {layer}; source: appendix F; measured: 2 E[sigma'(z)^2] of drawn nets at
    that layer."""
    at = dataset.sel(case="gelu, he").isel(layer=-1)
    variance, layer = float(at["weight_variance"]), int(at["layer"])
    gain, stderr = (variance * float(at[f"gate_energy{end}"]) for end in ("", "_stderr"))
    expected, slack = (variance * float(value[0]) for value in _expected(dataset, "gelu, he", "gate_energy", [layer]))
    made = contest(gain, stderr, claimed=HE_GAIN, rival=expected, allowance=slack)
    far = f"{far_gain(dataset, 'gelu, he'):.4f} in the limit of depth"
    words = f"drawn {gain:.4f} +- {stderr:.2g} at layer {layer}; {far}"
    return _of_cases(made, dataset, ["gelu, he"], *ENERGIES).saying(words, expected=expected, layer=layer)


@JUDGES.decide
def judge_stationary(dataset: xr.Dataset) -> Contest:
    """Under 1/(q fan_in) GELU's pre-activations are approximately stationary, their drifts small; rival: at infinite
    width too their energy drifts, to {limit:.3f} at layer {layer} and on to 0; source: appendix F; measured: the mean
    square of drawn pre-activations at that layer, which is 1 at the first."""
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


@JUDGES.decide
def judge_energies(dataset: xr.Dataset) -> Contest:
    """Energies of pre-activations and gates drift as the mean field says; rival: they stay those of unit variance;
    measured: all cases, at all layers above the first."""
    layers, cases = dataset["layer"].values[1:], [str(case) for case in dataset["case"].values]
    profiles = []
    for case in cases:
        at = dataset.sel(case=case, layer=layers)
        for name, unit in zip(ENERGIES, (1.0, float(at["gain"])), strict=True):
            expected, slack = _expected(dataset, case, name, layers)
            drawn = at[name].values, at[f"{name}_stderr"].values
            profiles.append(contest(*drawn, claimed=expected, rival=unit, allowance=slack))
    return _of_cases(joined(profiles), dataset, cases, *ENERGIES).saying(f"{len(profiles)} profiles")


@JUDGES.decide
def judge_scales(dataset: xr.Dataset) -> Contest:
    """eta* of the label term follows the mean field of each activation; rival: ReLU's law, prefactor free; measured:
    all cases and depths, no constant fitted."""
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


@JUDGES.decide
def judge_attenuation(dataset: xr.Dataset) -> Contest:
    """Attenuation, a gain below 1, can bias GELU's slope to be steeper than ReLU's: it does under He's variance;
    rival: it makes it shallower, as what attenuates gradients raises eta*; source: appendix F; measured: the sign of
    the difference of slopes."""
    difference, stderr, slack, words = _steeper_by(dataset, "gelu, he")
    made = lower(difference, stderr, slack, unit="in the difference of slopes")
    return _of_cases(made, dataset, [RELU, "gelu, he"], LABEL_SCALE).saying(words)


@JUDGES.decide_each({"rule": "fan_in"}, {"rule": "energy"})
def judge_slightly_steeper(dataset: xr.Dataset, rule: str) -> Contest:
    """GELU with sigma_W^2 = {variance:.4f} ({rule}) is slightly steeper than ReLU, by {printed:+.3f}; rival: by
    {expected:+.3f}, the mean field's; source: table 3; measured: slopes in L of drawn eta* of the label term,
    extrapolated in the width, GELU's less ReLU's."""
    case, printed, depths = f"gelu, {rule}", GELU_SLOPE - RELU_SLOPE, dataset["depth"].values
    difference, stderr, slack, words = _steeper_by(dataset, case)
    expected = theory_slope(dataset, case, depths) - theory_slope(dataset, RELU, depths)
    variance = float(dataset["weight_variance"].sel(case=case))
    claim = Deviation(difference - printed, stderr, slack + SLIGHTLY * abs(printed))
    made = between(claim, Deviation(difference - expected, stderr, slack))
    made = _of_cases(made, dataset, [RELU, case], LABEL_SCALE)
    return made.saying(words, variance=variance, printed=printed, expected=expected)


@COMPUTED.decide
def judge_asymptote(dataset: xr.Dataset) -> Ruling:
    """GELU only adds a slowly varying kappa(L) to L^(-3/2): no rate d ln eta*/dL remains; rival: the rate of the
    gain at the variance that is drifted to; source: appendix F; measured: the mean field's last step of ln eta* over
    the rival's rate."""
    cases = [str(case) for case in dataset["case"].values if str(case).startswith("gelu")]
    rates = [float(np.diff(_mean_field_logs(dataset, case, dataset["layers"].values[-2:]))[0]) for case in cases]
    rivals = [rate_of_gain(far_gain(dataset, case)) for case in cases]
    words = ", ".join(
        f"{rate:+.4f} ({case}; {rival:+.4f})" for rate, rival, case in zip(rates, rivals, cases, strict=True)
    )
    evidence = f"d ln eta*/dL at L = {int(dataset['layers'][-1])}, mean field (and by the gain): {words}"
    return computed(np.divide(rates, rivals), 0.0, 1.0, RATE_TOLERANCE, evidence)


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
        printed='"the linearized backward gain per layer becomes chi = 2 E[phi\'(Z)^2] ~= 0.912 < 1" (appendix F)',
        hypotheses="pre-activations of variance 1, as in the first layer; weights of variance 2 / fan-in",
        checks=checks("activation_drift", judge_gain),
    ),
    Claim(
        id="A17b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, appendix F",
        statement="GELU: the gain of unit variance stands for every layer, pre-activations drift little under the "
        "activation's own fan-in rule, and eta* keeps L^(-3/2) but for a slowly varying factor, which can make its "
        "slope over finite depths slightly steeper than ReLU's",
        printed='"This induces a slowly depth-dependent prefactor kappa(L) ... can therefore return a slightly more '
        'negative fitted exponent" (appendix F)',
        hypotheses="weights of variance 2 / fan-in (gain, attenuation) or 1 / (q fan-in) (drift); the limit for both, "
        "and for the variance that keeps energies",
        checks=checks("activation_drift", judge_constant_gain, judge_stationary, judge_asymptote),
        replaced_by="0.912 is the gain at variance 1 alone. Under He's variance and the fan-in rule pre-activations "
        "decay at infinite width too, the gain falls to sigma_W^2/4, and eta* rises as gain^(-L/2); where sigma_W^2 = "
        "1/E phi^2 keeps the variance, the gain is 1.072 and eta* falls as 1.072^-L",
        premise="the gain of unit variance is taken for that of every layer",
    ),
)
