"""The function that one im2col load denotes, as layout values: where its column is placed, and what it reads.

Main statements: the shared side maps (pixel, channel) to swizzle(pixel * pitch + channel * element bytes); it is total.
The global side maps (pixel, channel) to the byte read, defined exactly for elements inside the tensor. It has one piece
per set of modes along which the filter's corner has already wrapped: none, W, W and H, and so on.

References: as ``im2col.execute``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import shown
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.targets.nvidia.im2col.checks import require_accepted
from layoutalg.targets.nvidia.im2col.execute import require_use, row_bytes, row_pitch_bytes
from layoutalg.targets.nvidia.im2col.fields import Im2colMap
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.facts import SLICE_BYTES, element_bytes
from layoutalg.targets.nvidia.tensormap.fields import checked_ints, malformed

Meaning: TypeAlias = CuteLayout | ComposedLayout | PiecewiseLayout


def layout(tm: Im2colMap, *, side: str = "shared", coords: Sequence[int] = (), offsets: Sequence[int] = ()) -> Meaning:
    """Return the function that a load through an im2col map denotes, on one side of the copy, in bytes.

    Args:
        tm: The map; the measured driver must accept it.
        side: ``"shared"``: (pixel, channel) to the byte offset from a base aligned to the swizzle's period;
            ``"global"``: (pixel, channel) to the byte read, undefined out of bounds.
        coords: For the global side, the start of the filter's corner.
        offsets: For the global side, the offsets.

    Example:
        >>> tm = Im2colMap("f16", (8, 4, 3, 2), (16, 64, 192), (-1, -1), (0, 0), 8, 5)
        >>> print(layout(tm))
        (5,8):(16,2)
        >>> found = layout(tm, side="global", coords=(0, -1, 0, 0), offsets=(0, 0))
        >>> found(pixel=1, channel=2), found.domain.count() == 32
        ({'byte': 4}, True)

    Laws: agrees with ``pixel_addresses`` at every point.
    Source: measured on NVIDIA H100 80GB HBM3, driver 580.159.04.
    """
    if not isinstance(tm, Im2colMap) or not isinstance(side, str) or side not in ("shared", "global"):
        because = f"got a {type(tm).__name__} and side {shown(side)}"
        raise malformed("LA850", "layout needs an Im2colMap and side 'shared' or 'global'", because)
    require_accepted(tm, "layout")
    size = element_bytes(tm.dtype)
    channels = row_bytes(tm) // size
    if side == "shared":
        inner = CuteLayout((tm.pixels_per_column, channels), (row_pitch_bytes(tm), size))
        bits = len(SWIZZLE_TABLE[tm.swizzle].xor)  # 32B, 64B and 128B: 4 ^= 7, 5 ^= 8, 6 ^= 9
        return ComposedLayout(Swizzle(bits, 4, 3), 0, inner) if bits else inner
    starts, added = checked_ints("coords", coords, "LA850"), checked_ints("offsets", offsets, "LA850")
    require_use(tm, starts, added)
    return PiecewiseLayout(_global(tm, starts, added, channels, size), ("byte",))


def _global(tm: Im2colMap, coords: Sequence[int], offsets: Sequence[int], channels: int, size: int) -> str:
    """Return the pieces as text."""
    interleaved = tm.interleave != "NONE"
    strides = [SLICE_BYTES[tm.interleave] if interleaved else size, *tm.strides_bytes]
    fixed = tm.rank - 2 if interleaved else 0
    modes = [mode for mode in range(tm.rank - 1) if mode != fixed]
    frame = [f"0 <= pixel < {tm.pixels_per_column}", f"0 <= channel < {channels}"]
    base = [str(tm.base_address), f"{size}*channel"]
    if interleaved:
        frame.append(f"0 <= {coords[fixed]} < {tm.dims[fixed]}")
        base.append(str(coords[fixed] * strides[fixed]))
    else:
        frame.append(f"0 <= {coords[0]} + channel < {tm.dims[0]}")
        base.append(str(coords[0] * size))
    pieces = []
    turn = "pixel"
    returned: list[str] = []
    places: list[str] = []
    for k, mode in enumerate([*modes, tm.rank - 1]):
        last_mode = k == len(modes)
        step, start = tm.element_strides[mode], coords[mode]
        here = f"({start} + {step}*{turn})"
        now = [*places, here, *(str(coords[later]) for later in [*modes, tm.rank - 1][k + 1 :])]
        guards = [*frame, *returned]
        if not last_mode:
            first, last = tm.box[k]
            before, whole = (last - start) // step + 1, (last - first) // step + 1
            guards.append(f"{turn} < {before}")
        terms = list(base)
        for j, (place, at) in enumerate(zip(now, [*modes, tm.rank - 1], strict=True)):
            read = f"({place} + {offsets[j]})" if j < len(offsets) else place
            guards.append(f"0 <= {read} < {tm.dims[at]}")
            terms.append(f"{strides[at]}*{read}")
        pieces.append(f"[pixel, channel] -> [{' + '.join(terms)}] : {' and '.join(guards)}")
        if not last_mode:
            returned.append(f"{turn} >= {before}")
            places.append(f"({first} + {step}*(({turn} - {before}) mod {whole}))")
            turn = f"(1 + floor(({turn} - {before})/{whole}))"
    return "{ " + "; ".join(pieces) + " }"
