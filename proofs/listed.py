"""Tables of a tile as layouts: see ``layoutalg.ground.listed``."""

from __future__ import annotations

import layoutalg.bridges.composition  # noqa: F401  tables compose from here on
from layoutalg.ground.listed import ListedLayout, listed

__all__ = ["ListedLayout", "listed"]
