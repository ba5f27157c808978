"""Prints how much power the claims of experiments have, and how many runs they need.

    python3 scripts/power.py rr/theorem4 rr/table1
    python3 scripts/power.py --claims rr/theorem4
    python3 scripts/power.py --before OLD_REPORTS rr/theorem4

It reads the manifests (`--experiments`) and the published pages (`--reports`), and needs no results
and no package. docs/notes/power.md states the rule that it applies, and what the columns are.
`--before` names a folder of other pages, such as those of an earlier commit. Without it both sides
are the same pages.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

LEVEL = 0.05
# The normal quantile of the power of 0.999, as the rule rounds it.
QUANTILE = 3.1
# Fewer runs are not published.
FEWEST = 10
# With fewer runs the intervals of means have a third limit, that of lognormal samples, which lies
# farther away.
FEWEST_OF_MEANS = 20
# A smaller reduction is not worth an amendment: at least this share of the runs stays otherwise.
WORTH = 7 / 8
# A band may become wider by this factor.
WIDER = 1.5
# A band is invisible that takes less than this share of the height of its panel, the width of a
# line.
INVISIBLE = 0.01
# Numbers of runs that the rule chooses from, besides the present number divided by powers of two.
ROUND = [
    10,
    12,
    16,
    20,
    24,
    30,
    32,
    40,
    48,
    60,
    64,
    80,
    96,
    100,
    120,
    160,
    200,
    240,
    250,
    300,
    400,
    500,
    600,
    800,
]
ROUND += [1000, 1200, 1500, 1600]
# A number to which the norm of a vector is compared lies outside of its interval with this
# probability.
OUTSIDE = 1e-3
KINDS_OF_RUNS = ["less", "at-least", "slope", "matches", "reaches"]


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d or tiny)
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / ((1.0 + term * d) or tiny)
            c = (1.0 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return front * value / a


@cache
def student(tail: float, n: int) -> float:
    """The quantile of Student's distribution that n runs exceed with this probability."""
    if n < 2:
        return math.inf
    freedom = n - 1
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        beyond = 0.5 * incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + middle * middle))
        low, high = (middle, high) if beyond > tail else (low, middle)
    return 0.5 * (low + high)


@cache
def scheffe(dimension: int, n: int, tail: float) -> float:
    """The radius of Scheffé's region of n vectors, in standard errors."""
    if n <= dimension or tail <= 0.0:
        return math.inf
    first, second = dimension, n - dimension
    low, high = 0.0, 1e12
    for _ in range(200):
        middle = 0.5 * (low + high)
        beyond = incomplete_beta(0.5 * second, 0.5 * first, second / (second + first * middle))
        low, high = (middle, high) if beyond > tail else (low, middle)
    return math.sqrt(0.5 * (low + high) * first * (n - 1) / second)


@dataclass
class Part:
    """A cell, pair or slope of a claim, on the scale on which it is tested."""

    name: str
    estimate: float
    low: float
    high: float
    # Between these the claim holds.
    region: tuple[float, float]


@dataclass
class Claim:
    """A claim of a page, with what decides its verdict."""

    id: str
    verdict: str
    runs: int
    parts: list[Part]
    # The dimension of the vectors whose norm is compared; 1 for the mean of numbers.
    dimension: int = 1
    # Whether the norm of a mean that may be 0 is compared with another one.
    is_norm_ratio: bool = False
    # Whether the distance of a mean vector from a prediction is tested.
    is_of_vectors: bool = False


@dataclass
class Certainty:
    """How certain a verdict is at a number of runs."""

    claim: str
    part: str
    distance: float
    critical: float

    @property
    def margin(self) -> float:
        return self.distance - self.critical

    @property
    def power(self) -> float:
        return NormalDist().cdf(self.margin)


@dataclass
class Page:
    """The page of an experiment."""

    name: str
    runs: int
    together: int
    claims: list[Claim]
    # Of every band: the half width over the axis, and the figure.
    bands: list[tuple[str, float]]


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(" ", "").replace("\u202f", ""))


