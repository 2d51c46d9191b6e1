"""Plans of register accesses to shared memory: instructions, addresses, registers.

A slot is one element of a lane's registers; ``register`` numbers the slots of one instruction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from layoutalg.ground.layout import Layout
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record

MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class AccessPlan(
    Record,
    Shown,
    code="LA822",
    schema="layoutalg/access-plan/1",
    json="instruction element_bits count addresses registers requested order turns ideal basis along lanes "
    "source_bytes global_bytes",
):
    """Instructions that move a tile, or warp registers, to or from shared memory.

    Args:
        instruction: The instruction, the same throughout.
        element_bits: Bits of an element.
        count: Instructions per warp.
        addresses: (lane, instruction, warp) -> shared byte that the lane supplies; no ``warp`` if no registers were
            given.
        registers: (register, lane, instruction, warp) -> tile coordinate of the slot: by name if linear over F2,
            otherwise flat, dimension 0 fastest.
        requested: (register, lane, instruction, warp) -> shared byte (bit, for sub-byte elements) of that element in
            the requested layout: what the instructions must implement.
        order: For each instruction, the caller's register of every slot; empty if no registers were given.
        turns: Bank turns of all instructions and warps; None if unknown.
        ideal: Turns without conflicts.
        along: Tile dimension along which a row of shared memory runs; None if registers were given.
        global_bytes: For ``cp.async``, (lane, instruction) -> byte in global memory; otherwise None.
        source_bytes: For ``cp.async`` at the end of a tensor, the bytes that each copy reads, by lane and instruction;
            the rest is zero-filled. Empty if all copies are whole.
        basis: Basis of the turns in words if they were not measured on the target; otherwise empty.
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

    @property
    def lanes(self) -> str:
        """What each lane moves, in words; ``registers`` has it element by element."""
        if self.along is None:
            return "lanes as given"
        return f"{'rows' if 'matrix' in self.instruction else 'lanes'} along dimension {self.along}"

    def __str__(self) -> str:
        lines = [f"{self.count} x {self.instruction} per warp, {self.lanes}", f"addresses     {self.addresses}"]
        lines.append(f"registers     {self.registers}")
        if self.order:
            shown = "; ".join(" ".join(map(str, one)) for one in self.order[:MOST_SHOWN])
            lines.append(f"order         {shown}{'; ...' if len(self.order) > MOST_SHOWN else ''}")
        if self.global_bytes is not None:
            lines.append(f"global        {self.global_bytes}")
        if self.source_bytes:
            lines.append(f"source bytes  {sum(self.source_bytes)} in {len(self.source_bytes)} copies, then zeros")
        if self.turns is not None:
            than = "free of bank conflicts" if self.turns == self.ideal else f"{self.ideal} without conflicts"
            lines.append(f"turns         {self.turns}, {than}{f' ({self.basis})' if self.basis else ''}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data; layouts with their table, fastest axis first."""
        layouts = {name: getattr(self, name) for name in ("addresses", "registers", "requested", "global_bytes")}
        return Record.to_json(self) | {name: layout and _layout(layout) for name, layout in layouts.items()}


def _layout(layout: Any) -> dict[str, object]:
    return {"text": str(layout), "extents": list(layout.in_dims.values()), "values": layout.table().tolist()}
