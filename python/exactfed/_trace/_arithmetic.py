"""Arithmetic of symbols, and of random masks with symbols."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._masks import as_symbol, is_mask
from ._numbers import numbers
from ._recorder import Recorder
from ._refusal import refused
from ._rounds import CLIENTS, MEMBERS, SERVER, Array
from ._symbols import Symbol, Weights, is_symbol


def lift(recorder: Recorder, value: Any) -> Symbol:
    """The symbol of a value: constants are symbols without atoms."""
    value = as_symbol(value)
    if is_symbol(value):
        symbol: Symbol = value.read()
        return symbol
    n, d = recorder.n, recorder.d
    array = numbers(value)
    if array.ndim == 0 or (array.shape == (1,) and d > 1):
        return Symbol(recorder, SERVER, {}, float(array.reshape(-1)[0]))
    if array.shape == (d,):
        return Symbol(recorder, SERVER, {}, array)
    if array.shape in ((n, d), (n, 1)):
        return Symbol(recorder, CLIENTS, {}, array)
    if array.shape == (1, d):
        return Symbol(recorder, SERVER, {}, array[0], None, (1, d))
    if recorder.cohort is not None and array.shape == (recorder.cohort, d) and not array.any():
        return Symbol(recorder, MEMBERS, {})
    raise refused(
        f"an array of shape {array.shape} is neither one of the server, ({d},), nor one of the "
        f"clients, ({n}, {d})"
    )


def _common(a: Symbol, b: Symbol) -> tuple[str, tuple[int, ...]]:
    levels = {a.level, b.level}
    if levels == {MEMBERS, CLIENTS}:
        raise refused("rows of the members and rows of all clients do not fit each other")
    largest = a if (a.level != SERVER, a.ndim) >= (b.level != SERVER, b.ndim) else b
    return largest.level, largest.shape


def add(recorder: Recorder, a: Any, b: Any, sign: float = 1.0) -> Symbol:
    """The sum or the difference a ± b."""
    a, b = lift(recorder, a), lift(recorder, b)
    level, shape = _common(a, b)
    a, b = (x if x.level == level else x.at_level(level, shape) for x in (a, b))
    terms, sums = dict(a.terms), dict(a.sums)
    for atom, factor in b.terms.items():
        terms[atom] = terms[atom] + sign * factor if atom in terms else sign * factor
    for atom, (mean, weights) in b.sums.items():
        mean0, weights0 = sums.get(atom, (0.0, None))
        if weights is not None:
            weights = sign * weights if weights0 is None else weights0 + sign * weights
        sums[atom] = mean0 + sign * mean, weights0 if weights is None else weights
    return Symbol(recorder, level, terms, a.constant + sign * b.constant, sums, shape)


def scaled(a: Symbol, factor: Any) -> Symbol:
    """A symbol times a number, or times an array that fits its rows."""
    a.read()
    terms = {atom: factor * c for atom, c in a.terms.items()}
    sums = {
        atom: (factor * mean, None if weights is None else factor * weights)
        for atom, (mean, weights) in a.sums.items()
    }
    return Symbol(a.recorder, a.level, terms, factor * a.constant, sums, a.shape)


def multiply(recorder: Recorder, a: Any, b: Any) -> Symbol:
    """The product a · b, where one of the two is constant."""
    if is_mask(a) or is_mask(b):
        product: Symbol = a * b if is_mask(a) else b * a
        return product
    for value, other in ((a, b), (b, a)):
        if isinstance(value, (int, float)) and is_symbol(other):
            return scaled(other, float(value))
    a, b = lift(recorder, a), lift(recorder, b)
    if a.terms or a.sums:
        a, b = b, a
    if a.terms or a.sums:
        raise refused("a product of two arrays that depend on θ is not linear")
    level, shape = _common(a, b)
    return scaled(b if b.level == level else b.at_level(level, shape), a.constant)


def divide(recorder: Recorder, a: Any, b: Any) -> Any:
    """The quotient a / b, where b is constant."""
    if is_symbol(b):
        b = b.read()
        if b.terms or b.sums:
            raise refused("a division by an array that depends on θ is not linear")
        b = b.constant if np.ndim(b.constant) < b.ndim else np.reshape(b.constant, (-1, recorder.d))
    divisor = numbers(b)
    if not np.all(divisor):
        raise refused("a division by 0")
    return multiply(recorder, a, 1.0 / divisor)


def matmul(recorder: Recorder, a: Any, b: Any) -> Symbol:
    """The matrix product a @ b, where one of the two is a constant array."""
    if is_symbol(a) and is_symbol(b):
        raise refused("a product of two arrays that depend on θ is not linear")
    n, d = recorder.n, recorder.d
    matrix = numbers(a if is_symbol(b) else b)
    of: Symbol = (b if is_symbol(b) else a).read()
    if is_symbol(b) and of.level == CLIENTS and matrix.shape in ((n,), (1, n)):
        out = weighted(of, 0.0, matrix.reshape(-1))
        return out if matrix.ndim == 1 else reshape(out, (1, d))
    if is_symbol(b) and of.level == CLIENTS and matrix.shape == (n, n):
        return mixed(of, matrix)
    if matrix.shape == (d, d) and (is_symbol(a) or of.shape == (d,)):
        if of.level == MEMBERS:
            raise refused("a matrix times the rows of the members is not traced")
        matrix = matrix.T if is_symbol(a) else matrix
        inputs = {"of": of.expression()}
        atom = recorder.operate(
            "matrix", of.level, inputs, matrix=np.ascontiguousarray(matrix), level=of.level
        )
        out = Symbol(recorder, of.level, {atom: 1.0}, 0.0, None, of.shape)
        if of.base is not None and of.row is not None:
            out.product = (matrix, of.base, of.base.version, of.row)
        return out
    shapes = (matrix.shape, of.shape) if is_symbol(b) else (of.shape, matrix.shape)
    raise refused(f"a product of arrays of shapes {shapes[0]} and {shapes[1]} is not traced")


def matrix_of_each(recorder: Recorder, matrices: Array, of: Symbol) -> Symbol:
    """The row of each client, or the server's vector, times a matrix (d, d) of that client."""
    n, d = recorder.n, recorder.d
    if of.level == MEMBERS:
        raise refused("a matrix times the rows of the members is not traced")
    if np.all(matrices == matrices[:1]):
        return matmul(recorder, of.at_level(CLIENTS, (n, d)), matrices[0].T)
    inputs = {"of": of.at_level(CLIENTS, (n, d)).expression()}
    matrix = np.ascontiguousarray(matrices)
    atom = recorder.operate("matrix", CLIENTS, inputs, matrix=matrix, level=CLIENTS)
    return Symbol(recorder, CLIENTS, {atom: 1.0})


