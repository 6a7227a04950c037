"""Figures: what is drawn is what was given, in the house's maps, limits and words."""

import ast
import io
import math
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgb
from PIL import Image

from coursekit import plots
from coursekit.position import METHODS

ALT = "A grid of four cells, dark at the top left and light elsewhere."
GREY = "#d9d9d9"


pytestmark = pytest.mark.usefixtures("own_figures")


@pytest.fixture
def ax():
    """Return empty axes."""
    return plt.subplots()[1]


def bar_of(ax):
    """Return the axes of the colour bar beside ``ax``."""
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    return bar


def drawn(ax):
    """Return the numbers, the colour map's name and the limits of the one image."""
    (image,) = ax.images
    return image.get_array(), image.get_cmap().name, image.get_clim()


def colours(ax):
    """Return the colour of each cell, as hex."""
    (image,) = ax.images
    rgba = image.to_rgba(image.get_array())
    return [[to_hex(cell) for cell in row] for row in rgba]


def square(*numbers):
    """Make a square of numbers."""
    side = math.isqrt(len(numbers))
    return torch.tensor(numbers, dtype=torch.float64).reshape(side, side)


MAPS = [
    (plots.plot_encoding, "RdBu_r", "value", "feature", "position"),
    (plots.plot_scores, "RdBu_r", "score", "key", "query"),
    (plots.plot_weights, "viridis", "weight", "key", "query"),
    (plots.plot_angles, "twilight", "angle (radians)", "feature pair", "position"),
]


# Properties


