"""`transfer_learning_rate` gives one number, `explain_transfer` the same with its premises, error and warnings.

Between some pairs of nets one step names no rate that trains well: "auto" refuses them, and says what holds. Where a
rate rises with depth, layers below the blocks would stop the rise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, isnan, log
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.machine import says_how_long
from meanfield.common.validation import OutsideFloats, PremiseWarning, require_choice, require_positive, takes
from meanfield.nets.dense import DenseNet
from meanfield.nets.layered import Sequential
from meanfield.nets.listed import ListedLayers, listed_layers
from meanfield.nets.loop import TiedLoop
from meanfield.nets.net import Net, Unit
from meanfield.nets.recognised import as_family
from meanfield.nets.residual import ResidualConvNet
from meanfield.nets.transformer import TokenStream
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.theory.laws import ROUNDING
from meanfield.theory.learning_rate import learning_rate_exponent, log_scale
from meanfield.theory.mean_field.whole_update import LARGEST_LOG, thin_input_warning
from meanfield.theory.transformers.terms import many_outputs_warning
from meanfield.transfer.one_step import OneStep
from meanfield.transfer.rules import (
    RIVALS,
    RULES,
    SAME_TRAINING,
    STEM_PREMISE,
    TYPICAL,
    CarriedNet,
    Rule,
    family,
    log_channel_correction,
    log_output_correction,
    refusal_of_outputs,
    require_carried,
)
from meanfield.transfer.starting import (
    NOTABLE,
    change_that_carries,
    departures,
    differ_in_kind,
    differ_in_width,
    is_convolutional,
    is_plain,
    kind_of_net,
    rate_stays,
    require_tried,
    step_that_names,
    trial_name,
    widens,
)
from meanfield.transfer.trials import (
    PLAIN_CONVOLUTIONAL_TRAINED,
    POST_NORM_TRAINED,
    PRE_NORM_TRAINED,
    RESIDUAL_CONVOLUTIONAL_TRAINED,
    UNTRIED_WIDTHS,
    WITHOUT_DATA_OVER_WIDTHS,
)

AUTO = "auto"
AT_TWO_DEPTHS = "tune at two depths and take meanfield.transfer.GivenPower.through"

# Where the logarithms of two rules' rates differ by more than this, the better founded rule is taken.
PARTING = 0.1
# Below this depth over width no net is far from the mean, so none is drawn: ln S varies by about 5 L/n among nets.
SHALLOW = 0.02


@dataclass(frozen=True)
class Transfer:
    """A carried learning rate and all that should be known of it.

    Attributes:
        rate: for the net at the end, by ``rule``.
        rule: the rule that was asked for or chosen.
        reason: why it was chosen.
        rates: the rates by all rules that serve the two nets.
        refusals: why the other rules do not serve them.
        interval: rates by the quantiles 0.1 and 0.9 of nets at the end, where nets were drawn; infinite where so many
            nets have died that no rate moves them.
        error: relative standard error of the rate, from the draws that it rests on.
        premises: what the rates assume.
        warnings: the premises that these nets break.
        optimizer, of: whose first step it is, and what that moves.

    Examples:
        >>> import meanfield as mf
        >>> small, large = mf.MLP(depth=4, width=512), mf.MLP(depth=16, width=512)
        >>> carried = mf.explain_transfer(0.1, small, large, rule="power_law")
        >>> round(carried.rate, 4)
        0.0125
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
    optimizer: str
    of: str


