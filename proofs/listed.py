"""Tables as layouts: see ``layoutalg.ground.listed``."""

from __future__ import annotations

import layoutalg.bridges.composition  # noqa: F401  registers composition of tables
from layoutalg.ground.listed import ListedLayout, listed

__all__ = ["ListedLayout", "listed"]
