"""Finders of shared layouts that several accesses read and write without bank conflicts.

Main definitions: ``swizzle``.

Main statements: the low offset bits hold the elements that one lane moves at once (or one row of a matrix); they are a
chain of subspaces common to the registers of the accesses. What is left is the number of the bank, a linear map of the
tile (``synth.swizzles.search``): by a common complement for two accesses, by branch and bound else.

References: arXiv 2505.23819, sections 5.4 and 9.2, for two accesses with unit vectors as bases; here for any subspaces,
any number of accesses, kinds and targets at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground import clock
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.proofs.swizzling import CHECK, Served, SwizzlePlan, TileAccess, instruction_name, widths
from layoutalg.synth.swizzles.needs import Need, low_columns, need_of
from layoutalg.synth.swizzles.search import Found, Space, complement_columns, free_choices, least
from layoutalg.targets.bank_model import bank_model
from layoutalg.targets.registry import lookup

__all__ = ["swizzle"]
NODES = 10_000
MOST_JOINT = 6
ROW_BITS = 128


def swizzle(
    accesses: Sequence[object],
    target: str | Sequence[str] = "sm_90a",
    element_bits: int = 16,
    *,
    budget_seconds: float = 2.0,
) -> SwizzlePlan:
    """Return a shared layout, linear over F2, that serves all accesses in the fewest turns of the banks.

    Mathematically: among invertible maps S from tile coordinates to element offsets, one for which the turns of all
    accesses on all targets together are least; of equals, one with the fewest instructions. ``.bound`` says which
    number of turns is proved to be least, and ``.optimal`` whether it is reached.

    Args:
        accesses: Layouts from (register, lane) and axes of warps to tile coordinates, all of one tile; or pairs of one
            with its kind: ``"load"``, ``"store"``, ``"ldmatrix"``, ``"ldmatrix.trans"``, ``"stmatrix"``, ...; or
            ``TileAccess``. Without kinds, the first is a store and the others are loads.
        target: The target, or several that the one layout has to serve.
        element_bits: Bits of an element, 8 to 128.
        budget_seconds: Time for the search; the best layout that was found is returned with what is proved of it.

    Raises: MalformedError: LA910. RepresentabilityError: LA912.

    Example:
        >>> rows = LinearLayout.from_bases({"register": [(0, 1), (0, 2), (0, 4)], "lane": [(0, 8), (0, 16), (1, 0),
        ...     (2, 0), (4, 0)]}, {"row": 8, "col": 32})
        >>> columns = LinearLayout.from_bases({"register": [(1, 0), (2, 0), (4, 0)], "lane": [(0, 1), (0, 2), (0, 4),
        ...     (0, 8), (0, 16)]}, {"row": 8, "col": 32})
        >>> plan = swizzle([rows, columns], element_bits=16).check()
        >>> plan.conflict_free, plan.optimal, plan.turns
        (True, True, 12)

    Source: see the head of the package.
    """
    asked = _question(accesses, target, element_bits)
    best: SwizzlePlan | None = None
    floor = _floor(asked)
    postponed: list[tuple[tuple[int, int], int, tuple[int, ...], list[Need]]] = []
    with clock.within(budget_seconds):
        for low in _chains(asked):
            needs = _needs(asked, low)
            cost = None if needs is None else _ideal(asked, needs)
            if needs is None or cost is None or cost[0] > floor:
                postponed += [] if needs is None or cost is None else [(cost, len(postponed), low, needs)]
                continue
            best = _better(asked, best, low, needs, floor)
            if best is not None and best.turns == floor:
                return best
        for cost, _, low, needs in sorted(postponed, key=lambda candidate: candidate[:2]):
            if best is not None and (cost >= _cost(best) or clock.left() <= 0):
                break
            best = _better(asked, best, low, needs, floor)
    if best is None:
        because = "every layout needs an instruction whose banks are not known, or none moves an access at all"
        where = tuple(f"{access.kind} {access.layout}" for access in asked.accesses)
        what = f"no swizzle is known for {', '.join(asked.targets)}"
        raise RepresentabilityError(Diagnostic("LA912", what, where, because))
    return best


def _better(
    asked: _Question, best: SwizzlePlan | None, low: tuple[int, ...], needs: Sequence[Need], floor: int
) -> SwizzlePlan | None:
    """Return the better one of the best plan so far and the best one with these elements at the low offset bits."""
    found = _solved(asked, low, needs)
    if found is None or (best is not None and _cost(found) >= _cost(best)):
        return best
    return replace(found, bound=min(floor, found.turns))


def _floor(asked: _Question) -> int:
    """Return turns that no layout goes below.

    Accesses whose vectors have v elements or more share a space of v dimensions of their registers; each group takes at
    least as many turns as its words fill the banks.
    """
    choices: list[list[tuple[int, int]]] = []
    for number, access in enumerate(asked.accesses):
        for target in asked.targets:
            choices.append(_possible(asked, number, access, target))
    owners = [number for number in range(len(asked.accesses)) for _ in asked.targets]
    spans = [matrix.image_basis(access.registers) for access in asked.accesses]
    if len(choices) > MOST_JOINT:
        return sum(min((turns for _, turns in choice), default=0) for choice in choices)
    least_turns = []
    for picked in itertools.product(*choices):
        wide = sorted({vector for vector, _ in picked})
        sharing = ([owners[place] for place, (own, _) in enumerate(picked) if own >= vector] for vector in wide)
        if all(len(_common(spans, owner)) >= vector for owner, vector in zip(sharing, wide, strict=True)):
            least_turns.append(sum(turns for _, turns in picked))
    return min(least_turns, default=0)


def _possible(asked: _Question, number: int, access: TileAccess, target: str) -> list[tuple[int, int]]:
    """Return the vectors that an access may have, as logs of elements, each with the least turns."""
    word, registers = _word(asked), matrix.rank(access.registers)
    if low_columns(access, asked.element_bits) is not None:
        return [(0, 1 << max(0, registers - word + len(access.warps)))]
    found = []
    for bits in widths(target, access.kind, asked.element_bits):
        vector = (bits // asked.element_bits).bit_length() - 1
        if vector <= registers:
            model = bank_model(target, instruction_name(target, access.kind, bits))
            need = need_of(number, access, model, (0,) * vector, asked.element_bits)
            words = max(0, max(len(need.space), vector) - word)
            found.append((vector, need.groups << max(0, words - max(0, need.bank_end - word))))
    return found


def _common(spans: Sequence[Sequence[int]], owners: Sequence[int]) -> Sequence[int]:
    found = spans[owners[0]]
    for owner in owners[1:]:
        found = matrix.intersection(found, spans[owner])
    return found


def _word(asked: _Question) -> int:
    """Log of the elements of a word."""
    return max(0, (32 // asked.element_bits).bit_length() - 1)


def _ideal(asked: _Question, needs: Sequence[Need]) -> tuple[int, int]:
    """Return the turns and the instructions if no bank were busier than it must be."""
    word = _word(asked)
    turns = 0
    for need in needs:
        words = max(0, len(need.space) - word)
        turns += need.groups << max(0, words - max(0, need.bank_end - word))
    return turns, sum(need.count for need in needs)


def _cost(plan: SwizzlePlan) -> tuple[int, int]:
    return plan.turns, sum(each.count for each in plan.served)


@dataclass(frozen=True, slots=True)
class _Question:
    accesses: tuple[TileAccess, ...]
    targets: tuple[str, ...]
    element_bits: int

    @property
    def bits(self) -> int:
        """Bits of a tile coordinate."""
        return self.accesses[0].layout.out_bits

    @property
    def most(self) -> int:
        """Log of the elements of the widest access."""
        return max(0, (ROW_BITS // self.element_bits).bit_length() - 1)


def _question(accesses: object, target: object, element_bits: object) -> _Question:
    bits = CHECK.integer(element_bits, "element_bits")
    if bits not in (8, 16, 32, 64, 128):
        raise CHECK.malformed("element_bits", "must be 8, 16, 32, 64 or 128", bits)
    named = (target,) if isinstance(target, str) else _listed(target, "target")
    targets = tuple(CHECK.kind(name, str, "target") for name in named)
    for name in targets:
        lookup(name)
    if isinstance(accesses, LinearLayout | TileAccess):
        accesses = [accesses]
    read = []
    for place, each in enumerate(_listed(accesses, "accesses")):
        read.append(_access(each, "store" if place == 0 else "load"))
    if not read or not targets:
        raise CHECK.malformed("accesses", "must name at least one access, and target one target", accesses)
    first = read[0].layout
    for access in read:
        if access.layout.out_axes != first.out_axes:
            rule = f"must all map to the tile {first.out_dims}, with its axes in this order"
            raise CHECK.malformed("accesses", rule, str(access.layout.out_dims))
    return _Question(tuple(read), targets, bits)


def _listed(given: object, argument: str) -> tuple[object, ...]:
    if not isinstance(given, list | tuple):
        raise CHECK.malformed(argument, "must be a list or a tuple", given)
    return tuple(given)


def _access(given: object, kind: str) -> TileAccess:
    if isinstance(given, TileAccess):
        return given
    if isinstance(given, LinearLayout):
        return TileAccess(given, kind)
    if isinstance(given, tuple | list) and len(given) == 2:
        return TileAccess(given[0], given[1])
    raise CHECK.malformed("accesses", "must hold layouts, or pairs of a layout and its kind", given)


def _chains(asked: _Question) -> Iterator[tuple[int, ...]]:
    """Yield tile elements for the low offset bits: those that matrices want, or common registers, longest first."""
    wanted = [low for access in asked.accesses if (low := low_columns(access, asked.element_bits)) is not None]
    if wanted:
        for one, other in pairwise(wanted):
            if one != other:
                return
        if matrix.rank(wanted[0]) < len(wanted[0]):
            return  # lanes that hold the same elements fill no row
        yield wanted[0]
        return
    common: Sequence[int] = asked.accesses[0].registers
    for access in asked.accesses[1:]:
        common = matrix.intersection(common, access.registers)
    moving = [image for access in asked.accesses for image in (*access.lanes, *access.warps)]
    shared = _outside(matrix.intersection(common, moving), _preferred(asked.accesses[0].registers, common))
    seen = set()
    chains = []
    for size in range(min(asked.most, len(shared)), -1, -1):
        for access in asked.accesses:
            resting = matrix.intersection(access.registers, (*access.lanes, *access.warps))
            own = _outside([*shared[:size], *resting], access.registers)
            for many in range(asked.most - size, -1, -1):
                chains.append((*shared[:size], *own[:many]))
    for chain in sorted(chains, key=len, reverse=True):
        if chain not in seen:
            seen.add(chain)
            yield chain


def _preferred(candidates: Sequence[int], space: Sequence[int]) -> tuple[int, ...]:
    """Return a basis of a space, made of candidates as far as they lie in it."""
    reduced = matrix.image_basis(space)
    inside = [vector for vector in candidates if vector and not matrix.remainder(reduced, vector)]
    return _outside((), [*inside, *reduced])


def _outside(base: Sequence[int], candidates: Sequence[int]) -> tuple[int, ...]:
    """Return the candidates that, one after the other, enlarge a span."""
    spanned, chosen = list(base), []
    rank = matrix.rank(spanned)
    for vector in candidates:
        if matrix.rank([*spanned, vector]) > rank:
            spanned.append(vector)
            chosen.append(vector)
            rank += 1
    return tuple(chosen)


def _needs(asked: _Question, low: Sequence[int], rows: Sequence[int] | None = None) -> list[Need] | None:
    """Return what every access on every target needs, by the widest instruction that the low bits allow.

    Args:
        asked: The question.
        low: Elements at the low offset bits.
        rows: Offset bits as functions of tile bits; None where lanes will start at the first of these elements.
    """
    found = []
    for number, access in enumerate(asked.accesses):
        for target in asked.targets:
            if access.kind not in ("load", "store"):
                name, _, trans = access.kind.partition(".")
                held = 1 if trans else (32 // asked.element_bits).bit_length() - 1
                free = matrix.rank(access.registers) - held
                if len(access.lanes) != 5 or free < 0 or lookup(target).vendor != "nvidia":
                    return None
                model = bank_model(target, f"{name}.x{min(4, 1 << free)}{'.' + trans if trans else ''}")
                found.append(need_of(number, access, model, low, asked.element_bits))
                continue
            registers = matrix.image_basis(access.registers)
            inside = 0
            while inside < len(low) and not matrix.remainder(registers, low[inside]):
                if rows is not None and any(
                    (rows[inside] & image).bit_count() & 1 for image in (*access.lanes, *access.warps)
                ):
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


def _solved(asked: _Question, low: tuple[int, ...], needs: Sequence[Need]) -> SwizzlePlan | None:
    """Return the best layout whose low offset bits are these elements; None where lanes cannot start at them."""
    basis = _basis(asked, low, needs)
    if basis is None:
        return None
    word = _word(asked)
    best: tuple[Found, list[int]] | None = None
    for ordered in _within_words(basis, len(low), word, needs):
        found = _mapped(ordered, len(low), word, needs)
        if found is not None and (best is None or found.turns < best[0].turns):
            best = found, ordered
        if best is not None and best[0].turns == best[0].bound:
            break
    if best is None:
        return None
    smem = _layout(asked, best[0].columns, best[1], word)
    served = _served(asked, smem)
    return SwizzlePlan(smem, asked.element_bits, asked.accesses, served, 0, best[0].proof)


def _served(asked: _Question, smem: LinearLayout) -> tuple[Served, ...]:
    """Return how each access is served, by ranks: by the widest instruction that the layout allows."""
    elements = matrix.inverse(smem.columns)
    rows = matrix.transpose(smem.columns, asked.bits)
    low = []
    for place in range(min(asked.most, asked.bits)):
        low.append(elements[place])
    needs = _needs(asked, low, rows) or []
    word = _word(asked)
    found = []
    for need in needs:
        space = _space(need, smem.columns, word)
        columns = [0 if at < word else 1 << at - word for at in range(asked.bits)]
        found.append(
            Served(need.access, need.model.target, need.model.operation, need.count, space.turns(columns), space.least)
        )
    return tuple(found)


def _basis(asked: _Question, low: tuple[int, ...], needs: Sequence[Need]) -> list[int] | None:
    """Return a basis of the tile that begins with the low elements, the rest with low coordinates zero on all lanes.

    Every lane has to start at the first element of its vector, so the low coordinates are functions that are zero on
    the images of lanes and warps; None where there are no such functions.
    """
    resting = [_resting(asked, low, needs, place) for place in range(len(low))]
    # Accesses with narrower vectors spread their lanes over the low bank bits that the others' vectors fill.
    narrow = [vector for need in needs if len(need.space) and _width(asked, need) < len(low) for vector in need.space]
    held = [vector for still in resting for vector in still]
    spread = _outside([*held, *low], narrow)[: max(0, len(low) - _word(asked))]
    functions = []
    for place in range(len(low)):
        still = resting[place]
        points = [*still, *low, *spread]
        wanted = 1 << len(still) + place
        if (turn := place - _word(asked)) in range(len(spread)):
            wanted |= 1 << len(still) + len(low) + turn
        rows = [sum((point >> bit & 1) << at for at, point in enumerate(points)) for bit in range(asked.bits)]
        solved = matrix.solve(rows, wanted)
        if solved is None:
            return None
        functions.append(solved[0])
    rest = []
    for bit in range(asked.bits):
        vector = 1 << bit
        for function, element in zip(functions, low, strict=True):
            if function >> bit & 1:
                vector ^= element
        rest.append(vector)
    return [*low, *_outside(low, rest)]


def _resting(asked: _Question, low: Sequence[int], needs: Sequence[Need], place: int) -> list[int]:
    """Return the elements on which the low coordinate ``place`` has to be zero."""
    still: list[int] = []
    for need in needs:
        access = asked.accesses[need.access]
        if access.kind not in ("load", "store"):
            still += [vector for vector in (*access.registers, *access.lanes, *access.warps) if vector not in low]
        elif place < _width(asked, need):
            still += [*access.lanes, *access.warps]
    return still


def _width(asked: _Question, need: Need) -> int:
    """Log of the elements of one lane."""
    return (8 * need.model.access_bytes // asked.element_bits).bit_length() - 1


def _within_words(basis: list[int], low: int, word: int, needs: Sequence[Need]) -> Iterator[list[int]]:
    """Yield orders of a basis: which elements share a word beyond those that one lane moves at once."""
    if low >= word:
        yield basis
        return
    rest = basis[low:]
    seen = set()
    spaces = [need.space for need in needs]
    everywhere: Sequence[int] = spaces[0]
    for space in spaces[1:]:
        everywhere = matrix.intersection(everywhere, space)
    outside = matrix.image_basis(rest)
    for first in (everywhere, *spaces, ()):
        inside = matrix.intersection(first, outside) if first else ()
        order = _outside(basis[:low], [*_preferred(rest, inside), *inside, *rest])
        if order[: word - low] not in seen:
            seen.add(order[: word - low])
            yield [*basis[:low], *order]


def _space(need: Need, coordinates: Sequence[int], word: int) -> Space:
    basis = matrix.image_basis([matrix.apply(coordinates, vector) for vector in need.space])
    inside = len(basis) - matrix.rank([vector >> word for vector in basis])
    return Space(basis, (1 << max(0, need.bank_end - word)) - 1, need.groups, inside)


def _mapped(ordered: list[int], low: int, word: int, needs: Sequence[Need]) -> Found | None:
    """Return the bank bits of every basis vector."""
    total = len(ordered)
    coordinates = matrix.inverse(ordered)
    spaces = [_space(need, coordinates, word) for need in needs]
    start = max(low, word)
    known = [0 if at < word else 1 << at - word for at in range(min(start, total))]
    bits = min(max(space.mask.bit_length() for space in spaces), max(0, total - word))
    closed = complement_columns(spaces, min(word, total), len(known), total, max(0, bits - (start - word)))
    if closed is not None:
        columns = (*known, *(column << start - word for column in closed))
        turns = sum(space.turns(columns) for space in spaces)
        floor = sum(space.least for space in spaces)
        return Found(columns, turns, floor, "a common complement of what the groups of lanes touch", 0)
    same = len({space.mask for space in spaces}) == 1
    return least(spaces, known, total, free_choices(bits, min(bits, max(0, start - word)), same), NODES)


def _layout(asked: _Question, columns: Sequence[int], ordered: Sequence[int], word: int) -> LinearLayout:
    """Return the layout: the word's elements, the bank bits, then coordinates that complete them to a bijection."""
    total = asked.bits
    placed = [1 << at if at < word else column << word for at, column in enumerate(columns)]
    rows = list(matrix.transpose(placed, total))  # bit t of row j: coordinate t counts at offset bit j
    kept: list[int] = []
    missing = []
    for place, row in enumerate(rows):
        if row and matrix.rank([*kept, row]) > len(kept):
            kept.append(row)
        else:
            missing.append(place)
    fresh = iter(_outside(kept, [1 << at for at in range(total)]))
    for place in missing:
        rows[place] = next(fresh)
    whole = matrix.transpose(rows, total)
    return LinearLayout(
        asked.accesses[0].layout.out_axes, (("offset", total),), matrix.multiply(whole, matrix.inverse(ordered))
    )
