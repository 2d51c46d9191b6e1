"""Tiled copies by the copy engine through a ring of stages: the descriptors of both sides, and the text using them.

A stage is one tile in shared memory with its barrier. A persistent block processes tiles ``blockIdx.x``,
``blockIdx.x + blocks``, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from textwrap import dedent, indent
from typing import Any

from layoutalg.codegen.cuda import LOAD, MAP_TYPE, STORE, issue_text
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID, checked_grid
from layoutalg.cute import CuteLayout
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth.tensormap import synthesize_tensormap
from layoutalg.targets.nvidia.swizzles import PLAIN, SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES

MOST_COORDINATE = 1 << 31
SPANS = {name: SWIZZLE_TABLE[name].span_bytes if name != "NONE" else 0 for name in PLAIN}
PARAMETERS = ((MAP_TYPE, "from"), (MAP_TYPE, "into"), ("int", PERSISTENT_GRID))

_MOVER = """
// {title}
__device__ __forceinline__ void {name}(
    const la_tensor_map* map, la_u32 tile_address,{barrier}{mask} {origins})
{{
{issues}}}
"""


def tile_plan(
    shape: Sequence[int],
    dtype: object,
    tile: Sequence[int],
    swizzle: str,
    target: str,
    direction: str,
    origins: Sequence[int] | None = None,
) -> TensorMapPlan:
    """Return the plan that copies tiles of a dense row-major array; shared rows are as long as the swizzle's span.

    Args:
        shape: Extents of the array.
        dtype: Element type.
        tile: Extents of a tile.
        swizzle: Of shared memory, by name.
        target: The target.
        direction: ``"load"`` or ``"store"``.
        origins: What divides the origins of tiles, by default their extents.

    Raises: InadmissibleError, with the rules that no descriptor satisfies. MalformedError: LA945, LA372.

    Example:
        >>> tile_plan((512, 512), "f32", (64, 64), "128B", "sm_90a", "load").tensor_map.box
        (32, 64, 2)
    """
    CHECK.choice(swizzle, "swizzle", SPANS)
    kind = element_type(dtype)
    tensor, size = Tensor(tuple(shape), dtype=kind.name, base_align_bytes=128), kind.bits // 8
    inner = tile[-1] if not SPANS[swizzle] else min(tile[-1], SPANS[swizzle] // size)
    if tile[-1] % inner:
        raise CHECK.malformed("tile", f"must have an inner extent that is a multiple of {inner}", tuple(tile))
    extents: list[Any] = list(tile[:-1])
    strides: list[Any] = [inner * prod(tile[dim + 1 : -1]) for dim in range(len(tile) - 1)]
    if tile[-1] == inner:
        extents.append(inner)
        strides.append(1)
    else:
        extents.append((inner, tile[-1] // inner))
        strides.append((1, inner * prod(tile[:-1])))
    smem = CuteLayout(tuple(extents), tuple(strides))
    options: dict[str, Any] = {} if origins is None else {"origin_multiple": tuple(origins)}
    problem = TensorMapProblem.of(
        tensor, tuple(tile), smem, swizzle=swizzle, arch=target, direction=direction, **options
    )
    return synthesize_tensormap(problem)


def tiles_of(shape: Sequence[int], tile: Sequence[int]) -> tuple[int, ...]:
    """Return the number of tiles in each dimension."""
    return tuple(-(-extent // part) for extent, part in zip(shape, tile, strict=True))


def checked_tiles(shape: Sequence[int], tile: Sequence[int], ahead: int) -> tuple[int, ...]:
    """Return the number of tiles in each dimension; every coordinate and tile number must fit ``int``."""
    counts = tiles_of(shape, tile)
    for count, part in zip(counts, tile, strict=True):
        if count * part > MOST_COORDINATE:
            raise CHECK.malformed("tile", "must end at a coordinate of at most 2^31 in every dimension", tuple(tile))
    rest = prod(counts[1:])
    limit = MOST_COORDINATE // (ahead + 1)
    checked_grid(lambda extent: -(-extent // tile[0]) * rest, shape[0], limit, what="tiles", splits=False)
    return counts


def mover(plan: TensorMapPlan, name: str, title: str, multicast: bool = False) -> str:
    """Return the device function that issues the copies of a tile at an origin; the caller has the barrier expect them.

    Args:
        plan: The plan.
        name: The function's name.
        title: What it does.
        multicast: Whether it loads into the blocks of a cluster that a mask selects.

    Raises: MalformedError: LA945, if a barrier cannot count the bytes.
    """
    if plan.expect_tx_bytes > MAX_PHASE_BYTES:
        raise CHECK.malformed("tile", f"must have at most {MAX_PHASE_BYTES} bytes", plan.expect_tx_bytes)
    load = plan.direction == "load"
    guard = ""
    if not load:  # a plan may take a dimension that fits one tile to begin at 0: other tiles write nothing
        still = [dim for dim, step in enumerate(plan.problem.origin_multiple) if step == 0]
        beyond = " || ".join([f"origin{dim} >= {plan.problem.global_shape[dim]}" for dim in still])
        guard = f"    if ({beyond}) return;\n" * bool(beyond)
    call = (LOAD if load else STORE).replace("&map", "map")
    if multicast:
        call = call.replace("load_", "load_multicast_").replace("barrier,", "barrier, mask,")
    return _MOVER.format(
        title=title, name=name, barrier=" la_u32 barrier," if load else "",
        mask=" la_u32 mask," if multicast else "",
        origins=", ".join([f"int origin{dim}" for dim in range(plan.problem.rank)]),
        issues=guard + indent(dedent(issue_text(plan, call)), "    "),
    )  # fmt: skip


def origins(tile: Sequence[int], order: Sequence[int], counts: Sequence[int]) -> str:
    """Return C expressions of a tile's origin by its number ``tile``, outermost first.

    Args:
        tile: Extents of a tile.
        order: Its dimensions, the fastest-varying in the number first.
        counts: Tiles in each dimension.

    Example:
        >>> origins((64, 32), (1, 0), (8, 4))
        'tile / 4 * 64, tile % 4 * 32'
    """
    found, before = {}, 1
    for place, dim in enumerate(order):
        number = f"tile / {before}" if before > 1 else "tile"
        number += f" % {counts[dim]}" if place + 1 < len(order) else ""
        found[dim] = "0" if counts[dim] == 1 else f"{number} * {tile[dim]}"
        before *= counts[dim]
    return ", ".join([found[dim] for dim in range(len(tile))])


def tiles_of_block(tiles: int | str, cluster: int = 1) -> str:
    """Return the C expression of how many tiles a persistent block takes, or a cluster of blocks together.

    Example:
        >>> tiles_of_block(64)
        'blocks >= 64 ? (int)blockIdx.x < 64 : (64 - (int)blockIdx.x + blocks - 1) / blocks'
    """
    # nobody has to divide before his first copy if all tiles run at once
    block, blocks = ("(int)blockIdx.x", PERSISTENT_GRID) if cluster == 1 else (
        f"(int)blockIdx.x / {cluster}", f"({PERSISTENT_GRID} / {cluster})"
    )  # fmt: skip
    return f"{blocks} >= {tiles} ? {block} < {tiles} : ({tiles} - {block} + {blocks} - 1) / {blocks}"
