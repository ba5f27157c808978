"""FedAvg with the weights of FISTA at the server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedFISTA")
def fedfista(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, restart: int = 0
) -> Iterator[np.ndarray]:
    """FISTA (after Beck and Teboulle 2009) with a round of FedAvg for the proximal gradient step.

    Clients begin at y = θ_t + (a_t − 1)/a_{t+1} (θ_t − θ_{t−1}), and θ_{t+1} = Σ π_k θ_k, where
    a_0 = 1 and a_{t+1} = (1 + √(1 + 4a_t²))/2. After every ``restart`` rounds a is 1 again (after
    O'Donoghue and Candès 2015); 0 is never, and 1 is FedAvg.
    """
    previous, a, number, ends = theta, 1.0, 0, None
    while True:
        last, a = a, (1 + (1 + 4 * a * a) ** 0.5) / 2
        ahead = theta + (last - 1) / a * (theta - previous)
        ends = clients.local_steps(ahead, gamma, H, out=ends)
        previous, theta = theta, clients.mean(ends)
        number += 1
        if number == restart:
            a, number = 1.0, 0
        yield theta
