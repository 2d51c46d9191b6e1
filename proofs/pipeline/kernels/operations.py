"""Operations of Triton's dialects ``ttg`` and ``ttng`` that move memory or use barriers, as events.

What an operation means here is one method; ``Operations.rules`` lists them by name. While the values of a loop are
solved, nothing is noted (``silent``).

References: Triton 3.9.0, the assembly formats of ``TritonGPUOps`` and ``TritonNvidiaGPUOps``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from layoutalg.notation.mlir import Operation, fail
from layoutalg.proofs.pipeline.kernels.events import Event, Memory, Scope, Slot, Track, refuse
from layoutalg.proofs.pipeline.kernels.waves import Conditions, Known, Linear, Wave
from layoutalg.proofs.pipeline.ops import Part

MEMORY: Final = re.compile(r"!ttg\.memdesc<((?:\d{1,7}x)+)(\w+),(.*)>$")
_BITS: Final = re.compile(r"[a-z]+(\d{1,3})")
_VALUE: Final = r"%[\w$.-]+(?:#\d+)?"
_IGNORED: Final = (
    "ttg.local_dealloc",
    "ttng.inval_barrier",
    "ttg.barrier",
    "gpu.barrier",
    "ttg.convert_layout",
    "ttg.warp_yield",
    "ttg.warp_return",
    "ttg.warp_id",
    "ttng.tensormap_create",
    "ttng.tensormap_fenceproxy_acquire",
    "ttng.fence_mbarrier_init_release_cluster",
)
"""Operations of the two dialects without an effect on memory that a pipeline tells."""
PRODUCTS: Final = ("ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")
"""Matrix instructions that write tensor memory."""
COMPUTES: Final = ("arith.", "math.", "tt.", "ub.", *_IGNORED)
"""What computes values, and may be passed over."""
VIEWS: Final = ("ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_reinterpret", "ttg.memdesc_subslice")
_EVENTFUL: Final = re.compile(r"(?:ttg|ttng|nvgpu|nvws)\.")


class Operations:
    """The state of a pass over a kernel, and what operations add to it."""

    def __init__(self, track: Track) -> None:
        self.memory: list[Memory] = []
        self.track = track
        self.part: Part = "pre"
        self.when: tuple[Linear, ...] = ()
        self.silent = False
        """Whether values are followed without noting events."""
        self.leaves_tensors = False
        """Whether what a loop in a loop does to tensor memory is left to the outer loop."""
        self.rules: dict[str, Callable[[Operation, Scope], None]] = {
            "ttg.local_alloc": self.allocate,
            "ttg.memdesc_index": self.index,
            "ttng.init_barrier": self.init,
            "ttng.wait_barrier": self.wait,
            "ttng.arrive_barrier": self.arrive,
            "ttng.barrier_expect": self.expect,
            "ttng.async_tma_copy_global_to_local": self.tma_load,
            "ttng.async_tma_gather": self.tma_load,
            "ttng.async_tma_copy_local_to_global": self.tma_store,
            "ttng.async_tma_scatter": self.tma_store,
            "ttng.async_tma_reduce": self.tma_store,
            "ttng.async_tma_store_wait": self.group_wait,
            "ttng.warp_group_dot": self.dot,
            "ttng.warp_group_dot_wait": self.group_wait,
            **dict.fromkeys(PRODUCTS, self.mma),
            "ttng.tmem_copy": self.tensor_copy,
            "ttng.tc_gen5_commit": self.commit,
            "ttg.async_copy_global_to_local": self.cp_async,
            "ttg.async_commit_group": self.cp_async_commit,
            "ttg.async_wait": self.group_wait,
            "ttg.local_load": self.access,
            "ttg.local_store": self.access,
            "ttng.tmem_alloc": self.allocate,
            "ttng.tmem_load": self.tensor_load,
            "ttng.tmem_store": self.tensor_store,
            "ttng.fence_async_shared": self.fence,
        }

    def note(self, op: str, line: int, **more: object) -> None:
        """Note an event."""
        event = Event(op, self.part, line, **more)  # type: ignore[arg-type]
        if self.silent or (self.leaves_tensors and event.buf is not None and event.buf.memory.tensor):
            return
        event = replace(event, when=event.when + self.when)
        bar, buf = (None if slot is None else self.settled(slot, event) for slot in (event.bar, event.buf))
        self.track.events.append(replace(event, bar=bar, buf=buf))

    def settled(self, slot: Slot, event: Event) -> Slot:
        """Return a slot without the conditions under which it is that one, which those of the event imply."""
        if slot.index is None or not slot.index.under:
            return slot
        self.implied(slot.index, event.when, event.line)
        return Slot(slot.memory, replace(slot.index, under=()))

    def implied(self, value: Linear, when: tuple[Linear, ...], line: int) -> None:
        """Refuse a value that is used where it need not be what it was followed to be."""
        for part in value.under:
            slack = [part.plus(other, -1) for other in when]
            if not any(other.constant is not None and other.constant >= 0 for other in slack):
                refuse(line, "a counter that stops before the loop ends is used after that")

    def positive(self, value: Known | None, line: int) -> tuple[Linear, ...]:
        """Return what must be positive for a condition to hold."""
        if isinstance(value, Conditions):
            return value.positive
        if isinstance(value, Linear) and not value.symbols:
            return () if value.constant == 1 else (value,)
        return refuse(line, "its condition does not follow from the iteration")

    def predicate(self, one: Operation, scope: Scope, name: str | None) -> tuple[Linear, ...] | None:
        """Return the condition of an operation's predicate; None if it never runs."""
        if name is None or self.silent:
            return ()
        value = scope.get(name)
        if isinstance(value, Linear) and value.constant == 0:
            return None
        return self.positive(value if not isinstance(value, Slot) else None, one.line)

    def slot(self, one: Operation, scope: Scope, name: str) -> Slot:
        """Return the slot that a value is."""
        value = scope.get(name)
        if not isinstance(value, Slot):
            if self.silent:
                return Slot(Memory("", one.line, (1,), 8, self.track))
            refuse(one.line, f"{one.name}: it is not known which memory {name} is")
        return value

    def allocate(self, one: Operation, scope: Scope) -> None:
        """Allocate memory; with an operand, write it."""
        found = MEMORY.match(result_type(one))
        if found is None:
            fail(one.line, "must have a type !ttg.memdesc<...>", one.types)
        if self.silent:
            scope |= dict.fromkeys(one.results)
            return
        bits = _BITS.fullmatch(found[2])
        shape = tuple([int(size) for size in found[1].split("x")[:-1]])
        made = next((memory for memory in self.memory if memory.line == one.line), None)
        if made is None:
            size = int(bits[1]) if bits else 64
            made = Memory(one.results[0], one.line, shape, size, self.track, tensor="tensor_memory" in found[3])
            self.memory.append(made)
        scope |= dict.fromkeys(one.results) | {one.results[0]: Slot(made)}
        if one.operands():
            self.note("write", one.line, buf=Slot(made))

    def index(self, one: Operation, scope: Scope) -> None:
        """Take a slot."""
        names = one.operands()
        value = scope.get(names[0]) if len(names) == 2 else None
        scope[one.results[0]] = None
        if isinstance(value, Slot) and value.memory.tensor and self.leaves_tensors:
            scope[one.results[0]] = Slot(value.memory)
        elif isinstance(value, Slot):
            at = scope.get(names[1])
            if value.index is not None or not isinstance(at, Linear):
                if not self.silent:
                    refuse(one.line, "the slot does not follow from the iteration")
                return
            value.memory.sliced = True
            scope[one.results[0]] = Slot(value.memory, at)

    def init(self, one: Operation, scope: Scope) -> None:
        """Set up a barrier."""
        found = re.match(r"(%\S+), (\d{1,9})\b", one.head)
        if found is None:
            fail(one.line, "must be a barrier and a count", one.head)
        slot = self.slot(one, scope, found[1])
        at = slot.place
        if self.silent:
            return
        if at is None or at.constant is None or self.part != "pre" or self.when:
            refuse(one.line, "a barrier is set up in a loop or under a condition")
        if at.constant in slot.memory.counts:
            refuse(one.line, "a barrier is set up twice")
        slot.memory.counts[at.constant] = int(found[2])

    def wait(self, one: Operation, scope: Scope) -> None:
        """Await a phase."""
        names = re.split(r"\bdeps\b", one.head)[0]
        parts = re.findall(_VALUE, names)
        when = self.predicate(one, scope, parts[2] if len(parts) > 2 else None)
        if self.silent or when is None:
            return
        parity = scope.get(parts[1]) if len(parts) > 1 else None
        if not isinstance(parity, Linear) or parity.symbols or parity.wave.growth:
            refuse(one.line, "the phase does not follow from the iteration")
        self.implied(parity, when + self.when, one.line)
        bits = Wave(tuple([entry & 1 for entry in parity.wave.table])).short()
        self.note("wait", one.line, bar=self.slot(one, scope, parts[0]), parity=bits, when=when)

    def arrive(self, one: Operation, scope: Scope, op: str = "arrive", what: str = "a count", entry: str = "n") -> None:
        """Arrive at a barrier."""
        found = re.match(r"(%\S+), (\d{1,9})(?:, (%[\w$.#-]+))?", one.head)
        if found is None:
            fail(one.line, f"must be a barrier and {what}", one.head)
        when = self.predicate(one, scope, found[3])
        if when is not None:
            self.note(op, one.line, bar=self.slot(one, scope, found[1]), when=when, **{entry: int(found[2])})

    def expect(self, one: Operation, scope: Scope) -> None:
        """Expect bytes, with one arrival."""
        self.arrive(one, scope, "arrive_tx", "bytes", "bytes")

    def tma_load(self, one: Operation, scope: Scope) -> None:
        """Start a copy into shared memory."""
        found = re.match(
            r"%\S+?\[[^\]]*\](?: offsets = \[[^\]]*\])? (%\S+), (%\S+?)(?:, (%[\w$.#-]+))?(?: |$)", one.head
        )
        if found is None or "multicast" in one.head:
            refuse(one.line, f"{one.name} in this form is not known")
        when = self.predicate(one, scope, found[3])
        if when is not None:
            slot = self.slot(one, scope, found[1])
            size = slot.memory.slot_bytes
            self.note("tma_load", one.line, buf=slot, bar=self.slot(one, scope, found[2]), bytes=size, when=when)

    def tma_store(self, one: Operation, scope: Scope) -> None:
        """Start a copy from shared memory, a group of its own."""
        self.note("tma_store", one.line, buf=self.slot(one, scope, one.operands()[-1]))
        self.note("bulk_commit", one.line)

    def group_wait(self, one: Operation, scope: Scope) -> None:
        """Await groups."""
        kind = {"ttg.async_wait": "cp_async_wait", "ttng.async_tma_store_wait": "bulk_wait"}.get(one.name, "mma_wait")
        left = one.attribute("num" if kind == "cp_async_wait" else "pendings")
        self.note(kind, one.line, n=left or 0)
        for result, given in zip(one.results, one.operands(), strict=False):
            scope[result] = scope.get(given)

    def dot(self, one: Operation, scope: Scope) -> None:
        """Start matrix instructions of a warp group, a group of its own."""
        for name in one.operands()[:2]:
            if isinstance(scope.get(name), Slot):
                self.note("mma", one.line, buf=self.slot(one, scope, name))
        self.note("mma_commit", one.line)
        if "isAsync = true" not in one.head:
            self.note("mma_wait", one.line, n=0)
        scope |= dict.fromkeys(one.results)

    def mma(self, one: Operation, scope: Scope) -> None:
        """Start matrix instructions of tensor memory; barriers in brackets await their ends."""
        names, signals = product(one)
        when = self.predicate(one, scope, names[-1])
        scope |= dict.fromkeys(one.results)
        if when is None:
            return
        for name in (*names[:2], *names[3:-2]):
            self.note("mma", one.line, buf=self.slot(one, scope, name), when=when)
        adds = scope.get(names[-2])
        fresh = isinstance(adds, Linear) and adds.constant == 0
        self.note("mma_write", one.line, buf=self.tensor(one, scope, names[2]), when=when, adds=not fresh)
        for bar, predicate in signals:
            both = self.predicate(one, scope, predicate)
            if both is not None:
                also = tuple([entry for entry in both if entry not in when])
                self.note("mma_arrive", one.line, bar=self.slot(one, scope, bar), when=when + also)

    def tensor(self, one: Operation, scope: Scope, name: str) -> Slot:
        """Return the slot of tensor memory that a value is."""
        slot = self.slot(one, scope, name)
        if not slot.memory.tensor and not self.silent:
            refuse(one.line, f"{one.name}: {name} is not in tensor memory")
        return slot

    def tensor_load(self, one: Operation, scope: Scope) -> None:
        """Read tensor memory."""
        self.note("read", one.line, buf=self.tensor(one, scope, one.operands()[0]))
        scope |= dict.fromkeys(one.results)

    def tensor_store(self, one: Operation, scope: Scope) -> None:
        """Write tensor memory."""
        names = re.findall(_VALUE, re.sub(r"\[[^\]]*\]", "", one.head))
        when = self.predicate(one, scope, names[2] if len(names) > 2 else None)
        if when is not None:
            self.note("write", one.line, buf=self.tensor(one, scope, names[1]), when=when)
        scope |= dict.fromkeys(one.results)

    def tensor_copy(self, one: Operation, scope: Scope) -> None:
        """Refuse a copy into tensor memory: nothing orders it after the matrix instructions before it."""
        if not self.silent:
            refuse(one.line, f"{one.name} writes tensor memory by a copy, which is not followed")
        scope |= dict.fromkeys(one.results)

    def commit(self, one: Operation, scope: Scope) -> None:
        """Arrive when the matrix instructions of tensor memory have ended."""
        names = re.findall(_VALUE, re.split(r"\bdescs\b", one.head)[0])
        when = self.predicate(one, scope, names[1] if len(names) > 1 else None)
        if when is not None:
            self.note("mma_arrive", one.line, bar=self.slot(one, scope, names[0]), when=when)

    def cp_async(self, one: Operation, scope: Scope) -> None:
        """Start copies of threads. Masks are left out: a copy that is masked may write zeros."""
        self.note("cp_async", one.line, buf=self.slot(one, scope, one.operands()[1]))
        scope |= dict.fromkeys(one.results)

    def cp_async_commit(self, one: Operation, scope: Scope) -> None:
        """Close a group of copies."""
        self.note("cp_async_commit", one.line)
        scope |= dict.fromkeys(one.results)

    def access(self, one: Operation, scope: Scope) -> None:
        """Read or write a slot with ordinary loads and stores."""
        load = one.name == "ttg.local_load"
        self.note("read" if load else "write", one.line, buf=self.slot(one, scope, one.operands()[0 if load else 1]))
        scope |= dict.fromkeys(one.results)

    def fence(self, one: Operation, _: Scope) -> None:
        """Order accesses of the two proxies."""
        self.note("proxy_fence", one.line)


