"""Accelerated local steps with two sequences."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedAc", kind="fedac", vectors=4)
def fedac(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, mu: float, variant: int = 1
) -> Iterator[np.ndarray]:
    """FedAc (Yuan and Ma 2020, Algorithm 1), with the parameters of the code of its authors.

    μ = ``mu`` is a constant of strong convexity. Each local step of size η = ``step-size`` takes a
    gradient at w/β + (1 − 1/β) w_ag, moves w_ag by η and w by γ = max(η, √(η/(μH))). FedAc-I
    (``variant`` = 1) has α = 1/(γμ) and β = α + 1; FedAc-II (``variant`` = 2) has α = 3/(2γμ) − 1/2
    and β = 2α²/(α − 1). The server takes the means of w and of w_ag, its estimate.
    """
    large = max(gamma, math.sqrt(gamma / (mu * H)))
    alpha = 1 / (large * mu) if variant == 1 else 1.5 / (large * mu) - 0.5
    if variant not in (1, 2) or not alpha > 1:
        raise ValueError("variant is 1 or 2, and the step size is so small that α is above 1")
    beta = alpha + 1 if variant == 1 else 2 * alpha**2 / (alpha - 1)
    center = theta
    while True:
        own, aggregated = center, theta
        for _ in range(H):
            middle = own / beta + (1 - 1 / beta) * aggregated
            fields = clients.fields(middle)
            aggregated = middle - gamma * fields
            own = (1 - 1 / alpha) * own + middle / alpha - large * fields
        center, theta = clients.mean(own), clients.mean(aggregated)
        yield theta
