#!/usr/bin/env python3
"""Runs random manifests in many ways for hours, and compares the digests of all ways.

    scripts/soak.py [--hours H] [--seed S] [--jobs N] [--work FOLDER] [--only-case CASE]

A case is a manifest: of the generator of tests/suite/documents.rs, of experiments/smoke, or one of
those below. Its reference is a run with one thread. Random ways must give the same cells, digests
and failures: other numbers of threads, shards that are merged, runs that share a folder, kills at
random moments, executors of Python whose workers are killed, and emulated processors. Reports,
exports, diffs and verify follow at random. A fault is a line of output and a folder below
WORK/faults with results and commands. All but the moments of kills follows from the seed. The exit
code is 1 after a fault. Without exactfed in this Python there are no executors, without qemu-x86_64
no processors.
"""

import argparse
import contextlib
import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "experiments/smoke"
# What writes random manifests, and how many at a time.
WRITER, BATCH = "properties::random_manifests_for_the_soak", 200
HEAD = """title = "t"
replicates = 4
start.offset = 1.0
problem.quadratic = { dimension = 3, clients = 4, spectrum = { from = 0.5, to = 1.5 }, \
gradient-heterogeneity = 1.0, noise = 1.0 }
"""
# Manifests with arguments of `run`: more cells than have a file each, [tune], looks, and algorithms
# in Python.
WRITTEN: list[tuple[str, list[str]]] = [
    (f"""{HEAD}budget.rounds = 100
algorithm.fedavg = [{{ step-size = {[k / 1000 for k in range(1, 121)]}, \
local-steps = {[*range(1, 10)]} }}]
""", []),
    (f"""{HEAD}budget.rounds = 400
tune = {{ over = ["step-size"], range = {{ step-size = [0.05, 0.2] }} }}
algorithm = {{ fedavg = [{{ local-steps = [2, 8] }}], scaffold = [{{ local-steps = [2, 8] }}] }}
""", []),
    (f"""{HEAD}budget.rounds = 3000
algorithm.fedavg = [{{ step-size = [0.05, 0.1], local-steps = 2 }}]
claim.less = [{{ id = "c", statement = "s", left = {{ step-size = 0.05 }}, \
right = {{ step-size = 0.1 }}, factor = 0.45 }}]
""", ["--until-decided", "--max-replicates=64"]),
    (f"""python = ["own.py"]
{HEAD}budget.rounds = 300
algorithm.own = [{{ step-size = [0.05, 0.1, 0.15, 0.2], local-steps = [2, 5] }}]
algorithm.fedavg = [{{ step-size = [0.05, 0.1], local-steps = 5 }}]
""", []),
]  # fmt: skip
CODE = """import exactfed as ef


@ef.algorithm("Fails where the step size is large", kind="own")
def own(clients, theta, gamma, H, server=0.5):
    while True:
        if gamma > 0.18:
            raise ValueError("too large")
        theta = theta + server * (clients.mean(clients.local_steps(theta, gamma, H)) - theta)
        yield theta
"""
SIGNALS = ["KILL", "KILL", "TERM", "INT"]
WRONG = re.compile(
    r"panicked at|overflowed its stack|[Dd]amaged|moved to|"
    r"Traceback.*(?!\n  File \"(own.py|<dynamic-code>)\")\n"
)
HIDDEN = {".lock", ".data", ".moments", ".optima", ".frontiers", ".measures"}
Call = tuple[tuple[Any, ...], dict[str, Any]]


class Fault(Exception):
    """Something that must not happen."""


