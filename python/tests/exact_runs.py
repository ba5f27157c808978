"""What tests of exact errors against runs share."""

from __future__ import annotations

import os

import numpy as np

RUNS = int(os.environ.get("EXACTFED_RUNS", "400"))
#: Squared errors are skewed: so few runs leave their standard errors uncertain.
MOST = 4.5 if RUNS >= 10_000 else 5.5
QUADRATIC = {
    "dimension": 2,
    "clients": 6,
    "noise": 0.5,
    "multiplicative-noise": 0.3,
    "gradient-heterogeneity": 1.0,
    "hessian-heterogeneity": 0.3,
    "spectrum": {"from": 0.4, "to": 1.0},
}


def standard_errors(runs, exact):
    """The largest distance over rounds of the mean of RUNS runs from the exact error."""
    runs = runs.to_numpy().reshape(RUNS, -1)
    error = runs.std(axis=0, ddof=1) / np.sqrt(RUNS)
    apart = np.abs(runs.mean(axis=0) - exact)
    # Round 0, and what has no noise, is exact.
    return np.max(np.where(apart <= 1e-9 * exact, 0, apart / (error + 1e-300)))


def late_mean(exact):
    """The mean over the last rounds, a whole number of the periods that occur."""
    return float(exact[-120:].mean())
