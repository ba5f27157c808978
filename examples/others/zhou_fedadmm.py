"""FedADMM, inexact ADMM with half of the clients in each round (Zhou and Li 2023)."""

import exactfed as ef
import numpy as np


@ef.algorithm("FedADMM", kind="fedadmm-inexact", vectors=2)
def fedadmm(clients, theta, gamma, iterations: int = 10, falling: bool = False):
    """Clients minimise inexactly and move duals for one θ; the penalty is γ times a smoothness."""
    draws, basis = np.random.RandomState(0), np.eye(clients.dim)
    constant = clients.fields(0 * theta)
    columns = [clients.fields(unit) - constant for unit in basis]
    r = np.linalg.eigvalsh(np.stack(columns, axis=2))[:, -1:]  # the smoothness of each client
    sigma = gamma / (np.log10(9 + iterations) if falling else 1.0) * r
    tolerance = np.full((clients.n, 1), float(clients.n * iterations) ** 2)
    duals, sent = np.zeros((clients.n, clients.dim)), np.zeros((clients.n, clients.dim))
    while True:
        who = np.sort(draws.permutation(clients.n)[: clients.n // 2])
        clients.participate(who)
        first = clients.fields(theta)
        for _ in range(iterations):
            tolerance[who] *= 0.95
            pull, fields, going = sigma * theta - duals, first, np.ones((clients.n, 1), dtype=bool)
            ends = np.tile(theta, (clients.n, 1))
            for inner in range(3):
                ends = np.where(going, (r * ends + pull - fields) / (r + sigma), ends)
                rest = np.sum((pull - sigma * ends - fields) ** 2, axis=1, keepdims=True)
                going &= rest >= tolerance * clients.dim
                if inner == 2 or not going[who].any():
                    break
                fields = np.where(going, clients.fields(ends), fields)
            duals[who] = (sigma * ends - pull)[who]
            sent[who] = (sigma * ends + duals)[who]
        theta = np.sum(sent, axis=0) / np.sum(sigma)
        yield theta
