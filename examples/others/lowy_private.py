"""Mini-batch and local SGD whose clients add noise, after Lowy and Razaviyayn 2021."""

import exactfed as ef
import numpy as np


@ef.algorithm("Noisy mini-batch SGD", kind="noisy-minibatch-sgd")
def noisy_minibatch_sgd(clients, theta, gamma, drawn: int, batch: int, noise: float):
    """Each client adds Gaussian noise to its mean gradient."""
    while True:
        clients.cohort(drawn)
        gradients = clients.fields(theta, calls=batch)
        gradients += noise * clients.rng.standard_normal(gradients.shape)
        theta = theta - gamma * clients.mean(gradients)
        yield theta


@ef.algorithm("Noisy local SGD", kind="noisy-local-sgd")
def noisy_local_sgd(clients, theta, gamma, H, drawn: int, noise: float):
    """Each client adds Gaussian noise to the gradient of each local step."""
    while True:
        clients.cohort(drawn)
        ends = np.tile(theta, (clients.n, 1))
        for _ in range(H):
            gradients = clients.fields(ends)
            ends -= gamma * (gradients + noise * clients.rng.standard_normal(ends.shape))
        theta = clients.mean(ends)
        yield theta