def transfer_learning_rate(
    rate: float,
    architecture_from: CarriedNet,
    architecture_to: CarriedNet,
    *,
    rule: str | Rule = AUTO,
    optimizer: str | Optimizer | Hybrid = "sgd",
    of: str | None = None,
    data: tuple[ArrayLike, ArrayLike] | None = None,
    **options: Any,
) -> float:
    """The learning rate for one net from the rate that was tuned on another: rate times eta*(to) / eta*(from).

    Dimensionless, and a statement about one step at initialisation, of plain SGD or of the ``optimizer`` that is named;
    `explain_transfer` has its premises, its error and the rates by the other rules. A `PremiseWarning` says where the
    nets break a premise, or are so deep that drawn nets differ widely.

    Args:
        rate: learning rate tuned on ``architecture_from``, of plain SGD (of loops: of updates by signs), or of the
            ``optimizer``.
        architecture_from, architecture_to: the two nets, of one family, or chains of the units of such nets; chains of
            layers that differ (`predict`), by rule "finite_depth"; any nets under a rule that reads no units,
            `meanfield.transfer.StableRate`.
        rule:
            "finite_depth": by the mean-field scale of the label term at each net's own depth, at infinite width; for
            ReLU nets of one site sqrt((L0 + 1)(L0^2 + L0 + 1) / ((L + 1)(L^2 + L + 1))) (docs/theory.md section 6).
            "power_law": (L / L0)^x, the family's own asymptote: x = -3/2 for plain nets under the fan-in rule (the
            rule of Zhang et al. 2026, section 5), K^(k-2) and its kin for residual nets, L^(alpha-1) for tied loops.
            "whole_update": by the mean-field scale of label and output term together, for plain nets and `DenseNet` of
            ReLU or linear units; under a pooled readout on circular grids or without gates (docs/theory.md section 18).
            "exact": by the exact mean of the whole update at finite width, for fully-connected nets with one input.
            "typical": by the median of eta* over drawn nets, for the same nets at any width: where depth is of the
            order of the width, rare nets make the mean, and half of all nets would take a far larger rate.
            "auto": "finite_depth", unless a better founded rule differs from it by more than 10 %: "typical" where the
            median net differs from the mean, "exact" or, on grids, "whole_update" where the output term changes it. It
            takes no rule between nets of two batch sizes, or of pre-norm Transformers over depth, where training shows
            another slope than one step; a rule that is asked for answers, with a warning.
        optimizer: whose first step carries the rate, a name or one of `meanfield.optimizers`, as for `step_scales`.
        of: what that step moves by 1, in mean squares: "absolute" (all layers), "relative" (all layers relative to
            themselves), "last" (the last layer relative to itself) or "outputs". Left out, it is "absolute" without
            data, as the papers' laws have it, and on data what tuned rates of nets that learn were held to (claims E1):
            "outputs" in residual nets, "relative" in plain nets and in loops. It is "outputs" in residual nets with
            batch normalisation (E1c) and in Transformers (E1e), too, for which a warning says more; for "muon-adamw" it
            is then "last" of the step "muon-adamw-in-noise", as for `starting_rate`. To a `ResidualMLP` or
            `ResidualConvNet` of another width it is "relative" under AdamW and Lion, and under descent the rate stays
            over the width (E1j), and goes with the depth by the outputs at the width of the first net. Other residual
            nets were not tried over the width: carry them over the depth alone.
        data: inputs and targets on which first steps are drawn, with ``options`` of `step_scales`. Without data theory
            answers.

    Returns:
        The rate for ``architecture_to``.

    Raises:
        TypeError, ValueError: a rate that is not a positive number, an unknown rule, nets of two families, nets that
            the rule does not serve, a carried rate outside the range of a float (under "auto", by every rule); an
            unknown optimizer or change; a step that no theory has, where no data are given; a rule together with
            them; data that do not fit, or, without ``of``, an optimizer by which no trial has trained such nets.

    Source: Zhang et al. 2026, eq. 9, section 5; Wang et al. 2026, eqs. 3, 4; docs/theory.md section 15.

    Examples:
        >>> import meanfield as mf
        >>> small, large = mf.MLP(depth=4, width=2048), mf.MLP(depth=16, width=2048)
        >>> round(mf.transfer_learning_rate(0.1, small, large), 4)
        0.015
        >>> round(mf.transfer_learning_rate(0.001, small, small.replace(depth=7), optimizer="adamw"), 4)
        0.0005
    """
    step: dict[str, Any] = {"optimizer": optimizer, "of": of, "data": data, **options}
    carried = explain_transfer(rate, architecture_from, architecture_to, rule=rule, **step)
    sentences = list(carried.warnings)
    if carried.interval is not None:
        low, high = carried.interval
        span = f"four in five nets would take between {low:.3g} and {high:.3g}"
        sentences.append(f"rule {carried.rule!r}: {carried.reason}; {span}")
    for sentence in sentences:
        warnings.warn(sentence, PremiseWarning, stacklevel=2)
    return carried.rate


