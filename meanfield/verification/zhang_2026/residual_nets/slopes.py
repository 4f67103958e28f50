"""How eta*(K) of residual nets falls with the number of blocks, by scaling, branch depth and plain layers.

What Zhang et al. 2026, 2025 (sections 3.1, 3.4, 4.3, C.2) and Zheng et al. 2026 (condition B.1, table 1) say of it.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.estimates import PowerLaw
from meanfield.theory.laws.residual import log_path_sum_scale, residual_exponent
from meanfield.verification import series
from meanfield.verification.claims import Claim, JudgeOfRun, Kind, checks
from meanfield.verification.judges import Contest, Judges, Ruling, contest, slope_contest
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.series import drawn_law, exponents, shown
from meanfield.verification.verdicts import Deviation, judge_identity

LABEL_SCALE = "label_learning_rate_scale"
SCALED = ("init", "multiplier_sqrt", "multiplier_linear")
# Relative corrections in 1/n of ReLU nets over those of linear ones: the energy of a layer fluctuates by
# E[s^4]/E[s^2]^2 - 1 = 5 against 2.
RELU_OVER_LINEAR = 2.5
# A tenth of an exponent: what mixed backbones of a hundred layers may be short of their asymptotic slopes.
NEAR = 0.1

# The judges of `sims.residual_depth`.
JUDGES = Judges(
    largest_share=lambda dataset: float(dataset[f"{LABEL_SCALE}_largest_share"].sel(scaling=list(SCALED)).max())
)
findings = JUDGES.findings


def drawn_slope(at: xr.Dataset, name: str = LABEL_SCALE) -> PowerLaw:
    """Slope of a drawn scale over the blocks, of one net."""
    return drawn_law(_within_range(at, name), "blocks", name)


def theory_slope(at: xr.Dataset, name: str = LABEL_SCALE, level: str = "theory") -> float:
    """The same slope of theory, its points weighted as the drawn ones."""
    at = _within_range(at, name)
    logs = at[f"log_{name}_{level}"].values
    return series.theory_slope(at, "blocks", name, logs) if np.isfinite(logs).all() else float("nan")


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


def _lacking(at: xr.Dataset) -> float:
    """What theory's slope over the drawn blocks still lacks of its slope far up."""
    return abs(theory_slope(at) - float(at[f"{LABEL_SCALE}_far_slope"]))


@JUDGES.decide
def judge_theory(dataset: xr.Dataset) -> Contest:
    """Label term's eta*(K) falls as the exact expectation and the mean field say, for every net; rival: as K^(-3/2);
    measured: slopes of linear nets by the exact expectation, of ReLU nets by the mean field."""
    nets = [
        dataset.sel(activation=activation, block_depth=block_depth, scaling=scaling)
        for activation in dataset["activation"].values
        for block_depth in dataset["block_depth"].values
        for scaling in SCALED
    ]
    slope, stderr = exponents(*map(drawn_slope, nets))
    slack = [finite_width_slack(dataset, net) for net in nets]
    expected = [theory_slope(net) for net in nets]
    nearest = float(Deviation(slope - PAPERS_EXPONENT, stderr, slack).excess.min())
    words = f"the rival's nearest net is {nearest:.1f} s.e. away"
    return contest(slope, stderr, claimed=expected, rival=PAPERS_EXPONENT, allowance=slack, shown=words)


# Exponents that are printed for one scaling and branch depth.
PRINTED = (
    ("init", 1, PAPERS_EXPONENT, "branches initialised with variance 1/(q K n) (Zhang et al. 2026, sections 3.4, C.2)"),
    ("multiplier_sqrt", 1, PAPERS_EXPONENT, "a multiplier K^(-1/2), one reading of Zhang et al. 2026, section 3.4"),
    ("multiplier_sqrt", 1, 0.0, "multiplier K^(-1/2), k = 1 (Zheng et al. 2026, condition B.1, SGD)"),
    ("multiplier_linear", 2, 1.0, "multiplier 1/K, k = 2 (Zheng et al. 2026, table 1, SGD)"),
    ("multiplier_linear", 3, 1.0, "multiplier 1/K, k = 3 (Zheng et al. 2026, table 1, SGD)"),
)
CASES: list[dict[str, Any]] = [
    dict(zip(("scaling", "block_depth", "claimed", "net"), printed, strict=True)) for printed in PRINTED
]


@JUDGES.decide_each(*CASES)
def judge_exponent(dataset: xr.Dataset, scaling: str, block_depth: int, claimed: float, net: str) -> Contest:
    """eta* ~ K^{claimed:g} for {net}; rival: K^{rival:g}; measured: the slope in K of ReLU nets; the rival follows
    from the kernel's growth."""
    at = dataset.sel(activation="relu", scaling=scaling, block_depth=block_depth)
    law, exponent = drawn_slope(at), residual_exponent(scaling, block_depth)
    rival = exponent if abs(exponent - claimed) > NEAR else PAPERS_EXPONENT
    slack = _lacking(at) + finite_width_slack(dataset, at)
    far = f"{float(at[f'{LABEL_SCALE}_far_slope']):.3f} at {dataset.attrs['far']} blocks"
    words = f"slope {shown(law)}, in theory {far}"
    return slope_contest(law, claimed=claimed, rival=rival, allowance=slack, shown=words, words={"rival": rival})


judge_initialisation: JudgeOfRun = partial(judge_exponent, **CASES[0])
judge_multiplier: JudgeOfRun = partial(judge_exponent, **CASES[1])


