"""Manifests from files, texts and dicts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from . import _native
from ._arrays import in_memory
from ._definition import register_again
from ._errors import ManifestError
from ._native import NativePlan

Manifest = str | os.PathLike[str] | Mapping[str, Any]
Overrides = Mapping[str, Any] | Iterable[str] | None


def read(
    manifest: Manifest,
    name: str | None,
    overrides: Overrides,
    replicates: int | None,
    arrays: Mapping[str, Any] | None,
) -> NativePlan:
    """Read a manifest: a path, a TOML text (it contains a line break) or a dict."""
    path, text = None, ""
    if isinstance(manifest, Mapping):
        text = _toml(manifest)
    elif isinstance(manifest, str) and "\n" in manifest:
        text = manifest
    elif isinstance(manifest, (str, os.PathLike)):
        path = Path(manifest)
        if name is not None:
            raise TypeError("name= is for a manifest without a file: a text or a dict")
    else:
        kind = type(manifest).__name__
        raise TypeError(f"a manifest is a path, a TOML text or a dict, not {kind}")
    sets = _overrides(overrides)
    if replicates is not None:
        sets.append(f"replicates={replicates}")
    try:
        files = in_memory(arrays)
    except (TypeError, ValueError) as e:
        raise ManifestError(f"error: {e}", [("", None, None, "", str(e))]) from e
    register_again()
    return NativePlan(path, text, name or "experiment", sets, files)


def manifest_name(name: str) -> str:
    """The name in manifests of a quantity, by any of its names, or of a setting."""
    return _native.quantity(name) or name.replace("_", "-")


def _overrides(overrides: Overrides) -> list[str]:
    if overrides is None:
        return []
    if isinstance(overrides, Mapping):
        return [f"{key}={_value(value)}" for key, value in overrides.items()]
    if isinstance(overrides, str):
        raise TypeError('set= is a dict, {"seed": 7}, or a list of texts, ["seed=7"]')
    return list(overrides)


def _value(value: Any) -> str:
    """A value as TOML, on one line."""
    value = _plain(value, "set")
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_value(item)}" for key, item in value.items())
        return "{ " + inner + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def _toml(manifest: Mapping[str, Any]) -> str:
    plain = _plain(manifest, "")
    # One algorithm, figure or claim of a kind needs no list.
    for key in ("algorithm", "figure", "claim"):
        if isinstance(plain.get(key), dict):
            for kind, tables in plain[key].items():
                plain[key][kind] = [tables] if isinstance(tables, dict) else tables
    return tomli_w.dumps(plain)


def _plain(value: Any, key: str) -> Any:
    """The same value of types that TOML has."""
    if isinstance(value, Mapping):
        inner = {str(k): _plain(v, f"{key}.{k}".lstrip(".")) for k, v in value.items()}
        return inner
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist(), key)
    if isinstance(value, (list, tuple, range)):
        return [_plain(item, key) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (bool, int, float, str)):
        return value
    kind = "None" if value is None else type(value).__name__
    text = f"error: `{key}`: TOML has no value for {kind}"
    hint = "leave the key out" if value is None else None
    raise ManifestError(text, [("", None, None, key, f"TOML has no value for {kind}", hint)])
