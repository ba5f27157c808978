"""Rows and parts of symbols."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arithmetic import lift, mixed, multiply, reshape, row_of
from ._columns import Columns
from ._masks import is_mask
from ._refusal import refused
from ._rounds import CLIENTS, MEMBERS, SERVER
from ._symbols import Symbol, is_symbol


class Members:
    """The clients of a cohort: as an index of rows it says which."""

    def __init__(self, recorder: Any, size: int):
        self.recorder, self.round = recorder, recorder.number
        self.shape, self.ndim, self.size = (size,), 1, size

    def __len__(self) -> int:
        return self.size

    def check(self) -> None:
        """Refuse the members of a round that is over."""
        if self.round != self.recorder.number:
            raise refused("the members of an earlier round are used: not traced")

    def _numbers(self, *_: Any, **__: Any) -> Any:
        raise refused("the indices of a drawn cohort are asked for: not traced")

    __array__ = __iter__ = __index__ = __int__ = __getitem__ = __contains__ = _numbers
    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _numbers
    __add__ = __radd__ = __sub__ = __mul__ = __array_ufunc__ = __array_function__ = _numbers
    __hash__ = None  # type: ignore[assignment]


def _is_whole(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, slice) and index == slice(None))


def _parts(index: Any) -> tuple[Any, ...]:
    parts = index if type(index) is tuple else (index,)
    if any(is_symbol(part) or is_mask(part) for part in parts):
        raise refused("an index that is computed from θ, or drawn, is not linear")
    return parts


def take(of: Symbol, index: Any) -> Symbol | Columns:
    """``of[index]``."""
    recorder = of.recorder
    of.read()
    parts = _parts(index)
    if len(parts) > 1 and parts[-1] is None and all(map(_is_whole, parts[:-1])):
        if of.level != CLIENTS or parts[:-1] not in ((Ellipsis,), (slice(None), slice(None))):
            raise refused("an array of another shape than (d,) or (N, d) is not traced")
        return Columns(of)
    first, *rest = parts
    if not all(_is_whole(part) for part in rest):
        raise refused("single coordinates are not traced")
    if _is_whole(first):
        return of
    if first is None and of.shape == (recorder.d,):
        return reshape(of, (1, recorder.d))
    if of.level == SERVER:
        if of.ndim == 2 and isinstance(first, (int, np.integer)) and first in (0, -1):
            return reshape(of, (recorder.d,))
        raise refused("single coordinates of θ are not traced")
    if of.level == MEMBERS:
        raise refused("single rows of the members are not traced")
    if type(first) is Members:
        first.check()
        if recorder.scheme is not None:
            raise refused("rows of clients that a scheme draws are not traced: use clients.mean")
        inner = recorder.side(of.expression(), 0)
        return Symbol(recorder, MEMBERS, inner.terms, inner.constant)
    if isinstance(first, (int, np.integer)) and not isinstance(first, (bool, np.bool_)):
        if not -recorder.n <= first < recorder.n:
            raise IndexError(f"index {first} is out of bounds for axis 0 with size {recorder.n}")
        k = int(first) % recorder.n
        return row_of(of, k).view(of, k)
    if isinstance(first, (list, np.ndarray)):
        chosen = np.arange(recorder.n)[first]
        if chosen.shape == (recorder.n,):
            return mixed(of, np.eye(recorder.n)[chosen])
    raise refused("a part of the clients is not traced: multiply by 0 and 1 of shape (N, 1)")


def put(of: Symbol, index: Any, value: Any) -> None:
    """``of[index] = value``."""
    recorder = of.recorder
    of.read()
    first, *rest = _parts(index)
    if not all(_is_whole(part) for part in rest):
        raise refused("single coordinates are not traced")
    new = lift(recorder, value)
    if _is_whole(first) or (first is None and of.shape == (recorder.d,)):
        of.write(new)
        return
    if of.level != CLIENTS:
        raise refused("a part of an array is assigned: not traced")
    if type(first) is Members:
        first.check()
        if new.level == CLIENTS:
            raise refused("rows of all clients are assigned to those of the members")
        chosen = recorder.select(new.expression(), of.expression())
        of.write(Symbol(recorder, CLIENTS, chosen.terms, chosen.constant))
        return
    if not isinstance(first, (int, np.integer, list, np.ndarray, slice)):
        raise refused("a part of an array is assigned: not traced")
    rows = np.zeros((recorder.n, 1))
    rows[first] = 1.0
    if new.level != SERVER:
        raise refused("rows are assigned to a part of the clients: not traced")
    of.write(multiply(recorder, of, 1.0 - rows) + multiply(recorder, new, rows))