class Soak:
    """What all cases share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.begin, self.lock = options, time.monotonic(), threading.RLock()
        self.counts, self.children, self.has_ended = Counter[str](), set[int](), False
        self.has_wheel, self.has_emulator = (
            find_spec("exactfed") is not None,
            shutil.which("qemu-x86_64") is not None,
        )

    def say(self, line: str) -> None:
        print(time.strftime("%Y-%m-%d %H:%M:%S"), line, flush=True)

    def summary(self) -> None:
        # `ended` counts runs that a signal ended; the names of ways count runs whose results were
        # the same.
        hours, counts = (time.monotonic() - self.begin) / 3600, dict(sorted(self.counts.items()))
        self.say(f"seed {self.options.seed}, {hours:.2f} hours: {counts}")

    def count(self, **counts: int) -> None:
        with self.lock:
            self.counts.update(counts)

    def manifest(self, number: int) -> str:
        """A random manifest. The tests write a batch of them at once."""
        batch, k = divmod(number, BATCH)
        folder: Path = self.options.work / f"manifests-{self.options.seed}-{batch}"
        with self.lock:
            if not folder.exists():
                new = folder.with_suffix(".new")
                new.mkdir(parents=True, exist_ok=True)
                values = {
                    "SOAK_FOLDER": new,
                    "SOAK_SEED": self.options.seed * 10_000 + batch,
                    "SOAK_COUNT": BATCH,
                }
                variables = os.environ | {name: str(value) for name, value in values.items()}
                command = [*shlex.split(self.options.suite), "--ignored", "--exact", WRITER]
                subprocess.run(
                    command, cwd=ROOT, env=variables, check=True, stdout=subprocess.DEVNULL
                )
                new.rename(folder)
        return (folder / f"{k}.toml").read_text()

    def case(self, number: int) -> None:
        """Runs a case in some of its ways."""
        case, way, k = Case(self, number), "reference", 0
        try:
            case.prepare()
            ways = [case.threads, case.together, case.kills]
            ways += [case.shards] if not case.flags else []
            ways += (
                [case.emulated] if self.has_emulator and not case.own and case.expected < 1 else []
            )
            ways += [case.executor] if self.has_wheel and not case.flags else []
            for k, method in enumerate(case.rng.sample(ways, min(4, len(ways))), 1):
                way, case.rng = method.__name__, random.Random(f"{self.options.seed}/{number}/{k}")
                method()
                case.finish()
                self.count(**{way: 1})
        except Exception as fault:
            if not self.has_ended:
                self.count(faults=1)
                kept = self.options.work / "faults" / f"{self.options.seed}-{number}-{k}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(case.folder, kept, symlinks=True)
                self.say(
                    f"FAULT seed {self.options.seed} case {number} way {k} {way}: {fault!r}; "
                    f"see {kept}"
                )
        shutil.rmtree(case.folder, ignore_errors=True)
        self.count(manifests=1, cells=len(case.digests))

    def interrupt(self) -> None:
        with self.lock:
            self.has_ended = True
            for child in self.children:
                end(child)


class Case:
    """A manifest in a folder of its own, and the digests and failures of its reference."""

    def __init__(self, soak: Soak, number: int) -> None:
        self.soak, self.number, self.rng = (
            soak,
            number,
            random.Random(f"{soak.options.seed}/{number}/0"),
        )
        self.folder = soak.options.work / f"case-{number}"
        self.out = self.folder / "out"
        self.sets, self.flags, self.own = list[str](), list[str](), False
        # How the reference ends, in how many seconds, and what was expected of a longer run.
        self.ends, self.time, self.expected = 0, 0.1, 0.0
        self.digests, self.failures = list[str](), dict[str, str]()

    def prepare(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(SMOKE / "data", self.folder / "data")
        (self.folder / "tmp").mkdir()
        (self.folder / "own.py").write_text(CODE)
        kind = self.rng.random()
        if kind < 0.15:
            text, self.flags = self.rng.choice(WRITTEN if self.soak.has_wheel else WRITTEN[:-1])
            text, self.own = f"seed = {self.rng.randrange(1000)}\n{text}", "own.py" in text
        elif kind < 0.35:
            text = self.rng.choice(sorted(SMOKE.glob("*.toml"))).read_text()
        else:
            text = self.soak.manifest(self.number)
        (self.folder / "m.toml").write_text(text)
        if kind >= 0.15 and self.rng.random() < 0.6:
            # No kill lands in the middle of a short run.
            rounds = self.rng.choice([100, 1000, 10_000])
            keys = {
                r"\[budget\]\nrounds": f"budget.rounds={rounds}",
                r"\[budget\]\nlocal": f"budget.local-steps={5 * rounds}",
            }
            keys |= {
                r"\nevery": f"record.every={rounds // 20}",
                "": f"replicates={self.rng.choice([2, 8])}",
            }
            self.sets = [pair for key, pair in keys.items() if re.search(key, text)]
            _, planned, _ = self.call("plan", may_end=(0, 2))
            about = re.search(r"about ([\d.e]+) (m?s)\b.*\n$", planned)
            self.expected = float(about[1]) / {"s": 1, "ms": 1000}[about[2]] if about else math.inf
            if self.expected > 4:
                self.sets, self.expected = [], 0.0
        begin = time.monotonic()
        self.ends, *_ = self.call("run", "--threads=1", "--out=ref", may_end=(0, 4), deadline=600)
        self.time = time.monotonic() - begin
        self.digests, self.failures = self.stored("ref")
        if (self.ends == 4) != bool(self.failures):
            raise Fault(
                f"the reference ends with {self.ends} and has {len(self.failures)} failed cells"
            )

    def call(
        self,
        command: str,
        *arguments: object,
        cpu: str = "",
        kill: bool = False,
        may_end: tuple[int, ...] = (0,),
        deadline: float = 120,
        rng: random.Random | None = None,
    ) -> tuple[int, str, str]:
        """Runs exactfed, or ends it at a random moment: exit code, output and messages."""
        rng = rng or self.rng
        python, scale = (
            self.own or (self.soak.has_wheel and not cpu and rng.random() < 0.1),
            50 if cpu else 1,
        )
        words = ["qemu-x86_64", "-cpu", cpu] if cpu else []
        words += [sys.executable, "-m", "exactfed"] if python else [str(self.soak.options.program)]
        words.append(command)
        if command == "executor":
            words = [sys.executable, __file__, "--executor"]
        elif command in ("run", "plan"):
            words += ["m.toml", *(f"--set={pair}" for pair in self.sets)]
            words += ["--yes", *self.flags] if command == "run" else []
        words += map(str, arguments)
        note, kills = "", list[tuple[float, str]]()
        if kill:
            after = rng.expovariate(1 / (0.05 + self.time * (10 if cpu else 1))) + 0.6 * (
                python or command == "executor"
            )
            signals = (
                ["KILL"] if command == "executor" else rng.choices(SIGNALS, k=rng.choice([1, 1, 2]))
            )
            kills = [(after, signals[0]), *((rng.expovariate(20), name) for name in signals[1:])]
            may_end = (*may_end, 130, *(-signal.Signals[f"SIG{name}"] for name in signals))
            note = f"  # {kills}"
        with open(self.folder / "commands.sh", "a", encoding="utf-8") as file:
            file.write(shlex.join(words) + note + "\n")
        code, out, err = self.child(words, kills, scale * (deadline + 20 * self.time))
        # INT while Python still starts or imports.
        has_begun = not (kill and err.endswith("\nKeyboardInterrupt\n"))
        wrong = WRONG.search(out + err) if has_begun else None
        if wrong or (has_begun and code not in may_end):
            (self.folder / "message.txt").write_text(
                f"{shlex.join(words)}{note}: {code}\n{out}\n{err}"
            )
            raise Fault(
                f"{command} ends with {code}"
                + (f" and says {wrong[0]!r}" if wrong else f": {err[-200:]}")
            )
        self.soak.count(ended=kill and code not in (0, 4))
        return code, out, err

    def child(
        self, words: list[str], kills: list[tuple[float, str]], deadline: float
    ) -> tuple[int, str, str]:
        """Runs a process. After the deadline it is killed with all that it started."""
        # Files, since what a killed process has started may keep a pipe open.
        with TemporaryFile() as out, TemporaryFile() as err:
            with self.soak.lock:
                if self.soak.has_ended:
                    raise Fault("the soak ends")
                process = subprocess.Popen(
                    words, cwd=self.folder, env=os.environ | {"TMPDIR": str(self.folder / "tmp")},
                    stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                )  # fmt: skip
                self.soak.children.add(process.pid)
            try:
                for after, name in kills:
                    try:
                        process.wait(after)
                    except subprocess.TimeoutExpired:
                        if name == "KILL":
                            end(process.pid)
                        process.send_signal(signal.Signals[f"SIG{name}"])
                process.wait(deadline)
            except subprocess.TimeoutExpired:
                shown = [
                    "ps",
                    "-L",
                    "-s",
                    str(process.pid),
                    "-o",
                    "pid,tid,stat,time,wchan:32,args",
                ]
                with open(self.folder / "hangs.txt", "wb") as file:
                    subprocess.run(shown, stdout=file, check=False)
                raise Fault(
                    f"{shlex.join(words[:3])} … did not end within {deadline:.0f} s"
                ) from None
            finally:
                end(process.pid)
                process.wait()
                with self.soak.lock:
                    self.soak.children.remove(process.pid)
            texts = [(file.seek(0), file.read().decode(errors="replace"))[1] for file in (out, err)]
        return process.returncode, texts[0], texts[1]

    def stored(self, out: str) -> tuple[list[str], dict[str, str]]:
        """The digests of results, and why cells failed."""
        files = sorted((self.folder / out).rglob("*.failed.toml"))
        # Which replicate is the first to fail depends on threads, and the place of the code on
        # workers.
        reasons = {file.name: str(re.findall(r"\w+Error: .*", file.read_text())) for file in files}
        return self.call("digest", out)[1].splitlines(), reasons

    def at_once(self, calls: list[Call]) -> list[tuple[int, str, str]]:
        """Calls at the same time."""
        with ThreadPoolExecutor(len(calls)) as pool:
            seeds = [random.Random(self.rng.random()) for _ in calls]
            futures = [
                pool.submit(self.call, *given, rng=rng, **options)
                for (given, options), rng in zip(calls, seeds, strict=True)
            ]
        return [future.result() for future in futures]

    def run(self, out: str, shard: str = "1/1", **options: Any) -> Call:
        """A call of `run`."""
        part = [f"--shard={shard}"] if shard != "1/1" else []
        return ("run", f"--threads={self.rng.randint(1, 3)}", f"--out={out}", *part), {
            "may_end": (0, 4),
            **options,
        }

    def complete(self, cpu: str = "") -> None:
        """The run after which all is there."""
        given, options = self.run("out", cpu=cpu)
        self.call(*given, **options | {"may_end": (self.ends,)})

    def code(self) -> list[str]:
        return ["--run-code=own.py"] if self.own else []

    # Ways to the same results, each into the folder `out`.

    def threads(self) -> None:
        self.call("run", f"--threads={self.rng.randint(2, 8)}", "--out=out", may_end=(self.ends,))

    def shards(self) -> None:
        """Some at the same time, some killed, and some of another split; merged in any order."""
        count, other, rng = self.rng.randint(2, 6), self.rng.randint(1, 6), self.rng
        splits = [f"{k + 1}/{count}" for k in range(count)] + [
            f"{rng.randint(1, other)}/{other}"
        ] * rng.choice([0, 0, 1])
        rng.shuffle(splits)
        waiting = [self.run(f"part-{k}", split) for k, split in enumerate(splits)]
        while waiting:
            some = [waiting.pop() for _ in range(min(len(waiting), rng.randint(1, 3)))]
            if rng.random() < 0.3:
                self.at_once([(given, {**options, "kill": True}) for given, options in some])
            self.at_once(some)
        # A shard without cells leaves no folder.
        folders = sorted(folder.name for folder in self.folder.glob("part-*"))
        rng.shuffle(folders)
        some = folders[: rng.randint(1, len(folders))]
        self.call("merge", *some, "--out=out", kill=rng.random() < 0.5)
        self.call("merge", *folders, "--out=out")
        if "tune =" in (self.folder / "m.toml").read_text():
            self.complete()

    def together(self) -> None:
        """Runs that share a folder, of which some are killed."""
        most = 1 if self.flags else 3
        counts = [self.rng.randint(1, most) for _ in range(self.rng.randint(2, 4))]
        splits = [f"{self.rng.randint(1, count)}/{count}" for count in counts]
        self.at_once([self.run("out", split, kill=self.rng.random() < 0.4) for split in splits])
        self.complete()

    def kills(self, cpu: str = "") -> None:
        """Kills at random moments, while others read the results."""
        readers = [
            ("digest", "out"),
            ("report", "out", "--out=seen"),
            ("verify", "out", *self.code()),
            ("export", "out", "--out=seen.csv"),
        ]
        for _ in range(self.rng.randint(1, 2 if cpu else 6)):
            calls, reader = [self.run("out", kill=True, cpu=cpu)], self.rng.choice(readers)
            if self.rng.random() < 0.4:
                # There may be nothing to read yet, or a claim without runs.
                calls.append((reader, {"may_end": (0, 1, 2) if reader[0] == "report" else (0, 2)}))
            for _, read, _ in self.at_once(calls)[1:]:
                if reader[0] == "digest" and not set(read.splitlines()) <= set(self.digests):
                    raise Fault("other digests during a run")
        self.complete(cpu)

    def emulated(self) -> None:
        cpu = self.rng.choice(["qemu64", "Nehalem", "Haswell"])
        (self.kills if self.rng.random() < 0.3 else self.complete)(cpu)

    def executor(self) -> None:
        """An executor whose workers are killed, and sometimes its caller too."""
        kinds = ["processes", "processes", "threads"] + ["loky"] * (find_spec("loky") is not None)
        task = {
            "kind": self.rng.choice(kinds),
            "workers": self.rng.randint(2, 4),
            "tasks": self.rng.randint(1, 12),
        }
        task |= {
            "kills": self.rng.choice([0, 1, 3]),
            "seed": self.rng.random(),
            "time": self.time,
            "set": self.sets,
        }
        if self.rng.random() < 0.3:
            self.call("executor", json.dumps(task), kill=True, may_end=(0, 4), deadline=300)
        self.call("executor", json.dumps(task), may_end=(self.ends,), deadline=300)

    # What all results have in common.

    def finish(self) -> None:
        """Compares the results with the reference, and removes them."""
        digests, failures = self.stored("out")
        if (digests, failures) != (self.digests, self.failures):
            of_digests = sorted({*digests} ^ {*self.digests})[:4]
            raise Fault(f"{of_digests} {failures.items() ^ self.failures.items()}")
        checks = self.rng.sample(
            ["verify", "diff", "report", "export", "leftovers"], self.rng.randint(1, 3)
        )
        if "verify" in checks:
            self.call(
                "verify",
                "out",
                *self.code(),
                *self.rng.choice([[], ["--all"]]),
                may_end=(0,) if digests else (0, 2, 4),
            )
        if "diff" in checks:
            what = "worse,diverged,failed,claims,removed,added,underpowered,incomparable,changed"
            self.call(
                "diff", "ref", "out", f"--fail-on={what}", may_end=(0,) if digests else (0, 3)
            )
        if "report" in checks:
            self.same("report", "pages", "--format=html,md,latex")
        if "export" in checks:
            self.same("export", "rows.csv")
        if "leftovers" in checks:
            # Until a second has passed somebody may write them.
            time.sleep(1.1)
            self.complete()
        for file in self.out.rglob("*"):
            is_left = (
                "leftovers" in checks and file.name.startswith(".") and file.name not in HIDDEN
            )
            if is_left or ".damaged-" in file.name:
                raise Fault(f"{file.name} is left")
        for file in self.folder.iterdir():
            if file.name not in ("ref", "data", "tmp", "own.py", "m.toml", "commands.sh"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()

    def same(self, command: str, name: str, *arguments: str) -> None:
        """Reports or exports of the results and of the reference are the same bytes."""
        codes, texts = list[int](), list[dict[str, bytes]]()
        for results in ("ref", "out"):
            made = self.folder / f"{results}-{name}"
            codes.append(
                self.call(command, results, f"--out={made.name}", *arguments, may_end=(0, 1, 2))[0]
            )
            files = [
                file
                for file in [made, *made.rglob("*")]
                if file.is_file() and file.name != "provenance.md"
            ]
            # Which build computed a cell is no part of its numbers.
            found = {
                str(file.relative_to(made)): re.sub(
                    rb",\"*[0-9a-f]{40}\"*,\w+,", b",", file.read_bytes()
                )
                for file in files
            }
            texts.append(found)
        # Pages have the reasons of failures.
        if codes[0] != codes[1] or (
            texts[0] != texts[1] and not (self.failures and command == "report")
        ):
            files = [
                file
                for file in {**texts[0], **texts[1]}
                if texts[0].get(file) != texts[1].get(file)
            ]
            raise Fault(
                f"{command} of the results and of the reference: exit codes {codes}, "
                f"differences {files[:4]}"
            )


def end(group: int) -> None:
    """Kills a process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def execute(task: dict[str, Any]) -> int:
    """Runs a manifest on an executor whose workers are killed at random; a new one goes on."""
    import multiprocessing
    import warnings

    import exactfed as ef

    warnings.simplefilter("ignore")
    rng = random.Random(task["seed"])

    def kill(pool: Any, after: float) -> None:
        time.sleep(after)
        if workers := [*(pool._processes or ())]:
            os.kill(rng.choice(workers), signal.SIGKILL)

    for left in reversed(range(1 + task["kills"])):
        if task["kind"] == "loky":
            import loky  # type: ignore[import-untyped]

            pool = loky.ProcessPoolExecutor(task["workers"])
        elif task["kind"] == "processes":
            pool = ProcessPoolExecutor(task["workers"], multiprocessing.get_context("spawn"))
        else:
            left, pool = 0, ThreadPoolExecutor(task["workers"])
        if left:
            # A worker takes about a second to start.
            after = rng.expovariate(1 / (1 + task["time"]))
            threading.Thread(target=kill, args=(pool, after), daemon=True).start()
        try:
            results = ef.run(
                "m.toml", out="out", set=task["set"], executor=pool, tasks=task["tasks"]
            )
            return 4 if len(results.failures()) else 0
        except ef.CellError:
            return 4
        except ef.ExactfedError as error:
            if not left or "the same call" not in str(error):
                raise
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "target/soak", help="folder of cases and faults"
    )
    parser.add_argument("--only-case", type=int, help="the number of the only case to run")
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/exactfed")
    tests = "cargo test --quiet --release --locked --test suite --"
    parser.add_argument("--suite", default=tests, help="the tests, which write manifests")
    parser.add_argument("--executor", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.executor:
        code = 1
        try:
            code = execute(options.executor)
        except Exception:
            traceback.print_exc()
        # A pool whose worker is killed while it is shut down may wait for ever.
        os._exit(code)
    options.work, options.program = options.work.resolve(), options.program.resolve()
    # A job in the background of a shell ignores INT, and so would what it starts.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.default_int_handler)
    soak, number = Soak(options), options.only_case or 0
    soak.say(f"seed {options.seed}, executors: {soak.has_wheel}, processors: {soak.has_emulator}")
    pool, summed, running = ThreadPoolExecutor(options.jobs), soak.begin, list[Any]()
    try:
        # Kept folders of more faults would fill the disk.
        while time.monotonic() - soak.begin < 3600 * options.hours and soak.counts["faults"] < 50:
            for future in [future for future in running if future.done()]:
                running.remove(future)
                future.result()
            if len(running) < options.jobs:
                running.append(pool.submit(soak.case, number))
                number += 1
                if options.only_case is not None:
                    break
            time.sleep(0.05)
            if time.monotonic() - summed > 600:
                summed = time.monotonic()
                soak.summary()
        pool.shutdown()
    except KeyboardInterrupt:
        soak.interrupt()
        pool.shutdown()
    soak.summary()
    return 1 if soak.counts["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
