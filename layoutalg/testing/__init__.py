"""For tests of this library and of others: hypothesis strategies of every family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.testing import problems, strategies

__all__ = ["problems", "strategies"]

__getattr__, __dir__ = door(__name__, {f"{__name__}.{name}": name for name in __all__})
