"""Parquet tables as data: numbers are read as they are; columns of other types block nothing."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import exactfed as ef
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N = 24
SMALL = [i % 5 for i in range(N)]
BASE: dict[str, Any] = {
    "a": [float(x) for x in SMALL],
    "b": [i * 0.37 % 1.0 for i in range(N)],
    "label": [i % 2 for i in range(N)],
}
MANIFEST = """
title = "Records of a table"
seed = 1
replicates = 1
[problem.logistic-dataset]
dataset = { file = "records.parquet", clients = 4, split = "iid" }
l2 = 0.1
[start]
zero = true
[budget]
rounds = 3
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2
"""


def said(
    folder: Path,
    *,
    manifest: str = MANIFEST,
    store_schema: bool = True,
    decimals_as_integers: bool = False,
    **columns: Any,
) -> str:
    """What is wrong with a table with these columns in place of the base's; else its errors."""
    table = pa.table({**BASE, **columns})
    parquet.write_table(
        table,
        folder / "records.parquet",
        store_schema=store_schema,
        store_decimal_as_integer=decimals_as_integers,
    )
    return run(folder, manifest)


def said_of_csv(folder: Path, **columns: list[Any]) -> str:
    """What is said of the same records as CSV, as if it were said of the Parquet file."""
    rows = zip(*{**BASE, **columns}.values(), strict=True)
    names = ",".join({**BASE, **columns})
    text = "\n".join([names, *(",".join("" if x is None else str(x) for x in row) for row in rows)])
    (folder / "records.csv").write_text(text + "\n")
    return run(folder, MANIFEST.replace("records.parquet", "records.csv"))


def run(folder: Path, manifest: str) -> str:
    (folder / "m.toml").write_text(manifest)
    try:
        results = ef.run(folder / "m.toml", out=folder / "results", force=True)
    except ef.ManifestError as error:
        return str(error)
    return str(results.frame()["sq_error"].to_list())


KINDS = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
]


@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_type_are_the_same_data(tmp_path, kind, store_schema):
    if (kind, store_schema) == ("float16", False):
        pytest.skip("without the schema of Arrow it is a type of Parquet that polars does not know")
    expected = said(tmp_path)
    assert expected.startswith("["), expected
    numbers = np.array(SMALL, dtype=kind)
    assert said(tmp_path, a=numbers, store_schema=store_schema) == expected
    assert (
        said(
            tmp_path,
            label=pa.array(BASE["label"], kind if kind != "float16" else "int8"),
            store_schema=store_schema,
        )
        == expected
    )


