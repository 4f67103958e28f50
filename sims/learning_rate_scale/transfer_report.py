"""What `sims.learning_rate_scale --transfer` prints: the rate, what the other rules say, premises and warnings."""

import argparse
from dataclasses import replace
from math import isnan, nan
from typing import Any

import meanfield as mf
from meanfield.common import require_choice, require_count
from meanfield.nets import ResidualConvNet, ResidualMLP, Transformer
from meanfield.theory import learning_rate_exponent
from meanfield.transfer import RIVALS, RULES, depth_over_width
from meanfield.verification import printed_exponents
from sims.common.report import folded, report
from sims.common.tables import fraction, table
from sims.learning_rate_scale.families import served

# Fields of a spec that say what the net is, in the order of a sentence, and those that only some families have.
SHOWN = ("width", "channels", "grid", "kernel", "padding", "activation", "head", "readout", "outputs", "inputs")
OF_FAMILIES = (
    "block_depth",
    "stem",
    "input_width",
    "input_channels",
    "scaling",
    "alpha",
    "tied",
    "weight_variance",
    "heads",
    "tokens",
    "ffn",
    "norm",
)


def carried(options: argparse.Namespace) -> str:
    """The report on the rate that the options ask for, with all that should be known of it."""
    start = vars(options)["from"]
    for name, depth in (("--from", start), ("--to", options.to)):
        if depth is None:
            raise ValueError(f"--transfer {options.transfer:g} is given without {name}, a depth; it needs both")
        require_count(name, depth, why="a depth")
    nets = served(options.width, options.outputs)
    require_choice("--family", options.family, nets)
    net = nets[options.family] if options.stem is None else _on_stem(nets[options.family], options)
    rule = "auto" if options.rule is None else options.rule
    return text(options.transfer, net, start, options.to, options.family, rule)


def _on_stem(net: Any, options: argparse.Namespace) -> Any:
    """The residual net with a plain layer below its blocks."""
    require_count("--stem", options.stem, why="channels that a stem reads")
    if not isinstance(net, ResidualMLP | ResidualConvNet):
        raise ValueError(f"--stem {options.stem} is for residual nets, not for --family {options.family!r}; drop it")
    return replace(net, stem=1, **{net.INPUT: options.stem})


def text(rate: float, net: Any, start: int, end: int, family: str, rule: str = "auto") -> str:
    """The report on one carried rate, the answer first."""
    transfer = mf.explain_transfer(rate, replace(net, depth=start), replace(net, depth=end), rule=rule)
    parts = [_rule_table(rate, net, start, end, transfer)]
    if transfer.interval is not None:
        low, high = transfer.interval
        parts.append(f"Four in five nets of depth {end} would take a rate between {low:.3g} and {high:.3g}.")
    share = depth_over_width(replace(net, depth=end))
    parts += [
        f"Net: {_described(net)}; depth over width {share:.2g} at depth {end}.",
        "\n".join(["Premises:", *(folded(sentence, "- ", 2) for sentence in transfer.premises)]),
        *(f"WARNING: {sentence}" for sentence in transfer.warnings),
    ]
    question = f"Which learning rate at depth {end}, if {rate:g} was tuned at depth {start} ({family})?"
    return report(
        question, f"{transfer.rate:.4g}{_error(transfer)}, by rule {transfer.rule!r}: {transfer.reason}.", parts
    )


def _error(transfer: mf.Transfer) -> str:
    return f" (+- {transfer.error:.0%}, from draws)" if transfer.error else ""


def _rule_table(rate: float, net: Any, start: int, end: int, transfer: mf.Transfer) -> str:
    """The rates of all rules, and of the exponents that papers print for this family."""
    powers = not isinstance(net, Transformer)
    law = learning_rate_exponent(net) if powers else nan
    titles = {name: (RULES | RIVALS)[name].title for name in transfer.rates}
    if "power_law" in titles:
        titles["power_law"] += f" L^({fraction(law)})"
    rows = [[name, titles[name], f"{carried:.4g}"] for name, carried in transfer.rates.items()]
    if isnan(law):
        why = "an exponential of the depth" if powers else "no power of common depths"
        rows.append(["power_law", f"none holds: eta* is {why}", "-"])
    printed = {paper: exponent for paper, exponent in printed_exponents(net).items() if exponent != law}
    for paper, exponent in printed.items():
        rows.append(["", f"L^({fraction(exponent)}) ({paper})", f"{rate * (end / start) ** exponent:.4g}"])
    return table(["rule", "eta* by", "learning rate"], rows)


def _described(net: Any) -> str:
    """The net in words of its spec; depth is the question's."""
    spec = net.describe()
    named = [f"{name} {spec[name]}" for name in (*SHOWN, *OF_FAMILIES) if spec.get(name) is not None]
    return f"{spec['family']} of " + ", ".join(named)
