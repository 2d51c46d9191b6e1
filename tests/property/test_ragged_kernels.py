"""Kernels of ragged tensors on the simulator: every byte of drawn groups, schedules against plain Python."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels import RaggedKernel, ragged_copy_kernel, ragged_transpose_kernel, tile_bound
from layoutalg.codegen.kernels.ragged import REFUSED, ragged_kernel
from layoutalg.codegen.kernels.schedule import schedule_kernel
from layoutalg.ground.errors import InfeasibleError, MalformedError
from layoutalg.proofs.ragged_clip import ClipPlan
from layoutalg.synth import InadmissibleError
from layoutalg.targets import probes

ROWS, COLUMNS, GROUPS, TILE = 256, 128, 6, 32
SMEM = f"Sw<3,3,3> o 0 o ({TILE},64):(64,1)"
ENTRY = {
    "chip": "none", "driver": "none", "date": "2026-01-01", "element_bytes": [1, 2, 4, 8],
    "forms": ["read_write load", "read_write store", "write_only store"],
}  # fmt: skip
needs = pytest.mark.skipif(hostsim.compiler() is None, reason="needs a C++ compiler")
GROUP = st.sampled_from((0, 4, 64, 68, -1)) | st.integers(0, 70) | st.integers(0, 20).map(lambda size: 4 * size)
SIZES = st.lists(st.sampled_from((0, 1, 3, 8, 31, 32, 33, 64)) | st.integers(0, 90), min_size=GROUPS, max_size=GROUPS)


@pytest.fixture(autouse=True)
def _probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the probe of clipped maps had run."""
    monkeypatch.setattr(probes, "_probes", lambda: {"clip": {"sm_90a": ENTRY}})


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy at a multiple of 256 bytes."""
    room = np.zeros(array.nbytes + 256, np.uint8)
    first = -room.ctypes.data % 256
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def moved(
    made: RaggedKernel, source: npt.NDArray[Any], sizes: list[int], *, starts: list[int] | None = None,
    blocks: int = 3, seed: int = 0,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:  # fmt: skip
    """Run both kernels; return the destination, 7 where nothing was written, and the schedule."""
    kind = np.int32 if made.index_bytes == 4 else np.int64
    given = np.asarray(sizes if made.given == "sizes" else np.cumsum([0, *sizes]), kind)
    placed = None if starts is None else np.asarray(starts, kind)
    schedule = aligned(np.full(made.schedule_words, -7, np.int32))
    listed = made.schedule_arguments(given, schedule, placed=placed, blocks=2)
    assert hostsim.run(made.scheduler, listed, blocks=2, seed=seed) == 0
    result = aligned(np.full(made.arrays[1].shape, 7, source.dtype))
    count = min(blocks, made.blocks)
    status = np.zeros(count, np.int32)
    arguments = made.arguments(source, result, schedule, count, status)
    regions = [(each.ctypes.data, each.nbytes) for each in (source, result)]
    report = hostsim.examine(made.kernel, arguments, blocks=count, regions=regions, seed=seed)
    assert report.fault == 0, report.why
    assert (status == (REFUSED if schedule[2] else 1)).all()
    assert bool(made.gave_up(int(status[0]))) == bool(schedule[2])
    return result, schedule


def trimmed(sizes: list[int], rows: int, multiple: int = 1, least: int = 1) -> list[int]:
    """Sizes that fit the rows: multiples, not too short."""
    found = []
    for size in sizes:
        size = min(size, rows - sum(found)) // multiple * multiple
        found.append(size if size >= least else 0)
    return found


@functools.cache
def source_of(dtype: str) -> npt.NDArray[Any]:
    return aligned(np.random.default_rng(1).integers(8, 250, (ROWS, COLUMNS)).astype(dtype))


@functools.cache
def copier(strategy: str, given: str, placed: bool) -> RaggedKernel:
    name, _, form = strategy.partition(" ")
    options = {"form": form, "direction": "store"} if form else {}
    family = la.ragged(la.Tensor((ROWS, COLUMNS), dtype="u16"), GROUPS, (TILE, 64), SMEM, name, **options)
    made: RaggedKernel = family.kernel(given=given, placed=placed, into_rows=400 if placed else None)
    return made


STRATEGIES = ("auto", "exact_pool", "overlap_pool", "shift_back", "clip read_write", "clip write_only")


@needs
@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=30)
@given(SIZES, st.sampled_from((("offsets", False), ("sizes", True))), st.integers(0, 3), st.integers(1, 9))
def test_groups_are_copied_and_nothing_else(
    strategy: str, sizes: list[int], how: tuple[str, bool], seed: int, blocks: int
) -> None:
    given, placed = how
    made = copier(strategy, given, placed)
    sizes = trimmed(sizes, ROWS, least=TILE if strategy == "shift_back" else 1)
    begins = [int(start) for start in np.cumsum([0, *sizes])]
    starts = [start + 20 * group for group, start in enumerate(begins[:-1])]
    result, _ = moved(made, source_of("u2"), sizes, starts=starts if placed else None, blocks=blocks, seed=seed)
    wanted = np.full_like(result, 7)
    for group, size in enumerate(sizes):
        at = starts[group] if placed else begins[group]
        wanted[at : at + size] = source_of("u2")[begins[group] : begins[group] + size]
    assert (result == wanted).all()


@needs
@pytest.mark.parametrize(
    ("sizes", "starts", "wrong"),
    [
        ([10, -1, 0, 0, 0, 0], [0] * 6, 2), ([200, 60, 0, 0, 0, 0], [0, 200, 0, 0, 0, 0], 2),
        ([5, 5, 5, 0, 0, 0], [0, 396, 5, 0, 0, 0], 2), ([5, 0, 5, 0, 0, 0], [5, -1, -1, 0, 0, 0], 3),
        ([5, 0, 5, 0, 0, 0], [5, -1, 395, 0, 0, 0], 0),
    ],
)  # fmt: skip
def test_wrong_groups_move_nothing_and_are_named(sizes: list[int], starts: list[int], wrong: int) -> None:
    result, schedule = moved(copier("auto", "sizes", True), source_of("u2"), sizes, starts=starts)
    assert schedule[2] == wrong
    assert (result == 7).all() == bool(wrong)


@functools.cache
def several(dtype: str) -> RaggedKernel:
    return ragged_copy_kernel((ROWS, COLUMNS), dtype, GROUPS, heights=(64, 16), strategy="exact_pool")


@needs
@settings(max_examples=25)
@given(SIZES, st.sampled_from(("u2", "u4")))
def test_the_device_takes_the_height_with_the_fewest_tiles(sizes: list[int], dtype: str) -> None:
    made, sizes = several({"u2": "u16", "u4": "u32"}[dtype]), trimmed(sizes, ROWS)
    result, schedule = moved(made, source_of(dtype), sizes)
    total = sum(sizes)
    assert (result[:total] == source_of(dtype)[:total]).all()
    assert (result[total:] == 7).all()
    width = {height: max(16384 // np.dtype(dtype).itemsize // height, 128 // np.dtype(dtype).itemsize)
             for height in (64, 16)}  # fmt: skip
    costs = {height: sum(-(-size // height) for size in sizes) * -(-COLUMNS // width[height]) for height in (64, 16)}
    assert costs[int(schedule[1])] == min(costs.values())
    assert schedule[2] == 0


@functools.cache
def turner(dtype: str, multiple: int) -> RaggedKernel:
    return ragged_transpose_kernel((ROWS, COLUMNS), dtype, GROUPS, multiple=multiple)


@needs
@settings(max_examples=25)
@given(SIZES, st.sampled_from((("u16", 8), ("u16", 16), ("u32", 4), ("u8", 16))), st.integers(0, 3))
def test_groups_are_transposed_and_nothing_else(sizes: list[int], case: tuple[str, int], seed: int) -> None:
    dtype, multiple = case
    source = source_of({"u8": "u1", "u16": "u2", "u32": "u4"}[dtype])
    sizes = trimmed(sizes, ROWS, multiple)
    result, _ = moved(turner(dtype, multiple), source, sizes, seed=seed)
    total = sum(sizes)
    assert (result[:, :total] == source[:total].T).all()
    assert (result[:, total:] == 7).all()


@functools.cache
def scheduler(groups: int, given: str, index: str, options: tuple[int, int, bool, bool]) -> Any:
    multiple, least, shift, placed = options
    return schedule_kernel(
        groups, [(64, 1), (16, 3)], ROWS, given=given, index_dtype=index, multiple=multiple, least=least,
        shift_back=shift, placed=placed,
    )  # fmt: skip


def listed(sizes: list[int], tile: int, shift: bool) -> list[list[int]]:
    """(first row, rows, group, first row again) of every tile, one after the other."""
    found, begin = [], 0
    for group, size in enumerate(sizes):
        for first in range(0, size, tile):
            row = size - tile if shift and size >= tile and size - first < tile else first
            found.append([begin + row, min(tile, size - row), group, begin + row])
        begin += size
    return found


@needs
@settings(max_examples=100)
@given(
    st.sampled_from((1, 7)).flatmap(lambda many: st.lists(GROUP, min_size=many, max_size=many)),
    st.sampled_from((("offsets", "s32"), ("sizes", "s64"))), st.sampled_from(((1, 1, False), (4, 8, True))),
    st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_a_schedule_lists_the_tiles_or_names_the_wrong_group(
    sizes: list[int], how: tuple[str, str], rules: tuple[int, int, bool], blocks: int, fitting: bool
) -> None:
    (given, index), (multiple, least, shift) = how, rules
    sizes = trimmed(sizes, ROWS, multiple, least) if fitting else sizes  # of drawn sizes, few fit
    kernel = scheduler(len(sizes), given, index, (multiple, least, shift, False))
    kind = np.int32 if index == "s32" else np.int64
    values = np.asarray(sizes if given == "sizes" else np.cumsum([0, *sizes]), kind)
    most = max(tile_bound(ROWS, len(sizes), height) for height in (64, 16))
    schedule = np.full(4 + 4 * most, -1, np.int32)
    assert hostsim.run(kernel, [values, schedule, most, blocks], blocks=blocks) == 0
    sums = np.cumsum([0, *sizes])
    wrong = [
        group for group, size in enumerate(sizes)
        if size < 0 or sums[group] < 0 or sums[group + 1] > ROWS or size % multiple or 0 < size < least
    ]  # fmt: skip
    if wrong:
        assert (schedule[0], schedule[2]) == (0, wrong[0] + 1)
        return
    tile = int(schedule[1])
    tiles = listed(sizes, tile, shift)
    assert (schedule[0], schedule[2], schedule[3]) == (len(tiles), 0, {64: 1, 16: 3}[tile])
    assert schedule[4 : 4 + 4 * len(tiles)].reshape(-1, 4).tolist() == tiles


@needs
@pytest.mark.parametrize(("offsets", "place"), [([5, -(2**63)], 0), ([0, 5], 2**63 - 1)])
def test_offsets_and_places_whose_differences_overflow_are_refused(offsets: list[int], place: int) -> None:
    kernel = schedule_kernel(1, [(64, 1)], ROWS, index_dtype="s64", placed=True)
    most = tile_bound(ROWS, 1, 64)
    schedule = np.full(4 + 4 * most, -1, np.int32)
    assert hostsim.run(kernel, [np.array(offsets, np.int64), np.array([place], np.int64), schedule, most, 1]) == 0
    assert (schedule[0], schedule[2]) == (0, 1)


def test_kernels_that_do_not_exist_are_refused() -> None:
    tensor = la.Tensor((ROWS, COLUMNS), dtype="u16")
    family = la.ragged(tensor, None, (TILE, 64), SMEM)
    with pytest.raises(MalformedError, match="groups"):
        family.kernel()
    for strategy in ("descriptors", "overfetch"):
        with pytest.raises(MalformedError, match="strategy of the family"):
            la.ragged(tensor, GROUPS, (TILE, 64), SMEM, strategy).kernel()
    with pytest.raises(MalformedError, match="tiles of"):
        ragged_kernel(family, la.ragged(tensor, None, (16, 64), None), groups=2)
    with pytest.raises(MalformedError, match="different heights"):
        ragged_kernel(family, family, groups=2)
    with pytest.raises(MalformedError, match="of the same sizes"):
        ragged_kernel(family, la.ragged(tensor, None, (TILE, 64), SMEM, "exact_pool"), groups=2)
    wide = la.ragged(la.Tensor((ROWS, 2 * COLUMNS), dtype="u16"), None, (TILE, 64), SMEM)
    with pytest.raises(MalformedError, match="same matrix"):
        ragged_kernel(family, wide, groups=2)
    pitched = la.Tensor((ROWS, COLUMNS), (2 * COLUMNS, 1), dtype="u16")
    for odd in (la.ragged(la.Tensor((4, 64, 64)), 2, (1, 32, 64), None, axis=1),
                la.ragged(pitched, 2, (TILE, 64), SMEM)):  # fmt: skip
        with pytest.raises(MalformedError, match="whose rows are ragged"):
            odd.kernel()
    with pytest.raises(MalformedError, match="multiple"):
        ragged_transpose_kernel((ROWS, COLUMNS), "bf16", GROUPS, multiple=4)
    with pytest.raises((MalformedError, InfeasibleError)):
        ragged_transpose_kernel((ROWS, COLUMNS), "bf16", 1 << 20)
    with pytest.raises(MalformedError, match="placed"):
        family.kernel(groups=2).schedule_arguments(0x1000, 0x2000, placed=0x3000)


def test_symbolic_families_have_kernels_at_sizes() -> None:
    family = la.ragged(la.Tensor(("R", 128), dtype="u16"), GROUPS, (TILE, 64), SMEM)
    made = family.kernel(sizes={"R": ROWS})
    assert made.most_tiles == tile_bound(ROWS, GROUPS, TILE)


def test_clipped_maps_are_refused_without_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = la.Tensor((ROWS, COLUMNS), dtype="u16")
    plan = la.ragged(tensor, GROUPS, (TILE, 64), SMEM, "clip").plans[0]
    assert isinstance(plan, ClipPlan)
    for above, seen in (("", "not tried on a device"), ("moved", "a device has moved them")):
        monkeypatch.setattr(probes, "_probes", lambda above=above: {"clip": {"sm_90a": ENTRY | {"above": above}}})
        with pytest.raises(MalformedError, match=rf"(?s)origin\[0\].*{seen}"):
            plan.coordinates((-1, 0), 0, 5)
    for size in (5, 70):  # beyond the rows left of the group, the map ends
        assert plan.coordinates((4, 0), 300, size)[0][plan.ragged_dim] == 2**30 - (size - 4)
    with pytest.raises(InadmissibleError, match="PROBE"):
        la.ragged(tensor, GROUPS, (TILE, 64), SMEM, "clip", form="write_only")
    with pytest.raises(InadmissibleError, match="PROBE"):
        la.ragged(la.Tensor(("R", COLUMNS)), GROUPS, (TILE, 64), SMEM, "clip")
    monkeypatch.setattr(probes, "_probes", lambda: {"clip": {}})
    with pytest.raises(InadmissibleError, match="no probe has run"):
        la.ragged(tensor, GROUPS, (TILE, 64), SMEM, "clip")
    assert la.ragged(tensor, GROUPS, (TILE, 32), None).strategy == "descriptors"
