"""Kernels of ragged tensors: a schedule from sizes in device memory, then tiles through a ring of stages.

Two launches and no synchronisation with the host: ``schedule_kernel`` lists the tiles, and the blocks of the second
kernel take them in turns. Loads take whole tiles, also the last of a group: the rows behind it are discarded, and lie
in the tensor or are filled. Stores write the rows of the group alone, by the strategy of the family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from layoutalg.codegen.cuda import MAP_TYPE, issue_text
from layoutalg.codegen.kernel import STATUS_TIMEOUT, KernelSource, checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place, checked_places
from layoutalg.codegen.kernels.copy import copy_pipeline
from layoutalg.codegen.kernels.ragged_spans import SpanKernel, ragged_span_kernel
from layoutalg.codegen.kernels.ring import MOST_COORDINATE, mover
from layoutalg.codegen.kernels.schedule import (
    GIVEN,
    HEADER_WORDS,
    INDEX_TYPES,
    TILE_WORDS,
    TILES_PER_BLOCK,
    schedule_kernel,
)
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline.emission import Emitted, emit
from layoutalg.codegen.pipeline.program import Loop, Program, Worker
from layoutalg.codegen.plans import upheld
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.cute import CuteLayout
from layoutalg.ground.record import Checked
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.groups import tile_bound
from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.proofs.ragged_clip import TALL, ClipPlan
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.synth.ragged.family import ragged
from layoutalg.synth.tensormap import synthesize_tensormap

WAYS = ("auto", "vectors", "boxes")
STRATEGIES = ("auto", "exact_pool", "overlap_pool", "shift_back", "clip")
"""Strategies of stores; the others need a map per group, or write foreign rows."""
MOST_MAPS = 30
"""Maps of one kernel, so that its parameters fit 4096 bytes (CUDA C++ programming guide, function parameters)."""
REFUSED = 0xFF00 | STATUS_TIMEOUT
"""Status of blocks whose schedule names a wrong group."""
TILE_BYTES = 16384
THIN_ROWS = 4
"""Rows of the lowest tile that is chosen by default."""
START = f"""const la_words4 header = *(const la_words4*)schedule;
const la_words4* const entries = (const la_words4*)(schedule + {HEADER_WORDS});
const int height = (int)header.word[1], across = (int)header.word[3], tiles = (int)header.word[0] * across;
if (header.word[2]) gave_up = {REFUSED - STATUS_TIMEOUT};  // the scheduler refused the sizes"""
TRIPS = f"(tiles - (int)blockIdx.x + {PERSISTENT_GRID} - 1) / {PERSISTENT_GRID}"
AHEAD = "la_words4 next = {};\nif ((int)blockIdx.x < tiles) next = entries[(int)blockIdx.x / across];"
PLACE = f"const int tile = (int)blockIdx.x + k * {PERSISTENT_GRID}, column = tile % across;\n"
TAKE = f"""{PLACE}const la_words4 entry = next;
if (tile + {PERSISTENT_GRID} < tiles) next = entries[(tile + {PERSISTENT_GRID}) / across];
"""


