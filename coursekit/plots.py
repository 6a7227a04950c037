"""Figures: data first, Axes second; they draw what they are given and no more."""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

METHOD_STYLE: dict[str, dict] = {
    "sinusoidal": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "learned": {"color": "#CC79A7", "marker": "s", "linestyle": "--"},
    "shaw": {"color": "#009E73", "marker": "^", "linestyle": "-"},
    "t5": {"color": "#009E73", "marker": "v", "linestyle": "--"},
    "rope": {"color": "#D55E00", "marker": "D", "linestyle": "-"},
    "xpos": {"color": "#D55E00", "marker": "d", "linestyle": "--"},
    "alibi": {"color": "#000000", "marker": "P", "linestyle": "-."},
    "kerple": {"color": "#000000", "marker": "*", "linestyle": ":"},
    "none": {"color": "#595959", "marker": "x", "linestyle": ":"},
}
"""One look for each method in all notebooks: colour, marker and dash together."""

_BLOCKED = "#d9d9d9"
_DOORS = {"positioned": 1, "rotated": 2, "logits": 3}


def use_house_style() -> None:
    """Set sizes, fonts and a white background, legible on a light or dark page."""
    plt.style.use(["default", Path(__file__).with_name("house.mplstyle")])


def show(fig: Figure, *, alt: str) -> None:
    """Show a figure as PNG, store its alt text with the image, and close it.

    Args: ``fig``; ``alt``, what is seen: axes, pattern, extremes; at least five words.

    Raises:
        ValueError: If ``alt`` says too little to stand for the picture.
    """
    from IPython.display import display  # only a notebook has it

    if len(alt.split()) < 5:
        raise ValueError(
            f"alt is {alt!r}, but it stands for the figure where no picture can be "
            f"seen. Say in five words or more what is drawn: axes, pattern, extremes."
        )
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", metadata={"Software": None})
    plt.close(fig)
    picture = {"image/png": buffer.getvalue(), "text/plain": alt}
    display(picture, metadata={"image/png": {"alt": alt}}, raw=True)


def plot_encoding(encoding, ax: Axes, *, limit: float | None = None) -> Axes:
    """Draw a table (length, d_model): position down, feature across, white is 0."""
    _signed(encoding, ax, "value", limit)
    return _name(ax, "feature", "position")


def plot_scores(
    scores,
    ax: Axes,
    *,
    tokens: Sequence[str] | None = None,
    limit: float | None = None,
    label: str = "score",
) -> Axes:
    """Draw scores, logits or a bias (query, key); blocked cells are grey."""
    _signed(scores, ax, label, limit)
    return _name(ax, "key", "query", tokens)


def plot_weights(
    weights, ax: Axes, *, tokens: Sequence[str] | None = None, limit: float = 1.0
) -> Axes:
    """Draw weights (query, key) from 0; cells of exactly 0 are blocked and grey."""
    weights = np.ma.masked_equal(_array(weights), 0)
    _image(weights, ax, "weight", "viridis", (0, limit))
    return _name(ax, "key", "query", tokens)


def plot_angles(angles, ax: Axes) -> Axes:
    """Draw angles (length, pairs) on the circle: position down, pair across."""
    wrapped = _array(angles) % (2 * math.pi)
    _image(wrapped, ax, "angle (radians)", "twilight", (0, 2 * math.pi))
    return _name(ax, "feature pair", "position")


def plot_by_offset(
    curves: Mapping[str, tuple], ax: Axes, *, label: str = "score"
) -> Axes:
    """Draw (offsets, values) of each name as a line; offset is key minus query."""
    ax.set(xlabel="offset, key minus query (positions)", ylabel=label)
    return _curves(curves, ax)


def plot_losses(
    losses: Mapping[str, Sequence[Sequence[float]]], ax: Axes, *, label: str = "loss"
) -> Axes:
    """Draw for each name the losses of its seeds, thin, and their mean, thick."""
    ax.set(xlabel="step", ylabel=label)
    steps = {
        name: np.arange(1, np.shape(seeds)[1] + 1) for name, seeds in losses.items()
    }
    return _curves(
        {name: (steps[name], losses[name]) for name in losses}, ax, marker=""
    )


