"""A server step from how much the changes of the clients differ."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedExP", kind="fedexp")
def fedexp(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    H: int,
    epsilon: float = 0.0,
    least: float = 1.0,
    last_two: bool = True,
) -> Iterator[np.ndarray]:
    """FedExP (Jhunjhunwala, Wang and Joshi 2023), as in the code of its authors.

    With the changes Δ_k = θ_t − θ_k and their mean Δ, the server goes to θ_{t+1} = θ_t − ηΔ,
    η = max(``least``, Σ π_k ‖Δ_k‖² / (2 (‖Δ‖² + Lε))), where L clients take part and
    ε = ``epsilon``, 0 or more. The estimate is the mean of θ_{t+1} and θ_t, since iterates
    oscillate, or θ_{t+1} without ``last-two`` and in the first round. The notebook of the authors
    has ``least`` = 0 and no such mean.
    """
    before, ends = None, None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        changes = theta - ends
        mean, square = clients.mean(changes), np.sum(clients.mean(changes**2))
        below = 2 * (np.sum(mean**2) + len(clients.members) * epsilon)
        # Where all changes are 0, so is their mean, and any step will do.
        after = theta - (max(least, square / below) if below > 0 else least) * mean
        theta, before = after, theta if last_two and before is not None else after
        yield (theta + before) / 2
