"""What an algorithm may reach: it is followed, or refused with the line that reaches it."""

from __future__ import annotations

import enum
import functools
import itertools
import logging
import random
import time
from collections import namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from exactfed import _trace
from exactfed._trace import NotTraced
from test_trace import apart, begun, step

log = logging.getLogger(__name__)


def imports_in_the_function(c, t, g, H):
    import math
    from math import cos, sqrt

    import numpy as np

    while True:
        t = step(c, t, g * math.exp(-0.1) * sqrt(0.5) * cos(0.1), H) + np.zeros(c.dim)
        yield t


def draws_beside_a_local_numpy(c, t, g, H):
    """The attribute is of clients.rng and not of np."""
    import numpy as np

    while True:
        mask = c.rng.random(c.dim) < 0.5
        t = t + mask * (step(c, t, g, H) - t) * np.ones(c.dim)
        yield t


def seeded_weights(c, t, g, H):
    w = np.random.default_rng(3).random(c.n) + 1
    w /= w.sum()
    while True:
        t = w @ c.local_steps(t, g, H)
        yield t


def seeded_draws(c, t, g, H):
    rng, more = np.random.default_rng(3), random.Random(4)
    while True:
        t = t + rng.random() * more.random() * (step(c, t, g, H) - t)
        yield t


@functools.lru_cache
def half_ring(n):
    out, k = 0.5 * np.eye(n), np.arange(n)
    out[k, (k + 1) % n] += 0.5
    return out


def cached_matrix(c, t, g, H):
    while True:
        t = c.mean(half_ring(c.n) @ c.local_steps(t, g, H))
        yield t


MEMO: dict[int, Any] = {}


def cached_in_a_dict(c, t, g, H):
    """The first run fills it."""
    if c.n not in MEMO:
        MEMO[c.n] = half_ring(c.n)
    while True:
        t = c.mean(MEMO[c.n] @ c.local_steps(t, g, H))
        yield t


Pair = namedtuple("Pair", "new old")


def named_tuple(c, t, g, H):
    pair = Pair(t, t)
    while True:
        pair = Pair(step(c, pair.new, g, H), pair.new)
        yield 0.5 * pair.new + 0.5 * pair.old


@dataclass
class Memory:
    theta: Any
    rounds: int = 0
    past: list[Any] = field(default_factory=list)

    def learn(self, theta):
        self.theta, self.rounds = theta, self.rounds + 1
        self.past = [*self.past, theta][-2:]


def data_class(c, t, g, H):
    memory = Memory(t)
    while True:
        memory.learn(step(c, memory.theta, g, H))
        yield sum(memory.past) / len(memory.past)


class Mode(enum.Enum):
    FAST = 1.0
    SLOW = 0.5


def enumeration(c, t, g, H):
    mode = Mode.FAST
    while True:
        mode = Mode.SLOW if mode is Mode.FAST else Mode.FAST
        t = step(c, t, g * mode.value, H)
        yield t


def iterators(c, t, g, H):
    factors = itertools.cycle([1.0, 0.5, 0.2])
    for number, factor in zip(itertools.count(1), factors):
        t = step(c, t, g * factor / number, H)
        yield t


def phase(c, t, g, H, count):
    for _ in range(count):
        t = step(c, t, g, H)
        yield t
    return t


def phases(c, t, g, H):
    while True:
        t = yield from phase(c, t, g, H, 2)
        t = yield from phase(c, t, g / 2, H, 1)


class Base:
    decay = 0.9

    def __init__(self, c, t, g, H):
        self.c, self.t, self.g, self.H = c, t, g, H
        self.v = np.zeros(c.dim)

    def change(self):
        return step(self.c, self.t, self.g, self.H) - self.t

    @property
    def rate(self):
        return self.decay

    @staticmethod
    def scale(x):
        return 0.5 * x

    @functools.cached_property
    def two(self):
        return 2.0


class Derived(Base):
    def __call__(self):
        self.v *= 0.5 * self.rate
        self.v += self.scale(super().change()) * self.two
        self.t = self.t + self.v
        return self.t


def classes(c, t, g, H):
    of = Derived(c, t, g, H)
    while True:
        yield of()


def names_of_attributes(c, t, g, H):
    of = SimpleNamespace(v=0.0)
    while True:
        setattr(of, "v", getattr(of, "v") * 0.5 + (step(c, t, g, H) - t))  # noqa: B009, B010
        t = t + of.v if hasattr(of, "v") else t
        yield t


def edges_in_a_set(c, t, g, H):
    mixing = np.eye(c.n)
    for a, b in sorted({(0, 1), (1, 2)}):
        mixing[a, [a, b]] += -0.2, 0.2
    while True:
        t = c.mean(mixing @ c.local_steps(t, g, H))
        yield t


