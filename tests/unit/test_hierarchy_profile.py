"""Level profiles, normal forms and exchange plans: worked conversions of real tiles, refusals."""

from __future__ import annotations

import random
import re
import time

import numpy as np
import numpy.typing as npt
import pytest

from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError, RepresentabilityError
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    HierarchicalLayout,
    distribute,
    exchange_plan,
    hierarchy,
    level_profile,
    preserves_blocks,
    profile_of,
    reindex,
    reshape,
    restrict,
)

TENSOR = Box.of(col=64, row=64)
BLOCKED = distribute(TENSOR, register=[("col", 8), ("row", 4)], lane=[("col", 8), ("row", 4)], warp=[("row", 4)])


def accumulator() -> HierarchicalLayout:
    """A warp-group accumulator: pairs of columns, two row halves, then four lanes a row, eight rows, four warps."""
    modes = ((2, 1), (2, 8 * 64), (8, 8), (4, 2), (8, 64), (4, 16 * 64))
    return HierarchicalLayout(hierarchy(register=32, lane=32, warp=4), TENSOR, DigitMap(modes))


def test_from_the_accumulator_to_a_blocked_tile_shuffles_do() -> None:
    profile = level_profile(accumulator(), BLOCKED)
    assert profile.mechanism == "shuffle"
    assert [entry.rank for entry in profile.cuts] == [4, 0, 0, 0]
    assert profile.traffic == {"register": 128, "shuffle": 3968, "shared": 0, "cluster": 0, "global": 0}
    assert preserves_blocks(BLOCKED.inverse() @ accumulator(), "lane|warp")


def test_a_transpose_between_warps_needs_shared_memory() -> None:
    columns = distribute(TENSOR, register=[("row", 8), ("col", 4)], lane=[("row", 8), ("col", 4)], warp=[("col", 4)])
    profile = level_profile(BLOCKED, columns)
    assert profile.mechanism == profile.intrinsic == "shared"
    assert profile.at("lane|warp").fanout == (4, 4)
    assert profile.at("lane|warp").moved == 3 * 1024


def test_renumbering_lanes_costs_nothing_intrinsically_but_shuffles_in_place() -> None:
    box = hierarchy(register=4, lane=32, warp=2)
    reversed_lanes = reindex(box, list(reversed(range(32))), ("lane",))
    profile = profile_of(reversed_lanes)
    assert (profile.intrinsic, profile.mechanism) == ("register", "shuffle")
    assert profile.at("register|lane").rank == 0
    assert profile.at("register|lane").moved == box.size


def test_each_level_has_its_mechanism() -> None:
    box = hierarchy(register=3, lane=4, warp=3, cta=2, cluster=5)
    found = {}
    for level in box.names:
        shift = [(k + 1) % box.dims[level] for k in range(box.dims[level])]
        found[level] = profile_of(reindex(box, shift, (level,))).mechanism
    assert found == {
        "register": "register",
        "lane": "shuffle",
        "warp": "shared",
        "cta": "cluster",
        "cluster": "global",
    }
    assert profile_of(reshape(box, box)).mechanism == "register"


def test_a_ragged_tile_counts_only_what_is_real() -> None:
    levels = hierarchy(lane=8, register=4)
    tensor = Box.of(x=32)
    blocked = restrict(HierarchicalLayout(levels, tensor, DigitMap(((32, 1),))), target={"x": 5})
    striped = HierarchicalLayout(levels, tensor, DigitMap(((4, 8), (8, 1))))
    profile = level_profile(blocked, striped)
    assert profile.active == 5
    assert profile.at("register|lane").fanout == (1, 4)
    # element k sits in lane k // 4 and must be in lane k: only element 0 stays
    assert profile.at("register|lane").moved == 4
    assert str(profile).splitlines()[0] == "shuffle: 5 values"
    assert level_profile(restrict(blocked, target={"x": 0}), striped).active == 0


def test_guards_can_leave_two_lanes_feeding_one() -> None:
    swap = reindex(hierarchy(register=2, lane=2), [0, 2, 1, 3])
    profile = profile_of(restrict(swap, source={"register": 1}))
    assert profile.intrinsic == "shuffle"
    assert str(profile).splitlines()[1] == "  register|lane: 1 moved, each block feeds 1, reads 2 of 2"


