"""Ragged copies by vectors on the simulator: every byte of drawn groups, wrong groups against plain Python."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from layoutalg.codegen import hostsim
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernels import RaggedKernel, SpanKernel, ragged_copy_kernel, ragged_span_kernel
from layoutalg.ground.errors import InfeasibleError, MalformedError

ROWS, INTO, GROUPS = 160, 400, 75
needs = pytest.mark.skipif(hostsim.compiler() is None, reason="needs a C++ compiler")
SIZE = st.sampled_from((0, 0, 0, 1, 2, 4, 7)) | st.integers(0, 40)
SIZES = st.lists(SIZE, max_size=GROUPS).flatmap(
    lambda some: st.integers(0, GROUPS - len(some)).map(
        lambda before: [0] * before + some + [0] * (GROUPS - before - len(some))
    )
)
"""Some groups, and long runs of empty ones before and behind them."""
Kind = tuple[str, int, str, int, str, str, bool]
KINDS: list[Kind] = [
    ("u8", 33, "s32", 1, "sm_90a", "offsets", False), ("u8", 33, "s32", 1, "sm_90a", "sizes", True),
    ("u16", 40, "s64", 1, "sm_90a", "offsets", True), ("u16", 40, "s64", 1, "sm_80", "sizes", False),
    ("u32", 6, "s64", 3, "sm_90a", "sizes", True), ("u64", 4, "s32", 1, "gfx942", "offsets", True),
]  # fmt: skip
"""Type, columns, type of the indices, what divides sizes, target, what is given, whether groups are placed: rows of 33,
80, 24 and 32 bytes."""
NUMPY = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}


@functools.cache
def copier(kind: Kind) -> SpanKernel:
    dtype, columns, index, multiple, target, how, placed = kind
    return ragged_span_kernel(
        (ROWS, columns), dtype, GROUPS, target, multiple=multiple, into_rows=INTO if placed else None, given=how,
        index_dtype=index, placed=placed, threads=128, per_thread=2,
    )  # fmt: skip


def at(array: np.ndarray, over: int) -> np.ndarray:
    """A copy whose address is so many bytes behind a multiple of 256."""
    room = np.zeros(array.nbytes + 512, np.uint8)
    first = -room.ctypes.data % 256 + over
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def copied(
    made: SpanKernel, dtype: str, groups: list[int], starts: list[int] | None, blocks: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Run a kernel; return the source, the destination, 7 where nothing was written, and the statuses."""
    indices = np.int32 if made.arrays[2].element_bytes == 4 else np.int64
    over = made.arrays[0].align_bytes  # no more aligned than it must be
    source = at(np.random.default_rng(1).integers(8, 250, made.arrays[0].shape).astype(NUMPY[dtype]), over)
    result = at(np.full(made.arrays[1].shape, 7, NUMPY[dtype]), 3 * over)
    places = {"source": source, "destination": result, "groups": np.array(groups, indices)}
    if starts is not None:
        places["placed"] = np.array(starts, indices)
    blocks = min(blocks, made.blocks)
    status = np.zeros(blocks, np.int32)
    regions = [(each.ctypes.data, each.nbytes) for each in (source, result)]
    report = hostsim.examine(
        made.kernel, made.arguments(blocks, status, **places), blocks=blocks, regions=regions, seed=seed
    )
    assert report.fault == 0, report.why
    return source, result, set(status.tolist())


