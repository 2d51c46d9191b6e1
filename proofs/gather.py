"""Gather plans: which source register or shared byte each index reads along an axis, with costs.

Threads have a source tensor and an index tensor in registers. The result has the layout of the indices:
``result[.., j, ..] = source[.., index[.., j, ..], ..]``, or 0 if the index is out of bounds. For index register q,
index i and thread t a plan gives the source place (register, lane, warp) or the shared byte to read: the XOR of a
constant and one column per bit of q, i and t.

``check`` enumerates every (q, i, t), so it covers all possible indices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.check import Checker
from layoutalg.ground.listed import ListedLayout
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.algebra import composition
from layoutalg.proofs.conversion import (
    Alternative,
    ConversionCost,
    Held,
    flat_layout,
    place_map,
    told,
)
from layoutalg.proofs.conversion_steps import WORD_BITS, SharedAccess
from layoutalg.proofs.exchange import Take
from layoutalg.proofs.listed_access import UNCOUNTED, counted_turns
from layoutalg.targets.bank_counting import TURN_BYTES
from layoutalg.targets.instruction_costs import InstructionCosts, instruction_costs
from layoutalg.targets.registry import asked_bits, lookup

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA935", "invalid gather or gather plan")
WRONG = Checker("LA936", "wrong gather plan")
MECHANISMS = ("registers", "shuffles", "shared")
INDEX_BITS = 32
MOST = 1 << 22
"""Most values of (q, i, t)."""


@dataclass(frozen=True, slots=True)
class Stage(Record, code="LA935"):
    """The source in shared memory."""

    registers: tuple[int, ...]  # the source registers in store order
    store: SharedAccess  # the stores
    load: str  # the instruction that loads an element
    turns: int  # turns of the loads if all lanes have the same index; -1 if the bank model is unknown
    smem_bytes: int  # bytes of shared memory
    barrier: str  # ``"warp"`` if every warp loads only what it stored, otherwise ``"block"``

    def _validate(self) -> None:
        if self.barrier not in ("warp", "block"):
            raise CHECK.malformed("barrier", "must be 'warp' or 'block'", self.barrier)


@dataclass(frozen=True, slots=True)
class GatherPlan(
    Record,
    Shown,
    code="LA935",
    schema="layoutalg/gather/1",
    json="mechanism target element_bits source index tensor axis count columns constant stage cost why alternatives",
):
    """How threads gather the elements named by their indices along an axis.

    Args:
        source: Register layout of the source: packed elements of ``tensor``, its first axis lowest.
        index: Register layout of the indices, a tensor with the same axes but size ``count`` along ``axis``.
        tensor: Axes of the source with their sizes.
        axis: The gathered axis.
        count: Size of the index tensor along the axis.
        element_bits: Bits of an element.
        target: The target whose costs were compared.
        mechanism: ``"registers"``, ``"shuffles"`` or ``"shared"``.
        columns: Per bit of index register, index, lane and warp, the XOR it contributes to the source place, register +
            registers (lane + lanes warp), or to its byte address.
        constant: The place or byte with all bits 0.
        stage: The source in shared memory, for the mechanism ``"shared"``.
        cost: Its cost; shared-memory loads are counted with the same index in all lanes.
        why: Why this mechanism.
        alternatives: All mechanisms considered, this one included.
    """

    source: Held
    index: Held
    tensor: tuple[tuple[str, int], ...]
    axis: str
    count: int
    element_bits: int
    target: str
    mechanism: str
    columns: tuple[int, ...]
    constant: int
    stage: Stage | None
    cost: ConversionCost
    why: str
    alternatives: tuple[Alternative, ...] = field(repr=False)

    def _validate(self) -> None:
        if self.mechanism not in MECHANISMS or (self.stage is None) == (self.mechanism == "shared"):
            raise CHECK.malformed(
                "mechanism", f"must be one of {', '.join(MECHANISMS)}, the last with a stage", self.mechanism
            )
        lookup(self.target)
        asked_bits(CHECK, self.element_bits)
        if (self.source.lanes, self.source.warps) != (self.index.lanes, self.index.warps):
            raise CHECK.malformed("index", "must have the lanes and warps of the source", self.index.warps)
        if self.axis not in dict(self.tensor):
            raise CHECK.malformed("axis", f"must be one of {', '.join(dict(self.tensor))}", self.axis)
        bits = sum(number.bit_length() - 1 for number in self.shape)
        if self.index.layout is None or self.source.layout is None or len(self.columns) != bits:
            raise CHECK.malformed("columns", f"must have {bits} entries for two linear layouts", len(self.columns))
        if prod(self.shape) > MOST:
            raise CHECK.malformed("index", f"must give at most {MOST} (place, index) pairs", prod(self.shape))

    @property
    def extent(self) -> int:
        """Size of the source along the axis."""
        return dict(self.tensor)[self.axis]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Index registers, indices, lanes and warps."""
        return self.index.registers, self.extent, self.index.lanes, self.index.warps

    @property
    def packed(self) -> int:
        """Elements per 32-bit word, before and after."""
        return max(1, WORD_BITS // self.element_bits)

    @property
    def excess(self) -> str:
        """The register limit that the source, or indices and result at a time, exceed; "" within the limits."""
        return self.source.register_excess(self.element_bits, self.target) or self.index.register_excess(
            self.element_bits + INDEX_BITS, self.target
        )

    def reads(self) -> IntArray:
        """Return the place or byte that is read: int64[warp, lane, index, index register]."""
        return matrix.table(self.columns, self.constant).reshape(tuple(reversed(self.shape)))

    def wanted(self) -> IntArray:
        """Return the element that must be read: int64[warp, lane, index, index register]."""
        sizes = {name: self.count if name == self.axis else size for name, size in self.tensor}
        at = np.unravel_index(self.index.elements(), tuple(sizes.values()), order="F")
        parts = [np.repeat(part[:, :, None, :], self.extent, axis=2) for part in at]
        parts[list(sizes).index(self.axis)][:] = np.arange(self.extent)[:, None]
        return np.asarray(np.ravel_multi_index(parts, tuple(size for _, size in self.tensor), order="F"))

    def every(self, values: Any) -> IntArray:
        """Return the value that every index would read: int64[warp, lane, index, index register].

        Args:
            values: The source registers: any integers, by warp, lane and register.

        Raises: MalformedError: LA936, if a read leaves its warp or thread, or reads an unwritten byte.
        """
        held = np.asarray(values, dtype=np.int64)
        shape = (self.source.warps, self.source.lanes, self.source.registers)
        if held.shape != shape:
            raise WRONG.malformed("values", f"must have the shape {shape}", held.shape)
        reads = self.reads()
        if self.stage is not None:
            return self._loaded(self.stage, held, reads)
        if reads.min() < 0 or reads.max() >= held.size:
            raise WRONG.malformed("columns", f"must give places below {held.size}", int(reads.max()))
        own = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], 1, 1)
        thread = reads // self.source.registers
        kept = thread == own if self.mechanism == "registers" else thread // shape[1] == own // shape[1]
        if not kept.all():
            raise WRONG.malformed("columns", "must stay in the thread (registers) or warp (shuffles)", self.mechanism)
        return held.reshape(-1)[reads]

    def _loaded(self, stage: Stage, held: IntArray, reads: IntArray) -> IntArray:
        """Return the loaded values."""
        warps, lanes, _ = held.shape
        size, threads = self.element_bits // 8, warps * lanes
        stored = held.reshape(threads, -1)[:, list(stage.registers)]
        at = stage.store.elements_at(self.element_bits, lanes)
        live = np.repeat(stage.store.taking(threads).T, stage.store.elements, axis=1)
        if at.shape != stored.shape or not stage.store.aligned(self.element_bits, lanes):
            raise WRONG.malformed("stage", "must store the named registers at aligned addresses", at.shape)
        for addresses in (at[live], reads):
            if (addresses % size).any() or addresses.min() < 0 or addresses.max() + size > stage.smem_bytes:
                raise WRONG.malformed("stage", f"must stay within {stage.smem_bytes} bytes", int(addresses.max()))
        order = np.argsort(at[live], kind="stable")
        places, owner = at[live][order], np.broadcast_to(np.arange(threads)[:, None] // lanes, at.shape)[live][order]
        if (places[1:] == places[:-1]).any():
            raise WRONG.malformed("stage", "must store one element per address", int(places[0]))
        found = np.minimum(np.searchsorted(places, reads), len(places) - 1)
        if (places[found] != reads).any():
            raise WRONG.malformed("stage", "must store all loaded addresses", int(reads[places[found] != reads][0]))
        if stage.barrier == "warp" and (owner[found] != np.arange(warps)[:, None, None, None]).any():
            raise WRONG.malformed("stage", "must use a block barrier to read another warp's bytes", "warp")
        return stored[live][order][found]

    def run(self, values: Any, indices: Any) -> IntArray:
        """Return the result registers: int64[warp, lane, index register].

        Args:
            values: The source registers: any integers, by warp, lane and register.
            indices: The indices, by warp, lane and register.
        """
        every, asked = self.every(values), np.asarray(indices, dtype=np.int64)
        if asked.shape != (every.shape[0], every.shape[1], every.shape[3]):
            raise WRONG.malformed("indices", f"must have the shape {self.index.elements().shape}", asked.shape)
        inside = (asked >= 0) & (asked < self.extent)
        taken = np.take_along_axis(every, np.where(inside, asked, 0)[:, :, None, :], axis=2)[:, :, 0]
        return np.where(inside, taken, 0)

    def check(self) -> GatherPlan:
        """Return the plan after evaluating every index and recounting its instructions and turns.

        Raises: MalformedError: LA936, with the first place that gets the wrong element, or the wrong count.
        """
        found, wanted = self.every(self.source.elements()), self.wanted()
        if (found != wanted).any():
            warp, lane, index, register = (int(part) for part in np.argwhere(found != wanted)[0])
            place = f"index {index} of register {register} of lane {lane} of warp {warp}"
            rule = f"must read element {int(wanted[warp, lane, index, register])} for {place}"
            raise WRONG.malformed("columns", rule, int(found[warp, lane, index, register]))
        if self.stage is not None:
            for name, said, turns in (
                (
                    self.stage.store.instruction,
                    self.stage.store.turns,
                    self.stage.store.counted(self.target, self.index.lanes),
                ),
                (self.stage.load, self.stage.turns, load_turns(self.target, self.stage.load, self.reads()[:, :, 0])),
            ):
                if said != turns:
                    raise WRONG.malformed("turns", f"must be {turns} for {name}", said)
        again = counted_gather(
            self.words(), self.mechanism, self.stage, self.index, self.element_bits, instruction_costs(self.target)
        )
        if again != self.cost:
            raise WRONG.malformed("cost", f"must be {again}", str(self.cost))
        return self

    def words(self) -> tuple[tuple[int, ...], ...]:
        """Return, by index register, the packed source words that may be read."""
        if self.stage is not None:
            return ()
        words = self.reads() % self.source.registers // self.packed
        return tuple(tuple(np.unique(words[..., register]).tolist()) for register in range(words.shape[3]))

    @property
    def moved(self) -> LinearLayout | ListedLayout:
        """The source place that is read for every (index register, index, lane, warp)."""
        count = self.source.registers * self.source.lanes * self.source.warps
        places = self.every(np.arange(count).reshape(self.source.warps, self.source.lanes, -1))
        return place_map(places.reshape(-1), count)

    @property
    def certificate(self) -> Certificate:
        """Proof that, for every index, the place read has the element that the index names."""
        wanted = place_map(self.wanted().reshape(-1), prod(size for _, size in self.tensor))
        if isinstance(wanted, LinearLayout):
            wanted = LinearLayout(wanted.in_axes, (("element", wanted.out_bits),), wanted.columns, wanted.constant)
        return composition(flat_layout(self.source), self.moved, wanted)

    def __str__(self) -> str:
        lines = [
            f"gather        {self.mechanism}: {self.cost}",
            f"  from        {told(self.source)}",
            f"  indices     {told(self.index)}",
            f"  along       {self.axis} of {' x '.join(f'{name}:{size}' for name, size in self.tensor)}",
            f"  why         {self.why}",
        ]
        if self.excess:
            lines.append(f"  spills      {self.excess}")
        if self.stage is not None:
            lines.append(
                f"  shared      {self.stage.smem_bytes} bytes, {self.stage.store.instruction} then {self.stage.load}, "
                f"barrier of the {self.stage.barrier}"
            )
        lines += [f"  {other}" for other in self.alternatives if other.mechanism != self.mechanism]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return Record.to_json(self) | {"tensor": dict(self.tensor)} | ({"excess": self.excess} if self.excess else {})


def load_turns(target: str, instruction: str, addresses: IntArray) -> int:
    """Return the turns of loads at addresses by warp, lane and register; -1 if the bank model is unknown."""
    rows = np.ascontiguousarray(addresses.transpose(0, 2, 1))
    return counted_turns(target, instruction, rows, np.ones(rows.shape, dtype=np.bool_))


def counted_gather(
    words: tuple[tuple[int, ...], ...],
    mechanism: str,
    stage: Stage | None,
    index: Held,
    element_bits: int,
    costs: InstructionCosts,
) -> ConversionCost:
    """Return the instruction counts of a gather and its cycles over all warps.

    Reading one of k words takes k shuffles (none within the thread) and k - 1 selects; the bounds test of the index
    takes one more select. A sub-word element is shifted down and joined with its neighbours.

    Args:
        words: Per index register, the words that may be read.
        mechanism: The mechanism.
        stage: The source in shared memory.
        index: Register layout of the indices.
        element_bits: Bits of an element.
        costs: Cycles per instruction.
    """
    planes, packed = max(1, element_bits // WORD_BITS), max(1, WORD_BITS // element_bits)
    choices = sum(map(len, words))
    joined = index.registers - -(-index.registers // packed) if packed > 1 else 0
    shuffles = choices * planes if mechanism == "shuffles" else 0
    selects = (choices - len(words) + index.registers) * planes
    permutes = joined + (index.registers if packed > 1 and stage is None else 0)
    accesses = turns = barriers = 0
    waits = 0.0
    if stage is not None:
        permutes += Take(stage.registers, packed, packed).permutes if packed > 1 else 0
        store = stage.store
        live = int(np.count_nonzero(store.taking(index.lanes * index.warps)))
        accesses, barriers = store.count + index.registers, 1
        least = -(-index.registers * index.warps * index.lanes * element_bits // 8 // TURN_BYTES)
        stored = -(-live * store.elements * element_bits // 8 // TURN_BYTES)
        turns = (stored if store.turns == UNCOUNTED else store.turns) + (
            least if stage.turns == UNCOUNTED else stage.turns
        )
        waits = costs.shared_latency + (costs.block_barrier if stage.barrier == "block" else costs.warp_barrier)
    elif shuffles:
        waits = costs.shuffle_latency
    cycles = costs.taken(shuffles, selects, permutes, turns, index.warps) + waits
    return ConversionCost(shuffles, selects, permutes, accesses, turns, barriers, float(cycles))
