"""Changes that arrive late."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("Delayed")
def delayed(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, most: int = 2
) -> Iterator[np.ndarray]:
    """FedAvg with fixed delays (after Agarwal and Duchi 2011).

    Every client begins at θ_t in round t, and its change θ_k − θ_t arrives k mod (``most`` + 1)
    rounds later, k from 0: θ_{t+1} is θ_t and Σ π_k times the changes that arrive. ``most`` is 0 or
    more; 0 is FedAvg.
    """
    delays = np.arange(clients.n)[:, None] % (most + 1)
    changes: deque[np.ndarray] = deque(maxlen=most + 1)
    while True:
        changes.appendleft(clients.local_steps(theta, gamma, H) - theta)
        for delay, change in enumerate(changes):
            theta = theta + clients.mean((delays == delay) * change)
        yield theta
