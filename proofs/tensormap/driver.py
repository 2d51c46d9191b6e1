"""What the measured driver accepts and writes, for the checker's side: one formula for the rules, one for the bytes.

Implementation notes: on purpose no predicate, table or number of ``targets``, which finders use; the recorded verdicts
and bytes of a driver judge both.

References: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0); NVIDIA/TensorRT-LLM ``tmaDescriptor.h``.
"""

from __future__ import annotations

import math

from layoutalg.proofs.tensormap.swizzle import CHUNK_BYTES, PHASES
from layoutalg.targets.nvidia.tensormap import TensorMap

FORMATS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16")
"""Element types by their number in a map; the tf32 types have the number of their f32 type and one more bit."""
SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2)


def accepted(tm: TensorMap) -> bool:
    """Return whether the driver accepts a map.

    Example:
        >>> accepted(TensorMap("u8", (64,), (), (16,))), accepted(TensorMap("u8", (64,), (), (17,)))
        (True, False)
    """
    plain, rank = tm.interleave == "NONE", len(tm.dims)
    if tm.dtype.replace("tf", "f") not in FORMATS or tm.swizzle not in PHASES or not (1 if plain else 3) <= rank <= 5:
        return False
    size, grain = _size(tm), 32 if tm.interleave == "32B" else 16
    fits = tm.swizzle == "NONE" or not plain or tm.box[0] * size <= CHUNK_BYTES * PHASES[tm.swizzle]
    return (
        not any(number % grain for number in (tm.base_address, *tm.strides_bytes))
        and 0 <= tm.base_address < 2**57
        and all(0 < extent <= 2**32 for extent in tm.dims)
        and all(0 <= stride < 2**40 for stride in tm.strides_bytes)
        and all(0 < extent <= 256 for extent in tm.box)
        and all(0 < step <= 8 for step in tm.element_strides)
        and tm.box[0] * size % CHUNK_BYTES == 0
        and fits
        and (tm.oob_fill == "ZERO" or "f" in tm.dtype)
        and _whole(tm) <= 233_472
    )


def encoded(tm: TensorMap) -> bytes:
    """Return the 128 bytes that the driver writes for a map that it accepts.

    Example:
        >>> encoded(TensorMap("u8", (64,), (), (16,), base_address=4096))[:12].hex()
        '001000000000000000000000'
    """
    names = ("NONE", "16B", "32B").index(tm.interleave), tuple(PHASES).index(tm.swizzle)
    promotion = ("NONE", "64B", "128B", "256B").index(tm.l2_promotion)
    bits = tm.base_address | len(tm.dims) - 1 << 68 | FORMATS.index(tm.dtype.replace("tf", "f")) << 71
    bits |= names[0] << 75 | names[1] << 77 | (tm.oob_fill == "NAN") << 79 | tm.dtype.startswith("tf") << 80
    bits |= promotion << 81 | _whole(tm) << 512 | (16, 256, 512, 1024)[names[1]] << 576
    for k, stride in enumerate(tm.strides_bytes):
        bits |= stride % 2**36 >> 4 << 96 + 32 * k | stride >> 36 << 224 + 4 * k
    for k, (extent, box, step) in enumerate(zip(tm.dims, tm.box, tm.element_strides, strict=True)):
        bits |= extent - 1 << 256 + 32 * k | step - 1 << 416 + 3 * k | box - 1 << 440 + 8 * k
    return bits.to_bytes(128, "little")


def _size(tm: TensorMap) -> int:
    return SIZES[FORMATS.index(tm.dtype.replace("tf", "f"))]


def _whole(tm: TensorMap) -> int:
    """Bytes of the whole box as the driver counts them."""
    return _size(tm) * math.prod(box // step for box, step in zip(tm.box, tm.element_strides, strict=True))
