"""A law of one's own: how a quantity of a net goes with its size, drawn, predicted, and judged against a rival.

Draws decide: the exponent over the sizes that are drawn, with error and goodness of fit, whether it is one exponent at
all, and the verdict on what is claimed. Theory stands beside them where it serves: what it says at the same sizes, what
it tends to, and how far finite width moves the exponent.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from math import isfinite, nan
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.power_laws import local_slopes
from meanfield.common.seeds import checked_seed, derived_seed
from meanfield.common.validation import (
    Array,
    PremiseWarning,
    not_negative,
    require_choice,
    require_draws,
    require_finite,
    require_flag,
)
from meanfield.execution.digests import provenance
from meanfield.execution.run import Run, simulate_all, store_in
from meanfield.execution.training import checked_pair
from meanfield.execution.workers import Workers
from meanfield.nets.inputs import LOSS_NAMES
from meanfield.nets.net import Net
from meanfield.nets.recognised import as_family
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.quantities.registry import QUANTITIES
from meanfield.simulation.step_moves import require_step
from meanfield.theory.transformers.terms import prediction_seconds
from meanfield.transfer.law_quantities import (
    EXACT,
    LAW_QUANTITIES,
    MEAN_FIELD,
    DrawSetting,
    LawQuantity,
    Theory,
    statistic_of,
)
from meanfield.verification.laws import drawn_series, law_findings
from meanfield.verification.verdicts import CONVERGED_SHARE, power_in_words

Size = int | float
# Inputs and targets of all sizes, or a function of the size that returns them.
GivenData = tuple[ArrayLike, ArrayLike] | Callable[[Any], tuple[ArrayLike, ArrayLike]]
# A number claims (size)^number, a function the law that it computes, up to a factor.
ClaimedLaw = float | Callable[[Any], float]
# Draws of many runs, as `simulate_all` has them.
DrawRuns = Callable[[Sequence[Run]], Sequence[xr.Dataset]]
FEWEST_SIZES = 3
ENDS = {"": "", "_stderr": "standard error over draws", "_largest_share": "share of the largest draw in the mean"}
# Theory that takes longer is not begun unless it is asked for.
MOST_MINUTES = 15


def depth_law(
    make: Callable[[Any], Net],
    sizes: Iterable[Size],
    *,
    draws: int,
    seed: int,
    quantity: str = "learning_rate_scale",
    claim: ClaimedLaw | None = None,
    rival: ClaimedLaw | None = None,
    optimizer: str | Optimizer | Hybrid = "sgd",
    epsilon: float = 0.0,
    inputs: ArrayLike | None = None,
    data: GivenData | None = None,
    batch_size: int | None = None,
    loss: str | None = None,
    theory: bool | None = None,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """How a quantity of a net goes with its depth or another size: the exponent, whether it is one, and a verdict.

    Nets of every size are drawn by themselves, so that the errors of all sizes are independent. A power law is fitted
    over the sizes that are drawn, and the verdict is on these sizes: what a law tends to beyond them is what theory
    says of the same net, in attributes of its own.

    Args:
        make: function of a size that returns a net, any of the library's or of one's own; all of one family.
        sizes: three or more, positive: depths, widths, or whatever ``make`` takes.
        draws, seed: as for `simulate`; of every size.
        quantity: "learning_rate_scale", eta* of the whole update; "label_learning_rate_scale", of its label term;
            "relative_learning_rate_scale", of the layers' changes over their values; "last_learning_rate_scale", of the
            same in the last layer; "output_learning_rate_scale", of the outputs, the readout's own update included; or
            "stable_rate", 2 / lambda_max of the loss on a batch, which is gradient descent's alone.
        claim: what is claimed, a number p for size^p, or a function of the size that is proportional to the claimed
            quantity. Nothing is judged but whether there is a power law if it is left out.
        rival: what would be true if the claim were false, likewise. If left out, an exponent that is 0.1 off.
        optimizer, epsilon: whose first step from rest moves the nets, as for `one_step`.
        inputs: a fixed batch (samples, channels, *grid) for all sizes; if left out, the nets' own law draws them:
            anew in every draw, or, of "stable_rate", one batch of 32 samples for all nets of one input.
        data: inputs and targets, as for `train`, from which every draw takes a mini-batch: the step that training makes
            first. A pair for all sizes, or a function of the size that returns it. The quantity is then the median
            over draws, which is what a net meets, and theory is not asked.
        batch_size: samples of a mini-batch; all of the data if left out.
        loss: "squared" or "cross_entropy"; if left out, the first, or on data the second.
        theory: whether to predict as well; if left out, where that takes no longer than 15 minutes. It takes longer
            for long or deep Transformers with a causal mask.
        workers, resume_in: as for `simulate`.

    Returns:
        Dataset over ``size``: the quantity with NAME_stderr and NAME_largest_share, and NAME_exact and NAME_mean_field
        where theory has them; ``local_slope`` with its error, from the size before to this one (NaN at the first), and
        ``local_slope_theory``; ``claim_law`` and ``rival_law``, up to a factor. "learning_rate_scale" has
        label_learning_rate_scale beside it, whose theory more nets have. Attributes:

        - ``statistic``, "mean" or "median", and ``optimizer``, ``epsilon``, ``batch_size``, ``loss`` of the step.
        - ``exponent``, ``exponent_stderr``, ``chi_square``, ``p_value`` of the fit over the sizes; ``drift``,
          ``drift_stderr``, ``drift_p_value`` of the local slope (`local_slopes`); ``power_law_verdict`` on whether its
          ends differ by less than 0.1.
        - with a claim ``verdict``, ``verdict_of_rival``, ``evidence``, ``power`` (which deviations such draws refute)
          and, where neither holds or luck decides, ``draws_needed``.
        - ``theory``, the level that stands beside the draws, or ``theory_missing``, why there is none;
          ``theory_exponent`` at the same sizes; ``limit_exponent`` that eta* tends to in depth, under descent by the
          law of its label term, or ``limit_missing``.
        - ``finite_width`` with ``finite_width_stderr``, by how much finite width moves the exponent: exact expectation
          less mean field, or else draws less mean field; ``finite_width_of`` says which, or why it is not known.
        - ``overflowed``: sizes at which numbers leave the range of floats, or no draw moves, or a tenth of them do not
          where the median is asked for; all else is of the others.

    Warns:
        PremiseWarning: one draw makes more than a quarter of a mean, which then decides nothing.

    Raises:
        TypeError, ValueError: fewer than three sizes, a ``make`` that raises, returns what is no net, or nets of
            several families; claims that are not finite, laws that are not positive, a rival that says the same as the
            claim; an optimizer without a first step from rest, a quantity that is not drawn under it or on data, data
            that do not fit a net.
        OverflowError: fewer than three sizes are left.
        MemoryError: more than the machine has.

    Source: Zhang et al. 2026, eq. 9; docs/theory.md sections 6, 8, 21.

    Examples:
        >>> import meanfield as mf
        >>> law = mf.depth_law(
        ...     lambda depth: mf.MLP(depth=depth, width=256), [4, 8, 16], claim=-1.0, rival=-1.5, draws=256, seed=0
        ... )
        >>> law.attrs["verdict"], law.attrs["limit_exponent"], -1.6 < law.attrs["exponent"] < -1.3
        ('REFUTED', -1.5, True)
    """
    question = LawQuestion.of(
        make,
        sizes,
        quantity=quantity,
        claim=claim,
        rival=rival,
        optimizer=optimizer,
        epsilon=epsilon,
        inputs=inputs,
        data=data,
        batch_size=batch_size,
        loss=loss,
        theory=theory,
    )
    draw = partial(simulate_all, workers=workers, store=store_in(resume_in))
    law = question.answered(draw, draws, seed)
    share = drawn_series(law).largest_share
    if share > CONVERGED_SHARE:
        warnings.warn(
            f"one draw makes {share:.0%} of a mean {quantity}, whose standard error then says nothing: draw more, or "
            "take wider or shallower nets",
            PremiseWarning,
            stacklevel=2,
        )
    return law


@dataclass(frozen=True)
class ShownLaw:
    """A claimed law: its values at the sizes, up to a factor, and how it reads.

    Attributes:
        words: such as "depth^-1.5", or the name of its function.
        values: at every size.
        is_power: whether it is a power of the size.
    """

    words: str
    values: tuple[float, ...]
    is_power: bool


@dataclass(frozen=True, kw_only=True)
class LawQuestion:
    """What `depth_law` is asked, checked, before any net is drawn.

    Attributes:
        sizes, nets: in order.
        along: the field of the nets that is their size, or "size".
        quantity, claim, rival, theory: as for `depth_law`.
        settings: under what the nets of every size are drawn.
    """

    sizes: tuple[Size, ...]
    nets: tuple[Any, ...]
    along: str
    quantity: LawQuantity
    claim: ShownLaw | None
    rival: ShownLaw | None
    settings: tuple[DrawSetting, ...]
    theory: bool | None = None

    @classmethod
    def of(
        cls,
        make: Callable[[Any], Net],
        sizes: Iterable[Size],
        *,
        quantity: str,
        claim: ClaimedLaw | None,
        rival: ClaimedLaw | None,
        theory: bool | None = None,
        data: GivenData | None = None,
        loss: str | None = None,
        **setting: Any,
    ) -> LawQuestion:
        """Make every net and every value of a law, or raise as `depth_law` does; ``setting``: of `DrawSetting`."""
        require_choice("quantity", quantity, LAW_QUANTITIES)
        loss = ("squared" if data is None else "cross_entropy") if loss is None else loss
        require_choice("loss", loss, LOSS_NAMES)
        if theory is not None:
            require_flag("theory", theory)
        checked = _checked_sizes(sizes)
        nets = _nets(make, checked)
        settings = _settings(DrawSetting(loss=loss, **setting), data, checked)
        if why := LAW_QUANTITIES[quantity].refusal(settings[0]):
            raise ValueError(why)
        for net in nets:
            require_step(net, settings[0].step)
        along = _along(nets, checked)
        claimed, other = (
            None if law is None else _shown_law(side, law, checked, along)
            for side, law in (("claim", claim), ("rival", rival))
        )
        if other is not None:
            _require_rival(claimed, other)
        asked: dict[str, Any] = {"quantity": LAW_QUANTITIES[quantity], "claim": claimed, "rival": other}
        return cls(sizes=checked, nets=nets, along=along, settings=settings, theory=theory, **asked)

    def runs(self, draws: int, seed: int) -> list[Run]:
        """Draws of every size, each by a seed of its own."""
        draws, seed = require_draws("draws", draws), checked_seed(seed)
        seeds = [derived_seed(seed, f"{self.along} {size:g}") for size in self.sizes]
        return [
            Run(net, self.quantity.measure(net, seed, setting), draws, own)
            for net, setting, own in zip(self.nets, self.settings, seeds, strict=True)
        ]

    def answered(self, draw: DrawRuns, draws: int, seed: int) -> xr.Dataset:
        """The dataset of `depth_law`; ``draw`` makes the draws, and raises OverflowError where floats end."""
        runs, setting = self.runs(draws, seed), self.settings[0]
        batch_size = getattr(runs[0].measure, "batch_size", None)
        measured, overflowed = _measured(draw, runs, self.sizes, self.quantity.name, setting.statistic)
        dataset = self._drawn(measured)
        dataset.attrs |= {
            "quantity": self.quantity.name,
            "quantity_in_words": self.quantity.words,
            "power_of_mean": self.quantity.power,
            "along": self.along,
            "architecture": json.dumps(_described(self.nets, self.along)),
            "statistic": setting.statistic,
            "optimizer": setting.step.name,
            "epsilon": setting.epsilon,
            "batch_size": nan if batch_size is None else batch_size,
            "loss": setting.loss,
            "draws": draws,
            "seed": str(seed),
            "overflowed": overflowed,
            "provenance": provenance(draws=draws, seed=str(seed)),
        }
        unasked = self.without_theory
        predictions = [] if unasked else [self.quantity.theory(run.net, run.measure) for run in runs]
        _add_theory(dataset, self.quantity, predictions, unasked)
        _add_slopes(dataset)
        dataset.attrs |= self._limit() | _finite_width(dataset, self.quantity.drawn(setting))
        return _judged(dataset)

    def _drawn(self, measured: Sequence[xr.Dataset | None]) -> xr.Dataset:
        """What was measured at every size, NaN where nothing was, and the laws that are claimed."""
        variables: dict[str, Any] = {}
        setting = self.settings[0]
        for name in self.quantity.drawn(setting):
            said = {field: getattr(QUANTITIES[name], field) for field in ("symbol", "definition", "source")}
            numbers = [
                (nan, nan, nan) if each is None else statistic_of(each, name, setting.statistic) for each in measured
            ]
            for values, (end, words) in zip(zip(*numbers, strict=True), ENDS.items(), strict=True):
                long_name = QUANTITIES[name].long_name
                attrs = {"long_name": f"{long_name}: {words}"} if end else {"long_name": long_name, **said}
                variables[f"{name}{end}"] = ("size", list(values), attrs | {"units": "1"})
        for side, law in (("claim", self.claim), ("rival", self.rival)):
            if law is not None:
                told = {"long_name": f"the {side}, up to a factor", "law": law.words, "is_power": int(law.is_power)}
                variables[f"{side}_law"] = ("size", np.array(law.values), told)
        along = {"long_name": f"{self.along} of the nets" if self.along != "size" else "size that makes the nets"}
        return xr.Dataset(variables, {"size": ("size", list(self.sizes), along)})

    def _limit(self) -> dict[str, Any]:
        """What the exponent tends to where the size is the depth."""
        exponent, why = nan, "it is where the size is the depth, and nothing else changes with it"
        if unserved := self.settings[0].without_theory:
            why = unserved
        elif self.along == "depth":
            exponent, why = self.quantity.limit(self.nets[-1], [int(size) for size in self.sizes], self.settings[0])
        return {"limit_exponent": exponent, "limit_missing": why}

    @property
    def without_theory(self) -> str:
        """Why nothing is predicted; empty if something may be."""
        if self.theory is False:
            return "it was not asked for"
        if why := self.settings[0].without_theory:
            return why
        minutes = sum(prediction_seconds(net, self.settings[0].inputs) for net in self.nets) / 60
        if self.theory is None and minutes > MOST_MINUTES:
            return (
                f"predicting these nets takes about {minutes:.0f} minutes, and more than {MOST_MINUTES} are not begun "
                "unasked: ask for theory to have it"
            )
        return ""


def _settings(shared: DrawSetting, data: Any, sizes: Sequence[Size]) -> tuple[DrawSetting, ...]:
    """Under what the nets of every size are drawn: on their own data, where these are a function of the size."""
    shared = replace(shared, epsilon=not_negative("epsilon", shared.epsilon))
    if data is None:
        if shared.batch_size is not None:
            raise ValueError(f"batch_size is {shared.batch_size}, and no data are given, of which a batch is part")
        return (shared,) * len(sizes)
    if shared.inputs is not None:
        raise ValueError("inputs are given, and data, which have inputs of their own; leave one of them out")
    if not callable(data):
        return (replace(shared, data=checked_pair(data)),) * len(sizes)
    return tuple(replace(shared, data=checked_pair(_called("data", data, size))) for size in sizes)


def _checked_sizes(sizes: Iterable[Size]) -> tuple[Size, ...]:
    """Three or more positive numbers, in order, each once."""
    if not isinstance(sizes, Iterable) or isinstance(sizes, str | Mapping):
        raise TypeError(f"sizes is {sizes!r}; give three or more positive numbers, such as [4, 8, 16, 32]")
    given = list(sizes)
    for size in given:
        if require_finite("an entry of sizes", size, "a positive number, as laws are in its logarithm") <= 0:
            raise ValueError(f"an entry of sizes is {size}; give positive numbers, as laws are in their logarithm")
    checked = tuple(sorted({int(size) if isinstance(size, Integral) else float(size) for size in given}))
    if len(checked) < FEWEST_SIZES:
        raise ValueError(
            f"sizes are {list(checked)}; give three different ones or more: two have a slope, and nothing to say "
            "whether it is that of a power law"
        )
    return checked


def _nets(make: Callable[[Any], Net], sizes: Sequence[Size]) -> tuple[Any, ...]:
    """A net for every size, all of one family; of a chain with the units of a family, that family's net."""
    if not callable(make):
        raise TypeError(f"make is {make!r}; give a function of a size that returns a net")
    nets = []
    for size in sizes:
        net = _called("make", make, size)
        if not isinstance(net, Net):
            raise TypeError(
                f"make returns {type(net).__name__} at size {size}; give a function that returns a net, such as "
                "meanfield.MLP(depth=size, width=512)"
            )
        nets.append(as_family(net))
    families = {type(net).__name__: size for net, size in zip(reversed(nets), reversed(sizes), strict=True)}
    if len(families) > 1:
        shown = ", ".join(f"{name} at size {size}" for name, size in sorted(families.items(), key=lambda each: each[1]))
        raise ValueError(f"make returns nets of different families, {shown}; a law is that of one family")
    return tuple(nets)


