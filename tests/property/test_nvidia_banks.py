"""The counts of ``nvidia.banks`` against a judge of its own table, by words; ranks, and the words of refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia import banks
from tests.judges.bank_words import VECTORS, judged

MATRICES = st.tuples(st.sampled_from(("ldmatrix", "stmatrix")), st.sampled_from((1, 2, 4)))
SIDES = st.sampled_from(("load", "store"))


def judged_vector(lanes: list[int | None], bits: int, kind: str) -> int:
    return judged("sm_90a", f"{kind[:2].replace('lo', 'ld')}.shared.{VECTORS[bits // 8]}", lanes)[0]


def lanes_of(data: st.DataObject, count: int, size: int) -> list[int | None]:
    """Addresses of lanes, some inactive, some shared by the lanes of a pair."""
    offsets = data.draw(st.lists(st.integers(0, 200).map(size.__mul__), min_size=count, max_size=count))
    step = data.draw(st.sampled_from((0, 0, 1, 2)))
    active = data.draw(st.one_of(st.just([True] * count), st.lists(st.booleans(), min_size=count, max_size=count)))
    return [offsets[lane & ~step] if active[lane] else None for lane in range(count)]


@given(MATRICES, st.data())
def test_matrices_take_turns_one_after_the_other(matrix: tuple[str, int], data: st.DataObject) -> None:
    kind, count = matrix
    rows = lanes_of(data, 8 * count, 16)
    assert banks.wavefronts(rows, 128, kind) == judged("sm_90a", f"{kind}.x{count}", rows)[0]


@given(SIDES, st.sampled_from(banks.ACCESS_BITS), st.data())
def test_inactive_lanes_touch_nothing(kind: str, bits: int, data: st.DataObject) -> None:
    lanes = lanes_of(data, 32, bits // 8)
    assert banks.wavefronts(lanes, bits, kind) == judged_vector(lanes, bits, kind)


def test_known_counts() -> None:
    for pitch, turns in ((64, 4), (128, 8), (80, 1), (144, 1)):
        assert banks.wavefronts([pitch * row for row in range(8)], 128, "ldmatrix") == turns
        assert banks.wavefronts(tuple(pitch * row for row in range(16)), 128, "ldmatrix") == 2 * turns
    assert banks.wavefronts([None] * 32, 32) == 0
    assert banks.wavefronts(np.array([0] * 16 + [None] * 16, dtype=object), 32) == 1


@given(MATRICES, st.data())
def test_ranks_count_the_same_for_fewer_matrices(matrix: tuple[str, int], data: st.DataObject) -> None:
    kind, count = matrix
    bits = 2 + count.bit_length()
    lanes = data.draw(st.lists(st.integers(0, 63), min_size=bits, max_size=bits))
    access = LinearLayout.from_bases(
        {"register": [(1,), (2,), (4,)], "lane": [(8 * lane,) for lane in lanes]}, {"offset": 512}
    )
    offsets = [2 * int(access.at(8 * lane)) for lane in range(1 << bits)]
    assert banks.layout_wavefronts(access, 16, kind) == judged("sm_90a", f"{kind}.x{count}", offsets)[0]


@given(SIDES, st.sampled_from((1, 2, 3)), st.sets(st.integers(0, 4), max_size=2), st.data())
def test_ranks_count_the_same_where_neighbours_share(
    kind: str, registers: int, alike: set[int], data: st.DataObject
) -> None:
    """Elements of 16 bits; lanes of a pair at one address, or of every second one."""
    step = 1 << registers
    places = data.draw(st.lists(st.integers(0, 63), min_size=5, max_size=5))
    lanes = [(0 if bit in alike else step * place,) for bit, place in enumerate(places)]
    bases = {"register": [(1 << bit,) for bit in range(registers)], "lane": lanes}
    access = LinearLayout.from_bases(bases, {"offset": 64 * step})
    offsets: list[int | None] = [2 * int(access.at(step * lane)) for lane in range(32)]
    assert banks.layout_wavefronts(access, 16, kind) == judged_vector(offsets, 16 * step, kind)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (([0] * 8, 32), "must have 32 integers"),
        (([0] * 4, 128, "ldmatrix"), "must have 8 or 16 or 32 integers"),
        (([0] * 31 + ["0"], 32), "'0' in lane 31"),
        (([0] * 31 + [True], 32), "True in lane 31"),
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
