"""What a depth-growth run answers: exponents of B and of eta*, at its depths and in the limit; and what theory has."""

from typing import Any

import xarray as xr

from meanfield.verification import Finding, best, combined, exponent_of, growth_exponent
from sims.cnn_overlap import claims, exponents
from sims.cnn_overlap.exponents import SCALE
from sims.common.report import SAYS, folded


def answer(dataset: xr.Dataset) -> str:
    """What was asked of B and of eta*, at these depths and in the limit; and whether theory agrees with draws."""
    indent = " " * 10
    name = claims.judged_term(dataset)
    lines = _growth(dataset, name) if name else ["The growth of B has no prediction here."]
    lines += [_scale(dataset), _limit_of(dataset, SCALE), _agreement(dataset)]
    return "\n".join(folded(line, indent, 10) for line in lines if line).lstrip()


def _growth(dataset: xr.Dataset, name: str) -> list[str]:
    """Of the label term, or what stands for it."""
    deepest = dataset.isel(depth=-1)
    limit, finite = (growth_exponent(deepest, of) for of in (f"{name}_limit", best(deepest, name)))
    expected, minima = (exponent_of(deepest[f"{name}_{level}"].values) for level in ("mean_field", "law"))
    said = _said(claims.judge_exponent(dataset, name))
    which = "B" if name == "label_term" else f"B (here {name.replace('_', ' ')})"
    why = exponents.no_power_law(exponents.net_of(dataset))
    return [
        f"{said}, for {which} as l^3 at these depths: exponent {_exponent_words(limit)}.",
        f"This is over layers {layers(deepest)}, at infinitely many channels (mean field {expected:.2f}); at "
        f"{exponents.net_of(dataset).channels} channels it is {_exponent_words(finite)}; the papers' minima: "
        f"{minima:.2f}.",
        f"In deeper nets it is no power law, {why}." if why else _limit_of(dataset, name),
    ]


def _scale(dataset: xr.Dataset) -> str:
    law = exponents.scale_slope(dataset, best(dataset, SCALE))
    theory = exponents.predicted_scale_slope(dataset, SCALE, "finite_channels")
    known = "" if theory != theory else f" (theory with one site's factor for A {theory:.3f})"
    return (
        f"{_said(claims.judge_exponent(dataset, SCALE))}, for eta* as L^(-3/2) at these depths: eta* changes as "
        f"L^({law.exponent:.3f} +- {law.stderr:.3f}){known}, depths {_depths(dataset)}."
    )


def _limit_of(dataset: xr.Dataset, name: str) -> str:
    """The same in deep nets, by theory alone."""
    if f"{name}_deep" not in dataset:
        return ""
    deep, last = int(dataset["deep_depth"][-1]), float(dataset[f"{name}_deep"][-1])
    said = SAYS[claims.judge_limit(dataset, name).verdict].replace("This run", "Theory at such depths")
    which = "eta* as L^(-3/2)" if name == SCALE else "B as l^3"
    return f"{said}, for {which} in the limit of deep nets: the mean field has exponent {last:.2f} at {deep} layers."


def _agreement(dataset: xr.Dataset) -> str:
    findings = [claims.judge_growth(dataset, name) for name in claims.predicted(dataset)]
    if not findings:
        return ""
    return f"{SAYS[combined(finding.verdict for finding in findings)]}, for theory's exponents against drawn ones."


def layers(deepest: xr.Dataset) -> str:
    """Those over which exponents are fitted."""
    return claims.where(deepest, "label_term").removeprefix("layers ")


def _exponent_words(law: Any) -> str:
    return f"{law.exponent:.2f} +- {law.stderr:.2f}" if law.stderr < 1 else "not measured"


def _said(finding: Finding) -> str:
    return SAYS[finding.verdict]


def _depths(dataset: xr.Dataset) -> str:
    return " .. ".join(str(int(dataset["depth"][end])) for end in (0, -1))
