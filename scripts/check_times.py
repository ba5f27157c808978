"""Compares processor times with the committed table.

    python3 scripts/check_times.py TABLE TIMES LOG

TABLE is docs/notes/times.toml. TIMES is what scripts/measure.py wrote: lines with a name, seconds
of processor time and the speed of the machine meanwhile, in runs of the reference loop per second.
LOG is what `exactfed reproduce` wrote to standard error: its lines say how long each experiment and
frontier took by the clock.

The sum of the times that both have may exceed that of the table by 5 %, and by MEASUREMENT more,
which is how much two measurements of the same program differ (docs/PERFORMANCE.md). Exit code 1
means that it has grown by more, both in units of the loop and in seconds. On a slower machine the
seconds alone have grown, and where the machine suits the loop better than the program the units
alone. On a processor for which the table has no times nothing is compared, and the lines to add to
it are printed.

A change that makes the sum larger on purpose writes its times into the table, and an entry that
says why.
"""

import re
import sys

ALLOWED_GROWTH = 1.05
MEASUREMENT = 1.05
SHOWN = 12


def lines_of(path, errors="strict"):
    with open(path, encoding="utf-8", errors=errors) as file:
        return file.readlines()


def read_table(path, kind):
    """The times of each processor, from the lines of the TOML file: {processor: {name: time}}.

    The kind is "times", in units, or "seconds".
    """
    table, processor = {}, None
    for line in lines_of(path):
        header = re.fullmatch(rf'\[{kind}\."(.+)"\]\s*', line)
        row = re.fullmatch(r'"(.+)" = ([0-9.]+)\s*', line)
        if header:
            processor = table.setdefault(header[1], {})
        elif line.startswith("["):
            processor = None
        elif row and processor is not None:
            processor[row[1]] = float(row[2])
    return table


def read_times(path):
    """What was measured, in seconds, and the speeds meanwhile, in runs of the loop per second.

    Two dictionaries from names to numbers.
    """
    seconds, speeds = {}, {}
    for line in lines_of(path):
        name, time, speed = line.rstrip("\n").split("\t")
        seconds[name] = float(time)
        speeds[name] = float(speed)
    return seconds, speeds


def read_experiments(path):
    """The seconds of each experiment by the clock, from the messages of `exactfed reproduce`."""
    seconds = {}
    for line in lines_of(path, errors="replace"):
        cells = re.match(r"(\S+): \d+ cells?, \S+ steps in ([0-9.]+) s", line)
        frontier = re.match(r"(\S+): its frontiers took ([0-9.]+) s", line)
        if cells:
            seconds[cells[1]] = seconds.get(cells[1], 0.0) + float(cells[2])
        elif frontier:
            name = f"{frontier[1]} (frontiers)"
            seconds[name] = seconds.get(name, 0.0) + float(frontier[2])
    return seconds


def processor_name():
    """The processor, with what tells models of the same name apart."""
    text = "".join(lines_of("/proc/cpuinfo"))

    def value(key):
        found = re.search(rf"^{key}\s*: (.+)$", text, re.MULTILINE)
        return found[1].strip() if found else "unknown"

    avx512 = "with" if re.search(r"\bavx512f\b", text) else "without"
    model = f"{value('model name')}, family {value('cpu family')}, model {value('model')}"
    return f"{model}, {avx512} AVX-512"


def growth(now, before, names):
    """How many times larger the sum over these names is now than before."""
    return sum(now[name] for name in names) / sum(before[name] for name in names)


def main(table_path, times_path, log_path):
    seconds, speeds = read_times(times_path)
    measured = {name: seconds[name] * speed for name, speed in speeds.items()}
    measured_rows = dict(measured)
    if "reproduce" in speeds:
        for name, by_the_clock in read_experiments(log_path).items():
            measured_rows[name] = by_the_clock * speeds["reproduce"]
    processor = processor_name()
    print(f"processor times on {processor}")
    for name, speed in speeds.items():
        print(
            f"  {name}: {seconds[name]:.1f} s at {speed:.2f} runs of the reference loop per second"
        )

    committed = read_table(table_path, "times").get(processor)
    if committed is None:
        print(
            f"{table_path} has no times of this processor, so nothing is compared; "
            "these are the lines to add:"
        )
        print(f'[times."{processor}"]')
        for name, units_taken in sorted(measured_rows.items()):
            print(f'"{name}" = {units_taken:.2f}')
        print(f'[seconds."{processor}"]')
        for name, seconds_taken in sorted(seconds.items()):
            print(f'"{name}" = {seconds_taken:.1f}')
        return 0

    both = [name for name in measured if name in committed]
    ratios = [
        (name, measured_rows[name], committed[name]) for name in measured_rows if name in committed
    ]
    ratios.sort(key=lambda row: row[2] - row[1])
    for name, units_now, units_before in ratios[:SHOWN]:
        print(
            f"  {name}: {units_now:.2f} units, {units_before:.2f} in the table "
            f"({units_now / units_before:.2f} times)"
        )
    if not both:
        print("none of the compared times was measured")
        return 0
    in_units = growth(measured, committed, both)
    in_seconds = growth(seconds, read_table(table_path, "seconds")[processor], both)
    allowed = ALLOWED_GROWTH * MEASUREMENT
    print(
        f"the sum over {', '.join(both)} is {in_units:.3f} times that of the table in units, "
        f"and {in_seconds:.3f} times in seconds; {allowed:.3f} is allowed"
    )
    if min(in_units, in_seconds) <= allowed:
        return 0
    print(
        "error: processor times have grown. Make the program faster, or write the new times into "
        f"{table_path} with an entry that says why"
    )
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
