#!/usr/bin/env python3
"""Compares the optima of random problems, and the bounds on their errors, with 50 digits.

    scripts/check_optimum.py [--count N] [--seed S]

Needs the package exactfed, numpy and mpmath. Each of five kinds of records gets N problems (20 by
default): logistic regression with badly scaled features, with duplicated and collinear features,
and on sparse separable records with a small penalty; softmax regression; and ridge regression, in
part without a penalty. Newton's method in mpmath starts at the optimum that exactfed found and ends
when a step is below 1e-45. A problem fails if the optimum is farther from the reference than
`optimum_error`, or has no bound. Prints per kind the failures and the quartiles of bound / true
error; exit code 1 after a failure.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import exactfed as ef
import mpmath as mp
import numpy as np

mp.mp.dps = 50


class Case:
    """Records x (n, d) with labels y, their clients, a penalty, and how clients count."""

    def __init__(self, kind, x, y, client, l2, weights, margin=0.0):
        self.kind, self.x, self.y, self.client = kind, x, y, client
        self.l2, self.weights, self.margin = l2, weights, margin

    def record_weights(self):
        """The exact weight of each record in the mean of the clients' losses."""
        counts = np.bincount(self.client)
        if self.weights == "records":
            return [mp.mpf(1) / len(self.y)] * len(self.y)
        return [mp.mpf(1) / (len(counts) * int(counts[c])) for c in self.client]

    def problem(self):
        """The manifest's key of the problem, and its further settings."""
        if self.kind == "ridge":
            return "least-squares-dataset", {}
        if self.kind == "softmax":
            return "softmax-dataset", {}
        return "logistic-dataset", {"margin": self.margin}

    def classes(self):
        return len(set(self.y)) if self.kind == "softmax" else 1

    def record_terms(self, i, products):
        """The residual (K) and the weight (K x K) of record i at these products."""
        if self.kind == "ridge":
            return [products[0] - mp.mpf(float(self.y[i]))], [[mp.mpf(1)]]
        if self.kind != "softmax":
            sign = 1 if self.y[i] == max(self.y) else -1
            s = 1 / (1 + mp.exp(sign * products[0] - mp.mpf(self.margin)))
            return [-sign * s], [[s * (1 - s)]]
        most = max(products)
        powers = [mp.exp(u - most) for u in products]
        total = sum(powers)
        p = [power / total for power in powers]
        label = sorted(set(self.y)).index(self.y[i])
        weight = [
            [p[k] * ((k == other) - p[other]) for other in range(len(p))] for k in range(len(p))
        ]
        return [p[k] - (k == label) for k in range(len(p))], weight

    def reference(self, start):
        """The minimiser, by Newton's method from a point close to it."""
        classes = self.classes()
        # A LIBSVM file has no more features than the last one that occurs.
        d = len(start) // classes
        x = [[mp.mpf(float(value)) for value in row[:d]] for row in self.x]
        entries = [[j for j, value in enumerate(row) if value != 0] for row in x]
        weights = self.record_weights()
        l2 = mp.mpf(self.l2)
        theta = [mp.mpf(float(value)) for value in start]
        for _ in range(60):
            gradient = mp.matrix(classes * d, 1)
            hessian = mp.matrix(classes * d, classes * d)
            for i, row in enumerate(x):
                products = [
                    sum(row[j] * theta[k * d + j] for j in entries[i]) for k in range(classes)
                ]
                residual, weight = self.record_terms(i, products)
                for k in range(classes):
                    for j in entries[i]:
                        gradient[k * d + j] += weights[i] * residual[k] * row[j]
                        for other in range(classes):
                            factor = weights[i] * weight[k][other] * row[j]
                            for m in entries[i]:
                                hessian[k * d + j, other * d + m] += factor * row[m]
            for j in range(classes * d):
                gradient[j] += l2 * theta[j]
                hessian[j, j] += l2
            step = mp.lu_solve(hessian, gradient)
            theta = [value - change for value, change in zip(theta, step, strict=True)]
            if max(abs(change) for change in step) < mp.mpf("1e-45"):
                return theta
        raise ArithmeticError("Newton's method of the reference does not end")


