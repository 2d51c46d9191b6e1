"""Copies of runs of bytes against byte-by-byte copying, and refusals against all ways to cut a small tile."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.bulk import BulkPlan
from layoutalg.targets.nvidia.bulk import INSTRUCTIONS, REDUCTIONS, instruction

SIZES = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}


def ran(plan: BulkPlan, memory: np.ndarray, image: np.ndarray) -> None:
    """Run the copies."""
    for start, to, many in plan.copies:
        assert start % 16 == to % 16 == many % 16 == 0
        image[to : to + many] = memory[start : start + many]


def drawn(rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...], np.ndarray, str]:
    """Return a tile, the tensor's strides, shared offsets and an element type."""
    dtype = rng.choice(tuple(SIZES))
    chunk = 16 // SIZES[dtype]
    tile = (rng.choice((1, 2, 4)), rng.choice((chunk, 2 * chunk, 3 * chunk, chunk // 2 or 1)))
    pitch = rng.choice((tile[1], 2 * chunk, 4 * chunk, 4 * chunk + rng.choice((0, 1))))
    strides = rng.choice(((pitch, 1), (1, tile[0]), (pitch, 1)))
    style = rng.randrange(4)
    rows, columns = np.indices(tile)
    if style == 0:
        offsets = rows * rng.choice((tile[1], tile[1] + chunk, tile[1] + 1)) + columns
    elif style == 1:
        offsets = columns * tile[0] + rows
    elif style == 2:
        many = max(1, tile[1] // chunk)
        offsets = (
            (columns // chunk * tile[0] + rows) * chunk + columns % chunk if tile[1] % chunk == 0 else rows + columns
        )
        order = rng.sample(range(many * tile[0]), many * tile[0])
        offsets = np.array(order)[offsets // chunk % len(order)] * chunk + offsets % chunk
    else:
        offsets = np.array(rng.sample(range(math.prod(tile)), math.prod(tile))).reshape(tile)
    return tile, strides, offsets, dtype


def possible(source: np.ndarray, places: np.ndarray, size: int) -> bool:
    """Whether every element lies in a chunk of 16 bytes that is aligned, full and alike on both sides."""
    by_place = {int(place): int(start) for place, start in zip(places.flat, source.flat, strict=True)}
    if len(by_place) < places.size:
        return False
    for place in by_place:
        first = place // 16 * 16
        held = [by_place.get(at) for at in range(first, first + 16, size)]
        if held[0] is None or held[0] % 16 or held != list(range(held[0], held[0] + 16, size)):
            return False
    return True


def test_plans_move_every_byte_and_refusals_are_right():
    rng, seen = random.Random(5), {True: 0, False: 0}
    for _ in range(400):
        tile, strides, offsets, dtype = drawn(rng)
        size = SIZES[dtype]
        answer = la.admissible(offsets, "bulk", dtype=dtype, tensor=(tile, strides, dtype))
        points = np.indices(tile)
        source = sum(point * stride for point, stride in zip(points, strides, strict=True)) * size
        assert bool(answer) == possible(source, offsets * size, size)
        seen[bool(answer)] += 1
        if answer:
            memory = np.random.default_rng(1).integers(0, 256, int(source.max()) + 32, dtype=np.uint8)
            image = np.zeros(int(offsets.max() + 1) * size, dtype=np.uint8)
            ran(answer.descriptor, memory, image)
            for byte in range(size):
                assert np.array_equal(image[offsets * size + byte], memory[source + byte])
            if len(set(source.flat)) == source.size:
                assert np.array_equal(answer.descriptor.layout().table(), offsets.reshape(-1, order="F"))
            assert answer.certificate.check()
            assert answer.descriptor.expect_tx_bytes == offsets.size * size
    assert min(seen.values()) > 60


def test_without_a_tensor_the_answer_is_that_of_some_tensor():
    rng, seen = random.Random(6), {True: 0, False: 0}
    for _ in range(40):
        tile, _, offsets, dtype = drawn(rng)
        size = SIZES[dtype]
        answer = la.admissible(offsets, "bulk.store", dtype=dtype)
        chunk = 16 // size
        points = np.indices(tile)
        some = False
        for pitch in itertools.product(range(-chunk, 3 * chunk + 1), repeat=2):
            source = sum(point * stride for point, stride in zip(points, pitch, strict=True)) * size
            # the tensor's first element may lie anywhere: what matters is that all chunks agree
            first = int(source.flat[int(np.argmin(offsets))])
            some = possible(source - first + (int(offsets.min()) * size % 16), offsets * size, size)
            if some:
                break
        assert bool(answer) == some
        seen[bool(answer)] += 1
    assert min(seen.values()) > 5


@pytest.mark.parametrize(
    ("layout", "options", "rule"),
    [
        ("(8,64):(65,1)", {}, "BULK_CONTIGUOUS"),
        ("(8,4):(4,1)", {"tensor": ((8, 4), (36, 1), "bf16")}, "BULK_CONTIGUOUS"),
        ("(8,64):(64,1)", {"tensor": ((64, 64), (68, 1), "bf16")}, "BULK_ALIGN"),
        ("(8,64):(64,1)", {"issues": 3, "tensor": ((8, 64), (128, 1), "bf16")}, "BULK_COPIES"),
        ("(1,4):(4,1)", {}, "BULK_SIZE"),
        ("(8,64):(64,1)", {"tensor": ((20, 64), None, "bf16")}, "BULK_BOUNDS"),
        ("(8,64):(64,1)", {"tensor": ((4, 64), None, "bf16")}, "BULK_BOUNDS"),
        ("(8,64):(64,1)", {"align_bytes": 8}, "BULK_ALIGN"),
        ("(8,64):(64,1)", {"tensor": la.Tensor((8, 64), None, "bf16", 8)}, "BULK_ALIGN"),
    ],
)
def test_refusals_name_the_rule(layout, options, rule):
    assert la.admissible(layout, "bulk", **options).rules == (rule,)


def test_reductions_have_the_element_types_of_the_table():
    for name, kinds in REDUCTIONS.items():
        for dtype in ("u8", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64"):
            answer = la.admissible("(8,64):(64,1)", f"bulk.reduce.{name}", dtype=dtype)
            assert bool(answer) == (dtype in kinds)
            assert answer or answer.rules == ("BULK_REDUCE_DTYPE",)


def test_targets_without_it_are_refused_and_multicast_counts_blocks():
    assert la.admissible("(8,64):(64,1)", "bulk", "sm_80").rules == ("NO_BULK",)
    assert la.admissible("(8,64):(64,1)", "bulk.multicast", ctas=4).descriptor.ctas == 4
    assert la.admissible("(8,64):(64,1)", "tma.multicast").evidence == "measured"
    for wrong in (
        {"consumer": "bulk.prefetch"},
        {"consumer": "bulk", "ctas": 2},
        {"consumer": "bulk.multicast", "ctas": 17},
    ):
        with pytest.raises(MalformedError):
            la.admissible("(8,64):(64,1)", **wrong)


@pytest.mark.parametrize(
    "copies", [((0, 0, 16),), ((0, 0, 32), (0, 32, 32)), ((0, 1, 32),), ((0, 0, 0),), ((0, -16, 32),)]
)
def test_a_plan_that_misses_or_doubles_an_element_is_refused(copies):
    with pytest.raises(MalformedError, match="LA809"):
        BulkPlan("cp.async.bulk", 2, (2, 8), (8, 1), copies).layout()


@pytest.mark.compile
def test_the_assembler_takes_each_reduction_and_no_other():
    from layoutalg.codegen.compile import CompileError, to_cubin
    from layoutalg.ground.errors import MissingExtraError

    def takes(name: str) -> bool:
        text = f'asm volatile("{name} [%0], [%1], %2;" :: "l"(g), "r"(s), "r"(n) : "memory");'
        try:
            to_cubin("__global__ void k(unsigned long long g, unsigned s, unsigned n) { " + text + " }", "sm_90a")
        except CompileError:
            return False
        except MissingExtraError as error:
            pytest.skip(str(error))
        return True

    for name, kinds in REDUCTIONS.items():
        for dtype in ("u8", "u32", "s64") if name in ("and", "or", "xor") else ("u32", "s64", "f16", "f64"):
            asked = instruction(f"bulk.reduce.{name}", dtype)
            assert takes(asked) == (dtype in kinds), asked
    assert set(INSTRUCTIONS) >= {"bulk", "bulk.store"}


def test_a_problem_brings_its_own_tensor():
    def of(shape, tile, **options):
        layout = f"({tile[0]},{tile[1]}):({tile[1]},1)"
        return la.proofs.TensorMapProblem.of((shape, None, "bf16"), tile, layout, **options)

    assert la.admissible(of((64, 72), (1, 64)), "bulk").rules == ("BULK_BOUNDS",)
    assert la.admissible(of((64, 68), (1, 68)), "bulk").rules == ("BULK_ALIGN",)
    assert la.admissible(of((64, 128), (8, 64)), "bulk").descriptor.strides == (128, 1)
    assert isinstance(la.admissible(of((64, 128), (8, 64), base_elem_offset=8), "bulk"), la.Unknown)
    for consumer, options in (("bulk.store", {}), ("bulk", {"tensor": ((64, 128), None, "bf16")})):
        with pytest.raises(MalformedError):
            la.admissible(of((64, 128), (8, 64)), consumer, **options)
