"""Swizzles: shared-memory layouts that serve several accesses with the fewest bank conflicts.

The low offset bits select among the elements that one lane moves at once (or one row of a matrix); they come from a
chain of subspaces common to the registers of the accesses. What remains is the bank number, a linear map of the tile
(``synth.swizzles.search``): a common complement for two accesses, otherwise branch and bound.

References: arXiv 2505.23819, sections 5.4 and 9.2, for two accesses with unit vectors as bases; generalised here to any
subspaces and any number of accesses, kinds and targets at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from layoutalg.ground import clock
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.proofs.served import Recounted
from layoutalg.proofs.swizzling import CHECK, SwizzlePlan
from layoutalg.synth.swizzles.forms import FORMS, cost_of, restricted
from layoutalg.synth.swizzles.needs import Need, chains, ideal
from layoutalg.synth.swizzles.needs import floor as floor_of
from layoutalg.synth.swizzles.needs import needs as needs_of
from layoutalg.synth.swizzles.reading import Question, question
from layoutalg.synth.swizzles.solving import solved
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES

__all__ = ["swizzle"]
ELSEWHERE_SECONDS = 0.5
"""Time limit for finding better plans of other forms."""


def swizzle(
    accesses: Sequence[object] | str,
    target: str | Sequence[str] = "sm_90a",
    element_bits: int | str | None = None,
    form: str = "any",
    *,
    tile: Sequence[int] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    seconds: float = 2.0,
) -> SwizzlePlan:
    """Return a shared layout, linear over F2, that serves all accesses in the fewest turns of the banks.

    Mathematically: among invertible maps S from tile coordinates to element offsets, one that minimises the total turns
    of all accesses on all targets, then the number of instructions. ``.bound`` is a lower bound on the turns for this
    form, ``.optimal`` says whether it is reached, and ``.better`` lists other forms that need fewer turns.

    Args:
        accesses: Layouts from (register, lane) and warp axes to tile coordinates, all of one tile; or pairs of a layout
            and its kind: ``"load"``, ``"store"``, ``"ldmatrix"``, ``"ldmatrix.trans"``, ``"stmatrix"``, ...; or
            ``TileAccess``; or text: a layout in any notation or a name (``"rows"``, ``"columns"``, ``"ldmatrix"``,
            ...), optionally followed by ``:kind``. By default the first is a store, the others are loads.
        target: The target, or several that one layout must serve.
        element_bits: Bits of an element, 8 to 128, or the name of its type; None for that of the texts, or 16.
        form: ``"any"`` (linear over F2); ``"tma"``: what the copy engine of all targets can write, either dimension
            innermost; ``"cute"``: every ``Sw<B,M,S>`` on a row-major or column-major tile; ``"xor"``: row-major, with
            chunk numbers XORed with a linear map of the row. For the last three, ``.cute`` is the layout in CuTe
            notation.
        tile: Extents of the tile, outermost first, if the accesses do not determine them.
        chunk_bytes: Chunk size of the form ``"xor"``.
        seconds: Time limit; when it runs out, the best layout found is returned with what is proved about it.

    Raises: MalformedError: LA910, LA713. RepresentabilityError: LA912, LA913.

    Example:
        >>> from layoutalg import LinearLayout
        >>> rows = LinearLayout.from_bases({"register": [(0, 1), (0, 2), (0, 4)], "lane": [(0, 8), (0, 16), (1, 0),
        ...     (2, 0), (4, 0)]}, {"row": 8, "col": 32})
        >>> columns = LinearLayout.from_bases({"register": [(1, 0), (2, 0), (4, 0)], "lane": [(0, 1), (0, 2), (0, 4),
        ...     (0, 8), (0, 16)]}, {"row": 8, "col": 32})
        >>> plan = swizzle([rows, columns], element_bits=16).check()
        >>> plan.conflict_free, plan.optimal, plan.turns
        (True, True, 12)
        >>> plan = swizzle(["rows", "columns"], "sm_90a", 16, "xor", tile=(64, 64))
        >>> plan.cute, plan.turns, plan.ideal
        ('Sw<3,3,6> o 0 o (64,64):(64,1)', 192, 192)
    """
    asked = question(accesses, target, element_bits, tile)
    CHECK.choice(form, "form", FORMS)
    chunk = CHECK.integer(chunk_bytes, "chunk_bytes")
    if chunk & (chunk - 1) or not _least_chunk(asked) <= chunk <= 128:
        raise CHECK.malformed("chunk_bytes", "must be a power of two from 4 to 128, at least one element", chunk)
    if form == "any":
        return _with_others(asked, _linear(asked, seconds))
    with clock.within(seconds):
        plan = restricted(asked, form, chunk)
    return _with_others(asked, plan)


def _with_others(asked: Question, plan: SwizzlePlan) -> SwizzlePlan:
    """Return the plan, able to look for better ones of other forms unless it is provably optimal over all forms."""
    if plan.turns == floor_of(asked):
        return plan
    return replace(plan, elsewhere=partial(better_swizzles, asked, plan.turns, plan.form, plan.chunk_bytes))


def better_swizzles(
    asked: Question, turns: int, form: str = "", chunk_bytes: int = CHUNK_BYTES
) -> tuple[Recounted, ...]:
    """Return plans of other forms (or smaller chunks) that take fewer turns; of equal ones CuTe layouts first."""
    found: list[SwizzlePlan] = []
    goal = floor_of(asked)
    forms = [(name, CHUNK_BYTES) for name in ("any", "tma", "cute", "xor") if name != form]
    least = _least_chunk(asked)
    with clock.within(ELSEWHERE_SECONDS):
        for name, chunk in [*forms, ("xor", least)] if form == "xor" and least < chunk_bytes else forms:
            if clock.left() <= 0 or any(each.cute and each.turns <= goal for each in found):
                break
            try:
                plan = _linear(asked, clock.left()) if name == "any" else restricted(asked, name, chunk)
            except RepresentabilityError:  # the form has no layout for these targets
                continue
            if plan.turns < turns:
                found.append(plan)
            elif name == "any":  # every form is a subset of "any"
                break
            goal = max(goal, plan.turns) if name == "any" else goal
    return tuple(sorted(found, key=lambda each: (each.turns, not each.cute)))


def _least_chunk(asked: Question) -> int:
    """Return the smallest chunk in bytes: a word, or an element if that is wider."""
    return max(4, asked.element_bits // 8)


def _linear(asked: Question, seconds: float) -> SwizzlePlan:
    """Return the best layout linear over F2."""
    best: SwizzlePlan | None = None
    floor = floor_of(asked)
    waiting: list[tuple[tuple[int, int], int, tuple[int, ...], list[Need]]] = []
    seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()

    def put(low: tuple[int, ...], caps: tuple[int, ...]) -> None:
        needs = None if (low, caps) in seen else needs_of(asked, low, None, caps)
        seen.add((low, caps))
        if needs is not None:
            heapq.heappush(waiting, (ideal(asked, needs), len(seen), low, needs))

    def better() -> SwizzlePlan | None:
        """Solve the cheapest candidate; return the better of its plan and the best so far."""
        _, _, low, needs = heapq.heappop(waiting)
        found = solved(asked, low, needs)
        if found is None:  # lanes cannot all start at such wide vectors: narrow one access at a time
            wide = [_widest(asked, needs, number) for number in range(len(asked.accesses))]
            for number, width in enumerate(wide):
                if width:
                    put(low, (*wide[:number], width - 1, *wide[number + 1 :]))
        if found is None or (best is not None and cost_of(found) >= cost_of(best)):
            return best
        return replace(found, bound=min(floor, found.turns))

    with clock.within(seconds):
        for low in chains(asked):
            put(low, ())
            while waiting and waiting[0][0][0] <= floor:
                best = better()
                if best is not None and best.turns == floor:
                    return best
        while waiting and (best is None or (waiting[0][0] < cost_of(best) and clock.left() > 0)):
            best = better()
    if best is None:
        because = "every layout needs an instruction with unknown banks, or no instruction moves some access"
        where = tuple(f"{access.kind} {access.layout}" for access in asked.accesses)
        what = f"no swizzle is known for {', '.join(asked.targets)}"
        raise RepresentabilityError(Diagnostic("LA912", what, where, because))
    return best


def _widest(asked: Question, needs: Sequence[Need], number: int) -> int:
    """Return log2 of the elements per lane of the widest instruction of an access."""
    moved = [need.model.access_bytes * 8 // asked.element_bits for need in needs if need.access == number]
    return max(moved).bit_length() - 1