def draw(kind, rng):
    """A random problem of a kind."""
    n, d = int(rng.integers(12, 60)), int(rng.integers(1, 6))
    l2 = float(10 ** rng.uniform(-3, 0))
    if kind == "scaled":
        x = rng.normal(size=(n, d)) * 10 ** rng.uniform(-3, 3, size=d)
    elif kind == "collinear":
        d = max(d, 2)
        x = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1.5, size=d) + 5 * rng.normal(size=d)
        x[:, 1] = x[:, 0] * rng.integers(1, 5)
        x[n // 2 :] = x[: n - n // 2]
    elif kind == "sparse":
        d, l2 = 40, float(10 ** rng.uniform(-7, -3))
        x = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.08)
        x[np.arange(n), rng.integers(0, d, size=n)] = 1.0
    elif kind == "ridge":
        x = rng.normal(size=(n, d)) * 10 ** rng.uniform(-2, 2, size=d) + rng.normal(size=d)
        l2 = 0.0 if rng.random() < 0.3 else float(10 ** rng.uniform(-8, 0))
    else:
        x = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, size=d)
    if kind == "ridge":
        y = rng.normal(size=n) * 10 ** rng.uniform(-3, 3)
    elif kind == "softmax":
        y = np.arange(n) % int(rng.integers(2, 5))
    elif kind == "sparse":
        y = (x @ rng.normal(size=d) > 0).astype(float)
        y[:2] = [0, 1]
    else:
        y = (np.arange(n) % 2 if rng.random() < 0.5 else rng.random(n) < 0.5).astype(float)
        y[:2] = [0, 1]
    # Enough records for each client's own system to be regular.
    clients = min(int(rng.integers(1, 4)), n // 12)
    client = np.sort(
        np.concatenate(
            [np.repeat(np.arange(clients), 12), rng.integers(0, clients, size=n - 12 * clients)]
        )
    )
    margin = float(rng.normal()) if kind == "scaled" else 0.0
    return Case(kind, x, y, client, l2, ["equal", "records"][int(rng.integers(0, 2))], margin)


def libsvm(case, folder):
    """Writes the records as a LIBSVM file, in which each record is a client of its own."""
    lines = []
    for row, label in zip(case.x, case.y, strict=True):
        entries = " ".join(f"{j + 1}:{float(row[j])!r}" for j in np.flatnonzero(row))
        lines.append(f"{label:g} {entries}\n")
    path = folder / "records.libsvm"
    path.write_text("".join(lines))
    return path


def found(case, folder):
    """What exactfed knows about a problem."""
    dataset = {"file": "mine", "split": {"column": "client"}, "weights": case.weights}
    arrays = {"mine": {"x": case.x, "y": case.y, "client": case.client}}
    if case.kind == "sparse":
        dataset = {"file": str(libsvm(case, folder)), "clients": 1, "storage": "sparse"}
        arrays = None
        case.client = np.zeros(len(case.y), dtype=int)
    key, settings = case.problem()
    manifest = {
        "title": "An optimum",
        "seed": 1,
        "replicates": 1,
        "problem": {key: {"dataset": dataset, "l2": case.l2, **settings}},
        "start": {"zero": True},
        "budget": {"rounds": 2},
        "algorithm": {"fedavg": [{"step-size": 1e-9, "local-steps": 1}]},
    }
    return ef.exact(manifest, arrays=arrays) if arrays else ef.exact(manifest)


def check(kind, count, rng, folder):
    """Checks some problems of a kind, and returns how many fail."""
    failures, refused, ratios = 0, 0, []
    for number in range(count):
        case = draw(kind, rng)
        try:
            exact = found(case, folder)
        except ef.ExactfedError as error:
            refused += 1
            print(f"{kind} {number}: refused: {str(error)[:200]}")
            continue
        reference = case.reference(exact.optimum)
        pairs = zip(exact.optimum, reference, strict=True)
        distance = mp.sqrt(sum((mp.mpf(float(a)) - b) ** 2 for a, b in pairs))
        bound = exact.optimum_error
        if bound is None or distance > bound:
            failures += 1
            n, d = case.x.shape
            print(
                f"{kind} {number}: n {n} d {d} l2 {case.l2:.3g}: "
                f"error {float(distance):.3g}, bound {bound}",
                flush=True,
            )
        elif distance > 0:
            ratios.append(bound / float(distance))
    quartiles = np.percentile(ratios, [0, 25, 50, 75, 100]) if ratios else []
    shown = " ".join(f"{q:.3g}" for q in quartiles)
    print(
        f"{kind}: {failures} of {count} fail, {refused} refused; "
        f"bound / error (quartiles): {shown}",
        flush=True,
    )
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20, help="problems of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", help="only this kind")
    arguments = parser.parse_args()
    kinds = arguments.kind or ["scaled", "collinear", "sparse", "softmax", "ridge"]
    with tempfile.TemporaryDirectory() as folder:
        failures = sum(
            check(
                kind, arguments.count, np.random.default_rng([arguments.seed, number]), Path(folder)
            )
            for number, kind in enumerate(kinds)
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
