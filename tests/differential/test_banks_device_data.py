"""The bank model against wavefronts that hardware counters saw; no GPU needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instruments.bank_probe import KINDS as PROBED

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia import banks

with np.load(Path(__file__).parents[1] / "data/measured/banks_dev.npz") as stored:
    RECORD = dict(stored)


@pytest.mark.parametrize("kind", banks.KINDS)
def test_every_recorded_access_takes_the_turns_the_model_says(kind: str) -> None:
    chosen = np.flatnonzero(RECORD["kind"] == list(PROBED).index(kind))
    assert len(chosen) >= 150
    column = 0 if kind in ("load", "ldmatrix") else 1
    seen = set()
    for row in chosen:
        bits, counted = int(RECORD["bits"][row]), int(RECORD["wavefronts"][row, column])
        assert banks.wavefronts(RECORD["offsets"][row], bits, kind) == counted
        seen.add(counted)
        if RECORD["linear"][row]:
            assert banks.layout_wavefronts(linear(RECORD["offsets"][row], bits), min(bits, 32), kind) == counted
    assert len(seen) > 4


def linear(offsets: np.ndarray, bits: int) -> LinearLayout:
    """The linear layout of recorded offsets: words of a lane, or one narrow element, then lanes."""
    count = max(1, bits // 32)
    elements = offsets.astype(np.int64) // min(bits // 8, 4)
    columns = {"register": [(1 << i,) for i in range(count.bit_length() - 1)]}
    columns["lane"] = [(int(elements[1 << bit]),) for bit in range(5)]
    assert elements[0] == 0
    return LinearLayout.from_bases(columns, {"offset": 1 << 16})


def turns(offsets: list[int], size: int, groups: int) -> int:
    """One group after the other; in each the busiest bank's words, by sets."""
    total = 0
    for first in range(0, 32, 32 // groups):
        words: dict[int, set[int]] = {}
        for offset in offsets[first : first + 32 // groups]:
            for byte in range(offset, offset + size):
                words.setdefault(byte // 4 % 32, set()).add(byte // 4)
        total += max(len(found) for found in words.values())
    return total


@settings(max_examples=120)
@given(st.data())
def test_ranks_and_sets_count_the_same(data: st.DataObject) -> None:
    element_bits = data.draw(st.sampled_from([8, 16, 32, 64]))
    most = 128 // element_bits
    registers = data.draw(st.sampled_from([r for r in (1, 2, 4, 8, 16) if r <= most]))
    kind = data.draw(st.sampled_from(["load", "store"]))
    # lanes that share an address with lane ^ 1 or lane ^ 2 are what a load treats otherwise
    lanes = data.draw(st.lists(st.just(0) | st.integers(0, 127), min_size=5, max_size=5))
    constant = data.draw(st.integers(0, 127)) * registers
    bases = {"register": [(1 << i,) for i in range(registers.bit_length() - 1)]}
    bases["lane"] = [(registers * value,) for value in lanes]
    access = LinearLayout.from_bases(bases, {"offset": 1 << 11}, (constant,))
    size = element_bits * registers // 8
    offsets = [int(access.at(lane * registers)) * element_bits // 8 for lane in range(32)]
    groups = max(1, size // 4)
    if groups > 1 and kind == "load" and any(all(offsets[i] == offsets[i ^ s] for i in range(32)) for s in (1, 2)):
        groups //= 2
    wanted = turns(offsets, size, groups)
    assert banks.layout_wavefronts(access, element_bits, kind) == wanted
    assert banks.wavefronts(offsets, size * 8, kind) == wanted


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (([0] * 31, 32), "32 integers"), (([0.5] * 32, 32), "32 integers"), (([2] * 32, 32), "multiples of 4"),
        (([-4] * 32, 32), "non-negative"), (([0] * 32, 24), "one of (8, 16, 32, 64, 128)"),
        (([0] * 32, 64, "ldmatrix"), "one of (128,)"), (([0] * 32, 32, "atomic"), "kind must be one of"),
        (([0] * 32, True), "access_bits must be"), (([[0], [1, 2]], 32), "32 integers"),
        (([0] * 32, 32, np.array(["load"])), "kind must be one of"), (([2**63] * 32, 32), "below 2**62"),
    ],
)  # fmt: skip
def test_misuse_is_named(arguments: tuple[Any, ...], rule: str) -> None:
    with pytest.raises(MalformedError, match=re.escape(rule)):
        banks.wavefronts(*arguments)


def test_numpy_integers_of_any_width_are_taken() -> None:
    for kind in (np.uint64, np.int8, np.uint32):
        assert banks.wavefronts(np.arange(32).astype(kind) * kind(4), np.int64(32)) == 1


@pytest.mark.parametrize(
    ("bases", "rule"),
    [
        ({"lane": [(1,)] * 5}, "'register' and 'lane'"),
        ({"register": [], "lane": [(1,)] * 4}, "32 lanes"),
        ({"register": [(2,)], "lane": [(4,)] * 5}, "contiguous"),
        ({"register": [(1,)], "lane": [(4,)] * 4 + [(1,)]}, "contiguous"),
    ],
)  # fmt: skip
def test_layouts_that_are_no_access_are_named(bases: dict[str, Any], rule: str) -> None:
    with pytest.raises(MalformedError, match=re.escape(rule)):
        banks.layout_wavefronts(LinearLayout.from_bases(bases, {"offset": 8}), 32)
