"""Symbols, which stand for arrays while an algorithm is traced."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._recorder import Recorder
from ._refusal import NotTraced, refused
from ._rounds import CLIENTS, MEMBERS, SERVER, Array, Expression, is_zero

#: Of a sum over clients: the factor of the shares, and further weights (N, 1) or (N, d).
Weights = tuple[Any, "Array | None"]


class Symbol:
    """Stands for an array of the server, (d,) or (1, d), of the clients, (N, d), or of the members.

    It is a constant and atoms times coefficients. A symbol of the server has sums over the rows of
    atoms besides, which become operations only where they are needed: so N single rows are one sum.
    Operations in place change it, as those of numpy do; a view follows its base.
    """

    __slots__ = (
        "recorder", "level", "shape", "terms", "constant", "sums",
        "written", "version", "base", "row", "seen", "__weakref__",
    )  # fmt: skip
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        recorder: Recorder,
        level: str,
        terms: dict[int, Any],
        constant: Any = 0.0,
        sums: dict[int, Weights] | None = None,
        shape: tuple[int, ...] | None = None,
    ):
        self.recorder, self.level = recorder, level
        if shape is None:
            rows = recorder.n if level == CLIENTS else recorder.cohort or recorder.n
            shape = (recorder.d,) if level == SERVER else (rows, recorder.d)
        self.shape = shape
        self.base: Symbol | None = None
        self.row: int | None = None
        self.seen = 0
        self._set(terms, constant, sums or {})
        recorder.live.append(weakref.ref(self))

    def _set(self, terms: dict[int, Any], constant: Any, sums: dict[int, Weights]) -> None:
        self.terms = {atom: c for atom, c in terms.items() if not is_zero(c)}
        numbers = (*self.terms.values(), constant)
        if not all(np.isfinite(c).all() for c in numbers):
            raise refused(
                "a factor is not finite, or an array that θ has changed in place is read under "
                "another name"
            )
        self.constant, self.sums = constant, sums
        self._touch()

    def _touch(self) -> None:
        self.written = (self.recorder.number, self.recorder.tick())
        self.version = self.written

    # What it stands for.

    def read(self) -> Symbol:
        """Itself, up to date with its base."""
        if self.base is not None:
            base = self.base.read()
            if self.seen != base.version:
                now = base if self.row is None else row_of(base, self.row)
                self._set(dict(now.terms), now.constant, dict(now.sums))
                self.seen = base.version
        return self

    def expression(self) -> Expression:
        """Without sums, which become operations."""
        self.read()
        for atom in sorted(self.sums):
            mean, weights = self.sums[atom]
            if weights is None and is_zero(mean):
                continue
            made, factor = self.recorder.emit_sum(atom, mean, weights)
            if not is_zero(factor):
                total = self.terms[made] + factor if made in self.terms else factor
                self.terms[made] = total
        self.sums = {}
        self.terms = {atom: c for atom, c in self.terms.items() if not is_zero(c)}
        return Expression(dict(self.terms), self.constant)

    def become(self, index: int) -> None:
        """Be an atom of the state of a new round."""
        self.terms, self.constant, self.sums = {index: 1.0}, 0.0, {}
        self.version = (self.recorder.number, self.recorder.tick())

    def expire(self) -> None:
        """Rows of the members of a round that is over."""
        self.terms, self.constant = {}, np.nan

    def detach(self) -> None:
        """Be no view: nothing else refers to the base."""
        self.read()
        self.base, self.row = None, None

    def view(self, of: Symbol, row: int | None = None) -> Symbol:
        """Make this new symbol a view of another one, or of a row of it."""
        self.base, self.row, self.seen = of, row, of.version
        return self

    def at_level(self, level: str, shape: tuple[int, ...]) -> Symbol:
        """A new symbol of this level and shape."""
        self.read()
        if level == self.level:
            return Symbol(
                self.recorder, level, dict(self.terms), self.constant, dict(self.sums), shape
            )
        of = self.expression()
        return Symbol(self.recorder, level, of.terms, of.constant, None, shape)

    def write(self, other: Symbol) -> Symbol:
        """Take the value of another one, in place."""
        other.read()
        fits = other.level in (self.level, SERVER) and not (other.ndim > self.ndim)
        if not fits:
            raise refused(f"{other.shape} does not fit into an array of shape {self.shape}")
        if other is self:
            return self
        if other.level != self.level:
            other = other.at_level(self.level, self.shape)
        terms, constant, sums = dict(other.terms), other.constant, dict(other.sums)
        self._set(terms, constant, sums)
        if self.base is not None:
            if self.row is None:
                self.base.write(other)
            else:
                self.base[self.row] = other
            self.seen = self.base.version
        return self

    # The face of an array.

    @property
    def __class__(self) -> type:  # type: ignore[override]
        # isinstance(theta, np.ndarray) takes the path that numbers take.
        return np.ndarray

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype[np.float64]:
        return np.dtype(np.float64)

    @property
    def T(self) -> Symbol:
        if self.ndim == 1:
            return self
        raise refused("a transposed array is not traced")

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<symbol of shape {self.shape}>"

    def copy(self, order: str = "C") -> Symbol:
        return self.at_level(self.level, self.shape)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Symbol:
        return self.copy()

    def astype(self, dtype: Any = float, *_: Any, **__: Any) -> Symbol:
        if np.dtype(dtype) != np.float64:
            raise refused(f"astype({np.dtype(dtype).name}) rounds, which is not linear")
        return self.copy()

    def fill(self, value: Any) -> None:
        self.write(lift(self.recorder, np.full(self.recorder.d, float(value))))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise refused("the numbers of an array are asked for, and while tracing there are none")

    def _number(self, *_: Any, **__: Any) -> Any:
        raise refused("a single number of an array is asked for: not traced")

    __float__ = __int__ = __index__ = __complex__ = tolist = item = _number

    def __bool__(self) -> bool:
        raise refused("the path of the algorithm depends on θ")

    def _compare(self, _: Any) -> Any:
        raise refused("a comparison is not linear")

    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __eq__ = __ne__ = __contains__ = _compare  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        raise refused(f"the attribute .{name} of an array is not traced")

    # Arithmetic.

    def __neg__(self) -> Symbol:
        return scaled(self, -1.0)

    def __pos__(self) -> Symbol:
        return self.copy()

    def __add__(self, other: Any) -> Any:
        return add(self.recorder, self, other, 1.0)

    def __radd__(self, other: Any) -> Any:
        return add(self.recorder, other, self, 1.0)

    def __sub__(self, other: Any) -> Any:
        return add(self.recorder, self, other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return add(self.recorder, other, self, -1.0)

    def __mul__(self, other: Any) -> Any:
        return multiply(self.recorder, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return divide(self.recorder, self, other)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self.recorder, self, other)

    dot = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(self.recorder, other, self)

    def __iadd__(self, other: Any) -> Symbol:
        return self.write(self + other)

    def __isub__(self, other: Any) -> Symbol:
        return self.write(self - other)

    def __imul__(self, other: Any) -> Symbol:
        return self.write(self * other)

    def __itruediv__(self, other: Any) -> Symbol:
        return self.write(self / other)

    def __rtruediv__(self, _: Any) -> Any:
        raise refused("a division by θ is not linear")

    def __abs__(self) -> Any:
        raise refused("the absolute value is not linear")

    def __pow__(self, power: Any) -> Symbol:
        if type(power) in (int, float) and power == 1:
            return self.copy()
        raise refused("a power is not linear")

    def __rpow__(self, _: Any) -> Any:
        raise refused("a power is not linear")

    def _rounding(self, _: Any) -> Any:
        raise refused("a remainder or a rounded quotient is not linear")

    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _rounding

    def reshape(self, *shape: Any, **_: Any) -> Symbol:
        return reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self, *_: Any) -> Symbol:
        return reshape(self, -1)

    def flatten(self, *_: Any) -> Symbol:
        return reshape(self, -1).copy()

    def squeeze(self, *_: Any, **__: Any) -> Symbol:
        return reshape(self, -1)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return total(self, axis, keepdims, out, mean=False)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return total(self, axis, keepdims, out, mean=True)

    # Parts.

    def __iter__(self) -> Iterator[Symbol]:
        if self.level != CLIENTS:
            raise refused("single coordinates, or single rows of the members, are not traced")
        return (self[k] for k in range(self.shape[0]))

    def __getitem__(self, index: Any) -> Symbol:
        from ._indices import take

        return take(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        from ._indices import put

        put(self, index, value)

    # Functions of numpy.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from ._numpy import ufunc_of_symbols

        return ufunc_of_symbols(self.recorder, ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        from ._numpy import function_of_symbols

        return function_of_symbols(self.recorder, function, inputs, options)


def is_symbol(value: Any) -> bool:
    """Whether it stands for an array (isinstance says that it is one)."""
    return type(value) is Symbol


def numbers(value: Any) -> Array:
    """An array of numbers."""
    try:
        array = np.asarray(value)
        if array.dtype == object:
            raise refused("an array of objects is not traced")
        if array.dtype.kind not in "fiub":
            raise refused(f"an array of type {array.dtype} is not traced")
        return array.astype(float)
    except NotTraced:
        raise
    except (TypeError, ValueError) as error:
        raise refused(f"{type(value).__name__} is no array of numbers: {error}") from None


def lift(recorder: Recorder, value: Any) -> Symbol:
    """The symbol of a value: constants are symbols without atoms."""
    from ._masks import as_symbol

    value = as_symbol(recorder.known(value))
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


def add(recorder: Recorder, a: Any, b: Any, sign: float) -> Symbol:
    """a ± b."""
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
    """a · b, where one of the two is constant."""
    from ._masks import is_mask, mask_times

    a, b = recorder.known(a), recorder.known(b)
    if is_mask(a) or is_mask(b):
        return mask_times(a, b) if is_mask(a) else mask_times(b, a)
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
    """a / b, where b is constant."""
    b = recorder.known(b)
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
    """a @ b, where one of the two is a constant array."""
    a, b = recorder.known(a), recorder.known(b)
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
        return Symbol(recorder, of.level, {atom: 1.0}, 0.0, None, of.shape)
    shapes = (matrix.shape, of.shape) if is_symbol(b) else (of.shape, matrix.shape)
    raise refused(f"a product of arrays of shapes {shapes[0]} and {shapes[1]} is not traced")


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