def interval(text: str) -> tuple[float, float, float]:
    """An estimate and its interval, which is at least as wide as the last digit."""
    text = text.replace("\\", "")
    match = re.match(r"^([-−\d.e]+)(?: \[([-−\d.e]+), ([-−\d.e]+)\])?$", text.strip())
    if not match:
        raise ValueError(f"no interval: {text}")
    estimate = number(match[1])
    mantissa, _, exponent = match[1].replace("−", "-").partition("e")
    last = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    if match[2] is None:
        return estimate, estimate - last, estimate + last
    low, high = number(match[2]), number(match[3])
    return estimate, min(low, estimate - last), max(high, estimate + last)


def rows(text: str) -> list[list[str]]:
    """The rows of the first table of Markdown, without its head."""
    table = []
    for line in text.splitlines():
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif table:
            break
    return table[2:]


def read_page(experiments: Path, reports: Path, name: str) -> Page:
    manifest = tomllib.loads((experiments / f"{name}.toml").read_text(encoding="utf-8"))
    text = (reports / name / "report.md").read_text(encoding="utf-8")
    # The manifest is quoted at the end of the page.
    text = text.partition("<details><summary>The manifest")[0]
    kinds = {
        claim["id"]: (kind, claim)
        for kind, claims in manifest.get("claim", {}).items()
        for claim in claims
    }
    shown = rows(text.partition("\n## Claims\n")[2])
    tested = rows(text.partition("<summary>What was tested</summary>")[2])
    dimension = dimension_of(text)
    claims = []
    for verdict, row in zip(shown, tested, strict=True):
        kind, claim = kinds[row[0]]
        runs = int(row[3]) if row[3].isdigit() else 0
        if kind not in KINDS_OF_RUNS or row[4] == "–":
            continue
        word = re.match(r"\*\*(\w+)", verdict[0])
        found = Claim(row[0], word[1] if word else "", runs, [])
        if kind == "reaches":
            # It counts rounds, and has no standard error.
            claims.append(found)
            continue
        average = claim.get("average") if kind == "matches" else None
        if average:
            found.is_of_vectors = True
            found.dimension = dimension ** (1 if average == "bias" else 2)
        elif claim.get("metric") == "bias":
            found.is_norm_ratio = kind in ("less", "at-least")
            found.dimension = dimension
        heading = f"<details><summary>Each cell of {row[0]}</summary>"
        each = rows(text.partition(heading)[2]) if heading in text else []
        if not each:
            each = [["", verdict[2], ""]]
        for cells in each:
            try:
                estimate, low, high = interval(cells[1])
            except ValueError:
                # A mean that diverged has no interval.
                continue
            limit = number(cells[2]) if len(cells) == 4 else None
            found.parts.append(part(kind, claim, cells[0], (estimate, low, high), limit))
        claims.append(found)
    numbers = [claim.runs for claim in claims if claim.runs]
    runs = max(numbers, default=0)
    return Page(name, runs, len(claims), claims, bands(manifest, reports / name / "figures"))


def dimension_of(page: str) -> int:
    """The largest d of the table of heterogeneity."""
    table = page.partition("\n| N | d |")[2]
    if table:
        return max(int(row[1]) for row in rows("| N | d |" + table))
    found = [
        int(number(x))
        for x in re.findall(r"\| problem\.\w+\.(?:dimension|features) \| (\d+) \|", page)
    ]
    return max(found, default=1)


def part(
    kind: str, claim: dict, name: str, of: tuple[float, float, float], limit: float | None
) -> Part:
    """A part on the scale of its test: the logarithm, but for slopes and distances of vectors."""
    estimate, low, high = of
    if kind == "slope":
        ends = (claim["value"] - claim["margin"], claim["value"] + claim["margin"])
        return Part(name, estimate, low, high, ends)
    if kind == "matches" and claim.get("average"):
        return Part(name, estimate, low, high, (-math.inf, limit or claim["margin"]))
    if kind == "matches":
        margin = math.log(limit or 1.0 + claim["margin"])
        middle = math.log(claim["value"]) if "value" in claim and estimate_is_mean(claim) else 0.0
        ends = (middle - margin, middle + margin)
    else:
        factor = math.log(claim.get("factor", 1.0) * (claim.get("value", 1.0)))
        ends = (-math.inf, factor) if kind == "less" else (factor, math.inf)
    return Part(name, logarithm(estimate), logarithm(low), logarithm(high), ends)


