"""FedDyn and FedAvg where clients come by coins, after Acar et al. 2021 (arXiv:2111.04263)."""

import exactfed as ef
import numpy as np


@ef.algorithm("FedDyn", kind="feddyn-active")
def feddyn_active(clients, theta, gamma, H, active: float, alpha: float):
    """FedDyn, or FedAvg if ``alpha`` is 0; it yields the mean of the last models of all clients."""
    last = np.tile(theta, (clients.n, 1))
    moved = np.zeros_like(last)
    while True:
        who = np.flatnonzero(clients.rng.random(clients.n) <= active)
        if not who.size:
            continue  # nobody came: coins are thrown again
        clients.participate(who)
        ends = clients.local_steps(theta, gamma, H, alpha * moved, proximal=alpha)
        last[who] = ends[who]
        moved[who] += ends[who] - theta
        theta = clients.mean(ends)
        if alpha > 0:
            theta = theta + moved.mean(axis=0)
        yield last.mean(axis=0)
