"""The rule of one step of the optimizer that trains: a rate goes by one of the four scales of its first step."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from math import hypot, log
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from meanfield.common.validation import PremiseWarning, require_choice
from meanfield.execution.training import step_scales
from meanfield.nets.net import Net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.step_scales import median_scale
from meanfield.theory.prediction import predict
from meanfield.transfer.rules import SAME_TRAINING, STEM_PREMISE, CarriedNet, Rule
from meanfield.transfer.starting import (
    NOTABLE,
    against_width,
    at_width,
    beyond_widths,
    departures,
    descends,
    differ_in_kind,
    differ_in_width,
    goes_by_relative,
    is_batch_normalised,
    kind_of_net,
    trains,
    trial_name,
    untried,
    widens,
    width_of,
)
from meanfield.transfer.trials import (
    OF_BATCH_NORM,
    SCALES,
    STAYS,
)

# What the step moves by 1, in mean squares, at the scale of each name.
MOVED = {
    "absolute": "all layers",
    "relative": "all layers relative to themselves",
    "last": "the last layer relative to itself",
    "outputs": "the outputs",
}
# What draws take beside net, data and optimizer.
OF_DRAWS = tuple(name for name in signature(step_scales).parameters if name not in ("net", "data", "optimizer"))
LOSS = signature(step_scales).parameters["loss"].default
OF_REST = "the step from rest at initialisation: momentum and weight decay have no part in it"
OF_LATER = (
    "a step at initialisation in which the layers of AdamW move as far as they do once gradients are noise, without "
    "weight decay"
)


def whose_step(name: str) -> str:
    """What premises call the step of this name."""
    return "its first step" if trains(name) == name else "this step"


class Scale(NamedTuple):
    """ln of the scale of one net, its standard error, and the premises of the theory that the net breaks."""

    log: float
    error: float = 0.0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class OneStep(Rule):
    """The rate goes by a scale of the first step of an optimizer, by theory or as medians of draws on data.

    Args:
        optimizer: a name or one of `meanfield.optimizers`, as for `step_scales`.
        of: what the step moves: one of `SCALES`.
        data: inputs and targets, as for `step_scales`; None predicts, at level "mean_field".
        drawn: options of `step_scales` beside.
        at_one_width: whether the rate stays over the width: the second net counts as if it had that of the first.

    Raises:
        TypeError, ValueError: an unknown optimizer, change or option; options of draws without data.
    """

    optimizer: str | Optimizer | Hybrid = "sgd"
    of: str = "absolute"
    data: tuple[ArrayLike, ArrayLike] | None = None
    drawn: Mapping[str, Any] = field(default_factory=dict)
    at_one_width: bool = False

    name = "one_step"
    nets = Net

    def __post_init__(self) -> None:
        require_choice("of", self.of, SCALES)
        if unknown := [name for name in self.drawn if name not in OF_DRAWS]:
            raise TypeError(f"{unknown[0]!r} is no option here; those of draws on data are {', '.join(OF_DRAWS)}")
        if self.drawn and self.data is None:
            names, is_are = ", ".join(self.drawn), "is" if len(self.drawn) == 1 else "are"
            raise ValueError(
                f"{names} {is_are} for draws on data, and no data are given: give data=(inputs, targets), or leave "
                f"{names} out"
            )

    @property
    def is_default(self) -> bool:
        """Whether it is one step of descent in all layers without data, which the rules of `RULES` answer."""
        return self.data is None and self.of == "absolute" and self.step.is_descent

    @property
    def step(self) -> FirstStep:
        """The step of all weights."""
        return FirstStep(self.optimizer)

    @property
    def title(self) -> str:  # type: ignore[override]
        how = "mean field" if self.data is None else "median of draws on data"
        first = "step" if trains(self.step.name) != self.step.name else "first step"
        return f"{first} of {self.step.name}, {self.of}: {how}"

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        name = trains(self.step.name)
        of_hybrids = "the weights of both optimizers take one rate" if isinstance(self.step.method, Hybrid) else ""
        if self.data is None:
            setting = "squared loss and white labels; inputs and weights as the specs say; leading order in 1/channels"
        else:
            size, loss = self.drawn.get("batch_size"), self.drawn.get("loss", LOSS)
            batches = "all samples" if size is None else f"batches of {size} samples"
            setting = f"initial weights as the specs say, {batches} of the given data, {loss} loss; the median net"
        return (
            f"tuned rates of {name} keep their ratio to the rate at which {whose_step(self.step.name)} moves "
            f"{MOVED[self.of]} by 1",
            OF_LATER if name != self.step.name else OF_REST,
            setting,
            SAME_TRAINING,
            *([STAYS] if self.at_one_width else []),
            *filter(None, [of_hybrids, untried(trial_name(self.optimizer))]),
        )

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        return ""  # what does not serve says so where its scale is taken

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        return self.of_net(self._compared(start, end)).log - self.of_net(start).log

    def log_error(self, start: CarriedNet, end: CarriedNet) -> float:
        compared = self._compared(start, end)
        return 0.0 if compared == start else hypot(self.of_net(start).error, self.of_net(compared).error)

    def _compared(self, start: CarriedNet, end: CarriedNet) -> CarriedNet:
        """The second net, as it counts beside the first."""
        if not self.at_one_width:
            return end
        counted: Any = at_width(end, width_of(start))
        if counted is None:
            raise ValueError("the second net takes other inputs at the width of the first: give nets with a stem")
        return counted

    def against(self, start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
        sentences = [*self.of_net(start).warnings, *self.of_net(self._compared(start, end)).warnings]
        if len(start.units) != len(end.units):
            name = trial_name(self.optimizer)
            sentences += [*departures(start, name), *departures(end, name)]
            sentences += [OF_BATCH_NORM] if is_batch_normalised(end) else []
            rise = self.log_ratio(start, end) * (1 if len(start.units) < len(end.units) else -1)
            if start.units[0].skip == 0 and rise > log(NOTABLE):
                sentences.append(f"the rate rises with depth: {STEM_PREMISE}")
        sentences += filter(None, [self._against_width(start, end), differ_in_kind(start, end)])
        return tuple(dict.fromkeys(sentences))

    def _against_width(self, start: CarriedNet, end: CarriedNet) -> str:
        """What trials say against this rate over the width; empty where the widths are one."""
        if not differ_in_width(start, end):
            return ""
        name, kind, residual = trial_name(self.optimizer), kind_of_net(end), widens(start, end)
        if self.at_one_width or (residual and goes_by_relative(self.of, name)):
            widths = (width for net in (start, end) for width in width_of(net).values())
            return beyond_widths(name, kind, widths, branch=getattr(end, "block_depth", 1))
        return against_width(self.of, "sgd" if descends(self.optimizer) else name, kind, residual=residual)

    def of_net(self, net: CarriedNet) -> Scale:
        """The scale of one net, which is found once."""
        if net not in self._known:
            self._known[net] = self._predicted(net) if self.data is None else self._drawn(net)
        return self._known[net]

    @cached_property
    def _known(self) -> dict[CarriedNet, Scale]:
        return {}

    def _drawn(self, net: CarriedNet) -> Scale:
        assert self.data is not None
        scales = step_scales(net, self.data, optimizer=self.optimizer, **self.drawn)
        median, error = median_scale(scales, SCALES[self.of])
        return Scale(log(median), error)

    def _predicted(self, net: CarriedNet) -> Scale:
        served = "give data=(inputs, targets), on which it is drawn for any net that trains"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PremiseWarning)
            try:
                predicted: Any = predict(net, level="mean_field", optimizer=self.optimizer, scales=True)
            except (TypeError, ValueError) as why:
                raise ValueError(f"no theory has this step of {self.step.name}: {why}; {served}") from why
        if (wanted := f"log_{SCALES[self.of]}") not in predicted:
            left_out = predicted.attrs.get("left_out", f"level 'mean_field' answers none for {self.step.name}")
            raise ValueError(
                f"no theory has the scale of {self.of!r} for this {type(net).__name__}: {left_out}; {served}"
            )
        return Scale(float(predicted[wanted]), warnings=tuple(str(each.message) for each in caught))
