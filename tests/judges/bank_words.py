"""Turns of shared memory by sets of words, from a table of the judge's own: no code of the library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Lanes = Sequence[int | None]
Group = Sequence[int]


def _twice(*groups: Sequence[int]) -> list[list[int]]:
    return [[half + lane for lane in group] for half in (0, 32) for group in groups]


def _row(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


CROSSED = (
    _row(0, 3) + _row(20, 23), _row(4, 7) + _row(16, 19), _row(8, 11) + _row(28, 31), _row(12, 15) + _row(24, 27)
)  # fmt: skip
HALVES = (_row(0, 15), _row(16, 31))
EIGHTS = (_row(0, 7), _row(8, 15), _row(16, 23), _row(24, 31))
MIXED = (_row(0, 3) + _row(12, 15) + _row(20, 27), _row(4, 11) + _row(16, 19) + _row(28, 31))
SERVED: dict[tuple[str, str], tuple[int, int, list[list[int]]]] = {
    ("gfx942", "ds_read_b32"): (4, 32, _twice(_row(0, 31))),
    ("gfx942", "ds_read_b64"): (8, 32, _twice(*HALVES)),
    ("gfx942", "ds_read_b128"): (16, 32, _twice(*CROSSED)),
    ("gfx942", "ds_write_b128"): (16, 32, _twice(*EIGHTS)),
    ("gfx950", "ds_read_b64"): (8, 64, _twice(_row(0, 31))),
    ("gfx950", "ds_read_b96"): (12, 32, _twice(*CROSSED)),
    ("gfx950", "ds_read_b128"): (16, 64, _twice(*MIXED)),
    ("gfx950", "ds_write_b64"): (8, 32, _twice(*HALVES)),
    ("gfx1100", "ds_read_b32"): (4, 32, [_row(0, 31)]),
    ("gfx1100", "ds_read_b64"): (8, 32, [list(half) for half in HALVES]),
    ("gfx1100", "ds_read_b128"): (16, 32, [list(group) for group in CROSSED]),
    ("gfx1201", "ds_read_b32"): (4, 32, [_row(0, 31)]),
    ("gfx1201", "ds_read_b64"): (8, 32, [list(half) for half in HALVES]),
    ("gfx1201", "ds_read_b128"): (16, 32, [list(group) for group in EIGHTS]),
}
"""Bytes of a lane, banks, and lanes served together, as the sources print them."""
SIDES = ((4, 64, [_row(0, 63)]), (4, 32, _twice(_row(0, 31))))
"""What two sources say of ``ds_read_b32`` of gfx950."""
VECTORS = {1: "b8", 2: "b16", 4: "b32", 8: "v2.b32", 16: "v4.b32"}


def instructions() -> list[tuple[str, str]]:
    """All instructions that the judge knows, by target."""
    vectors = [f"{head}.shared.{vector}" for head in ("ld", "st") for vector in VECTORS.values()]
    matrices = [f"{head}matrix.x{many}" for head in ("ld", "st") for many in (1, 2, 4)]
    return [*SERVED, *(("sm_90a", name) for name in vectors + matrices)]


def served(target: str, name: str) -> tuple[int, int, list[list[int]], bool]:
    """Bytes, banks and groups of an instruction, and whether neighbouring groups may be served as one."""
    if target.startswith("gfx"):
        return (*SERVED[target, name], False)
    if "matrix" in name:
        count = 8 * int(name.split(".x")[1][0])
        return 16, 32, [_row(first, first + 7) for first in range(0, count, 8)], False
    size = next(size for size, vector in VECTORS.items() if name.endswith(f"shared.{vector}"))
    many = min(32, 128 // size)
    return size, 32, [_row(first, first + many - 1) for first in range(0, 32, many)], name[:2] == "ld" and size > 4


def judged(target: str, name: str, lanes: Lanes) -> tuple[int, int]:
    """Turns of one instruction, and those if every group spread its words evenly.

    Groups are served one after the other, each in as many turns as its busiest bank has different words.
    """
    return crowded(*served(target, name), lanes)


def crowded(size: int, banks: int, groups: Sequence[Group], joins: bool, lanes: Lanes) -> tuple[int, int]:
    """The same from the bytes of a lane, the banks, the groups, and whether two groups may be served as one."""
    if joins and any(
        all(
            lanes[lane] is None or lanes[lane ^ step] is None or lanes[lane] == lanes[lane ^ step]
            for lane in range(len(lanes))
        )
        for step in (1, 2)
    ):
        groups = [[*groups[i], *groups[i + 1]] for i in range(0, len(groups), 2)]
    turns = least = 0
    for group in groups:
        words: dict[int, set[int]] = {}
        for lane in group:
            start = lanes[lane]
            if start is not None:
                for byte in range(start, start + size):
                    words.setdefault(byte // 4 % banks, set()).add(byte // 4)
        turns += max(map(len, words.values()), default=0)
        least += -(-sum(map(len, words.values())) // banks)
    return turns, least


def turns_of_rows(target: str, name: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Turns of many instructions, int64[instruction, lane], all lanes active."""
    size, banks, groups, joins = served(target, name)
    if not joins:
        return _rows(size, banks, groups, rows)
    lanes = np.arange(rows.shape[1])
    pairs = (rows == rows[:, lanes ^ 1]).all(axis=1) | (rows == rows[:, lanes ^ 2]).all(axis=1)
    together = [[*groups[i], *groups[i + 1]] for i in range(0, len(groups), 2)]
    return np.where(pairs, _rows(size, banks, together, rows), _rows(size, banks, groups, rows))


def _rows(size: int, banks: int, groups: Sequence[Group], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    total = np.zeros(len(rows), dtype=np.int64)
    number = np.arange(len(rows))[:, None]
    for group in groups:
        parts = [rows[:, group] // 4 + word for word in range(max(1, size // 4))]
        words = np.sort(np.concatenate(parts, axis=1), axis=1)
        fresh = np.ones(words.shape, dtype=bool)
        fresh[:, 1:] = words[:, 1:] != words[:, :-1]
        busy = np.bincount((number * banks + words % banks)[fresh], minlength=len(rows) * banks)
        total += busy.reshape(len(rows), banks).max(axis=1)
    return total
