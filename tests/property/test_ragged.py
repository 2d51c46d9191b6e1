"""Ragged families: every row of every group is copied as stated, counted and moved by the model of the engine."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.ragged import POOLED, STRATEGIES, RaggedCopy, RaggedFamily, RaggedRule, prove_coverage
from layoutalg.proofs.symbolic import SymbolicPlan
from layoutalg.synth import InadmissibleError, synthesize_ragged
from layoutalg.targets.nvidia import tensormap as hardware

ROWS, COLUMNS = 400, 64
RUNNABLE = tuple(strategy for strategy in STRATEGIES if strategy != "clip")
TWICE = ("auto", "overlap_pool", "shift_back")


@functools.cache
def family_of(strategy: str, tile: int, multiple: int) -> RaggedFamily:
    return synthesize_ragged(la.Tensor(("R", COLUMNS)), (tile, 64), strategy=strategy, multiple=multiple)


def judged(family: RaggedFamily, size: int, copies: list[RaggedCopy], start: int) -> None:
    """Count the rows that the copies of one group move."""
    count = np.zeros(size + family.tile_rows, dtype=int)
    for copy in copies:
        row = copy.row - (0 if family.strategy == "descriptors" else start)
        count[row : row + copy.rows] += 1
        assert copy.rows <= family.heights[copy.member]
        assert copy.shared_row + copy.rows <= family.tile_rows
        if family.strategy in POOLED and copy.member:
            assert copy.rows == family.heights[copy.member]
    assert not count[size:].any()
    assert (count[:size] >= 1).all()
    assert family.strategy in TWICE or (count[:size] == 1).all()
    assert bool(family.stated) or (count[:size] == 1).all()


@pytest.mark.parametrize("strategy", RUNNABLE)
@pytest.mark.parametrize(("tile", "multiple"), [(16, 1), (24, 1), (64, 1), (64, 8), (64, 48), (128, 16), (1, 1)])
def test_every_rest_is_copied(strategy: str, tile: int, multiple: int) -> None:
    family = family_of(strategy, tile, multiple)
    sizes = [size for size in range(0, 3 * tile + 1, multiple) if not 0 < size < family.least_rows]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups: list[list[RaggedCopy]] = [[] for _ in sizes]
    for copy in family.copies(sizes):
        groups[copy.group].append(copy)
    for group, size in enumerate(sizes):
        judged(family, size, groups[group], int(starts[group]))


@given(st.sampled_from(RUNNABLE), st.lists(st.integers(0, 300), max_size=8), st.sampled_from([(16, 1), (64, 8)]))
def test_copies_are_listed_group_by_group(strategy: str, sizes: list[int], how: tuple[int, int]) -> None:
    family = family_of(strategy, *how)
    sizes = [size // how[1] * how[1] for size in sizes]
    sizes = [0 if size < family.least_rows else size for size in sizes]
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    copies = family.copies(sizes)
    assert family.copies(offsets=ends) == copies
    assert len(copies) == len(list(copies)) == len(copies.columns["row"])
    if len(copies):
        assert copies[-1] == list(copies)[-1]
        assert copies[:1] == [copies[0]]
    alone = 0 if strategy == "descriptors" else 1
    single = [
        replace(copy, group=group, row=copy.row + alone * int(ends[group]))
        for group, size in enumerate(sizes)
        for copy in family.copies([size])
    ]
    assert copies == single


@given(st.lists(st.integers(-3, 200), min_size=1, max_size=6))
def test_the_first_wrong_size_is_named(sizes: list[int]) -> None:
    family = synthesize_ragged(la.Tensor((ROWS, COLUMNS)), (16, 64), strategy="shift_back", multiple=4)
    sums = np.cumsum(sizes)
    beyond = [place for place, size in enumerate(sizes) if size < 0 or sums[place] > ROWS]
    wrong = beyond or [place for place, size in enumerate(sizes) if size % 4 or 0 < size < 16]
    if wrong:
        with pytest.raises(MalformedError, match=rf"sizes\[{wrong[0]}\]"):
            family.copies(sizes)
    else:
        assert len(family.copies(sizes)) == sum(-(-size // 16) for size in sizes)


def test_groups_may_be_a_number_sizes_or_unknown() -> None:
    tensor = la.Tensor((ROWS, COLUMNS))
    assert la.ragged(tensor, None, (16, 64)).groups is None
    assert la.ragged(tensor, "G", (16, 64)).groups is None
    assert la.ragged(tensor, 3, (16, 64)).groups == 3
    known = la.ragged(tensor, np.array([5, 0, 70]), (16, 64))
    assert (known.groups, known.sizes) == (3, (5, 0, 70))
    assert known.copies() == known.copies([5, 0, 70])
    with pytest.raises(MalformedError, match="3 groups"):
        known.copies([1, 2])
    with pytest.raises(MalformedError, match=r"sizes\[1\]"):
        la.ragged(tensor, [5, ROWS], (16, 64))
    for wrong in (0, -1, 2.5, True, "2 groups", {1: 2}):
        with pytest.raises(MalformedError):
            la.ragged(tensor, wrong, (16, 64))  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="offsets"):
        known.copies([1], offsets=[0, 1])


def test_over_reads_are_stated() -> None:
    over = synthesize_ragged(la.Tensor((ROWS, COLUMNS)), (16, 64), strategy="overfetch", multiple=4)
    assert (over.over_read.rows, over.over_read.bytes, over.over_read.outside_bytes) == (12, 12 * 2 * COLUMNS, 0)
    assert "over-read" in str(over)
    assert la.ragged(la.Tensor((ROWS, COLUMNS)), None, (16, 64)).over_read.rows == 0
    assert synthesize_ragged(la.Tensor(("R", "K"), assume=("K % 8 == 0",)), (16, 64), strategy="overfetch",
                             ).over_read.bytes is None  # fmt: skip


@pytest.mark.parametrize("strategy", RUNNABLE)
@pytest.mark.parametrize("swizzle", ["Sw<3,3,3>", "Sw<0,3,3>"])
def test_the_engine_moves_every_row(strategy: str, swizzle: str) -> None:
    tile = 16
    smem = (
        la.parse(f"{swizzle} o 0 o ({tile},64):(64,1)")
        if swizzle != "Sw<0,3,3>"
        else la.CuteLayout((tile, 64), (64, 1))
    )
    family = synthesize_ragged(la.Tensor((ROWS, COLUMNS), dtype="u16"), (tile, 64), smem, strategy=strategy)
    values = np.arange(ROWS * COLUMNS, dtype=np.uint16).reshape(ROWS, COLUMNS)
    sizes = [37, 0, 16, 61, 33]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    table = np.asarray(smem.table(), dtype=np.int64).reshape((tile, 64), order="F")
    seen = np.zeros(ROWS, dtype=int)
    tiles: dict[tuple[int, int], np.ndarray] = {}
    for copy in family.copies(sizes):
        plan = family.plans[copy.member]
        base = 0
        if isinstance(plan, SymbolicPlan):
            plan, base = plan.specialise(n=sizes[copy.group]), int(starts[copy.group])
        first = base + copy.row
        key = (copy.group, first - copy.shared_row)
        image = tiles.setdefault(key, np.full(8192, 255, dtype=np.uint8))
        memory = values[base:].reshape(-1).view(np.uint8)
        for issue, coords in zip(plan.issues, plan.coordinates((copy.row, 0)), strict=True):
            place = copy.shared_row * 128 + issue.smem_offset_bytes
            hardware.tile_load(plan.tensor_map, coords, memory, image, place)
        got = image.view(np.uint16)[table[copy.shared_row : copy.shared_row + copy.rows]]
        assert (got == values[first : first + copy.rows]).all()
        seen[first : first + copy.rows] += 1
    used = sum(sizes)
    assert not seen[used:].any()
    assert (seen[:used] >= 1).all() if strategy in TWICE else (seen[:used] == 1).all()


def test_a_hole_an_overlap_and_a_foreign_row_are_refuted() -> None:
    family = synthesize_ragged(la.Tensor((ROWS, COLUMNS)), (16, 64), strategy="exact_pool")
    assert isinstance(prove_coverage(family), Proved)
    head, *tail = family.rules
    for rules, what in (
        ((head, *tail[:-1], tail[0]), "twice|not copied"),
        ((head, *[RaggedRule(rule.rows, rule.text.replace("j < ", "1 + j < ")) for rule in tail]), "not copied"),
        (
            (head, *[RaggedRule(rule.rows, rule.text.replace("+ j]", "+ j + 1]")) for rule in tail]),
            "not copied|foreign",
        ),
    ):
        verdict = prove_coverage(replace(family, rules=rules))
        assert isinstance(verdict, Refuted), what
    assert isinstance(prove_coverage(replace(family, stated="rows are left out")), Refuted)
    twice = synthesize_ragged(la.Tensor((ROWS, COLUMNS)), (16, 64), strategy="shift_back")  # that is stated, only that
    beyond = RaggedRule(16, twice.rules[-1].text.replace("+ j]", "+ j + 1]"))
    verdict = prove_coverage(replace(twice, rules=(*twice.rules, beyond)))
    assert isinstance(verdict, Refuted)
    assert verdict.witness["what"] == "a foreign row is copied"


def test_refusals() -> None:
    tensor = la.Tensor((ROWS, COLUMNS))
    with pytest.raises(InadmissibleError, match="STORE"):
        synthesize_ragged(tensor, (16, 64), strategy="overfetch", direction="store")
    with pytest.raises(InadmissibleError, match="SMEM_ALIGN"):
        synthesize_ragged(tensor, (16, 32), la.CuteLayout((16, 32), (32, 1)), strategy="exact_pool")
    with pytest.raises(InadmissibleError, match="BASE_ALIGN"):
        synthesize_ragged(la.Tensor((ROWS, 3), dtype="f16"), (16, 3), strategy="descriptors")
    with pytest.raises(MalformedError, match="LA865"):
        synthesize_ragged(tensor, (16, 64), axis=1)
    with pytest.raises(MalformedError, match="LA865"):
        synthesize_ragged(tensor, (16, 64), strategy="shift_back").copies([8])
    stored = synthesize_ragged(tensor, (16, 64), strategy="exact_pool", direction="store")
    assert isinstance(stored, RaggedFamily)
    assert stored.stated == ""


def test_sizes_of_groups_are_checked_before_copies_are_listed():
    rows = {"auto": 961, "descriptors": 2**70, "exact_pool": 961, "overlap_pool": 961, "shift_back": 2**70}
    for strategy, size in rows.items():
        family = synthesize_ragged(la.Tensor((1024, 512)), (64, 64), strategy=strategy)
        assert family.copies([512, 512])
        with pytest.raises(la.MalformedError, match="the end of the tensor"):
            family.copies([64, size])
    named = synthesize_ragged(la.Tensor(("R", 512)), (64, 64), strategy="exact_pool")
    with pytest.raises(la.MalformedError, match="the end of the tensor"):
        named.copies([2**70])
    with pytest.raises(la.MalformedError, match=r"sizes\[1\]"):
        named.copies([2, -1])
