"""Colours, panels and dash patterns of curves by the settings of their cells."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_hex

from . import _native
from ._errors import ExactfedError
from ._manifest import manifest_name

_DASHES: list[list[float]] = [
    [],
    [4, 2],
    [1.5, 1.5],
    [6, 1.5, 1.5, 1.5],
    [3, 1.5, 1.5, 1.5, 1.5, 1.5],
    [9, 3],
]
"""Dash patterns in pixels of the page, the most that are told apart."""
_NONE, _ANY = "#8a8a8a", "#141414"
"""The colours of curves without the setting, and of entries of the legend of any colour."""

Value = tuple[Any, str]
"""A value of a setting, and the text of pages for it."""


def by_settings(
    data: dict[str, Any],
    x: str | None,
    hue: str | None = None,
    col: str | None = None,
    style: str | None = None,
) -> None:
    """Change a figure of one panel, so that colours, panels and dashes show these settings."""
    plot = data["body"]["plot"]
    [curves] = plot["panels"]
    known = dict.fromkeys(name for curve in curves for name in curve["settings"])
    # The points of a curve differ in what is on the x axis; of a curve of one point it is the same.
    over = None if x is None or _native.quantity(x) else manifest_name(x)
    allowed = [name for name in known if name != over]
    hue, col, style = (
        _checked(key, name, allowed) for key, name in (("hue", hue), ("col", col), ("style", style))
    )
    if style or hue:
        data["legend"] = _restyle(curves, hue or "label", style)
    if col:
        values = [value for value in _values(curves, col) if value is not None]
        [frame] = plot["frames"]
        plot["frames"] = [frame | {"title": text} for _, text in values]
        # As on pages, a curve without the setting belongs to every value of it.
        shown = [[c for c in curves if _value(c, col) in (v, None)] for v in values]
        plot["panels"], data["columns"] = shown, min(len(values), 4)


def _checked(key: str, name: str | None, allowed: list[str]) -> str | None:
    if name is None:
        return None
    plain = name.replace("_", "-")
    if plain not in allowed:
        raise ExactfedError(
            f'error: {key}="{name}": the curves differ in no such setting '
            f"(allowed: {', '.join(allowed)})"
        )
    return plain


def _value(curve: dict[str, Any], name: str) -> Value | None:
    value = curve["settings"].get(name)
    return None if value is None else (value[0], value[1])


def _values(curves: list[dict[str, Any]], name: str) -> list[Value | None]:
    """The values of a setting: numbers in their order, texts in that of the curves, none last."""
    found = list(dict.fromkeys(_value(curve, name) for curve in curves))
    known = [value for value in found if value is not None]
    if all(isinstance(value[0], (int, float)) for value in known):
        known.sort(key=lambda value: value[0])
    return [*known, *([None] if None in found else [])]


def _restyle(curves: list[dict[str, Any]], hue: str, style: str | None) -> list[dict[str, Any]]:
    """Give curves the colours and dashes of their values; the legend."""
    hues = _values(curves, hue)
    styles: list[Value | None] = _values(curves, style) if style else [None]
    if len(styles) > len(_DASHES):
        raise ExactfedError(
            f"error: style={style!r}: it has {len(styles)} values, and there are "
            f"{len(_DASHES)} dash patterns: use hue or col"
        )
    colors = dict(zip(hues, _colors(curves, hue, hues), strict=True))
    markers = list({str(c["style"]["marker"]): c["style"]["marker"] for c in curves}.values())

    def look(color: str, place: int) -> dict[str, Any]:
        marker = markers[place % len(markers)]
        return {"color": color, "dashes": _DASHES[place], "marker": marker}

    for curve in curves:
        place = styles.index(_value(curve, style)) if style else 0
        curve["style"] = look(colors[_value(curve, hue)], place)

    def entries(name: str, looks: dict[Value | None, dict[str, Any]]) -> list[dict[str, Any]]:
        texts = {value: value[1] if value else f"no {name}" for value in looks}
        return [
            {"name": texts[value], "kind": "curve", "style": style}
            for value, style in looks.items()
        ]

    if style == hue:
        return entries(hue, {v: look(colors[v], place) for place, v in enumerate(styles)})
    legend = entries(hue, {value: look(color, 0) for value, color in colors.items()})
    if style:
        legend += entries(style, {v: look(_ANY, place) for place, v in enumerate(styles)})
    return legend


def _colors(curves: list[dict[str, Any]], hue: str, values: list[Value | None]) -> list[str]:
    """The colours of pages for algorithms, if these differ, and otherwise a scale."""
    if hue == "label":
        own = {_value(curve, hue): curve["style"]["color"] for curve in reversed(curves)}
        if len(set(own.values())) == len(values):
            return [own[value] for value in values]
    places = np.linspace(0.0, 0.88, len(values))
    scale = [to_hex(color) for color in matplotlib.colormaps["viridis"](places)]
    return [_NONE if value is None else color for value, color in zip(values, scale, strict=True)]
