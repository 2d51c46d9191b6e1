"""The 32-bit instruction descriptor of ``tcgen05.mma``: kinds, fields, encoding, decoding, legal combinations.

References: PTX ISA 9.1 sections 9.7.16.2.1 (shapes), 9.7.16.4.2 (instruction descriptor), 9.7.16.10.1 (transpose,
negate), 9.7.16.10.7 (scale ids); not run on a device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layoutalg.ground.check import Checker
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.codec import Codec, Field, run, words_of
from layoutalg.targets.model import Violation, fact, type_bits
from layoutalg.targets.nvidia.tcgen05.descriptor import ARCHS, broken, has_tcgen05

SOURCE = "PTX ISA 9.1 section 9.7.16.4.2"
CHECK = Checker("LA842", "invalid tcgen05 instruction descriptor")
D_CODES = MappingProxyType({"f16": 0, "f32": 1, "s32": 2})
SCALE_CODES = MappingProxyType({"ue4m3": 0, "ue8m0": 1})
SHIFTS = (0, 8, 16, 32)
_NARROW = MappingProxyType({"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5})
BITS = type_bits("f16 bf16 tf32 e4m3 e5m2 e2m3 e3m2 e2m1 u8 s8")
"""Bits of an operand's element."""


@fact("LA842")
class Kind:
    """What ``.kind::NAME`` multiplies."""

    name: str  # ``"f16"``, ``"mxf4"``, ...
    types: Mapping[str, int]  # operand types and their codes
    results: tuple[str, ...]  # types of D
    k: int  # elements along K of one dense instruction
    # bits per element in shared memory; 4- and 6-bit elements of the f8f6f4 kinds are packed sixteen to a chunk of 16
    # bytes, followed by padding
    container_bits: int
    scales: tuple[str, ...] = ()  # types of the scale factors; empty if there are none
    scale_ids: tuple[int, ...] = ()  # legal ids of the scale factors
    negates: bool = True  # whether A and B can be negated
    transposes: bool = True  # whether A and B can be MN-major

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.types.items()), self.results, self.k))

    def __str__(self) -> str:
        return f"kind::{self.name}: {', '.join(self.types)} -> {', '.join(self.results)}, K {self.k}"


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("f16", {"f16": 0, "bf16": 1}, ("f16", "f32"), 16, 16),
            Kind("tf32", {"tf32": 2}, ("f32",), 8, 32),
            Kind("f8f6f4", dict(_NARROW), ("f16", "f32"), 32, 8),
            Kind("i8", {"u8": 0, "s8": 1}, ("s32",), 32, 8, negates=False),
            Kind("mxf8f6f4", dict(_NARROW), ("f32",), 32, 8, ("ue8m0",), (0, 1, 2, 3)),
            Kind("mxf4", {"e2m1": 1}, ("f32",), 64, 4, ("ue8m0",), (0, 2), transposes=False),
            Kind("mxf4nvf4", {"e2m1": 1}, ("f32",), 64, 4, ("ue8m0", "ue4m3"), (0, 2), transposes=False),
        )
    }
)
"""Every kind by name."""
_COMMON = (
    run("sparse", 2, 2, "A is sparse"),
    run("reserved", 6, 6, "reserved"),
    run("a", 9, 7, "type of A"),
    run("negate_a", 13, 13, "negate A"),
    run("negate_b", 14, 14, "negate B"),
    run("transpose_a", 15, 15, "A is M-major"),
    run("transpose_b", 16, 16, "B is N-major"),
    run("n[8:3]", 22, 17, "N / 8"),
)
_B = run("b", 12, 10, "type of B")
_PLAIN = Codec(
    (
        *_COMMON,
        _B,
        run("selector", 1, 0, "sparsity selector"),
        run("saturate", 3, 3, "integers saturate"),
        run("d", 5, 4, "type of D"),
        run("reserved", 23, 23, "reserved"),
        run("m[8:4]", 28, 24, "M / 16"),
        run("reserved", 29, 29, "reserved"),
        run("max_shift", 31, 30, "maximum shift of .ws: 0, 8, 16, 32"),
    )
)
_SCALED_COMMON = (
    *_COMMON,
    run("reserved", 1, 0, "reserved"),
    run("reserved", 3, 3, "reserved"),
    run("scale_b_id", 5, 4, "scale id of B"),
    run("scale", 23, 23, "type of the scales"),
    run("reserved", 26, 24, "reserved"),
    run("m[8:7]", 28, 27, "M / 128"),
    run("scale_a_id", 30, 29, "scale id of A"),
)
_SCALED = Codec((*_SCALED_COMMON, _B, run("reserved", 31, 31, "reserved")))
_FOUR_BITS = Codec(
    (
        *_SCALED_COMMON,
        run("b", 11, 10, "type of B"),
        run("reserved", 12, 12, "reserved"),
        run("k96", 31, 31, "K is 96"),
    )
)
_CODED = ("a", "b", "d", "scale", "max_shift")
"""Fields whose bits are the code of a name."""
_FLAGS = ("transpose_a", "transpose_b", "negate_a", "negate_b", "sparse", "saturate", "k96")


