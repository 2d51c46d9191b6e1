"""What follows from the fields of a tensor map: element sizes, swizzles, byte counts.

Notation: the unit of a map is the element; of an interleaved map, a slice of 16 or 32 bytes.

Implementation notes: every byte count was measured on an H200, those of interleaved maps on an H100. The numbers of
the swizzles are in ``nvidia.swizzles``.

References: PTX ISA 9.1 section 5.5.7 (swizzling modes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import integers
from layoutalg.ground.errors import shown
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE, HardwareSwizzle
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, TensorMap, checked_name, malformed
from layoutalg.targets.nvidia.tensormap.limits import MAX_RANK, SMEM_DESTINATION_ALIGN_BYTES
from layoutalg.targets.registry import lookup

SLICE_BYTES: Mapping[str, int] = MappingProxyType({"16B": 16, "32B": 32})
"""Bytes of a slice by interleave."""


def element_bytes(dtype: str) -> int:
    """Return the bytes of one element.

    Example:
        >>> element_bytes("bf16")
        2
    """
    entry = DTYPES[checked_name("dtype", dtype, DTYPES)]
    if entry.packed:
        raise malformed("LA302", f"dtype {dtype!r} has no whole number of bytes", f"an element has {entry.bits} bits")
    return entry.bits // 8


def swizzle_xor(mode: str) -> list[tuple[int, int]]:
    """Return the swizzle as a list of (target bit, source bit): target ^= source, on shared byte-address bits.

    Example:
        >>> swizzle_xor("128B")
        [(4, 7), (5, 8), (6, 9)]

    Source: PTX ISA 9.1 section 5.5.7; 32B, 64B and 128B measured.
    """
    return list(_swizzle(mode).xor)


def apply_swizzle(mode: str, byte_addresses: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the shared byte addresses at which the engine puts the bytes of the unswizzled addresses.

    Mathematically: an involution, a linear map over F2 on the address bits; sources lie above all targets.

    Args:
        mode: A name of ``SWIZZLES``.
        byte_addresses: Integers >= 0, any shape, absolute shared byte addresses (or offsets from a base aligned to the
            period).

    Returns:
        int64 array of the same shape.

    Example:
        >>> apply_swizzle("64B", [0, 128, 144, 384]).tolist()
        [0, 144, 128, 432]

    Source: PTX ISA 9.1 section 5.5.7; 32B, 64B and 128B measured.
    """
    pairs = swizzle_xor(mode)
    given = integers(byte_addresses, "byte_addresses")
    if given is None or (given.size and (int(given.min()) < 0 or int(given.max()) >= 1 << 63)):
        raise malformed("LA303", "byte_addresses are not integers in 0..2^63-1", f"got {shown(byte_addresses)}")
    return np.asarray(xored(pairs, given.astype(np.int64)))


def xored(pairs: list[tuple[int, int]], addresses: Any) -> Any:
    """Return addresses with each target bit XORed by its original source bit.

    Args:
        pairs: (target bit, source bit).
        addresses: An integer or an array.

    Example:
        >>> xored([(4, 7), (5, 8)], 384)
        432
    """
    answer = addresses
    for target, source in pairs:
        answer = answer ^ (addresses >> source & 1) << target
    return answer


def swizzle_span_bytes(mode: str) -> int:
    """Return the widest inner box of a swizzle in bytes; 16, the chunk, for ``"NONE"`` (which has no such limit).

    Example:
        >>> swizzle_span_bytes("64B")
        64

    Source: CUDA driver API 13.0, ``cuTensorMapEncodeTiled``, swizzle.
    """
    return _swizzle(mode).span_bytes


def swizzle_period_bytes(mode: str) -> int:
    """Return the period of the pattern in shared-memory bytes; 16, the chunk, for ``"NONE"``.

    It is also the shared-memory alignment that the driver writes into word 9 of the map (PTX asks at least 128 bytes of
    every tile destination).

    Example:
        >>> [swizzle_period_bytes(mode) for mode in ("NONE", "32B", "64B", "128B")]
        [16, 256, 512, 1024]

    Source: PTX ISA 9.1 section 5.5.7; encodings measured on NVIDIA H200, driver 580.159.04.
    """
    return _swizzle(mode).period_bytes


def tile_align_bytes(mode: str) -> int:
    """Return the alignment that the shared base of a tile needs: of the copy engine, and of the swizzle's period.

    Example:
        >>> [tile_align_bytes(mode) for mode in ("NONE", "32B", "128B")]
        [128, 256, 1024]

    Source: PTX ISA 9.1, ``cp.async.bulk.tensor``: 128 bytes for every tile destination.
    """
    return max(SMEM_DESTINATION_ALIGN_BYTES, swizzle_period_bytes(mode))


def _swizzle(mode: str) -> HardwareSwizzle:
    return SWIZZLE_TABLE[checked_name("swizzle", mode, SWIZZLE_TABLE)]


def unit_bytes(tm: TensorMap) -> int:
    """Return the bytes of a map's unit: an element, or a slice of an interleaved map.

    Example:
        >>> unit_bytes(TensorMap("f16", (64, 8, 8), (1024, 32768), (8, 2, 2), interleave="32B"))
        32
    """
    require_map(tm, "unit_bytes")
    if tm.interleave == "NONE":
        return element_bytes(tm.dtype)
    if not 3 <= tm.rank <= MAX_RANK:
        raise malformed("LA302", "an interleaved map has rank 3 to 5", f"interleave {tm.interleave}, rank {tm.rank}")
    return SLICE_BYTES[tm.interleave]


