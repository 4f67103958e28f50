"""Claims of P0 appendix F on activations: gain per layer, drift of pre-activations, slope of eta* over finite depths.

Cases are an activation and a rule for sigma_W^2: "fan_in", 1/q; "he", 2; "energy", 1/E[sigma(G)^2], which keeps the
mean energy of pre-activations (P3 aligns GELU with ReLU so). Scales are extrapolated in 1/width from two widths, and
granted what that leaves. Energies are held against the mean field with its derived correction of order 1/width, and
granted the square of it.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.common.estimates import PowerLaw, log_slope
from meanfield.verification.published import COMMON_SWEEP, GELU_SLOPE, HE_GAIN, RELU_SLOPE
from meanfield.verification.verdicts import Deviation, Finding, effective_draws, judge_computed, weigh
from meanfield.verification.width_extrapolation import extrapolated

Array = NDArray[np.float64]

RELU = "relu"
LABEL_SCALE = "label_learning_rate_scale"
ENERGIES = ("pre_activation_energy", "gate_energy")
# Findings that rest on draws, over which the false-alarm budget of one run is split.
DRAWN = 8
# Half a unit of the last digit that P0 prints of the gain.
PRINTED_GAIN = 5e-4
# A drift of the energy that counts as small.
SMALL_DRIFT = 0.1
# "Slightly" steeper: up to twice the printed difference of slopes to either side of it.
SLIGHTLY = 2.0
# Where the local rate d ln eta* / dL at the far end must lie, relative to the rival's.
RATE_TOLERANCE = 0.2


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, on a run of `sims.activation_drift`."""
    return [
        judge_gain(dataset),
        judge_constant_gain(dataset),
        judge_stationary(dataset),
        judge_energies(dataset),
        judge_scales(dataset),
        judge_attenuation(dataset),
        judge_slightly_steeper(dataset, "fan_in"),
        judge_slightly_steeper(dataset, "energy"),
        judge_asymptote(dataset),
    ]


def drawn_slope(dataset: xr.Dataset, case: str, name: str = LABEL_SCALE) -> tuple[PowerLaw, float]:
    """Log-log slope of the extrapolated scale over the drawn depths, all weighted alike, and what it is granted."""
    found, depths = extrapolated(dataset, case, name), dataset["depth"].values
    mean = np.exp(found.log_scale)
    law = log_slope(depths, mean, np.diag(np.square(found.stderr * mean)))
    row = np.linalg.pinv(np.vander(np.log(depths), 2))[0]
    return law, float(np.abs(row) @ found.left)


def theory_slope(dataset: xr.Dataset, case: str, depths: ArrayLike, name: str = f"{LABEL_SCALE}_mean_field") -> float:
    """The same of the mean field, over any depths."""
    chosen = list(np.asarray(depths))
    return float(np.polyfit(np.log(chosen), np.log(dataset[name].sel(case=case, layers=chosen).values), 1)[0])


def far_gain(dataset: xr.Dataset, case: str) -> float:
    """sigma_W^2 E[sigma'^2] where the mean field has drifted to."""
    at = dataset.sel(case=case)
    return float(at["weight_variance"] * at["gate_energy_mean_field"][-1])


def rate_of_gain(gain: float) -> float:
    """d ln eta* / dL at gain chi: -ln(chi)/2 below 1, where the lowest layers are all that counts; -ln(chi) above.

    Below, B_l of a low layer falls as chi^(L - l). Above, V_L grows as chi^(2 L) from what the low layers begin.
    """
    return float(-np.log(gain) * (0.5 if gain < 1 else 1.0))


def judge_gain(dataset: xr.Dataset) -> Finding:
    """2 E[sigma'(G)^2] = 0.912 for GELU (P0 appendix F), at layer 1, whose pre-activations are N(0, 1); rival: 1."""
    at = dataset.sel(case="gelu, he").isel(layer=0)
    gain, stderr = (float(at["weight_variance"] * at[f"gate_energy{end}"]) for end in ("", "_stderr"))
    claim, rival = (_point(gain - value, stderr, PRINTED_GAIN) for value in (HE_GAIN, 1.0))
    titles = f"GELU under He's 2/fan_in has gain {HE_GAIN} per layer at unit variance (P0 appendix F)", "1, as ReLU has"
    exact = 2 * float(at["gain"])
    return _drawn(
        _energies_of(dataset, ["gelu, he"]),
        titles,
        claim,
        rival,
        f"drawn {gain:.5f} +- {stderr:.2g}, exact {exact:.5f}",
    )


