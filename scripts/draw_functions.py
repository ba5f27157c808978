"""Draws functions of the Rust sources at random, for readers who have not seen the code.

`python3 scripts/draw_functions.py --seed 1 --count 25` prints a list of places, and with
`--sources` the functions themselves, with their documents. Tests, and functions of fewer than four
lines, are left out. The readings so far are in docs/notes/readings.md.
"""

import argparse
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["src", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("crates/*/src"))]
HEAD = re.compile(r"^\s*(?:pub(?:\([a-z ]+\))? )?(?:const )?(?:unsafe )?fn (\w+)")
FEWEST_LINES = 4


def sources():
    """All files of the crates but those of tests."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.rs")):
            if "tests" not in path.stem and "tests" not in path.parts:
                yield path


def end_of_function(lines, first):
    """The index of the line that closes the function, by its indentation; `None` without a body."""
    indent = len(lines[first]) - len(lines[first].lstrip())
    for i in range(first, len(lines)):
        line = lines[i]
        if line.startswith(" " * indent + "}"):
            return i
        is_opened = any("{" in earlier for earlier in lines[first : i + 1])
        if line.rstrip().endswith(";") and not is_opened:
            return None
    return None


def functions(path):
    """(first line, last line, name) of the functions of a file, counted from 0, up to its tests."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for first, line in enumerate(lines):
        if line.startswith("#[cfg(test)]") and "mod tests" in " ".join(lines[first : first + 3]):
            return
        head = HEAD.match(line)
        if not head:
            continue
        last = end_of_function(lines, first)
        if last is None or last - first + 1 < FEWEST_LINES:
            continue
        start = first
        while start > 0 and re.match(r"\s*(///|#\[|//)", lines[start - 1]):
            start -= 1
        yield start, last, head.group(1), lines


def main():
    """Prints the drawn functions."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--sources", action="store_true", help="print the functions as well")
    options = parser.parse_args()
    every = [(path, *found) for path in sources() for found in functions(path)]
    drawn = random.Random(options.seed).sample(every, options.count)
    for number, (path, first, last, name, lines) in enumerate(drawn, 1):
        place = f"{path.relative_to(ROOT)}:{first + 1}"
        print(f"{number}. {place} {name}")
        if options.sources:
            print("\n".join(lines[first : last + 1]), end="\n\n")


if __name__ == "__main__":
    main()
