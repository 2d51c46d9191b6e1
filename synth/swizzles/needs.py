"""What the banks see of an access: one space of tile elements that a group of lanes touches, and how often.

Main statements: let the shared layout be an invertible map S of tile bits to offset bits. A group of lanes touches the
elements ``x + U`` where U is spanned by the images of the group's space of lanes and of the registers of one vector.
Let W be the offset bits above a word's bytes and K the lower of them that number banks. The group takes
``2 ** (dim(U and ker K) - dim(U and ker W))`` turns, since every bank that is touched holds equally many words.
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
        space: Basis of the elements that a group of lanes touches, as tile bits.
        bank_end: Offset bits from the word up to this one number the banks.
        groups: Groups of lanes of all instructions of all warps.
        count: These instructions.
    """

    access: int
    model: BankModel
    space: tuple[int, ...]
    bank_end: int
    groups: int
    count: int


def need_of(number: int, access: TileAccess, model: BankModel, vector: Sequence[int], element_bits: int) -> Need:
    """Return what an instruction needs whose lanes move the elements that ``vector`` spans.

    Args:
        number: Number of the access.
        access: The access.
        model: The instruction.
        vector: Images of the elements of one lane's part: a row, for matrices.
        element_bits: Bits of an element.
    """
    bank_end = (32 * model.banks // element_bits).bit_length() - 1
    images, groups, count = touched(access, model, len(vector), element_bits)
    return Need(number, model, matrix.image_basis([*vector, *images]), bank_end, groups, count)


def touched(access: TileAccess, model: BankModel, vector: int, element_bits: int) -> tuple[list[int], int, int]:
    """Return what spans the elements at which the lanes of a group start, all groups, and the instructions.

    Args:
        access: The access.
        model: The instruction.
        vector: Log of the elements of one lane.
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
    """Return the tile elements that a matrix access wants at the low offset bits, in this order; None for vectors."""
    if access.kind in ("load", "store"):
        return None
    if access.kind.endswith("trans"):
        return access.lanes[2:5]
    held = (32 // element_bits).bit_length() - 1
    return (*access.distinct[:held], *access.lanes[:2])