def judge_constant_gain(dataset: xr.Dataset) -> Finding:
    """That this is the gain of every layer; rival: the mean field's, at the variance that the layer has."""
    at = dataset.sel(case="gelu, he").isel(layer=-1)
    variance, layer = float(at["weight_variance"]), int(at["layer"])
    gain, stderr = (variance * float(at[f"gate_energy{end}"]) for end in ("", "_stderr"))
    expected, slack = (variance * value for value in _expected(dataset, "gelu, he", "gate_energy", [layer]))
    claim = _point(gain - HE_GAIN, stderr, float(slack[0]))
    rival = _point(gain - float(expected[0]), stderr, float(slack[0]))
    titles = (
        f"the gain of GELU under He's variance is {HE_GAIN} at every layer (P0 appendix F)",
        f"it falls with the variance of pre-activations: {float(expected[0]):.4f} at layer {layer}",
    )
    far = f"{far_gain(dataset, 'gelu, he'):.4f} in the limit of depth"
    shown = f"drawn {gain:.4f} +- {stderr:.2g} at layer {layer}; {far}"
    return _drawn(_energies_of(dataset, ["gelu, he"]), titles, claim, rival, shown)


def judge_stationary(dataset: xr.Dataset) -> Finding:
    """Variance near 1 at all layers under 1/(q fan_in), with small drifts (P0 appendix F); rival: the mean field's."""
    case, layer = "gelu, fan_in", int(dataset["layer"][-1])
    at = dataset.sel(case=case).isel(layer=-1)
    energy, stderr = float(at["pre_activation_energy"]), float(at["pre_activation_energy_stderr"])
    expected, slack = (float(value[0]) for value in _expected(dataset, case, "pre_activation_energy", [layer]))
    unperturbed = float(dataset["pre_activation_energy_mean_field"].sel(case=case, layers=layer))
    shift = abs(expected - unperturbed)
    claim, rival = _point(energy - 1, stderr, SMALL_DRIFT + shift + slack), _point(energy - expected, stderr, slack)
    titles = (
        "under 1/(q fan_in) GELU's pre-activations are approximately stationary, their drifts small (P0 appendix F)",
        f"at infinite width too their energy drifts, to {unperturbed:.3f} at layer {layer} and on to 0",
    )
    shown = f"drawn {energy:.3f} +- {stderr:.2g}; 1/n correction {shift:.3f}"
    return _drawn(_energies_of(dataset, [case]), titles, claim, rival, shown)


def judge_energies(dataset: xr.Dataset) -> Finding:
    """Energies of pre-activations and gates of all cases and layers by the mean field; rival: as at unit variance."""
    layers, cases = dataset["layer"].values[1:], [str(case) for case in dataset["case"].values]
    claims, rivals = [], []
    for case in cases:
        for name in ENERGIES:
            at = dataset.sel(case=case, layer=layers)
            values, stderr = at[name].values, at[f"{name}_stderr"].values
            expected, slack = _expected(dataset, case, name, layers)
            unit = 1.0 if name == ENERGIES[0] else float(at["gain"])
            claims.append(Deviation(values - expected, stderr, slack))
            rivals.append(Deviation(values - unit, stderr, slack))
    titles = "energies of pre-activations and gates drift as the mean field says", "they stay those of unit variance"
    used = _energies_of(dataset, cases)
    return _drawn(used, titles, _joined(claims), _joined(rivals), f"{len(claims)} profiles")


def judge_scales(dataset: xr.Dataset) -> Finding:
    """eta*_B of all cases and depths by the mean field, no constant fitted; rival: ReLU's law times a free constant."""
    depths, cases = dataset["depth"].values, [str(case) for case in dataset["case"].values]
    law = _mean_field_logs(dataset, RELU, depths)
    claims, rivals = [], []
    for case in cases:
        found = extrapolated(dataset, case, LABEL_SCALE)
        expected = _mean_field_logs(dataset, case, depths)
        claims.append(Deviation(found.log_scale - expected, found.stderr, found.left))
        scaled = law + (found.log_scale - law)[0]
        rivals.append(Deviation(found.log_scale - scaled, np.hypot(found.stderr, found.stderr[0]), found.left))
    titles = "eta* of the label term follows the mean field of each activation", "ReLU's law, prefactor free"
    used, shown = _scales_of(dataset, cases), f"{len(claims)} cases, depths {_span(depths)}"
    return _drawn(used, titles, _joined(claims), _joined(rivals), shown)


def judge_attenuation(dataset: xr.Dataset) -> Finding:
    """A gain below 1 makes the fitted slope of GELU under He's variance steeper than ReLU's (P0 appendix F)."""
    difference, stderr, slack, shown = _steeper_by(dataset, "gelu, he")
    claim, rival = (_point(max(sign * difference, 0.0), stderr, slack) for sign in (1, -1))
    titles = (
        "attenuation, a gain below 1, biases GELU's slope to be steeper than ReLU's (P0 appendix F)",
        "shallower: what attenuates gradients raises eta*",
    )
    return _drawn(_scales_of(dataset, [RELU, "gelu, he"]), titles, claim, rival, shown)