def trimmed(sizes: list[int], multiple: int, rows: int) -> list[int]:
    found: list[int] = []
    for size in sizes:
        found.append(min(size, rows - sum(found)) // multiple * multiple)
    return found


def spread(sizes: list[int], order: list[int], gap: int) -> list[int]:
    """First rows of groups that lie in an order, with a gap; of groups without rows, a row that does not exist."""
    starts, row = [-5] * len(sizes), gap
    for group in order:
        if sizes[group]:
            starts[group] = row
            row += sizes[group] + gap
    return starts


@needs
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(SIZES, st.sampled_from((0, 9)), st.permutations(range(GROUPS)), st.integers(0, 2), st.integers(1, 3))
def test_groups_are_copied_and_nothing_else(
    kind: Kind, sizes: list[int], first: int, order: list[int], gap: int, blocks: int
) -> None:
    given, placed = kind[-2:]
    first = first if given == "offsets" else 0
    sizes = trimmed(sizes, kind[3], ROWS - first)
    begins = np.cumsum([first, *sizes]).tolist()
    starts = spread(sizes, order, gap) if placed else None
    made = copier(kind)
    source, result, status = copied(made, kind[0], begins if given == "offsets" else sizes, starts, blocks, gap)
    wanted = np.full_like(result, 7)
    for group, size in enumerate(sizes):
        row = begins[group] if starts is None else starts[group]
        wanted[row : row + size] = source[begins[group] : begins[group] + size]
    assert (result == wanted).all()
    assert status == {1}
    assert made.gave_up(1) == ""


INDEX = st.integers(-3, 12) | st.sampled_from((-(2**31), 2**31 - 1, ROWS, INTO, -(2**63), 2**63 - 1, 2**62))


@needs
@settings(max_examples=60)
@given(
    st.sampled_from([kind for kind in KINDS if kind[-1]]), st.lists(INDEX, max_size=4), st.lists(INDEX, max_size=4),
    st.integers(0, GROUPS - 4),
)  # fmt: skip
@example(KINDS[2], [9, 12], [INTO - 2], 40)  # fits but for the last row
@example(KINDS[2], [9, 12], [INTO - 3], 40)
@example(KINDS[4], [ROWS // 2, ROWS // 2, 3], [], 71)  # the sum
@example(KINDS[1], [2**31 - 1, 2**31 - 1, 2], [0, 0, 0], 0)
def test_wrong_groups_copy_nothing_and_are_named(kind: Kind, values: list[int], odd: list[int], place: int) -> None:
    """Offsets are 9 up to a place, then drawn, then the last of them that is in the matrix; sizes are 0 elsewhere."""
    if kind[2] == "s32":
        values, odd = [[each for each in some if -(2**31) <= each < 2**31] for some in (values, odd)]
    if kind[-2] == "offsets":
        last = max([9, *[each for each in values if each <= ROWS]])
        numbers = [9] * place + values + [last] * (GROUPS + 1 - place - len(values))
        begins = numbers
    else:
        numbers = [0] * place + values + [0] * (GROUPS - place - len(values))
        begins = [sum(numbers[:group]) for group in range(GROUPS + 1)]
    rows = [begins[group + 1] - begins[group] for group in range(GROUPS)]
    starts = spread([max(0, min(size, 9)) for size in rows], list(range(GROUPS)), 1)
    starts[place : place + len(odd)] = odd
    wrong = [
        group for group, size in enumerate(rows)
        if size < 0 or begins[group] < 0 or begins[group + 1] > ROWS or size % kind[3]
        or (size and not 0 <= starts[group] <= INTO - size)
    ]  # fmt: skip
    made = copier(kind)
    _, result, status = copied(made, kind[0], numbers, starts)
    assert status == ({-1 - wrong[0]} if wrong else {1})
    if wrong:
        assert (result == 7).all()
        assert f"group {wrong[0]} " in made.gave_up(-1 - wrong[0])


def test_vectors_are_as_long_as_rows_allow_and_boxes_are_taken_where_they_are_described() -> None:
    align = {columns: ragged_span_kernel((9, columns), "u16", 4, placed=True).arrays[1].align_bytes
             for columns in (8, 4, 2, 1, 7, 72)}  # fmt: skip
    assert align == {8: 16, 4: 8, 2: 4, 1: 2, 7: 2, 72: 16}
    assert ragged_span_kernel((9, 7), "u16", 4).arrays[1].align_bytes == 16
    assert isinstance(ragged_copy_kernel((256, 128), "u16", 4), SpanKernel)
    for options in ({"way": "boxes"}, {"heights": (16,)}, {"strategy": "exact_pool"}, {"stages": 2}):
        assert isinstance(ragged_copy_kernel((256, 128), "u16", 4, **options), RaggedKernel)


def test_the_text_compiles() -> None:
    for target, how, placed in (("sm_80", "offsets", True), ("sm_90a", "sizes", False)):
        assert to_cubin(ragged_span_kernel((65536, 256), "f32", 16384, target, given=how, placed=placed).kernel)


def test_kernels_that_do_not_exist_are_refused() -> None:
    for options in ({"heights": (16,)}, {"strategy": "clip"}, {"stages": 3}):
        with pytest.raises(MalformedError, match="must be boxes"):
            ragged_copy_kernel((256, 128), "u16", 4, way="vectors", **options)
    for options in ({"multiple": 0}, {"given": "ends"}, {"index_dtype": "u32"}, {"placed": 1}, {"threads": 48},
                    {"per_thread": 0}, {"into_rows": 0}):  # fmt: skip
        with pytest.raises(MalformedError):
            ragged_span_kernel((256, 128), "u16", 4, **options)
    with pytest.raises(MalformedError, match="groups"):
        ragged_span_kernel((256, 128), "u16", 1 << 15)
    with pytest.raises(InfeasibleError):
        ragged_span_kernel((256, 128), "u16", 16384, "gfx942", placed=True)
    made = ragged_span_kernel((256, 128), "u16", 4)
    with pytest.raises(MalformedError, match="16-byte aligned"):
        made.arguments(source=0x1008, destination=0x100000, groups=0x200000)
    assert "status 0" in made.gave_up(0)
