"""Why a problem has no plan: every broken rule, in words, with the numbers.

Main definitions: ``InadmissibleError``, ``hard_violations``, ``structural_violations``.

Implementation notes: hard rules are decided on the problem alone and no search can help; structural rules say why no
box could be built and are consulted only when the search came back empty.
"""

from __future__ import annotations

import numpy as np

from layoutalg.ground.errors import Diagnostic, InfeasibleError, Repair
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.axes import Frame, plain_frame
from layoutalg.synth.tensormap.boxes import tile_atoms
from layoutalg.synth.tensormap.sight import sights
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

ALIGN = 16


class InadmissibleError(InfeasibleError, ValueError):
    """No TensorMap plan for the problem; ``.violations`` says why and ``.repairs`` what would help.

    What is proved: no plan of the following class carries the tile with the out-of-bounds class required. A search that
    did not go through all of them raises ``BudgetError`` instead.

    - One descriptor, interleave NONE, whose map stays within the tensor; at most ``limits.TILE_ISSUES`` equal boxes.
    - The swizzle requested, or another one under which the requested addresses are a sum of strides; the element type
      requested, or one of 2 to 8 bytes that carries the same bits.
    - A box walks a prefix of the tile's digits in shared-memory order, one row per digit or per run of digits that
      continue each other. Where a digit is longer than a box may be, its row is a divisor of it or, as the last row,
      overlapping parts.
    - The origin of each tile dimension, and each digit left to issues, moves one coordinate of the map: that of a row
      (whose pitch may be walked by an element stride of 1 to 8), or one outside the box whose stride is the greatest
      common divisor of what moves along it. Where only the origin 0 shows anything, the origin may move nothing.
    - For a class better than lost: each tile dimension that a tile sees out of bounds fails there the test of some
      coordinate, whatever the dimensions guarded before it add to that coordinate.

    Outside the class, hence not excluded: elements that are never in bounds, or share one address (stride 0), in places
    that only another swizzle or order gives them; a move spread over two coordinates; origins that show nothing pushed
    out along a coordinate of another dimension; pitches of a dimension whose only coordinate in bounds is seen from
    several origins; stores whose elements in bounds are seen only from origins out of bounds, or meet at one address
    without ever being in bounds together.
    """

    def __init__(self, diagnostic: Diagnostic, violations: tuple[Violation, ...], repairs: tuple[Repair, ...]) -> None:
        super().__init__(diagnostic)
        self.violations = violations
        self.repairs = repairs

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.diagnostic, self.violations, self.repairs)

    def to_json(self) -> dict[str, object]:
        """Return the refusal as JSON-ready data."""
        return {
            "verdict": "inadmissible",
            "violations": [violation.to_json() for violation in self.violations],
            "repairs": [repair.to_json() for repair in self.repairs],
        }


def hard_violations(problem: TensorMapProblem) -> list[Violation]:
    """Return the rules that the problem breaks whatever box is chosen."""
    found = [
        *_target(problem),
        *_base(problem),
        *_fill(problem),
        *(_capacity(problem) or _injective(problem)),
        *_below(problem),
    ]
    return [*found, *_store_overlap(problem)] if problem.direction == "store" else found


def _target(problem: TensorMapProblem) -> list[Violation]:
    if hardware.is_measured(problem.arch):
        return []
    text = f"no {problem.arch} device was measured, so neither its descriptor bytes nor its copy engine are known here"
    return [Violation("ARCH_UNMEASURED", text, "arch")]


def _base(problem: TensorMapProblem) -> list[Violation]:
    first = problem.base_elem_offset * problem.element_bytes
    if problem.base_align_bytes % ALIGN:
        text = f"the base is known to be aligned to {problem.base_align_bytes} bytes; a map needs {ALIGN}"
        return [Violation("BASE_ALIGN", text, "global.base_align_bytes")]
    if first % ALIGN:
        text = f"the tile at the origin 0 starts {first} bytes from the base, not a multiple of {ALIGN}"
        return [Violation("BASE_ALIGN", text, "base_elem_offset")]
    return []


