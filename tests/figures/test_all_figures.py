"""What every figure owes its reader, by its artists: legends that cover nothing, axes with numbers on them."""

import re
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from matplotlib.colors import to_hex

from figures import figure_names
from figures.style import FURTHER
from tests.figures.looks import looks
from tests.figures.plotted import plotted
from tests.shown import first_runs, kept

# Of nets without branch scaling eta* falls by powers of ten, as losses of large rates rise: both would press all else
# together.
LEAVING = {"residual_depth", "looped_rates"}
# Updates whose size is known before the step are alike under several optimizers.
MOST_SOURCES = 4


@pytest.fixture(scope="module")
def drawn(smoke_runs):
    """The figure of a smoke run by its name, made when it is first asked for."""

    @cache
    def figure_of(run):
        name = smoke_runs[run].attrs["command"].split()[2].removeprefix("sims.")
        return import_module(f"figures.{name}").draw(smoke_runs[run])

    return figure_of


@pytest.fixture(scope="module", params=figure_names())
def figures(request, drawn, smoke_runs):
    """Those of one simulation, laid out: of runs whose datasets have one shape, that of the longest names."""
    runs = sorted((run for run in smoke_runs if run.split("-")[0] == request.param), key=len)
    figures_of_shapes = [drawn(run) for run in {_shape(smoke_runs[run]): run for run in runs}.values()]
    assert figures_of_shapes
    for figure in figures_of_shapes:
        figure.draw_without_rendering()
    return figures_of_shapes


def _shape(dataset):
    """What decides how many panels, lines and words there are: not how many draws."""
    return frozenset((name, size) for name, size in dataset.sizes.items() if name != "draw")


def _paths(axes):
    """Lines, points and error bars as paths on the page; points alone as the places where they stand."""
    for line in axes.lines:
        path = line.get_transform().transform_path(line.get_path()).cleaned(remove_nans=True)
        yield path, line.get_linestyle() == "None"
    for collection in axes.collections:
        for path in collection.get_paths():
            yield collection.get_transform().transform_path(path), False


def _covers(extent, axes):
    for path, points in _paths(axes) if extent.overlaps(axes.bbox) else ():
        inside = path.vertices[np.all((path.vertices > axes.bbox.min) & (path.vertices < axes.bbox.max), axis=1)]
        if points and extent.count_contains(inside):
            return True
        if not points and path.intersects_bbox(extent, filled=False):
            return True
    return False


def test_no_legend_covers_what_is_drawn(figures):
    for figure in figures:
        own = [legend for axes in figure.axes if (legend := axes.get_legend())]
        for legend in [*own, *figure.legends]:
            extent = legend.get_window_extent()
            assert not [axes for axes in figure.axes if _covers(extent, axes)], legend.get_texts()


def test_no_legend_leaves_the_figure_or_meets_another(figures):
    for figure in figures:
        own = [legend for axes in figure.axes if (legend := axes.get_legend())]
        extents = [legend.get_window_extent() for legend in [*own, *figure.legends]]
        for place, extent in enumerate(extents):
            assert np.all(figure.bbox.min <= extent.min + 1)
            assert np.all(extent.max <= figure.bbox.max + 1)
            assert not any(extent.overlaps(other) for other in extents[:place])


def test_logarithmic_axes_have_numbers_on_them(figures):
    for axes in (axes for figure in figures for axes in figure.axes):
        for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
            low, high = axis.get_view_interval()
            seen = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            if scale == "log":
                assert len(seen) >= 2
            assert not [tick for tick in axis.get_minor_ticks() if tick.label1.get_text()]
            assert not [tick for tick in seen if r"\times10^{\mathdefault{0}}" in tick.label1.get_text()]


def test_titles_and_labels_are_written_out(figures):
    """No underscores, carets or Greek letters in words outside of formulas."""
    for axes in (axes for figure in figures for axes in figure.axes):
        for text in (axes.get_title(), axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()):
            words = "".join(text.split("$")[::2])
            assert not any(sign in words for sign in ("_", "^", "lambda", "alpha", "gamma")), text


