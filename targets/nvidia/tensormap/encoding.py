"""The 128 bytes of a tiled tensor map: encode without a driver, decode with the illegal field named.

Main statements: ``decode(encode(tm)) == tm`` and ``encode(decode(raw)) == raw`` wherever the inner call succeeds; the
same for the documented pair. Bits of other architectures (an ATOM swizzle or a packed type below compute capability
10.0) and the 96-byte swizzle, which no tiled map has, are refused by field name.

Notation: little-endian 32-bit words; bit b of word w is bit 32 * w + b of the map.

Implementation notes: ``FIELDS`` is the layout of one driver on one chip. It agrees with the public bit positions,
except that the version bits and the allocation class are 0 and the upper half has two derived byte counts. The
documented pair is for targets without a measured device and was never run: it writes version 1, as documented, reads 0
or 1, and neither writes nor reads the upper half and the allocation class, which is a hint.

References: NVIDIA/TensorRT-LLM ``tmaDescriptor.h`` (Apache-2.0); the bit positions to which ptxas 13.0 lowers
``tensormap.replace``; PTX ISA 9.1, sections 5.5.1.1 (packed types) and 5.5.7 (swizzle atomicity); encodings measured on
NVIDIA H200, driver 580.159.04.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from layoutalg.ground.errors import MalformedError
from layoutalg.targets.codec import Codec, Field
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import (
    broken,
    enforced_violations,
    refused_map,
    require_accepted,
    require_measured,
    violations,
)
from layoutalg.targets.nvidia.tensormap.facts import box_bytes, require_map
from layoutalg.targets.nvidia.tensormap.fields import CODES, DTYPES, TensorMap, malformed
from layoutalg.targets.nvidia.tensormap.limits import MAX_RANK

MAP_BYTES = 128
VERSION = 1
"""The version that documents state; the measured driver writes 0."""
COMMON_FIELDS: tuple[Field, ...] = (
    Field("base_address[31:0]", 0, 0, 32, "byte address, low half"),
    Field("base_address[63:32]", 1, 0, 32, "byte address, high half"),
    Field("version", 2, 1, 3, "0 as this driver writes it, 1 as documented"),
    Field("rank", 2, 4, 3, "rank - 1", 1),
    Field("dtype", 2, 7, 4, "format number 0..10"),
    Field("interleave", 2, 11, 2, "0 NONE, 1 16B, 2 32B"),
    Field("swizzle", 2, 13, 2, "0 NONE, 1 32B, 2 64B, 3 128B"),
    Field("oob_fill", 2, 15, 1, "0 ZERO, 1 NAN"),
    Field("dtype.tf32", 2, 16, 1, "round to tf32; with formats 7 and 8 only"),
    Field("l2_promotion", 2, 17, 2, "0 NONE, 1 64B, 2 128B, 3 256B"),
    Field("swizzle_atom", 2, 19, 2, "0 on compute capability 9.0"),
    Field("allocation_class", 2, 21, 1, "0 as this driver writes it"),
    Field("swizzle_96B", 2, 22, 1, "0; only im2col-wide maps of sm_103a have it"),
    Field("reserved", 2, 23, 9, "0"),
    *(Field(f"strides_bytes[{i}][35:4]", 3 + i, 0, 32, "stride / 16, low half") for i in range(4)),
    *(Field(f"strides_bytes[{i}][39:36]", 7, 4 * i, 4, "stride / 16, bits 35:32") for i in range(4)),
    Field("reserved", 7, 16, 16, "0"),
    *(Field(f"dims[{i}]", 8 + i, 0, 32, "extent - 1", 1) for i in range(5)),
    *(Field(f"element_strides[{i}]", 13, 3 * i, 3, "step - 1", 1) for i in range(5)),
    Field("reserved", 13, 15, 9, "0"),
    Field("smem_alignment_bytes[31:0]", 18, 0, 32, "16, 256, 512 or 1024 by swizzle"),
    Field("smem_alignment_bytes[63:32]", 19, 0, 32, "0"),
    *(Field("reserved", word, 0, 32, "0") for word in range(20, 32)),
)
"""The fields that tiled and im2col maps have in common."""


def with_common(*own: Field) -> Codec:
    """Return the codec of a kind of map: its own fields among the common ones."""
    return Codec(sorted((*COMMON_FIELDS, *own), key=lambda field: field.first))


CODEC = with_common(
    Field("kind", 2, 0, 1, "0 tiled; 1 im2col, not decoded"),
    Field("box[0]", 13, 24, 8, "extent - 1", 1),
    *(Field(f"box[{i + 1}]", 14, 8 * i, 8, "extent - 1", 1) for i in range(4)),
    Field("reserved", 15, 0, 32, "0 in tiled maps"),
    Field("box_bytes[31:0]", 16, 0, 32, "bytes of the whole box, low half"),
    Field("box_bytes[63:32]", 17, 0, 32, "bytes of the whole box, high half"),
)
FIELDS: tuple[Field, ...] = CODEC.fields
"""Every bit of the map belongs to exactly one field."""
NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: tuple(f"{name}[{i}]" for i in range(5)) for name in ("dims", "box", "element_strides", "strides_bytes")}
)
"""The names of the values of each field that has one per mode."""
_WORDS = struct.Struct("<32I")
_ENUMERATIONS = {
    name: {code: known for known, code in CODES[name].items()} for name in ("interleave", "l2_promotion", "oob_fill")
}
"""The fields whose bits are the driver's numbers, and what they name."""
_DTYPE_NAMES = {(entry.format_code, int(entry.rounds_tf32)): name for name, entry in DTYPES.items()}
_SWIZZLE_NAMES = {entry.field_codes: name for name, entry in SWIZZLE_TABLE.items()}


