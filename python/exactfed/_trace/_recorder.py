"""What happens in a round that is traced."""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ._refusal import NotTraced, note, refused
from ._rounds import (
    CLIENTS,
    MEMBERS,
    SERVER,
    Array,
    Expression,
    Mask,
    Operation,
    Round,
    is_zero,
    setting_key,
)
from ._written import WrittenArrays

#: Operations that draw: each time something else comes out.
_RANDOM = ("steps", "fields", "normal")


class TracedArray(Protocol):
    """What a recorder asks of the symbols of its run; :class:`._symbols.Symbol` says what it is."""

    base: Any
    level: str
    shape: tuple[int, ...]
    written: tuple[int, int]

    @property
    def ndim(self) -> int: ...

    def expression(self) -> Expression: ...
    def at_level(self, level: str, shape: tuple[int, ...]) -> Any: ...
    def become(self, index: int) -> None: ...
    def expire(self) -> None: ...
    def detach(self) -> None: ...


class Operators(Protocol):
    """What the operators and the methods of symbols and masks compute.

    The functions make symbols, so that their modules import the class of symbols, and that class
    cannot import them. It finds them here: :mod:`._operators` is the one value of this type.
    """

    def lift(self, recorder: Recorder, value: Any) -> Any: ...
    def add(self, recorder: Recorder, a: Any, b: Any, sign: float = 1.0) -> Any: ...
    def scaled(self, a: Any, factor: Any) -> Any: ...
    def multiply(self, recorder: Recorder, a: Any, b: Any) -> Any: ...
    def divide(self, recorder: Recorder, a: Any, b: Any) -> Any: ...
    def matmul(self, recorder: Recorder, a: Any, b: Any) -> Any: ...
    def row_of(self, rows: Any, k: int) -> Any: ...
    def reshape(self, a: Any, shape: Any) -> Any: ...
    def total(self, a: Any, axis: Any, keepdims: bool, out: Any, *, mean: bool) -> Any: ...
    def take(self, of: Any, index: Any) -> Any: ...
    def put(self, of: Any, index: Any, value: Any) -> None: ...
    def ufunc_of_symbols(
        self, recorder: Recorder, ufunc: Any, method: str, inputs: Any, options: Any
    ) -> Any: ...
    def function_of_symbols(
        self, recorder: Recorder, function: Any, inputs: Any, options: Any
    ) -> Any: ...


