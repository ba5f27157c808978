"""The largest coordinates of the changes, with error feedback."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm, top_k


@algorithm("Top-k", kind="topk")
def topk(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, keep: int = 1, feedback: bool = True
) -> Iterator[np.ndarray]:
    """FedAvg with the largest coordinates of the changes (after Stich, Cordonnier and Jaggi 2018).

    Client k sends the ``keep`` largest coordinates, 1 or more, of e_k + θ_k − θ_t; what it does not
    send is its next e_k, or forgotten without ``feedback``. θ_{t+1} is θ_t and the mean of what was
    sent. ``keep`` = d is FedAvg. The choice of coordinates is not linear, so that there is no exact
    theory.
    """
    memories, ends = clients.error_feedback(top_k(keep)), None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        if feedback:
            sent = memories.send(clients, ends, theta)
        else:
            sent = clients.compress(ends - theta, top_k(keep))
        theta = theta + clients.mean(sent)
        yield theta
