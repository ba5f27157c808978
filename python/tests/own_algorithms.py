"""Algorithms as users write them: linear ones, for tests of tracing and of exact errors.

``OWN`` has those that are traced, by name, ``COHORTS``, ``CHOOSERS`` and ``DRAWS`` those with
cohorts, those that say who takes part, and those with draws of their own, and ``KEPT_DRAWS`` those
that evaluate a draw of the clients at several points.
:func:`random_algorithm` makes others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from exactfed import algorithms


def fedavg(clients, theta, gamma, H):
    while True:
        theta = clients.mean(clients.local_steps(theta, gamma, H))
        yield theta


def scaffold(clients, theta, gamma, H):
    variates = clients.control_variates()
    while True:
        ends = clients.local_steps(theta, gamma, H, variates.corrections)
        theta = variates.learn(clients, theta, ends, gamma * H)
        yield theta


def fedprox(clients, theta, gamma, H):
    while True:
        theta = clients.mean(clients.local_steps(theta, gamma, H, proximal=0.5))
        yield theta


def client_momentum(clients, theta, gamma, H):
    """Momentum inside the local steps; clients keep their velocities."""
    velocity = np.zeros((clients.n, clients.dim))
    while True:
        rows = theta + np.zeros((clients.n, clients.dim))
        for _ in range(H):
            velocity = 0.5 * velocity + (rows - clients.local_steps(rows, gamma, 1))
            rows = rows - velocity
        theta = clients.mean(rows)
        yield theta


def decaying_server(clients, theta, gamma, H):
    number = 0
    while True:
        change = clients.mean(clients.local_steps(theta, gamma, H)) - theta
        theta = theta + (1 + number / 3) ** -0.6 * change
        number += 1
        yield theta


def decaying_local(clients, theta, gamma, H):
    number = 0
    while True:
        theta = clients.mean(clients.local_steps(theta, gamma / (1 + number / 3), H))
        number += 1
        yield theta


def fedlin(clients, theta, gamma, H):
    """Two communications in a round."""
    while True:
        fields = clients.fields(theta, calls=H)
        ends = clients.local_steps(theta, gamma, H, clients.mean(fields) - fields)
        theta = clients.mean(ends)
        yield theta


def nesterov(clients, theta, gamma, H):
    previous = theta
    while True:
        ahead = theta + 0.6 * (theta - previous)
        previous = theta
        theta = clients.mean(clients.local_steps(ahead, gamma, H))
        yield theta


def fista(clients, theta, gamma, H):
    """Every round has another coefficient."""
    previous, a = theta, 1.0
    while True:
        a, last = (1 + np.sqrt(1 + 4 * a * a)) / 2, a
        ahead = theta + (last - 1) / a * (theta - previous)
        previous, theta = theta, clients.mean(clients.local_steps(ahead, gamma, H))
        yield theta


def _ring(n):
    out = np.zeros((n, n))
    for k in range(n):
        out[k, [k, (k + 1) % n, (k - 1) % n]] = 1 / 3
    return out


def gossip(clients, theta, gamma, H):
    ring = _ring(clients.n)
    rows = theta + np.zeros((clients.n, clients.dim))
    while True:
        rows = ring @ clients.local_steps(rows, gamma, H)
        yield clients.mean(rows)


def gradient_tracking(clients, theta, gamma, H):
    ring = _ring(clients.n)
    rows = theta + np.zeros((clients.n, clients.dim))
    fields = clients.fields(rows)
    tracker = fields
    while True:
        rows = ring @ (rows - gamma * tracker)
        new = clients.fields(rows)
        tracker = ring @ tracker + new - fields
        fields = new
        yield clients.mean(rows)


def lazy_averaging(clients, theta, gamma, H):
    """Every client moves to the mean by a part."""
    rows = theta + np.zeros((clients.n, clients.dim))
    while True:
        ends = clients.local_steps(rows, gamma, H)
        rows = 0.6 * ends + 0.4 * clients.mean(ends)
        yield clients.mean(rows)


def svrg(clients, theta, gamma, H):
    """An anchor that is refreshed every three rounds."""
    number = 0
    while True:
        if number % 3 == 0:
            anchor = theta
            at_anchor = clients.fields(anchor, calls=4)
            whole = clients.mean(at_anchor)
        ends = clients.local_steps(theta, gamma, H, whole - at_anchor, proximal=0.2, anchor=anchor)
        theta = clients.mean(ends)
        number = (number + 1) % 3
        yield theta


class Window:
    """The mean of the last three means, in an object with a deque."""

    def __init__(self, clients, theta, gamma, H):
        self.clients, self.gamma, self.steps = clients, gamma, H
        self.past = deque([theta], maxlen=3)

    def round(self):
        theta = sum(self.past) / len(self.past)
        ends = self.clients.local_steps(theta, self.gamma, self.steps)
        self.past.append(self.clients.mean(ends))
        return self.past[-1]


def window(clients, theta, gamma, H):
    of = Window(clients, theta, gamma, H)
    while True:
        yield of.round()


def averaged(clients, theta, gamma, H):
    """The average of Polyak and Ruppert inside the algorithm."""
    mean, number = theta, 0
    while True:
        theta = clients.mean(clients.local_steps(theta, gamma, H))
        number += 1
        mean = mean + (theta - mean) / number
        yield mean


def bias_corrected(clients, theta, gamma, H):
    """The first moment of Adam, in place."""
    first, number = np.zeros(clients.dim), 0
    while True:
        number += 1
        first *= 0.7
        first += 0.3 * (clients.mean(clients.local_steps(theta, gamma, H)) - theta)
        theta = theta + first / (1 - 0.7**number)
        yield theta


def unequal_work(clients, theta, gamma, H):
    """Clients with other numbers of steps, of the same length in all."""
    steps = 1 + np.arange(clients.n) % 3
    while True:
        ends = clients.local_steps(theta, gamma / steps, steps)
        theta = theta + (clients.shares[:, None] * (ends - theta)).sum(axis=0)
        yield theta


def mime_lite(clients, theta, gamma, H):
    """The server's momentum inside the local steps."""
    momentum = np.zeros(clients.dim)
    while True:
        fields = clients.mean(clients.fields(theta, calls=2))
        ends = clients.local_steps(theta, gamma * 0.4, H, 1.5 * momentum)
        momentum = 0.6 * momentum + 0.4 * fields
        theta = clients.mean(ends)
        yield theta


