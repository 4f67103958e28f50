"""Which network-level mean of the layers' update energies is consistent under regrouping?

An aggregator M makes one number of energies S_1 .. S_L. Zhang et al. 2026 ask for four properties (A1, eq. 11, 12):
permutations change nothing; M(c S) = c M(S); replacing the energies of a group of layers by their mean changes nothing
(merge); and M(c, .., c) = c. Each is checked as the largest relative violation over many energies and groupings.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.common import Array
from meanfield.verification import Claim, Judges, Kind, Ruling, Verdict, checks, computed, identity, on_examples

Aggregator = Callable[[Array], float]

AGGREGATORS: dict[str, Aggregator] = {
    "arithmetic": lambda energies: float(np.mean(energies)),
    "geometric": lambda energies: float(np.exp(np.mean(np.log(energies)))),
    "harmonic": lambda energies: float(1 / np.mean(1 / energies)),
    "root mean square": lambda energies: float(np.sqrt(np.mean(np.square(energies)))),
    "median": lambda energies: float(np.median(energies)),
    "maximum": lambda energies: float(np.max(energies)),
    "sum": lambda energies: float(np.sum(energies)),
}

# Properties hold to rounding of sums, or are broken by far more.
TOLERANCE = 1e-9
EXAMPLES = 200
MOST_LAYERS = 8
# Energies of layers spread over some orders of magnitude.
SPREAD = 2.0
# The energy of one layer over that of the others, where the harmonic mean is said to become infinitely sensitive.
SMALL = 1e-6
STEP = 1e-4

JUDGES = Judges("Zhang et al. 2026")
findings = JUDGES.findings


@dataclass(frozen=True)
class AggregatorExample:
    """Energies, an order and groups of the layers, and a factor, on which the properties are checked."""

    energies: Array
    order: NDArray[np.int64]
    groups: NDArray[np.int64]
    factor: float


def merged(energies: Array, groups: NDArray[np.int64]) -> Array:
    """Every energy replaced by the mean of its group (A1); ``groups`` names the group of each layer."""
    totals, sizes = np.bincount(groups, weights=energies), np.bincount(groups)
    return np.asarray((totals / np.maximum(sizes, 1))[groups])


def violations(aggregator: Aggregator, example: AggregatorExample) -> dict[str, float]:
    """Relative violation of each property on one example; 0 where it holds."""
    energies, factor = example.energies, example.factor
    value = aggregator(energies)
    ratios = {
        "permutation": aggregator(energies[example.order]) / value,
        "scale": aggregator(factor * energies) / (factor * value),
        "merge": aggregator(merged(energies, example.groups)) / value,
        "normalisation": aggregator(np.full_like(energies, factor)) / factor,
    }
    return {name: abs(ratio - 1) for name, ratio in ratios.items()}


def examples(seed: int) -> Iterator[AggregatorExample]:
    """Random ones of 2 .. 8 layers, with energies over several orders of magnitude."""
    random = np.random.default_rng(seed)
    for _ in range(EXAMPLES):
        layers = int(random.integers(2, MOST_LAYERS + 1))
        energies, factor = np.exp(SPREAD * random.normal(size=layers)), float(np.exp(random.normal()))
        yield AggregatorExample(energies, random.permutation(layers), random.integers(0, layers, layers), factor)


def worst_violations(aggregators: Mapping[str, Aggregator], seed: int = 0) -> dict[str, dict[str, float]]:
    """By aggregator and property, the largest violation that the search finds."""
    worst: dict[str, dict[str, float]] = {name: {} for name in aggregators}
    for example in examples(seed):
        for name, aggregator in aggregators.items():
            for kind, violation in violations(aggregator, example).items():
                worst[name][kind] = float(np.maximum(violation, worst[name].get(kind, 0.0)))
    return worst


@JUDGES.decide(
    claim="Only the arithmetic mean has permutation, scale and merge consistency and M(c, .., c) = c",
    brief="Only the arithmetic mean has all four consistencies of an aggregator",
    source="appendix A1",
    rival="another of six aggregators has them too, or it lacks one",
    measured="the largest relative violation of any property on random energies, of the mean and of the six others",
)
def judge_uniqueness(seed: int = 0) -> Ruling:
    """Merging all layers into one group forces it.

    M(S) = M(mean, .., mean) = mean by merge and normalisation, so that any other aggregator breaks one of the two.
    """
    worst = worst_violations(AGGREGATORS, seed)
    largest = {name: max(kinds.values()) for name, kinds in worst.items()}
    mean = largest.pop("arithmetic")
    least_rival = min(largest.values())
    alone = ", ".join(kind for kind, value in worst["sum"].items() if value > TOLERANCE)
    return identity(
        mean,
        0.0,
        least_rival,
        TOLERANCE,
        f"violated by {mean:.1g} at most, by the others {least_rival:.2g} or more; the sum breaks {alone} alone: "
        "without it any c(L) times the mean has the other three",
    )


@JUDGES.decide(
    claim="The geometric and the harmonic mean are not consistent under merging",
    source="appendix A6",
    rival="no counterexample",
    measured="the largest relative change by merging that a search over random energies finds, for either mean",
)
def judge_other_means(seed: int = 0) -> Ruling:
    means = {name: AGGREGATORS[name] for name in ("geometric", "harmonic")}
    worst = worst_violations(means, seed)
    broken = {name: [kind for kind, value in kinds.items() if value > TOLERANCE] for name, kinds in worst.items()}
    pair, group = np.array([1.0, 4.0]), np.zeros(2, dtype=np.int64)
    pairs = ", ".join(f"{name} {mean(pair):.2f} -> {mean(merged(pair, group)):.2f}" for name, mean in means.items())
    kinds = "; ".join(f"{name} {', '.join(kinds)}" for name, kinds in broken.items())
    return Ruling(
        Verdict.CONFIRMED if all("merge" in kinds for kinds in broken.values()) else Verdict.REFUTED,
        f"S = (1, 4) merged into one group: {pairs}; broken: {kinds}",
        power=f"exact: a mean that merging changes by {TOLERANCE:g} or less is refuted",
    )


def harmonic_slope(layers: int, small: float) -> float:
    """dH / dS_1 by central differences, where S_1 = small and all other energies are 1."""
    ends = [AGGREGATORS["harmonic"](np.array([small * (1 + sign * STEP), *[1.0] * (layers - 1)])) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * STEP * small)


@JUDGES.decide(
    claim="dH/dS_i of the harmonic mean grows without bound as S_i -> 0",
    source="appendix A5",
    rival="it tends to L: H falls as L S_i",
    measured="dH / dS_i = H^2 / (L S_i^2) over L, 1 or of order 1/S_i; no examples",
)
def judge_harmonic_sensitivity(seed: int = 0) -> Ruling:
    counts = (2, 4, 8, 16)
    slopes = np.array([harmonic_slope(layers, SMALL) for layers in counts])
    words = ", ".join(f"{slope:.5f} (L = {layers})" for slope, layers in zip(slopes, counts, strict=True))
    over_count = slopes / np.array(counts)
    return computed(over_count, 1.0 / SMALL, 1.0, 1e-3, f"at S_i = {SMALL:g} under ones: {words}")


CLAIMS = (
    Claim(
        id="A16a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, appendix A, A1 (and A6, of the geometric and the harmonic mean)",
        statement="the arithmetic mean is the only aggregator with permutation, scale and merge consistency and "
        "M(c, .., c) = c (merging all layers into one group forces it; tried: six others)",
        brief="the arithmetic mean alone has the symmetries asked of an aggregator",
        printed='"Hence the arithmetic mean is the unique aggregator satisfying the above properties" (appendix A, A1)',
        hypotheses="positive energies of any number of layers",
        checks=checks("identities", on_examples(judge_uniqueness), on_examples(judge_other_means)),
        identity=True,
    ),
    Claim(
        id="A16b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, appendix A, A5",
        statement="the harmonic mean of energies is infinitely sensitive to the least of them: dH / dS_i grows without "
        "bound as S_i falls to 0",
        brief="the harmonic mean of energies is infinitely sensitive to the least of them",
        printed='"S_i down 0 => dH/dS_i up infinity" (appendix A, A5)',
        hypotheses="the other energies stay as they are",
        checks=checks("identities", on_examples(judge_harmonic_sensitivity)),
        replaced_by="dH / dS_i = H^2 / (L S_i^2) tends to L, as H falls as L S_i",
        premise="H is held fixed while S_i falls",
    ),
)