@pytest.mark.parametrize(("plot", "cmap", "bar", "across", "down"), MAPS)
def test_each_map_names_its_axes_and_its_bar_and_returns_the_axes(
    ax, plot, cmap, bar, across, down
):
    assert plot(square(0.1, 0.2, 0.3, 0.4), ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == (across, down)
    assert bar_of(ax).get_ylabel() == bar
    assert drawn(ax)[1] == cmap


@pytest.mark.parametrize("plot", [row[0] for row in MAPS])
@pytest.mark.parametrize("kind", [torch.tensor, np.array, list])
def test_each_map_draws_what_it_was_given_and_computes_nothing(ax, plot, kind):
    numbers = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
    plot(kind(numbers), ax)
    assert np.asarray(drawn(ax)[0]) == pytest.approx(np.array(numbers))
    low, high = ax.get_ylim()
    assert low > high  # row 0 is at the top
    assert ax.get_xlim() == (-0.5, 2.5)


@settings(max_examples=5)
@given(largest=st.floats(1e-3, 1e3), sign=st.sampled_from([-1, 1]))
def test_signed_maps_are_white_at_zero_and_as_wide_on_both_sides(largest, sign):
    for plot in (plots.plot_encoding, plots.plot_scores):
        ax = plt.subplots()[1]
        plot(square(0, sign * largest, -sign * largest / 2, 0), ax)
        assert drawn(ax)[2] == (-largest, largest)
        red, green, blue = to_rgb(colours(ax)[0][0])
        assert min(red, green, blue) > 0.95
        plt.close("all")


def test_negative_is_blue_and_positive_is_red(ax):
    plots.plot_scores(square(-1, 1, 0, 0), ax)
    (low, high), _ = colours(ax)
    assert to_rgb(low)[2] > to_rgb(low)[0]
    assert to_rgb(high)[0] > to_rgb(high)[2]


def test_blocked_cells_are_grey_and_do_not_move_the_limits(ax):
    plots.plot_scores(square(-math.inf, 2, math.nan, -3), ax)
    assert drawn(ax)[2] == (-3, 3)
    assert colours(ax)[0][0] == colours(ax)[1][0] == GREY
    assert GREY not in (colours(ax)[0][1], colours(ax)[1][1])


def test_weights_of_zero_are_blocked_and_grey_and_small_ones_are_not(ax):
    plots.plot_weights(square(1, 0, 1e-6, 1 - 1e-6), ax)
    assert drawn(ax)[2] == (0, 1)
    assert colours(ax)[0][1] == GREY
    assert sum(row.count(GREY) for row in colours(ax)) == 1
    assert colours(ax)[1][0] == to_hex(plt.get_cmap("viridis")(0))


def test_grey_is_no_colour_of_any_of_the_maps():
    grey = np.array(to_rgb(GREY))
    for name in ("viridis", "RdBu_r"):
        steps = plt.get_cmap(name)(np.linspace(0, 1, 256))[:, :3]
        assert np.abs(steps - grey).max(-1).min() > 0.02


@pytest.mark.parametrize("turns", [-2, -1, 0, 1, 300])
def test_angles_are_drawn_on_the_circle(ax, turns):
    angles = square(0.5, 1.0, 2.0, 6.0)
    plots.plot_angles(angles + turns * 2 * math.pi, ax)
    numbers, _, limits = drawn(ax)
    assert limits == (0, 2 * math.pi)
    assert np.asarray(numbers) == pytest.approx(angles.numpy())


def test_tokens_stand_at_their_rows_and_columns(ax):
    tokens = ["the", "dog"]
    for plot in (plots.plot_scores, plots.plot_weights):
        axes = plt.subplots()[1]
        plot(square(1, 2, 3, 4), axes, tokens=tokens)
        for axis in (axes.xaxis, axes.yaxis):
            assert [label.get_text() for label in axis.get_ticklabels()] == tokens
            assert list(axis.get_ticklocs()) == [0, 1]


def test_ticks_without_tokens_are_whole_numbers(ax):
    plots.plot_encoding(torch.zeros(5, 3), ax)
    ax.figure.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        assert all(float(tick).is_integer() for tick in axis.get_ticklocs())
        assert 0 in axis.get_ticklocs()


def test_each_method_looks_like_no_other():
    looks = [
        (s["color"], s["marker"], s["linestyle"]) for s in plots.METHOD_STYLE.values()
    ]
    assert len(set(looks)) == len(looks)
    markers = [marker for _, marker, _ in looks]
    assert len(set(markers)) == len(markers)
    for one, other in combinations(looks, 2):
        assert one[0] != other[0] or one[2] != other[2]


def test_the_relative_methods_share_a_colour_and_differ_in_dash():
    shaw, t5 = plots.METHOD_STYLE["shaw"], plots.METHOD_STYLE["t5"]
    assert shaw["color"] == t5["color"]
    assert (shaw["linestyle"], t5["linestyle"]) == ("-", "--")


def test_every_method_has_a_look():
    assert set(plots.METHOD_STYLE) == set(METHODS)
    looks = {tuple(look.values()) for look in plots.METHOD_STYLE.values()}
    assert len(looks) == len(METHODS)
    markers = {look["marker"] for look in plots.METHOD_STYLE.values()}
    assert len(markers) == len(METHODS)  # told apart without any colour


def test_plots_imports_no_other_module_of_the_package():
    source = Path(plots.__file__).read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module)
    assert not [
        name for name in imported if name.split(".")[0] in ("coursekit", "torch")
    ]


def test_no_plot_shows_or_closes_a_figure(ax, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("plt.show was called"))
    before = set(plt.get_fignums())
    for plot, *_ in MAPS:
        plot(torch.ones(2, 2), plt.figure().add_subplot())
    plots.plot_by_offset({"rope": ([0, 1], [1.0, 2.0])}, ax)
    plots.plot_losses({"rope": [[1.0, 2.0]]}, ax)
    assert len(plt.get_fignums()) == len(before) + len(MAPS)


# Oracles


def luminance(colour):
    """Compute the relative luminance of WCAG 2, 0 for black and 1 for white."""
    linear = []
    for part in (colour[1:3], colour[3:5], colour[5:7]):
        share = int(part, 16) / 255
        bright = share > 0.04045
        linear.append(((share + 0.055) / 1.055) ** 2.4 if bright else share / 12.92)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", sorted(plots.METHOD_STYLE))
