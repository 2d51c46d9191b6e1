"""``la.banks`` of named accesses to tiles of any extents against words and banks counted one lane at a time."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import layoutalg as la


def turns(starts: list[int], size: int) -> int:
    """Turns of one instruction of an NVIDIA warp: 32 lanes of 4 bytes, 16 of 8 or 8 of 16 are served together."""
    together, total = 128 // max(4, size), 0
    for first in range(0, len(starts), together):
        words = {(start + byte) // 4 for start in starts[first : first + together] for byte in range(size)}
        banks = [word % 32 for word in words]
        total += max(map(banks.count, banks))
    return total


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5), st.booleans())
def test_matrices_of_any_tile(high: int, wide: int, pad: int, turned: bool) -> None:
    pitch = 8 * (wide + pad)
    assume(not (high & (high - 1) == 0 and wide & (wide - 1) == 0))
    report = la.banks("ldmatrix" + ".trans" * turned, f"({8 * high},{8 * wide}):({pitch},1)")
    matrices = [(8 * i, 8 * j) for i in range(high) for j in range(wide)]
    assert report.turns == sum(
        turns([2 * ((row + lane) * pitch + column) for lane in range(8)], 16) for row, column in matrices
    )
    assert report.ideal == len(matrices)
    if report.cure is not None:
        assert la.banks("ldmatrix" + ".trans" * turned, report.cure).conflict_free


@settings(max_examples=80)
@given(st.integers(1, 96), st.integers(1, 12), st.integers(0, 9), st.sampled_from(["rows", "rows:store", "columns:1"]))
def test_rows_and_columns_of_any_tile(high: int, wide: int, pad: int, name: str) -> None:
    pitch, size = 4 * (wide + pad), 4 if name == "columns:1" else 16
    assume(high & (high - 1) or wide & (wide - 1))
    shared = f"({high},{4 * wide}):({pitch},1)"
    if name == "columns:1":
        lines = [[(row, column) for row in range(high)] for column in range(4 * wide)]
        lines = lines if high >= 32 else [[place for line in lines for place in line]]
    else:
        lines = [[(row, 4 * part) for row in range(high) for part in range(wide)]]
    if any(len(line) % 32 for line in lines):
        with pytest.raises(la.MalformedError, match=r"(?s)LA713.*all lanes active"):
            la.banks(name, shared, 32)
        return
    starts = [4 * (row * pitch + column) for line in lines for row, column in line]
    counted = sum(turns(starts[at : at + 32], size) for at in range(0, len(starts), 32))
    assert la.banks(name, shared, 32).turns == counted
