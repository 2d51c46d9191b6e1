"""The 128 bytes of an im2col map: encode without a driver, decode with the illegal field named.

Main statements: ``decode(encode(tm)) == tm`` and ``encode(decode(raw)) == raw`` wherever the inner call succeeds.

Notation: as in ``tensormap.encoding``: little-endian 32-bit words.

References: NVIDIA/TensorRT-LLM ``tmaDescriptor.h`` (Apache-2.0) for the bit positions; encodings measured on NVIDIA
H100 and H200, driver 580.159.04.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia.im2col.checks import require_accepted, violations
from layoutalg.targets.nvidia.im2col.fields import Im2colMap, require_im2col
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import require_measured
from layoutalg.targets.nvidia.tensormap.encoding import FIELDS as TILED_FIELDS
from layoutalg.targets.nvidia.tensormap.encoding import MAP_BYTES, Field
from layoutalg.targets.nvidia.tensormap.facts import element_bytes
from layoutalg.targets.nvidia.tensormap.fields import (
    DTYPES,
    INTERLEAVE_CODES,
    L2_PROMOTION_CODES,
    OOB_FILL_CODES,
    malformed,
)

CORNER_BITS = {3: 16, 4: 8, 5: 5}
"""Width of one corner by rank: the lower corners fill the low half of word 14, the upper ones its high half."""
_WORDS = struct.Struct("<32I")


def _fields() -> tuple[Field, ...]:
    """Return the fields of the tiled map with the words of the box replaced."""
    kept = [field for field in TILED_FIELDS if field.word < 14 and field.name not in ("kind", "box[0]")]
    own = (
        Field("kind", 2, 0, 1, "1 im2col"),
        Field("channels_per_pixel", 13, 24, 8, "channels - 1"),
        Field("corners", 14, 0, 32, "lower corners below, upper corners above; 16, 8 or 5 bits each by rank, W lowest"),
        Field("pixels_per_column", 15, 0, 10, "pixels - 1"),
        Field("reserved", 15, 10, 22, "0"),
        Field("box_bytes[31:0]", 16, 0, 32, "bytes of one column, low half"),
        Field("box_bytes[63:32]", 17, 0, 32, "bytes of one column, high half"),
        Field("smem_alignment_bytes[31:0]", 18, 0, 32, "16, 256, 512 or 1024 by swizzle"),
        Field("smem_alignment_bytes[63:32]", 19, 0, 32, "0"),
        *(Field("reserved", word, 0, 32, "0") for word in range(20, 32)),
    )
    return tuple(sorted((*kept, *own), key=lambda field: (field.word, field.low)))


FIELDS: tuple[Field, ...] = _fields()
"""Every bit of the map belongs to exactly one field."""
_BY_NAME = {field.name: field for field in FIELDS}
_ZERO = frozenset({"version", "swizzle_atom", "allocation_class", "swizzle_96B", "reserved"})
_DTYPES = {
    (entry.format_code, int(entry.rounds_tf32)): entry.name
    for entry in DTYPES.values()
    if entry.format_code is not None
}


def column_bytes(tm: Im2colMap) -> int:
    """Return the bytes that the driver computes for one column and writes into word 8 of the map.

    Example:
        >>> column_bytes(Im2colMap("f16", (64, 9, 4), (128, 1152), (0,), (0,), 8, 64))
        1024

    Source: measured on NVIDIA H100 and H200.
    """
    require_im2col(tm, "column_bytes")
    return tm.channels_per_pixel * tm.pixels_per_column * element_bytes(tm.dtype)


def encode(tm: Im2colMap, target: str = "sm_90a") -> bytes:
    """Return the 128 bytes that the measured driver writes for this map.

    Raises: RefusedMapError: LA852. TargetRuleError: LA306, LA830. MalformedError: LA340, LA850.

    Example:
        >>> raw = encode(Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64))
        >>> len(raw), raw[56:64].hex()
        (128, 'ffffffff3f000000')

    Laws: reproduces the recorded encodings; ``decode`` is its inverse.
    Source: measured on NVIDIA H100 and H200, driver 580.159.04.
    """
    if not isinstance(tm, Im2colMap):
        raise malformed("LA850", "encode needs an Im2colMap", f"got a {type(tm).__name__}")
    require_measured(target)
    require_accepted(tm, "encode")
    dtype = DTYPES[tm.dtype]
    values = {
        "base_address[31:0]": tm.base_address & 0xFFFFFFFF, "base_address[63:32]": tm.base_address >> 32, "kind": 1,
        "rank": tm.rank - 1, "dtype": dtype.format_code or 0, "dtype.tf32": int(dtype.rounds_tf32),
        "interleave": INTERLEAVE_CODES[tm.interleave], "swizzle": SWIZZLE_TABLE[tm.swizzle].map_code,
        "oob_fill": OOB_FILL_CODES[tm.oob_fill], "l2_promotion": L2_PROMOTION_CODES[tm.l2_promotion],
        "channels_per_pixel": tm.channels_per_pixel - 1, "corners": _corner_word(tm),
        "pixels_per_column": tm.pixels_per_column - 1, "box_bytes[31:0]": column_bytes(tm),
        "smem_alignment_bytes[31:0]": SWIZZLE_TABLE[tm.swizzle].period_bytes,
    }  # fmt: skip
    for mode, (extent, step) in enumerate(zip(tm.dims, tm.element_strides, strict=True)):
        values[f"dims[{mode}]"], values[f"element_strides[{mode}]"] = extent - 1, step - 1
    for index, stride in enumerate(tm.strides_bytes):
        values[f"strides_bytes[{index}][35:4]"] = stride >> 4 & 0xFFFFFFFF
        values[f"strides_bytes[{index}][39:36]"] = stride >> 36
    words = [0] * 32
    for name, value in values.items():
        field = _BY_NAME[name]
        words[field.word] |= value << field.low
    return _WORDS.pack(*words)


def decode(raw: bytes | bytearray | memoryview, target: str = "sm_90a") -> Im2colMap:
    """Return the map that encodes to these 128 bytes.

    Raises: MalformedError: LA308, LA340, LA853. TargetRuleError: LA306, LA830.

    Example:
        >>> tm = Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64)
        >>> decode(encode(tm)) == tm
        True

    Laws: inverse of ``encode`` on both sides; every other input is refused.
    Source: measured on NVIDIA H100 and H200, driver 580.159.04.
    """
    require_measured(target)
    if not isinstance(raw, (bytes, bytearray, memoryview)) or len(raw) != MAP_BYTES:
        got = f"{len(raw)} bytes" if isinstance(raw, (bytes, bytearray, memoryview)) else f"a {type(raw).__name__}"
        raise malformed("LA308", "a tensor map has 128 bytes", f"got {got}")
    words = _WORDS.unpack(bytes(raw))
    read = {field.name: _bits(words, field) for field in FIELDS if field.name != "reserved"}
    if not read["kind"]:
        raise _illegal("kind", 0, "0 is a tiled map: tensormap.decode reads it")
    for field in FIELDS:
        if field.name in _ZERO and _bits(words, field):
            raise _illegal_field(field, _bits(words, field))
    rank = read["rank"] + 1
    if rank not in CORNER_BITS:
        raise _illegal("rank", rank - 1, "im2col maps have rank 3, 4 or 5")
    if read["base_address[63:32]"] >> 31:
        raise _illegal("base_address[63:32]", read["base_address[63:32]"], "the address is outside 0..2^57-1")
    dtype = _DTYPES.get((read["dtype"], read["dtype.tf32"]))
    if dtype is None:
        raise _illegal("dtype", read["dtype"], f"no type has format {read['dtype']} with tf32 bit {read['dtype.tf32']}")
    names = {
        name: _name(name, read[name], codes)
        for name, codes in (
            ("interleave", INTERLEAVE_CODES),
            ("swizzle", {name: entry.map_code for name, entry in SWIZZLE_TABLE.items()}),
            ("l2_promotion", L2_PROMOTION_CODES),
            ("oob_fill", OOB_FILL_CODES),
        )
    }
    lower, upper = _corners(read["corners"], rank)
    tm = Im2colMap(
        dtype=dtype,
        dims=tuple(read[f"dims[{mode}]"] + 1 for mode in range(rank)),
        strides_bytes=tuple(
            (read[f"strides_bytes[{i}][35:4]"] | read[f"strides_bytes[{i}][39:36]"] << 32) << 4 for i in range(rank - 1)
        ),
        lower_corner=lower,
        upper_corner=upper,
        channels_per_pixel=read["channels_per_pixel"] + 1,
        pixels_per_column=read["pixels_per_column"] + 1,
        element_strides=tuple(read[f"element_strides[{mode}]"] + 1 for mode in range(rank)),
        base_address=read["base_address[31:0]"] | read["base_address[63:32]"] << 32,
        **names,
    )
    found = violations(tm)
    if found:
        because = "; ".join(str(entry) for entry in found)
        raise malformed("LA853", f"field {found[0].field} of the im2col map is illegal", because)
    again = _WORDS.unpack(encode(tm))
    for field in FIELDS:
        held, wanted = _bits(words, field), _bits(again, field)
        if held != wanted:
            raise _illegal_field(field, held, f"the other fields imply {wanted}")
    return tm


def _corner_word(tm: Im2colMap) -> int:
    width = CORNER_BITS[tm.rank]
    word = 0
    for j, (low, high) in enumerate(zip(tm.lower_corner, tm.upper_corner, strict=True)):
        mask = (1 << width) - 1
        word |= (low & mask) << width * j | (high & mask) << 16 + width * j
    return word


def _corners(word: int, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    width = CORNER_BITS[rank]

    def signed(low: int) -> int:
        value = word >> low & ((1 << width) - 1)
        return value - (1 << width) if value >> (width - 1) else value

    spatial = range(rank - 2)
    return tuple(signed(width * j) for j in spatial), tuple(signed(16 + width * j) for j in spatial)


def _bits(words: tuple[int, ...], field: Field) -> int:
    return words[field.word] >> field.low & ((1 << field.width) - 1)


def _name(field: str, number: int, codes: Mapping[str, int]) -> str:
    for name, code in codes.items():
        if code == number:
            return name
    raise _illegal(field, number, _BY_NAME[field].meaning)


def _illegal(name: str, value: int, because: str) -> MalformedError:
    return _illegal_field(_BY_NAME[name], value, because)


def _illegal_field(field: Field, value: int, because: str = "") -> MalformedError:
    detail = f"{field.bits} hold {value} ({value:#x}); {because or field.meaning}"
    return malformed("LA853", f"field {field.name} of the im2col map is illegal", detail)
