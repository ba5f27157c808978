"""Arrays and frames as the bytes of an ``.npz`` file, for problems from data in memory."""

from __future__ import annotations

import decimal
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

_EXTENSIONS = (".csv", ".parquet", ".libsvm", ".svm", ".txt")
_LARGEST_EXACT = 2**53


def in_memory(arrays: Mapping[str, Any] | None) -> dict[str, bytes]:
    """The data files of ``run(manifest, arrays=…)``: the field ``Source::in_memory`` in Rust.

    Parameters
    ----------
    arrays
        By the name that the manifest writes as ``file = "<name>"``, what :func:`to_npz` takes, or
        the bytes of an ``.npz`` file.

    Returns
    -------
    dict
        The bytes of a file for each name. The identifier of a cell depends on these bytes and not
        on the name; results keep a copy of them, whatever their size.

    Raises
    ------
    TypeError, ValueError
        As :func:`to_npz`, or for a name that ends as a file of another format does.
    """
    return {name: _file(name, value) for name, value in (arrays or {}).items()}


def to_npz(value: Any, name: str = "arrays") -> bytes:
    """The bytes of an ``.npz`` file that depend on the numbers alone.

    Numbers become little-endian float64 in C order, sparse indices int64, texts UTF-32; the
    archive is not compressed and has fixed dates. So the same numbers as float32, strided, in
    Fortran order, as integers, as truth values or as lists give the same bytes.

    Parameters
    ----------
    value
        One of

        * a mapping with ``x`` (n, d), a dense array or a sparse matrix of SciPy, ``y`` (n,) and any
          further arrays (n,), such as ``client``: records, with features ``x`` and labels ``y``.
          Labels and further arrays are numbers or texts, features are numbers;
        * a mapping of columns (n,), or a frame of Polars or pandas: records whose columns the
          manifest names, numbers or texts, in this order. NaN, None, NaT and empty texts are
          missing values, of which the key ``missing`` decides. Columns of dates, durations and
          other objects are an error only where the manifest uses them;
        * a mapping of other arrays of numbers, such as ``A`` (N, m, d, d), ``b`` (N, m, d) and
          ``p`` (N, m) of ``[problem.atoms]``.
    name
        What messages call the value.

    Raises
    ------
    TypeError
        If the value or an array is of another type.
    ValueError
        If a number is infinite or, outside of columns, NaN; if a whole number is beyond 2^53, or a
        shape or a length is wrong. The message names the array and the index.

    Examples
    --------
    >>> a = to_npz({"x": [[0.5, 1.0], [2.0, 3.0]], "y": [0, 1]})
    >>> x = np.asfortranarray(np.array([[0.5, 1.0], [2.0, 3.0]], dtype=">f4"))
    >>> to_npz({"y": np.array([False, True]), "x": x}) == a
    True
    >>> to_npz({"x": [[0.5, float("nan")], [2.0, 3.0]], "y": [0, 1]}, "mine")
    Traceback (most recent call last):
    ValueError: mine["x"][0, 1] is nan; every number must be finite, and nothing is filled in
    """
    columns = _frame_columns(value)
    if columns is not None:
        return _archive(_table(columns, name))
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} is {_kind(value)}; expected a dict of arrays by name, such as "
            '{"x": …, "y": …}, or a frame of Polars or pandas'
        )
    _check_names(value, name)
    if "x" in value:
        return _archive(record_arrays(value, name))
    if len(value) > 1 and all(_has_one_axis(array) for array in value.values()):
        return _archive(_table(value.items(), name))
    arrays = {key: _array(array, f'{name}["{key}"]') for key, array in value.items()}
    for key, array in arrays.items():
        if array.dtype.kind == "U":
            raise TypeError(f'{name}["{key}"] holds text; only columns (n,) may')
    return _archive(sorted(arrays.items()))


def _file(name: str, value: Any) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"the names of arrays are str, not {_kind(name)}")
    if name.lower().endswith(_EXTENSIONS):
        raise ValueError(
            f'"{name}" is the name of another format; arrays take a name without an extension, '
            "or with .npz"
        )
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return to_npz(value, f'arrays["{name}"]')


def _kind(value: Any) -> str:
    kind = type(value)
    plain = kind.__module__ in ("builtins", "__main__")
    return f"of type {kind.__qualname__ if plain else f'{kind.__module__}.{kind.__qualname__}'}"


def _frame_columns(value: Any) -> Iterator[tuple[str, Any]] | None:
    """The names and columns of a frame of Polars or pandas; ``None`` for anything else."""
    if hasattr(value, "collect_schema") and hasattr(value, "collect"):
        raise TypeError("a lazy frame holds no rows; .collect() it first")
    if hasattr(value, "iloc") and hasattr(value, "columns"):
        return ((name, value.iloc[:, j]) for j, name in enumerate(value.columns))
    if hasattr(value, "get_column"):
        return ((name, value.get_column(name)) for name in value.columns)
    return None


