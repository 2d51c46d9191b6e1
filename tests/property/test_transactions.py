"""Sectors and lines of ``la.transactions`` against sets of bytes; what stores write; refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.cli import main
from layoutalg.proofs import checker
from layoutalg.targets.global_memory import instruction, requested, touched
from layoutalg.targets.nvidia import tensormap
from tests.judges import sectors as judge

WIDTHS = (1, 2, 4, 8, 16)
SIZES = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}
CASES, BATCH = 20_000, 100


def random_starts(rng: np.random.Generator, size: int) -> np.ndarray[Any, Any]:
    """First bytes of 32 lanes: strided, in any order, shared, anywhere; some lanes inactive."""
    lanes = np.arange(32)
    starts = size * (int(rng.integers(0, 64)) + lanes * int(rng.choice([0, 1, 2, 3, 8, 33, 256])))
    how = int(rng.integers(0, 4))
    if how == 1:
        starts = rng.permutation(starts)
    elif how == 2:
        starts = size * rng.integers(0, int(rng.choice([8, 64, 4096])), 32)
    elif how == 3:
        starts = starts[lanes & ~int(rng.choice([1, 2, 3, 7]))]
    return np.where(rng.random(32) < rng.choice([0.0, 0.1, 0.7]), -1, starts)


def test_random_accesses_touch_what_sets_of_bytes_say(portion: Callable[[Sequence[int]], Sequence[int]]) -> None:
    for seed in portion(range(CASES // BATCH)):
        rng = np.random.default_rng(seed)
        size = int(rng.choice([*WIDTHS, 12]))
        starts = np.array([random_starts(rng, 4 if size == 12 else size) for _ in range(BATCH)])
        counts = [*(touched(starts, size, unit) for unit in (judge.SECTOR, judge.LINE)), requested(starts, size)]
        for row, *numbers in zip(starts.tolist(), *counts, strict=True):
            found = {byte for at in row if at >= 0 for byte in range(at, at + size)}
            assert numbers == [judge.units(found, judge.SECTOR), judge.units(found, judge.LINE), len(found)], row


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Registers of one to four warps, linear over F2 or (thread, value), at an origin of a tensor."""
    tile = tuple(1 << draw(st.integers(0, 5)) for _ in range(2))
    registers, warps = 1 << draw(st.integers(0, 4)), 1 << draw(st.integers(0, 2))
    sizes = {"register": registers, "lane": 32, "warp": warps}
    how = draw(st.sampled_from(("cover", "cover", "linear", "threads")))
    if how == "cover":  # every element of the tile once
        count = (registers * 32 * warps).bit_length() - 1
        tall = draw(st.integers(0, count))
        tile = (1 << tall, 1 << count - tall)
        ahead = [(0, 1 << bit) for bit in range(draw(st.integers(0, min(3, count - tall))))]
        units = [(1 << bit, 0) for bit in range(tall)] + [(0, 1 << bit) for bit in range(len(ahead), count - tall)]
        images = iter(ahead + draw(st.permutations(units)))
        bases = {name: [next(images) for _ in range(size.bit_length() - 1)] for name, size in sizes.items()}
    elif how == "linear":
        image = st.tuples(
            *(st.sampled_from([0, *(1 << bit for bit in range(extent.bit_length() - 1))]) for extent in tile)
        )
        bases = {
            name: draw(st.lists(image, min_size=many, max_size=many))
            for name, many in ((name, size.bit_length() - 1) for name, size in sizes.items())
        }
    if how != "threads":
        held: Any = la.LinearLayout.from_bases(bases, {"dim0": tile[0], "dim1": tile[1]})
        images = np.array([step for name in sizes for step in bases[name]], dtype=np.int64).reshape(-1, 2)
        numbers = np.arange(prod(sizes.values()))[:, None] >> np.arange(len(images)) & 1
        table = np.bitwise_xor.reduce(numbers[:, :, None] * images, axis=1).tolist()
    else:
        shape = (32 * warps, registers)
        strides = tuple(draw(st.integers(0, max(1, prod(tile) // size))) for size in shape)
        held = la.CuteLayout(shape, strides)
        assume(held.cosize <= prod(tile))
        flat = np.asarray(held.table()).reshape(shape, order="F")
        table = [
            (int(flat[32 * warp + lane, register]) % tile[0], int(flat[32 * warp + lane, register]) // tile[0])
            for warp in range(warps) for lane in range(32) for register in range(registers)
        ]  # fmt: skip
    return {"held": held, "table": table, "tile": tile, "counts": (registers, 32, warps)}


@st.composite
def tensors(draw: st.DrawFn) -> la.Tensor:
    shape = tuple(draw(st.one_of(st.integers(1, 40), st.sampled_from((64, 256)))) for _ in range(2))
    pitch = shape[1] + draw(st.sampled_from((0, 0, 0, 1, 8, 24)))
    strides = draw(st.sampled_from(((pitch, 1), (1, shape[0]), (16 * pitch, 16), (pitch, 0))))
    return la.Tensor(shape, strides, draw(st.sampled_from(sorted(SIZES))))


@settings(max_examples=120)
@given(
    questions(), tensors(), st.one_of(st.just((0, 0)), st.tuples(st.integers(-8, 24), st.integers(-8, 24))), st.data()
)
def test_reports_count_what_sets_of_bytes_say(
    question: dict[str, Any], tensor: la.Tensor, origin: tuple[int, int], data: st.DataObject
) -> None:
    counts, size = question["counts"], SIZES[tensor.dtype]

    @cache
    def where(element: judge.Element) -> set[int]:
        register, lane, warp = element
        at = question["table"][register + counts[0] * (lane + 32 * warp)]
        place = [first + part for first, part in zip(origin, at, strict=True)]
        return judge.element_bytes(place, tensor.shape, tensor.strides, size)

    kind = data.draw(st.sampled_from((None, "store", "ld.global.v4", f"st.global.b{8 * size}", "cp.async.8")))
    try:
        report = la.transactions(question["held"], tensor, kind, origin=origin, tile=question["tile"])
    except la.LayoutError as error:
        every = judge.everything(where, counts)
        if kind in (None, "store", f"st.global.b{8 * size}"):
            assert not every
        elif error.diagnostic.code == "LA984":
            words = error.diagnostic.where[0].replace(",", "").split()
            lane, warp, register = int(words[1]), int(words[4]), int(words[6])
            found = where((register, lane, warp))
            assert found
            assert min(found) % instruction(kind, "sm_90a").bytes
        return
    for each in report.each:
        lanes = judge.access(where, each.registers, 32, each.warp)
        assert all(judge.is_vector(found, report.lane_bytes) for found in lanes)
        found = set().union(*lanes)
        assert (each.sectors, each.lines) == tuple(judge.units(found, unit) for unit in (judge.SECTOR, judge.LINE))
        assert (each.bytes, each.ideal) == (len(found), -(-len(found) // judge.SECTOR))
    moved = {(each.warp, register) for each in report.each for register in each.registers}
    held = set().union(*(where((r, lane, w)) for w, r in moved for lane in range(32)))
    assert held == judge.everything(where, counts)
    if "st" in (kind or ""):
        assert list(report.written()) == judge.runs(held)
    assert report.sectors >= report.ideal
    after = report.after
    if after is not None:
        again = la.transactions(report.better, tensor, kind, origin=origin, tile=question["tile"])
        assert (again.sectors, again.accesses) == (after.sectors, after.accesses)
        assert again.sectors < report.sectors


@settings(max_examples=60)
@given(questions(), tensors())
def test_certificates_are_accepted(question: dict[str, Any], tensor: la.Tensor) -> None:
    report = la.transactions(question["held"], tensor, tile=question["tile"])
    made = report.certificate
    assert made.statement["turns"] == report.sectors
    assert checker.check(made.to_json())[0] == 0
    wrong = made.to_json()
    wrong["statement"]["turns"] += 1
    wrong["seal"] = checker.seal(wrong)
    assert checker.check(wrong)[0] == 1


def changed_by(copies: list[tuple[tensormap.TensorMap, tuple[int, ...], int]], size: int) -> list[tuple[int, int]]:
    """The bytes that stores change, by storing 0 and 255."""
    changed = np.zeros(size, dtype=bool)
    for value in (0, 0xFF):
        memory, image = np.full(size, 0x55, np.uint8), np.full(1 << 16, value, np.uint8)
        for tm, coords, offset in copies:
            tensormap.tile_store(tm, coords, memory, image, offset)
        changed |= memory != 0x55
    return judge.runs(np.flatnonzero(changed).tolist())


@settings(max_examples=120)
@given(st.sampled_from(("u8", "u16", "s32")), st.integers(1, 3), st.data())
def test_stores_write_the_bytes_that_the_model_changes(dtype: str, rank: int, data: st.DataObject) -> None:
    size = tensormap.element_bytes(dtype)
    dims = tuple(data.draw(st.integers(1, 60 if mode == 0 else 7)) for mode in range(rank))
    strides = [-(-dims[0] * size // 16) * 16]
    for extent in dims[1:]:
        strides.append(strides[-1] * extent + 16 * data.draw(st.integers(0, 2)))
    box = tuple(16 // size * data.draw(st.integers(1, 3)) if mode == 0 else data.draw(st.integers(1, 5))
                for mode in range(rank))  # fmt: skip
    steps = (1, *(data.draw(st.integers(1, 3)) for _ in dims[1:]))
    slices = data.draw(st.sampled_from(("NONE", "NONE", "16B"))) if rank == 3 else "NONE"
    tm = tensormap.TensorMap(dtype, dims, tuple(strides[:-1]), box, steps, slices, base_address=256)
    assume(not tensormap.violations(tm))
    unit = 1 if slices != "NONE" else 16 // size
    coords = tuple(data.draw(st.integers(0, extent // step)) * step
                   for extent, step in zip(dims, (unit, *steps[1:]), strict=True))  # fmt: skip
    assert list(tensormap.stored_runs(tm, coords)) == changed_by([(tm, coords, 0)], 1 << 17)


@settings(max_examples=40)
@given(st.integers(1, 90), st.integers(1, 12), st.sampled_from(("u8", "bf16", "f64")), st.data())
def test_plans_know_the_bytes_that_their_stores_change(rows: int, chunks: int, dtype: str, data: st.DataObject) -> None:
    columns = 16 * chunks // tensormap.element_bytes(dtype)
    tile = (data.draw(st.sampled_from((1, 8, 16))), 16 // tensormap.element_bytes(dtype) * data.draw(st.integers(1, 5)))
    plan = la.tensormap(((rows, columns), dtype), tile, direction="store", oob_required="lost")
    origin = tuple(
        step * data.draw(st.integers(0, (extent - 1) // step)) if step else 0
        for step, extent in zip(plan.problem.origin_multiple, (rows, columns), strict=True)
    )
    copies = [
        (plan.tensor_map, coords, issue.smem_offset_bytes)
        for coords, issue in zip(plan.coordinates(origin), plan.issues, strict=True)
    ]
    assert list(plan.written(origin)) == changed_by(copies, rows * chunks * 16 + 4096)
    load = la.tensormap(((rows, columns), dtype), tile)
    with pytest.raises(la.MalformedError, match="direction='store'"):
        load.written(origin)


ROWS = "(32,8):(1,32)"
TENSOR = la.Tensor((64, 64), dtype="bf16")


@pytest.mark.parametrize(
    ("arguments", "options", "code", "words"),
    [
        ((ROWS, TENSOR, "ld.shared.b32"), {}, "LA982", "known: ld.global"),
        ((ROWS, TENSOR, "global_load_dwordx4"), {}, "LA982", "known: ld.global"),
        ((ROWS, TENSOR, "st.global.nc.b32"), {}, "LA982", "known: ld.global"),
        ((ROWS, TENSOR, "cp.async.cg.4"), {}, "LA982", "known: ld.global"),
        ((ROWS, TENSOR, 3), {}, "LA982", "must be a str"),
        ((ROWS, TENSOR, None, 5), {}, "LA982", "must be a str"),
        ((ROWS, TENSOR, None, "sm_10"), {}, "LA340", "known targets"),
        ((ROWS, TENSOR, None, "gfx942"), {}, "LA713", "multiple of 64 threads"),
        (("(64,8):(1,64)", TENSOR, None, "gfx1100"), {}, "LA983", "no size of a cache line for RDNA"),
        ((ROWS, TENSOR, None), {"origin": (0,)}, "LA982", "must have 2 entries"),
        ((ROWS, TENSOR, None), {"origin": (0, "x")}, "LA982", "must be an integer or (remainder"),
        ((ROWS, TENSOR, None), {"origin": (0, (0, 0))}, "LA982", "must be in [1, "),
        ((ROWS, TENSOR, None), {"origin": (4096, 0)}, "LA982", "in bounds of the tensor"),
        ((ROWS, "(64,64):(64,1)", None), {"origin": (0, 0)}, "LA982", "a layout is the tile itself"),
        ((ROWS, TENSOR, None), {"tile": (8, 8)}, "LA713", "coordinates in [0, 64)"),
        ((ROWS, TENSOR, None), {"element_bits": 32}, "LA982", "must be 16 like the tensor's bf16"),
        ((ROWS, TENSOR, "ld.global.b8"), {}, "LA982", "whole elements of 16 bits"),
        ((ROWS, la.Tensor(("M", "K")), None), {}, "LA860", "Tensor.at()"),
        ((ROWS, la.Tensor((64, 64), (64, -1), "bf16"), None), {}, "LA982", "no element below its base"),
        ((ROWS, TENSOR, "ld.global.v4"), {}, "LA982", "must fill vectors of 16 bytes"),
        (("x", TENSOR), {}, "LA", ""),
        ((ROWS, 7), {}, "LA375", "must be a Tensor"),
    ],
)
def test_wrong_questions(arguments: tuple[Any, ...], options: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(la.LayoutError) as refused:
        la.transactions(*arguments, **options)
    assert refused.value.diagnostic.code.startswith(code), refused.value
    assert words in str(refused.value)


def test_misaligned_lanes_are_named() -> None:
    tensor = la.Tensor((32, 100), dtype="bf16")  # rows of 200 bytes
    with pytest.raises(la.AdmissibilityError, match="LA984") as refused:
        la.transactions("(32,8):(1,32)", tensor, "ld.global.v4", tile=(32, 8))
    assert refused.value.diagnostic.where == ("lane 1 of warp 0, register 0",)
    assert "byte 200 is not a multiple of 16" in str(refused.value)
    assert "ld.global.v2.b32" in str(refused.value.diagnostic.repairs[0])
    loose = la.Tensor((32, 64), dtype="bf16", base_align_bytes=8)
    with pytest.raises(la.AdmissibilityError, match="base_align_bytes=16"):
        la.transactions("(32,8):(1,32)", loose, "ld.global.v4", tile=(32, 8))


def test_bases_and_origins_known_modulo_a_number() -> None:
    apart = "(32,1):(1,0)"  # a lane a row, rows of 4,096 bytes
    for align in (2, 16, 32):
        tensor = la.Tensor((32, 2048), dtype="bf16", base_align_bytes=align)
        assert la.transactions(apart, tensor, tile=(32, 1)).sectors == 32
    row = la.LinearLayout.from_bases(
        {"register": [(0, 1)], "lane": [(0, 2 << bit) for bit in range(5)]}, {"dim0": 1, "dim1": 64}
    )
    assert la.transactions(row, la.Tensor((8, 2048), dtype="bf16", base_align_bytes=128)).sectors == 4
    with pytest.raises(la.RepresentabilityError, match="modulo 16 bytes: 4 sectors and 1 lines"):
        la.transactions(row, la.Tensor((8, 2048), dtype="bf16", base_align_bytes=16))
    tensor = la.Tensor((8, 2048), dtype="bf16")
    assert la.transactions(row, tensor, origin=((0, 1), (0, 64))).sectors == 4
    assert la.transactions(row, tensor, origin=(3, 8)).sectors == 5
    with pytest.raises(la.RepresentabilityError, match="LA983"):
        la.transactions(row, tensor, origin=(0, (0, 8)))
    with pytest.raises(la.RepresentabilityError, match="LA983"):
        la.transactions(row, tensor, "store", origin=(0, (0, 64))).written()


def test_amd_counts_lines() -> None:
    rows = "(64,4):(1,64)"  # a lane a row
    for target, line in (("gfx942", 128), ("gfx950", 128), ("gfx90a", 64)):
        report = la.transactions(rows, la.Tensor((64, 1024), dtype="f32"), target=target, tile=(64, 4))
        assert (report.instruction, report.sectors, report.sector_bytes) == ("global_load_dwordx4", 64, line)
        assert report.ideal == 64 * 16 // line
        written = la.transactions(rows, la.Tensor((64, 1024), dtype="f32"), "store", target=target, tile=(64, 4))
        assert (written.sector_bytes, written.line_bytes) == (64, line)  # what one write request moves
    with pytest.raises(la.AdmissibilityError, match="alignment mode DWORD it moves other bytes"):
        la.transactions(rows, la.Tensor((64, 1025)), "global_load_dwordx2", target="gfx950", tile=(64, 4))
    shifted = la.transactions(rows, la.Tensor((64, 1025), dtype="f32"), target="gfx942", tile=(64, 4))
    assert shifted.instruction == "global_load_dwordx4"  # words may lie at any multiple of 4 bytes
    assert shifted.sectors == sum(len({(4100 * row) // 128, (4100 * row + 15) // 128}) for row in range(64))


def test_reports_in_words_pictures_and_documents() -> None:
    report = la.transactions("(32,4):(1,32)", ((4096, 2048), "bf16"), tile=(32, 4))
    assert report.why == "lanes step 4,096 bytes: each of 32 lanes touches its own sector, 8 of 32 bytes used"
    assert la.draw.svg(report).count("<title>") > 32 * 32
    assert "image/svg+xml" in report._repr_mimebundle_()
    assert report.to_json()["sectors"] == 32
    told = la.explain(report)
    assert told["transactions"] == {"sectors": 32, "lines": 32, "ideal": 8, "coalesced": False}
    assert told["why"] == report.why
    filled = la.suggest(((512, 512), None, "bf16"), (64, 64), ["ldmatrix.x4"], fill="threads").best
    assert "loaded by 16 ld.global.v4.b32, 256 sectors, the fewest" in filled.why
    cured = la.transactions("(32,8):(1,32)", ((4096, 8), "f32"), "ld.global.b32", tile=(32, 8))
    assert cured.better is not None
    assert cured.after is not None
    assert cured.after.coalesced
    partial = la.transactions("(32,4):(1,32)", ((20, 2048), "bf16"), tile=(32, 4))
    assert partial.notes == ("48 of 128 elements are out of bounds and not accessed",)
    assert partial.sectors == 20
    assert partial.worst_bytes[20:] == (None,) * 12


def test_the_command_answers_as_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transactions", ROWS, "1000,196", "store", "--tile", "32,8", "--origin", "0,8%16", "--json"]) == 0
    asked = la.transactions(ROWS, la.Tensor((1000, 196)), "store", origin=(0, (8, 16)), tile=(32, 8))
    assert json.loads(capsys.readouterr().out) == asked.to_json()
    assert main(["transactions", "(64,4):(1,64)", "(64,4):(1024,1)", "--bits", "32", "--target", "gfx942"]) == 0
    assert capsys.readouterr().out.startswith("1 x global_load_dwordx4: 64 sectors of 128 bytes where 8 would")
    assert main(["transactions", ROWS, "(64,64):(64,1)", "--stride", "64,1"]) == 64
    assert "must be extents" in capsys.readouterr().err


@given(st.sampled_from((32, 64, 128)), st.sampled_from((1, 2, 3, 8, 33)), st.sampled_from(("u8", "bf16", "f32")))
def test_threads_alone_are_threads_with_one_register(threads: int, step: int, dtype: str) -> None:
    tensor, lanes = la.Tensor((threads * step,), dtype=dtype), np.arange(threads) * step
    found = la.transactions(f"{threads}:{step}", tensor)
    sectors = [{int(at) * SIZES[dtype] // 32 for at in warp} for warp in lanes.reshape(-1, 32)]
    assert found.sectors == sum(map(len, sectors))
    assert found.accesses == threads // 32
    bits = 8 * SIZES[dtype]
    assert la.banks(f"{threads}:{step}", None, bits) == la.banks(f"({threads},1):({step},0)", None, bits)
    assert la.banks(lanes, f"{threads * step}:1", bits) == la.banks(f"{threads}:{step}", None, bits)
    with pytest.raises(la.MalformedError, match="multiple of 32 threads"):
        la.transactions(f"{threads - 1}:{step}", tensor)
