"""FedAvg and FedBuff of Ortega and Jafarkhani 2023, whose clients count alike in means."""

from heapq import heappop, heappush

import exactfed as ef
import numpy as np


@ef.algorithm("FedAvg, equal means", kind="fedavg-equal")
def fedavg_equal(clients, theta, gamma, H):
    """FedAvg with the plain mean, where the objective weighs clients by their records."""
    everyone = np.arange(clients.n)
    while True:
        clients.participate(everyone, weights=np.full(clients.n, 1 / clients.n))
        theta = clients.mean(clients.local_steps(theta, gamma, H))
        yield theta


@ef.algorithm("FedBuff, random times", kind="fedbuff-random")
def fedbuff_random(clients, theta, gamma, H, buffer=10, server_step=0.1, seed=0):
    """Every client always works, for |z| with z ~ N(0, 1), in the order of the authors' draws."""
    times, working, now = np.random.RandomState(seed), [], 0.0

    def start(k):
        clients.participate([k])
        change = clients.local_steps(theta, gamma, H)[k] - theta
        heappush(working, (now + abs(times.normal()), k, change))

    for k in range(clients.n):
        start(k)
    while True:
        total = np.zeros(clients.dim)
        for _ in range(buffer):
            now, k, change = heappop(working)
            total += change
            start(k)
        theta = theta + server_step / buffer * total
        clients.charge(1, vectors=2 * buffer)
        yield theta
