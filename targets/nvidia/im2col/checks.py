"""Which rules an im2col map, or one load through it, breaks.

Main statements: on the measured target, ``violations(tm) == ()`` exactly when the driver accepts ``tm``.

Implementation notes: fields shared with tiled maps (base, extents, strides, steps, fill, the innermost run) are checked
on a tiled map with the same fields and one pixel in its box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from layoutalg.ground.errors import shown
from layoutalg.targets.model import Rule, Source, Violation
from layoutalg.targets.nvidia.im2col.fields import (
    CORNER_RANGES,
    MAX_PIXELS,
    OFFSET_LIMITS,
    WIDE_HALO_LIMITS,
    WIDE_OFFSET_LIMIT,
    WIDE_SWIZZLES,
    Im2colMap,
    Im2colWideMap,
    require_im2col,
)
from layoutalg.targets.nvidia.tensormap import checks as tiled
from layoutalg.targets.nvidia.tensormap.checks import no_tensor_maps, refused_map, require_measured
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, TensorMap, checked_ints, malformed
from layoutalg.targets.nvidia.tensormap.limits import MAX_BOX_BYTES
from layoutalg.targets.nvidia.tensormap.rules import measured_rule, ptx
from layoutalg.targets.registry import lookup

AnyMap: TypeAlias = Im2colMap | Im2colWideMap
_RENAMED = {"BOX_RANGE": "CHANNELS_RANGE", "BOX_INNER_16B": "CHANNELS_16B", "PACKED_BOX0": "PACKED_CHANNELS"}
_SPAN_96B = 96


def violations(tm: AnyMap, target: str = "sm_90a", evidence: str = "enforced") -> tuple[Violation, ...]:
    """Return every rule the map breaks; the empty tuple means accepted.

    Args:
        tm: The map. For im2col-wide maps only documented rules are known.
        target: Architecture.
        evidence: ``"enforced"``: what a measured driver refuses; ``"documented"``: what the documents forbid.

    Example:
        >>> tm = Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -129), 8, 64)
        >>> [str(entry) for entry in violations(tm)][:1]
        ['CORNER_RANGE: upper_corner[1] = -129 is outside -128..127 at rank 4']

    Laws: agrees with the recorded verdicts of a driver.
    Source: CUDA driver API 13.0, ``cuTensorMapEncodeIm2col``; measured on NVIDIA H100 and H200.
    """
    if not isinstance(tm, (Im2colMap, Im2colWideMap)):
        raise malformed("LA850", "violations needs an Im2colMap or Im2colWideMap", f"got a {type(tm).__name__}")
    if not isinstance(evidence, str) or evidence not in ("enforced", "documented"):
        raise malformed("LA305", f"evidence {shown(evidence)} is not known", "evidence is 'enforced' or 'documented'")
    missing = no_tensor_maps(target)
    if missing:
        return missing
    if evidence == "enforced":
        require_measured(target)
    found = list(_shared(tm, target, evidence))
    if isinstance(tm, Im2colWideMap):
        _check_wide(tm, target, found)
    else:
        _check_corners(tm, evidence, found)
        _check_column(tm, evidence, found)
    _check_pixels(tm, found)
    return tuple(found)


def require_accepted(tm: Im2colMap, call: str) -> None:
    """Raise ``RefusedMapError`` (LA852) with every violation if the measured driver refuses the map."""
    found = violations(tm)
    if found:
        raise refused_map(tm, call, found, "LA852", "the driver refuses this im2col map")


def use_violations(tm: Im2colMap, coords: Sequence[int], offsets: Sequence[int]) -> tuple[Violation, ...]:
    """Return every documented rule that one load through an im2col map breaks.

    Args:
        tm: The map.
        coords: Start C, W, (H, (D,)) N: the filter's corner, without the offsets.
        offsets: The instruction's offsets along W, (H, (D)).

    Example:
        >>> tm = Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64)
        >>> [entry.rule for entry in use_violations(tm, (0, -2, 0, 0), (0, 256))]
        ['IM2COL_START', 'IM2COL_OFFSET']
    """
    require_im2col(tm, "use_violations")
    coords, offsets = checked_ints("coords", coords, "LA850"), checked_ints("offsets", offsets, "LA850")
    spatial = max(tm.rank - 2, 0)
    if len(coords) != tm.rank or len(offsets) != spatial:
        because = f"rank {tm.rank} needs {tm.rank} coordinates and {spatial} offsets, not {len(coords)}, {len(offsets)}"
        raise malformed("LA850", "coords or offsets has the wrong length", because)
    found: list[Violation] = []
    size = DTYPES[tm.dtype].bits
    if tm.interleave == "NONE" and coords and coords[0] * size % 128:
        message = f"coords[0] = {coords[0]} elements of {size} bits are not a multiple of 16 bytes"
        found.append(Violation("BOX_ADDR", message, "coords", 0))
    shift = 1 if tm.interleave == "NONE" else 0
    for j, (start, (first, last)) in enumerate(zip(tm.spatial(tuple(coords)), tm.box, strict=True), shift):
        if not first <= start <= last:
            message = f"coords[{j}] = {start} is outside the filter corner's box {first}..{last}"
            found.append(Violation("IM2COL_START", message, "coords", j))
    limit = OFFSET_LIMITS.get(tm.rank, 0)
    for j, offset in enumerate(offsets):
        if not 0 <= offset <= limit:
            message = f"offsets[{j}] = {offset} is outside 0..{limit} at rank {tm.rank}"
            found.append(Violation("IM2COL_OFFSET", message, "offsets", j))
    return tuple(found)


def store_violations(tm: Im2colMap, coords: Sequence[int]) -> tuple[Violation, ...]:
    """Return the store-only rules that a store through an im2col map breaks.

    Args:
        tm: The map.
        coords: Start coordinates; empty to check only the map.

    Example:
        >>> tm = Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, 0), (0, -1), 8, 64)
        >>> [entry.rule for entry in store_violations(tm, (0, -1, 0, 0))]
        ['IM2COL_STORE_BOX', 'STORE']
    """
    require_im2col(tm, "store_violations")
    found = []
    for name, corner, sign in (("lower_corner", tm.lower_corner, -1), ("upper_corner", tm.upper_corner, 1)):
        for j, value in enumerate(corner):
            if value * sign > 0:
                message = f"{name}[{j}] = {value} puts the box outside the tensor; a store's box must be inside"
                found.append(Violation("IM2COL_STORE_BOX", message, name, j))
    for mode, start in enumerate(checked_ints("coords", coords, "LA850")):
        if start < 0:
            message = f"coords[{mode}] = {start} is negative; the device raises an illegal instruction"
            found.append(Violation("STORE", message, "coords", mode))
    return tuple(found)


def wide_use_violations(tm: Im2colWideMap, halo: int, offset: int) -> tuple[Violation, ...]:
    """Return every documented rule that the halo and the offset of an im2col-wide load break.

    Example:
        >>> tm = Im2colWideMap("f16", (64, 9, 14, 4), (128, 1152, 16128), -1, -1, 32, 64, "W128", swizzle="64B")
        >>> [entry.rule for entry in wide_use_violations(tm, 32, 0)]
        ['WIDE_HALO']
    """
    if not isinstance(tm, Im2colWideMap):
        raise malformed("LA850", "wide_use_violations needs an Im2colWideMap", f"got a {type(tm).__name__}")
    (halo,), (offset,) = checked_ints("halo", [halo], "LA850"), checked_ints("offset", [offset], "LA850")
    if tm.mode not in WIDE_HALO_LIMITS:
        raise malformed("LA850", "this mode of a wide map is not known", f"mode = {tm.mode}")
    found = []
    limit = WIDE_HALO_LIMITS[tm.mode]
    if not 0 <= halo <= limit:
        found.append(Violation("WIDE_HALO", f"halo = {halo} is outside 0..{limit} in mode {tm.mode}", "halo"))
    if not 0 <= offset <= WIDE_OFFSET_LIMIT:
        found.append(Violation("WIDE_OFFSET", f"offset = {offset} is outside 0..{WIDE_OFFSET_LIMIT}", "offset"))
    return tuple(found)


def _shared(tm: AnyMap, target: str, evidence: str) -> tuple[Violation, ...]:
    """Return the rules the map breaks as a tiled map, renamed to its own fields."""
    swizzle = "128B" if tm.swizzle == "96B" else tm.swizzle
    box = (tm.channels_per_pixel, *(1,) * (tm.rank - 1))[: tm.rank]
    twin = TensorMap(
        tm.dtype, tm.dims, tm.strides_bytes, box, tm.element_strides, tm.interleave, swizzle, tm.l2_promotion,
        tm.oob_fill, tm.base_address,
    )  # fmt: skip
    found = tiled.violations(twin, target, evidence)
    rank = () if 3 <= tm.rank <= 5 else (Violation("IM2COL_RANK", f"dims has {tm.rank} entries, not 3..5", "dims"),)
    kept = [entry for entry in found if entry.rule not in ("RANK", "BOX_SMEM")]
    return rank + tuple(_renamed(entry) if entry.field == "box" else entry for entry in kept)


def _renamed(entry: Violation) -> Violation:
    message = entry.message.replace("box[0]", "channels_per_pixel")
    return Violation(_RENAMED.get(entry.rule, entry.rule), message, "channels_per_pixel")


def _check_corners(tm: Im2colMap, evidence: str, found: list[Violation]) -> None:
    limits = CORNER_RANGES.get(tm.rank)
    if limits is None:
        return
    for name, corner in (("lower_corner", tm.lower_corner), ("upper_corner", tm.upper_corner)):
        for j, value in enumerate(corner):
            if not limits[0] <= value <= limits[1]:
                message = f"{name}[{j}] = {value} is outside {limits[0]}..{limits[1]} at rank {tm.rank}"
                found.append(Violation("CORNER_RANGE", message, name, j))
    for j, (first, last) in enumerate(tm.box):
        end = _wrapped(last + 1) - 1 if evidence == "enforced" else last
        if end < first:
            message = f"the box of the filter's corner is empty along spatial mode {j}: {first}..{end}"
            found.append(Violation("CORNER_EMPTY", message, "upper_corner", j))


def _wrapped(value: int) -> int:
    """Wrap an integer to 32 signed bits, as the measured driver does for the end of a box."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _check_column(tm: Im2colMap, evidence: str, found: list[Violation]) -> None:
    bits = DTYPES[tm.dtype].bits
    total = tm.channels_per_pixel * tm.pixels_per_column * bits // 8
    if evidence == "enforced" and total > MAX_BOX_BYTES:
        message = f"the column takes {total} bytes, more than {MAX_BOX_BYTES}"
        found.append(Violation("BOX_SMEM", message, "pixels_per_column"))