def _fill(problem: TensorMapProblem) -> list[Violation]:
    if problem.direction == "load" and problem.oob_fill == "NAN" and problem.dtype not in hardware.FLOAT_DTYPES:
        return [Violation("OOB_NAN", f"NaN fill needs a float type, which {problem.dtype} is not", "oob_fill")]
    return []


def _capacity(problem: TensorMapProblem) -> list[Violation]:
    modes = [mode for modes in problem.smem_modes for mode in modes]
    total = (1 + sum((extent - 1) * stride for extent, stride in modes)) * problem.element_bytes
    if total <= limits.MAX_SMEM_BYTES:
        return []
    text = f"the tile reaches over {total} bytes; a block has {limits.MAX_SMEM_BYTES} bytes of shared memory"
    return [Violation("SMEM_CAP", text, "smem.modes")]


def _injective(problem: TensorMapProblem) -> list[Violation]:
    modes = [mode for modes in problem.smem_modes for mode in modes]
    if _collision_free(modes):
        return []
    text = "two tile elements share one shared-memory address, so the tile cannot hold both"
    return [Violation("SMEM_INJECTIVE", text, "smem.modes")]


def _collision_free(modes: list[tuple[int, int]]) -> bool:
    """Whether sum c_k * stride_k takes each value once: superincreasing strides settle it, else sorting does."""
    reach, simple = 0, True
    kept = sorted(((stride, extent) for extent, stride in modes if extent > 1))
    for stride, extent in kept:
        simple &= stride > reach
        reach += stride * (extent - 1)
    if simple:
        return True
    values = np.zeros(1, dtype=np.int64)
    for stride, extent in kept:
        values = (values[:, None] + np.arange(extent, dtype=np.int64) * stride).reshape(-1)
    values.sort()
    return not bool((values[1:] == values[:-1]).any())


def _below(problem: TensorMapProblem) -> list[Violation]:
    """An element in bounds before the tensor's base is one of foreign memory."""
    if min(problem.global_strides) >= 0:
        return []
    ends = [
        (sight.lowest * stride, sight.highest * stride)
        for sight, stride in zip(sights(problem), problem.global_strides, strict=True)
    ]
    lowest = (problem.base_elem_offset + sum(map(min, ends))) * problem.element_bytes
    return [
        Violation(
            "STRIDE_RANGE",
            f"stride {stride} of dimension {dim} is negative: its elements in bounds begin {-lowest} bytes before the "
            "base, and a map walks upwards from an address at or after it",
            "global.stride",
            dim,
        )
        for dim, stride in enumerate(problem.global_strides)
        if stride < 0 and lowest < 0
    ]