def _called(name: str, function: Callable[[Any], Any], size: Size) -> Any:
    """What a user's function makes of a size; ValueError, with what it raises, where it does."""
    try:
        return function(size)
    except (Exception, SystemExit) as error:  # whatever a user's code raises, sys.exit too
        raise ValueError(f"{name} raises {type(error).__name__} at size {size}: {error}") from error


def _along(nets: Sequence[Any], sizes: Sequence[Size]) -> str:
    """The one field in which the nets differ, if it holds their sizes; else "size"."""
    if not all(map(is_dataclass, nets)):
        return "size"
    differing = [
        field.name
        for field in fields(nets[0])
        if any(getattr(net, field.name) != getattr(nets[0], field.name) for net in nets[1:])
    ]
    if len(differing) == 1 and all(getattr(net, differing[0]) == size for net, size in zip(nets, sizes, strict=True)):
        return differing[0]
    return "size"


def _shown_law(side: str, law: Any, sizes: Sequence[Size], along: str) -> ShownLaw:
    """A law at these sizes, over its value at the first one."""
    if callable(law):
        words, logs = getattr(law, "__name__", "a law of one's own"), []
        for size in sizes:
            value = _called(side, law, size)
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"{side} returns {value!r} at size {size}; a law returns a positive number")
            logs.append(np.log(_positive(side, value, size)))
        values = np.exp(np.array(logs) - logs[0])
    else:
        power = require_finite(side, law, "a finite exponent, or a function of the size")
        with np.errstate(over="ignore", under="ignore"):  # seen below
            words, values = f"{along}^{power:g}", (np.array(sizes, dtype=float) / sizes[0]) ** power
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{side} goes from 1 to {values[-1]:g} over the sizes, which no float holds")
    return ShownLaw(words, tuple(values.tolist()), not callable(law))