@dataclass(frozen=True, slots=True)
class ScheduledKernel(Checked):
    """A kernel over the tiles of ragged groups, the one that lists them, and what their launches need.

    Args:
        emitted: The kernel that takes the tiles, its pipeline and the proof.
        scheduler: The kernel that lists the tiles.
        what: What they do, in one line.
        groups: The number of groups.
        most_tiles: Tiles of the schedule at most.
        blocks: Blocks of a launch at most; any smaller number works.
        maps: Descriptors in parameter order, relative to their arrays.
        arrays: The arrays that it takes.
        index_bytes: Bytes of a size or an offset.
        given: ``"offsets"`` or ``"sizes"``.
    """

    emitted: Emitted
    scheduler: KernelSource
    what: str
    groups: int
    most_tiles: int
    blocks: int
    maps: tuple[bytes, ...]
    arrays: tuple[ArrayArgument, ...]
    index_bytes: int
    given: str

    @property
    def kernel(self) -> KernelSource:
        """The kernel that takes the tiles: its text and the numbers of a launch."""
        return replace(self.emitted.kernel, grid=PERSISTENT_GRID)

    @property
    def text(self) -> str:
        """Both kernels in one file."""
        body = self.scheduler.text.removeprefix(TENSOR_PRELUDE)
        return f"{self.kernel.text}\n{body}"

    @property
    def schedule_words(self) -> int:
        """32-bit words of the schedule."""
        return HEADER_WORDS + TILE_WORDS * self.most_tiles

    @property
    def schedule_blocks(self) -> int:
        """Blocks that the scheduler is best launched with."""
        return max(1, min(64, self.most_tiles // TILES_PER_BLOCK))

    def schedule_arguments(
        self, groups: Place, schedule: Place, *, placed: Place | None = None, blocks: int | None = None
    ) -> list[Any]:
        """Return the arguments of the scheduler.

        Args:
            groups: Sizes, or offsets, in device memory.
            schedule: Array of ``schedule_words`` 32-bit words.
            placed: The first row of each group in the destination, if they differ.
            blocks: Blocks of the launch.
        """
        if (placed is None) == ("placed" in [name for _, name in self.scheduler.parameters]):
            raise CHECK.malformed("placed", "must be given exactly where the kernel is made for it", placed)
        many = self.groups + (self.given == "offsets")
        size = self.index_bytes
        arrays = [ArrayArgument("groups", (many,), size, size, indices=True)]
        places: dict[str, Place] = {"groups": groups, "schedule": schedule}
        if placed is not None:
            arrays.append(ArrayArgument("placed", (self.groups,), size, size, indices=True))
            places["placed"] = placed
        checked_places((*arrays, self._schedule(True)), places)
        count = CHECK.integer(self.schedule_blocks if blocks is None else blocks, "blocks", 1, 1 << 16)
        return [*[places[each.name] for each in arrays], schedule, self.most_tiles, count]

    def gave_up(self, status: int) -> str:
        """Say what a status means; empty for success."""
        if status == REFUSED:
            return "the scheduler refused the sizes: word 2 of the schedule is 1 plus the first wrong group"
        return self.emitted.gave_up(status)

    def _launched(
        self, schedule: Place, blocks: int | None, status: Place | None, **places: Place
    ) -> tuple[list[int], list[Any]]:
        """Addresses of the arrays, and the last arguments: schedule, blocks, status."""
        count = CHECK.integer(self.blocks if blocks is None else blocks, "blocks", 1, self.blocks + 1)
        if status is None:
            status = np.zeros(count, dtype=np.int32)
        checked_places((self._schedule(False),), {"schedule": schedule})
        words = ArrayArgument("status", (count,), answer.STATUS_BYTES, answer.STATUS_BYTES, written=True)
        checked_places((words,), {"status": status})
        return checked_places(self.arrays, places), [schedule, count, status]

    def _schedule(self, written: bool) -> ArrayArgument:
        return ArrayArgument("schedule", (self.schedule_words,), 4, 16, written=written)

    def __str__(self) -> str:
        smem = self.kernel.dynamic_smem_bytes
        return "\n".join([
            f"kernel        {self.kernel.name} for {self.kernel.arch}: {self.what}",
            f"schedule      {self.scheduler.name}: {self.groups} groups by {self.given}, up to {self.most_tiles} tiles",
            f"launch        1 to {self.blocks} blocks of {self.kernel.threads} threads, {smem} bytes of shared memory",
        ])  # fmt: skip


@dataclass(frozen=True, slots=True)
class RaggedKernel(ScheduledKernel):
    """Two kernels that move the rows of ragged groups, and what their launches need.

    Args:
        sources: How many of the maps are of the source; those of the destination follow.
        placed: Whether groups begin elsewhere in the destination.
    """

    sources: int
    placed: bool

    def arguments(
        self,
        source: Place,
        destination: Place,
        schedule: Place,
        blocks: int | None = None,
        status: Place | None = None,
    ) -> list[Any]:
        """Return the arguments of the launch behind the scheduler's.

        Args:
            source: Address of the source, an array for a run on the CPU, or a ``DeviceTensor``.
            destination: The destination, likewise.
            schedule: What the scheduler wrote.
            blocks: Blocks of the launch; by default one per tile.
            status: Array for one status word per block, 1 on success (``gave_up`` says what others mean); by default a
                new array.
        """
        (first, second), last = self._launched(schedule, blocks, status, source=source, destination=destination)
        placed = [place_map(raw, first if at < self.sources else second) for at, raw in enumerate(self.maps)]
        return [*placed, *last]


def ragged_kernel(
    family: RaggedFamily,
    *others: RaggedFamily,
    groups: int | None = None,
    sizes: Mapping[str, int] | None = None,
    into_rows: int | None = None,
    given: str = "offsets",
    index_dtype: str = "s32",
    placed: bool = False,
    stages: int = 6,
    name: str | None = None,
) -> RaggedKernel:
    """Return the kernel that copies the groups of a ragged matrix, their sizes read from device memory.

    Mathematically: ``into[placed[g] + i] = from[offsets[g] + i]`` for the rows i of each group, and nothing else.

    Args:
        family: The maps of one side, of a matrix whose rows are ragged.
        others: Families of the same matrix with other tiles of as many bytes; the device takes that with the fewest
            tiles.
        groups: The number of groups, if the family leaves it open.
        sizes: Of the names in the tensor's shape.
        into_rows: Rows of the destination, if not those of the source.
        given: Whether the device has ``"offsets"`` (G + 1 running sums) or ``"sizes"``.
        index_dtype: Their type, ``"s32"`` or ``"s64"``.
        placed: Whether groups begin elsewhere in the destination, by another array.
        stages: Slots of the ring, 2 to 32.
        name: Kernel symbol.

    Raises: MalformedError: LA945. InfeasibleError: LA946, LA948. InadmissibleError: no map does the other side.

    Example:
        >>> family = ragged(Tensor((4096, 512)), 8, (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
        >>> made = family.kernel()
        >>> made.most_tiles, len(made.maps), made.kernel.threads
        (71, 8, 64)
    """
    families = tuple([_concrete(each, sizes) for each in (family, *others)])
    many = family.groups if groups is None else groups
    if many is None:
        raise CHECK.malformed("groups", "must be given: the family leaves their number open", many)
    CHECK.integer(stages, "stages", 2, 33)
    first = families[0]
    sides = [_sides(each, into_rows) for each in families]
    loads, stores = [load for load, _ in sides], [store for _, store in sides]
    rows, columns = loads[0].problem.global_shape
    _alike(families, loads)
    maps = [*loads, *[store for each in stores for store in each]]
    if len(maps) > MOST_MAPS:
        raise CHECK.malformed("others", f"must need at most {MOST_MAPS} maps", len(maps))
    size = loads[0].problem.element_bytes
    kind = answer.elements(size)
    what = f"copy of {many} ragged groups of {rows} x {columns} {kind} by the copy engine: {first.strategy}"
    name = f"la_ragged_copy_{rows}x{columns}_b{8 * size}_{first.strategy}" if name is None else checked_name(name)
    target = loads[0].problem.arch
    before, load_lines, store_lines = [], [], []
    for number, (each, load, members) in enumerate(zip(families, loads, stores, strict=True)):
        width = load.problem.tile[1]
        before.append(mover(load, f"{name}_load{number}", f"Loads a tile of {each.tile_rows} rows."))
        chosen = f"if (height == {each.tile_rows}) " if others else ""
        at = f"(int)entry.word[0], column * {width}"
        load_lines.append(f"{chosen}{name}_load{number}(&from{number}, $T, $bar, {at});")
        before += [_store(store, f"{name}_store{number}_{place}") for place, store in enumerate(members)]
        lines = _stores(each, name, number, width, _pitch(load))
        store_lines += [f"{chosen}{{", *[f"    {line}" for line in lines], "}"] if others else lines
    stored = "const int row = (int)entry.word[3], rows = (int)entry.word[1];\n"
    workers = (
        Worker((Loop("load", (("loop[2]", TAKE + "\n".join(load_lines)),)),), elected=True, start=AHEAD),
        Worker((Loop("store", (("loop[1]", TAKE + stored + "\n".join(store_lines)),)),), elected=True, start=AHEAD),
    )
    sources = tuple([(MAP_TYPE, f"from{number}") for number in range(len(families))])
    targets = tuple([(MAP_TYPE, f"into{n}_{m}") for n, each in enumerate(stores) for m in range(len(each))])
    program = Program(
        copy_pipeline(stages, max(1, stages // 2), max(load.smem_bytes for load in loads), loads[0].expect_tx_bytes),
        workers, (*sources, *targets, ("const int*", "schedule"), ("int", PERSISTENT_GRID)), TRIPS,
        plans=tuple([("T", plan) for plan in loads]), before="".join(before), start=START,
    )  # fmt: skip
    emitted = emit(program, name, target, title=f"{answer.sentence(what)}.")
    across = [(each.tile_rows, -(-columns // load.problem.tile[1])) for each, load in zip(families, loads, strict=True)]
    scheduler = schedule_kernel(
        many, across, rows, target, given=given, index_dtype=index_dtype, multiple=first.multiple,
        least=first.least_rows, shift_back=first.strategy in ("auto", "shift_back"), placed=placed, into_rows=into_rows,
        name=f"{name}_schedule",
    )  # fmt: skip
    most = max(tile_bound(rows, many, height) for height, _ in across)
    tiles = max(tile_bound(rows, many, height) * count for height, count in across)
    align = loads[0].problem.base_align_bytes
    arrays = (
        ArrayArgument("source", (rows, columns), size, align),
        ArrayArgument("destination", stores[0][0].problem.global_shape, size, align, written=True),
    )
    return RaggedKernel(
        emitted, scheduler, what, many, most, checked_tiles(tiles, stages), tuple([plan.raw for plan in maps]), arrays,
        4 if index_dtype == "s32" else 8, given, len(loads), placed,
    )  # fmt: skip


def _alike(families: Sequence[RaggedFamily], loads: Sequence[TensorMapPlan]) -> None:
    """Refuse families between which the device cannot choose: another matrix, other sizes, other bytes, one height."""
    first = families[0], loads[0]
    for place, (family, load) in enumerate(zip(families, loads, strict=True)):
        if (load.problem.global_shape, load.problem.dtype) != (first[1].problem.global_shape, first[1].problem.dtype):
            raise CHECK.malformed("others", "must be families of the same matrix", str(load.problem.global_shape))
        if (family.strategy, family.multiple) != (first[0].strategy, first[0].multiple):
            raise CHECK.malformed("others", f"must be families by {first[0].strategy} of the same sizes", str(family))
        if load.expect_tx_bytes != first[1].expect_tx_bytes:
            raise CHECK.malformed("others", f"must have tiles of {first[1].expect_tx_bytes} bytes", load.problem.tile)
        if family.tile_rows in [other.tile_rows for other in families[:place]]:
            raise CHECK.malformed("others", "must have tiles of different heights", family.tile_rows)


def checked_tiles(tiles: int, stages: int) -> int:
    """Return the number of tiles, refused if an ``int`` cannot count them and the blocks behind them."""
    if tiles * (stages + 1) >= MOST_COORDINATE:
        raise CHECK.malformed("tile", "must leave fewer than 2^31 tiles", tiles)
    return max(1, tiles)


def _concrete(family: RaggedFamily, sizes: Mapping[str, int] | None) -> RaggedFamily:
    """The family at sizes of its tensor; only of matrices whose rows are ragged."""
    CHECK.kind(family, RaggedFamily, "family")
    CHECK.choice(family.strategy, "strategy of the family", STRATEGIES)
    plans = [plan.specialise(sizes) if isinstance(plan, SymbolicPlan) else plan for plan in family.plans]
    for problem in (plan.problem for plan in plans):
        shape = problem.global_shape
        whole = problem.bounds == tuple([(0, extent) for extent in shape]) and not problem.base_elem_offset
        if len(shape) != 2 or family.axis or problem.global_strides != (shape[1], 1) or not whole:
            rule = "must be of a dense row-major matrix whose rows are ragged"
            raise CHECK.malformed("family", rule, f"{shape}:{problem.global_strides}")
    return replace(family, plans=tuple(plans), rows=plans[0].problem.global_shape[0])


def _dense(plan: object) -> TensorMapPlan:
    return CHECK.kind(plan.dense if isinstance(plan, ClipPlan) else plan, TensorMapPlan, "plan")


def _sides(family: RaggedFamily, into_rows: int | None) -> tuple[TensorMapPlan, tuple[TensorMapPlan | ClipPlan, ...]]:
    """The plan that loads whole tiles, and those that store."""
    load = upheld(_turned(_dense(family.plans[0]), "load", None))
    stores: list[TensorMapPlan | ClipPlan] = []
    for plan in family.plans:
        store = upheld(_turned(_dense(plan), "store", into_rows))
        stores.append(ClipPlan.of(store, family.axis, plan.form) if isinstance(plan, ClipPlan) else store)
    return load, tuple(stores)


def _turned(plan: TensorMapPlan, direction: str, rows: int | None) -> TensorMapPlan:
    """The plan of the same tile in a direction, of a matrix with other rows if they are given."""
    if plan.direction == direction and rows in (None, plan.problem.global_shape[0]):
        return plan
    document: dict[str, Any] = plan.problem.to_json()
    document["direction"] = direction
    if direction == "store":
        document.pop("oob_fill", None)
    if rows is not None:
        document["global"]["shape"][0] = CHECK.integer(rows, "into_rows", 1, MOST_COORDINATE)
        document.pop("bounds", None)
    return synthesize_tensormap(document)


def _pitch(plan: TensorMapPlan) -> int:
    """Bytes from row to row of the tile in shared memory."""
    digits = [digit for digit in plan.problem.smem_modes[0] if digit[0] > 1]
    return digits[0][1] * plan.problem.element_bytes if digits else 0


def _store(plan: TensorMapPlan | ClipPlan, name: str) -> str:
    """The device function that stores a box; of a clipped plan, rows of a tile of which so many are valid."""
    if isinstance(plan, TensorMapPlan):
        return mover(plan, name, f"Stores a box of {plan.problem.tile[0]} rows.")
    rank, more = plan.tensor_map.rank, ", row + rows" + (f", {TALL}" if plan.form == "read_write" else "")
    call = f"la_tma_store_{rank}d(map, {{address}}, {{coords}}{more});"
    return (
        f"\n// Stores the first rows of a tile: the others are beyond 2^30 in the map.\n"
        f"__device__ __forceinline__ void {name}(\n"
        f"    const la_tensor_map* map, la_u32 tile_address, int row, int rows, int origin1)\n{{\n"
        f"    const int origin0 = {TALL} - rows;\n{issue_text(plan.dense, call)}}}\n"
    )


def _stores(family: RaggedFamily, name: str, number: int, width: int, pitch: int) -> list[str]:
    """The statements that store the valid rows of a tile."""

    def call(member: int, first: str = "") -> str:
        there = f"$T + {pitch} * ({first})" if first else "$T"
        row = f"row + {first}" if first else "row"
        return f"{name}_store{number}_{member}(&into{number}_{member}, {there}, {row}, column * {width});"

    if family.strategy == "clip":
        return [f"{name}_store{number}_0(&into{number}_0, $T, row, rows, column * {width});"]
    lines = [f"if (rows == {family.tile_rows}) {{", f"    {call(0)}", "}"]
    smaller = list(enumerate(family.heights))[1:]
    if family.strategy == "exact_pool" and smaller:
        lines[-1] = "} else {"
        lines.append("    int done = 0;")
        for member, height in smaller:
            lines.append(f"    if (rows & {height}) {{ {call(member, 'done')} done += {height}; }}")
        return [*lines, "}"]
    for member, height in smaller:
        lines[-1] = f"}} else if (rows >= {height}) {{"
        lines.append(f"    {call(member)}")
        lines += [f"    if (rows > {height}) {call(member, f'rows - {height}')}", "}"]
    return lines


def ragged_copy_kernel(
    shape: tuple[int, int],
    dtype: object,
    groups: int,
    target: str = "sm_90a",
    *,
    way: str = "auto",
    heights: Sequence[int] | None = None,
    strategy: str = "auto",
    multiple: int = 1,
    **options: Any,
) -> RaggedKernel | SpanKernel:
    """Return the kernel that copies ragged groups of a row-major matrix.

    Args:
        shape: Rows and columns.
        dtype: Element type by any of its names.
        groups: The number of groups.
        target: The target; boxes need tensor maps.
        way: ``"vectors"``: by the threads, in one launch (``ragged_span_kernel``); ``"boxes"``: by the copy engine
            behind a schedule, with the tile height that fits the sizes; ``"auto"``: vectors, unless boxes are
            described. Vectors need no rows in common: from 64 contiguous bytes on they copy at full bandwidth
            (``targets.memory_costs``), boxes of few rows do not.
        heights: Tile heights that the device chooses from, powers of two; by default from 64 down to 4, those of
            which rows have at most the bytes of the matrix.
        strategy: Of boxes, as of ``layoutalg.ragged``.
        multiple: What divides every size.
        options: As of ``ragged_span_kernel`` or ``ragged_kernel``.

    Example:
        >>> made = ragged_copy_kernel((4096, 2048), "f32", 64, way="boxes")
        >>> made.most_tiles, len(made.maps)
        (1072, 18)
        >>> type(ragged_copy_kernel((4096, 2048), "f32", 64)).__name__
        'SpanKernel'
    """
    CHECK.choice(way, "way", WAYS)
    described = [name for name, given in (("heights", heights is not None), ("strategy", strategy != "auto"),
                                          ("stages", "stages" in options)) if given]  # fmt: skip
    if way == "vectors" or (way == "auto" and not described):
        if described:
            raise CHECK.malformed("way", f"must be boxes: {described[0]} does not apply to vectors", way)
        return ragged_span_kernel(shape, dtype, groups, target, multiple=multiple, **options)
    rows, columns = answer.checked_shape(shape, 2)
    kind = element_type(dtype)
    size = answer.element_bytes(dtype)
    tensor = Tensor((rows, columns), dtype=kind.name, base_align_bytes=128)
    if heights is None:
        heights = [height for height in (64, 16, THIN_ROWS) if TILE_BYTES // height <= max(columns * size, 256)]
    found = []
    for height in heights:
        width = TILE_BYTES // size // answer.power(height, "heights", 1, TILE_BYTES // 128)
        inner = min(width, 256)
        layout: Any = CuteLayout((height, inner), (inner, 1))
        if width > inner:
            layout = CuteLayout((height, (inner, width // inner)), (inner, (1, inner * height)))
        found.append(ragged(tensor, groups, (height, width), layout, strategy, target=target, multiple=multiple))
    return ragged_kernel(found[0], *found[1:], **options)


__all__ = ["GIVEN", "INDEX_TYPES", "RaggedKernel", "ragged_copy_kernel", "ragged_kernel"]