def preconditioned(clients, theta, gamma, H):
    """A constant matrix and constant scales of the coordinates."""
    d = clients.dim
    scale, turn = np.linspace(0.5, 1.5, d), np.eye(d) + 0.1 * np.arange(d * d).reshape(d, d)
    while True:
        change = clients.mean(clients.local_steps(theta, gamma, H)) - theta
        theta = theta + scale * (change @ turn)
        yield theta


def only_arrays(clients, theta, gamma, H):
    while True:
        if not isinstance(theta, np.ndarray):
            theta = 0.0 * theta
        theta = clients.mean(clients.local_steps(theta, gamma, H))
        yield theta


def _shipped(of: Any, **keys: Any) -> Callable[..., Any]:
    return lambda clients, theta, gamma, H: of.function(clients, theta, gamma, H, **keys)


OWN: dict[str, Callable[..., Any]] = {
    "FedAvgM": _shipped(algorithms.fedavgm, momentum=0.7),
    "FedDyn": _shipped(algorithms.feddyn, alpha=0.8),
    "Scaffold with momentum": _shipped(algorithms.scaffold_momentum, momentum=0.5),
    **{
        of.__name__: of
        for of in (
            fedavg, scaffold, fedprox, client_momentum, decaying_server, decaying_local, fedlin,
            nesterov, fista, gossip, gradient_tracking, lazy_averaging, svrg, window, averaged,
            bias_corrected, unequal_work, mime_lite, preconditioned, only_arrays,
        )
    },
}  # fmt: skip


def cohort_fedavg(clients, theta, gamma, H):
    while True:
        clients.cohort(3)
        theta = clients.mean(clients.local_steps(theta, gamma, H))
        yield theta


def cohort_scaffold(clients, theta, gamma, H):
    variates = clients.control_variates()
    while True:
        clients.cohort(3)
        ends = clients.local_steps(theta, gamma, H, variates.corrections)
        theta = variates.learn(clients, theta, ends, gamma * H)
        yield theta


def cohort_table(clients, theta, gamma, H):
    """Members write their rows of a table of fields, as in SAGA."""
    table = clients.fields(theta)
    while True:
        members = clients.cohort(3)
        new = clients.fields(theta)
        change = (new[members] - table[members]).sum(axis=0) / len(members)
        theta = theta - gamma * (change + clients.shares @ table)
        table[members] = new[members]
        yield theta


def cohort_buffers(clients, theta, gamma, H):
    """Buffers that the clients write, of which those that are not drawn keep their rows."""
    fields = np.zeros((clients.n, clients.dim))
    ends = None
    while True:
        clients.cohort(2)
        fields = clients.fields(theta, out=fields)
        ends = clients.local_steps(theta, gamma, H, out=ends)
        theta = clients.mean(ends) - 0.1 * fields.mean(axis=0)
        yield theta