def _positive(side: str, value: Any, size: Size) -> float:
    """What a law returns, as a float that is positive and finite; whole numbers may be larger than any."""
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(
            f"{side} returns a number beyond {sys.float_info.max:.2g} at size {size}, which no float "
            "holds; a law returns a positive finite number, up to a factor: divide it by what it is at one size"
        ) from None
    if not (isfinite(number) and number > 0):
        raise ValueError(f"{side} returns {number:g} at size {size}; a law returns a positive finite number")
    return number


def _require_rival(claim: ShownLaw | None, rival: ShownLaw) -> None:
    if claim is None:
        raise ValueError("a rival is given and no claim; a rival is what would be true if the claim were false")
    if np.allclose(np.log(claim.values), np.log(rival.values), rtol=0, atol=1e-9):
        raise ValueError(
            f"claim {claim.words} and rival {rival.words} say the same at these sizes; give a rival that would be true "
            "if the claim were false"
        )


def _measured(
    draw: DrawRuns, runs: Sequence[Run], sizes: Sequence[Size], name: str, statistic: str
) -> tuple[list[xr.Dataset | None], str]:
    """What is drawn at every size, None where it or its error is not finite, and in words where that is."""
    measured: list[xr.Dataset | None] = []
    try:
        measured += draw(runs)
    except OverflowError:  # at some size: one by one, to see where
        measured = [_drawn_alone(draw, run) for run in runs]
    for place, each in enumerate(measured):
        if each is not None:
            value, error, _ = statistic_of(each, name, statistic)
            measured[place] = each if isfinite(value) and 0 < error < np.inf else None
    lost = [size for size, each in zip(sizes, measured, strict=True) if each is None]
    if len(sizes) - len(lost) < FEWEST_SIZES:
        raise OverflowError(
            f"draws at sizes {', '.join(map(str, lost))} leave the range of floats or have nets that do not "
            "move, and fewer than three sizes are left: give smaller sizes, or scale the branches"
        )
    return measured, ", ".join(map(str, lost))


