"""Figures that answer: a picture for every reader, and a control for a live one."""

import io
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from types import FunctionType

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from coursekit import plots

_VIEW = "application/vnd.jupyter.widget-view+json"


def explore(
    draw: Callable[..., Figure], /, *, alt: str, **choices: Sequence[object]
) -> None:
    """Show a figure, and under it a control for each choice that draws it anew.

    The first picture stays. The one that answers appears under the control with the
    first move, so that a reader compares the two: what changes, and what does not? A
    page without widgets has the first picture and a line that says how to move it.

    Args:
        draw: Takes one value of each choice by name; returns a figure, not shown. It
            goes on with the names that it reads now, when later cells change them.
        alt: What the first picture shows, as for ``plots.show``.
        **choices: For each argument of ``draw`` its values, two or more. The first is
            what the page shows, and may come again: [3, *range(8)]. Numbers become a
            slider, in order; other values become a list.

    Raises:
        ValueError: If there is no choice, if the values of one leave nothing to move
            or cannot be told apart, or if ``draw`` returns no figure.
    """
    labelled = {name: _labelled(name, values) for name, values in choices.items()}
    if not labelled:
        raise ValueError(
            "explore has no choice, but without one there is nothing to move. Name an "
            "argument of draw with its values, as base=(10_000, 100)."
        )
    first = {name: values[0] for name, values in choices.items()}
    figure = _figure(draw, first)
    plots.show(figure, alt=alt)
    frames = [ax.get_position(original=True) for ax in figure.axes]
    kept = _with_names_of_now(draw)
    _show_control(lambda values: _picture(kept, values, frames), labelled)


def _labelled(name: str, values: Sequence[object]) -> dict[str, object]:
    """Return each value under what a reader reads; refuse what would not move."""
    many = isinstance(values, Sequence) and not isinstance(values, str)
    labels = [_label(value) for value in values] if many else []
    if len(set(labels)) < 2:
        raise ValueError(
            f"{name} is {values!r}, but a control moves between two or more values, "
            f"of which the first is shown at first. Use a list of them, or a range."
        )
    twice = [label for label in labels[1:] if labels[1:].count(label) > 1]
    if twice:
        raise ValueError(
            f"{name} has two values that read {twice[0]}, but a reader must see that "
            f"a move changes something. Only the first may come again: [3, *range(8)]."
        )
    return dict(zip(labels, values, strict=True))


def _label(value: object) -> str:
    """Write a value as the figures write it: 10,000 and 0.25."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _with_names_of_now(draw: Callable) -> Callable:
    """Return ``draw`` with the names that it reads as they are now.

    A control outlives its cell, and later cells use a name such as ``query`` anew.
    What ``draw`` calls, where it comes from the same notebook, is kept in the same way.
    """
    if not isinstance(draw, FunctionType):
        return draw
    names = dict(draw.__globals__)

    def bound(function: FunctionType) -> FunctionType:
        """Copy a function; the copy reads ``names``."""
        rest = function.__name__, function.__defaults__, function.__closure__
        copy = FunctionType(function.__code__, names, *rest)
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    for name, value in list(names.items()):
        if isinstance(value, FunctionType) and value.__globals__ is draw.__globals__:
            names[name] = bound(value)
    return bound(draw)


def _figure(draw: Callable[..., Figure], values: Mapping[str, object]) -> Figure:
    """Draw the figure of these values, and refuse what is none."""
    figure = draw(**values)
    if not isinstance(figure, Figure):
        raise ValueError(
            f"draw returned {figure!r}, but a control needs the figure itself, to show "
            f"it. End draw with `return fig`."
        )
    return figure


def _picture(draw: Callable, values: Mapping[str, object], frames: list) -> bytes:
    """Return the figure as PNG; no figure stays open, not even that of a failure.

    Its axes stand in the frames of the first figure, so that nothing moves but what
    the control moves. To lay them out anew would double the time, too.
    """
    others, buffer = set(plt.get_fignums()), io.BytesIO()
    try:
        figure = _figure(draw, values)
        if len(figure.axes) == len(frames):
            with plt.rc_context({"figure.constrained_layout.use": False}):
                figure.set_layout_engine(None)  # "none" would draw it twice
            for ax, frame in zip(figure.axes, frames, strict=True):
                ax.set_position(frame)
        figure.savefig(buffer, format="png", pil_kwargs={"compress_level": 1})
    finally:
        for number in set(plt.get_fignums()) - others:
            plt.close(number)
    return buffer.getvalue()


def _show_control(picture_of: Callable[[dict], bytes], choices: dict) -> None:
    """Display the control where there are widgets, and a line where there are none."""
    from IPython.display import display  # only a notebook has it

    names = " and ".join(_title(name) for name in choices)
    try:
        import ipywidgets
    except ImportError:
        mend = "pip install ipywidgets, then run this cell again"
        display({"text/plain": f"Live control of {names}: {mend}."}, raw=True)
        return
    view = {"version_major": 2, "version_minor": 0}
    view["model_id"] = _panel(ipywidgets, picture_of, choices).model_id
    mend = "run this cell in JupyterLab or Colab"
    display({_VIEW: view, "text/plain": f"Live control of {names}: {mend}."}, raw=True)


def _panel(widgets, picture_of, choices):
    """Make the control: what moves, a line of words, and the picture that answers.

    An ``Image`` of bytes works in ipywidgets 7.7.1 and 8, in Colab and when a notebook
    is tested; output captured by ``interact`` fails in the last of these.
    """
    movers = {name: _mover(widgets, name, choices[name]) for name in choices}
    note = widgets.Label("Move it: the answer appears here, under the first picture.")
    # Never wider than the page, nor stretched to it.
    fitted = widgets.Layout(display="none", max_width="100%", align_self="flex-start")
    picture = widgets.Image(format="png", layout=fitted)

    def answer(_change) -> None:
        """Show the picture of the values now chosen, or what went wrong."""
        try:
            chosen = {name: choices[name][m.value] for name, m in movers.items()}
            picture.value = picture_of(chosen)
        except Exception as error:  # it would end in a log that no reader opens
            note.value = f"{type(error).__name__}: {error}"
            fitted.visibility = "hidden"  # keeps its place, so the page does not jump
        else:
            note.value = ", ".join(f"{_title(n)} {m.value}" for n, m in movers.items())
            fitted.display, fitted.visibility = "block", "visible"

    for mover in movers.values():
        mover.observe(answer, names="value")
    inset = widgets.Layout(padding="0 0 0 4px")  # the page cuts off the first letter
    return widgets.VBox([*movers.values(), note, picture], layout=inset)


def _mover(widgets, name: str, values: Mapping[str, object]):
    """Make a slider for numbers, lowest first, or a list of words, as given."""
    numbers = all(_is_number(value) for value in values.values())
    kind = widgets.SelectionSlider if numbers else widgets.Dropdown
    return kind(
        options=sorted(values, key=values.get) if numbers else list(values),
        value=next(iter(values)),
        description=_title(name),
        style={"description_width": "initial"},  # the whole name, however long
        layout=widgets.Layout(width="28em", max_width="100%"),
    )


def _is_number(value: object) -> bool:
    """Say whether a value has a place on a slider."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _title(name: str) -> str:
    """Write the name of an argument as words."""
    return name.replace("_", " ")
