"""`transfer_learning_rate`: one number, and `explain_transfer`: the same with its premises, error and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log
from sys import float_info

from meanfield.common.validation import PremiseWarning, require_choice, require_positive
from meanfield.transfer.premises import depth_over_width, premises, unmet_premises
from meanfield.transfer.rules import RULES, TYPICAL, Net, family, require_net

AUTO = "auto"

# Where two rules part by more than this, the better founded one is taken.
PARTING = 0.1
# Below this depth over width no net is far from the mean, so none is drawn: ln S spreads by about 5 L/n among nets.
SHALLOW = 0.02


@dataclass(frozen=True)
class Transfer:
    """A carried learning rate and all that should be known of it.

    Attributes:
        rate: for the net at the end, by ``rule``.
        rule: the rule that was asked for or chosen.
        reason: why it was chosen.
        rates: the rates by all rules that serve the two nets.
        refusals: why the other rules do not.
        interval: rates by the quantiles 0.1 and 0.9 of nets at the end, where nets were drawn.
        error: relative standard error of the rate, of the draws that it rests on.
        premises: what the rates take for granted.
        warnings: where the nets at hand do not grant it.
    """

    rate: float
    rule: str
    reason: str
    rates: Mapping[str, float]
    refusals: Mapping[str, str]
    interval: tuple[float, float] | None
    error: float
    premises: tuple[str, ...]
    warnings: tuple[str, ...]


def transfer_learning_rate(rate: float, architecture_from: Net, architecture_to: Net, *, rule: str = AUTO) -> float:
    """The learning rate for one net from the rate that was tuned on another: rate times eta*(to) / eta*(from).

    Dimensionless, and a statement about one step of plain SGD at initialisation; `explain_transfer` has its premises,
    its error and the rates by the other rules. Where the nets break a premise, or are so deep that drawn nets spread, a
    `PremiseWarning` says so.

    Args:
        rate: learning rate of plain SGD, tuned on ``architecture_from``; of loops, that of updates by signs (P2).
        architecture_from, architecture_to: the two nets, of one family.
        rule:
            "finite_depth": by the mean-field scale of the label term at each net's own depth, at infinite width; for
            ReLU nets of one site sqrt((L0 + 1)(L0^2 + L0 + 1) / ((L + 1)(L^2 + L + 1))) (docs/theory.md section 6).
            "power_law": (L / L0)^x, the family's own asymptote: x = -3/2 for plain nets under the fan-in rule, the
            papers' rule (P0 section 5), K^(k-2) and its kin for residual nets, L^(alpha-1) for tied loops.
            "exact": by the exact mean of the whole update at finite width, for fully-connected nets with one input.
            "typical": by the median of eta* over drawn nets, for the same nets at any width: where depth is of the
            order of the width, rare nets make the mean, and half of all nets would take a far larger rate.
            "auto": "finite_depth", unless a better founded rule parts from it by more than 10 %: "typical" where drawn
            nets part from their mean, "exact" where the output term or the width moves the mean.

    Returns:
        The rate for ``architecture_to``.

    Raises:
        TypeError, ValueError: a rate that is not a positive number, an unknown rule, nets of two families or that the
            rule does not serve, a carried rate outside the range of a float.

    Source: P0 eq. 9, section 5; P2 eqs. 3, 4; docs/theory.md section 15.
    """
    found = explain_transfer(rate, architecture_from, architecture_to, rule=rule)
    spread = []
    if found.interval is not None:
        low, high = found.interval
        spread = [f"rule {found.rule!r}: {found.reason}; four in five nets would take between {low:.3g} and {high:.3g}"]
    for sentence in (*found.warnings, *spread):
        warnings.warn(sentence, PremiseWarning, stacklevel=2)
    return found.rate


def explain_transfer(rate: float, architecture_from: Net, architecture_to: Net, *, rule: str = AUTO) -> Transfer:
    """A carried learning rate with its premises, its error, warnings, and what the other rules say.

    Args, raises and source as `transfer_learning_rate`. Under "auto" rates by all rules that serve the nets are given;
    under a rule of one's own, that one alone. Nets of more than 1/50 as many layers as units are drawn for the typical
    one, in seconds.

    Returns:
        A `Transfer`.
    """
    start, end = architecture_from, architecture_to
    rate = require_positive("rate", rate, why="it is a learning rate")
    require_choice("rule", rule, (AUTO, *RULES))
    for net in (start, end):
        require_net(net)
    if family(start) != family(end):
        raise ValueError(
            f"the nets are of two families, {family(start)} and {family(end)}; a learning rate carries over within one"
        )
    refusals = {name: why for name, found in RULES.items() if (why := found.refusal(start, end))}
    logs = {name: RULES[name].log_ratio(start, end) for name in _wanted(rule, start, end, refusals)}
    chosen, reason = _chosen(logs, start, end) if rule == AUTO else (rule, "asked for")
    rates = {name: _times(rate, change, name) for name, change in logs.items()}
    interval, error = None, 0.0
    if "typical" in logs:
        low, high = TYPICAL.log_interval(start, end)
        interval = _times(rate, low, "typical"), _times(rate, high, "typical")
    if chosen == "typical":
        error = TYPICAL.log_error(start, end)
    found = unmet_premises(chosen, start, end)
    return Transfer(rates[chosen], chosen, reason, rates, refusals, interval, error, premises(end), found)


def _wanted(rule: str, start: Net, end: Net, refusals: Mapping[str, str]) -> list[str]:
    """The rules to follow: the one asked for, or all that serve, drawing nets where some are far from their mean."""
    if rule != AUTO:
        if rule in refusals:
            raise ValueError(f"rule {rule!r} does not serve these nets: {refusals[rule]}")
        return [rule]
    serving = [name for name in RULES if name not in refusals]
    if not set(serving) - {"power_law"}:
        others = f"; rule 'power_law' does: {RULES['power_law'].title}" if serving else ""
        raise ValueError(f"no rule knows these nets at their own depth: {refusals['finite_depth']}{others}")
    deep = max(depth_over_width(net) for net in (start, end)) > SHALLOW
    return [name for name in serving if name != "typical" or deep]


def _chosen(logs: Mapping[str, float], start: Net, end: Net) -> tuple[str, str]:
    """The rule that "auto" takes, and why."""
    mean = "exact" if "exact" in logs else "finite_depth"
    if "typical" in logs and abs(gap := logs["typical"] - logs[mean]) > PARTING:
        share = max(depth_over_width(net) for net in (start, end))
        what = "rare nets make the mean" if mean == "exact" else "drawn nets part from the mean field of the label term"
        return "typical", (
            f"at depth over width {share:.2g} {what}: its rate is {exp(-gap):.2g} times that of the median net, which "
            "half of all nets exceed"
        )
    if "finite_depth" not in logs:
        return mean, "the nets differ in more than their sizes, and it alone follows the whole update"
    if abs(gap := logs[mean] - logs["finite_depth"]) > PARTING:
        return mean, f"the output term and the finite width change the rate by a factor of {exp(gap):.2g}"
    return "finite_depth", "no better founded rule parts from it by more than 10 %"


def _times(rate: float, log_ratio: float, rule: str) -> float:
    """rate x exp(log_ratio), or ValueError where that is no normal float."""
    carried = log(rate) + log_ratio
    if not all(log(float_info.min) <= one <= log(float_info.max) for one in (log_ratio, carried)):
        raise ValueError(
            f"rule {rule!r} carries the rate to 10^{carried / log(10):.1f}, outside what a float holds; lower the depth"
        )
    return rate * exp(log_ratio)
