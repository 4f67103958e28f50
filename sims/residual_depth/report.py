"""The printed report on residual nets: slopes by activation, branch depth and scaling, mixed backbones, verdicts."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.common import fit_power_law
from meanfield.theory import log_path_sum_scale, residual_exponent
from meanfield.verification import TABLE_1, Finding, printed_residual_exponents
from meanfield.verification import slopes as claims
from sims.common.cells import drawn, fitted, heavy_tail_notes, predicted, rows
from sims.common.report import Report, answer
from sims.common.table import exponents, number, signed, table

WORDS = {
    "k": "layers of a branch: z <- z + a branch(z) in every block.",
    "init": "scaling of a net of K blocks: branch weights of variance 1/(q K n), a = 1.",
    "multiplier_sqrt": "a = K^(-1/2); multiplier_linear: a = 1/K; weights of variance 1/(q n).",
    "none": "a = 1, weights of variance 1/(q n).",
    "PathSum": "a rule for learning rates of residual nets, Chen et al. 2024.",
}
WHOLE = "learning_rate_scale"
# The exponent in m + K of Zhang et al. 2026.
(PRINTED,) = printed_residual_exponents("init", 1).values()


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    nets = [dataset.sel(activation="relu", scaling="init", block_depth=k) for k in dataset["block_depth"].values]
    laws = (claims.drawn_slope(net) for net in nets)
    slopes = ", ".join(f"{law.exponent:.2f} +- {law.stderr:.2f}" for law in laws)
    depths = ", ".join(map(str, dataset["block_depth"].values))
    return answer([claims.judge_initialisation(dataset)], f"slopes {slopes} for k = {depths}")


def _scale_table(dataset: xr.Dataset) -> str:
    """eta* of the label term by blocks, for ReLU and k = 1: drawn and mean field."""
    name, scalings = claims.LABEL_SCALE, list(map(str, dataset["scaling"].values))
    limit = np.exp(dataset[f"log_{name}_theory"])
    plain_relu = dataset.assign({f"{name}_mean_field": limit}).sel(activation="relu", block_depth=1)

    def cells(at: xr.Dataset) -> list[str]:
        nets = [at.sel(scaling=scaling) for scaling in scalings]
        return [cell for net in nets for cell in (drawn(net, name), predicted(net, f"{name}_mean_field"))]

    header = ["blocks", *([scaling, "mean field"] for scaling in scalings)]
    return table(header, rows(plain_relu, ["blocks"], cells), "eta* of the label term, ReLU, k = 1")


def _slope_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        scaling, k = str(at["scaling"].values), int(at["block_depth"])
        label, update, theory = claims.drawn_slope(at), claims.drawn_slope(at, WHOLE), claims.theory_slope(at)
        law = residual_exponent(scaling, k)
        return [
            fitted(update),
            number(claims.theory_slope(at, WHOLE)),
            fitted(label),
            number(theory),
            signed((label.exponent - theory) / label.stderr),
            predicted(at, f"{claims.LABEL_SCALE}_far_slope"),
            "falls as 2^-K" if np.isnan(law) else f"{law:+g}",
            exponents(printed_residual_exponents(scaling, k)),
        ]

    nets = rows(dataset, ["activation", "block_depth", "scaling"], cells)
    lines = [[f"{activation} k={k} {scaling}", *values] for activation, k, scaling, *values in nets]
    blocks = dataset["blocks"].values
    last = [f"at {dataset.attrs['far']}", "law", "papers"]
    header = ["net", ["eta*", "exact"], ["eta* of B alone", "theory", "s.e."], last]
    title = f"Slopes in K over {blocks[0]} .. {blocks[-1]} blocks (theory: exact if linear, mean field if ReLU)"
    return table(header, lines, title)


def _notes(dataset: xr.Dataset) -> str:
    blocks = dataset["blocks"].values
    rule = np.gradient(log_path_sum_scale(blocks), np.log(blocks))
    local_slopes = ", ".join(f"{slope:.1f} at {count}" for slope, count in zip(rule, blocks, strict=True))
    notes = [
        f"PathSum's rule (k = 1) has local slopes {local_slopes} blocks: no power law.",
        heavy_tail_notes(dataset.sel(scaling=list(claims.SCALED)), (claims.LABEL_SCALE, WHOLE)),
        "Without scaling the stream doubles at every block, and at large K rare draws make the means.",
    ]
    return "\n".join(filter(None, notes))


def _backbone_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        layers = at["backbone_layers"].values
        pairs = zip(at["backbone_slope"].values, PRINTED * layers / layers.sum(), strict=True)
        return [f"{slope:.3f}" for pair in pairs for slope in pair]

    nets = rows(dataset, ["activation", "backbone"], cells)
    lines = [[f"{activation}, {backbone}", *slopes] for activation, backbone, *slopes in nets]
    header = ["backbone", "slope in m", "printed", "slope in K", "printed"]
    title = (
        'm plain layers below K blocks ("init", k = 1), label term in theory; printed: those of (m + K)^(-3/2) '
        "(Zhang et al. 2026)"
    )
    return table(header, lines, title)


def _papers_net(dataset: xr.Dataset) -> str:
    depths = dataset["papers_blocks"].values
    law = fit_power_law(depths, np.exp(dataset["papers_net_log_scale"].values))
    trained = ", ".join(f"{slope:.3f}" for slope in TABLE_1["ResNet"])
    return (
        "The ResNet of Zhang et al. 2026 (stem, one 3x3 convolution per block, 64 channels, init), label term by the "
        f"mean field:\nslope {law.exponent:.3f} over {depths[0]} .. {depths[-1]} blocks; of tuned rates (table 1): "
        f"{trained}"
    )


text = Report(
    question="Does eta* of residual nets initialised with variance 1/K fall as K^(-3/2) in the blocks K?",
    answer=_answer,
    heading="ResidualMLP: width {width}, outputs {outputs}; {draws} draws for each net, seed {seed}; learning rate 1",
    parts=[_scale_table, _slope_table, _notes, _backbone_table, _papers_net],
    findings=claims.findings,
    words=WORDS,
).text