def _store_overlap(problem: TensorMapProblem) -> list[Violation]:
    reaches = [  # no two elements in bounds are farther apart than the bounds
        (min(extent, (high - low - 1) // step + 1), step * abs(stride))
        for extent, step, stride, (low, high) in zip(
            problem.tile, problem.element_strides, problem.global_strides, problem.bounds, strict=True
        )
    ]
    if _collision_free(reaches):
        return []
    text = "two tile elements have one global address, so a store would race with itself"
    return [Violation("STORE_OVERLAP", text, "global.stride")]


def _store_chunk(problem: TensorMapProblem) -> list[Violation]:
    found = []
    for dim, stride in enumerate(problem.global_strides):
        low, high = problem.bounds[dim]
        length = (high - low) * problem.element_bytes
        if stride == 1 and problem.tile[dim] > 1 and length % limits.STORE_CHUNK_BYTES:
            text = (
                f"rows of {length} bytes: a store writes whole {limits.STORE_CHUNK_BYTES}-byte chunks, so the last "
                "one would write past the row"
            )
            found.append(Violation("STORE_CHUNK", text, "bounds", dim))
    return found


def _store_start(problem: TensorMapProblem) -> list[Violation]:
    """A store with a negative start coordinate raises an illegal instruction."""
    return [
        Violation(
            "STORE",
            f"dimension {dim}: the bounds begin at {low}, so the tile origin 0 would be a negative start coordinate",
            "bounds",
            dim,
        )
        for dim, ((low, _), multiple) in enumerate(zip(problem.bounds, problem.origin_multiple, strict=True))
        if low > 0 and multiple == 0
    ]


def structural_violations(problem: TensorMapProblem) -> list[Violation]:
    """Return what keeps every box from being built."""
    frame = plain_frame(problem)
    found = [*_store_chunk(problem), *_store_start(problem)] if problem.direction == "store" else []
    found += [*_inner(problem, frame), *_strides(problem), *_shared(problem, frame), *_ranks(frame)]
    if not hardware.swizzle_supported(problem.swizzle, problem.arch):
        text = f"swizzle {problem.swizzle} does not exist on {problem.arch}"
        found.insert(0, Violation("ARCH_ATOM", text, "smem.swizzle"))
    if not found:
        found += _cuts(problem, frame)
    if not found:
        text = "no cut of the tile into boxes satisfies all limits together (rank, box, span, alignment of issues)"
        found.append(Violation("NO_BOX", text, "tile"))
    return found


def _inner(problem: TensorMapProblem, frame: Frame) -> list[Violation]:
    """The contiguous run of shared memory must be one of global memory, in whole 16-byte chunks."""
    size = problem.element_bytes
    if not frame.digits:
        text = f"one element of {size} bytes a box; the inner box needs a multiple of {ALIGN} bytes"
        return [Violation("BOX_INNER_16B", text, "tile")]
    first = frame.digits[0]
    unit = frame.axes[first.axis].unit * first.place
    if first.stride != 1:
        text = f"the closest shared-memory neighbours are {first.stride} elements apart; a box writes them side by side"
        return [Violation("SMEM_DENSE", text, "smem.modes")]
    if unit != 1:
        text = (
            f"neighbours in shared memory are {unit} elements apart in global memory; the inner dimension of a map "
            "has stride 1"
        )
        return [Violation("INNER_CONTIGUOUS", text, "smem.modes")]
    found = []
    if first.extent * size % ALIGN:
        text = f"the inner box is {first.extent} x {size} = {first.extent * size} bytes, not a multiple of {ALIGN}"
        found.append(Violation("BOX_INNER_16B", text, "tile"))
    axis = frame.axes[first.axis]
    if any(step * size % ALIGN for step in axis.steps) or axis.shift * size % ALIGN:
        steps = ", ".join(str(step * size) for step in axis.steps)
        text = f"tile origins move the inner start coordinate by {steps} bytes; the engine needs multiples of {ALIGN}"
        found.append(Violation("INNER_START", text, "origin_multiple"))
    return found


def _cuts(problem: TensorMapProblem, frame: Frame) -> list[Violation]:
    """A row wider than the span needs the inner dimension cut at the span; say what forbids the cut."""
    if not frame.digits or problem.swizzle == "NONE" or frame.digits[0].stride != 1:
        return []
    first, size = frame.digits[0], problem.element_bytes
    span = hardware.swizzle_span_bytes(problem.swizzle) // size
    inner = [digit for digit in frame.digits if digit.axis == first.axis]
    axis = frame.axes[first.axis]
    if axis.unit != 1 or max(digit.place * digit.extent for digit in inner) <= span:
        return []
    found = []
    if axis.extent % span:
        text = (
            f"a tile row wider than the {span * size}-byte span needs the inner dimension in whole spans of {span} "
            f"elements, and its extent in bounds is {axis.extent}"
        )
        found.append(Violation("CUT_EXTENT", text, "bounds"))
    if any(step % span for step in axis.steps) or axis.shift % span:
        text = (
            f"a tile row wider than the {span * size}-byte span needs tile origins at multiples of {span} elements; "
            f"they move by {', '.join(map(str, axis.steps)) or axis.shift}"
        )
        found.append(Violation("CUT_ORIGIN", text, "origin_multiple"))
    return found


def _strides(problem: TensorMapProblem) -> list[Violation]:
    found = []
    size = problem.element_bytes
    first = next(iter(tile_atoms(problem)), None)
    for dim, stride in enumerate(problem.global_strides):
        low, high = problem.bounds[dim]
        if high - low == 1 and problem.tile[dim] == 1:
            continue
        if stride == 1 and (first is None or first.step != 1 or first.dim == dim):
            continue  # the inner dimension, or what should be
        moves = problem.origin_multiple[dim], problem.element_strides[dim] if problem.tile[dim] > 1 else 0
        if any(stride * move * size % ALIGN for move in moves):
            text = (
                f"dimension {dim} has a pitch of {stride} x {size} = {stride * size} bytes, not a multiple of {ALIGN}"
            )
            found.append(Violation("STRIDE_ALIGN", text, "global.stride", dim))
        if stride * size >= limits.STRIDE_LIMIT_BYTES:
            text = f"dimension {dim} has a pitch of {stride * size} bytes; the limit is 2^40"
            found.append(Violation("STRIDE_RANGE", text, "global.stride", dim))
        if high - low > limits.MAX_DIM:
            text = f"dimension {dim} has {high - low} elements; the engine takes at most 2^31"
            found.append(Violation("DIM_RANGE", text, "global.shape", dim))
        step = problem.element_strides[dim]
        if step > limits.MAX_ELEMENT_STRIDE and problem.origin_multiple[dim] % step:
            text = f"dimension {dim} steps by {step} elements; the limit is {limits.MAX_ELEMENT_STRIDE}"
            found.append(Violation("ELEM_STRIDE", text, "element_strides", dim))
    return found


def _shared(problem: TensorMapProblem, frame: Frame) -> list[Violation]:
    """Where shared memory stops being dense, what lies beyond becomes issues, and those need aligned starts."""
    size = problem.element_bytes
    if not frame.digits or frame.digits[0].stride != 1:
        return []
    first = frame.digits[0]
    span = hardware.swizzle_span_bytes(problem.swizzle) // size if problem.swizzle != "NONE" else first.extent
    if first.extent > span and first.extent % span:
        text = (
            f"rows of {first.extent * size} bytes under the {problem.swizzle} swizzle of span {span * size} bytes: a "
            "box row is at most one span, and the row is not a whole number of spans"
        )
        return [Violation("SWIZZLE_INNER", text, "smem.modes")]
    filled = max(first.extent, span)
    for digit in frame.digits[1:]:
        if digit.stride == filled:
            filled = digit.stride * digit.extent
            continue
        beyond = [d for d in frame.digits if d.stride >= digit.stride]
        misaligned = [d for d in beyond if d.stride * size % limits.SMEM_DESTINATION_ALIGN_BYTES]
        if not misaligned:
            return []
        kind = "leaves a gap" if digit.stride > filled else "interleaves"
        text = (
            f"the shared-memory stride {digit.stride} {kind}: a box fills {filled} elements before it. Rows of their "
            f"own issues would start {misaligned[0].stride * size} bytes apart, and a start needs a multiple of "
            f"{limits.SMEM_DESTINATION_ALIGN_BYTES}"
        )
        rule = "SWIZZLE_PITCH" if problem.swizzle != "NONE" and digit.stride < filled else "SMEM_DENSE"
        return [Violation(rule, text, "smem.modes")]
    return []


def _ranks(frame: Frame) -> list[Violation]:
    found = []
    if len(frame.axes) > limits.MAX_RANK:
        text = (
            f"{len(frame.axes)} dimensions move and no folding of them leaves a box that works; a map has at most "
            f"{limits.MAX_RANK}"
        )
        found.append(Violation("RANK", text, "global.shape"))
    return found
