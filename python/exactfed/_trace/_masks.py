"""Random masks of the algorithm's own, and the uniform draws that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._numbers import numbers
from ._refusal import refused
from ._rounds import CLIENTS, SERVER, Mask
from ._symbols import Symbol, is_symbol

OTHER_DRAWS = "draws of the algorithm's own other than normal ones and masks are not traced"


def checked_probability(value: Any) -> float:
    """The probability of a mask, which must be one number that does not depend on θ."""
    if is_symbol(value) or np.ndim(value) != 0:
        raise refused("a random mask has one constant probability")
    return float(value)


class Uniform:
    """Uniform draws, of which an algorithm may only ask whether they are below a number."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Any, shape: tuple[int, ...], draw: int):
        self._recorder, self.shape, self.ndim = recorder, shape, len(shape)
        self._draw, self._round, self._used = draw, recorder.number, False

    def _below(self, p: Any, strict: bool) -> Masked:
        probability = checked_probability(p)
        if self._used or self._round != self._recorder.number:
            raise refused("uniform draws are compared twice, or later: not traced")
        self._used = True
        self._recorder.draw("below", of=self._draw, probability=probability, strict=strict)
        coins = min(1.0, max(0.0, probability)), self._draw
        return mask_of_coins(self._recorder, coins, self.shape, boolean=True)

    def __lt__(self, p: Any) -> Masked:
        return self._below(p, True)

    def __le__(self, p: Any) -> Masked:
        return self._below(p, False)

    def __gt__(self, p: Any) -> Masked:
        return ~self._below(p, False)

    def __ge__(self, p: Any) -> Masked:
        return ~self._below(p, True)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        turned = {"less": "greater", "less_equal": "greater_equal"}
        turned |= {there: here for here, there in turned.items()}
        if method != "__call__" or options or ufunc.__name__ not in turned:
            raise refused(OTHER_DRAWS)
        own = inputs[0] is self
        name = ufunc.__name__ if own else turned[ufunc.__name__]
        other = inputs[1] if own else inputs[0]
        compare = {"less": self.__lt__, "less_equal": self.__le__, "greater": self.__gt__}
        return compare.get(name, self.__ge__)(other)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise refused(OTHER_DRAWS)

    __array__ = __array_function__ = __float__ = __bool__ = __iter__ = __len__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __eq__ = __ne__ = __getitem__ = __neg__ = __pow__ = __getattr__ = _refuse


def mask_of_coins(
    recorder: Any, coins: tuple[float, int], shape: tuple[int, ...], boolean: bool
) -> Masked:
    """The mask of this probability and of the draw with this number in its round."""
    if not 0.0 <= coins[0] <= 1.0:
        raise ValueError("p < 0, p > 1 or p is NaN")
    n, d = recorder.n, recorder.d
    if shape not in ((), (d,), (n,), (n, 1), (n, d)):
        raise refused(f"a random mask of shape {shape} is not traced")
    return Masked(recorder, [*coins, None], shape, 0.0, 1.0, boolean)


