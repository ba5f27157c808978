#!/usr/bin/env python3
"""Turns public data sets that you have downloaded into files that exactfed's manifests read.

    scripts/data/convert.py a9a|w8a|rcv1 INPUT OUTPUT.libsvm     LIBSVM text, stays sparse
    scripts/data/convert.py covtype INPUT OUTPUT.npz             LIBSVM text, becomes dense
    scripts/data/convert.py mnist FOLDER OUTPUT.npz              the four IDX files
    scripts/data/convert.py femnist INPUT... OUTPUT.npz          LEAF's JSON files, or their folders

Needs numpy. INPUT may be plain or compressed with gzip, bzip2 or xz. Nothing is downloaded.
Wrong input is reported with its position and exit code 2, and OUTPUT is then not written.
README.md in this folder says where each data set is found and which lines a manifest needs.
"""

import argparse
import array
import bz2
import contextlib
import gzip
import json
import lzma
import math
import os
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

# The features of each LIBSVM file, and the most labels that it has.
LIBSVM = {"a9a": (123, 2), "w8a": (300, 2), "rcv1": (47_236, 2), "covtype": (54, 7)}
MNIST = {"train": 0, "t10k": 1}
PIXELS = 784
FORMATS = [(b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)]
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)


class Wrong(Exception):
    """Input that cannot be converted, and why."""


