"""Figures: what is drawn where, in every state of a grid; looks are for the eye."""

from __future__ import annotations

import builtins
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fspll._common.errors import MissingPackageError
from fspll.experiments.reproduce.figure_style import file_bytes, look, spread
from fspll.experiments.reproduce.figures import draw
from fspll.experiments.reproduce.results import Cell, Condition, Outcome

ROWS = [
    *((name, "") for name in ("FsPLL", "FsPLL-nM", "PN", "MAML")),
    *(("PL-AGGD", "trained"), ("PL-AGGD", "untrained")),
    *((name, "") for name in ("FsPLL+", "PN+", "fspll default", "ceiling")),
]


def cell(row, condition, mean, features="", n=4):
    query = mean + np.linspace(-0.02, 0.02, n)
    return Cell(row, features, condition, query, query)


def grid(experiment, conditions, rows=ROWS, dataset="Omniglot", leave_out=()):
    cells = [
        cell(name, condition, 0.9 - 0.05 * number, features)
        for condition in conditions
        for number, (name, features) in enumerate(rows)
        if (name, condition) not in leave_out
    ]
    return Outcome(experiment, dataset, "quick", tuple(cells), missing=len(leave_out))


def texts(figure):
    """Return all text of a figure."""
    found = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    return [text for text in found if text]


def lines_with(axes, values):
    return [
        line
        for line in axes.get_lines()
        if len(line.get_ydata()) == len(values) and np.allclose(line.get_ydata(), values)
    ]


def test_omniglot_has_a_figure_for_every_r_and_one_against_the_paper():
    conditions = [Condition(r, n, k) for r in (1, 3) for n in (5, 10, 20) for k in (5, 10)]
    pictures = draw(grid("omniglot", conditions))
    assert [picture.name for picture in pictures] == ["r1", "r3", "against-paper"]
    first = pictures[0].figure
    assert len(first.axes) == 8  # four kinds of methods, two K2
    few_shot = first.axes[0]
    assert lines_with(few_shot, [0.9] * 3)  # ours
    (printed,) = lines_with(few_shot, [0.892, 0.789, 0.712])
    assert printed.get_color() == look(("FsPLL", "")).color
    assert printed.get_markerfacecolor() == "white"
    assert {"FsPLL", "fspll default", "ceiling"} <= set(texts(first))
    assert "hollow" in pictures[0].caption


def test_other_data_get_no_figure_of_the_paper():
    conditions = [Condition(1, n, 5) for n in (5, 10)]
    pictures = draw(grid("omniglot", conditions, dataset="drawn signs"))
    assert [picture.name for picture in pictures] == ["r1"]
    assert "hollow" not in pictures[0].caption
    assert not lines_with(pictures[0].figure.axes[0], [0.892, 0.789])
    assert any("drawn signs" in text for text in texts(pictures[0].figure))


def test_against_the_paper_every_setting_is_a_mark():
    conditions = [Condition(2, n, 5) for n in (5, 10, 20)]
    rows = [("PN", ""), ("PL-AGGD", "untrained"), ("fspll default", "")]
    picture = draw(grid("omniglot", conditions, rows))[-1]
    (axes,) = picture.figure.axes
    marks = [collection.get_offsets() for collection in axes.collections]
    assert [mark.tolist() for mark in marks] == [
        [[pytest.approx(x), pytest.approx(0.9)] for x in (0.476, 0.378, 0.270)],
        [[pytest.approx(x), pytest.approx(0.85)] for x in (0.496, 0.490, 0.451)],
    ]


