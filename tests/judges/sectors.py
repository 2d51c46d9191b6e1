"""What an access to global memory touches, by plain sets of bytes: element by element, with no code of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

SECTOR, LINE = 32, 128
Element = tuple[int, int, int]
"""(register, lane, warp)"""


def units(bytes_touched: Iterable[int], unit: int) -> int:
    """How many units of that many bytes hold some bytes."""
    return len({byte // unit for byte in bytes_touched})


def element_bytes(coordinate: Sequence[int], shape: Sequence[int], strides: Sequence[int], size: int) -> set[int]:
    """The bytes of an element; none if it is out of bounds."""
    if any(not 0 <= at < extent for at, extent in zip(coordinate, shape, strict=True)):
        return set()
    first = size * sum(at * stride for at, stride in zip(coordinate, strides, strict=True))
    return set(range(first, first + size))


def access(where: Callable[[Element], set[int]], registers: Sequence[int], lanes: int, warp: int) -> list[set[int]]:
    """The bytes that each lane of a warp moves with some registers."""
    return [set().union(*(where((register, lane, warp)) for register in registers)) for lane in range(lanes)]


def is_vector(found: set[int], size: int) -> bool:
    """Whether the bytes of a lane are none, or one run of that many bytes at a multiple of them."""
    return not found or (found == set(range(min(found), min(found) + size)) and min(found) % size == 0)


def runs(touched: Iterable[int]) -> list[tuple[int, int]]:
    """Bytes as (first, length)."""
    found: list[list[int]] = []
    for byte in sorted(set(touched)):
        if found and sum(found[-1]) == byte:
            found[-1][1] += 1
        else:
            found.append([byte, 1])
    return [(first, many) for first, many in found]


def everything(where: Callable[[Element], set[int]], counts: tuple[int, int, int]) -> set[int]:
    """The bytes of all registers of all lanes of all warps."""
    return set().union(*(where(element) for element in product(*map(range, counts))))
