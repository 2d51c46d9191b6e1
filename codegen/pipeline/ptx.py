"""What one thread of a kernel does with barriers, copies and shared memory, read from its PTX.

The scalar part of PTX is run for one thread with concrete numbers. Waits are taken to succeed at once. What comes from
global or shared memory, from other lanes or from floating point is opaque: it may be moved and computed with, but a
thread whose branches, barriers or shared addresses depend on it is refused. So is any instruction that may synchronise
or touch shared memory and is not known here.

References: PTX ISA 9.1, 9.7 (instructions), 10 (special registers), 5.2 (generic addresses).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, TypeAlias

from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, RepresentabilityError

SHARED_BASE = 1024
"""Where the shared memory of a block begins; dynamic shared memory begins at the next multiple of it."""
RANK_SHIFT = 24
"""Shared addresses of block r of the cluster, seen from another block, are r + 1 in these bits and above."""
_PARAMETERS, _STRIDE, _LOCAL, _GLOBAL, _SHARED = 1 << 50, 4096, 1 << 52, 1 << 54, 1 << 56
_MEMORY = (
    "mbarrier",
    "cp",
    "bar",
    "barrier",
    "wgmma",
    "tcgen05",
    "st",
    "ld",
    "red",
    "atom",
    "mapa",
    "call",
    "multimem",
)


class Event(NamedTuple):
    """What a thread does: its kind, the line of the PTX, and concrete operands.

    ``address`` is a shared address: of a barrier, a slot or the source of a store. ``value`` is a parity, a count, a
    number of bytes, of groups, of threads or a mask. ``barrier`` and ``numbers`` are those of a copy (barrier,
    coordinates) or of a multiply (the addresses of its descriptors); ``name`` is the parameter that holds the map.
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


Value: TypeAlias = int | Opaque
Source: TypeAlias = int | tuple[str, int]


@dataclass(slots=True)
class Instruction:
    """An instruction: its line, text, parts of the operation, operands, and the predicate that guards it."""

    line: int
    text: str
    parts: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str = ""
    negated: bool = False
    action: Callable[[Thread, Instruction], int | None] | None = None


@dataclass(slots=True)
class Program:
    """An entry of a PTX module: instructions, labels, addresses of symbols, widths of registers, constant bytes."""

    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()

    def width(self, register: str) -> int:
        """Bits of a register."""
        return self.widths.get(register) or self.widths.get(register.rstrip("0123456789"), 64)


_VARIABLE = re.compile(
    r"^\s*(?:\.(?:visible|extern|weak|common)\s+)*\.(shared|global|const|local)\s+(?:\.align\s+(\d+)\s+)?\.\w(\d+)\s+"
    r"([\w$]+)(\[\d*\])?(?:\s*=\s*\{([^}]*)\})?\s*;", re.MULTILINE)  # fmt: skip
_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|\.loc[^\n]*|(?P<label>[$\w%]+)\s*:(?!:)|(?P<open>\{)|(?P<close>\})"
    r"|(?P<statement>[^;{}]+(?:\{[^{}]*\}[^;{}]*)*;)", re.DOTALL)  # fmt: skip
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")
_NAME = re.compile(r"[%$\w]+(?:\.[xyzw])?")
_TYPE = re.compile(r"([subf])(8|16|32|64)|pred")


@functools.lru_cache(maxsize=limits.KERNELS)
def program(text: str, name: str) -> Program:
    """Return an entry of a PTX module, read."""
    head = re.search(rf"\.entry\s+{re.escape(name)}\s*\(([^)]*)\)[^{{]*\{{", text)
    if not head:
        raise RepresentabilityError(Diagnostic("LA980", "this PTX cannot be followed", (f"kernel {name}",), "no entry"))
    made = Program(parameters=tuple(re.sub(r"\[.*", "", entry).split()[-1] for entry in head[1].split(",") if entry))
    made.symbols |= {parameter: _PARAMETERS + _STRIDE * place for place, parameter in enumerate(made.parameters)}
    _place(made, text)
    scopes: list[dict[str, str]] = [{}]
    place, line = head.end(), text.count("\n", 0, head.end()) + 1
    while scopes:
        found = _TOKEN.match(text, place)
        if not found:
            raise RepresentabilityError(
                Diagnostic("LA980", "this PTX cannot be followed", (f"line {line}",), "its text is not understood")
            )
        if found.lastgroup == "label":
            made.labels[found["label"]] = len(made.instructions)
        elif found.lastgroup == "open":
            scopes.append(dict(scopes[-1]))
        elif found.lastgroup == "close":
            scopes.pop()
        elif found.lastgroup == "statement":
            _statement(made, " ".join(found["statement"][:-1].split()), line, scopes)
        place, line = found.end(), line + found[0].count("\n")
    return made


