"""Claims about TensorMap plans: copies of a tile by boxes, their hand-over to ``wgmma``, and tiles no map can copy.

Axes: [tile, step, multiple, stride, low, high]. Element i, with digits t over the axes, belongs at byte shared(i) of
the tile; at the origin multiple u, u in Z^n, it is element offset + sum of stride x, x = multiple u + step t, if all
low <= x < high. Dimensions of a map: [extent, stride in bytes (first 0), box, step]. Issue [c, s]: a box from
coordinates c + moves u to shared byte s. Behaviour of maps and boxes: measured on sm_90 (docs/checkers.md).
"""

import math
import re
import typing

import numpy as np

from .base import NATURAL, SIZED, Numbers, column, digits_of, limit, limit_cells, require, tick
from .operands import BITS, READ, swizzled, wgmma_operand

TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16", "tf32", "tf32_ftz")
WIDE, COUNT = range(-(2**48), 2**48), range(1, 2**31 + 1)
FAR = 2**62  # beyond all origins
LEAST_START, END_START = -(2**31), 2**31  # coordinates at which a box may start
SHARED_BYTES = 232448  # of one block
TX_END = 2**20  # a barrier counts fewer transaction bytes than this
SPANS = (0, 32, 64, 128)  # bytes of a row of each swizzle
PROBLEM = {
    "axes": [(COUNT, COUNT, range(2**48), WIDE, WIDE, WIDE)],
    "dtype": {*TYPES},
    "base_elem_offset": WIDE,
    "base_align_bytes": COUNT,
    "oob_fill": {"ZERO", "NAN"},
    "direction": {"load", "store"},
    "shared": SIZED,
}
PLAN = {
    "problem": PROBLEM,
    "bytes": str,
    "issues": [([range(LEAST_START, END_START)], range(0, 2**18, 128))],
    "moves": [[WIDE]],
    "expect_tx_bytes": int,
    "smem_align_bytes": int,
    "smem_bytes": int,
    "oob": {"exact", "weak"},
}
MAP = {
    "base": range(0, 2**57, 16),
    "swizzle": range(4),
    "fill": range(2),
    "promotion": range(4),
    "dims": [(COUNT, range(0, 2**40, 16), range(1, 257), range(1, 9))],
}


class Axis(typing.NamedTuple):
    tile: int
    step: int
    multiple: int
    stride: int
    low: int
    high: int


class Tile(typing.NamedTuple):
    """The elements of a tile: x per axis and the global byte at origin 0, the shared byte; one array entry for each."""

    axes: list
    element_bytes: int
    x: list
    source: typing.Any
    shared: typing.Any


def tile_of(problem):
    limit(problem.axes, "a tile without axes is not decided here")
    limit_cells(len(problem.axes) * problem.shared.size)
    axes = [Axis(*axis) for axis in problem.axes]
    element_bytes = int(re.sub(r"\D", "", problem.dtype)) // 8
    shared = column(problem.shared.size, problem.shared.stages)
    one_each = problem.shared.size == math.prod(axis.tile for axis in axes)
    aligned = (shared >= 0).all() and not (shared % element_bytes).any()
    require(one_each and aligned, "shared is not where elements lie")
    t = digits_of(len(shared), [axis.tile for axis in axes])
    x = [axis.step * digit for axis, digit in zip(axes, t)]
    tick()
    strides_bytes = [element_bytes * axis.stride for axis in axes]
    source = Numbers(len(shared)).row(strides_bytes, element_bytes * problem.base_elem_offset, x)
    return Tile(axes, element_bytes, x, source, shared.astype(np.int64))


