"""Layouts fixed by hardware or by the tile rules of compilers, as linear layouts over named axes.

Register families (``blocked``, ``nvidia``, ``amd``, ``scales``) map ``register``, ``lane``, ``warp``, ``block`` to
``dim0``, ``dim1``, ...; shared-memory families (``shared``, ``padding``) map ``offset``, ``block`` and,
where the memory is partitioned, ``partition`` to the same; tensor memory (``tmem``, ``scales``) maps ``row``, ``col``,
``block``. Bits that hold copies are zero vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.targets.layouts import amd, blocked, nvidia, padding, scales, shared, tmem

__all__ = ["amd", "blocked", "nvidia", "padding", "scales", "shared", "tmem"]

__getattr__, __dir__ = door(__name__, {f"{__name__}.{name}": name for name in __all__})
