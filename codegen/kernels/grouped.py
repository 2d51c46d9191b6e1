"""Products of ragged groups of rows, each with a matrix of its own: D[rows of g] = A[rows of g] B[g]^T.

The pipeline is that of ``gemm``; what differs is where tiles are. The device lists them from the sizes, the blocks take
them in turns. A tile of A may reach into the next group: those rows only make rows of the result that are not stored.
A whole 64 rows of the result leave as one box, the last rows of a group as boxes of the powers of two in their number,
so that each row of a group is written exactly once and nothing else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import STATUS_TIMEOUT, checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place
from layoutalg.codegen.kernels.gemm import MOST_STEPS, Product, check_form, checked_types, operand, ordered
from layoutalg.codegen.kernels.gemm_forms import GROUP_ROWS, TIMES, Form, fitted
from layoutalg.codegen.kernels.ragged import AHEAD, REFUSED, TRIPS, ScheduledKernel, checked_tiles
from layoutalg.codegen.kernels.ring import mover, tile_plan
from layoutalg.codegen.kernels.schedule import HEADER_WORDS, schedule_kernel
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.codegen.pipeline.program import Program
from layoutalg.cute import CuteLayout
from layoutalg.proofs.groups import tile_bound
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth.tensormap import synthesize_tensormap
from layoutalg.targets.global_memory import LINE_BYTES

PANEL: Final = 64
"""Columns of a result in the span of a swizzle."""
RESTS: Final = (32, 16, 8, 4, 2, 1)
"""Rows of the boxes in which the last rows of a group leave."""
BOXES: Final = (GROUP_ROWS, *RESTS)
_START = """const la_words4 header = *(const la_words4*)schedule;
const la_words4* const entries = (const la_words4*)(schedule + {header});
const int across = {across}, tiles = header.word[1] == {rows}u ? (int)header.word[0] * across : 0;
if (header.word[2]) gave_up = {refused};  // the scheduler refused the sizes"""
_TILE = f"""const int tile = (int)blockIdx.x + turn * {PERSISTENT_GRID}, column = tile % across * {{columns}};
const la_words4 entry = next;
if (tile + {PERSISTENT_GRID} < tiles) next = entries[(tile + {PERSISTENT_GRID}) / across];
const int row = (int)entry.word[0], rows = (int)entry.word[1], group = (int)entry.word[2];
"""


@dataclass(frozen=True, slots=True)
class GroupedKernel(ScheduledKernel):
    """Two kernels that multiply groups of rows with a matrix each, and what their launches need.

    Args:
        shape: (R, N, K).
        form: Tile, warpgroups and stages.
    """

    shape: tuple[int, int, int]
    form: Form

    def arguments(
        self,
        a: Place,
        b: Place,
        d: Place,
        schedule: Place,
        blocks: int | None = None,
        status: Place | None = None,
    ) -> list[Any]:
        """Return the arguments of the launch behind the scheduler's.

        Args:
            a: A, R x K row-major: an address, an array for a run on the CPU, or a ``DeviceTensor``.
            b: B in its order.
            d: D, R x N row-major; rows of no group are not written.
            schedule: What the scheduler wrote.
            blocks: Blocks of the launch; by default one per tile.
            status: Array for one status word per block, 1 on success (``gave_up`` says what others mean); by default a
                new array.
        """
        (left, right, into), last = self._launched(schedule, blocks, status, a=a, b=b, d=d)
        at = (left, right, *[into] * len(BOXES))
        return [*[place_map(raw, address) for raw, address in zip(self.maps, at, strict=True)], *last]


