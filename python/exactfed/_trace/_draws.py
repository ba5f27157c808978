"""The generator ``clients.rng``: what an algorithm may draw while it is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arithmetic import add, multiply
from ._masks import OTHER_DRAWS, Masked, Uniform, checked_probability, is_mask, mask_of_coins
from ._numbers import numbers
from ._refusal import refused
from ._rounds import CLIENTS, SERVER
from ._symbols import Symbol, is_symbol


class Generator:
    """``clients.rng`` while an algorithm is traced."""

    def __init__(self, recorder: Any):
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refused(OTHER_DRAWS)

    def _size(self, size: Any) -> tuple[int, ...]:
        if size is None:
            return ()
        shape = (size,) if isinstance(size, (int, np.integer)) else tuple(size)
        return tuple(int(length) for length in shape)

    def standard_normal(self, size: Any = None) -> Symbol:
        recorder, shape = self._recorder, self._size(size)
        levels = {(recorder.d,): SERVER, (recorder.n, recorder.d): CLIENTS}
        if shape not in levels:
            raise refused(f"normal draws of shape {shape} are neither (d,) nor (N, d): not traced")
        atom = recorder.operate("normal", levels[shape], {}, level=levels[shape])
        return Symbol(recorder, levels[shape], {atom: 1.0})

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Symbol:
        for what in (loc, scale):
            if is_symbol(what) or is_mask(what):
                raise refused("normal draws whose mean or scale depends on θ are not traced")
        if np.any(numbers(scale) < 0):
            raise ValueError("scale < 0")
        draws = self.standard_normal(size)
        out = add(self._recorder, loc, multiply(self._recorder, draws, scale), 1.0)
        if out.shape != draws.shape:
            raise refused("the mean or the scale of normal draws has more numbers than they")
        return out

    def random(self, size: Any = None) -> Uniform:
        shape = self._size(size)
        return Uniform(self._recorder, shape, self._recorder.draw("random", size=shape))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Masked:
        if not (isinstance(n, (int, np.integer)) and n == 1):
            raise refused(OTHER_DRAWS)
        shape = self._size(size)
        probability = checked_probability(p)
        draw = self._recorder.draw("binomial", probability=probability, size=shape)
        return mask_of_coins(self._recorder, (probability, draw), shape, boolean=False)
