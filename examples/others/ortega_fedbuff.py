"""FedAvg and FedBuff of Ortega and Jafarkhani 2023, whose clients count alike in means."""

from pathlib import Path

import exactfed as ef
import numpy as np


@ef.algorithm("FedAvg, equal means", kind="fedavg-equal")
def fedavg_equal(clients, theta, gamma, H):
    """FedAvg with the plain mean, where the objective weighs clients by their records."""
    while True:
        theta = clients.local_steps(theta, gamma, H).mean(axis=0)
        yield theta


@ef.algorithm("FedBuff, random times", kind="fedbuff-random")
def fedbuff_random(clients, theta, gamma, H, server_step=0.1):
    """Changes arrive from clients k that began in round t; these go on from the server's θ.

    A client that arrives twice in a round has taken the same steps twice: they are counted once.
    """
    file = np.load(Path(__file__).parent / "files/ortega-fedbuff.npz")
    changes = [clients.local_steps(theta, gamma, H) - theta]
    for arrivals in file["arrivals"]:
        clients.participate(np.unique(arrivals[:, 1]))
        changes.append(clients.local_steps(theta, gamma, H) - theta)
        theta = theta + server_step * np.mean([changes[t][k] for t, k in arrivals], axis=0)
        clients.charge(1, vectors=2 * len(arrivals))
        yield theta
