"""`simulate`: the same numbers for any number of workers, chunks and interruptions, in one schema."""

import json

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.common.files import require_writable, write_whole
from meanfield.common.seeds import derived_seed, stream
from meanfield.execution import chunks, run
from meanfield.execution.chunks import PieceStore
from meanfield.execution.run import Run, simulate_all
from meanfield.simulation.measures.energies import Energies

NET = mf.ConvNet(depth=3, channels=6, grid=(5,), readout="convolution")


def _energies(net, draws):
    return chunks.Chunk(net, Energies(weights="dense"), 0, 0, draws)


@pytest.fixture
def many_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 1e4)


def test_workers_and_chunks_change_no_number(monkeypatch):
    whole = mf.simulate(NET, draws=40, seed=3)
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 1e6)
    assert len(Run(NET, Energies(), 40, 3).chunks()) > 2
    xr.testing.assert_identical(mf.simulate(NET, draws=40, seed=3), whole)
    xr.testing.assert_identical(mf.simulate(NET, draws=40, seed=3, workers=2), whole)


def test_processes_begin_where_work_is_longer_than_they_take_to(many_chunks, monkeypatch):
    """With no number of workers given; a given one is taken at its word."""

    def no_processes(*_):
        raise ChildProcessError("asked for processes")

    monkeypatch.setattr(run, "pool", no_processes)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr(chunks.Chunk, "seconds", 0.01)
    mf.simulate(NET, draws=4, seed=3, workers=mf.Workers())
    for workers in (2, mf.Workers(2)):
        with pytest.raises(ChildProcessError, match="asked for processes"):
            mf.simulate(NET, draws=4, seed=3, workers=workers)
    monkeypatch.setattr(run, "START_SECONDS", 0.0)
    with pytest.raises(ChildProcessError, match="asked for processes"):
        mf.simulate(NET, draws=4, seed=3, workers=mf.Workers())
    monkeypatch.setattr(run, "START_SECONDS", 60.0)
    monkeypatch.setattr(chunks.Chunk, "seconds", 100.0)
    with pytest.raises(ChildProcessError, match="asked for processes"):
        mf.simulate(NET, draws=4, seed=3, workers=mf.Workers())


