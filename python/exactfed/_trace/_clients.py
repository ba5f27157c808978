"""The clients that an algorithm receives while it is traced."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .._native import Compressor
from ._arithmetic import lift, weighted
from ._draws import Generator, SymbolicDraw
from ._indices import Members
from ._masks import is_mask
from ._numbers import numbers
from ._recorder import Recorder
from ._refusal import refused
from ._rounds import CLIENTS, MEMBERS, SERVER, Array, Expression, Mask, is_zero
from ._symbols import Symbol, is_symbol

#: The schemes of participation whose rounds programs know: the weights of those who are drawn
#: do not depend on who else is.
TRACED_SCHEMES = ("rescaled", "with-replacement", "proportional", "weighted", "bernoulli")


class SymbolicClients:
    """What :class:`exactfed.Clients` is while an algorithm runs."""

    __slots__ = ("_drawn", "_generator", "_recorder", "_records", "dim", "n", "rounds")

    def __init__(self, recorder: Recorder, rounds: int, records: Any = None):
        self._recorder, self._generator = recorder, Generator(recorder)
        self.rounds, self.n, self.dim = rounds, recorder.n, recorder.d
        self._records = records
        self._drawn = False

    def __len__(self) -> int:
        return self.n

    @property
    def shares(self) -> Array:
        return self._recorder.shares.copy()

    @property
    def records(self) -> Any:
        return None if self._records is None else self._records.copy()

    @property
    def members(self) -> Any:
        recorder = self._recorder
        if recorder.named is not None:
            return np.flatnonzero(recorder.named)
        size = recorder.cohort
        return np.arange(self.n) if size is None else Members(recorder, size)

    @property
    def rng(self) -> Generator:
        if not self._drawn:
            self._drawn = True
            self._recorder.draw("generator")
        return self._generator

    def participate(self, indices: Any, weights: Any = None) -> None:
        recorder = self._recorder
        for value, what in ((indices, "the clients that take part"), (weights, "their weights")):
            if is_symbol(value):
                raise refused(f"{what} depend on θ, which is not linear")
            if is_mask(value) or isinstance(value, Members):
                raise refused(
                    f"{what} depend on draws, whose probabilities are not known here: not traced; "
                    "clients.cohort(participation=...) draws them by a scheme"
                )
        self._choose_once()
        chosen = np.asarray(indices, float)
        if chosen.ndim != 1 or np.any(chosen % 1) or np.any((chosen < 0) | (chosen >= self.n)):
            raise ValueError(f"indices are those of clients, whole numbers from 0 to {self.n - 1}")
        named = chosen.astype(np.int64)
        if len(np.unique(named)) != len(named):
            raise ValueError("a client is named twice in indices")
        given = None
        if weights is not None:
            given = np.array(weights, float)
            if given.shape != named.shape or not np.all(np.isfinite(given)):
                raise ValueError(f"weights has the shape {given.shape}; expected {named.shape}")
            recorder.weights = np.zeros(self.n)
            recorder.weights[named] = given
        recorder.draw("participate", indices=named, weights=given)
        recorder.named = np.zeros((self.n, 1))
        recorder.named[named] = 1.0

    def _choose_once(self) -> None:
        """Refuse a second choice of the clients of a round."""
        if self._recorder.cohort is not None or self._recorder.named is not None:
            raise refused("two choices of the clients that take part in a round are not traced")

    def _of_named(self, member: Symbol, other: Any) -> Symbol:
        """Rows of the clients that take part, if the algorithm names them, and of the others."""
        named = self._recorder.named
        if named is None:
            return member
        return member * named + lift(self._recorder, other) * (1.0 - named)

    def cohort(self, size: float | None = None, *, participation: Any = None) -> Any:
        recorder = self._recorder
        if is_symbol(size) or is_mask(size):
            raise refused("the size of a cohort depends on θ")
        if participation not in (None, "normalised"):
            return self._cohort_by_scheme(size, participation)
        if size is None:
            raise ValueError("a cohort needs a size, or `participation` with a scheme")
        size = self._cohort_size(size)
        self._choose_once()
        if size == self.n:
            recorder.draw("cohort", size=self.n)
            return np.arange(self.n)
        if not recorder.equal:
            raise refused("a cohort of clients with unequal shares is not traced")
        recorder.draw("cohort", size=size)
        recorder.cohort = size
        return Members(recorder, size)

    def _cohort_size(self, size: float) -> int:
        """The number of clients that a number or a fraction means."""
        if 0 < size < 1:
            size = max(1, int(size * self.n + 0.5))
        if not 1 <= size <= self.n:
            raise ValueError(
                f"a cohort has from 1 to {self.n} clients, or a fraction of them above 0 and "
                f"below 1, not {size}"
            )
        return int(size)

    def _cohort_by_scheme(self, size: float | None, participation: Any) -> Members:
        """The clients that a scheme of manifests draws, with its weights."""
        recorder = self._recorder
        text = json.dumps(participation)
        name = participation if isinstance(participation, str) else next(iter(participation), "")
        if name not in TRACED_SCHEMES:
            raise refused(
                f"a cohort by the scheme {text} is not traced; {', '.join(TRACED_SCHEMES)} are"
            )
        self._choose_once()
        number = None if size is None else self._cohort_size(size)
        recorder.draw("cohort", size=number, scheme=text)
        recorder.cohort, recorder.scheme = number or self.n, text
        return Members(recorder, recorder.cohort)

    def charge(
        self, communications: int = 1, *, vectors: int = 0, bytes: Any = None, bits: Any = None
    ) -> None:
        """Costs are no part of the rounds."""

    def compress(self, rows: Any, compressor: Any) -> Symbol:
        """Rand-k is a mask of fixed size; what else a compressor does to symbols is refused."""
        recorder, d = self._recorder, self.dim
        of = compressor if type(compressor) is Compressor else Compressor(compressor)
        given = self._point(rows, "rows")
        level = SERVER if np.ndim(rows) == 1 else CLIENTS
        sent = given.at_level(level, (d,) if level == SERVER else (self.n, d)).expression()
        if level == CLIENTS:
            # Nothing comes from clients that take no part, whose rows may depend on the cohort.
            sent = recorder.side(sent, 0)
        drawn = of._drawn(d)
        if drawn is None and of.name != "identity":
            raise refused(_why_not_traced(of))
        if drawn is not None and drawn < d:
            index = len(recorder.masks)
            recorder.masks.append(Mask(drawn / d, "subset", level))
            recorder.draw("compress", mask=index, compressor=str(of), level=level)
            masked = recorder.multiplied(sent, index)
            sent = Expression({a: c * (d / drawn) for a, c in masked.terms.items()}, 0.0)
        if level == CLIENTS and recorder.cohort is not None:
            sent = recorder.select(sent, Expression({}, 0.0))
        message = Symbol(recorder, level, sent.terms, sent.constant)
        return message if level == SERVER else self._of_named(message, 0.0)

    def error_feedback(self, compressor: Any) -> SymbolicFeedback:
        return SymbolicFeedback(self, compressor)

    def _point(self, value: Any, what: str) -> Symbol:
        point = lift(self._recorder, value)
        n, d = self.n, self.dim
        if point.level == MEMBERS or (np.shape(value) not in ((d,), (n, d))):
            raise ValueError(
                f"{what} has the shape {np.shape(value)}; expected ({d},) or ({n}, {d})"
            )
        return point

    def _each(self, value: Any, what: str) -> float | Array:
        """A number, or one of each client."""
        if is_symbol(value) or is_mask(value):
            raise refused(f"{what} depends on θ, which is not linear")
        array = numbers(value)
        if array.shape not in ((), (1,), (self.n,)):
            raise ValueError(f"{what} has the shape {array.shape}")
        return float(array.flat[0]) if np.all(array == array.flat[0]) else array

    def _counts(self, value: Any, what: str) -> Any:
        counts = self._each(value, what)
        if np.any(np.asarray(counts) < 1) or np.any(np.asarray(counts) % 1):
            raise ValueError(f"{what} is a whole number of 1 or more")
        return int(counts) if isinstance(counts, float) else counts.astype(np.int64)

    def _output(self, out: Any, *others: Any) -> Any:
        if out is None:
            return None
        if any(out is other for other in others):
            raise ValueError("out must be writable, and another array than the arguments")
        if np.shape(out) != (self.n, self.dim):
            raise ValueError(f"out has the shape {np.shape(out)}")
        return out

    def _written(self, out: Any, of: Expression) -> Symbol:
        rows = Symbol(self._recorder, CLIENTS, of.terms, of.constant)
        if out is None:
            return rows
        return out.write(rows) if is_symbol(out) else self._recorder.redirect(out, rows)

    def local_steps(
        self,
        theta: Any,
        gamma: Any,
        H: Any,
        corrections: Any = None,
        *,
        batch: int = 1,
        proximal: Any = None,
        anchor: Any = None,
        out: Any = None,
    ) -> Symbol:
        recorder = self._recorder
        out = self._output(out, theta, corrections, anchor)
        start = self._point(theta, "theta")
        inputs = {"start": self._of_members(start.expression())}
        if corrections is not None:
            of = self._of_members(self._point(corrections, "corrections").expression())
            if of.terms or not is_zero(of.constant):
                inputs["correction"] = of
        weight = self._each(0.0 if proximal is None else proximal, "proximal")
        if not isinstance(weight, float):
            raise ValueError("proximal is a number")
        if weight != 0.0:
            if anchor is None and start.level == CLIENTS:
                raise ValueError("a proximal term needs an anchor where theta has a row per client")
            pulled = start if anchor is None else self._point(anchor, "anchor")
            if pulled.level != SERVER:
                raise ValueError("anchor has a row per client")
            inputs["anchor"] = pulled.expression()
        drawn = recorder.cohort is not None
        settings = {
            "step": self._each(gamma, "gamma"),
            "count": self._counts(H, "H"),
            "batch": self._counts(batch, "batch"),
            "proximal": weight,
            "members": drawn,
        }
        atom = recorder.operate("steps", CLIENTS, inputs, **settings)
        ends = Expression({atom: 1.0}, 0.0)
        if recorder.named is not None:
            ends = self._of_named(Symbol(recorder, CLIENTS, {atom: 1.0}), start).expression()
        return self._written(out, recorder.select(ends, start.expression()) if drawn else ends)

    def _of_members(self, of: Expression) -> Expression:
        """What the clients that take part have of it, where they alone compute."""
        return of if self._recorder.cohort is None else self._recorder.side(of, 0)

    def draw(self, calls: Any = 1) -> SymbolicDraw:
        return self._recorder.keep_draw(SymbolicDraw, self._calls(calls))

    def _calls(self, calls: Any) -> int:
        if np.ndim(calls):
            raise ValueError("calls is a whole number of 1 or more")
        count: int = self._counts(calls, "calls")
        return count

    def fields(self, theta: Any, calls: Any = 1, *, out: Any = None) -> Symbol:
        out = self._output(out, theta)
        settings: dict[str, Any] = {"members": self._recorder.cohort is not None}
        if isinstance(calls, SymbolicDraw):
            calls.check(self._recorder)
            settings = {"calls": calls.calls, **settings, "draws": calls.number}
        else:
            settings = {"calls": self._calls(calls), **settings}
        return self._evaluated("fields", theta, out, settings)

    def mean_fields(self, theta: Any, *, out: Any = None) -> Symbol:
        return self._evaluated("meanfields", theta, self._output(out, theta), {})

    def losses(self, theta: Any) -> Any:
        raise refused("losses are not linear in θ: not traced")

    def _evaluated(self, name: str, theta: Any, out: Any, settings: dict[str, Any]) -> Symbol:
        """The fields that an operation makes; other clients have the rows of ``out``, or 0."""
        recorder = self._recorder
        inputs = {"at": self._of_members(self._point(theta, "theta").expression())}
        atom = recorder.operate(name, CLIENTS, inputs, **settings)
        fields = Expression({atom: 1.0}, 0.0)
        if recorder.cohort is not None:
            other = lift(recorder, 0.0 if out is None else out).expression()
            fields = recorder.select(fields, other)
        elif recorder.named is not None:
            made = Symbol(recorder, CLIENTS, {atom: 1.0})
            fields = self._of_named(made, 0.0 if out is None else out).expression()
        return self._written(out, fields)

    def mean(self, rows: Any) -> Symbol:
        recorder, lifted = self._recorder, lift(self._recorder, rows)
        if lifted.level != CLIENTS or np.shape(rows) != (self.n, self.dim):
            raise ValueError(
                f"rows has the shape {np.shape(rows)}; expected ({self.n}, {self.dim})"
            )
        if recorder.weights is not None:
            return weighted(lifted, 0.0, recorder.weights)
        if recorder.named is not None:
            shares = recorder.shares * recorder.named[:, 0]
            if not shares.any():
                raise ValueError("nobody takes part in this round, so that there is no mean")
            return weighted(lifted, 0.0, shares / shares.sum())
        if recorder.cohort is None:
            return weighted(lifted, 1.0, None)
        of = recorder.members(lifted.expression())
        return Symbol(recorder, SERVER, of.terms, of.constant)

    def control_variates(self) -> SymbolicVariates:
        return SymbolicVariates(self)


def _why_not_traced(compressor: Compressor) -> str:
    """Why second moments do not follow what a compressor does."""
    if not compressor.unbiased:
        return (
            f"the compressor {compressor} depends on the sizes of coordinates, which is not linear"
        )
    return (
        f"the variance of what the compressor {compressor} sends depends on the sizes of "
        "coordinates, so that second moments do not close"
    )


class SymbolicFeedback:
    """What memories of compressed messages are."""

    def __init__(self, clients: SymbolicClients, compressor: Any):
        self._recorder = clients._recorder
        self._own = Symbol(self._recorder, CLIENTS, {})
        self._compressor = compressor if type(compressor) is Compressor else Compressor(compressor)

    @property
    def memory(self) -> Symbol:
        return self._own.copy()

    def _rows(self, clients: SymbolicClients, rows: Any) -> Symbol:
        if clients._recorder is not self._recorder:
            raise ValueError("the memories are those of other clients")
        of = clients._point(rows, "rows")
        if np.shape(rows) != (clients.n, clients.dim):
            raise ValueError(
                f"rows has the shape {np.shape(rows)}; expected ({clients.n}, {clients.dim})"
            )
        return of.at_level(CLIENTS, (clients.n, clients.dim))

    def send(self, clients: SymbolicClients, rows: Any, start: Any = None) -> Symbol:
        """C(e_k + r_k − s), of which e_k keeps the rest where k takes part."""
        wanted = self._own + self._rows(clients, rows)
        if start is not None:
            wanted = wanted - clients._point(start, "start")
        sent = clients.compress(wanted, self._compressor)
        kept: Symbol = wanted - sent
        if self._recorder.cohort is not None:
            of = self._recorder.select(kept.expression(), self._own.expression())
            kept = Symbol(self._recorder, CLIENTS, of.terms, of.constant)
        self._own = clients._of_named(kept, self._own)
        return sent

    def track(self, clients: SymbolicClients, rows: Any, rate: Any = 1.0) -> Symbol:
        """e_k + C(r_k − e_k), with α of which e_k is changed."""
        change = self._rows(clients, rows) - self._own
        sent = clients.compress(change, self._compressor)
        weight = clients._each(rate, "rate")
        if not isinstance(weight, float):
            raise ValueError("rate is a number")
        estimate: Symbol = self._own + sent
        self._own = self._own + sent * weight
        return estimate


class SymbolicVariates:
    """What control variates are: c_k ← c_k − c̄ + (θ_t − θ_k)/(γH), ξ_k = c̄ − c_k."""

    def __init__(self, clients: SymbolicClients):
        self._recorder = clients._recorder
        self._own = Symbol(self._recorder, CLIENTS, {})

    @property
    def corrections(self) -> Symbol:
        out: Symbol = weighted(self._own, 1.0, None) - self._own
        return out

    def learn(self, clients: SymbolicClients, theta: Any, ends: Any, length: Any) -> Symbol:
        recorder = self._recorder
        if clients._recorder is not recorder:
            raise ValueError("the control variates are those of other clients")
        before, after = clients._point(theta, "theta"), clients._point(ends, "ends")
        if before.level != SERVER or after.level != CLIENTS:
            raise ValueError("theta must have the shape (d,), and ends (N, d)")
        lengths = np.asarray(clients._each(length, "length"))
        if not np.all(lengths > 0) or not np.all(np.isfinite(lengths)):
            raise ValueError("length is γ H, a finite number above 0")
        factor = 1.0 / (lengths[:, None] if lengths.ndim else float(lengths))
        learnt = self._own - weighted(self._own, 1.0, None) + (before - after) * factor
        if recorder.cohort is not None:
            of = recorder.select(learnt.expression(), self._own.expression())
            learnt = Symbol(recorder, CLIENTS, of.terms, of.constant)
        self._own = clients._of_named(learnt, self._own)
        if recorder.weights is None and recorder.scheme is None:
            return clients.mean(ends)
        return before + clients.mean(after - before)
