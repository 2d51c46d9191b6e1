"""Plan operands in canonical form from their digits, without a table of addresses.

A descriptor with the tile's own swizzle XORs as the tile does, so it reads the tile exactly if the sums before the XOR
agree. Both are sums of digits, compared one by one: each axis begins with the digits of the mode's read pattern, whose
free steps are LBO and SBO, and the rest of the axis counts instructions. If this succeeds for the widest instruction,
the general search would find the same descriptors first: it tries the fewest instructions, the tile's own swizzle and
base offset 0 first, and a tile that is MN-major in this way is K-major in no mode, because its neighbours along K are
in different 16-byte chunks. Tiles without such digits, or with fields that are no multiple of 16 or too large, are left
to that search.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from layoutalg.ground.kinds import checked_kinds
from layoutalg.proofs.fields import Digits, put_fields
from layoutalg.proofs.wgmma import InstructionTile, OperandPlan, OperandProblem
from layoutalg.targets.nvidia import wgmma as hardware
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

Pattern = tuple[tuple[int, int | str], ...]
LIMIT = hardware.ADDRESS_LIMIT_BYTES
UNIT = hardware.UNIT_BYTES


@dataclass(frozen=True, slots=True)
class _Form:
    """What one instruction reads in one mode: all digits of both axes, and the unused stride fields."""

    mn: Pattern
    k: Pattern
    unread: tuple[str, ...]

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


def canonical_plan(problem: OperandProblem) -> OperandPlan | None:
    """Return the plan without certificate; None if the digits are not canonical, which proves nothing.

    Example:
        >>> tile = OperandProblem("A", (128, 64), (((128, 64),), ((64, 1),)), "128B")
        >>> canonical_plan(tile).k_step
        2
        >>> canonical_plan(tile.with_changes(smem_modes=(((128, 72),), ((64, 1),)))) is None
        True
    """
    bits, k = problem.element_bits, problem.instruction_k
    mn_size, k_size = problem.shape
    start = problem.smem_base_bytes
    if bits < 8 or k_size % k or start % UNIT:
        return None
    rows = _rows(problem.operand, problem.dtype, mn_size)
    if not rows:
        return None
    size = bits // 8
    mn, along = ([(extent, size * stride) for extent, stride in modes if extent > 1] for modes in problem.smem_modes)
    for major in hardware.MAJORS if hardware.multiply(problem.dtype).transposable else ("K",):
        form = _form(rows, major, problem.swizzle, bits, k)
        fields = {"leading_bytes": UNIT, "stride_bytes": UNIT}
        if form is None:
            continue
        rest_k, rest_mn = _rest(along, form.k, fields), _rest(mn, form.mn, fields)
        if rest_mn is None or rest_k is None:
            continue
        if any(not 0 < value < LIMIT or value % UNIT for value in fields.values()):
            return None
        if any(stride % UNIT for _, stride in (*rest_mn, *rest_k)):
            return None
        return _plan(problem, major, rows, form, fields, rest_mn, rest_k)
    return None


@lru_cache(maxsize=1024)
def _rows(operand: str, dtype: str, extent: int) -> int:
    """Rows of the widest instruction that divides the tile; 0 if none does."""
    legal = hardware.instruction_rows(operand, dtype)
    return next((rows for rows in reversed(legal) if extent % rows == 0), 0)


@lru_cache(maxsize=1024)
def _form(rows: int, major: str, swizzle: str, bits: int, k: int) -> _Form | None:
    pattern = hardware.read_pattern(major, swizzle, bits, k)
    axes: list[Pattern] = []
    for digits, extent in ((pattern.mn, rows), (pattern.k, k)):
        found, rest = [], extent
        for count, step in digits:
            here = min(count, rest) if count else rest
            if rest % here:
                return None
            if here > 1:
                found.append((here, step))
            rest //= here
        axes.append(tuple(found))
    return _Form(axes[0], axes[1], hardware.unread_fields(rows, major, swizzle, bits, k))


def _rest(digits: list[tuple[int, int]], pattern: Pattern, fields: dict[str, int]) -> list[tuple[int, int]] | None:
    """Return the digits above those of the pattern, storing its free steps in ``fields``; None if they differ."""
    stack = digits[::-1]
    for extent, step in pattern:
        unit, count = (step if isinstance(step, int) else -1), 1
        while count < extent:
            if not stack:
                return None
            size, stride = stack.pop()
            take = min(size, extent // count)
            if size % take or extent % (count * take):
                return None
            if unit < 0:
                unit = fields[str(step)] = stride
            elif stride != unit * count:
                return None
            if size > take:
                stack.append((size // take, stride * take))
            count *= take
    return stack[::-1]


def _plan(
    problem: OperandProblem,
    major: str,
    rows: int,
    form: _Form,
    fields: dict[str, int],
    rest_mn: list[tuple[int, int]],
    rest_k: list[tuple[int, int]],
) -> OperandPlan | None:
    size, step, swizzle = problem.element_bits // 8, problem.instruction_k, problem.swizzle
    period = SWIZZLE_TABLE[swizzle].period_bytes
    align = min(problem.align_bytes, period)
    strides = [(extent, size * stride) for modes in problem.smem_modes for extent, stride in modes]
    top = problem.smem_base_bytes + sum((extent - 1) * stride for extent, stride in strides)
    if top + period - align >= LIMIT:
        return None
    end = _end(top, strides, swizzle, range(0, period, align)) + size
    leading, stride = fields["leading_bytes"], fields["stride_bytes"]
    first = hardware.MatrixDescriptor(problem.smem_base_bytes, leading, stride, 0, swizzle)
    word, low = first.encode(), first.start_address_bytes
    down, along = _counted(rest_mn), _counted(rest_k)
    tiles, mn = [], 0
    for row in down:
        k = 0
        for column in along:
            move = row + column
            here = first if not move else put_fields(
                object.__new__(hardware.MatrixDescriptor), (low + move, leading, stride, 0, swizzle)
            )  # fmt: skip
            tiles.append(put_fields(object.__new__(InstructionTile), (mn, k, here, word + move // UNIT)))
            k += step
        mn += rows
    steps = tuple(tuple((extent, move // UNIT) for extent, move in _fused(rest)) for rest in (rest_mn, rest_k))
    made = (problem, major, rows, tuple(tiles), align, end, *steps, form.unread,
            hardware.operand_evidence(problem.operand), None)  # fmt: skip
    return put_fields(object.__new__(OperandPlan), made)


def _counted(digits: list[tuple[int, int]]) -> list[int]:
    """The sums of the digits, in order."""
    found = [0]
    for extent, stride in digits:
        found = [at + stride * index for index in range(extent) for at in found]
    return found


def _fused(digits: list[tuple[int, int]]) -> Digits:
    """The same sums in order with the fewest digits."""
    found: list[tuple[int, int]] = []
    for extent, stride in digits:
        if found and found[-1][1] * found[-1][0] == stride:
            found[-1] = found[-1][0] * extent, found[-1][1]
        else:
            found.append((extent, stride))
    return tuple(found)


def _end(top: int, strides: list[tuple[int, int]], swizzle: str, phases: range) -> int:
    """The highest address of an element after the XOR, relative to the tile base, at the worst base.

    Only the last 128 bytes matter, and there the last element of every chunk; the distances of chunks below the top are
    sums of digits.
    """
    chunks = SWIZZLE_TABLE[swizzle].span_bytes // UNIT
    if chunks == 1:
        return top
    below = {0}
    for extent, stride in strides:
        if 0 < stride < UNIT:  # the digits inside a chunk fill it
            extent, stride = max(1, extent * stride // UNIT), UNIT
        if 0 < stride < 128:
            steps = range(0, min(extent, 128 // stride + 1) * stride, stride)
            below = {at + more for at in below for more in steps if at + more < 128}
    best = 0
    for phase in phases:
        high = top + phase
        line = high >> 7
        turned = line % chunks << 4
        best = max(best, max((high - low) ^ turned for low in below if high - low >> 7 == line) - phase)
    return best
