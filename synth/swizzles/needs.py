"""What the banks see of an access: the space of tile elements that a lane group touches, and how often.

Let the shared layout be an invertible map S of tile bits to offset bits. A lane group touches the elements ``x + U``,
where U is spanned by the images of the group's lanes and of the registers of one vector. Let W be the offset bits above
a word's bytes and K the low ones of them, which number banks. The group takes
``2 ** (dim(U and ker K) - dim(U and ker W))`` turns, since every touched bank gets equally many words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.f2 import matrix
from layoutalg.proofs.swizzling import TileAccess
from layoutalg.targets.banks import BankModel


@dataclass(frozen=True, slots=True)
class Need:
    """One access on one target, moved by one instruction.

    Args:
        access: Number of the access.
        model: The instruction.
        space: Basis of the elements that a lane group touches, as tile bits.
        bank_end: Offset bits from the word up to (excluding) this one number the banks.
        groups: Lane groups over all instructions and warps.
        count: Number of these instructions.
    """

    access: int
    model: BankModel
    space: tuple[int, ...]
    bank_end: int
    groups: int
    count: int


def need_of(number: int, access: TileAccess, model: BankModel, vector: Sequence[int], element_bits: int) -> Need:
    """Return the need of an instruction whose lanes each move the elements spanned by ``vector``.

    Args:
        number: Number of the access.
        access: The access.
        model: The instruction.
        vector: Images of one lane's elements; for matrices, of one row.
        element_bits: Bits of an element.
    """
    bank_end = (32 * model.banks // element_bits).bit_length() - 1
    images, groups, count = touched(access, model, len(vector), element_bits)
    return Need(number, model, matrix.image_basis([*vector, *images]), bank_end, groups, count)


def touched(access: TileAccess, model: BankModel, vector: int, element_bits: int) -> tuple[list[int], int, int]:
    """Return a spanning set of the elements at which a group's lanes start, the number of groups and of instructions.

    Args:
        access: The access.
        model: The instruction.
        vector: log2 of the elements per lane.
        element_bits: Bits of an element.
    """
    registers = matrix.rank(access.registers)
    if access.kind in ("load", "store"):
        lanes = access.lanes
        images = [matrix.apply(lanes, step) for step in model.space]
        groups = len(model.groups)
        if any(image == 0 for bit, image in enumerate(lanes) if 1 << bit in model.joins):
            images.append(matrix.apply(lanes, model.groups[1][0] ^ model.groups[0][0]))
            groups //= 2
        issued = 1 << registers - vector + len(access.warps)
        return images, groups * issued, issued
    images, held = _rows(access, element_bits)
    issued = 1 << registers - held + len(access.warps)
    return images, issued, issued // (model.lanes // 8)


def _rows(access: TileAccess, element_bits: int) -> tuple[list[int], int]:
    """Return the images of the row numbers of one matrix, and the register bits of one of its words."""
    held = (32 // element_bits).bit_length() - 1
    if access.kind.endswith("trans"):
        return [access.distinct[0], access.lanes[0], access.lanes[1]], held
    return list(access.lanes[2:5]), held


def low_columns(access: TileAccess, element_bits: int) -> tuple[int, ...] | None:
    """Return the tile elements that a matrix access needs at the low offset bits, in order; None for vectors."""
    if access.kind in ("load", "store"):
        return None
    if access.kind.endswith("trans"):
        return access.lanes[2:5]
    held = (32 // element_bits).bit_length() - 1
    return (*access.distinct[:held], *access.lanes[:2])