def codec(kind: Kind) -> Codec:
    """Return the fields of a kind's 32 bits: of plain, of block-scaled, or of block-scaled 4-bit operands."""
    return _PLAIN if not kind.scales else _FOUR_BITS if kind.container_bits == 4 else _SCALED


@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """What one ``tcgen05.mma`` multiplies: every field of its 32 bits.

    Args:
        kind: A name of ``KINDS``.
        m: Rows of A and D.
        n: Columns of B and D.
        a: Type of A's elements.
        b: Type of B's elements.
        d: Type of D's elements.
        transpose_a: Whether A is M-major.
        transpose_b: Whether B is N-major.
        negate_a: Whether A is negated.
        negate_b: Whether B is negated.
        sparse: Whether A is sparse.
        selector: Sparsity selector, 0..3.
        saturate: Whether integers saturate.
        max_shift: Largest shift of reused B under ``.ws``: 0, 8, 16 or 32.
        scale: Type of the scale factors; ``""`` if the kind has none.
        scale_a_id: Scale factor id of A.
        scale_b_id: Scale factor id of B.
        k96: Whether K is 96 (4-bit kinds).

    Raises: MalformedError: LA842: a value that the field or the kind does not allow.

    Example:
        >>> made = InstructionDescriptor("f16", 128, 256, "bf16", "bf16", "f32")
        >>> hex(made.encode())
        '0x8400490'
        >>> decode_instruction(0x8400490, "f16") == made
        True
    """

    kind: str
    m: int
    n: int
    a: str
    b: str
    d: str
    transpose_a: bool = False
    transpose_b: bool = False
    negate_a: bool = False
    negate_b: bool = False
    sparse: bool = False
    selector: int = 0
    saturate: bool = False
    max_shift: int = 0
    scale: str = ""
    scale_a_id: int = 0
    scale_b_id: int = 0
    k96: bool = False

    def __post_init__(self) -> None:
        checked_kinds(self, "LA842")
        kind = checked_kind(self.kind)
        scaled = bool(kind.scales)
        step = 128 if scaled else 16
        CHECK.integer(self.m, "m", 0, 512)
        CHECK.integer(self.n, "n", 0, 512)
        if self.m % step:
            raise CHECK.malformed("m", f"must be a multiple of {step} for {kind.name}", self.m)
        if self.n % 8:
            raise CHECK.malformed("n", "must be a multiple of 8", self.n)
        for name, known in (("a", tuple(kind.types)), ("b", tuple(kind.types)), ("d", kind.results)):
            if getattr(self, name) not in known:
                raise CHECK.malformed(name, f"must be one of {', '.join(known)} for {kind.name}", getattr(self, name))
        if self.scale not in (kind.scales or ("",)):
            raise CHECK.malformed("scale", f"must be one of {kind.scales or ('',)} for {kind.name}", self.scale)
        for name in ("scale_a_id", "scale_b_id"):
            CHECK.integer(getattr(self, name), name, 0, 4 if scaled else 1)
        CHECK.integer(self.selector, "selector", 0, 1 if scaled else 4)
        if self.max_shift not in (SHIFTS[:1] if scaled else SHIFTS):
            raise CHECK.malformed("max_shift", "must be 0, or 8, 16 or 32 for a kind without scales", self.max_shift)
        if self.k96 and kind.container_bits != 4:
            raise CHECK.malformed("k96", f"must be False for {kind.name}", True)
        if self.saturate and kind.name != "i8":
            raise CHECK.malformed("saturate", "must be False for every kind but i8", True)
        if not kind.transposes and (self.transpose_a or self.transpose_b):
            raise CHECK.malformed("transpose", f"must be False for {kind.name}", True)
        if not kind.negates and (self.negate_a or self.negate_b):
            raise CHECK.malformed("negate", f"must be False for {kind.name}", True)

    @property
    def k(self) -> int:
        """Elements along K of one instruction."""
        return 96 if self.k96 else KINDS[self.kind].k * (2 if self.sparse else 1)

    def encode(self) -> int:
        """Return the 32 bits as an unsigned integer.

        Example:
            >>> scaled = InstructionDescriptor("mxf4nvf4", 256, 192, "e2m1", "e2m1", "f32", scale="ue8m0", scale_a_id=2)
            >>> hex(scaled.encode())
            '0x50b00480'
        """
        kind = KINDS[self.kind]
        table = codec(kind)
        values = {name: getattr(self, name) for name in table.values if name not in ("reserved", *_CODED)}
        values |= {"a": kind.types[self.a], "b": kind.types[self.b]}
        if kind.scales:
            return table.integer(values | {"scale": SCALE_CODES[self.scale]})
        return table.integer(values | {"d": D_CODES[self.d], "max_shift": SHIFTS.index(self.max_shift)})

    def to_json(self) -> dict[str, object]:
        """Return the descriptor as JSON-ready data."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"schema": "layoutalg/tcgen05-instruction/1", **fields, "encoded": f"{self.encode():#010x}"}

    def __str__(self) -> str:
        text = f"tcgen05.mma{'.sp' if self.sparse else ''}.kind::{self.kind} {self.m}x{self.n}x{self.k}"
        return f"{text} {self.a} * {self.b} -> {self.d} ({self.encode():#010x})"


def checked_kind(kind: object) -> Kind:
    """Return a kind by name.

    Example:
        >>> print(checked_kind("tf32"))
        kind::tf32: tf32 -> f32, K 8
    """
    return KINDS[CHECK.choice(kind, "kind", KINDS)]


def decode_instruction(raw: int, kind: str) -> InstructionDescriptor:
    """Decode 32 bits under a kind, which is not encoded in them.

    Args:
        raw: Unsigned 32-bit integer.
        kind: A name of ``KINDS``.

    Raises: MalformedError: LA842. TargetRuleError: LA843: rules TCGEN05_IDESC_RESERVED, TCGEN05_IDESC_TYPE.

    Example:
        >>> print(decode_instruction(0x8400490, "f16"))
        tcgen05.mma.kind::f16 128x256x16 bf16 * bf16 -> f32 (0x08400490)
    """
    word, entry = CHECK.integer(raw, "raw", 0, 1 << 32), checked_kind(kind)

    table, words = codec(entry), words_of(word, 1)
    for field in table.fields:
        why, bits = _zero(field, entry), field.of(words)
        if why and bits:
            because = (
                f"bits [{field.last}:{field.first}] are {bits:#x} in {word:#010x}; {why} for {entry.name}, must be 0"
            )
            raise broken("TCGEN05_IDESC_RESERVED", because, "LA843", SOURCE)
    read = table.decode(words)
    del read["reserved"]

    def name(field: str, known: Mapping[str, int], allowed: Iterable[str], of: str) -> str:
        found = next((name for name, code in known.items() if code == read[field]), "")
        if found not in allowed:
            because = f"{of} has type code {read[field]}, which {entry.name} does not have: {', '.join(allowed)}"
            raise broken("TCGEN05_IDESC_TYPE", because, "LA843", SOURCE)
        return found

    read |= {"a": name("a", entry.types, entry.types, "A"), "b": name("b", entry.types, entry.types, "B")}
    if entry.scales:
        read |= {"d": "f32", "scale": name("scale", SCALE_CODES, entry.scales, "the scale")}
    else:
        read |= {"d": name("d", D_CODES, entry.results, "D"), "max_shift": SHIFTS[read["max_shift"]]}
    flags = {flag: bool(read[flag]) for flag in _FLAGS if flag in read}
    return InstructionDescriptor(entry.name, **read | flags)


def _zero(field: Field, kind: Kind) -> str:
    """Why a field must be 0 for a kind; "" where it may be anything."""
    if field.name == "reserved":
        return "reserved"
    if field.name == "saturate" and kind.name != "i8":
        return "no saturation"
    if field.name.startswith("negate") and not kind.negates:
        return "no negation"
    return "no transpose" if field.name.startswith("transpose") and not kind.transposes else ""


def m_values(kind: str, cta_group: int = 1, ws: bool = False, sparse: bool = False) -> tuple[int, ...]:
    """Return the legal M of a kind; () if there is no such instruction.

    Example:
        >>> m_values("f16"), m_values("f16", 2), m_values("f16", ws=True), m_values("mxf4", 2, sparse=True)
        ((64, 128), (128, 256), (32, 64, 128), (256,))

    Source: PTX ISA 9.1 section 9.7.16.2.1, table 39.
    """
    entry, group = checked_kind(kind), _group(cta_group)
    if _flag(ws, "ws"):
        return () if group == 2 or entry.scales else (32, 64, 128)
    if entry.scales:
        return (128,) if group == 1 else (256,) if _flag(sparse, "sparse") else (128, 256)
    return (64, 128) if group == 1 else (128, 256)


def n_values(
    kind: str, cta_group: int = 1, ws: bool = False, sparse: bool = False, transposed_8bit_b: bool = False
) -> tuple[int, ...]:
    """Return the legal N of a kind; () if there is no such instruction.

    Args:
        kind: A name of ``KINDS``.
        cta_group: 1 or 2 blocks.
        ws: Whether the instruction is weight stationary (``.ws``).
        sparse: Whether A is sparse.
        transposed_8bit_b: Whether B is N-major with elements of 8 bits.

    Example:
        >>> n_values("i8")[:6], n_values("i8", 2)[:3], n_values("tf32", ws=True), n_values("f16", 2)[-2:]
        ((8, 16, 24, 32, 48, 64), (32, 64, 96), (64, 128, 256), (240, 256))

    Source: PTX ISA 9.1 section 9.7.16.2.1, table 39, and 9.7.16.10.1, table 52.
    """
    entry, group = checked_kind(kind), _group(cta_group)
    if _flag(ws, "ws"):
        if group == 2 or entry.scales:
            return ()
        return (64, 128) if _flag(sparse, "sparse") else (64, 128, 256)
    found = tuple(range(8 * group, 257, 8 * group))
    if entry.name == "i8":
        found = tuple(range(32, 257, 32)) if group == 2 else (8, 16, 24, *range(32, 257, 16))
    if _flag(transposed_8bit_b, "transposed_8bit_b"):
        found = tuple(n for n in found if n % (16 * group) == 0)
    return found


def instruction_violations(
    descriptor: InstructionDescriptor, target: str = "sm_100a", cta_group: int = 1, ws: bool = False
) -> tuple[Violation, ...]:
    """Return the rules that an instruction breaks; () if none.

    Args:
        descriptor: The descriptor.
        target: Architecture.
        cta_group: 1 or 2 blocks.
        ws: Whether the instruction is weight stationary (``.ws``).

    Example:
        >>> made = InstructionDescriptor("i8", 128, 40, "s8", "u8", "s32")
        >>> [str(broken) for broken in instruction_violations(made)]
        ['TCGEN05_N: N = 40 is not one of 8, 16, 24, 32, 48, ..., 256 for i8, cta_group 1']
    """
    given = CHECK.kind(descriptor, InstructionDescriptor, "descriptor")
    group, stationary = _group(cta_group), _flag(ws, "ws")
    found = []
    if not has_tcgen05(target):
        found.append(Violation("TCGEN05_ARCH", f"{target} has no tcgen05; {' and '.join(ARCHS)} do", "target", None))
    wide = given.transpose_b and BITS[given.b] == 8
    said = f"for {given.kind}{'.ws' if stationary else ''}{', sparse' if given.sparse else ''}, cta_group {group}"
    rows = m_values(given.kind, group, stationary, given.sparse)
    columns = n_values(given.kind, group, stationary, given.sparse, wide)
    if not rows:
        found.append(Violation("TCGEN05_WS", f"there is no instruction {said}", "ws", None))
    else:
        for rule, field, value, known in (("TCGEN05_M", "M", given.m, rows), ("TCGEN05_N", "N", given.n, columns)):
            if value not in known:
                because = f"{field} = {value} is not one of {_few(known)} {said}"
                found.append(Violation(rule, because, field.lower(), None))
    if given.k96 and (given.sparse or target != "sm_103a" or (group, given.m) != (2, 256)):
        because = "K = 96 needs dense A, sm_103a and M = 256 over two blocks"
        found.append(Violation("TCGEN05_K96", because, "k96", None))
    if given.a in ("f16", "bf16") and given.d == "f16" and "bf16" in (given.a, given.b):
        found.append(Violation("TCGEN05_D_TYPE", "bf16 accumulates only in f32", "d", None))
    for side in ("a", "b"):
        kind = getattr(given, side)
        if getattr(given, f"transpose_{side}") and BITS[kind] < 8:
            because = f"{side.upper()} of {kind} must be K-major: {BITS[kind]}-bit elements cannot be transposed"
            found.append(Violation("TCGEN05_TRANSPOSE_TYPE", because, f"transpose_{side}", None))
        ids = KINDS[given.kind].scale_ids
        if given.k96:
            ids = (0, 1, 2, 3) if given.scale == "ue8m0" else (0, 2)
        elif given.kind == "mxf4nvf4" and given.scale == "ue4m3":
            ids = (0,)
        if ids and getattr(given, f"scale_{side}_id") not in ids:
            because = f"scale id {getattr(given, f'scale_{side}_id')} of {side.upper()} is not one of {_few(ids)}"
            found.append(Violation("TCGEN05_SCALE_ID", because, f"scale_{side}_id", None))
    if given.selector and not given.sparse:
        found.append(Violation("TCGEN05_SELECTOR", "a sparsity selector needs sparse A", "selector", None))
    if given.max_shift and not stationary:
        found.append(Violation("TCGEN05_MAX_SHIFT", "a maximum shift needs .ws", "max_shift", None))
    return tuple(found)


def _few(values: tuple[int, ...]) -> str:
    shown = values if len(values) < 7 else (*values[:5], "...", values[-1])
    return ", ".join(map(str, shown))


def _group(value: object) -> int:
    return CHECK.integer(value, "cta_group", 1, 3)


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise CHECK.malformed(name, "must be True or False", value)
    return value