def test_points_stay_in_their_panels(figures, request):
    outside = []
    for axes in (axes for figure in figures for axes in figure.axes):
        for line in (line for line in axes.lines if line.get_marker() not in ("None", "", None)):
            values = np.asarray(line.get_ydata(), dtype=float)
            low, high = sorted(axes.get_ylim())
            # What is zero, or less, has no place on a logarithmic axis.
            placed = values[np.isfinite(values) & ((values > 0) | (axes.get_yscale() != "log"))]
            outside += [value for value in placed if not low <= value <= high]
    assert bool(outside) == (request.node.callspec.params["figures"] in LEAVING)


def test_every_panel_of_finite_channels_has_a_title(drawn):
    titles = [axes.get_title() for axes in drawn("cnn_finite_channels").axes]
    assert len(set(titles)) == 4
    assert all(titles)


# The curves of updates between those that the legend names have the shades between theirs.
BETWEEN_SHADES = {"looped_transformer"}


def test_every_line_and_mark_is_in_a_legend(figures, request):
    """Its colour in one entry, and its mark, or kind of line, in one, which may be a grey one for all colours."""
    for figure in figures:
        legends = [*figure.legends, *(legend for axes in figure.axes if (legend := axes.get_legend()))]
        words = {text.get_text() for legend in legends for text in legend.get_texts()}
        named = [_look(line) for axes in figure.axes for line, label in _labelled(axes) if label in words]
        colors, kinds = ({look[part] for look in named} for part in (0, 1))
        for axes in figure.axes if words else ():
            for line in (line for line, _ in _labelled(axes) if len(line.get_xdata())):
                color, kind = _look(line)
                assert kind in kinds, (axes.get_title(), kind)
                assert color in colors or request.node.callspec.params["figures"] in BETWEEN_SHADES, axes.get_title()


def _labelled(axes):
    """Every line and all points, without the ends of their error bars, and what the legend calls them."""
    bars = {container[0]: container for container in axes.containers if len(container) == 3}
    ends = {cap for container in bars.values() for cap in container[1]}
    return [(line, bars.get(line, line).get_label()) for line in axes.lines if line not in ends]


def _look(line):
    """Colour, and mark, or kind of line where there is none."""
    marker = line.get_marker()
    return to_hex(line.get_color()), line.get_linestyle() if marker in ("None", "none", "", None) else marker


# Families of nets have colours panel by panel.
BY_PANEL = {"learning_rate_scale"}


def test_a_series_of_its_own_colour_has_one_name(figures, request):
    """Colours of no general meaning: with the same mark or kind of line they are called one thing in all panels."""
    for figure in figures:
        names = {}
        for axes in figure.axes:
            for line, label in _labelled(axes):
                color, inside = (to_hex(of_line()) for of_line in (line.get_color, line.get_markerfacecolor))
                if not label.startswith("_") and color.upper() in FURTHER:
                    names.setdefault((color, inside, line.get_marker(), line.get_linestyle()), set()).add(label)
        shared = {look: labels for look, labels in names.items() if len(labels) > 1}
        assert not shared or request.node.callspec.params["figures"] in BY_PANEL


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("reported_losses", range(11)),
        ("transformer_depth", (0, 1)),
        ("transformer_depth", (4, 5)),
        ("looped_energy", (1, 5)),
    ],
)
def test_panels_of_one_length(name, places, drawn):
    """Where lines are to be flat, or to rise alike, axes are equally long, in units or in decades."""
    panels = [drawn(name).axes[place] for place in places]
    ends = [np.log10(axes.get_ylim()) if axes.get_yscale() == "log" else axes.get_ylim() for axes in panels]
    np.testing.assert_allclose(np.ptp(ends, axis=1), np.ptp(ends[0]))