def test_the_colour_of_each_method_reaches_three_to_one_on_white(name):
    assert 1.05 / (luminance(plots.METHOD_STYLE[name]["color"]) + 0.05) >= 3


def test_the_contrast_rule_refuses_yellow_and_sky_blue():
    for colour in ("#F0E442", "#56B4E9", "#E69F00"):
        assert 1.05 / (luminance(colour) + 0.05) < 3


def test_curves_hold_the_numbers_and_the_look_of_their_method(ax):
    curves = {
        "rope": (torch.tensor([-1, 0, 1]), torch.tensor([1.0, 2.0, 3.0])),
        "t5": ([-1, 0, 1], [3.0, 2.0, 1.0]),
    }
    assert plots.plot_by_offset(curves, ax) is ax
    assert ax.get_xlabel() == "offset, key minus query (positions)"
    assert ax.get_ylabel() == "score"
    for line, (name, (x, y)) in zip(ax.get_lines(), curves.items(), strict=True):
        assert line.get_label() == name
        assert line.get_xdata().tolist() == list(x)
        assert line.get_ydata().tolist() == list(y)
        look = plots.METHOD_STYLE[name]
        assert line.get_color() == look["color"]
        assert line.get_marker() == look["marker"]
        assert line.get_linestyle() == look["linestyle"]


