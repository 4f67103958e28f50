"""The command on activations: verdicts, negative controls, files, refusals."""

import numpy as np
import pytest
import xarray as xr

from meanfield.verification.many_channels import extrapolated
from meanfield.verification.verdicts import Verdict
from sims import activation_drift as claims
from tests.sims.claim_controls import SCALE, put


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("activation_drift")


def test_verdicts(finished):
    assert claims.judge_gain(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_constant_gain(finished).verdict is Verdict.REFUTED
    assert claims.judge_stationary(finished).verdict is Verdict.REFUTED
    assert claims.judge_energies(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_scales(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_asymptote(finished).verdict is Verdict.REFUTED
    assert len([finding for finding in claims.findings(finished) if "band" in finding.evidence]) == len(claims.JUDGES)


def test_slopes_of_relu_in_place_of_gelu_refute_nothing(finished):
    """Negative control: nets that are ReLU's in all but name are not steeper, nor shallower."""
    swapped = _as_gelu(finished, "relu")
    for finding in (claims.judge_attenuation(swapped), claims.judge_slightly_steeper(swapped, "fan_in")):
        assert finding.verdict is not Verdict.REFUTED


def test_gains_of_relu_are_no_gelu_gains(finished):
    """Negative control: the printed gain is refuted by gates that are ReLU's."""
    assert claims.judge_gain(_as_gelu(finished, "relu")).verdict is Verdict.REFUTED


def test_scales_of_other_weights_do_not_follow_the_mean_field(finished):
    """Negative control: drawn under He's variance, predicted under the fan-in rule."""
    for judge in (claims.judge_energies, claims.judge_scales):
        assert judge(_as_gelu(finished, "gelu, he")).verdict is Verdict.REFUTED


def _as_gelu(dataset, source):
    """The dataset in which GELU's nets drew what those of another case did."""
    changed = dataset.copy(deep=True)
    for name in (*claims.SCALES, *claims.ENERGIES):
        for variable in (name, f"{name}_stderr"):
            for case in (f"gelu, {rule}" for rule in claims.RULES):
                changed[variable].loc[{"case": case}] = dataset[variable].sel(case=source).values
    return changed


def test_extrapolation_is_free_of_what_is_linear_in_one_over_width():
    widths, depths = np.array([100.0, 400.0]), np.array([3, 5])
    limit = np.array([0.5, 0.2]) / np.sqrt(widths[-1])
    scale = np.array([0.5, 0.2]) / np.sqrt(widths[:, None]) * np.exp(7 / widths[:, None])
    name = claims.LABEL_SCALE
    values = {
        name: (("case", "width", "depth"), scale[None]),
        f"{name}_stderr": (("case", "width", "depth"), scale[None]),
    }
    law = extrapolated(xr.Dataset(values, {"case": ["a"], "width": widths, "depth": depths}), "a", claims.LABEL_SCALE)
    np.testing.assert_allclose(np.exp(law.log_scale), limit, rtol=1e-12)
    np.testing.assert_allclose(law.left, 4 * (7 / 400) ** 2, rtol=1e-9)


def test_rates_far_up_are_those_of_the_gain(finished):
    for case in map(str, finished["case"].values[1:]):
        logs = np.log(finished[f"{claims.LABEL_SCALE}_mean_field"].sel(case=case).values)
        rate = claims.rate_of_gain(claims.far_gain(finished, case))
        assert abs(logs[-1] - logs[-2] - rate) < 0.6 / finished.sizes["layers"]


# Worlds in which claims of this study get another verdict: their negative controls.


def gelu_with_the_gain_of_relu(runs):
    dataset = runs["activation_drift"]
    return {"activation_drift": put(dataset, "gate_energy", 0.5, case="gelu, he")}


def gelu_as_printed(runs):
    """Every case but ReLU: energies and gains of unit variance, and scales a little steeper than ReLU's."""
    dataset = runs["activation_drift"]
    relu = dataset[SCALE].sel(case="relu")
    steeper = relu * (dataset["depth"] / dataset["depth"][0]) ** -0.04
    layers = f"{SCALE}_mean_field"
    for case in ("gelu, fan_in", "gelu, he", "gelu, energy"):
        gain = float(dataset["gain"].sel(case=case))
        dataset = put(dataset, "pre_activation_energy", 1.0, case=case)
        dataset = put(dataset, "gate_energy", gain, case=case)
        dataset = put(dataset, SCALE, steeper.transpose("width", "depth"), case=case)
        dataset = put(dataset, layers, dataset[layers].sel(case="relu"), case=case)
    return {"activation_drift": dataset}


CONTROLS = {
    "A17a": gelu_with_the_gain_of_relu,
    "A17b": gelu_as_printed,
}
