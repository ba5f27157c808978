#!/usr/bin/env python3
"""Compares the times that `exactfed plan` states with the processor times of the runs.

    scripts/plan_times.py [--program PROGRAM] [--repeats N] [--factor F] MANIFEST…

For each manifest, N times by turns (3 by default): plans it on one thread, and runs it on one
thread into a new folder. Prints the medians of the stated times and of the processor times (user
and system), and their ratio. Exit code 1 if a ratio is beyond a factor of F (1.5 by default). The
processor time is less disturbed by other programs than the time by the clock, and lacks that of
the disk.
"""

import argparse
import re
import resource
import statistics
import subprocess
import sys
import tempfile

UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def stated(program, manifest):
    """The seconds that `plan` states, where there are no results."""
    with tempfile.TemporaryDirectory() as out:
        command = [program, "plan", manifest, "--threads", "1", "--out", f"{out}/results"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"about ([\d.]+) (ms|s|min|h) on 1 thread$", printed)
    if found is None:
        sys.exit(f"{manifest}: plan states no time:\n{printed}")
    return float(found[1]) * UNITS[found[2]]


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_time(program, manifest):
    """The processor seconds of a run into a new folder."""
    with tempfile.TemporaryDirectory() as out:
        command = [program, "run", manifest, "--threads", "1", "--out", f"{out}/results"]
        before = processor_seconds()
        subprocess.run([*command, "--quiet", "--yes"], capture_output=True, check=True)
        return processor_seconds() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("manifests", nargs="+", metavar="MANIFEST")
    parser.add_argument("--program", default="target/release/exactfed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--factor", type=float, default=1.5)
    given = parser.parse_args()
    print("| manifest | stated | measured | stated / measured |\n| --- | --- | --- | --- |")
    failed = 0
    for manifest in given.manifests:
        plans, runs = [], []
        for _ in range(given.repeats):
            plans.append(stated(given.program, manifest))
            runs.append(run_time(given.program, manifest))
        plan, run = statistics.median(plans), statistics.median(runs)
        print(f"| `{manifest}` | {plan:.3g} s | {run:.3g} s | {plan / run:.2f} |", flush=True)
        failed += not 1 / given.factor <= plan / run <= given.factor
    if failed:
        sys.exit(f"{failed} beyond a factor of {given.factor}")


if __name__ == "__main__":
    main()
