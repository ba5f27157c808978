"""Algorithms of the literature, written round by round with :func:`exactfed.algorithm`.

Importing this package makes their kinds known to manifests: ``client-momentum``,
``compressed-scaffnew``, ``delayed``, ``diana``, ``ef21``, ``fedac``, ``fedavgm``, ``fedbuff``,
``feddyn``, ``fedexp``, ``fedfista``, ``fednesterov``, ``gossip``, ``gradient-tracking``,
``marina``, ``masked``, ``mimelite``, ``private``, ``scaffold-momentum``, ``storm``, ``svrg``,
``svrg-anchor``, ``topk`` and ``vr-proxskip``. A manifest that names them without Python code of its
own says ``python = ["exactfed.algorithms"]``.
"""

from __future__ import annotations

from .client_momentum import client_momentum
from .compressed_scaffnew import compressed_scaffnew
from .delayed import delayed
from .diana import diana
from .ef21 import ef21
from .fedac import fedac
from .fedavgm import fedavgm
from .fedbuff import fedbuff
from .feddyn import feddyn
from .fedexp import fedexp
from .fedfista import fedfista
from .fednesterov import fednesterov
from .gossip import gossip
from .gradient_tracking import gradient_tracking
from .marina import marina
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
    "compressed_scaffnew",
    "delayed",
    "diana",
    "ef21",
    "fedac",
    "fedavgm",
    "fedbuff",
    "feddyn",
    "fedexp",
    "fedfista",
    "fednesterov",
    "gossip",
    "gradient_tracking",
    "marina",
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
