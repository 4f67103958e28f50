"""What explanations say of few channels and of shallow nets, against exact expectations."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.transfer.rules import log_channel_correction


def test_finite_channels_change_a_carried_rate_as_exact_expectations_say():
    """From the shallow net to the deep one, not back."""
    nets = [mf.MLP(depth=depth, width=64, outputs=8) for depth in (4, 8)]
    exact, limit = (np.log(mf.explain_transfer(1.0, *nets, rule=rule).rate) for rule in ("exact", "whole_update"))
    assert abs(exact - limit) > 0.01
    assert log_channel_correction(*nets) == pytest.approx(exact - limit)


def test_a_warning_says_by_what_factor_the_mean_exceeds_its_mean_field():
    """exp(3 L / n) in the label term."""
    nets = [mf.MLP(depth=depth, width=20) for depth in (2, 5)]
    said = mf.explain_transfer(0.1, *nets, rule="finite_depth").warnings
    assert any(f"is about {np.exp(3 * 5 / 20):.2g} times its mean field" in words for words in said)


@pytest.mark.parametrize(("width", "drawn"), [(140, True), (160, False)])
def test_nets_are_drawn_from_a_fiftieth_of_the_width_on(width, drawn):
    nets = [mf.MLP(depth=depth, width=width) for depth in (2, 3)]
    assert ("typical" in mf.explain_transfer(0.1, *nets).rates) == drawn


def test_grids_that_differ_are_refused_where_the_output_term_would_tell():
    """On more sites the outputs add up otherwise than the labels do, which the label term alone does not follow."""
    small = mf.ConvNet(depth=4, channels=64, grid=(3,), kernel=(3,), outputs=64, readout="convolution")
    large = small.replace(grid=(48,))
    with pytest.raises(ValueError, match="the nets differ in grid, and the output term"):
        mf.transfer_learning_rate(0.1, small, large, rule="finite_depth")
    assert mf.explain_transfer(0.1, small, small.replace(depth=8), rule="finite_depth").rate < 0.1
