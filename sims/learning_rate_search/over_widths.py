"""What carries a tuned rate over the width, where the depth stays: what one step changes, or nothing at all?

Nets of two widths that both learn count. Over the depth the change of the outputs carries rates of residual nets
(`first_steps`); here it is the rival of what was seen on nets of digits: rates of descent stay, and those of AdamW go
as one step changes the layers relative to their own size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import and_

import numpy as np
import xarray as xr

from meanfield.transfer import TRIAL_WIDTHS
from meanfield.verification import Check, Claim, Contest, Finding, JudgeOfRun, Kind, Ruling, Verdict, tuned_rates
from sims.common.tables import WITHIN, Grid, table
from sims.common.training_data import OF_CHANNELS
from sims.common.tuned_nets import OF, checks_of_optimizers
from sims.learning_rate_search.first_steps import (
    JUDGES,
    NAME,
    PRESET,
    TWO_WIDTHS,
    error_of_both,
    trained,
)
from sims.learning_rate_search.named_rates import KINDS, STEP_SCALES, kind_of, log_error, nearer, within_stated

# The scale by which rates of an optimizer are carried over the width, as the library does; of none they stay.
CARRIES = {"sgd": None, "sgd_momentum": None, "adamw": "relative_scale", "lion": "relative_scale"}
RIVAL = "outputs_scale"
# The group of families that this is said of.
GROUP = "residual nets"
STAYS, GOES = "stay", "go by the relative change of the layers"


@dataclass(frozen=True)
class Widened:
    """Nets of two widths: what the wide ones have over the narrow ones, log10 of it, over (family, depth).

    Attributes:
        wide, narrow: the same families and depths of a run, by the names of the wide ones.
        learned: where both learn and have a tuned rate and all scales of one step.
    """

    wide: xr.Dataset
    narrow: xr.Dataset
    learned: xr.DataArray

    @classmethod
    def of(cls, dataset: xr.Dataset, group: str | None = None) -> Widened:
        """Those of this run, or of a group of its families, which may be none."""
        known = {str(name): tuned_rates.FamilyName.of(str(name)) for name in dataset["family"].values}
        narrow = {name: read.narrow for name, read in known.items() if read.times > 1 and read.narrow in known}
        names = [name for name in narrow if group in (None, tuned_rates.group_of(name)[0])]
        wide = dataset.sel(family=names)
        base = dataset.sel(family=[narrow[name] for name in names]).assign_coords(family=names)
        numbers = ("tuned_rate_log10_stderr", *(f"{of}_scale" for of in OF))
        parts = (
            reduce(and_, (np.isfinite(at[name]) for name in numbers), tuned_rates.learning(at)) for at in (wide, base)
        )
        learned = reduce(and_, parts)
        return cls(wide, base, learned.transpose(*wide["tuned_rate_log10"].dims))

    def gone(self, scale: str | None) -> tuple[xr.DataArray, xr.DataArray]:
        """How far a scale has gone, with its error; 0 of none."""
        if scale is None:
            zero = xr.zeros_like(self.wide["tuned_rate_log10"]).where(self.learned)
            return zero, zero
        gone = xr.DataArray(np.log10(self.wide[scale]) - np.log10(self.narrow[scale]))
        error = xr.DataArray(np.hypot(log_error(self.wide, scale), log_error(self.narrow, scale)))
        return gone.where(self.learned), error.where(self.learned)

    @property
    def tuned(self) -> tuple[xr.DataArray, xr.DataArray]:
        """How far tuned rates have gone, with the error."""
        gone = self.wide["tuned_rate_log10"] - self.narrow["tuned_rate_log10"]
        error = np.hypot(self.wide["tuned_rate_log10_stderr"], self.narrow["tuned_rate_log10_stderr"])
        return gone.where(self.learned), xr.DataArray(error).where(self.learned)


@JUDGES.decide(
    brief="{optimizer}: over widths tuned rates {moved}",
    claim="Over widths tuned rates of residual nets that learn under {optimizer} {moved}, more closely than they go by "
    "how far one step moves the outputs, on average over nets",
    rival="they go by the outputs as closely",
    measured="mean size of log10 of carried over tuned rates, of the claimed way less that of the outputs",
)
def judge_widths(dataset: xr.Dataset) -> Contest | Ruling:
    optimizer = dataset.attrs["optimizer"]
    words = {"optimizer": optimizer, "moved": "stay, or go by a change"}
    if optimizer not in CARRIES:
        why = f"nothing is claimed of {optimizer} over the width"
        return Ruling(Verdict.INCONCLUSIVE, why, words, f"none: {why}")
    scale = CARRIES[optimizer]
    words["moved"] = STAYS if scale is None else GOES
    widened = Widened.of(dataset, GROUP)
    if not widened.learned.any():
        return Ruling(Verdict.INCONCLUSIVE, "no net of two widths learns at both", words, "none: no net")
    tuned, error = widened.tuned
    (claimed, of_claimed), (outputs, of_outputs) = map(widened.gone, (scale, RIVAL))
    off, far = claimed - tuned, outputs - tuned
    of_tuned = off.copy(data=error_of_both(off.values, far.values, error.values))
    nets = tuned_rates.variance_of_nets(widened.wide) + tuned_rates.variance_of_nets(widened.narrow)
    # Both scales are of the same draws, so that their errors may add.
    parts = [(of_tuned, nets / error**2), (of_claimed + of_outputs, 0.0)]
    fewest = np.minimum(widened.wide["located"], widened.narrow["located"])
    made = nearer(widened.wide.assign(located=fewest), off, far, parts, {"carried so,": off, "by the outputs,": far})
    each = "; ".join(
        f"{name}, {', '.join(f'{times:.2g}' for times in 10 ** tuned.sel(family=name).dropna('depth').values)}"
        for name in map(str, tuned["family"].values)
    )
    return made.saying(f"{made.shown}; tuned rates went to {each} times", **words)


@JUDGES.decide(
    brief="{optimizer}: `mf.starting_rate` names rates of wider nets within its factor",
    claim="`mf.starting_rate` names the tuned rate of every wider residual net that learns under {optimizer} within "
    "the factor that it states ({constants})",
    rival="some net is farther off",
    measured="the rate that it names, beside the tuned rate",
)
def judge_wider(dataset: xr.Dataset) -> Contest | Ruling:
    widened, words = Widened.of(dataset, GROUP), {"optimizer": dataset.attrs["optimizer"], "constants": "?"}
    named = widened.wide
    if not named.sizes["family"]:
        return Ruling(Verdict.INCONCLUSIVE, "no residual net of two widths was run", words, "none: no net")
    if CARRIES.get(dataset.attrs["optimizer"], RIVAL) is None:
        # Rates stay: the step of nets as wide as those of the trials names them, which the narrow ones must be.
        for family in map(str, named["family"].values):
            size = "channels" if family.startswith(OF_CHANNELS) else "width"
            if (narrow := dataset.attrs[size]) != (trial := TRIAL_WIDTHS[KINDS[kind_of(family)]]):
                why = f"the narrow nets have {size} {narrow}, and `mf.starting_rate` takes the step at {trial}"
                return Ruling(Verdict.INCONCLUSIVE, why, words, "none: no such step")
        named = named.assign({of: widened.narrow[of] for scale in STEP_SCALES for of in (scale, f"{scale}_stderr")})
    return within_stated(named, map(str, named["family"].values))


def table_of(dataset: xr.Dataset) -> Grid | str:
    """How far tuned rates and scales of one step went over the width, net by net; nothing without two widths."""
    widened = Widened.of(dataset)
    gone = {"tuned rate": widened.tuned} | {of: widened.gone(f"{of}_scale") for of in OF}
    rows = []
    for name, depth in product(widened.wide["family"].values, widened.wide["depth"].values):
        at = [[float(part.sel(family=name, depth=depth)) for part in (times, error)] for times, error in gone.values()]
        if np.isfinite(at).all():
            times = [f"{10**value:.2f}{WITHIN}{10**value * np.log(10) * error:.2f}" for value, error in at]
            rows.append([f"{name} {depth}", *times])
    title = "Over the width, of nets that learn: times those of the narrower net"
    return table(["net", *gone], rows, title) if rows else ""


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Where this run has residual nets of two widths, and something is claimed of its optimizer."""
    is_judged = dataset.attrs["optimizer"] in CARRIES and Widened.of(dataset, GROUP).wide.sizes["family"]
    return [judge_widths(dataset), judge_wider(dataset)] if is_judged else []