def test_an_interrupted_run_continues_from_its_pieces(many_chunks, monkeypatch, tmp_path):
    whole = mf.simulate(NET, draws=12, seed=3)
    real, computed = chunks.compute_chunk, []

    def counted(chunk):
        if len(computed) == 5:
            raise KeyboardInterrupt
        computed.append(chunk.start)
        return real(chunk)

    monkeypatch.setattr(chunks, "compute_chunk", counted)
    with pytest.raises(KeyboardInterrupt):
        mf.simulate(NET, draws=12, seed=3, resume_in=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 5
    monkeypatch.setattr(chunks, "compute_chunk", lambda chunk: (computed.append(chunk.start), real(chunk))[1])
    xr.testing.assert_identical(mf.simulate(NET, draws=12, seed=3, resume_in=tmp_path), whole)
    assert sorted(computed) == sorted(set(computed)), "a finished piece must not be computed again"


def test_equal_runs_of_one_study_are_computed_once(many_chunks, monkeypatch, tmp_path):
    real, computed = chunks.compute_chunk, []
    monkeypatch.setattr(chunks, "compute_chunk", lambda chunk: (computed.append(chunk), real(chunk))[1])
    runs = [Run(net, Energies(), 6, seed=seed) for net, seed in ((NET, 3), (NET, 4), (NET, 3))]
    first, other, again = simulate_all(runs, store=PieceStore(tmp_path))
    assert len(computed) == 2 * len(runs[0].chunks())
    xr.testing.assert_identical(first, again)
    assert not np.array_equal(first["label_term"], other["label_term"])


def test_pieces_of_another_seed_or_net_are_not_taken(many_chunks, tmp_path):
    mf.simulate(NET, draws=4, seed=3, resume_in=tmp_path)
    other = mf.simulate(NET, draws=4, seed=4, resume_in=tmp_path)
    xr.testing.assert_identical(other, mf.simulate(NET, draws=4, seed=4))


def test_more_draws_keep_the_first_ones():
    short, long = (chunks.compute_chunk(_energies(NET, stop)) for stop in (3, 9))
    np.testing.assert_array_equal(long["label_term"][:3], short["label_term"])


def test_schema():
    measured = mf.simulate(NET, draws=4, seed=0)
    for name in ("update_energy", "label_term", "output_term", "overlap_energy"):
        assert measured[name].dims == ("layer",)
        assert measured[f"{name}_covariance"].dims == ("layer", "layer_other")
        assert set(measured[name].attrs) >= {"long_name", "symbol", "definition", "scaling", "source"}
    for name in ("mean_update_energy", "learning_rate_scale", "label_learning_rate_scale"):
        assert measured[name].dims == ()
    np.testing.assert_allclose(measured.update_energy, measured.label_term + measured.output_term)
    np.testing.assert_allclose(measured.mean_update_energy, measured.update_energy.mean())
    np.testing.assert_allclose(measured.learning_rate_scale, measured.mean_update_energy**-0.5)
    assert list(measured.layer.values) == [1, 2, 3]
    assert json.loads(measured.attrs["architecture"])["family"] == "ConvNet"
    assert json.loads(measured.attrs["provenance"])["versions"]["numpy"] == np.__version__
    assert measured.attrs["weights"] == "dense"


def test_every_measured_variable_is_registered():
    measured = mf.simulate(NET, draws=4, seed=0)
    companions = ("_stderr", "_largest_share", "_covariance")
    names = {name for name in map(str, measured.data_vars) if not name.endswith(companions)}
    assert names <= set(mf.QUANTITIES)


def test_learning_rate_scale_error_is_the_spread_of_its_resamples():
    """First-order error against the bootstrap, which knows nothing of derivatives."""
    net = mf.MLP(depth=2, width=32)
    piece = chunks.compute_chunk(_energies(net, 2000))
    energy = (piece["label_term"] + piece["output_term"]).mean(axis=1)
    rng = np.random.default_rng(0)
    resampled = [energy[rng.integers(2000, size=2000)].mean() ** -0.5 for _ in range(1000)]
    measured = mf.simulate(net, draws=2000, seed=0)
    assert float(measured.learning_rate_scale_stderr) == pytest.approx(np.std(resampled), rel=0.15)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"draws": 1}, ValueError, "draws is 1; it must be at least 2 .one draw has no standard error"),
        ({"draws": 2.0}, TypeError, "whole number"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"workers": 0}, ValueError, "workers is 0"),
        ({"weights": "sparse"}, ValueError, "'auto', 'dense', 'lazy'"),
        ({"backend": "torch"}, ValueError, "'numpy'"),
        ({"inputs": np.zeros((1, 2, 5))}, ValueError, r"inputs has shape \(1, 2, 5\)"),
        ({"inputs": np.full((1, 6, 5), np.nan)}, ValueError, "NaN"),
    ],
)
def test_bad_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        mf.simulate(NET, **{"draws": 4, "seed": 0} | options)


def test_a_net_too_large_for_the_machine_says_how_much_it_needs():
    with pytest.raises(MemoryError, match=r"needs about .* GiB, the machine has .*; lower width, channels"):
        mf.simulate(mf.MLP(depth=100, width=10**6), draws=2, seed=0, weights="dense")


def test_streams_are_keyed_by_seed_purpose_and_draw():
    first = stream(1, "weights", 0).standard_normal(4)
    np.testing.assert_array_equal(first, stream(1, "weights", 0).standard_normal(4))
    for other in (stream(2, "weights", 0), stream(1, "labels", 0), stream(1, "weights", 1)):
        assert not np.any(first == other.standard_normal(4))
    assert derived_seed(1, "depth 3") != derived_seed(1, "depth 4") != derived_seed(2, "depth 4")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def fail(temporary):
        temporary.write_text("half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_piece_store_round_trip_and_discard(tmp_path):
    store = PieceStore(tmp_path / "pieces")
    assert store.load("a", 3) is None
    store.save("a", {"label_term": np.arange(3.0)})
    np.testing.assert_array_equal(store.load("a", 3)["label_term"], np.arange(3.0))
    store.discard()
    assert not store.folder.exists()


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write to the folder .*file"):
        require_writable(tmp_path / "file")