def plot_walk(stages: Mapping[str, str], ax: Axes, *, door: int | None = None) -> Axes:
    """Draw stages and shapes, from ``stage_shapes``, in a row, and light one door.

    Raises:
        ValueError: If ``door`` is not 1, 2, 3 or None for no light.
    """
    if door not in (None, 1, 2, 3):
        told = f"door is {door!r}, but the walk has three: 1 embed, 2 rotate, 3 bias. "
        raise ValueError(told + "Use one of them, or None for no light.")
    for column, (name, shape) in enumerate(stages.items()):
        ax.text(column, 0, name, ha="center", weight="bold", size=8)
        ax.text(column, -0.5, shape, ha="center", size=7)
        if column:
            ax.text(column - 0.5, 0, "→", ha="center", color="#595959")
        if name in _DOORS:
            lit = _DOORS[name] == door
            ink, fill = ("white", "#D55E00") if lit else ("#757575", "white")
            circle = {"boxstyle": "circle", "fc": fill, "ec": fill if lit else ink}
            look = {"ha": "center", "weight": "bold", "color": ink, "bbox": circle}
            ax.text(column - 0.5, 0.8, str(_DOORS[name]), **look)
    ax.set(xlim=(-0.6, len(stages) - 0.4), ylim=(-0.8, 1.3))
    ax.axis("off")
    return ax


def _curves(curves: Mapping[str, tuple], ax: Axes, **changes) -> Axes:
    """Draw a line for each name, or thin lines for its seeds and a thick mean."""
    free = [look for name, look in METHOD_STYLE.items() if name not in curves]
    free = free[::-1] * 9
    for name, (x, y) in curves.items():
        y = _array(y)
        style = (METHOD_STYLE[name] if name in METHOD_STYLE else free.pop()) | changes
        if y.ndim == 2 and len(y) > 1:
            ax.plot(x, y.T, color=style["color"], linewidth=0.6, alpha=0.5)
        mean, every = y.mean(0) if y.ndim == 2 else y, max(1, len(x) // 12)
        ax.plot(x, mean, label=name, linewidth=1.8, markevery=every, **style)
    _label_lines(ax)
    return ax


def _label_lines(ax: Axes) -> None:
    """Write each name beside the right end of its line, pushed apart to be read."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    low, high = ax.get_ylim()
    at, gap = -math.inf, (high - low) * 0.075
    lines.sort(key=lambda line: line.get_ydata()[-1])
    for above, line in zip(range(len(lines))[::-1], lines, strict=True):
        end = line.get_xdata()[-1], line.get_ydata()[-1]
        at = max(at + gap, min(end[1], high - above * gap))
        place = {"xytext": (1.01, at), "textcoords": ax.get_yaxis_transform()}
        ax.annotate(line.get_label(), end, **place, va="center", color=line.get_color())


def _signed(data, ax: Axes, label: str, limit: float | None) -> None:
    """Draw signed numbers with white at zero; what is not finite is grey."""
    data = np.ma.masked_invalid(_array(data))
    limit = limit or float(abs(data.filled(0)).max()) or 1.0
    _image(data, ax, label, "RdBu_r", (-limit, limit))


def _array(data) -> np.ndarray:
    """Return numbers as an array, also those of a tensor of a model."""
    tensor = hasattr(data, "detach")
    return np.asarray(data.detach().cpu().double() if tensor else data)


def _image(data, ax: Axes, label: str, cmap: str, limits: tuple) -> None:
    """Draw one map with its colour bar."""
    if np.ndim(data) != 2:
        told = f"the data has shape {np.shape(data)}, but a map has two axes. "
        raise ValueError(told + "Pick one batch entry and head, as weights[0, 0].")
    cmap = plt.get_cmap(cmap).with_extremes(bad=_BLOCKED)
    image = ax.imshow(data, cmap=cmap, vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label=label)


def _name(ax: Axes, across: str, down: str, tokens=None) -> Axes:
    """Name both axes; tick with tokens, or with whole numbers from 0."""
    ax.set(xlabel=across, ylabel=down)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    if tokens is not None:
        ax.set_xticks(range(len(tokens)), tokens, rotation=45, ha="right")
        ax.set_yticks(range(len(tokens)), tokens)
    return ax
