"""Instructions that move registers to or from global memory: bytes per lane, and the sectors and lines that they touch.

Main statements: memory is transferred in sectors (32 bytes on NVIDIA) and looked up in lines (128 bytes). One
instruction of a warp or wave needs every sector that contains a byte of an active lane, once: lanes that touch the same
sector share it. Where the documents of a target name no part of a line that is transferred by itself, the sector is the
line. What the L2 fetches beyond that (``L2::64B`` and ``L2::128B`` promotion, the granularity that ``cudaLimit``
``MaxL2FetchGranularity`` sets) is not counted.

References: NVIDIA: the sectors are documented for compute capability 6.0 and later, the lines by the profiler's guide;
an H200 counts the sectors of 600 random accesses so (``tests/data/measured/transactions_dev.json.gz``).
AMD: what AMD's profiler counts for a lookup in the vector L1 cache and for a write request that leaves it; its prose
gives 64 bytes for the lines of "current" CDNA parts, as it did before CDNA3. None for RDNA, which is refused.
Names of AMD's instructions: the assembler of LLVM 22.1.8 (``tests/compile/test_global_accesses.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError, shown
from layoutalg.targets.bank_counting import words_by_bank
from layoutalg.targets.model import Source, fact
from layoutalg.targets.nvidia.accesses import access_form, vector_name
from layoutalg.targets.registry import lookup

IntArray = npt.NDArray[np.int64]
DWORD_BITS = 32
WAVE32 = 32
SECTOR_BYTES, LINE_BYTES = 32, 128
"""Bytes of a sector and of a line of NVIDIA's."""
VECTOR_BYTES = 16
"""Bytes that a lane moves by the widest load or store that all targets have."""
_GUIDE = Source("CUDA C++ Best Practices Guide", "13.3", "10.2.1 Coalesced Access to Global Memory")
_PROFILER = Source("Nsight Compute, Profiling Guide", "2026.1.0", "2.3.7 Quantities: sector, request, tag")
_WIDE_TEXT = Source(
    "PTX ISA", "9.1", "9.7.9.8, 9.7.9.9, 9.7.9.11: .v8.b32 and .v4.b64, since 8.8, .global only, sm_100 or higher"
)
_WIDE_BUILD = Source(
    "ptxas of NVRTC", "13.5", "what it accepts: sm_100, sm_100a, sm_103a, sm_120a, sm_121a, not sm_90a"
)


def _rocprof(version: str, arch: str) -> Source:
    return Source("ROCm Compute Profiler", version, f"analysis_configs/{arch}, table 1603: Cache BW, L1-L2 BW")


_AMD_ALIGN = Source(
    "AMD ISA guides, alignment of buffer, global and flat accesses",
    "CDNA4; RDNA3 of 2023-02-20; RDNA4",
    "CDNA4 9.1.7; RDNA 9.5 and SH_MEM_CONFIG.alignment_mode",
)
_UNITS: Mapping[str, tuple[int, int, int, tuple[Source, ...]]] = MappingProxyType(
    {
        "nvidia": (SECTOR_BYTES, SECTOR_BYTES, LINE_BYTES, (_GUIDE, _PROFILER)),
        "gfx90a": (64, 64, 64, (_rocprof("3.0.0 (95b600e)", "gfx90a"), _AMD_ALIGN)),
        "gfx942": (128, 64, 128, (_rocprof("3.0.0 (95b600e)", "gfx942"), _AMD_ALIGN)),
        "gfx950": (128, 64, 128, (_rocprof("rocm-systems 019e04c", "gfx950"), _AMD_ALIGN)),
    }
)
"""Bytes of a sector of loads, of stores, and of a line, with their documents, by vendor or target."""
_ABSENT = "documents of AMD that were read state no size of a cache line for RDNA, only for CDNA2 to CDNA4"
_ORDER, _SHAPE = r"(?:\.(?:weak|volatile|relaxed\.(?:cta|cluster|gpu|sys)))?\.global", r"(\.v[248])?(\.[busf][0-9]+)?"
_EVICT = r"L2::evict_(?:normal|first|last)"
"""A priority in the L2, of 256-bit vectors only."""
_NVIDIA = re.compile(
    rf"(ld){_ORDER}(?:\.(?:nc|ca|cg|cs|lu|cv|L1::[a-z_]+|{_EVICT}|L2::(?:64|128|256)B))*{_SHAPE}"
    rf"|(st){_ORDER}(?:\.(?:wb|cg|cs|wt|L1::[a-z_]+|{_EVICT}))*{_SHAPE}"
)
_COPY = re.compile(r"cp\.async(?:\.(ca|cg))?(?:\.shared(?:::cta)?\.global)?(?:\.(4|8|16))?")
_AMD = re.compile(
    r"(?:global|buffer)_(?:load_(?:dword(?:x[234])?|[su](?:byte|short))|store_(?:dword(?:x[234])?|byte|short))"
)
_AMD_NEW = re.compile(r"(?:global|buffer)_(?:load_(?:b(?:32|64|96|128)|[ui](?:8|16))|store_b(?:8|16|32|64|96|128))")
"""Names that RDNA3 introduced; its assembler still takes the older ones."""
_WIDE = re.compile(r"\.v8\.[busf]32|\.v4\.[busf]64")
"""Vectors of 256 bits, from compute capability 10.0."""
WIDE_BITS = 256
KNOWN = {
    "nvidia": "ld.global and st.global of b8 to b128, alone or as .v2 or .v4 of at most 128 bits (ld.global.v4 is "
    "ld.global.v4.b32), and cp.async.4, cp.async.8, cp.async.16",
    "amd": "global_load_dword, x2, x3, x4, global_load_ubyte, sbyte, ushort, sshort, global_store_dword, ..., byte, "
    "short, the same as buffer_..., and on RDNA global_load_b32, ..., b128, u8, i8, u16, i16, global_store_b8, ...",
}


