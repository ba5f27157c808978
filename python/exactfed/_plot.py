"""Figures of pages, drawn by matplotlib."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._errors import ExactfedWarning

try:
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle
    from matplotlib.path import Path
except ImportError as e:
    raise ImportError("plots need: pip install matplotlib") from e

_POINTS = 0.75
"""Points of a pixel of the page."""
_MEASURED, _PREDICTED = 1.3, 0.9
"""Widths of lines, in points."""
_PANEL = 0.72
"""Height of a panel, in widths."""
_LETTER = 0.6
"""Width of a letter on average, in font sizes."""
_SMALLEST = 4.0
"""Smallest letters that are drawn, in points."""
_LEAST_WIDTH, _LEAST_HEIGHT = 1.5, 0.8
"""The least width and height of a panel with its labels, in inches."""
_NARROWEST, _PAGE = 1.0, 9.0
"""The least width of a panel, in inches, of a figure that would be higher than this page."""
_SQUARE = 0.22
"""The least width of a square of a map, in inches."""
_NARROW = 2.0
"""Panels that are narrower, in inches, have smaller letters."""
_MANY = 16
"""A legend of more entries has smaller letters."""
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.dpi": 300,
}
_SMALL: dict[Any, Any] = {
    "axes.titlesize": 7.0,
    "axes.labelsize": 7.0,
    "xtick.labelsize": 6.0,
    "ytick.labelsize": 6.0,
}


def draw(
    data: dict[str, Any],
    *,
    ax: Axes | Sequence[Axes] | None,
    width: float,
    height: float | None,
    legend: bool,
) -> Figure:
    """Draw a figure into axes, or into a new figure of this width in inches."""
    plot, maps = data["body"].get("plot"), data["body"].get("maps")
    panels = plot["panels"] if plot else maps["maps"]
    default = matplotlib.rcParamsDefault
    columns = _columns(data, width) if ax is None else len(panels)
    style = _STYLE | (_SMALL if ax is None and width / columns < _NARROW else {})
    # What the caller has set is kept, such as the fonts of a paper.
    unset = {key: v for key, v in style.items() if matplotlib.rcParams[key] == default[key]}
    with matplotlib.rc_context(unset):
        if ax is None:
            figure, axes = _new_figure(len(panels), columns, width)
            below = _legend_below(data, figure, width) if legend else 0.0
            _set_height(figure, -(-len(axes) // columns), height, below)
        else:
            axes = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
            if len(axes) != len(panels):
                raise ValueError(f"the figure has {len(panels)} panels, and ax {len(axes)} axes")
            host: Any = axes[0].figure
            figure, below = host, 0.0
        for i, panel_axes in enumerate(axes):
            if plot:
                _panel(panel_axes, plot, i)
            else:
                _map(panel_axes, maps, i)
        _label(axes, plot or maps, columns, whole=ax is None)
        if ax is not None and legend:
            handles = [_handle(entry, entry["name"]) for entry in data["legend"]]
            if handles:
                axes[0].legend(handles=handles, frameon=False)
    if ax is None:
        # The panels keep the height for which they were drawn.
        figure.set_figheight(figure.get_figheight() + below)
        if "inline" in matplotlib.get_backend().lower():
            # A notebook shows what a cell returns; an open figure it would show once more.
            pyplot.close(figure)
    return figure


def _columns(data: dict[str, Any], width: float) -> int:
    """Panels in a row: as many as on the page, if each is wide enough to be read."""
    plot, maps = data["body"].get("plot"), data["body"].get("maps")
    count = len(plot["panels"] if plot else maps["maps"])
    squares = 0 if plot else max(len(one["x"]) for one in maps["maps"])
    columns = int(width / max(_LEAST_WIDTH, _SQUARE * squares + 0.5))
    columns = max(1, min(int(data["columns"]), columns))
    # On a page there is room for so many rows; beyond, narrow panels are better than none.
    while plot and columns < data["columns"] and _rows_height(count, columns, width) > _PAGE:
        if width / (columns + 1) < _NARROWEST:
            break
        columns += 1
    return columns


def _rows_height(count: int, columns: int, width: float) -> float:
    """The height of all panels in inches."""
    each = width / columns * (_PANEL if columns > 1 or width < 4 else 0.55)
    return float(-(-count // columns) * max(each, _LEAST_HEIGHT) + 0.15)


def _points(key: Any) -> float:
    """The size of letters that matplotlib is set to, in points."""
    return float(FontProperties(size=matplotlib.rcParams[key]).get_size_in_points())


def _new_figure(count: int, columns: int, width: float) -> tuple[Figure, list[Axes]]:
    if width < _LEAST_WIDTH:
        raise ValueError(f"a width of {width:g} in is less than {_LEAST_WIDTH:g} in")
    size = (width, _rows_height(count, columns, width))
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for unused in axes.flat[count:]:
        unused.remove()
    return figure, list(axes.flat[:count])


def _set_height(figure: Figure, rows: int, height: float | None, below: float) -> None:
    """Set the height of the panels so that, with what is below them, they have this height."""
    if height is None:
        return
    least = _LEAST_HEIGHT * rows
    if height - below < least:
        text = f"a height of {height:g} in has no room for the panels and the legend"
        text += f": the figure is {least + below:.1f} in high"
        warnings.warn(text, ExactfedWarning, stacklevel=4)
    figure.set_figheight(max(height - below, least))


def _panel(ax: Axes, plot: dict[str, Any], i: int) -> None:
    frame = plot["frames"][i]
    for axis in "xy":
        log = plot[f"scale_{axis}"] == "log"
        ends = [10.0**end if log else end for end in frame[axis]]
        getattr(ax, f"set_{axis}scale")("log" if log else "linear")
        if ends[0] < ends[1]:
            getattr(ax, f"set_{axis}lim")(*ends)
    for series in plot["panels"][i]:
        _series(ax, series)
    _title(ax, frame["title"])
    ax.grid(axis="y", color="#e1e1e1", linewidth=0.5)
    ax.set_axisbelow(True)


def _label(axes: list[Axes], body: dict[str, Any], columns: int, *, whole: bool) -> None:
    """Name the axes; in a whole figure, panels that share an axis have its labels once."""
    panels = body.get("frames") or body["maps"]
    shared = {axis: all(one[axis] == panels[0][axis] for one in panels) for axis in "xy"}
    rows = -(-len(axes) // columns)
    # A label that is longer than a row is high stands beside the middle row alone.
    fits = 72 * _inches(axes[0])[1] > _LETTER * _points("axes.labelsize") * len(body["y"])
    for i, ax in enumerate(axes):
        left, bottom = i % columns == 0, i + columns >= len(axes)
        if bottom:
            ax.set_xlabel(body["x"])
        elif whole and shared["x"]:
            ax.tick_params(axis="x", which="both", labelbottom=False)
        if left and (fits or i // columns == (rows - 1) // 2):
            ax.set_ylabel(body["y"])
        elif not left and whole and shared["y"]:
            ax.tick_params(axis="y", which="both", labelleft=False)


def _series(ax: Axes, series: dict[str, Any]) -> None:
    x, y, low, high = (_numbers(series[key]) for key in ("x", "y", "low", "high"))
    # matplotlib would draw a number of 0 or less at the edge of a logarithmic axis.
    drawn = _has_place(x, ax.get_xscale()) & _has_place(y, ax.get_yscale())
    x, y = np.where(drawn, x, np.nan), np.where(drawn, y, np.nan)
    style, role, name = series["style"], series["role"], series["name"]
    color = style["color"]
    if role == "selected":
        ring = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": color}
        ax.plot(x, y, "o", linestyle="none", label=name, **ring)
        return
    banded = drawn & ~np.isnan(low) & ~np.isnan(high)
    if banded.sum() > 1:
        bottom, top = ax.get_ylim()
        edges = np.clip(low, bottom, top), np.clip(high, bottom, top)
        ax.fill_between(x, *edges, where=banded, color=color, alpha=0.16, linewidth=0)
    measured = role in ("measured", "exact")
    look = _look(style, measured)
    if series["marked"]:
        look |= _marker(style, measured) | {"markevery": series["marked"]}
    ax.plot(x, y, label=name, zorder=3 if measured else 2.5, **look)
    if series["diverged"] and drawn.any():
        last = np.flatnonzero(drawn)[-1]
        ax.plot(x[last], y[last], "x", color=color, markersize=5, markeredgewidth=1.3)


def _has_place(values: np.ndarray, scale: str) -> np.ndarray:
    """Which numbers an axis of this scale shows."""
    return np.isfinite(values) & ((values > 0) | (scale != "log"))


def _numbers(values: list[float | str]) -> np.ndarray:
    return np.array([float(value) for value in values])


def _look(style: dict[str, Any], measured: bool) -> dict[str, Any]:
    width = _MEASURED if measured else _PREDICTED
    # matplotlib scales dashes by the width of the line.
    dashes = [length * _POINTS / width for length in style["dashes"]]
    line = (0, dashes) if dashes else "solid"
    return {"color": style["color"], "linewidth": width, "linestyle": line}


def _marker(style: dict[str, Any], measured: bool) -> dict[str, Any]:
    """Filled markers of measured curves, open ones of predictions."""
    outline = style["marker"]
    return {
        "marker": Path([*outline, outline[0]], closed=True),
        "markersize": 5.0 if measured else 3.6,
        "markerfacecolor": style["color"] if measured else "white",
        "markeredgecolor": style["color"],
        "markeredgewidth": 0.3 if measured else 0.7,
    }


def _map(ax: Axes, maps: dict[str, Any], i: int) -> None:
    values = maps["maps"][i]
    wide, high = _inches(ax)
    room = wide / len(values["x"]), high / len(values["y"])
    for square in values["squares"]:
        x, y = square["x"], square["y"]
        fill: dict[str, Any] = {
            "facecolor": square["color"],
            "alpha": square["opacity"],
            "linewidth": 0,
        }
        ax.add_patch(Rectangle((x + 0.02, y + 0.02), 0.96, 0.96, **fill))
        if square["outlined"]:
            outline: dict[str, Any] = {"fill": False, "edgecolor": "#141414", "linewidth": 0.7}
            ax.add_patch(Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, **outline))
        text, size = _fitting(square["lines"], room)
        ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=size)
    for (x0, y0), (x1, y1) in values["edges"]:
        ax.plot([x0, x1], [y0, y1], color="#141414", linewidth=2, solid_capstyle="butt")
    for axis in "xy":
        names = values[axis]
        getattr(ax, f"set_{axis}lim")(0, len(names))
        getattr(ax, f"set_{axis}ticks")(np.arange(len(names)) + 0.5, names)
    ax.tick_params(length=0)
    _title(ax, values["title"])


def _inches(ax: Axes) -> tuple[float, float]:
    """About how wide and high the axes are."""
    place = ax.get_subplotspec()
    rows, columns = place.get_gridspec().get_geometry() if place else (1, 1)
    wide, high = ax.figure.get_figure(root=True).get_size_inches()
    return 0.95 * (wide - 0.45) / columns, 0.7 * high / rows


def _title(ax: Axes, title: str) -> None:
    # Numbers beside the axis take a part of the width, and bold letters are wider.
    letters = 72 * 0.85 * _inches(ax)[0] / (1.15 * _LETTER)
    size = _points("axes.titlesize")
    one_line = letters >= 0.85 * size * len(title)
    text = title if one_line else _wrapped(title, int(letters / size))
    if text.count("\n") > 1:
        text = _wrapped(title, int(letters / _SMALLEST))
    longest = max(1, *map(len, text.split("\n")))
    size = min(size, max(_SMALLEST, letters / longest))
    ax.set_title(text, fontweight="bold", loc="left", fontsize=size)


def _wrapped(text: str, letters: int) -> str:
    """The text in lines of about so many letters; a setting and its value stay together."""
    joined = re.sub(r" (?==|[0-9])|(?<==) ", "\xa0", text)
    return textwrap.fill(joined, max(8, letters)).replace("\xa0", " ")


def _fitting(lines: list[str], room: tuple[float, float]) -> tuple[str, float]:
    """The first lines of a text that fit, and the size of their letters, in points."""
    wide, high = (72 * 0.95 * inches for inches in room)
    kept = [line for line in lines if _LETTER * _SMALLEST * len(line) <= wide] or lines[:1]
    kept = kept[: max(1, int(high / (1.2 * _SMALLEST)))]
    # Names have capital letters, which are wider.
    across = wide / (1.15 * _LETTER * max(map(len, kept), default=1))
    return "\n".join(kept), max(_SMALLEST, min(6.5, across, high / (1.2 * len(kept))))


def _legend_below(data: dict[str, Any], figure: Figure, width: float) -> float:
    """Add the legend with as many columns as fit; its height in inches."""
    entries = data["legend"]
    if not entries:
        return 0.0
    below: dict[str, Any] = {"loc": "outside lower center", "frameon": False}
    if len(entries) > _MANY:
        below["fontsize"] = _SMALLEST + 1.5
    points = below.get("fontsize", _points("legend.fontsize"))
    # A sample of the line and the space around it are about seven letters wide.
    letters, columns = max(10, int(72 * width / (_LETTER * points)) - 7), min(len(entries), 6)
    while True:
        handles = [_handle(entry, _wrapped(entry["name"], letters)) for entry in entries]
        legend = figure.legend(handles=handles, ncols=columns, **below)
        box = legend.get_window_extent()
        if box.width <= figure.dpi * width or (columns == 1 and letters <= 10):
            return float(box.height / figure.dpi)
        legend.remove()
        if columns > 1:
            columns -= 1
        else:
            letters -= 1


def _handle(entry: dict[str, Any], name: str) -> Any:
    style = entry["style"]
    if entry["kind"] == "patch":
        return Patch(facecolor=style["color"], alpha=0.55, label=name)
    if entry["kind"] == "threshold":
        return Line2D([], [], color="#141414", linewidth=2, label=name)
    measured = entry["kind"] == "curve"
    look = _look(style, measured)
    if measured:
        look |= _marker(style, measured)
    return Line2D([], [], label=name, **look)
