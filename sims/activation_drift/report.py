"""The printed report on activations: drift by layer, scales and slopes by depth, verdicts."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import COMMON_SWEEP, Finding, extrapolated
from meanfield.verification import activation_drift as claims
from sims.common.report import Report, answer
from sims.common.tables import drawn, fitted, measured, number, rows, signed, table

WORDS = {
    "fan_in": "weights of variance sigma_W^2/fan_in with sigma_W^2 = 1/q; he: 2; energy: 1/E[sigma(G)^2].",
    "q": "E[sigma'(G)^2], G ~ N(0, 1).",
    "energy": "mean z^2; z^(1) has variance 1.",
    "gain": "sigma_W^2 mean sigma'(z)^2.",
    "with 1/n": "the mean field and its correction at this width.",
    "d ln/dL": "the rate at which ln eta* changes with the depth; by the gain: the rate that the gain there implies.",
}
WHOLE = "learning_rate_scale"


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    (relu, _), (gelu, _) = (claims.drawn_slope(dataset, case) for case in ("relu", "gelu, he"))
    numbers = f"slopes {relu.exponent:.3f} +- {relu.stderr:.3f} (ReLU), {gelu.exponent:.3f} +- {gelu.stderr:.3f} (GELU)"
    return answer([claims.judge_scales(dataset)], numbers)


def _drift_table(dataset: xr.Dataset) -> str:
    """Energy and gain at the last drawn layer of the widest nets, and far up in the mean field."""
    last, far = int(dataset["layer"][-1]), int(dataset["layers"][-1])

    def cells(at: xr.Dataset) -> list[str]:
        gain, variance = float(at["gain"]), float(at["weight_variance"])
        texts = [f"{gain:.4f}", f"{variance:.4f}", f"{variance * gain:.4f}"]
        for name, unit in ((claims.ENERGIES[0], 1.0), (claims.ENERGIES[1], variance)):
            top, mean_field = at.sel(layer=last), unit * at[f"{name}_mean_field"]
            there = float(mean_field.sel(layers=last))
            corrected = there * (1 + float(top[f"{name}_correction"]))
            mean, stderr = (unit * float(top[f"{name}{end}"]) for end in ("", "_stderr"))
            off = signed((mean - corrected) / stderr if stderr > 1e-12 else 0.0)
            values = [f"{there:.4f}", f"{corrected:.4f}", off, number(float(mean_field.sel(layers=far)))]
            texts += [drawn(top, name, unit), *values]
        return texts

    each = ["mean field", "with 1/n", "s.e.", f"at {far}"]
    header = ["case", "q", "sigma_W^2", "gain at 1", [f"energy at {last}", *each], [f"gain at {last}", *each]]
    title = f"Drift over {last} layers, width {int(dataset['width'][-1])} (at 1: at layer 1)"
    return table(header, rows(dataset, ["case"], cells), title)


def _scale_table(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values

    def cells(at: xr.Dataset) -> list[str]:
        law, texts = extrapolated(dataset, str(at["case"].values), claims.LABEL_SCALE), []
        for depth, log_scale, stderr in zip(depths, law.log_scale, law.stderr, strict=True):
            scale, theory = float(np.exp(log_scale)), float(at[f"{claims.LABEL_SCALE}_mean_field"].sel(layers=depth))
            off = signed((log_scale - np.log(theory)) / stderr)
            texts += [measured(scale, scale * stderr), number(theory), off]
        return texts

    header = ["case", *([f"L = {depth}", "mean field", "s.e."] for depth in depths)]
    return table(header, rows(dataset, ["case"], cells), "eta* of the label term")


def _slope_table(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values

    def cells(at: xr.Dataset) -> list[str]:
        case = str(at["case"].values)
        laws = [claims.drawn_slope(dataset, case, name)[0] for name in (WHOLE, claims.LABEL_SCALE)]
        theory = [claims.theory_slope(dataset, case, swept) for swept in (depths, COMMON_SWEEP)]
        rates = (_far_rate(at), claims.rate_of_gain(claims.far_gain(dataset, case)))
        slopes = [*map(fitted, laws), *(f"{slope:.3f}" for slope in theory), number(_cnn_slope(at))]
        return slopes + [f"{rate:+.4f}" for rate in rates]

    sweep, far = f"{COMMON_SWEEP[0]} .. {COMMON_SWEEP[-1]}", int(dataset["layers"][-1])
    header = ["case", "eta*", "of B alone", "mean field", sweep, f"CNN {sweep}", f"d ln/dL at {far}", "by the gain"]
    title = f"Slopes of eta* in L over {depths[0]} .. {depths[-1]}; by the mean field over {sweep}, for a CNN too"
    return table(header, rows(dataset, ["case"], cells), title)


def _cnn_slope(at: xr.Dataset) -> float:
    scale = at["cnn_scale_mean_field"].sel(cnn_layers=list(COMMON_SWEEP)).values
    return float("nan") if np.isnan(scale).any() else float(np.polyfit(np.log(COMMON_SWEEP), np.log(scale), 1)[0])


def _far_rate(at: xr.Dataset) -> float:
    logs = np.log(at[f"{claims.LABEL_SCALE}_mean_field"].values)
    return float(logs[-1] - logs[-2])


def _widths(dataset: xr.Dataset) -> str:
    return f"Widths {' and '.join(map(str, dataset['width'].values))}; scales are extrapolated in 1/width."


text = Report(
    question="Does eta* of smooth activations follow a mean field of their own, and not ReLU's law?",
    answer=_answer,
    heading="MLP, one input, outputs {outputs}; {draws} draws for each net, seed {seed}; learning rate 1",
    parts=[_widths, _drift_table, _scale_table, _slope_table],
    findings=claims.findings,
    heavy=[WHOLE, claims.LABEL_SCALE],
    words=WORDS,
).text
