"""Local steps with momentum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("Client momentum", kind="client-momentum")
def client_momentum(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, momentum: float = 0.5
) -> Iterator[np.ndarray]:
    """FedAvg with momentum in the local steps (after Yu, Jin and Yang 2019, who average it too).

    A local step of client k is v_k ← βv_k + γF_k(θ; Z), θ ← θ − v_k. v_k begins at 0, and the
    client keeps it from round to round. β = ``momentum`` in [0, 1) makes local steps longer, by
    1/(1 − β) in the long run; β = 0 is FedAvg.
    """
    velocity = np.zeros((clients.n, clients.dim))
    while True:
        rows = theta + np.zeros((clients.n, clients.dim))
        for _ in range(H):
            velocity = momentum * velocity + (rows - clients.local_steps(rows, gamma, 1))
            rows = rows - velocity
        theta = clients.mean(rows)
        yield theta
