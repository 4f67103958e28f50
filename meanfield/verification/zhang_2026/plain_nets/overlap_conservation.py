"""Zhang et al. 2026 on overlaps of parameter directions: conserved in mean, with a variance that every layer adds."""

import numpy as np
import xarray as xr

from meanfield.verification.claims import Claim, Kind, checks, of_rival
from meanfield.verification.judges import Contest, Judges, Ruling, between, slope_contest
from meanfield.verification.series import drawn_law, effective_draws, shown_laws
from meanfield.verification.verdicts import Deviation, Verdict

# Standard errors below this are rounding: the overlap is the same in every draw.
ROUNDING = 1e-12


def effective_overlap_draws(dataset: xr.Dataset) -> float:
    """Kish's count for the worst squared overlap: few, where rare draws make it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return effective_draws(dataset, "squared_overlap")


# The judges of `sims.overlap_recursion`, on all pairs of directions and all layers.
JUDGES = Judges("Zhang et al. 2026", effective=effective_overlap_draws)
findings = JUDGES.findings
# Two of them judge `sims.cnn_finite_channels` too, beside those of `channel_corrections` and `stencil_slopes`.
CHANNEL_FINDINGS = 8
CHANNEL_JUDGES = Judges("Zhang et al. 2026", findings=CHANNEL_FINDINGS, effective=effective_overlap_draws)


@JUDGES.decide
def judge_mean(dataset: xr.Dataset) -> Contest:
    """Mean overlap is conserved for directions of one layer, and steps to 1/(2 pi q n) for different layers; rival:
    mean overlap is conserved for every pair (Zhang et al. 2026, lemma 1, eq. 14); measured: means of all pairs at all
    layers."""
    exact = dataset["overlap_exact"]
    return between(*(deviation(dataset, "overlap", expected) for expected in (exact, _as_it_begins(exact))))


@JUDGES.decide
def judge_conditional_mean(dataset: xr.Dataset) -> Contest:
    """Mean overlap above layer {at}, given z^({at}), is the overlap at layer {at}; rival: the gated overlap at layer
    {at}, over q; source: eq. 14; measured: E[T_h | z^(l)], where z^(l) fixes the gates of layer l too."""
    at = int(dataset.attrs["fixed_layers"])
    above, own = dataset.sel(layer=slice(at + 1, None)), dataset.sel(layer=at)
    claim, rival = (
        deviation(above, "overlap", own[f"{name}_given"], "_given") for name in ("overlap", "gated_overlap")
    )
    return between(claim, rival, words={"at": at})


@JUDGES.decide
def judge_square(dataset: xr.Dataset) -> Contest:
    """Mean squared overlap follows the exact recursion; rival: it stays as it begins; measured: means over draws of
    every pair at every layer."""
    exact = dataset["squared_overlap_exact"]
    return between(*(deviation(dataset, "squared_overlap", expected) for expected in (exact, _as_it_begins(exact))))


@JUDGES.decide
def judge_added_variance(dataset: xr.Dataset) -> Contest:
    """Given the layers below, a layer of C units adds a variance of C0/C; rival: C^(-1/2); source: lemma 5, eq. 27;
    measured: the slope in C of every pair whose overlap varies."""
    name = "overlap_variance_by_width"
    columns = dataset[["overlap_variance_by_width", "overlap_variance_stderr_by_width"]]
    columns = columns.rename(overlap_variance_stderr_by_width=f"{name}_stderr")
    pairs = (columns.sel(pair=pair) for pair in dataset["pair"].values)
    laws = [drawn_law(at, "width_above", name) for at in pairs if np.all(at[name].values > ROUNDING)]
    words, draws = f"slopes in C by pair: {shown_laws(*laws)}", dataset.attrs["draws_given"]
    return slope_contest(*laws, claimed=-1.0, rival=-0.5, draws=draws, effective=draws, shown=words)


@JUDGES.decide
def judge_uniform_bound(dataset: xr.Dataset) -> Contest | Ruling:
    """E X^2, X one channel's share of the overlap T_h of a direction with itself, stays below one bound C_0 as layers
    are added: its logarithm's rise slows down, if only as for 1 - 1/l; rival: it rises in proportion to the depth, as
    in the exact recursion, which no bound survives; source: lemma 5, eq. 26; measured: ln E T_h^2, which rises as
    ln E X^2, over layers {layers}: the second rise less {share:.2g} times the first, which 1 - 1/l makes 0.

    Given the layers below, X is the square of a Gaussian, so that E X^2 = 3 E T_h^2 up to 1/n.

    Means of one sign add up in error at worst. Those of opposite sign are of the same draws, which are large together:
    a square is carried on in mean.
    """
    own = [pair for pair in map(str, dataset["pair"].values) if len(set(pair.split(":"))) == 1]
    last = int(dataset["layer"][-1])
    first = max(last // 4, 2)
    middle = max(last // 2, first + 1)
    if not own or last <= middle:
        evidence = "no direction is paired with itself over four layers in this run"
        return Ruling(Verdict.INCONCLUSIVE, evidence, {"layers": f"1 .. {last}", "share": 1.0}, "none: no such pair")
    at = dataset.sel(pair=own[0], layer=[first, middle, last])
    square, stderr, exact = (at[f"squared_overlap{end}"].values for end in ("", "_stderr", "_exact"))
    share = (1 / middle - 1 / last) / (1 / first - 1 / middle)
    weights = np.array([share, -1 - share, 1.0])
    slowing, theory = (float(weights @ np.log(values)) for values in (square, exact))
    relative = np.abs(weights) * stderr / square
    error = float(np.hypot(relative[0] + relative[2], relative[1]))
    claim, rival = Deviation(max(slowing, 0.0), error), Deviation(slowing - theory, error)
    rises = (np.diff(np.log(values)) for values in (square, exact))
    words = " and ".join(f"{rise:.3f} (exact {law:.3f})" for rise, law in zip(*rises, strict=True))
    made = Contest(claim, rival, apart=theory).carried_by(at, "squared_overlap").shared_in(at, "squared_overlap")
    layers = f"{first} .. {middle} and {middle} .. {last}"
    return made.saying(f"rises of {words}", layers=layers, share=share)


judge_conditional_mean_of_channels, judge_added_variance_of_channels = (
    CHANNEL_JUDGES.decide(judge.decide) for judge in (judge_conditional_mean, judge_added_variance)
)


def _as_it_begins(exact: xr.DataArray) -> xr.DataArray:
    """The value at the first layer of every pair, at all its layers."""
    begun = exact.notnull()
    return exact.isel(layer=begun.argmax("layer")).drop_vars("layer").where(begun)


def deviation(
    dataset: xr.Dataset, name: str, expected: xr.DataArray, suffix: str = "", allowance: xr.DataArray | None = None
) -> Deviation:
    """Measured minus expected where both exist; identical draws have no error beyond rounding."""
    measured = dataset[f"{name}{suffix}"]
    given = dataset[f"{name}_stderr{suffix}"], expected, xr.zeros_like(measured) if allowance is None else allowance
    stderr, value, granted = (array.broadcast_like(measured).transpose(*measured.dims).values for array in given)
    finite = np.isfinite(measured.values) & np.isfinite(value)
    rounding = ROUNDING + ROUNDING * np.abs(value[finite])
    return Deviation((measured.values - value)[finite], stderr[finite], granted[finite] + rounding)


CLAIMS = (
    Claim(
        id="A1",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 1, eq. 14",
        statement="overlaps are invariant: E[T_h given layer l] = T_l for every pair of parameters of layers up to l",
        printed='"For any parameter directions mu_1, mu_2 that belong to layers at most l, E[T_h(mu_1, mu_2) | '
        'z^(l)] = T_l(mu_1, mu_2)" (lemma 1, eq. 14)',
        hypotheses="ReLU, stride 1, circular padding, independent fan-in weights of mean 0, parameters of layers <= l. "
        "Zhang et al. 2025 have it at infinite width alone, where the step found here vanishes",
        checks=(
            *checks("overlap_recursion", of_rival(judge_mean), judge_conditional_mean),
            *checks("cnn_finite_channels", judge_conditional_mean_of_channels),
        ),
        replaced_by="E T is conserved for directions of one layer, and steps from 0 to 1/(2 pi q n) for those of two; "
        "given z^(l) it is the gated overlap over q that is conserved",
        premise="the proof averages over gates that z^(l) leaves free, l < h - 1 (its step 2), and counts layer h = l "
        "+ 1, whose gates z^(l) fixes, among them (step 3)",
    ),
    Claim(
        id="A11a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 5, eq. 27",
        statement="given the layers below, Var(T_h) falls as C_0 / C_h with the channels of layer h",
        printed='"Var(T_h | F_(h-1)) = (1/C_h) Var(X_1 | F_(h-1)) <= (1/C_h) E[X_1^2 | F_(h-1)] <= C_0/C_h" (lemma '
        "5, proof)",
        hypotheses="weights of layer h independent over channels and of mean 0; directions outside layer h",
        checks=(
            *checks("overlap_recursion", judge_added_variance),
            *checks("cnn_finite_channels", judge_added_variance_of_channels),
        ),
        identity=True,
    ),
    Claim(
        id="A11b",
        kind=Kind.PREMISE,
        source="Zhang et al. 2026, lemma 5, eq. 26",
        statement="its C_0 bounds E[X^2 given layer h - 1], X one channel's share of T_h, by one constant for all "
        "depths (judged: its mean over nets, E X^2, of a direction with itself, does not rise in proportion to depth)",
        printed='"assume the channel-wise second moments are uniformly bounded at initialization: E[X_1^2 | F_(h-1)] '
        '<= C_0" (lemma 5, eq. 26); "depends only on C_0 (and not on depth)" (eq. 27)',
        hypotheses="it is one: lemma 5 assumes it; that one C_0 serves all layers is our reading of 'uniformly'",
        checks=checks("overlap_recursion", judge_uniform_bound),
        replaced_by="E X^2 = 3 E T^2 grows by a factor 1 + O(1/n) with every layer, as exp(5 l / n) for ReLU; bounded "
        "in depth only while L / n is, which is where corrections are a function of L / n",
        premise="the constant is taken for one of a layer; every layer multiplies it by 1 + O(1/n)",
    ),
)
