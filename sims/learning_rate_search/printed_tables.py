"""Tables 1, 3, 4, 5 and figures 6, 7 of Zhang et al. 2026, at our sizes and by nets that learn.

The paper names a range in which the exponents of all its configurations lie, around the -3/2 that it derives. The slope
of tuned rates in depth is held to that range, family by family. Its rivals are no change with depth, an exponent twice
as large as the paper's, and that of one step of the optimizer that trains where it lies far outside. Rows, sizes and
bands were written down before these runs, after trials of single nets, whose losses said which sizes learn.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.verification import (
    ADAM_SLOPES,
    ALL_SLOPES,
    GELU_SLOPE,
    KERNEL_SLOPES,
    PAPERS_EXPONENT,
    PRE_NORM_SLOPE,
    RESNET_BATCH_NORM_SLOPE,
    RESNET_DROPOUT_SLOPE,
    TABLE_1,
    TABLE_4,
    Check,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    Verdict,
    between,
    lower,
    shown_laws,
    span,
    tuned_rates,
)
from sims.common.training_data import OF_CHANNELS
from sims.common.tuned_nets import losses_at
from sims.learning_rate_search.claims import ABSOLUTE, BOTH_NORMS, LATER, NAME
from sims.learning_rate_search.first_steps import FINE_CNN, PRESET

JUDGES = Judges("Zhang et al. 2026", budget=tuned_rates.TRAINED_BUDGET)

CNN, RESNET, VIT = "cnn on mnist", "residual cnn init on mnist", "transformer post on mnist"
GELU, ZERO, PRE_NORM = "cnn gelu on mnist", "cnn zero on mnist", "transformer pre on mnist"
BATCH_NORM, DROPOUT = "residual cnn init batch norm on mnist", "residual cnn init dropout on mnist"
BY_KERNEL = {3: CNN, 4: "cnn 4x4 on mnist", 5: "cnn 5x5 on mnist"}
# By optimizer and family, the exponents that the paper prints on its data sets. Figure 6 has "about -1.5".
PRINTED: dict[str, dict[str, tuple[float, ...]]] = {
    "sgd": {
        CNN: (*TABLE_1["CNN"], KERNEL_SLOPES[3]),
        RESNET: TABLE_1["ResNet"],
        VIT: sum(TABLE_4.values(), TABLE_1["ViT"]),
        GELU: (GELU_SLOPE,),
        BATCH_NORM: (RESNET_BATCH_NORM_SLOPE,),
        DROPOUT: (RESNET_DROPOUT_SLOPE,),
        PRE_NORM: (PRE_NORM_SLOPE,),
        ZERO: (PAPERS_EXPONENT,),
        **{BY_KERNEL[kernel]: (KERNEL_SLOPES[kernel],) for kernel in (4, 5)},
    },
    "adamw": {CNN: (ADAM_SLOPES["CNN"],), RESNET: (ADAM_SLOPES["ResNet"],)},
}
# Architectures of table 1, by how the names of families here begin.
KINDS = dict(zip(OF_CHANNELS, ("CNN", "ResNet", "ViT"), strict=True))
# Table 3, on CIFAR-10; for plain nets it has neither.
TABLE_3 = {"residual cnn init batch norm": RESNET_BATCH_NORM_SLOPE, "residual cnn init dropout": RESNET_DROPOUT_SLOPE}
TABLE_3 |= {"cnn batch norm": float("nan"), "cnn dropout": float("nan")}
# Rivals on either side: a rate that needs no change with depth, and one that falls twice as steeply.
RIVALS = (0.0, 2 * PAPERS_EXPONENT)
# The depth at which the rate is tuned that is carried to the others.
SOURCE = 4


def printed_slope(family: str) -> float:
    """Mean slope of table 1 over its data sets, or that of table 3; NaN for what they do not have."""
    if (kind := tuned_rates.FamilyName.of(family).kind) in TABLE_3:
        return TABLE_3[kind]
    slopes = [TABLE_1[name] for begin, name in KINDS.items() if family.startswith(begin)]
    return float(np.mean(slopes[0])) if slopes else float("nan")


@JUDGES.decide(
    brief="{family}, {optimizer}: the tuned rate's exponent lies in {least:g} .. {most:g}",
    claim="{family} under {optimizer}: the tuned rate falls over depth with an exponent of {least:g} .. {most:g}, "
    "around -3/2",
    source="section 4.5",
    rival="with exponent {rival:.3g}",
    measured="the slope of the rates that minimise the training loss, of nets that learn",
    cases=[{"family": family} for families in PRINTED.values() for family in families],
)
def judge_exponent(dataset: xr.Dataset, family: str) -> Contest | Ruling:
    """Against the rival that is nearest to what is measured, so that whoever leaves it has left the others, too."""
    optimizer, (least, most) = dataset.attrs["optimizer"], ALL_SLOPES
    words = {"optimizer": optimizer, "least": least, "most": most, "rival": 0.0}
    if family not in dataset["family"]:
        return Ruling(Verdict.INCONCLUSIVE, f"{family} was not run", words, "none: no net")
    at = tuned_rates.learned_at(dataset, family)
    if at.sizes["depth"] < 2:
        evidence = "no slope was met: nets learn, and have a tuned rate, at fewer than two depths"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, "none: no slope")
    law, (step, error) = tuned_rates.tuned_slope(at), tuned_rates.drawn_slope(at, ABSOLUTE)
    rivals = [(rival, 0.0) for rival in RIVALS]
    if max(least - step, step - most) >= tuned_rates.APART:
        rivals.append((step, error))
    rival, of_rival = min(rivals, key=lambda slope: abs(slope[0] - law.exponent))
    claim = Deviation(law.exponent - (least + most) / 2, law.stderr, (most - least) / 2)
    against = Deviation(law.exponent - rival, float(np.hypot(law.stderr, of_rival)))
    printed = PRINTED[optimizer][family]
    shown = f"slope {shown_laws(law)} over depths {span(at['depth'])}, one step {step:.2f}"
    shown += f", printed {' .. '.join(f'{slope:g}' for slope in sorted({min(printed), max(printed)}))}"
    counts: dict[str, Any] = {"draws": int(at["located"].max()), "effective": tuned_rates.freedom(at) + 1}
    counts |= {"fixed": tuned_rates.fixed_share(at, law.stderr), "gaussian": True}
    return between(claim, against, **counts).saying(shown, **words | {"rival": rival})


def carried(at: xr.Dataset) -> tuple[Array, Array]:
    """By how many decades the rate tuned at `SOURCE` misses those tuned at the other depths: unchanged, and carried."""
    unchanged = (at["tuned_rate_log10"].sel(depth=SOURCE) - at["tuned_rate_log10"]).drop_sel(depth=SOURCE)
    moved = PAPERS_EXPONENT * np.log10(unchanged["depth"] / SOURCE)
    return unchanged.values, (unchanged + moved).values


def _source_and_targets(dataset: xr.Dataset) -> tuple[xr.Dataset, Ruling | None]:
    """The Transformer at the depths where it learns; a ruling where the source or all targets are lacking."""
    if VIT not in dataset["family"]:
        return dataset, Ruling(Verdict.INCONCLUSIVE, f"{VIT} was not run", power="none: no net")
    at = tuned_rates.learned_at(dataset, VIT)
    if SOURCE not in at["depth"] or at.sizes["depth"] < 2:
        evidence = f"no net learns, and has a tuned rate, at depth {SOURCE} and another one"
        return at, Ruling(Verdict.INCONCLUSIVE, evidence, power="none: no net")
    return at, None


@JUDGES.decide(
    brief="Post-norm: L^(-3/2) carries a rate nearer to tuned ones than an unchanged one is",
    claim=f"Post-norm Transformers: a rate carried by L^(-3/2) from {SOURCE} units to other depths lies nearer to the "
    "tuned rates than the unchanged one, on average over depths",
    source="appendix E.4, table 5",
    rival="the unchanged one lies nearer",
    measured="tuned rates beside the middle of the two, in decades",
)
def judge_zero_shot(dataset: xr.Dataset) -> Contest | Ruling:
    """By how far tuned rates lie beyond the middle, on the carried one's side: a sum of independent errors."""
    at, lacking = _source_and_targets(dataset)
    if lacking:
        return lacking
    unchanged, by_law = carried(at)
    side = np.sign(unchanged - by_law)
    beyond = float((side * (unchanged + by_law)).mean() / 2)
    # By how much a tuned rate moves that: the source's on the side of most depths, another one as one of as many.
    weights = np.where(at["depth"] == SOURCE, side.mean(), 1 / len(side))
    error = float(np.sqrt(weights**2 @ at["tuned_rate_log10_stderr"].values ** 2))
    shown = f"median error {np.median(np.abs(by_law)):.2f} decades, unchanged {np.median(np.abs(unchanged)):.2f}; "
    shown += f"tuned rates {beyond:+.3f} +- {error:.2g} decades beyond the middle, over depths {span(at['depth'])}"
    counts: dict[str, Any] = {"draws": int(at["located"].max()), "effective": float(at["located"].min())}
    counts |= {"fixed": tuned_rates.fixed_share(at, error, weights), "gaussian": True}
    return lower(-beyond, error, unit="in log10 of the rate", shown=shown, **counts)


