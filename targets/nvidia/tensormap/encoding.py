"""The 128 bytes of a tiled tensor map: encode without a driver, decode with the illegal field named.

Main statements: ``decode(encode(tm)) == tm`` and ``encode(decode(raw)) == raw`` wherever the inner call succeeds.

Notation: little-endian 32-bit words; bit b of word w is bit 32 * w + b of the map.

Implementation notes: the layout is that of one driver on one chip. It agrees with the public bit positions, except that
the version bits and the allocation class are 0 and the upper half has two derived byte counts.

References: NVIDIA/TensorRT-LLM ``tmaDescriptor.h`` (Apache-2.0); encodings measured on NVIDIA H200, driver 580.159.04.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from layoutalg.ground.errors import MalformedError
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import enforced_violations, require_accepted, require_measured
from layoutalg.targets.nvidia.tensormap.facts import box_bytes
from layoutalg.targets.nvidia.tensormap.fields import (
    DTYPES,
    INTERLEAVE_CODES,
    L2_PROMOTION_CODES,
    OOB_FILL_CODES,
    TensorMap,
    malformed,
)

MAP_BYTES = 128
_PACK = struct.Struct("<Q14IQQ48x")
_WORDS = struct.Struct("<16I8Q")


@dataclass(frozen=True, slots=True)
class Field:
    """A run of bits of the encoded map.

    Args:
        name: Name of the contents; for ``TensorMap`` fields, their name and position.
        word: 32-bit word, 0 to 31.
        low: Lowest bit inside the word.
        width: Number of bits, 1 to 32.
        meaning: How the value is written.
    """

    name: str
    word: int
    low: int
    width: int
    meaning: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")
        if not (0 <= self.word < 32 and 0 <= self.low < self.low + self.width <= 32):
            because = f"{self.width} bits from bit {self.low} of word {self.word} are not in the 32 words of 32 bits"
            raise malformed("LA374", f"{self.name} is not a field of the map", because)

    @property
    def bits(self) -> str:
        """The position in words: word, bits inside it, bits of the whole map."""
        high = self.low + self.width - 1
        start = 32 * self.word
        return f"word {self.word} bits {high}:{self.low} (bits {start + high}:{start + self.low} of the map)"


FIELDS: tuple[Field, ...] = (
    Field("base_address[31:0]", 0, 0, 32, "byte address, low half"),
    Field("base_address[63:32]", 1, 0, 32, "byte address, high half"),
    Field("kind", 2, 0, 1, "0 tiled; 1 im2col, not decoded"),
    Field("version", 2, 1, 3, "0 as this driver writes it"),
    Field("rank", 2, 4, 3, "rank - 1"),
    Field("dtype", 2, 7, 4, "format number 0..10"),
    Field("interleave", 2, 11, 2, "0 NONE, 1 16B, 2 32B"),
    Field("swizzle", 2, 13, 2, "0 NONE, 1 32B, 2 64B, 3 128B"),
    Field("oob_fill", 2, 15, 1, "0 ZERO, 1 NAN"),
    Field("dtype.tf32", 2, 16, 1, "round to tf32; with formats 7 and 8 only"),
    Field("l2_promotion", 2, 17, 2, "0 NONE, 1 64B, 2 128B, 3 256B"),
    Field("swizzle_atom", 2, 19, 2, "0 on compute capability 9.0"),
    Field("allocation_class", 2, 21, 1, "0 as this driver writes it"),
    Field("swizzle_96B", 2, 22, 1, "0 on compute capability 9.0"),
    Field("reserved", 2, 23, 9, "0"),
    *(Field(f"strides_bytes[{i}][35:4]", 3 + i, 0, 32, "stride / 16, low half") for i in range(4)),
    *(Field(f"strides_bytes[{i}][39:36]", 7, 4 * i, 4, "stride / 16, bits 35:32") for i in range(4)),
    Field("reserved", 7, 16, 16, "0"),
    *(Field(f"dims[{i}]", 8 + i, 0, 32, "extent - 1") for i in range(5)),
    *(Field(f"element_strides[{i}]", 13, 3 * i, 3, "step - 1") for i in range(5)),
    Field("reserved", 13, 15, 9, "0"),
    Field("box[0]", 13, 24, 8, "extent - 1"),
    *(Field(f"box[{i + 1}]", 14, 8 * i, 8, "extent - 1") for i in range(4)),
    Field("reserved", 15, 0, 32, "0 in tiled maps"),
    Field("box_bytes[31:0]", 16, 0, 32, "bytes of the whole box, low half"),
    Field("box_bytes[63:32]", 17, 0, 32, "bytes of the whole box, high half"),
    Field("smem_alignment_bytes[31:0]", 18, 0, 32, "16, 256, 512 or 1024 by swizzle"),
    Field("smem_alignment_bytes[63:32]", 19, 0, 32, "0"),
    *(Field("reserved", word, 0, 32, "0") for word in range(20, 32)),
)
"""Every bit of the map belongs to exactly one field."""

_BY_NAME = {field.name: field for field in FIELDS}
_DTYPE_BITS = {
    entry.name: entry.format_code << 7 | int(entry.rounds_tf32) << 16
    for entry in DTYPES.values()
    if entry.format_code is not None
}
_DTYPE_NAMES = {
    (entry.format_code, int(entry.rounds_tf32)): entry.name
    for entry in DTYPES.values()
    if entry.format_code is not None
}
_INTERLEAVE_NAMES = {number: name for name, number in INTERLEAVE_CODES.items()}
_SWIZZLE_NAMES = {swizzle.map_code: name for name, swizzle in SWIZZLE_TABLE.items() if swizzle.map_code < 4}
_L2_NAMES = {number: name for name, number in L2_PROMOTION_CODES.items()}
_OOB_NAMES = {number: name for name, number in OOB_FILL_CODES.items()}


def encode(tm: TensorMap, target: str = "sm_90a") -> bytes:
    """Return the 128 bytes that the measured driver writes for this map.

    Args:
        tm: The map.
        target: ``"sm_90"`` or ``"sm_90a"``; both were measured as one chip.

    Raises: RefusedMapError: LA307. TargetRuleError: LA306, LA830. MalformedError: LA300, LA340.

    Example:
        >>> raw = encode(TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096))
        >>> len(raw), raw[:12].hex()
        (128, '001000000000000010650000')

    Laws: reproduces 11,743 of 11,743 recorded encodings; ``decode`` is its inverse.
    Source: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
    """
    if not isinstance(tm, TensorMap):
        raise malformed("LA300", "encode needs a TensorMap", f"got a {type(tm).__name__}")
    require_measured(target)
    require_accepted(tm, "encode")
    rank = len(tm.dims)
    dims = [extent - 1 for extent in tm.dims]
    box = [extent - 1 for extent in tm.box]
    sixteenths = [stride >> 4 for stride in tm.strides_bytes]
    padding = [0] * (5 - rank)
    dims += padding
    box += padding
    sixteenths += padding
    mode_bits = (
        (rank - 1) << 4
        | _DTYPE_BITS[tm.dtype]
        | INTERLEAVE_CODES[tm.interleave] << 11
        | SWIZZLE_TABLE[tm.swizzle].map_code << 13
        | OOB_FILL_CODES[tm.oob_fill] << 15
        | L2_PROMOTION_CODES[tm.l2_promotion] << 17
    )
    steps = box[0] << 24
    shift = 0
    for step in tm.element_strides:
        steps |= (step - 1) << shift
        shift += 3
    s1, s2, s3, s4 = sixteenths
    return _PACK.pack(
        tm.base_address,
        mode_bits,
        s1 & 0xFFFFFFFF,
        s2 & 0xFFFFFFFF,
        s3 & 0xFFFFFFFF,
        s4 & 0xFFFFFFFF,
        s1 >> 32 | s2 >> 32 << 4 | s3 >> 32 << 8 | s4 >> 32 << 12,
        *dims,
        steps,
        box[1] | box[2] << 8 | box[3] << 16 | box[4] << 24,
        0,
        box_bytes(tm),
        SWIZZLE_TABLE[tm.swizzle].period_bytes,
    )


def decode(raw: bytes | bytearray | memoryview, target: str = "sm_90a") -> TensorMap:
    """Return the map that encodes to these 128 bytes.

    Args:
        raw: 128 bytes.
        target: ``"sm_90"`` or ``"sm_90a"``.

    Raises: MalformedError: LA308, LA309, LA310, LA340. TargetRuleError: LA306, LA830.

    Example:
        >>> tm = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096)
        >>> decode(encode(tm)) == tm
        True

    Laws: inverse of ``encode`` on both sides; every other input is refused.
    Source: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
    """
    require_measured(target)
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise malformed("LA308", "decode needs bytes", f"got a {type(raw).__name__}")
    raw = bytes(raw)
    if len(raw) != MAP_BYTES:
        raise malformed("LA308", "a tensor map has 128 bytes", f"got {len(raw)} bytes")
    unpacked = _WORDS.unpack(raw)
    words, upper = unpacked[:16], unpacked[16:]
    rank = _read(words, "rank") + 1
    if rank > 5:
        raise _illegal("rank", rank - 1)
    for field in FIELDS:
        if field.word < 16 and field.name in _ALWAYS_ZERO and _bits(words, field):
            raise _illegal_field(field, _bits(words, field))
    for mode in range(rank, 5):
        for name in _MODE_FIELDS[mode]:
            if _read(words, name):
                raise _illegal(name, _read(words, name), f"mode {mode} is unused at rank {rank} and must be 0")
    tm = TensorMap(
        dtype=_dtype_name(words),
        dims=tuple(words[8 + mode] + 1 for mode in range(rank)),
        strides_bytes=tuple(
            (words[3 + i] | _read(words, f"strides_bytes[{i}][39:36]") << 32) << 4 for i in range(rank - 1)
        ),
        box=tuple(_read(words, f"box[{mode}]") + 1 for mode in range(rank)),
        element_strides=tuple(_read(words, f"element_strides[{mode}]") + 1 for mode in range(rank)),
        interleave=_name(words, "interleave", _INTERLEAVE_NAMES),
        swizzle=_name(words, "swizzle", _SWIZZLE_NAMES),
        l2_promotion=_name(words, "l2_promotion", _L2_NAMES),
        oob_fill=_name(words, "oob_fill", _OOB_NAMES),
        base_address=_base(words),
    )
    _require_accepted_fields(tm, words)
    _require_upper(tm, upper)
    return tm


_ALWAYS_ZERO = frozenset({"kind", "version", "swizzle_atom", "allocation_class", "swizzle_96B", "reserved"})
_MODE_FIELDS = {
    mode: (
        f"dims[{mode}]",
        f"strides_bytes[{mode - 1}][35:4]",
        f"strides_bytes[{mode - 1}][39:36]",
        f"box[{mode}]",
        f"element_strides[{mode}]",
    )
    for mode in range(1, 5)
}


def _bits(words: tuple[int, ...], field: Field) -> int:
    return words[field.word] >> field.low & ((1 << field.width) - 1)


def _read(words: tuple[int, ...], name: str) -> int:
    return _bits(words, _BY_NAME[name])


def _base(words: tuple[int, ...]) -> int:
    base = words[0] | words[1] << 32
    if base >> 63:  # does not fit a TensorMap; smaller addresses are left to the rules
        raise _illegal("base_address[63:32]", words[1], f"the address {base} is outside 0..2^57-1")
    return base


def _dtype_name(words: tuple[int, ...]) -> str:
    number, rounds = _read(words, "dtype"), _read(words, "dtype.tf32")
    name = _DTYPE_NAMES.get((number, rounds))
    if name is not None:
        return name
    if (number, 0) in _DTYPE_NAMES:
        raise _illegal("dtype.tf32", rounds, f"format {number} is not a 32-bit float")
    raise _illegal("dtype", number)


def _name(words: tuple[int, ...], field: str, names: dict[int, str]) -> str:
    number = _read(words, field)
    if number not in names:
        raise _illegal(field, number)
    return names[number]


def _illegal(name: str, value: int, because: str = "") -> MalformedError:
    return _illegal_field(_BY_NAME[name], value, because)


def _illegal_field(field: Field, value: int, because: str = "", code: str = "LA309") -> MalformedError:
    what = f"field {field.name} of the tensor map is illegal"
    detail = f"{field.bits} hold {value} ({value:#x})"
    return malformed(code, what, f"{detail}; {because or field.meaning}")


def _require_accepted_fields(tm: TensorMap, words: tuple[int, ...]) -> None:
    """Refuse fields that no driver accepts, so that every decoded map can be encoded again."""
    found = enforced_violations(tm)
    if found:
        first = found[0]
        name = first.field if first.position is None else f"{first.field}[{first.position}]"
        if first.field == "base_address":
            name = "base_address[31:0]" if first.rule == "BASE_ALIGN" else "base_address[63:32]"
        elif first.field == "strides_bytes":
            name += "[35:4]"
        elif first.field == "dims":
            name = "rank"  # decoded extents are always in range, so only the rank can be at fault
        elif name == "box":
            name = "box[0]"
        raise _illegal(name, _read(words, name), "; ".join(str(entry) for entry in found))


def _require_upper(tm: TensorMap, upper: tuple[int, ...]) -> None:
    expected = (box_bytes(tm), SWIZZLE_TABLE[tm.swizzle].period_bytes, 0, 0, 0, 0, 0, 0)
    for index, (value, wanted) in enumerate(zip(upper, expected, strict=True)):
        if value != wanted:
            difference = value ^ wanted
            word = 16 + 2 * index + (0 if difference & 0xFFFFFFFF else 1)
            field = next(entry for entry in FIELDS if entry.word == word)
            held = value >> (32 * (word % 2)) & 0xFFFFFFFF
            because = f"the lower half of the map implies {wanted} in 64-bit word {8 + index}, not {value}"
            raise _illegal_field(field, held, because, "LA310")