def grouped_gemm_kernel(
    rows: int,
    groups: int,
    columns: int,
    depth: int,
    dtype: object = "bf16",
    target: str = "sm_90a",
    *,
    form: Form | None = None,
    beside: Sequence[Form] = (),
    result: str = "bf16",
    major_b: str = "K",
    given: str = "offsets",
    index_dtype: str = "s32",
    name: str | None = None,
) -> GroupedKernel:
    """Return the kernel that multiplies consecutive groups of rows with a matrix each, by float accumulators.

    Mathematically: ``D[i, j] = sum over l of A[i, l] B[g, j, l]`` for each row i of group g, rounded once to the type
    of D. Sizes of groups are read from device memory; groups without rows cost nothing.

    Args:
        rows: R, rows of A and D; groups may take fewer.
        groups: G, the number of groups.
        columns: N, columns of D.
        depth: K, columns of A.
        dtype: Type of A and B: bf16, f16, e4m3, e5m2.
        target: A target with ``wgmma``.
        form: Tile, warpgroups, stages, without cluster and split; by default the first of ``grouped_forms``.
        beside: Forms of other heights, of ``gemm_forms.TIMES``, with kernels of their own that are launched behind the
            same schedule: the scheduler takes the height that should take the least time for the sizes, the others'
            kernels have no tiles.
        result: Type of D: bf16 or f16.
        major_b: ``"K"``: B is G x N x K row-major; ``"MN"``: G x K x N, for 16-bit types.
        given: Whether the device has ``"offsets"`` (G + 1 running sums) or ``"sizes"``.
        index_dtype: Their type, ``"s32"`` or ``"s64"``.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA985. InfeasibleError: LA946, LA948. AdmissibilityError: no descriptor does
        it.

    Example:
        >>> made = grouped_gemm_kernel(16384, 256, 2048, 7168)
        >>> made.form.rows, made.most_tiles, len(made.maps), made.emitted.proof.engine
        (128, 382, 9, 'event graph')
    """
    kind = checked_types(dtype, result, target, major_b=major_b)
    r, many, n, k = (
        CHECK.integer(extent, argument, 1, answer.MOST_EXTENT)
        for extent, argument in ((rows, "rows"), (groups, "groups"), (columns, "columns"), (depth, "depth"))
    )
    for extents in ((r, k), (many, n, k), (r, n)):
        answer.checked_shape(extents)
    size = kind.bits // 8
    ranked = grouped_forms(r, many, n, k, size)
    chosen = CHECK.kind(ranked[0][1] if form is None else form, Form, "form")
    others = [CHECK.kind(each, Form, "beside") for each in CHECK.entries(beside, "beside", 8)]
    heights = [chosen.rows, *[each.rows for each in others]]
    if len({*heights}) < len(heights):
        raise CHECK.malformed("beside", f"must have other rows than {chosen.rows}, each once", heights[1:])
    if chosen.ctas > 1 or chosen.leaving % PANEL:
        rule = f"must have a cluster and a split of 1 and leave a multiple of {PANEL} columns at once"
        raise CHECK.malformed("form", rule, chosen)
    check_form(chosen, size, "K", major_b)
    chosen = fitted(chosen)
    step, own = chosen.step_bytes // size, chosen.columns
    across, steps = -(-n // own), -(-k // step)
    most = max(tile_bound(r, many, height) for height in heights)
    blocks = checked_tiles(most * across, 1)
    if blocks * steps >= MOST_STEPS or steps * step >= 1 << 31:
        raise CHECK.malformed("rows", f"must take fewer than {MOST_STEPS} steps", blocks * steps)
    plans = {
        "A": tile_plan((r, k), kind.name, (chosen.rows, step), chosen.swizzle, target, "load", (1, step)),
        "B": tile_plan((many, *ordered((n, k), major_b)), kind.name, (1, *ordered((own, step), major_b)),
                       chosen.swizzle, target, "load"),
        "D": _box((r, n), result, GROUP_ROWS, chosen.leaving, target),
    }  # fmt: skip
    rests = tuple([_box((r, n), result, height, chosen.leaving, target) for height in RESTS])
    a = operand("A", kind.name, (chosen.rows, step), "K", chosen.swizzle, target)
    b = operand("B", kind.name, (own, step), major_b, chosen.swizzle, target)
    name = f"la_grouped_{r}x{many}x{n}x{k}_{kind.name}" if name is None else checked_name(name)
    product = _Grouped(name, chosen, plans, a, b, (most, across, steps), result, rests)
    what = f"D[{r}, {n}] = A[{r}, {k}] B[g, {n}, {k}]^T of {many} groups of rows, {kind.name} to {result}"
    emitted = emit(product.program(), name, target, title=f"{what}, tiles of {chosen.rows} x {own} x {step}.")
    costs = [across]
    if others:  # in nanoseconds of all tiles across; the kernels know their number
        even = k * size % LINE_BYTES == 0
        costs = [max(1, round(1000 * tile_time(each, n, k, size, even))) for each in (chosen, *others)]
    scheduler = schedule_kernel(
        many, list(zip(heights, costs, strict=True)), r, target, given=given, index_dtype=index_dtype,
        name=f"{name}_schedule",
    )  # fmt: skip
    arrays = (
        ArrayArgument("a", (r, k), size, 128),
        ArrayArgument("b", (many, *ordered((n, k), major_b)), size, 128),
        ArrayArgument("d", (r, n), 2, 128, written=True),
    )
    maps = tuple([plan.raw for plan in (*plans.values(), *rests)])
    return GroupedKernel(
        emitted, scheduler, what, many, most, blocks, maps, arrays, 4 if index_dtype == "s32" else 8, given,
        (r, n, k), chosen,
    )  # fmt: skip


MEMORY_RATE: Final = 25400.0
"""Bytes that a block of 132 gets from memory in a microsecond if all read: 3.35 TB/s, chosen within the 2.9 to 4.0
TB/s of grouped products on an H200 (``benchmarks/device.py grouped``)."""


def grouped_forms(rows: int, groups: int, columns: int, depth: int, element_bytes: int) -> list[tuple[float, Form]]:
    """Return the forms that may multiply groups, best first, with the microseconds of all their tiles on one block.

    A group of the mean size s has s / T + 1/2 tiles of T rows, as if its last one were half full, and at least one. The
    first of them reads its part of B from memory, the others from the L2 cache.

    Example:
        >>> [(form.rows, form.columns) for _, form in grouped_forms(16384, 256, 4096, 4096, 2)[:2]]
        [(128, 256), (128, 128)]
    """
    even, found = depth * element_bytes % LINE_BYTES == 0, []
    for form in TIMES:
        if form.ctas == 1 and form.leaving % PANEL == 0:
            first, other = (tile_time(form, columns, depth, element_bytes, even, cold) for cold in (True, False))
            found.append((groups * (first + max(0.0, rows / groups / form.rows - 0.5) * other), form))
    return sorted(found, key=lambda each: each[0])


def tile_time(form: Form, columns: int, depth: int, element_bytes: int, even: bool, cold: bool = True) -> float:
    """Return the microseconds in which one block makes ``form.rows`` rows of the result.

    A step takes the time of ``gemm_forms.TIMES``; if B is not in the L2 cache (``cold``), at least that of its part of
    B at a block's share of the memory bandwidth.
    """
    known = TIMES.get(replace(form, stages=0))
    if known is None:
        raise CHECK.malformed("form", "must be one of gemm_forms with known times where it is chosen by time", form)
    aligned, other, tile = known
    steps = -(-depth * element_bytes // form.step_bytes)
    step = max(aligned if even else other, cold * form.columns * form.step_bytes / MEMORY_RATE)
    return -(-columns // form.columns) * (steps * step + tile)


def _box(shape: tuple[int, int], dtype: str, rows: int, columns: int, target: str) -> TensorMapPlan:
    """The plan that stores the first rows of 64 in shared memory to any rows of D.

    A box may begin at any of the 64 rows: the swizzle is a function of absolute addresses.
    """
    panels = columns // PANEL
    wide: Any = ((rows, (PANEL, panels)), (PANEL, (1, PANEL * GROUP_ROWS)))
    smem = CuteLayout(*(((rows, PANEL), (PANEL, 1)) if panels == 1 else wide))
    problem = TensorMapProblem.of(
        Tensor(shape, dtype=dtype, base_align_bytes=128), (rows, columns), smem, swizzle="128B", arch=target,
        direction="store", origin_multiple=(1, columns),
    )  # fmt: skip
    plan = synthesize_tensormap(problem)
    if plan.tensor_map.swizzle != "128B":  # a single row is the same under every swizzle
        raise CHECK.malformed("form", f"must leave boxes of {rows} rows with a swizzle of 128 bytes", columns)
    return plan


@dataclass(frozen=True, slots=True)
class _Grouped(Product):
    """What the text of a product of groups is made of; ``counts`` begins with the tiles of the schedule at most."""

    rests: tuple[TensorMapPlan, ...]  # copies of the last rows of a group

    def program(self) -> Program:
        """Return the program: that of a product, with tiles from a schedule."""
        plain = Product.program(self)
        start = _START.format(
            header=HEADER_WORDS, across=self.counts[1], rows=self.form.rows, refused=REFUSED - STATUS_TIMEOUT
        )
        maps = [(MAP_TYPE, f"map_{each}") for each in ("a", "b", *[f"d{rows}" for rows in BOXES])]
        workers = tuple([replace(each, start="\n".join([AHEAD, each.start])) for each in plain.workers])
        parameters = (*maps, ("const int*", "schedule"), ("int", PERSISTENT_GRID))
        return replace(plain, workers=workers, parameters=parameters, turns=TRIPS, start=start)

    def _before(self) -> str:
        boxes = zip(RESTS, self.rests, strict=True)
        rests = [mover(plan, f"{self.name}_d{rows}", f"Stores {rows} last rows of a group.") for rows, plan in boxes]
        return Product._before(self) + "".join(rests)

    def _tile(self) -> str:
        return _TILE.format(columns=self.form.columns)

    def _load(self) -> tuple[tuple[str, str], ...]:
        step = f"step * {self.a.problem.shape[1]}"
        second = ", ".join(ordered(("column", step), self.b.major))
        return (
            ("loop[2]", f"{self.name}_a(&map_a, $A, $bar, row, {step});"),
            ("loop[3]", f"{self.name}_b(&map_b, $B, $bar, group, {second});"),
        )

    def _leave(self) -> str:
        """The stores of a part: all 64 rows, or those that the group has."""
        form, across = self.form, self.form.columns // self.form.leaving
        lines = [
            f"const int from = which * {form.rows // form.consumers} + step / {across} * {GROUP_ROWS};",
            f"const int left = rows - from, first = row + from, at = column + step % {across} * {form.leaving};",
            f"if (left >= {GROUP_ROWS}) {self.name}_d(&map_d{GROUP_ROWS}, $C, first, at);",
            "else {", "    int done = 0;",
        ]  # fmt: skip
        for rows in RESTS:
            store = f"{self.name}_d{rows}(&map_d{rows}, $C + {2 * PANEL} * done, first + done, at);"
            lines.append(f"    if (left > 0 && left & {rows}) {{ {store} done += {rows}; }}")
        return "\n".join([*lines, "}"])