@contextlib.contextmanager
def opened(path):
    """The decompressed bytes of a file, recognised by its first bytes rather than its name."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
        ways = [way for magic, way in FORMATS if start.startswith(magic)]
        with (ways[0] if ways else open)(path, "rb") as file:
            yield file
    except BROKEN as why:
        raise Wrong(f"{path} cannot be read: {getattr(why, 'strerror', None) or why}") from None


@contextlib.contextmanager
def replacing(path):
    """A temporary file in the same folder, which is renamed to `path` only if nothing failed."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        # mkstemp's files are private; the result has the rights of any new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def number(text, what):
    """A finite number, or what is wrong with it."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Wrong(f"the {what} {text[:40]!r} is not a finite number")
    return value


def record(line, features):
    """The label of a line, and its (index, value), indices rising from 1 to `features`."""
    if "#" in line:
        raise Wrong("comments are not allowed")
    label, *pairs = line.split()
    entries, last = [], 0
    for pair in pairs:
        index, colon, value = pair.partition(":")
        if not (colon and index.isascii() and index.isdigit()):
            raise Wrong(f"{pair[:40]!r} is not index:value")
        index = int(index[:20])
        if not last < index <= features:
            raise Wrong(f"index {index} after {last}: they must rise, from 1 to {features}")
        entries.append((index, number(value, "value")))
        last = index
    return number(label, "label"), entries


def records(path, name):
    """Every line of a LIBSVM file, with its label and entries."""
    features, most = LIBSVM[name]
    seen, largest = set(), 0
    with opened(path) as file:
        for i, raw in enumerate(file, 1):
            try:
                line = raw.decode("ascii").strip()
                if not line:
                    continue
                label, entries = record(line, features)
            except UnicodeDecodeError:
                raise Wrong(f"{path}, line {i}: it is not ASCII text") from None
            except Wrong as why:
                raise Wrong(f"{path}, line {i}: {why}") from None
            seen.add(label)
            largest = max([largest, *(index for index, _ in entries[-1:])])
            if len(seen) > most:
                raise Wrong(f"{path}, line {i}: there are more than {most} labels")
            yield line, label, entries
    if len(seen) < 2:
        labels = "1 label" if seen else "0 labels"
        raise Wrong(f"{path}: there are records of {labels}; {name} has two or more")
    if largest < features:
        print(f"note: the largest index is {largest}, not {features}", file=sys.stderr)


def sparse(name, source, out):
    """Copies LIBSVM text, checked line by line."""
    count = 0
    with replacing(out) as file:
        for line, _, _ in records(source, name):
            file.write(line.encode() + b"\n")
            count += 1
    return f"{count} records"


def save(out, **arrays):
    """Writes a compressed .npz."""
    with replacing(out) as file:
        np.savez_compressed(file, **arrays)
    n, d = arrays["x"].shape
    return f"{n} records of {d} features"


def covtype(source, out):
    """LIBSVM text of few features, as dense arrays."""
    features = LIBSVM["covtype"][0]
    x, y = array.array("f"), array.array("i")
    for _, label, entries in records(source, "covtype"):
        row = [0.0] * features
        for index, value in entries:
            row[index - 1] = value
        x.extend(row)
        y.append(int(label))
    x = np.frombuffer(x, np.float32).reshape(-1, features)
    return save(out, x=x, y=np.frombuffer(y, np.int32))


def idx(path, axes):
    """An IDX file of bytes with so many axes."""
    with opened(path) as file:
        data = file.read()
    if data[:4] != bytes([0, 0, 8, axes]):
        raise Wrong(f"{path}: it is not an IDX file of bytes with {axes} axes")
    begin = 4 + 4 * axes
    shape = [int.from_bytes(data[i : i + 4], "big") for i in range(4, begin, 4)]
    if len(data) != begin + math.prod(shape):
        needed = begin + math.prod(shape)
        raise Wrong(f"{path}: it has {len(data)} bytes, but its shape {shape} needs {needed}")
    return np.frombuffer(data, np.uint8, offset=begin).reshape(shape)


def one_of(folder, stem):
    """The file of this name in a folder, compressed or not; some copies have a dot for a dash."""
    axes = 3 if "images" in stem else 1
    ends = ("", ".gz", ".bz2", ".xz")
    names = [f"{stem}{mark}idx{axes}-ubyte{end}" for mark in "-." for end in ends]
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        raise Wrong(f"{folder}: there is no {stem}-idx{axes}-ubyte, with or without .gz")
    return idx(found[0], axes)


def mnist(folder, out):
    """The training and the test images; `test` is 1 for the latter."""
    images, labels, test = [], [], []
    for part, held_out in MNIST.items():
        x, y = one_of(folder, f"{part}-images"), one_of(folder, f"{part}-labels")
        if x.shape[1:] != (28, 28):
            shape = f"{x.shape[1]} × {x.shape[2]}"
            raise Wrong(f"{folder}: the {part} images have {shape} pixels, not 28 × 28")
        if len(x) != len(y):
            raise Wrong(f"{folder}: there are {len(x)} {part} images and {len(y)} labels")
        if len(y) == 0 or y.max() > 9:
            raise Wrong(f"{folder}: the {part} labels are not digits")
        images.append(x.reshape(-1, PIXELS))
        labels.append(y)
        test.append(np.full(len(y), held_out, np.int32))
    x = np.concatenate(images).astype(np.float32) / np.float32(255)
    return save(out, x=x, y=np.concatenate(labels).astype(np.int32), test=np.concatenate(test))


def json_files(paths):
    """The files, and those of the folders, in the order of their names."""
    for path in paths:
        inside = sorted(path.glob("*.json*")) if path.is_dir() else [path]
        if not inside:
            raise Wrong(f"{path}: there is no .json file in this folder")
        yield from inside


def images_of(path, user, data):
    """The images and labels of one user."""
    try:
        x, y = np.asarray(data["x"], np.float32), np.asarray(data["y"])
    except (KeyError, TypeError, ValueError):
        raise Wrong(f"{path}: user {user!r} has no arrays x and y of numbers") from None
    said = f"{path}: user {user!r} has"
    if y.ndim != 1 or len(y) == 0 or x.shape != (len(y), PIXELS):
        expected = f"(n, {PIXELS}) and (n,)"
        raise Wrong(f"{said} x of shape {x.shape} and y of shape {y.shape}, not {expected}")
    if y.dtype.kind != "i" or y.min() < 0 or y.max() > 61:
        raise Wrong(f"{said} a label that is not a whole number from 0 to 61")
    if not np.isfinite(x).all():
        raise Wrong(f"{said} a pixel that is not a finite number")
    return x, y.astype(np.int32)


def users_of(path):
    """The users of one JSON file, with their images and labels."""
    try:
        with opened(path) as file:
            whole = json.load(file)
        users, data = whole["users"], whole["user_data"]
        pairs = [(user, data[user]) for user in users]
    except (ValueError, KeyError, TypeError, RecursionError) as why:
        form = "it is not LEAF's JSON with `users` and `user_data`"
        raise Wrong(f"{path}: {form} ({type(why).__name__}: {why})") from None
    for user, own in pairs:
        yield user, *images_of(path, user, own)


def femnist(sources, tests, out):
    """One client per user, numbered in the order of first appearance; `test` is 1 for the
    records of `tests`."""
    clients, seen, parts = {}, set(), []
    for held_out, paths in enumerate((sources, tests)):
        for path in json_files(paths):
            for user, x, y in users_of(path):
                if held_out and user not in clients:
                    raise Wrong(f"{path}: user {user!r} has no records for training")
                if (held_out, user) in seen:
                    raise Wrong(f"{path}: user {user!r} is there twice")
                seen.add((held_out, user))
                client = clients.setdefault(user, len(clients))
                full = [np.full(len(y), value, np.int32) for value in (client, held_out)]
                parts.append((x, y, *full))
    if not parts:
        raise Wrong("there are no users")
    x, y, client, test = (np.concatenate(column) for column in zip(*parts, strict=True))
    held = {"test": test} if tests else {}
    return save(out, x=x, y=y, client=client, **held) + f", {len(clients)} clients"


def parsed(arguments):
    """The command line; argparse ends with exit code 2 where it is wrong."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    commands = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name in [*LIBSVM, "mnist", "femnist"]:
        command = commands.add_parser(name)
        many = {"nargs": "+"} if name == "femnist" else {}
        command.add_argument("input", type=Path, **many)
        command.add_argument("output", type=Path)
        if name == "femnist":
            command.add_argument("--test", type=Path, nargs="+", default=[], metavar="INPUT")
    chosen = parser.parse_args(arguments)
    ending = ".libsvm" if chosen.name in ("a9a", "w8a", "rcv1") else ".npz"
    if chosen.output.suffix != ending:
        parser.error(f"the name of the output must end in {ending}")
    return chosen


def main(arguments):
    chosen = parsed(arguments)
    name, source, out = chosen.name, chosen.input, chosen.output
    try:
        if name == "mnist":
            done = mnist(source, out)
        elif name == "femnist":
            done = femnist(source, chosen.test, out)
        elif name == "covtype":
            done = covtype(source, out)
        else:
            done = sparse(name, source, out)
    except Wrong as why:
        fail(why)
    except OSError as why:
        fail(f"{out} cannot be written: {why.strerror or why}")
    print(f"{out}: {done}")


def fail(why):
    print(f"error: {why}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
