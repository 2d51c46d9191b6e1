"""The fields of im2col tensor maps: a tensor of images, the box that the filter's corner moves in, and one column.

Notation: every tuple is innermost first. The modes of a map of rank 3, 4, 5 are C, W, N; C, W, H, N; C, W, H, D, N;
corners and offsets have one entry for each of W, H, D. The elements of an interleaved map are slices of 16 or 32 bytes
of channels, and its modes are W, C/8, N; W, H, C/8, N; W, H, D, C/8, N.

References: CUDA driver API 13.0, ``cuTensorMapEncodeIm2col`` and ``cuTensorMapEncodeIm2colWide``; PTX ISA 9.1, sections
5.5.4 and 5.5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layoutalg.ground.picture import Shown
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.fields import CODES, malformed, normalise

CORNER_RANGES: Mapping[int, tuple[int, int]] = MappingProxyType({3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)})
"""Smallest and largest corner by rank: signed fields of 16, 8 and 5 bits."""
OFFSET_LIMITS: Mapping[int, int] = MappingProxyType({3: 65535, 4: 255, 5: 31})
"""Largest offset of an instruction by rank; the smallest is 0."""
WIDE_SWIZZLES: tuple[str, ...] = ("64B", "128B", "128B_ATOM_32B", "96B")
"""Swizzles of im2col-wide; ``"96B"`` exists only there, from compute capability 10.3."""
WIDE_MODES: tuple[str, ...] = ("W", "W128")
MAX_CHANNELS = 256
MAX_PIXELS = 1024
WIDE_HALO_LIMITS: Mapping[str, int] = MappingProxyType({"W": 511, "W128": 31})
"""Largest halo of an instruction by mode."""
WIDE_OFFSET_LIMIT = 31
_NUMBERS = ("base_address", "channels_per_pixel", "pixels_per_column")


def require_im2col(tm: object, call: str) -> None:
    """Raise LA850 unless the argument of ``call`` is an ``Im2colMap``."""
    if not isinstance(tm, Im2colMap):
        raise malformed("LA850", f"{call} needs an Im2colMap", f"got a {type(tm).__name__}")


@dataclass(frozen=True, slots=True)
class Im2colMap(Shown):
    """A tensor of images that the copy engine reads as columns: ``pixels_per_column`` pixels of some channels each.

    Mathematically: element (c, w, h, d, n) is at byte ``base_address + c * element bytes + w * strides_bytes[0] +
    h * strides_bytes[1] + ...``. The corner of a filter moves inside the box from ``lower_corner[j]`` to
    ``dims[1 + j] - 1 + upper_corner[j]``, W fastest, by the element strides, then on to the next image; each position
    contributes the pixel at the corner plus the instruction's offsets.

    Args:
        dtype: Element type, a name of ``tensormap.DTYPES``.
        dims: Extents C, W, (H, (D,)) N of the tensor, elements; of slices W, (H, (D,)) C/8, N when interleaved.
        strides_bytes: Distance in bytes between neighbours along each mode but the first.
        lower_corner: First position of the filter's corner along W, (H, (D)).
        upper_corner: Its last position, relative to the last element of the tensor.
        channels_per_pixel: Elements read along C; an interleaved map reads one slice regardless.
        pixels_per_column: Pixels read by one instruction.
        element_strides: Step along each mode, elements; empty means all 1.
        interleave: ``"NONE"``, ``"16B"`` or ``"32B"``.
        swizzle: Shared-memory pattern, a name of ``tensormap.SWIZZLES``.
        l2_promotion: L2 fetch size; it never changes the data.
        oob_fill: What elements outside the tensor are loaded as, ``"ZERO"`` or ``"NAN"``.
        base_address: Byte address of element 0.

    Example:
        >>> Im2colMap("f16", (64, 9, 14, 4), (128, 1152, 16128), (-1, -1), (-1, -1), 8, 64).rank
        4
    """

    dtype: str
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    lower_corner: tuple[int, ...]
    upper_corner: tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...] = ()
    interleave: str = "NONE"
    swizzle: str = "NONE"
    l2_promotion: str = "NONE"
    oob_fill: str = "ZERO"
    base_address: int = 0

    def __post_init__(self) -> None:
        modes = {"strides_bytes": 1, "element_strides": 0, "lower_corner": 2, "upper_corner": 2}
        normalise(self, CODES, _NUMBERS, modes, ("LA850", "LA851"))

    @property
    def rank(self) -> int:
        """Number of modes."""
        return len(self.dims)

    def spatial(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """Select the entries for W, (H, (D)) from one value per mode.

        Example:
            >>> Im2colMap("f16", (8, 9, 3), (16, 144), (-1,), (-2,), 8, 4).spatial((0, 5, 1))
            (5,)

        Source: measured on an H100: the first modes of an interleaved map are the spatial ones.
        """
        return values[1:-1] if self.interleave == "NONE" else values[:-2]

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """First and last position of the filter's corner along W, (H, (D)).

        Example:
            >>> Im2colMap("f16", (8, 9, 3), (16, 144), (-1,), (-2,), 8, 4).box
            ((-1, 6),)
        """
        return tuple(
            (low, extent - 1 + high)
            for low, high, extent in zip(self.lower_corner, self.upper_corner, self.spatial(self.dims), strict=True)
        )


@dataclass(frozen=True, slots=True)
class Im2colWideMap:
    """An im2col map whose columns run along W alone, with room for a halo; compute capability 10.0 and later.

    Mathematically: as ``Im2colMap`` with a box of extent 1 along H and D, at the instruction's own H and D coordinate.

    Args:
        lower_corner: First position along W.
        upper_corner: Last position along W, relative to the last element of the tensor.
        pixels_per_column: Pixels read along W in mode W; mode W128 reads 128.
        mode: ``"W"`` or ``"W128"``.
        interleave: ``"NONE"``; the others are representable so that the rules can name them.
        swizzle: A name of ``tensormap.SWIZZLES`` or ``"96B"``.

    The other fields are those of ``Im2colMap``.

    Example:
        >>> Im2colWideMap("f16", (64, 9, 14, 4), (128, 1152, 16128), -1, -1, 32, 64, swizzle="64B").mode
        'W'
    """

    dtype: str
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    lower_corner: int
    upper_corner: int
    channels_per_pixel: int
    pixels_per_column: int
    mode: str = "W"
    element_strides: tuple[int, ...] = ()
    interleave: str = "NONE"
    swizzle: str = "128B"
    l2_promotion: str = "NONE"
    oob_fill: str = "ZERO"
    base_address: int = 0

    def __post_init__(self) -> None:
        swizzles = dict.fromkeys((*SWIZZLE_TABLE, *WIDE_SWIZZLES))
        names = {**CODES, "swizzle": swizzles, "mode": dict.fromkeys(WIDE_MODES)}
        numbers = (*_NUMBERS, "lower_corner", "upper_corner")
        normalise(self, names, numbers, {"strides_bytes": 1, "element_strides": 0}, ("LA850", "LA851"))

    @property
    def rank(self) -> int:
        """Number of modes."""
        return len(self.dims)