@says_how_long
def explain_transfer(
    rate: float,
    architecture_from: CarriedNet,
    architecture_to: CarriedNet,
    *,
    rule: str | Rule = AUTO,
    optimizer: str | Optimizer | Hybrid = "sgd",
    of: str | None = None,
    data: tuple[ArrayLike, ArrayLike] | None = None,
    **options: Any,
) -> Transfer:
    """A carried learning rate with its premises, its error, warnings, and what the other rules say.

    Args, raises and source as `transfer_learning_rate`. Under "auto" it gives the rates of all rules that serve the
    nets, otherwise that of the rule asked for. Where depth is above 1/50 of the width, nets are drawn to find the
    typical one, which takes seconds.

    Returns:
        A `Transfer`.

    Examples:
        >>> import meanfield as mf
        >>> small, large = mf.MLP(depth=4, width=512), mf.MLP(depth=16, width=512)
        >>> carried = mf.explain_transfer(0.1, small, large)
        >>> carried.rule
        'typical'
    """
    start: Any
    end: Any
    rate = require_positive("rate", rate, why="it is a learning rate")
    start, end = map(as_family, (architecture_from, architecture_to))
    if of is None and data is not None:
        optimizer = step_that_names(optimizer)
    at_one_width = of is None and data is not None and rate_stays(start, end, optimizer)
    of = _moved(of, start, end, optimizer, data)
    step = OneStep(optimizer=optimizer, of=of, data=data, drawn=options, at_one_width=at_one_width)
    rule = _known(rule, step)
    kinds = CarriedNet if isinstance(rule, str) else rule.nets
    if not (isinstance(start, kinds) and isinstance(end, kinds)):
        start, end = _as_layers(start, end)
    for net in (start, end):
        require_carried(net, kinds)
    if family(start) != family(end):
        raise ValueError(
            f"the nets are of two families, {family(start)} and {family(end)}; a learning rate carries over within one"
        )
    if isinstance(rule, str) and (why := other_question(start, end)):
        raise ValueError(f"rule 'auto' carries no rate here: {why}")
    rules = RULES if isinstance(rule, str) else RULES | {rule.name: rule}
    refusals = {name: why for name, candidate in rules.items() if (why := _refusal(candidate, start, end))}
    wanted = _wanted(rule, start, end, refusals)
    if isinstance(rule, str):
        logs = _held(rate, wanted, start, end, refusals)
        rule_used, reason = _chosen(logs, start, end, refusals if "typical" in wanted else {})
    else:
        logs = {rule.name: rule.log_ratio(start, end)}
        rule_used, reason = rule.name, rule.title if rule is step else "asked for"
    interval = _interval(rate, start, end) if "typical" in logs else None
    assumed = rules[rule_used].assumptions
    return Transfer(
        rate=_times(rate, logs[rule_used], rule_used),
        rule=rule_used,
        reason=reason,
        rates={name: _times(rate, change, name) for name, change in logs.items()},
        refusals=refusals,
        interval=interval,
        error=rules[rule_used].log_error(start, end),
        premises=premises(start, end) if assumed is None else at_both_ends(assumed, start, end),
        warnings=_warnings(rules[rule_used], start, end, logs[rule_used], "typical" in wanted),
        optimizer=step.step.name,
        of=of,
    )


def _moved(of: str | None, start: Any, end: Any, optimizer: Any, data: Any) -> str:
    """What the step moves: as it is asked for, or all layers where theory answers, and by the kind of nets on data."""
    if of is not None or data is None or not isinstance(end, Net):
        return "absolute" if of is None else of
    require_tried(trial_name(optimizer), kind_of_net(end))
    return change_that_carries(end, optimizer, widened=widens(start, end))


def _as_layers(start: Any, end: Any) -> tuple[Any, Any]:
    """Two nets of which one is no family's as their layers, if both are lists of layers; else as they are."""
    if not (isinstance(start, Net) and isinstance(end, Net)):
        return start, end
    listed = [listed_layers(net)[0] for net in (start, end)]
    return (listed[0], listed[1]) if all(listed) else (start, end)


