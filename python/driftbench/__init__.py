"""driftbench: federated optimisation algorithms from TOML manifests, compared with exact theory."""

from __future__ import annotations

from ._command_line import main
from ._native import __version__

__all__ = ["__version__", "main"]
