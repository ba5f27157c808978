"""Corrections from fields at an anchor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("SVRG-like anchors", kind="svrg-anchor")
def svrg_anchor(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, every: int = 5, calls: int = 10
) -> Iterator[np.ndarray]:
    """Corrections from an anchor that is moved every so many rounds (after Johnson and Zhang 2013).

    In every ``every``-th round, from the first on, the anchor is θ_t, where client k estimates its
    field f_k by the mean of ``calls`` draws; both are 1 or more. Local steps have the corrections
    Σ π_l f_l − f_k until the next anchor. They remove heterogeneity, and not noise as SVRG does:
    local steps have draws of their own. ``every`` = 1 with ``calls`` = H is FedLin (Mitra et al.
    2021), with the same distribution and other draws.
    """
    number, ends = 0, None
    while True:
        if number == 0:
            fields = clients.fields(theta, calls=calls)
            corrections = clients.mean(fields) - fields
            clients.charge(2, vectors=4 * clients.n)
        ends = clients.local_steps(theta, gamma, H, corrections, out=ends)
        theta = clients.mean(ends)
        number = (number + 1) % every
        yield theta