COHORTS = {of.__name__: of for of in (cohort_fedavg, cohort_scaffold, cohort_table, cohort_buffers)}


def in_turn(clients, theta, gamma, H):
    """One client after the other, with weights by which each has its share over a cycle."""
    k = 0
    while True:
        clients.participate([k], weights=[clients.n * clients.shares[k]])
        ends = clients.local_steps(theta, gamma, H)
        theta = theta + clients.mean(ends - theta)
        k = (k + 1) % clients.n
        yield theta


def scaffold_in_turn(clients, theta, gamma, H):
    """Scaffold, in which the even clients, the odd ones and nobody take part in turn."""
    variates = clients.control_variates()
    number = 0
    while True:
        number += 1
        if number % 3:
            clients.participate(np.arange(number % 3 - 1, clients.n, 2))
            assert len(clients.members) < clients.n or clients.n == 1
            ends = clients.local_steps(theta, gamma, H, variates.corrections)
            theta = variates.learn(clients, theta, ends, gamma * H)
        else:
            clients.participate([])
        yield theta


def fields_in_turn(clients, theta, gamma, H):
    """A table of fields of which two clients renew their rows in each round."""
    table = np.zeros((clients.n, clients.dim))
    first = 0
    while True:
        pair = np.array([first, (first + 1) % clients.n])
        clients.participate(pair[: clients.n])
        table = clients.fields(theta, out=table)
        theta = theta - gamma * (clients.shares @ table)
        first = (first + 1) % clients.n
        yield theta


def coins(clients, theta, gamma, H):
    """Clients come by coins of their own, and learn variates with their weights."""
    variates = clients.control_variates()
    while True:
        clients.cohort(participation={"bernoulli": 0.4})
        ends = clients.local_steps(theta, gamma, H, variates.corrections)
        theta = variates.learn(clients, theta, ends, gamma * H)
        yield theta


def rescaled(clients, theta, gamma, H):
    """Two clients with rescaled shares."""
    while True:
        clients.cohort(2, participation="rescaled")
        theta = theta + clients.mean(clients.local_steps(theta, gamma, H) - theta)
        yield theta


#: Algorithms that say who takes part, or by which scheme.
CHOOSERS = {of.__name__: of for of in (in_turn, scaffold_in_turn, fields_in_turn, coins, rescaled)}


def private(clients, theta, gamma, H):
    """Noise for privacy, at the server and of each client."""
    while True:
        ends = clients.local_steps(theta, gamma, H)
        ends = ends + 0.2 * clients.rng.standard_normal((clients.n, clients.dim))
        theta = clients.mean(ends) + clients.rng.normal(0.1, 0.3, clients.dim)
        yield theta


def random_sparsification(clients, theta, gamma, H):
    """Each client sends each coordinate with probability 1/4, divided by it, and feeds back."""
    memory = np.zeros((clients.n, clients.dim))
    while True:
        change = clients.local_steps(theta, gamma, H) - theta + memory
        mask = clients.rng.random((clients.n, clients.dim)) < 0.25
        sent = change * mask
        memory = change - sent
        theta = theta + clients.mean(sent)
        yield theta


def random_participation(clients, theta, gamma, H):
    """Each client takes part with probability 0.6, one coin each."""
    while True:
        ends = clients.local_steps(theta, gamma, H)
        takes_part = clients.rng.random(clients.n) <= 0.6
        rows = np.where(takes_part[:, None], ends, theta)
        theta = theta + clients.mean(rows - theta) / 0.6
        yield theta


def lazy_communication(clients, theta, gamma, H):
    """As in ProxSkip: the server's mean is sent by the toss of one coin."""
    number = 0
    while True:
        mean = clients.mean(clients.local_steps(theta, gamma, H))
        coin = clients.rng.binomial(1, 0.5)
        theta = coin * mean + (1 - coin) * theta
        number += 1
        yield theta


def coordinates(clients, theta, gamma, H):
    """The server changes random coordinates, without bias."""
    while True:
        change = clients.mean(clients.local_steps(theta, gamma, H)) - theta
        # This order of the two sides is traced too.
        mask = 0.5 > clients.rng.random(size=clients.dim)  # noqa: SIM300
        theta = theta + (mask.astype(float) / 0.5) * change + 0.1 * (~mask) * change
        yield theta


def masked_twice(clients, theta, gamma, H):
    while True:
        change = clients.local_steps(theta, gamma, H) - theta
        mask = clients.rng.binomial(1, 0.3, (clients.n, 1))
        once = mask * change
        theta = theta + clients.mean(mask * once + (1 - mask) * (0.5 * change + once))
        yield theta