class Recorder:
    """Collects the operations of a round, and cuts the trace at its end.

    No names or frames are looked at to find the state of an algorithm: the symbols that Python
    keeps alive after a round are all that later rounds can read.
    """

    def __init__(self, n: int, d: int, shares: Array | None, operators: Operators):
        self.n, self.d = n, d
        self.operators = operators
        self.equal = shares is None or bool(np.all(shares == shares[0]))
        self.shares = np.full(n, 1.0 / n) if shares is None else np.array(shares, float)
        self.live: list[weakref.ref[Any]] = []
        self.written = WrittenArrays()
        #: Large arrays, copies of their numbers and digests of these.
        self.contents: dict[int, tuple[weakref.ref[Any], Any, bytes]] = {}
        #: What functools.lru_cache keeps, and what was in it.
        self.cached: dict[int, tuple[Any, list[Any]]] = {}
        self.number, self.clock = 1, 0
        self._begin([SERVER])

    def _begin(self, levels: list[str]) -> None:
        self.levels, self.state = levels, len(levels)
        self.operations: list[Operation] = []
        self.cohort: int | None = None
        #: How many draws of the clients the round has kept.
        self.draws = 0
        #: The scheme that draws them, as JSON; None if they are drawn without replacement and
        #: weigh by their shares.
        self.scheme: str | None = None
        #: 1 for each client that takes part and 0 for the others, of shape (N, 1), where the
        #: algorithm names them, and their weights, of shape (N,), where it gives them.
        self.named: Array | None = None
        self.weights: Array | None = None
        self.masks: list[Mask] = []
        #: Masks on which an atom depends, and those that it is multiplied with entry by entry.
        self.depends: dict[int, frozenset[int]] = {}
        self.masked: dict[int, frozenset[int]] = {}
        self.selects: dict[int, tuple[Expression, Expression]] = {}
        self._same: dict[Any, int] = {}

    def content_of(self, array: Any) -> bytes:
        """What is in an array of numbers, or a digest of it."""
        if array.nbytes <= 64:
            return bytes(array.tobytes())
        whole = np.ascontiguousarray(array).view(np.uint8)
        # Comparing a large array with a copy is faster than a digest of it in every round.
        known = self.contents.get(id(array))
        if known is not None and known[0]() is array and np.array_equal(known[1], whole):
            return known[2]
        digest = hashlib.blake2b(whole, digest_size=16).digest()
        if array.nbytes > 4096:
            self.contents[id(array)] = weakref.ref(array), whole.copy(), digest
        return digest

    def keep_cached(self, value: Any, content: list[Any]) -> None:
        """Note what is in a value that functools.lru_cache keeps: it must not change."""
        if self.cached.setdefault(id(value), (value, content))[1] != content:
            raise note(NotTraced("what functools.lru_cache keeps is changed: not traced"))

    def tick(self) -> int:
        """A number that grows."""
        self.clock += 1
        return self.clock

    def draw(self, name: str, **settings: Any) -> int:
        """Note a draw of the algorithm's own, for the replay; its number in the round."""
        self.operations.append(Operation(name, None, {}, settings))
        return len(self.operations) - 1

    def keep_draw(self, kind: Any, calls: int) -> Any:
        """A draw of the clients, of this class, which fields of the round may share."""
        number = self.draws
        self.draws += 1
        self.draw("draw", number=number, calls=calls)
        return kind(self, number, calls)

    def operate(
        self, name: str, level: str, inputs: dict[str, Expression], /, **settings: Any
    ) -> int:
        """The atom that an operation makes; the same one if it was done in this round before."""
        key: Any = None
        if name not in _RANDOM:
            of = tuple(expression.key() for expression in inputs.values())
            key = name, level, of, setting_key(settings)
            if key in self._same:
                return self._same[key]
        atom = len(self.levels)
        self.levels.append(level)
        if self.masks:
            terms = {atom for of in inputs.values() for atom in of.terms}
            self.depends[atom] = frozenset().union(*(self.depends.get(a, ()) for a in terms))
        self.operations.append(Operation(name, atom, inputs, settings))
        if key is not None:
            self._same[key] = atom
        return atom

    def select(self, member: Expression, other: Expression) -> Expression:
        """Rows of the members, and those of the other clients."""
        member, other = self.side(member, 0), self.side(other, 1)
        if member.key() == other.key():
            return member
        atom = self.operate("select", CLIENTS, {"member": member, "other": other})
        self.selects[atom] = (member, other)
        return Expression({atom: 1.0}, 0.0)

    def side(self, of: Expression, side: int) -> Expression:
        """An expression where only members (0) or only others (1) are looked at."""
        if not any(atom in self.selects for atom in of.terms):
            return of
        terms: dict[int, Any] = {}
        constant = of.constant
        for atom, factor in of.terms.items():
            inner = self.selects.get(atom)
            parts = {atom: 1.0} if inner is None else inner[side].terms
            for part, weight in parts.items():
                product = factor * weight
                terms[part] = terms[part] + product if part in terms else product
            if inner is not None:
                constant = constant + factor * inner[side].constant
        return Expression({a: c for a, c in terms.items() if not is_zero(c)}, constant)

    def members(self, rows: Expression) -> Expression:
        """The mean of the rows of the members."""
        rows = self.side(rows, 0)
        # By a scheme the weights of the members need not sum to 1.
        plain = self.scheme is None and all(self.levels[atom] == SERVER for atom in rows.terms)
        if plain and all(np.ndim(c) < 2 for c in (*rows.terms.values(), rows.constant)):
            return rows
        atom = self.operate("members", SERVER, {"rows": rows})
        return Expression({atom: 1.0}, 0.0)

    def emit_sum(self, atom: int, mean: Any, weights: Array | None) -> tuple[int, Any]:
        """The atom and the factor of Σ (mean · share + weight) row over the clients."""
        if weights is None:
            made = self.operate(
                "sum", SERVER, {"rows": Expression({atom: 1.0}, 0.0)}, weights="shares"
            )
            return made, mean
        total = weights + mean * self.shares[:, None]
        ratio = total / self.shares[:, None]
        spread = np.ptp(ratio, axis=0)
        if np.all(spread <= 4e-15 * np.abs(ratio).max(axis=0)):
            factor = total.sum(axis=0)
            return self.emit_sum(atom, float(factor[0]) if len(factor) == 1 else factor, None)
        if total.shape[1] > 1 and not np.all(total == total[:, :1]):
            rows = Expression({atom: total}, 0.0)
            return self.operate("sum", SERVER, {"rows": rows}, weights=np.ones(self.n)), 1.0
        column, factor = total[:, 0], 1.0
        if np.count_nonzero(column) == 1:
            factor = float(column.sum())
            column = (column != 0.0).astype(float)
        rows = Expression({atom: 1.0}, 0.0)
        return self.operate("sum", SERVER, {"rows": rows}, weights=np.array(column)), factor

    def multiplied(self, of: Expression, mask: int) -> Expression:
        """An expression times a mask: what is masked by it already stays."""
        done = {a: c for a, c in of.terms.items() if mask in self.masked.get(a, ())}
        rest = Expression({a: c for a, c in of.terms.items() if a not in done}, of.constant)
        seen = frozenset().union(*(self.depends.get(a, frozenset()) for a in of.terms))
        if any(mask in self.depends.get(a, ()) for a in rest.terms):
            raise refused("what a mask has changed is multiplied with the mask again: not traced")
        if seen - {mask}:
            raise refused("products of two random masks are not traced")
        if not rest.terms and is_zero(rest.constant):
            return of
        level = self.masks[mask].level
        atom = self.operate("mask", level, {"of": rest}, mask=mask, level=level)
        self.depends[atom] = seen | {mask}
        self.masked[atom] = frozenset({mask})
        return Expression({**done, atom: 1.0}, 0.0)

    def redirect(self, target: Any, symbol: TracedArray) -> Any:
        """``target op= symbol``: the array's name becomes the symbol."""
        if type(target) is not np.ndarray or not target.flags.writeable:
            raise refused("θ is written into what is no array of numbers that may be written")
        if target.dtype != np.float64:
            raise refused(f"an array of type {target.dtype} is changed in place by θ: not traced")
        if target.shape not in ((self.d,), (self.n, self.d)):
            raise refused(f"an array of shape {target.shape} is changed in place by θ: not traced")
        if len(target.shape) < symbol.ndim and self.n > 1:
            raise refused(f"{symbol.shape} does not fit into an array of shape {target.shape}")
        level = SERVER if target.shape == (self.d,) else CLIENTS
        self.written.add(target)
        return symbol.at_level(level, target.shape)

    def end_round(self, result: Expression, alive: Sequence[TracedArray]) -> Round:
        """The program of the round; symbols become the state of the next one."""
        found: dict[Any, int] = {}
        after: list[Expression] = []
        levels: list[str] = []
        cut: list[tuple[TracedArray, int]] = []
        # By the place of the last write within its round, then by age: the same from round to
        # round in a fixed pattern.
        for symbol in sorted(alive, key=lambda s: (s.written[1], -s.written[0])):
            if symbol.level == MEMBERS:
                symbol.expire()
                continue
            of = symbol.expression()
            if not of.terms:
                continue
            key = symbol.level, of.key()
            if key not in found:
                found[key] = len(after)
                after.append(of)
                levels.append(symbol.level)
            cut.append((symbol, found[key]))
        done = Round(
            self.state, self.levels, self.operations, after, levels, result, self.cohort,
            self.masks, self.scheme,
        )  # fmt: skip
        self.number += 1
        self.clock = 0
        self._begin(list(levels))
        for symbol, index in cut:
            symbol.become(index)
        return done

    def alive(self) -> list[Any]:
        """The symbols that can still be read, views apart: they follow what they are views of."""
        found = [symbol for ref in self.live if (symbol := ref()) is not None]
        self.live = [weakref.ref(symbol) for symbol in found]
        for symbol in found:
            # References: the view's own, and the list and the names here.
            if symbol.base is not None and sys.getrefcount(symbol.base) <= 3:
                symbol.detach()
        return [symbol for symbol in found if symbol.base is None]
