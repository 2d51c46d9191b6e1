"""Whether descriptors of ``wgmma`` read a tile whose instructions' parts lie anywhere.

Main definitions: ``readable``.

Main statements: every instruction has its own descriptor, so a tile is read exactly if each instruction's part is,
under one number of rows, one major and one swizzle. What a part is read by is decided: the XOR of a swizzle and a base
offset is undone, the fields are then differences of addresses (``layoutalg.synth.wgmma.plan``), and the whole read of
the descriptor is compared.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.targets.nvidia import wgmma as hardware

Table = npt.NDArray[np.int64]


def readable(places: Table, rows: tuple[int, ...], element_bits: int, k: int) -> tuple[int, str, str] | None:
    """Return (rows, major, swizzle) under which every instruction's part is read; None where there is none.

    Args:
        places: Byte address of every element for a tile base of 0 that is a multiple of 1024, int64[mn, k].
        rows: Rows that an instruction may have.
        element_bits: 8, 16 or 32.
        k: Elements along K of one instruction.

    Example:
        >>> part = 2 * (np.arange(64)[:, None] * 16 + np.arange(16))
        >>> swapped = np.concatenate([part + 4096, part], axis=1)
        >>> readable(swapped ^ (swapped >> 7) % 2 << 4, (64,), 16, 16)
        (64, 'K', '32B')
        >>> readable(swapped, (64,), 16, 16) is None
        True
    """
    if places.ndim != 2 or places.shape[1] % k:
        return None
    majors = hardware.MAJORS if element_bits == 16 else ("K",)
    for many, major, swizzle in itertools.product(rows, majors, hardware.SWIZZLES):
        clock.check("the search for descriptors")
        if places.shape[0] % many == 0 and all(
            _read(places[mn : mn + many, at : at + k], major, swizzle, element_bits)
            for mn in range(0, places.shape[0], many)
            for at in range(0, places.shape[1], k)
        ):
            return many, major, swizzle
    return None


def _read(part: Table, major: str, swizzle: str, element_bits: int) -> bool:
    """Whether a descriptor reads one instruction's part."""
    bases = range(hardware.swizzle_rows(swizzle))
    return any(_read_at(part, major, swizzle, base, element_bits) for base in bases)


def _read_at(part: Table, major: str, swizzle: str, base_offset: int, element_bits: int) -> bool:
    pattern = hardware.read_pattern(major, swizzle, element_bits, part.shape[1])
    plain = hardware.swizzle_phase(part, swizzle, base_offset)
    first = int(plain[0, 0])
    fields = {"leading_bytes": hardware.UNIT_BYTES, "stride_bytes": hardware.UNIT_BYTES}
    for line, digits in ((plain[:, 0], pattern.mn), (plain[0, :], pattern.k)):
        weight = 1
        for extent, step in digits:
            if isinstance(step, str) and weight < line.size:
                fields[step] = int(line[weight]) - first
            weight *= max(extent, 1)
    try:
        descriptor = hardware.MatrixDescriptor(
            first, fields["leading_bytes"], fields["stride_bytes"], base_offset, swizzle
        )
        read = hardware.operand_offsets(
            descriptor, rows=part.shape[0], k=part.shape[1], element_bits=element_bits, major=major
        )
    except (MalformedError, TargetRuleError):
        return False
    return np.array_equal(read, part)
