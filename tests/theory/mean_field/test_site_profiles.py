"""The label term at every site of a zero-padded grid: mean field against draws, at two channel counts."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from tests.draws import drop_an_offset, terms_alone
from tests.statistics import consistent

DRAWS, FEW = 3072, 512
NET = mf.ConvNet(depth=4, channels=20, grid=(5,), kernel=(3,), padding="zero", readout="convolution")
RESIDUAL = mf.ResidualConvNet(
    depth=2, stem=1, channels=32, grid=(5,), kernel=(3,), padding="zero", readout="convolution"
)


@pytest.fixture(scope="module")
def ratios():
    """Measured over predicted (layer, site), with errors, at 20 and 40 channels."""
    return [_ratio(replace(NET, channels=channels), NET) for channels in (20, 40)]


def _ratio(net, theory_of, draws=DRAWS):
    with terms_alone():
        measured = mf.simulate(net, draws=draws, seed=5, by_site=True)
    predicted = mf.predict(replace(theory_of, channels=net.channels), level="mean_field", by_site=True)
    predicted.attrs["architecture"] = measured.attrs["architecture"]  # the negative control is of another net
    compared = mf.compare(measured, predicted)
    return compared["label_term_by_site_ratio"].values, compared["label_term_by_site_ratio_stderr"].values


def test_profiles_extrapolate_to_the_mean_field(ratios):
    """2 m(2n) - m(n) leaves a bias of second order, below 6 % here; the first order is there to be seen."""
    (narrow, narrow_error), (wide, wide_error) = ratios
    extrapolated, error = 2 * wide - narrow, np.hypot(2 * wide_error, narrow_error)
    assert consistent(extrapolated - 1, error, DRAWS, allowance=0.06)
    assert not consistent(narrow - 1, narrow_error, DRAWS, allowance=0.06)


def test_a_circular_profile_is_told_apart(ratios):
    """Negative control, padding swapped: edges and middle of the drawn profile are not alike."""
    circular = replace(NET, padding="circular")
    ratio, error = _ratio(replace(NET, channels=40), circular, FEW)
    assert not consistent(ratio - 1, error, FEW, allowance=0.3)


def test_profiles_of_residual_nets():
    ratio, error = _ratio(RESIDUAL, RESIDUAL, FEW)
    assert consistent(ratio - 1, error, FEW, allowance=0.15)


def test_profiles_average_to_the_layers():
    net = replace(NET, inputs=2)
    measured = mf.simulate(net, draws=2, seed=0, by_site=True)
    predicted = mf.predict(net, level="mean_field", by_site=True)
    for dataset, name in ((measured, "update_energy"), (measured, "output_term"), (predicted, "label_term")):
        assert dataset[f"{name}_by_site"].dims == ("layer", "site")
        np.testing.assert_allclose(dataset[f"{name}_by_site"].mean("site"), dataset[name], rtol=1e-12)
    plain = mf.simulate(net, draws=2, seed=0)
    np.testing.assert_array_equal(plain["label_term"], measured["label_term"])


def test_circular_grids_have_flat_profiles_and_zero_padded_ones_mirror():
    circular = mf.predict(replace(NET, padding="circular"), level="mean_field", by_site=True).label_term_by_site
    np.testing.assert_allclose(circular, np.broadcast_to(circular[:, :1], circular.shape), rtol=1e-12)
    zero = mf.predict(NET, level="mean_field", by_site=True).label_term_by_site
    np.testing.assert_allclose(zero, zero[:, ::-1], rtol=1e-12)
    assert np.all(np.diff(zero[:, :3]) > 0)


def test_profiles_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="a TiedLoop has no sites"):
        mf.simulate(mf.TiedLoop(depth=2, width=4), draws=2, seed=0, by_site=True)
    with pytest.raises(ValueError, match="by_site are for nets"):
        mf.predict(mf.TiedLoop(depth=2, width=4), level="mean_field", by_site=True)


def test_a_dropped_offset_is_seen(monkeypatch):
    """Negative control: draws that never look left have a lopsided profile."""
    drop_an_offset(monkeypatch)
    ratio, error = _ratio(NET, NET, FEW)
    assert not consistent(ratio - 1, error, FEW, allowance=0.3)