def _drawn_alone(draw: DrawRuns, run: Run) -> xr.Dataset | None:
    try:
        return draw([run])[0]
    except OverflowError:
        return None


def _add_theory(dataset: xr.Dataset, quantity: LawQuantity, predictions: Sequence[Theory], unasked: str) -> None:
    """NAME_exact and NAME_mean_field where there are any, and in attributes which stands beside the draws."""
    known = list(dict.fromkeys(key for theory in predictions for key in theory.numbers))
    for name, level in known:
        values = [theory.numbers.get((name, level), nan) for theory in predictions]
        long_name = f"{QUANTITIES[name].long_name}, {level.replace('_', ' ')}"
        dataset[f"{name}_{level}"] = ("size", values, {"long_name": long_name, "units": "1"})
    own = [level for name, level in known if name == quantity.name]
    reasons = dict.fromkeys(theory.missing[quantity.name] for theory in predictions if quantity.name in theory.missing)
    premises = dict.fromkeys(premise for theory in predictions for premise in theory.premises)
    dataset.attrs |= {
        "theory": own[0] if own else "",
        "theory_missing": "" if own else unasked or "; ".join(reasons),
        "premises": "; ".join(premises),
    }


def _add_slopes(dataset: xr.Dataset) -> None:
    """The fit over all sizes, slopes from each size to the next, and the same of theory."""
    drawn = drawn_series(dataset)
    sizes, law = drawn.value["size"].values, drawn.law("size")
    slopes = drawn.local_slopes("size")
    attrs = {"units": "1", "long_name": "local slope, from the size before"}
    _put(dataset, "local_slope", sizes[1:], slopes.slope, attrs)
    said = attrs | {"long_name": "local slope, from the size before: standard error over draws"}
    _put(dataset, "local_slope_stderr", sizes[1:], slopes.stderr, said)
    dataset.attrs |= {
        "exponent": law.exponent,
        "exponent_stderr": law.stderr,
        "prefactor": law.prefactor,
        "chi_square": law.chi_square,
        "p_value": law.p_value,
        "drift": slopes.drift,
        "drift_stderr": slopes.drift_stderr,
        "drift_p_value": slopes.drift_p_value,
        "theory_exponent": nan,
    }
    if not (level := dataset.attrs["theory"]):
        return
    predicted = dataset[f"{dataset.attrs['quantity']}_{level}"].sel(size=sizes).values
    if np.all(np.isfinite(predicted) & (predicted > 0)):
        dataset.attrs["theory_exponent"] = drawn.slope_of("size", np.log(predicted))
        said = attrs | {"long_name": "local slope, from the size before, in theory"}
        _put(dataset, "local_slope_theory", sizes[1:], local_slopes(sizes, predicted).slope, said)


