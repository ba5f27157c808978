"""The runs for which a thread works: in whose rounds it was started, or is itself.

A run of an experiment that is called in one of the experiment's own rounds would wait for that
round, and the round for it. The module knows this of its own threads; those that an algorithm
starts inherit it from the thread that starts them.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from . import _native

_ATTRIBUTE = "_exactfed_locks"


def locks() -> list[str]:
    """The locks of the experiments in whose rounds this thread works."""
    own = threading.get_ident()
    # Of a thread that Python did not start, current_thread() would make an entry that stays.
    known = next((thread for thread in threading.enumerate() if thread.ident == own), None)
    return [*_native.locks(), *getattr(known, _ATTRIBUTE, ())]


def inherit() -> None:
    """From now on, threads inherit the locks of the thread that starts them.

    Python does not say which thread that is: contexts are inherited since 3.14, and only on
    request.
    """
    original = threading.Thread.start
    if hasattr(original, _ATTRIBUTE):
        return

    @functools.wraps(original)
    def start(self: threading.Thread, *args: Any, **kwargs: Any) -> None:
        setattr(self, _ATTRIBUTE, locks())
        original(self, *args, **kwargs)

    setattr(start, _ATTRIBUTE, ())
    threading.Thread.start = start  # type: ignore[method-assign]