def _refusal(rule: Rule, start: CarriedNet, end: CarriedNet) -> str:
    if not (isinstance(start, rule.nets) and isinstance(end, rule.nets)):
        return f"it serves nets of layers, Transformers and tied loops; this is a {family(start)}"
    return rule.refusal(start, end)


def _warnings(rule: Rule, start: CarriedNet, end: CarriedNet, log_change: float, drawn: bool) -> tuple[str, ...]:
    """The premises that break, by a rule of one step; of others what they say of nets of two batch sizes."""
    if rule.assumptions is not None:
        batches = (batch_warning(start, end),) if differ_in_batch(start, end) else ()
        return (*batches, *rule.against(start, end))
    dead = TYPICAL.death(start, end) if drawn else ""
    return (*broken_premises(rule.name, start, end, log_change), *[dead] * bool(dead))


def _held(
    rate: float, wanted: Sequence[str], start: CarriedNet, end: CarriedNet, refusals: dict[str, str]
) -> dict[str, float]:
    """ln of the factors of the rules that floats hold; why they do not hold the others goes into ``refusals``."""
    logs = {}
    for name in wanted:
        try:
            change = RULES[name].log_ratio(start, end)
            _times(rate, change, name)
            if name == "typical" and (dead := TYPICAL.death(start, end)):
                raise OutsideFloats(dead)
        except OutsideFloats as why:
            refusals[name] = str(why)
        else:
            logs[name] = change
    if not set(logs) - {"power_law"}:
        lost = next(refusals[name] for name in wanted if name in refusals)
        hint = f"; rule 'power_law' does: {RULES['power_law'].title}" if logs else ""
        raise OutsideFloats(f"no rule has a rate for these nets at their own depth: {lost}{hint}")
    return logs


def _interval(rate: float, start: CarriedNet, end: CarriedNet) -> tuple[float, float]:
    """Rates by the quantiles 0.1 and 0.9 of nets at the end; infinite where those have died."""
    logs = TYPICAL.log_interval(start, end)
    low, high = (inf if change == inf else _times(rate, change, "typical") for change in logs)
    return low, high


def _known(rule: str | Rule, step: OneStep) -> str | Rule:
    """The rule of this name, or "auto"; that of one step where more than descent without data is asked for."""
    if not isinstance(rule, Rule):
        require_choice("rule", rule, (AUTO, *RULES, *RIVALS))
        rule = rule if rule == AUTO else (RULES | RIVALS)[rule]
    if step.is_default:
        return rule
    if isinstance(rule, Rule):
        raise ValueError(
            f"rule {rule.name!r} is given beside optimizer, of or data, which ask for one step of {step.step.name}: "
            "leave out the rule, or all of these"
        )
    return step


def _wanted(rule: str | Rule, start: CarriedNet, end: CarriedNet, refusals: Mapping[str, str]) -> list[str]:
    """The rule that is asked for, or all that serve; "typical" only where some nets are far from the mean."""
    if isinstance(rule, Rule):
        if rule.name in refusals:
            raise ValueError(f"rule {rule.name!r} does not serve these nets: {refusals[rule.name]}")
        return [rule.name]
    serving = [name for name in RULES if name not in refusals]
    if not set(serving) - {"power_law"}:
        hint = f"; rule 'power_law' does: {RULES['power_law'].title}" if serving else ""
        raise ValueError(f"no rule knows these nets at their own depth: {refusals['finite_depth']}{hint}")
    deep = max(depth_over_width(net) for net in (start, end)) > SHALLOW
    return [name for name in serving if name != "typical" or deep]


