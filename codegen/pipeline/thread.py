"""What one thread of a kernel does with barriers, copies and shared memory, read from its PTX.

The scalar part of PTX is run for one thread with concrete numbers. Waits are taken to succeed at once. What comes from
global or shared memory, from other lanes or from floating point is opaque: it may be moved and computed with, but a
thread whose branches, barriers or shared addresses depend on it is refused. So is any instruction that may synchronise
or touch shared memory and is not known here.

References: PTX ISA 9.1, 9.7 (instructions), 10 (special registers).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from layoutalg.codegen.pipeline.ptx import (
    GLOBAL,
    LOCAL,
    PARAMETER_STRIDE,
    PARAMETERS,
    SHARED,
    Instruction,
    Program,
    function_of,
    not_followed,
    source,
)
from layoutalg.ground import limits

RANK_SHIFT: Final = 24
"""A shared address that ``mapa`` maps into block r of the cluster has r + 1 in these bits and above."""
_REGISTER = re.compile(r"[%$\w]+")
_SPACE = re.compile(r"\.(shared|global|local|const|param)\b")
_ELEMENTS = re.compile(r"(?:\.v(\d))?\.[a-z]+(\d+)$")
_EFFECTS = re.compile(
    r"(mbarrier|cp|bar|barrier|wgmma|tcgen05|st|ld|red|atom|multimem|mapa|call|bra|brx|ret|exit|trap|fence|elect"
    r"|setmaxnreg|ldmatrix|stmatrix)\b"
)
"""Operations that steer, synchronise or touch memory: nothing of them may be left out."""


class Event(NamedTuple):
    """What a thread does: its kind, the line of the PTX, and concrete operands.

    ``address`` is a shared address: of a barrier, a slot or the source of a store. ``value`` is a parity, a count, a
    number of bytes, of groups, of threads or a mask. ``barrier`` and ``numbers`` are those of a copy (barrier,
    coordinates, or its source in shared memory) or of a multiply (the addresses of its descriptors); ``name`` is the
    parameter that holds the map.
    """

    kind: str
    line: int
    address: int = 0
    value: int = 0
    barrier: int = 0
    numbers: tuple[int | None, ...] = ()
    name: str = ""


class Opaque(NamedTuple):
    """A value that is not followed, and the line of the PTX it comes from."""

    line: int
    text: str


Value: TypeAlias = int | Opaque | None
_TX = r"mbarrier::complete_tx::bytes"
_EVENTS: Final[Sequence[tuple[str, str, Mapping[str, int]]]] = (
    (r"mbarrier\.init\.shared.*", "init", {"address": 0, "value": 1}),
    (r"mbarrier\.(test|try)_wait\.parity\..*", "wait", {"address": 1, "value": 2}),
    (r"mbarrier\.expect_tx\..*", "expect", {"address": 0, "value": 1}),
    (r"mbarrier\.arrive\.expect_tx\..*", "arrive_tx", {"address": 1, "value": 2}),
    (r"mbarrier\.arrive\.(?!noComplete).*", "arrive", {"address": 1, "value": 2}),
    (r"cp\.async\.bulk\.commit_group", "bulk_commit", {}),
    (r"cp\.async\.bulk\.wait_group(\.read)?", "bulk_wait", {"value": 0}),
    (rf"cp\.async\.bulk\.tensor\..*{_TX}(\.L2.*)?", "tma_load", {"address": 0, "name": 1, "barrier": 2}),
    (
        rf"cp\.async\.bulk\.tensor\..*{_TX}\.multicast.*",
        "tma_load",
        {"address": 0, "name": 1, "barrier": 2, "value": 3},
    ),
    (rf"cp\.async\.bulk\.shared::\w+\.global\.{_TX}(\.L2.*)?", "tma_load", {"address": 0, "barrier": 3}),
    (
        rf"cp\.async\.bulk\.shared::cluster\.shared::cta\.{_TX}",
        "dsmem_copy",
        {"address": 0, "source": 1, "value": 2, "barrier": 3},
    ),
    (r"cp\.(reduce\.)?async\.bulk\.tensor\..*bulk_group.*", "tma_store", {"name": 0, "address": 1}),
    (r"cp\.(reduce\.)?async\.bulk\.global\.shared::cta\.bulk_group.*", "tma_store", {"address": 1}),
    (r"cp\.async\.commit_group", "cp_async_commit", {}),
    (r"cp\.async\.wait_(group|all)", "cp_async_wait", {"value": 0}),
    (r"cp\.async\.c[ag]\.shared.*", "cp_async", {"address": 0, "value": 2}),
    (r"cp\.async\.mbarrier\.arrive\.noinc\..*", "cp_async_arrive", {"address": 0}),
    (r"wgmma\.fence\..*", "mma_fence", {}),
    (r"wgmma\.commit_group\..*", "mma_commit", {}),
    (r"wgmma\.wait_group\..*", "mma_wait", {"value": 0}),
    (r"wgmma\.mma_async\..*", "mma", {"numbers": 1}),
    (r"bar(rier)?(\.cta)?\.sync.*", "bar", {"address": 0, "value": 1}),
    (r"bar(rier)?(\.cta)?\.arrive.*", "bar_arrive", {"address": 0, "value": 1}),
    (r"bar\.warp\.sync.*", "warp_bar", {}),
    (r"barrier\.cluster\.arrive.*", "cluster_arrive", {}),
    (r"barrier\.cluster\.wait.*", "cluster_wait", {}),
    (r"fence\.proxy\.async.*", "proxy_fence", {}),
    (r"setmaxnreg\..*", "registers", {"value": 0}),
    (r"ldmatrix\..*", "read", {"address": 1}),
    (r"stmatrix\..*", "write", {"address": 0}),
)
"""Instructions that are noted, whole operations: the event's kind, and the operands that are its entries."""
_HARMLESS: Final = (
    r"fence\.(?!proxy\.async).*|membar\..*|nanosleep.*|prefetchu?\..*|cp\.async\.bulk\.prefetch.*|griddepcontrol.*"
    r"|discard.*|applypriority.*"
)