@dataclass(frozen=True, slots=True)
class MapReading:
    """How the bytes of one kind of map are read."""

    codec: Codec  # its fields
    kind: str  # what messages call it
    code: str  # code of the errors that name a field
    most: Mapping[str, int]  # largest bits of the fields that have no value in a map
    documented: bool = False  # whether values that only documents describe have a meaning

    def illegal(self, field: Field | str, bits: int, because: str = "", code: str = "") -> MalformedError:
        """Return the error for a field with these bits."""
        at = self.codec.named[field] if isinstance(field, str) else field
        detail = f"{at.bits} hold {bits} ({bits:#x}); {because or at.meaning}"
        return malformed(code or self.code, f"field {at.name} of the {self.kind} is illegal", detail)

    def fields(self, words: Sequence[int]) -> dict[str, Any]:
        """Return the arguments of a map that all kinds have, and ``rank``."""
        for field, bits in self.codec.held(words, self.most):
            if bits > self.most[field.name]:
                raise self.illegal(field, bits)
        read, named = self.codec.decode(words), self.codec.named
        rank: int = read["rank"]
        if rank > MAX_RANK:
            raise self.illegal("rank", rank - 1)
        for field, bits in self.codec.held(words, _beyond(self.codec, rank)):
            if bits:
                because = f"mode {mode_of(field.name)} is unused at rank {rank} and must be 0"
                raise self.illegal(field, bits, because)
        if read["base_address"] >> 63:  # does not fit a TensorMap; smaller addresses are left to the rules
            because = f"the address {read['base_address']} is outside 0..2^57-1"
            raise self.illegal("base_address[63:32]", words[1], because)
        number, rounds = read["dtype"], read["dtype.tf32"]
        dtype = _DTYPE_NAMES.get((number, rounds))
        if dtype is None and (number, 0) in _DTYPE_NAMES:
            raise self.illegal("dtype.tf32", rounds, f"format {number} is not a 32-bit float")
        if dtype is None or (DTYPES[dtype].packed and not self.documented):
            raise self.illegal("dtype", number)
        swizzle = _SWIZZLE_NAMES.get((read["swizzle"], read["swizzle_atom"]))
        if swizzle is None:
            raise self.illegal("swizzle_atom", read["swizzle_atom"], "an atom requires swizzle 3 (128B)")
        names = {name: _ENUMERATIONS[name].get(read[name], "") for name in _ENUMERATIONS}
        for name, known in names.items():
            if not known:
                raise self.illegal(named[name], read[name])
        modes = {
            name: tuple(read[each] for each in NAMES[name][: rank - (name == "strides_bytes")])
            for name in NAMES
            if NAMES[name][0] in read
        }
        base = read["base_address"]
        return {"rank": rank, "dtype": dtype, "swizzle": swizzle, "base_address": base, **names, **modes}


