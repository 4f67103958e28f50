"""What `sims.learning_rate_scale --transfer` prints: the rate, what the other rules say, premises and warnings."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any

import meanfield as mf
from meanfield.theory import learning_rate_exponent
from meanfield.transfer import RULES, depth_over_width
from meanfield.verification import printed_exponents
from sims.common.report import folded, report
from sims.common.table import fraction, table

# Fields of a spec that say what the net is, in the order of a sentence, and those that only some families have.
SHOWN = ("width", "channels", "grid", "kernel", "padding", "activation", "head", "readout", "outputs", "inputs")
OF_FAMILIES = ("block_depth", "scaling", "alpha", "tied", "weight_variance")


def text(rate: float, net: Any, start: int, end: int, family: str) -> str:
    """The report on one carried rate, the answer first."""
    found = mf.explain_transfer(rate, replace(net, depth=start), replace(net, depth=end))
    parts = [_rule_table(rate, net, start, end, found)]
    if found.interval is not None:
        low, high = found.interval
        parts.append(f"Four in five nets of depth {end} would take a rate between {low:.3g} and {high:.3g}.")
    share = depth_over_width(replace(net, depth=end))
    parts += [
        f"Net: {_described(net)}; depth over width {share:.2g} at depth {end}.",
        "\n".join(["Premises:", *(folded(sentence, "- ", 2) for sentence in found.premises)]),
        *(f"WARNING: {sentence}" for sentence in found.warnings),
    ]
    question = f"Which learning rate at depth {end}, if {rate:g} was tuned at depth {start} ({family})?"
    return report(question, f"{found.rate:.4g}{_error(found)}, by rule {found.rule!r}: {found.reason}.", parts)


def _error(found: mf.Transfer) -> str:
    return f" (+- {found.error:.0%}, from draws)" if found.error else ""


def _rule_table(rate: float, net: Any, start: int, end: int, found: mf.Transfer) -> str:
    """The rates of all rules, and of the exponents that papers print for this family."""
    law = learning_rate_exponent(net)
    titles = {name: RULES[name].title for name in found.rates}
    if "power_law" in titles:
        titles["power_law"] += f" L^({fraction(law)})"
    rows = [[name, titles[name], f"{carried:.4g}"] for name, carried in found.rates.items()]
    if isnan(law):
        rows.append(["power_law", "none holds: eta* is an exponential of the depth", "-"])
    for paper, exponent in printed_exponents(net).items():
        if exponent != law:
            rows.append(["", f"L^({fraction(exponent)}), as {paper} prints", f"{rate * (end / start) ** exponent:.4g}"])
    return table(["rule", "eta* by", "learning rate"], rows)


def _described(net: Any) -> str:
    """The net in words of its spec; depth is the question's."""
    spec = net.describe()
    named = [f"{name} {spec[name]}" for name in (*SHOWN, *OF_FAMILIES) if spec.get(name) is not None]
    return f"{spec['family']} of " + ", ".join(named)
