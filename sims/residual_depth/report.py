"""The printed report on residual nets: slopes by activation, branch depth and scaling, mixed backbones, verdicts."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.common import fit_power_law
from meanfield.theory import log_path_sum_scale, residual_exponent
from meanfield.verification import PAPERS_EXPONENT, TABLE_1, printed_residual_exponents, slopes
from sims.common.beside import heavy_tail_notes
from sims.common.report import answer, report
from sims.common.table import exponents, measured, number, signed, table

QUESTION = "Does eta* of residual nets initialised with variance 1/K fall as K^(-3/2) in the blocks K?"
WORDS = {
    "k": "layers of a branch: z <- z + a branch(z) in every block.",
    "init": "scaling of a net of K blocks: branch weights of variance 1/(q K n), a = 1.",
    "multiplier_sqrt": "a = K^(-1/2); multiplier_linear: a = 1/K; weights of variance 1/(q n).",
    "none": "a = 1, weights of variance 1/(q n).",
}
WHOLE = "learning_rate_scale"


def text(dataset: xr.Dataset) -> str:
    """The whole report."""
    parts = [_heading(dataset), _scale_table(dataset), _slope_table(dataset), _notes(dataset), _backbone_table(dataset)]
    return report(QUESTION, _answer(dataset), [*parts, _papers_net(dataset)], slopes.findings(dataset), WORDS)


def _answer(dataset: xr.Dataset) -> str:
    nets = [dataset.sel(activation="relu", scaling="init", block_depth=k) for k in dataset["block_depth"].values]
    laws = (slopes.drawn_slope(net) for net in nets)
    drawn = ", ".join(f"{law.exponent:.2f} +- {law.stderr:.2f}" for law in laws)
    depths = ", ".join(map(str, dataset["block_depth"].values))
    return answer([slopes.judge_initialisation(dataset)], f"slopes {drawn} for k = {depths}")


def _heading(dataset: xr.Dataset) -> str:
    run = "ResidualMLP: width {width}, outputs {outputs}; {draws} draws for each net, seed {seed}; learning rate 1"
    return run.format_map(dataset.attrs)


def _scale_table(dataset: xr.Dataset) -> str:
    """eta* of the label term by blocks, for ReLU and k = 1: drawn and mean field."""
    at = dataset.sel(activation="relu", block_depth=1)
    rows = []
    for blocks in dataset["blocks"].values:
        cells = [str(blocks)]
        for scaling in dataset["scaling"].values:
            one = at.sel(blocks=blocks, scaling=scaling)
            value, stderr = float(one[slopes.LABEL_SCALE]), float(one[f"{slopes.LABEL_SCALE}_stderr"])
            cells += [measured(value, stderr), number(float(np.exp(one[f"log_{slopes.LABEL_SCALE}_theory"])))]
        rows.append(cells)
    header = ["blocks", *([str(scaling), "mean field"] for scaling in dataset["scaling"].values)]
    return table(header, rows, "eta* of the label term, ReLU, k = 1")


def _slope_table(dataset: xr.Dataset) -> str:
    rows = []
    for activation in dataset["activation"].values:
        for k in dataset["block_depth"].values:
            for scaling in dataset["scaling"].values:
                at = dataset.sel(activation=activation, block_depth=k, scaling=scaling)
                label, whole = slopes.drawn_slope(at), slopes.drawn_slope(at, WHOLE)
                theory, far = slopes.theory_slope(at), float(at[f"{slopes.LABEL_SCALE}_far_slope"])
                law = residual_exponent(str(scaling), int(k))
                rows.append(
                    [
                        f"{activation} k={k} {scaling}",
                        measured(whole.exponent, whole.stderr),
                        number(slopes.theory_slope(at, WHOLE)),
                        measured(label.exponent, label.stderr),
                        number(theory),
                        signed((label.exponent - theory) / label.stderr),
                        number(far),
                        "falls as 2^-K" if np.isnan(law) else f"{law:+g}",
                        exponents(printed_residual_exponents(str(scaling), int(k))),
                    ]
                )
    blocks = dataset["blocks"].values
    last = [f"at {dataset.attrs['far']}", "law", "papers"]
    header = ["net", ["eta*", "exact"], ["eta* of B alone", "theory", "s.e."], last]
    title = f"Slopes in K over {blocks[0]} .. {blocks[-1]} blocks (theory: exact if linear, mean field if ReLU)"
    return table(header, rows, title)


def _notes(dataset: xr.Dataset) -> str:
    blocks = dataset["blocks"].values
    rule = np.gradient(log_path_sum_scale(blocks), np.log(blocks))
    shown = ", ".join(f"{slope:.1f} at {count}" for slope, count in zip(rule, blocks, strict=True))
    tails = heavy_tail_notes(dataset.sel(scaling=list(slopes.SCALED)), (slopes.LABEL_SCALE, WHOLE))
    tails.append("Without scaling the stream doubles at every block, and at large K rare draws make the means.")
    return "\n".join([f"PathSum's rule (k = 1) has local slopes {shown} blocks: no power law.", *tails])


def _backbone_table(dataset: xr.Dataset) -> str:
    rows = []
    for activation in dataset["activation"].values:
        for backbone in dataset["backbone"].values:
            at = dataset.sel(activation=activation, backbone=backbone)
            layers = at["backbone_layers"].values
            claimed = PAPERS_EXPONENT * layers / layers.sum()
            pairs = zip(at["backbone_slope"].values, claimed, strict=True)
            rows.append([f"{activation}, {backbone}", *(f"{cell:.3f}" for pair in pairs for cell in pair)])
    header = ["backbone", "slope in m", "P0", "slope in K", "P0"]
    title = 'm plain layers below K blocks ("init", k = 1), label term in theory; P0: (m + K)^(-3/2)'
    return table(header, rows, title)


def _papers_net(dataset: xr.Dataset) -> str:
    depths = dataset["papers_blocks"].values
    law = fit_power_law(depths, np.exp(dataset["papers_net_log_scale"].values))
    trained = ", ".join(f"{slope:.3f}" for slope in TABLE_1["ResNet"])
    return (
        "P0's ResNet (stem, one 3x3 convolution per block, 64 channels, init), label term by the mean field:\n"
        f"slope {law.exponent:.3f} over {depths[0]} .. {depths[-1]} blocks; tuned rates of nets: {trained} (P0 table 1)"
    )
