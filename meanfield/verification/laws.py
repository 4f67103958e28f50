"""A law in the size of a net against drawn means: the claimed one against its rival, and whether it is a power at all.

A dataset of these judges has over ``size`` the drawn NAME of its attribute ``quantity`` with NAME_stderr and
NAME_largest_share, and where a law is claimed ``claim_law`` and ``rival_law``, each up to a factor. Sizes of which
nothing was drawn are NaN. `meanfield.depth_law` makes such datasets.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.common.power_laws import PowerLaw, fit_power_law, local_slopes
from meanfield.common.validation import Array
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.series import Series, kish, shown_laws, span
from meanfield.verification.verdicts import Deviation, Finding

# What tells one exponent from another: the rival of a claim that names none, and of the claim that there is one.
LAWS_APART = 0.1
# Of a Gaussian: 1 / (2 N) over the relative variance 0.793 / N of the distance of its quantiles 0.1 and 0.9.
OF_OUTER_QUANTILES = 0.63


def drawn_series(dataset: xr.Dataset, name: str = "") -> Series:
    """The drawn means that count, over their sizes: of the quantity that is asked for, or of another."""
    return Series.of(dataset, name or dataset.attrs["quantity"]).drawn("size")


def _effective_draws(dataset: xr.Dataset) -> float:
    """Draws that its error is known as well as that of so many equal ones.

    The relative spread of a quantity is that of its mean over draws times a power, such as -1/2 of an energy. A
    median's error comes from two outer quantiles, which tell the spread as well as 0.63 of all draws would.
    """
    if dataset.attrs["statistic"] == "median":
        return OF_OUTER_QUANTILES * float(dataset.attrs["draws"])
    spread = drawn_series(dataset).relative_error.max() / abs(dataset.attrs["power_of_mean"])
    return kish(float(dataset.attrs["draws"]), float(spread))


JUDGES = Judges(effective=_effective_draws, largest_share=lambda dataset: drawn_series(dataset).largest_share)


def law_findings(dataset: xr.Dataset) -> list[Finding]:
    """On the claimed law, where there is one, and on whether the drawn means follow a power law."""
    claimed = [judge_claim(dataset)] if "claim_law" in dataset else []
    return [*claimed, judge_power_law(dataset)]


@JUDGES.decide(
    claim="{quantity} goes as {claimed} over {along} = {sizes}",
    rival="{rival}",
    measured="the slope of its logarithm over the sizes, by the errors of independent draws",
)
def judge_claim(dataset: xr.Dataset) -> Contest:
    """A number claims the exponent at these sizes; a function of the size claims how the exponent changes, too."""
    drawn = drawn_series(dataset)
    laws = [dataset[f"{side}_law"] for side in ("claim", "rival") if f"{side}_law" in dataset]
    shapes = [law.sel(size=drawn.value["size"]).values for law in laws]
    bends = not all(law.attrs["is_power"] for law in laws)
    claim, *rivals = (_off(drawn, shape, bends) for shape in shapes)
    words = _words(dataset) | {"claimed": dataset["claim_law"].attrs["law"]}
    shown = f"slope {shown_laws(drawn.law('size'))}"
    if rivals:
        words["rival"] = f"as {dataset['rival_law'].attrs['law']}"
        apart = claim.difference - rivals[0].difference
        return Contest(claim, rivals[0], apart=apart, shown=shown, words=words)
    words["rival"] = f"its exponent is {LAWS_APART:g} off"
    apart = np.array([LAWS_APART, 0.0])[: claim.difference.size]
    return Contest(claim, _apart_from(claim), apart=apart, back=LAWS_APART, shown=shown, words=words)


@JUDGES.decide(
    claim="{quantity} is a power of the {along} over {sizes}",
    rival="its local slope changes by {apart:g} from end to end",
    measured="the drift of the slope, of a parabola through the logarithms",
)
def judge_power_law(dataset: xr.Dataset) -> Contest:
    drawn = drawn_series(dataset)
    sizes = drawn.value["size"].values
    slopes = drawn.local_slopes("size")
    efolds = float(np.log(sizes[-1] / sizes[0]))
    claim = Deviation(efolds * slopes.drift, efolds * slopes.drift_stderr)
    shown = f"it changes by {efolds * slopes.drift:+.3f} +- {efolds * slopes.drift_stderr:.3f}"
    words = _words(dataset) | {"apart": LAWS_APART}
    return Contest(claim, _apart_from(claim), apart=LAWS_APART, back=LAWS_APART, shown=shown, words=words)


def _words(dataset: xr.Dataset) -> dict[str, str]:
    names = {"quantity": dataset.attrs["quantity_in_words"], "along": dataset.attrs["along"]}
    return names | {"sizes": span(drawn_series(dataset).value["size"])}


def _off(drawn: Series, shape: Array, bends: bool) -> Deviation:
    """How far the slope of what is drawn over a law is from 0; where laws bend, its drift as well."""
    sizes, over, error = drawn.value["size"].values, drawn.value.values / shape, drawn.error.values / shape
    law: PowerLaw = fit_power_law(sizes, over, error)
    points = [(law.exponent, law.stderr)]
    if bends:
        slopes = local_slopes(sizes, over, error)
        points.append((slopes.drift, slopes.drift_stderr))
    return Deviation(*np.transpose(points))


def _apart_from(claim: Deviation) -> Deviation:
    """The same from what is `LAWS_APART` off the claim, on the side that is nearer to what is drawn."""
    return Deviation(LAWS_APART - abs(float(claim.difference[0])), claim.stderr[0])
