"""The command on looped Transformers: numbers, figure, report, refusals."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from sims.common.datasets import ENDS
from sims.common.tables import drawn
from sims.looped_transformer import __main__ as study
from sims.looped_transformer import claims
from sims.looped_transformer.__main__ import STUDY as simulation
from tests.sims.claim_controls import put
from tests.sims.commands import finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("looped") / "run.nc"
    sizes = ["--loops", "1", "2", "4", "--width", "8", "--tokens", "4", "--vocabulary", "8", "--draws", "3"]
    return finished_run(simulation, ["--preset", "smoke", *sizes, "--steps", "2", "--workers", "1"], path)


def test_the_split_adds_up(finished):
    parts = finished["initial_energy"] + finished["cross_term"] + finished["correlation_term"]
    np.testing.assert_allclose(parts.transpose(*finished["residual_energy"].dims), finished["residual_energy"])


def test_every_judge_finds(finished):
    assert len(claims.JUDGES.findings(finished)) == len(claims.JUDGES)


def test_report_prints_the_numbers_of_the_dataset(finished):
    printed = simulation.document(finished).text()
    for model, scaling, end in (("looped", "sqrt", 0), ("deep", "none", -1), ("looped", "linear", -1)):
        at = finished.sel(model=model, scaling=scaling).isel(update=end, loops=-1)
        assert drawn(at, "residual_energy") in printed
    assert drawn(finished.sel(rule="aligned", scaling="sqrt").isel(loops=0), "first_order_change") in printed
    for words in ("Slopes of H", "The split at 4 loops", "Correlation of increments", "Verdicts"):
        assert words in printed


def test_report_compares_the_rivals(finished):
    tables = simulation.document(finished).text().split("Rivals: ")[1:]
    compared = {"stream, |h_L(1)": ("stream_change", 1), "stream, |h_L(2)": ("stream_change", 2), "loss": ("loss", 2)}
    for (words, (name, update)), table in zip(compared.items(), tables, strict=True):
        printed = " ".join(line for line in table.splitlines() if line.split()[:1] == ["4"])
        at = finished.sel(loops=4, update=update)
        cells = {
            model: [drawn(at.sel(model=model, scaling=scaling), name) for scaling in ("sqrt", "linear")]
            for model in ("looped", "deep")
        }
        cells["looped"].append(drawn(at, f"rezero_{name}"))
        for model, of_model in cells.items():
            of_model.append(drawn(at.sel(model=model), f"deepnorm_{name}"))
        places = [printed.index(cell) for cell in (*cells["looped"], *cells["deep"])]
        assert places == sorted(places)
        assert words in table.splitlines()[0]


def test_before_and_after_training_are_the_first_and_the_last_update():
    """Of two loops, whose four additions are alike by 0, 1 and 1/2 at three times."""
    energies = {f"trained_residual_energy{end}": (("step", "update"), [[1.0, 2.0, 3.0]]) for end in ENDS}
    overlaps = np.eye(4) + np.array([0.0, 1.0, 0.5])[:, None, None] * (1 - np.eye(4))
    measured = xr.Dataset(energies | {"trained_increment_correlation": (("update", "a", "b"), overlaps)})
    assert study._by_rate(measured)["energy_by_rate"].tolist() == [1.0, 3.0]
    before, after = study._correlations(measured)["increment_correlation"]
    assert before[0, 1] == 0.0
    assert after[0, 1] == pytest.approx(2 / 3)  # four pairs of a half, between loops of 1 + 1 + 2 / 2 each


def test_the_toy_loop_adds_twice_a_loop(finished):
    """As often as attention and FFN do."""
    for loops in finished["loops"].values:
        loop = mf.TiedLoop(depth=2 * int(loops), width=8, alpha="sqrt")
        toy = mf.predict(loop, level="mean_field")["log_correlation_term"][-1]
        assert float(finished["log_toy_correlation_term"].sel(loops=loops)) == pytest.approx(float(toy))


def test_deepnorm_keeps_energies_and_moves_streams(finished):
    np.testing.assert_allclose(finished["deepnorm_residual_energy"], 1.0, rtol=1e-5)
    change = finished["deepnorm_stream_change"]
    assert (change.sel(update=0) == 0).all()
    assert (change.sel(update=[1, 2]) > 0).all()


# Worlds in which claims of this study get another verdict: their negative controls.


def _looped_transformer(model, scaling, name, power):
    """Numbers of one kind of Transformers that go as a power of the loops, before training and after it."""

    def control(runs):
        dataset = runs["looped_transformer"]
        law = dataset["loops"].astype(float) ** power * (1 + 0 * dataset["update"])
        return {"looped_transformer": put(dataset, name, law, model=model, scaling=scaling)}

    return control


def _first_order_change(scaling, power):
    """Streams of looped Transformers that one update moves as a power of the loops."""

    def control(runs):
        dataset = runs["looped_transformer"]
        law = dataset["loops"].astype(float).values ** power
        for rule in ("isotropic", "aligned"):
            dataset = put(dataset, "first_order_change", law, rule=rule, scaling=scaling)
        return {"looped_transformer": dataset}

    return control


def rates_do_not_matter(runs):
    dataset = runs["looped_transformer"]
    return {"looped_transformer": put(dataset, "energy_by_rate", 2.0, scaling="sqrt")}


CONTROLS = {
    "L1t": _looped_transformer("looped", "sqrt", "correlation_term", 3.0),
    "L5t": _first_order_change("linear", 1.0),
    "L5u": _first_order_change("sqrt", 1.0),
    "L6a": _looped_transformer("looped", "linear", "residual_energy", 1.0),
    "L6b": _looped_transformer("deep", "sqrt", "residual_energy", 0.3),
    "L6c": rates_do_not_matter,
}