_DRIVER_ZERO = MappingProxyType(
    dict.fromkeys(("kind", "version", "swizzle_atom", "allocation_class", "swizzle_96B", "reserved"), 0)
)
_DRIVER = MapReading(CODEC, "tensor map", "LA309", _DRIVER_ZERO)
_DOCUMENTS = MapReading(
    CODEC, "tensor map", "LA855", {"kind": 0, "version": VERSION, "swizzle_96B": 0, "reserved": 0}, documented=True
)


@cache
def mode_of(name: str) -> int | None:
    """Return the mode that a field belongs to; None if it is not one of a mode.

    Example:
        >>> mode_of("dims[3]"), mode_of("strides_bytes[0][35:4]"), mode_of("rank")
        (3, 1, None)
    """
    head, _, rest = name.partition("[")
    return int(rest[0]) + (head == "strides_bytes") if head in NAMES else None


@cache
def _beyond(codec: Codec, rank: int) -> tuple[str, ...]:
    """Return the names of the fields of modes that a map of this rank does not have."""
    modes = ((field.name, mode_of(field.name)) for field in codec.fields)
    return tuple(name for name, mode in modes if mode is not None and mode >= rank)


def words_of_map(raw: object) -> tuple[int, ...]:
    """Return the 32 words of a map's bytes."""
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise malformed("LA308", "decode needs bytes", f"got a {type(raw).__name__}")
    if len(raw) != MAP_BYTES:
        raise malformed("LA308", "a tensor map has 128 bytes", f"got {len(raw)} bytes")
    return _WORDS.unpack(raw)


def common_values(tm: Any) -> dict[str, int]:
    """Return the values of the common fields of a tiled or im2col map."""
    dtype, swizzle = DTYPES[tm.dtype], SWIZZLE_TABLE[tm.swizzle]
    code, atom = swizzle.field_codes
    values = {
        "base_address": tm.base_address, "rank": len(tm.dims), "dtype": dtype.format_code,
        "dtype.tf32": dtype.rounds_tf32, "swizzle": code, "swizzle_atom": atom,
        "smem_alignment_bytes": swizzle.period_bytes,
    }  # fmt: skip
    for name in _ENUMERATIONS:
        values[name] = CODES[name][getattr(tm, name)]
    values.update(zip(NAMES["dims"], tm.dims, strict=False))
    values.update(zip(NAMES["element_strides"], tm.element_strides, strict=False))
    values.update(zip(NAMES["strides_bytes"], tm.strides_bytes, strict=False))
    return values


def pack(words: Sequence[int]) -> bytes:
    """Return the bytes of 32 words."""
    return _WORDS.pack(*words)


def encode(tm: TensorMap, target: str = "sm_90a") -> bytes:
    """Return the 128 bytes that the measured driver writes for this map.

    Args:
        tm: The map.
        target: ``"sm_90"`` or ``"sm_90a"``; both were measured as one chip.

    Example:
        >>> raw = encode(TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096))
        >>> len(raw), raw[:12].hex()
        (128, '001000000000000010650000')

    Laws: reproduces 11,743 of 11,743 recorded encodings; ``decode`` is its inverse.
    Source: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
    """
    require_map(tm, "encode")
    require_measured(target)
    require_accepted(tm, "encode")
    return pack(_words(tm))


