"""Scaffnew in which each coordinate is sent by some of the clients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("CompressedScaffnew", kind="compressed-scaffnew")
def compressed_scaffnew(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    probability: float = 0.1,
    copies: int = 2,
) -> Iterator[np.ndarray]:
    """CompressedScaffnew (Condat, Agarský and Richtárik 2022), for clients with equal shares.

    After a geometric number of local steps θ ← θ − γ(F_k(θ) − h_k), of mean 1/p, p =
    ``probability``, s = ``copies`` of the N clients send each coordinate, from 2 to N: θ_{t+1} is
    its mean over these. They are those of a fixed pattern, in which each client has ⌊sd/N⌋ or
    ⌈sd/N⌉ coordinates, after a random permutation of the clients. Then h_k ← h_k + pη/γ
    (θ_{t+1} − θ_k) in what client k has sent, η = N(s − 1)/(s(N − 1)). With s = N this is Scaffnew.
    """
    n, d = clients.n, clients.dim
    if not 2 <= copies <= n or np.ptp(clients.shares) > 0:
        raise ValueError(f"copies is from 2 to N = {n}, and all clients have equal shares")
    pattern = (np.arange(n)[:, None] - copies * np.arange(d)) % n < copies
    rate = probability * n * (copies - 1) / (copies * (n - 1) * gamma)
    variates, ends = np.zeros((n, d)), None
    while True:
        steps = int(clients.rng.geometric(probability))
        ends = clients.local_steps(theta, gamma, steps, -variates, out=ends)
        mask = pattern[clients.rng.permutation(n)]
        theta = n / copies * clients.mean(mask * ends)
        variates += rate * mask * (theta - ends)
        clients.charge(1, vectors=2 * n, bytes=8 * (n + copies) * d)
        yield theta
