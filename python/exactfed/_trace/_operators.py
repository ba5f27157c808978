"""The operators of symbols, which a :class:`._recorder.Recorder` gives to the symbols of its run.

This module is a value of the type :class:`._recorder.Operators`.
"""

from __future__ import annotations

from ._arithmetic import add, divide, lift, matmul, multiply, reshape, row_of, scaled, total
from ._indices import put, take
from ._numpy import function_of_symbols, ufunc_of_symbols

__all__ = [
    "add",
    "divide",
    "function_of_symbols",
    "lift",
    "matmul",
    "multiply",
    "put",
    "reshape",
    "row_of",
    "scaled",
    "take",
    "total",
    "ufunc_of_symbols",
]