def _check_pixels(tm: AnyMap, found: list[Violation]) -> None:
    if isinstance(tm, Im2colWideMap) and tm.mode == "W128":
        return
    if not 1 <= tm.pixels_per_column <= MAX_PIXELS:
        message = f"pixels_per_column = {tm.pixels_per_column} is outside 1..{MAX_PIXELS}"
        found.append(Violation("PIXELS_RANGE", message, "pixels_per_column"))


def _check_wide(tm: Im2colWideMap, target: str, found: list[Violation]) -> None:
    known = lookup(target)
    capability = known.compute_capability or (0, 0)
    if capability < (10, 0):
        message = f"im2col-wide needs compute capability 10.0 or later, not {target}"
        found.append(Violation("WIDE_ARCH", message, "mode"))
    if tm.swizzle not in WIDE_SWIZZLES:
        message = f"swizzle {tm.swizzle} does not go with im2col-wide, allowed " + ", ".join(WIDE_SWIZZLES)
        found.append(Violation("WIDE_SWIZZLE", message, "swizzle"))
    if tm.swizzle == "96B":
        if capability != (10, 3) or tm.mode != "W":
            message = "swizzle 96B exists only on sm_103a in mode W"
            found.append(Violation("WIDE_SWIZZLE", message, "swizzle"))
        if tm.channels_per_pixel * DTYPES[tm.dtype].bits > _SPAN_96B * 8:
            message = f"channels_per_pixel = {tm.channels_per_pixel} take more than the 96 bytes of swizzle 96B"
            found.append(Violation("SWIZZLE_INNER", message, "channels_per_pixel"))
    if tm.interleave != "NONE":
        message = f"interleave {tm.interleave} does not go with im2col-wide"
        found.append(Violation("WIDE_INTERLEAVE", message, "interleave"))
    low, high = CORNER_RANGES[3]
    for name, value in (("lower_corner", tm.lower_corner), ("upper_corner", tm.upper_corner)):
        if not low <= value <= high:
            found.append(Violation("CORNER_RANGE", f"{name} = {value} is outside {low}..{high}", name))
    if tm.rank > 1 and tm.dims[1] - 1 + tm.upper_corner < tm.lower_corner:
        message = f"the box along W is empty: {tm.lower_corner}..{tm.dims[1] - 1 + tm.upper_corner}"
        found.append(Violation("CORNER_EMPTY", message, "upper_corner"))