def test_losses_are_thin_lines_for_seeds_and_a_thick_one_for_their_mean(ax):
    seeds = [[4.0, 2.0, 1.0], [2.0, 2.0, 3.0]]
    assert plots.plot_losses({"alibi": seeds}, ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    *thin, thick = ax.get_lines()
    assert [line.get_ydata().tolist() for line in thin] == seeds
    assert thick.get_ydata().tolist() == [3.0, 2.0, 2.0]
    for line in ax.get_lines():
        assert line.get_xdata().tolist() == [1, 2, 3]
        assert line.get_color() == plots.METHOD_STYLE["alibi"]["color"]
    assert max(line.get_linewidth() for line in thin) < thick.get_linewidth() / 2


def test_the_loss_of_one_seed_is_its_own_mean(ax):
    plots.plot_losses({"rope": [[4.0, 2.0]]}, ax)
    (line,) = ax.get_lines()
    assert line.get_ydata().tolist() == [4.0, 2.0]


@pytest.mark.parametrize(
    "ends", [[1.0] * 9, [1, 1.01, 1.02, 3, 3, 3.01, 5, 5, 5], [0] * 8 + [100], range(9)]
)
@pytest.mark.parametrize("height", [3.2, 5.0])
def test_labels_of_lines_stand_apart_and_inside_the_figure(ends, height):
    fig, ax = plt.subplots(figsize=(7.2, height))
    curves = {
        name: ([0, 1], [0.0, float(end)])
        for name, end in zip(plots.METHOD_STYLE, ends, strict=True)
    }
    plots.plot_by_offset(curves, ax)
    fig.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == sorted(
        curves, key=lambda name: curves[name][1][1]
    )
    for one, other in combinations(boxes, 2):
        assert min(one.y1, other.y1) <= max(one.y0, other.y0) + 0.5  # half a pixel
    for text, box in zip(ax.texts, boxes, strict=True):
        assert box.x0 >= ax.get_window_extent().x1
        assert box.x1 <= fig.bbox.x1
        assert text.get_color() == plots.METHOD_STYLE[text.get_text()]["color"]


def test_labels_stand_in_the_order_of_their_lines(ax):
    curves = {"rope": ([0, 1], [0.0, 3.0]), "none": ([0, 1], [5.0, 1.0])}
    plots.plot_by_offset(curves, ax)
    ax.figure.canvas.draw()
    heights = {text.get_text(): text.get_window_extent().y0 for text in ax.texts}
    assert heights["none"] < heights["rope"]


@pytest.fixture
def displayed(monkeypatch):
    """Collect what is shown, as a notebook would store it."""
    import IPython.display

    kept = []
    monkeypatch.setattr(
        IPython.display, "display", lambda data, **more: kept.append((data, more))
    )
    return kept


def test_show_stores_the_picture_and_its_alt_text_and_closes_the_figure(displayed):
    fig = plt.figure(figsize=(4, 2))
    plots.show(fig, alt=ALT)
    ((data, more),) = displayed
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == ALT
    assert more["metadata"] == {"image/png": {"alt": ALT}}
    assert more["raw"] is True
    picture = Image.open(io.BytesIO(data["image/png"]))
    assert picture.format == "PNG"
    assert picture.size == (440, 220)
    assert fig.number not in plt.get_fignums()


def test_a_figure_shown_twice_is_the_same_to_the_byte(displayed):
    for _ in range(2):
        fig, ax = plt.subplots()
        plots.plot_scores(square(0, 1, 2, 3), ax, tokens=["the", "dog"])
        plots.show(fig, alt=ALT)
    (one, _), (other, _) = displayed
    assert one["image/png"] == other["image/png"]
    assert b"Software" not in one["image/png"]


def test_the_house_style_is_white_and_undoes_other_settings():
    plt.rcParams["axes.facecolor"] = "black"
    plt.rcParams["savefig.dpi"] = 7
    plots.use_house_style()
    assert plt.rcParams["axes.facecolor"] == "white"
    assert plt.rcParams["figure.facecolor"] == "white"
    assert plt.rcParams["savefig.facecolor"] == "white"
    assert plt.rcParams["savefig.dpi"] == 110
    assert plt.rcParams["image.interpolation"] == "nearest"
    assert plt.rcParams["figure.constrained_layout.use"]
    assert not plt.rcParams["axes.spines.top"]
    assert not plt.rcParams["axes.spines.right"]


STAGES = {
    "tokens": "(5,)",
    "positioned": "(1, 5, 16)",
    "rotated": "(1, 2, 5, 8)",
    "logits": "(1, 2, 5, 5)",
}


def marks_of(ax):
    """Return the number, the place and the fill of each door that is drawn."""
    return {
        text.get_text(): (text.get_position()[0], text.get_bbox_patch().get_facecolor())
        for text in ax.texts
        if text.get_bbox_patch() is not None
    }


@pytest.mark.parametrize("door", [None, 1, 2, 3])
def test_the_walk_names_its_stages_and_lights_one_door(ax, door):
    assert plots.plot_walk(STAGES, ax, door=door) is ax
    texts = [text.get_text() for text in ax.texts]
    for stage, shape in STAGES.items():
        assert stage in texts
        assert shape in texts
    assert texts.count("→") == len(STAGES) - 1
    marks = marks_of(ax)
    assert {name: place for name, (place, _) in marks.items()} == {
        "1": 0.5,
        "2": 1.5,
        "3": 2.5,
    }
    lit = [name for name, (_, fill) in marks.items() if to_hex(fill) != "#ffffff"]
    assert lit == ([] if door is None else [str(door)])


# Boundaries


@pytest.mark.parametrize("plot", [row[0] for row in MAPS])
def test_one_cell_is_a_map(ax, plot):
    plot(torch.ones(1, 1), ax)
    assert drawn(ax)[0].shape == (1, 1)


@pytest.mark.parametrize("plot", [plots.plot_encoding, plots.plot_scores])
def test_a_map_of_zeros_has_limits_around_white(ax, plot):
    plot(torch.zeros(2, 2), ax)
    assert drawn(ax)[2] == (-1, 1)


@pytest.mark.parametrize("plot", [plots.plot_encoding, plots.plot_scores])
def test_panels_can_share_their_limits(ax, plot):
    plot(square(0, 1, 2, -3), ax, limit=5.0)
    assert drawn(ax)[2] == (-5, 5)


def test_weights_can_share_their_limit_and_scores_their_name(ax):
    plots.plot_weights(square(0.1, 0.2, 0.3, 0.4), ax, limit=0.5)
    assert drawn(ax)[2] == (0, 0.5)
    axes = plt.subplots()[1]
    plots.plot_scores(torch.ones(2, 2), axes, label="logit")
    assert bar_of(axes).get_ylabel() == "logit"


def test_a_full_turn_is_angle_zero_again(ax):
    turn = 2 * math.pi
    plots.plot_angles(square(0, turn, turn / 2, -turn / 4), ax)
    numbers = np.asarray(drawn(ax)[0])
    assert numbers == pytest.approx(np.array([[0, 0], [turn / 2, 3 * turn / 4]]))


def test_curves_of_one_point_and_of_another_name_are_drawn(ax):
    plots.plot_by_offset({"mine": ([0], [1.0])}, ax, label="weight")
    assert ax.get_ylabel() == "weight"
    assert [text.get_text() for text in ax.texts] == ["mine"]
    axes = plt.subplots()[1]
    plots.plot_losses({"mine": [[1.0]]}, axes, label="loss (nats per token)")
    assert axes.get_ylabel() == "loss (nats per token)"


def test_several_unknown_names_look_different(ax):
    curves = {name: ([0, 1], [0.0, 1.0]) for name in ("one", "two", "three")}
    plots.plot_by_offset(curves, ax)
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}
    assert len(looks) == 3


