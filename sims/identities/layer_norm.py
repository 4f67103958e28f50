"""Zhang et al. 2026, lemma 7: LayerNorm's Jacobian and the bound on its norm, by central differences and a search.

LN(x) = gamma (x - mean x) / s + beta with s^2 = mean (x - mean x)^2 + epsilon. With P the centring projection,

    J = diag(gamma) (P - P x (P x)' / (d s^2)) / s.

The bracket has eigenvalues 0 on constants, epsilon / s^2 along P x and 1 on all else, so that its norm is at most 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.common import Array
from meanfield.verification import Claim, Judges, Kind, Ruling, checks, identity, judge_identity, on_examples

SIZES = (2, 3, 8, 32)
EPSILONS = (1e-5, 1e-2, 1.0, 100.0)
EXAMPLES = 40
STEP = 1e-5
# Error of central differences at this step, relative to gamma_max / s.
TOLERANCE = 1e-6
# Rounding of a largest singular value.
ROUNDING = 1e-9

JUDGES = Judges("Zhang et al. 2026")
findings = JUDGES.findings


@dataclass(frozen=True)
class LayerNormExample:
    """x and gamma of one size d, and epsilon."""

    values: Array
    gain: Array
    epsilon: float


def layer_norm(values: Array, gain: Array, epsilon: float) -> Array:
    """LN(x) without beta, which no derivative sees: (d,) (eq. 37)."""
    return np.asarray(gain * (values - values.mean()) / spread(values, epsilon))


def spread(values: Array, epsilon: float) -> float:
    """s(x)."""
    return float(np.sqrt(np.var(values) + epsilon))


def jacobian(example: LayerNormExample, *, rank_one: bool = True) -> Array:
    """Eq. 38: (d, d); without its rank-one term, s is taken for a constant."""
    size, centred = len(example.values), example.values - example.values.mean()
    s = spread(example.values, example.epsilon)
    bracket = np.eye(size) - 1.0 / size
    if rank_one:
        bracket -= np.outer(centred, centred) / (size * s**2)
    return np.asarray(example.gain[:, None] * bracket / s)


def numerical_jacobian(example: LayerNormExample) -> Array:
    """By central differences of the map itself, with steps relative to s."""
    step = STEP * spread(example.values, example.epsilon)
    shifts = step * np.eye(len(example.values))
    columns = [
        layer_norm(example.values + shift, example.gain, example.epsilon)
        - layer_norm(example.values - shift, example.gain, example.epsilon)
        for shift in shifts
    ]
    return np.array(columns).T / (2 * step)


def norm_ratio(example: LayerNormExample) -> float:
    """|J|_op s / gamma_max: at most 2 by eq. 39."""
    norm = np.linalg.norm(numerical_jacobian(example), 2)
    return float(norm * spread(example.values, example.epsilon) / np.abs(example.gain).max())


def examples(seed: int) -> Iterator[LayerNormExample]:
    """Of several sizes: Gaussian, nearly constant, and one outlier; gains Gaussian, equal, and one alone."""
    random = np.random.default_rng(seed)
    for size in SIZES:
        for place in range(EXAMPLES):
            noise, first = random.normal(size=size), np.eye(size)[0]
            values = (noise, 3 + 1e-3 * noise, first + 1e-2 * noise)[place % 3] * np.exp(random.normal())
            gain = (random.normal(size=size), np.ones(size), first)[place // 3 % 3]
            yield LayerNormExample(values, gain, EPSILONS[place % len(EPSILONS)])


@JUDGES.decide(
    claim="The Jacobian of LayerNorm is that of eq. 38",
    source="lemma 7",
    rival="without the rank-one term",
    measured="distance from central differences",
)
def judge_jacobian(seed: int = 0) -> Ruling:
    errors, rivals = [], []
    for example in examples(seed):
        measured = numerical_jacobian(example)
        scale = np.abs(example.gain).max() / spread(example.values, example.epsilon)
        errors.append(np.abs(jacobian(example) - measured).max() / scale)
        rivals.append(np.abs(jacobian(example, rank_one=False) - measured).max() / scale)
    return identity(
        np.max(errors),
        0.0,
        max(rivals),
        TOLERANCE,
        f"{len(errors)} examples, d = {SIZES[0]} .. {SIZES[-1]}, in units of gamma_max / s: off by {max(errors):.1g} "
        f"at most, the rival by {max(rivals):.2g}",
    )


@JUDGES.decide(
    claim="The norm of LayerNorm's Jacobian is at most 2 gamma_max / s",
    source="eq. 39",
    rival="some x and gamma exceed it",
    measured="the largest norm of a search",
)
def judge_bound(seed: int = 0) -> Ruling:
    largest = float(np.max([norm_ratio(example) for example in examples(seed)]))
    return Ruling(
        judge_identity(max(largest - 2, 0.0), 0.0, np.inf, 0.0),
        f"largest |J| s / gamma_max found {largest:.6f}: 1 is enough for 2, as the bracket in eq. 38 has eigenvalues "
        "0, epsilon/s^2 and 1",
        power="exact: any norm above the bound is refuted",
    )


CLAIMS = (
    Claim(
        id="A19",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section D.2, eq. 38-39",
        statement="LayerNorm has the Jacobian of eq. 38, of norm at most 2 gamma_max / s",
        printed='"|J_LN(x)|_op <= 2 gamma_max / s(x)" (lemma 7, eq. 39, beside the Jacobian of eq. 38)',
        hypotheses="epsilon > 0",
        checks=checks("identities", on_examples(judge_jacobian), on_examples(judge_bound)),
        identity=True,
    ),
)
