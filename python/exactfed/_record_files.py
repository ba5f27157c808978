"""Records from files, for problems in Python: LIBSVM text and archives of NumPy."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ._arrays import record_arrays

#: Features, labels and, where the file has them, the client of each record.
Records = tuple[NDArray[np.float64], NDArray[np.generic], NDArray[np.generic] | None]


def read_records(path: Path) -> Records:
    """The records of a file: features (n, d), labels (n,) and the client of each record, or None.

    Raises
    ------
    ValueError
        If the file is missing, is not what its ending says, or has a number that is not finite. The
        message names the file, and the line of a text that cannot be read.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        if path.suffix == ".npz":
            return _read_archive(path)
        return _read_libsvm(path)
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _read_archive(path: Path) -> Records:
    """The arrays ``x``, ``y`` and ``client`` of an ``.npz`` file."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an .npz file")
    with np.load(path, allow_pickle=False) as archive:
        if "x" not in archive:
            raise ValueError(f'{path} has no array "x" (n, d), only {", ".join(archive.files)}')
        wanted = [name for name in ("x", "y", "client") if name in archive]
        try:
            given = {name: archive[name] for name in wanted}
        except ValueError as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
    arrays = dict(record_arrays(given, str(path)))
    return arrays["x"], arrays["y"], arrays.get("client")


def _read_libsvm(path: Path) -> Records:
    """The records of ``label index:value …`` in each line, with rising indices.

    Indices are counted from 1, or from 0 in a file in which the index 0 occurs.
    """
    labels: list[float] = []
    lengths: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                labels.append(float(words[0]))
                pairs = [word.split(":") for word in words[1:]]
                own_indices = [int(index) for index, _ in pairs]
                values += [float(value) for _, value in pairs]
            except ValueError:
                raise ValueError(
                    f"{path}: line {number} is not label index:value …, with numbers"
                ) from None
            if own_indices and (own_indices[0] < 0 or own_indices != sorted(set(own_indices))):
                raise ValueError(f"{path}: the indices of line {number} do not rise from 0 or 1")
            indices += own_indices
            lengths.append(len(pairs))
    if not indices:
        raise ValueError(f"{path} has no records of LIBSVM")
    is_from_one = 0 not in indices
    features = max(indices) + (0 if is_from_one else 1)
    try:
        x = np.zeros((len(labels), features))
    except (MemoryError, OverflowError, ValueError):
        raise ValueError(
            f"{path} has {len(labels)} records with up to {features} features, whose zeros are "
            "stored too: there is no memory for them"
        ) from None
    x[np.repeat(np.arange(len(labels)), lengths), np.array(indices) - is_from_one] = values
    arrays = dict(record_arrays({"x": x, "y": labels}, str(path)))
    return arrays["x"], arrays["y"], None
