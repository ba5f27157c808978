"""Changes that arrive when they are done, and a buffer of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedBuff", kind="fedbuff")
def fedbuff(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    H: int,
    buffer: int = 2,
    speeds: str = "1",
    server_step: float = 1.0,
    damped: bool = True,
) -> Iterator[np.ndarray]:
    """FedBuff (Nguyen et al. 2022), where every client always works.

    A client takes the server's θ, makes H local steps, which takes 1/v_k, sends its change, and
    takes the newest θ once all changes of that moment have arrived. ``speeds`` are the v_k, such as
    ``"1, 0.5"``; the list is repeated for all clients. When ``buffer`` changes have arrived, the
    server moves by ``server_step`` times their mean, each with the weight Nπ_k, and a round ends. A
    change from τ moves ago counts 1/√(1 + τ), unless ``damped`` is false. Where all speeds are
    equal, and the buffer has N changes, this is FedAvg.
    """
    rates = np.resize([float(speed) for speed in speeds.split(",")], clients.n)
    if not np.all((rates > 0) & np.isfinite(rates)):
        raise ValueError(f'speeds are numbers above 0, not "{speeds}"')
    ready, now, free = 1 / rates, 0.0, np.zeros(clients.n, bool)
    starts, ages = np.tile(theta, (clients.n, 1)), np.zeros(clients.n)
    while True:
        change, room = np.zeros(clients.dim), buffer
        while room > 0:
            if ready.min() > now:
                starts[free], ages[free], free, now = theta, 0, free & False, ready.min()
            sending = np.flatnonzero(ready == now)[:room]
            clients.participate(sending)
            moved = (clients.local_steps(starts, gamma, H) - starts)[sending]
            weights = clients.n * clients.shares[sending] / np.sqrt(1 + damped * ages[sending])
            change += np.sum(weights[:, None] * moved, axis=0)
            ready[sending], free[sending] = now + 1 / rates[sending], True
            room -= len(sending)
        theta, ages = theta + server_step / buffer * change, ages + 1
        clients.charge(1, vectors=2 * buffer)
        yield theta