def rand_k_of_changes(clients, theta, gamma, H):
    """Each client sends one of its coordinates, twice."""
    while True:
        change = clients.local_steps(theta, gamma, H) - theta
        theta = theta + clients.mean(clients.compress(change, "rand-k:1"))
        yield theta


def rand_k_of_the_server(clients, theta, gamma, H):
    """The server sends one coordinate of its change to all clients, which keep their own θ."""
    known = theta
    while True:
        ends = clients.local_steps(known, gamma, H)
        theta = theta + clients.mean(ends) - known
        known = known + 0.5 * clients.compress(theta - known, "rand-k:1")
        yield theta


def rand_k_of_members(clients, theta, gamma, H):
    """Clients that take part send compressed differences from what the server knows of them."""
    memories = clients.error_feedback("rand-k:1:indices")
    while True:
        clients.cohort(3)
        ends = clients.local_steps(theta, gamma, H)
        estimates = memories.track(clients, (theta - ends) / (gamma * H), 0.5)
        theta = theta - gamma * H * clients.mean(estimates)
        yield theta


def rand_k_with_feedback(clients, theta, gamma, H):
    """Half of Rand-k of the changes, with error feedback by hand and by the memories."""
    memories = clients.error_feedback("identity")
    kept = np.zeros((clients.n, clients.dim))
    while True:
        ends = clients.local_steps(theta, gamma, H)
        wanted = kept + memories.send(clients, ends, theta)
        sent = clients.compress(wanted, "rand-k:1") / 2
        kept = wanted - sent
        theta = theta + clients.mean(sent) + memories.memory[0]
        yield theta


def _matrices(clients):
    """A contraction of each client."""
    rng = np.random.default_rng(3)
    return 0.4 * rng.normal(size=(clients.n, clients.dim, clients.dim)) / np.sqrt(clients.dim)


def _with_autoregressive_noise(product):
    """FedAvg whose gradients have noise by a matrix of each client (Zhu, Heath and Mitra 2025)."""

    def algorithm(clients, theta, gamma, H):
        matrices = _matrices(clients)
        state = clients.rng.standard_normal((clients.n, clients.dim))
        while True:
            ends = np.tile(theta, (clients.n, 1))
            for _ in range(H):
                ends = clients.local_steps(ends, gamma, 1, state)
                state = product(matrices, state) + clients.rng.standard_normal(state.shape)
            theta = clients.mean(ends)
            yield theta

    return algorithm


#: One algorithm, whose matrices of the clients are written in three ways.
MATRICES = {
    "autoregressive_einsum": _with_autoregressive_noise(
        lambda matrices, rows: np.einsum("kij,kj->ki", matrices, rows)
    ),
    "autoregressive_columns": _with_autoregressive_noise(
        lambda matrices, rows: (matrices @ rows[..., None])[..., 0]
    ),
    "autoregressive_stack": _with_autoregressive_noise(
        lambda matrices, rows: np.stack([matrices[k] @ rows[k] for k in range(len(rows))])
    ),
}

DRAWS = {
    of.__name__: of
    for of in (
        private, random_sparsification, random_participation, lazy_communication, coordinates,
        masked_twice, rand_k_of_changes, rand_k_of_the_server, rand_k_of_members,
        rand_k_with_feedback,
    )
}  # fmt: skip


def svrg_steps(clients, theta, gamma, H):
    """Local steps of SVRG, with an anchor that moves every second round."""
    number = 0
    while True:
        if number % 2 == 0:
            anchor, full = theta, clients.mean_fields(theta)
        points = theta + np.zeros((clients.n, clients.dim))
        for _ in range(H):
            draw = clients.draw(2)
            noise = clients.fields(points, draw) - clients.fields(anchor, draw)
            points = points - gamma * (noise + full)
        theta = clients.mean(points)
        number = (number + 1) % 2
        yield theta


def recursive_momentum(clients, theta, gamma, H):
    """STORM; the first round has a draw at one point alone."""
    velocity, before = np.zeros(clients.dim), None
    while True:
        draw = clients.draw()
        new = clients.mean(clients.fields(theta, draw))
        if before is not None:
            new = new + 0.7 * (velocity - clients.mean(clients.fields(before, draw)))
        velocity, before = new, theta
        theta = theta - gamma * velocity
        yield theta


def page(clients, theta, gamma, H):
    """A coin of the server decides between mean fields and differences on one draw."""
    estimate, before = clients.mean(clients.mean_fields(theta)), theta
    while True:
        coin = clients.rng.random() < 0.4
        draw = clients.draw()
        change = clients.fields(theta, draw) - clients.fields(before, draw)
        whole = clients.mean(clients.mean_fields(theta))
        estimate = coin * whole + (1 - coin) * (estimate + clients.mean(change))
        before, theta = theta, theta - gamma * estimate
        yield theta