def test_training_assumptions_are_six_panels_whose_errors_all_show(drawn, smoke_runs):
    """Under optimizers other than gradient descent some panels stay empty."""
    for run in (run for run in smoke_runs if run.startswith("training_assumptions")):
        assert len(drawn(run).axes) == 6
        for axes in (axes for axes in drawn(run).axes if axes.axison):
            ends = np.concatenate([segment for bars in axes.collections for segment in bars.get_segments()])
            assert ends[:, 1].max() <= axes.get_ylim()[1]


def test_profiles_of_padding_are_few_and_stand_aside(drawn):
    profile = drawn("cnn_padding").axes[1]
    first = [float(container.lines[0].get_xdata()[0]) for container in profile.containers]
    assert len(first) == len(set(first)) == 3


def test_coordinate_checks_fill_their_panels(drawn, smoke_runs):
    """Numbers near 1 are not pressed together by an axis of six powers of ten."""
    for run in (run for run in smoke_runs if run.startswith("coordinate_check-tables-many")):
        panels = drawn(run).axes
        values = np.concatenate([np.asarray(line.get_ydata(), float) for axes in panels for line in axes.lines])
        low, high = panels[0].get_ylim()
        assert low >= 0.4 * values.min()
        assert high <= 2.5 * values.max()


@pytest.mark.parametrize("name", kept("plotted"))
def test_lines_show_what_they_did_when_they_were_read(name, drawn, smoke_runs):
    """Panel by panel, by their values; after a change to a figure: ``python -m tests.shown``, and read its lines."""
    run = first_runs(smoke_runs)[name]
    assert plotted(drawn(run), smoke_runs[run]) == kept("plotted")[name]


@pytest.mark.parametrize("name", kept("looks"))
def test_lines_look_as_they_did_when_they_were_read(name, drawn, smoke_runs):
    """What they stand over, whose errors their bars are, colours, marks and the labels of axes; as the test above."""
    run = first_runs(smoke_runs)[name]
    assert looks(drawn(run), smoke_runs[run]) == kept("looks")[name]


def _lines(figure, words=""):
    return [line for axes in figure.axes for line in axes.lines if words in str(line.get_label())]


def _reverse(figure):
    for line in _lines(figure):
        line.set_xdata(line.get_xdata()[::-1])


def _halve_slopes(figure):
    """Of all lines that are no points: laws and theory."""
    for line in (line for line in _lines(figure) if line.get_linestyle() == "--"):
        line.set_ydata(np.sqrt(np.abs(line.get_ydata())))


def _exchange_marks(figure):
    for line in (line for line in _lines(figure) if line.get_marker() == "o"):
        line.set_marker("s")


def _halve_errors(figure):
    for bars in (bars for axes in figure.axes for container in axes.containers for bars in container[2]):
        segments = [np.array(segment) for segment in bars.get_segments()]
        bars.set_segments([(segment + segment.mean(axis=0)) / 2 for segment in segments])


# What nobody saw: each is done to what a figure has drawn.
FAULTS = {
    "reversed": _reverse,
    "a wrong label": lambda figure: figure.axes[0].set_xlabel("the width n"),
    "laws of half the slope": _halve_slopes,
    "exchanged marks": _exchange_marks,
    "one colour": lambda figure: [line.set_color("#000000") for line in _lines(figure)],
    "half the errors": _halve_errors,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["looped_update", "transformer_depth", "residual_depth"])
def test_faults_of_a_drawing_are_seen(name, fault, smoke_runs):
    run = first_runs(smoke_runs)[name]
    figure = import_module(f"figures.{name}").draw(smoke_runs[run])
    FAULTS[fault](figure)
    assert looks(figure, smoke_runs[run]) != kept("looks")[name]


