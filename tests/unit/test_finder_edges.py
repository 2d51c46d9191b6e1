"""Finders at the edges of what is asked: the last number that is enough, the first that is not."""

from __future__ import annotations

import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.proofs.conversion_steps import Through
from layoutalg.synth import InadmissibleError, conversion
from layoutalg.synth.im2col.columns import columns, divisors
from layoutalg.synth.wgmma.plan import split_digits
from layoutalg.targets.nvidia import tensormap


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_a_map_is_admitted_on_bases_of_its_own_period_and_no_less(swizzle: str):
    """A tile of a given tensor in spans of a swizzle."""
    bits = ("32B", "64B", "128B").index(swizzle) + 1
    text = f"Sw<{bits},3,3> o 0 o (64,{8 << bits}):({8 << bits},1)"
    tensor = la.Tensor((1024, 512), dtype="bf16")
    for align in (64 << bits, 128 << bits, 256 << bits):
        answer = la.admissible(text, "tma", tensor=tensor, align_bytes=align)
        assert isinstance(answer, la.Admitted) == (align >= 128 << bits), answer
        plain = la.admissible(text, "tma", align_bytes=align)
        assert isinstance(plain, la.Admitted) == (align >= 128 << bits), plain
        if align >= 128 << bits:
            assert answer.descriptor.tensor_map.swizzle == swizzle


def test_as_many_copies_as_are_needed_are_enough():
    text, tensor = "(8,(64,2)):(64,(1,1024))", la.Tensor((1024, 512), dtype="bf16")
    needed = len(la.admissible(text, "tma", tensor=tensor).descriptor.issues)
    assert needed == 2
    assert la.admissible(text, "tma", tensor=tensor, issues=needed)
    assert not isinstance(la.admissible(text, "tma", tensor=tensor, issues=needed - 1), la.Admitted)


@pytest.mark.parametrize("number", [1, 7, 12, 64])
def test_divisors_go_up_to_the_most(number: int):
    for most in (1, 2, number - 1, number, number + 1):
        assert divisors(number, most) == [value for value in range(1, most + 1) if number % value == 0]


@pytest.mark.parametrize("swizzle", ["NONE", "32B", "64B", "128B"])
def test_columns_are_as_wide_as_a_span_and_as_aligned(swizzle: str):
    span = 64 if swizzle == "NONE" else tensormap.swizzle_span_bytes(swizzle)
    tile = np.arange(64 * span // 2).reshape(64, span // 2)
    period = 128 if swizzle == "NONE" else 8 * span
    offsets = tensormap.apply_swizzle(swizzle, 2 * tile) // 2
    found = columns(offsets, 2, period)
    assert isinstance(found, list)
    assert [(cut.swizzle, cut.pixels, cut.channels) for cut, _ in found][:1] == [(swizzle, 64, span // 2)]
    if period > 128:
        less = columns(offsets, 2, period // 2)
        assert not isinstance(less, list) or all(cut.swizzle != swizzle for cut, _ in less)


@pytest.mark.parametrize("seed", range(3))
def test_warps_that_hold_copies_wait_for_the_one_that_stores(seed: int):
    rng = random.Random(seed)
    total = 8
    while matrix.rank(columns := [rng.randrange(1, 1 << total) for _ in range(total)]) < total:
        pass
    source, destination = (
        LinearLayout.from_bases(
            {
                "register": [(image,) for image in images[:3]],
                "lane": [(image,) for image in images[3:]],
                "warp": [(0,)],
            },
            {"tile": 1 << total},
        )
        for images in ([1 << bit for bit in range(total)], columns)
    )
    plan = conversion(source, destination, 32)
    (step,) = (step for step in plan.steps if isinstance(step, Through))
    assert (step.store.idle, step.barrier) == (32, "block")
    plan.check()


@pytest.mark.parametrize("digits", [((4, 2), (2, 512)), ((2, 64), (3, 1024), (2, 8)), ((5, 3),), ()])
def test_increments_are_found_as_digits(digits: tuple[tuple[int, int], ...]):
    values = [0]
    for count, step in digits:
        values = [value + step * turn for turn in range(count) for value in values]
    assert split_digits(values) == digits
    if len(values) > 2:
        assert split_digits([*values[:-1], values[-1] + 1]) is None


def test_an_extent_of_one_has_no_neighbours_that_a_chunk_could_miss():
    found = la.suggest(((64, 1), (64, 64), "f16"), (64, 16), ["tma", "ldmatrix.x4"])
    assert (found.best.turns, len(found.best.plan.issues)) == (16, 1)
    for loser in found.losers:
        assert not loser.reason.startswith("admissible"), loser


def test_rows_of_the_tensor_are_tried_behind_thin_boxes():
    tile = "((2,8),(8,4)):((32,128),(1,8))"
    for documented_only in (False, True):
        plan = la.tensormap(
            ((48, 32), (32, 1), "u8"), (16, 32), tile, origin_multiple=(16, 32), documented_only=documented_only
        )
        assert (plan.oob, plan.undocumented, len(plan.issues)) == ("exact", (), 8)


def test_a_store_too_large_is_also_told_its_chunks():
    with pytest.raises(InadmissibleError) as refused:
        la.tensormap(
            ((8192, 65), (80, 1), "u8"), (4096, 64), "(4096,64):(64,1)", direction="store", bounds=((0, 8192), (0, 61))
        )
    assert {each.rule for each in refused.value.violations} == {"SMEM_CAP", "STORE_CHUNK"}
