"""Runs a command and adds a line with its processor time to a file.

    python3 scripts/measure.py LOOP TIMES WHAT COMMAND...

The line has WHAT, the command's processor time in seconds with that of its child processes, and the
speed of the machine meanwhile, with tabs between them. The speed is the mean of runs of LOOP
(examples/reference_loop.rs) in runs per second of processor time, one every five seconds while the
command runs, so that what slows the command slows them too: other work on the machine, and the
command's own work on the other thread of a core. Seconds times speed is the time in units of the
loop. Exit code: that of the command.
"""

import os
import statistics
import subprocess
import sys
import threading

PAUSE = 5.0


def processor_seconds(command, **options):
    """Runs a command; its exit code and processor time, with that of children it waited for."""
    child = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime


def run_loop(loop):
    """The speed of the machine, in runs of the loop per second of processor time."""
    code, seconds = processor_seconds([loop], stdout=subprocess.DEVNULL)
    if code != 0:
        raise RuntimeError(f"{loop} failed with exit code {code}")
    return 1.0 / seconds


def measure(loop, command):
    """Runs a command; its exit code, processor time in seconds, and the mean speed meanwhile."""
    # A loop that cannot run is reported before the command, which may take long.
    run_loop(loop)
    ended = threading.Event()
    speeds = []

    def sample():
        # A command that ends at once has one run of the loop.
        while True:
            speeds.append(run_loop(loop))
            if ended.wait(PAUSE):
                return

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        code, seconds = processor_seconds(command)
    finally:
        ended.set()
        sampler.join()
    return code, seconds, statistics.fmean(speeds)


def main(loop, times, what, *command):
    code, seconds, speed = measure(loop, command)
    with open(times, "a", encoding="utf-8") as file:
        file.write(f"{what}\t{seconds:.2f}\t{speed:.4f}\n")
    # As a shell says that a signal ended a command.
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