def _chosen(logs: Mapping[str, float], start: CarriedNet, end: CarriedNet, lost: Mapping[str, str]) -> tuple[str, str]:
    """The rule that "auto" takes, and why.

    Args:
        logs: of the rules that have a rate.
        start, end: the nets.
        lost: why rules have none, where nets were drawn; without a typical net the mean over nets says nothing.
    """
    if "typical" in lost:
        rule, reason = _chosen({name: change for name, change in logs.items() if name != "exact"}, start, end, {})
        return rule, f"drawn nets give no rate ({lost['typical']}), so it is that of infinite width; {reason}"
    mean = next(name for name in ("exact", "whole_update", "finite_depth", *logs) if name in logs)
    if "typical" in logs and abs(gap := logs["typical"] - logs[mean]) > PARTING:
        share = max(depth_over_width(net) for net in (start, end))
        what = "rare nets make the mean" if mean == "exact" else "drawn nets differ from the mean field"
        return "typical", (
            f"at depth over width {share:.2g} {what}: its rate is {exp(-gap):.2g} times that of the median net, which "
            "half of all nets exceed"
        )
    if "finite_depth" not in logs:
        return mean, "the nets differ in more than their sizes, and it alone follows the whole update"
    if abs(gap := logs[mean] - logs["finite_depth"]) > PARTING:
        what = "output term and the finite width change" if mean == "exact" else "output term changes"
        return mean, f"the {what} the rate by a factor of {exp(gap):.2g}"
    compared = mean != "finite_depth" or "typical" in logs
    return "finite_depth", f"no better founded rule {'differs from it by more than 10 %' if compared else 'serves'}"


def _times(rate: float, log_ratio: float, rule: str) -> float:
    """rate x exp(log_ratio), or OutsideFloats where that is no normal float."""
    carried = log(rate) + log_ratio
    if not all(log(float_info.min) <= exponent <= log(float_info.max) for exponent in (log_ratio, carried)):
        raise OutsideFloats(
            f"rule {rule!r} carries the rate to 10^{carried / log(10):.1f}, outside what a float holds; lower the depth"
        )
    return rate * exp(log_ratio)


# What rates assume, and where two nets break it.


def other_question(start: CarriedNet, end: CarriedNet) -> str:
    """Why "auto" carries no rate between these nets, and what to do; empty where it does."""
    if differ_in_batch(start, end):
        return (
            f"{batch_warning(start, end)}; tune at the batch size of the net to be trained, or give rule="
            "'whole_update', which follows both where labels are white"
        )
    if is_plain_pre_norm(start, end):
        return (
            f"{PRE_NORM_TRAINED}: carried rates were 6 to 15 times too small in a trial (ViT of width 32, SGD and "
            "AdamW). Tune at two depths and take meanfield.transfer.GivenPower.through: 2 / lambda_max on the data "
            "misses tuned rates by 0.3 in the exponent, as well; rule='finite_depth' gives the rate of one step"
        )
    return ""


