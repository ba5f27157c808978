"""Symbols, which stand for arrays while an algorithm is traced."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._recorder import Recorder
from ._refusal import refused
from ._rounds import CLIENTS, SERVER, Array, Expression, is_zero

#: Of a sum over clients: the factor of the shares, and further weights (N, 1) or (N, d).
Weights = tuple[Any, "Array | None"]


def _is_finite(factor: Any) -> bool:
    return math.isfinite(factor) if isinstance(factor, float) else bool(np.isfinite(factor).all())


class Symbol:
    """Stands for an array of the server, (d,) or (1, d), of the clients, (N, d), or of the members.

    It is a constant and atoms times coefficients. A symbol of the server has sums over the rows of
    atoms besides, which become operations only where they are needed: so N single rows are one sum.
    Operations in place change it, as those of numpy do; a view follows its base.

    The modules that compute with symbols make symbols and so import this one. Symbols therefore
    find their operators at their recorder (:class:`._recorder.Operators`).
    """

    __slots__ = (
        "__weakref__",
        "base",
        "constant",
        "level",
        "product",
        "recorder",
        "row",
        "seen",
        "shape",
        "sums",
        "terms",
        "version",
        "written",
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
        self.seen = (0, 0)
        self._set(terms, constant, sums or {})
        recorder.live.append(weakref.ref(self))

    def _set(self, terms: dict[int, Any], constant: Any, sums: dict[int, Weights]) -> None:
        self.terms = {atom: c for atom, c in terms.items() if not is_zero(c)}
        if not all(map(_is_finite, (*self.terms.values(), constant))):
            raise refused("a factor is not finite")
        self.constant, self.sums = constant, sums
        #: Of a product of a matrix and the row of a client: both, see ``_arithmetic.matmul``.
        self.product: tuple[Array, Symbol, tuple[int, int], int] | None = None
        self._touch()

    def _touch(self) -> None:
        self.written = (self.recorder.number, self.recorder.tick())
        self.version: tuple[int, int] = self.written

    # What it stands for.

    def read(self) -> Symbol:
        """Itself, up to date with its base."""
        if self.base is not None:
            base = self.base.read()
            if self.seen != base.version:
                now = base if self.row is None else self.recorder.operators.row_of(base, self.row)
                if now.level != self.level:
                    now = now.at_level(self.level, self.shape)
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
        if self.base is not None and self.row is None and self.base.level != self.level:
            raise ValueError("assignment destination is read-only")
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

    @property  # type: ignore[misc]
    def __class__(self) -> type:
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
        raise refused("the text of an array is asked for: not traced")

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
        self.write(
            self.recorder.operators.lift(self.recorder, np.full(self.recorder.d, float(value)))
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise refused("the numbers of an array are asked for, and while tracing there are none")

    def _number(self, *_: Any, **__: Any) -> Any:
        raise refused("a single number of an array is asked for: not traced")

    __float__ = __int__ = __index__ = __complex__ = __reduce_ex__ = tolist = item = _number

    def __bool__(self) -> bool:
        raise refused("the path of the algorithm depends on θ")

    def _compare(self, _: Any) -> Any:
        raise refused("a comparison is not linear")

    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __eq__ = __ne__ = __contains__ = _compare

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        raise refused(f"the attribute .{name} of an array is not traced")

    # Arithmetic.

    def __neg__(self) -> Symbol:
        return self.recorder.operators.scaled(self, -1.0)

    def __pos__(self) -> Symbol:
        return self.copy()

    def __add__(self, other: Any) -> Any:
        return self.recorder.operators.add(self.recorder, self, other, 1.0)

    def __radd__(self, other: Any) -> Any:
        return self.recorder.operators.add(self.recorder, other, self, 1.0)

    def __sub__(self, other: Any) -> Any:
        return self.recorder.operators.add(self.recorder, self, other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return self.recorder.operators.add(self.recorder, other, self, -1.0)

    def __mul__(self, other: Any) -> Any:
        return self.recorder.operators.multiply(self.recorder, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.recorder.operators.divide(self.recorder, self, other)

    def __matmul__(self, other: Any) -> Any:
        return self.recorder.operators.matmul(self.recorder, self, other)

    dot = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        return self.recorder.operators.matmul(self.recorder, other, self)

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
        return self.recorder.operators.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self, *_: Any) -> Symbol:
        return self.recorder.operators.reshape(self, -1)

    def flatten(self, *_: Any) -> Symbol:
        return self.recorder.operators.reshape(self, -1).copy()

    def squeeze(self, *_: Any, **__: Any) -> Symbol:
        return self.recorder.operators.reshape(self, -1)

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return self.recorder.operators.total(self, axis, keepdims, out, mean=False)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return self.recorder.operators.total(self, axis, keepdims, out, mean=True)

    # Parts.

    def __iter__(self) -> Iterator[Symbol]:
        if self.level != CLIENTS:
            raise refused("single coordinates, or single rows of the members, are not traced")
        return (self[k] for k in range(self.shape[0]))

    def __getitem__(self, index: Any) -> Symbol:
        return self.recorder.operators.take(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.recorder.operators.put(self, index, value)

    # Functions of numpy.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.recorder.operators.ufunc_of_symbols(
            self.recorder, ufunc, method, inputs, options
        )

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return self.recorder.operators.function_of_symbols(self.recorder, function, inputs, options)


def is_symbol(value: Any) -> bool:
    """Whether it stands for an array (isinstance says that it is one)."""
    return type(value) is Symbol
