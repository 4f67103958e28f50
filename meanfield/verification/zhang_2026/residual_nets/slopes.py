"""Claims on residual nets: how eta*(K) falls with the number of blocks, by scaling, branch depth and plain layers."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.theory.laws.residual import log_path_sum_scale, residual_exponent
from meanfield.verification.claims import Judge
from meanfield.verification.published import P0_EXPONENT
from meanfield.verification.verdicts import Deviation, Finding, Verdict, weigh

Array = NDArray[np.float64]

LABEL_SCALE = "label_learning_rate_scale"
SCALED = ("init", "multiplier_sqrt", "multiplier_linear")
# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 9
# Relative corrections in 1/n of ReLU nets over those of linear ones: the energy of a layer fluctuates by
# E[s^4]/E[s^2]^2 - 1 = 5 against 2.
RELU_OVER_LINEAR = 2.5
# A tenth of an exponent: what mixed backbones of a hundred layers may be short of their asymptotic slopes.
NEAR = 0.1


def drawn_slope(at: xr.Dataset, name: str = LABEL_SCALE) -> PowerLaw:
    """Slope of a drawn scale over the blocks, of one net."""
    at = _within_range(at, name)
    return fit_power_law(at["blocks"].values, at[name].values, at[f"{name}_stderr"].values)


def theory_slope(at: xr.Dataset, name: str = LABEL_SCALE, level: str = "theory") -> float:
    """The same slope of theory, its points weighted as the drawn ones."""
    at = _within_range(at, name)
    logs, weights = at[f"log_{name}_{level}"].values, at[name].values / at[f"{name}_stderr"].values
    if not np.isfinite(logs).all():
        return float("nan")
    return float(np.polyfit(np.log(at["blocks"].values), logs, 1, w=weights)[0])


def _within_range(at: xr.Dataset, name: str) -> xr.Dataset:
    """The blocks at which a scale and its error are floats: without scaling, squares of energies soon are not."""
    stderr = at[f"{name}_stderr"]
    return at.isel(blocks=np.flatnonzero(np.isfinite(stderr) & (stderr > 0) & np.isfinite(at[name])))


def finite_width_slack(dataset: xr.Dataset, at: xr.Dataset) -> float:
    """What finite width may do to a slope that the mean field predicts: from linear nets, where it is known exactly."""
    if at["activation"] == "linear":
        return 0.0
    linear = dataset.sel(activation="linear", block_depth=at["block_depth"], scaling=at["scaling"])
    return RELU_OVER_LINEAR * abs(theory_slope(linear) - theory_slope(linear, level="mean_field"))


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, on a run of `sims.residual_depth`."""
    return [
        judge_theory(dataset),
        judge_initialisation(dataset),
        judge_multiplier(dataset),
        judge_block_depth(dataset),
        judge_effective_depth(dataset),
        *(judge(dataset) for judge in P1_JUDGES),
        judge_path_sum(dataset),
    ]


def judge_theory(dataset: xr.Dataset) -> Finding:
    """Slopes of all scaled nets by the exact expectation (linear) or the mean field (ReLU); rival: -3/2 for all."""
    nets = [net for _, net in _nets(dataset)]
    laws = [drawn_slope(net) for net in nets]
    expected = np.array([theory_slope(net) for net in nets])
    slack = np.array([finite_width_slack(dataset, net) for net in nets])
    slope, stderr = np.array([law.exponent for law in laws]), np.array([law.stderr for law in laws])
    claim = Deviation(slope - expected, stderr, slack)
    rival = Deviation(slope - P0_EXPONENT, stderr, slack)
    titles = "label term's eta*(K) falls as the exact expectation and the mean field say, for every net", "as K^(-3/2)"
    nearest = float(rival.excess.min())
    return _finding(dataset, titles, claim, rival, f"the rival's nearest net is {nearest:.1f} s.e. away")


def judge_exponent(dataset: xr.Dataset, scaling: str, block_depth: int, claimed: float, words: str) -> Finding:
    """eta* = Theta(K^claimed) for ReLU nets of one scaling; rival: the exponent that follows from the kernel's growth.

    What theory's slope over the drawn blocks still lacks of its slope far up is granted.
    """
    at = dataset.sel(activation="relu", scaling=scaling, block_depth=block_depth)
    law, far = drawn_slope(at), float(at[f"{LABEL_SCALE}_far_slope"])
    slack = np.array([abs(theory_slope(at) - far) + finite_width_slack(dataset, at)])
    exponent = residual_exponent(scaling, block_depth)
    other = exponent if abs(exponent - claimed) > NEAR else P0_EXPONENT
    claim, rival = (
        Deviation(np.array([law.exponent - value]), np.array([law.stderr]), slack) for value in (claimed, other)
    )
    titles = f"eta* ~ K^{claimed:g} for {words}", f"K^{other:g}"
    shown = f"slope {law.exponent:.3f} +- {law.stderr:.3f}, in theory {far:.3f} at {dataset.attrs['far']} blocks"
    return _finding(dataset, titles, claim, rival, shown)