def mixed(rows: Symbol, matrix: Array) -> Symbol:
    """A matrix times the rows of all clients."""
    inputs = {"rows": rows.expression()}
    atom = rows.recorder.operate("mix", CLIENTS, inputs, matrix=np.ascontiguousarray(matrix))
    return Symbol(rows.recorder, CLIENTS, {atom: 1.0})


def weighted(rows: Symbol, mean: float, weights: Array | None) -> Symbol:
    """Σ (mean · share + weight) row over the clients."""
    recorder = rows.recorder
    rows.read()
    if weights is not None and recorder.equal and np.all(weights == weights[0]):
        mean, weights = mean + float(weights[0]) * recorder.n, None
    column = None if weights is None else weights[:, None]

    def summed(factor: Any) -> Any:
        if np.ndim(factor) < 2:
            return factor * (mean if weights is None else mean + float(weights.sum()))
        all_weights = mean * recorder.shares + (0.0 if weights is None else weights)
        out = all_weights @ factor
        return float(out[0]) if out.shape == (1,) else out

    terms: dict[int, Any] = {}
    sums: dict[int, Weights] = {}
    for atom, factor in rows.terms.items():
        if recorder.levels[atom] == SERVER:
            terms[atom] = summed(factor)
        elif np.ndim(factor) < 2:
            sums[atom] = mean * factor, None if column is None else column * factor
            if column is not None and np.ndim(factor) == 0:
                sums[atom] = mean * factor, column * factor
        else:
            both = mean * recorder.shares[:, None] + (0.0 if column is None else column)
            sums[atom] = 0.0, both * factor
    return Symbol(recorder, SERVER, terms, summed(rows.constant), sums)


def row_of(rows: Symbol, k: int) -> Symbol:
    """The row of client k."""
    one = np.zeros(rows.recorder.n)
    one[k] = 1.0
    return weighted(rows, 0.0, one)


def reshape(a: Symbol, shape: Any) -> Symbol:
    """A view of another shape."""
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    known = int(np.prod([x for x in given if x != -1]))
    full = tuple(a.size // known if x == -1 else int(x) for x in given)
    if full == a.shape:
        return a
    d = a.recorder.d
    if a.level == SERVER and full in ((d,), (1, d)):
        return a.at_level(SERVER, full).view(a)
    raise refused(f"the shape {full} is neither that of the server nor that of the clients")


def total(a: Symbol, axis: Any, keepdims: bool, out: Any, *, mean: bool) -> Symbol:
    """The sum or the mean over the rows."""
    if out is not None:
        raise refused("a sum with out= is not traced")
    a.read()
    if axis not in (0, -2, (0,)) or a.level == SERVER:
        raise refused("a sum over coordinates is not traced (one over clients, axis=0, is)")
    recorder = a.recorder
    if a.level == MEMBERS:
        of = recorder.members(a.expression())
        made = Symbol(recorder, SERVER, of.terms, of.constant)
        made = made if mean else scaled(made, float(a.shape[0]))
    else:
        made = weighted(a, 0.0, np.full(recorder.n, 1.0 / recorder.n if mean else 1.0))
    return reshape(made, (1, recorder.d)) if keepdims else made