def product(one: Operation) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the operands of a matrix instruction, the last ones whether it adds and whether it runs, and its barriers
    with their predicates. What stands in brackets behind the accumulator is a token.
    """
    found = re.findall(rf"({_VALUE})(?:\[({_VALUE})?\])?", re.split(r"\{", one.head)[0])
    signals = [pair for pair in found[3:] if pair[1]]
    names = [name for name, _ in found[:3]] + [name for name, predicate in found[3:] if not predicate]
    if len(names) < 5:
        fail(one.line, "must be two operands, an accumulator and two conditions", one.head)
    return names, signals


def result_type(one: Operation) -> str:
    return one.types.rsplit("->", 1)[-1].strip()


def is_eventful(one: Operation) -> bool:
    """Whether an operation, or one inside it, may touch memory or barriers."""
    return any(_is_eventful(inner) for inner in one.walk())


def _is_eventful(one: Operation) -> bool:
    if one.name in ("tt.call", "scf.while", "cf.br", "cf.cond_br", "scf.execute_region", "scf.index_switch"):
        return True
    if "memdesc" in one.types and one.name not in _IGNORED and not one.name.startswith(("scf.", "arith.")):
        return True
    return bool(_EVENTFUL.match(one.name)) and one.name not in _IGNORED and one.name not in VIEWS