def judge_slightly_steeper(dataset: xr.Dataset, rule: str) -> Finding:
    """GELU's slope less ReLU's is that of P0 table 3, as far as slightly goes; rival: the mean field's."""
    case, printed = f"gelu, {rule}", GELU_SLOPE - RELU_SLOPE
    difference, stderr, slack, shown = _steeper_by(dataset, case)
    depths = dataset["depth"].values
    expected = theory_slope(dataset, case, depths) - theory_slope(dataset, RELU, depths)
    claim = _point(difference - printed, stderr, slack + SLIGHTLY * abs(printed))
    rival = _point(difference - expected, stderr, slack)
    variance = float(dataset["weight_variance"].sel(case=case))
    titles = (
        f"GELU with sigma_W^2 = {variance:.4f} ({rule}) is slightly steeper than ReLU, by {printed:+.3f} (P0 table 3)",
        f"by {expected:+.3f}, the mean field's",
    )
    return _drawn(_scales_of(dataset, [RELU, case]), titles, claim, rival, shown)


def judge_asymptote(dataset: xr.Dataset) -> Finding:
    """GELU's kappa(L) varies slowly on L^(-3/2) (P0 appendix F): no rate d ln eta* / dL; rival: that of the gain."""
    cases = [str(case) for case in dataset["case"].values if str(case).startswith("gelu")]
    rates, rivals = [], []
    for case in cases:
        logs = np.log(dataset[f"{LABEL_SCALE}_mean_field"].sel(case=case).values)
        rates.append(float(logs[-1] - logs[-2]))
        rivals.append(rate_of_gain(far_gain(dataset, case)))
    shown = ", ".join(
        f"{rate:+.4f} ({case}; {rival:+.4f})" for rate, rival, case in zip(rates, rivals, cases, strict=True)
    )
    return Finding(
        claim="GELU only adds a slowly varying kappa(L) to L^(-3/2): no rate d ln eta*/dL remains (P0 appendix F)",
        rival="the rate of the gain at the variance that is drifted to",
        verdict=judge_computed(np.array(rates) / np.array(rivals), 0.0, 1.0, RATE_TOLERANCE),
        evidence=f"d ln eta*/dL at L = {int(dataset['layers'][-1])}, mean field (and by the gain): {shown}",
    )


def _expected(dataset: xr.Dataset, case: str, name: str, layers: ArrayLike) -> tuple[Array, Array]:
    """Mean field with its correction of order 1/n, and the square of the largest correction up to there."""
    at = dataset.sel(case=case)
    mean_field = at[f"{name}_mean_field"].sel(layers=list(np.asarray(layers))).values
    correction = at[f"{name}_correction"]
    largest = np.maximum.accumulate(np.abs(correction.values))[np.asarray(layers) - 1]
    return mean_field * (1 + correction.sel(layer=list(np.asarray(layers))).values), mean_field * largest**2


def _steeper_by(dataset: xr.Dataset, case: str) -> tuple[float, float, float, str]:
    """Drawn slope of a case less ReLU's, its standard error, what it is granted, and all that in words."""
    (one, slack), (relu, relu_slack) = drawn_slope(dataset, case), drawn_slope(dataset, RELU)
    difference, stderr = one.exponent - relu.exponent, float(np.hypot(one.stderr, relu.stderr))
    sweep = [theory_slope(dataset, name, COMMON_SWEEP) for name in (case, RELU)]
    shown = (
        f"drawn slopes {one.exponent:+.3f} and ReLU {relu.exponent:+.3f}: {difference:+.3f} +- {stderr:.3f}; over "
        f"depths {_span(COMMON_SWEEP)} the mean field says {sweep[0]:+.3f} and {sweep[1]:+.3f}"
    )
    return difference, stderr, slack + relu_slack, shown


def _mean_field_logs(dataset: xr.Dataset, case: str, depths: Array) -> Array:
    return np.log(dataset[f"{LABEL_SCALE}_mean_field"].sel(case=case, layers=depths).values)


def _point(difference: float, stderr: float, allowance: float) -> Deviation:
    return Deviation(np.array([difference]), np.array([stderr]), np.array([allowance]))


def _joined(parts: list[Deviation]) -> Deviation:
    columns = ([getattr(part, name) for part in parts] for name in ("difference", "stderr", "allowance"))
    return Deviation(*map(np.concatenate, columns))


def _drawn(used: xr.Dataset, titles: tuple[str, str], claim: Deviation, rival: Deviation, shown: str) -> Finding:
    """The finding on the means of the ``used`` cases: scales if it holds any, else energies."""
    names = [name for name in (LABEL_SCALE, *ENERGIES) if name in used]
    share = max(float(used[f"{name}_largest_share"].max()) for name in names)
    return weigh(
        titles,
        claim,
        rival,
        comparisons=DRAWN * claim.difference.size,
        draws=used.attrs["draws"],
        effective=effective_draws(used, *names),
        largest_share=share,
        shown=shown,
    )


def _energies_of(dataset: xr.Dataset, cases: list[str]) -> xr.Dataset:
    ends = ("", "_stderr", "_largest_share")
    return dataset[[f"{name}{end}" for name in ENERGIES for end in ends]].sel(case=cases)


def _scales_of(dataset: xr.Dataset, cases: list[str]) -> xr.Dataset:
    return dataset[[f"{LABEL_SCALE}{end}" for end in ("", "_stderr", "_largest_share")]].sel(case=cases)


def _span(values: ArrayLike) -> str:
    found = np.asarray(values)
    return f"{found[0]:g} .. {found[-1]:g}"
