#!/usr/bin/env python3
"""Checks convert.py on small files of the same form as the public ones.

    scripts/data/check.py [EXACTFED]

Needs numpy. Each conversion runs as a user would run it, and numpy compares the result with
what went in; wrong input must end with exit code 2, a message and no file. If a exactfed
program is given, it also has to accept the manifest lines of README.md with each file. Prints
one line per check; exit code 1 if one fails.
"""

import bz2
import gzip
import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CONVERT = Path(__file__).resolve().parent / "convert.py"
RNG = np.random.default_rng(1)
failures = []


def convert(*arguments):
    command = [sys.executable, CONVERT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def report(name, wrong):
    print(f"{'FAILED' if wrong else 'ok':6}  {name}{': ' + wrong if wrong else ''}")
    if wrong:
        failures.append(name)


def converted(name, compare, *arguments):
    """Runs a conversion; `compare` returns what is wrong with its output, or an empty text."""
    done = convert(*arguments)
    report(name, done.stderr.strip() if done.returncode else compare(arguments[-1]))


def refused(name, message, *arguments):
    """Runs a conversion that must end with exit code 2 and this message and write nothing."""
    folder = Path(arguments[-1]).parent
    before = sorted(folder.iterdir())
    done = convert(*arguments)
    wrong = []
    if done.returncode != 2:
        wrong.append(f"exit code {done.returncode}")
    if message not in done.stderr or "Traceback" in done.stderr:
        wrong.append(f"it printed {done.stderr.strip()!r}")
    if sorted(folder.iterdir()) != before:
        wrong.append("something was written")
    report(f"{name} is refused", ", ".join(wrong))


def sparse(n, d, nonzeros, labels):
    """Random records: a dense matrix with few non-zeros, labels, and their LIBSVM text."""
    x = np.zeros((n, d))
    for row in x:
        row[RNG.permutation(d)[:nonzeros]] = RNG.normal(size=nonzeros).round(4)
    x[0, d - 1] = 0.5
    y = RNG.permutation(np.resize(labels, n))
    lines = []
    for row, label in zip(x, y, strict=True):
        pairs = " ".join(f"{j + 1}:{row[j]}" for j in np.flatnonzero(row))
        lines.append(f"{label:+d} {pairs} \n" if -1 in labels else f"{label} {pairs}\n")
    return x, y, "".join(lines)


def dense(path, d):
    """LIBSVM text as arrays, read in another way than convert.py reads it."""
    lines = [line.split() for line in path.read_text().splitlines()]
    x = np.zeros((len(lines), d))
    for row, (_, *pairs) in zip(x, lines, strict=True):
        for pair in pairs:
            j, value = pair.split(":")
            row[int(j) - 1] = float(value)
    return x, np.array([float(line[0]) for line in lines])


def same(got, expected):
    """What differs between arrays, by name."""
    wrong = [f"it has {sorted(got)}, not {sorted(expected)}"] if set(got) != set(expected) else []
    for name in set(got) & set(expected):
        a, b = got[name], expected[name]
        if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b):
            wrong.append(f"`{name}` differs ({a.dtype} {a.shape}, {b.dtype} {b.shape})")
    return ", ".join(wrong)


def npz(**expected):
    def compare(path):
        with np.load(path) as arrays:
            return same(dict(arrays), expected)

    return compare


def check_libsvm(work):
    ways = {
        "a9a": (123, 14, bytes, ""),
        "w8a": (300, 12, gzip.compress, ".gz"),
        "rcv1": (47_236, 75, bz2.compress, ".bz2"),
    }
    for name, (d, nonzeros, pack, end) in ways.items():
        x, y, text = sparse(40, d, nonzeros, [-1, 1])
        source = work / f"{name}{end}"
        source.write_bytes(pack(text.encode()))

        def compare(path, d=d, x=x, y=y):
            got = dense(path, d)
            return same({"x": got[0], "y": got[1]}, {"x": x, "y": y.astype(float)})

        converted(name, compare, name, source, work / f"{name}.libsvm")
    x, y, text = sparse(40, 54, 12, [1, 2, 3])
    (work / "covtype.xz").write_bytes(lzma.compress(text.encode()))
    expected = npz(x=x.astype(np.float32), y=y.astype(np.int32))
    converted("covtype", expected, "covtype", work / "covtype.xz", work / "covtype.npz")


