"""Find ``wgmma`` operand plans: descriptors derived from address differences of the layout, then verified.

Canonical tiles are planned from their digits (``forms``). Otherwise, for each (rows per instruction, major, swizzle
mode, base offset) the XOR of that mode is undone on the requested addresses. The result must be the mode's read
pattern: its field steps (LBO, SBO) are differences at unit coordinates, its start is the value at the first element,
and the whole instruction is then compared by table. The XOR is an involution for a given base offset, so this finds a
descriptor of the mode whenever one exists. Every instruction of an operand gets the same major and swizzle mode; LBO,
SBO and base offset may differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Unpack

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, TargetRuleError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap.problem import CHECK, Reading
from layoutalg.proofs.wgmma import InstructionTile, OperandPlan, OperandProblem, check
from layoutalg.synth.wgmma.forms import canonical_plan
from layoutalg.synth.wgmma.reading import (
    Table,
    base_phases,
    differences,
    is_byte_wise,
    linear_addresses,
    majors,
    phases_of,
)
from layoutalg.synth.wgmma.refusal import refusal
from layoutalg.targets.nvidia import wgmma as hardware

Steps = tuple[tuple[int, int], ...]


def synthesize_wgmma(problem: OperandProblem | Mapping[str, object], *, repair: bool = True) -> OperandPlan:
    """Return the descriptors by which ``wgmma`` reads a tile in shared memory.

    Mathematically: for every instruction tile a descriptor d with ``operand_offsets(d)(m, k) = requested(m, k)`` for
    all its elements, under one major and one swizzle mode.

    Args:
        problem: The statement, or its JSON document (``layoutalg/wgmma-problem/1``).
        repair: Whether to look for repairs and the closest descriptor of a refused problem.

    Returns:
        The plan with the checker's certificate. Start addresses are relative to a tile base aligned to
        ``plan.align_bytes``; add base/16 to each descriptor.

    Raises: InadmissibleOperandError: no descriptors exist (LA370).

    Complexity: O(elements) for each of at most 30 (major, mode, base offset), times the ways to split N if the full N
    does not fit.

    Example:
        >>> problem = OperandProblem("A", (128, 64), (((128, 64),), ((64, 1),)), "128B")
        >>> plan = synthesize_wgmma(problem)
        >>> plan.base
        MatrixDescriptor(start_address_bytes=0, leading_bytes=16, stride_bytes=1024, base_offset=0, swizzle='128B')
        >>> plan.major, plan.k_step, plan.mn_step, plan.align_bytes
        ('K', 2, 512, 1024)

    Source: measured read rule, see ``targets.nvidia.wgmma.operand``.
    """
    value = problem if isinstance(problem, OperandProblem) else OperandProblem.from_json(problem)
    plan = find(value)
    if plan is None:
        raise refusal(value, find, repair)
    return certified(plan)


def certified(plan: OperandPlan) -> OperandPlan:
    """Return a plan with the checker's certificate."""
    verdict = check(plan)
    if not isinstance(verdict, Proved):  # the finder and the checker disagree: never hand the plan out
        what, witness = "the checker refuted the plan found", getattr(verdict, "witness", None)
        raise LayoutError(Diagnostic("LA371", what, (str(plan.problem),), witness=witness))
    return plan.with_changes(certificate=dict(verdict.certificate))


class OperandOptions(Reading, total=False):
    """Options of ``wgmma``: how ``smem`` is read, its alignment, and whether A is sparse."""

    align_bytes: int
    sparse: bool


def wgmma(
    operand: str,
    tensor: object = None,
    tile: Sequence[int] | None = None,
    smem: object = None,
    target: str = hardware.ARCH,
    **options: Unpack[OperandOptions],
) -> OperandPlan:
    """Return the descriptors by which ``wgmma`` reads a tile with a given shared-memory layout.

    Args:
        operand: ``"A"``, the tile is (M, K); or ``"B"``, the tile is (N, K).
        tensor: The tensor that contains the tile, or only its element type: ``"bf16"``, ``torch.float16``, ... None:
            the type stated by the text of ``smem``, otherwise bf16.
        tile: Tile extents in elements, K last; by default those of ``smem``.
        smem: A layout of any family or its text: tile coordinates to element offsets. Defaults to row-major.
        target: Architecture.
        options: As for ``OperandProblem.of``: ``swizzle``, ``axes``, ``align_bytes``, ``sparse``.

    Raises: As ``OperandProblem.of`` and ``synthesize_wgmma``.

    Example:
        >>> plan = wgmma("A", "bf16", (128, 64), "Sw<3,3,3> o 0 o (128,64):(64,1)")
        >>> plan.major, plan.base.swizzle, len(plan.tiles), plan.k_step
        ('K', '128B', 8, 2)
    """
    CHECK.options(options, OperandOptions.__annotations__, wgmma)
    return synthesize_wgmma(OperandProblem.of(operand, tensor, smem, tile=tile, arch=target, **options))


