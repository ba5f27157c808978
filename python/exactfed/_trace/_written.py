"""True arrays that a symbol is written into."""

from __future__ import annotations

import dis
import functools
import sys
import weakref
from types import CodeType
from typing import Any

import numpy as np

from ._refusal import NotTraced, algorithm_frame, note, place_in

_WHY = (
    "θ is written into an array of numbers that has another name, or keeps its name: write "
    "x = …, x += … or x = …(…, out=x), with x as its only name"
)
#: What may run between the call that writes and the store that frees the array.
_MOVES = ("CACHE", "PRECALL", "SWAP", "COPY", "NOP", "EXTENDED_ARG", "ROT_", "DUP_TOP", "STORE_")


class WrittenArrays:
    """The true arrays that a symbol was written into, as in ``x += symbol``.

    Python binds the name x to the symbol, but NumPy cannot make the array itself a symbol: under
    any other name it would go on with its old numbers, and nothing would tell. So the statement
    that writes must be the end of the array. It is where the array had the name x alone, and the
    store into x frees it.
    """

    def __init__(self) -> None:
        self._pending: list[_Written] = []
        self._kept: _Written | None = None

    def add(self, array: Any) -> None:
        """Note that the algorithm writes a symbol into an array."""
        self.check()
        written = _Written(array)
        if not _owns_its_numbers(array):
            self._kept = self._kept or written
        self._pending.append(written)

    def check(self) -> NotTraced | None:
        """The refusal of an array that did not end with the statement that wrote into it."""
        for written in self._pending:
            if written.reference() is not None or not written.ended_at_once:
                self._kept = self._kept or written
        self._pending = []
        return None if self._kept is None else note(NotTraced(_WHY, self._kept.place()))


class _Written:
    def __init__(self, array: Any):
        frame = algorithm_frame()
        # Not the frame itself: it would keep the locals of a function that has returned.
        self._frame = id(frame)
        self._at = None if frame is None else (frame.f_code, frame.f_lasti, frame.f_lineno)
        self._names = {} if frame is None else frame.f_globals
        self.ended_at_once = False
        self.reference = weakref.ref(array, self._end)

    def _end(self, _: Any) -> None:
        frame = sys._getframe(1)
        if self._at is not None and id(frame) == self._frame:
            code, begin, _ = self._at
            self.ended_at_once = frame.f_code is code and _only_moves(code, begin, frame.f_lasti)

    def place(self) -> str:
        """The line that writes."""
        if self._at is None:
            return ""
        code, instruction, line = self._at
        return place_in(code, self._names, line, instruction)


@functools.lru_cache(maxsize=1024)
def _only_moves(code: CodeType, begin: int, end: int) -> bool:
    """Whether the instructions after one, up to another, move values and store them alone."""
    if begin > end:
        return False
    between = [one for one in dis.get_instructions(code) if begin < one.offset <= end]
    return all(one.opname.startswith(_MOVES) for one in between)


def _owns_its_numbers(array: Any) -> bool:
    """Whether no other array shows the same numbers: it may be the only view of a nameless one."""
    if array.base is None:
        return bool(array.flags.owndata)
    nameless = _references(array) == _ALONE
    return nameless and type(array.base) is np.ndarray and array.base.base is None


def _references(array: Any) -> int:
    return sys.getrefcount(array.base)


#: The references of a base that has no name.
_ALONE = _references(np.zeros(1)[:])