def logarithm(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def estimate_is_mean(claim: dict) -> bool:
    """Whether the page shows the mean itself, which is so where it is compared with a number."""
    return "right" not in claim and "prediction" not in claim


def bands(manifest: dict, folder: Path) -> list[tuple[str, float]]:
    """How wide the 95 % bands of figures are at most, over the height of their panels."""
    found = []
    for kind in ("scaling", "convergence"):
        for place, figure in enumerate(manifest.get("figure", {}).get(kind, [])):
            if figure.get("band", "std") != "ci95":
                continue
            name = figure.get("id") or f"{kind}-{place + 1}"
            file = folder / f"{name}.csv"
            if not file.exists():
                continue
            with file.open(encoding="utf-8", newline="") as lines:
                table = list(csv.DictReader(lines))
            values = [float(row["y"]) for row in table if row["y"]]
            values = [y for y in values if y > 0.0 and math.isfinite(y)]
            widths = []
            for row in table:
                if row["role"] == "measured" and row["low"] and row["high"]:
                    low, high = float(row["low"]), float(row["high"])
                    widths.append(math.log(high / low) if 0.0 < low < math.inf else math.inf)
            height = math.log(max(values) / min(values)) if values else 0.0
            # Drawn values fill at least half of a decade.
            found.append((name, max(widths, default=0.0) / max(height, math.log(3.0))))
    return found


def certainty(claim: Claim, together: int, runs: int) -> Certainty | None:
    """How certain the verdict of a claim is with these runs; `None` if undecided or exact."""
    if claim.verdict not in ("supported", "refuted") or not claim.parts:
        return None
    all_parts = [of_part(claim, part, together, runs) for part in claim.parts]
    if claim.verdict == "supported":
        return min(all_parts, key=lambda found: found.margin)
    return max(all_parts, key=lambda found: found.margin)


def of_part(claim: Claim, part: Part, together: int, runs: int) -> Certainty:
    supported = claim.verdict == "supported"
    # Twice the smaller of two p-values is compared with the level; refutation by any part is
    # corrected for all.
    tail = LEVEL / (2 * together)
    if not supported:
        tail /= len(claim.parts) * sum(math.isfinite(end) for end in part.region)
    growth = math.sqrt(claim.runs / runs)
    # The radius of vectors is tripled where their sample looks skewed.
    tripled = 3.0 if may_look_skewed(runs) and not may_look_skewed(claim.runs) else 1.0
    worst = None
    for is_upper, end in enumerate(part.region):
        if not math.isfinite(end):
            continue
        # The limit of the estimate that faces the end must stay on its side.
        faces_above = (is_upper == 1) == supported
        estimate, low, high = part.estimate, part.low, part.high
        critical, is_distance = student(tail, runs), claim.is_of_vectors
        if claim.is_norm_ratio and may_be_noise(part):
            # A norm that may be 0 is tested as it is, and the other norm by its own interval.
            estimate, low, high, end = (math.exp(x) for x in (estimate, low, high, end))
            critical, is_distance = scheffe(claim.dimension, runs, tail - OUTSIDE), True
            error = tripled * (high - estimate) / scheffe(claim.dimension, claim.runs, 0.05)
        elif claim.is_of_vectors:
            critical = scheffe(claim.dimension, runs, tail)
            error = tripled * (high - estimate) / scheffe(claim.dimension, claim.runs, 0.05)
        else:
            error = (high - estimate if faces_above else estimate - low) / student(
                0.025, claim.runs
            )
        if is_distance and low <= 0.0 and runs < claim.runs:
            # A distance that is noise grows with the noise.
            estimate *= growth
        distance = (end - estimate) if faces_above else (estimate - end)
        worst = pick(
            worst, Certainty(claim.id, part.name, distance / (error * growth), critical), supported
        )
    assert worst is not None
    return worst


def pick(one: Certainty | None, other: Certainty, supported: bool) -> Certainty:
    """Both ends must be kept for support; one that is passed refutes."""
    if one is None:
        return other
    return (
        min(one, other, key=lambda x: x.margin)
        if supported
        else max(one, other, key=lambda x: x.margin)
    )


def may_be_noise(part: Part) -> bool:
    """Whether the norm is known to a fifth at most, so that it may not be clearly positive."""
    return max(part.high - part.estimate, part.estimate - part.low) > 0.2


def may_look_skewed(runs: int) -> bool:
    """Whether normal vectors look skewed in more than one of two thousand samples."""
    return 0.18 * math.sqrt(runs) < 3.5 * math.sqrt(6.0 / runs)


def least(page: Page, runs: int) -> Certainty | None:
    found = [certainty(claim, page.together, runs) for claim in page.claims]
    return min((one for one in found if one), key=lambda one: one.margin, default=None)


def bands_allow(page: Page, runs: int) -> bool:
    wider = math.sqrt(page.runs / runs) * student(0.025, runs) / student(0.025, page.runs)
    return all(wider <= WIDER or width * wider < INVISIBLE for _, width in page.bands)


def fewest(page: Page) -> tuple[int, str]:
    """The fewest runs that the rule allows, and what forbids fewer."""
    choices = {n for n in ROUND if n < page.runs}
    half = page.runs
    while half % 2 == 0:
        half //= 2
        choices.add(half)
    of_means = any(not claim.is_of_vectors and claim.dimension == 1 for claim in page.claims)
    at_least = FEWEST_OF_MEANS if of_means else FEWEST
    chosen = page.runs
    for runs in sorted(choices, reverse=True):
        found = least(page, runs)
        if runs < at_least:
            return chosen, f"no fewer than {at_least} runs"
        if found and found.margin < QUANTILE:
            return chosen, f"the claim {found.claim}"
        if not bands_allow(page, runs):
            return chosen, "the bands"
        if runs <= WORTH * page.runs:
            chosen = runs
    return chosen, f"no fewer than {at_least} runs"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", help="experiments, such as rr/table1")
    parser.add_argument(
        "--experiments", type=Path, default=Path("experiments"), help="folder of manifests"
    )
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder of pages")
    parser.add_argument("--before", type=Path, help="folder of the pages before the change")
    parser.add_argument(
        "--claims", action="store_true", help="a row for every claim that is decided by runs"
    )
    arguments = parser.parse_args()
    print(
        "| experiment | runs before | runs now | claim | distance before | distance now "
        "| critical value | power foreseen | power now | fewest runs | what forbids fewer |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.names:
        now = read_page(arguments.experiments, arguments.reports, name)
        before = (
            read_page(arguments.experiments, arguments.before, name) if arguments.before else now
        )
        needed, why = fewest(before)
        every = [least(now, now.runs)]
        if arguments.claims:
            every = [certainty(claim, now.together, now.runs) for claim in now.claims]
        for found in filter(None, every):
            earlier = next(claim for claim in before.claims if claim.id == found.claim)
            at_first = certainty(earlier, before.together, before.runs)
            foreseen = certainty(earlier, before.together, now.runs)
            runs = f"{before.runs} | {now.runs}"
            if at_first is None or foreseen is None:
                print(f"| {name} | {runs} | {found.claim} was not decided before |")
                continue
            part = f" ({found.part})" if found.part else ""
            print(
                f"| {name} | {runs} | {found.claim}{part} | {at_first.distance:.1f} "
                f"| {found.distance:.1f} | {found.critical:.1f} | {share(foreseen.power)} "
                f"| {share(found.power)} | {needed} | {why} |"
            )


def share(power: float) -> str:
    return "above 0.9999" if power > 0.9999 else f"{power:.4f}" if power > 0.99 else f"{power:.2f}"


if __name__ == "__main__":
    main()
