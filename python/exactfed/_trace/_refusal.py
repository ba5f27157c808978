"""Why an algorithm is not traced, and where in its source."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = (os.path.join("numpy", ""), "<frozen", "<__array_function__")

_refusals = threading.local()


class NotTraced(Exception):
    """Why no linear program is known of an algorithm.

    Attributes
    ----------
    why
        The reason alone; the text also has the line of the algorithm.
    """

    def __init__(self, why: str, place: str = ""):
        super().__init__(why + place)
        self.why = why


def refused(why: str) -> NotTraced:
    """The refusal of what the algorithm is doing, which counts even if the algorithm catches it."""
    frame = algorithm_frame()
    return note(NotTraced(why, "" if frame is None else place_of(frame)))


def note(refusal: NotTraced) -> NotTraced:
    """Keep a refusal, if it is the first one: it counts even if the algorithm catches it."""
    if getattr(_refusals, "first", None) is None:
        _refusals.first = refusal
    return refusal


def forget() -> None:
    """Begin anew."""
    _refusals.first = None


def first_refusal() -> NotTraced | None:
    """What was refused first since the last :func:`forget`."""
    first: NotTraced | None = getattr(_refusals, "first", None)
    return first


def _foreign(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return os.path.dirname(os.path.abspath(name)) == _HERE or any(x in name for x in _LIBRARIES)


def algorithm_frame() -> FrameType | None:
    """The frame of the algorithm that is running, below those of numpy and of the tracer."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _foreign(frame):
        frame = frame.f_back
    return frame


def place_of(frame: FrameType) -> str:
    """The line where a frame is, with a mark under the expression that runs."""
    return place_in(frame.f_code, frame.f_globals, frame.f_lineno, frame.f_lasti)


def place_in(code: CodeType, names: dict[str, Any], line: int, instruction: int) -> str:
    """A line of some code, with a mark under the expression of one of its instructions."""
    source = linecache.getline(code.co_filename, line, names).rstrip()
    text = f"\n  {os.path.basename(code.co_filename)}:{line}"
    shown = source.lstrip()
    if not shown:
        return text
    text += f"\n    {shown}"
    if sys.version_info >= (3, 11):
        positions = list(code.co_positions())[instruction // 2]
        first, last, begin, end = positions
        if first == last == line and begin is not None and end is not None:
            before = source.encode()[:begin].decode()
            length = len(source.encode()[begin:end].decode())
            text += f"\n    {' ' * (len(before) - len(source) + len(shown))}{'^' * length}"
    return text