@JUDGES.decide
def judge_block_depth(dataset: xr.Dataset) -> Contest:
    """Exponents under "init" scaling do not depend on the branch depth k (Zhang et al. 2026, sections 3.1, C.2);
    rival: exponent k - 2; measured: slopes in K less that of branches of one layer."""
    depths = dataset["block_depth"].values
    nets = [dataset.sel(activation="relu", scaling="init", block_depth=k) for k in depths]
    laws, lacking = [drawn_slope(net) for net in nets], np.array([_lacking(net) for net in nets])
    slope, stderr = exponents(*laws)
    above, error, granted = slope[1:] - slope[0], np.hypot(stderr[1:], stderr[0]), lacking[1:] + lacking[0]
    words = f"slopes for k = 1, 2, 3: {shown(*laws)}"
    return contest(above, error, claimed=0.0, rival=depths[1:] - depths[0], allowance=granted, shown=words)


@JUDGES.decide
def judge_effective_depth(dataset: xr.Dataset) -> Ruling:
    """Plain layers and blocks count alike, eta* ~ (m + K)^(-3/2) (Zhang et al. 2026, sections 3.4, C.2); rival: each
    has a slope of its own; measured: slopes of mixed backbones in m and in K, each by theory alone."""
    layers, slope = dataset["backbone_layers"].values, dataset["backbone_slope"].sel(activation="relu").values
    claimed = PAPERS_EXPONENT * layers / layers.sum(axis=1, keepdims=True)
    difference = np.abs(slope - claimed).ravel()
    worst = int(np.argmax(difference))
    evidence = f"slope {slope.ravel()[worst]:.3f} where {claimed.ravel()[worst]:.3f} is claimed"
    verdict = judge_identity(difference, 0.0, np.inf, NEAR)
    return Ruling(verdict, evidence, power=f"exact: any slope off by more than {NEAR:g} is refuted")


@JUDGES.decide
def judge_path_sum(dataset: xr.Dataset) -> Contest:
    """PathSum departs from eta* as blocks are added (Zhang et al. 2026, section 4.3); rival: it follows eta*;
    measured: the rule over eta* from end to end, where a factor e is a departure."""
    at = dataset.sel(activation="relu", scaling="init", block_depth=1).isel(blocks=[0, -1])
    blocks, stderr = at["blocks"].values, (at[f"{LABEL_SCALE}_stderr"] / at[LABEL_SCALE]).values
    apart = float(np.diff(log_path_sum_scale(blocks) - np.log(at[LABEL_SCALE].values))[0])
    error = float(np.hypot(*stderr))
    words = f"from {blocks[0]} to {blocks[1]} blocks it falls {float(np.exp(-apart)):.3g} times too far"
    return Contest(Deviation(max(apart + 1.0, 0.0), error), Deviation(apart, error), shown=words, apart=1.0)


CLAIMS = (
    Claim(
        id="A13",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, sections 3.4, C.2; Zhang et al. 2025, theorem 3",
        statement="eta* = Theta(K^(-3/2)) for residual nets whose branches are initialised with variance 1/(q K n)",
        printed='"enforcing the AM-muP budget S = O(1) yields eta*(K) = Theta(K^(-3/2))" (appendix C.2)',
        hypotheses="branches by eq. 5, plain layers by the fan-in rule, branches of a fixed inner structure",
        checks=checks("residual_depth", judge_initialisation),
        replaced_by="K^-1 for branches of one layer, K^(k - 2) for branches of k",
        premise="overlaps between units are taken to add up as in plain nets; a block adds only 1/K of them",
    ),
    Claim(
        id="A14",
        kind=Kind.READING,
        source="Zhang et al. 2026, sections 3.1, 3.4",
        statement="ambiguous in the paper, whose 'scaling residual-branch weights by K^(-1/2)' is eq. 5 itself; as a "
        "multiplier on the branch, which section 3.4 can be read to say: eta* = Theta(K^(-3/2)) again",
        printed='"standard fan-in initialization together with a multiplicative K^(-1/2) scaling on the residual '
        'branch" (section 3.4)',
        hypotheses="those of A13, the factor outside the weights",
        checks=checks("residual_depth", judge_multiplier),
        replaced_by="K^0: the update of a weight is multiplied too, S(initialisation) = K^2 S(multiplier) for k = 1",
        premise="a factor in the initialisation and one outside give equal nets, not equal gradients",
    ),
    Claim(
        id="A15",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section C.2; Zhang et al. 2025, C.1",
        statement="depth counts as m + K in mixed backbones, and the depth of a branch is absorbed",
        printed='"the same argument applies with K replaced by the effective depth L_res := m + K ... residual units '
        'contribute only O(1) propagation factors" (appendix C.2)',
        hypotheses="those of A13, with m plain layers and branches of k layers",
        checks=checks("residual_depth", judge_block_depth, judge_effective_depth),
        replaced_by="eta* ~ K^(k - 2) in the blocks, while every plain layer counts as in a plain net",
        premise="a block of k layers is taken for one layer, and a block for a layer",
    ),
    Claim(
        id="A22",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section 4.3",
        statement="PathSum (Chen et al. 2024) departs from the truth with depth in residual nets (judged: from the "
        "one-step eta*; the paper compares with tuned optima)",
        printed='"In contrast, PathSum (Chen et al., 2024) shows increasing deviation from empirical optima at '
        'larger depths" (section 4.3)',
        hypotheses="branches by eq. 5, of one layer",
        checks=checks("residual_depth", judge_path_sum),
    ),
)
