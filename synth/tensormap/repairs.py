"""Proposed changes that make a refused problem admissible; each is planned and proved before it is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.swizzles import PLAIN
from layoutalg.targets.nvidia.tensormap import limits

ALIGN = limits.GLOBAL_ALIGN_BYTES
Proposal = tuple[str, str, TensorMapProblem]


def proposals(problem: TensorMapProblem, rules: set[str]) -> Iterator[Proposal]:
    """Yield (name, detail, repaired problem): single changes first, then all of them together."""
    singles = [change for rule, change in _CHANGES if rule in rules]
    made: list[Proposal] = []
    for change in dict.fromkeys(singles):
        proposal = change(problem)
        if proposal is not None and proposal[2] != problem:
            made.append(proposal)
            yield proposal
    if len(made) > 1:
        together, names, details = problem, [], []
        for change in dict.fromkeys(singles):
            proposal = change(together)
            if proposal is not None and proposal[2] != together:
                names.append(proposal[0])
                details.append(proposal[1])
                together = proposal[2]
        if all(together != proposal[2] for proposal in made):
            yield ", then ".join(names), "; ".join(details), together


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def pad_the_pitch(problem: TensorMapProblem) -> Proposal | None:
    """Round every pitch up to 16 bytes, enlarging slower pitches accordingly."""
    grain = ALIGN // math.gcd(ALIGN, problem.element_bytes)
    strides = list(problem.global_strides)
    order = sorted((d for d in range(problem.rank) if strides[d] > 1), key=lambda d: strides[d])
    reach, old_reach = 0, 0
    for dim in order:
        old = strides[dim]
        follows = old >= old_reach > 0
        strides[dim] = _up(max(old, reach) if follows else old, grain)
        old_reach, reach = old * problem.global_shape[dim], strides[dim] * problem.global_shape[dim]
    changed = [d for d in range(problem.rank) if strides[d] != problem.global_strides[d]]
    if not changed:
        return None
    size = problem.element_bytes
    detail = ", ".join(
        f"dimension {d}: {problem.global_strides[d] * size} -> {strides[d] * size} bytes" for d in changed
    )
    return "pad the pitch", detail, replace(problem, global_strides=tuple(strides))


def transpose_while_reading(problem: TensorMapProblem) -> Proposal | None:
    """Store the tile in global-memory order and transpose while reading it."""
    inner = _inner(problem)
    if inner is None or problem.element_strides[inner] != 1:
        return None
    swizzle = problem.swizzle if problem.swizzle != "NONE" else _swizzle_of_rows(problem, problem.tile[inner])
    change = _dense(replace(problem, swizzle=swizzle), inner, "transpose while reading")
    if change is None:
        return None
    name, detail, repaired = change
    major = "K" if inner == problem.rank - 1 else "MN"
    if problem.element_bytes == 2:
        detail += f"; read it with ldmatrix.trans, or as a {major}-major wgmma operand"
    else:
        detail += "; its columns are the rows of the transposed tile"
    return name, detail, repaired


def swizzle_for_padding(problem: TensorMapProblem) -> Proposal | None:
    """Replace padding by the swizzle that spreads the rows over the banks."""
    inner = _inner(problem)
    if inner is None or problem.swizzle != "NONE":
        return None
    swizzle = _swizzle_of_rows(problem, problem.tile[inner])
    if swizzle == "NONE":
        return None
    return _dense(replace(problem, swizzle=swizzle), inner, "use a swizzle in place of padding")


def swizzle_of_the_row(problem: TensorMapProblem) -> Proposal | None:
    """Keep the tile and use the swizzle whose span is its row."""
    run = min((digit for digits in problem.smem_modes for digit in digits if digit[1] == 1), default=(1, 1))[0]
    swizzle = _swizzle_of_rows(problem, run)
    if swizzle in ("NONE", problem.swizzle):
        return None
    return f"use the {swizzle} swizzle", f"smem.swizzle {swizzle}, the same modes", replace(problem, swizzle=swizzle)


def _inner(problem: TensorMapProblem) -> int | None:
    """Return the dimension that is contiguous in global memory."""
    return next((d for d in range(problem.rank) if problem.global_strides[d] == 1 and problem.tile[d] > 1), None)


def _swizzle_of_rows(problem: TensorMapProblem, row: int) -> str:
    """Return the widest plain swizzle whose span divides a row of ``row`` elements."""
    wide = PLAIN[:0:-1]
    fits = (name for name in wide if row * problem.element_bytes % hardware.swizzle_span_bytes(name) == 0)
    return next(fits, "NONE")


def close_the_gaps(problem: TensorMapProblem) -> Proposal | None:
    """Store the tile densely, rows at the swizzle span."""
    inner = _inner(problem)
    return None if inner is None else _dense(problem, inner, "store the tile densely")


def _dense(problem: TensorMapProblem, inner: int, name: str) -> Proposal | None:
    size = problem.element_bytes
    swizzle = problem.swizzle if hardware.swizzle_supported(problem.swizzle, problem.arch) else "NONE"
    row = problem.tile[inner]
    if swizzle != "NONE":
        row = hardware.swizzle_span_bytes(swizzle) // size
    order = sorted(
        (d for d in range(problem.rank) if d != inner),
        key=lambda d: min((s for _, s in problem.smem_modes[d]), default=0),
    )
    modes: list[tuple[tuple[int, int], ...]] = [()] * problem.rank
    reach = row
    for dim in order:
        modes[dim] = ((problem.tile[dim], reach if problem.tile[dim] > 1 else 1),)
        reach *= problem.tile[dim]
    wide = problem.tile[inner]
    if wide > row and wide % row:
        return None
    modes[inner] = ((wide, 1),) if wide <= row else ((row, 1), (wide // row, reach))
    detail = f"shared-memory modes {[list(map(list, m)) for m in modes]}"
    if swizzle != "NONE":
        detail += f", swizzle {swizzle}"
    return name, detail, replace(problem, smem_modes=tuple(modes))


def fold(problem: TensorMapProblem) -> Proposal | None:
    """Drop the padding between dimensions, so that fully covered ones fold into their neighbours."""
    strides = list(problem.global_strides)
    order = sorted(range(problem.rank), key=lambda d: (strides[d], -d))
    reach = 1
    for dim in order:
        if strides[dim] == 0:
            continue
        strides[dim] = reach
        reach *= problem.global_shape[dim]
    changes = replace(problem, global_strides=tuple(strides), oob_required="lost")
    return "fold", f"contiguous strides {strides}, so that neighbouring dimensions share a coordinate", changes


def accept_weaker(problem: TensorMapProblem) -> Proposal | None:
    """Accept that tiles that start out of bounds are not filled."""
    if problem.oob_required == "lost":
        return None
    return "fold", "accept the out-of-bounds class lost (oob_required)", replace(problem, oob_required="lost")


def align_the_base(problem: TensorMapProblem) -> Proposal | None:
    """Start the tensor at a multiple of 16 bytes."""
    grain = ALIGN // math.gcd(ALIGN, problem.element_bytes)
    offset = problem.base_elem_offset // grain * grain
    align = max(problem.base_align_bytes, ALIGN)
    detail = f"base aligned to {align} bytes, first element {offset * problem.element_bytes} bytes from it"
    return "align the base", detail, replace(problem, base_elem_offset=offset, base_align_bytes=align)


def zero_fill(problem: TensorMapProblem) -> Proposal | None:
    """Fill with zeros."""
    return "fill with zeros", "oob_fill ZERO", replace(problem, oob_fill="ZERO")


def plain_swizzle(problem: TensorMapProblem) -> Proposal | None:
    """Replace a swizzle that the target lacks by the plain 128-byte one."""
    return "use the plain 128B swizzle", "smem.swizzle 128B", replace(problem, swizzle="128B")


def no_swizzle(problem: TensorMapProblem) -> Proposal | None:
    """Store the tile without a swizzle."""
    return "use no swizzle", "smem.swizzle NONE", replace(problem, swizzle="NONE")


def whole_rows(problem: TensorMapProblem) -> Proposal | None:
    """Lengthen the rows in bounds to whole 16-byte chunks."""
    return _longer_rows(problem, ALIGN // math.gcd(ALIGN, problem.element_bytes))


def whole_spans(problem: TensorMapProblem) -> Proposal | None:
    """Lengthen the rows in bounds to whole swizzle spans."""
    span = hardware.swizzle_span_bytes(problem.swizzle) // problem.element_bytes
    return _longer_rows(problem, span)


def _longer_rows(problem: TensorMapProblem, grain: int) -> Proposal | None:
    inner = _inner(problem)
    if inner is None:
        return None
    low, high = problem.bounds[inner]
    length = low + _up(high - low, grain)
    shape = list(problem.global_shape)
    bounds = list(problem.bounds)
    shape[inner], bounds[inner] = max(shape[inner], length), (low, length)
    repaired = replace(problem, global_shape=tuple(shape), bounds=tuple(bounds))
    return "pad the rows", f"rows of {length} elements, with the padding allocated", repaired


def widen_the_row(problem: TensorMapProblem) -> Proposal | None:
    """Widen the tile's rows to whole 16-byte chunks, and start tiles on that grid."""
    inner = _inner(problem)
    grain = ALIGN // math.gcd(ALIGN, problem.element_bytes)
    if inner is None or problem.element_strides[inner] != 1 or problem.tile[inner] % grain == 0:
        return None
    tile = list(problem.tile)
    tile[inner] = _up(tile[inner], grain)
    multiple = list(problem.origin_multiple)
    multiple[inner] = 0 if tile[inner] >= problem.bounds[inner][1] else tile[inner]
    modes = list(problem.smem_modes)
    modes[inner] = ((tile[inner], 1),)
    wide = replace(problem, tile=tuple(tile), smem_modes=tuple(modes), origin_multiple=tuple(multiple))
    change = _dense(wide, inner, "widen the tile")
    return None if change is None else (change[0], f"tile {tile}, {change[1]}", change[2])