def test_negative_numbers_and_the_ends_of_types_are_what_they_are(tmp_path):
    for kind in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        about = np.iinfo(kind)
        ends = [about.min, about.max] * (N // 2)
        assert said(tmp_path, a=np.array(ends, kind)) == said(
            tmp_path, a=np.array(ends, "float64")
        ), kind


@pytest.mark.parametrize(
    ("beyond", "kind"),
    [(2**53 + 1, "int64"), (-(2**53) - 1, "int64"), (2**60 + 1, "int64"), (2**64 - 1, "uint64")],
)
def test_whole_numbers_beyond_double_precision_are_those_of_csv(tmp_path, beyond, kind):
    two = [beyond, 5] * (N // 2)
    # A feature of such numbers is read too, although it is too large for an optimum.
    for key, begin in (("a", "error: `l2`: the optimum"), ("label", "[")):
        found = said(tmp_path, **{key: pa.array(two, kind)})
        assert found == said_of_csv(tmp_path, **{key: two})
        assert found.startswith(begin), found
    # Neighbours that double precision does not tell apart are two classes.
    neighbours = [beyond, beyond - 1] * (N // 2)
    found = said(tmp_path, label=pa.array(neighbours, kind))
    assert found.startswith("["), found


@pytest.mark.parametrize("decimals_as_integers", [True, False])
@pytest.mark.parametrize(("precision", "scale"), [(6, 2), (15, 2), (30, 2), (38, 20)])
def test_decimals_are_numbers(tmp_path, precision, scale, decimals_as_integers):
    texts = [f"{(-1) ** i * (i % 7)}.{i % 4}5" for i in range(N)]
    kind = pa.decimal128(precision, scale)
    decimals = pa.array([decimal.Decimal(text) for text in texts], kind)
    expected = said(tmp_path, a=[float(text) for text in texts])
    assert expected.startswith("["), expected
    assert said(tmp_path, a=decimals, decimals_as_integers=decimals_as_integers) == expected


@pytest.mark.parametrize("remedy", ["mean", "drop"])
def test_nulls_are_missing_values(tmp_path, remedy):
    manifest = MANIFEST.replace("clients = 4", f'clients = 4, missing = "{remedy}"')
    numbers = [None if i in (3, 9) else float(i % 5) for i in range(N)]
    as_nan = [float("nan") if x is None else x for x in numbers]
    expected = said(tmp_path, manifest=manifest, a=as_nan)
    assert expected.startswith("["), expected
    assert said(tmp_path, manifest=manifest, a=numbers) == expected
    whole = pa.array([None if x is None else int(x) for x in numbers], "int16")
    assert said(tmp_path, manifest=manifest, a=whole) == expected
    labels = [None if i == 5 else i % 2 for i in range(N)]
    texts = [None if x is None else "no yes".split()[x] for x in labels]
    found = [said(tmp_path, manifest=manifest, label=all) for all in (labels, texts)]
    if remedy == "drop":
        assert found[0] == found[1] and found[0].startswith("["), found
    else:
        assert all("row 5, column `label`: the label is missing" in text for text in found), found


OTHERS = {
    "timestamp": [datetime.datetime(2020, 1, 1)] * N,
    "date32": [datetime.date(2020, 1, 1)] * N,
    "time64": [datetime.time(1)] * N,
    "duration": [datetime.timedelta(1)] * N,
    "struct": [{"x": 1.0}] * N,
    "list or map": pa.array([[("k", 1)]] * N, pa.map_(pa.string(), pa.int64())),
    "binary": [b"x"] * N,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_columns_of_other_types_block_nothing_unless_they_are_used(tmp_path, kind):
    expected = said(tmp_path)
    named = MANIFEST.replace("clients = 4", 'clients = 4, features = ["a", "b"]')
    assert said(tmp_path, manifest=named, c=OTHERS[kind]) == expected
    text = said(tmp_path, c=OTHERS[kind])
    assert f"column `c` is not a feature: it is of type {kind}; list the `features`" in text, text
    for key in ("a", "label"):
        text = said(tmp_path, manifest=named, **{key: OTHERS[kind]})
        assert f"column `{key}` is of type {kind}; expected numbers or text" in text, text
        assert "damaged" not in text and "series" not in text
    if kind != "duration":
        assert "expected numbers or text" in said(
            tmp_path, manifest=named, a=OTHERS[kind], store_schema=False
        )


def test_texts_dictionaries_and_truth_values(tmp_path):
    words = ["no", "yes"] * (N // 2)
    expected = said(tmp_path)
    for labels in (words, pa.array(words).dictionary_encode(), [word == "yes" for word in words]):
        assert said(tmp_path, label=labels) == expected
    assert said(tmp_path, a=pa.array(BASE["a"]).dictionary_encode()) == expected
    text = said(tmp_path, a=["1.5"] * N)
    assert 'column `a` is not a feature: it holds numbers as text, such as "1.5" in row 0' in text
    assert 'it holds numbers but for "x" in 1 row, first in row 23' in said(
        tmp_path, a=["1.5"] * (N - 1) + ["x"]
    )
    assert "row 0, column `a`: the value is missing; fill it in, or remove the record, or" in said(
        tmp_path, a=pa.nulls(N)
    )
    assert "row 3, column `a`: the value is missing" in said(
        tmp_path, a=pa.array([1, 2, 3, None, *range(N - 4)], "int8")
    )


def test_numbers_whose_squares_are_no_numbers(tmp_path):
    huge = [1e308, *BASE["a"][1:]]
    text = said(tmp_path, a=huge)
    assert "row 0, column `a`: the square of 1e308 is beyond double precision" in text
    assert "too small" not in text
    standardised = MANIFEST.replace("clients = 4", "clients = 4, standardise = true")
    all_huge = said(tmp_path, a=[1e308] * N, manifest=standardised)
    assert "the square of" in all_huge and "is beyond" in all_huge, all_huge
    # The unit of a feature does not matter where it is standardised, to the last bits.
    expected = np.array(eval(said(tmp_path, manifest=standardised)))
    for unit in (1e-200, 1e-160, 1e200, 2.0**-700):
        scaled = said(tmp_path, a=[unit * x for x in BASE["a"]], manifest=standardised)
        assert scaled.startswith("["), scaled
        np.testing.assert_allclose(np.array(eval(scaled)), expected, rtol=1e-9)
    assert "the same in all records" in said(tmp_path, a=[1e-200] * N, manifest=standardised)
