"""Ticks that a reader can name, on axes of any range."""

import pytest
from matplotlib.figure import Figure

from figures.style import LogLabels, LogTicks, alike, by_size, log_values, styled


@pytest.mark.parametrize(
    ("view", "ticks"),
    [
        ((0.3, 3.0), ["0.3", "1", "3"]),
        ((0.9, 8.0), ["1", "2", "5"]),
        ((0.15, 0.95), ["0.2", "0.3", "0.5", "0.7"]),
        ((0.95, 1.15), ["0.95", "1", "1.05", "1.1", "1.15"]),
        ((0.02, 200), ["0.1", "1", "10", "100"]),
        ((1e-6, 2e-4), ["$10^{-6}$", "$10^{-5}$", "$10^{-4}$"]),
        ((1e-12, 1e6), ["$10^{-12}$", "$10^{-9}$", "$10^{-6}$", "$10^{-3}$", "$10^{0}$", "$10^{3}$", "$10^{6}$"]),
        ((2e-5, 4e-5), [r"$2 \times 10^{-5}$", r"$3 \times 10^{-5}$", r"$4 \times 10^{-5}$"]),
    ],
)
def test_logarithmic_ticks(view, ticks):
    assert LogLabels().format_ticks(LogTicks().tick_values(*view)) == ticks


def test_a_logarithmic_axis_has_them_whatever_is_drawn_later():
    with styled():
        axes = Figure().subplots()
        log_values(axes, "energy")
        axes.plot([1, 2], [0.2, 5.0])
        axes.figure.draw_without_rendering()
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert {"0.3", "1", "3"} <= set(shown)
    assert axes.get_ylabel() == "energy"


@pytest.mark.parametrize(
    ("sizes", "ticks"),
    [
        ([16, 32, 64], ["16", "32", "64"]),
        ([0.0625, 0.125, 0.25], ["0.0625", "0.125", "0.25"]),
        ([1, 2, 4, 8, 16, 32, 64, 128, 256], ["1", "4", "16", "64", "256"]),
    ],
)
def test_sizes_that_were_run_are_the_ticks(sizes, ticks):
    axes = Figure().subplots()
    by_size(axes, sizes, "width")
    assert [label.get_text() for label in axes.get_xticklabels()] == ticks
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize(("least", "length"), [(0.0, 2.0), (3.0, 3.0)])
def test_axes_of_one_length_stay_around_what_they_show(least, length):
    """In decades on logarithmic axes, in units on others."""
    decades, flat, units = Figure().subplots(1, 3)
    decades.set(yscale="log", ylim=(1.0, 100.0))
    flat.set(yscale="log", ylim=(0.5, 2.0))
    units.set_ylim(4.0, 5.0)
    alike([decades, flat, units], least)
    for axes, middle in ((decades, 1.0), (flat, 0.0)):
        low, high = axes.get_ylim()
        assert (low, high) == pytest.approx((10 ** (middle - length / 2), 10 ** (middle + length / 2)))
    assert units.get_ylim() == pytest.approx((4.5 - length / 2, 4.5 + length / 2))
