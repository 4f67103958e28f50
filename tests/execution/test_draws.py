"""Numbers of draws and seeds, however they are given: NumPy's integers, and seeds of any size, last into the file."""

import json

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.execution.run import Run, simulate_all
from meanfield.nets.block_net import BlockNet
from meanfield.simulation.measures.blocks import TrainedStreams
from meanfield.simulation.measures.propagation import ActivationStatistics
from sims.identities.__main__ import STUDY as identities
from sims.looped_update import STUDY as looped_update
from tests.sims.commands import finished_run

# As numpy.random.SeedSequence().entropy gives it: more than any integer of a file can hold.
ENTROPY = 243799254704924441050048792905230269161
RATES = {role: {"learning_rate": 0.1} for role in ("input", "hidden", "output")}


def _run(net, measure):
    return lambda **how: simulate_all([Run(net, measure, **how)])[0]


MEASURES = {
    "simulate": lambda **how: mf.simulate(mf.MLP(depth=2, width=4), **how),
    "simulate, loop": lambda **how: mf.simulate(mf.TiedLoop(depth=2, width=4), **how),
    "PairOverlaps": lambda **how: mf.simulate(
        mf.MLP(depth=2, width=9, activation="linear"), measure=mf.PairOverlaps(pairs=[((1, 1), (1, 1))]), **how
    ),
    "StreamUpdates": lambda **how: mf.simulate(mf.TiedLoop(depth=2, width=4), measure=mf.StreamUpdates(), **how),
    "ActivationStatistics": _run(mf.MLP(depth=2, width=4, activation="gelu"), ActivationStatistics()),
    "TrainedStreams": _run(
        BlockNet(width=4, depth=2),
        TrainedStreams(optimizer="sgd", hyperparameters=RATES, momentum=False, steps=1),
    ),
}


def _filed(dataset, path):
    dataset.to_netcdf(path, engine="netcdf4")
    with xr.open_dataset(path, engine="netcdf4") as stored:
        return stored.load()


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_integers_of_numpy_are_integers(measure, tmp_path):
    given = measure(draws=np.int64(3), seed=np.uint32(7))
    xr.testing.assert_identical(given, measure(draws=3, seed=7))
    xr.testing.assert_identical(_filed(given, tmp_path / "run.nc"), given)
    assert json.loads(given.attrs["provenance"])["draws"] == 3


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_seeds_of_any_size_are_kept_as_text(measure, tmp_path):
    stored = _filed(measure(draws=2, seed=ENTROPY), tmp_path / "run.nc")
    assert stored.attrs["seed"] == str(ENTROPY)
    assert measure(draws=2, seed=5).attrs["seed"] == "5"
    assert not stored.drop_attrs().equals(measure(draws=2, seed=ENTROPY % 2**64).drop_attrs())


@pytest.mark.parametrize("how", [{"draws": 1, "seed": 0}, {"draws": 2, "seed": -1}, {"draws": 2.0, "seed": 0}])
@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_bad_numbers_are_refused(measure, how):
    with pytest.raises((TypeError, ValueError), match=r"(draws|seed) is (1|-1|2\.0); it must be"):
        measure(**how)


@pytest.mark.parametrize(
    ("simulation", "arguments"),
    [(looped_update, ["--loops", "2", "4", "--width", "8", "--draws", "4", "--workers", "1"]), (identities, [])],
)
def test_a_command_takes_such_seeds(simulation, arguments, tmp_path):
    """Twice, so that it is read back too."""
    arguments = [*arguments, "--seed", str(ENTROPY)]
    for _ in range(2):
        run = finished_run(simulation, arguments, tmp_path / "run.nc")
        assert run.attrs["seed"] == str(ENTROPY)


def _plain(value):
    return all(map(_plain, value)) if isinstance(value, list | tuple) else type(value) in (int, float, bool, str)


ONE, TWO = np.int64(1), np.int32(2)


SPECS = [
    (mf.MLP, {"depth": TWO, "width": np.array([3, 4]), "outputs": TWO, "inputs": ONE, "input_width": TWO}),
    (mf.MLP, {"depth": ONE, "width": TWO, "weight_variance": np.float32(2)}),
    (mf.ConvNet, {"depth": ONE, "channels": TWO, "grid": np.array([4]), "kernel": [TWO], "input_channels": ONE}),
    (mf.ResidualMLP, {"depth": TWO, "width": TWO, "block_depth": TWO, "stem": ONE, "tail": ONE}),
    (mf.ResidualConvNet, {"depth": TWO, "channels": TWO, "grid": (TWO, TWO), "kernel": (ONE, ONE)}),
    (mf.TiedLoop, {"depth": TWO, "width": TWO, "alpha": np.float32(0.5), "weight_variance": TWO, "tied": np.True_}),
    (mf.Batch, {"input_correlation": np.float32(0.5), "label_mean": TWO}),
    (BlockNet, {"width": TWO, "depth": TWO, "block_depth": TWO, "block_width": TWO, "input_width": TWO}),
    (BlockNet, {"width": TWO, "depth": TWO, "samples": TWO, "biases": np.False_, "bias_variance": np.float32(1)}),
    (BlockNet, {"width": TWO, "depth": TWO, "multipliers": [ONE, TWO, ONE], "variances": (ONE, TWO, np.float32(1))}),
]


@pytest.mark.parametrize(("family", "options"), SPECS)
def test_specs_hold_plain_numbers(family, options):
    described = {name: value for name, value in family(**options).describe().items() if value is not None}
    assert all(map(_plain, described.values())), described
    assert json.loads(json.dumps(described)) == {
        k: list(v) if isinstance(v, tuple) else v for k, v in described.items()
    }


def test_a_net_of_numpys_numbers_is_the_same_net(tmp_path):
    given = mf.simulate(mf.MLP(depth=TWO, width=TWO, weight_variance=np.float32(2)), draws=2, seed=0)
    xr.testing.assert_identical(given, mf.simulate(mf.MLP(depth=2, width=2, weight_variance=2.0), draws=2, seed=0))
    _filed(given, tmp_path / "run.nc")


def test_workers_may_be_counted_by_numpy():
    assert mf.Workers(TWO) == mf.Workers(2)
    assert type(mf.Workers(TWO).processes) is int
