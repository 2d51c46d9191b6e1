"""What a TensorMap and a plan denote as layouts: against the model of the engine, recorded loads, and the problems."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import LayoutError, MalformedError, RepresentabilityError
from layoutalg.proofs.tensormap import meaning
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap, batch, tile_load
from layoutalg.testing.problems import random_problem

DATA = Path(__file__).parents[1] / "data" / "measured"


def by_layouts(tm: TensorMap, coords, memory, image, given: bool) -> None:
    """Load a tile by the two layouts alone: every box point's shared byte receives its global byte, or the fill."""
    size, counts = tensormap.element_bytes(tm.dtype), tensormap.loaded_counts(tm)[::-1]
    plain = tm.interleave == "NONE"
    counts = counts if plain else (*counts, tensormap.unit_bytes(tm) // size)
    shared = np.asarray(tensormap.layout(tm, unit="byte").table()).reshape(counts, order="F").reshape(-1)
    points = np.stack(np.unravel_index(np.arange(shared.size), counts), axis=1)
    if given:
        source, params = tensormap.layout(tm, side="global", coords=coords), {}
    else:
        source = tensormap.layout(tm, side="global")
        params = {f"start{place}": int(start) for place, start in enumerate(reversed(coords))}
    fill = np.frombuffer(tensormap.fill_bytes(tm.dtype, tm.oob_fill), np.uint8)
    steps = [1 if plain else tm.element_strides[0], *tm.element_strides[1:]][::-1]
    for at, point in zip(shared.tolist(), points.tolist(), strict=True):
        place = [start + step * c for start, step, c in zip(reversed(coords), steps, point, strict=False)]
        inside = all(0 <= x < extent for x, extent in zip(place, reversed(tm.dims), strict=True))
        values = {f"dim{k}": c for k, c in enumerate(point)} | params
        try:
            byte = source(**values)["byte"]
        except LayoutError:
            assert not inside, (tm, coords, point)
            image[at : at + size] = fill
            continue
        assert inside, (tm, coords, point)
        image[at : at + size] = tensormap.load_convert(tm.dtype, memory[byte : byte + size])


@st.composite
def loads(draw):
    dtype = draw(st.sampled_from(("u8", "bf16", "f32", "u64")))
    size = tensormap.element_bytes(dtype)
    swizzle = draw(st.sampled_from(("NONE", "32B", "64B", "128B")))
    rank = draw(st.integers(1, 3))
    chunks = draw(st.integers(1, 3 if swizzle == "NONE" else tensormap.swizzle_span_bytes(swizzle) // 16))
    grain = 16 // size
    box = (chunks * grain, *(draw(st.integers(1, 6)) for _ in range(rank - 1)))
    dims = tuple(draw(st.integers(1, 12)) * (grain if mode == 0 else 1) for mode in range(rank))
    strides = tuple(16 * draw(st.integers(0, 40)) for _ in range(rank - 1))
    steps = (1, *(draw(st.integers(1, 3)) for _ in range(rank - 1)))
    tm = TensorMap(dtype, dims, strides, box, steps, swizzle=swizzle, base_address=16 * draw(st.integers(0, 4)))
    coords = tuple(draw(st.integers(-3, 12)) * (grain if mode == 0 else 1) for mode in range(rank))
    return tm, coords


@st.composite
def interleaved_loads(draw):
    dtype = draw(st.sampled_from(("u8", "bf16", "f32", "u64")))
    rank = draw(st.integers(3, 5))
    dims = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    tm = TensorMap(
        dtype, dims,
        tuple(32 * draw(st.integers(0, 40)) for _ in range(rank - 1)),
        (16 // tensormap.element_bytes(dtype) * draw(st.integers(1, 2)), *(draw(st.integers(1, 3)) for _ in dims[1:])),
        tuple(draw(st.integers(1, 3)) for _ in range(rank)), draw(st.sampled_from(("16B", "32B"))),
        draw(st.sampled_from(("NONE", "32B", "64B", "128B"))), base_address=32 * draw(st.integers(0, 4)),
    )  # fmt: skip
    return tm, tuple(draw(st.integers(-2, 8)) for _ in range(rank))


@settings(max_examples=40, deadline=None)
@given(st.one_of(loads(), interleaved_loads()), st.booleans())
def test_both_sides_are_what_the_engine_does(load, given):
    tm, coords = load
    if tensormap.violations(tm):
        return
    memory = np.random.default_rng(0).integers(0, 256, 1 << 16, dtype=np.uint8)
    wanted = np.full(tensormap.footprint_bytes(tm) + 1024, 0xEE, np.uint8)
    found = wanted.copy()
    tile_load(tm, coords, memory, wanted)
    by_layouts(tm, coords, memory, found, given)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("name", ["tma_exec_plain_dev.npz", "tma_exec_estride_dev.npz"])
def test_recorded_loads(name, portion):
    memory = (0x40000000 + np.arange(1 << 21)).astype("<u4").view(np.uint8)
    with np.load(DATA / name) as archive:
        rows, starts, images = archive["params"], archive["coords"], archive["image"]
    checked = 0
    for row, start, image in portion(list(zip(rows, starts, images, strict=True))):
        tm = batch.from_row(row.tolist())
        if tensormap.box_bytes(tm) > 2048:
            continue
        found = np.full(image.size, 0xEE, np.uint8)
        by_layouts(tm, tuple(start[: tm.rank].tolist()), memory, found, True)
        assert np.array_equal(found, image), tm
        checked += 1
    assert checked >= 3


def test_recorded_interleaved_loads():
    memory = (np.arange(1 << 24, dtype=np.uint32) + np.uint32(0x40000000)).view(np.uint8)
    with np.load(DATA / "interleave_loads_dev.npz") as archive:
        data = {name: archive[name] for name in ("mode", "params", "coords", "offset", "rows", "images", "fault")}
    checked = 0
    for row, stored in zip(data["rows"].tolist(), data["images"], strict=True):
        p = data["params"][row].tolist()[:26]
        if data["mode"][row] != "tile" or data["fault"][row] or data["offset"][row]:
            continue
        p[2] += 1 << 24
        tm = batch.from_row(p)
        if tensormap.transaction_bytes(tm) > 2048:
            continue
        found = np.full(stored.size, 0xEE, np.uint8)
        by_layouts(tm, tuple(data["coords"][row].tolist()[: tm.rank]), memory, found, True)
        assert np.array_equal(found, stored), tm
        checked += 1
    assert checked >= 3


def test_the_two_sides_are_layouts_of_their_kinds():
    assert isinstance(tensormap.layout(TensorMap("u8", (64, 64), (64,), (64, 8))), la.CuteLayout)
    swizzled = tensormap.layout(TensorMap("u8", (64, 64), (64,), (64, 8), swizzle="64B"))
    assert isinstance(swizzled, la.ComposedLayout)
    assert la.equivalent(swizzled, la.convert.to_linear(swizzled))
    flip = TensorMap("u8", (128, 64), (128,), (128, 8), swizzle="128B_ATOM_32B_FLIP_8B")
    table = np.asarray(tensormap.layout(flip, "sm_100a").table()).reshape(8, 128, order="F")
    wanted = tensormap.apply_swizzle(flip.swizzle, np.arange(1024)).reshape(8, 128)
    assert np.array_equal(table, wanted)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"side": "both"}, MalformedError),
        ({"unit": "bit"}, MalformedError),
        ({"side": "global", "coords": (0,)}, MalformedError),
        ({"side": "global", "coords": (1, 0)}, LayoutError),
        ({"target": "sm_80"}, LayoutError),
    ],
)
def test_what_has_no_meaning_is_refused(wrong, error):
    with pytest.raises(error):
        tensormap.layout(TensorMap("u8", (64, 64), (64,), (64, 8)), **wrong)
    with pytest.raises(tensormap.RefusedMapError):
        tensormap.layout(TensorMap("u8", (64, 64), (60,), (64, 8)))


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_denotes_what_was_asked(seed):
    rng = random.Random(seed)
    plans = 0
    while plans < 30:
        try:
            plan = synthesize_tensormap(random_problem(rng), repair=False)
        except InadmissibleError:
            continue
        problem = plan.problem
        wanted = problem.addresses() // problem.element_bytes
        assert np.array_equal(meaning.table(plan), wanted)
        found = meaning.layout(plan)
        assert np.array_equal(np.asarray(found.table()).reshape(problem.tile, order="F"), wanted)
        plans += 1


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_plan_denotes_something_else(seed):
    rng = random.Random(seed)
    tried = 0
    while tried < 20:
        try:
            plan = synthesize_tensormap(random_problem(rng), repair=False)
        except InadmissibleError:
            continue
        if len(plan.issues) < 2 or 0 in plan.problem.global_strides:
            continue
        first, second, *rest = plan.issues
        issue = type(first)
        swapped = (issue(first.coords, second.smem_offset_bytes), issue(second.coords, first.smem_offset_bytes), *rest)
        wanted = plan.problem.addresses() // plan.problem.element_bytes
        with contextlib.suppress(RepresentabilityError):
            assert not np.array_equal(meaning.table(plan.with_changes(issues=swapped)), wanted)
        with pytest.raises(RepresentabilityError):
            meaning.table(plan.with_changes(issues=plan.issues[1:]))
        tried += 1


def test_the_claim_is_one_that_equivalent_decides():
    for text in ("Sw<3,3,3> o 0 o (128,(64,2)):(64,(1,8192))", "(64,64):(64,1)", "(64,(8,8)):(8,(1,512))"):
        requested = la.parse(text)
        plan = la.tensormap(((1024, 512), None, "bf16"), (requested[0].size, requested[1].size)
                            if isinstance(requested, la.CuteLayout) else (128, 128), requested)  # fmt: skip
        verdict = la.equivalent(meaning.layout(plan), requested)
        assert verdict, text