def _words(tm: TensorMap) -> list[int]:
    """Return the 32 words of a map that the driver accepts."""
    values = common_values(tm)
    values.update(zip(NAMES["box"], tm.box, strict=False))
    values["box_bytes"] = box_bytes(tm)
    words: list[int] = CODEC.encode(values)
    return words


def decode(raw: bytes | bytearray | memoryview, target: str = "sm_90a") -> TensorMap:
    """Return the map that encodes to these 128 bytes.

    Args:
        raw: 128 bytes.
        target: ``"sm_90"`` or ``"sm_90a"``.

    Example:
        >>> tm = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096)
        >>> decode(encode(tm)) == tm
        True

    Laws: inverse of ``encode`` on both sides; every other input is refused.
    Source: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
    """
    require_measured(target)
    words = words_of_map(raw)
    tm = lower_half(words)
    require_implied(_DRIVER, words, tuple(_words(tm)), "LA310")
    return tm


def lower_half(words: Sequence[int]) -> TensorMap:
    """Return the map of the lower 16 words of a map, if the measured driver accepts it."""
    fields = _DRIVER.fields([*words[:16], *(0,) * 16])
    fields.pop("rank")
    tm = TensorMap(**fields)
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
        raise _DRIVER.illegal(name, CODEC.named[name].of(words), "; ".join(str(entry) for entry in found))
    return tm


def require_implied(reading: MapReading, words: Sequence[int], again: Sequence[int], code: str = "") -> None:
    """Raise the reading's error for the first field whose bits are not those of the map encoded again."""
    if words == again:
        return
    for field in reading.codec.fields:
        bits, implied = field.of(words), field.of(again)
        if bits != implied:
            raise reading.illegal(field, bits, f"the other fields imply {implied}", code)


def encode_documented(tm: TensorMap, target: str) -> bytes:
    """Return the 128 bytes of a map, from documents alone.

    Args:
        tm: The map.
        target: Architecture; its documented rules must admit the map.

    Example:
        >>> tm = TensorMap("u4_align16", (256, 64), (128,), (128, 8), swizzle="128B_ATOM_32B")
        >>> encode_documented(tm, "sm_100a")[8:12].hex()
        '12660800'

    Laws: ``decode_documented`` is its inverse; on plain maps it agrees with the measured bytes except the version and
    the upper half.
    Source: this module's references; documented, not run.
    """
    found = violations(tm, target, "documented")
    found += tuple(one for one in broken(tm, ("ELEM_STRIDE",)) if one not in found)  # the first is encoded, if ignored
    if found:
        raise refused_map(tm, "encode_documented", found, "LA854", f"the documents refuse this tensor map on {target}")
    values = common_values(tm) | {"version": VERSION}
    values.update(zip(NAMES["box"], tm.box, strict=False))
    return pack([*CODEC.encode(values)[:16], *(0,) * 16])


def decode_documented(raw: bytes | bytearray | memoryview, target: str) -> TensorMap:
    """Return the map that these bytes describe on a target, from documents alone.

    Args:
        raw: 128 bytes; the upper 64 are not read.
        target: Architecture whose rules the fields must meet.

    Example:
        >>> tm = TensorMap("u4_align16", (256, 64), (128,), (128, 8), swizzle="128B_ATOM_32B")
        >>> decode_documented(encode_documented(tm, "sm_100a"), "sm_100a") == tm
        True
        >>> decode_documented(encode_documented(tm, "sm_100a"), "sm_90a")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: ...

    Laws: inverse of ``encode_documented``; bits of another architecture are refused.
    Source: this module's references; documented, not run.
    """
    fields = _DOCUMENTS.fields([*words_of_map(raw)[:16], *(0,) * 16])
    fields.pop("rank")
    tm = TensorMap(**fields)
    found = violations(tm, target, "documented")
    if found:
        because = "; ".join(str(entry) for entry in found)
        raise malformed("LA855", f"the documents refuse these fields on {target}", because)
    return tm