def test_long_curves_have_markers_that_can_be_told_apart(ax):
    plots.plot_by_offset({"rope": (range(600), np.zeros(600))}, ax)
    (line,) = ax.get_lines()
    assert 600 / line.get_markevery() <= 15


# Messages


@pytest.mark.parametrize("alt", ["", "a plot", "one two three four"])
def test_an_alt_text_that_says_too_little_is_refused(displayed, alt):
    fig = plt.figure()
    with pytest.raises(ValueError, match=f"alt is '{alt}', .*five words or more"):
        plots.show(fig, alt=alt)
    assert not displayed
    plots.show(fig, alt="one two three four five")
    assert len(displayed) == 1


def test_an_alt_text_must_be_given(ax):
    with pytest.raises(TypeError, match="alt"):
        plots.show(ax.figure)


@pytest.mark.parametrize("door", [0, 4, "1", "embed"])
def test_a_door_that_is_not_there_is_refused(ax, door):
    plots.plot_walk(STAGES, ax, door=3)
    with pytest.raises(ValueError, match=f"door is {door!r}, .*1 embed, 2 rotate, 3"):
        plots.plot_walk(STAGES, ax, door=door)


def test_a_map_with_every_cell_blocked_is_grey():
    ax = plots.plot_scores(torch.full((2, 2), -math.inf), plt.subplots()[1])
    assert ax.images[0].get_clim() == (-1, 1)
    plt.close("all")


def test_an_unknown_name_does_not_borrow_the_look_of_a_method_beside_it():
    curve = ([0, 1], [0.0, 1.0])
    names = ["mine", "sinusoidal", "yours", "none"]
    ax = plots.plot_by_offset(dict.fromkeys(names, curve), plt.subplots()[1])
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}
    assert len(looks) == len(names)
    plt.close("all")


def test_labels_of_lines_that_end_at_the_top_stay_inside():
    plots.use_house_style()
    fig, ax = plt.subplots()
    curve = ([0, 1], [0.0, 1.0])
    plots.plot_by_offset(dict.fromkeys(plots.METHOD_STYLE, curve), ax)
    fig.canvas.draw()
    assert max(text.get_window_extent().y1 for text in ax.texts) <= fig.bbox.y1
    plt.close("all")


@pytest.mark.parametrize(
    "x", [torch.zeros(2, 2, requires_grad=True), torch.zeros(2, 2).bfloat16()]
)
def test_maps_take_tensors_of_a_model(x):
    ax = plots.plot_scores(x, plt.subplots()[1])
    assert ax.images[0].get_array().shape == (2, 2)
    plt.close("all")


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), (1, 2, 3, 4)])
def test_a_map_of_other_than_two_axes_is_refused(shape):
    with pytest.raises(ValueError, match="a map has two axes"):
        plots.plot_scores(torch.zeros(shape), plt.subplots()[1])
    plt.close("all")
