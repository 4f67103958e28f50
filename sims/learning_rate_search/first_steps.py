"""Does one step of the optimizer that trains say how the tuned rate goes with depth, and how large it is?

Nets that learn count, by groups of families, as `tuned_rates` has them. Scales are medians over drawn nets. All of
this, sizes and bands was written down before the nets were trained, after trials of a prototype on digits for one and
eight epochs, and of convolutional residual nets on MNIST for four.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtri

from meanfield.common import Array
from meanfield.transfer import SCALES
from meanfield.verification import (
    PAPERS_EXPONENT,
    Check,
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    Ruling,
    Verdict,
    contest,
    lower,
    span,
    tuned_rates,
)
from sims.common.images import MOST_SIDES
from sims.common.tuned_nets import MOVED, checks_of_optimizers

NAME = "learning_rate_search"
JUDGES = Judges(budget=tuned_rates.TRAINED_BUDGET)

DESCENT, NO_CHANGE, THREE_HALVES = "one step of gradient descent", "no change with depth", "L^(-3/2)"
# Errors of a tuned rate within which it may lie: one in 16,000 lies beyond; and quantiles of a Gaussian one.
REACH, NORMALS = 4.0, ndtri((np.arange(200) + 0.5) / 200)
BY_KIND = ("residual mlp init", "residual mlp init on mnist", "residual cnn init on mnist", "residual cnn init")
# Families that are asked for by one name.
BOTH_DATA, TWO_WIDTHS = "residual nets on both data", "residual nets of two widths"
# Residual nets that are shown more pixels than those that constants and scales were chosen on.
MORE_PIXELS = ("residual mlp init", "residual mlp init on mnist", "residual cnn init on mnist")
# Residual nets whose blocks are neither of one layer under "init" or "multiplier" nor, fully connected, of more.
OTHER_BLOCKS = (
    "residual mlp linear",
    "residual mlp k=3 without stem",
    "residual cnn linear on mnist",
    "residual cnn k=2 on mnist",
    "residual cnn k=3 on mnist",
)
PIXELS, BLOCKS = "residual nets that are shown more pixels", "residual nets that have other blocks"
OTHER_RESIDUAL = {PIXELS: MORE_PIXELS, BLOCKS: OTHER_BLOCKS}
# Residual nets, and the same nets as they are widened.
WIDENED = {
    "residual mlp init on mnist": "residual mlp init x4 on mnist",
    "residual mlp multiplier": "residual mlp multiplier x4",
    "residual cnn init on mnist": "residual cnn init x2 on mnist",
}
TOGETHER = {group: families for group, (_, families) in tuned_rates.GROUPS.items()}
OF_BLOCKS = "residual nets of other blocks"
TOGETHER |= {BOTH_DATA: BY_KIND, TWO_WIDTHS: (*WIDENED, *WIDENED.values()), OF_BLOCKS: OTHER_BLOCKS}


def rival_slopes(families: list[xr.Dataset], of: str, claimed: Array, *, descends: bool) -> tuple[str, Array]:
    """The rival whose slopes lie nearest to the claimed ones, of those `tuned_rates.APART` away in some family."""
    others = {NO_CHANGE: np.zeros(len(claimed)), THREE_HALVES: np.full(len(claimed), PAPERS_EXPONENT)}
    if not descends:
        others[DESCENT] = np.array([tuned_rates.drawn_slope(at, f"descent_{of}_scale")[0] for at in families])
    far = {name: float(np.abs(slopes - claimed).max()) for name, slopes in others.items()}
    name = min((name for name in others if far[name] >= tuned_rates.APART), key=far.__getitem__)
    return name, others[name]


NONE_LEARNS = "no family learns at two depths or more"


def _learning(dataset: xr.Dataset, names: Iterable[str]) -> dict[str, xr.Dataset]:
    """The families of these that learn at two depths or more, at the depths where they do."""
    learned = {name: tuned_rates.learned_at(dataset, name) for name in names}
    return {name: at for name, at in learned.items() if at.sizes["depth"] > 1}


@JUDGES.decide(
    brief="{group}, {optimizer}: slopes of tuned rates are those of its own first step",
    claim="{group} that learn under {optimizer}: their tuned rates have over depth the slopes of one step of "
    "{optimizer}, by how far it moves {of}",
    rival="those of {rival}",
    measured="the slope of the rates that minimise the training loss, family by family",
    cases=[{"group": group} for group in tuned_rates.GROUPS],
)
def judge_slopes(dataset: xr.Dataset, group: str) -> Contest | Ruling:
    return _of_one_step(dataset, *tuned_rates.GROUPS[group])


@JUDGES.decide(
    brief="{which}, {optimizer}: slopes are those of its own first step",
    claim="{which} and learn under {optimizer}: their tuned rates have over depth the slopes of one step of "
    "{optimizer}, by how far it moves {of}",
    rival="those of {rival}",
    measured="the slope of the rates that minimise the training loss, family by family",
    cases=[{"which": which} for which in OTHER_RESIDUAL],
)
def judge_slopes_of(dataset: xr.Dataset, which: str) -> Contest | Ruling:
    """As `judge_slopes`, of residual nets that are no group of their own."""
    return _of_one_step(dataset, tuned_rates.GROUPS["residual nets"][0], OTHER_RESIDUAL[which])


def _of_one_step(dataset: xr.Dataset, of: str, names: tuple[str, ...]) -> Contest | Ruling:
    """Whether tuned slopes of these families are those of one step by what it moves."""
    optimizer = dataset.attrs["optimizer"]
    words = {"optimizer": optimizer, "of": MOVED[of].rstrip(","), "rival": "another law"}
    if not (families := _learning(dataset, [name for name in names if name in dataset["family"]])):
        return Ruling(Verdict.INCONCLUSIVE, NONE_LEARNS, words, "none: no slope")
    laws = [tuned_rates.tuned_slope(at) for at in families.values()]
    claimed, errors = np.array([tuned_rates.drawn_slope(at, f"{of}_scale") for at in families.values()]).T
    rival, others = rival_slopes(list(families.values()), of, claimed, descends=optimizer == "sgd")
    stderr = np.hypot([law.stderr for law in laws], errors)
    made = contest(
        [law.exponent for law in laws],
        stderr,
        claimed=claimed,
        rival=others,
        allowance=tuned_rates.ALLOWED,
        draws=dataset.attrs["draws"],
        effective=min(map(tuned_rates.freedom, families.values())) + 1,
        fixed=max(map(tuned_rates.fixed_share, families.values(), stderr)),
        gaussian=True,
    )
    shown = "; ".join(
        f"{name}, {span(at['depth'])}: {law.exponent:.2f} +- {law.stderr:.2f}, step {slope:.2f}"
        for (name, at), law, slope in zip(families.items(), laws, claimed, strict=True)
    )
    return made.saying(shown, **words | {"rival": rival})


def error_of_both(near: Any, far: Any, error: Any, *, shared: bool = False) -> Any:
    """The standard error of |near| - |far| from one number that both are distances from, known to ``error``.

    Where both lie to one side of it they move alike, and the difference does not, but only as long as the number stays
    on its side. So this is the largest change within `REACH` errors either way, over `REACH`, or the standard deviation
    over Gaussian errors where that is larger, as the difference is bounded. Where all of these share the number, it is
    the error of their sum; a NaN counts nothing.
    """
    kept = np.isfinite(near) & np.isfinite(far) if shared else slice(None)
    near, far = np.asarray(near)[kept], np.asarray(far)[kept]

    def apart(moved: Any) -> Any:
        each = np.abs(near - moved) - np.abs(far - moved)
        return each.sum() if shared else each

    reach = REACH * error
    kinks = (np.clip(near, -reach, reach), np.clip(far, -reach, reach))
    places = [reach, -reach, *(np.concatenate(kinks) if shared else kinks)]
    largest = np.max([np.abs(apart(place) - apart(0.0)) for place in places], axis=0) / REACH
    drawn = np.stack([apart(error * normal) for normal in NORMALS])
    return np.maximum(largest, drawn.std(axis=0))


@JUDGES.decide(
    brief="{optimizer}: a step in noise has the tuned slopes more closely than the first",
    claim="Nets that learn under {optimizer}: a step with AdamW's as long as in noise, by the relative change of the "
    "layers, has over depth the slopes of their tuned rates more closely than the first step has, on average over "
    "families",
    rival="the first step has them as closely",
    measured="mean size of the slope less the tuned one, of the step in noise less that of the first step, by the "
    "change that comes nearest",
)
def judge_noise(dataset: xr.Dataset) -> Contest | Ruling:
    words = {"optimizer": dataset.attrs["optimizer"]}
    if not (families := _learning(dataset, [str(name) for name in dataset["family"].values])):
        return Ruling(Verdict.INCONCLUSIVE, NONE_LEARNS, words, "none: no slope")
    laws = [tuned_rates.tuned_slope(at) for at in families.values()]
    tuned = np.array([law.exponent for law in laws])
    scales = [tuned_rates.NOISE_SCALE, *(f"{of}_scale" for of in SCALES)]
    drawn = {name: np.array([tuned_rates.drawn_slope(at, name) for at in families.values()]).T for name in scales}
    in_noise, *others = (slopes - tuned for slopes, _ in drawn.values())
    best = min(range(len(others)), key=lambda which: float(np.abs(others[which]).mean()))
    first = others[best]
    # An error of the tuned slope moves both, and falls with nets as far as it is their scatter.
    errors = np.array([law.stderr for law in laws])
    of_tuned = error_of_both(in_noise, first, errors) ** 2
    variance = float(of_tuned.sum() + sum((drawn[name][1] ** 2).sum() for name in (scales[0], scales[1 + best])))
    falls = float(of_tuned @ [1 - share for share in map(tuned_rates.fixed_share, families.values(), errors)])
    saved = float((np.abs(in_noise) - np.abs(first)).mean())
    shown = "; ".join(
        f"{name}, {span(at['depth'])}: {slope:.2f} +- {law.stderr:.2f}, in noise {slope + off:.2f}, "
        f"first {slope + far:.2f}"
        for (name, at), law, slope, off, far in zip(families.items(), laws, tuned, in_noise, first, strict=True)
    )
    shown = f"the first step by {list(SCALES)[best]}; {shown}"
    fewest = min(map(tuned_rates.freedom, families.values())) + 1
    counts = {"draws": dataset.attrs["draws"], "effective": fewest, "fixed": 1 - falls / variance, "gaussian": True}
    made = lower(saved, variance**0.5 / len(tuned), unit="in the slope", shown=shown, **counts)
    return made.saying(made.shown, **words)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """On the groups of which this run has a family."""
    families = set(dataset["family"].values)
    groups = [group for group, (_, names) in tuned_rates.GROUPS.items() if families.intersection(names)]
    slopes = [judge_slopes(dataset, group) for group in groups]
    if shows_more_pixels(dataset):
        slopes.append(judge_slopes_of(dataset, PIXELS))
    if families.intersection(OTHER_BLOCKS):
        slopes.append(judge_slopes_of(dataset, BLOCKS))
    return [*slopes, *([judge_noise(dataset)] if tuned_rates.NOISE_SCALE in dataset else [])]


def shows_more_pixels(dataset: xr.Dataset) -> bool:
    """Whether a run has all nets that are shown more pixels than others."""
    return set(dataset["family"].values).issuperset(MORE_PIXELS) and dataset.attrs["sides"] > MOST_SIDES


def is_wider(dataset: xr.Dataset) -> bool:
    """Whether a run has residual nets four times as wide as those of the preset, or wider."""
    return "residual mlp init" in dataset["family"] and dataset.attrs["width"] >= 256


# What is run: the preset "evidence" of `sims.learning_rate_search`, once for each optimizer.
PRESET = "evidence"
OPTIMIZERS = ("sgd", "adamw", "lion", "muon-adamw")


def trained(sizes: str) -> str:
    """Hypotheses of claims on nets of these sizes."""
    return (
        f"eight epochs of batches of 16 on 1,792 samples, a constant rate, {sizes}, rates tuned on 12 nets; digits, "
        "MNIST where a family says so; nets whose loss is below a third of chance; one run in a thousand may refute "
        "what is true, which was set after AdamW's run and before those of others"
    )


TRAINED = trained("width 64 or 16 channels, 2 .. 16 units")
UNPRINTED = "no sentence of a paper: a question of our own, whether the step that is made first tells how nets train"


# Runs of all families serve E2 and the rows on tuned rates, too; under the others a run holds one group of E1.
OF_ALL_FAMILIES = ("sgd", "adamw")
# What the run of the plain CNN that is tuned to a 16th of a decade is told, which serves several rows.
OF_CNN = ("--families", "cnn on mnist", "--depths", "2", "4", "8")
FINE_CNN = (*OF_CNN, "--wider", "2", "--times", "2", "--spacing", "0.0625")


def _own_run(optimizer: str, group: str, finer: tuple[str, ...]) -> tuple[str, ...]:
    """What a run of one group alone is told; nothing where a run of all families is at hand."""
    return ("--families", group, *finer) if finer or optimizer not in OF_ALL_FAMILIES else ()


def _slopes(
    id: str,
    group: str,
    words: str,
    scale: str,
    finer: Mapping[str, tuple[str, ...]] = {},
    seen_before: str = "",
    others: tuple[tuple[str, ...], ...] = (),
) -> Claim:
    """``finer``: what runs of an optimizer are told beyond 12 seeds a quarter of a decade apart; ``seen_before``: what
    had been looked at when that was set; ``others``: what further runs under descent are told.
    """
    made = zip(OPTIMIZERS, checks_of_optimizers(NAME, partial(judge_slopes, group=group), OPTIMIZERS), strict=True)
    return Claim(
        id=id,
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement=f"tuned rates of {words} fall over depth as one step of the optimizer that trains says, to 0.15 in "
        f"the slope, by {scale}",
        brief=f"tuned slopes of {group} are those of one step of the optimizer",
        printed=UNPRINTED,
        hypotheses=f"{TRAINED}; the scale was chosen after a prototype's runs, bands and sizes before these "
        f"runs{seen_before}",
        checks=tuple(
            replace(check, arguments=(*_own_run(name, group, finer.get(name, ())), *check.arguments))
            for name, check in made
        )
        + tuple(Check(NAME, partial(judge_slopes, group=group), arguments) for arguments in others),
        preset=PRESET,
    )


# What had been seen of the plain CNN before its run counted in a row.
FINER_PLAIN = (
    "the CNN of 32 channels, tuned to a 16th of a decade, was run for rows on a paper's tables (A24), and counts here "
    "since then"
)
# Digits are shown whole, 8 x 8 pixels, and MNIST at 14 x 14.
AT_MORE_PIXELS = ("--families", *MORE_PIXELS, "--sides", "14", "--spacing", "0.0625")
MORE_PIXELS_SHOWN = (
    f"{TRAINED}; residual nets of variance 1/K: fully-connected ones on digits of 8 x 8 pixels, where E1a and E2b have "
    "4 x 4, and on MNIST at 14 x 14, convolutional ones on MNIST at 14 x 14, where they have 7 x 7; written down "
    "before these runs, at a 16th of a decade after a run under descent of the same nets at a quarter had decided "
    "nothing, as 93 % of the squared error was the distance of rates: slopes off by 0.04, 0.14 and 0.23, rates named "
    "at 0.59 to 1.6 times"
)
# Residual nets under descent with momentum, whose first step from rest is that of descent.
UNDER_MOMENTUM = ("residual mlp init", "residual mlp multiplier", "residual cnn init on mnist")
# Residual nets four times as wide as others, and twice as deep.
AT_WIDTH_256 = ("--families", "residual mlp init", "--wider", "4", "--depths", "2", "8", "32")
OF_WIDTH_256 = (
    f"{trained('width 256, 2, 8 and 32 blocks')}; fully-connected residual nets of variance 1/K on digits; written "
    "down before these runs"
)
OF_RESIDUAL = partial(judge_slopes, group="residual nets")
OF_OTHER_BLOCKS = partial(judge_slopes_of, which=BLOCKS)
# Digits are shown whole, and MNIST as ever.
AT_8_PIXELS = ("--sides", "8")
STANDS = "the first step stands for later ones"
BESIDE_MUON = "beside Muon's, AdamW's shrink, to 0.23 where gradients are noise"
CLAIMS = (
    replace(
        _slopes(
            id="E1a",
            group="residual nets",
            words="residual nets without normalisation",
            scale="the change of the outputs",
        ),
        replaced_by="under descent, AdamW and Lion none is surely off by more than 0.15; under Muon with AdamW they "
        "fall nearly as under AdamW, over 2 to 16 blocks of fully-connected nets as K^(-0.83) at variance 1/K and as "
        "K^(-0.42) under the factor K^(-1/2), where the first step says K^(-0.30) and K^(-0.12)",
        premise=f"{STANDS}: {BESIDE_MUON}",
    ),
    replace(
        _slopes(
            id="E1b",
            group="plain nets",
            words="plain nets",
            scale="the relative change of the layers",
            finer={"muon-adamw": ("--draws", "36")},
            seen_before="; under Muon with AdamW on 36 seeds, of which the first 12 were looked at before and did not "
            f"decide; {FINER_PLAIN}",
            others=(FINE_CNN,),
        ),
        replaced_by="under AdamW they do, to 0.15; under Lion fully-connected ones fall as L^(-1.08 +- 0.02), where "
        "one step has -1.44 by the layers and -0.96 by the outputs, and convolutional ones as L^(-1.54 +- 0.12), not "
        "surely off -1.36; under descent convolutional nets of 32 channels fall over 2 to 8 "
        "layers as L^(-2.47 +- 0.10), where one step has -1.58 +- 0.11, and fully-connected ones over 2 to 16 as "
        "L^(-1.14 +- 0.10), not surely off -1.48; under Muon with AdamW they fall over 2 to 16 layers as L^(-1.0) "
        "in fully-connected and as L^(-1.5) in convolutional nets, where the first step says L^(-0.7) and L^(-1.0)",
        premise=f"{STANDS}; {BESIDE_MUON}",
    ),
    replace(
        _slopes(
            id="E1c",
            group="normalised nets",
            words="batch-normalised residual nets",
            scale="the relative change of the layers",
            finer={"muon-adamw": ("--times", "7")},
            seen_before="; under Muon with AdamW on 84 seeds, as 12, which were looked at before, did not decide",
        ),
        undecided="under Lion they do, K^(-1.20 +- 0.10) where one step has -1.18; under Muon with AdamW 12 nets had "
        "-1.41 +- 0.11 where it has -0.90, which 77 would refute, and the run of 84, an hour, is not made; under "
        "descent, -1.91 +- 0.08 and -2.09, 93 would decide, and under AdamW, -1.61 +- 0.13 and -1.18, 180, in two and "
        "a half hours",
    ),
    replace(
        _slopes(
            id="E1d",
            group="loops",
            words="tied loops",
            scale="the relative change of the layers",
            finer=dict.fromkeys(OPTIMIZERS, ("--times", "2", "--spacing", "0.0625")),
            seen_before="; on 24 seeds, tuned to a 16th of a decade, after 12 and 96 tuned to a quarter had not told "
            "loops of factor L^(-1/2) under descent: those lay 3.2 standard errors beyond what is allowed, inside "
            "their band, and nearly all of their error was the distance of the rates that were tried",
        ),
        replaced_by="of factor 1/L they fall as L^(-0.31 +- 0.03) under descent and as L^(-0.31 +- 0.04) under Muon "
        "with AdamW, where one step has L^(-0.06) and L^(+0.02); of L^(-1/2) as L^(-1.69 +- 0.05) under descent, "
        "where it has L^(-2.34), and as L^(-0.72 +- 0.03) under Muon with AdamW, where it has L^(-0.59); under AdamW "
        "as L^(-0.26 +- 0.04) and L^(-0.75 +- 0.04), at the edge of what is allowed of L^(+0.07) and L^(-0.47)",
        premise=STANDS,
    ),
    Claim(
        id="E1f",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="under Muon with AdamW exponents of tuned rates over depth are nearer to those of a step in which "
        "AdamW's layers move by 0.23 of the rate, as they do once gradients are noise, by the relative change of the "
        "layers, than to those of the first step by whichever change is nearest, on average over families",
        brief="Muon with AdamW: a step in noise is nearer to tuned slopes than the first",
        printed="no sentence of a paper: a question of our own, why the first step of Muon with AdamW does not tell "
        "how tuned rates go with the depth",
        hypotheses=f"{TRAINED}; 0.23 is sqrt((1 - beta1) / (1 + beta1)), and fits nothing; asked after Muon had "
        "refuted E1a, and after the eight families of E1a and E1b had shown that the relative change of the layers "
        "serves; written down before these runs, of which two of the four residual families on both data are among "
        "those eight; of the first step the change counts that comes nearest on these nets; errors of distances that "
        "are small beside those of tuned slopes were widened after these runs, on review, which leaves the normalised "
        "nets open",
        checks=tuple(
            Check(NAME, judge_noise, ("--families", group, "--optimizer", "muon-adamw"))
            for group in (BOTH_DATA, "normalised nets")
        ),
        undecided="residual nets decide for it; batch-normalised ones have -1.41 +- 0.11, the step in noise -1.18 and "
        "the first, by the absolute change, -1.30, and no number of nets decides between these: 4 % of the error's "
        "square is that of draws of one step and of the distance of rates",
        preset=PRESET,
    ),
    Claim(
        id="E1g",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="tuned rates of residual nets that are shown more pixels fall over depth as one step of the "
        "optimizer that trains says, to 0.15 in the slope, by the change of the outputs",
        brief="tuned slopes are those of one step where nets are shown more pixels, too",
        printed=UNPRINTED,
        hypotheses=MORE_PIXELS_SHOWN,
        checks=checks_of_optimizers(NAME, partial(judge_slopes_of, which=PIXELS), OF_ALL_FAMILIES, AT_MORE_PIXELS),
        preset=PRESET,
    ),
    Claim(
        id="E1h",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="under descent with momentum 0.9 tuned rates of residual nets fall over depth as one step says, "
        "which is that of descent, to 0.15 in the slope, by the change of the outputs",
        brief="tuned slopes are those of one step under descent with momentum, too",
        printed=UNPRINTED,
        hypotheses=f"{TRAINED}; three families of residual nets, tuned to a 16th of a decade; written down before this "
        "run",
        checks=checks_of_optimizers(
            NAME,
            OF_RESIDUAL,
            ("sgd_momentum",),
            ("--families", *UNDER_MOMENTUM, "--spacing", "0.0625"),
        ),
        preset=PRESET,
    ),
    Claim(
        id="E1i",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="tuned rates of residual nets of width 256 fall over 2 to 32 blocks as one step of the optimizer "
        "that trains says, to 0.15 in the slope, by the change of the outputs",
        brief="tuned slopes are those of one step at width 256 and 32 blocks, too",
        printed=UNPRINTED,
        hypotheses=f"{OF_WIDTH_256}; under descent on 36 nets, after the first 12 had K^(-1.01 +- 0.05), where one "
        "step has -0.84, and did not decide",
        checks=(
            *checks_of_optimizers(NAME, OF_RESIDUAL, ("sgd",), (*AT_WIDTH_256, "--draws", "36")),
            *checks_of_optimizers(NAME, OF_RESIDUAL, ("adamw",), AT_WIDTH_256),
        ),
        undecided="under descent 36 nets fall as K^(-1.00 +- 0.03) where one step has -0.84, not surely off by more "
        "than 0.15; under AdamW 12 fall as K^(-1.03 +- 0.10) where it has -1.02, which 120 would decide, in 3 hours",
        preset=PRESET,
    ),
    Claim(
        id="E1m",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="tuned rates of residual nets with the factor 1/K on branches, of convolutional ones with branches "
        "of two and three layers, and of a fully-connected one with branches of three and no stem go over depth as "
        "one step of the optimizer that trains says, to 0.15 in the slope, by the change of the outputs",
        brief="tuned slopes of residual nets with other blocks are those of one step, too",
        printed=UNPRINTED,
        hypotheses=f"{TRAINED}; digits of 8 x 8 pixels, of which a net of width 64 without a stem has as many as "
        "units; the other nets have a stem; written down before these runs, but for that of the convolutional net of "
        "two layers a branch, tuned to a 16th of a decade after it had K^(-0.51 +- 0.11) at a quarter, where one step "
        "has 0.19, 3.8 standard errors beyond what is allowed",
        checks=(
            *checks_of_optimizers(NAME, OF_OTHER_BLOCKS, OF_ALL_FAMILIES, ("--families", OF_BLOCKS, *AT_8_PIXELS)),
            Check(
                NAME, OF_OTHER_BLOCKS, ("--families", "residual cnn k=2 on mnist", *AT_8_PIXELS, "--spacing", "0.0625")
            ),
        ),
        undecided="AdamW's run is not made. Under descent convolutional nets of two layers a branch fall as K^(-0.27 "
        "+- 0.07) where one step has K^(0.19 +- 0.09), those of three, which learn at 2 and 4 blocks, as K^(-0.41 +- "
        "0.40) where it has K^(0.95), and the other three agree with it; 64 first steps make as much of "
        "the errors as tuned rates do, so that more nets would not decide",
        preset=PRESET,
    ),
)