def check_wrong_libsvm(work):
    (work / "kept").mkdir()
    out = work / "kept/wrong.libsvm"
    for what, text, message in [
        ("an index beyond d", "+1 1:1\n-1 124:1\n", "line 2: index 124 after 0"),
        ("an index of 0", "+1 0:1\n", "line 1: index 0"),
        ("falling indices", "+1 3:1 2:1\n", "line 1: index 2 after 3"),
        ("a repeated index", "+1 3:1 3:1\n", "line 1: index 3 after 3"),
        ("a value that is text", "+1 3:x\n", "line 1: the value 'x' is not a finite number"),
        ("an infinite value", "+1 3:1e999\n", "line 1: the value '1e999'"),
        ("a label that is text", "yes 3:1\n", "line 1: the label 'yes'"),
        ("CSV", "1,2,3\n", "line 1: the label '1,2,3'"),
        ("a comment", "# a9a\n+1 3:1\n", "line 1: comments are not allowed"),
        ("a third label", "1 1:1\n2 1:1\n3 1:1\n", "line 3: there are more than 2 labels"),
        ("one label", "1 1:1\n1 1:1\n", "there are records of 1 label"),
        ("an empty file", "", "there are records of 0 labels"),
        ("text that is not ASCII", "+1 3:é\n", "line 1: it is not ASCII text"),
    ]:
        (work / "wrong").write_text(text, encoding="utf-8")
        refused(f"LIBSVM: {what}", message, "a9a", work / "wrong", out)
    (work / "wrong").write_bytes(bz2.compress(b"+1 3:1\n-1 4:1\n" * 1000)[:-20])
    refused("a truncated archive", "cannot be read", "a9a", work / "wrong", out)
    refused("a missing file", "No such file", "a9a", work / "nowhere", out)
    refused("another ending", "must end in .libsvm", "a9a", work / "a9a", work / "kept/a9a.npz")


def idx(array):
    axes = b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + axes + array.astype(np.uint8).tobytes()


def check_mnist(work):
    folder, out = work / "mnist", work / "mnist.npz"
    folder.mkdir()
    parts = {}
    for part, n in (("train", 30), ("t10k", 20)):
        images = RNG.integers(0, 256, (n, 28, 28))
        labels = np.resize(np.arange(10), n)
        parts[part] = images.reshape(n, 784), labels
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    (x, y), (tx, ty) = parts.values()
    expected = npz(
        x=np.concatenate([x, tx]).astype(np.float32) / np.float32(255),
        y=np.concatenate([y, ty]).astype(np.int32),
        test=np.repeat([0, 1], [30, 20]).astype(np.int32),
    )
    converted("mnist", expected, "mnist", folder, out)
    labels, kept = folder / "train-labels-idx1-ubyte.gz", work / "kept/wrong.npz"
    for what, data, message in [
        ("too few labels", idx(y[:-1]), "there are 30 train images and 29 labels"),
        ("images for labels", idx(x.reshape(-1, 28, 28)), "not an IDX file of bytes with 1 ax"),
        ("a short file", idx(y)[:-1], "its shape [30] needs 38"),
        ("labels above 9", idx(y + 10), "the train labels are not digits"),
    ]:
        labels.write_bytes(gzip.compress(data))
        refused(f"MNIST: {what}", message, "mnist", folder, kept)
    labels.write_bytes(gzip.compress(idx(y))[:-9])
    refused("MNIST: a truncated archive", "cannot be read", "mnist", folder, kept)
    labels.unlink()
    refused("MNIST: a missing file", "there is no train-labels-idx1-ubyte", "mnist", folder, kept)


def leaf(path, users):
    data = {user: {"x": x.tolist(), "y": y.tolist()} for user, (x, y) in users.items()}
    sizes = [len(y) for _, y in users.values()]
    path.write_text(json.dumps({"users": [*users], "num_samples": sizes, "user_data": data}))