def _place(made: Program, text: str) -> None:
    """Give every variable of the module an address, and note the bytes of constants."""
    next_free = {"shared": SHARED_BASE, "global": _GLOBAL, "const": _GLOBAL + (1 << 40), "local": _LOCAL}
    dynamic = []
    for space, align, bits, name, extent, given in _VARIABLE.findall(text):
        size = int(bits) // 8
        if extent == "[]":
            dynamic.append(name)
            continue
        start = -(-next_free[space] // int(align or size)) * int(align or size)
        many = int(extent[1:-1]) if extent else 1
        made.symbols[name], next_free[space] = start, start + many * size
        values = [entry.strip() for entry in given.split(",")] if given else []
        if space in ("const", "global") and all(_NUMBER.fullmatch(entry) for entry in values):
            for place in range(many if given or space == "const" else 0):
                number = _number(values[place]) if place < len(values) else 0
                made.constants |= {start + place * size + i: number >> 8 * i & 255 for i in range(size)}
    made.symbols |= dict.fromkeys(dynamic, -(-next_free["shared"] // SHARED_BASE) * SHARED_BASE)


def _number(text: str) -> int:
    return int(text.rstrip("U"), 0)


def _statement(made: Program, text: str, line: int, scopes: list[dict[str, str]]) -> None:
    if text.startswith(".reg"):
        kind = re.match(r"\.reg\s+\.(\w+)\s+", text)
        bits = 1 if not kind or kind[1] == "pred" else int(re.sub(r"\D", "", kind[1]) or 64)
        for entry in text[kind.end() if kind else 0 :].split(","):
            register = entry.strip().split("<")[0]
            if len(scopes) > 1:  # a name of inline assembly hides one outside
                scopes[-1][register] = register = f"{register}${line}$"
            made.widths[register] = bits
        return
    if text.startswith(".branchtargets"):
        label = next(reversed(made.labels))
        made.tables[label] = tuple(part.strip() for part in text.split(None, 1)[1].split(","))
        return
    if text.startswith("."):
        return
    guard = re.match(r"@(!?)([%\w$]+)\s+", text)
    rest = text[guard.end() :] if guard else text
    operation, _, operands = rest.partition(" ")
    hidden = scopes[-1]
    if hidden:
        operands = re.sub(r"[%\w$]+", lambda found: hidden.get(found[0], found[0]), operands)
    parts = tuple(operation.replace("::", ":").split("."))
    split = tuple(part.strip() for part in re.split(r",(?![^{]*\})(?![^\[]*\])", operands)) if operands else ()
    register = hidden.get(guard[2], guard[2]) if guard else ""
    made.instructions.append(Instruction(line, text, parts, split, register, bool(guard and guard[1])))
    made.instructions[-1].action = _action(made.instructions[-1])


def _source(operand: str) -> Source | None:
    """An operand: a number, or a register or symbol plus a number; None if it is neither."""
    if _NUMBER.fullmatch(operand):
        return _number(operand)
    if re.fullmatch(r"0[fd][0-9a-fA-F]+", operand):
        return int(operand[2:], 16)
    found = re.fullmatch(r"([%$\w]+(?:\.[xyzw])?)\s*(?:\+\s*(-?\w+))?", operand)
    return (found[1], _number(found[2]) if found[2] else 0) if found else None


class Thread:
    """A thread that runs a program.

    Args:
        program: The program.
        arguments: The kernel's arguments: integers, bytes, or None for what is not known; pointers get addresses.
        thread: Its number in the block.
        threads: Threads of a block.
        block: Its block.
        blocks: Blocks of the grid.
        cluster: Blocks of a cluster.
    """

    def __init__(
        self, program: Program, arguments: Sequence[object], thread: int, threads: int, block: int, blocks: int,
        cluster: int = 1,
    ) -> None:  # fmt: skip
        self.program, self.arguments, self.lane, self.rank = program, arguments, thread % 32, block % cluster
        self.events: list[Event] = []
        self.memory: dict[int, Value] = {}
        special: dict[str, Value] = {
            "%tid.x": thread, "%ntid.x": threads, "%ctaid.x": block, "%nctaid.x": blocks, "%laneid": self.lane,
            "%cluster_ctarank": self.rank, "%cluster_nctarank": cluster, "%cluster_ctaid.x": self.rank, "WARP_SZ": 32,
            "%cluster_nctaid.x": cluster, "%clusterid.x": block // cluster, "%nclusterid.x": blocks // cluster,
            "%lanemask_lt": (1 << self.lane) - 1, "%lanemask_eq": 1 << self.lane, "%SP": _LOCAL,
            "%dynamic_smem_offset": SHARED_BASE,
        }  # fmt: skip
        for dimension in "yz":
            special |= {f"%tid.{dimension}": 0, f"%ctaid.{dimension}": 0}
            special |= {f"%{name}.{dimension}": 1 for name in ("ntid", "nctaid")}
        self.registers: dict[str, Value] = {**special, **program.symbols}

    def run(self) -> tuple[Event, ...]:
        """Run to the end; return what the thread does.

        Raises: RepresentabilityError: LA980, with the line of the PTX.
        """
        instructions, registers, place, left = self.program.instructions, self.registers, 0, limits.PTX_STEPS
        while place < len(instructions):
            now, left = instructions[place], left - 1
            if not left:
                self.refuse(now, f"it has not ended after {limits.PTX_STEPS} instructions")
            place += 1
            if now.guard:
                holds = registers.get(now.guard)
                if type(holds) is not int:
                    self.skip(now, holds)
                    continue
                if (holds & 1) == now.negated:
                    continue
            target = now.action(self, now) if now.action else None
            if target is not None:
                place = target
        return tuple(self.events)

    def refuse(self, now: Instruction, because: str) -> NoReturn:
        """Refuse the program at an instruction."""
        where = f"line {now.line} of the PTX: {now.text[:120]}"
        raise RepresentabilityError(Diagnostic("LA980", "this PTX cannot be followed", (where,), because))

    def skip(self, now: Instruction, guard: Value | None) -> None:
        """Leave out an instruction whose guard is not known: only what it writes is lost."""
        if now.parts[0] in (*_MEMORY, "bra", "brx", "ret", "exit", "fence", "elect", "setmaxnreg"):
            self.known(guard, now, "its guard")
        _opaque(self, now)

    def value(self, operand: str) -> Value:
        """The value of an operand."""
        source = _source(operand)
        if isinstance(source, int):
            return source
        name, more = source or (operand, 0)
        found = self.registers.get(name)
        return found + more if isinstance(found, int) else found or Opaque(0, f"{operand} is not written")

    def known(self, value: Value | None, now: Instruction, what: str) -> int:
        """A value, refused if it is opaque."""
        if not isinstance(value, int):
            source = f"line {value.line}: {value.text}" if value else "what is not written"
            self.refuse(now, f"{what} depends on {source}")
        return value

    def number(self, now: Instruction, place: int, default: int = 0) -> int:
        """The operand at a place, which must be known."""
        if place >= len(now.operands):
            return default
        return self.known(self.value(now.operands[place]), now, f"operand {place + 1}") & 0xFFFFFFFF

    def address(self, now: Instruction, place: int) -> int:
        """The shared address in brackets at a place."""
        found = self.known(self.value(now.operands[place].strip("[] ")), now, "its address")
        return found - _SHARED if found >= _SHARED else found & 0xFFFFFFFF

    def tensor(self, now: Instruction, place: int) -> tuple[str, tuple[int | None, ...]]:
        """The parameter that holds the map of a copy, and the coordinates that are known."""
        at, _, coordinates = now.operands[place].strip("[] ").partition(",")
        found = self.known(self.value(at.strip()), now, "its map") - _PARAMETERS
        names, place = self.program.parameters, found // _STRIDE
        values = [self.value(each.strip()) for each in coordinates.strip(" {}").split(",")]
        numbers = [(each & 0xFFFFFFFF ^ 1 << 31) - (1 << 31) if isinstance(each, int) else None for each in values]
        return names[place] if 0 <= place < len(names) else f"byte {found}", tuple(numbers)

    def byte(self, at: int) -> Value | None:
        """A byte of a parameter, of a constant or of local memory."""
        place, inside = divmod(at - _PARAMETERS, _STRIDE)
        if 0 <= place < len(self.program.parameters):
            given = self.arguments[place]
            if isinstance(given, bytes):
                return given[inside] if inside < len(given) else None
            return given >> 8 * inside & 255 if isinstance(given, int) else None
        return self.memory.get(at, self.program.constants.get(at))

    def write(self, register: str, value: Value) -> None:
        """Write a register."""
        if register != "_":
            kept = (1 << self.program.width(register)) - 1
            self.registers[register] = value & kept if isinstance(value, int) else value

    def note(self, now: Instruction, kind: str, **more: object) -> None:
        """Note an event."""
        self.events.append(Event(kind, now.line, **more))  # type: ignore[arg-type]


def _opaque(thread: Thread, now: Instruction) -> None:
    """Everything that the instruction may write is opaque."""
    if now.operands and not now.operands[0].startswith("["):
        for register in _NAME.findall(now.operands[0]):
            thread.write(register, Opaque(now.line, now.text[:80]))


def _refused(thread: Thread, now: Instruction) -> None:
    thread.refuse(now, "it may synchronise or use shared memory, and its meaning is not known here")


# Integers: functions of the type's bits and the operands; "t" is an operand of the instruction's type, "u" one of type
# u32, "p" a predicate, "w" one of twice the bits.


def _truncated(top: int, bottom: int) -> int:
    quotient = abs(top) // abs(bottom)
    return quotient if (top < 0) == (bottom < 0) else -quotient


def _field(signed: bool, a: int, start: int, many: int) -> int:
    start, many = start & 255, many & 255
    found = a >> start & (1 << many) - 1
    return found - (1 << many) if signed and many and found >> many - 1 else found


def _inserted(bits: int, a: int, b: int, start: int, many: int) -> int:
    mask = (1 << (many & 255)) - 1 << (start & 255) & (1 << bits) - 1
    return b & ~mask | a << (start & 255) & mask


def _permuted(_: int, a: int, b: int, selector: int) -> int:
    found = 0
    for place in range(4):
        byte = (b << 32 | a) >> 8 * (selector >> 4 * place & 7) & 255
        if selector >> 4 * place & 8:
            byte = 255 * (byte >> 7)
        found |= byte << 8 * place
    return found


def _logic(bits: int, a: int, b: int, c: int, table: int) -> int:
    found, every = 0, (1 << bits) - 1
    for row in range(8):
        if table >> row & 1:
            one = [value if row >> 2 - place & 1 else ~value for place, value in enumerate((a, b, c))]
            found |= one[0] & one[1] & one[2] & every
    return found


_INTEGER: Mapping[str, tuple[str, Callable[..., int]]] = {
    "add": ("tt", lambda _, a, b: a + b),
    "sub": ("tt", lambda _, a, b: a - b),
    "mul.lo": ("tt", lambda _, a, b: a * b),
    "mul.hi": ("tt", lambda bits, a, b: a * b >> bits),
    "mul.wide": ("tt", lambda _, a, b: a * b),
    "mad.lo": ("ttt", lambda _, a, b, c: a * b + c),
    "mad.hi": ("ttt", lambda bits, a, b, c: (a * b >> bits) + c),
    "mad.wide": ("ttw", lambda _, a, b, c: a * b + c),
    "div": ("tt", lambda _, a, b: _truncated(a, b)),
    "rem": ("tt", lambda _, a, b: a - b * _truncated(a, b)),
    "min": ("tt", lambda _, a, b: min(a, b)),
    "max": ("tt", lambda _, a, b: max(a, b)),
    "abs": ("t", lambda _, a: abs(a)),
    "neg": ("t", lambda _, a: -a),
    "not": ("t", lambda _, a: ~a),
    "and": ("tt", lambda _, a, b: a & b),
    "or": ("tt", lambda _, a, b: a | b),
    "xor": ("tt", lambda _, a, b: a ^ b),
    "shl": ("tu", lambda _, a, b: a << min(b, 64)),
    "shr": ("tu", lambda _, a, b: a >> min(b, 64)),
    "shf.l.wrap": ("ttu", lambda _, a, b, c: (b << 32 | a) << (c & 31) >> 32),
    "shf.r.wrap": ("ttu", lambda _, a, b, c: (b << 32 | a) >> (c & 31)),
    "shf.l.clamp": ("ttu", lambda _, a, b, c: (b << 32 | a) << min(c, 32) >> 32),
    "shf.r.clamp": ("ttu", lambda _, a, b, c: (b << 32 | a) >> min(c, 32)),
    "popc": ("t", lambda _, a: a.bit_count()),
    "clz": ("t", lambda bits, a: bits - a.bit_length()),
    "brev": ("t", lambda bits, a: int(f"{a:0{bits}b}"[::-1], 2)),
    "bfi": ("ttuu", _inserted),
    "lop3": ("tttu", _logic),
    "prmt": ("ttu", _permuted),
    "selp": ("ttp", lambda _, a, b, c: a if c else b),
}
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_JOINED: Mapping[str, Callable[[int, int], int]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
_Action: TypeAlias = Callable[[Thread, Instruction], int | None]


def _type(text: str) -> tuple[int, bool] | None:
    """Bits of a type, and whether it is signed; None for what is no type of integers or predicates."""
    found = _TYPE.fullmatch(text)
    if not found or found[1] == "f":
        return None
    return (int(found[2]), found[1] == "s") if found[2] else (1, False)


def _computed(function: Callable[..., int], operands: Sequence[str], types: Iterable[tuple[int, bool]]) -> _Action:
    """Return the action that writes a function of integers into the first operand."""
    target, sources = operands[0], []
    for operand, (bits, signed) in zip(operands[1:], types, strict=True):
        source = _source(operand)
        if source is None:
            return _opaque
        sources.append((source, (1 << bits) - 1, 1 << bits - 1 if signed else 0))

    def action(thread: Thread, now: Instruction) -> None:
        values = []
        for source, mask, sign in sources:
            if isinstance(source, int):
                value: Value | None = source
            else:
                value = thread.registers.get(source[0])
                if not isinstance(value, int):
                    thread.registers[target] = value or Opaque(now.line, now.text)
                    return
                value += source[1]
            value = value & mask  # type: ignore[operator]
            values.append(value - mask - 1 if value & sign else value)
        try:
            thread.write(target, function(*values))
        except ZeroDivisionError:
            thread.write(target, Opaque(now.line, now.text))

    return action


def _action(now: Instruction) -> _Action:
    """Return what an instruction does."""
    name, kind = now.parts[0], _type(now.parts[-1])
    if handler := _HANDLERS.get(name):
        return handler
    if name in _MEMORY or any("[" in operand for operand in now.operands):
        return _refused
    if name == "setp" and kind and now.parts[1] in _COMPARED:
        return _comparison(now, kind)
    if name == "cvt" and kind and len(now.parts) == 3 and (into := _type(now.parts[1])):
        sign = 1 << into[0] - 1 if into[1] else 0
        return _computed(lambda a: ((a & (1 << into[0]) - 1) ^ sign) - sign, now.operands, (kind,))
    if name == "bfe" and kind and len(now.parts) == 2:
        field_of = functools.partial(_field, kind[1])
        return _computed(field_of, now.operands, (kind, (32, False), (32, False)))
    if name == "slct" and now.parts[2:] == ("s32",):
        both = _type(now.parts[1]) or (64, False)
        return _computed(lambda a, b, c: a if c >= 0 else b, now.operands, (both, both, (32, True)))
    if name == "selp" and not kind:
        kind = (64, False)
    kinds, function = _INTEGER.get(".".join(now.parts[:-1]), ("", int))
    if not kind or len(now.operands) != len(kinds) + 1:
        return _opaque
    bits, signed = kind
    types = {"t": kind, "u": (32, False), "p": (1, False), "w": (2 * bits, signed)}
    return _computed(functools.partial(function, bits), now.operands, [types[each] for each in kinds])


def _comparison(now: Instruction, kind: tuple[int, bool]) -> _Action:
    """A ``setp``: p = (a op b) join c, and q likewise with the comparison negated."""
    compare, join = _COMPARED[now.parts[1]], _JOINED.get(now.parts[2])
    if len(now.parts) != 3 + bool(join):
        return _opaque
    names, actions = now.operands[0].split("|"), []
    for name, negated in zip(names, (False, True), strict=False):
        operands = [name.strip(), *now.operands[1:3]]
        if join is None:
            actions.append(_computed(lambda a, b, no=negated: compare(a, b) != no, operands, (kind, kind)))
        else:
            turned = now.operands[3].startswith("!")
            function = lambda a, b, c, no=negated, turned=turned: join(int(compare(a, b) != no), c ^ turned)  # noqa: E731
            actions.append(_computed(function, [*operands, now.operands[3].lstrip("!")], (kind, kind, (1, False))))

    def action(thread: Thread, now: Instruction) -> None:
        for each in actions:
            each(thread, now)

    return action if len(actions) > 1 else actions[0]


# What moves values, steers, synchronises.


def _move(thread: Thread, now: Instruction) -> None:
    target, source = now.operands[0], now.operands[1]
    bits = thread.program.width(target) if target[0] != "{" else 0
    if target[0] == "{":
        names = [name.strip() for name in target.strip("{}").split(",")]
        value, each = thread.value(source), int(now.parts[-1][1:]) // len(names)
        for place, name in enumerate(names):
            thread.write(name, value >> each * place if isinstance(value, int) else value)
    elif source[0] == "{":
        values = [thread.value(name.strip()) for name in source.strip("{}").split(",")]
        each, found = bits // len(values), 0
        for place, value in enumerate(values):
            if not isinstance(value, int):
                return thread.write(target, value)
            found |= (value & (1 << each) - 1) << each * place
        thread.write(target, found)
    else:
        thread.write(target, thread.value(source))
    return None


def _convert_address(thread: Thread, now: Instruction) -> None:
    value = thread.value(now.operands[1])
    if isinstance(value, int) and "shared" in now.parts[-2]:
        value += -_SHARED if "to" in now.parts else _SHARED
    thread.write(now.operands[0], value)


def _branch(thread: Thread, now: Instruction) -> int:
    return thread.program.labels[now.operands[0]]


def _branch_by_table(thread: Thread, now: Instruction) -> int:
    targets = thread.program.tables[now.operands[1]]
    return thread.program.labels[targets[thread.number(now, 0)]]


def _end(thread: Thread, _now: Instruction) -> int:
    return len(thread.program.instructions)


def _elect(thread: Thread, now: Instruction) -> None:
    mask = thread.number(now, 1)
    chosen = (mask & -mask).bit_length() - 1
    lane, _, predicate = now.operands[0].partition("|")
    thread.write(lane, chosen)
    thread.write(predicate, int(thread.lane == chosen))


def _shuffle(thread: Thread, now: Instruction) -> None:
    """Another lane's value is opaque; with ``idx`` a lane may read its own."""
    register, _, predicate = now.operands[0].partition("|")
    lane = thread.value(now.operands[2])
    own = "idx" in now.parts and isinstance(lane, int) and lane & 31 == thread.lane
    thread.write(register, thread.value(now.operands[1]) if own else Opaque(now.line, now.text))
    if predicate:
        thread.write(predicate, 1 if own else Opaque(now.line, now.text))


def _space(now: Instruction) -> str:
    return next((part.split(":")[0] for part in now.parts if part.split(":")[0] in _SPACES), "")


_SPACES = ("shared", "global", "local", "const", "param")


def _shape(now: Instruction) -> tuple[int, int]:
    """Bytes of an element and number of elements of an access."""
    many = next((int(part[1]) for part in now.parts if part in ("v2", "v4", "v8")), 1)
    return int(re.sub(r"\D", "", now.parts[-1]) or 8) // 8, many


def _load(thread: Thread, now: Instruction) -> None:
    space, (size, many) = _space(now), _shape(now)
    at = thread.value(now.operands[1].strip("[] "))
    if space in ("", "shared"):
        found = thread.known(at, now, "its address")
        if space or found >= _SHARED:
            thread.note(now, "read", address=thread.address(now, 1), value=size * many)
    names = [name.strip() for name in now.operands[0].strip("{}").split(",")]
    signed = now.parts[-1][0] == "s"
    for place, name in enumerate(names):
        bytes_of: list[Value | None] = [None]
        if isinstance(at, int) and (space in ("local", "const", "param") or "nc" in now.parts):
            bytes_of = [thread.byte(at + place * size + i) for i in range(size)]
        if all(isinstance(byte, int) for byte in bytes_of):
            value = sum([byte << 8 * i for i, byte in enumerate(bytes_of) if isinstance(byte, int)])
            thread.write(name, value - (1 << 8 * size) if signed and value >> 8 * size - 1 else value)
        else:
            thread.write(name, next((byte for byte in bytes_of if byte), None) or Opaque(now.line, now.text))


def _store(thread: Thread, now: Instruction) -> None:
    if now.parts[1] in ("async", "bulk"):
        _refused(thread, now)
    space, (size, many) = _space(now), _shape(now)
    if space == "global":
        return
    at = thread.known(thread.value(now.operands[0].strip("[] ")), now, "its address")
    if space == "shared" or at >= _SHARED:
        thread.note(now, "write", address=thread.address(now, 0), value=size * many)
    elif at >= _LOCAL and at < _GLOBAL:
        for place, name in enumerate(now.operands[1].strip("{}").split(",")):
            value = thread.value(name.strip())
            for i in range(size):
                thread.memory[at + place * size + i] = value >> 8 * i & 255 if isinstance(value, int) else value


def _exchange(thread: Thread, now: Instruction) -> None:
    """An atomic access, or one of matrices of a warp."""
    place = next(place for place, operand in enumerate(now.operands) if operand.startswith("["))
    if now.parts[1] == "async":
        _refused(thread, now)
    at, space = thread.value(now.operands[place].strip("[] ")), _space(now)
    if space == "shared" or (not space and thread.known(at, now, "its address") >= _SHARED):
        size = 16 if "matrix" in now.parts[0] else _shape(now)[0]
        for kind in {"ldmatrix": ("read",), "stmatrix": ("write",)}.get(now.parts[0], ("read", "write")):
            thread.note(now, kind, address=thread.address(now, place), value=size)
    _opaque(thread, now)


def _barrier(thread: Thread, now: Instruction) -> None:
    """An ``mbarrier`` instruction."""
    place = next(place for place, operand in enumerate(now.operands) if operand.startswith("["))
    kind, at = now.parts[1], thread.address(now, place)
    if kind == "init":
        thread.note(now, "init", address=at, value=thread.number(now, place + 1))
    elif kind in ("test_wait", "try_wait") and "parity" in now.parts:
        thread.note(now, "wait", address=at, value=thread.number(now, place + 1))
        thread.write(now.operands[0], 1)
    elif kind == "expect_tx":
        thread.note(now, "expect", address=at, value=thread.number(now, place + 1))
    elif kind == "arrive" and "noComplete" not in now.parts:
        expects = "expect_tx" in now.parts
        value = thread.number(now, place + 1, 1)
        thread.note(now, "arrive_tx" if expects else "arrive", address=at, value=value)
        if place:
            _opaque(thread, now)
    else:
        _refused(thread, now)


def _copy(thread: Thread, now: Instruction) -> None:
    """A ``cp`` instruction."""
    parts = [part for part in now.parts if part not in ("reduce",)]
    bulk, last = "bulk" in parts, len(now.operands) - 1
    kind = "bulk" if bulk else "cp_async"
    if "commit_group" in parts or "wait_group" in parts or "wait_all" in parts:
        value = thread.number(now, 0) if now.operands else 0
        thread.note(now, f"{kind}_commit" if "commit_group" in parts else f"{kind}_wait", value=value)
    elif "prefetch" in parts:
        return
    elif "mbarrier" in parts and "noinc" in parts:
        thread.note(now, "cp_async_arrive", address=thread.address(now, 0))
    elif (
        bulk
        and "mbarrier:complete_tx:bytes" in parts
        and parts[parts.index("mbarrier:complete_tx:bytes") - 1] != ("shared:cta")
    ):
        tensor = "tensor" in parts
        mask = thread.number(now, 3 if tensor else 4) if "multicast:cluster" in parts else 0
        name, numbers = thread.tensor(now, 1) if tensor else ("", (thread.number(now, 2),))
        barrier = thread.address(now, 2 if tensor else 3)
        thread.note(
            now, "tma_load", address=thread.address(now, 0), value=mask, barrier=barrier, name=name, numbers=numbers
        )
    elif bulk and "bulk_group" in parts:
        tensor = "tensor" in parts
        name, numbers = thread.tensor(now, 0) if tensor else ("", (thread.number(now, 2),))
        thread.note(now, "tma_store", address=thread.address(now, 1), name=name, numbers=numbers)
    elif parts[2] in ("ca", "cg") and last >= 2:
        thread.note(now, "cp_async", address=thread.address(now, 0), value=thread.number(now, 2))
    else:
        _refused(thread, now)


def _warpgroup(thread: Thread, now: Instruction) -> None:
    """A ``wgmma`` instruction; the addresses of a multiply are the starts in its matrix descriptors."""
    if now.parts[1] != "mma_async":
        kind = {"fence": "mma_fence", "commit_group": "mma_commit", "wait_group": "mma_wait"}[now.parts[1]]
        thread.note(now, kind, value=thread.number(now, 0))
        return
    words = [thread.value(operand) for operand in now.operands[1:3] if not operand.startswith("{")]
    starts = tuple((thread.known(word, now, "its descriptor") & 0x3FFF) << 4 for word in words)
    thread.note(now, "mma", numbers=starts)
    _opaque(thread, now)


def _block_barrier(thread: Thread, now: Instruction) -> None:
    if now.parts[1] == "warp":
        thread.note(now, "warp_bar", value=thread.number(now, 0))
    elif now.parts[1] == "cluster":
        thread.note(now, f"cluster_{now.parts[2]}")
    elif now.parts[1] == "sync":
        whole = thread.registers["%ntid.x"]
        thread.note(now, "bar", address=thread.number(now, 0), value=thread.number(now, 1, int(str(whole))))
    else:
        _refused(thread, now)


def _fence(thread: Thread, now: Instruction) -> None:
    if now.parts[1:3] == ("proxy", "async"):
        thread.note(now, "proxy_fence")


def _registers(thread: Thread, now: Instruction) -> None:
    thread.note(now, "registers", value=thread.number(now, 0), name=now.parts[1])


def _mapped(thread: Thread, now: Instruction) -> None:
    at, rank = thread.known(thread.value(now.operands[1]), now, "its address"), thread.number(now, 2)
    thread.write(now.operands[0], at if rank == thread.rank else at + (rank + 1 << RANK_SHIFT))


def _nothing(_thread: Thread, _now: Instruction) -> None:
    """What orders or hints, and writes nothing."""


_HANDLERS: Mapping[str, _Action] = {
    "mov": _move, "cvta": _convert_address, "bra": _branch, "brx": _branch_by_table, "ret": _end, "exit": _end,
    "elect": _elect, "shfl": _shuffle, "ld": _load, "ldu": _load, "st": _store, "atom": _exchange, "red": _exchange,
    "ldmatrix": _exchange, "stmatrix": _exchange, "mbarrier": _barrier, "cp": _copy, "wgmma": _warpgroup,
    "bar": _block_barrier, "barrier": _block_barrier, "fence": _fence, "setmaxnreg": _registers, "mapa": _mapped,
    "membar": _nothing, "nanosleep": _nothing, "prefetch": _nothing, "prefetchu": _nothing, "trap": _refused,
    "griddepcontrol": _nothing, "discard": _nothing, "applypriority": _nothing,
}  # fmt: skip