def base_at_the_lowest(problem: TensorMapProblem) -> Proposal | None:
    """With negative strides, use the lowest element's address as the base."""
    spans = [stride * (n - 1) for stride, n in zip(problem.global_strides, problem.global_shape, strict=True)]
    lowest = problem.base_elem_offset + sum(span for span in spans if span < 0)
    if lowest >= 0:
        return None
    grain = ALIGN // math.gcd(ALIGN, problem.element_bytes)
    offset = _up(problem.base_elem_offset - lowest, grain)
    detail = f"use the lowest element's address as the base; the first element is {offset} elements after it"
    return "take the lowest address as the base", detail, replace(problem, base_elem_offset=offset)


def tile_steps(problem: TensorMapProblem) -> Proposal | None:
    """Start tiles on their own grid."""
    multiple = tuple(
        0 if t * e >= high else t * e
        for t, e, (_, high) in zip(problem.tile, problem.element_strides, problem.bounds, strict=True)
    )
    return "start tiles on their grid", f"origin_multiple {list(multiple)}", replace(problem, origin_multiple=multiple)


_CHANGES: tuple[tuple[str, Callable[[TensorMapProblem], Proposal | None]], ...] = (
    ("BASE_ALIGN", align_the_base),
    ("STRIDE_ALIGN", pad_the_pitch),
    ("BOX_INNER_16B", widen_the_row),
    ("STRIDE_RANGE", base_at_the_lowest),
    ("INNER_CONTIGUOUS", transpose_while_reading),
    ("SMEM_DENSE", swizzle_for_padding),
    ("SMEM_DENSE", close_the_gaps),
    ("SWIZZLE_PITCH", swizzle_of_the_row),
    ("SWIZZLE_PITCH", close_the_gaps),
    ("SWIZZLE_INNER", swizzle_of_the_row),
    ("SWIZZLE_INNER", close_the_gaps),
    ("SWIZZLE_INNER", no_swizzle),
    ("SMEM_INJECTIVE", close_the_gaps),
    ("ARCH_ATOM", plain_swizzle),
    ("RANK", fold),
    ("NO_BOX", fold),
    ("OOB_CLASS", accept_weaker),
    ("OOB_NAN", zero_fill),
    ("STORE_CHUNK", whole_rows),
    ("STORE_CHUNK", pad_the_pitch),
    ("INNER_START", tile_steps),
    ("CUT_ORIGIN", tile_steps),
    ("CUT_EXTENT", whole_spans),
    ("CUT_EXTENT", pad_the_pitch),
)