def _has_one_axis(value: Any) -> bool:
    try:
        return np.ndim(value) == 1
    except (TypeError, ValueError):
        return False


def _check_names(value: Mapping[Any, Any], name: str) -> None:
    if not value:
        raise ValueError(f"{name} has no array")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"the names in {name} are str; {key!r} is {_kind(key)}")


def _table(columns: Iterable[tuple[str, Any]], name: str) -> list[tuple[str, np.ndarray]]:
    out: dict[str, np.ndarray] = {}
    for key, column in columns:
        if not isinstance(key, str):
            raise TypeError(f"the columns of {name} are named by str; {key!r} is {_kind(key)}")
        if key in out:
            raise ValueError(f'{name} has two columns "{key}"')
        out[key] = _column(column, f'{name}["{key}"]')
    if len(out) < 2:
        raise ValueError(
            f"{name} has {len(out)} columns; records have at least a feature and a label"
        )
    first, rows = next((key, len(array)) for key, array in out.items())
    for key, array in out.items():
        _check_rows(array, f'{name}["{key}"]', rows, f'"{first}"')
    return list(out.items())


def record_arrays(value: Mapping[str, Any], name: str) -> list[tuple[str, np.ndarray]]:
    """The arrays of records with ``x`` (n, d) and ``y`` (n,), sorted by name.

    :func:`to_npz` says what they may be. A sparse ``x`` becomes several arrays.
    """
    x, out = value["x"], {}
    if _is_sparse(x):
        out = _sparse(x, f'{name}["x"]')
        rows = x.shape[0]
    else:
        array = _array(x, f'{name}["x"]')
        if array.dtype.kind == "U":
            raise TypeError(f'{name}["x"] holds text; features are numbers')
        if array.ndim != 2:
            raise ValueError(f'{name}["x"] has the shape {array.shape}; expected (n, d)')
        out["x"], rows = array, len(array)
    if "y" not in value:
        raise ValueError(f'{name} has "x" but no labels "y" (n,), only {", ".join(sorted(value))}')
    for key, array in value.items():
        where = f'{name}["{key}"]'
        if key == "x":
            continue
        if key in out:
            raise ValueError(f"{where} has the name of a part of the sparse matrix; rename it")
        out[key] = _array(array, where)
        _check_rows(out[key], where, rows, '"x"')
    return sorted(out.items())


def _check_rows(array: np.ndarray, where: str, rows: int, other: str) -> None:
    if array.ndim != 1:
        raise ValueError(f"{where} has the shape {array.shape}; expected (n,) = ({rows},)")
    if len(array) != rows:
        raise ValueError(f"{where} has {len(array)} values, but {other} has {rows} rows")
    if rows == 0:
        raise ValueError(f"{where} is empty")


def _is_sparse(value: Any) -> bool:
    return type(value).__module__.split(".")[:2] == ["scipy", "sparse"] and hasattr(value, "tocsr")


def _sparse(matrix: Any, where: str) -> dict[str, np.ndarray]:
    """Compressed sparse rows as ``scipy.sparse.save_npz`` writes them, without stored zeros."""
    if len(matrix.shape) != 2:
        raise ValueError(f"{where} has the shape {matrix.shape}; expected (n, d)")
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    values = _array(rows.data, f"{where}.data")
    rows = type(rows)((values, rows.indices, rows.indptr), shape=rows.shape)
    rows.eliminate_zeros()
    return {
        "data": rows.data,
        "format": np.array("csr", dtype="<U3"),
        "indices": rows.indices.astype("<i8"),
        "indptr": rows.indptr.astype("<i8"),
        "shape": np.array(rows.shape, dtype="<i8"),
    }


def _array(value: Any, where: str) -> np.ndarray:
    """A C-ordered little-endian array of finite float64, or of texts."""
    if _is_sparse(value):
        raise TypeError(f'{where} is a sparse matrix; only "x" may be one')
    if isinstance(value, (str, bytes, Mapping)) or value is None:
        raise TypeError(f"{where} is {_kind(value)}; expected an array of numbers")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} is not an array of one shape: {error}") from error
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        at = _index(np.ma.getmaskarray(value))
        raise ValueError(f"{where}{at} is masked; nothing is filled in")
    if array.dtype.kind in "OT":
        return _objects(array, where)
    if array.dtype.kind == "U":
        return _texts(array, where)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{where} has the type {array.dtype}; expected real numbers")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        beyond = array > _LARGEST_EXACT
        if array.dtype.kind == "i":
            beyond |= array < -_LARGEST_EXACT
        _refuse_beyond(beyond, where)
    wide = np.ascontiguousarray(array, dtype="<f8").reshape(array.shape)
    infinite = ~np.isfinite(wide)
    if infinite.any():
        which = wide[infinite].flat[0]
        raise ValueError(
            f"{where}{_index(infinite)} is {which}; every number must be finite, and nothing is "
            "filled in"
        )
    return wide


