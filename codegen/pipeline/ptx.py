"""PTX as a value: an entry of a module with its instructions, labels, registers and constants.

References: PTX ISA 9.1, 4 (syntax), 5 (state spaces), 9.7.1 to 9.7.8 (integers).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, RepresentabilityError

PARAMETERS, PARAMETER_STRIDE, LOCAL, GLOBAL, SHARED = 1 << 50, 1 << 12, 1 << 52, 1 << 54, 1 << 56
"""Where generic addresses of each space begin; a parameter has its own stretch."""
SHARED_BASE: Final = 1024
"""Where the shared memory of a block begins; dynamic shared memory begins at the next multiple of it."""

Source: TypeAlias = int | tuple[str, int]
"""An operand: a number, or a register or symbol plus a number."""


@dataclass(slots=True)
class Instruction:
    """An instruction: its line, text, operation, operands, and the predicate that guards it."""

    line: int
    text: str
    operation: str
    operands: tuple[str, ...]
    guard: str = ""
    negated: bool = False


@dataclass(slots=True)
class Program:
    """An entry of a module: instructions, labels, addresses of symbols, bits of registers, bytes of constants.

    ``actions`` is what instructions that were run do, by their places.
    """

    parameters: tuple[str, ...]
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    actions: dict[int, Any] = field(default_factory=dict)

    def width(self, register: str) -> int:
        """Bits of a register."""
        found = self.widths.get(register)
        if found is None:  # registers are declared in numbered groups
            found = self.widths[register] = self.widths.get(register.rstrip("0123456789"), 64)
        return found


_VARIABLE = re.compile(
    r"^\s*(?:\.(?:visible|extern|weak|common)\s+)*\.(shared|global|const|local)\s+(?:\.align\s+(\d+)\s+)?\.\w(\d+)\s+"
    r"([\w$]+)(\[\d*\])?(?:\s*=\s*\{([^}]*)\})?\s*;",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|\.loc[^\n]*|(?P<label>[$\w%]+)\s*:(?!:)|(?P<open>\{)|(?P<close>\})"
    r"|(?P<statement>[^;{}]+(?:\{[^{}]*\}[^;{}]*)*;)",
    re.DOTALL,
)
_STATEMENT = re.compile(r"(?:@(!?)([%$\w]+) )?(\S+) ?(.*)")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")
_PLUS = re.compile(r"([%$\w]+(?:\.[xyzw])?) ?(?:\+ ?(-?\w+))?")


def not_followed(where: str, because: str) -> RepresentabilityError:
    """The refusal of PTX that cannot be followed."""
    return RepresentabilityError(Diagnostic("LA980", "this PTX cannot be followed", (where,), because))


@functools.lru_cache(maxsize=limits.KERNELS)
def program(text: str, name: str) -> Program:
    """Return an entry of a PTX module.

    Raises: RepresentabilityError: LA980.
    """
    head = re.search(rf"\.entry\s+{re.escape(name)}\s*\(([^)]*)\)[^{{]*\{{", text)
    if not head:
        raise not_followed(f"kernel {name}", "the module has no such entry")
    made = Program(tuple([entry.split("[")[0].split()[-1] for entry in head[1].split(",") if entry.strip()]))
    made.symbols |= {each: PARAMETERS + PARAMETER_STRIDE * place for place, each in enumerate(made.parameters)}
    _place_variables(made, text)
    scopes: list[dict[str, str]] = [{}]  # of inline assembly: names and what they are called here
    place, line = head.end(), text.count("\n", 0, head.end()) + 1
    while scopes:
        found = _TOKEN.match(text, place)
        if not found:
            raise not_followed(f"line {line} of the PTX", "its text is not understood")
        if found.lastgroup == "label":
            made.labels[found["label"]] = len(made.instructions)
        elif found.lastgroup == "open":
            scopes.append(dict(scopes[-1]))
        elif found.lastgroup == "close":
            scopes.pop()
        elif found.lastgroup == "statement":
            _add(made, " ".join(found["statement"][:-1].split()), line, scopes)
        place, line = found.end(), line + found[0].count("\n")
    return made


def _place_variables(made: Program, text: str) -> None:
    """Give every variable an address, and note the bytes of those that are written in the module."""
    ends = {"shared": SHARED_BASE, "global": GLOBAL, "const": GLOBAL + (1 << 40), "local": LOCAL}
    dynamic = []
    for space, align, bits, name, extent, given in _VARIABLE.findall(text):
        if extent == "[]":
            dynamic.append(name)
            continue
        size, step, many = int(bits) // 8, int(align or int(bits) // 8), int(extent.strip("[]") or 1)
        start = -(-ends[space] // step) * step
        made.symbols[name], ends[space] = start, start + size * many
        values = [entry.strip() for entry in given.split(",")] if given else []
        if values and all(_NUMBER.fullmatch(value) for value in values):
            values += ["0"] * (many - len(values))
            data = b"".join([(number(value) % (1 << 8 * size)).to_bytes(size, "little") for value in values])
            made.constants |= dict(enumerate(data, start))
    made.symbols |= dict.fromkeys(dynamic, -(-ends["shared"] // SHARED_BASE) * SHARED_BASE)


def _add(made: Program, text: str, line: int, scopes: list[dict[str, str]]) -> None:
    """Add a statement."""
    negated, guard, operation, rest = _STATEMENT.fullmatch(text).groups()  # type: ignore[union-attr]
    if operation == ".reg":
        kind, _, registers = rest.partition(" ")
        for entry in registers.split(","):
            register = entry.split("<")[0].strip()
            if len(scopes) > 1:
                scopes[-1][register] = register = f"{register}${len(made.widths)}$"
            made.widths[register] = 1 if kind == ".pred" else int(re.sub(r"\D", "", kind))
    elif operation == ".branchtargets":
        made.tables[next(reversed(made.labels))] = tuple([label.strip() for label in rest.split(",")])
    elif operation[0] != ".":
        names = scopes[-1]
        rest = re.sub(r"[%$\w]+", lambda found: names.get(found[0], found[0]), rest) if names else rest
        operands = tuple([part.strip() for part in re.split(r",(?![^{]*\})(?![^\[]*\])", rest)]) if rest else ()
        guard = names.get(guard, guard) or ""
        made.instructions.append(Instruction(line, text, operation, operands, guard, bool(negated)))


def number(text: str) -> int:
    """A number in PTX."""
    return int(text.rstrip("U"), 0)


@functools.lru_cache(maxsize=1 << 14)
def source(operand: str) -> Source | None:
    """Read an operand; None if it is neither a number nor a register or symbol plus a number.

    Example:
        >>> source("-0x10"), source("%rd1+8"), source("{%r1, %r2}")
        (-16, ('%rd1', 8), None)
    """
    if _NUMBER.fullmatch(operand):
        return number(operand)
    if re.fullmatch(r"0[fd][0-9a-fA-F]+", operand):
        return int(operand[2:], 16)
    found = _PLUS.fullmatch(operand)
    return (found[1], number(found[2]) if found[2] else 0) if found else None


def integer_type(text: str) -> tuple[int, bool] | None:
    """Bits of a type, and whether it is signed; None for what is no type of integers or predicates."""
    found = re.fullmatch(r"[sub](8|16|32|64)", text)
    return (int(found[1]), text[0] == "s") if found else (1, False) if text == "pred" else None


def _quotient(top: int, bottom: int) -> int:
    quotient = abs(top) // abs(bottom)
    return quotient if (top < 0) == (bottom < 0) else -quotient


def _permuted(_: int, a: int, b: int, selector: int) -> int:
    both, found = b << 32 | a, 0
    for place in range(4):
        byte = both >> 8 * (selector >> 4 * place & 7) & 255
        found |= (255 * (byte >> 7) if selector >> 4 * place & 8 else byte) << 8 * place
    return found


def _inserted(bits: int, a: int, b: int, start: int, many: int) -> int:
    mask = (1 << (many & 255)) - 1 << (start & 255) & (1 << bits) - 1
    return b & ~mask | a << (start & 255) & mask


def _field(signed: bool, a: int, start: int, many: int) -> int:
    many &= 255
    found = a >> (start & 255) & (1 << many) - 1
    return found - (1 << many) if signed and many and found >> many - 1 else found


INTEGER: Final[Mapping[str, tuple[str, Callable[..., int]]]] = {
    "add": ("tt", lambda _, a, b: a + b),
    "sub": ("tt", lambda _, a, b: a - b),
    "mul.lo": ("tt", lambda _, a, b: a * b),
    "mul.hi": ("tt", lambda bits, a, b: a * b >> bits),
    "mul.wide": ("tt", lambda _, a, b: a * b),
    "mad.lo": ("ttt", lambda _, a, b, c: a * b + c),
    "mad.hi": ("ttt", lambda bits, a, b, c: (a * b >> bits) + c),
    "mad.wide": ("ttw", lambda _, a, b, c: a * b + c),
    "div": ("tt", lambda _, a, b: _quotient(a, b)),
    "rem": ("tt", lambda _, a, b: a - b * _quotient(a, b)),
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
    "prmt": ("ttu", _permuted),
    "selp": ("ttp", lambda _, a, b, c: a if c else b),
}
"""Functions of the type's bits and the operands; operands are of the instruction's type ("t"), of u32 ("u"), predicates
("p") or of twice the bits ("w"). What is not here gives values that are not followed."""
COMPARED: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}


def function_of(operation: str) -> tuple[Callable[..., int], list[tuple[int, bool]]] | None:
    """Return the function of integers that an operation computes, and the types of its operands; None if unknown."""
    name, _, last = operation.rpartition(".")
    kind = (64, False) if name == "selp" and last[0] == "f" else integer_type(last)
    if kind is None:
        return None
    first, _, middle = name.partition(".")
    if first == "setp" and middle in COMPARED:
        return COMPARED[middle], [kind, kind]
    if name == "bfe":
        return functools.partial(_field, kind[1]), [kind, (32, False), (32, False)]
    into = integer_type(middle)
    if first == "cvt" and into:
        sign = 1 << into[0] - 1 if into[1] else 0
        return lambda a: ((a & (1 << into[0]) - 1) ^ sign) - sign, [kind]
    if name not in INTEGER:
        return None
    kinds, function = INTEGER[name]
    types = {"t": kind, "u": (32, False), "p": (1, False), "w": (2 * kind[0], kind[1])}
    return functools.partial(function, kind[0]), [types[each] for each in kinds]