class Masked:
    """An affine function of a random mask: offset + scale · mask.

    The modules of arithmetic know masks. Masks therefore find the arithmetic of symbols at their
    recorder (:class:`._recorder.Operators`).
    """

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 2000.0

    def __init__(
        self,
        recorder: Any,
        coins: list[Any],
        shape: tuple[int, ...],
        offset: Any,
        scale: Any,
        boolean: bool,
    ):
        self._recorder, self._coins, self.shape = recorder, coins, shape
        self._offset, self._scale, self._boolean = offset, scale, boolean
        self._round = recorder.number
        self.ndim = len(shape)

    def _with(self, offset: Any, scale: Any, boolean: bool = False) -> Masked:
        shape = np.broadcast_shapes(self.shape, np.shape(offset), np.shape(scale))
        if (
            shape != self.shape
            and self.shape != ()
            and shape != (self._recorder.n, self._recorder.d)
        ):
            raise refused(f"a random mask of shape {self.shape} times {shape} is not traced")
        out = Masked(self._recorder, self._coins, self.shape, offset, scale, boolean)
        out._round = self._round
        return out

    @property
    def is_boolean(self) -> bool:
        """Whether its entries are True and False, and not yet numbers."""
        return self._boolean

    def index(self) -> int:
        """The mask of the round whose coins these are."""
        recorder, (probability, draw, known) = self._recorder, self._coins
        n, d = recorder.n, recorder.d
        if self._round != recorder.number:
            raise refused("a random mask of an earlier round is used: not traced")
        if self.shape not in ((), (d,), (n, 1), (n, d)):
            raise refused(f"a random mask of shape {self.shape} fits neither (d,) nor (N, d)")
        each = "row" if self.shape in ((), (n, 1)) else "entry"
        level = CLIENTS if len(self.shape) == 2 else SERVER
        if known is None:
            known = len(recorder.masks), each, level
            recorder.masks.append(Mask(probability, each, level))
            recorder.draw("coins", mask=known[0], of=draw, shape=self.shape)
            self._coins[2] = known
        if known[1:] != (each, level):
            raise refused("a random mask is used in two shapes: not traced")
        index: int = known[0]
        return index

    def times(self, other: Symbol) -> Symbol:
        """Its product with a symbol."""
        recorder, index = self._recorder, self.index()
        level = recorder.masks[index].level
        other.read()
        if other.level == SERVER and level == CLIENTS:
            other = other.at_level(CLIENTS, (recorder.n, recorder.d))
        if other.level != level:
            raise refused("a random mask of the server times rows of clients is not traced")
        of = recorder.multiplied(other.expression(), index)
        made = Symbol(recorder, level, of.terms, of.constant, None, other.shape)
        operators = recorder.operators
        unmasked: Symbol = operators.multiply(recorder, other, self._offset)
        masked: Symbol = operators.multiply(recorder, made, self._scale)
        product: Symbol = operators.add(recorder, unmasked, masked, 1.0)
        return product

    def symbol(self) -> Symbol:
        """It as an array of the level of its coins."""
        one = Symbol(self._recorder, SERVER, {}, 1.0)
        return self.times(one)

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Masked:
        if np.dtype(dtype).kind not in "fiu":
            raise refused(f"a random mask of type {dtype} is not traced")
        return self._with(self._offset, self._scale)

    def __getitem__(self, index: Any) -> Masked:
        recorder = self._recorder
        parts = index if type(index) is tuple else (index,)
        column = len(parts) == 2 and parts[0] == slice(None) and parts[1] is None
        if (
            not column
            or self.shape != (recorder.n,)
            or np.ndim(self._scale)
            or np.ndim(self._offset)
        ):
            raise refused("parts of a random mask are not traced")
        out = Masked(
            recorder, self._coins, (recorder.n, 1), self._offset, self._scale, self._boolean
        )
        out._round = self._round
        return out

    def __invert__(self) -> Masked:
        if not self._boolean:
            raise refused("~ of what is no longer a mask of True and False is not traced")
        return self._with(1.0 - self._offset, -self._scale, True)

    def __mul__(self, other: Any) -> Any:
        if is_mask(other):
            return _product(self, other)
        if is_symbol(other):
            return self.times(other)
        factor = numbers(other)
        return self._with(self._offset * factor, self._scale * factor)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if is_symbol(other) or is_mask(other):
            raise refused("a division by θ, or by a mask, is not linear")
        return self * (1.0 / numbers(other))

    def _plus(self, other: Any, sign: float) -> Any:
        # The dtype of numpy equals `bool` and is another object.
        truth = other._boolean if is_mask(other) else getattr(other, "dtype", None) == bool  # noqa: E721
        if self._boolean and truth:
            raise refused("sums of True and False are not linear: use astype(float)")
        if is_symbol(other) or is_mask(other):
            operators = self._recorder.operators
            lifted = operators.lift(self._recorder, other)
            return operators.add(self._recorder, self.symbol(), lifted, sign)
        return self._with(self._offset + sign * numbers(other), self._scale)

    def __add__(self, other: Any) -> Any:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1.0)

    def __neg__(self) -> Masked:
        return self._with(-self._offset, -self._scale)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise refused("the path of the algorithm depends on a draw")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise refused("the numbers of a random mask are asked for: not traced")

    __array__ = __float__ = __int__ = __index__ = __iter__ = __rtruediv__ = __pow__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __or__ = __xor__ = __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise refused(f"the attribute .{name} of a random mask is not traced")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self._recorder.operators.ufunc_of_symbols(
            self._recorder, ufunc, method, inputs, options
        )

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return self._recorder.operators.function_of_symbols(
            self._recorder, function, inputs, options
        )


def is_mask(value: Any) -> bool:
    """Whether it is made of a random mask."""
    return type(value) is Masked


def as_symbol(value: Any) -> Any:
    """Masks as the arrays that they are."""
    return value.symbol() if type(value) is Masked else value


def _product(a: Masked, b: Masked) -> Masked:
    """(o + s m)(p + t m) = o p + (o t + s p + s t) m, for one mask m of 0 and 1."""
    if a._coins is not b._coins or a.shape != b.shape:
        raise refused("products of two random masks are not traced")
    scale = a._offset * b._scale + a._scale * b._offset + a._scale * b._scale
    return a._with(a._offset * b._offset, scale)
