"""Explain why no descriptor reads a layout, with the closest candidate's first difference and re-checked repairs.

Before the XOR a requested address is a sum of one term per axis, so a mode with the requested XOR fits exactly when its
digits fit each axis separately; the reasons walk those digits and are complete for that mode. Other modes are covered
by the search, and appear through the closest candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from layoutalg.ground.errors import Diagnostic, InfeasibleError, MalformedError, Repair, TargetRuleError, plain
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem, check
from layoutalg.synth.wgmma.operand import canonical_operand
from layoutalg.synth.wgmma.reading import (
    Table,
    axis_bytes,
    base_phases,
    differences,
    is_byte_wise,
    linear_addresses,
    majors,
)
from layoutalg.targets.nvidia import wgmma as hardware

SCHEMA = "layoutalg/wgmma-refusal/1"
SOURCE = "PTX ISA 9.1 section 9.7.15.5 and measured reads, see targets.nvidia.wgmma.operand"
Find = Callable[[OperandProblem], OperandPlan | None]


class InadmissibleOperandError(InfeasibleError):
    """No measured descriptor mode reads the layout; ``.broken`` says why."""

    def __init__(self, diagnostic: Diagnostic, broken: tuple[Broken, ...]) -> None:
        super().__init__(diagnostic)
        self.broken = broken

    @property
    def rules(self) -> tuple[str, ...]:
        """Ids of the broken rules."""
        return tuple(each.rule for each in self.broken)

    @property
    def reasons(self) -> tuple[str, ...]:
        """One sentence for each of ``rules``."""
        return tuple(each.reason for each in self.broken)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Changes of the problem that have a plan."""
        return self.diagnostic.repairs

    def __reduce__(self) -> tuple[type, tuple[Diagnostic, tuple[Broken, ...]]]:
        return type(self), (self.diagnostic, self.broken)

    def to_json(self) -> dict[str, object]:
        """Return the refusal as JSON-ready data."""
        return {
            "schema": SCHEMA,
            "verdict": "inadmissible",
            "rules": list(self.rules),
            "reasons": list(self.reasons),
            "witness": plain(self.diagnostic.witness),
            "repairs": [repair.to_json() for repair in self.repairs],
        }


def refusal(problem: OperandProblem, find: Find, repair: bool = True) -> InadmissibleOperandError:
    """Return the error for a problem that has no plan.

    Args:
        problem: A problem for which ``find`` returned None.
        find: The search, to re-check repairs with.
        repair: Whether to look for repairs and for the closest descriptor.
    """
    broken = tuple(_shape_reasons(problem))
    witness: dict[str, object] | None = None
    if not broken:
        broken = tuple(_layout_reasons(problem))
        witness = closest(problem) if repair else None
    diagnostic = Diagnostic(
        "LA370",
        "no measured wgmma descriptor mode reads this shared-memory layout",
        (str(problem),),
        "; ".join(each.reason for each in broken),
        witness,
        tuple(_repairs(problem, find)) if repair else (),
        SOURCE,
    )
    return InadmissibleOperandError(diagnostic, broken)


def _shape_reasons(problem: OperandProblem) -> Iterator[Broken]:
    mn, k = problem.shape
    if problem.operand == "A" and mn % hardware.INSTRUCTION_M:
        yield Broken("WGMMA_ROWS", f"operand A is read {hardware.INSTRUCTION_M} rows at a time, the tile has {mn} rows")
    if problem.operand == "B" and mn % hardware.N_VALUES[0]:
        yield Broken(
            "WGMMA_ROWS", f"operand B is read in multiples of {hardware.N_VALUES[0]} rows, the tile has {mn} rows"
        )
    if not is_byte_wise(problem):
        yield Broken(
            "WGMMA_BITS",
            "eight neighbours along K must be the bits of one byte, low bit first, and every row must start a byte",
        )
    if k % problem.instruction_k:
        yield Broken("WGMMA_K", f"one instruction reads {problem.instruction_k} elements along K, the tile has {k}")


def _rows(problem: OperandProblem) -> int:
    """Rows of the largest instruction that divides the tile."""
    return next(
        rows
        for rows in reversed(hardware.instruction_rows(problem.operand, problem.dtype))
        if not problem.shape[0] % rows
    )


