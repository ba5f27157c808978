"""Compares processor times with the committed table.

    python3 scripts/check_times.py TABLE TIMES LOG

TABLE is docs/notes/times.toml. TIMES has lines with a name, a tab and seconds of processor time; the lines
named "unit" are times of examples/reference_loop.rs, by whose median all others are divided. LOG is what
`exactfed reproduce` wrote to standard error: its lines say how long each experiment and frontier took by
the clock.

The sum of the times that both have may exceed that of the table by 5 %, and by as much as the times of the
unit differ within this run, since the machine was no steadier than that. Exit code 1 means that it
has grown by more. On a processor for which the table has no times nothing is compared, and the lines to
add to it are printed.

A change that makes the sum larger on purpose writes its times into the table, and an entry that says why
(tests/suite/times.rs checks that there is one).
"""

import re
import statistics
import sys

ALLOWED_GROWTH = 1.05
SHOWN = 12


def read_table(path):
    """The times of each processor: {processor: {name: units}}, from the lines of the TOML file."""
    table, processor = {}, None
    for line in open(path, encoding="utf-8"):
        header = re.fullmatch(r'\[times\."(.+)"\]\s*', line)
        row = re.fullmatch(r'"(.+)" = ([0-9.]+)\s*', line)
        if header:
            processor = table.setdefault(header[1], {})
        elif line.startswith("["):
            processor = None
        elif row and processor is not None:
            processor[row[1]] = float(row[2])
    return table


def read_times(path):
    """The processor times and those of the unit, in seconds."""
    times, units = {}, []
    for line in open(path, encoding="utf-8"):
        name, seconds = line.rstrip("\n").split("\t")
        if name == "unit":
            units.append(float(seconds))
        else:
            times[name] = times.get(name, 0.0) + float(seconds)
    return times, units


def read_experiments(path):
    """The seconds of each experiment by the clock, from the messages of `exactfed reproduce`."""
    seconds = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        cells = re.match(r"(\S+): \d+ cells?, \S+ steps in ([0-9.]+) s", line)
        frontier = re.match(r"(\S+): its frontiers took ([0-9.]+) s", line)
        if cells:
            seconds[cells[1]] = seconds.get(cells[1], 0.0) + float(cells[2])
        elif frontier:
            name = f"{frontier[1]} (frontiers)"
            seconds[name] = seconds.get(name, 0.0) + float(frontier[2])
    return seconds


def processor_name():
    """The processor, with what determines how fast the kernels are on it."""
    text = open("/proc/cpuinfo", encoding="utf-8").read()
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    with_avx512 = re.search(r"\bavx512f\b", text)
    name = model[1].strip() if model else "unknown"
    return f"{name} {'with' if with_avx512 else 'without'} AVX-512"


def main(table_path, times_path, log_path):
    times, units = read_times(times_path)
    if not units:
        sys.exit("error: no time of the unit was measured")
    unit, spread = statistics.median(units), max(units) / min(units)
    processor = processor_name()
    measured = {name: seconds / unit for name, seconds in times.items()}
    experiments = read_experiments(log_path)
    measured_rows = measured | {name: seconds / unit for name, seconds in experiments.items()}
    print(f"processor times on {processor}: the unit is {unit:.2f} s, and varied by a factor of {spread:.3f}")

    committed = read_table(table_path).get(processor)
    if committed is None:
        print(f"{table_path} has no times of this processor, so nothing is compared; these are the lines to add:")
        print(f'[times."{processor}"]')
        for name, units_taken in sorted(measured_rows.items()):
            print(f'"{name}" = {units_taken:.2f}')
        return 0

    both = [name for name in measured if name in committed]
    now, before = sum(measured[name] for name in both), sum(committed[name] for name in both)
    allowed = ALLOWED_GROWTH * spread
    ratios = [(name, measured_rows[name], committed[name]) for name in measured_rows if name in committed]
    ratios.sort(key=lambda row: row[2] - row[1])
    for name, units_now, units_before in ratios[:SHOWN]:
        print(f"  {name}: {units_now:.2f} units, {units_before:.2f} in the table ({units_now / units_before:.2f} times)")
    if not both:
        print("none of the compared times was measured")
        return 0
    print(f"the sum over {', '.join(both)} is {now / before:.3f} times that of the table; {allowed:.3f} is allowed")
    if now <= allowed * before:
        return 0
    print(
        f"error: processor times have grown. Make the program faster, or write the new times into {table_path}"
        " with an entry that says why"
    )
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