class Thread:
    """A thread that runs a program.

    Args:
        program: The program.
        arguments: The kernel's arguments: integers, bytes, or None for what is not known.
        thread: Its number in the block.
        threads: Threads of a block.
        block: Its block.
        blocks: Blocks of the grid.
        cluster: Blocks of a cluster.
        others: What lanes of the warp that ran before gave to shuffles: (line, value) of each.
    """

    def __init__(
        self,
        program: Program,
        arguments: Sequence[object],
        thread: int,
        threads: int,
        block: int,
        blocks: int,
        cluster: int = 1,
        others: Mapping[int, Sequence[tuple[int, Value]]] | None = None,
    ) -> None:
        self.others, self.shuffled = others or {}, list[tuple[int, Value]]()
        self.program, self.arguments, self.lane, self.threads = program, arguments, thread % 32, threads
        self.events: list[Event] = []
        self.looked: tuple[int, int] | None = None  # barrier and parity of a wait that has not passed
        self.memory: dict[int, Value] = {}
        self.place = 0
        rank, first = block % cluster, {"tid": thread, "ntid": threads, "ctaid": block, "nctaid": blocks}
        first |= {"cluster_ctaid": rank, "cluster_nctaid": cluster}
        first |= {"clusterid": block // cluster, "nclusterid": blocks // cluster}
        special = {f"%{name}.{axis}": int(name in ("ntid", "nctaid")) for name in first for axis in "yz"}
        special |= {f"%{name}.x": value for name, value in first.items()}
        special |= {"%laneid": self.lane, "%cluster_ctarank": rank, "%cluster_nctarank": cluster, "WARP_SZ": 32}
        self.registers: dict[str, Value] = {**special, **program.symbols}

    def run(self, until: Sequence[str] = ()) -> tuple[Event, ...]:
        """Run to the end, or to the first event of some kinds; return what the thread does.

        Raises: RepresentabilityError: LA980, with the line of the PTX.
        """
        instructions, registers, left = self.program.instructions, self.registers, limits.PTX_STEPS
        actions = self.program.actions
        while self.place < len(instructions):
            place, left = self.place, left - 1
            now, self.place = instructions[place], place + 1
            if not left:
                self.refuse(now, f"it has not ended after {limits.PTX_STEPS} instructions")
            if now.guard:
                holds = registers.get(now.guard)
                if not isinstance(holds, int):
                    if _EFFECTS.match(now.operation):
                        self.known(holds, now, "its guard")
                    _opaque(self, now)
                    continue
                if holds == now.negated:
                    continue
            action = actions.get(place)
            if action is None:
                action = actions[place] = _action(self.program, now.operation, now.operands)
            action(self, now)
            if until and self.events and self.events[-1].kind in until:
                break
        return tuple(self.events)

    def refuse(self, now: Instruction, because: str) -> NoReturn:
        """Refuse the program at an instruction."""
        raise not_followed(f"line {now.line} of the PTX: {now.text[:120]}", because)

    def value(self, operand: str) -> Value:
        """The value of an operand, as it is written."""
        found = source(operand)
        if not isinstance(found, tuple):
            return found
        value = self.registers.get(found[0])
        return value + found[1] if isinstance(value, int) else value

    def known(self, value: Value, now: Instruction, what: str) -> int:
        """A value, refused if it is opaque."""
        if not isinstance(value, int):
            origin = f"line {value.line}: {value.text[:80]}" if value else "what is not written"
            self.refuse(now, f"{what} depends on {origin}")
        return value

    def operand(self, now: Instruction, place: int) -> int:
        """The operand at a place, which must be known; a shared address without its window."""
        text = now.operands[place]
        found = self.known(self.value(text.strip("[] ")), now, "its address" if text[0] == "[" else f"operand {place}")
        return (found - SHARED if found >= SHARED else found) & 0xFFFFFFFF

    def write(self, register: str, value: Value) -> None:
        """Write a register."""
        kept = (1 << self.program.width(register)) - 1
        self.registers[register] = value & kept if isinstance(value, int) else value

    def tensor(self, now: Instruction, place: int) -> tuple[str, tuple[int | None, ...]]:
        """The parameter that holds the map of a copy, and the coordinates that are known."""
        at, _, coordinates = now.operands[place].strip("[] ").partition(",")
        offset = self.known(self.value(at.strip()), now, "its map") - PARAMETERS
        values = [self.value(each.strip()) for each in coordinates.strip(" {}").split(",")]
        numbers = tuple(
            [(each & 0xFFFFFFFF ^ 1 << 31) - (1 << 31) if isinstance(each, int) else None for each in values]
        )
        names = dict(enumerate(self.program.parameters))
        return names.get(offset // PARAMETER_STRIDE, f"address {offset + PARAMETERS}"), numbers

    def byte(self, at: int) -> Value:
        """A byte of a parameter, a constant or local memory."""
        place, inside = divmod(at - PARAMETERS, PARAMETER_STRIDE)
        if 0 <= place < len(self.program.parameters):
            given = self.arguments[place]
            if isinstance(given, bytes):
                return given[inside] if inside < len(given) else None
            return given >> 8 * inside & 255 if isinstance(given, int) else None
        return self.memory.get(at, self.program.constants.get(at))


Action: TypeAlias = Callable[[Thread, Instruction], None]


def _action(program: Program, operation: str, operands: tuple[str, ...]) -> Action:
    """Return what an instruction of a program does."""
    handler = _handler(operation)
    if handler is _move and not any(operand.startswith("{") for operand in operands):
        return functools.partial(_copy, _read_from(operands[1]), (1 << program.width(operands[0])) - 1)
    if handler:
        return handler
    if _EFFECTS.match(operation) or any("[" in operand for operand in operands):
        return _refused
    computed = function_of(operation)
    if not computed or len(operands) != len(computed[1]) + 1:
        return _opaque
    if None in [source(operand) for operand in operands[1:]]:
        return _opaque
    inputs = [
        (*_read_from(operand), (1 << bits) - 1, 1 << bits - 1 if signed else 0)
        for operand, (bits, signed) in zip(operands[1:], computed[1], strict=True)
    ]
    return functools.partial(_computed, computed[0], inputs, (1 << program.width(operands[0])) - 1)


@functools.lru_cache(maxsize=1 << 12)
def _handler(operation: str) -> Action | None:
    """Return what an operation does, whatever its operands; None of a function."""
    for pattern, kind, entries in _EVENTS:
        if re.fullmatch(pattern, operation):
            return functools.partial(_noted, kind, entries)
    return (lambda *_: None) if re.fullmatch(_HARMLESS, operation) else _HANDLERS.get(operation.split(".")[0])


def _read_from(operand: str) -> tuple[str, int]:
    """Return the register of an operand, "" of a number, and what is added to it; what is neither has no value."""
    found = source(operand)
    return found if isinstance(found, tuple) else (operand, 0) if found is None else ("", found)


def _copy(given: tuple[str, int], kept: int, thread: Thread, now: Instruction) -> None:
    """Write a number or a register to a register."""
    name, far = given
    value = thread.registers.get(name) if name else 0
    found = value + far & kept if isinstance(value, int) else value or Opaque(now.line, now.text)
    thread.registers[now.operands[0]] = found


def _computed(
    function: Callable[..., int], inputs: Sequence[tuple[str, int, int, int]], kept: int, thread: Thread,
    now: Instruction,
) -> None:  # fmt: skip
    """Write a function of integers."""
    values = []
    for name, given, mask, sign in inputs:
        if name:
            value = thread.registers.get(name)
            if not isinstance(value, int):
                thread.registers[now.operands[0]] = value or Opaque(now.line, now.text)
                return
            given += value
        given &= mask
        values.append(given - mask - 1 if given & sign else given)
    try:
        thread.registers[now.operands[0]] = function(*values) & kept
    except ZeroDivisionError:
        _opaque(thread, now)


@functools.lru_cache(maxsize=1 << 14)
def _registers(operand: str) -> tuple[str, ...]:
    """The registers in an operand."""
    return tuple(_REGISTER.findall(operand))


def _opaque(thread: Thread, now: Instruction) -> None:
    """Everything that the instruction may write is opaque."""
    if now.operands and now.operands[0][0] != "[":
        lost = Opaque(now.line, now.text)
        for name in _registers(now.operands[0]):
            thread.registers[name] = lost


def _refused(thread: Thread, now: Instruction) -> None:
    thread.refuse(now, "it may synchronise or use shared memory, and its meaning is not known here")


def _noted(kind: str, entries: Mapping[str, int], thread: Thread, now: Instruction) -> None:
    """Note an event."""
    found: dict[str, Any] = {"value": {"arrive": 1, "bar": thread.threads}.get(kind, 0)}
    for entry, place in entries.items():
        if entry == "name":
            found["name"], found["numbers"] = thread.tensor(now, place)
        elif entry == "numbers":  # the operands after the accumulator: registers of A, or a descriptor; one of B
            starts = [place for place in (1, 2) if now.operands[place][0] != "{"]
            found["numbers"] = tuple([(thread.operand(now, place) & 0x3FFF) << 4 for place in starts])
        elif entry == "source":
            found["numbers"] = (thread.operand(now, place),)
        elif place < len(now.operands):
            found[entry] = thread.operand(now, place)
    if kind == "wait":  # the first look is always too early: who does not look again does not wait
        looked = found["address"], found["value"]
        thread.looked = looked if thread.looked != looked else None
        thread.write(now.operands[0], int(thread.looked is None))
        if thread.looked:
            return
    thread.events.append(Event(kind, now.line, **found))
    if kind in ("arrive", "arrive_tx", "mma", "read"):
        _opaque(thread, now)


def _move(thread: Thread, now: Instruction) -> None:
    target, given = ([name.strip() for name in operand.strip("{}").split(",")] for operand in now.operands)
    many = max(len(target), len(given))
    each = int(now.operation[-2:]) // many if many > 1 else 0
    values = [thread.value(name) for name in given]
    lost = [value for value in values if not isinstance(value, int)]
    kept = (1 << each) - 1 if len(given) > 1 else -1
    whole = sum([(value & kept) << each * i for i, value in enumerate(values) if isinstance(value, int)])
    for place, name in enumerate(target):
        thread.write(name, lost[0] or Opaque(now.line, now.text) if lost else whole >> each * place)


def _convert_address(thread: Thread, now: Instruction) -> None:
    value = thread.value(now.operands[1])
    if isinstance(value, int) and "shared" in now.operation:
        value += -SHARED if ".to." in now.operation else SHARED
    thread.write(now.operands[0], value)


def _branch(thread: Thread, now: Instruction) -> None:
    target = now.operands[0]
    if now.operation.startswith("brx"):
        target = thread.program.tables[now.operands[1]][thread.operand(now, 0)]
    thread.place = thread.program.labels[target]


def _end(thread: Thread, _now: Instruction) -> None:
    thread.place = len(thread.program.instructions)


def _elect(thread: Thread, now: Instruction) -> None:
    """The lane with the lowest number is elected."""
    mask = thread.operand(now, 1)
    lane, _, predicate = now.operands[0].partition("|")
    thread.write(lane, (mask & -mask).bit_length() - 1)
    thread.write(predicate, int(mask & -mask == 1 << thread.lane))


def _shuffle(thread: Thread, now: Instruction) -> None:
    """With ``idx`` a lane may read its own value, or that of a lane that ran before; what else comes is opaque."""
    place, lane = len(thread.shuffled), thread.value(now.operands[2])
    thread.shuffled.append((now.line, thread.value(now.operands[1])))
    _opaque(thread, now)
    if ".idx." in now.operation and isinstance(lane, int):
        given = thread.shuffled if lane & 31 == thread.lane else thread.others.get(lane & 31, ())
        if place < len(given) and given[place][0] == now.line:
            register, _, predicate = now.operands[0].partition("|")
            thread.write(register, given[place][1])
            thread.write(predicate or "_", 1)


@functools.lru_cache(maxsize=1 << 12)
def _access_form(operation: str) -> tuple[str, str, int, int] | None:
    """Return the kind, space, elements and bytes of an element of an access; None if it is not a plain access."""
    elements, space = _ELEMENTS.search(operation), _SPACE.search(operation)
    if not elements or ".async" in operation or ".bulk" in operation:
        return None
    return operation.split(".")[0], space[1] if space else "", int(elements[1] or 1), int(elements[2]) // 8


def _access(thread: Thread, now: Instruction) -> None:
    """A load, a store or an atomic access."""
    form = _access_form(now.operation)
    if form is None:
        return _refused(thread, now)
    kind, space, many, size = form
    place = next(place for place, operand in enumerate(now.operands) if operand[0] == "[")
    at = thread.value(now.operands[place].strip("[] "))
    if space == "shared" or (not space and thread.known(at, now, "its address") >= SHARED):
        for each in {"ld": ("read",), "st": ("write",)}.get(kind, ("read", "write")):
            thread.events.append(Event(each, now.line, thread.operand(now, place), size * many))
    if kind != "st":
        _opaque(thread, now)
        if isinstance(at, int) and (space in ("local", "const", "param") or ".nc." in now.operation):
            _read(thread, now, at, size)
    elif isinstance(at, int) and LOCAL <= at < GLOBAL:
        for index, name in enumerate(now.operands[1].strip("{}").split(",")):
            value = thread.value(name.strip())
            for i in range(size):
                thread.memory[at + index * size + i] = value >> 8 * i & 255 if isinstance(value, int) else value
    return None


def _read(thread: Thread, now: Instruction, at: int, size: int) -> None:
    """Load what no other thread writes, where it is known."""
    signed = bool(re.search(r"\.s\d+$", now.operation))
    for index, name in enumerate(_registers(now.operands[0])):
        data = [thread.byte(at + index * size + i) for i in range(size)]
        known = [byte for byte in data if isinstance(byte, int)]
        if len(known) == size:
            thread.write(name, int.from_bytes(bytes(known), "little", signed=signed))


def _mapped(thread: Thread, now: Instruction) -> None:
    at = thread.known(thread.value(now.operands[1]), now, "its address")
    thread.write(now.operands[0], at + (thread.operand(now, 2) + 1 << RANK_SHIFT))


_HANDLERS: Final[Mapping[str, Action]] = {
    "mov": _move,
    "cvta": _convert_address,
    "bra": _branch,
    "brx": _branch,
    "ret": _end,
    "exit": _end,
    "elect": _elect,
    "shfl": _shuffle,
    "ld": _access,
    "ldu": _access,
    "st": _access,
    "atom": _access,
    "red": _access,
    "mapa": _mapped,
}