def _put(dataset: xr.Dataset, name: str, sizes: Array, values: Array, attrs: Mapping[str, str]) -> None:
    """A variable that is NaN at other sizes."""
    at = xr.DataArray(values, {"size": sizes}, "size").reindex(size=dataset["size"].values)
    dataset[name] = ("size", at.values, dict(attrs))


def _finite_width(dataset: xr.Dataset, names: Sequence[str]) -> dict[str, Any]:
    """By how much finite width moves the exponent: of the quantity, or of one beside it whose theory is there."""
    for name in names:
        if f"{name}_{MEAN_FIELD}" not in dataset:
            continue
        drawn = drawn_series(dataset, name)
        levels = {
            level: np.log(dataset[f"{name}_{level}"].sel(size=drawn.value["size"]).values)
            for level in (EXACT, MEAN_FIELD)
            if f"{name}_{level}" in dataset
        }
        if not all(np.isfinite(logs).all() for logs in levels.values()):
            continue
        exponents = {level: drawn.slope_of("size", logs) for level, logs in levels.items()}
        law, words = drawn.law("size"), LAW_QUANTITIES[name].words
        told = {"finite_width_of": f"{words}: drawn less mean field", "finite_width_stderr": law.stderr}
        moved = law.exponent - exponents[MEAN_FIELD]
        if EXACT in exponents:
            told = {"finite_width_of": f"{words}: exact less mean field", "finite_width_stderr": 0.0}
            moved = exponents[EXACT] - exponents[MEAN_FIELD]
        return {"finite_width": moved, **told, "finite_width_missing": ""}
    why = "no theory at infinite width stands beside the draws"
    return {"finite_width": nan, "finite_width_stderr": nan, "finite_width_of": "", "finite_width_missing": why}