@fact("LA982")
class GlobalAccess:
    """An instruction that moves registers to or from global memory.

    Args:
        name: Its short name.
        target: The target.
        store: Whether it writes global memory.
        bits: Bits that each lane moves.
        align_bits: What the address of every active lane must be a multiple of. On AMD, enough in every alignment
            mode but ``STRICT``: mode ``DWORD`` drops lower address bits, ``UNALIGNED``, which Linux sets for compute
            queues, needs no alignment.
        sector_bytes: Bytes of a sector.
        line_bytes: Bytes of a line.
        sources: The documents that state these sizes, and which targets have it where not all do.

    Example:
        >>> found = instruction("ld.global.nc.v4.f32", "sm_90a")
        >>> found.name, found.bytes, found.sector_bytes, found.line_bytes, found.lanes
        ('ld.global.v4.b32', 16, 32, 128, 32)
    """

    name: str
    target: str
    store: bool
    bits: int
    align_bits: int
    sector_bytes: int
    line_bytes: int
    sources: tuple[Source, ...]

    @property
    def bytes(self) -> int:
        """Bytes that each lane moves."""
        return self.bits // 8

    @property
    def lanes(self) -> int:
        """Lanes of a warp or wave."""
        return lookup(self.target).lanes


def instruction(name: object, target: str) -> GlobalAccess:
    """Return an instruction of a target by its name.

    Args:
        name: As the vendor's assembler spells it, with or without cache operators: ``"ld.global.v4.b32"``,
            ``"st.global.cs.v2.f32"``, ``"cp.async.cg.shared.global.16"``, ``"global_load_dwordx4"``. Short forms:
            ``"ld.global.v4"`` has elements of 32 bits, ``"cp.async.16"``; ``"cp.async"`` moves 16 bytes.
        target: Architecture.

    Raises: MalformedError: LA340; LA982, for another name. RepresentabilityError: LA983, if no document states the
        sizes of this target.

    Example:
        >>> instruction("cp.async.8", "sm_90a").name, instruction("global_load_dwordx3", "gfx942").bytes
        ('cp.async.ca.8', 12)
        >>> instruction("st.global.v2.u16", "sm_80").name, instruction("buffer_store_short", "gfx90a").sector_bytes
        ('st.global.v2.b16', 64)
        >>> instruction("ld.global.v8.f32", "sm_100a").bytes
        32
    """
    vendor = lookup(target).vendor
    text = name if isinstance(name, str) else ""
    found = _nvidia(text, target) if vendor == "nvidia" else _amd(text, target)
    if found is None:
        since = "; .v8.b32 and .v4.b64 from sm_100 on" if vendor == "nvidia" else ""
        where = (f"{shown(name)} of {target}",)
        raise MalformedError(
            Diagnostic("LA982", "unknown global-memory instruction", where, f"known: {KNOWN[vendor]}{since}")
        )
    units = _UNITS.get(target) or _UNITS.get(vendor)
    if units is None:
        raise RepresentabilityError(Diagnostic("LA983", "its transactions are not known", (target,), _ABSENT))
    short, store, bits = found
    align = bits if vendor == "nvidia" else min(bits, DWORD_BITS)
    loads, stores, line, sources = units
    sources += (_WIDE_TEXT, _WIDE_BUILD) * (bits == WIDE_BITS)
    return GlobalAccess(short, target, store, bits, align, stores if store else loads, line, sources)


