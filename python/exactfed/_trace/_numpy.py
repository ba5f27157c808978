"""Functions of numpy on symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._arithmetic import (
    add,
    divide,
    lift,
    matmul,
    matrix_of_each,
    mixed,
    multiply,
    reshape,
    scaled,
    total,
    weighted,
)
from ._masks import is_mask
from ._numbers import numbers
from ._recorder import Recorder
from ._refusal import refused
from ._rounds import CLIENTS, SERVER
from ._symbols import Symbol, is_symbol

_WORDS = {
    "absolute": "the absolute value",
    "sqrt": "a square root",
    "square": "a square",
    "power": "a power",
    "float_power": "a power",
    "sign": "a sign",
    "maximum": "a maximum",
    "minimum": "a minimum",
    "clip": "clipping",
    **dict.fromkeys(
        ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"), "a comparison"
    ),
}


def ufunc_of_symbols(
    recorder: Recorder, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """What a function by entries gives."""
    name = ufunc.__name__
    out = options.pop("out", None)
    if method == "reduce" and ufunc is np.add and out is None and "where" not in options:
        one = lift(recorder, inputs[0])
        return total(one, options.get("axis", 0), options.get("keepdims", False), None, mean=False)
    if method != "__call__" or options:
        raise refused(
            f"np.{name} with {method if method != '__call__' else 'options'} is not traced"
        )
    made = _call(recorder, ufunc, inputs)
    if out is None:
        return made
    target = out[0]
    made = lift(recorder, made)
    return target.write(made) if is_symbol(target) else recorder.redirect(target, made)


def _call(recorder: Recorder, ufunc: Any, values: tuple[Any, ...]) -> Any:
    if any(is_mask(value) for value in values):
        turned = {np.add: "__add__", np.multiply: "__mul__", np.subtract: "__sub__"}
        first = is_mask(values[0])
        if ufunc in turned:
            mask, other = values if first else values[::-1]
            name = "__rsub__" if ufunc is np.subtract and not first else turned[ufunc]
            return getattr(mask, name)(other)
        if ufunc is np.divide and first:
            return values[0] / values[1]
        if ufunc is np.negative:
            return -values[0]
        if ufunc in (np.invert, np.logical_not):
            return ~values[0]
        raise refused(
            f"{_WORDS.get(ufunc.__name__, f'np.{ufunc.__name__}')} of a mask is not traced"
        )
    if ufunc is np.add or ufunc is np.subtract:
        return add(recorder, values[0], values[1], 1.0 if ufunc is np.add else -1.0)
    if ufunc is np.multiply:
        return multiply(recorder, *values)
    if ufunc is np.divide:
        return divide(recorder, *values)
    if ufunc is np.matmul:
        return matmul(recorder, *values)
    if ufunc is np.negative:
        return scaled(values[0], -1.0)
    if ufunc in (np.positive, np.conjugate):
        return values[0].copy()
    if ufunc is np.power and is_symbol(values[0]):
        return values[0] ** values[1]
    raise refused(f"{_WORDS.get(ufunc.__name__, f'np.{ufunc.__name__}')} is not linear")


def function_of_symbols(
    recorder: Recorder, function: Any, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """What another function of numpy gives."""
    known = _FUNCTIONS.get(function)
    if known is None:
        module = getattr(function, "__module__", "") or ""
        inner = "linalg." if "linalg" in module else ""
        name = _WORDS.get(function.__name__, f"np.{inner}{function.__name__}")
        raise refused(f"{name} is not linear, or not traced")
    try:
        return known(recorder, *inputs, **options)
    except TypeError as error:
        if known.__name__ in str(error) or "argument" in str(error):
            raise refused(f"np.{function.__name__} is not traced with these arguments") from None
        raise


def _like(value: float | None) -> Callable[..., Any]:
    def like(recorder: Recorder, a: Any, fill: Any = None) -> Symbol:
        number = float(fill if value is None else value)
        a = lift(recorder, a)
        return Symbol(recorder, a.level, {}, number, None, a.shape)

    return like


def _full_like(recorder: Recorder, a: Any, fill: Any) -> Symbol:
    if is_symbol(fill) or np.ndim(fill):
        raise refused("np.full_like with an array is not traced")
    out: Symbol = _like(None)(recorder, a, fill)
    return out


def _sum(recorder: Recorder, a: Any, axis: Any = None, keepdims: bool = False) -> Symbol:
    return total(lift(recorder, a), axis, keepdims, None, mean=False)


def _mean(recorder: Recorder, a: Any, axis: Any = None, keepdims: bool = False) -> Symbol:
    return total(lift(recorder, a), axis, keepdims, None, mean=True)


def _average(recorder: Recorder, a: Any, axis: Any = None, weights: Any = None) -> Symbol:
    a = lift(recorder, a)
    if weights is None:
        return total(a, axis, False, None, mean=True)
    if is_symbol(weights):
        raise refused("weights that depend on θ are not linear")
    w = numbers(weights)
    if axis not in (0, -2) or a.level != CLIENTS or w.shape != (recorder.n,):
        raise refused("an average over other than the clients, axis=0, is not traced")
    return weighted(a, 0.0, w / w.sum())


def _tensordot(recorder: Recorder, a: Any, b: Any, axes: Any = 2) -> Symbol:
    if isinstance(axes, int) and axes == 1:
        return matmul(recorder, a, b)
    if np.ndim(a) == 1 and axes in ((0, 0), ([0], [0])):
        return matmul(recorder, a, b)
    raise refused("np.tensordot over these axes is not traced")


def _einsum(recorder: Recorder, text: Any, *values: Any) -> Symbol:
    """Sums over clients with weights, and products with a matrix."""
    if isinstance(text, str) and len(values) == 2 and sum(map(is_symbol, values)) == 1:
        sides = text.replace(" ", "").split("->")
        names = sides[0].split(",")
        if len(sides) == 2 and len(names) == 2:
            a, x, b, y = values[0], names[0], values[1], names[1]
            if is_symbol(a):
                a, x, b, y = b, y, a, x
            found = _product(recorder, (numbers(a), x), (b, y), sides[1])
            if found is not None:
                return found
    raise refused(f"np.einsum({text!r}) is not traced")


def _product(recorder: Recorder, constant: Any, symbol: Any, out: str) -> Symbol | None:
    (a, x), (b, y) = constant, symbol
    distinct = len(set(x)) == len(x) and len(set(y)) == len(y)
    if not distinct or len(x) != a.ndim or len(y) != b.ndim:
        return None
    if b.level == CLIENTS and len(x) == 1 and x == y[0] and out == y[1]:
        return matmul(recorder, a, b)
    mixes = b.level == CLIENTS and len(x) == 2 and y[0] in x and y[1] not in x
    if mixes and out == x.replace(y[0], "") + y[1]:
        return matmul(recorder, a if x[1] == y[0] else a.T, b)
    shape = (recorder.n, recorder.d, recorder.d)
    # A matrix of each client: its axes are the client, and the entries of the result and of b.
    client, entry = (y[0], y[1]) if len(y) == 2 else (out[:1], y)
    if len(x) == 3 and len(out) == 2 and client in x and entry in x and client != entry:
        axes = [client, out[1], entry]
        if sorted(x) == sorted(axes) and out[0] == client:
            matrices = np.transpose(a, [x.index(axis) for axis in axes])
            return matrix_of_each(recorder, matrices, b) if matrices.shape == shape else None
    if b.shape == (recorder.d,) and len(x) == 2 and y in x and out == x.replace(y, ""):
        return matmul(recorder, a if x[1] == y else a.T, b)
    return None


def _roll(recorder: Recorder, a: Any, shift: Any, axis: Any = None) -> Symbol:
    if a.level != CLIENTS or axis not in (0, -2) or not isinstance(shift, (int, np.integer)):
        raise refused("np.roll of other than the clients, axis=0, is not traced")
    return mixed(a, np.roll(np.eye(recorder.n), shift, axis=0))


def _rows(recorder: Recorder, a: Any, fits: bool) -> Symbol:
    of = lift(recorder, a)
    if of.level != SERVER or not fits:
        raise refused("an array of another shape than (d,) or (N, d) is not traced")
    return of.at_level(CLIENTS, (recorder.n, recorder.d))


def _broadcast_to(recorder: Recorder, a: Any, shape: Any) -> Symbol:
    full = (recorder.n, recorder.d)
    if tuple(shape) != full:
        raise refused("an array of another shape than (d,) or (N, d) is not traced")
    of = lift(recorder, a)
    return of.at_level(CLIENTS, full).view(of)


def _tile(recorder: Recorder, a: Any, reps: Any) -> Symbol:
    return _rows(recorder, a, tuple(np.atleast_1d(reps)) == (recorder.n, 1))


def _repeat(recorder: Recorder, a: Any, repeats: Any, axis: Any = None) -> Symbol:
    fits = np.ndim(repeats) == 0 and repeats == recorder.n and axis in (0, -2) and a.ndim == 2
    return _rows(recorder, a, bool(fits))


def _products_of_rows(recorder: Recorder, vectors: list[Symbol]) -> Symbol | None:
    """What is stacked, if it is the row of each client times a matrix of that client."""
    matrices = []
    for k, one in enumerate(vectors):
        if one.product is None:
            return None
        matrix, rows, version, row = one.product
        first = vectors[0].product
        if first is None or row != k or rows is not first[1] or rows.version != version:
            return None
        matrices.append(matrix)
    return matrix_of_each(recorder, np.stack(matrices), vectors[0].product[1].read())


def _stack(recorder: Recorder, arrays: Any, axis: int = 0) -> Symbol:
    lifted = [lift(recorder, one) for one in arrays]
    if len(lifted) != recorder.n or axis != 0 or any(one.level != SERVER for one in lifted):
        raise refused("np.stack of other than N vectors is not traced")
    whole = _products_of_rows(recorder, lifted)
    if whole is not None:
        return whole
    out: Symbol | None = None
    groups: dict[Any, list[Any]] = {}
    for k, one in enumerate(lifted):
        of = one.expression()
        groups.setdefault(of.key(), [one, []])[1].append(k)
    for one, members in groups.values():
        rows = np.zeros((recorder.n, 1))
        rows[members] = 1.0
        part = multiply(recorder, reshape(one, (recorder.d,)), rows)
        out = part if out is None else add(recorder, out, part, 1.0)
    assert out is not None
    return out


def _reshape(recorder: Recorder, a: Any, shape: Any = None, newshape: Any = None) -> Symbol:
    return reshape(a, newshape if shape is None else shape)


def _copyto(recorder: Recorder, target: Any, value: Any) -> None:
    if not is_symbol(target):
        raise refused("np.copyto into an array is not traced: write x = value.copy()")
    target.write(lift(recorder, value))


def _expand(recorder: Recorder, a: Any, axis: Any) -> Symbol:
    if axis not in (0, -2):
        raise refused("an array of another shape than (d,) or (N, d) is not traced")
    return reshape(a, (1, *a.shape))


def _where(recorder: Any, mask: Any, a: Any, b: Any) -> Any:
    """The choice b + mask (a − b)."""
    if not is_mask(mask):
        condition = np.asarray(mask)
        if condition.dtype != bool:
            raise refused("np.where of numbers is not traced")
        return add(
            recorder,
            multiply(recorder, a, condition * 1.0),
            multiply(recorder, b, 1.0 - condition),
            1.0,
        )
    if not mask.is_boolean:
        raise refused("np.where of numbers is not traced")
    difference = add(recorder, a, b, -1.0)
    return add(recorder, b, mask.times(difference), 1.0)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.zeros_like: _like(0.0),
    np.ones_like: _like(1.0),
    np.empty_like: _like(0.0),
    np.full_like: _full_like,
    np.copy: lambda recorder, a: lift(recorder, a).copy(),
    np.sum: _sum,
    np.mean: _mean,
    np.average: _average,
    np.dot: matmul,
    np.tensordot: _tensordot,
    np.einsum: _einsum,
    np.roll: _roll,
    np.broadcast_to: _broadcast_to,
    np.tile: _tile,
    np.repeat: _repeat,
    np.stack: _stack,
    np.vstack: _stack,
    np.reshape: _reshape,
    np.ravel: lambda recorder, a: reshape(a, -1),
    np.squeeze: lambda recorder, a: reshape(a, -1),
    np.atleast_2d: lambda recorder, a: a if a.ndim == 2 else reshape(a, (1, recorder.d)),
    np.expand_dims: _expand,
    np.copyto: _copyto,
    np.where: _where,
    np.shape: lambda recorder, a: a.shape,
    np.ndim: lambda recorder, a: a.ndim,
    np.size: lambda recorder, a: a.size,
}
