"""Constants: arrays of numbers that do not depend on θ."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._refusal import NotTraced, refused
from ._rounds import Array


def numbers(value: Any) -> Array:
    """An array of numbers."""
    try:
        array = np.asarray(value)
        if array.dtype == object:
            raise refused("an array of objects is not traced")
        if array.dtype.kind not in "fiub":
            raise refused(f"an array of type {array.dtype} is not traced")
        return array.astype(float)
    except NotTraced:
        raise
    except (TypeError, ValueError) as error:
        raise refused(f"{type(value).__name__} is no array of numbers: {error}") from None