@pytest.mark.parametrize("name", ["cnn_finite_channels", "learning_rate_scale", "learning_rate_search", "table_cells"])
def test_shorter_errors_across_are_seen(name, smoke_runs):
    """Bars across come before those upright."""
    figure = import_module(f"figures.{name}").draw(smoke_runs[first_runs(smoke_runs)[name]])
    for bars in (bars for axes in figure.axes for bars in axes.containers if getattr(bars, "has_xerr", False)):
        across = np.array(bars[2][0].get_segments())
        bars[2][0].set_segments((across + across.mean(axis=1, keepdims=True)) / 2)
    assert looks(figure, smoke_runs[first_runs(smoke_runs)[name]]) != kept("looks")[name]


# Words of laws, and how a line that they stand at must rise: alpha is that of its panel.
LAWS = {
    r"papers('|, | law, )+-3/2": r"as x\^-1\.50|(across|upright) at -1\.5,",
    r"\$\\alpha\$ = 0\.5.*\(eps L\)": r"as x\^1\.00",
    r"\$\\alpha\$ = 1 .*\(eps L\)": r": 1 1 1 over",
    r"\$\\alpha\$ = 1\.5.*\(eps L\)": r"as x\^-1\.00",
    r"papers, 1 \+ O\(1/B\)": r": 1 1 1 1 over",
    r"bound of eq. 39": r"across at 2,",
    r"a_l.*condition: .* over depth": r"as x\^-1\.00",
    r"a_(0|\{).*condition: .* over": r": 1 1 1 over",
    r"condition: .* over width": r": 1 1 1 over",
    r"as 1/C from the first|adds to an overlap T; .* \| -:": r"as x\^-1\.00",
}


def test_lines_of_laws_have_their_slopes():
    """They are computed in the figures, so that no dataset has them: by the words beside them."""
    every = [line for lines in kept("looks").values() for line in lines if " | axes: " not in line]
    for words, law in LAWS.items():
        of_law = [line for line in every if re.search(words, line)]
        assert of_law, words
        assert [line for line in of_law if not re.search(law, line)] == []


def test_fitted_slopes_are_those_of_the_legends():
    """Beside each dashed fit stands the line that it was fitted to, with the slope in its legend."""
    lines = kept("looks")["learning_rate_scale"]
    fits = [re.search(r"as x\^([-\d.]+)", line)[1] for line in lines if " | -: " in line]
    legends = [re.search(r"slope ([-+\d.]+):", line)[1] for line in lines if ": slope " in line]
    assert len(fits) == len(legends) > 10
    assert [float(fit) for fit in fits] == [float(legend) for legend in legends]


@pytest.mark.parametrize(
    ("name", "words", "pair"),
    [
        ("looped_energy", "SCALINGS", ("sqrt", "linear")),
        ("transformer_coordinate_check", "TITLES", ("standard", "many")),
    ],
    ids=["panels", "legends of averages"],
)
def test_exchanged_words_are_seen(name, words, pair, smoke_runs, monkeypatch):
    """The averages stand in no dataset."""
    figure, (first, second) = import_module(f"figures.{name}"), pair
    right = getattr(figure, words)
    monkeypatch.setattr(figure, words, right | {first: right[second], second: right[first]})
    assert plotted(figure.draw(smoke_runs[name]), smoke_runs[name]) != kept("plotted")[name]


@pytest.mark.parametrize("name", kept("plotted"))
def test_no_line_is_said_to_show_nearly_everything(name):
    """As numbers that are in proportion to zeros would be."""
    assert max(line.count(" or ") for line in kept("plotted")[name]) <= MOST_SOURCES


def test_products_are_written_as_formulas(drawn, smoke_runs):
    run = next(run for run in smoke_runs if run.startswith("spectral_condition"))
    titles = [axes.get_title() for axes in drawn(run).axes]
    assert r"$a_l |W^{(2)}|\,|\Delta W^{(1)}|$" in titles
    assert r"$a_{\mathrm{out}} |\Delta W_{\mathrm{out}}|$" in titles
