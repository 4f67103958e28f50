"""Pairs of nets between which one step names no rate that trains well; "auto" refuses them, and says what holds."""

from __future__ import annotations

from meanfield.nets.families.token_stream import TokenStream
from meanfield.nets.maps import Gain, Normalisation
from meanfield.nets.units import Unit
from meanfield.transfer.rules import Net

# Slopes of tuned rates, by `python -m sims.learning_rate_search` (claim T4), beside those of the one-step scale.
PRE_NORM_TRAINED = (
    "tuned rates of pre-norm Transformers fell as L^(-0.57 +- 0.06) over 2 to 16 units in one epoch on digits, where "
    "one step says L^(-1.48)"
)
POST_NORM_TRAINED = "tuned rates of post-norm ones fell as L^(-1.38 +- 0.08), by one step L^(-1.80)"


def other_question(start: Net, end: Net) -> str:
    """Why "auto" carries no rate between these nets, and what to do; empty where it does."""
    if differ_in_batch(start, end):
        return (
            f"{batch_warning(start, end)}; tune at the batch size of the net to be trained, or give rule="
            "'whole_update', which follows both where labels are white"
        )
    if is_plain_pre_norm(start, end):
        return (
            f"{PRE_NORM_TRAINED}: carried rates were 6 to 15 times too small in a trial (ViT of width 32, SGD and "
            "AdamW). Tune at two depths and take meanfield.transfer.GivenPower.through, or carry by 2 / lambda_max on "
            "your data, meanfield.transfer.StableRate; rule='finite_depth' gives the rate of one step"
        )
    return ""


def question_warnings(start: Net, end: Net) -> tuple[str, ...]:
    """What `other_question` refuses under "auto", as a warning of a rule that was asked for."""
    sentences = []
    if differ_in_batch(start, end):
        sentences.append(batch_warning(start, end))
    if is_plain_pre_norm(start, end):
        sentences.append(
            f"{PRE_NORM_TRAINED}: a rate that is carried to a deeper one by this rule is too small, and to a shallower "
            "one too large; 2 / lambda_max on your data came closer (meanfield.transfer.StableRate)"
        )
    return tuple(sentences)


def differ_in_batch(start: Net, end: Net) -> bool:
    """Whether the two nets have batches of different sizes."""
    return start.inputs != end.inputs


def batch_warning(start: Net, end: Net) -> str:
    """What is known of a rate at another batch size."""
    return (
        f"the nets differ in inputs, batches of {start.inputs} and {end.inputs} samples, and the rate at another batch "
        "size is another question than that at another depth: for labels of mean 0 the label term has eta* as "
        "B / sqrt(1 + (B - 1) f), f the squared kernel between two samples over that of one, which tends to sqrt(B); "
        "for labels with a mean eta* hardly changes (python -m sims.batch_size)"
    )


def is_plain_pre_norm(start: Net, end: Net) -> bool:
    """Whether the pair differs in depth and its units read a normalised stream, with branches that depth leaves alone.

    It is read off the units: a normalisation first in every branch and none behind the joins, no trained gains, and
    the same multipliers and variances at both depths.
    """
    if not (isinstance(start, TokenStream) and isinstance(end, TokenStream)) or start.depth == end.depth:
        return False
    level = start.replace(depth=end.depth)
    branches = [[(unit.multiplier, *_variances(unit)) for unit in net.block] for net in (start, level)]
    return branches[0] == branches[1] and all(_reads_normalised(unit) for net in (start, end) for unit in net.block)


def _variances(unit: Unit) -> tuple[float, ...]:
    return tuple(weight.variance for part in unit.maps for weight in part.weights)


def _reads_normalised(unit: Unit) -> bool:
    others = (*unit.branch[1:], *unit.after)
    return isinstance(unit.branch[0], Normalisation) and not any(isinstance(m, Normalisation | Gain) for m in others)
