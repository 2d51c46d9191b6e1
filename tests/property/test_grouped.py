"""Products of ragged groups on the simulator against exact integer products: drawn sizes, shapes, forms, types."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.narrow_floats import aligned, encoded

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels import Form, GroupedKernel, grouped_forms, grouped_gemm_kernel, tile_bound
from layoutalg.codegen.kernels.gemm_forms import TIMES
from layoutalg.codegen.kernels.ragged import REFUSED
from layoutalg.ground.errors import MalformedError

needs = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
BEHIND = 0x7E7E
"""What rows hold that nobody writes."""
THIN, TALL = Form(64, 64, 1, 64, stages=2, behind=1), Form(128, 64, 2, 64, stages=2)
FORMS = (THIN, TALL, Form(128, 128, 1, 128, stages=3), Form(64, 192, 1, 64, stages=2, depth=64, swizzle="64B"))
CASES = (
    (300, 7, 72, 136, "bf16", "K", 0), (300, 7, 72, 136, "f16", "K", 1), (300, 4, 64, 64, "bf16", "MN", 1),
    (300, 7, 200, 72, "bf16", "K", 2), (300, 5, 200, 136, "f16", "MN", 3), (300, 6, 136, 144, "e4m3", "K", 0),
    (70, 1, 72, 72, "bf16", "K", 1), (3, 9, 8, 8, "bf16", "K", 0),
)  # fmt: skip
"""Rows, groups, columns, depth, type, order of B, form."""
EDGES = st.sampled_from((0, 0, 1, 2, 31, 63, 64, 65, 127, 128, 129, 191, 300))


@functools.cache
def made_for(case: tuple[Any, ...], given: str = "offsets", index: str = "s32") -> GroupedKernel:
    rows, groups, columns, depth, dtype, major, form = case
    return grouped_gemm_kernel(
        rows, groups, columns, depth, dtype, form=FORMS[form], major_b=major, given=given, index_dtype=index,
        result="f16" if dtype == "f16" else "bf16",
    )  # fmt: skip


@functools.cache
def operands(case: tuple[Any, ...]) -> tuple[npt.NDArray[Any], ...]:
    """Integers of A and B, and their bits in the order of the arrays."""
    rows, groups, columns, depth, dtype, major, _ = case
    rng = np.random.default_rng(rows + columns + depth)
    a, b = (rng.integers(-4, 5, shape) for shape in ((rows, depth), (groups, columns, depth)))
    turned = np.ascontiguousarray(b if major == "K" else b.transpose(0, 2, 1))
    return a, b, aligned(encoded(a, dtype)), aligned(encoded(turned, dtype))


def scheduled(made: GroupedKernel, sizes: list[int], first: int = 0) -> npt.NDArray[np.int32]:
    """The schedule of the sizes."""
    kind = np.int32 if made.index_bytes == 4 else np.int64
    listed = np.asarray(sizes if made.given == "sizes" else np.cumsum([first, *sizes]), kind)
    schedule = aligned(np.full(made.schedule_words, -7, np.int32))
    assert hostsim.run(made.scheduler, made.schedule_arguments(listed, schedule, blocks=2), blocks=2) == 0
    return schedule


def multiplied(
    made: GroupedKernel, left: npt.NDArray[Any], right: npt.NDArray[Any], schedule: npt.NDArray[np.int32], blocks: int,
    seed: int = 0, d: npt.NDArray[Any] | None = None,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32], str]:  # fmt: skip
    """D, the status words and the fault."""
    count = min(blocks, made.blocks)
    d = aligned(np.full(made.arrays[2].shape, BEHIND, np.uint16)) if d is None else d
    status = np.zeros(count, np.int32)
    regions = [(each.ctypes.data, each.nbytes) for each in (left, right, d)]
    arguments = made.arguments(left, right, d, schedule, count, status)
    report = hostsim.examine(made.kernel, arguments, blocks=count, regions=regions, seed=seed)
    return d, status, hostsim.FAULTS[report.fault]


def wanted_of(case: tuple[Any, ...], sizes: list[int], first: int = 0) -> npt.NDArray[Any]:
    rows, _, columns, _, dtype, _, _ = case
    a, b, _, _ = operands(case)
    wanted = np.full((rows, columns), BEHIND, np.uint16)
    at = first
    for group, size in enumerate(sizes):
        wanted[at : at + size] = encoded(a[at : at + size] @ b[group].T, "f16" if dtype == "f16" else "bf16")
        at += size
    return wanted


@st.composite
def ragged(draw: st.DrawFn) -> tuple[tuple[Any, ...], list[int], int]:
    """A case, sizes that fit its rows, and the first row of the first group."""
    case = draw(st.sampled_from(CASES))
    rest, sizes = case[0], []
    first = draw(st.sampled_from((0, 0, 0, 1)))
    rest -= first
    for _ in range(case[1]):
        sizes.append(min(rest, draw(EDGES | st.integers(0, 140))))
        rest -= sizes[-1]
    return case, draw(st.permutations(sizes)), first


@needs
@settings(max_examples=60, deadline=None)
@given(ragged(), st.sampled_from((("offsets", "s32"), ("sizes", "s64"))), st.integers(1, 4), st.integers(0, 4))
def test_groups_are_multiplied_and_nothing_else_is_written(
    drawn: tuple[tuple[Any, ...], list[int], int], how: tuple[str, str], blocks: int, seed: int
) -> None:
    case, sizes, first = drawn
    first = first if how[0] == "offsets" else 0
    made, (_, _, left, right) = made_for(case, *how), operands(case)
    d, status, fault = multiplied(made, left, right, scheduled(made, sizes, first), blocks, seed)
    assert (fault, {*status.tolist()}) == ("none", {1})
    assert np.array_equal(d, wanted_of(case, sizes, first))


@needs
@pytest.mark.parametrize(
    ("sizes", "wrong"),
    [
        ([10, -1, 0, 0, 0, 0, 0], 2), ([200, 60, 0, 41, 0, 0, 0], 4), ([0, 0, 0, 0, 0, 0, 301], 7),
        ([0, 2**31 - 1, 2**31 - 1, 0, 0, 0, 0], 2), ([300, 0, 0, 0, 0, 0, 0], 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", [("offsets", "s64"), ("sizes", "s32")])
def test_wrong_sizes_write_nothing_and_are_named(sizes: list[int], wrong: int, how: tuple[str, str]) -> None:
    made, (_, _, left, right) = made_for(CASES[0], *how), operands(CASES[0])
    schedule = scheduled(made, sizes)
    d, status, fault = multiplied(made, left, right, schedule, 3)
    assert (fault, schedule[2]) == ("none", wrong)
    assert {*status.tolist()} == ({REFUSED} if wrong else {1})
    assert bool(made.gave_up(int(status[0]))) == bool(wrong)
    assert (d == BEHIND).all() == bool(wrong)


@functools.cache
def pair() -> tuple[GroupedKernel, GroupedKernel]:
    rows, groups, columns, depth, dtype, _, _ = CASES[0]
    thin, tall = Form(64, 128, 1, 128, behind=1), Form(128, 128, 2, 128, behind=1)
    return tuple(  # type: ignore[return-value]
        grouped_gemm_kernel(rows, groups, columns, depth, dtype, form=one, beside=[other], name=f"rows_{one.rows}")
        for one, other in ((thin, tall), (tall, thin))
    )


@needs
@settings(max_examples=10, deadline=None)
@given(st.lists(EDGES, min_size=7, max_size=7), st.integers(0, 1))
def test_of_two_forms_one_takes_the_tiles(sizes: list[int], scheduler: int) -> None:
    """Both kernels run behind one schedule, whosever it is."""
    sums = np.minimum(np.cumsum([0, *sizes]), CASES[0][0])
    sizes = [int(size) for size in np.diff(sums)]
    _, _, left, right = operands(CASES[0])
    schedule = scheduled(pair()[scheduler], sizes)
    d: npt.NDArray[Any] | None = None
    for made in pair():
        before = None if d is None else d.copy()
        d, status, fault = multiplied(made, left, right, schedule, 2, d=d)
        assert (fault, {*status.tolist()}) == ("none", {1})
        if made.form.rows != schedule[1]:
            assert (d == (BEHIND if before is None else before)).all()
    assert d is not None
    assert np.array_equal(d, wanted_of(CASES[0], sizes))
    tiles = {height: sum(-(-size // height) for size in sizes) for height in (64, 128)}
    if tiles[64] == tiles[128] > 0:
        assert schedule[1] == 64  # as many tiles, each in less time
    if tiles[64] == 2 * tiles[128] > 0:
        assert schedule[1] == 128


MISTAKES = [
    ("left & 32", "left & 16", "wrong"),
    ("$C + 128 * done", "$C", "wrong"),
    ("row + from", "row", "wrong"),
    ("if (left >= 64)", "if (left > 0)", "wrong"),
    ("&map_b, (shared", "&map_b, 1024 + (shared", "fault"),
    (", group, column", ", 0, column", "wrong"),
]
"""Text of the kernel, another text, and what comes of it."""


@needs
@pytest.mark.parametrize(("old", "new", "told"), MISTAKES)
def test_mistakes_are_noticed(old: str, new: str, told: str) -> None:
    case = CASES[1]
    made, (_, _, left, right) = made_for(case), operands(case)
    old, new = (text.replace("$C", "(shared + 49152 + 8192 * which)") for text in (old, new))
    assert old in made.emitted.kernel.text, old
    kernel = replace(made.emitted.kernel, text=made.emitted.kernel.text.replace(old, new))
    wrong = replace(made, emitted=replace(made.emitted, kernel=kernel))
    sizes = [5, 120, 0, 65, 33, 50, 0]
    d, status, fault = multiplied(wrong, left, right, scheduled(made, sizes), 2)
    bad = bool((status != 1).any()) or not np.array_equal(d, wanted_of(case, sizes))
    assert (fault != "none") if told == "fault" else bad or fault != "none"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 0}, "rows"), ({"groups": 0}, "groups"), ({"groups": 1 << 15}, "groups"),
        ({"columns": "8"}, "columns"), ({"depth": 12}, "LA3|STRIDE|16"), ({"dtype": "f32"}, "dtype"),
        ({"result": "f32"}, "result"),
        ({"dtype": "e4m3", "major_b": "MN"}, "major_b"), ({"form": (128, 256)}, "form"),
        ({"form": Form(128, 256, cluster=2)}, "cluster and a split of 1"),
        ({"form": Form(64, 128, 1, 32)}, "multiple of 64 columns"),
        ({"form": Form(192, 256, 3, 128)}, "96 accumulators"), ({"form": TALL, "beside": [TALL]}, "other rows"),
        ({"form": TALL, "beside": [Form(64, 64, 1, 64, depth=32, swizzle="32B")]}, "known times"),
        ({"form": TALL, "beside": 7}, "beside"), ({"given": "ends"}, "given"), ({"target": "sm_100a"}, "sm_90a"),
        ({"rows": 1 << 24, "columns": 1 << 19}, "elements|tiles|steps"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"rows": 1000, "groups": 8, "columns": 256, "depth": 256, **options}
    with pytest.raises(Exception, match=words) as told:
        grouped_gemm_kernel(given.pop("rows"), given.pop("groups"), given.pop("columns"), given.pop("depth"), **given)
    assert hasattr(told.value, "diagnostic") or isinstance(told.value, ValueError)


def test_arrays_are_those_of_the_kernel() -> None:
    made, (_, _, left, right) = made_for(CASES[0]), operands(CASES[0])
    d, schedule = aligned(np.zeros((300, 72), np.uint16)), aligned(np.zeros(made.schedule_words, np.int32))
    assert len(made.arguments(left, right, d, schedule, 1)) == len(made.kernel.parameters)
    for a, b, into in ((right, left, d), (left, right, left), (left, right[:1], d)):
        with pytest.raises(MalformedError, match="LA947"):
            made.arguments(a, b, into, schedule, 1)
    with pytest.raises(MalformedError, match="LA947"):
        made.arguments(left, right, d, schedule[:8], 1)
    with pytest.raises(MalformedError, match="blocks"):
        made.arguments(left, right, d, schedule, made.blocks + 1)


def test_every_form_without_a_cluster_has_a_kernel() -> None:
    ranked = grouped_forms(4096, 32, 1024, 1024, 2)
    assert [time for time, _ in ranked] == sorted(time for time, _ in ranked)
    assert {form for _, form in ranked} == {form for form in TIMES if form.ctas == 1 and form.leaving % 64 == 0}
    for _, form in ranked:
        made = grouped_gemm_kernel(4096, 32, 1024, 1024, form=form)
        assert (made.most_tiles, made.form.rows) == (tile_bound(4096, 32, form.rows), form.rows)