@JUDGES.decide(
    brief="Post-norm: a rate carried by L^(-3/2) ends at a lower loss than an unchanged one",
    claim=f"Post-norm Transformers: a rate carried by L^(-3/2) from {SOURCE} units to other depths ends at a lower "
    "training loss than the unchanged one, on average over depths",
    source="appendix E.4, table 5",
    rival="it ends at a higher one",
    measured="losses of the nets that were tuned, between the rates that they were tried at, at most that of chance",
)
def judge_loss(dataset: xr.Dataset) -> Contest | Ruling:
    """The error of the source's rate moves both rates at all depths together."""
    at, lacking = _source_and_targets(dataset)
    if lacking:
        return lacking
    rate, error = (float(at[f"tuned_rate_log10{end}"].sel(depth=SOURCE)) for end in ("", "_stderr"))
    saved = np.stack([_saved(at.sel(depth=depth), rate, error) for depth in at["depth"].values if depth != SOURCE])
    below, middle, above = saved.mean(axis=1).T
    over_draws = float(np.sqrt((saved[:, :, 1].var(axis=1, ddof=1) / saved.shape[1]).sum())) / len(saved)
    together = float(np.hypot(over_draws, (above - below).mean() / 2))
    shown = f"saves {middle.mean():.3f} +- {together:.2g} nats, and loss at {int((middle > 0).sum())} of {len(middle)} "
    shown += f"depths of {span(at['depth'])}"
    return lower(-float(middle.mean()), together, unit="in the loss", shown=shown, effective=saved.shape[1])


