"""Candidate tile elements for the low offset bits, and what every access needs given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from layoutalg.f2 import matrix
from layoutalg.proofs.swizzling import TileAccess, instruction_name, widths
from layoutalg.synth.swizzles.needs import Need, low_columns, need_of
from layoutalg.synth.swizzles.question import Question, outside
from layoutalg.targets.banks import bank_model

FEW_BITS = 4
"""Up to this many tile bits, every chain is tried."""


def chains(asked: Question) -> Iterator[tuple[int, ...]]:
    """Yield tile elements for the low offset bits: those that matrices need, or common registers, longest first."""
    wanted = [low for access in asked.accesses if (low := low_columns(access, asked.element_bits)) is not None]
    if wanted:
        for one, other in pairwise(wanted):
            if one != other:
                return
        if matrix.rank(wanted[0]) < len(wanted[0]):
            return  # lanes with equal elements do not fill a row
        yield wanted[0]
        return
    common: Sequence[int] = asked.accesses[0].registers
    for access in asked.accesses[1:]:
        common = matrix.intersection(common, access.registers)
    moving = [image for access in asked.accesses for image in (*access.lanes, *access.warps)]
    shared = outside(matrix.intersection(common, moving), preferred(asked.accesses[0].registers, common))
    seen: set[tuple[int, ...]] = set()
    for first in (False, True):
        for chain in sorted(_continued(asked, shared, first), key=len, reverse=True):
            if chain not in seen:
                seen.add(chain)
                yield chain
    if asked.bits <= FEW_BITS:
        yield from _all_chains(asked, ())


def _all_chains(asked: Question, begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every chain of spaces that extends ``begun``, longest first."""
    reached = {matrix.apply(begun, number) for number in range(1 << len(begun))}
    for element in range(1 << asked.bits) if len(begun) < asked.most else ():
        if element == min(element ^ other for other in reached) and element not in reached:
            yield from _all_chains(asked, (*begun, element))
    yield begun


def _continued(asked: Question, shared: Sequence[int], first: bool) -> Iterator[tuple[int, ...]]:
    """Yield some common registers followed by those of one access; with ``first``, those of another one between."""
    for size in range(min(asked.most, len(shared)), -1, -1):
        for before in asked.accesses if first else ():
            begun = outside([*shared[:size], *_resting(before)], before.registers)
            for many in range(1, min(asked.most - size, len(begun)) + 1):
                start = (*shared[:size], *begun[:many])
                for access in asked.accesses:
                    own = outside(start, access.registers)
                    yield (*start, *own[: asked.most - len(start)])
        for access in () if first else asked.accesses:
            own = outside([*shared[:size], *_resting(access)], access.registers)
            for many in range(asked.most - size, -1, -1):
                yield (*shared[:size], *own[:many])


def _resting(access: TileAccess) -> tuple[int, ...]:
    """Return the elements spanned both by registers and by lanes or warps."""
    return matrix.intersection(access.registers, (*access.lanes, *access.warps))


def _are_rows(asked: Question, access: TileAccess, low: Sequence[int], rows: Sequence[int]) -> bool:
    """Return whether a given layout places the rows of a matrix access as the instruction requires."""
    wanted = low_columns(access, asked.element_bits) or ()
    rest = [vector for vector in (*access.distinct, *access.lanes, *access.warps) if vector not in wanted]
    still = [*rest, access.layout.constant]
    bad = any((row & vector).bit_count() & 1 for row in rows[: len(wanted)] for vector in still)
    return len(rows) >= len(wanted) and not bad and tuple(low[: len(wanted)]) == wanted


def preferred(candidates: Sequence[int], space: Sequence[int]) -> tuple[int, ...]:
    """Return a basis of a space that uses as many candidates as possible."""
    reduced = matrix.image_basis(space)
    inside = [vector for vector in candidates if vector and not matrix.remainder(reduced, vector)]
    return outside((), [*inside, *reduced])


def needs(
    asked: Question, low: Sequence[int], rows: Sequence[int] | None = None, caps: Sequence[int] = ()
) -> list[Need] | None:
    """Return what every access on every target needs, using the widest instruction that the low bits allow.

    Args:
        asked: The question.
        low: Elements at the low offset bits.
        rows: Offset bits as functions of tile bits; None assumes that lanes start at the first of these elements
            wherever an access allows that by itself.
        caps: Per access, how many of the low bits a lane may move at once; empty for no limit.
    """
    found = []
    for number, access in enumerate(asked.accesses):
        for target in asked.targets:
            if access.kind not in ("load", "store"):
                name, _, trans = access.kind.partition(".")
                held = 1 if trans else (32 // asked.element_bits).bit_length() - 1
                free = matrix.rank(access.registers) - held
                if free < 0 or (rows is not None and not _are_rows(asked, access, low, rows)):
                    return None
                model = bank_model(target, f"{name}.x{min(4, 1 << free)}{'.' + trans if trans else ''}")
                found.append(need_of(number, access, model, low, asked.element_bits))
                continue
            registers = matrix.image_basis(access.registers)
            moving = (*access.lanes, *access.warps)
            inside = 0
            while inside < (caps[number] if caps else len(low)) and not matrix.remainder(registers, low[inside]):
                if rows is not None and any((rows[inside] & image).bit_count() & 1 for image in moving):
                    break
                if rows is None and not outside((*moving, *low[:inside]), (low[inside],)):
                    break
                inside += 1
            possible = [bits for bits in widths(target, access.kind, asked.element_bits)
                        if bits <= asked.element_bits << inside]  # fmt: skip
            if not possible:
                return None
            size = (possible[0] // asked.element_bits).bit_length() - 1
            model = bank_model(target, instruction_name(target, access.kind, possible[0]))
            found.append(need_of(number, access, model, low[:size], asked.element_bits))
    return found
