"""The 128 bytes of an im2col map: encode without a driver, decode with the illegal field named.

Main statements: ``decode(encode(tm)) == tm`` and ``encode(decode(raw)) == raw`` wherever the inner call succeeds.

Notation: as in ``tensormap.encoding``: little-endian 32-bit words.

References: NVIDIA/TensorRT-LLM ``tmaDescriptor.h`` (Apache-2.0) for the bit positions; encodings measured on NVIDIA
H100 and H200, driver 580.159.04.
"""

from __future__ import annotations

from layoutalg.targets.codec import Field
from layoutalg.targets.nvidia.im2col.checks import require_accepted, violations
from layoutalg.targets.nvidia.im2col.fields import Im2colMap, require_im2col
from layoutalg.targets.nvidia.tensormap.checks import require_measured
from layoutalg.targets.nvidia.tensormap.encoding import (
    MapReading,
    common_values,
    pack,
    require_implied,
    with_common,
    words_of_map,
)
from layoutalg.targets.nvidia.tensormap.facts import element_bytes
from layoutalg.targets.nvidia.tensormap.fields import malformed

CORNER_BITS = {3: 16, 4: 8, 5: 5}
"""Width of one corner by rank: the lower corners fill the low half of word 14, the upper ones its high half."""
CODEC = with_common(
    Field("kind", 2, 0, 1, "1 im2col"),
    Field("channels_per_pixel", 13, 24, 8, "channels - 1", 1),
    Field("corners", 14, 0, 32, "lower corners below, upper corners above; 16, 8 or 5 bits each by rank, W lowest"),
    Field("pixels_per_column", 15, 0, 10, "pixels - 1", 1),
    Field("reserved", 15, 10, 22, "0"),
    Field("box_bytes[31:0]", 16, 0, 32, "bytes of one column, low half"),
    Field("box_bytes[63:32]", 17, 0, 32, "bytes of one column, high half"),
)
FIELDS: tuple[Field, ...] = CODEC.fields
"""Every bit of the map belongs to exactly one field."""
_ZERO = dict.fromkeys(("version", "swizzle_atom", "allocation_class", "swizzle_96B", "reserved"), 0)
_DRIVER = MapReading(CODEC, "im2col map", "LA853", _ZERO)


def column_bytes(tm: Im2colMap) -> int:
    """Return the bytes that the driver computes for one column and writes into word 8 of the map.

    Example:
        >>> column_bytes(Im2colMap("f16", (64, 9, 4), (128, 1152), (0,), (0,), 8, 64))
        1024
    """
    require_im2col(tm, "column_bytes")
    return tm.channels_per_pixel * tm.pixels_per_column * element_bytes(tm.dtype)


def encode(tm: Im2colMap, target: str = "sm_90a") -> bytes:
    """Return the 128 bytes that the measured driver writes for this map.

    Example:
        >>> raw = encode(Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64))
        >>> len(raw), raw[56:64].hex()
        (128, 'ffffffff3f000000')

    Laws: reproduces the recorded encodings; ``decode`` is its inverse.
    Source: measured on NVIDIA H100 and H200, driver 580.159.04.
    """
    require_im2col(tm, "encode")
    require_measured(target)
    require_accepted(tm, "encode")
    values = common_values(tm) | {
        "kind": 1, "channels_per_pixel": tm.channels_per_pixel, "corners": _corner_word(tm),
        "pixels_per_column": tm.pixels_per_column, "box_bytes": column_bytes(tm),
    }  # fmt: skip
    return pack(CODEC.encode(values))


def decode(raw: bytes | bytearray | memoryview, target: str = "sm_90a") -> Im2colMap:
    """Return the map that encodes to these 128 bytes.

    Example:
        >>> tm = Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64)
        >>> decode(encode(tm)) == tm
        True

    Laws: inverse of ``encode`` on both sides; every other input is refused.
    Source: measured on NVIDIA H100 and H200, driver 580.159.04.
    """
    require_measured(target)
    words = words_of_map(raw)
    if not CODEC.named["kind"].of(words):
        raise _DRIVER.illegal("kind", 0, "0 is a tiled map: tensormap.decode reads it")
    fields, read = _DRIVER.fields(words), CODEC.decode(words)
    rank = fields.pop("rank")
    if rank not in CORNER_BITS:
        raise _DRIVER.illegal("rank", rank - 1, "im2col maps have rank 3, 4 or 5")
    lower, upper = _corners(read["corners"], rank)
    tm = Im2colMap(
        lower_corner=lower,
        upper_corner=upper,
        channels_per_pixel=read["channels_per_pixel"],
        pixels_per_column=read["pixels_per_column"],
        **fields,
    )
    found = violations(tm)
    if found:
        because = "; ".join(str(entry) for entry in found)
        raise malformed("LA853", f"field {found[0].field} of the im2col map is illegal", because)
    require_implied(_DRIVER, words, words_of_map(encode(tm)))
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
