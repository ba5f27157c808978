"""Runs an algorithm once on symbols, which gives its rounds as linear programs.

A symbol stands for an array; what is linear makes other symbols of it, and everything else is
refused, with the line of the algorithm.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _operators
from ._arithmetic import lift
from ._clients import SymbolicClients
from ._recorder import Recorder
from ._refusal import NotTraced, first_refusal, forget, place_of, refused
from ._replay import replay
from ._rounds import SERVER, Array, Expression, Round, Traced, repetition
from ._state import State, state_of
from ._symbols import Symbol

__all__ = ["NotTraced", "Traced", "checked", "replay", "trace"]

Start = Callable[[Any, Any], Iterator[Any]]

#: The states of a run that are kept, to find one of them again.
_REMEMBERED = 4096
#: The rounds of the first real run that a program is compared with, the most of a further one, and
#: the multiplications that this may cost.
_LEAST, _MOST, _WORK = 12, 300, 1e8
#: Runs that grow further than this diverge, and what is left of their digits is compared no more.
_DIVERGED = 1e100


def trace(
    start: Start, n: int, d: int, shares: Array | None, rounds: int, records: Any = None
) -> Traced:
    """The programs of so many rounds, or of fewer if it is proved that they repeat.

    ``records`` are the numbers of the clients' records, if there are records.

    The algorithm is traced twice, one run after the other, and all rounds of both must agree. What
    it reaches must be known to do the same in every run, and what its runs share must not change.

    Raises
    ------
    NotTraced
        If the algorithm does what is not linear, or what is not traced, or reaches something of
        which it is not known that it does the same in every run.
    """
    first = _Tracing(start, n, d, shares, rounds, records)
    whole: list[Round] = []
    generators: list[Any] = []
    seen: dict[Any, int] = {}
    cycle = 0
    for one, state in first.run(rounds):
        whole.append(one)
        generators.append(state.generators)
        if state.is_whole and len(seen) < _REMEMBERED:
            before = seen.setdefault((state.shared, state.own), len(whole))
            if before < len(whole):
                cycle = len(whole) - before
                break
    second = _Tracing(start, n, d, shares, rounds, records)
    # The first run may have filled caches, so that what is shared is compared from here on.
    begun = second.state(None)
    for (one, state), known, drawn in zip(second.run(len(whole)), whole, generators, strict=True):
        if changed := begun.changed(state):
            raise NotTraced(f"the algorithm changes {changed}, which its runs share")
        if drawn != state.generators:
            raise NotTraced("a generator of random numbers is made without a seed")
        if one.key() != known.key():
            raise NotTraced(
                "two traces have different constants: the algorithm draws without clients.rng, or "
                "keeps something from one run to the next"
            )
    return Traced(n, d, first.recorder.shares, whole, cycle or repetition(whole))


class _Tracing:
    """One run on symbols."""

    def __init__(
        self, start: Start, n: int, d: int, shares: Array | None, rounds: int, records: Any
    ):
        self.recorder = Recorder(n, d, shares, _operators)
        self.clients = SymbolicClients(self.recorder, rounds, records)
        self.start = start

    def state(self, run: Any) -> State:
        """What the algorithm can read when it goes on."""
        return state_of(self.start, run, self.recorder)

    def run(self, rounds: int) -> Iterator[tuple[Round, State]]:
        """The rounds, and the state after each."""
        forget()
        # The only reference is the algorithm's: what it forgets is no state.
        run = self._guarded(
            lambda: self.start(self.clients, Symbol(self.recorder, SERVER, {0: 1.0}))
        )
        try:
            for _ in range(rounds):
                yield self._round(run), self.state(run)
        finally:
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
        done = failure = None
        try:
            done = what()
        except NotTraced:
            pass
        except StopIteration:
            failure = NotTraced("the algorithm ended before the last round")
        except Exception as error:
            failure = NotTraced(_raised(error), _last_place(error))
        # An array that was written into may have had its old numbers read before that.
        self.recorder.written.check()
        refusal = first_refusal() or failure
        if refusal is not None:
            raise refusal.with_traceback(None) from None
        return done


def _raised(error: Exception) -> str:
    return f"with symbols for arrays it raises {type(error).__name__}: {error}"


def _last_place(error: Exception) -> str:
    here, place = os.path.dirname(os.path.abspath(__file__)), ""
    inner = error.__traceback__
    while inner is not None:
        name = inner.tb_frame.f_code.co_filename
        if os.path.dirname(os.path.abspath(name)) != here and f"numpy{os.sep}" not in name:
            place = place_of(inner.tb_frame)
        inner = inner.tb_next
    return place


def checked(start: Start, clients: Any, again: Any, theta: Array, rounds: int) -> Traced:
    """The traced algorithm, after real runs of it agree with its program.

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
    own_shares = None if equal else shares
    traced = trace(start, clients.n, clients.dim, own_shares, rounds, clients.records)
    affordable = max(_LEAST, min(rounds, _MOST, int(_WORK / traced.work())))
    # It is the same one whenever the algorithm is traced.
    between = int(np.random.default_rng(rounds).integers(0, affordable + 1))
    for count in (_LEAST, between, affordable):
        _compare(traced, start, clients, again, theta, min(count, rounds))
    return traced


def _compare(
    traced: Traced, start: Start, clients: Any, again: Any, theta: Array, rounds: int
) -> None:
    """Compare a run of the algorithm with its program, on the draws that follow."""
    same = replay(traced, again, np.array(theta, float))
    try:
        run = start(clients, np.array(theta, float))
    except Exception as error:
        raise NotTraced(f"it raises {type(error).__name__}: {error}") from error
    largest = max(1.0, float(np.max(np.abs(theta))))
    for number in range(1, rounds + 1):
        try:
            found = np.array(next(run), float)
        except Exception as error:
            raise NotTraced(
                f"in round {number} it raises {type(error).__name__}: {error}"
            ) from error
        expected = next(same)
        for one in (clients, again):
            if hasattr(one, "_end_round"):
                one._end_round()
        if found.shape != expected.shape:
            raise NotTraced(f"it yields an array of shape {found.shape} in round {number}")
        largest = max(largest, float(np.max(np.abs(found))), float(np.max(np.abs(expected))))
        both_end = not (np.isfinite(found).all() or np.isfinite(expected).all())
        if both_end or largest > _DIVERGED:
            return
        if not np.max(np.abs(found - expected)) <= 1e-9 * largest:
            raise NotTraced(
                f"what was traced is not what the algorithm does: they differ in round {number}"
            )
