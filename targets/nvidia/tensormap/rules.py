"""The rule table of tiled tensor maps, as data: what documents say and what one real driver did.

Implementation notes: documented and enforced differ in several places; both are recorded. The predicates are in
``limits``. "Tested" below means 100,000 parameter sets drawn around the legal boundaries; every verdict agrees with the
enforced reading.

References: CUDA driver API, ``cuTensorMapEncodeTiled`` (``cuda.h`` 12.0 to 13.5); PTX ISA 9.1; measurements on NVIDIA
H200, driver 580.159.04 (CUDA 13.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from layoutalg.targets.model import Evidence, Finding, Rule, Scope, Source


def _api(section: str, version: str = "12.0 to 13.0") -> Source:
    return Source("CUDA driver API, cuTensorMapEncodeTiled", version, section)


ptx = partial(Source, "PTX ISA", "9.1")


_SPANS: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "STRIDE_NEST": ("12.1", None), "INTERLEAVE32": ("12.3", None),
        "ARCH_ATOM": ("12.8", None), "PACKED_DIM0": ("12.8", None), "PACKED_BOX0": ("12.8", None),
        "PACKED_SWIZZLE": ("12.8", None), "DIM_RANGE": ("12.0", "13.5"), "DIM_EXECUTE": ("13.5", None),
    }
)  # fmt: skip
"""First toolkit that states a rule and first that no longer does; unlisted documented rules are in all of them
(BOX_RANGE is misprinted in 12.0 and corrected in 12.1)."""


def measured_rule(
    chip: str,
    spans: Mapping[str, tuple[str, str | None]],
    rule: str,
    statement: str,
    limit: str,
    sources: tuple[Source, ...],
    finding: Finding,
    seen: str,
    scope: Scope = "value",
) -> Rule:
    """Return a rule with what one chip did; ``spans`` says which toolkits state it, all that were read if it is not in.

    Without ``spans`` the toolkits are not known.
    """
    evidence = (Evidence(chip, "580.159.04", finding, seen),)
    since, until = spans.get(rule, ("12.0", None)) if sources and spans else (None, None)
    return Rule(rule, statement, limit, sources, bool(sources), evidence, scope, since, until)


_rule = partial(measured_rule, "NVIDIA H200", _SPANS)
_TABLE = (
    _rule("NO_TMA", "Tensor maps need compute capability 9.0 or later of NVIDIA.",
          "cc >= 9.0", (_api("description"),),
          "not tested", "every device measured has tensor maps"),
    _rule("RANK", "The rank is 1 to 5, and 3 to 5 when interleave is on.",
          "1..5; 3..5", (_api("tensorRank"),), "enforced",
          "ranks 0 to 5 were tested: 0 is refused, and 1 and 2 with interleave"),
    _rule("ARCH_ATOM",
          "ATOM swizzles and the packed 4- and 6-bit types need compute capability 10.0 or later; loads to "
          "shared::cluster have neither on sm_120a.",
          "cc >= 10.0", (_api("tensorDataType, swizzle", "12.8"), Source("PTX ISA", "9.1", "5.5.7 and 9.7.9.27.1.1")),
          "enforced", "every such map was refused on cc 9.0"),
    _rule("BASE_ALIGN",
          "The base address is a multiple of 16 bytes; of 32 for interleave 32B and the two 16-byte packed types.",
          "16 B; 32 B", (_api("globalAddress"),), "enforced",
          "as stated; 0 and small addresses pass, the pointer is never dereferenced"),
    _rule("BASE_RANGE", "The base address is one a device can have: 0 to 2^57 - 1.",
          "0 <= base < 2^57", (), "not tested",
          "addresses up to 2^47 were tested; larger ones are refused here so that no unmeasured encoding is produced"),
    _rule("DIM_RANGE", "Each extent of the tensor is 1 to 2^32 elements.",
          "1..2^32; the 13.5 text says 2^31, and coordinates are signed 32-bit",
          (_api("globalDim", "12.0 to 13.4"), _api("globalDim (2^31)", "13.5")), "enforced",
          "2^32 passes, 2^32 + 1 is refused"),
    _rule("DIM_EXECUTE", "Extents above 2^31 encode but cannot be used.",
          "1..2^31", (_api("globalDim (2^31)", "13.5"),), "enforced",
          "8 of 8 loads through a longer extent raised an illegal instruction, 15 of 15 at 2^31 or just below ran",
          "use"),
    _rule("PACKED_DIM0",
          "The innermost extent of a packed type counts single values: a multiple of 128, or of 2 for u4_align8.",
          "128; 2", (_api("globalDim", "12.8"),), "not tested", "packed types are refused on cc 9.0"),
    _rule("STRIDE_ALIGN",
          "Each stride is a multiple of 16 bytes; of 32 for interleave 32B and the two 16-byte packed types.",
          "16 B; 32 B", (_api("globalStrides"),), "enforced", "as stated"),
    _rule("STRIDE_RANGE", "Each stride is below 2^40 bytes and not negative.",
          "0 <= s < 2^40", (_api("globalStrides"),), "enforced", "2^40 - 16 passes, 2^40 is refused"),
    _rule("STRIDE_NEST",
          "Strides follow the printed recipe: the first covers a row, each next is the one before times at least its "
          "extent.",
          "s[0] >= dim[0] * element bytes; s[i] = s[i-1] * (dim[i] + padding), padding >= 0",
          (_api("globalStrides, example code", "12.1 to 13.0"),), "not enforced",
          "non-monotone and overlapping strides pass"),
    _rule("STRIDE_ZERO",
          "A stride of 0 (broadcast) is inside the documented range, though the printed recipe never produces it.",
          "0 allowed", (_api("globalStrides"),), "enforced",
          "stride 0 passes in every mode, and the loads read the same bytes again"),
    _rule("BOX_RANGE", "Each extent of the box is 1 to 256 elements.",
          "1..256; the 12.0 text misprints 8", (_api("boxDim", "12.1 to 13.0"),), "enforced",
          "as stated; a box larger than the tensor passes"),
    _rule("BOX_INNER_16B", "The innermost box row is a multiple of 16 bytes.",
          "box[0] * element bytes % 16 == 0; documented only for interleave NONE", (_api("boxDim"),),
          "enforced differently", "enforced in every interleave mode"),
    _rule("PACKED_BOX0", "The innermost box extent of the two 16-byte packed types is 128.",
          "box[0] == 128", (_api("boxDim", "12.8"), ptx("9.7.9.27.1.1")), "not tested",
          "packed types are refused on cc 9.0"),
    _rule("ELEM_STRIDE", "Each element stride is 1 to 8; the first is documented as ignored when interleave is NONE.",
          "1..8", (_api("elementStrides"),), "enforced differently",
          "entry 0 is range-checked as well, in every interleave mode, though loads ignore it"),
    _rule("SWIZZLE_INNER", "Without interleave, the innermost box row fits the swizzle span.",
          "box[0] * element bytes <= 32, 64, 128", (_api("interleave"),), "enforced", "as stated"),
    _rule("INTERLEAVE32", "Interleave 32B requires swizzle 32B.",
          "swizzle == 32B", (_api("swizzle"),), "not enforced", "any swizzle passes with interleave 32B"),
    _rule("PACKED_SWIZZLE",
          "u6_align16 takes swizzle NONE, 128B, 128B_ATOM_32B or 128B_ATOM_64B (stores only) and no interleave; "
          "u4_align16 takes NONE, 128B or 128B_ATOM_32B (loads only).",
          "per type", (_api("swizzle", "12.8 to 13.0"), ptx("9.7.9.27.1.1")), "not tested",
          "packed types are refused on cc 9.0"),
    _rule("OOB_NAN", "NaN fill needs a floating-point type; packed types never take it.",
          "float types", (_api("oobFill"),), "enforced", "as stated"),
    _rule("BOX_SMEM", "The whole box, counted as the product of floor(box / element stride), fits 228 KiB.",
          "<= 233,472 B", (), "enforced",
          "no document states it; the count is 0 where an element stride exceeds its box"),
    _rule("MAP_ALIGN", "The map object is aligned to 64 bytes; the C type needs 128 from 13.0.",
          "64 B; 128 B", (_api("tensorMap"),), "not tested", "", "use"),
    _rule("SMEM_ALIGN", "The tile's shared address is a multiple of 128 bytes; swizzles XOR absolute address bits.",
          "128 B; patterns repeat at 256, 512, 1024 B", (ptx("5.5.7"),), "enforced",
          "16, 32 and 64 bytes raise a misaligned address; at 128, 256 and 512 bytes absolute address bits decide",
          "use"),
    _rule("BOX_ADDR", "The innermost start coordinate is a multiple of 16 bytes.",
          "coords[0] * element bytes % 16 == 0", (ptx("5.5.3.1"),), "enforced",
          "otherwise the load or store raises an illegal instruction", "use"),
    _rule("COORD_RANGE", "Start coordinates are signed 32-bit integers.",
          "-2^31..2^31-1", (ptx("9.7.9.27.1.2"),), "not tested", "no element inside usable extents is beyond it",
          "use"),
    _rule("TX", "The barrier's pending count stays within 2^20 - 1 bytes; a tile always completes its full byte count.",
          "+-(2^20 - 1)", (ptx("9.7.13.15"),), "enforced",
          "full count, elements out of bounds included, in 1,000 of 1,000 phases; the range was not tested", "use"),
    _rule("STORE", "Stores start at coordinates >= 0.",
          "coords >= 0", (ptx("9.7.9.27.1.1"),), "enforced",
          "70 of 70 stores with a negative start, in any mode, raised an illegal instruction", "use"),
    _rule("STORE_CHUNK",
          "Stores write whole 16-byte chunks: where the innermost extent ends inside a chunk, bytes past it are "
          "written.",
          "dims[0] * element bytes % 16 == 0", (), "enforced",
          "73 of 73 such stores wrote the chunk's remaining bytes from shared memory; for an H100 see triton#11583",
          "use"),
    _rule("STORE_OVERLAP",
          "No two elements of a stored tile share a byte with different values: their order is not defined.",
          "distinct bytes", (), "not tested", "", "use"),
    _rule("SMEM_CAP", "A block owns at most 232,448 bytes of shared memory on cc 9.0.",
          "232,448 B",
          (Source("CUDA C++ Programming Guide", "13.0", "Technical Specifications per Compute Capability"),),
          "not tested", "", "use"),
    _rule("MEMORY_RANGE", "Every element inside the tensor's extents is in allocated global memory.",
          "0 <= address < size", (), "not tested", "", "use"),
    _rule("SMEM_RANGE", "The tile's whole footprint, including swizzle gaps, is in shared memory.",
          "offset + footprint <= size", (), "enforced",
          "a shared region too small for the pitched rows faults with an illegal address", "use"),
    _rule("INTERLEAVE_MODEL",
          "Stores of interleaved tiles write the slices inside the tensor, as loads read them.",
          "whole slices", (), "enforced",
          "240 of 240 stores on an H100; 40 of 40 with a negative start raised an illegal instruction", "use"),
    _rule("VALUE_MODEL", "Stores of NaN and infinities of tf32 and flush-to-zero types are not modelled.",
          "finite values", (), "not tested",
          "loads: tf32 rounds denormals and overflow like other values, every NaN becomes 0x7FFFE000, nothing is "
          "flushed; stores keep the bits of finite values", "use"),
)  # fmt: skip

RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _TABLE})
"""Every rule by id, in the order of the fields they constrain."""