def find(problem: OperandProblem) -> OperandPlan | None:
    """Return a plan without certificate, or None if no measured mode reads the layout.

    Example:
        >>> find(OperandProblem("B", (24, 16), (((24, 1),), ((16, 24),)))) is None
        True
    """
    return canonical_plan(problem) or search(problem)


def search(problem: OperandProblem) -> OperandPlan | None:
    """Like ``find``, but from the table of addresses: for non-canonical layouts, and to test ``canonical_plan``.

    Example:
        >>> tile = OperandProblem("A", (128, 64), (((128, 64),), ((64, 1),)), "128B")
        >>> search(tile) == find(tile)
        True
    """
    if problem.shape[1] % problem.instruction_k or not is_byte_wise(problem):
        return None
    linear = linear_addresses(problem)
    if int(linear.max()) + base_phases(problem, problem.swizzle)[-1] >= hardware.ADDRESS_LIMIT_BYTES:
        return None
    legal = hardware.instruction_rows(problem.operand, problem.dtype)
    tile = Tile(linear, problem.swizzle, problem.align_bytes, problem.instruction_k, problem.element_bits)
    found = described(tile, legal, majors(problem))
    return None if found is None else _assemble(problem, linear, *found)


@dataclass(frozen=True)
class Tile:
    """What is to be read."""

    linear: Table  # byte address of every element before the XOR, for tile base 0; int64[mn, k]
    swizzle: str  # the XOR
    align_bytes: int  # alignment of the tile base
    k: int  # elements along K of one instruction
    bits: int  # bits of an element

    def at(self, phase: int) -> Table:
        """Return the addresses for a tile base."""
        return hardware.swizzle_phase(self.linear + phase, self.swizzle)

    def phases(self, mode: str) -> range:
        """Return the tile bases that matter for a mode."""
        return phases_of(self.swizzle, mode, self.align_bytes)


def described(
    tile: Tile, legal: Sequence[int], choices: Sequence[str]
) -> tuple[int, str, str, list[InstructionTile]] | None:
    """Return descriptors that read a tile: rows of an instruction, major, mode and one descriptor per instruction.

    Args:
        tile: The tile; whole instructions along K.
        legal: Rows that one instruction may read, fewest first.
        choices: The majors that the element type allows.
    """
    modes = sorted(hardware.SWIZZLES, key=lambda swizzle: swizzle != tile.swizzle)
    fitting = [rows for rows in reversed(legal) if tile.linear.shape[0] % rows == 0]
    readable = _readable(tile, fitting[-1], choices, modes) if fitting else []
    for rows in fitting:
        for major, swizzle in readable:
            clock.check("the search for descriptors")
            tiles = _derive(tile, rows, major, swizzle)
            if tiles is not None:
                return rows, major, swizzle, tiles
    return None


