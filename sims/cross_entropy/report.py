"""The printed report on cross-entropy beside squared loss."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import cross_entropies as claims
from sims.common.report import Report, answer
from sims.common.tables import drawn, fitted, measured, number, predicted, rows, table

LAW = (
    "Law: whatever the net, its width and its head, the label term under cross-entropy is C - 1 times that under "
    "squared loss, exactly: labels enter through the trace of their covariance (I - 11'/C)/C alone. The output term is "
    "the label term times (E|p|^2 - 1/C) / (1 - 1/C) at leading order in M L/n, and beyond what outputs drive along "
    "the features (mean field): none under the muP head, where p is uniform."
)
NETS = ("net", "head")


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    laws = [claims.depth_slope(dataset, "MLP", "he", loss) for loss in ("cross_entropy", "squared")]
    entropic, squared = (f"{law.exponent:.3f} +- {law.stderr:.3f}" for law in laws)
    judged = [claims.judge_exponent(dataset), claims.judge_exponent_with_outputs(dataset)]
    return answer(judged, f"slopes {entropic} against {squared} (MLP, He)")


def _terms(dataset: xr.Dataset) -> str:
    """|p - y|^2, label term and A/B under cross-entropy."""

    def cells(at: xr.Dataset) -> list[str]:
        pairs = [(drawn(at, name), predicted(at, f"{name}_mean_field")) for name in ("output_error", "label_term")]
        shares = [float(at[f"output_term{end}"] / at[f"label_term{end}"]) for end in ("", "_mean_field")]
        return [cell for pair in pairs for cell in pair] + [number(share) for share in shares]

    header = [
        ["net", "head", "depth"],
        ["|p - y|^2", "mean field"],
        ["label term", "mean field"],
        ["A/B", "mean field"],
    ]
    uniform = 1 - 1 / dataset.attrs["classes"]
    title = f"Cross-entropy (|p - y|^2 at uniform p: {uniform:.4g})"
    return table(header, rows(dataset.sel(loss="cross_entropy"), [*NETS, "depth"], cells), title)


def _ratios(dataset: xr.Dataset) -> str:
    """Label term and eta* under cross-entropy over those under squared loss."""

    def cells(at: xr.Dataset) -> list[str]:
        texts = []
        for name, power in (("label_term", 1.0), ("update_energy", -0.5)):
            logs, errors = (part.values for part in claims.scale_ratio(at, name))
            ratios = zip(np.exp(power * logs), errors, strict=True)
            texts += [measured(float(ratio), float(abs(power) * error * ratio)) for ratio, error in ratios]
        return texts

    depths = [int(depth) for depth in dataset["depth"].values]
    header = [[*NETS], [f"B, L = {depth}" for depth in depths], [f"eta*, L = {depth}" for depth in depths]]
    classes = dataset.attrs["classes"]
    title = f"Cross-entropy over squared loss (C - 1 = {classes - 1}, its inverse root {(classes - 1) ** -0.5:.3f})"
    return table(header, rows(dataset, NETS, cells), title)


def _slopes(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        net, head = (str(at[name].values) for name in NETS)
        terms_and_losses = product(("update_energy", "label_term"), ("squared", "cross_entropy"))
        return [fitted(claims.depth_slope(dataset, net, head, loss, name)) for name, loss in terms_and_losses]

    of_update, alone = ["eta*, squared", "eta*, cross-entropy"], ["label term alone, squared", "cross-entropy"]
    return table([[*NETS], of_update, alone], rows(dataset, NETS, cells), "Slopes in depth (papers: -1.5 for both)")


text = Report(
    question="Does cross-entropy in place of squared loss change the prefactor of eta* alone?",
    answer=_answer,
    heading="MLP width {width}; ConvNet channels {channels}, ring of 8 sites, pooled; relu, "
    "{classes} classes, one sample\n"
    "{draws} draws each, seed {seed}; means over layers, learning rate 1",
    parts=[_terms, _ratios, _slopes, LAW],
    findings=claims.findings,
    heavy=["label_term", "output_term"],
).text