AT_TWO_WIDTHS = ("--families", TWO_WIDTHS, "--depths", "2", "8")
# Convolutional residual nets of 16 and of 64 channels.
NARROW = ("residual cnn init", "residual cnn init on mnist")
AT_64_CHANNELS = ("--families", *NARROW, "residual cnn init x4", "residual cnn init x4 on mnist", "--depths", "2", "8")
OF_64_CHANNELS = (
    f"{trained('16 and 64 channels, 2 and 8 blocks')}; convolutional residual nets of variance 1/K, of digits and of "
    "MNIST; asked after the starting rates of two nets of 32 channels under AdamW, 0.59 and 0.67 times the tuned one, "
    "had stood at the edge of what is stated, and written down before these runs; under AdamW rates a 16th of a decade "
    "apart, as a quarter had not decided E1j"
)


def _checks(judge: JudgeOfRun, nets: tuple[str, ...]) -> tuple[Check, ...]:
    """By descent a quarter of a decade between rates, by AdamW a 16th."""
    return (
        *checks_of_optimizers(NAME, judge, ("sgd",), nets),
        *checks_of_optimizers(NAME, judge, ("adamw",), (*nets, "--spacing", "0.0625")),
    )


CLAIMS = (
    Claim(
        id="E1j",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="over widths of 64 to 256 units, or of 16 to 32 channels, tuned rates of residual nets stay under "
        "descent, and under AdamW go as the relative change of the layers in one step, each more closely than by the "
        "change of the outputs, which carries them over the depth",
        brief="over widths rates stay (descent) or go by the relative change (AdamW)",
        printed="no sentence of a paper: a question of our own, by which change one step carries rates over the width",
        hypotheses=f"{trained('width 64 and 256 or 16 and 32 channels, 2 and 8 blocks')}; fully-connected residual "
        "nets of MNIST (variance 1/K) and of digits (factor K^(-1/2)), and convolutional ones of MNIST; asked after "
        "residual nets of digits (variance 1/K), which are not among these, had shown it, and written down before "
        "these runs; under AdamW rates a 16th of a decade apart, after a run of the same nets at a quarter had decided "
        "nothing: off by 0.13 decades where the outputs are by 0.32, two thirds of the squared error being the "
        "distance of rates",
        checks=_checks(judge_widths, AT_TWO_WIDTHS),
        preset=PRESET,
    ),
    Claim(
        id="E1k",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="over widths of 16 to 64 channels, too, tuned rates of convolutional residual nets stay under "
        "descent, and under AdamW go as the relative change of the layers in one step, each more closely than by the "
        "change of the outputs",
        brief="to 64 channels, too, rates stay (descent) or go by the relative change (AdamW)",
        printed="no sentence of a paper: a question of our own, by which change one step carries rates over the width",
        hypotheses=OF_64_CHANNELS,
        checks=_checks(judge_widths, AT_64_CHANNELS),
        preset=PRESET,
    ),
    Claim(
        id="E2g",
        kind=Kind.OWN,
        source="docs/theory.md section 15",
        statement="`mf.starting_rate` names the tuned rates of convolutional residual nets of 64 channels, four times "
        "those of its trials, within the factor that it states",
        brief="`mf.starting_rate` keeps its factor at 64 channels",
        printed="no sentence of a paper: whether the constants of this library hold on nets that came after them",
        hypotheses=OF_64_CHANNELS,
        checks=_checks(judge_wider, AT_64_CHANNELS),
        preset=PRESET,
    ),
)