def vectors(target: str, store: bool, element_bits: int) -> tuple[GlobalAccess, ...]:
    """Return the loads or stores of whole elements, the widest first; 128 bits at most, as on every target.

    Example:
        >>> [each.name for each in vectors("sm_90a", False, 16)]
        ['ld.global.v4.b32', 'ld.global.v2.b32', 'ld.global.b32', 'ld.global.b16']
        >>> [each.name for each in vectors("gfx942", True, 32)]
        ['global_store_dwordx4', 'global_store_dwordx3', 'global_store_dwordx2', 'global_store_dword']
    """
    if lookup(target).vendor == "nvidia":
        part = min(64, max(32, element_bits))
        names = [
            f"{'st' if store else 'ld'}.global{f'.v{bits // part}' if bits > part else ''}.b{min(bits, part)}"
            for bits in (128, 64, 32, 16, 8)
        ]
    else:
        does = "store" if store else "load"
        small = ("short", "byte") if store else ("ushort", "ubyte")
        names = [f"global_{does}_{size}" for size in ("dwordx4", "dwordx3", "dwordx2", "dword", *small)]
    found = [instruction(name, target) for name in names]
    return tuple(each for each in found if each.bits >= element_bits)


def touched(starts: IntArray, size: int, unit: int) -> IntArray:
    """Return how many units of ``unit`` bytes each row of accesses touches.

    Args:
        starts: First byte of each lane, int64[access, lane]; -1 for an inactive lane.
        size: Bytes of a lane.
        unit: Bytes of a sector or line.

    Example:
        >>> touched(np.array([[0, 4, 8, 12], [0, 32, 64, -1], [30, -1, -1, -1]]), 4, 32).tolist()
        [1, 3, 2]
    """
    first, last = starts // unit, (starts + size - 1) // unit
    reach = np.arange((size - 2) // unit + 2 if size > 1 else 1)
    units = first[:, :, None] + reach
    units = np.where((starts[:, :, None] >= 0) & (units <= last[:, :, None]), units, -1)
    return words_by_bank(units.reshape(len(starts), -1), 1)[:, 0]


def requested(starts: IntArray, size: int) -> IntArray:
    """Return how many different bytes each row of accesses touches; arguments as for ``touched``.

    Example:
        >>> requested(np.array([[0, 4, 4, -1], [8, 10, -1, -1]]), 4).tolist()
        [8, 6]
    """
    ordered = np.sort(starts, axis=1)
    active = ordered >= 0
    room = np.full(ordered.shape, size, dtype=np.int64)
    room[:, :-1] = np.minimum(size, np.diff(ordered, axis=1))
    return np.asarray(np.where(active, room, 0).sum(axis=1), dtype=np.int64)


def _nvidia(text: str, target: str) -> tuple[str, bool, int] | None:
    """Return the short name, whether it stores, and the bits of a lane."""
    if copied := _COPY.fullmatch(text):
        size = copied[2] or "16"
        cache = copied[1] or ("cg" if size == "16" else "ca")
        name = f"cp.async.{cache}.{size}"
        return None if cache == "cg" and size != "16" else (access_form(name).name, False, 8 * int(size))
    found = _NVIDIA.fullmatch(text)
    if found is None:
        return None
    kind, vector, plain = found.groups()[:3] if found[1] else found.groups()[3:]
    tail = f"{vector or ''}{plain or '.b32'}"
    if _WIDE.fullmatch(tail) and (lookup(target).compute_capability or (0, 0)) >= (10, 0):
        return f"{kind}.global{re.sub('[usf](?=[0-9]+$)', 'b', tail)}", kind == "st", WIDE_BITS
    if re.search(_EVICT, text):
        return None
    shared = vector_name(f"{kind}.shared{tail}")
    if shared is None:
        return None
    return shared.replace(".shared", ".global"), kind == "st", access_form(shared).row_bits


def _amd(text: str, target: str) -> tuple[str, bool, int] | None:
    """The same for AMD."""
    if not (_AMD.fullmatch(text) or (lookup(target).lanes == WAVE32 and _AMD_NEW.fullmatch(text))):
        return None
    _, does, size = text.split("_")
    if size.startswith("dword"):
        return text, does == "store", DWORD_BITS * int(size[6:] or 1)
    number = size.lstrip("bui")
    bits = int(number) if number.isdigit() else 8 if size.endswith("byte") else 16
    return text, does == "store", bits
