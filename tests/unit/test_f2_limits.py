"""F2 and hierarchical layouts: lists and tables bounded in bytes before they are made, caches too, a clock inside."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from layoutalg import f2
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.hierarchy import DigitMap


def dense(bits: int, seed: int) -> LinearLayout:
    source = random.Random(seed)
    columns = tuple([source.getrandbits(bits) | 1 << k for k in range(bits)])
    return LinearLayout((("i", bits),), (("o", bits),), columns)


def test_what_would_be_too_large_is_refused_before_it_is_made():
    identity = LinearLayout.from_bases({"i": [(1 << k,) for k in range(40)]}, {"o": 1 << 40})
    start = time.process_time()
    for make in (
        lambda: identity.apply({"i": range(10**9)}),
        lambda: identity.apply({"i": np.broadcast_to(np.int64(1), (1 << 17, 1 << 9))}),
        lambda: DigitMap(((2**40, 1),)).apply(range(10**9)),
    ):
        with pytest.raises(BudgetError, match="LA002"):
            make()
    assert time.process_time() - start < 2


def test_a_cached_elimination_is_the_one_without_the_cache():
    for bits in (60, 200):
        columns = dense(bits, 7).columns
        assert matrix.eliminate(columns) is matrix.eliminate(columns)
        assert matrix.eliminate(columns) == matrix.eliminate_uncached(columns)


def test_an_elimination_asks_the_clock():
    layout = dense(5_000, 1)
    start = time.process_time()
    with clock.within(0.3), pytest.raises(BudgetError, match="LA001"):
        _ = layout.rank
    assert time.process_time() - start < 0.3 * 1.5 + 0.2 + 1


def test_no_axis_grows_beyond_what_can_be_printed() -> None:
    half = f2.zeros_1d(2, "i", "o", 1 << 7000)
    for call in (
        lambda: half * half,
        lambda: half * f2.rename_ins(half, {"i": "j"}),
        lambda: f2.flatten_outs(half * f2.rename_outs(half, {"o": "p"})),
        lambda: f2.ensure_not_smaller(half, {"o": 1 << 14000}),
        lambda: f2.strided_1d(1 << 7000, 1 << 7000, "i", "o"),
    ):
        with pytest.raises(LayoutError, match="at most 13000 bits"):
            call()
    assert f2.parse_linear(str(half)) == half


def test_objectives_have_an_order() -> None:
    part = LinearLayout.from_bases({"i": [(1,)]}, {"o": 2})
    found = f2.solve(LinearLayout.from_bases({"lane": [(1,)], "warp": [(1,)]}, {"o": 2}), part)
    with pytest.raises(LayoutError, match="must be ordered"):
        found.choose({"lane", "warp"})  # type: ignore[arg-type]