def check_femnist(work):
    def user(n):
        return RNG.uniform(size=(n, 784)).round(3), RNG.integers(0, 62, n)

    train = {f"f{i:04}_{i}": user(3 + i) for i in range(5)}
    test = {name: user(2) for name in reversed(train)}
    (work / "leaf").mkdir()
    names = [*train]
    for k, own in enumerate((names[:2], names[2:])):
        leaf(work / f"leaf/all_data_{k}.json", {name: train[name] for name in own})
    leaf(work / "leaf-test.json", test)

    def arrays(users):
        sizes = [len(y) for _, y in users.values()]
        x = np.concatenate([x for x, _ in users.values()]).astype(np.float32)
        y = np.concatenate([y for _, y in users.values()]).astype(np.int32)
        client = np.repeat([names.index(name) for name in users], sizes).astype(np.int32)
        return {"x": x, "y": y, "client": client}

    first, second = arrays(train), arrays(test)
    both = {name: np.concatenate([first[name], second[name]]) for name in first}
    both["test"] = np.repeat([0, 1], [len(first["y"]), 10]).astype(np.int32)
    converted("femnist", npz(**first), "femnist", work / "leaf", work / "femnist.npz")
    converted(
        "femnist with a test part",
        npz(**both),
        "femnist",
        "--test",
        work / "leaf-test.json",
        "--",
        work / "leaf",
        work / "femnist-test.npz",
    )
    out, wrong = work / "kept/wrong.npz", work / "wrong.json"
    one = {"x": [[0.5] * 784], "y": [3]}
    for what, text, message in [
        ("text", "hello", "it is not LEAF's JSON"),
        ("no users", json.dumps({"user_data": {}}), "it is not LEAF's JSON"),
        ("an empty list", json.dumps({"users": [], "user_data": {}}), "there are no users"),
        ("a user without data", json.dumps({"users": ["a"], "user_data": {}}), "KeyError: 'a'"),
        (
            "the same user twice",
            json.dumps({"users": ["a", "a"], "user_data": {"a": one}}),
            "user 'a' is there twice",
        ),
        *(
            (what, json.dumps({"users": ["a"], "user_data": {"a": one | change}}), message)
            for what, change, message in [
                ("few pixels", {"x": [[0.5] * 783]}, "x of shape (1, 783)"),
                ("ragged pixels", {"x": [[0.5] * 784, [0.5]]}, "no arrays x and y of numbers"),
                ("fewer labels", {"y": []}, "y of shape (0,)"),
                ("one label for all", {"y": 3}, "y of shape ()"),
                ("a label of 62", {"y": [62]}, "not a whole number from 0 to 61"),
                ("a pixel that is NaN", {"x": [[float("nan")] * 784]}, "not a finite number"),
            ]
        ),
    ]:
        wrong.write_text(text)
        refused(f"FEMNIST: {what}", message, "femnist", wrong, out)
    (work / "empty").mkdir()
    refused("FEMNIST: an empty folder", "there is no .json file", "femnist", work / "empty", out)


MANIFEST = """title = "check"
seed = 1
replicates = 1

[problem.{kind}]
l2 = 0.1
[problem.{kind}.dataset]
file = "{file}"
{split}

[start]
zero = true

[budget]
rounds = 1

[[algorithm.fedavg]]
step-size = 1e-3
local-steps = 1
"""


def check_with(program, work):
    """The files in manifests, up to what needs an optimum at 47 236 features."""
    by_user = 'split = { column = "client" }'
    for kind, file, split in [
        ("logistic-dataset", "a9a.libsvm", "clients = 2"),
        ("logistic-dataset", "w8a.libsvm", "clients = 2"),
        ("least-squares-dataset", "covtype.npz", "clients = 2"),
        ("least-squares-dataset", "mnist.npz", "clients = 2"),
        ("least-squares-dataset", "femnist.npz", by_user),
    ]:
        manifest = work / "check.toml"
        manifest.write_text(MANIFEST.format(kind=kind, file=file, split=split))
        command = [program, "check", manifest]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=work)
        wrong = (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else ""
        report(f"exactfed reads {file}", wrong)


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        check_libsvm(work)
        check_wrong_libsvm(work)
        check_mnist(work)
        check_femnist(work)
        for program in sys.argv[1:2]:
            check_with(Path(program).resolve(), work)
    print(f"{len(failures)} failed" if failures else "all hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