def test_a_profile_enumerates_its_points_once(monkeypatch: pytest.MonkeyPatch) -> None:
    box = hierarchy(register=4, lane=4, warp=3, cta=5, cluster=3)
    layout = HierarchicalLayout(box, box, DigitMap(((3, box.size // 3), (15, 1), (16, 15))))
    read, tables = HierarchicalLayout.table, list[HierarchicalLayout]()

    def counted(self: HierarchicalLayout) -> npt.NDArray[np.int64]:
        tables.append(self)
        return read(self)

    monkeypatch.setattr(HierarchicalLayout, "table", counted)
    monkeypatch.delattr(DigitMap, "table")
    guarded = restrict(layout, source={"lane": 3})
    for conversion in (layout, guarded, restrict(guarded, target={"cta": 4})):
        tables.clear()
        assert profile_of(conversion).at("cta|cluster").fanin == (3, 3)
        assert tables == [conversion]


def test_large_conversions_need_no_enumeration() -> None:
    box = hierarchy(register=32, lane=32, warp=15, cta=7, cluster=11 * 2**30)
    swapped = ((32, 32), (32, 1), (15, 1024), (7, 1024 * 15), (11, -(1024 * 105)), (2**30, 1024 * 105 * 11))
    profile = profile_of(HierarchicalLayout(box, box, DigitMap(swapped)))
    assert profile.mechanism == "global"
    assert profile.at("register|lane").fanout == (32, 32)
    # 11 values of the low digit of the cluster are reversed: only the middle one stays
    assert profile.at("cta|cluster").moved == box.size // 11 * 10
    generator = random.Random(5)
    columns = [1 << k for k in range(40)]
    for _ in range(400):
        a, b = generator.sample(range(40), 2)
        columns[a] ^= columns[b]
    bits = HierarchicalLayout(
        hierarchy(register=2**20, lane=32, warp=8, cta=16, cluster=256),
        Box.of(x=2**40),
        DigitMap.from_bits(tuple(columns)),
    )
    square = HierarchicalLayout(bits.source, bits.source, bits.map)
    start = time.process_time()
    plan = exchange_plan(square)
    assert time.process_time() - start < 2
    assert plan.product == tuple(columns)
    assert [plan.crossing(entry.cut) for entry in profile_of(square).cuts] == [e.rank for e in profile_of(square).cuts]


def test_a_plan_exchanges_only_bits_that_change_level() -> None:
    conversion = BLOCKED.inverse() @ accumulator()
    plan = exchange_plan(conversion)
    assert len(plan.exchanged) == 8
    assert plan.crossing("register|lane") == 4
    assert plan.crossing("lane|warp") == 0


def test_refusals() -> None:
    box = hierarchy(register=3, lane=2)
    crossing = HierarchicalLayout(box, box, DigitMap(((2, 3), (3, 1))))
    with pytest.raises(RepresentabilityError, match="no common refinement that respects the levels"):
        exchange_plan(crossing)
    square = hierarchy(register=4, lane=2)
    with pytest.raises(RepresentabilityError, match="LA758"):
        exchange_plan(reindex(square, [1, 2, 3, 4, 5, 6, 7, 0]))
    with pytest.raises(AdmissibilityError, match="LA753"):
        exchange_plan(restrict(reshape(square, square), source={"lane": 1}))
    with pytest.raises(AdmissibilityError, match="LA756"):
        preserves_blocks(reshape(box, hierarchy(register=2, lane=3)), "register|lane")
    with pytest.raises(AdmissibilityError, match=re.escape("one side has axes (x:4), expected ['register'")):
        preserves_blocks(reindex(Box.of(x=4), range(4)), "register|lane")
    with pytest.raises(AdmissibilityError, match="LA756"):
        profile_of(reshape(Box.of(x=6), Box.of(x=6)))
    with pytest.raises(AdmissibilityError, match="LA756") as caught:
        level_profile(reshape(box, Box.of(x=6)), reshape(hierarchy(register=2, lane=3), Box.of(x=6)))
    assert caught.value.diagnostic.witness == {"level": "register", "first": 3, "second": 2}
    with pytest.raises(AdmissibilityError, match="different tensors"):
        level_profile(reshape(box, Box.of(x=6)), reshape(box, Box.of(y=6)))
    plan = exchange_plan(reshape(square, square))
    for question in (plan.crossing, plan.fanout, plan.leaving, profile_of(reshape(square, square)).at):
        with pytest.raises(MalformedError, match=r"must be among .* not 'lane/warp'"):
            question("lane/warp")
    for place in (-1, 3):
        with pytest.raises(MalformedError, match=re.escape(f"must be in [0, 3), not {place}")):
            plan.level_of(place)
    huge = hierarchy(register=2, lane=3, warp=2**20)
    with pytest.raises(BudgetError, match="LA754"):
        profile_of(HierarchicalLayout(huge, huge, DigitMap(((3, 2), (2, 1), (2**20, 6)))))
