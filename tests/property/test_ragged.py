"""Ragged families: every row of every group is copied as stated, counted and moved by the model of the engine."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.ragged import STRATEGIES, RaggedFamily, RaggedRule, prove_coverage
from layoutalg.proofs.symbolic import SymbolicPlan
from layoutalg.synth import InadmissibleError, synthesize_ragged
from layoutalg.targets.nvidia import tensormap as hardware

ROWS, COLUMNS = 400, 64
RUNNABLE = tuple(strategy for strategy in STRATEGIES if strategy != "clip")
TWICE = ("auto", "overlap_pool", "shift_back")


def sizes_of(source: random.Random, least: int) -> list[int]:
    sizes: list[int] = []
    while sum(sizes) < ROWS:
        size = source.choice((0, source.randrange(1, 20), source.randrange(1, 150)))
        if size == 0 or size >= least:
            sizes.append(min(size, ROWS - sum(sizes)) if ROWS - sum(sizes) >= least else 0)
        if ROWS - sum(sizes) < least:
            break
    return sizes


@pytest.mark.parametrize("strategy", RUNNABLE)
@pytest.mark.parametrize("tile", [16, 24, 64])
def test_rows_are_counted(strategy: str, tile: int) -> None:
    family = synthesize_ragged(la.Tensor(("R", COLUMNS)), (tile, 64), strategy=strategy)
    source = random.Random(f"{strategy} {tile}")
    for _ in range(20):
        sizes = sizes_of(source, family.least_rows)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        for group, size in enumerate(sizes):
            count = np.zeros(size + tile, dtype=int)
            for copy in family.copies(sizes):
                if copy.group == group:
                    row = copy.row - (0 if strategy == "descriptors" else int(starts[group]))
                    count[row : row + copy.rows] += 1
                    assert copy.rows <= family.heights[copy.member]
                    assert copy.shared_row + copy.rows <= tile
            assert not count[size:].any()
            if strategy in TWICE:
                assert (count[:size] >= 1).all()
            else:
                assert (count[:size] == 1).all()


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
        with pytest.raises(la.MalformedError, match="rows of the tensor"):
            family.copies([64, size])
    named = synthesize_ragged(la.Tensor(("R", 512)), (64, 64), strategy="exact_pool")
    with pytest.raises(la.MalformedError, match="rows of the tensor"):
        named.copies([2**70])
    with pytest.raises(la.MalformedError, match=r"sizes\[1\]"):
        named.copies([2, -1])
