"""Exact energies of nets of many depths from one recursion, against `predict` on each net by itself."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory import exact as depth_scan
from meanfield.theory import laws
from meanfield.theory.exact import exact_terms_by_depth

DEPTHS = (1, 2, 7, 40)


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("level", ["exact", "mean_field", "law"])
def test_energies_are_those_of_each_net(activation, level):
    net = mf.MLP(depth=1, width=24, outputs=3, activation=activation, head="fan_in")
    scan = depth_scan.energies_by_depth(net, DEPTHS)
    column = scan["log_energy" if level == "exact" else f"log_energy_{level}"]
    for depth in DEPTHS:
        predicted = mf.predict(
            mf.MLP(depth=depth, width=24, outputs=3, activation=activation, head="fan_in"), level=level
        )
        for name in depth_scan.ENERGIES:
            at = column.sel(net_depth=depth, energy=name)
            if name in predicted and (level == "exact" or name not in depth_scan.EXACT_ALONE):
                values = predicted[name].values
                assert np.exp(at.sel(layers="last")) == pytest.approx(values[-1], rel=1e-10)
                assert np.exp(at.sel(layers="mean")) == pytest.approx(values.mean(), rel=1e-10)
            else:
                assert np.isnan(at).all()


@pytest.mark.parametrize("width", [4, 16, 64])
def test_a_hundred_thousand_layers(width):
    """Far beyond the range of floats all energies grow as l^2 times a constant factor a layer: none has drowned."""
    ends = np.array([60_000, 80_000, 10**5])
    logs = depth_scan.energies_by_depth(mf.MLP(depth=1, width=width), ends.tolist())["log_energy"].sel(layers="last")
    assert logs.values.min() > 4000
    steps = np.diff(logs.values - 2 * np.log(ends)[:, None], axis=0)
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-5)


def test_cut_nets_need_equal_layers_and_enough_of_them():
    for net, depth in [(mf.MLP(depth=3, width=(4, 5, 6)), 2), (mf.MLP(depth=3, width=4), 4)]:
        with pytest.raises(ValueError, match=f"depth {depth} cannot be cut"):
            list(exact_terms_by_depth(net, [depth]))


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_finite_width_excess(activation):
    scanned = depth_scan.finite_width_excess(mf.MLP(depth=1, width=1, activation=activation), (32, 64), (0.25, 2), (5,))
    for width in (32, 64):
        net = mf.MLP(depth=2 * width, width=width, activation=activation)
        exact, limit = (mf.predict(net, level=level)["overlap_energy"].values for level in ("exact", "mean_field"))
        excess = exact / limit - 1
        expected = excess[[width // 4 - 1, 2 * width - 1]]
        np.testing.assert_allclose(scanned["excess_at_share"].sel(width=width), expected, rtol=1e-9)
        np.testing.assert_allclose(scanned["excess_at_layer"].sel(width=width), excess[[4]], rtol=1e-9)


def test_output_share():
    """A/B and the slope of eta* between L and 1.1 L, each net predicted by itself."""
    share = depth_scan.output_share(mf.MLP(depth=1, width=500), ("he", "mup"), (2, 500), (10, 50))
    for head in ("he", "mup"):
        for outputs in (2, 500):
            for depth in (10, 50):
                ends = [
                    mf.predict(mf.MLP(depth=d, width=500, outputs=outputs, head=head), level="exact")
                    for d in (depth, round(1.1 * depth))
                ]
                at = share.sel(head=head, outputs=outputs, share_depth=depth)
                ratio = float((ends[0].output_term / ends[0].label_term)[-1])
                assert np.exp(at["log_output_over_label"]) == pytest.approx(ratio, rel=1e-10)
                slope = float(np.log(ends[1].learning_rate_scale / ends[0].learning_rate_scale) / np.log(1.1))
                assert float(at["scale_slope"]) == pytest.approx(slope, rel=1e-9)


def test_single_site_law_names_its_activations():
    with pytest.raises(ValueError, match="'relu', 'linear'"):
        laws.single_site_overlap(3, "gelu")