def anchors_by_coins(clients, theta, gamma, H):
    """L-SVRG: each client moves its anchor by a coin of its own."""
    anchors = theta + np.zeros((clients.n, clients.dim))
    while True:
        draw = clients.draw()
        noise = clients.fields(theta, draw) - clients.fields(anchors, draw)
        estimate = clients.mean(noise + clients.mean_fields(anchors))
        coins = clients.rng.binomial(1, 0.3, (clients.n, 1))
        anchors = anchors + coins * (theta - anchors)
        theta = theta - gamma * estimate
        yield theta


def two_draws(clients, theta, gamma, H):
    """Two draws of a round, one of which is evaluated again after the other."""
    anchor = theta
    while True:
        one, other = clients.draw(), clients.draw(3)
        first = clients.fields(theta, one)
        moved = theta - gamma * clients.fields(anchor, other)
        second = clients.fields(moved, one)
        anchor = 0.5 * (anchor + theta) - gamma * clients.mean(first - 0.3 * second)
        theta = clients.mean(moved - gamma * (second - 0.3 * first))
        yield theta


def cohort_svrg(clients, theta, gamma, H):
    """Several local steps on kept draws, of the clients that take part."""
    anchor = theta
    while True:
        clients.cohort(3)
        points = theta + np.zeros((clients.n, clients.dim))
        for _ in range(2):
            draw = clients.draw()
            noise = clients.fields(points, draw) - clients.fields(anchor, draw)
            points = points - gamma * (noise + clients.mean_fields(anchor))
        anchor, theta = theta, clients.mean(points)
        yield theta


def cohort_twice_local(clients, theta, gamma, H):
    """Local steps that go on where earlier ones of the round have ended."""
    while True:
        clients.cohort(3)
        ends = clients.local_steps(theta, gamma, H)
        theta = clients.mean(clients.local_steps(ends, gamma / 2, 1))
        yield theta


KEPT_DRAWS = {
    of.__name__: of
    for of in (
        svrg_steps, recursive_momentum, page, anchors_by_coins, two_draws, cohort_svrg,
        cohort_twice_local,
    )
}  # fmt: skip


def random_algorithm(seed: int) -> Callable[..., Any]:
    """Three to eight random linear operations in a round, with two memories on either side."""

    def algorithm(clients, theta, gamma, H):
        rng = np.random.default_rng(seed)
        n, d = clients.n, clients.dim
        server = [np.zeros(d) for _ in range(2)]
        own = [np.zeros((n, d)) for _ in range(2)]
        plan = [
            (int(rng.integers(8)), rng.integers(100, size=6), np.round(rng.normal(size=4), 2))
            for _ in range(int(rng.integers(3, 9)))
        ]
        del rng
        while True:
            s, v = [theta, *server], list(own)
            for what, i, c in plan:
                a, b = s[i[0] % len(s)], s[i[1] % len(s)]
                x, y = v[i[2] % len(v)], v[i[3] % len(v)]
                if what == 0:
                    v.append(clients.local_steps(theta, gamma, 1 + int(i[4]) % 4, 0.3 * c[0] * x))
                elif what == 1:
                    v.append(clients.local_steps(theta + 0.2 * y, gamma, 2, proximal=0.3, anchor=a))
                elif what == 2:
                    v.append(0.5 * clients.fields(theta + 0.3 * c[1] * a, calls=2))
                elif what == 3:
                    s.append(clients.mean(x))
                elif what == 4:
                    s.append(0.4 * c[0] * a - 0.4 * c[1] * b + 0.2 * y[int(i[4]) % n])
                elif what == 5:
                    v.append(0.5 * c[2] * x - 0.5 * y + 0.3 * a)
                elif what == 6:
                    z = 0.5 * x + 0.1 * theta
                    z += 0.3 * y
                    z[int(i[5]) % n] -= a
                    z /= 2.0
                    v.append(z)
                else:
                    v.append(0.2 * x - 0.3 * clients.mean(y))
            server = [0.5 * s[-1], 0.3 * server[0] + 0.2 * s[-1]]
            own = [0.4 * v[-1], 0.5 * own[0] - 0.1 * v[-1]]
            ends = clients.local_steps(theta, gamma, 2, 0.1 * own[0])
            theta = 0.5 * theta + 0.5 * clients.mean(ends) + 0.1 * server[0] + 0.05
            yield theta

    return algorithm
