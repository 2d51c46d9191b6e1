"""Draw layouts, plans and verdicts as SVG and as text, without further dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.draw.pictures import admission, banks, bundle, difference, families, svg, text

__all__ = ["admission", "banks", "bundle", "difference", "families", "svg", "text"]
__getattr__, __dir__ = door(__name__, {"layoutalg.draw.pictures": " ".join(__all__)})