def _readable(tile: Tile, rows: int, choices: Sequence[str], modes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the modes that read the first rows of the tile; a mode that fails there fails with more rows too."""
    bits = tile.bits
    block = tile.at(0)[:rows, : tile.k]
    chunk = int(block[0, 0]) + np.arange(8 * hardware.UNIT_BYTES // bits) * bits // 8
    lines = {"K": block[0, : chunk.size], "MN": block[: chunk.size, 0]}
    first = int(block[0, 0])
    beside = {"K": int(block[1, 0]), "MN": int(block[0, 1])}
    found = []
    for major in choices:
        if np.array_equal(lines[major], chunk):  # every mode keeps 16 bytes contiguous
            for swizzle in modes:
                span = hardware.swizzle_rows(swizzle)
                for base_offset in range(span):
                    here, there = (at ^ (((at >> 7) - base_offset) % span << 4) for at in (first, beside[major]))
                    if there - here != hardware.UNIT_BYTES * span:  # the rows of a span are consecutive
                        continue
                    undone = hardware.swizzle_phase(block, swizzle, base_offset)
                    descriptor = _fields(undone, major, swizzle, base_offset, bits)
                    if descriptor is not None and _reads(descriptor, major, block, 0, bits):
                        found.append((major, swizzle))
                        break
    return found


def _derive(tile: Tile, rows: int, major: str, swizzle: str) -> list[InstructionTile] | None:
    """Return the descriptors of every instruction in one mode; base offsets equal throughout where possible."""
    height, width = tile.linear.shape
    corners = list(itertools.product(range(0, height, rows), range(0, width, tile.k)))
    offsets = range(hardware.swizzle_rows(swizzle))
    wanted = cache(tile.at)  # on demand: most candidates fail at the first phase
    undone = cache(lambda base_offset: hardware.swizzle_phase(wanted(0), swizzle, base_offset))

    @cache
    def solve(corner: tuple[int, int], base_offset: int) -> InstructionTile | None:
        here = np.s_[corner[0] : corner[0] + rows, corner[1] : corner[1] + tile.k]
        descriptor = _fields(undone(base_offset)[here], major, swizzle, base_offset, tile.bits)
        if descriptor is None or not all(
            _reads(descriptor, major, wanted(phase)[here], phase, tile.bits) for phase in tile.phases(swizzle)
        ):
            return None
        return InstructionTile(*corner, descriptor, descriptor.encode())

    for base_offset in offsets:
        clock.check("the search for descriptors")
        found = list(itertools.takewhile(lambda each: each is not None, (solve(at, base_offset) for at in corners)))
        if len(found) == len(corners):
            return [each for each in found if each is not None]
    mixed: list[InstructionTile] = []
    for corner in corners:
        tiles = (solve(corner, base_offset) for base_offset in offsets)
        if (each := next(filter(None, tiles), None)) is None:
            return None
        mixed.append(each)
    return mixed


def _fields(linear: Table, major: str, swizzle: str, base_offset: int, bits: int) -> hardware.MatrixDescriptor | None:
    """Return the descriptor of a block whose XOR is undone; None if a field cannot encode a difference."""
    start, fields = differences(linear, major, swizzle, bits)
    values = [start, *fields.values()]
    if any(value % hardware.UNIT_BYTES or not 0 <= value < hardware.ADDRESS_LIMIT_BYTES for value in values):
        return None
    return hardware.MatrixDescriptor(start, fields["leading_bytes"], fields["stride_bytes"], base_offset, swizzle)


def _reads(descriptor: hardware.MatrixDescriptor, major: str, block: Table, phase: int, bits: int) -> bool:
    """Whether the descriptor, moved with the tile base, reads the requested block at that base."""
    try:
        moved = descriptor.moved(phase) if phase else descriptor
        read = hardware.operand_offsets(moved, rows=block.shape[0], k=block.shape[1], element_bits=bits, major=major)
    except (TargetRuleError, MalformedError):
        return False
    return bool((read == block).all())


def _assemble(
    problem: OperandProblem, linear: Table, rows: int, major: str, swizzle: str, tiles: Sequence[InstructionTile]
) -> OperandPlan:
    """Return the plan of descriptors that read the requested tile at every base."""
    step, bits = problem.instruction_k, problem.element_bits
    phases = base_phases(problem, swizzle)
    lasts = [int(hardware.swizzle_phase(linear + phase, problem.swizzle).max()) - phase for phase in phases]
    end = max(lasts) + max(bits // 8, 1)
    mn_steps, k_steps = _steps(tiles, problem.shape[0] // rows, problem.shape[1] // step) or (None, None)
    return OperandPlan(
        problem,
        major,
        rows,
        tuple(tiles),
        phases.step,
        end,
        mn_steps,
        k_steps,
        hardware.unread_fields(rows, major, swizzle, bits, step),
        hardware.operand_evidence(problem.operand),
    )


def _steps(tiles: Sequence[InstructionTile], rows: int, columns: int) -> tuple[Steps, Steps] | None:
    """Return the increments of both instruction indices if the table is base plus a sum of digit steps."""
    base = tiles[0].encoded
    moves = np.array([tile.encoded - base for tile in tiles], dtype=object).reshape(rows, columns)
    if (moves != moves[:, :1] + moves[:1, :]).any() or any(abs(int(x)) >= 1 << 14 for x in moves.flat):
        return None
    mn, k = split_digits([int(x) for x in moves[:, 0]]), split_digits([int(x) for x in moves[0, :]])
    return None if mn is None or k is None else (mn, k)


def split_digits(values: Sequence[int]) -> Steps | None:
    """Return ``(count, step)`` digits, fastest first, whose sums are the values in order, if there are any.

    Example:
        >>> split_digits([0, 2, 4, 6, 512, 514, 516, 518])
        ((4, 2), (2, 512))
        >>> split_digits([0, 2, 5]) is None
        True
    """
    size = len(values)
    if size == 1:
        return ()
    step = values[1] - values[0]
    run = next((i for i in range(size) if values[i] - values[0] != i * step), size)
    for count in (c for c in range(run, 1, -1) if size % c == 0):
        if all(values[i] == values[i - i % count] + i % count * step for i in range(size)):
            rest = split_digits(values[::count])
            if rest is not None:
                return ((count, step), *rest)
    return None
