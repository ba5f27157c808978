"""Frames of polars and pandas from Arrow streams."""

from __future__ import annotations

from typing import Any, Literal

import polars as pl

from ._native import NativeFrame

Kind = Literal["polars", "pandas"]


def to_frame(native: NativeFrame | pl.DataFrame, kind: Kind = "polars") -> Any:
    """A frame of this kind, without going through files."""
    if kind == "polars":
        return pl.DataFrame(native)
    if kind != "pandas":
        raise ValueError(f'kind is "polars" or "pandas", not {kind!r}')
    try:
        import pyarrow
    except ImportError as e:
        raise ImportError("frames of pandas need: pip install pandas pyarrow") from e
    return pyarrow.table(native).to_pandas()
