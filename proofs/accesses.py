"""Plans of register accesses to shared memory: which instructions, which addresses, which registers.

Notation: an element of a lane's registers is a slot; ``register`` counts the slots of one instruction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.layout import Layout
from layoutalg.ground.picture import Shown

SCHEMA = "layoutalg/access-plan/1"
MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class AccessPlan(Shown):
    """Instructions that move a tile, or the registers of warps, from or to shared memory.

    Args:
        instruction: What every step executes.
        element_bits: Bits of an element.
        count: Instructions of one warp.
        addresses: (lane, instruction, warp) -> shared byte that the lane supplies; without ``warp`` where no registers
            were given.
        registers: (register, lane, instruction, warp) -> tile coordinate that the slot holds: by name where that is
            linear over F2, else flat, dimension 0 fastest.
        requested: (register, lane, instruction, warp) -> shared byte (bit, of elements below a byte) where the layout
            asked for has that element: what the instructions must mean.
        order: For each instruction, the caller's register of every slot; empty where no registers were given.
        turns: Turns of the banks of all instructions and warps; None where they are not known.
        ideal: The same, if no bank were busier than it must be.
        along: Tile dimension in which a row of shared memory runs; None where registers were given.
        global_bytes: Of ``cp.async``, (lane, instruction) -> byte in global memory; else None.
        source_bytes: Of ``cp.async`` at the end of a tensor, the bytes that each copy reads, by lane and instruction;
            what follows is filled with zeros. Empty where all copies are whole.
        basis: What the turns rest on, in words, where they were not measured on the target; else empty.
    """

    instruction: str
    element_bits: int
    count: int
    addresses: Layout = field(hash=False)
    registers: Layout = field(hash=False)
    requested: Layout = field(hash=False)
    order: tuple[tuple[int, ...], ...] = ()
    turns: int | None = None
    ideal: int | None = None
    along: int | None = None
    global_bytes: Layout | None = field(default=None, hash=False)
    source_bytes: tuple[int, ...] = ()
    basis: str = ""

    def __post_init__(self) -> None:
        checked_kinds(self, "LA822")

    @property
    def lanes(self) -> str:
        """What each lane moves, in words: ``registers`` says it element by element."""
        if self.along is None:
            return "lanes as given"
        return f"{'rows' if 'matrix' in self.instruction else 'lanes'} along dimension {self.along}"

    def __str__(self) -> str:
        lines = [f"{self.count} x {self.instruction} a warp, {self.lanes}", f"addresses     {self.addresses}"]
        lines.append(f"registers     {self.registers}")
        if self.order:
            shown = "; ".join(" ".join(map(str, one)) for one in self.order[:MOST_SHOWN])
            lines.append(f"order         {shown}{'; ...' if len(self.order) > MOST_SHOWN else ''}")
        if self.global_bytes is not None:
            lines.append(f"global        {self.global_bytes}")
        if self.source_bytes:
            lines.append(f"source bytes  {sum(self.source_bytes)} in {len(self.source_bytes)} copies, zeros behind")
        if self.turns is not None:
            than = "free of bank conflicts" if self.turns == self.ideal else f"{self.ideal} without conflicts"
            lines.append(f"turns         {self.turns}, {than}{f' ({self.basis})' if self.basis else ''}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data; layouts with their table, fastest axis first."""
        return {
            "schema": SCHEMA, "instruction": self.instruction, "element_bits": self.element_bits, "count": self.count,
            "addresses": _layout(self.addresses), "registers": _layout(self.registers),
            "requested": _layout(self.requested), "order": [list(one) for one in self.order], "turns": self.turns,
            "ideal": self.ideal, "basis": self.basis, "along": self.along, "lanes": self.lanes,
            "source_bytes": list(self.source_bytes),
            "global_bytes": None if self.global_bytes is None else _layout(self.global_bytes),
        }  # fmt: skip


def _layout(layout: Any) -> dict[str, object]:
    return {"text": str(layout), "extents": list(layout.in_dims.values()), "values": layout.table().tolist()}