def ceil_div(a, b):
    return -(-a // b)


def encoded(element_bytes, dtype, tensor_map):
    """Return the 128 bytes that the sm_90 driver writes for a map that it accepts."""
    swizzle, fill, dims = tensor_map.swizzle, tensor_map.fill, tensor_map.dims
    limit(dims, "a map without dimensions is not decided here")
    _, first_stride, inner_box, _ = dims[0]
    row_bytes = element_bytes * inner_box
    box_bytes = element_bytes * math.prod(box // step for _, _, box, step in dims[:6])  # of many dimensions it is slow
    row_fits = row_bytes % 16 == 0 and row_bytes <= (2048, 32, 64, 128)[swizzle]
    fill_fits = fill <= ("f" in dtype)  # NaN is for floating point
    accepted = len(dims) <= 5 and first_stride == 0 and row_fits and box_bytes <= 233472 and fill_fits
    require(accepted, "the driver refuses this map", dims=dims, swizzle=swizzle, fill=fill)
    bits = tensor_map.base | (len(dims) - 1) << 68 | swizzle << 77 | fill << 79 | tensor_map.promotion << 81
    bits |= TYPES.index(dtype.replace("tf", "f")) << 71 | dtype.startswith("t") << 80
    bits |= box_bytes << 512 | (16, 256, 512, 1024)[swizzle] << 576
    for k, (extent, stride, box, step) in enumerate(dims):
        bits |= (stride % 2**36 >> 4) << (64 + 32 * k) | (stride >> 36) << (220 + 4 * k)
        bits |= (extent - 1) << (256 + 32 * k) | (step - 1) << (416 + 3 * k) | (box - 1) << (440 + 8 * k)
    return bits.to_bytes(128, "little").hex()


# --- plans -----------------------------------------------------------------------------------------------------------
class Boxes(typing.NamedTuple):
    """All elements of all boxes at origin u = 0, one array entry for each."""

    coordinates: list  # in the map
    landing: typing.Any  # shared byte
    box_bytes: int  # from the start of one box to its end


def boxes_of(plan, tensor_map, element_bytes):
    """Return the elements of all boxes, which are dense in shared memory but for rows narrower than the span."""
    _, _, boxes, steps = zip(*tensor_map.dims)
    steps = [1, *steps[1:]]  # the engine ignores the step of the innermost dimension
    counts = [ceil_div(box, step) for box, step in zip(boxes, steps)]
    total = math.prod(counts) * len(plan.issues)
    limit_cells((len(plan.problem.axes) + 2 * len(counts) + 2) * total)
    *index, issue = digits_of(total, [*counts, len(plan.issues)])
    starts = np.array([start for start, _ in plan.issues]).T[:, issue]
    offsets = np.array([offset for _, offset in plan.issues])[issue]
    coordinates = [start + step * place for start, step, place in zip(starts, steps, index)]
    row_bytes = max(boxes[0] * element_bytes, SPANS[tensor_map.swizzle])
    pitches = [element_bytes, *(row_bytes * math.prod(counts[1:k]) for k in range(1, len(counts)))]
    linear = Numbers(total).row([1, *pitches], 0, (offsets, *index))
    return Boxes(coordinates, swizzled(linear, tensor_map.swizzle), row_bytes * math.prod(counts[1:]))


def owners(tile, boxes):
    """Return the tile element at the shared byte of each box element; any one where there is none."""
    order = np.argsort(tile.shared)
    place = np.searchsorted(tile.shared, boxes.landing, sorter=order)
    return order[place.clip(max=len(tile.shared) - 1)]


def intervals(forms, ends, count):
    """Return the intervals of u, one per axis, in which all forms, low <= value + row u < end, hold; and where they
    are not empty. A value is an array of ``count`` numbers, and so is each end of an interval."""
    low, high = (np.repeat(np.array(part)[:, None], count, axis=1) for part in zip(*ends))
    for value, row, least, end in forms:
        tick()
        limit(sum(map(bool, row)) < 2, "a coordinate moved by several axes is not decided here")
        i = max(range(len(row)), key=lambda i: abs(row[i]))
        room_below, room_above = value - least, end - 1 - value
        if row[i] < 0:
            room_below, room_above = room_above, room_below
        if row[i]:
            down, up = room_below // abs(row[i]), room_above // abs(row[i])
        else:  # the form holds for every u or for none
            down, up = (np.where(room < 0, -FAR - 1, FAR) for room in (room_below, room_above))
        low[i], high[i] = np.maximum(low[i], -down), np.minimum(high[i], up)
    return low, high, (low <= high).all(axis=0)


def origins_in_bounds(axis):
    """Return the first and last u whose tile starts in bounds along an axis; (0, 0) for an axis that does not move."""
    if axis.multiple == 0:
        return 0, 0
    return ceil_div(axis.low, axis.multiple), (axis.high - 1) // axis.multiple


def tensormap_plan(statement, evidence):
    """Each element of each box stands at a tile element's shared byte, has its global address where that is in bounds
    and is out of bounds for the engine where it is so for the problem; all elements are met. So from every origin
    (exact) or from those in bounds (weak); these start within 32 bits, those of a store not below 0."""
    plan, problem, tensor_map = statement, statement.problem, evidence.map
    tile = tile_of(problem)
    expected_bytes = encoded(tile.element_bytes, problem.dtype, tensor_map)
    require(plan.bytes == expected_bytes, "these are not the bytes of the map", got=plan.bytes)
    require_ranks(plan, tensor_map)
    require_alignment(plan, tensor_map, tile.element_bytes)
    boxes = boxes_of(plan, tensor_map, tile.element_bytes)
    owner = owners(tile, boxes)
    require_same_elements(plan, tensor_map, tile, boxes, owner)
    require_starts(plan, tile)
    met = np.bincount(owner, minlength=len(tile.shared))
    require(met.all(), "no box reaches a tile element", element=int(np.argmin(met)))
    require(problem.direction == "load" or stored_once(tile), "two elements are stored to one global address")
    require_byte_counts(plan, tensor_map, boxes, tile.element_bytes * len(owner))
    return f"{plan.oob}: {len(plan.issues)} boxes of {len(owner) // len(plan.issues)} elements"


def require_ranks(plan, tensor_map):
    rank = len(tensor_map.dims)
    issues = np.array([[*start, offset] for start, offset in plan.issues])
    fit = issues.shape[1:] == (rank + 1,) and np.shape(plan.moves) == (rank, len(plan.problem.axes))
    require(fit, "the ranks differ")


def require_alignment(plan, tensor_map, element_bytes):
    """Along a row, boxes start at a multiple of 16 bytes of global memory, and a row that is stored to ends at one.
    The fill of a load is that of the problem."""
    is_store = plan.problem.direction == "store"
    known = plan.problem.base_align_bytes
    places = [start[0] for start, _ in plan.issues] + plan.moves[0]
    if is_store:
        places.append(tensor_map.dims[0][0])
    odd = [place for place in places if place * element_bytes % 16 or known % 16]
    fill_fits = is_store or tensor_map.fill == (plan.problem.oob_fill == "NAN")
    require(not odd and fill_fits, "the base, an inner start or the fill is wrong", got=odd)


def require_same_elements(plan, tensor_map, tile, boxes, owner):
    """Refute a box element outside the tile, or with another global address than its tile element or other bounds."""
    axes, count = tile.axes, len(owner)
    extents, strides, _, _ = zip(*tensor_map.dims)
    strides = [tile.element_bytes, *strides[1:]]
    ends = [origins_in_bounds(axis) if plan.oob == "weak" else (-FAR, FAR) for axis in axes]
    rows = [[axis.multiple * (i == k) for i in range(len(axes))] for k, axis in enumerate(axes)]
    requested = [(x[owner], row, axis.low, axis.high) for x, row, axis in zip(tile.x, rows, axes)]
    moved = [(place, row, 0, extent) for place, row, extent in zip(boxes.coordinates, plan.moves, extents)]
    low, high, in_bounds = intervals(requested, ends, count)
    least, most, in_map = intervals(moved, ends, count)
    other_bounds = ((low != least) | (high != most)).any(axis=0)

    # The addresses differ by an affine function of u: it is 0 if it is so at the low end and does not change with u,
    # unless there is no other u.
    slopes = []
    for i, axis in enumerate(axes):
        moved_bytes = sum(row[i] * stride for row, stride in zip(plan.moves, strides))
        slopes.append(moved_bytes - axis.multiple * axis.stride * tile.element_bytes)
    at_low = [*boxes.coordinates, tile.source[owner], *low]
    other_address = Numbers(count).row([*strides, -1, *slopes], tensor_map.base, at_low) != 0
    other_address |= ((low < high) & np.array(slopes, dtype=bool)[:, None]).any(axis=0)

    for wrong, fact in (
        (tile.shared[owner] != boxes.landing, "a box touches shared memory outside the tile"),
        (in_bounds & other_address, "a box moves another global element"),
        ((in_bounds | in_map) & other_bounds, f"the class is not {plan.oob}"),
    ):
        require(not wrong.any(), fact, element=owner[wrong][:1].tolist())


def require_starts(plan, tile):
    """Refute boxes that start at no coordinate of the engine, from an origin in bounds."""
    inside = [origins_in_bounds(axis) for axis in tile.axes]
    if any(first > last for first, last in inside):
        return
    least_start = 0 if plan.problem.direction == "store" else LEAST_START
    for k, row in enumerate(plan.moves):
        starts = [start[k] for start, _ in plan.issues]
        least = min(starts) + sum(min(factor * u for u in ends) for factor, ends in zip(row, inside))
        most = max(starts) + sum(max(factor * u for u in ends) for factor, ends in zip(row, inside))
        in_range = least_start <= least and most < END_START
        require(in_range, "a start is out of range", dimension=k, starts=[least, most])


def stored_once(tile):
    """Whether elements that are in bounds together have different global addresses."""
    together = np.all([x < axis.high - axis.low for x, axis in zip(tile.x, tile.axes)], axis=0)
    return len(np.unique(tile.source[together])) == together.sum()


def require_byte_counts(plan, tensor_map, boxes, moved_bytes):
    given = [plan.expect_tx_bytes, plan.smem_align_bytes, plan.smem_bytes]
    align = plan.smem_align_bytes
    whole_periods = max(align & -align, 128 << tensor_map.swizzle)  # a power of two, at least the period
    expected = [moved_bytes, whole_periods, max(offset for _, offset in plan.issues) + boxes.box_bytes]
    fit = moved_bytes < TX_END and plan.smem_bytes <= SHARED_BYTES
    require(given == expected and fit, "wrong byte counts", expected=expected)


# --- no plan ---------------------------------------------------------------------------------------------------------
def no_tensormap(statement, evidence):
    """No map has boxes, started anywhere for each origin, whose elements all stand at tile elements' shared bytes and
    move these where they are in bounds, meeting all: boxes move whole chunks of 16 bytes, aligned on both sides."""
    problem, origin, chunk = statement.problem, evidence.origin, evidence.chunk
    tile = tile_of(problem)
    fits = len(origin) == len(tile.axes) and all(starts_at(axis, place) for axis, place in zip(tile.axes, origin))
    require(fits, "this is no origin in bounds", got=origin)
    in_bounds = np.all(
        [(x >= axis.low - o) & (x < axis.high - o) for x, o, axis in zip(tile.x, origin, tile.axes)], axis=0
    )
    here = tile.shared // 16 == chunk
    moved_bytes = tile.element_bytes * sum(o * axis.stride for o, axis in zip(origin, tile.axes))
    # Where the chunk begins in global memory according to each element of it.
    begins = Numbers(len(tile.shared)).row((1, -1), moved_bytes, (tile.source, tile.shared % 16))
    begins = np.unique(begins[here & in_bounds])
    require(len(begins), "no element of this chunk is in bounds", got=chunk)
    is_store = problem.direction == "store"
    in_memory = chunk < SHARED_BYTES // 16
    is_whole = len(np.unique(tile.shared[here])) * tile.element_bytes == 16
    is_aligned = len(begins) == 1 and begins[0] % 16 == problem.base_align_bytes % 16 == 0 <= begins[0]
    stores_outside = is_store and not in_bounds[here].all()
    can_fill = is_store or problem.oob_fill == "ZERO" or "f" in problem.dtype
    writable = in_memory and is_whole and is_aligned and not stores_outside and can_fill
    require(not writable, "a box can write this chunk", got=chunk)
    return f"no box writes the chunk {chunk}"


def starts_at(axis, place):
    """Whether a tile may start at this coordinate in bounds."""
    if axis.multiple == 0:
        return place == 0
    return axis.low <= place < axis.high and place % axis.multiple == 0


# --- hand-over -------------------------------------------------------------------------------------------------------
def handoff(statement, evidence):
    """The descriptors read element (m, k) where the copy puts the tile's element m of one axis and k of another."""
    plan, operand, (mn, k) = statement.plan, statement.operand, statement.axes
    problem = plan.problem
    sentence = f"{tensormap_plan(plan, evidence)}; {wgmma_operand(operand, ())}"
    tile = [axis[0] for axis in problem.axes]
    is_operand = mn != k and [extent_of(tile, mn), extent_of(tile, k)] == operand.shape
    is_operand = is_operand and math.prod(tile) == math.prod(operand.shape)
    align = plan.smem_align_bytes
    bases_fit = align % operand.align == align % (128 << operand.swizzle) == 0
    fits = is_operand and same_type(problem.dtype, operand.dtype) and problem.direction == "load" and bases_fit
    require(fits, "the tile is not this operand, or has other bases", tile=tile, align=align)
    landed = column(problem.shared.size, problem.shared.stages)
    landed = landed.reshape(operand.shape[::-1]) if mn < k else landed.reshape(operand.shape).T  # [k, m]
    read = swizzled(column(operand.layout.size, operand.layout.stages), operand.swizzle).reshape(operand.shape[::-1])
    differ = landed != read
    require(not differ.any(), "the copy puts another element there", k_m=np.argwhere(differ)[:1].tolist())
    return sentence


def extent_of(tile, axis):
    return tile[axis] if axis < len(tile) else None


def same_type(copied, read):
    """Whether a copy moves what an instruction reads; types of 8 bits without a number in TensorMap go as u8."""
    if not read:
        return "f16" in copied
    return copied == read or (BITS[read] == 8 and copied == "u8")


KINDS = {
    "tensormap-plan": (tensormap_plan, PLAN, {"map": MAP}),
    "no-tensormap": (no_tensormap, {"problem": PROBLEM}, {"origin": [int], "chunk": NATURAL}),
    "handoff": (handoff, {"plan": PLAN, "operand": READ, "axes": (range(64), range(64))}, {"map": MAP}),
}
