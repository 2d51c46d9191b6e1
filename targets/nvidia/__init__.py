"""NVIDIA targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.targets.nvidia import banks, tcgen05, tensormap, wgmma

__all__ = ["banks", "tcgen05", "tensormap", "wgmma"]

__getattr__, __dir__ = door(__name__, {f"{__name__}.{name}": name for name in __all__})