def question_warnings(rule: str, start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
    """What `other_question` refuses under "auto", as a warning of a rule that was asked for."""
    sentences = [differ_in_kind(start, end)] if differ_in_kind(start, end) else []
    if differ_in_batch(start, end):
        sentences.append(batch_warning(start, end))
    if rule != "power_law" and differ_in_width(start, end):
        untried = UNTRIED_WIDTHS.format(optimizer="AdamW" if isinstance(end, TiedLoop) else "descent")
        sentences.append(WITHOUT_DATA_OVER_WIDTHS if widens(start, end) else untried)
    if start.depth != end.depth and isinstance(end, TiedLoop | ResidualConvNet):
        # The rule of loops is of signs, which AdamW begins with.
        names = ("adamw", "sgd") if isinstance(end, TiedLoop) else ("sgd",)
        parts = [part for name in names for part in departures(end, name)]
        sentences += [f"{part}; {AT_TWO_DEPTHS}" for part in dict.fromkeys(parts)]
    if is_plain_pre_norm(start, end):
        sentences.append(
            f"{PRE_NORM_TRAINED}: a rate that is carried to a deeper one by this rule is too small, and to a shallower "
            f"one too large; {AT_TWO_DEPTHS}"
        )
    if is_plain_post_norm(start, end):
        sentences.append(
            f"{POST_NORM_TRAINED}: a rate that this rule carries from 4 to 16 units is up to 3 times too small; "
            f"{AT_TWO_DEPTHS}"
        )
    if start.depth != end.depth and all(is_convolutional(net) and is_plain(net) for net in (start, end)):
        sentences.append(
            f"{PLAIN_CONVOLUTIONAL_TRAINED}: a rate that this rule carries from 2 to 8 layers is up to 4 times too "
            f"large; {AT_TWO_DEPTHS}"
        )
    if start.depth != end.depth and all(_is_residual_convolutional(net) for net in (start, end)):
        sentences.append(
            f"{RESIDUAL_CONVOLUTIONAL_TRAINED}: a rate that this rule carries from 2 to 16 blocks is up to 2 times too "
            "large; give optimizer= and data=, or tune at two depths"
        )
    return tuple(sentences)


def _is_residual_convolutional(net: CarriedNet) -> bool:
    """Whether a net is like the residual convolutional ones of the trials."""
    return isinstance(net, ResidualConvNet) and net.scaling == "init" and net.block_depth == 1


def differ_in_batch(start: CarriedNet, end: CarriedNet) -> bool:
    """Whether the two nets have batches of different sizes."""
    return start.inputs != end.inputs


def batch_warning(start: CarriedNet, end: CarriedNet) -> str:
    """What is known of a rate at another batch size."""
    return (
        f"the nets differ in inputs, batches of {start.inputs} and {end.inputs} samples, and the rate at another batch "
        "size is another question than that at another depth: for labels of mean 0 the label term has eta* as "
        "B / sqrt(1 + (B - 1) f), f the squared kernel between two samples over that of one, which tends to sqrt(B); "
        "for labels with a mean eta* hardly changes (python -m sims.batch_size), and yet tuned rates of descent rose "
        "as B^0.5 in nets that learn (E3c)"
    )


def is_plain_pre_norm(start: CarriedNet, end: CarriedNet) -> bool:
    """Whether the pair differs in depth and its units read a normalised stream, with branches that depth leaves alone.

    It is read off the units: a normalisation first in every branch and none behind the joins, no trained gains, and
    the same multipliers and, over the fan-in rule, variances at both ends.
    """
    return _differ_in_depth_alone(start, end, _reads_normalised)


def is_plain_post_norm(start: CarriedNet, end: CarriedNet) -> bool:
    """The same of units that normalise the stream behind every join."""
    return _differ_in_depth_alone(start, end, _leaves_normalised)


def _differ_in_depth_alone(start: CarriedNet, end: CarriedNet, is_kind: Callable[[Unit], bool]) -> bool:
    """Whether both are Transformers of this kind of units, with other depths and the same branches."""
    if not (isinstance(start, TokenStream) and isinstance(end, TokenStream)) or start.depth == end.depth:
        return False
    if not all(is_kind(unit) for unit in (*start.block, *end.block)):
        return False
    factors = [(_factors(first), _factors(second)) for first, second in zip(start.block, end.block, strict=True)]
    return all(len(a) == len(b) and np.allclose(a, b, rtol=ROUNDING, atol=0) for a, b in factors)


def _factors(unit: Unit) -> tuple[float, ...]:
    return (unit.multiplier, *(weight.variance * weight.fan_in for part in unit.maps for weight in part.weights))


def _reads_normalised(unit: Unit) -> bool:
    others = (*unit.branch[1:], *unit.after)
    return unit.branch[0].normalises and not any(part.normalises or part.scales for part in others)


def _leaves_normalised(unit: Unit) -> bool:
    return any(part.normalises for part in unit.after) and not any(part.normalises for part in unit.branch)


SAME_BATCH = "the same data, batch size and training time at both ends"
OF_LAYERS = (
    "one step of plain SGD at initialisation: no momentum, weight decay or adaptive steps",
    "squared loss, mean over outputs and samples, labels of mean 0 and variance 1",
    "no normalisation layers, dropout or attention; weights Gaussian, of the variance that the spec says",
    SAME_BATCH,
)
OF_LISTED = tuple(premise.replace("no normalisation layers, dropout", "no dropout") for premise in OF_LAYERS)
OF_TOKEN_STREAMS = (
    *OF_LAYERS[:2],
    "tokens of white Gaussian inputs; few outputs; no dropout; weights Gaussian, of the variance that the spec says",
    OF_LAYERS[3],
    "training follows its first step, which small Transformers did not (python -m sims.learning_rate_search)",
)
OF_LOOPS = (
    "one update of isotropic signs at initialisation, which moves the stream at its last step by the same amount",
    "the same width and batch at both ends",
)

# Above this depth over width the label term is off the mean field by 30 % and more, exp(3 L/n), a rate by half of that.
LARGEST_DEPTH_OVER_WIDTH = 0.1


def premises(start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
    """The premises that all rules share for nets of this family."""
    shared: tuple[str, ...] = OF_LISTED if isinstance(end, ListedLayers) else OF_LAYERS
    shared = OF_TOKEN_STREAMS if isinstance(end, TokenStream) else OF_LOOPS if isinstance(end, TiedLoop) else shared
    if isinstance(start, TiedLoop) and isinstance(end, TiedLoop) and start.width != end.width:
        widths = f"the same batch at both ends; widths {start.width} and {end.width}, which this scale does not know"
        shared = (*shared[:-1], widths)
    shared = at_both_ends(shared, start, end)
    return (*shared, STEM_PREMISE) if start.depth != end.depth and starts_with_block(end) else shared


def at_both_ends(assumed: tuple[str, ...], start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
    """What a rule assumes, without a batch size that these nets share where they do not."""
    if not differ_in_batch(start, end):
        return assumed
    batches = f", batches of {start.inputs} and {end.inputs} samples"
    apart = {
        SAME_BATCH: f"the same data and training time{batches}",
        SAME_TRAINING: f"the same data, optimizer and training time{batches}",
    }
    return tuple(apart.get(premise, premise) for premise in assumed)


@takes(Sequential | DenseNet | TiedLoop | TokenStream)
def depth_over_width(net: CarriedNet) -> float:
    """sum_l 1 / n_l over all layers: L/n of equal layers, and of loops; of streams of tokens over their depth units."""
    if isinstance(net, DenseNet):
        return sum(1 / channels for channels in net.value_channels[1:])
    if isinstance(net, TokenStream):
        return len(net.units) / net.first_channels
    return net.depth / net.width if isinstance(net, TiedLoop) else sum(1 / width for width in net.channels_by_layer[1:])


def broken_premises(rule: str, start: CarriedNet, end: CarriedNet, log_change: float) -> tuple[str, ...]:
    """One sentence for each premise that fails for a rate that this rule carried between these nets.

    Args:
        rule: its name.
        start, end: the nets.
        log_change: ln of the factor by which the rule changed the rate.
    """
    shared = (*question_warnings(rule, start, end), rise_warning(start, end, log_change))
    return tuple(dict.fromkeys(filter(None, (*shared, *_of_family(rule, start, end)))))


def _of_family(rule: str, start: CarriedNet, end: CarriedNet) -> Iterable[str]:
    """Sentences, some empty, on sizes and outputs of nets of layers and of streams of tokens."""
    if isinstance(start, TiedLoop) or isinstance(end, TiedLoop):
        return []
    share = max(depth_over_width(net) for net in (start, end))
    if isinstance(start, TokenStream) or isinstance(end, TokenStream):
        deep = _deep_stream(share) if share > LARGEST_DEPTH_OVER_WIDTH else ""
        streams = [net for net in (start, end) if isinstance(net, TokenStream)]
        many = [many_outputs_warning(net) for net in streams] if rule == "whole_update" else []
        return [deep, *many]
    if isinstance(start, DenseNet) or isinstance(end, DenseNet):
        return [_output_term(start, end)] if rule == "finite_depth" else []
    sentences = [thin_input_warning(net) for net in (start, end)]
    if rule in ("finite_depth", "power_law"):
        sentences += [_many_layers(share, end), _output_term(start, end)]
    if rule == "whole_update":
        sentences += [_finite_channels(start, end)]
    if rule == "exact" and share > LARGEST_DEPTH_OVER_WIDTH:
        sentences += [f"depth over width is {share:.2g}: rare nets make the mean; rule 'typical' has the median net's"]
    return sentences


def _deep_stream(share: float) -> str:
    return (
        f"depth over width is {share:.2g}: the rate is that of an infinitely wide Transformer, and single nets scatter "
        "about it; simulate(net, ...) has learning_rate_scale_quantile, the scales of drawn nets"
    )


def _many_layers(share: float, end: Sequential) -> str:
    """Residual branches fluctuate little, so that depth over width says nothing of nets with skip connections."""
    if end.has_skips or share <= LARGEST_DEPTH_OVER_WIDTH:
        return ""
    return (
        f"depth over width is {share:.2g}: the mean label term is about {exp(min(3 * share, LARGEST_LOG)):.2g} times "
        "its mean field, single nets scatter as widely, and the rate is that of an infinitely wide net; "
        "simulate(net, ...) has learning_rate_scale_quantile, the scales of drawn nets"
    )


def _output_term(start: Sequential | DenseNet, end: Sequential | DenseNet) -> str:
    correction = log_output_correction(start, end)
    if isnan(correction) or abs(correction) <= log(NOTABLE):
        return ""
    estimated = refusal_of_outputs(start) or refusal_of_outputs(end)
    return (
        "outputs are not few compared with the width: the output term, which this rule leaves out, would change the "
        f"rate by {'something like ' if estimated else ''}a factor of {exp(min(correction, LARGEST_LOG)):.2g}"
        + ("" if estimated else "; rule 'whole_update' has it")
    )


def _finite_channels(start: Sequential, end: Sequential) -> str:
    correction = log_channel_correction(start, end)
    if abs(correction) <= log(NOTABLE):
        return ""
    return (
        "the rate is that of infinitely many channels: at those of these nets it would change by a factor of about "
        f"{exp(min(correction, LARGEST_LOG)):.2g}, as nets of one site show; simulate has learning_rate_scale of both"
    )


def starts_with_block(net: CarriedNet) -> bool:
    """Whether the first unit adds to the input itself, so that no layer stands below the blocks."""
    if isinstance(net, Sequential):
        return net.layers[net.unit_ends[0] - 1].skip == 0
    first = net.replace(depth=1).units[0]
    return first.adds and first.skip == 0


def rises_with_depth(start: CarriedNet, end: CarriedNet) -> bool:
    """Whether eta* of this family rises without end.

    Of nets of layers and of loops it is a positive power of the depth, where both ends have one scaling: chains whose
    multiplier is the same at both depths have not, as their family's is an alpha that changes. Of Transformers eta*
    rises where a^2 L falls, a the factor on the branches: sums of L moves of size a, each of which carries labels as a,
    shrink.
    """
    if isinstance(start, DenseNet):
        return False
    if not isinstance(start, TokenStream) or not isinstance(end, TokenStream):
        assert not isinstance(start, TokenStream)  # both are of one family
        scalings = [getattr(net, "scaling", getattr(net, "alpha", None)) for net in (start, end)]
        return scalings[0] == scalings[1] and learning_rate_exponent(start) > 0
    nets = sorted((start, end), key=lambda net: net.depth)
    shallow, deep = (max(unit.multiplier**2 for unit in net.block) * net.depth for net in nets)
    return deep < (1 - ROUNDING) * shallow


def rise_warning(start: CarriedNet, end: CarriedNet, log_change: float) -> str:
    """That a stem would stop the rise of this carried rate; empty where it does not rise or where a stem stands.

    Args:
        start, end: the nets.
        log_change: ln of the factor on the rate.
    """
    if start.depth == end.depth or not starts_with_block(start) or not rises_with_depth(start, end):
        return ""
    sentence = (
        f"the rate changes by a factor of {exp(log_change):.3g} because blocks move the net less the more they are, "
        "and these nets have nothing else that learns: a stem or an embedding below the blocks does not, and stops the "
        "rise, as eta* then tends to a constant"
    )
    if not isinstance(start, Sequential):
        return f"{sentence}; give what stands below the blocks a rate of its own"
    return f"{sentence}{_with_stem(start, end)}; if your net has a stem, describe it: stem=1, {start.INPUT}=..."


def _with_stem(start: Sequential, end: CarriedNet) -> str:
    """The factor of the same blocks on a stem that reads as many channels as the stream has, by the mean field."""
    nets: list[Any] = [net.replace(stem=1) for net in (start, end)]
    try:
        factor = exp(log_scale(nets[1]) - log_scale(nets[0]))
    except (ValueError, OverflowError):  # outside floats, or too long
        return ""
    return f" (on a stem of {start.channels_by_layer[0]} channels the factor is {factor:.3g})"
