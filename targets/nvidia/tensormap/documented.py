"""The first 64 bytes of a tensor map as public documents describe them, for targets without a measured device.

Main statements: ``decode_documented(encode_documented(tm, target), target) == tm``. Bits of other architectures (an
ATOM swizzle or a packed type below compute capability 10.0) and the 96-byte swizzle, which no tiled map has, are
refused by field name.

Implementation notes: documented evidence, never run here. Undocumented bits are written as 0 and not read: the
allocation class, which is a hint, and the upper 64 bytes. The version is written as 1, as documented, and read as 0 or
1, because the measured driver of compute capability 9.0 writes 0.

References: NVIDIA/TensorRT-LLM ``tmaDescriptor.h`` (Apache-2.0); the bit positions to which ptxas 13.0 lowers
``tensormap.replace``; PTX ISA 9.1, sections 5.5.1.1 (packed types) and 5.5.7 (swizzle atomicity).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import RefusedMapError, violations
from layoutalg.targets.nvidia.tensormap.encoding import FIELDS, MAP_BYTES, Field
from layoutalg.targets.nvidia.tensormap.fields import (
    DTYPES,
    INTERLEAVE_CODES,
    L2_PROMOTION_CODES,
    OOB_FILL_CODES,
    TensorMap,
    malformed,
)
from layoutalg.targets.nvidia.tensormap.limits import MAX_ELEMENT_STRIDE

PACKED_FORMATS: Mapping[str, int] = MappingProxyType({"u4_align8": 11, "u4_align16": 12, "u6_align16": 13})
"""Format numbers of the packed types: ``.b4x16``, ``.b4x16_p64``, and ``.b6x16_p32`` with ``.b6p2x16``."""
ATOM_CODES: Mapping[str, int] = MappingProxyType({"128B_ATOM_32B": 1, "128B_ATOM_32B_FLIP_8B": 2, "128B_ATOM_64B": 3})
"""Values of the atom field; the swizzle field is then 3 (128B)."""
VERSION = 1
_WORDS = struct.Struct("<16I64x")
_READ = struct.Struct("<16I")
_BY_NAME = {field.name: field for field in FIELDS}
_FORMATS = {(entry.format_code, int(entry.rounds_tf32)): name for name, entry in DTYPES.items() if not entry.packed}
_FORMATS |= {(code, 0): name for name, code in PACKED_FORMATS.items()}
_SWIZZLES = {(entry.map_code, 0): name for name, entry in SWIZZLE_TABLE.items() if name not in ATOM_CODES}
_SWIZZLES |= {(3, code): name for name, code in ATOM_CODES.items()}


def encode_documented(tm: TensorMap, target: str) -> bytes:
    """Return the 128 bytes of a map, from documents alone.

    Args:
        tm: The map.
        target: Architecture; its documented rules must admit the map.

    Raises: RefusedMapError: LA854. MalformedError: LA300, LA340.

    Example:
        >>> tm = TensorMap("u4_align16", (256, 64), (128,), (128, 8), swizzle="128B_ATOM_32B")
        >>> encode_documented(tm, "sm_100a")[8:12].hex()
        '12660800'

    Laws: ``decode_documented`` is its inverse; on plain maps it agrees with the measured bytes except the version and
    the upper half.
    Source: this module's references; documented, not run.
    """
    found = violations(tm, target, "documented")
    if tm.element_strides and not 1 <= tm.element_strides[0] <= MAX_ELEMENT_STRIDE:  # ignored, but encoded
        message = f"element_strides[0] = {tm.element_strides[0]} is outside 1..8"
        found += (Violation("ELEM_STRIDE", message, "element_strides", 0),)
    if found:
        raise RefusedMapError(
            Diagnostic(
                "LA854",
                f"the documents refuse this tensor map on {target} ({len(found)} rule violations)",
                (f"encode_documented({tm!r})",),
                "; ".join(str(entry) for entry in found),
                source="rule " + found[0].rule,
            ),
            found[0].rule,
            found,
        )
    dtype = DTYPES[tm.dtype]
    values = {
        "base_address[31:0]": tm.base_address & 0xFFFFFFFF, "base_address[63:32]": tm.base_address >> 32,
        "version": VERSION, "rank": tm.rank - 1, "dtype": PACKED_FORMATS.get(tm.dtype, dtype.format_code or 0),
        "dtype.tf32": int(dtype.rounds_tf32), "interleave": INTERLEAVE_CODES[tm.interleave],
        "swizzle": 3 if tm.swizzle in ATOM_CODES else SWIZZLE_TABLE[tm.swizzle].map_code,
        "swizzle_atom": ATOM_CODES.get(tm.swizzle, 0), "oob_fill": OOB_FILL_CODES[tm.oob_fill],
        "l2_promotion": L2_PROMOTION_CODES[tm.l2_promotion],
    }  # fmt: skip
    for mode in range(tm.rank):
        values[f"dims[{mode}]"] = tm.dims[mode] - 1
        values[f"element_strides[{mode}]"] = tm.element_strides[mode] - 1
        values[f"box[{mode}]"] = tm.box[mode] - 1
    for index, stride in enumerate(tm.strides_bytes):
        values[f"strides_bytes[{index}][35:4]"] = stride >> 4 & 0xFFFFFFFF
        values[f"strides_bytes[{index}][39:36]"] = stride >> 36
    words = [0] * 16
    for name, value in values.items():
        field = _BY_NAME[name]
        words[field.word] |= value << field.low
    return _WORDS.pack(*words)


def decode_documented(raw: bytes | bytearray | memoryview, target: str) -> TensorMap:
    """Return the map that these bytes describe on a target, from documents alone.

    Args:
        raw: 128 bytes; the upper 64 are not read.
        target: Architecture whose rules the fields must meet.

    Raises: MalformedError: LA308, LA340, LA855.

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
    if not isinstance(raw, (bytes, bytearray, memoryview)) or len(raw) != MAP_BYTES:
        got = f"{len(raw)} bytes" if isinstance(raw, (bytes, bytearray, memoryview)) else f"a {type(raw).__name__}"
        raise malformed("LA308", "a tensor map has 128 bytes", f"got {got}")
    words = _READ.unpack(bytes(raw)[:64])
    read = {field.name: _bits(words, field) for field in FIELDS if field.word < 16 and field.name != "reserved"}
    for field in FIELDS:
        if field.word < 16 and field.name == "reserved" and _bits(words, field):
            raise _illegal(field, _bits(words, field), field.meaning)
    for name, most, because in (
        ("kind", 0, "1 is an im2col map"),
        ("version", VERSION, "the documented version is 1"),
        ("rank", 4, "rank - 1"),
        ("swizzle_96B", 0, "the 96-byte swizzle belongs to im2col-wide maps of compute capability 10.3"),
    ):
        if read[name] > most:
            raise _illegal(_BY_NAME[name], read[name], because)
    rank = read["rank"] + 1
    for mode in range(rank, 5):
        for name in (f"dims[{mode}]", f"box[{mode}]", f"element_strides[{mode}]", f"strides_bytes[{mode - 1}][35:4]",
                     f"strides_bytes[{mode - 1}][39:36]"):  # fmt: skip
            if read[name]:
                raise _illegal(_BY_NAME[name], read[name], f"mode {mode} is unused at rank {rank} and must be 0")
    dtype = _FORMATS.get((read["dtype"], read["dtype.tf32"]))
    if dtype is None:
        raise _illegal(_BY_NAME["dtype"], read["dtype"], f"no type has this number with tf32 {read['dtype.tf32']}")
    swizzle = _SWIZZLES.get((read["swizzle"], read["swizzle_atom"]))
    if swizzle is None:
        raise _illegal(_BY_NAME["swizzle_atom"], read["swizzle_atom"], "an atom requires swizzle 3 (128B)")
    interleave = next((name for name, code in INTERLEAVE_CODES.items() if code == read["interleave"]), None)
    if interleave is None:
        raise _illegal(_BY_NAME["interleave"], read["interleave"], _BY_NAME["interleave"].meaning)
    base = read["base_address[31:0]"] | read["base_address[63:32]"] << 32
    if base >> 63:
        raise _illegal(_BY_NAME["base_address[63:32]"], read["base_address[63:32]"], "outside 0..2^57-1")
    tm = TensorMap(
        dtype,
        tuple(read[f"dims[{mode}]"] + 1 for mode in range(rank)),
        tuple((read[f"strides_bytes[{i}][35:4]"] | read[f"strides_bytes[{i}][39:36]"] << 32) << 4
              for i in range(rank - 1)),
        tuple(read[f"box[{mode}]"] + 1 for mode in range(rank)),
        tuple(read[f"element_strides[{mode}]"] + 1 for mode in range(rank)),
        interleave,
        swizzle,
        next(name for name, code in L2_PROMOTION_CODES.items() if code == read["l2_promotion"]),
        next(name for name, code in OOB_FILL_CODES.items() if code == read["oob_fill"]),
        base,
    )  # fmt: skip
    found = violations(tm, target, "documented")
    if found:
        because = "; ".join(str(entry) for entry in found)
        raise malformed("LA855", f"the documents refuse these fields on {target}", because)
    return tm


def _bits(words: tuple[int, ...], field: Field) -> int:
    return words[field.word] >> field.low & ((1 << field.width) - 1)


def _illegal(field: Field, value: int, because: str) -> MalformedError:
    return malformed("LA855", f"field {field.name} is illegal", f"{field.bits} hold {value} ({value:#x}); {because}")
