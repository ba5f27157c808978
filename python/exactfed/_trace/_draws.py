"""What an algorithm may draw while it is traced: by ``clients.draw`` and ``clients.rng``."""

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


class SymbolicDraw:
    """What ``clients.draw`` returns while it is traced: a draw of a round, by its number."""

    def __init__(self, recorder: Any, number: int, calls: int):
        self.recorder, self.round = recorder, recorder.number
        self.number, self.calls = number, calls

    def check(self, recorder: Any) -> None:
        """Refuse a draw of another run, or of a round that is over."""
        if recorder is not self.recorder:
            raise ValueError("the draw was made by the clients of another run")
        if self.round != recorder.number:
            raise refused(
                "a draw of an earlier round is used: the moments of a round know its own draws"
            )

    @property
    def members(self) -> Any:
        raise refused("the clients of a draw are asked for: not traced")

    @property
    def indices(self) -> Any:
        raise refused("the records of a draw are asked for: tables of records are not traced")
