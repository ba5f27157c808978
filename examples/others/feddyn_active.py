"""FedDyn and FedAvg where clients come by coins, after Acar et al. 2021 (arXiv:2111.04263)."""

import exactfed as ef
import numpy as np


def participate(clients, active):
    """Draw the clients of a round, each with the probability ``active``, until somebody comes."""
    while not (who := np.flatnonzero(clients.rng.random(clients.n) <= active)).size:
        pass
    return clients.participate(who)


@ef.algorithm("FedDyn", kind="feddyn-active")
def feddyn_active(clients, theta, gamma, H, active: float, alpha: float):
    """The estimate is the mean of the last models of all clients, as in the authors' figures."""
    last, moved = np.tile(theta, (clients.n, 1)), np.zeros((clients.n, clients.dim))
    while True:
        participate(clients, active)
        ends = clients.local_steps(theta, gamma, H, alpha * moved, proximal=alpha)
        last[clients.members] = ends[clients.members]
        moved[clients.members] += ends[clients.members] - theta
        theta = clients.mean(ends) + moved.mean(axis=0)
        yield last.mean(axis=0)


@ef.algorithm("FedAvg", kind="fedavg-active")
def fedavg_active(clients, theta, gamma, H, active: float):
    """FedAvg with the same participation and estimate."""
    last = np.tile(theta, (clients.n, 1))
    while True:
        participate(clients, active)
        ends = clients.local_steps(theta, gamma, H)
        last[clients.members] = ends[clients.members]
        theta = clients.mean(ends)
        yield last.mean(axis=0)