def _layout_reasons(problem: OperandProblem) -> Iterator[Broken]:
    mn, k = axis_bytes(problem)
    last = problem.smem_base_bytes + int(mn.max()) + int(k.max()) + base_phases(problem, problem.swizzle)[-1]
    if last >= hardware.ADDRESS_LIMIT_BYTES:
        yield Broken(
            "WGMMA_ADDRESS",
            f"the tile can reach byte {last}, descriptor addresses end at {hardware.ADDRESS_LIMIT_BYTES - 1}",
        )
    if problem.smem_base_bytes % hardware.UNIT_BYTES:
        yield Broken(
            "WGMMA_ALIGN", f"smem_base_bytes = {problem.smem_base_bytes} is not a multiple of {hardware.UNIT_BYTES}"
        )
    size = problem.element_bits // 8
    if "MN" not in majors(problem) and mn.size > 1 and int(mn[1]) == size and not (k.size > 1 and int(k[1]) == size):
        yield Broken("WGMMA_MAJOR", f"the tile is contiguous along MN, but {problem.dtype} operands must be K-major")
    rows = _rows(problem)
    fitting = []
    for major in _majors(problem):
        for swizzle in hardware.SWIZZLES:
            reason = next(_pattern_reasons(problem, mn, k, rows, major, swizzle), None)
            if reason is None:
                fitting.append((major, swizzle))
            if swizzle == problem.swizzle and reason is not None:
                yield Broken(reason.rule, f"{major}-major, {swizzle}: {reason.reason}")
    for major, swizzle in fitting:
        if swizzle != problem.swizzle:
            yield Broken(
                "WGMMA_SWIZZLE",
                f"swizzle phase: without its XOR the tile is {major}-major in the {swizzle} mode, but its "
                f"{problem.swizzle} XOR moves rows to other chunks",
            )


def _majors(problem: OperandProblem) -> tuple[str, ...]:
    """The majors of the type, starting with the contiguous axis of the layout."""
    if "MN" not in majors(problem):
        return ("K",)
    mn, k = axis_bytes(problem)
    contiguous_mn = mn.size > 1 and int(mn[1]) == 2 and not (k.size > 1 and int(k[1]) == 2)
    return ("MN", "K") if contiguous_mn else ("K", "MN")


@dataclass(frozen=True, slots=True)
class _Digit:
    """One digit of a read pattern on one axis."""

    axis: str
    weight: int
    step: int | str
    swizzle: str

    def name(self, index: int) -> str:
        """The element at a coordinate of this axis, as (mn, k)."""
        return f"({index}, 0)" if self.axis == "MN" else f"(0, {index})"


