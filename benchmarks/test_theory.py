"""What theory computes: kernels, mean fields over pairs of sites, exact recursions, covariances of loops."""

import numpy as np

import meanfield as mf
from benchmarks.limits import chained, log_sums, logarithms, memory, reading
from benchmarks.race import Race, Sizes
from meanfield.nets.layered import MLP, ConvNet
from meanfield.nets.loop import TiedLoop
from meanfield.nets.residual import ResidualMLP
from meanfield.nets.transformer import Transformer
from meanfield.theory.exact import OVERLAP, exact_residual_terms, overlap_energies
from meanfield.theory.loops import log_correlation_terms, power_series
from meanfield.theory.mean_field.layers import SITE_PAIR_ARRAYS
from meanfield.theory.recursions import derive, iterate
from meanfield.theory.transformers.averages import HIDDEN_DEGREE, PATTERNS

GROUP = "Theory"

# c, K and V over pairs of sites: the least that a layer of the mean field must read and write.
STATE_ARRAYS = 3
# Sums of logarithms for a pair of a loop's steps: two that accumulate increments, and one with the initial energy.
LOG_SUMS = 3


def test_power_series(race: Race, sizes: Sizes) -> None:
    rows, orders = sizes("rows", 4096, 64), 64
    rng = np.random.default_rng(0)
    coefficients, correlations = rng.normal(size=(rows, orders)), rng.uniform(-1, 1, rows)
    named = {"group": GROUP, "what": "power series", "size": f"{rows} series of {orders} orders"}
    steps = rows * orders
    demands = [reading(coefficients.nbytes, coefficients.nbytes)]
    race(lambda: power_series(coefficients, correlations), demands, amount=steps, unit="steps", **named)


def test_iteration(race: Race, sizes: Sizes) -> None:
    steps, width = sizes("steps", 100_000, 100), 1024
    recursion = derive(OVERLAP, activation="relu")
    matrix = recursion.matrix(width, 2 / width)
    start, which = np.ones(len(matrix)), np.zeros(steps, dtype=np.int64)
    rows = np.array([0])
    # A step takes two logarithms and, one after another, the longest row of its matrix.
    longest = int(np.count_nonzero(matrix, axis=1).max())
    race(
        lambda: iterate(matrix[None], which, start, rows),
        [logarithms(2 * steps), chained(longest * steps)],
        group=GROUP,
        what="iteration of a derived recursion",
        size=f"{len(matrix)} moments, {np.count_nonzero(matrix)} coefficients, {steps:,} steps",
        amount=steps,
        unit="steps",
    )


def test_exact_recursion(race: Race, sizes: Sizes) -> None:
    depth = sizes("exact_depth", 1_000_000, 1000)
    net = MLP(depth=depth, width=1024)
    size, demand = f"MLP, n = 1024, L = {depth:,}", [logarithms(2 * depth)]
    named = {"group": GROUP, "what": "exact overlap energies", "size": size}
    race(lambda: overlap_energies(net), demand, amount=depth, unit="layers", **named)


def test_exact_residual_recursion(race: Race, sizes: Sizes) -> None:
    depth = sizes("residual_depth", 10_000, 100)
    net = ResidualMLP(depth=depth, width=1024, activation="linear")
    # Five recursions: up for the overlap and for three moments, down for three averages of the Jacobian.
    race(
        lambda: exact_residual_terms(net),
        [logarithms(12 * depth)],
        group=GROUP,
        what="exact terms of a linear residual net",
        size=f"n = 1024, K = {depth:,}",
        amount=depth,
        unit="blocks",
    )


def test_mean_field_of_a_transformer(race: Race, sizes: Sizes) -> None:
    """White tokens: in turn, three averages over the patterns and, in every other unit, a Chebyshev series."""
    units = sizes("token_units", 1_000_000, 1000)
    net = Transformer(depth=units // 2, width=1024, tokens=16, attention_scale="inverse")
    race(
        lambda: mf.predict(net, level="mean_field"),
        [chained((3 * len(PATTERNS) + HIDDEN_DEGREE // 2) * units)],
        group=GROUP,
        what="mean field of a Transformer",
        size=f"pre-norm, 16 tokens, L = {units:,}",
        amount=units,
        unit="depth units",
    )


def _mean_field(race: Race, sizes: Sizes, padding: str, depth: int) -> None:
    side = sizes("side", 32, 4)
    net = ConvNet(depth=depth, channels=64, grid=(side, side), kernel=(3, 3), padding=padding, readout="convolution")
    pairs = net.sites**2 if padding == "zero" else net.sites
    moved, held = 2.0 * STATE_ARRAYS * 8 * pairs, SITE_PAIR_ARRAYS * 8.0 * pairs
    race(
        lambda: mf.predict(net, level="mean_field"),
        [memory(net.depth * moved, held)],
        group=GROUP,
        what=f"mean field, {padding} padding",
        size=f"{side} x {side} sites, 3 x 3 taps, L = {net.depth}",
        amount=net.depth,
        unit="layers",
    )


def test_mean_field_over_pairs_of_sites(race: Race, sizes: Sizes) -> None:
    _mean_field(race, sizes, "zero", depth=8)


def test_mean_field_over_displacements(race: Race, sizes: Sizes) -> None:
    _mean_field(race, sizes, "circular", depth=64)


def test_loop_covariance(race: Race, sizes: Sizes) -> None:
    depth = sizes("loops", 4096, 64)
    pairs = depth * (depth + 1) // 2
    loop = TiedLoop(depth=depth, width=1024)
    size, demand = f"tied, ReLU, L = {depth}", [log_sums(LOG_SUMS * pairs)]
    named = {"group": GROUP, "what": "covariance of a loop's stream", "size": size}
    race(lambda: log_correlation_terms(loop), demand, amount=pairs, unit="pairs of steps", **named)
