"""Transposes of ragged matrices: rows of groups become columns, the groups side by side.

Copies start 16-byte aligned along the rows of the result, so every group size is a multiple of 16 bytes of elements.
That leaves at most 8 rests of a tile of 128 bytes: each has a map of its own, and its store needs no predicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ends
from layoutalg.codegen.kernels.ragged import AHEAD, PLACE, START, TAKE, TRIPS, RaggedKernel, checked_tiles
from layoutalg.codegen.kernels.ring import mover
from layoutalg.codegen.kernels.schedule import schedule_kernel
from layoutalg.codegen.kernels.transpose_ring import CHUNK, SPAN, turn_pipeline, turning
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.codegen.pipeline.program import WARP, Loop, Program, Worker
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.cute import CuteLayout
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.groups import tile_bound
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth.tensormap import synthesize_tensormap


def ragged_transpose_kernel(
    shape: Sequence[int],
    dtype: object,
    groups: int,
    target: str = "sm_90a",
    *,
    multiple: int | None = None,
    given: str = "offsets",
    index_dtype: str = "s32",
    stages: int = 2,
    leaving: int = 2,
    name: str | None = None,
) -> RaggedKernel:
    """Return the kernel that transposes the groups of a ragged matrix, their sizes read from device memory.

    Mathematically: ``into[c, offsets[g] + i] = from[offsets[g] + i, c]`` for the rows i of each group; columns of the
    result that belong to no group are not written.

    Args:
        shape: Rows and columns of the source, both multiples of 16 bytes.
        dtype: Element type; 1, 2, 4 or 8 bytes.
        groups: The number of groups.
        target: A target with tensor maps.
        multiple: What divides every group size, a multiple of 16 bytes of elements; by default exactly those.
        given: Whether the device has ``"offsets"`` or ``"sizes"``.
        index_dtype: Their type, ``"s32"`` or ``"s64"``.
        stages: Tiles loaded ahead, 1 to 8.
        leaving: Transposed tiles with stores in flight, 1 to 4.
        name: Kernel symbol.

    Raises: MalformedError: LA945. InfeasibleError: LA946. InadmissibleError: no map does it.

    Example:
        >>> made = ragged_transpose_kernel((4096, 1024), "bf16", 16)
        >>> made.most_tiles, len(made.maps)  # one map to load, one for each rest
        (79, 9)
    """
    rows, cols = answer.checked_shape(shape, 2)
    size, found = answer.element_bytes(dtype), answer.checked_target(target)
    if not found.has_tensor_maps:
        raise CHECK.malformed("target", "must have a copy engine for tensors", target)
    side, tile = CHUNK // size, SPAN // size
    multiple = side if multiple is None else CHECK.integer(multiple, "multiple", 1)
    if multiple % side:
        raise CHECK.malformed("multiple", f"must be a multiple of {side}: copies start 16-byte aligned", multiple)
    CHECK.integer(stages, "stages", 1, 9)
    CHECK.integer(leaving, "leaving", 1, 5)
    step = gcd(multiple, tile)
    rests = [tile, *range(step, tile, step)]
    load = _plan((rows, cols), dtype, (tile, tile), "load", (step, tile), target)
    stores = [_plan((cols, rows), dtype, (tile, rest), "store", (tile, step), target) for rest in rests]
    threads = min((tile // side) ** 2, 256)
    numbers = Numbers()
    loads, kept, served = turning((tile, tile), size, threads, numbers, target)
    what = f"transpose of {groups} ragged groups of {rows} x {cols} {answer.elements(size)} by the copy engine"
    name = f"la_ragged_transpose_{rows}x{cols}_b{8 * size}" if name is None else checked_name(name)
    stored = [
        f"if (entry.word[1] == {rest}u) {name}_store{number}(&into{number}, $B, column * {tile}, (int)entry.word[0]);"
        for number, rest in enumerate(rests)
    ]
    bodies = (
        ("loop[1]", "\n".join(["const la_u32 came = $A_byte;", *loads])),
        ("loop[5]", "\n".join(["const la_u32 goes = $B_byte;", *kept])),
        ("loop[7]", "\n".join([f"{PLACE}const la_words4 entry = entries[tile / across];", *stored])),
    )
    taken = f"{name}_load(&from, $A, $bar, (int)entry.word[0], column * {tile});"
    workers = (
        Worker((Loop("load", (("loop[2]", TAKE + taken),)),), elected=True, start=AHEAD),
        Worker((Loop("turn", bodies),), threads // WARP, start=numbers.declared(0)),
    )
    maps = ((MAP_TYPE, "from"), *[(MAP_TYPE, f"into{number}") for number in range(len(rests))])
    program = Program(
        turn_pipeline(stages, leaving, threads // WARP, tile * tile * size), workers,
        (*maps, ("const int*", "schedule"), ("int", PERSISTENT_GRID)), TRIPS, plans=(("A", load), ("B", stores[0])),
        before=mover(load, f"{name}_load", "Loads a tile.") + "".join(numbers.tables) + "".join([
            mover(store, f"{name}_store{number}", f"Stores a turned tile of {rests[number]} rows.")
            for number, store in enumerate(stores)
        ]), start=START,
    )  # fmt: skip
    emitted = emit(program, name, target, title="\n".join([f"{answer.sentence(what)}.", *map(str, served)]))
    across, most = -(-cols // tile), tile_bound(rows, groups, tile)
    scheduler = schedule_kernel(
        groups, [(tile, across)], rows, target, given=given, index_dtype=index_dtype, multiple=multiple,
        name=f"{name}_schedule",
    )  # fmt: skip
    return RaggedKernel(
        emitted, scheduler, what, groups, most, checked_tiles(most * across, stages),
        tuple([plan.raw for plan in (load, *stores)]),
        ends((rows, cols), (cols, rows), size, load.problem.base_align_bytes), 4 if index_dtype == "s32" else 8,
        given, 1, False,
    )  # fmt: skip


def _plan(
    shape: tuple[int, int], dtype: object, tile: tuple[int, int], direction: str, origins: tuple[int, int], target: str
) -> TensorMapPlan:
    """The plan of a tile whose rows are 128 bytes apart in shared memory, with origins at these multiples."""
    kind = element_type(dtype)
    smem = CuteLayout(tile, (SPAN * 8 // kind.bits, 1))
    problem = TensorMapProblem.of(
        Tensor(shape, dtype=kind.name, base_align_bytes=128), tile, smem, swizzle="128B", arch=target,
        direction=direction, origin_multiple=origins,
    )  # fmt: skip
    return synthesize_tensormap(problem)