def _pattern_reasons(
    problem: OperandProblem, mn: Table, k: Table, rows: int, major: str, swizzle: str
) -> Iterator[Broken]:
    """Yield the reasons why the linear part of the layout is not the read pattern of one mode."""
    pattern = hardware.read_pattern(major, swizzle, problem.element_bits, problem.instruction_k)
    for axis, line, part, digits in (("MN", mn, rows, pattern.mn), ("K", k, problem.instruction_k, pattern.k)):
        weight = 1
        for extent, step in digits:
            count = min(extent, -(-part // weight)) if extent else -(-part // weight)
            digit = _Digit(axis, weight, step, swizzle)
            for corner in range(0, line.size, part):
                yield from _digit_reasons(line, corner, count, digit)
            weight *= max(extent, 1)
        for corner in range(0, line.size, part):
            yield from _sum_reasons(line[corner : corner + part], corner, digits, axis)


def _digit_reasons(line: Table, corner: int, count: int, digit: _Digit) -> Iterator[Broken]:
    """Check one digit at its unit coordinates, from one instruction's first element on."""
    ticks = line[corner : corner + count * digit.weight : digit.weight]
    moves = np.diff(ticks)
    if isinstance(digit.step, int):
        for i in np.flatnonzero(moves != digit.step)[:1]:
            index = corner + (int(i) + 1) * digit.weight
            here = digit.name(index - digit.weight)
            found = f"{digit.name(index)} is {int(moves[i])} bytes after {here}, not {digit.step}"
            if digit.step < hardware.UNIT_BYTES:
                yield Broken("WGMMA_MAJOR", f"{digit.axis} is not contiguous: {found}")
            else:
                pitch = "row pitch" if digit.axis == "MN" else "pitch along K"
                yield Broken(
                    "WGMMA_PITCH", f"the {pitch} is not the {digit.step} bytes of the {digit.swizzle} mode: {found}"
                )
        return
    if moves.size == 0:
        return
    group = (
        f"{digit.weight}-row group stride" if digit.axis == "MN" else f"stride between groups of {digit.weight} along K"
    )
    first = int(moves[0])
    for i in np.flatnonzero(moves != first)[:1]:
        at = corner + (int(i) + 1) * digit.weight
        yield Broken(
            "WGMMA_UNIFORM",
            f"the {group} is not uniform: {first} bytes from {digit.name(corner)} "
            f"to {digit.name(corner + digit.weight)}, "
            f"{int(moves[i])} from {digit.name(at - digit.weight)} to {digit.name(at)}",
        )
    if first % hardware.UNIT_BYTES:
        yield Broken("WGMMA_ALIGN", f"the {group} of {first} bytes is not a multiple of {hardware.UNIT_BYTES}")
    if first == 0:
        yield Broken("WGMMA_ZERO", f"the {group} is 0, which was not measured")
    if not 0 <= first < hardware.ADDRESS_LIMIT_BYTES:
        yield Broken("WGMMA_ADDRESS", f"the {group} of {first} bytes does not fit 18 bits")


def _sum_reasons(segment: Table, corner: int, digits: tuple[tuple[int, int | str], ...], axis: str) -> Iterator[Broken]:
    """Check that the digits' contributions add up, and that the instruction starts on a 16-byte chunk."""
    index = np.arange(segment.size, dtype=np.int64)
    expected = np.full(segment.size, int(segment[0]), dtype=np.int64)
    weight = 1
    for extent, _ in digits:
        digit = index // weight % extent if extent else index // weight
        unit = int(segment[weight]) - int(segment[0]) if weight < segment.size else 0
        expected += digit * unit
        weight *= max(extent, 1)
    for i in np.flatnonzero(segment != expected)[:1]:
        at = corner + int(i)
        yield Broken(
            "WGMMA_REPEAT",
            f"the {axis} coordinates do not repeat their pattern: {axis.lower()} = {at} is "
            f"{int(segment[i] - segment[0])} bytes after {corner}, not {int(expected[i] - segment[0])}",
        )
    if int(segment[0]) % hardware.UNIT_BYTES:
        yield Broken(
            "WGMMA_ALIGN",
            f"the instruction at {axis.lower()} = {corner} starts at byte {int(segment[0])}, not a multiple of 16",
        )


def closest(problem: OperandProblem) -> dict[str, object] | None:
    """Return the first difference of the candidate with the most correct reads; None if the shape is invalid.

    Example:
        >>> found = closest(OperandProblem("A", (64, 16), (((64, 24),), ((16, 1),))))
        >>> found["mn"], found["k"], found["requested_byte"]
        (1, 0, 48)
    """
    if any(True for _ in _shape_reasons(problem)):
        return None
    linear = linear_addresses(problem)
    phase = base_phases(problem, problem.swizzle)[-1]
    beyond = np.argwhere(linear + phase >= hardware.ADDRESS_LIMIT_BYTES)
    if beyond.size:
        mn, k = (int(x) for x in beyond[0])
        requested = hardware.swizzle_phase(linear[mn : mn + 1, k] + phase, problem.swizzle)
        return {"mn": mn, "k": k, "requested_byte": int(requested[0]) - phase, "tile_base_bytes": phase}
    best: tuple[int, dict[str, object]] | None = None
    rows = _rows(problem)
    modes = sorted(hardware.SWIZZLES, key=lambda swizzle: swizzle != problem.swizzle)
    for major in _majors(problem):
        for swizzle in modes:
            found = _compare(problem, linear, rows, major, swizzle)
            if found is not None and (best is None or found[0] > best[0]):
                best = found
    return None if best is None else best[1]


def _compare(
    problem: OperandProblem, linear: Table, rows: int, major: str, swizzle: str
) -> tuple[int, dict[str, object]] | None:
    """Count the correct reads of one mode with the nearest representable fields, and return its first difference."""
    equal, witness = 0, None
    step = problem.instruction_k
    corners = [(row, column) for row in range(0, problem.shape[0], rows) for column in range(0, problem.shape[1], step)]
    aligned = hardware.swizzle_phase(linear, problem.swizzle)
    for phase in base_phases(problem, swizzle):
        if witness is not None:  # passing a phase already scored higher than failing it
            break
        wanted = hardware.swizzle_phase(linear + phase, problem.swizzle)
        for row, column in corners:
            here = np.s_[row : row + rows, column : column + step]
            descriptor, read = _nearest(aligned[here], major, swizzle, phase, problem.element_bits)
            same = read == wanted[here]
            equal += int(same.sum())
            if witness is None and not same.all():
                i, j = (int(x) for x in np.argwhere(~same)[0])
                witness = {
                    "mn": row + i,
                    "k": column + j,
                    "requested_byte": int(wanted[row + i, column + j]) - phase,
                    "read_byte": int(read[i, j]) - phase,
                    "major": major,
                    "descriptor": f"{descriptor.encode():#018x}",
                    "swizzle": swizzle,
                    "tile_base_bytes": phase,
                }
    return None if witness is None else (equal, witness)


def _nearest(block: Table, major: str, swizzle: str, phase: int, bits: int) -> tuple[hardware.MatrixDescriptor, Table]:
    """Return the descriptor whose fields are the block's differences rounded to representable values, and its reads.

    The block is for tile base 0; the reads are those at base ``phase``.
    """

    def fit(value: int, low: int) -> int:
        return min(max(value // 16 * 16, low), hardware.ADDRESS_LIMIT_BYTES - hardware.UNIT_BYTES)

    def read(descriptor: hardware.MatrixDescriptor) -> Table:
        rows, k = block.shape
        return hardware.operand_offsets(descriptor.moved(phase), rows=rows, k=k, element_bits=bits, major=major)

    start, fields = differences(hardware.swizzle_phase(block, swizzle), major, swizzle, bits)
    leading, stride = (fit(fields[name], hardware.UNIT_BYTES) for name in ("leading_bytes", "stride_bytes"))
    descriptor = hardware.MatrixDescriptor(fit(start, 0), leading, stride, 0, swizzle)
    try:
        return descriptor, read(descriptor)
    except (TargetRuleError, MalformedError):  # out of shared memory: use the smallest fields instead
        descriptor = hardware.MatrixDescriptor(0, hardware.UNIT_BYTES, hardware.UNIT_BYTES, 0, swizzle)
        return descriptor, read(descriptor)


def _repairs(problem: OperandProblem, find: Find) -> Iterator[Repair]:
    """Yield changes with a proved plan."""
    for name, detail, changed in _ideas(problem):
        plan = find(changed)
        if plan is not None and check(plan):
            yield Repair(name, detail, changed.to_json())


def _ideas(problem: OperandProblem) -> Iterator[tuple[str, str, OperandProblem]]:
    rounded = problem.smem_base_bytes // hardware.UNIT_BYTES * hardware.UNIT_BYTES
    if rounded != problem.smem_base_bytes:
        yield (
            "align the tile",
            f"smem_base_bytes = {rounded}, a multiple of 16",
            problem.with_changes(smem_base_bytes=rounded),
        )
    for swizzle in hardware.SWIZZLES:
        if swizzle != problem.swizzle:
            yield "change the swizzle", f"swizzle {swizzle}, same modes", problem.with_changes(swizzle=swizzle)
    step = problem.instruction_k
    rows = hardware.INSTRUCTION_M if problem.operand == "A" else hardware.N_VALUES[0]
    shape = (math.ceil(problem.shape[0] / rows) * rows, math.ceil(problem.shape[1] / step) * step)
    for major in _majors(problem):
        try:
            tile = canonical_operand(problem.operand, shape, major=major, dtype=problem.dtype, sparse=problem.sparse)
        except MalformedError:
            continue
        size = f" for shape {shape}, zero-filled" if shape != problem.shape else ""
        yield (
            f"use a {tile.swizzle}-swizzled {major}-major tile",
            f"modes {[[list(digit) for digit in modes] for modes in tile.smem_modes]}, swizzle {tile.swizzle}{size}",
            tile,
        )