def _column(value: Any, where: str) -> np.ndarray:
    """A column of a table, which may lack values and may hold what is not read."""
    array = value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    if array.ndim != 1:
        return _array(value, where)
    if array.dtype.kind in "Mm":
        return array.astype(array.dtype.newbyteorder("<"))
    if isinstance(array, np.ma.MaskedArray):
        array = array.astype(object).filled(None)
    if array.dtype.kind == "f":
        _refuse_infinite(array, where)
        return np.ascontiguousarray(array, dtype="<f8")
    if array.dtype.kind not in "OTU":
        return _array(array, where)
    flat = [None if _is_missing(entry) else _plain(entry) for entry in array.tolist()]
    known_values = [entry for entry in flat if entry is not None]
    if all(isinstance(entry, str) for entry in known_values):
        texts = np.array(["" if entry is None else entry for entry in flat], dtype=str)
        longest = int(np.char.str_len(texts).max(initial=1))
        return np.ascontiguousarray(texts, dtype=f"<U{max(longest, 1)}")
    if all(isinstance(entry, _NUMBERS) for entry in known_values):
        beyond = [isinstance(entry, int) and abs(entry) > _LARGEST_EXACT for entry in flat]
        _refuse_beyond(np.array(beyond, dtype=bool), where)
        numbers = np.array([np.nan if entry is None else entry for entry in flat], dtype="<f8")
        _refuse_infinite(numbers, where)
        return numbers
    return np.zeros(len(flat), dtype="V1")


_NUMBERS = (bool, int, float, np.number, np.bool_)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value


def _is_missing(value: Any) -> bool:
    missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    return missing or (isinstance(value, float) and value != value)


def _refuse_infinite(array: np.ndarray, where: str) -> None:
    infinite = np.isinf(array)
    if infinite.any():
        which = array[infinite].flat[0]
        raise ValueError(f"{where}{_index(infinite)} is {which}; every number must be finite")


def _objects(array: np.ndarray, where: str) -> np.ndarray:
    """Texts or numbers that a frame or a list keeps as objects."""
    flat = array.ravel().tolist()
    has_texts = any(isinstance(value, str) for value in flat)
    wanted = str if has_texts else (bool, int, float, np.number, np.bool_)

    def place(i: int) -> str:
        return where + _index(np.arange(len(flat)).reshape(array.shape) == i)

    for i, value in enumerate(flat):
        no_number = value is None or type(value).__name__ in ("NAType", "NaTType")
        if no_number or (has_texts and value != value):
            raise ValueError(f"{place(i)} is missing; nothing is filled in")
        if not isinstance(value, wanted):
            raise TypeError(
                f"{where} has the type {array.dtype}: {place(i)} is {_kind(value)}; expected "
                "numbers alone, or texts alone"
            )
    if has_texts:
        return _texts(np.array(flat, dtype=str).reshape(array.shape), where)
    beyond = [isinstance(value, int) and abs(value) > _LARGEST_EXACT for value in flat]
    _refuse_beyond(np.array(beyond, dtype=bool).reshape(array.shape), where)
    return _array(np.array(flat, dtype=np.float64).reshape(array.shape), where)


def _texts(array: np.ndarray, where: str) -> np.ndarray:
    empty = np.char.str_len(array) == 0
    if empty.any():
        raise ValueError(f"{where}{_index(empty)} is an empty text; nothing is filled in")
    longest = int(np.char.str_len(array).max(initial=1))
    return np.ascontiguousarray(array, dtype=f"<U{longest}").reshape(array.shape)


def _refuse_beyond(marks: np.ndarray, where: str) -> None:
    if marks.any():
        raise ValueError(
            f"{where}{_index(marks)} is beyond 2^53, which float64 cannot tell from others"
        )


def _index(marks: np.ndarray) -> str:
    """The index of the first entry that is marked, as Python writes it."""
    if marks.ndim == 0:
        return ""
    return f"[{', '.join(str(int(i)) for i in np.argwhere(marks)[0])}]"


def _archive(arrays: Iterable[tuple[str, np.ndarray]]) -> bytes:
    """A zip archive whose bytes depend on the names, their order, and the arrays alone."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays:
            about = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            about.create_system = 3
            about.external_attr = 0o644 << 16
            with archive.open(about, "w", force_zip64=array.nbytes >= 1 << 31) as entry:
                entry.write(_header(array))
                entry.write(array.reshape(-1).view(np.uint8).data)
    return out.getvalue()


def _header(array: np.ndarray) -> bytes:
    """The header of an ``.npy`` file; that of NumPy differs between its versions."""
    sizes = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': ({sizes}), }}"
    padded = text + " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode("ascii")
