"""What a round of an algorithm in Python costs in addition to that of the built-in one.

    python python/benchmarks/rounds.py

Prints microseconds of processor time per round, the least of several runs, for FedAvg and Scaffold
built in and written in Python with the same bits, on a quadratic problem.
"""

from __future__ import annotations

import tempfile
import time

import exactfed as ef

MANIFEST = """
title = "The cost of a round"
seed = 1
replicates = 2

[problem.quadratic]
dimension = {dimension}
clients = {clients}
spectrum = {{ from = 0.1, to = 1.0 }}
gradient-heterogeneity = 1.0
noise = 0.1

[start]
zero = true

[budget]
rounds = {rounds}

[record]
points = 2

[[algorithm.{kind}]]
step-size = 0.01
local-steps = {steps}
"""


@ef.algorithm("FedAvg in Python", kind="python-fedavg")
def fedavg(clients, theta, gamma, H):
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        theta = clients.mean(ends)
        yield theta


@ef.algorithm("Scaffold in Python", kind="python-scaffold")
def scaffold(clients, theta, gamma, H):
    variates = clients.control_variates()
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, variates.corrections, out=ends)
        theta = variates.learn(clients, theta, ends, gamma * H)
        yield theta


def microseconds(threads: int, rounds: int, **settings: object) -> float:
    """Microseconds of a round: of the processor with one thread, of the clock with several."""
    text = MANIFEST.format(rounds=rounds, **settings)
    clock = time.process_time if threads == 1 else time.perf_counter
    with tempfile.TemporaryDirectory() as out:
        begin = clock()
        ef.run(text, out=out, threads=threads, force=True)
        return (clock() - begin) / (2 * rounds) * 1e6


def main() -> None:
    print("microseconds a round: one thread (processor), two threads (clock)")
    for clients, dimension, steps in [(2, 2, 1), (100, 8, 1), (100, 8, 10)]:
        rounds = {2: 200_000, 100: 100_000 // (2 + steps)}[clients]
        print(f"\nN = {clients}, d = {dimension}, H = {steps}")
        for built_in in ("fedavg", "scaffold"):
            settings = {"clients": clients, "dimension": dimension, "steps": steps}
            variants = [(k, t) for k in (built_in, f"python-{built_in}") for t in (1, 2)]
            found = dict.fromkeys(variants, float("inf"))
            # One after the other, since the speed of a machine changes.
            for _ in range(7):
                for kind, threads in variants:
                    took = microseconds(threads, rounds, kind=kind, **settings)
                    found[kind, threads] = min(found[kind, threads], took)
            one, two, own, both = found.values()
            print(
                f"  {built_in:9} built in {one:7.2f} {two:7.2f}   in Python {own:7.2f} {both:7.2f}"
                f"   overhead {own - one:5.2f}"
            )


if __name__ == "__main__":
    main()
