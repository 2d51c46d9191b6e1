"""Explain why a problem has no plan: every broken rule, with the numbers.

Hard rules depend on the problem alone, so no search can help; structural rules explain why no box could be built and
are only checked after the search failed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from layoutalg.ground.digits import span, table
from layoutalg.ground.errors import Diagnostic, InfeasibleError, Repair
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.boxes import Atom, tile_atoms
from layoutalg.synth.tensormap.sight import sights
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits
from layoutalg.targets.registry import lookup

SCHEMA = "layoutalg/tensormap-refusal/1"
ALIGN = limits.GLOBAL_ALIGN_BYTES


class InadmissibleError(InfeasibleError, ValueError):
    """No TensorMap plan for the problem; ``.violations`` says why and ``.repairs`` what would help.

    What is proved: no plan of the following class carries the tile with the required out-of-bounds class. A search that
    did not cover the whole class raises ``BudgetError`` instead.

    - One descriptor, interleave NONE, whose map stays within the tensor; at most ``limits.TILE_ISSUES`` equal boxes.
      With ``documented_only``, a map that obeys the documented rules.
    - The requested swizzle, or another one under which the requested addresses are a sum of strides; the requested
      element type, or one of 2 to 8 bytes that carries the same bits.
    - A box walks a prefix of the tile's digits in shared-memory order, one row per digit or per run of digits that
      continue each other. If a digit exceeds the box limit, its row is a divisor of it or, as the last row, overlapping
      parts.
    - The origin of each tile dimension, and each digit left to issues, moves one coordinate of the map: that of a row
      (whose pitch may be walked by an element stride of 1 to 8), or one outside the box whose stride is the gcd of
      everything that moves along it. If only origin 0 shows any elements, the origin may move nothing.
    - For a class better than lost: each tile dimension that can be out of bounds then fails the test of some
      coordinate, for any contribution to it from the dimensions guarded before.

    Outside the class, hence not excluded: elements that are never in bounds, or share one address (stride 0), at places
    that only another swizzle or order gives them; a move spread over two coordinates; origins without elements in
    bounds moved out along a coordinate of another dimension; pitches of a dimension whose only in-bounds coordinate is
    seen from several origins; stores whose in-bounds elements are seen only from out-of-bounds origins, or share an
    address without ever being in bounds together.
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
            "schema": SCHEMA,
            "verdict": "inadmissible",
            "violations": [violation.to_json() for violation in self.violations],
            "repairs": [repair.to_json() for repair in self.repairs],
        }


def hard_violations(problem: TensorMapProblem) -> list[Violation]:
    """Return the rules that the problem breaks for any box."""
    found = [*_target(problem), *(list(_capacity(problem)) or _injective(problem)), *_below(problem)]
    return [*found, *_store_overlap(problem)] if problem.direction == "store" else found


def _target(problem: TensorMapProblem) -> Iterator[Violation]:
    """Rules of the target about the architecture, the base and the fill."""
    if not hardware.is_measured(problem.arch):
        text = f"no {problem.arch} device was measured; its descriptor format and copy engine are unknown"
        yield Violation("ARCH_UNMEASURED", text, "arch")
    first = problem.base_elem_offset * problem.element_bytes
    if problem.base_align_bytes % ALIGN:
        text = f"the base is only known to be aligned to {problem.base_align_bytes} bytes; a map needs {ALIGN}"
        yield Violation("BASE_ALIGN", text, "global.base_align_bytes")
    elif first % ALIGN:
        text = f"the tile at origin 0 starts {first} bytes from the base, not a multiple of {ALIGN}"
        yield Violation("BASE_ALIGN", text, "base_elem_offset")
    if problem.direction == "load" and problem.oob_fill == "NAN" and problem.dtype not in hardware.FLOAT_DTYPES:
        yield Violation("OOB_NAN", f"NaN fill needs a float type, which {problem.dtype} is not", "oob_fill")


def _capacity(problem: TensorMapProblem) -> Iterator[Violation]:
    last = sum(span(modes)[1] for modes in problem.smem_modes)
    total = (1 + last) * problem.element_bytes
    room = lookup(problem.arch).shared_kib[0] << 10
    if total > room:
        text = f"the tile spans {total} bytes; a block has {room} bytes of shared memory"
        yield Violation("SMEM_CAP", text, "smem.modes")


def _injective(problem: TensorMapProblem) -> Iterator[Violation]:
    if not _collision_free([mode for modes in problem.smem_modes for mode in modes]):
        text = "two tile elements share one shared-memory address"
        yield Violation("SMEM_INJECTIVE", text, "smem.modes")


def _collision_free(modes: list[tuple[int, int]]) -> bool:
    """Whether sum c_k * stride_k is injective: true for superincreasing strides, otherwise decided by sorting."""
    reach, simple = 0, True
    kept = sorted(((stride, extent) for extent, stride in modes if extent > 1))
    for stride, extent in kept:
        simple &= stride > reach
        reach += stride * (extent - 1)
    if simple:
        return True
    values = np.sort(table(tuple((extent, stride) for stride, extent in kept)))
    return not bool((values[1:] == values[:-1]).any())


