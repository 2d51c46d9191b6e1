"""Find ``wgmma`` descriptors for a tile whose instructions' parts are anywhere in shared memory.

Every instruction has its own descriptor, so a tile is readable exactly if each instruction's part is, with one number
of rows, one major and one swizzle. Each part is decided: undo the XOR of a swizzle and base offset, derive the fields
as differences of addresses (``layoutalg.synth.wgmma.plan``), and compare everything the descriptor reads. The tile's
base is a multiple of 1024 bytes, the period of all swizzles.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.picture import Shown
from layoutalg.proofs.wgmma import InstructionTile
from layoutalg.targets.nvidia import wgmma as hardware

Table = npt.NDArray[np.int64]
ALIGN_BYTES = 1024


@dataclass(frozen=True, slots=True)
class PartsPlan(Shown):
    """Descriptors of a tile, listed individually: their start addresses follow no regular steps.

    Args:
        major: ``"K"`` or ``"MN"``.
        rows: Rows that one instruction reads.
        k: Elements along K of one instruction.
        element_bits: Bits per element.
        swizzle: Name of the swizzle.
        tiles: One entry per instruction, rows slowest; add base/16 for a base that is a multiple of 1024.
    """

    major: str
    rows: int
    k: int
    element_bits: int
    swizzle: str
    tiles: tuple[InstructionTile, ...]

    def __post_init__(self) -> None:
        checked_kinds(self, "LA808")

    def read(self) -> Table:
        """Return the byte address read for every element, for tile base 0; int64[mn, k]."""
        shape = max(tile.mn for tile in self.tiles) + self.rows, max(tile.k for tile in self.tiles) + self.k
        found = np.full(shape, -1, dtype=np.int64)
        for tile in self.tiles:
            found[tile.mn : tile.mn + self.rows, tile.k : tile.k + self.k] = hardware.operand_offsets(
                tile.descriptor, rows=self.rows, k=self.k, element_bits=self.element_bits, major=self.major
            )
        return found

    def __str__(self) -> str:
        many, shape = len(self.tiles), f"{self.rows} x {self.k}"
        told = f"{many} instructions of {shape}, {self.major}-major, {self.swizzle}, irregular start addresses"
        lines = [f"  ({tile.mn}, {tile.k})  {tile.encoded:#018x}" for tile in self.tiles[:8]]
        return "\n".join([told, *lines, *([f"  {many - 8} more"] if many > 8 else [])])

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return {
            "schema": "layoutalg/wgmma-parts/1", "major": self.major, "rows": self.rows, "k": self.k,
            "element_bits": self.element_bits, "swizzle": self.swizzle, "align_bytes": ALIGN_BYTES,
            "tiles": [tile.to_json() for tile in self.tiles],
        }  # fmt: skip


def parts(places: Table, rows: tuple[int, ...], element_bits: int, k: int) -> PartsPlan | None:
    """Return descriptors that read every instruction's part, if there are any.

    Args:
        places: Byte address of every element for tile base 0, int64[mn, k].
        rows: Allowed rows of an instruction.
        element_bits: 1, 8, 16 or 32.
        k: Elements along K of one instruction.

    Example:
        >>> part = 2 * (np.arange(64)[:, None] * 16 + np.arange(16))
        >>> swapped = np.concatenate([part + 4096, part], axis=1)
        >>> print(parts(swapped ^ (swapped >> 7) % 2 << 4, (64,), 16, 16))
        2 instructions of 64 x 16, K-major, 32B, irregular start addresses
          (0, 0)  0xc000001000010100
          (0, 16)  0xc000001000010000
        >>> parts(swapped, (64,), 16, 16) is None
        True
    """
    if places.ndim != 2 or places.shape[1] % k:
        return None
    majors = hardware.MAJORS if element_bits == 16 else ("K",)
    for many, major, swizzle in itertools.product(reversed(rows), majors, hardware.SWIZZLES):
        clock.check("the search for descriptors")
        if places.shape[0] % many:
            continue
        tiles = []
        for mn, at in itertools.product(range(0, places.shape[0], many), range(0, places.shape[1], k)):
            found = _descriptor(places[mn : mn + many, at : at + k], major, swizzle, element_bits)
            if found is None:
                break
            tiles.append(InstructionTile(mn, at, found, found.encode()))
        else:
            return PartsPlan(major, many, k, element_bits, swizzle, tuple(tiles))
    return None


def _descriptor(part: Table, major: str, swizzle: str, element_bits: int) -> hardware.MatrixDescriptor | None:
    """Return the descriptor that reads one instruction's part."""
    bases = range(hardware.swizzle_rows(swizzle))
    return next(filter(None, (_of_base(part, major, swizzle, base, element_bits) for base in bases)), None)


def _of_base(
    part: Table, major: str, swizzle: str, base_offset: int, element_bits: int
) -> hardware.MatrixDescriptor | None:
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
        found = hardware.MatrixDescriptor(first, fields["leading_bytes"], fields["stride_bytes"], base_offset, swizzle)
        read = hardware.operand_offsets(
            found, rows=part.shape[0], k=part.shape[1], element_bits=element_bits, major=major
        )
    except (MalformedError, TargetRuleError):
        return None
    return found if np.array_equal(read, part) else None
