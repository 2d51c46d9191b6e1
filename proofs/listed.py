"""Tables of a tile as layouts: see ``layoutalg.ground.listed``."""

from __future__ import annotations

from layoutalg.ground.listed import ListedLayout, listed

__all__ = ["ListedLayout", "listed"]
