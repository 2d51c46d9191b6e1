"""Steps of a register conversion beyond exchanges: register selection, lane reads, shared memory.

Thread t = lane + lanes * warp has elements 0 to n - 1, p to a 32-bit word: element e is part e % p, lowest bits first,
of word e // p. ``Choose``, ``Exchange``, ``Move``, ``Rename`` (``proofs.exchange``), ``Read`` and
``ShufflePlan`` act on words, ``Take`` and ``Through`` on elements. Byte addresses are linear in the thread bits, XORed
with a constant per instruction.

``ran`` executes a step on labels straight from its definition; no finder uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.proofs.exchange import Choose, Exchange, ExchangePlan, LaneRead, Move, Rename, Take
from layoutalg.proofs.listed_access import CHECK, ListedAccess, counted_turns
from layoutalg.proofs.shuffle import ShufflePlan

IntArray: TypeAlias = npt.NDArray[np.int64]
WORD_BITS = 32
ROWS, ROW_BYTES = 8, 16
NOTHING = np.iinfo(np.int64).min
"""The label of an unwritten element."""


@dataclass(frozen=True, slots=True)
class Read(LaneRead, code="LA930", step="read"):
    """Reads every word from a lane of the same warp; words may be dropped or copied.

    After the step, word w of thread t is word ``taken[w]`` of lane ``threads(t) xor lanes[w]`` of the thread's warp,
    where ``threads`` is linear with one column per bit of t.

    Example:
        >>> Read((0, 2), (1, 1), (0, 0)).shuffles(4), Read((1, 2), (0, 1), (0, 1)).shuffles(4)
        (2, 1)
    """

    threads: tuple[int, ...]  # per thread bit, its column of the source lane
    lanes: tuple[int, ...]  # per word, the constant XORed into the source lane
    taken: tuple[int, ...]  # per word, the source word

    def _validate(self) -> None:
        if len(self.lanes) != len(self.taken):
            raise CHECK.malformed("lanes", f"must have {len(self.taken)} entries, one per word", len(self.lanes))

    def beyond(self, word: int) -> int:
        """Return the XOR of the source lane that is the same in all threads."""
        return self.lanes[word]

    def shuffles(self, lanes: int) -> int:
        """Return the shuffles of a warp of ``lanes`` lanes."""
        return sum(self.mask(word, lanes) != 0 for word in range(len(self.taken)))


@dataclass(frozen=True, slots=True)
class SharedAccess(Record, code="LA930"):
    """Instructions that store or load all elements of a thread, the same in all threads.

    Instruction i moves the elements i v to (i + 1) v - 1, v = ``elements``, at byte address ``threads(t) xor
    starts[i]`` of thread t. ``st.shared``, ``ld.shared``, ``ds_...``: the v elements are contiguous from there.
    ``stmatrix.xN``, ``ldmatrix.xN``: lanes below 8 N supply the row addresses of N matrices of 8 rows of 16 bytes.
    """

    instruction: str  # its ``bank_model`` name
    elements: int  # elements that an instruction moves per thread
    threads: tuple[int, ...]  # per thread bit, its column of the byte address
    starts: tuple[int, ...]  # per instruction, the address constant
    idle: int  # mask of thread bits that must all be 0 for the thread to take part; other threads have only copies
    turns: int  # bank turns of all instructions of all warps; -1 if the bank model is unknown

    def _validate(self) -> None:
        if self.elements < 1 or not self.starts:
            raise CHECK.malformed("elements", "must be at least 1, with at least one instruction", self.elements)

    @property
    def matrices(self) -> int:
        """Matrices per instruction; 0 for loads and stores with per-lane addresses."""
        if "matrix" not in self.instruction:
            return 0
        return int(self.instruction.split(".x")[1].split(".")[0])

    @property
    def count(self) -> int:
        """Number of instructions."""
        return len(self.starts)

    @property
    def lookups(self) -> int:
        """Address tables that a thread reads: none."""
        return 0

    def taking(self, threads: int) -> npt.NDArray[np.bool_]:
        """Return which threads take part in each instruction: bool[instruction, thread]."""
        return np.broadcast_to(np.arange(threads) & self.idle == 0, (self.count, threads))

    def addresses(self) -> IntArray:
        """Return the byte address of every instruction and thread: int64[instruction, thread]."""
        return np.asarray(matrix.table(self.threads)[None, :] ^ np.array(self.starts, dtype=np.int64)[:, None])

    def aligned(self, element_bits: int, lanes: int) -> bool:
        """Return whether every address is a multiple of the bytes moved there."""
        rows, matrices = self.addresses(), self.matrices
        if matrices:
            given = rows.reshape(len(self.starts), -1, lanes)[:, :, : ROWS * matrices]
            return not bool((given % ROW_BYTES).any())
        return not bool((rows % (self.elements * element_bits // 8)).any())

    def elements_at(self, element_bits: int, lanes: int) -> IntArray:
        """Return the byte address of every element: int64[thread, element]."""
        bytes_each, rows = element_bits // 8, self.addresses()
        if not self.matrices:
            found = rows[:, :, None] + np.arange(self.elements) * bytes_each
        else:
            per = self.elements // self.matrices
            matrix_, part = np.divmod(np.arange(self.elements), per)
            lane = np.arange(lanes)[:, None]
            if self.instruction.endswith(".trans"):
                giver, inside = ROWS * matrix_ + 2 * (lane % 4) + part, lane // 4 * bytes_each + 0 * part
            else:
                giver, inside = ROWS * matrix_ + lane // 4, lane % 4 * 4 + part * bytes_each
            by_warp = rows.reshape(len(self.starts), -1, lanes)
            found = (by_warp[:, :, giver] + inside).reshape(len(self.starts), -1, self.elements)
        return np.asarray(found.transpose(1, 0, 2).reshape(rows.shape[1], -1), dtype=np.int64)

    def counted(self, target: str, lanes: int) -> int:
        """Return the turns of all instructions of all warps, counted from addresses; -1 if the model is unknown."""
        rows = self.addresses().reshape(self.count, -1, lanes)
        active = self.taking(1 << len(self.threads)).reshape(self.count, -1, lanes)
        return counted_turns(target, self.instruction, rows, active)


Access: TypeAlias = SharedAccess | ListedAccess


@dataclass(frozen=True, slots=True)
class Through(Record, code="LA930", step="through", json="smem_bytes barrier passes store load blocks?"):
    """Moves elements through shared memory, in passes of equally many instructions.

    Pass q of n executes the store instructions i with i n // count = q, a barrier, the load instructions likewise and,
    if another pass follows, a barrier. All passes reuse the same bytes.

    The top thread bits number the blocks of a cluster, whose shared memories are concatenated, ``smem_bytes // blocks``
    each: threads store to their own block and load from any block. A cluster barrier also follows the loads, so that no
    block exits while others read its memory.
    """

    smem_bytes: int  # shared memory of all blocks, in bytes
    barrier: str  # ``"block"``, ``"warp"`` if every warp reads only what it wrote, or ``"cluster"``
    passes: int  # number of passes
    store: Access  # the stores
    load: Access  # the loads; they define the thread's elements after the step, in order
    blocks: int = 1  # blocks of the cluster; more than one iff the barrier is ``"cluster"``

    def _validate(self) -> None:
        if self.barrier not in ("warp", "block", "cluster") or (self.barrier == "cluster") != (self.blocks > 1):
            raise CHECK.malformed("barrier", "must be 'warp' or 'block'; 'cluster' for several blocks", self.barrier)
        if self.blocks < 1 or self.blocks & (self.blocks - 1) or self.smem_bytes % self.blocks:
            raise CHECK.malformed("blocks", "must be a power of two that divides smem_bytes", self.blocks)
        if self.passes < 1 or self.store.count % self.passes or self.load.count % self.passes:
            raise CHECK.malformed("passes", "must divide the numbers of stores and loads", self.passes)

    @property
    def barriers(self) -> int:
        """Barriers of all passes."""
        return 2 * self.passes - (self.blocks == 1)


Step: TypeAlias = Take | Choose | Exchange | Move | Rename | Read | ShufflePlan | Through


def taken_by(order: Sequence[int], registers: int, have: int, give: int | None = None) -> tuple[Step, ...]:
    """Return the step that takes registers in an order, repacked from ``have`` to ``give`` per word; () if idle."""
    give = have if give is None else give
    idle = have == give and list(order) == list(range(registers))
    return () if idle else (Take(tuple(order), have, give),)


def flattened(plan: ExchangePlan, natural: int, steps: Sequence[Step] | None = None) -> tuple[Step, ...]:
    """Return the steps of an exchange plan between words of ``natural`` elements, its repackings as ``Take`` steps.

    Args:
        plan: The plan.
        natural: Elements per word before and after.
        steps: Steps on words in place of the plan's own.
    """
    before, after = plan.before.take.registers, plan.after.take.registers
    return (
        *taken_by(before, plan.registers, natural, plan.packed),
        *(plan.steps if steps is None else steps),
        *taken_by(after, plan.registers, plan.packed, natural),
    )


def ran(step: Step, held: IntArray, packed: int, element_bits: int) -> tuple[IntArray, int]:
    """Return the labels after a step, and the elements per word.

    Raises: MalformedError: LA931, if the step does not fit its input or two threads race.
    """
    warps, lanes, registers = held.shape
    if isinstance(step, Take):
        if step.packed != packed or max(step.registers) >= registers:
            raise WRONG.malformed("steps", f"must select from {registers} elements, {packed} per word", str(step))
        return held[:, :, list(step.registers)], step.repacked
    if isinstance(step, Through):
        return _through(step, held, element_bits), max(1, WORD_BITS // element_bits)
    if registers % packed:
        raise WRONG.malformed("steps", f"must move whole words: {registers} elements, {packed} per word", str(step))
    words = held.reshape(warps, lanes, registers // packed, packed)
    if isinstance(step, ShufflePlan):
        source = step.source()
        if source.shape != words.shape[:3] or (source // (lanes * words.shape[2]) != _warps(words)).any():
            raise WRONG.malformed("steps", f"must move words within each of {warps} warps", source.shape)
        moved = words.reshape(-1, packed)[source.reshape(-1)].reshape(words.shape)
    else:
        flat = words.reshape(warps * lanes, -1, packed)
        thread = np.arange(warps * lanes, dtype=np.int64)[:, None]
        if isinstance(step, Read):
            word = np.array(step.taken, dtype=np.int64)[None, :]
            if len(step.threads) != (warps * lanes).bit_length() - 1:
                raise WRONG.malformed("steps", f"must have a column per bit of {warps * lanes} threads", str(step))
            lane = matrix.table(step.threads)[thread] ^ np.array(step.lanes, dtype=np.int64)[None, :]
            thread = thread // lanes * lanes + lane
        else:
            number = np.arange(flat.shape[1], dtype=np.int64)[None, :]
            word, thread = step.source(*np.broadcast_arrays(number, thread))
        own = np.arange(warps * lanes, dtype=np.int64)[:, None]
        if word.min(initial=0) < 0 or word.max(initial=0) >= flat.shape[1] or (thread // lanes != own // lanes).any():
            raise WRONG.malformed("steps", "must name existing words and lanes of the thread's own warp", str(step))
        moved = flat[thread, word]
    return moved.reshape(warps, lanes, -1), packed


def _warps(words: IntArray) -> IntArray:
    """Return the warp of every word: int64[warp, 1, 1]."""
    return np.arange(words.shape[0], dtype=np.int64)[:, None, None]


WRONG = Checker("LA931", "wrong conversion plan")


def _through(step: Through, held: IntArray, element_bits: int) -> IntArray:
    warps, lanes, registers = held.shape
    threads, bytes_each = warps * lanes, element_bits // 8
    flat = held.reshape(threads, registers)
    stored, loaded = (access.elements_at(element_bits, lanes) for access in (step.store, step.load))
    if stored.shape != flat.shape or loaded.shape[0] != threads:
        raise WRONG.malformed("steps", f"must store {registers} elements of {threads} threads", stored.shape)
    writes, reads = (np.repeat(access.taking(threads).T, access.elements, axis=1) for access in (step.store, step.load))
    for addresses, live in ((stored, writes), (loaded, reads)):
        if (addresses[live] % bytes_each).any() or int(addresses[live].max()) + bytes_each > step.smem_bytes:
            raise WRONG.malformed("steps", f"must stay within {step.smem_bytes} bytes", int(addresses[live].max()))
    for access in (step.store, step.load):
        if not access.aligned(element_bits, lanes):
            raise WRONG.malformed("steps", "must use aligned addresses", access.instruction)
    window, own = step.smem_bytes // step.blocks, np.arange(threads)[:, None] // max(1, threads // step.blocks)
    if (np.where(writes, stored // window, own) != own).any():
        raise WRONG.malformed("steps", "must store only to the thread's own block", window)
    answer = np.full((threads, loaded.shape[1]), NOTHING, dtype=np.int64)
    owner = np.arange(threads, dtype=np.int64)[:, None] // lanes
    for number in range(step.passes):
        mine = slice(number * registers // step.passes, (number + 1) * registers // step.passes)
        theirs = slice(number * loaded.shape[1] // step.passes, (number + 1) * loaded.shape[1] // step.passes)
        memory = np.full((step.smem_bytes // bytes_each, 2), NOTHING, dtype=np.int64)
        live = writes[:, mine]
        places, values = stored[:, mine][live] // bytes_each, flat[:, mine][live]
        memory[places, 0] = values
        memory[places, 1] = np.broadcast_to(owner, live.shape)[live]
        if (memory[places, 0] != values).any():
            raise WRONG.malformed("steps", "must not store two elements to one address", step.smem_bytes)
        live = reads[:, theirs]
        taken = loaded[:, theirs][live] // bytes_each
        answer[:, theirs][live] = memory[taken, 0]
        if step.barrier == "warp" and (memory[taken, 1] != np.broadcast_to(owner, live.shape)[live]).any():
            raise WRONG.malformed("steps", "must use block barriers to read another warp's bytes", number)
    return answer.reshape(warps, lanes, -1)