def _saved(target: xr.Dataset, rate: float, error: float) -> Array:
    """Loss at the unchanged rate less that at the carried one, (draw, 3), of a source an error below, at, and above."""
    moved = PAPERS_EXPONENT * float(np.log10(target["depth"] / SOURCE))
    sources = [rate - error, rate, rate + error]
    losses, chance = target["final_loss"], float(target["chance_loss"])
    return losses_at(sources, losses, chance) - losses_at([source + moved for source in sources], losses, chance)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """On the families of the tables that this run has, under their optimizers; on the Transformer where it descends."""
    families, optimizer = set(dataset["family"].values), dataset.attrs["optimizer"]
    own = [judge_exponent(dataset, family) for family in PRINTED.get(optimizer, {}) if family in families]
    zero_shot = [judge_zero_shot(dataset), judge_loss(dataset)] if VIT in families and optimizer == "sgd" else []
    return [*own, *zero_shot]


# What is run, all of it by the preset "evidence": 12 nets a depth or times so many, 2 .. 16 units, of so many times 16
# channels.
WIDE = ("--families", CNN, ZERO, RESNET, "--wider", "2")
ABLATED = ("--families", GELU, DROPOUT)
KERNELS = ("--families", BY_KERNEL[4], BY_KERNEL[5], "--wider", "2")
BROAD = ("--families", VIT, "--wider", "2.5", "--depths", "4", "8")
NARROW_LONG, LONG = (
    ("--families", VIT, "--wider", times, "--epochs", "16", "--depths", "2", "4", "8") for times in ("1.5", "2")
)
OF_ADAM = ("--optimizer", "adamw")
MNIST = (
    "MNIST's images averaged to 7 x 7 (Transformers: 16 patches), where the paper has CIFAR-10 and others; 1,792 of "
    "them, batches of 16, eight epochs (896 steps; an epoch of the paper's CIFAR-10 has 391), 2 .. 16 units, rates "
    "tuned on 12 nets (24 where both norms are run); nets whose loss is below a third of chance (0.77) count, as those "
    "of table 5, of 1.77 to 1.83, would not. The paper tunes for one epoch, and says in section 6 that later training "
    "depends on the data more and more; in one epoch our nets, which hardly learn, had -1.68 +- 0.09 (plain CNNs) and "
    "-1.38 +- 0.08 (post-norm Transformers)"
)
SIZES = f"gradient descent, {MNIST}; 32 channels, where the paper has 64 to 768"
REGISTERED = "sizes and bands were written down before these runs"
OF_PLAIN = (
    "the CNN with circular padding is tuned on 24 nets over 2, 4 and 8 layers (deeper ones do not learn) to a 16th of "
    "a decade, after 12 and 72 nets tuned to a quarter had not decided (-2.48 +- 0.26, -2.58 +- 0.20)"
)


