"""Algorithms of the literature, written round by round with :func:`exactfed.algorithm`.

Importing this package makes their kinds known to manifests: ``fedavgm``, ``fedadam``, ``feddyn``,
``scaffold-momentum`` and ``ef21``. A manifest that names them without Python code of its own says
``python = ["exactfed.algorithms"]``.
"""

from __future__ import annotations

from .ef21 import ef21
from .fedadam import fedadam
from .fedavgm import fedavgm
from .feddyn import feddyn
from .scaffold_momentum import scaffold_momentum

__all__ = ["ef21", "fedadam", "fedavgm", "feddyn", "scaffold_momentum"]
