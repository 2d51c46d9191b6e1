"""The bank model on one and two matrices and inactive lanes, by sets of bytes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia import banks


def busiest(offsets: list[int | None], size: int) -> int:
    """The most different words of one bank that some active lane touches."""
    bytes_touched = {byte for offset in offsets if offset is not None for byte in range(offset, offset + size)}
    return max(Counter(word % 32 for word in {byte // 4 for byte in bytes_touched}).values(), default=0)


@pytest.mark.parametrize("kind", ["ldmatrix", "stmatrix"])
def test_matrices_take_turns_one_after_the_other(kind: str) -> None:
    generator = random.Random(1)
    for _ in range(300):
        count = generator.choice((1, 2, 4))
        rows: list[int | None] = [16 * generator.randrange(64) for _ in range(8 * count)]
        if generator.random() < 0.4:
            rows = [None if generator.random() < 0.3 else row for row in rows]
        parts = [rows[first : first + 8] for first in range(0, 8 * count, 8)]
        turns = banks.wavefronts(rows, 128, kind)
        assert turns == sum(busiest(part, 16) for part in parts)
        assert turns == sum(banks.wavefronts(part, 128, kind) for part in parts)


def test_known_strides_of_rows() -> None:
    for pitch, turns in ((64, 4), (128, 8), (80, 1), (144, 1)):
        assert banks.wavefronts([pitch * row for row in range(8)], 128, "ldmatrix") == turns
        assert banks.wavefronts(tuple(pitch * row for row in range(16)), 128, "ldmatrix") == 2 * turns
    assert banks.wavefronts([128 * row + 16 * row for row in range(8)], 128, "ldmatrix") == 1


@pytest.mark.parametrize("kind", ["load", "store"])
def test_inactive_lanes_touch_nothing(kind: str) -> None:
    generator = random.Random(2)
    together_here = 0
    for _ in range(600):
        bits = generator.choice(banks.ACCESS_BITS)
        size = bits // 8
        base = [size * generator.randrange(200) for _ in range(32)]
        if generator.random() < 0.5:  # lanes that share addresses in pairs
            step = generator.choice((1, 2))
            base = [base[lane & ~step] for lane in range(32)]
        lanes: list[int | None] = [None if generator.random() < generator.choice((0, 0.2, 0.9)) else x for x in base]
        together = min(32, 1024 // bits)
        apart = sum(busiest(lanes[first : first + together], size) for first in range(0, 32, together))
        merged = sum(busiest(lanes[first : first + 2 * together], size) for first in range(0, 32, 2 * together))
        pairs = any(
            all(a is None or b is None or a == b for a, b in ((lanes[lane], lanes[lane ^ s]) for lane in range(32)))
            for s in (1, 2)
        )
        may_merge = kind == "load" and bits > 32 and pairs
        together_here += may_merge and None in lanes and merged != apart
        assert banks.wavefronts(lanes, bits, kind) == (merged if may_merge else apart)
    assert (together_here > 5) == (kind == "load")
    assert banks.wavefronts([None] * 32, 32, kind) == 0
    assert banks.wavefronts(np.array([0] * 16 + [None] * 16, dtype=object), 32, kind) == 1


@pytest.mark.parametrize("kind", ["ldmatrix", "stmatrix"])
@pytest.mark.parametrize("bits", [3, 4, 5])
def test_ranks_count_the_same_for_fewer_matrices(kind: str, bits: int) -> None:
    generator = random.Random(3)
    for _ in range(200):
        lanes = [(8 * generator.randrange(64),) for _ in range(bits)]
        access = LinearLayout.from_bases({"register": [(1,), (2,), (4,)], "lane": lanes}, {"offset": 512})
        offsets = [2 * int(access.at(8 * lane)) for lane in range(1 << bits)]
        assert banks.layout_wavefronts(access, 16, kind) == banks.wavefronts(offsets, 128, kind)


@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("registers", [1, 2, 3])
def test_ranks_count_the_same_where_neighbours_share(kind: str, registers: int) -> None:
    """Elements of 16 bits; lanes of a pair at one address, or of every second one."""
    generator = random.Random(4)
    for alike in ((), (0,), (1,), (2,), (0, 1)) * 20:
        step = 1 << registers
        lanes = [(0 if bit in alike else step * generator.randrange(64),) for bit in range(5)]
        bases = {"register": [(1 << bit,) for bit in range(registers)], "lane": lanes}
        access = LinearLayout.from_bases(bases, {"offset": 64 * step})
        offsets = [2 * int(access.at(step * lane)) for lane in range(32)]
        assert banks.layout_wavefronts(access, 16, kind) == banks.wavefronts(offsets, 16 * step, kind)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (([0] * 8, 32), "must have 32 integers"),
        (([0] * 4, 128, "ldmatrix"), "must have 8 or 16 or 32 integers"),
        (([0] * 31 + ["0"], 32), "'0' in lane 31"),
        (([0] * 31 + [True], 32), "True in lane 31"),
        ((["x"] * 32, 32), "'x' in lane 0"),
        ((None, 32), "not None"),
        (("0" * 32, 32), "must have 32 integers"),
        (([10**5000] * 32, 32), "a number of 16610 bits in lane 0"),
    ],
)
def test_misuse_is_named(arguments: tuple[Any, ...], rule: str) -> None:
    with pytest.raises(MalformedError) as caught:
        banks.wavefronts(*arguments)
    assert rule in str(caught.value)


def test_layouts_of_other_kinds_are_refused() -> None:
    access = LinearLayout.from_bases({"register": [(1,)], "lane": [(4,)] * 3}, {"offset": 8})
    with pytest.raises(MalformedError, match="must have 32 lanes"):
        banks.layout_wavefronts(access, 32)
    with pytest.raises(MalformedError, match="kind must be one of"):
        banks.layout_wavefronts(access, 32, np.array(["load"]))  # type: ignore[arg-type]