def test_photos_have_a_panel_for_every_n_way_and_the_data_in_the_title():
    conditions = [Condition(1, n, k) for n in (5, 10, 15) for k in (5, 50)]
    gap = ("PN", Condition(1, 15, 50))
    outcome = grid("mini-imagenet", conditions, dataset="some photos", leave_out=[gap])
    main, more = draw(outcome)
    assert (main.name, more.name) == ("r1", "r1-more")
    shown = [axes for axes in main.figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == ["N2 = 5", "N2 = 10", "N2 = 15"]
    assert lines_with(shown[0], [0.8, 0.8])  # PN in both settings
    assert lines_with(shown[2], [0.8])  # and in one
    assert "some photos, r = 1" in texts(main.figure)
    assert "PL-AGGD (untrained)" not in texts(main.figure)
    assert {"PL-AGGD (untrained)", "PN+"} <= set(texts(more.figure))


def test_features_of_a_frozen_encoder_have_a_figure_whose_legend_fits():
    kinds = ("photo encoder", "adapted photo encoder")
    frozen = [(name, kind) for kind in kinds for name in ("fspll default", "PL-AGGD", "PALOC")]
    conditions = [Condition(1, n, k) for n in (5, 10) for k in (5, 10, 20, 30, 40, 50)]
    pictures = draw(grid("mini-imagenet", conditions, [*ROWS, *frozen], "photos"))
    assert [picture.name for picture in pictures] == ["r1", "r1-more", "r1-features"]
    assert not any("encoder" in text for picture in pictures[:2] for text in texts(picture.figure))
    figure = pictures[-1].figure
    file_bytes(figure, "png")  # lays it out
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert "fspll default (adapted photo encoder)" in texts(figure)
    assert len({look(("fspll default", kind)) for kind in ("", *kinds)}) == 3


def test_noise_is_bars_with_the_papers_marks():
    rows = [(base + plus, "") for plus in ("", "+", "++") for base in ("PN", "FsPLL")]
    (picture,) = draw(grid("noise", [Condition(2, 10, 5)], rows))
    (axes,) = picture.figure.axes
    heights = sorted(bar.get_height() for bar in axes.patches)
    assert heights == pytest.approx([0.65, 0.7, 0.75, 0.8, 0.85, 0.9])
    marks = [line.get_ydata()[0] for line in axes.get_lines() if line.get_marker() == "D"]
    assert sorted(marks) == [0.378, 0.712, 0.871, 0.991]


def test_parameters_have_a_line_for_every_r():
    conditions = [Condition(r, 10, 10, k) for r in (1, 2) for k in (3, 9, 20)]
    conditions += [Condition(r, 10, 10, None, weight) for r in (1, 2) for weight in (0.0, 0.5)]
    (picture,) = draw(grid("parameters", conditions, [("FsPLL", "")], dataset="photos"))
    by_k, by_weight = picture.figure.axes
    assert len(lines_with(by_k, [0.9] * 3)) == 2
    assert len(lines_with(by_weight, [0.9] * 2)) == 2
    assert {"r = 1", "r = 2"} <= set(texts(picture.figure))


def test_parameters_of_two_methods_have_panels_and_limits_of_their_own():
    conditions = [Condition(1, 10, 10, k) for k in (3, 9, 20)]
    rows = [("FsPLL+", ""), ("FsPLL", "")]
    outcome = grid("parameters", conditions, rows, dataset="photos")
    low = [replace(cell, query=cell.query - 0.7) for cell in outcome.cells if cell.row == "FsPLL"]
    high = [cell for cell in outcome.cells if cell.row == "FsPLL+"]
    (picture,) = draw(replace(outcome, cells=(*low, *high)))
    upper, lower = picture.figure.axes
    assert upper.get_ylabel() == "accuracy of FsPLL"
    assert lower.get_ylabel() == "accuracy of FsPLL+"
    assert upper.get_ylim()[1] < lower.get_ylim()[0]
    assert "FsPLL and FsPLL+" in picture.caption


@pytest.mark.parametrize("experiment", ["omniglot", "mini-imagenet", "noise", "parameters"])
def test_nothing_measured_is_no_figure(experiment):
    assert draw(Outcome(experiment, "Omniglot", "quick", ())) == []


@pytest.mark.parametrize("experiment", ["omniglot", "mini-imagenet", "noise"])
def test_one_cell_of_one_task_is_drawn(experiment):
    outcome = Outcome(experiment, "Omniglot", "quick", (cell("PN", Condition(2, 10, 5), 0.5, n=1),))
    for picture in draw(outcome):
        assert file_bytes(picture.figure, "png").startswith(b"\x89PNG")


def test_files_are_what_they_say_and_the_same_again():
    def picture():
        return draw(grid("noise", [Condition(2, 10, 5)], [("PN", ""), ("FsPLL", "")]))[0].figure

    figure = picture()
    png, pdf = file_bytes(figure, "png"), file_bytes(figure, "pdf")
    assert Image.open(io.BytesIO(png)).size == (1116, 702)
    assert pdf.startswith(b"%PDF")
    again = picture()
    assert file_bytes(again, "png") == png
    assert file_bytes(again, "pdf") == pdf


def test_rows_can_be_told_apart():
    looks = [look(row)[:3] for row in ROWS]
    assert len(set(map(str, looks))) == len(looks)


def test_labels_are_moved_apart_in_order_and_stay_inside():
    moved = spread([0.99, 0.2, 0.98, 1.0], 0.1, 0, 1)
    assert moved == pytest.approx([0.9, 0.2, 0.8, 1.0])
    heights = np.random.default_rng(0).random(8)
    moved = spread(list(heights), 0.1, 0, 1)
    assert np.argsort(moved).tolist() == np.argsort(heights).tolist()
    assert np.diff(np.sort(moved)).min() >= 0.1 - 1e-9
    assert min(moved) >= 0
    assert max(moved) <= 1 + 1e-9


def test_without_matplotlib(monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingPackageError, match=r"drawing figures needs.*fspll\[plots\]"):
        draw(Outcome("omniglot", "Omniglot", "quick", ()))
