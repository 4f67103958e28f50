"""Settings beside a net's own: one set of draws under all heads, exponents of parts, and where the exponent turns."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.verification.verdicts import Verdict
from sims.cnn_overlap import claims, settings
from sims.cnn_overlap.__main__ import STUDY as cnn_overlap
from sims.cnn_overlap.__main__ import settings_table
from sims.cnn_overlap.settings import PAPERS, ByOutputs, DrawnNet, ReadoutSetting, terms_under
from sims.common.datasets import suffixed
from tests.sims.claim_controls import put
from tests.sims.commands import finished_run, without_figure

SCALES = tuple(settings.PARTS)
OWN = "convolution, 10, he"
NET = mf.ConvNet(depth=5, channels=16, grid=(6,), kernel=(3,), outputs=4, head="fan_in")


@pytest.fixture(scope="module")
def dataset(smoke_run):
    return smoke_run("cnn_overlap")


@pytest.mark.parametrize("readout", ["pooled", "convolution"])
@pytest.mark.parametrize("head", ["he", "mup"])
def test_draws_under_one_head_are_draws_under_all(readout, head):
    """Net by net: means, their errors and the ratio are those of nets drawn under the other head by the same seed."""
    net = NET.replace(readout=readout)
    drawn, other = (mf.simulate(each, draws=12, seed=5) for each in (net, net.replace(head=head)))
    factor = DrawnNet(net, drawn).under(ReadoutSetting(readout, 4, head))
    carried, direct = terms_under(drawn, factor), terms_under(other, 1.0)
    for name in (*SCALES, "output_over_label"):
        for end in ("", "_stderr"):
            np.testing.assert_allclose(carried[f"{name}{end}"], direct[f"{name}{end}"], rtol=1e-8)


def test_the_setting_of_the_net_itself_has_its_own_numbers(dataset):
    at = settings.scales_under(dataset, OWN)
    for name in SCALES[:2]:
        for end in ("", "_stderr"):
            np.testing.assert_allclose(at[f"{name}{end}"], dataset[f"adjusted_{name}{end}"], rtol=1e-12)
        for level in settings.LEVELS:
            np.testing.assert_allclose(at[f"{name}_{level}"], dataset[f"{name}_{level}"], rtol=1e-12)
    ratio = dataset["adjusted_output_term"] / dataset["adjusted_label_term"]
    np.testing.assert_allclose(at["output_over_label"][-1], ratio.isel(depth=-1, layer=-1))


def test_errors_count_what_labels_and_outputs_share():
    """Of eta* as drawn by the library itself."""
    drawn = mf.simulate(NET, draws=40, seed=1)
    found = terms_under(drawn, 1.0)
    for name in SCALES[:2]:
        np.testing.assert_allclose(found[f"{name}_stderr"], drawn[f"{name}_stderr"], rtol=1e-10)


def _source(net):
    return DrawnNet(net, suffixed(mf.predict(net, level="mean_field"), "mean_field"))


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
@pytest.mark.parametrize("readout", ["pooled", "convolution"])
@pytest.mark.parametrize("outputs", [1, 10])
def test_two_numbers_of_outputs_tell_of_all(readout, outputs):
    net = NET.replace(readout=readout, outputs=outputs)
    law = ByOutputs.of(_source(net), None)
    for setting in (
        ReadoutSetting(readout, 37, "he"),
        ReadoutSetting(readout, 2, "mup"),
        ReadoutSetting(readout, outputs, "fan_in"),
    ):
        expected = mf.predict(setting.on(net), level="mean_field")["log_learning_rate_scale"]
        factor = setting.on(net).head_variance / net.head_variance
        np.testing.assert_allclose(law.log_scale(setting.outputs, factor), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_the_exponent_is_the_papers_at_the_turning_point(dataset):
    """Fewer outputs have a flatter law, more a steeper one."""
    for setting in (PAPERS, ReadoutSetting("convolution", 100, "he")):
        at = settings.scales_under(dataset, str(setting))
        net = setting.on(claims.net_of(dataset))
        turning = float(at["turning"]) * net.channels / net.depth
        logs = [
            [float(mf.predict(each, level="mean_field")["log_learning_rate_scale"]) for each in (few, many)]
            for depth in dataset["depth"].values
            for few, many in [[net.replace(depth=int(depth), outputs=int(turning) + more) for more in (0, 1)]]
        ]
        few, many = (
            claims.Series.of(at, SCALES[0]).slope_of("depth", np.array(each)) for each in zip(*logs, strict=True)
        )
        assert few > -1.5 > many


def test_settings_are_drawn_once_a_readout_and_never_twice():
    def drawn(**changes):
        nets = settings.nets_beside(NET.replace(**changes))
        return [str(ReadoutSetting.of(net)) for net in nets]

    paper, wide = str(PAPERS), "convolution, 100, he"
    assert drawn() == [paper, wide]
    assert drawn(readout="pooled", outputs=10) == [wide]
    assert drawn(readout="convolution", outputs=100) == [paper]
    assert str(settings.settings_of(PAPERS.on(NET))[0]) == paper
    assert len(settings.settings_of(PAPERS.on(NET))) == 3


@pytest.mark.parametrize(
    ("exponent", "verdict"), [(-1.5, Verdict.CONFIRMED), (-1.9, Verdict.REFUTED), (-1.2, Verdict.REFUTED)]
)
def test_the_papers_head_is_judged_by_its_own_draws(dataset, exponent, verdict):
    """Negative control: another power; theory has the same here, so that finite channels add nothing."""
    for name in (SCALES[0], *(f"{SCALES[0]}_{level}" for level in settings.LEVELS)):
        dataset = put(dataset, f"setting_{name}", dataset["depth"] ** exponent, setting=str(PAPERS))
    assert claims.judge_papers_head(dataset).verdict is verdict
    assert claims.judge_exponent(dataset, SCALES[0]).evidence.startswith("exponent -1.6")


def test_few_draws_of_the_papers_head_decide_nothing(dataset):
    """They count, not those of the net itself."""
    dataset = put(dataset, f"setting_{SCALES[0]}", dataset["depth"] ** -1.5, setting=str(PAPERS))
    assert claims.judge_papers_head(dataset.assign_attrs(draws_beside=2)).verdict is Verdict.INCONCLUSIVE


def test_a_run_under_the_papers_head_is_judged_once(smoke_run, dataset):
    first = "under the paper's head"
    assert sum(first in finding.claim for finding in claims.findings(dataset)) == 1
    pooled = dataset.assign_attrs(architecture=dataset.attrs["architecture"].replace("convolution", "pooled"))
    pooled.attrs["architecture"] = pooled.attrs["architecture"].replace('"he"', '"fan_in"')
    assert settings.setting_of(pooled) == PAPERS
    assert not any(first in finding.claim for finding in claims.findings(pooled))
    counted = [finding for finding in claims.findings(dataset) if "band" in finding.evidence]
    assert len(counted) <= len(claims.JUDGES)


def test_nets_without_theory_have_drawn_slopes_alone(tmp_path):
    options = ["--depth", "4", "--channels", "8", "--grid", "6", "--kernel", "3", "--draws", "20", "--workers", "1"]
    made = finished_run(cnn_overlap, [*options, "--activation", "gelu"], tmp_path / "run.nc")
    assert np.isnan(made["setting_turning"]).all()
    assert np.isnan(made["setting_learning_rate_scale_mean_field"]).all()
    assert np.isfinite(made["setting_learning_rate_scale"]).all()
    assert made.attrs["draws_beside"] == 2
    row = next(line for line in settings_table(made).text().splitlines() if f"{PAPERS} " in line)
    assert row.split()[6:] == ["-", "-", "-", "-", "5", "-"]


def test_nothing_is_warned_of_that_the_report_says(tmp_path, capsys):
    """Of a pooled readout with few channels, beside a net without."""
    options = ["--depth", "4", "--channels", "8", "--grid", "6", "--kernel", "3", "--draws", "8", "--workers", "1"]
    assert without_figure(cnn_overlap, [*options, "--padding", "zero"], tmp_path / "run.nc") == 0
    assert capsys.readouterr().err == ""


def test_one_depth_has_no_slope(tmp_path):
    options = ["--depth", "1", "--channels", "8", "--grid", "6", "--kernel", "3", "--draws", "8", "--workers", "1"]
    made = finished_run(cnn_overlap, options, tmp_path / "run.nc")
    assert isinstance(made, xr.Dataset)
    assert np.isnan(made["setting_turning"]).all()
