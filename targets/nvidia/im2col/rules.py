"""The rule table of im2col, im2col-wide and gathered rows, as data: what documents say and what one driver did.

Implementation notes: rules shared with tiled maps (bases, extents, strides, steps, fills, types) are in
``tensormap.RULES``. "Tested" means random parameter sets around the legal boundaries and random loads; every verdict
and every byte agrees with this library.

References: CUDA driver API, ``cuTensorMapEncodeIm2col`` and ``cuTensorMapEncodeIm2colWide`` (``cuda.h`` 13.0); PTX ISA
9.1; measurements on NVIDIA H100 80GB HBM3, driver 580.159.04.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.targets.model import Evidence, Finding, Rule, Scope, Source

_API = Source("CUDA driver API, cuTensorMapEncodeIm2col", "13.0", "")
_WIDE = Source("CUDA driver API, cuTensorMapEncodeIm2colWide", "13.0", "")


def _api(section: str) -> Source:
    return Source(_API.document, _API.version, section)


def _wide(section: str) -> Source:
    return Source(_WIDE.document, _WIDE.version, section)


def _ptx(section: str) -> Source:
    return Source("PTX ISA", "9.1", section)


def _rule(
    rule: str,
    statement: str,
    limit: str,
    sources: tuple[Source, ...],
    finding: Finding,
    seen: str,
    scope: Scope = "value",
) -> Rule:
    evidence = (Evidence("NVIDIA H100 80GB HBM3", "580.159.04", finding, seen),)
    return Rule(rule, statement, limit, sources, bool(sources), evidence, scope)


_TABLE = (
    _rule("IM2COL_RANK", "An im2col map has rank 3, 4 or 5.", "3..5", (_api("tensorRank"),), "enforced", "as stated"),
    _rule("CORNER_RANGE", "Each corner fits its signed field: 16 bits at rank 3, 8 at rank 4, 5 at rank 5.",
          "-32768..32767; -128..127; -16..15", (_api("pixelBoxLowerCorner, pixelBoxUpperCorner"), _ptx("5.5.4.1")),
          "enforced", "as stated"),
    _rule("CORNER_EMPTY", "The box of the filter's corner is not empty along any spatial mode.",
          "lower <= extent - 1 + upper", (_api("pixelBoxUpperCorner"),), "enforced differently",
          "extent + upper is computed in signed 32 bits, so that extents from 2^31 on can make the box empty; the "
          "spatial modes of an interleaved map are its first ones"),
    _rule("CHANNELS_RANGE", "A pixel has 1 to 256 channels.", "1..256", (_api("channelsPerPixel"),), "enforced",
          "as stated"),
    _rule("CHANNELS_16B", "The channels of a pixel are a multiple of 16 bytes.",
          "channels * element bytes % 16 == 0", (_ptx("5.5.3.1"),), "enforced", "as stated, interleaved or not"),
    _rule("PIXELS_RANGE", "A column has 1 to 1024 pixels.", "1..1024", (_api("pixelsPerColumn"),), "enforced",
          "as stated"),
    _rule("PACKED_CHANNELS", "The two 16-byte packed types are read by 128 channels.", "channels == 128",
          (_api("channelsPerPixel"),), "not tested", "packed types are refused on cc 9.0"),
    _rule("IM2COL_START", "A load starts with the filter's corner inside its box.",
          "lower <= start <= extent - 1 + upper", (_ptx("5.5.4.1"),), "enforced",
          "135 of 135 loads that started outside, on either side, raised an illegal instruction", "use"),
    _rule("IM2COL_STORE_BOX", "The filter's corner of a store moves in a box inside the tensor.",
          "lower >= 0, upper <= 0", (), "enforced",
          "872 of 872 stores inside ran, 20 of 20 others raised an illegal instruction; no document says so", "use"),
    _rule("IM2COL_OFFSET", "The offsets of a load fit 16 bits at rank 3, 8 at rank 4 and 5 at rank 5.",
          "0..65535; 0..255; 0..31", (_ptx("5.5.4.1"),), "not enforced",
          "larger ones ran; all of those loads were out of bounds, so what they add is not known", "use"),
    _rule("CHANNELS_CONTIGUOUS", "The channels of a pixel are neighbours in memory.", "stride 1", (_ptx("5.5.4"),),
          "not tested", "no field of a map holds another stride", "use"),
    _rule("WIDE_ARCH", "Im2col-wide needs compute capability 10.0 or later.", "cc >= 10.0", (_wide("introduction"),),
          "not enforced", "the driver encodes such maps on cc 9.0; no instruction of that chip uses them", "use"),
    _rule("WIDE_SWIZZLE", "Im2col-wide takes swizzle 64B, 128B or 128B_ATOM_32B, and 96B on sm_103a in mode W.",
          "per target", (_wide("swizzle"), _ptx("5.5.5")), "not tested", ""),
    _rule("WIDE_INTERLEAVE", "Im2col-wide allows no interleave.", "interleave == NONE", (_ptx("5.5.5"),), "not tested",
          ""),
    _rule("WIDE_HALO", "The halo of an im2col-wide load is below 512 in mode W and below 32 in mode W128.",
          "0..511; 0..31", (_ptx("9.7.9.27.1.2"),), "not tested", "", "use"),
    _rule("WIDE_OFFSET", "The offset of an im2col-wide load is below 32.", "0..31", (_ptx("9.7.9.27.1.2"),),
          "not tested", "", "use"),
    _rule("GATHER_ARCH", "gather4 and scatter4 are instructions of compute capability 10.0 and later, by form.",
          "per form", (_ptx("9.7.9.27.1.2"),), "enforced", "ptxas 13.0 refuses them below", "use"),
    _rule("GATHER_RANK", "Rows are gathered from a tensor of rank 2.", "rank == 2", (_ptx("5.5.3.4"),), "not tested",
          "", "use"),
    _rule("GATHER_BOX", "The box of gathered rows is one row.", "box[1] == 1", (_ptx("5.5.3.4.1"),), "not tested", "",
          "use"),
    _rule("GATHER_INTERLEAVE", "Gathered rows are not interleaved.", "interleave == NONE", (_ptx("5.5.3.4"),),
          "not tested", "", "use"),
    _rule("INTERLEAVE_SLICES",
          "The element of an interleaved map is a slice of 16 or 32 bytes; along the next-to-last mode a box has one "
          "slice, and a load counts whole slices.",
          "slices * (16 or 32) bytes", (_ptx("5.5.6"),), "enforced",
          "read off the loads; the document gives the layout, not the counts", "use"),
)  # fmt: skip

RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _TABLE})
"""The rules by id."""
