"""The largest coordinates of the changes, with error feedback."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("Top-k", kind="topk")
def topk(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, keep: int = 1, feedback: bool = True
) -> Iterator[np.ndarray]:
    """FedAvg with the largest coordinates of the changes (after Stich, Cordonnier and Jaggi 2018).

    Client k sends the ``keep`` largest coordinates, 1 or more, of e_k + θ_k − θ_t; what it does not
    send is its next e_k, or forgotten without ``feedback``. θ_{t+1} is θ_t and the mean of what was
    sent. ``keep`` = d is FedAvg. A coordinate is sent as a number of 8 bytes and an index of 4. The
    choice of coordinates is not linear, so that there is no exact theory.
    """
    n, d = clients.n, clients.dim
    keep = min(keep, d)
    memory, rows, ends = np.zeros((n, d)), np.arange(n)[:, None], None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        change = memory + ends - theta
        largest = np.argpartition(np.abs(change), d - keep, axis=1)[:, d - keep :]
        sent = np.zeros((n, d))
        sent[rows, largest] = change[rows, largest]
        memory = feedback * (change - sent)
        clients.charge(1, vectors=2 * n, bytes=n * (8 * d + 12 * keep))
        theta = theta + clients.mean(sent)
        yield theta
