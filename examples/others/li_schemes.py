"""FedAvg under the sampling schemes of X. Li, Huang, Yang, Wang and Zhang 2020."""

import exactfed as ef
import numpy as np


@ef.algorithm("FedAvg", kind="fedavg-scheme", vectors=2)
def fedavg_scheme(clients, theta, gamma, H, scheme: str, size: int = 10):
    """The schemes by their names in the paper; step sizes are γ, γ, γ/2, γ/3, … as in the code."""
    draws = {"I": "with-replacement", "II": "rescaled", "transformed II": None, "original": None}
    sizes = np.ones(clients.n)
    if scheme == "transformed II":
        sizes = clients.n * clients.shares
    for t in range(clients.rounds):
        who = clients.cohort(size, participation=draws[scheme])
        ends = clients.local_steps(theta, gamma / max(t, 1) * sizes, H)
        if scheme == "transformed II":
            theta = ends[who].mean(axis=0)
        elif scheme == "original":
            theta = theta + clients.shares[who] @ (ends[who] - theta)
        else:
            theta = clients.mean(ends)
        yield theta