def _exponents(*families: str, arguments: tuple[str, ...] = ()) -> tuple[Check, ...]:
    return tuple(Check(NAME, partial(judge_exponent, family=family), arguments) for family in families)


CLAIMS = (
    Claim(
        id="A24",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 4.1, table 1",
        statement="tuned rates of small CNNs, residual CNNs of variance 1/K and post-norm Transformers, trained until "
        "they learn, fall over depth by one power, around -3/2 (judged: each exponent lies in -1.8 .. -1.1, as those "
        "of all configurations do)",
        brief="table 1: CNNs, ResNets and ViTs have tuned rates of exponents around -3/2",
        printed='"the independently tuned optima consistently organize around a common power law across CNNs, ResNets, '
        'and ViTs" (section 4.1)',
        hypotheses=f"{SIZES}; {REGISTERED}; those of 16 channels had been seen (CNN -2.30 +- 0.21, ResNet -1.43 +- "
        f"0.12), and -3 was made a rival in view of them; {OF_PLAIN}",
        checks=(
            *_exponents(CNN, arguments=FINE_CNN),
            *_exponents(RESNET, arguments=WIDE),
            *_exponents(VIT, arguments=BOTH_NORMS),
        ),
        replaced_by="plain CNNs fall as L^(-2.47 +- 0.10) over 2 to 8 layers (-2.7 from 2 to 4, -2.3 from 4 to 8); "
        "residual ones as K^(-1.60 +- 0.13) and post-norm Transformers, from 4 to 8 units, as L^(-1.00 +- 0.10), "
        "inside the range or not surely beyond its edge",
        premise=LATER,
        preset=PRESET,
    ),
    Claim(
        id="A25",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 4.5, table 3",
        statement="with GELU, Adam, batch normalisation, dropout or pre-norm, too, tuned rates of small nets that are "
        "trained until they learn fall over depth with an exponent in -1.8 .. -1.1",
        brief="table 3: GELU, Adam, BatchNorm, dropout, pre-norm keep exponents in -1.8 .. -1.1",
        printed='"All tested configurations yield exponents within the range [-1.8, -1.1], with a mean of -1.39" '
        "(section 4.5)",
        hypotheses=f"{MNIST}; gradient descent but for Adam, which is AdamW without decay; 16 channels, Transformers "
        "32; a tenth is dropped, as the paper does not say how much; "
        f"{REGISTERED}, but for Adam and batch normalisation: they are of runs of E1, of which slopes had been seen. "
        "One step counts as a rival from 0.4 outside the range on, as said after the verdicts of these",
        checks=(
            *_exponents(GELU, DROPOUT, arguments=ABLATED),
            *_exponents(CNN, RESNET, arguments=OF_ADAM),
            *_exponents(BATCH_NORM),
            *_exponents(PRE_NORM, arguments=BOTH_NORMS),
        ),
        replaced_by="with pre-norm the tuned rate falls over 4 to 16 units as L^(-0.28 +- 0.07), where one step says "
        "-0.57 by the outputs and -1.13 by the layers; with dropout residual CNNs have K^(-1.33 +- 0.10), inside the "
        "range; plain CNNs with GELU have L^(-1.86 +- 0.27), which decides nothing",
        premise=LATER,
        preset=PRESET,
    ),
    Claim(
        id="A26",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, appendix E.4, table 4",
        statement="at 32 and 40 channels, and at 24 and 32 after twice the epochs, tuned rates of small post-norm "
        "Transformers that are trained until they learn fall over depth with an exponent around -3/2 (judged: in -1.8 "
        ".. -1.1)",
        brief="table 4: widths and epochs leave exponents of small ViTs around -3/2",
        printed='"The fitted slopes remain concentrated around the predicted leading exponent alpha = -1.5" (appendix '
        "E.4)",
        hypotheses=f"gradient descent, {MNIST}; widths in the ratios of the paper's 288, 384 and 480; eight and "
        "sixteen epochs for its one to three, as nets hardly learn in fewer. Its nine exponents are -1.207 .. -1.647; "
        f"{REGISTERED}; before the runs of 40 channels, and of sixteen epochs, their depths were cut to 4 and 8 units, "
        "and to 2, 4 and 8, as of 32 channels those of 2 and 16 had not learned. Of 24 channels nets had not learned "
        "after eight epochs (losses of 0.86 and 0.84 at 4 and 8 units, slope -1.22 +- 0.10), and are trained for "
        "sixteen",
        checks=tuple(
            check
            for arguments in (BOTH_NORMS, BROAD, NARROW_LONG, LONG)
            for check in _exponents(VIT, arguments=arguments)
        ),
        preset=PRESET,
    ),
    Claim(
        id="A27",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, appendix E.4, table 5",
        statement="carried by L^(-3/2) from 4 units to the other depths that learn, the rate of small post-norm "
        "Transformers, trained until they learn, lies nearer to independently tuned ones than unchanged, and ends at a "
        "lower training loss, on average over depths",
        brief="table 5: L^(-3/2) carries rates of small ViTs better than leaving them",
        printed='"the scaled rule reduces the median log-LR error from 0.314 to 0.057 decades and achieves lower '
        '... training loss than raw transfer on 6/7 targets" (appendix E.4)',
        hypotheses=f"{SIZES}; T6a has other families, at carried rates. Losses are those of the nets that were tuned, "
        "between the rates that they were tried at; beyond the largest, where losses rise, they count as there, for "
        f"the unchanged rate. {REGISTERED}",
        checks=(Check(NAME, judge_zero_shot, BOTH_NORMS), Check(NAME, judge_loss, BOTH_NORMS)),
        undecided="one depth alone counts, 8 units, as nets of 2 and 16 do not learn: the carried rate is 0.15 decades "
        "off, the unchanged one 0.30, and 0.08 +- 0.03 nats are saved; depths that learn are lacking, more than draws",
        preset=PRESET,
    ),
    Claim(
        id="A28",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, appendix E.2, figure 6",
        statement="under circular and under zero padding, tuned rates of small CNNs that are trained until they learn "
        "fall over depth with an exponent around -3/2 (judged: in -1.8 .. -1.1)",
        brief="figure 6: circular and zero padding have exponents around -3/2",
        printed='"both padding modes follow essentially the same depth-learning-rate power law, with exponents close '
        'to the theoretical L^(-3/2) prediction" (appendix E.2)',
        hypotheses=f"{SIZES}; {REGISTERED}; {OF_PLAIN}",
        checks=_exponents(CNN, arguments=FINE_CNN) + _exponents(ZERO, arguments=WIDE),
        replaced_by="under circular padding they fall as L^(-2.47 +- 0.10) over 2 to 8 layers; under zero padding as "
        "L^(-2.22 +- 0.16), the same to 0.25 +- 0.19, as the paper says of the two",
        premise=LATER,
        preset=PRESET,
    ),
    Claim(
        id="A29",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, appendix E.3, figure 7",
        statement="with kernels of 3 x 3, 4 x 4 and 5 x 5, tuned rates of small CNNs that are trained until they learn "
        "fall over depth with an exponent around -3/2 (judged: in -1.8 .. -1.1)",
        brief="figure 7: kernels of 3, 4 and 5 have exponents around -3/2",
        printed='"varying k ... primarily induces a vertical shift (prefactor change) while the exponent remains close '
        'to the theoretical 3/2" (appendix E.3)',
        hypotheses=f"{SIZES}; zero padding at 5 x 5 alone; {REGISTERED}; {OF_PLAIN}",
        checks=_exponents(CNN, arguments=FINE_CNN) + _exponents(BY_KERNEL[4], BY_KERNEL[5], arguments=KERNELS),
        replaced_by="with kernels of 3 x 3 they fall as L^(-2.47 +- 0.10) over 2 to 8 layers; larger ones are not "
        "run, so that whether the kernel moves the exponent is not known",
        premise=LATER,
        preset=PRESET,
    ),
)
