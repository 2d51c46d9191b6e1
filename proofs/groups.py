"""Sizes and offsets of consecutive groups of rows: checked once, exact int64 inside.

The groups of a ragged tensor, of experts or of sequences are the intervals [offsets[g], offsets[g + 1]) of one axis.
Offsets are the running sums of the sizes, so they never fall; both must stay within the rows of the axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground import memory
from layoutalg.ground.check import Checker, integers

CHECK = Checker("LA869", "invalid groups")
MOST_ROWS = 2**63 - 1
"""The bound of a sum of sizes if no tensor bounds it."""


def group_offsets(sizes: object, rows: int | None = None, argument: str = "sizes") -> npt.NDArray[np.int64]:
    """Return where each group starts, and where the last one ends: G + 1 running sums.

    Args:
        sizes: Rows of each group: a sequence or one-dimensional array of non-negative integers.
        rows: Rows of the tensor, which the sum may not exceed.
        argument: Name for the message.

    Raises: MalformedError: LA869; names the first size that is not one, or ends beyond the rows. BudgetError: LA002.

    Example:
        >>> group_offsets([70, 0, 64]).tolist()
        [0, 70, 70, 134]
        >>> group_offsets([70, 64], rows=128)
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA869 invalid groups
          in     sizes[1]
          since  must end by row 128, the end of the tensor, not 134
    """
    most = MOST_ROWS if rows is None else rows
    found = _integers(sizes, argument)
    memory.reserve(argument, len(found) + 1, 16)
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    if found.dtype == object:  # beyond int64: some entry is wrong, exact sums say which
        sums, total = [], 0
        for size in found.tolist():
            total += size
            sums.append(size < 0 or total > most)
        wrong = np.asarray(sums, dtype=np.bool_)
    else:
        each = found.astype(np.uint64)  # negative sizes become huge; the first sum beyond 2**63 does not wrap
        sums_of = np.cumsum(each)
        wrong = (each > most) | (sums_of > most)
        offsets[1:] = sums_of.astype(np.int64)
    if wrong.any():
        place = int(np.argmax(wrong))
        size = int(found[place])
        CHECK.integer(size, f"{argument}[{place}]", 0)
        end = "2^63 - 1, the last that offsets can name" if rows is None else f"{rows}, the end of the tensor"
        reached = sum(found[: place + 1].tolist())
        raise CHECK.malformed(f"{argument}[{place}]", f"must end by row {end}", reached)
    return offsets


def checked_offsets(offsets: object, rows: int | None = None, argument: str = "offsets") -> npt.NDArray[np.int64]:
    """Return G + 1 offsets of groups as int64; they start at 0 or later, never fall, and end within the rows.

    Raises: MalformedError: LA869; names the first offset that is wrong.

    Example:
        >>> checked_offsets([0, 70, 70, 134]).tolist()
        [0, 70, 70, 134]
        >>> checked_offsets([0, 70, 64])
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA869 invalid groups
          in     offsets[2]
          since  must be at least the offset before it, 70, not 64
    """
    most = MOST_ROWS if rows is None else rows
    found = _integers(offsets, argument)
    if not len(found):
        raise CHECK.malformed(argument, "must have one entry more than there are groups", found.tolist())
    falls = np.concatenate([np.zeros(1, dtype=np.bool_), found[1:] < found[:-1]])
    wrong = falls | (found < 0) | (found > most)
    if wrong.any():
        place = int(np.argmax(wrong))
        value, where = int(found[place]), f"{argument}[{place}]"
        CHECK.integer(value, where, 0, most + 1)
        raise CHECK.malformed(where, f"must be at least the offset before it, {int(found[place - 1])}", value)
    return found.astype(np.int64)


def tile_bound(rows: int, groups: int, tile_rows: int) -> int:
    """Return the largest number of tiles that groups with so many rows in all can have; some sizes reach it.

    Mathematically: max of sum(ceil(n_g / T)) over n_0 + ... + n_(G-1) = n is n where n <= G, otherwise
    G - 1 + ceil((n - G + 1) / T): one row in each group but one.

    Example:
        >>> tile_bound(256, 64, 16), tile_bound(10, 64, 16)
        (76, 10)

    Source: triton_kernels, RaggedTensorMetadata.
    """
    return rows if rows <= groups else (groups - 1) - (groups - rows - 1) // tile_rows


def _integers(values: object, argument: str) -> npt.NDArray[Any]:
    """The values as a one-dimensional array of integers; names the first entry that is not an integer."""
    memory.reserve_items(argument, values)
    if isinstance(values, (list, tuple)):  # numpy would read True as 1, and integers from 2^63 on as floats
        if not set(map(type, values)) <= {int}:
            values = [CHECK.integer(entry, f"{argument}[{place}]") for place, entry in enumerate(values)]
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            return np.array(values, dtype=object)
    found = None if isinstance(values, (str, bytes)) else integers(values, argument)
    if found is None or found.ndim != 1:
        raise CHECK.malformed(argument, "must be a sequence or a one-dimensional array of integers", values)
    return found
