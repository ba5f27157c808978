"""Rows of clients as columns, which numpy multiplies by a matrix of each client."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arithmetic import matmul, matrix_of_each
from ._numbers import numbers
from ._refusal import refused
from ._symbols import Symbol, is_symbol


class Columns:
    """``rows[..., None]``, of shape (N, d, 1).

    It stands between ``A @ rows[..., None]``, where A has the shape (N, d, d) or (d, d), and the
    rows that ``[..., 0]`` makes of it. Whatever else is done with it is not traced.
    """

    __slots__ = ("rows",)
    __array_priority__ = 1000.0

    def __init__(self, rows: Symbol):
        self.rows = rows

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.rows.shape, 1)

    @property
    def ndim(self) -> int:
        return 3

    def __rmatmul__(self, other: Any) -> Columns:
        return self.times(other)

    def times(self, matrix: Any) -> Columns:
        """A matrix, or one of each client, times the columns."""
        if is_symbol(matrix):
            raise refused("a product of two arrays that depend on θ is not linear")
        recorder = self.rows.recorder
        array = numbers(matrix)
        n, d = recorder.n, recorder.d
        if array.shape in ((d, d), (1, d, d)):
            return Columns(matmul(recorder, self.rows, array.reshape(d, d).T))
        if array.shape == (n, d, d):
            return Columns(matrix_of_each(recorder, array, self.rows))
        raise refused(f"a product of arrays of shapes {array.shape} and {self.shape} is not traced")

    def __getitem__(self, index: Any) -> Symbol:
        parts = index if type(index) is tuple else (index,)
        is_last = parts[-1:] == (0,) or parts[-1:] == (-1,)
        if is_last and parts[:-1] in ((Ellipsis,), (slice(None), slice(None))):
            return self.rows
        raise refused("of rows as columns, (N, d, 1), only [..., 0] is traced")

    def squeeze(self, axis: Any = -1) -> Symbol:
        return self[..., 0] if axis in (-1, 2) else self[axis]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not options and inputs[1] is self:
            return self.times(inputs[0])
        raise refused("of rows as columns, (N, d, 1), only a product with matrices is traced")

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        if function is np.squeeze:
            return self.squeeze(*inputs[1:], **options)
        raise refused("of rows as columns, (N, d, 1), only a product with matrices is traced")
