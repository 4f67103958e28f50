"""Tuned rates beside one step of the optimizer that trains: read back from the figures, and computed another way."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection

from figures import learning_rate_search, looped_rates
from figures.style import GREEN, OLIVE, ORANGE, PURPLE, SKY

DEPTHS = np.array([2, 4, 8, 16])
# A family of every group, with its scale and colour; in the order of the panels.
FAMILIES = {
    "residual mlp init": ("outputs", GREEN),
    "mlp": ("relative", PURPLE),
    "residual cnn init batch norm on mnist": ("relative", SKY),
    "loop sqrt": ("relative", ORANGE),
    "transformer pre": ("outputs", OLIVE),
}
# Losses over that of chance; "mlp" learns at three depths, and the loop at one.
LOSSES = {"mlp": [0.1, 0.2, 0.3, 0.4], "loop sqrt": [0.1, 0.5, 0.5, 0.5], "transformer pre": [0.9, 0.9, 0.9, 0.9]}


def _scales(draws, shape, names):
    """Scales that go over sizes as they like, with errors of some percent."""
    scales = {f"{name}_scale": 10.0 ** draws.normal(size=shape) for name in names}
    return scales | {f"{name}_stderr": values * draws.uniform(0.02, 0.2, shape) for name, values in scales.items()}


@pytest.fixture
def searched():
    """A run of five families, of which the batch-normalised one has no tuned rate at the largest depth."""
    draws, shape = np.random.default_rng(3), (len(FAMILIES), len(DEPTHS))
    logs, errors = -draws.uniform(1, 3, shape), draws.uniform(0.02, 0.3, shape)
    logs[2, -1] = errors[2, -1] = np.nan
    shares = np.array([LOSSES.get(family, [0.1] * 4) for family in FAMILIES])
    values = {"tuned_rate_log10": logs, "tuned_rate_log10_stderr": errors}
    values |= _scales(draws, shape, ("outputs", "relative", "absolute"))
    dataset = xr.Dataset(
        {name: (("family", "depth"), of_nets) for name, of_nets in values.items()},
        {"family": list(FAMILIES), "depth": DEPTHS, "rate": [0.1, 1.0]},
        {"optimizer": "muon-adamw"},
    )
    losses = shares[..., None, None] * np.log(10) * np.array([1.0, 2.0])[:, None] * np.ones(3)
    chance = xr.DataArray(np.full(len(FAMILIES), np.log(10)), dims="family")
    return dataset.assign(final_loss=(("family", "depth", "rate", "draw"), losses), chance_loss=chance)


@pytest.fixture
def looped():
    """A run of two factors, of which the square root has hardly learned at the most loops."""
    draws, shape = np.random.default_rng(4), (2, len(DEPTHS))
    values = {
        "tuned_rate_log10": -draws.uniform(1, 3, shape),
        "tuned_rate_log10_stderr": draws.uniform(0.02, 0.1, shape),
    }
    values |= _scales(draws, shape, ("absolute", "relative"))
    losses = np.full((*shape, 5), 2.0)
    losses[0, -1] = 2.4
    dataset = xr.Dataset(
        {name: (("scaling", "loops"), of_nets) for name, of_nets in values.items()},
        {"scaling": ["sqrt", "linear"], "loops": DEPTHS, "rate": [0.001, 0.01, 0.1]},
        {"optimizer": "adamw", "blocks": "shared"},
    )
    curves = 2.0 + draws.uniform(size=(*shape, 3, 4))
    searches = {"final_loss": (("scaling", "loops", "rate", "seed"), curves), "learned_loss": 2.3}
    return dataset.assign(searches | {"tuned_loss": (("scaling", "loops", "draw"), losses)})


def _bars(container):
    """Lower and upper ends of the upright error bars."""
    *_, upright = container[2]
    return np.array([np.asarray(segment)[:, 1] for segment in upright.get_segments()]).T


def _panel(axes):
    """Points with their bars as (x, y, ends, fill), and the line of one step with its bars."""
    points, steps = [], []
    for container in axes.containers:
        line = container[0]
        drawn = (*line.get_data(), _bars(container), line.get_fillstyle(), line.get_color())
        (points if line.get_marker() == "o" else steps).append(drawn)
    return points, steps


def _alike(drawn, expected):
    np.testing.assert_allclose(drawn, expected, rtol=1e-9)


def _check_panel(axes, sizes, logs, errors, learns, scale, scale_errors, powers):
    """All of them at the sizes that have a tuned rate; ``learns`` are the sizes that lines are moved by."""
    points, ((x, step, step_ends, _, _),) = _panel(axes)
    through = learns if learns.sum() > 1 else np.full(len(sizes), fill_value=True)
    for size, y, ends, fill, _ in points:
        where = learns == (fill == "full")
        np.testing.assert_array_equal(size, sizes[where])
        _alike(y, 10 ** logs[where])
        _alike(ends, [10 ** (logs - errors)[where], 10 ** (logs + errors)[where]])
    assert sum(len(size) for size, *_ in points) == len(sizes)
    np.testing.assert_array_equal(x, sizes)
    _alike(step / step[0], scale / scale[0])
    _alike(np.prod(step[through] / 10 ** logs[through]), 1.0)
    # Errors of logarithms: a share of s is a factor of exp(s).
    _alike(step_ends, [step * np.exp(-scale_errors / scale), step * np.exp(scale_errors / scale)])
    lines = [line for line in axes.lines if len(line.get_xdata()) and line.get_linestyle() in ("--", ":")]
    for line, (power, look) in zip(lines, powers, strict=True):
        y = line.get_ydata()
        assert line.get_linestyle() == look
        _alike(np.diff(np.log(y)) / np.diff(np.log(sizes)), power)
        _alike(np.prod(y[through] / 10 ** logs[through]), 1.0)


def test_every_family_has_its_rates_its_one_step_and_the_rivals(searched):
    panels = learning_rate_search.draw(searched).axes[1:]
    for axes, (family, (of, color)) in zip(panels, FAMILIES.items(), strict=True):
        at = searched.sel(family=family)
        known = np.isfinite(at["tuned_rate_log10_stderr"].values)
        names = ("tuned_rate_log10", "tuned_rate_log10_stderr", f"{of}_scale", f"{of}_scale_stderr")
        logs, errors, scale, scale_errors = (at[name].values[known] for name in names)
        learns = np.array(LOSSES.get(family, [0.1] * 4))[known] < 1 / 3
        powers = [(-1.5, "--"), (0.0, ":")]
        _check_panel(axes, DEPTHS[known], logs, errors, learns, scale, scale_errors, powers)
        assert {drawn[-1] for part in _panel(axes) for drawn in part} == {color}
        assert " ".join(axes.get_title().splitlines()[:-1]).endswith(family)


def test_slopes_stand_where_rates_and_one_step_have_them(searched):
    """By least squares through the depths at which a family learns, its number beside it and in its title."""
    slopes, *panels = learning_rate_search.draw(searched).axes
    drawn = [container for container in slopes.containers if len(container[0].get_xdata())]
    crosses = [line for line in slopes.lines if line.get_marker() == "x" and len(line.get_xdata())]
    texts = {text.get_text(): text.xy for text in slopes.texts}
    for number, (container, cross, (family, (of, color))) in enumerate(
        zip(drawn, crosses, FAMILIES.items(), strict=True), 1
    ):
        at = searched.sel(family=family)
        learns = np.array(LOSSES.get(family, [0.1] * 4)) < 1 / 3
        through = np.isfinite(at["tuned_rate_log10_stderr"].values) & (learns if learns.sum() > 1 else True)
        x = np.log10(DEPTHS[through])
        expected = [
            np.polyfit(x, np.log10(at[name].values[through]), 1)[0] for name in (f"{of}_scale", "absolute_scale")
        ]
        slope = np.polyfit(x, at["tuned_rate_log10"].values[through], 1)[0]
        (point,) = np.transpose(container[0].get_data()).astype(float)
        _alike(point, [expected[0], slope])
        _alike(np.ravel(cross.get_data()), [expected[1], slope])
        spread = np.sum((x - x.mean()) ** 2)
        errors = at["tuned_rate_log10_stderr"].values[through]
        of_step = (at[f"{of}_scale_stderr"] / at[f"{of}_scale"]).values[through] / np.log(10)
        across, upright = (np.asarray(bars.get_segments()[0]) for bars in container[2])
        for bar, axis, error in ((across, 0, of_step), (upright, 1, errors)):
            _alike(np.ptp(bar[:, axis]) / 2, np.sqrt(np.sum(((x - x.mean()) * error) ** 2)) / spread)
        assert container[0].get_color() == color
        assert container[0].get_fillstyle() == ("full" if learns.sum() > 1 else "none")
        _alike(texts[str(number)], point)
        assert panels[number - 1].get_title().startswith(f"{number}  {family[:8]}")
        assert panels[number - 1].get_title().splitlines()[-1].startswith(f"{slope:.2f} $\\pm$")


def test_a_step_in_noise_has_its_slopes_where_a_run_has_it(searched):
    """Triangles at its slopes by least squares; none in a run of another optimizer, and no word of them."""
    draws, shape = np.random.default_rng(5), (len(FAMILIES), len(DEPTHS))
    both = {name: (("family", "depth"), of_nets) for name, of_nets in _scales(draws, shape, ["noise_relative"]).items()}
    slopes, without = (learning_rate_search.draw(of).axes[0] for of in (searched.assign(both), searched))
    drawn = [line for line in slopes.lines if line.get_marker() == "^" and len(line.get_xdata())]
    for triangle, family in zip(drawn, FAMILIES, strict=True):
        at = searched.assign(both).sel(family=family)
        learns = np.array(LOSSES.get(family, [0.1] * 4)) < 1 / 3
        through = np.isfinite(at["tuned_rate_log10_stderr"].values) & (learns if learns.sum() > 1 else True)
        x, names = np.log10(DEPTHS[through]), ("noise_relative_scale", "tuned_rate_log10")
        step, rate = (at[name].values[through] for name in names)
        expected = [np.polyfit(x, np.log10(step), 1)[0], np.polyfit(x, rate, 1)[0]]
        _alike(np.ravel(triangle.get_data()), expected)
        low, high = slopes.get_xlim()
        assert low < expected[0] < high
    assert any("in noise" in line.get_label() for line in slopes.lines)
    assert not any(line.get_marker() == "^" or "in noise" in line.get_label() for line in without.lines)


def test_numbers_fit_into_the_panel_of_slopes(searched):
    """With their error bars; the band is as wide as slopes may differ."""
    slopes = learning_rate_search.draw(searched).axes[0]
    low, high = slopes.get_xlim()
    assert slopes.get_ylim() == (low, high)
    ends = [np.asarray(bar) for container in slopes.containers for bars in container[2] for bar in bars.get_segments()]
    assert all(np.all((end > low) & (end < high)) for end in ends if len(end))
    (band,) = [drawn for drawn in slopes.collections if isinstance(drawn, PolyCollection)]
    corners = band.get_paths()[0].vertices
    assert {round(float(y - x), 6) for x, y in corners} == {-0.15, 0.15}


def test_a_family_without_rates_leaves_its_panel_empty(searched):
    nothing = searched.assign(
        {name: searched[name] * np.nan for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
    )
    slopes, *panels = learning_rate_search.draw(nothing).axes
    assert not slopes.texts
    assert [axes.get_title().splitlines()[-1] for axes in panels] == ["no slope"] * len(FAMILIES)
    assert not any(len(line.get_xdata()) for axes in panels for line in axes.lines)


@pytest.mark.parametrize(("blocks", "of", "counted"), [("shared", "absolute", "loops"), ("own", "relative", "blocks")])
def test_loops_have_their_rates_their_one_step_and_the_papers_powers(looped, blocks, of, counted):
    figure = looped_rates.draw(looped.assign_attrs(blocks=blocks))
    own = {"sqrt": (-0.5, 0.0), "linear": (0.0, -0.5)}
    for axes, (scaling, (papers, other)) in zip(figure.axes, own.items(), strict=False):
        at = looped.sel(scaling=scaling)
        names = ("tuned_rate_log10", "tuned_rate_log10_stderr", f"{of}_scale", f"{of}_scale_stderr")
        logs, errors, scale, scale_errors = (at[name].values for name in names)
        learns = np.array([True, True, True, scaling == "linear"])
        powers = sorted([(papers, "--"), (other, ":")])
        _check_panel(axes, DEPTHS, logs, errors, learns, scale, scale_errors, powers)
        slope = np.polyfit(np.log(DEPTHS[learns]), np.log(10) * logs[learns], 1)[0]
        assert axes.get_title().splitlines()[-1].startswith(f"{slope:.3f} $\\pm$")
        assert axes.get_xlabel() == f"{counted} $L$"
