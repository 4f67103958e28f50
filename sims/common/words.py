"""The words of printed reports, explained once below each report that uses them."""

import re
from collections.abc import Mapping

from meanfield.common import FALSE_ALARM_BUDGET
from meanfield.quantities import QUANTITIES
from meanfield.verification import CONVERGED_SHARE, WIDEST_BAND

STATISTICS = {
    "s.e.": "standard errors of a mean over independent draws: how many of them lie between a number and the one that "
    "it is held against. With a sign: drawn minus predicted, before any allowance.",
    "allowance": "how far the sizes of a run may move a number from the limit that it is held against, by a formula "
    "stated in meanfield/verification. Verdicts count only the s.e. beyond it.",
    "band": "the s.e. (beyond an allowance, if there is one) that a true claim exceeds in one of "
    f"{1 / FALSE_ALARM_BUDGET:,.0f} runs. It is wide where few draws leave the error uncertain; where it is above "
    f"{WIDEST_BAND:g}, the report says so instead. In brackets the band that the rival must leave, where it is the one "
    "number of many that is nearest to it: fewer numbers leave a narrower band by chance.",
    "rival": "what would be true if the claim were false.",
    "worst": "of all points that a claim is about, the one that is farthest off; negative: inside an allowance.",
    "CONFIRMED": "the claim lies well inside the band, and its rival outside.",
    "REFUTED": "the claim lies outside the band.",
    "INCONCLUSIVE": "the run neither confirms nor refutes the claim, or one draw makes more than "
    f"{CONVERGED_SHARE:.0%} of a mean.",
    "too few draws": "with the number needed, so many of ten runs would find the rival (or a claim that is far off) "
    "outside the band, by how far off this run has seen it, and how uncertain that is: errors fall as draws^(-1/2). "
    "The option --times multiplies the draws.",
    "neither holds": "claim and rival are both farther off than a true law is once in a hundred runs.",
    "not converged": "a single draw makes too large a share of the mean, or there are fewer draws than its spread asks "
    "for: the distance in s.e. would mean nothing. With the number needed no draw would make so large a share, if "
    "draws are log-normal.",
    "Heavy tail": "rare draws make up much of the mean, and this run may not have met the rarest.",
}

LAWS = {
    "mean field": "the limit of many units or channels at fixed depth, computed without a draw.",
    "minima": "the papers' law for F and B, a sum over pairs of layers of the smaller layer number: l(l+1)(2l+1)/6 "
    "where all layers have as many inputs; its factor is set at the first layer.",
    "He": "weights of variance 2/fan_in.",
    "muP head": "output weights of variance 1/fan_in^2, so that outputs vanish with the width.",
}

LETTERS = {"label_term": "B", "output_term": "A", "update_energy": "S", "overlap_energy": "F"}
TERMS = {
    **{QUANTITIES[name].long_name: f"{letter}, {QUANTITIES[name].definition}." for name, letter in LETTERS.items()},
    "eta*": f"{QUANTITIES['learning_rate_scale'].definition}. Of a term alone: from that term.",
}

# As CITATION.cff has them, with their authors.
SOURCES = {
    "Zhang et al. 2026": "Hyperparameter Transfer Laws for Non-Recurrent Multi-Path Neural Networks.",
    "Zheng et al. 2026": "Spectral Condition for muP under Width-Depth Scaling.",
    "Wang et al. 2026": "On the Residual Scaling of Looped Transformers: Stability and Transferability.",
    "Zhang et al. 2025": "Arithmetic-Mean muP for Modern Architectures: A Unified Learning-Rate Scale for CNNs and "
    "ResNets.",
    "docs/theory.md": "the derivations, section by section, in the repository of this program.",
}


def used_words(text: str, own: Mapping[str, str]) -> dict[str, str]:
    """Those of a report's ``own`` words and of all reports' that stand in its text, with what they mean."""
    words = {**own, **STATISTICS, **LAWS, **TERMS, **SOURCES}
    return {word: meaning for word, meaning in words.items() if _stands_in(word, text)}


def _stands_in(word: str, text: str) -> bool:
    anywhere_folded = re.escape(word).replace(r"\ ", r"\s+")
    return re.search(rf"(?<!\w){anywhere_folded}(?!\w)", text) is not None
