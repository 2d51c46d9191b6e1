"""What an optimum is said to be the least of is counted member by member, and what is named as better by the judge."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.cli import main
from layoutalg.f2 import LinearLayout
from layoutalg.proofs.swizzling import SwizzlePlan, TileAccess
from tests.judges import swizzle_spaces as judge

TARGET = "sm_90a"


def accesses_of(rng: np.random.Generator, rows: int, columns: int, many: int) -> list[TileAccess]:
    """Loads that hold every element of a tile of 2^rows x 2^columns once, its bits dealt to registers and lanes."""
    found = []
    for _ in range(many):
        images = tuple(1 << int(place) for place in rng.permutation(rows + columns))
        axes = (("register", rows + columns - 5), ("lane", 5))
        found.append(TileAccess(LinearLayout(axes, (("row", rows), ("col", columns)), images), "load"))
    return found


def judged(plan: SwizzlePlan, members: np.ndarray) -> np.ndarray:
    """Turns of all accesses of a plan behind each member, -1 where one is not moved."""
    total = np.zeros(len(members), dtype=np.int64)
    for access in plan.accesses:
        held = judge.table(access.registers, access.lanes, access.warps, access.layout.constant)
        turns = judge.turns_of(members, held, access.kind, plan.element_bits, TARGET)
        total = np.where((total < 0) | (turns < 0), -1, total + turns)
    return total


def least(plan: SwizzlePlan, parts: Iterator[np.ndarray]) -> int:
    """The fewest turns of all members."""
    return min(int(turns) for part in parts for turns in judged(plan, part) if turns >= 0)


def own(plan: SwizzlePlan) -> np.ndarray:
    """The layout as the only member."""
    return np.asarray(plan.smem.table(), dtype=np.int64).reshape(1, -1)


def chunk(plan: SwizzlePlan) -> int:
    return (8 * plan.chunk_bytes // plan.element_bits).bit_length() - 1


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    tile=st.sampled_from([(4, 3), (3, 4), (3, 5), (5, 2)]),
    bits=st.sampled_from([16, 32]),
    asked=st.sampled_from([("xor", 16), ("xor", 8), ("cute", 16), ("tma", 16)]),
)
def test_an_optimum_is_that_of_the_class_it_names_and_a_better_one_is_counted_right(seed, tile, bits, asked):
    form, chunk_bytes = asked
    accesses = accesses_of(np.random.default_rng(seed), *tile, 2)
    plan = la.swizzle(accesses, TARGET, bits, form, chunk_bytes=chunk_bytes, seconds=60).check()
    classes = {
        "xor": lambda: judge.xors(*tile, chunk(plan)),
        "cute": lambda: judge.cutes(*tile),
        "tma": lambda: judge.hardware(*tile, bits),
    }
    fewest = {name: least(plan, members()) for name, members in classes.items()}
    assert plan.optimal
    assert plan.turns == fewest[form]
    assert f"the minimum over all {plan.space}:" in str(plan)
    assert plan.space.startswith(
        {"xor": f"XORs of {chunk_bytes}-byte chunks", "cute": "Sw<B,M,S>", "tma": "boxes"}[form]
    )
    for other in plan.better:
        assert isinstance(other, SwizzlePlan)
        assert other.accesses == plan.accesses
        assert judged(plan, own(other)).tolist() == [other.turns]
        assert (other.form, other.chunk_bytes) != (form, chunk_bytes)
        assert f"better        {other.turns} turns with form {other.form}" in str(plan)
    assert min([plan.turns, *(other.turns for other in plan.better)]) <= min(fewest.values())


def test_what_a_narrow_form_misses_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    plan = la.swizzle(["rows:store", "columns"], TARGET, 32, "xor", tile=(128, 8))
    assert (plan.turns, plan.optimal) == (160, True)
    lines = str(plan).splitlines()
    claim = "the minimum over all XORs of 16-byte chunks with a linear map of the row number"
    assert lines[3].startswith(f"turns         160, {claim}: ")
    assert lines[4] == "better        64 turns with form tma: Sw<3,2,3> o 0 o ((32,4),8):((1,256),32)"
    assert [each.turns for each in plan.better] == [64, 64]
    assert [judged(plan, own(each)).tolist() for each in plan.better] == [[64], [64]]
    assert "64 turns with form tma" in la.draw.svg(plan)
    words = ["swizzle", "rows:store", "columns", "--tile", "128,8", "--bits", "32", "--form", "xor"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["space"] == plan.space
    assert [(each["form"], each["turns"]) for each in document["better"]] == [("tma", 64), ("any", 64)]
    again = pickle.loads(pickle.dumps(plan))
    assert (again, again.better) == (plan, plan.better)


def test_nothing_is_named_where_no_layout_takes_fewer_turns() -> None:
    for form in ("any", "tma", "cute", "xor"):
        plan = la.swizzle(["rows", "ldmatrix"], tile=(64, 64), form=form)
        assert (plan.conflict_free, plan.elsewhere, plan.better) == (True, None, ())


def test_smaller_chunks_are_better_where_they_are() -> None:
    plan = la.swizzle(["rows", "columns"], TARGET, 16, "xor", tile=(128, 8))
    finer = [each for each in plan.better if each.form == "xor"]
    assert all(each.chunk_bytes < 16 and each.turns < plan.turns for each in finer)
    assert plan.better[0].turns == 32 < plan.turns == 528


@pytest.mark.parametrize(
    ("shape", "accesses", "bits"),
    [
        ((64, 64), ["store rows:8", "columns:1"], 16),
        ((32, 32), ["rows:4", "columns:1"], 32),
        ((16, 64), ["rows:8", "along 0:2"], 16),
    ],
)
def test_swizzles_that_beat_a_padding_are_named_and_hold_the_same_registers(shape, accesses, bits):
    plan = la.padding(shape, accesses, TARGET, bits).check()
    assert plan.optimal
    assert f"{plan.turns}, the minimum over all pitches: " in str(plan)
    best = plan.better[0]
    assert isinstance(best, SwizzlePlan)
    assert judged(best, own(best)).tolist() == [best.turns]
    assert best.turns < plan.turns
    for cells, moved in zip(plan.accesses, best.accesses, strict=True):
        vector = cells.bits // bits
        by_lane = [{cell + step for cell in lanes for step in range(vector)} for lanes in np.transpose(cells.cells)]
        table = judge.table(moved.registers, moved.lanes, moved.warps, moved.layout.constant)[0]
        held = [{element % shape[0] * shape[1] + element // shape[0] for element in lane} for lane in table.tolist()]
        assert held == by_lane
        assert moved.kind == cells.kind


def test_paddings_without_conflicts_and_odd_tiles_name_no_swizzle() -> None:
    assert la.padding((32, 32), ["store rows:1", "columns:1"], element_bits=32).better == ()
    odd = la.padding((48, 48), ["rows:8", "columns:1"])
    assert not odd.conflict_free
    assert not any(isinstance(each, SwizzlePlan) for each in odd.better)
