"""Algorithms of the literature, written round by round with :func:`exactfed.algorithm`.

Importing this package makes their kinds known to manifests: ``client-momentum``, ``delayed``,
``ef21``, ``fedavgm``, ``feddyn``, ``fedfista``, ``fednesterov``, ``gossip``,
``gradient-tracking``, ``masked``, ``mimelite``, ``private``, ``scaffold-momentum``, ``storm``,
``svrg``, ``svrg-anchor``, ``topk`` and ``vr-proxskip``. A manifest that names them without Python
code of its own says ``python = ["exactfed.algorithms"]``.
"""

from __future__ import annotations

from .client_momentum import client_momentum
from .delayed import delayed
from .ef21 import ef21
from .fedavgm import fedavgm
from .feddyn import feddyn
from .fedfista import fedfista
from .fednesterov import fednesterov
from .gossip import gossip
from .gradient_tracking import gradient_tracking
from .masked import masked
from .mimelite import mimelite
from .private import private
from .scaffold_momentum import scaffold_momentum
from .storm import storm
from .svrg import svrg
from .svrg_anchor import svrg_anchor
from .topk import topk
from .vr_proxskip import vr_proxskip

__all__ = [
    "client_momentum",
    "delayed",
    "ef21",
    "fedavgm",
    "feddyn",
    "fedfista",
    "fednesterov",
    "gossip",
    "gradient_tracking",
    "masked",
    "mimelite",
    "private",
    "scaffold_momentum",
    "storm",
    "svrg",
    "svrg_anchor",
    "topk",
    "vr_proxskip",
]
