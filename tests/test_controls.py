"""Figures that answer: a picture for all, a control for a live reader."""

import io
import sys
from functools import partial

import matplotlib.pyplot as plt
import pytest
from control_cells import (
    CALL,
    LESSONS,
    answers,
    control_cells,
    names,
    needed,
    run_controls,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from coursekit import controls, plots

ALT = "One line that rises from left to right."
VIEW = "application/vnd.jupyter.widget-view+json"


pytestmark = pytest.mark.usefixtures("own_figures")


@pytest.fixture
def displayed(monkeypatch):
    """Collect what is shown, as a notebook would store it."""
    import IPython.display

    kept = []
    monkeypatch.setattr(
        IPython.display, "display", lambda data, **more: kept.append((data, more))
    )
    return kept


def line(height):
    fig, ax = plt.subplots(figsize=(4, 2))
    ax.plot([0, height])
    ax.set(ylim=(0, 10))
    return fig


def slope(height, where="left"):
    fig, axes = plt.subplots(1, 2, figsize=(4, 2))
    axes[0 if where == "left" else 1].plot([0, height])
    return fig


def parts(displayed):
    """Return the movers, the line of words and the picture of the last control."""
    ipywidgets = pytest.importorskip("ipywidgets")
    from ipywidgets.widgets import widget

    made = getattr(widget, "_instances", None) or ipywidgets.Widget.widgets
    panel = made[displayed[-1][0][VIEW]["model_id"]]
    *movers, note, picture = panel.children
    return movers, note, picture


def pixels(png):
    return Image.open(io.BytesIO(png)).convert("RGB").tobytes()


# Properties


def test_the_page_has_the_first_picture_with_its_alt_text_and_one_line(displayed):
    controls.explore(line, alt=ALT, height=[3, 1, 2])
    (picture, more), (control, _) = displayed
    assert set(picture) == {"image/png", "text/plain"}
    assert more["metadata"] == {"image/png": {"alt": ALT}}
    assert control["text/plain"].count("\n") == 0
    assert set(control) == {VIEW, "text/plain"}
    plots.show(line(3), alt=ALT)
    assert displayed[-1][0]["image/png"] == picture["image/png"]


def test_without_ipywidgets_the_picture_is_the_same_and_a_line_says_what_to_install(
    displayed, monkeypatch
):
    controls.explore(line, alt=ALT, height=[3, 1])
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # its import fails
    controls.explore(line, alt=ALT, height=[3, 1])
    live, _, still, told = (data for data, _ in displayed)
    assert still == live
    assert set(told) == {"text/plain"}
    assert told["text/plain"].startswith("Live control of height: pip install ipyw")


def test_what_is_committed_does_not_depend_on_the_run(displayed):
    for _ in range(2):
        controls.explore(line, alt=ALT, height=[3, 1])
    one, other = displayed[:2], displayed[2:]
    for (data, _), (again, _) in zip(one, other, strict=True):
        data.pop(VIEW, None), again.pop(VIEW, None)
        assert data == again


def test_a_move_draws_the_value_and_a_move_back_the_first_picture(displayed):
    controls.explore(line, alt=ALT, height=[3, 1, 9])
    (mover,), note, picture = parts(displayed)
    assert picture.layout.display == "none"  # no second picture before the first move
    seen = []
    for value in ("9", "1", "3"):
        mover.value = value
        seen.append(pixels(picture.value))
        assert note.value == f"height {value}"
        assert (picture.layout.display, picture.layout.visibility) == (
            "block",
            "visible",
        )
    assert len(set(seen)) == 3
    assert seen[-1] == pixels(displayed[0][0]["image/png"])
    assert plt.get_fignums() == []


@settings(max_examples=5)
@given(height=st.integers(10, 10**6))
def test_axes_stand_still_while_their_labels_grow(height):
    def draw(high):
        fig, ax = plt.subplots(figsize=(4, 2))
        drawn.append(ax)
        ax.plot([0, high])
        return fig

    drawn = []
    answers(draw, {"high": [1, height]})({"high": height})
    assert drawn[1].get_position().bounds == drawn[0].get_position().bounds
    plt.close("all")


def test_a_control_goes_on_with_the_names_of_its_cell_when_later_ones_change(displayed):
    cell = """
scale = 2


def high(height, *, more=1):
    return scale * height * more


def picture(height):
    fig, ax = plt.subplots(figsize=(4, 2))
    ax.set(ylim=(0, 10))
    ax.plot([0, high(height) / scale])
    return fig
"""
    place = {"plt": plt}
    exec(cell, place)
    controls.explore(picture := place["picture"], alt=ALT, height=[1, 3])
    place |= {"scale": None, "high": "used anew"}
    (mover,), note, shown = parts(displayed)
    mover.value = "3"
    assert note.value == "height 3"
    buffer = io.BytesIO()
    line(3).savefig(buffer, format="png")
    assert pixels(shown.value) == pixels(buffer.getvalue())
    with pytest.raises(TypeError):
        picture(3)  # the function itself reads the new names


def test_a_draw_that_is_no_plain_function_is_taken_as_it_is(displayed):
    controls.explore(partial(line), alt=ALT, height=[1, 2])
    (mover,), note, _ = parts(displayed)
    mover.value = "2"
    assert note.value == "height 2"


def test_a_figure_with_other_axes_is_laid_out_anew(displayed):
    def draw(count):
        fig, axes = plt.subplots(1, count, figsize=(4, 2), squeeze=False)
        for ax in axes.flat:
            ax.plot([0, 1])
        return fig

    controls.explore(draw, alt=ALT, count=[1, 2])
    (mover,), note, picture = parts(displayed)
    mover.value = "2"
    assert note.value == "count 2"
    buffer = io.BytesIO()
    draw(2).savefig(buffer, format="png")
    assert pixels(picture.value) == pixels(buffer.getvalue())


def test_numbers_become_a_slider_in_order_and_words_a_list_as_given(displayed):
    controls.explore(slope, alt=ALT, height=[3, 10_000, 0.25], where=["left", "right"])
    (slider, words), note, _ = parts(displayed)
    assert type(slider).__name__ == "SelectionSlider"
    assert (slider.options, slider.value) == (("0.25", "3", "10,000"), "3")
    assert type(words).__name__ == "Dropdown"
    assert (words.options, words.value) == (("left", "right"), "left")
    slider.value = "0.25"
    words.value = "right"
    assert note.value == "height 0.25, where right"


def test_each_mover_says_what_it_moves(displayed):
    def draw(max_distance):
        return line(max_distance)

    controls.explore(draw, alt=ALT, max_distance=[1, 2])
    (mover,), _, _ = parts(displayed)
    assert mover.description == "max distance"
    assert "max distance" in displayed[-1][0]["text/plain"]


def test_an_error_while_moving_stands_in_the_control_and_goes_with_the_next_move(
    displayed,
):
    def draw(height):
        fig = line(height)
        if height == 2:
            raise ValueError("height is 2, but <odd> it must be.")
        return fig

    controls.explore(draw, alt=ALT, height=[1, 2, 3])
    (mover,), note, picture = parts(displayed)
    mover.value = "3"
    mover.value = "2"
    assert note.value == "ValueError: height is 2, but <odd> it must be."
    assert picture.layout.visibility == "hidden"  # it would show another value
    assert plt.get_fignums() == []
    mover.value = "3"
    assert note.value == "height 3"
    assert picture.layout.visibility == "visible"


def test_an_error_of_the_first_picture_is_raised_where_the_cell_can_show_it(displayed):
    with pytest.raises(ZeroDivisionError):
        controls.explore(lambda height: 1 / 0, alt=ALT, height=[1, 2])
    assert not displayed


# Boundaries


def test_two_values_are_enough_and_the_first_may_come_again(displayed):
    controls.explore(line, alt=ALT, height=[3, *range(5)])
    (mover,), _, _ = parts(displayed)
    assert mover.options == ("0", "1", "2", "3", "4")
    assert mover.value == "3"
    controls.explore(line, alt=ALT, height=range(1, 3))
    assert parts(displayed)[0][0].options == ("1", "2")


@pytest.mark.parametrize("values", [[None, 1], [True, False], [(1, 2), (3, 4)]])
def test_values_that_are_no_numbers_are_listed_and_reach_draw_as_they_are(
    displayed, values
):
    seen = []
    controls.explore(lambda x: seen.append(x) or line(1), alt=ALT, x=values)
    (mover,), _, _ = parts(displayed)
    mover.value = str(values[1])
    assert seen == values
    assert mover.value == str(values[1])


def test_other_figures_stay_open(displayed):
    mine = line(1)
    controls.explore(line, alt=ALT, height=[1, 2])
    parts(displayed)[0][0].value = "2"
    assert plt.get_fignums() == [mine.number]


# Messages


@pytest.mark.parametrize(
    "values", [[], [1], [1, 1], "ab", 3, {1, 2}, None, iter([1, 2])]
)
def test_values_that_leave_nothing_to_move_are_refused(displayed, values):
    with pytest.raises(ValueError, match="height is .*two or more values.*Use a list"):
        controls.explore(line, alt=ALT, height=values)
    assert not displayed
    controls.explore(line, alt=ALT, height=(1, 2))


@pytest.mark.parametrize("values", [[1, 2, 2], [1, 2, 2.0], [1, 1, 1, 2], [0, "1", 1]])
def test_values_that_a_reader_cannot_tell_apart_are_refused(displayed, values):
    with pytest.raises(ValueError, match="height has two values that read [12], but"):
        controls.explore(line, alt=ALT, height=values)
    assert not displayed


def test_a_control_needs_a_choice(displayed):
    with pytest.raises(ValueError, match="no choice, .*nothing to move. Name an arg"):
        controls.explore(line, alt=ALT)
    assert not displayed


@pytest.mark.parametrize("result", [None, "a figure"])
def test_what_is_no_figure_is_refused(displayed, result):
    with pytest.raises(ValueError, match=f"draw returned {result!r}, .*return fig"):
        controls.explore(lambda height: result, alt=ALT, height=[1, 2])
    assert not displayed


def test_the_alt_text_must_say_something(displayed):
    with pytest.raises(ValueError, match="alt is 'a line', .*five words or more"):
        controls.explore(line, alt="a line", height=[1, 2])


# The lessons


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_lesson_has_a_control_and_commits_its_picture_and_its_line(path):
    found = control_cells(path)
    assert found
    for cell in found:
        kinds = [set(output["data"]) for output in cell["outputs"]]
        assert kinds == [{"image/png", "text/plain"}, {"text/plain"}] * (
            "".join(cell["source"]).count(CALL)
        )
        told = "".join(cell["outputs"][1]["data"]["text/plain"])
        assert told.startswith("Live control of ")


# Tensors go into imshow; what numpy thinks of that is for torch to mend.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_move_of_a_lesson_changes_the_picture_and_keeps_its_size(path):
    for draw, choices in run_controls(path):
        first = {name: values[0] for name, values in choices.items()}
        picture = answers(draw, choices)
        start = picture(first)
        for name, values in choices.items():
            others = [value for value in values if value != first[name]]
            for value in {others[0], others[len(others) // 2], others[-1]}:
                moved = picture(first | {name: value})
                assert pixels(moved) != pixels(start)
                assert moved[16:24] == start[16:24]  # width and height in pixels


def test_only_what_a_control_rests_on_is_run():
    texts = ["import a", "b = 1", "c = 2", "d = b", "def f():\n    return c", "f(a)"]
    cells = [{"source": [text]} for text in texts]
    kept = [text.strip() for text in needed(cells, 5)]
    assert kept == ["import a", "c = 2", texts[4], "f(a)"]
    assert names("x = y\nfor i in z:\n    w = i") == ({"x", "i", "w"}, {"y", "z"})
