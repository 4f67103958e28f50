"""A device's own random numbers: the law of the host's, and the same bits in any chunks and batches."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.common.seeds import stream_key
from meanfield.execution import chunks
from meanfield.execution.run import Run
from meanfield.simulation.arrays import arrays_of
from meanfield.simulation.cost import draw_bytes
from meanfield.simulation.measures import base
from meanfield.simulation.measures.base import FEWEST_DRAWS, MOST_DRAWS_PER_GROUP, draws_per_group
from meanfield.simulation.measures.energies import Energies, draw_energies
from tests.draws import draw_energies_on
from tests.statistics import consistent

NET = mf.MLP(depth=3, width=24, outputs=3)
DRAWS = 2048


def _exact_difference(net, backend, weights, precision):
    measured = mf.simulate(net, draws=DRAWS, seed=1, backend=backend, weights=weights, precision=precision)
    predicted = mf.predict(NET, level="exact")
    draws = [
        consistent((measured[name] - predicted[name]).values, measured[f"{name}_stderr"].values, DRAWS)
        for name in ("label_term", "output_term")
    ]
    return measured, all(draws)


@pytest.mark.parametrize("weights", ["dense", "lazy"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_draws_meet_the_exact_expectation(cupy, monkeypatch, weights, precision):
    monkeypatch.setattr(base, "MOST_DRAWS_PER_GROUP", 512)
    measured, agrees = _exact_difference(NET, cupy, weights, precision)
    assert agrees
    assert {name: measured.attrs[name] for name in ("backend", "precision", "weights")} == {
        "backend": cupy,
        "precision": precision,
        "weights": weights,
    }


def test_weights_of_a_variance_a_fifth_too_large_are_seen(cupy, monkeypatch):
    """Negative control of the comparison above, by 8 standard errors or more in six seeds of six; a tenth is 5 to 6."""
    monkeypatch.setattr(base, "MOST_DRAWS_PER_GROUP", 512)
    assert not _exact_difference(mf.MLP(depth=3, width=24, outputs=3, weight_variance=2.4), cupy, "dense", "float64")[1]


@pytest.mark.parametrize("weights", ["dense", "lazy"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_chunks_and_batches_change_no_bit(cupy, monkeypatch, weights, precision):
    how = {"seed": 3, "backend": cupy, "precision": precision, "weights": weights}
    whole = mf.simulate(NET, draws=45, **how)
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 1e2)
    planned = Run(NET, Energies(weights=weights, backend=cupy, precision=precision), 45, 3).chunks()
    assert [chunk.start % 8 for chunk in planned] == [0] * 6
    xr.testing.assert_identical(mf.simulate(NET, draws=45, **how), whole)
    drawn = draw_energies_on(NET, 3, range(45), weights, cupy, precision)
    for part in (range(1), range(7, 9), range(13, 30)):
        for name, values in draw_energies_on(NET, 3, part, weights, cupy, precision).items():
            np.testing.assert_array_equal(values, drawn[name][part.start : part.stop])


def test_a_draw_outside_its_group_is_another(cupy):
    """Negative control: made alone, draw 3 has other numbers than in its group, for those come from one stream."""
    alone = draw_energies(NET, 3, range(3, 4), arrays=arrays_of(cupy, "float64"))
    assert (alone["label_term"] != draw_energies_on(NET, 3, range(3, 4), backend=cupy)["label_term"]).all()


def test_groups_are_a_matter_of_the_net_alone():
    """Of 4 GiB, small nets by the thousand; of up to 12 GiB where draws are few; of one draw that takes more."""
    small, wide = NET, mf.MLP(depth=64, width=1024)
    many, larger, most = (
        draws_per_group(draw_bytes(net, "dense", precision))
        for net, precision in ((small, "float64"), (wide, "float64"), (wide, "float32"))
    )
    assert many == MOST_DRAWS_PER_GROUP
    assert 2 * larger <= most <= FEWEST_DRAWS
    assert larger > 2 * 7  # of which a device worked 17 ms in 37
    assert draws_per_group(draw_bytes(mf.MLP(depth=64, width=4096), "dense", "float64")) == 1


def test_keys_of_groups_are_their_own():
    """Neighbouring groups, seeds and purposes share no key."""
    keys = {
        stream_key(seed, purpose, first) for seed in (0, 1) for purpose in ("weights", "labels") for first in (0, 8)
    }
    assert len(keys) == 8
    assert all(0 <= key < 2**64 for key in keys)


def test_draws_of_two_groups_differ(cupy):
    drawn = draw_energies_on(NET, 0, range(24), backend=cupy)["label_term"][:, -1]
    assert len(set(drawn)) == 24


@pytest.mark.parametrize("other", [{"backend": "cupy"}, {"precision": "float32"}])
def test_pieces_of_another_backend_or_precision_are_not_taken(cupy, tmp_path, other):
    how = {"draws": 10, "seed": 3}
    here = mf.simulate(NET, resume_in=tmp_path, **how)
    there = mf.simulate(NET, resume_in=tmp_path, **how, **other)
    assert (there.label_term != here.label_term).any()
    xr.testing.assert_identical(there, mf.simulate(NET, **how, **other))
    kept = [{chunk.key for chunk in Run(NET, Energies(**changed), 10, 3).chunks()} for changed in ({}, other)]
    assert not kept[0] & kept[1]