def loaded_counts(tm: TensorMap) -> tuple[int, ...]:
    """Return how many elements, or slices of an interleaved map, one tile has along each mode.

    Mathematically: box[0], then ceil(box[i] / element_strides[i]); the first element stride is ignored. For an
    interleaved map it applies too, and along the next-to-last mode a tile has one slice whatever the box says.

    Example:
        >>> loaded_counts(TensorMap("f32", (64, 64), (256,), (8, 5), (2, 2)))
        (8, 3)
        >>> loaded_counts(TensorMap("f16", (64, 8, 8), (1024, 32768), (8, 64, 3), (2, 1, 1), interleave="16B"))
        (4, 1, 3)

    Source: CUDA driver API 13.0, ``elementStrides``; measured on 1,000 loads, and 738 interleaved ones.
    """
    require_map(tm, "loaded_counts")
    plain = tm.interleave == "NONE"
    _require_countable(tm, tm.element_strides[1:] if plain else tm.element_strides)
    if plain:
        return tuple(
            extent if mode == 0 else -(-extent // tm.element_strides[mode]) for mode, extent in enumerate(tm.box)
        )
    unit_bytes(tm)
    counts = [-(-extent // step) for extent, step in zip(tm.box, tm.element_strides, strict=True)]
    counts[-2] = 1
    return tuple(counts)


def transaction_bytes(tm: TensorMap) -> int:
    """Return the bytes one tile load completes on its barrier, elements out of bounds included.

    Mathematically: ``unit_bytes`` * product of ``loaded_counts``.

    Example:
        >>> transaction_bytes(TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B"))
        8192
        >>> transaction_bytes(TensorMap("bf16", (56, 56, 16, 8), (896, 50176, 802816), (8, 8, 1, 1), interleave="16B"))
        1024

    Source: measured on NVIDIA H200, 1,000 of 1,000 barrier phases, and on an H100, 738 of interleaved tiles.
    """
    return math.prod(loaded_counts(tm)) * unit_bytes(tm)


def row_pitch_bytes(tm: TensorMap) -> int:
    """Return the distance in shared memory between rows of the tile: the swizzle span, or the row if not swizzled.

    Slices of an interleaved map leave no gaps, whatever the swizzle.

    Example:
        >>> row_pitch_bytes(TensorMap("bf16", (512, 1024), (1024,), (16, 64), swizzle="128B"))
        128

    Source: measured on NVIDIA H200, interleaved maps on an H100.
    """
    row_bytes = loaded_counts(tm)[0] * unit_bytes(tm)
    gaps = tm.swizzle != "NONE" and tm.interleave == "NONE"
    return max(SWIZZLE_TABLE[tm.swizzle].span_bytes, row_bytes) if gaps else row_bytes


def footprint_bytes(tm: TensorMap) -> int:
    """Return the bytes of shared memory one tile occupies, including gaps after rows narrower than the swizzle span.

    Example:
        >>> footprint_bytes(TensorMap("bf16", (512, 1024), (1024,), (16, 64), swizzle="128B"))
        8192

    Source: measured on NVIDIA H200; a smaller shared region faults.
    """
    return row_pitch_bytes(tm) * math.prod(loaded_counts(tm)[1:])


def box_bytes(tm: TensorMap) -> int:
    """Return the byte count that the driver computes for the box, limits to 233,472 and writes into map word 8.

    Mathematically: element bytes * product over all modes of floor(box[i] / element_strides[i]). It differs from
    ``transaction_bytes`` if an element stride does not divide its box, and is 0 if a stride exceeds it.

    Example:
        >>> box_bytes(TensorMap("f32", (64, 64), (256,), (8, 5), (2, 2)))
        32
    """
    require_map(tm, "box_bytes")
    _require_countable(tm, tm.element_strides)
    return element_bytes(tm.dtype) * math.prod(e // s for e, s in zip(tm.box, tm.element_strides, strict=True))


def is_measured(arch: str) -> bool:
    """Return whether a device of that architecture was measured, so that enforced rules and bytes are known.

    Example:
        >>> is_measured("sm_90a"), is_measured("sm_100a")
        (True, False)
    """
    return bool(lookup(arch).measured)


def swizzle_supported(mode: str, arch: str) -> bool:
    """Return whether the architecture's copy engine has the swizzle: the ATOM modes need compute capability 10.0.

    Example:
        >>> swizzle_supported("128B", "sm_90a"), swizzle_supported("128B_ATOM_32B", "sm_90a")
        (True, False)
        >>> swizzle_supported("NONE", "sm_80"), swizzle_supported("NONE", "gfx942")
        (False, False)

    Source: rules NO_TMA and ARCH_ATOM.
    """
    capability = lookup(arch).compute_capability
    needed = max(_swizzle(mode).compute_capability, (9, 0))
    return capability is not None and needed <= capability


def require_map(tm: object, call: str) -> None:
    """Raise LA300 unless the argument of ``call`` is a ``TensorMap``."""
    if not isinstance(tm, TensorMap):
        raise malformed("LA300", f"{call} needs a TensorMap", f"got a {type(tm).__name__}")


def _require_countable(tm: TensorMap, steps: tuple[int, ...]) -> None:
    if not tm.box or min(tm.box) < 1 or (steps and min(steps) < 1):
        raise malformed(
            "LA302",
            "the box has no countable elements",
            f"box = {tm.box} and element_strides = {tm.element_strides} must be positive, with at least one mode",
        )
