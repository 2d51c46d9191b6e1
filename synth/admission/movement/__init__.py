"""What it takes to move data that already lies in a refused layout to where it is admitted; loads when it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.synth.admission.movement.roads import READ, converted, into_registers, moved, read_tile, tilings

__all__ = ["READ", "converted", "into_registers", "moved", "read_tile", "tilings"]

__getattr__, __dir__ = door(
    __name__, {f"{__name__}.roads": "READ converted into_registers moved read_tile tilings"}
)  # fmt: skip
