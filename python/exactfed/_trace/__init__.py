"""Runs an algorithm once on symbols, which gives its rounds as linear programs.

A symbol stands for an array; what is linear makes other symbols of it, and everything else is
refused, with the line of the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _symbols
from ._arithmetic import lift
from ._clients import SymbolicClients
from ._fingerprint import fingerprint
from ._recorder import Recorder
from ._refusal import NotTraced, first_refusal, forget, place_of, refused
from ._replay import replay
from ._rounds import SERVER, Array, Expression, Round, Traced, repetition

__all__ = ["NotTraced", "Traced", "checked", "replay", "trace"]

Start = Callable[[Any, Any], Iterator[Any]]

#: Rounds that are traced twice, and the most that are compared with those of real clients.
_TWICE, _COMPARED = 3, 12


def trace(start: Start, n: int, d: int, shares: Array | None, rounds: int) -> Traced:
    """The programs of so many rounds, or of fewer if it is proved that they repeat.

    Raises
    ------
    NotTraced
        If the algorithm does what is not linear, or what is not traced.
    """
    first = _Tracing(start, n, d, shares, rounds)
    second = _Tracing(start, n, d, shares, rounds)
    try:
        few, _ = first.run(min(rounds, _TWICE))
        whole, cycle = second.run(rounds)
    finally:
        second.recorder.restore()
        first.recorder.restore()
    if any(a.key() != b.key() for a, b in zip(few, whole, strict=False)):
        raise NotTraced(
            "two traces have different constants: the algorithm draws without clients.rng, or "
            "keeps something from one run to the next"
        )
    return Traced(n, d, second.recorder.shares, whole, cycle)


class _Tracing:
    """One run on symbols."""

    def __init__(self, start: Start, n: int, d: int, shares: Array | None, rounds: int):
        self.recorder = Recorder(n, d, shares)
        self.clients = SymbolicClients(self.recorder, rounds)
        self.start = start

    def run(self, rounds: int) -> tuple[list[Round], int]:
        """The rounds, and how many at their end repeat for ever."""
        forget()
        # The only reference is the algorithm's: what it forgets is no state.
        run = self._guarded(
            lambda: self.start(self.clients, _symbols.Symbol(self.recorder, SERVER, {0: 1.0}))
        )
        whole: list[Round] = []
        seen: dict[Any, int] = {}
        for number in range(1, rounds + 1):
            whole.append(self._round(run))
            mark = fingerprint(run, self.recorder)
            if mark is not None:
                if mark in seen:
                    self._close(run)
                    return whole, number - seen[mark]
                seen[mark] = number
        self._close(run)
        return whole, repetition(whole)

    def _close(self, run: Any) -> None:
        if hasattr(run, "close"):
            run.close()

    def _round(self, run: Any) -> Round:
        result = self._guarded(lambda: self._result(next(run)))
        alive = self.recorder.alive()
        done: Round = self._guarded(lambda: self.recorder.end_round(result, alive))
        return done

    def _result(self, value: Any) -> Expression:
        symbol = lift(self.recorder, value)
        if symbol.shape != (self.recorder.d,) or symbol.level != SERVER:
            raise refused("an algorithm yields θ, of shape (d,)")
        return symbol.expression()

    def _guarded(self, what: Callable[[], Any]) -> Any:
        try:
            done = what()
        except NotTraced:
            pass
        except StopIteration:
            raise NotTraced("the algorithm ended before the last round") from None
        except Exception as error:
            if first_refusal() is None:
                raise NotTraced(_raised(error), _last_place(error)) from error
        first = first_refusal()
        if first is not None:
            raise first.with_traceback(None) from None
        return done


def _raised(error: Exception) -> str:
    return f"with symbols for arrays it raises {type(error).__name__}: {error}"


def _last_place(error: Exception) -> str:
    import os

    here, place = os.path.dirname(os.path.abspath(__file__)), ""
    inner = error.__traceback__
    while inner is not None:
        name = inner.tb_frame.f_code.co_filename
        if os.path.dirname(os.path.abspath(name)) != here and f"numpy{os.sep}" not in name:
            place = place_of(inner.tb_frame)
        inner = inner.tb_next
    return place


def checked(start: Start, clients: Any, again: Any, theta: Array, rounds: int) -> Traced:
    """The traced algorithm, after its first rounds agree with those of the algorithm itself.

    Parameters
    ----------
    start
        What begins the algorithm, of clients and θ_0.
    clients, again
        Two real :class:`exactfed.Clients` with the same draws.
    theta
        θ_0.
    rounds
        The rounds that are asked for.
    """
    shares = np.asarray(clients.shares, float)
    equal = bool(np.all(shares == shares[0]))
    traced = trace(start, clients.n, clients.dim, None if equal else shares, rounds)
    begin = len(traced.order) - traced.cycle
    count = begin + 2 * traced.cycle if traced.cycle else _COMPARED
    same = replay(traced, again, np.array(theta, float))
    try:
        run = start(clients, np.array(theta, float))
    except Exception as error:
        raise NotTraced(f"it raises {type(error).__name__}: {error}") from error
    for number in range(1, min(count, _COMPARED, rounds) + 1):
        try:
            found = np.array(next(run), float)
        except Exception as error:
            raise NotTraced(
                f"in round {number} it raises {type(error).__name__}: {error}"
            ) from error
        expected = next(same)
        apart = np.max(np.abs(found - expected)) if found.shape == expected.shape else np.inf
        if not apart <= 1e-9 * max(1.0, float(np.max(np.abs(found)))):
            raise NotTraced(
                f"what was traced is not what the algorithm does: they differ in round {number}"
            )
        for one in (clients, again):
            if hasattr(one, "_end_round"):
                one._end_round()
    return traced