def _judged(dataset: xr.Dataset) -> xr.Dataset:
    """With the verdicts, and the numbers behind them."""
    *claims, power_law = law_findings(dataset)
    dataset.attrs |= {"power_law_verdict": str(power_law.verdict), "power_law_evidence": power_law.evidence}
    for finding in claims:
        dataset.attrs |= {
            "claim": dataset["claim_law"].attrs["law"],
            "rival": finding.rival,
            "verdict": str(finding.verdict),
            "verdict_of_rival": str(finding.verdict_of_rival),
            "evidence": finding.evidence,
            "power": power_in_words(finding.power),
            "draws_needed": nan if finding.needed is None else finding.needed,
        }
    return dataset


def _described(nets: Sequence[Net], along: str) -> dict[str, Any]:
    """The spec of the nets, without the field that their size is: what is equal in all, and of what is not its range.

    Of a chain how many units there are, and not each of them.
    """
    specs = [net.describe() for net in nets]
    if "units" in specs[0]:
        specs = [_of_chain(spec) for spec in specs]
    return {name: _in_all([spec[name] for spec in specs]) for name in specs[0] if name != along}


def _of_chain(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Its plain fields, None of those that say nothing in a line, and the number of its units."""
    plain = {name: None if isinstance(value, dict) or value == () else value for name, value in spec.items()}
    return plain | {"units": len(spec["units"])}


def _in_all(values: Sequence[Any]) -> Any:
    """The value of a field in nets of all sizes; where it is not one, its first and last, or that it changes."""
    if all(value == values[0] for value in values):
        return values[0]
    numbers = all(isinstance(value, Real) and not isinstance(value, bool) for value in values)
    if not numbers or list(values) not in (sorted(values), sorted(values, reverse=True)):
        return "goes with the size"
    return " .. ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in (values[0], values[-1]))