def _below(problem: TensorMapProblem) -> Iterator[Violation]:
    """In-bounds elements below the base are unreachable by a map."""
    if min(problem.global_strides) >= 0:
        return
    seen = zip(sights(problem), problem.global_strides, strict=True)
    lowest = problem.base_elem_offset + sum(min(sight.lowest * step, sight.highest * step) for sight, step in seen)
    for dim, stride in enumerate(problem.global_strides):
        if stride < 0 and lowest < 0:
            text = (
                f"stride {stride} of dimension {dim} is negative: its elements in bounds begin "
                f"{-lowest * problem.element_bytes} bytes before the base, where a map cannot start"
            )
            yield Violation("STRIDE_RANGE", text, "global.stride", dim)


def _store_overlap(problem: TensorMapProblem) -> Iterator[Violation]:
    reaches = [  # no two elements in bounds are farther apart than the bounds
        (min(extent, (high - low - 1) // step + 1), step * abs(stride))
        for extent, step, stride, (low, high) in zip(
            problem.tile, problem.element_strides, problem.global_strides, problem.bounds, strict=True
        )
    ]
    if not _collision_free(reaches):
        text = "two tile elements share one global address, so a store would race with itself"
        yield Violation("STORE_OVERLAP", text, "global.stride")


def structural_violations(problem: TensorMapProblem) -> list[Violation]:
    """Return what keeps every box from being built."""
    atoms = tile_atoms(problem)
    found = list(_stores(problem)) if problem.direction == "store" else []
    found += [*_inner(problem, atoms), *_strides(problem, atoms), *_shared(problem, atoms)]
    moving = sum(not _fixed(problem, dim) for dim in range(problem.rank))
    if moving > limits.MAX_RANK:
        text = f"{moving} dimensions move, and folding them leaves no valid box"
        found.append(Violation("RANK", f"{text}; a map has at most {limits.MAX_RANK}", "global.shape"))
    if not hardware.swizzle_supported(problem.swizzle, problem.arch):
        text = f"swizzle {problem.swizzle} does not exist on {problem.arch}"
        found.insert(0, Violation("ARCH_ATOM", text, "smem.swizzle"))
    if not found:
        found += _cuts(problem, atoms)
    if not found:
        text = (
            f"cannot split the tile into boxes: rank <= {limits.MAX_RANK}, extent <= {limits.MAX_BOX}, swizzle span "
            f"and {limits.SMEM_DESTINATION_ALIGN_BYTES}-byte starts cannot hold together"
        )
        found.append(Violation("NO_BOX", text, "tile"))
    return found


def _fixed(problem: TensorMapProblem, dim: int) -> bool:
    """Whether a dimension has one coordinate for all tiles."""
    low, high = problem.bounds[dim]
    return high - low == 1 and problem.tile[dim] == 1 and problem.origin_multiple[dim] == 0


def _stores(problem: TensorMapProblem) -> Iterator[Violation]:
    """A store writes whole chunks; a negative start coordinate is an illegal instruction."""
    chunk = limits.STORE_CHUNK_BYTES
    for dim, (low, high) in enumerate(problem.bounds):
        length = (high - low) * problem.element_bytes
        if problem.global_strides[dim] == 1 and problem.tile[dim] > 1 and length % chunk:
            text = f"rows have {length} bytes; a store writes whole {chunk}-byte chunks and would write past the row"
            yield Violation("STORE_CHUNK", text, "bounds", dim)
    for dim, (low, _) in enumerate(problem.bounds):
        if low > 0 and problem.origin_multiple[dim] == 0:
            text = f"the bounds begin at {low}, so tile origin 0 would be a negative start coordinate"
            yield Violation("STORE", f"dimension {dim}: {text}", "bounds", dim)


def _inner(problem: TensorMapProblem, atoms: tuple[Atom, ...]) -> Iterator[Violation]:
    """The contiguous run of shared memory must be contiguous in global memory, in whole 16-byte chunks."""
    size = problem.element_bytes
    if not atoms:
        text = f"a box would be one element of {size} bytes; the inner box needs a multiple of {ALIGN} bytes"
        yield Violation("BOX_INNER_16B", text, "tile")
        return
    first = atoms[0]
    if first.stride != 1:
        text = f"the smallest shared-memory stride is {first.stride} elements; a box writes contiguous elements"
        yield Violation("SMEM_DENSE", text, "smem.modes")
        return
    if first.step != 1:
        text = f"neighbours in shared memory are {first.step} elements apart in global memory; the inner"
        yield Violation("INNER_CONTIGUOUS", f"{text} dimension of a map has stride 1", "smem.modes")
        return
    if first.extent * size % ALIGN:
        text = f"the inner box is {first.extent} x {size} = {first.extent * size} bytes, not a multiple of {ALIGN}"
        yield Violation("BOX_INNER_16B", text, "tile")
    step, low = problem.origin_multiple[first.dim] * size, problem.bounds[first.dim][0]
    if step % ALIGN or low * size % ALIGN:
        text = f"tile origins move the inner start coordinate by {step or low * size} bytes"
        yield Violation("INNER_START", f"{text}; the engine needs multiples of {ALIGN}", "origin_multiple")


def _cuts(problem: TensorMapProblem, atoms: tuple[Atom, ...]) -> Iterator[Violation]:
    """A row wider than the span needs the inner dimension cut at the span; report what forbids the cut."""
    if not atoms or problem.swizzle == "NONE" or atoms[0].stride != 1:
        return
    dim = atoms[0].dim
    width = hardware.swizzle_span_bytes(problem.swizzle) // problem.element_bytes
    reach = max(atom.step * atom.extent for atom in atoms if atom.dim == dim)
    if problem.global_strides[dim] != 1 or reach <= width:
        return
    (low, high), step = problem.bounds[dim], problem.origin_multiple[dim]
    text = f"a tile row wider than the {width * problem.element_bytes}-byte span needs"
    if (high - low) % width:
        whole = f"the inner dimension in whole spans of {width} elements, and its extent in bounds is {high - low}"
        yield Violation("CUT_EXTENT", f"{text} {whole}", "bounds")
    if step % width or low % width:
        whole = f"tile origins at multiples of {width} elements; they move by {step or -low}"
        yield Violation("CUT_ORIGIN", f"{text} {whole}", "origin_multiple")


def _strides(problem: TensorMapProblem, atoms: tuple[Atom, ...]) -> Iterator[Violation]:
    size, first = problem.element_bytes, atoms[0] if atoms else None
    for dim, stride in enumerate(problem.global_strides):
        low, high = problem.bounds[dim]
        step, pitch = problem.element_strides[dim], stride * size
        if high - low == 1 and problem.tile[dim] == 1:
            continue
        if stride == 1 and (first is None or first.step != 1 or first.dim == dim):
            continue  # the inner dimension, or what should be
        moves = problem.origin_multiple[dim], step if problem.tile[dim] > 1 else 0
        if any(pitch * move % ALIGN for move in moves):
            text = f"dimension {dim} has a pitch of {stride} x {size} = {pitch} bytes, not a multiple of {ALIGN}"
            yield Violation("STRIDE_ALIGN", text, "global.stride", dim)
        if pitch >= limits.STRIDE_LIMIT_BYTES:
            text = f"dimension {dim} has a pitch of {pitch} bytes; the limit is 2^40"
            yield Violation("STRIDE_RANGE", text, "global.stride", dim)
        if high - low > limits.MAX_DIM:
            text = f"dimension {dim} has {high - low} elements; the limit is 2^31"
            yield Violation("DIM_RANGE", text, "global.shape", dim)
        if step > limits.MAX_ELEMENT_STRIDE and problem.origin_multiple[dim] % step:
            text = f"dimension {dim} steps by {step} elements; the limit is {limits.MAX_ELEMENT_STRIDE}"
            yield Violation("ELEM_STRIDE", text, "element_strides", dim)


def _shared(problem: TensorMapProblem, atoms: tuple[Atom, ...]) -> Iterator[Violation]:
    """Past the first gap in shared memory, tile parts become separate issues, which need aligned starts."""
    size, plain = problem.element_bytes, problem.swizzle == "NONE"
    if not atoms or atoms[0].stride != 1:
        return
    extent = atoms[0].extent
    width = extent if plain else hardware.swizzle_span_bytes(problem.swizzle) // size
    if extent > width and extent % width:
        text = (
            f"rows of {extent * size} bytes are not a multiple of the {problem.swizzle} swizzle's span of "
            f"{width * size} bytes; a box row is at most one span"
        )
        yield Violation("SWIZZLE_INNER", text, "smem.modes")
        return
    filled = max(extent, width)
    for atom in atoms[1:]:
        if atom.stride == filled:
            filled = atom.stride * atom.extent
            continue
        starts = [other.stride * size for other in atoms if other.stride >= atom.stride]
        misaligned = [start for start in starts if start % limits.SMEM_DESTINATION_ALIGN_BYTES]
        if misaligned:
            gap = atom.stride > filled
            where = f"leaves a gap after {filled} elements" if gap else f"is within the {filled} elements of a box"
            text = (
                f"smem stride {atom.stride} {where}; separate copies would start {misaligned[0]} bytes apart, "
                f"TMA needs {limits.SMEM_DESTINATION_ALIGN_BYTES}-byte-aligned starts"
            )
            rule = "SMEM_DENSE" if plain or atom.stride >= filled else "SWIZZLE_PITCH"
            yield Violation(rule, text, "smem.modes")
        return