_api = partial(Source, "CUDA driver API, cuTensorMapEncodeIm2col", "13.0")
_wide = partial(Source, "CUDA driver API, cuTensorMapEncodeIm2colWide", "13.0")
_rule = partial(measured_rule, "NVIDIA H100 80GB HBM3", {})
_TABLE = (
    _rule("IM2COL_RANK", "An im2col map has rank 3, 4 or 5.", "3..5", (_api("tensorRank"),), "enforced", "as stated"),
    _rule("CORNER_RANGE", "Each corner fits its signed field: 16 bits at rank 3, 8 at rank 4, 5 at rank 5.",
          "-32768..32767; -128..127; -16..15", (_api("pixelBoxLowerCorner, pixelBoxUpperCorner"), ptx("5.5.4.1")),
          "enforced", "as stated"),
    _rule("CORNER_EMPTY", "The box of the filter's corner is not empty along any spatial mode.",
          "lower <= extent - 1 + upper", (_api("pixelBoxUpperCorner"),), "enforced differently",
          "extent + upper is computed in signed 32 bits, so that extents from 2^31 on can make the box empty; the "
          "spatial modes of an interleaved map are its first ones"),
    _rule("CHANNELS_RANGE", "A pixel has 1 to 256 channels.", "1..256", (_api("channelsPerPixel"),), "enforced",
          "as stated"),
    _rule("CHANNELS_16B", "The channels of a pixel are a multiple of 16 bytes.",
          "channels * element bytes % 16 == 0", (ptx("5.5.3.1"),), "enforced", "as stated, interleaved or not"),
    _rule("PIXELS_RANGE", "A column has 1 to 1024 pixels.", "1..1024", (_api("pixelsPerColumn"),), "enforced",
          "as stated"),
    _rule("PACKED_CHANNELS", "The two 16-byte packed types are read by 128 channels.", "channels == 128",
          (_api("channelsPerPixel"),), "not tested", "packed types are refused on cc 9.0"),
    _rule("IM2COL_START", "A load starts with the filter's corner inside its box.",
          "lower <= start <= extent - 1 + upper", (ptx("5.5.4.1"),), "enforced",
          "135 of 135 loads that started outside, on either side, raised an illegal instruction", "use"),
    _rule("IM2COL_STORE_BOX", "The filter's corner of a store moves in a box inside the tensor.",
          "lower >= 0, upper <= 0", (), "enforced",
          "872 of 872 stores inside ran, 20 of 20 others raised an illegal instruction; no document says so", "use"),
    _rule("IM2COL_OFFSET", "The offsets of a load fit 16 bits at rank 3, 8 at rank 4 and 5 at rank 5.",
          "0..65535; 0..255; 0..31", (ptx("5.5.4.1"),), "not enforced",
          "larger ones ran; all of those loads were out of bounds, so what they add is not known", "use"),
    _rule("CHANNELS_CONTIGUOUS", "The channels of a pixel are neighbours in memory.", "stride 1", (ptx("5.5.4"),),
          "not tested", "no field of a map holds another stride", "use"),
    _rule("WIDE_ARCH", "Im2col-wide needs compute capability 10.0 or later.", "cc >= 10.0", (_wide("introduction"),),
          "not enforced", "the driver encodes such maps on cc 9.0; no instruction of that chip uses them", "use"),
    _rule("WIDE_SWIZZLE", "Im2col-wide takes swizzle 64B, 128B or 128B_ATOM_32B, and 96B on sm_103a in mode W.",
          "per target", (_wide("swizzle"), ptx("5.5.5")), "not tested", ""),
    _rule("WIDE_INTERLEAVE", "Im2col-wide allows no interleave.", "interleave == NONE", (ptx("5.5.5"),), "not tested",
          ""),
    _rule("WIDE_HALO", "The halo of an im2col-wide load is below 512 in mode W and below 32 in mode W128.",
          "0..511; 0..31", (ptx("9.7.9.27.1.2"),), "not tested", "", "use"),
    _rule("WIDE_OFFSET", "The offset of an im2col-wide load is below 32.", "0..31", (ptx("9.7.9.27.1.2"),),
          "not tested", "", "use"),
    _rule("GATHER_ARCH", "gather4 and scatter4 are instructions of compute capability 10.0 and later, by form.",
          "per form", (ptx("9.7.9.27.1.2"),), "enforced", "ptxas 13.0 refuses them below", "use"),
    _rule("GATHER_RANK", "Rows are gathered from a tensor of rank 2.", "rank == 2", (ptx("5.5.3.4"),), "not tested",
          "", "use"),
    _rule("GATHER_BOX", "The box of gathered rows is one row.", "box[1] == 1", (ptx("5.5.3.4.1"),), "not tested", "",
          "use"),
    _rule("GATHER_INTERLEAVE", "Gathered rows are not interleaved.", "interleave == NONE", (ptx("5.5.3.4"),),
          "not tested", "", "use"),
    _rule("INTERLEAVE_SLICES",
          "The element of an interleaved map is a slice of 16 or 32 bytes; along the next-to-last mode a box has one "
          "slice, and a load counts whole slices.",
          "slices * (16 or 32) bytes", (ptx("5.5.6"),), "enforced",
          "read off the loads; the document gives the layout, not the counts", "use"),
)  # fmt: skip

RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _TABLE})
"""The rules by id."""
