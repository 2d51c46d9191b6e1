"""Reading and writing layouts in other systems' terms; nothing here imports those systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.interop import triton

__all__ = ["triton"]

__getattr__, __dir__ = door(__name__, {f"{__name__}.{name}": name for name in __all__})
