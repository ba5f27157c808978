"""Figures of pages, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle
    from matplotlib.path import Path
except ImportError as e:
    raise ImportError("plots need: pip install 'driftbench[plot]'") from e

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
    # What the caller has set is kept, such as the fonts of a paper.
    unset = {key: v for key, v in _STYLE.items() if matplotlib.rcParams[key] == default[key]}
    with matplotlib.rc_context(unset):
        if ax is None:
            columns = data["columns"] if width > 4 else min(data["columns"], 2)
            figure, axes = _new_figure(len(panels), columns, width, height)
        else:
            axes = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
            if len(axes) != len(panels):
                raise ValueError(f"the figure has {len(panels)} panels, and ax {len(axes)} axes")
            figure, columns = axes[0].figure, len(panels)
        for i, panel_axes in enumerate(axes):
            if plot:
                _panel(panel_axes, plot, i, columns)
            else:
                _map(panel_axes, maps, i, columns)
        if legend:
            _legend(data, figure if ax is None else axes[0], width)
    if ax is None and "inline" in matplotlib.get_backend().lower():
        # A notebook shows what a cell returns; an open figure it would show once more.
        pyplot.close(figure)
    return figure


def _new_figure(
    count: int, columns: int, width: float, height: float | None
) -> tuple[Figure, list[Axes]]:
    columns = max(1, min(columns, count))
    rows = -(-count // columns)
    each = width / columns * (_PANEL if columns > 1 or width < 4 else 0.55)
    size = (width, height or rows * each + 0.35)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for unused in axes.flat[count:]:
        unused.remove()
    return figure, list(axes.flat[:count])


def _panel(ax: Axes, plot: dict[str, Any], i: int, columns: int) -> None:
    frame = plot["frames"][i]
    for axis in "xy":
        log = plot[f"scale_{axis}"] == "log"
        ends = [10.0**end if log else end for end in frame[axis]]
        getattr(ax, f"set_{axis}scale")("log" if log else "linear")
        if ends[0] < ends[1]:
            getattr(ax, f"set_{axis}lim")(*ends)
    for series in plot["panels"][i]:
        _series(ax, series, plot["scale_y"] == "log")
    _title(ax, frame["title"])
    ax.set_xlabel(plot["x"])
    if i % columns == 0:
        ax.set_ylabel(plot["y"])
    ax.grid(axis="y", color="#e1e1e1", linewidth=0.5)
    ax.set_axisbelow(True)


def _series(ax: Axes, series: dict[str, Any], log: bool) -> None:
    x, y, low, high = (_numbers(series[key]) for key in ("x", "y", "low", "high"))
    style, role, name = series["style"], series["role"], series["name"]
    color = style["color"]
    if role == "selected":
        ring = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": color}
        ax.plot(x, y, "o", linestyle="none", label=name, **ring)
        return
    drawn = np.isfinite(x) & np.isfinite(y) & ((y > 0) | (not log))
    y = np.where(drawn, y, np.nan)
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


def _map(ax: Axes, maps: dict[str, Any], i: int, columns: int) -> None:
    values = maps["maps"][i]
    wide, high = _inches(ax)
    room = wide / len(values["x"]), high / len(values["y"])
    for square in values["squares"]:
        x, y = square["x"], square["y"]
        fill: dict[str, Any] = {"facecolor": square["color"], "alpha": square["opacity"], "linewidth": 0}
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
    ax.set_xlabel(maps["x"])
    if i % columns == 0:
        ax.set_ylabel(maps["y"])


def _inches(ax: Axes) -> tuple[float, float]:
    """About how wide and high the axes are."""
    place = ax.get_subplotspec()
    rows, columns = place.get_gridspec().get_geometry() if place else (1, 1)
    wide, high = ax.figure.get_figure(root=True).get_size_inches()
    return 0.88 * wide / columns, 0.7 * high / rows


def _title(ax: Axes, title: str) -> None:
    # Numbers beside the axis take a part of the width, and bold letters are wider.
    points = 72 * 0.85 * _inches(ax)[0] / (1.15 * _LETTER * max(len(title), 1))
    size = min(8.0, max(_SMALLEST, points))
    ax.set_title(title, fontweight="bold", loc="left", fontsize=size)


def _fitting(lines: list[str], room: tuple[float, float]) -> tuple[str, float]:
    """The first lines of a text that fit, and the size of their letters, in points."""
    wide, high = (72 * 0.95 * inches for inches in room)
    kept = [line for line in lines if _LETTER * _SMALLEST * len(line) <= wide] or lines[:1]
    kept = kept[: max(1, int(high / (1.2 * _SMALLEST)))]
    across = wide / (_LETTER * max(map(len, kept), default=1))
    return "\n".join(kept), max(_SMALLEST, min(6.5, across, high / (1.2 * len(kept))))


def _legend(data: dict[str, Any], target: Figure | Axes, width: float) -> None:
    handles = [_handle(entry) for entry in data["legend"]]
    if not handles:
        return
    if isinstance(target, Axes):
        target.legend(handles=handles, frameon=False)
        return
    longest = max(len(entry["name"]) for entry in data["legend"])
    # A letter is about 0.055 inches wide, a sample of a line half an inch.
    columns = max(1, min(len(handles), int(width / (0.055 * longest + 0.5))))
    target.legend(handles=handles, ncols=columns, frameon=False, loc="outside lower center")


def _handle(entry: dict[str, Any]) -> Any:
    style, name = entry["style"], entry["name"]
    if entry["kind"] == "patch":
        return Patch(facecolor=style["color"], alpha=0.55, label=name)
    if entry["kind"] == "threshold":
        return Line2D([], [], color="#141414", linewidth=2, label=name)
    measured = entry["kind"] == "curve"
    look = _look(style, measured)
    if measured:
        look |= _marker(style, measured)
    return Line2D([], [], label=name, **look)