def _published(scaling: str, block_depth: int, claimed: float, words: str) -> Judge:
    return partial(judge_exponent, scaling=scaling, block_depth=block_depth, claimed=claimed, words=words)


judge_initialisation = _published("init", 1, P0_EXPONENT, "branches initialised with variance 1/(q K n) (P0 3.4, C.2)")
judge_multiplier = _published("multiplier_sqrt", 1, P0_EXPONENT, 'the factor K^(-1/2) as a multiplier, "equivalently"')
P1_JUDGES = (
    _published("multiplier_sqrt", 1, 0.0, "multiplier K^(-1/2), k = 1 (P1 condition B.1, SGD)"),
    _published("multiplier_linear", 2, 1.0, "multiplier 1/K, k = 2 (P1 table 1, SGD)"),
    _published("multiplier_linear", 3, 1.0, "multiplier 1/K, k = 3 (P1 table 1, SGD)"),
)


def judge_block_depth(dataset: xr.Dataset) -> Finding:
    """The inner depth k of a branch changes no exponent (P0 3.1, C.2); rival: exponent k - 2."""
    nets = [dataset.sel(activation="relu", scaling="init", block_depth=k) for k in dataset["block_depth"].values]
    laws = [drawn_slope(net) for net in nets]
    slack = np.array([abs(theory_slope(net) - float(net[f"{LABEL_SCALE}_far_slope"])) for net in nets])
    slope, stderr = np.array([law.exponent for law in laws]), np.array([law.stderr for law in laws])
    above = slope[1:] - slope[0]
    error, granted = np.hypot(stderr[1:], stderr[0]), slack[1:] + slack[0]
    steps = dataset["block_depth"].values[1:] - dataset["block_depth"].values[0]
    titles = 'exponents under "init" scaling do not depend on the branch depth k (P0 3.1, C.2)', "exponent k - 2"
    claim, rival = (Deviation(found, error, granted) for found in (above, above - steps))
    shown = ", ".join(f"{law.exponent:.3f} +- {law.stderr:.3f}" for law in laws)
    return _finding(dataset, titles, claim, rival, f"slopes for k = 1, 2, 3: {shown}")


def judge_effective_depth(dataset: xr.Dataset) -> Finding:
    """eta* ~ (m + K)^(-3/2) of mixed backbones (P0 3.4): slopes in m and in K, each by theory alone, to `NEAR`."""
    layers, slope = dataset["backbone_layers"].values, dataset["backbone_slope"].sel(activation="relu").values
    claimed = P0_EXPONENT * layers / layers.sum(axis=1, keepdims=True)
    difference = np.abs(slope - claimed).ravel()
    worst = int(np.argmax(difference))
    titles = "plain layers and blocks count alike, eta* ~ (m + K)^(-3/2) (P0 3.4, C.2)", "each has a slope of its own"
    shown = f"slope {slope.ravel()[worst]:.3f} where {claimed.ravel()[worst]:.3f} is claimed"
    return Finding(*titles, Verdict.REFUTED if difference[worst] > NEAR else Verdict.CONFIRMED, shown)


def judge_path_sum(dataset: xr.Dataset) -> Finding:
    """PathSum's rule departs from the measured scale as blocks are added (P0 4.3); rival: it follows it."""
    at = dataset.sel(activation="relu", scaling="init", block_depth=1)
    blocks = at["blocks"].values
    rule, measured = log_path_sum_scale(blocks), np.log(at[LABEL_SCALE].values)
    stderr = (at[f"{LABEL_SCALE}_stderr"] / at[LABEL_SCALE]).values
    ends = np.array([(rule[-1] - rule[0]) - (measured[-1] - measured[0])])
    error = np.array([float(np.hypot(stderr[0], stderr[-1]))])
    follows = Deviation(ends, error, np.zeros(1))
    departs = Deviation(np.maximum(ends + 1.0, 0.0), error, np.zeros(1))  # by a factor e or more between the ends
    titles = "PathSum departs from eta* as blocks are added (P0 4.3)", "it follows eta*"
    factor = float(np.exp(-ends[0]))
    shown = f"from {blocks[0]} to {blocks[-1]} blocks it falls {factor:.3g} times too far"
    return _finding(dataset, titles, departs, follows, shown)


def _nets(dataset: xr.Dataset) -> list[tuple[tuple[str, int, str], xr.Dataset]]:
    """Every scaled net by name."""
    names = [
        (str(activation), int(k), scaling)
        for activation in dataset["activation"].values
        for k in dataset["block_depth"].values
        for scaling in SCALED
    ]
    return [((a, k, s), dataset.sel(activation=a, block_depth=k, scaling=s)) for a, k, s in names]


def _finding(
    dataset: xr.Dataset, titles: tuple[str, str], claim: Deviation, rival: Deviation, shown: str = ""
) -> Finding:
    comparisons, draws = FINDINGS * claim.difference.size, dataset.attrs["draws"]
    share = float(dataset[f"{LABEL_SCALE}_largest_share"].sel(scaling=list(SCALED)).max())
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, largest_share=share, shown=shown)
