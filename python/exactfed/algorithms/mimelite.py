"""MimeLite: the server's momentum in the local steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("MimeLite", vectors=4)
def mimelite(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    H: int,
    momentum: float = 0.9,
    calls: int = 1,
) -> Iterator[np.ndarray]:
    """MimeLite with momentum (Karimireddy et al. 2021, Algorithm 1).

    A local step is θ ← θ − γ((1 − β)F_k(θ; Z) + βm), where m does not change in a round; then
    m ← βm + (1 − β) Σ π_k f_k, f_k the field of client k at θ_t as the mean of ``calls`` draws (1
    or more; all of its data in the source), and θ_{t+1} = Σ π_k θ_k. β = ``momentum`` in [0, 1);
    β = 0 is FedAvg, with other draws. θ_t and m are sent down, θ_k and f_k up.
    """
    state, ends = np.zeros(clients.dim), None
    weight = momentum / (1 - momentum)
    while True:
        fields = clients.mean(clients.fields(theta, calls=calls))
        ends = clients.local_steps(theta, gamma * (1 - momentum), H, weight * state, out=ends)
        state = momentum * state + (1 - momentum) * fields
        theta = clients.mean(ends)
        yield theta
