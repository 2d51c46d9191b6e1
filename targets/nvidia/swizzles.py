"""The shared-memory swizzles of NVIDIA's copy engine and tensor cores: the one table of their numbers.

Implementation notes: 32B, 64B and 128B were measured on an H200 (driver 580.159.04), by tile copies and by ``wgmma``.
The ATOM swizzles come from documents and were never run; the 8-byte flip comes from prose, without its figure. The
checkers have their own tables (docs/checkers.md).

References: PTX ISA 9.1 sections 5.5.7 (swizzling modes) and 9.7.15.5 (matrix descriptor); CUDA driver API 12.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.targets.model import fact

CHUNK_BYTES = 16
"""The unit that the 32B, 64B and 128B swizzles permute."""


@fact("LA374")
class HardwareSwizzle:
    """One swizzle: which bits of a shared byte address it changes, and its numbers."""

    # pairs (target bit, source bit): target ^= original source; every source is above all targets
    xor: tuple[tuple[int, int], ...]
    # width of one row of the pattern and of the widest inner box; 16, one chunk, for NONE, which has no such limit
    span_bytes: int
    period_bytes: int  # bytes after which the pattern repeats; 16 for NONE
    map_code: int  # code in ``cuTensorMapEncodeTiled``
    wgmma_code: int | None  # code in a ``wgmma`` matrix descriptor; None if it has none
    tcgen05_code: int | None  # the same for ``tcgen05``
    compute_capability: tuple[int, int]  # the first one that supports it

    @property
    def field_codes(self) -> tuple[int, int]:
        """The swizzle field and the atom field of the encoded map."""
        return min(self.map_code, 3), max(self.map_code - 3, 0)

    @property
    def phases(self) -> int:
        """Rows of 128 bytes that differ in their XOR; of plain swizzles also the chunks of a span."""
        return self.span_bytes // CHUNK_BYTES


SWIZZLE_TABLE: Mapping[str, HardwareSwizzle] = MappingProxyType(
    {
        "NONE": HardwareSwizzle((), 16, 16, 0, 0, 0, (9, 0)),
        "32B": HardwareSwizzle(((4, 7),), 32, 256, 1, 3, 6, (9, 0)),
        "64B": HardwareSwizzle(((4, 7), (5, 8)), 64, 512, 2, 2, 4, (9, 0)),
        "128B": HardwareSwizzle(((4, 7), (5, 8), (6, 9)), 128, 1024, 3, 1, 2, (9, 0)),
        "128B_ATOM_32B": HardwareSwizzle(((5, 7), (6, 8)), 128, 512, 4, None, 1, (10, 0)),
        "128B_ATOM_32B_FLIP_8B": HardwareSwizzle(((5, 7), (6, 8), (3, 7)), 128, 512, 5, None, None, (10, 0)),
        "128B_ATOM_64B": HardwareSwizzle(((6, 7),), 128, 256, 6, None, None, (10, 0)),
    }
)
"""Every swizzle by name."""
PLAIN: tuple[str, ...] = ("NONE", "32B", "64B", "128B")
"""The swizzles that permute chunks, narrowest span first: those of compute capability 9.0, and of ``wgmma``."""
XORS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "NONE": (0, 4, 3),
        **{
            name: (len(entry.xor), entry.xor[0][0], entry.xor[0][1] - entry.xor[0][0])
            for name, entry in SWIZZLE_TABLE.items()
            if len({source - target for target, source in entry.xor}) == 1
        },
    }
)
"""(bits, base, shift) on byte addresses of the swizzles that are one XOR, as ``Sw<bits, base, shift>``."""