def errors_ignored(c, t, g, H):
    with np.errstate(all="ignore"):
        while True:
            t = step(c, t, g, H)
            yield t


def total_of_a_round(c, t, g, H):
    while True:
        ends, total = c.local_steps(t, g, H), np.zeros(c.dim)
        for k in range(c.n):
            total += c.shares[k] * ends[k]
        t = total
        yield t


def tiled_zeros(c, t, g, H):
    """A view of an array that has no name."""
    rows = np.tile(np.zeros(c.dim), (c.n, 1))
    rows += t
    while True:
        rows = c.local_steps(rows, g, H)
        t = c.mean(rows)
        yield t


def written(c, t, g, H):
    number = 0
    while True:
        number += 1
        log.debug("round %d of %d", number, c.rounds)
        if type(H) is not int or not isinstance(t, np.ndarray):
            raise ValueError(f"{H} is no number of steps")
        t = step(c, t, g, H)
        yield t


FOLLOWED = [
    imports_in_the_function, draws_beside_a_local_numpy, seeded_weights, seeded_draws,
    cached_matrix, cached_in_a_dict, named_tuple, data_class, enumeration, iterators, phases,
    classes, names_of_attributes, edges_in_a_set, errors_ignored, total_of_a_round, tiled_zeros,
    written,
]  # fmt: skip
#: After how many rounds it is proved that they repeat.
PROVED = {
    cached_matrix: 2, named_tuple: 3, enumeration: 3, phases: 6, classes: 2, errors_ignored: 2,
    draws_beside_a_local_numpy: 2, seeded_weights: 2,
}  # fmt: skip


@pytest.mark.parametrize("algorithm", FOLLOWED, ids=lambda of: of.__name__)
def test_what_is_followed(algorithm):
    worst, traced = apart(algorithm, rounds=12)
    assert worst < 1e-12
    assert len(traced.whole) <= PROVED.get(algorithm, 12)


def clock(c, t, g, H):
    while True:
        t = step(c, t, g if time.perf_counter() > 0 else 0.0, H)
        yield t


def of_all_runs(c, t, g, H):
    while True:
        t = t + random.random() * (step(c, t, g, H) - t)
        yield t


def without_a_seed(c, t, g, H):
    while True:
        t = t + np.random.default_rng().random() * (step(c, t, g, H) - t)
        yield t


COUNTS = [0]


def counted(c, t, g, H):
    COUNTS[0] = 0
    while True:
        COUNTS[0] += 1
        t = step(c, t, g, H)
        yield t


def branch_on_old_numbers(c, t, g, H):
    change = np.zeros(c.dim)
    while True:
        np.subtract(step(c, t, g, H), t, out=change)
        if np.linalg.norm(change) < 0.1:
            g = g / 2
        t = t + 0.5 * change
        yield t


def read_by_a_helper(c, t, g, H):
    def halved(change):
        kept = np.zeros(c.dim)
        other = kept
        kept += change
        found = np.linalg.norm(other)
        del other
        return kept / (2 + found)

    while True:
        t = t + halved(step(c, t, g, H) - t)
        yield t


REFUSED = {
    clock: ("time.perf_counter, and it is not known that this does the same", "perf_counter"),
    of_all_runs: ("random.random, which draws from a generator that all runs share", "random"),
    without_a_seed: ("np.random.default_rng without a seed", "default_rng()"),
    counted: ("the algorithm changes COUNTS, which its runs share", ""),
    branch_on_old_numbers: ("that has another name, or keeps its name", "out=change"),
    read_by_a_helper: ("that has another name, or keeps its name", "kept += change"),
}


@pytest.mark.parametrize("algorithm", REFUSED, ids=lambda of: of.__name__)
def test_what_is_refused(algorithm):
    why, line = REFUSED[algorithm]
    with pytest.raises(NotTraced) as found:
        _trace.trace(begun(algorithm), 6, 4, None, 10)
    assert why in found.value.why
    assert line in str(found.value).removeprefix(found.value.why)


def test_a_change_after_the_rounds_that_are_compared_first():
    """Code that can tell symbols from arrays differs late."""
    from test_trace import real_clients

    def late(c, t, g, H):
        number = 0
        while True:
            number += 1
            t = step(c, t, g if number < 30 or type(t) is not np.ndarray else g / 2, H)
            yield t

    (one, theta), (two, _) = real_clients(), real_clients()
    with pytest.raises(NotTraced, match="they differ in round 30"):
        _trace.checked(begun(late), one, two, theta, 40)


def test_runs_that_diverge_are_compared_while_they_have_digits():
    from test_trace import real_clients

    def diverges(c, t, g, H):
        while True:
            t = 30 * step(c, t, g, H) - 29 * t
            yield t

    (one, theta), (two, _) = real_clients(), real_clients()
    assert _trace.checked(begun(diverges), one, two, theta, 4000).cycle == 1
