"""Padding: pitches, or pads inserted at intervals, with which the accesses of a tile take the fewest turns.

Turns are periodic in each pitch (``synth.paddings.pitches``), so enumerating one period above the dense tile finds the
optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import prod

from layoutalg.ground import clock
from layoutalg.ground.errors import InfeasibleError, MalformedError, RepresentabilityError
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.padding import CHECK, FORMS, MOST_CELLS, PaddingPlan, offsets_of, serve
from layoutalg.proofs.served import Recounted
from layoutalg.synth.paddings.accesses import Asked, is_table, read_accesses, tile_access
from layoutalg.synth.paddings.intervals import least_interval
from layoutalg.synth.paddings.pitches import Question, least_pitches, plain_turns
from layoutalg.synth.swizzles import ELSEWHERE_SECONDS, better_swizzles
from layoutalg.synth.swizzles.reading import question, without_kinds
from layoutalg.targets.registry import asked_bits, asked_targets

__all__ = ["padding"]


def padding(
    shape: Sequence[int],
    accesses: object,
    target: str | Sequence[str] = "sm_90a",
    element_bits: int | str | None = None,
    *,
    form: str = "pitches",
    seconds: float = 5.0,
) -> PaddingPlan:
    """Return the smallest padding of a tile with which its accesses take the fewest turns of the banks.

    "Fewest" is within the form and for the instructions named in ``.served``; ``.better`` lists other forms and
    swizzles that need fewer.

    Mathematically: among pitches p with p[d] >= p[d + 1] * shape[d + 1] and p[-1] = 1 that align every access, those
    with the fewest turns of all accesses on all targets, and of these the lexicographically least, outermost first; for
    intervals, the one with the fewest bytes of padding.

    Args:
        shape: Extents of the tile, any numbers, outermost first.
        accesses: One access or several. By name: ``"rows"`` (the widest vectors), ``"columns"`` (the narrowest),
            ``"diagonals"``, ``"antidiagonals"``, ``"along 0"`` (lanes step along dimension 0), optionally with the
            elements per lane, ``"rows:4"``, and prefixed with ``"store "`` for stores; ``"ldmatrix"``, ``"stmatrix"``,
            ``".trans"``. Or registers: a layout of any family from (register, lane, warp) to tile coordinates, a
            ``TileAccess``, an array or nested lists of row-major cells [warp, lane, register] or [lane, register] with
            -1 for inactive lanes; or a pair of one of these and its kind.
        target: The target, or several that one padding must serve.
        element_bits: Bits of an element, 8 to 128, or the name of its type; None for that of the texts, or 16.
        form: ``"pitches"``; ``"interval"``: some words after every 2^k elements, as gfx1250 tensor copies write them;
            ``"padded_shared"``: a power of two of elements, like Triton's padded layouts; ``"reordered"``: the same
            with the bits of the row number permuted.
        seconds: Time limit; when it runs out, the best padding found is returned with what is proved about it.

    Example:
        >>> plan = padding((32, 32), ["store rows:1", "columns:1"], element_bits=32).check()
        >>> print(plan)
        padding       32 x 32 of 32 bits, pitches 33 (132 bytes): 124 bytes
        store rows:1  32 x st.shared.b32 of sm_90a: 32 turns, free of conflicts
        columns:1     32 x ld.shared.b32 of sm_90a: 32 turns, free of conflicts
        turns         64, the minimum over all pitches: every access is free of conflicts; 1056 turns without padding
        >>> padding((24, 72), ["rows", "ldmatrix"]).pitches_bytes
        (144, 2)
    """
    asked = _question(shape, accesses, target, element_bits)
    CHECK.choice(form, "form", FORMS)
    with clock.within(clock.checked_seconds(seconds, "seconds")):
        plan = _least(asked, form)
    return plan if plan.conflict_free else replace(plan, elsewhere=partial(better_plans, asked, plan.turns, form))


def _least(asked: Question, form: str) -> PaddingPlan:
    """Return the least padding of a form."""
    plain = plain_turns(asked)
    found = least_pitches(asked) if form == "pitches" else least_interval(asked, form)
    offsets = offsets_of(asked.shape, *found.where)
    served = tuple(
        serve(each.access, number, offsets, asked.element_bits, asked.targets[place])
        for number, each in enumerate(asked.accesses)
        for place in each.targets
    )
    moved = tuple(each.access for each in asked.accesses)
    return PaddingPlan(
        asked.shape, asked.element_bits, form, *found.where, moved, served, plain, found.bound, found.proof
    )


def better_plans(asked: Question, turns: int, form: str) -> tuple[Recounted, ...]:
    """Return paddings of other forms, and swizzles of the same registers, that take fewer turns."""
    found: list[Recounted] = []
    with clock.within(ELSEWHERE_SECONDS):
        for name in FORMS[:3]:
            if name != form and clock.left() > 0:
                with suppress(InfeasibleError):  # this form cannot align every access
                    found.append(_least(asked, name))
    registers = [tile_access(each.access, asked.shape, asked.element_bits) for each in asked.accesses]
    if None not in registers:
        with suppress(MalformedError, RepresentabilityError):  # lanes or kinds that some target lacks
            found += better_swizzles(question(registers, asked.targets, asked.element_bits, asked.shape), turns)
    return tuple(plan for plan in found if plan.turns < turns)


def _question(shape: object, accesses: object, target: object, element_bits: int | str | None) -> Question:
    extents = CHECK.vector(shape, "shape")
    if not extents or min(extents) < 1 or prod(extents) > MOST_CELLS:
        raise CHECK.malformed("shape", f"must be positive extents of at most {MOST_CELLS} elements", extents)
    targets = asked_targets(CHECK, target)
    pair = isinstance(accesses, tuple) and len(accesses) == 2 and accesses[1] in ("load", "store")
    several = isinstance(accesses, list | tuple) and not pair and not is_table(accesses)
    given = list(accesses) if several else [accesses]  # type: ignore[call-overload]
    bits = asked_bits(CHECK, stated_bits(element_bits, *without_kinds(given), check=CHECK))
    read: tuple[Asked, ...] = read_accesses(given, extents, bits, targets)
    if not read:
        raise CHECK.malformed("accesses", "must name at least one access", accesses)
    return Question(extents, bits, targets, read)
