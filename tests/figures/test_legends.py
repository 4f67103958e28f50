"""Legends below all panels stay within the figure."""

import pytest
from matplotlib.figure import Figure

from figures.style import legend_below, legend_under, styled


def _figure(labels):
    figure = Figure(figsize=(4.8, 3.0))
    axes = figure.subplots()
    for number, label in enumerate(labels):
        axes.plot([0, number], label=label)
    return figure, axes


def _inside(figure):
    figure.draw_without_rendering()
    extent = figure.legends[0].get_window_extent()
    return figure.bbox.x0 <= extent.x0 and extent.x1 <= figure.bbox.x1


@pytest.mark.parametrize("columns", [None, 6])
def test_as_many_columns_as_fit(columns):
    labels = [f"step {number} of nine" for number in range(9)]
    with styled():
        figure, axes = _figure(labels)
        legend_below(figure, axes, columns)
        assert len(figure.legends) == 1
        assert _inside(figure)
        assert figure.legends[0]._ncols == 3
        wider, labelled = _figure(labels)
        wider.legend(*labelled.get_legend_handles_labels(), loc="outside lower center", ncols=5)
        assert not _inside(wider)
        row, labelled = _figure(labels)
        row.legend(*labelled.get_legend_handles_labels(), loc="outside lower center", ncols=len(labels))
        assert not _inside(row)


def test_axes_without_lines_have_no_legend():
    figure, axes = _figure([])
    legend_below(figure, axes)
    assert not figure.legends


def test_one_label_wider_than_the_figure_is_still_drawn():
    with styled():
        figure, axes = _figure(["a" * 200])
        legend_below(figure, axes)
    assert len(figure.legends) == 1


def test_a_legend_under_a_panel_is_below_its_labels():
    with styled():
        figure, axes = _figure(["one", "two"])
        axes.set_xlabel("depth L")
        legend_under(axes, 2)
        figure.draw_without_rendering()
    extent = axes.get_legend().get_window_extent()
    assert extent.y1 <= axes.xaxis.label.get_window_extent().y0
    assert extent.y0 >= figure.bbox.y0
