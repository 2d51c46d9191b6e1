"""What an access instruction does, byte by byte, and whether any assignment of registers to it does what is asked for.

Written from the instruction's description, lane by lane, without the library's tables of digits.
"""

from __future__ import annotations

import itertools
import re

import numpy as np


def place(instruction, lane, bit):
    """Return (which lane's address, byte behind it) for the byte that holds a bit of a lane's registers."""
    word, byte = bit // 32, bit // 8 % 4
    if found := re.fullmatch(r"(?:ld\.shared|st\.shared|st\.async)(?:\.v\d)?\.b\d+", instruction):
        return lane, bit // 8
    matrices = int(re.search(r"\.x(\d)", instruction)[1])
    if "m16n16" in instruction:
        matrix, half = divmod(word, 2)
        assert matrix < matrices
        return 16 * matrix + 4 * (lane % 4) + byte, lane // 4 + 8 * half
    assert word < matrices, (instruction, bit, found)
    if "m16n8" in instruction:
        return 8 * word + 2 * (lane % 4) + byte % 2, lane // 4 + 8 * (byte // 2)
    if "trans" in instruction:
        return 8 * word + 2 * (lane % 4) + byte // 2, 2 * (lane // 4) + byte % 2
    return 8 * word + lane // 4, 4 * (lane % 4) + byte


def register_bits(instruction):
    """Return the bits of a lane's registers that one instruction moves."""
    if found := re.fullmatch(r"(?:ld\.shared|st\.shared|st\.async)(?:\.v(\d))?\.b(\d+)", instruction):
        return int(found[1] or 1) * int(found[2])
    return 32 * int(re.search(r"\.x(\d)", instruction)[1]) * (2 if "m16n16" in instruction else 1)


def row_bytes(instruction):
    """Return the bytes that an address is a multiple of."""
    return 16 if "matrix" in instruction else register_bits(instruction) // 8


def loaded(instruction, memory, addresses):
    """Return the bytes of each lane's registers, uint8[lane, byte], that one instruction moves."""
    rows = row_bytes(instruction)
    assert all(address % rows == 0 for address in addresses)
    count = register_bits(instruction) // 8
    found = np.zeros((32, count), dtype=memory.dtype)
    for lane, byte in itertools.product(range(32), range(count)):
        row, inside = place(instruction, lane, 8 * byte)
        found[lane, byte] = memory[addresses[row] + inside]
    return found


def can_move(instruction, columns, element_bytes):
    """Return whether instructions can move exactly these registers: every order of them is tried.

    Args:
        instruction: Its name.
        columns: Different registers, each the byte of its element by lane (32 integers).
        element_bytes: Bytes of an element.
    """
    many = register_bits(instruction) // 8 // element_bytes
    if not many or len(columns) % many:
        return False
    if len(columns) == 0:
        return True
    first, rest = columns[0], columns[1:]
    for others in itertools.permutations(range(len(rest)), many - 1):
        left = [column for at, column in enumerate(rest) if at not in others]
        for position in range(many):
            chosen = [rest[at] for at in others]
            chosen.insert(position, first)
            if one_instruction(instruction, chosen, element_bytes) and can_move(instruction, left, element_bytes):
                return True
    return False


def one_instruction(instruction, columns, element_bytes):
    """Return whether one instruction has these registers as its slots, in this order."""
    starts = {}
    for lane, (slot, column) in itertools.product(range(32), enumerate(columns)):
        for byte in range(element_bytes):
            row, inside = place(instruction, lane, 8 * (slot * element_bytes + byte))
            start = int(column[lane]) + byte - inside
            if start < 0 or start % row_bytes(instruction) or starts.setdefault(row, start) != start:
                return False
    return True
